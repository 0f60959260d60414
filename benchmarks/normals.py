"""Ensembles of normal distributions: `score`, and all of `rank` for a forest of numbers.

`score` stands beside the bare product in float64 that any way has to make, of the probabilities of K members in 72
cells of every label and what they expect at every context; `rank` beside what the trees say of all rows.
Sizes: N candidates, M contexts, K members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from benchmarks.measure import Row, Settings, race
from stakes import CRPS, ExponentialWeight, NormalEnsemble, Pinball, SquaredError, ThresholdDecision, rank, score

_CELLS = 72
SIZES, QUICK = (2000, 300, 200), (20, 10, 5)
LOSSES = {
    "squared error": (SquaredError(), 1),
    "squared error, exponential weight": (SquaredError(ExponentialWeight(0.5)), 1),
    "threshold decision": (ThresholdDecision(1.0), 4),
    "CRPS": (CRPS(), 1),
    "pinball": (Pinball(0.9), 10),
}
"""By name: the loss, and of how many candidates one is scored."""


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    n, contexts, members = QUICK if given.quick else SIZES
    belief = normals(n, contexts, members)
    cells = np.random.default_rng(1).random((n // 20 * _CELLS, members))  # one of 20 candidates
    expected = np.random.default_rng(2).random((members, 2 * contexts))
    jobs: dict[str, Callable[[], Any]] = {"bare product": lambda: cells @ expected}
    for name, (loss, share) in LOSSES.items():
        some = belief.take(slice(0, max(1, n // share)), slice(None))
        jobs[name] = lambda loss=loss, some=some: score(loss, some)
    found = race(jobs, given.repeats)
    bare = 20.0 * found["bare product"][1]
    for name, (_, seconds) in found.items():
        part = 20 if name == "bare product" else LOSSES[name][1]
        yield Row(name, f"N={n} M={contexts} K={members}", part * seconds, part * seconds / bare)
    yield from _forest(given)


def _forest(given: Settings) -> Iterator[Row]:
    rng, size = np.random.default_rng(0), 60 if given.quick else 400
    table = rng.standard_normal((size, 6))
    targets = np.sin(2.0 * table[:, 0]) + table[:, 1] * table[:, 2] + 0.1 * rng.standard_normal(size)
    trees = 10 if given.quick else 100
    known = size // 4
    model = RandomForestRegressor(trees, min_samples_leaf=5, oob_score=not given.quick, random_state=0)
    model.fit(table[:known], targets[:known])
    labelled = (table[:known], targets[:known])
    jobs: dict[str, Callable[[], Any]] = {
        "what the trees say": lambda: [tree.predict(table[known:]) for tree in model.estimators_],
        "rank of a forest": lambda: rank(model, SquaredError(), table[known:], n=1, labelled=labelled),
    }
    found = race(jobs, given.repeats)
    for name, (_, seconds) in found.items():
        yield Row(name, f"N={size - known} K={trees}", seconds, seconds / found["what the trees say"][1])


def normals(n: int, contexts: int, members: int) -> NormalEnsemble:
    """Members that differ by a third of the noise or so."""
    rng = np.random.default_rng(0)
    means = [rng.standard_normal((size, 1)) + 0.3 * rng.standard_normal((size, members)) for size in (n, contexts)]
    return NormalEnsemble(means[0], 0.5, means[1], 0.4 + 0.1 * rng.random((contexts, members)))
