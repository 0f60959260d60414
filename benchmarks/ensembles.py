"""Ensembles of classifiers: what votes and soft members cost, beside the bare matrix product and plain scorers.

The product is [N C, K] x [K, M C] in float32, which any scorer that goes through the joint distribution has to do.
Ours begins with what a user has, class numbers or probabilities in float64, checks included.
Sizes: N candidates, M contexts, K members, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import forests, growth, members, plain
from benchmarks.measure import Row, Settings, both_ways, in_child, peak_megabytes, race, timed
from benchmarks.members import Shape, error, weighted_epig
from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, VoteEnsemble, score
from stakes._utils.compute import has_jit
from stakes.losses import Loss

VOTES = {
    "Vehicle": Shape(466, 180, 1000, 4),
    "Vowel": Shape(605, 165, 1000, 11),
    "seven classes": Shape(1500, 400, 800, 7),
    "Landsat": Shape(4605, 600, 1000, 6),
    "Landsat, 1200 contexts": Shape(4005, 1200, 1000, 6),
}
QUICK_VOTES = {"Landsat": Shape(60, 40, 200, 6)}
SOFT, QUICK_SOFT = Shape(5000, 500, 100, 10), Shape(100, 440, 20, 10)
FEW = 50  # candidates for the scorer by logarithms, which takes as long for each


@dataclass(frozen=True, eq=False)
class Scorer:
    """A job, and what it should give."""

    run: Callable[[], Any]
    loss: Loss | None = None
    """whose expected reductions it gives, [N] or those of the first candidates; None: no scores"""


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    shapes, soft = (QUICK_VOTES, QUICK_SOFT) if given.quick else (VOTES, SOFT)
    best = "compiled" if has_jit() else "not compiled"
    for name, shape in shapes.items():
        yield from _raced(name, shape, *_votes(shape, others=name == "Landsat"), given.repeats)
    for job in (f"weighted EPIG of votes, {best}", "plain scorer"):
        yield from in_child(memory, *list(shapes.items())[-1], job)
    yield from _raced("soft", soft, *_soft(soft), given.repeats)
    yield _by_logarithms(soft)
    for job in (f"weighted EPIG of members, {best}", "plain scorer", "EPIG by products"):
        yield from in_child(memory, "soft", soft, job)
    yield from forests.rows(given)
    yield from growth.rows(given)


def _raced(name: str, shape: Shape, belief: Any, scorers: dict[str, Scorer], repeats: int) -> Iterator[Row]:
    """A row for each scorer; ratios are to the bare product."""
    found = race({job: scorer.run for job, scorer in scorers.items()}, repeats)
    for job, (scores, seconds) in found.items():
        loss = scorers[job].loss
        wrong = None if loss is None else error(loss, belief, scores)
        yield Row(f"{name}: {job}", str(shape), seconds, seconds / found["bare product"][1], wrong)


def _votes(shape: Shape, others: bool) -> tuple[VoteEnsemble, dict[str, Scorer]]:
    """Weighted EPIG of class numbers, and `others`: more losses of classes."""
    here, there = _sides(members.votes, shape)
    classes, jobs = shape.classes, _plain(*(_indicators(each, shape.classes) for each in (here, there)))
    losses: dict[str, Loss] = {"weighted EPIG": weighted_epig(classes), "EPIG": LogLoss()}
    if others:
        costs = np.random.default_rng(0).random((classes, classes))
        losses |= {"Brier": BrierLoss(), "cost matrix": CostMatrix(costs)}
    for name, loss in losses.items():
        ways = both_ways(lambda loss=loss: score(loss, VoteEnsemble(here, there, classes)))
        jobs |= {f"{name} of votes, {way}": Scorer(run, loss) for way, run in ways.items()}
    return VoteEnsemble(here, there, classes), jobs


def _soft(shape: Shape) -> tuple[CategoricalEnsemble, dict[str, Scorer]]:
    """Weighted EPIG of probabilities, and EPIG as its literature has it."""
    here, there = _sides(members.probabilities, shape)
    loss, small = weighted_epig(shape.classes), [each.astype(np.float32) for each in (here, there)]
    ways = both_ways(lambda: score(loss, CategoricalEnsemble(here, there)))
    ours = {f"weighted EPIG of members, {way}": Scorer(run, loss) for way, run in ways.items()}
    theirs = Scorer(lambda: plain.epig_by_products(*small), LogLoss())
    return CategoricalEnsemble(here, there), {**_plain(here, there), **ours, "EPIG by products": theirs}


def _plain(here: Any, there: Any) -> dict[str, Scorer]:
    """Of members in float32, and in float64 as models mostly give them."""
    narrow, wide = ([each.astype(size, copy=False) for each in (here, there)] for size in (np.float32, np.float64))
    sides, weights = [plain.flat(each) for each in narrow], members.weights(here.shape[2])
    loss = weighted_epig(here.shape[2])
    return {
        "bare product": Scorer(lambda: plain.product(*sides)),
        "plain scorer": Scorer(lambda: plain.weighted_epig(*narrow, weights.astype(np.float32)), loss),
        "plain scorer in float64": Scorer(lambda: plain.weighted_epig(*wide, weights), loss),
    }


def _by_logarithms(shape: Shape) -> Row:
    """A few candidates, and the seconds that all would take."""
    here, there = _sides(members.probabilities, shape)
    few = here[:FEW]
    scores, seconds = timed(lambda: plain.epig_by_logarithms(few.astype(np.float32), there.astype(np.float32)))
    job = f"soft: EPIG by logarithms, from {len(few)} candidates"
    wrong = error(LogLoss(), CategoricalEnsemble(few, there), scores)
    return Row(job, str(shape), seconds * len(here) / len(few), None, wrong)


def memory(name: str, shape: Shape, job: str) -> list[Row]:
    """Peak memory of one scorer in a new process: the first time, when loops are loaded or compiled, and again."""
    _, scorers = _soft(shape) if name == "soft" else _votes(shape, others=False)
    found = [(turn, *timed(lambda: peak_megabytes(scorers[job].run))) for turn in ("first time", "again")]
    return [
        Row(f"{name}: memory of {job}, {turn}", str(shape), seconds, peak_megabytes=peak)
        for turn, peak, seconds in found
    ]


def _sides(make: Callable[..., Any], shape: Shape) -> tuple[Any, Any]:
    """Of candidates and of contexts."""
    size = (shape.members, shape.classes)
    return make(shape.candidates, *size, seed=1), make(shape.contexts, *size, seed=2)


def _indicators(votes: Any, classes: int) -> Any:
    """[n, K, C]: votes as probabilities in float32."""
    return np.eye(classes, dtype=np.float32)[votes]
