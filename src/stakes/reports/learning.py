"""How the loss fell as labels came in: expected by the model, and realised on labels that it had not seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from stakes.reports.errors import attempted
from stakes.reports.evidence import Evidence
from stakes.reports.judging import Point, expected, no_folds, realised

MOST = 8  # checkpoints
_Found: TypeAlias = Point | str
"""A loss, or why there is none."""


@dataclass(frozen=True)
class LearningCurve:
    """Losses of one decision as labels came in; either part may be empty."""

    expected: tuple[Point, ...]
    """On the rows that are open today, by the belief of the model at that time."""
    realised: tuple[Point, ...]
    """On the labels themselves, by cross-validation."""
    said: tuple[str, ...]
    """What is left out, and why."""


def checkpoints(initial: int, total: int) -> list[int]:
    """Up to eight numbers of labels, from those of the table (or a quarter of all, if that is less) to all."""
    if total < 1:
        return []
    start = min(total, max(2, min(initial, total // 4)))
    return sorted({round(float(each)) for each in np.linspace(start, total, MOST)})


def learning_curve(evidence: Evidence, done: Callable[[float], None]) -> LearningCurve:
    """The curve at all checkpoints; `done` is called with the share of work that is behind."""
    counts, believed, judged = checkpoints(evidence.initial, len(evidence.told)), list[_Found](), list[_Found]()
    for place, count in enumerate(counts):
        done(sum(counts[:place]) / sum(counts))
        believed.append(_expected(evidence, count))
        judged.append(_realised(evidence, count))
    said = (*_gaps("No expected loss", counts, believed), *_gaps("No realised loss", counts, judged))
    return LearningCurve(_points(believed), _points(judged), said)


def _points(found: list[_Found]) -> tuple[Point, ...]:
    return tuple(each for each in found if isinstance(each, Point))


def _gaps(what: str, counts: list[int], found: list[_Found]) -> tuple[str, ...]:
    """A sentence for each reason why there is nothing to draw, with the checkpoints that it holds for."""
    reasons = dict.fromkeys(each for each in found if isinstance(each, str))
    where = {why: [count for count, each in zip(counts, found, strict=True) if each == why] for why in reasons}
    return tuple(
        f"{what} with {', '.join(map(str, some))} label{'s' * (some != [1])}: {why}." for why, some in where.items()
    )


def _expected(evidence: Evidence, count: int) -> _Found:
    if not evidence.pool:
        return "no row is open"
    if why_not := _one_class(evidence, count):
        return why_not
    return _finite(*attempted(lambda: expected(evidence.sheet, evidence.labels(count), evidence.pool)))


def _realised(evidence: Evidence, count: int) -> _Found:
    labels, classes = evidence.labels(count), evidence.task == "classes"
    if why_not := _one_class(evidence, count) or no_folds(list(labels.values()), classes):
        return why_not
    return _finite(*attempted(lambda: realised(evidence.sheet, labels, evidence.pool)))


def _one_class(evidence: Evidence, count: int) -> str | None:
    seen = set(evidence.labels(count).values())
    return f"all are of one class, {seen.pop()!r}" if evidence.task == "classes" and len(seen) == 1 else None


def _finite(found: Point | None, why_not: str) -> _Found:
    if found is None:
        return why_not
    return found if math.isfinite(found.loss) else "it is infinite, as the model was certain and wrong"
