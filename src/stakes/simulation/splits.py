"""Which rows are labelled at the start, which stand for the future, which judge, and which may be bought.

Sizes: n rows, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stakes.models.tables import Host
from stakes.simulation.problem import Problem
from stakes.simulation.trial import Trial

SPLIT, FIT, BELIEF, TEST, SCORE, LUCK = range(6)  # what a stream of random numbers is for

_LEAST = {"n_initial": 1, "n_contexts": 1, "n_test": 2, "budget": 1, "runs": 1}


@dataclass(frozen=True)
class Sizes:
    """How many rows each part has; the rest is the pool."""

    n_initial: int
    n_contexts: int
    n_test: int
    budget: int


def generator(seed: int, *path: int) -> np.random.Generator:
    """Random numbers for one place in the simulation: the same whatever is computed elsewhere, in whichever order."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))


def sizes(problem: Problem, budget: int, n_initial: int | None, n_contexts: int | None, n_test: int | None) -> Sizes:
    """The sizes, checked.

    Defaults: 10 initial labels, or 2 for each class if that is more; a fifth of the rows but at most 200 contexts;
    three tenths of the rows but at most 1000 to test on.
    """
    count = problem.size
    given = {
        "n_initial": max(10, 2 * len(problem.classes or ())) if n_initial is None else n_initial,
        "n_contexts": min(200, max(1, count // 5)) if n_contexts is None else n_contexts,
        "n_test": min(1000, max(2, 3 * count // 10)) if n_test is None else n_test,
        "budget": budget,
    }
    for name, value in given.items():
        check_count(name, value)
    pool = count - given["n_initial"] - given["n_contexts"] - given["n_test"]
    if pool < budget:
        raise ValueError(
            f"the pool must hold the budget of {budget} labels; of {count} rows, {given['n_initial']} are labelled at "
            f"the start, {given['n_contexts']} are contexts and {given['n_test']} test rows, which leaves "
            f"{max(pool, 0)}. Give more rows, a smaller budget, or smaller n_initial, n_contexts or n_test."
        )
    return Sizes(**{name: int(value) for name, value in given.items()})


def check_count(name: str, value: int) -> None:
    """Refuse what is no whole number, or too small a one."""
    if not isinstance(value, int | np.integer) or value < _LEAST[name]:
        raise ValueError(f"{name} must be a whole number, {_LEAST[name]} or more; got {value!r}")


def check_pool(count: int, budget: int) -> None:
    """Refuse the pool of a trial that cannot be bought from `budget` times."""
    if count < budget:
        raise ValueError(
            f"the pool must hold the budget of {budget} labels; that of the trial has {count} rows. Put more rows into "
            "it, or give a smaller budget."
        )


def split(problem: Problem, parts: Sizes, seed: int, run: int) -> Trial:
    """The parts of a run, no row in two: random; for classes stratified, one initial label of each if they suffice."""
    rng = generator(seed, run, SPLIT)
    order = rng.permutation(problem.size)
    if problem.classes is not None:
        order = order[_evenly(problem.targets[order], rng)]
        order = _each_class_first(order, problem.targets, parts.n_initial)
    ends = np.cumsum([parts.n_initial, parts.n_test, parts.n_contexts])
    initial, test, contexts, pool = np.split(order, ends)
    return Trial(problem.features, problem.labels, initial, np.sort(pool), contexts, test)


def _evenly(targets: Host, rng: np.random.Generator) -> Host:
    """[n]: an order in which any stretch has about as many of each class as there should be: systematic sampling."""
    keys = np.empty(len(targets))
    for each in np.unique(targets):
        rows = np.flatnonzero(targets == each)
        keys[rows] = (np.arange(len(rows)) + rng.random()) / len(rows)
    return np.argsort(keys, kind="stable")


def _each_class_first(order: Host, targets: Host, n_initial: int) -> Host:
    """`order` with the first row of each class at its head, if the initial labels are enough for that."""
    firsts = np.sort(np.unique(targets[order], return_index=True)[1])
    if len(firsts) > n_initial:
        return order
    return np.concatenate([order[firsts], np.delete(order, firsts)])
