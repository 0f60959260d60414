"""The best rows of a pool, and how many are as good, from scores that come in chunks and are not kept.

Sizes: n rows of a chunk, k rows in the lead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from stakes._utils.array import log_of, slices
from stakes._utils.parallel import in_parts
from stakes._utils.random import LUCK, generator, luck
from stakes._utils.tables import Host, Table, n_rows, on_host
from stakes._utils.text import number
from stakes.acquisition import Selection, fallback_scores, find_form, score, select
from stakes.acquisition.fallback import VARIANCE, worth_floor
from stakes.ranking.query import Question

_TIE = 1e-9  # relative: scores nearer than this are equal
_WAITING = 2**16  # rows that are sorted in together


@dataclass(frozen=True)
class Leader:
    """A row in the lead."""

    row: int
    log: float
    """Of its score."""
    as_good: int
    """How many others score the same."""


class Leaders:
    """The best `most` of all rows that were shown, in memory that does not grow with their number.

    Each distinct score near the top is kept with the number of rows that have it, and with the luckiest of those.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most, self._seed, self._worst = most, seed, -np.inf
        self._logs, self._luck, self._rows = np.empty(0), np.empty(0, np.uint64), np.empty(0, np.intp)
        self._values, self._counts = np.empty(0), np.empty(0, np.intp)  # falling; how many rows have each
        self._waiting: list[tuple[Host, Host]] = []

    def show(self, start: int, logs: Host) -> None:
        """Rows from position `start` on, with the logs of their scores [n]."""
        near = np.flatnonzero(logs >= self._worst)
        self._waiting.append((start + near, logs[near]))
        if sum(len(rows) for rows, _ in self._waiting) > max(_WAITING, len(self._rows)):
            self._settle()

    def ordered(self) -> Iterator[Leader]:
        """At least `most` rows, or all, from best to worst; the seed orders those that are as good."""
        self._settle()
        order = np.argsort(-self._logs, kind="stable")
        rows, values = -self._logs[order], -self._values  # both rising
        up_to, start = np.append(0, np.cumsum(self._counts)), 0
        while start < len(values):
            last = values[start] + _TIE
            end = int(np.searchsorted(values, last, side="right"))
            group = order[np.searchsorted(rows, values[start]) : np.searchsorted(rows, last, side="right")]
            for place in group[np.argsort(self._luck[group])].tolist():
                yield Leader(int(self._rows[place]), float(self._logs[place]), int(up_to[end] - up_to[start]) - 1)
            start = end

    def _settle(self) -> None:
        """Sort in what waits, and forget what can no longer lead."""
        rows, logs = (
            np.concatenate(parts) for parts in zip((self._rows[:0], self._logs[:0]), *self._waiting, strict=True)
        )
        self._waiting = []
        self._count(logs)
        self._rows, self._logs = np.append(self._rows, rows), np.append(self._logs, logs)
        self._luck = np.append(self._luck, luck(self._seed, rows))
        self._keep(self._logs >= self._worst)
        self._keep(self._place_among_equals() < self._most)

    def _count(self, logs: Host) -> None:
        values, which = np.unique(-np.append(self._values, logs), return_inverse=True)
        counts = np.zeros(len(values), np.intp)
        np.add.at(counts, which, np.append(self._counts, np.ones(len(logs), np.intp)))
        reached = int(np.searchsorted(np.cumsum(counts), self._most))
        if reached < len(values):
            self._worst = float(-values[reached] - _TIE)
        self._values, self._counts = -values[-values >= self._worst], counts[-values >= self._worst]

    def _place_among_equals(self) -> Host:
        """[k]: how many rows of exactly the same score are luckier."""
        order = np.lexsort((self._luck, self._logs))
        logs = self._logs[order]
        places = np.empty(len(order), np.intp)
        places[order] = np.arange(len(order)) - np.searchsorted(logs, logs)
        return places

    def _keep(self, which: Host) -> None:
        self._rows, self._logs, self._luck = self._rows[which], self._logs[which], self._luck[which]


# ----------------------------------------------------------------------
# What each row of a pool is worth, in chunks of rows, and which rows that puts first.
#
# Sizes: N rows, M contexts.

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
    """Workers that score them; see `stakes._utils.parallel`."""


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


# ----------------------------------------------------------------------
# Which rows are chosen: each for what it is worth alone, or for what it adds to those before it.
#
# Sizes: N rows, n rows chosen.

_LISTED = 1000  # rows that are looked at together under a Gaussian belief
_LISTED_OF_MEMBERS = 100  # and under an ensemble, whose batches cost hundreds of times as much
_CONFIGURATIONS = 256  # of labels of a batch under an ensemble: errors of some percent, which are told, in seconds
_ROUNDING = 1e-12  # of the budget: three labels at 0.1 are within one of 0.3
_RANGE = 700.0  # a score beyond exp(700), or all below exp(-700), leaves the range of numbers


@dataclass(frozen=True, eq=False)
class Picks:
    """Rows chosen, best first."""

    rows: Host
    """[n]: positions"""
    scores: Host
    """[n]: what they are ranked by, over exp(log_scale)"""
    worths: Host
    """[n]: in units of the loss, over exp(log_scale)"""
    ranked_by: tuple[str, ...]
    """[n]"""
    as_good: tuple[int | None, ...]
    """[n]: how many others are equal"""
    name: str
    """What the scores are."""
    log_scale: float
    sentences: tuple[str, ...]
    """How they were found."""
    errors: Host | None = None
    """[n]: in a batch, the standard error of what the first 1, 2, .. n are worth together"""


