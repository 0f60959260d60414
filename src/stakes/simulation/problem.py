"""Labelled data and what is to be lost on it, checked once.

Sizes: n rows, p features, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes.domains import Classes, Interval
from stakes.losses import AnyLoss, LogLoss, SquaredError
from stakes.models.acceptance import accepts_missing
from stakes.models.classes import plain, union_of
from stakes.models.table_checks import check_table
from stakes.models.tables import Host, Table, is_gap, n_rows, on_host
from stakes.simulation.trial import rows_in_words

_NAMED = 5  # labels that an error names


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with their labels, as the model is fitted to them and as losses count them."""

    features: Table
    """[n, p], as given"""
    labels: Host
    """[n], as given: what the model is fitted to"""
    targets: Host
    """[n]: the label, or its position among the classes"""
    classes: tuple[Any, ...] | None
    """C of them in the order of columns; None for reals"""

    @property
    def size(self) -> int:
        """The number n of rows."""
        return len(self.targets)


def plain_loss(loss: AnyLoss) -> AnyLoss:
    """The unweighted loss of the same kind of target: LogLoss for classes, SquaredError for reals."""
    return LogLoss() if isinstance(loss.domain, Classes) else SquaredError()


def check_model(model: Any) -> None:
    """Refuse what cannot be fitted again and again."""
    if not all(callable(getattr(model, method, None)) for method in ("fit", "get_params", "set_params")):
        raise TypeError(
            "model must be an estimator that can be cloned and fitted again, with fit, get_params and set_params "
            f"(scikit-learn's BaseEstimator has the last two); got {model!r}"
        )


def problem(
    features: Any,
    labels: Any,
    loss: AnyLoss,
    model: Any,
    classes: Sequence[Any] | None,
    labelled: Host | None = None,
) -> Problem:
    """The data, checked; NaN among features is left to a model that takes it.

    Labels are wanted of the rows at `labelled` only, or of all; other rows have NaN for a target, or -1 for a class.
    """
    features, labels = check_table("X", features, accepts_missing(model)), on_host(labels)
    rows = _known(labels, n_rows(features), labelled)
    if isinstance(loss.domain, Classes):
        known = _classes(labels[rows], loss.domain, classes)
        return Problem(features, labels, _spread(_positions(labels, rows, known), rows, len(labels), -1), known)
    if not isinstance(loss.domain, Interval):
        raise TypeError(f"simulate takes real targets and classes; {type(loss).__name__} is about {loss.domain}")
    if classes is not None:
        raise ValueError(f"classes are for losses about classes; {type(loss).__name__} is about reals, {loss.domain}")
    targets = _spread(_reals(labels, rows, loss.domain), rows, len(labels), np.nan)
    return Problem(features, targets, targets, None)


def _known(labels: Host, count: int, labelled: Host | None) -> Host:
    """The rows whose labels are wanted; refused where there is none."""
    if labels.shape != (count,):
        raise ValueError(f"y must hold one label for each of the {count} rows of X; got {list(labels.shape)}")
    rows = np.arange(count) if labelled is None else labelled
    if missing := rows[is_gap(labels[rows])].tolist():
        which = "" if labelled is None else " of initial, pool and test"
        raise ValueError(
            f"y must be known for every row{which}; it is missing in {rows_in_words(missing)}. Drop those rows."
        )
    return rows


def _spread(values: Host, rows: Host, count: int, other: float) -> Host:
    """[n]: `values` at `rows`, and `other` elsewhere."""
    targets = np.full(count, other, dtype=values.dtype)
    targets[rows] = values
    return targets


def _classes(labels: Host, domain: Classes, given: Sequence[Any] | None) -> tuple[Any, ...]:
    """All classes in the order of columns: as given, or those of y in rising order."""
    known = tuple(union_of([labels.tolist()])) if given is None else tuple(map(plain, given))
    if len(set(known)) != len(known):
        raise ValueError(f"classes must be told apart; got {known}")
    if domain.count not in (None, len(known)):
        raise ValueError(
            f"the loss is about {domain}, but there are {len(known)}: {known}. Give classes=[...], all of them in the "
            "order of the loss, also those that are not in y."
        )
    return known


def _positions(labels: Host, rows: Host, classes: tuple[Any, ...]) -> Host:
    """Where the labels of some rows are among the classes."""
    places = {each: position for position, each in enumerate(classes)}
    found = np.asarray([places.get(each, -1) for each in labels[rows].tolist()], dtype=np.intp)
    if outside := rows[found < 0].tolist():
        strange = sorted({repr(each) for each in labels[outside].tolist()})[:_NAMED]
        raise ValueError(
            f"y must be among the classes {classes}; {', '.join(strange)} is not, in {rows_in_words(outside)}. "
            "Give all."
        )
    return found


def _reals(labels: Host, rows: Host, domain: Interval) -> Host:
    """The labels of some rows as finite numbers of the domain."""
    try:
        targets = labels[rows].astype(float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"y must hold numbers for a loss about {domain}; got {labels.dtype} ({error})") from error
    if infinite := rows[~np.isfinite(targets)].tolist():
        raise ValueError(f"y must be finite; it is not in {rows_in_words(infinite)}. Drop those rows.")
    domain.check("y", targets)
    return targets
