"""What a ranking says: the best rows, why each was chosen, and what was assumed."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from stakes._utils.array import double, log_of, namespace, slices
from stakes._utils.tables import Host, on_host
from stakes._utils.text import number
from stakes.acquisition import find_form, uncertainty
from stakes.acquisition.reduction import blocks
from stakes.beliefs import Belief
from stakes.evaluation import bayes_prediction
from stakes.losses import AnyLoss, FiniteChoice, ThresholdDecision, ZeroOne
from stakes.losses.domains import Classes
from stakes.models.ensembles import known_classes
from stakes.models.members import plain_label
from stakes.ranking.query import Question


@dataclass(frozen=True)
class HelpedContext:
    """One of the contexts at which a label helps most, and what the model says there today."""

    index: int
    """Its position among the contexts (in the pool, where the pool stands for them)."""
    label: Any
    """Its label in a pandas index, else its position."""
    share: float
    """Of the worth of the row."""
    prediction: Any
    """The answer with the least expected loss today: a number, a class, the position of an action, or class
    probabilities; None where the answer is a whole distribution, or beyond the range of numbers."""
    uncertainty: float | None
    """The expected loss of that answer; None where it is beyond the range of numbers."""
    answer: str
    """The prediction in words."""

    def __str__(self) -> str:
        loss = "" if self.uncertainty is None else f" at an expected loss of {number(self.uncertainty)}"
        share = f"{self.share:.0%}" if self.share >= 0.01 else "<1%"
        return f"{share} at context {self.label!r} (today: {self.answer}{loss})"


@dataclass(frozen=True)
class Reason:
    """Why a row was chosen."""

    worth: float | None
    """By how much its label is expected to lower the loss of one decision; times exp(log_scale) of the ranking. In a
    batch: on top of the rows before it. None in a cold start."""
    worth_per_cost: float | None
    """The worth for each unit of cost; None without costs."""
    contexts: tuple[HelpedContext, ...]
    """Up to three contexts at which its label, alone, helps most; none where it is worth nothing by itself."""
    as_good: int | None
    """How many other rows score the same to within 1e-9, so that the seed decided; None in a batch."""
    ranked_by: str
    """What it is the best in: "worth", or where no label is worth anything what stood in for it."""

    def __str__(self) -> str:
        price = "" if self.worth_per_cost is None else f", {number(self.worth_per_cost)} for each unit of cost"
        parts = [] if self.worth is None else [f"worth {number(self.worth)}{price}"]
        parts += [] if self.ranked_by == "worth" else [f"ranked by {self.ranked_by}"]
        parts += [str(context) for context in self.contexts]
        parts += [f"{self.as_good} other rows are as good"] if self.as_good else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Ranking:
    """Rows to label, best first."""

    indices: tuple[int, ...]
    """Positions in the pool."""
    labels: tuple[Any, ...]
    """Their labels in a pandas index, else their positions."""
    scores: tuple[float, ...]
    """What they are ranked by (`ranked_by`), for each unit of cost where `per_cost`; times exp(log_scale)."""
    per_cost: bool
    ranked_by: str
    """"worth", "gain" on top of the rows before it (a batch), or what stood in for them."""
    reasons: tuple[Reason, ...]
    assumptions: tuple[str, ...]
    """What was taken for granted, approximated or left out."""
    log_scale: float = 0.0
    """0, unless the scores are beyond the range of numbers."""

    def __len__(self) -> int:
        return len(self.indices)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON knows: other labels as text, an infinite score as None."""
        told: dict[str, Any] = plain(asdict(self))
        return told

    def __str__(self) -> str:
        head = ("", "row", "label", self._score_name(), "why")
        lines = [head, *((str(place), *cells) for place, cells in enumerate(self._cells(), 1))]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        table = [
            " ".join([*(cell.rjust(width) for cell, width in zip(line, widths, strict=False)), " " + line[4]])
            for line in lines
        ]
        return "\n".join([*table, "", *(f"- {sentence}" for sentence in self.assumptions)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("row", "label", self._score_name(), "why"))
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in cells) for cells in self._cells())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        notes = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.assumptions)
        return f"<table><tr>{head}</tr>{body}</table><ul>{notes}</ul>"

    def _score_name(self) -> str:
        return f"{self.ranked_by} per cost" if self.per_cost else self.ranked_by

    def _cells(self) -> list[tuple[str, str, str, str]]:
        rows = zip(self.indices, self.labels, self.scores, self.reasons, strict=True)
        return [(str(index), str(label), number(score), str(reason)) for index, label, score, reason in rows]


