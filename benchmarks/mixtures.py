"""Mixtures of Gaussian beliefs: what forms cost beside squared error under one hypothesis after another.

The reference is `rho v` of S Gaussian beliefs: a pass over the covariances of all hypotheses, which any scorer has to
make. Errors are against the general route, for a few candidates and contexts.
Sizes: S hypotheses, N candidates, M contexts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import Row, Settings, both_ways, race
from stakes import (
    ExponentialWeight,
    GaussianMixtureBelief,
    Linex,
    SquaredError,
    ThresholdDecision,
    expected_reduction,
    expected_regret,
    score,
)
from stakes.losses import Loss

LOSSES: dict[str, Loss] = {
    "squared error": SquaredError(),
    "squared error, exponential weight": SquaredError(ExponentialWeight(1.0)),
    "Linex": Linex(1.2),
    "Linex, exponential weight": Linex(-0.7, ExponentialWeight(0.5)),
    "threshold decision": ThresholdDecision(2.0, 5.0, 1.0),
}
_LABELS = 20  # that the processes have seen
_FEW = 4  # candidates and contexts, or a few more, whose errors are looked at
_CALLS = 20  # of a small job, of which the quickest counts


class Shape(NamedTuple):
    """Sizes of a mixture."""

    hypotheses: int
    candidates: int
    contexts: int

    def __str__(self) -> str:
        return f"S={self.hypotheses} N={self.candidates} M={self.contexts}"


LARGE, QUICK, SMALL = Shape(16, 5000, 500), Shape(4, 60, 20), Shape(16, 10, 5)


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    shape = QUICK if given.quick else LARGE
    belief = processes(shape)
    jobs: dict[str, Callable[[], Any]] = {"one hypothesis after another: rho v": lambda: _each(belief)}
    for name, loss in LOSSES.items():
        for way, run in both_ways(lambda loss=loss: score(loss, belief)).items():
            if way == "compiled" or given.quick:  # without loops a threshold decision takes hours
                jobs[f"{name}, {way}"] = run
    found = race(jobs, 2 if not given.quick else given.repeats)
    reference = found["one hypothesis after another: rho v"][1]
    for job, (_, seconds) in found.items():
        yield Row(job, str(shape), seconds, seconds / reference, _error(LOSSES.get(job.rpartition(", ")[0]), belief))
    yield from small(SMALL)


def small(shape: Shape) -> Iterator[Row]:
    """The quickest of some calls of `score`, in seconds of the clock: what it costs before there is anything to do."""
    belief = processes(shape)
    for name, loss in LOSSES.items():
        score(loss, belief)
        seconds = []
        for _ in range(_CALLS):
            start = time.perf_counter()
            score(loss, belief)
            seconds.append(time.perf_counter() - start)
        yield Row(f"small: {name}", str(shape), min(seconds))


def processes(shape: Shape) -> GaussianMixtureBelief:
    """Posteriors of processes with drawn hyperparameters, which have seen the same labels."""
    rng = np.random.default_rng(0)
    rows, contexts, seen = (rng.uniform(0.0, 10.0, count) for count in (shape.candidates, shape.contexts, _LABELS))
    labels = np.sin(seen) + 0.3 * seen + 0.2 * rng.standard_normal(_LABELS)
    found = []
    for length, variance, noise in np.exp(0.4 * rng.standard_normal((shape.hypotheses, 3))) * (1.0, 1.0, 0.05):

        def kernel(a: Any, b: Any, length: float = length, variance: float = variance) -> Any:
            return variance * np.exp(-0.5 * ((a[:, None] - b) / length) ** 2)

        factor = np.linalg.cholesky(kernel(seen, seen) + noise * np.eye(_LABELS))
        here, there = (np.linalg.solve(factor, kernel(seen, each)) for each in (rows, contexts))
        white = np.linalg.solve(factor, labels)
        spreads = (variance - (each**2).sum(0) + noise for each in (there, here))
        found.append((there.T @ white, here.T @ white, *spreads, kernel(rows, contexts) - here.T @ there))
    mean, label_mean, spread, label_spread, covariance = (np.stack(each) for each in zip(*found, strict=True))
    return GaussianMixtureBelief(mean, spread, label_mean, label_spread, covariance)


def _each(belief: GaussianMixtureBelief) -> Any:
    return sum(score(SquaredError(), belief.hypothesis(s)) for s in range(belief.n_hypotheses))


def _error(loss: Loss | None, belief: GaussianMixtureBelief) -> float | None:
    """The largest, relative to the best, against the general route for a few pairs."""
    if loss is None:
        return None
    parts = (slice(0, None, max(1, count // _FEW)) for count in (belief.n_candidates, belief.n_contexts))
    few = belief.take(*parts)
    wanted = expected_regret(loss, few)
    return float(np.max(abs(expected_reduction(loss, few) - wanted)) / max(float(np.max(wanted)), 1e-12))
