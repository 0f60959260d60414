"""Which rows are chosen: each for what it is worth alone, or for what it adds to those before it.

Sizes: N rows, n rows chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stakes._words import number
from stakes.acquisition import Selection, select
from stakes.models.tables import Host, on_host
from stakes.ranking.chance import LUCK, generator, luck
from stakes.ranking.leaders import Leader
from stakes.ranking.question import Question
from stakes.ranking.worths import WORTH, Work, leaders

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
