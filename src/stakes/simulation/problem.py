"""Labelled data, checked once, and how a run splits it into initial labels, contexts, test rows and the pool.

Sizes: n rows, p features, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._utils.arguments import is_true_or_false
from stakes._utils.array import on_host
from stakes._utils.tables import Host, Table, check_table, is_gap, n_rows, plain_label
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, LogLoss, SquaredError
from stakes.losses.domains import Classes, Interval
from stakes.models.ensembles import union_of
from stakes.models.inspection import accepts_missing
from stakes.simulation.trial import Trial, listed_rows

_NAMED = 5  # labels that an error names


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with their labels, as the model is fitted to them and as losses count them; all checked."""

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
        """The number of rows, n."""
        return len(self.targets)


def plain_loss(loss: AnyLoss) -> AnyLoss:
    """The unweighted loss of the same kind of target: LogLoss for classes, SquaredError for reals."""
    return LogLoss() if isinstance(loss.domain, Classes) else SquaredError()


def classes_in_order(loss: AnyLoss, classes: Sequence[Any] | None) -> Sequence[Any] | None:
    """The classes that are given; else those that a loss for classes names, in its order."""
    named = getattr(loss, "classes", None) if isinstance(loss.domain, Classes) else None
    return named if classes is None else classes


def check_model(model: Any) -> None:
    """Refuse what cannot be fitted again and again."""
    if not all(callable(getattr(model, method, None)) for method in ("fit", "get_params", "set_params")):
        raise TypeError(
            "model must be an estimator that can be cloned and fitted again, with fit, get_params and set_params "
            f"(scikit-learn's BaseEstimator has the last two); got {model!r}"
        )


