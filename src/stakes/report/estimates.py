"""How the loss fell as labels came in, and where the belief is uncertain today at each row that is open.

Sizes: M contexts, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import is_array_api_obj

from stakes._utils.array import on_host
from stakes._utils.tables import Host
from stakes.acquisition import effective_context_weights, uncertainty
from stakes.beliefs import Belief
from stakes.evaluation import bayes_prediction
from stakes.losses import FiniteChoice, LogLoss, SquaredError
from stakes.ranking.query import Query
from stakes.ranking.rank import log_reductions
from stakes.report.evidence import FOLDS, Evidence, Point, attempted, expected, fitted_query, no_folds, realised

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
    notes: tuple[str, ...]
    """What is left out, and why."""


def checkpoints(initial: int, total: int) -> list[int]:
    """Up to eight numbers of labels, from those of the table (or a quarter of all, if that is less) to all."""
    if total < 1:
        return []
    start = min(total, max(2, min(initial, total // 4)))
    return sorted({round(float(each)) for each in np.linspace(start, total, MOST)})


def learning_curve(evidence: Evidence, done: Callable[[str, float], None]) -> LearningCurve:
    """The curve at all checkpoints; `done` is called with what comes next, and the share of work that is behind."""
    counts, believed, judged = checkpoints(evidence.initial, len(evidence.known)), list[_Found](), list[_Found]()
    for place, count in enumerate(counts):
        before, each = sum(counts[:place]), count / (1 + FOLDS)  # a fit on all of the labels, and one for each fold

        def fold_done(folds: int, count: int = count, before: int = before, each: float = each) -> None:
            done(
                f"the model at {count} labels, fold {folds + 1} of {FOLDS}", (before + each * (1 + folds)) / sum(counts)
            )

        done(f"the model at {count} labels", before / sum(counts))
        believed.append(_expected(evidence, count))
        judged.append(_realised(evidence, count, fold_done))
    notes = (*_gaps("No expected loss", counts, believed), *_gaps("No realised loss", counts, judged))
    return LearningCurve(_points(believed), _points(judged), notes)


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
    sheet, labels = evidence.sheet, evidence.labels(count)
    return _finite(*attempted(sheet, count, lambda: expected(sheet, labels, evidence.pool)))


def _realised(evidence: Evidence, count: int, done: Callable[[int], None]) -> _Found:
    labels, classes = evidence.labels(count), evidence.task == "classes"
    if why_not := _one_class(evidence, count) or no_folds(list(labels.values()), classes):
        return why_not
    return _finite(*attempted(evidence.sheet, count, lambda: realised(evidence.sheet, labels, evidence.pool, done)))


def _one_class(evidence: Evidence, count: int) -> str | None:
    seen = set(evidence.labels(count).values())
    return f"all are of one class, {seen.pop()!r}" if evidence.task == "classes" and len(seen) == 1 else None


def _finite(found: Point | None, why_not: str) -> _Found:
    if found is None:
        return why_not
    return found if math.isfinite(found.loss) else "it is infinite, as the model was certain and wrong"


@dataclass(frozen=True, eq=False)
class Contexts:
    """What the model predicts today at rows that stand for the future."""

    answers: Host
    """[M]: of a number the answer; of classes the probability of the most likely one."""
    means: bool
    """Whether answers are means of the belief, as the answer itself is no number."""
    likely: tuple[str, ...] | None
    """[M]: the most likely class; None for numbers."""
    losses: Host
    """[M]: expected of the best answers."""
    weights: Host | None
    """[M]: how much the loss weighs errors there, 1 on average; None where it weighs all alike."""
    helped: Host | None
    """[M]: the share of the worth of the next label; None where no row is next, or its label is worth nothing."""
    next_row: str | None


def contexts(evidence: Evidence) -> Contexts:
    """The belief of the model that knows all labels."""
    query = fitted_query(evidence.sheet, evidence.labels(), evidence.pool)
    ranked = evidence.next_rows()
    next_row = ranked[0][0] if ranked else None
    row = 0 if next_row is None else evidence.pool.index(evidence.sheet.ids.index(next_row))
    belief = query.belief(np.asarray([row]))
    answers, likely, means = _answers(query, belief)
    losses = on_host(uncertainty(query.loss, belief)).astype(float)
    helped = None if next_row is None else _helped(query, belief)
    return Contexts(answers, means, likely, losses, _weights(query, belief), helped, next_row)


def _answers(query: Query, belief: Belief) -> tuple[Host, tuple[str, ...] | None, bool]:
    """[M] numbers, [M] classes where there are any, and whether the numbers are means."""
    if (classes := query.classes) is not None:
        probabilities = on_host(bayes_prediction(LogLoss(), belief)).astype(float)  # [M, C]
        best = probabilities.argmax(axis=1)
        return probabilities.max(axis=1), tuple(classes[place] for place in best.tolist()), False
    answers: Any = bayes_prediction(query.loss, belief)
    if is_array_api_obj(answers) and not isinstance(query.loss, FiniteChoice):
        return on_host(answers).astype(float), None, False
    return on_host(bayes_prediction(SquaredError(), belief)).astype(float), None, True


def _weights(query: Query, belief: Belief) -> Host | None:
    if getattr(query.loss, "weight", None) is None:
        return None
    shares = on_host(effective_context_weights(query.loss, belief, context_weights=query.weights)).astype(float)
    return np.asarray(shares / np.asarray(query.weights))


def _helped(query: Query, belief: Belief) -> Host | None:
    logs = log_reductions(query, belief)[0]
    if not np.isfinite(logs.max()):
        return None
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())
