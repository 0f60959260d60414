"""Where the belief is uncertain, and where the loss looks, at each row that is open.

Sizes: M contexts, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from stakes.acquisition import effective_context_weights, uncertainty
from stakes.beliefs import Belief
from stakes.evaluation import bayes_prediction
from stakes.losses import FiniteChoice, LogLoss, SquaredError
from stakes.models.tables import Host, on_host
from stakes.ranking.question import Question
from stakes.ranking.reasons import log_reductions
from stakes.reports.evidence import Evidence
from stakes.reports.judging import question_of
from stakes.worksheets.fitting import fitted


@dataclass(frozen=True, eq=False)
class Contexts:
    """What the model says today of rows that stand for the future."""

    answers: Host
    """[M]: of a number the answer; of classes the probability of the most likely one."""
    means: bool
    """Whether answers are means of the belief, as the answer itself is no number."""
    likely: tuple[str, ...] | None
    """[M]: the most likely class; None for numbers."""
    losses: Host
    """[M]: expected of the best answers."""
    looks: Host | None
    """[M]: how much the loss looks there, 1 on average; None where it looks everywhere alike."""
    helped: Host | None
    """[M]: the share of the worth of the next label; None where no row is next, or its label is worth nothing."""
    next_row: str | None


def contexts(evidence: Evidence) -> Contexts:
    """The belief of the model that knows all labels."""
    found = fitted(evidence.sheet, evidence.labels(), evidence.pool)
    question = question_of(evidence.sheet, found, evidence.pool)
    ranked = evidence.next_rows()
    next_row = ranked[0][0] if ranked else None
    row = 0 if next_row is None else evidence.pool.index(evidence.sheet.ids.index(next_row))
    belief = question.belief(np.asarray([row]))
    answers, likely, means = _answers(question, belief, found.classes)
    losses = on_host(uncertainty(question.loss, belief)).astype(float)
    helped = None if next_row is None else _helped(question, belief)
    return Contexts(answers, means, likely, losses, _looks(question, belief), helped, next_row)


def _answers(
    question: Question, belief: Belief, classes: tuple[str, ...] | None
) -> tuple[Host, tuple[str, ...] | None, bool]:
    """[M] numbers, [M] classes where there are any, and whether the numbers are means."""
    if classes is not None:
        probabilities = on_host(bayes_prediction(LogLoss(), belief)).astype(float)  # [M, C]
        best = probabilities.argmax(axis=1)
        return probabilities.max(axis=1), tuple(classes[place] for place in best.tolist()), False
    answers: Any = bayes_prediction(question.loss, belief)
    if is_array_api_obj(answers) and not isinstance(question.loss, FiniteChoice):
        return on_host(answers).astype(float), None, False
    return on_host(bayes_prediction(SquaredError(), belief)).astype(float), None, True


def _looks(question: Question, belief: Belief) -> Host | None:
    if getattr(question.loss, "weight", None) is None:
        return None
    shares = on_host(effective_context_weights(question.loss, belief, question.weights)).astype(float)
    return np.asarray(shares / np.asarray(question.weights))


def _helped(question: Question, belief: Belief) -> Host | None:
    logs = log_reductions(question, belief)[0]
    if not np.isfinite(logs.max()):
        return None
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())