def checked_problem(
    model: Any,
    loss: AnyLoss,
    features: Any,
    labels: Any,
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
        raise StakesError(f"classes are for losses about classes; {type(loss).__name__} is about reals, {loss.domain}")
    targets = _spread(_reals(labels, rows, loss.domain), rows, len(labels), np.nan)
    return Problem(features, targets, targets, None)


def _known(labels: Host, count: int, labelled: Host | None) -> Host:
    """The rows whose labels are wanted; refused where there is none."""
    if labels.shape != (count,):
        raise StakesError(f"y must hold one label for each of the {count} rows of X; got {list(labels.shape)}")
    rows = np.arange(count) if labelled is None else labelled
    if missing := rows[is_gap(labels[rows])].tolist():
        which = "" if labelled is None else " of initial, pool and test"
        raise StakesError(
            f"y must be known for every row{which}; it is missing in {listed_rows(missing)}. Drop those rows."
        )
    return rows


def _spread(values: Host, rows: Host, count: int, other: float) -> Host:
    """[n]: `values` at `rows`, and `other` elsewhere."""
    targets = np.full(count, other, dtype=values.dtype)
    targets[rows] = values
    return targets


def _classes(labels: Host, domain: Classes, given: Sequence[Any] | None) -> tuple[Any, ...]:
    """All classes in the order of columns: as given, or those of y in rising order."""
    known = (
        tuple(union_of([labels.tolist()]))
        if given is None
        else tuple(map(plain_label, [given] if isinstance(given, str) else given))
    )
    if len(set(known)) != len(known):
        raise StakesError(f"classes must differ from each other; got {known}")
    if domain.count not in (None, len(known)):
        raise StakesError(
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
        raise StakesError(
            f"y must be among the classes {classes}; {', '.join(strange)} is not, in {listed_rows(outside)}. Give all."
        )
    return found


def _reals(labels: Host, rows: Host, domain: Interval) -> Host:
    """The labels of some rows as finite numbers of the domain."""
    try:
        targets = labels[rows].astype(float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"y must hold numbers for a loss about {domain}; got {labels.dtype} ({error})") from error
    if infinite := rows[~np.isfinite(targets)].tolist():
        raise StakesError(f"y must be finite; it is not in {listed_rows(infinite)}. Drop those rows.")
    domain.check("y", targets)
    return targets


SPLIT, FIT, BELIEF, TEST, SCORE, TIES = range(6)  # what a stream of random numbers is for

_LEAST = {"n_initial": 1, "n_contexts": 1, "n_test": 2, "n": 1, "runs": 1}


def random_stream(seed: int, *path: int) -> np.random.Generator:
    """Random numbers for one place in the simulation: the same whatever is computed elsewhere, in whichever order."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))


def split_sizes(
    problem: Problem, n: int, n_initial: int | None, n_contexts: int | None, n_test: int | None
) -> tuple[int, int, int]:
    """The numbers of initial labels, contexts and test rows, checked; the rest is the pool.

    Defaults: 10 initial labels, or 2 for each class if that is more; a fifth of the rows but at most 200 contexts;
    three tenths of the rows but at most 1000 to test on.
    """
    count = problem.size
    sizes = {
        "n_initial": max(10, 2 * len(problem.classes or ())) if n_initial is None else n_initial,
        "n_contexts": min(200, max(1, count // 5)) if n_contexts is None else n_contexts,
        "n_test": min(1000, max(2, 3 * count // 10)) if n_test is None else n_test,
    }
    for name, value in (*sizes.items(), ("n", n)):
        check_whole(name, value)
    pool = count - sum(sizes.values())
    if pool < n:
        raise StakesError(
            f"the pool must hold n = {n} labels; of {count} rows, {sizes['n_initial']} are labelled at "
            f"the start, {sizes['n_contexts']} are contexts and {sizes['n_test']} test rows, which leaves "
            f"{max(pool, 0)}. Give more rows, a smaller n, or smaller n_initial, n_contexts or n_test."
        )
    return int(sizes["n_initial"]), int(sizes["n_contexts"]), int(sizes["n_test"])


def check_whole(name: str, value: int) -> None:
    """Refuse what is no whole number, or too small a one."""
    if is_true_or_false(value) or not isinstance(value, int | np.integer) or value < _LEAST[name]:
        raise StakesError(f"{name} must be a whole number, {_LEAST[name]} or more; got {value!r}")


def check_pool(count: int, n: int) -> None:
    """Refuse the pool of a trial from which `n` labels cannot be acquired."""
    if count < n:
        raise StakesError(
            f"the pool must hold n = {n} labels; that of the trial has {count} rows. Put more rows into "
            "it, or give a smaller n."
        )


def split(problem: Problem, sizes: tuple[int, int, int], seed: int, run: int) -> Trial:
    """The parts of a run, no row in two: random; for classes stratified, one initial label of each if they suffice."""
    n_initial, n_contexts, n_test = sizes
    generator = random_stream(seed, run, SPLIT)
    order = generator.permutation(problem.size)
    if problem.classes is not None:
        order = order[evenly_by_class(problem.targets[order], generator)]
        order = _each_class_first(order, problem.targets, n_initial)
    initial, test, contexts, pool = np.split(order, np.cumsum([n_initial, n_test, n_contexts]))
    return Trial(problem.features, problem.labels, initial, np.sort(pool), contexts, test)


def evenly_by_class(targets: Host, generator: np.random.Generator) -> Host:
    """[n]: an order in which any stretch has about as many of each class as there should be: systematic sampling."""
    keys = np.empty(len(targets))
    for each in np.unique(targets):
        rows = np.flatnonzero(targets == each)
        keys[rows] = (np.arange(len(rows)) + generator.random()) / len(rows)
    return np.argsort(keys, kind="stable")


def _each_class_first(order: Host, targets: Host, n_initial: int) -> Host:
    """`order` with the first row of each class at its head, if the initial labels are enough for that."""
    firsts = np.sort(np.unique(targets[order], return_index=True)[1])
    if len(firsts) > n_initial:
        return order
    return np.concatenate([order[firsts], np.delete(order, firsts)])
