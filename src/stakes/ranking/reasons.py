"""Why a row was chosen: the contexts that its label helps most, and what the model says there today.

Sizes: n rows, M contexts, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from stakes._array import double, log_of, namespace, slices
from stakes._words import number
from stakes.acquisition import find_form, uncertainty
from stakes.acquisition.reduction import blocks
from stakes.beliefs import Belief
from stakes.domains import Classes
from stakes.evaluation import bayes_prediction
from stakes.losses import AnyLoss, FiniteChoice, ThresholdDecision, ZeroOne
from stakes.models.classes import plain
from stakes.models.ensembles import known_classes
from stakes.models.tables import Host, on_host
from stakes.ranking.question import Question
from stakes.ranking.result import HelpedContext

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
    return None if known is None else [plain(name) for name in known]


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
