"""Losses without a closed form under a Gaussian process, beside squared error: belief and score together.

Each has a curve EUR_c(rho) for every context, tabulated in the time that is counted here and looked up for every
candidate. Seconds are those of the processor; ratios are to squared error in the same run.
Sizes: n labels so far, N candidates, M contexts, p features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.gaussian_reference import Scene, scene
from benchmarks.measure import Row, Settings, race
from stakes import (
    CRPS,
    FiniteActions,
    InterpolatedWeight,
    Linex,
    LogScore,
    LogWarp,
    Pinball,
    SquaredError,
    ThresholdDecision,
    WarpedGaussianBelief,
    Weight,
    score,
)
from stakes.models import belief_of

SIZES, QUICK = (200, 5000, 1000, 2), (20, 100, 4, 2)  # n, N, M, p; two features, so that some labels tell nearly all
_STOCK = np.asarray([-1.0, 0.0, 1.0])
_VALUES = np.linspace(-2.0, 2.0, 8)


def _shortfall(z: Any) -> Any:
    """[..., 3]: 1 for each unit too many, 3 for each missing."""
    short = z[..., None] - _STOCK
    return np.maximum(-short, 3.0 * short)


SIGMOID = Weight(lambda z: 1.0 / (1.0 + np.exp(-2.0 * z)))
EIGHT = InterpolatedWeight(_VALUES.tolist(), (1.0 + _VALUES**2).tolist())
STEEP = Weight(lambda z: 0.1 + 1.0 / (1.0 + np.exp(-20.0 * z)))
KINKED = Weight(lambda z: 1.0 + np.maximum(z, 0.0), breakpoints=(0.0,))
LOSSES: dict[str, tuple[Any, bool]] = {
    "squared error": (SquaredError(), False),
    "threshold decision": (ThresholdDecision(0.5, miss=5.0), False),
    "weight of eight points": (SquaredError(EIGHT), False),
    "squared error, weight that kinks": (SquaredError(KINKED), False),
    "Linex, weight of eight points": (Linex(1.0, EIGHT), False),
    "CRPS, sigmoid weight": (CRPS(SIGMOID), False),
    "CRPS, weight of eight points": (CRPS(EIGHT), False),
    "pinball, sigmoid weight": (Pinball(0.8, SIGMOID), False),
    "log score, sigmoid weight": (LogScore(SIGMOID), False),
    "log score, weight of eight points": (LogScore(EIGHT), False),
    "log score, weight that kinks": (LogScore(KINKED), False),
    "pinball, weight of eight points": (Pinball(0.8, EIGHT), False),
    "pinball, weight that kinks": (Pinball(0.8, KINKED), False),
    "pinball, steep weight": (Pinball(0.8, STEEP), False),
    "CRPS of a log-warped process": (CRPS(), True),
    "three actions with kinked costs": (FiniteActions(_shortfall, tuple(_STOCK.tolist())), False),
}
"""By name: the loss, and whether the process is one of logarithms."""


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    sizes = QUICK if given.quick else SIZES
    place = scene(*sizes)
    jobs: dict[str, Callable[[], Any]] = {
        name: lambda loss=loss, warped=warped: _scores(place, loss, warped) for name, (loss, warped) in LOSSES.items()
    }
    found = race(jobs, given.repeats)
    for name, (_, seconds) in found.items():
        shape = f"n={sizes[0]} N={sizes[1]} M={sizes[2]}"
        yield Row(name, shape, seconds, seconds / found["squared error"][1])


def _scores(place: Scene, loss: Any, warped: bool) -> Any:
    belief: Any = belief_of(place.process, place.pool, place.contexts)
    return score(loss, WarpedGaussianBelief(belief, LogWarp()) if warped else belief)
