"""Batches under ensembles of classes: labels that are chosen together, beside one bare product for each.

The bare product, in float32, is what one label of every candidate takes under one set of weights of members; a batch
goes through hundreds of such sets. The error is that of the joint worth, as it is stated, over the worth. `suggest`
looks eight labels ahead, on tables in memory, beside the fit of its model; its error is empty.
Sizes: N candidates, M contexts, K members, C classes, n labels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Row, Settings, race, timed
from benchmarks.members import Shape, probabilities, votes
from stakes import BrierLoss, CategoricalEnsemble, LogLoss, VoteEnsemble, ZeroOne, select
from stakes.files import write_csv
from stakes.tabular import Brief, LossSpec, read_worksheet, suggest
from stakes.tabular.suggestions import fitted

SHAPES = ((Shape(100, 100, 50, 3), 7), (Shape(1000, 100, 100, 10), 20))
QUICK = ((Shape(12, 8, 6, 3), 3),)
TABLES, QUICK_TABLES = ((200, 2), (200, 6), (2000, 3)), ((60, 2),)
LOSSES = {"log loss": LogLoss(), "Brier": BrierLoss(), "zero-one": ZeroOne()}
_LABELS = 40


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    repeats = min(given.repeats, 2)
    for shape, n in QUICK if given.quick else SHAPES:
        yield from _selections(shape, n, repeats)
    with tempfile.TemporaryDirectory() as folder:
        for size, classes in QUICK_TABLES if given.quick else TABLES:
            yield _suggestion(Path(folder), size, classes)


def _selections(shape: Shape, n: int, repeats: int) -> Iterator[Row]:
    sides = [probabilities(count, shape.members, shape.classes, seed) for seed, count in enumerate(shape[:2], 1)]
    soft = CategoricalEnsemble(*sides)
    hard = VoteEnsemble(
        *(votes(count, shape.members, shape.classes, seed) for seed, count in enumerate(shape[:2], 1)), shape.classes
    )
    left, right = (np.moveaxis(each, 1, 2).reshape(-1, shape.members).astype(np.float32) for each in sides)
    jobs: dict[str, Callable[[], Any]] = {"bare product of one label": lambda: left @ right.T}
    for name, loss in LOSSES.items():
        for kind, belief in (("members", soft), ("votes", hard)):
            jobs[f"{name} of {kind}"] = lambda loss=loss, belief=belief: select(loss, belief, n=n, random_state=0)
    found = race(jobs, repeats)
    bare = found["bare product of one label"][1] * n
    for job, (chosen, seconds) in found.items():
        error = None if job.startswith("bare") else float(chosen.sampling_error[-1] / chosen.joint_reduction[-1])
        yield Row(job, f"{shape} n={n}", seconds, seconds / bare, error)


def _suggestion(folder: Path, size: int, classes: int) -> Row:
    """The second of two calls: the first imports and compiles."""
    rng, table = np.random.default_rng(0), folder / f"{size}_{classes}.csv"
    numbers = rng.standard_normal((size, 6)).round(4)
    signal = np.sin(2.0 * numbers[:, 0]) + numbers[:, 1] * numbers[:, 2]
    labels = np.digitize(signal, np.quantile(signal, np.linspace(0.0, 1.0, classes + 1)[1:-1]))
    names = [f"c{label}" if place < _LABELS else None for place, label in enumerate(labels)]
    cells = [(*row, name) for row, name in zip(numbers.tolist(), names, strict=True)]
    write_csv(str(table), [*(f"x{i}" for i in range(6)), "y"], cells)
    sheet = read_worksheet(str(table), Brief("y", LossSpec("log-loss")))
    others = [row for row in range(size) if row not in sheet.labels]
    suggest(sheet, 1)
    (_, seconds), (_, fit) = timed(lambda: suggest(sheet, 1)), timed(lambda: fitted(sheet, sheet.labels, others))
    return Row("suggest one row, to the fit of the model", f"rows={size} C={classes}", seconds, seconds / fit)