def plain(value: Any) -> Any:
    """In types that JSON knows: other things as text, an infinite number as None."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


# ----------------------------------------------------------------------
# Why a row was chosen: the contexts that its label helps most, and what the model says there today.
#
# Sizes: n rows, M contexts, C classes.

_MOST = 3  # contexts named for each row


def helped_contexts(question: Question, rows: Host, chunk: int) -> tuple[list[tuple[HelpedContext, ...]], list[str]]:
    """For each of `rows` the contexts that its label alone helps most, and sentences on what could not be told."""
    found: list[tuple[HelpedContext, ...]] = []
    said: list[str] = []
    for part in slices(len(rows), chunk) if len(rows) else ():
        belief = question.belief(rows[part])
        if part.start == 0:
            describe, said = _descriptions(question, belief)
        for logs in log_reductions(question, belief):
            found.append(tuple(describe(place, share) for place, share in _largest(logs)))
    return found, said


def log_reductions(question: Question, belief: Belief) -> Host:
    """[n, M]: the log of p(c) EUR(x; c)."""
    xp, columns = namespace(belief.like), []
    for _, log_scale, parts in blocks(find_form(question.loss, belief), question.loss, belief, None):
        columns.append(on_host(log_of(double(xp.concat([part() for part in parts], axis=0))) + double(log_scale)))
    return np.asarray(np.concatenate(columns, axis=1) + log_of(np.asarray(question.weights)))


def _largest(logs: Host) -> list[tuple[int, float]]:
    """The few largest of [M], and their shares of the sum; fewer where others are nothing."""
    places = [int(place) for place in np.argsort(-logs, kind="stable")[:_MOST] if logs[place] > -np.inf]
    if not places:
        return []
    relative = np.exp(logs - logs[places[0]])
    return [(place, float(relative[place] / relative.sum())) for place in places]


def _descriptions(question: Question, belief: Belief) -> tuple[Any, list[str]]:
    """A function from the position and the share of a context to its description, and sentences."""
    here, (positions, labels) = belief.take(slice(0, 1), slice(None)), question.context_places()
    predictions, gaps = _told(bayes_prediction, question.loss, here)
    losses, more = _told(uncertainty, question.loss, here)
    names, absent = class_names(question.model, question.classes), "not told" if gaps else "a distribution"

    def describe(place: int, share: float) -> HelpedContext:
        prediction = _named(question.loss, predictions[place], names)
        answer = absent if prediction is None else _words(question.loss, prediction, names)
        return HelpedContext(int(positions[place]), labels[place], share, prediction, losses[place], answer)

    said = [f"What is expected at contexts is not told in full: {error}" for error in dict.fromkeys([*gaps, *more])]
    return describe, said


def _told(function: Callable[[Any, Any], Any], loss: AnyLoss, belief: Belief) -> tuple[list[Any], list[str]]:
    """[M]: what a function says of each context, None for each where that is no array or out of range; and why."""
    try:
        answers = function(loss, belief)
    except FloatingPointError as error:
        return [None] * belief.n_contexts, [str(error)]
    return (list(on_host(answers).tolist()) if is_array_api_obj(answers) else [None] * belief.n_contexts), []


def class_names(model: Any, classes: Sequence[Any] | None) -> list[Any] | None:
    """[C]: those given, or those of the model, or none known."""
    known = known_classes(model) if classes is None else classes
    return None if known is None else [plain_label(name) for name in known]


def _named(loss: AnyLoss, prediction: Any, names: list[Any] | None) -> Any:
    """A predicted class by its name, probabilities as a tuple; all else as it is."""
    if isinstance(prediction, list):
        return tuple(prediction)
    return names[int(prediction)] if isinstance(loss, ZeroOne) and names else prediction


def _words(loss: AnyLoss, prediction: Any, names: list[Any] | None) -> str:
    if isinstance(loss, ZeroOne):
        return f"class {prediction!r}"
    if isinstance(loss, ThresholdDecision):
        return ("wait", "act")[int(prediction)]
    if isinstance(loss, FiniteChoice):
        return f"action {prediction}"
    if isinstance(prediction, tuple) and isinstance(loss.domain, Classes):
        best = int(np.argmax(prediction))
        return f"class {(names or range(len(prediction)))[best]!r} at {prediction[best]:.0%}"
    return ", ".join(number(each) for each in prediction) if isinstance(prediction, tuple) else number(prediction)
