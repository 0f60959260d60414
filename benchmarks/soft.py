"""Ensembles of classes below four million cells: all of `score`, beside a plain scorer in float32.

The last shapes are those of the default model of classes: trees that vote, whose answers are calibrated. The plain
scorer is that of log loss; zero-one loss stands beside it, too.
Sizes: N candidates, M contexts, K members, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import plain
from benchmarks.measure import Row, Settings, both_ways, race
from benchmarks.members import Shape, probabilities, votes
from stakes import BrierLoss, CategoricalEnsemble, LogLoss, VoteEnsemble, ZeroOne, score
from stakes.models.ensembles import calibrated

SHAPES = (Shape(50, 50, 50, 3), Shape(300, 100, 100, 2), Shape(300, 100, 10, 5), Shape(700, 150, 30, 6))
DEFAULT = (Shape(160, 160, 200, 6), Shape(2000, 200, 200, 3))
QUICK, QUICK_DEFAULT = (Shape(12, 8, 6, 3),), (Shape(10, 9, 8, 2),)


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    for shape in QUICK if given.quick else SHAPES:
        sides = [probabilities(count, shape.members, shape.classes, seed) for seed, count in enumerate(shape[:2], 1)]
        yield from _rows("members", shape, CategoricalEnsemble(*sides), given)
    for shape in QUICK_DEFAULT if given.quick else DEFAULT:
        sides = [votes(count, shape.members, shape.classes, seed) for seed, count in enumerate(shape[:2], 1)]
        prior = np.full(shape.classes, 1.0 / shape.classes)
        yield from _rows("trees", shape, calibrated(VoteEnsemble(*sides, shape.classes), prior, 1.5, 0.05), given)


def _rows(kind: str, shape: Shape, belief: CategoricalEnsemble, given: Settings) -> Iterator[Row]:
    sides = [np.asarray(side, dtype=np.float32) for side in (belief.candidates, belief.contexts)]
    alike, weights = np.ones(shape.classes, dtype=np.float32), np.linspace(1.0, 5.0, shape.classes)
    losses = {"log loss": LogLoss(), "weighted Brier": BrierLoss(weights), "zero-one": ZeroOne()}
    jobs: dict[str, Callable[[], Any]] = {"plain log loss": lambda: plain.weighted_epig(*sides, alike)}
    for name, loss in losses.items():
        for way, job in both_ways(lambda loss=loss: score(loss, belief)).items():
            jobs[f"{name}, {way}"] = job
    found = race(jobs, given.repeats)
    for job, (_, seconds) in found.items():
        yield Row(f"{kind}: {job}", str(shape), seconds, seconds / found["plain log loss"][1])