@dataclass(frozen=True, eq=False)
class Purchase:
    """How many rows are wanted, and what may be bought."""

    n: int
    prices: Host | None
    """[N]: what each row costs; 1 each without"""
    budget: float | None
    pending: tuple[int, ...]
    """Rows whose labels are on their way."""
    shortlist: int | None
    """Rows that are looked at together, those that are worth most alone."""


def alone(question: Question, purchase: Purchase, work: Work) -> Picks:
    """The n rows that are worth most alone, or as many as the budget reaches for."""
    prices, pending = purchase.prices, set(purchase.pending)
    tight = purchase.budget is not None and prices is not None  # it may pass over any number of rows
    most = question.size if tight else purchase.n + len(pending)
    best, ranked_by, said = leaders(question, most, prices, work)
    chosen = list(_affordable((each for each in best.ordered() if each.row not in pending), purchase))
    rows, ranked = np.asarray([each.row for each in chosen], dtype=np.intp), np.asarray([each.log for each in chosen])
    logs = ranked if prices is None else ranked + np.log(prices[rows])
    scale = _log_scale(np.concatenate([logs, ranked]))
    scores = np.exp(ranked - scale)
    worths = np.exp(logs - scale) if ranked_by == WORTH else np.zeros(len(rows))
    as_good = tuple(each.as_good for each in chosen)
    sentences = (*said, *_tie_sentences(as_good, question.seed))
    return Picks(rows, scores, worths, (ranked_by,) * len(rows), as_good, ranked_by, scale, sentences)


def together(question: Question, purchase: Purchase, work: Work) -> Picks:
    """Up to n rows, each for what it adds; rows are shuffled by the seed, so that it decides between equals."""
    members = hasattr(question.first(joint=True), "member_weights")
    listed, said = _shortlist(question, purchase, _LISTED_OF_MEMBERS if members else _LISTED, work)
    order, prices = listed[np.argsort(luck(question.seed, listed))], purchase.prices
    question.progress("choosing rows together", None)
    selection = select(
        question.loss,
        question.belief(order, joint=True),
        min(purchase.n, len(order) - len(purchase.pending)),
        costs=None if prices is None else prices[order].tolist(),
        budget=purchase.budget,
        context_weights=question.weights,
        rng=generator(question.seed, LUCK),
        max_configurations=_CONFIGURATIONS,
        pending=np.flatnonzero(np.isin(order, purchase.pending)).tolist(),
    )
    rows = order[np.asarray(selection.indices, dtype=np.intp)]
    gains = np.diff(on_host(selection.joint_reduction).astype(float), prepend=0.0)
    scores = gains if prices is None else gains / prices[rows]
    ranked_by = tuple(WORTH if by == "gain" else by for by in selection.ranked_by)
    error = np.hypot(on_host(selection.sampling_error), on_host(selection.context_error))
    sentences = (*said, *_pending_sentences(purchase), *_joint_sentences(selection))
    return Picks(rows, scores, gains, ranked_by, (None,) * len(rows), "gain", 0.0, sentences, error)


def _shortlist(question: Question, purchase: Purchase, usual: int, work: Work) -> tuple[Host, list[str]]:
    """The rows that are looked at together, by position, and in a sentence which they are."""
    count = max(purchase.shortlist or usual, purchase.n)
    if question.size - len(purchase.pending) <= count:
        return np.arange(question.size), []
    first = alone(question, replace(purchase, n=count, budget=None), work)
    listed = np.union1d(first.rows, np.asarray(purchase.pending, dtype=np.intp))
    return listed, [f"Looked at together: the {len(first.rows)} of {question.size} rows that are worth most alone."]


def _affordable(candidates: Iterator[Leader], purchase: Purchase) -> Iterator[Leader]:
    """The first n of the candidates, passing over those that the rest of the budget does not reach."""
    left, n = np.inf if purchase.budget is None else purchase.budget * (1.0 + _ROUNDING), purchase.n
    for each in candidates:
        price = 1.0 if purchase.prices is None else float(purchase.prices[each.row])
        if n > 0 and price <= left:
            n, left = n - 1, left - price
            yield each
        if n == 0:
            return


def _log_scale(logs: Host) -> float:
    """0, or the largest of the logs where numbers cannot hold it."""
    largest = float(logs.max(initial=-np.inf))
    return largest if np.isfinite(largest) and abs(largest) > _RANGE else 0.0


def _tie_sentences(as_good: tuple[int, ...], seed: int) -> list[str]:
    tied = sum(equals > 0 for equals in as_good)
    return [f"{tied} of the rows chosen have equals in the pool; seed {seed} decided between them."] if tied else []


def _pending_sentences(purchase: Purchase) -> list[str]:
    count = len(purchase.pending)
    return [f"Worths come on top of {count} labels that are on their way."] if count else []


def _joint_sentences(selection: Selection) -> tuple[str, ...]:
    """How the joint worth was computed, and where it did not decide."""
    joint = on_host(selection.joint_reduction).astype(float)
    said = (
        [f"Together {len(joint)} labels are worth {number(joint[-1])} for one decision ({selection.method})."]
        if len(joint)
        else []
    )
    error = float(on_host(selection.sampling_error).max(initial=0.0))
    if error > 0:
        said.append(f"Joint worths are sampled: standard errors up to {number(error, 2)}.")
    if other := sorted({by for by in selection.ranked_by if by != "gain"}):
        count = sum(by != "gain" for by in selection.ranked_by)
        said.append(f"{count} picks had no gain to go by and are ranked by {', '.join(other)}.")
    return (*said, "The contexts named for a row are those that its label alone helps most.")
