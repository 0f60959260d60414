"""Why a row was chosen: the contexts that its label helps most, and what the model predicts there today.

Sizes: n rows, M contexts, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from stakes._utils.array import double, log_of, namespace, on_host, slices
from stakes._utils.tables import Host
from stakes._utils.text import number
from stakes.acquisition import find_form, uncertainty
from stakes.acquisition.scores import blocks
from stakes.beliefs import Belief
from stakes.evaluation import bayes_prediction
from stakes.losses import AnyLoss, FiniteChoice, ThresholdDecision, ZeroOne
from stakes.losses.domains import Classes
from stakes.ranking.query import Query, class_names
from stakes.ranking.result import HelpedContext, Note

_MOST = 3  # contexts named for each row


def helped_contexts(query: Query, rows: Host) -> tuple[list[tuple[HelpedContext, ...]], list[Note]]:
    """For each of `rows` the contexts that its label alone helps most, and notes on what is out of range."""
    found: list[tuple[HelpedContext, ...]] = []
    notes: list[Note] = []
    for part in slices(len(rows), query.chunk) if len(rows) else ():
        belief = query.belief(rows[part])
        if part.start == 0:
            describe, notes = _descriptions(query, belief)
        for logs in log_reductions(query, belief):
            found.append(tuple(describe(place, share) for place, share in _largest(logs)))
    return found, notes


def log_reductions(query: Query, belief: Belief) -> Host:
    """[n, M]: the log of p(c) EUR(x; c)."""
    xp, columns = namespace(belief.like), []
    for _, log_scale, parts in blocks(find_form(query.loss, belief), query.loss, belief, None):
        columns.append(on_host(log_of(double(xp.concat([part() for part in parts], axis=0))) + double(log_scale)))
    return np.asarray(np.concatenate(columns, axis=1) + log_of(np.asarray(query.weights)))


def _largest(logs: Host) -> list[tuple[int, float]]:
    """The few largest of [M], and their shares of the sum; fewer where others are nothing."""
    places = [int(place) for place in np.argsort(-logs, kind="stable")[:_MOST] if logs[place] > -np.inf]
    if not places:
        return []
    relative = np.exp(logs - logs[places[0]])
    return [(place, float(relative[place] / relative.sum())) for place in places]


def _descriptions(query: Query, belief: Belief) -> tuple[Callable[[int, float], HelpedContext], list[Note]]:
    """A function from the position and the share of a context to its description, and notes."""
    here, (positions, row_ids) = belief.take(slice(0, 1), slice(None)), query.context_places()
    predictions, gaps = _in_range(bayes_prediction, query.loss, here)
    losses, more = _in_range(uncertainty, query.loss, here)
    names, absent = class_names(query.model, query.classes), "not reported" if gaps else "a distribution"

    def describe(place: int, share: float) -> HelpedContext:
        prediction = _named(query.loss, predictions[place], names)
        answer = absent if prediction is None else _as_text(query.loss, prediction, names)
        return HelpedContext(int(positions[place]), row_ids[place], share, prediction, losses[place], answer)

    return describe, [Note("out of range", {"error": error}) for error in dict.fromkeys([*gaps, *more])]


def _in_range(function: Callable[[Any, Any], Any], loss: AnyLoss, belief: Belief) -> tuple[list[Any], list[str]]:
    """[M]: a function of each context, None for each where that is no array or out of range; and why."""
    try:
        answers = function(loss, belief)
    except FloatingPointError as error:
        return [None] * belief.n_contexts, [str(error)]
    return (list(on_host(answers).tolist()) if is_array_api_obj(answers) else [None] * belief.n_contexts), []


def _named(loss: AnyLoss, prediction: Any, names: list[Any] | None) -> Any:
    """A predicted class by its name, probabilities as a tuple; all else as it is."""
    if isinstance(prediction, list):
        return tuple(prediction)
    return names[int(prediction)] if isinstance(loss, ZeroOne) and names else prediction


def _as_text(loss: AnyLoss, prediction: Any, names: list[Any] | None) -> str:
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
