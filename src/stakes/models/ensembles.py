"""Ensembles that no model holds together: functions, lists and models with a noise level of your own.

Sizes: n rows, K members, C classes, d outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from stakes._utils.array import Array, check_shape, namespace
from stakes._utils.tables import n_rows
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts, best_of, register_model
from stakes.models.forests import answers, ensemble, is_pure, members_of, probabilities
from stakes.models.members import Members, means_of, moment_noise, prepare_members, prepare_table, union_of


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
def _ensemble(model: EnsembleOf, contexts: Any, *, target: Any, classes: Any, **_: Any) -> RowsToBelief:
    if callable(model.members):
        return _of_function(model, contexts, target=target, classes=classes)
    members = members_of(model.members)
    if model.classes is not None:
        members = replace(members, known=model.classes)
    if model.member_weights is not None:
        members = replace(members, weights=model.member_weights)
    return prepare_members(members, contexts, model.noise_sd, target=target, classes=classes)


def _of_function(model: EnsembleOf, contexts: Any, *, target: Any, classes: Any) -> RowsToBelief:
    """Both tables as they come, of any array library and wherever they are."""
    if model.noise_sd is not None and model.classes is not None:
        raise StakesError("give classes for a function of probabilities, or noise_sd for one of means; got both")
    there = _as_array(model.members(contexts))
    last = ("C",) if model.noise_sd is None or there.ndim == 3 else ()
    check_shape("what the function gives for the contexts", there, ("K", n_rows(contexts), *last))
    known = None
    if model.noise_sd is None:
        known = range(there.shape[2]) if model.classes is None else model.classes
    prepared = prepare_table(
        _rows_first(there),
        target=target,
        classes=classes,
        known=known,
        noise_sd=model.noise_sd,
        weights=model.member_weights,
    )

    def belief(pool: Any) -> Any:
        here = _as_array(model.members(pool))
        check_shape("what the function gives for the pool", here, (len(there), n_rows(pool), *last))
        return prepared(_rows_first(here))

    return belief


def _rows_first(table: Array) -> Array:
    """[n, K, C], or [n, K(, d)]."""
    return namespace(table).moveaxis(table, 0, 1)


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

    By the method of moments, on rows that members were not fitted on: see `stakes.models.members` for its bias.
    """
    members = members_of(model)
    if members.samples is None:
        raise StakesError(
            f"the members of this {type(model).__name__} were fitted on all rows, or do not say on which: there is "
            "nothing out of bag. Fit with bootstrap=True, or wrap the estimator in Bootstrap."
        )
    noise = moment_noise(y, means_of(members, X), members.samples())
    if not np.all(noise > 0):
        raise StakesError("no row was left out by a member, or there is no residual: give noise_sd yourself")
    return noise


# ----------------------------------------------------------------------
# Members of voting ensembles and of lists, and those at the end of pipelines and searches.


@members_of.register(VotingClassifier)
def _voting_classifiers(model: VotingClassifier) -> Members:
    """Each named estimator is a member, with its weight: its answers in hard voting, its probabilities in soft."""
    check_is_fitted(model)
    hard = model.voting == "hard"
    return Members(
        predict=tuple(answers(member) if hard else probabilities(member) for member in model.estimators_),
        classes=tuple(model.classes_[np.asarray(member.classes_, dtype=int)] for member in model.estimators_),
        known=model.classes_,
        pure=hard or all(map(is_pure, model.estimators_)),
        weights=_kept_weights(model),
    )


@members_of.register(VotingRegressor)
def _voting_regressors(model: VotingRegressor) -> Members:
    """Each named estimator is a member, with its weight."""
    check_is_fitted(model)
    return Members(tuple(member.predict for member in model.estimators_), weights=_kept_weights(model))


@members_of.register(list)
@members_of.register(tuple)
def _listed(models: Sequence[Any]) -> Members:
    """Fitted estimators of one kind, classifiers (not necessarily of the same classes) or regressors."""
    for model in models:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
        if not hasattr(model, "predict"):
            raise TypeError(
                f"a list of models must hold fitted estimators with predict; got {type(model).__name__}. Networks of "
                "torch with a noise level or weights go into stakes.models.networks.NetworkEnsemble."
            )
        if isinstance(getattr(model, "classes_", None), list):
            raise StakesError(f"{type(model).__name__} has several class outputs: give one output at a time")
    kinds = {hasattr(model, "classes_") for model in models}
    if len(kinds) > 1:
        raise TypeError(
            f"members must all be classifiers or all regressors; got {[type(each).__name__ for each in models]}"
        )
    if kinds != {True}:
        return Members(tuple(model.predict for model in models))
    return Members(
        predict=tuple(probabilities(model) for model in models),
        classes=tuple(model.classes_ for model in models),
        pure=all(map(is_pure, models)),
    )


@members_of.register(Pipeline)
def _at_the_end(model: Pipeline) -> Members:
    """Those of the last step, on what the steps before make of the rows."""
    last, before = members_of(model.steps[-1][1]), model[:-1]
    if len(model.steps) == 1:
        return last
    return last.after(before.transform)


@members_of.register(BaseSearchCV)
def _found(model: BaseSearchCV) -> Members:
    """Those of the best estimator."""
    return members_of(best_of(model))


def _kept_weights(model: Any) -> list[float] | None:
    """The weights of the estimators that were not dropped."""
    if model.weights is None:
        return None
    return [weight for weight, (_, each) in zip(model.weights, model.estimators, strict=True) if each != "drop"]


for _kind in (VotingClassifier, VotingRegressor, list, tuple):
    register_model(_kind, ensemble)
