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
_Found: TypeAlias = tuple[Point | None, tuple[str, ...]]
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
    said = dict.fromkeys(sentence for _, why in (*believed, *judged) for sentence in why)
    return LearningCurve(_points(believed), _points(judged), tuple(said))


def _points(found: list[_Found]) -> tuple[Point, ...]:
    return tuple(point for point, _ in found if point is not None)


def _expected(evidence: Evidence, count: int) -> _Found:
    labels = evidence.labels(count)
    if not evidence.pool:
        return None, ("No row is open, so nothing is expected of any.",)
    if one := _one_class(evidence, count):
        return None, (f"Nothing is expected of the model with {count} labels: {one}.",)
    what = f"The model of {count} labels could not be used"
    found, why = attempted(what, lambda: expected(evidence.sheet, labels, evidence.pool))
    return _finite(found, why, "expected")


def _realised(evidence: Evidence, count: int) -> _Found:
    labels, classes = evidence.labels(count), evidence.task == "classes"
    if why_not := _one_class(evidence, count) or no_folds(list(labels.values()), classes):
        return None, (f"The first {count} labels are not judged by cross-validation: {why_not}.",)
    what = f"The first {count} labels could not be judged by cross-validation"
    found, why = attempted(what, lambda: realised(evidence.sheet, labels, evidence.pool))
    return _finite(found, why, "realised")


def _one_class(evidence: Evidence, count: int) -> str | None:
    seen = set(evidence.labels(count).values())
    return f"all are of one class, {seen.pop()!r}" if evidence.task == "classes" and len(seen) == 1 else None


def _finite(found: Point | None, why: tuple[str, ...], kind: str) -> _Found:
    if found is None or math.isfinite(found.loss):
        return found, why
    return None, (f"The {kind} loss at {found.labels} labels is infinite: the model was certain, and wrong.",)
