"""What each row of a pool is worth, in chunks of rows, and which rows that puts first.

Sizes: N rows, M contexts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from stakes._array import log_of, slices
from stakes.acquisition import fallback_scores, find_form, score
from stakes.acquisition.fallback import VARIANCE, worth_floor
from stakes.acquisition.workers import in_parts
from stakes.models.tables import Host, Table, n_rows, on_host
from stakes.ranking.leaders import Leaders
from stakes.ranking.question import Question

_Told = TypeVar("_Told", bound=tuple[Any, ...])
WORTH = "worth"
_AGREED = (
    "All members of the model say the same at every context: no label is worth anything, and the seed puts rows in an "
    "order (cold_start spreads them over the pool)."
)


@dataclass(frozen=True)
class Work:
    """How a pool is gone through."""

    chunk: int = 4096
    """Rows that are read and scored at a time."""
    n_jobs: int | None = None
    """Workers that score them; see `stakes.acquisition.workers`."""


def leaders(question: Question, most: int, prices: Host | None, work: Work) -> tuple[Leaders, str, list[str]]:
    """The best `most` rows (for each unit of `prices` [N]), what they are ranked by, and how that was computed."""
    best, top, forms, floor = Leaders(most, question.seed), -math.inf, set(), -math.inf
    for start, (worths, form, lowest) in scored(question, _worths, work, "scoring rows"):
        best.show(start, _for_each_unit(worths, start, prices))
        top, floor = max(top, float(worths.max())), floor if lowest is None else lowest
        forms.add(form)
    said = [f"Computed by: {'; '.join(sorted(forms))}."]
    if top > floor:
        return best, WORTH, said
    if floor == math.inf:
        return _nothing(question, most, question.size, work.chunk), VARIANCE, [*said, _AGREED]
    stand_ins, ranked_by = _fallback(question, most, prices, work)
    return stand_ins, ranked_by, [*said, f"No single label is worth anything; rows are ranked by {ranked_by}."]


def scored(
    question: Question, function: Callable[[Question, int, Table], _Told], work: Work, what: str
) -> Iterator[tuple[int, _Told]]:
    """Where each chunk of the pool begins, and what the function tells of it, its rows first."""
    carried, start = question.to_send(), 0
    parts = ((carried, at, rows) for at, rows in question.pool.chunks(work.chunk))
    question.progress(what, 0.0)
    with closing(in_parts(function, parts, work.n_jobs)) as results:
        for told in results:
            yield start, told
            start += len(told[0])
            question.progress(what, start / question.size)


def _worths(question: Question, start: int, rows: Table) -> tuple[Host, str, float | None]:
    """[n]: the log of what each row is worth, by which form, and with the first rows below what that is nothing."""
    belief = question.belief_of(rows, range(start, start + n_rows(rows)))
    relative, log_scale = score(question.loss, belief, question.weights, return_log_scale=True)
    floor = worth_floor(question.loss, belief, question.weights) if start == 0 else None
    form = f"{find_form(question.loss, belief).name}, under {type(belief).__name__}"
    return log_of(on_host(relative).astype(float)) + log_scale, form, floor


def _stand_ins(question: Question, start: int, rows: Table) -> tuple[Host, str]:
    """[n]: the log of the fallback that the rows of a chunk need, and its name."""
    belief = question.belief_of(rows, range(start, start + n_rows(rows)))
    scores, ranked_by = fallback_scores(question.loss, belief, question.weights)
    return log_of(on_host(scores).astype(float)), ranked_by


def _for_each_unit(logs: Host, start: int, prices: Host | None) -> Host:
    return logs if prices is None else logs - np.log(prices[start : start + len(logs)])


def _nothing(question: Question, most: int, size: int, chunk: int) -> Leaders:
    """The first rows of a pool, none of which is worth anything: the seed decides."""
    best = Leaders(most, question.seed)
    for part in slices(size, chunk) if size else ():
        best.show(part.start, np.full(part.stop - part.start, -math.inf))
    return best


def _fallback(question: Question, most: int, prices: Host | None, work: Work) -> tuple[Leaders, str]:
    """By the fallback that any chunk needs first: rows of other chunks have nothing by that measure."""
    found: dict[str, Leaders] = {}
    for start, (logs, ranked_by) in scored(question, _stand_ins, work, "scoring rows by what stands in for worth"):
        if ranked_by not in found:
            found[ranked_by] = _nothing(question, most, start, work.chunk)
        for name, best in found.items():
            shown = logs if name == ranked_by else np.full_like(logs, -math.inf)
            best.show(start, _for_each_unit(shown, start, prices))
    chosen = min(found, key=_labels_needed)
    return found[chosen], chosen


def _labels_needed(ranked_by: str) -> float:
    """8 for "worth of 8 such labels"; infinite for variance reduction."""
    found = re.search(r"\d+", ranked_by)
    return math.inf if ranked_by == VARIANCE or found is None else float(found[0])
