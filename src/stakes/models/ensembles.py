"""Ensembles that no model holds together: functions, lists and models with a noise level of your own.

Sizes: n rows, K members, C classes, d outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from stakes._array import Array, check_shape, namespace
from stakes.beliefs import Belief
from stakes.models.base import Request, adapts
from stakes.models.classes import union_of
from stakes.models.forests import members_of
from stakes.models.members import ensemble_belief, means_of
from stakes.models.noise import moment_noise
from stakes.models.predictions import table_belief
from stakes.models.tables import n_rows


@dataclass(frozen=True, eq=False)
class EnsembleOf:
    """An ensemble from a function of the rows, a list of fitted estimators, or a fitted ensemble.

    `members` is a function that gives class probabilities [K, n, C] of K members for n rows, in the same order each
    time it is called; or, with `noise_sd`, means [K, n] ([K, n, d] for vectors). Or it is what `belief_of` takes too, a
    list or an ensemble, here with a noise level and weights.
    """

    members: Any
    _: KW_ONLY
    classes: Any = None
    """The classes of the columns that a function gives; None: 0 .. C - 1."""
    noise_sd: Any = None
    """The sd of labels about a member's mean: a number, or one for each of d outputs. None for classes."""
    member_weights: Any = None
    """[K]; None: alike, or the weights that an ensemble has."""


@adapts(EnsembleOf)
def _ensemble(model: EnsembleOf, pool: Any, contexts: Any, request: Request) -> Belief:
    if callable(model.members):
        return _of_function(model, pool, contexts, request)
    members = members_of(model.members)
    if model.classes is not None:
        members = replace(members, known=model.classes)
    if model.member_weights is not None:
        members = replace(members, weights=model.member_weights)
    return ensemble_belief(members, pool, contexts, request, model.noise_sd)


def _of_function(model: EnsembleOf, pool: Any, contexts: Any, request: Request) -> Belief:
    """Both tables as they come, of any array library and wherever they are."""
    if model.noise_sd is not None and model.classes is not None:
        raise ValueError("give classes for a function of probabilities, or noise_sd for one of means; got both")
    there = request.kept("predictions", lambda: _as_array(model.members(contexts)))
    tables = [_as_array(model.members(pool)), there]
    last = ("C",) if model.noise_sd is None or tables[0].ndim == 3 else ()
    for name, rows, table in zip(("pool", "contexts"), (pool, contexts), tables, strict=True):
        count = "K" if name == "pool" else len(tables[0])
        check_shape(f"what the function gives for the {name}", table, (count, n_rows(rows), *last))
    known = None
    if model.noise_sd is None:
        known = range(tables[0].shape[2]) if model.classes is None else model.classes
    candidates, targets = (namespace(table).moveaxis(table, 0, 1) for table in tables)  # [n, K, C], or [n, K(, d)]
    return table_belief(
        candidates, targets, request, known=known, noise_sd=model.noise_sd, weights=model.member_weights
    )


def _as_array(table: Any) -> Array:
    """An array of whatever library it is, without the gradients that a network would keep; lists as NumPy's."""
    table = table.detach() if hasattr(table, "detach") else table
    return table if is_array_api_obj(table) else np.asarray(table)


def known_classes(model: Any) -> Sequence[Any] | None:
    """The classes of the columns of a model's belief, in their order; None where there are none or no names."""
    if isinstance(model, EnsembleOf):
        return known_classes(model.members) if model.classes is None else model.classes
    if isinstance(model, list | tuple):
        return union_of([each.classes_ for each in model]) if all(hasattr(each, "classes_") for each in model) else None
    return getattr(model, "classes_", None)


def out_of_bag_noise(model: Any, X: Any, y: Any) -> Array:  # noqa: N803 (scikit-learn's names)
    """The noise sd of labels (one for each output), from the training data `X`, `y` of a fitted, bootstrapped ensemble.

    By the method of moments, on rows that members were not fitted on: see `stakes.models.noise` for its bias.
    """
    members = members_of(model)
    if members.samples is None:
        raise ValueError(
            f"the members of this {type(model).__name__} were fitted on all rows, or do not say on which: there is "
            "nothing out of bag. Fit with bootstrap=True, or wrap the estimator in Bootstrap."
        )
    noise = moment_noise(y, means_of(members, X), members.samples())
    if not np.all(noise > 0):
        raise ValueError("no row was left out by a member, or there is no residual: give noise_sd yourself")
    return noise
