"""Promised and delivered: what labels saved beside what they were said to save, and what that tells of new promises.

A campaign compares two of its models on labels that neither was fitted to. Most of these were bought later, and rows
are bought where the model is unsure: they are weighed so that they stand for all rows (`nearest_share`).

Sizes: m labels, N rows that they stand for, p columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from stakes._utils.tables import Host
from stakes.ranking.outlook import Outlook, scaled
from stakes.ranking.result import Note
from stakes.ranking.stopping import Amount, Offer, Verdict, advised

FEWEST_ROUNDS, FEWEST_LABELS = 3, 8
"""Rounds that must have been judged before promises are changed, and labels that must have judged each of them."""
_TRUST = 0.5  # standard deviation of the share that is kept, before any record
_UNEVEN = 0.5  # that of a round about the campaign's share, in units of its promise
_FAR = 4.0  # times what is expected where labels are: more is not told by them
_BLOCK = 4_000_000  # distances at a time


class PromisedRound(NamedTuple):
    """A round of labels: what they were said to save of the loss of a decision, and what they saved.

    Attributes:
        labels: How many labels the model had before.
        bought: How many it got.
        promised: What these were promised to save, as the campaign recorded it.
        raw: The same before the campaign's own record was applied to it.
        delivered: What they saved: the loss of the model before them less that of the model after them, on labels that
            neither was fitted to.
        judged: How many labels tell that.
        audited: Whether these were drawn by an audit; otherwise they were bought later.

    Examples:
        >>> from stakes.ranking import Amount, PromisedRound
        >>> one = PromisedRound(20, 8, Amount(0.1, 0.02), 0.1, Amount(0.04, 0.03), judged=30, audited=False)
        >>> round(one.delivered.value / one.promised.value, 2)
        0.4
    """

    labels: int
    bought: int
    promised: Amount
    raw: float
    delivered: Amount
    judged: int
    audited: bool


class Past(NamedTuple):
    """What a campaign knows when it looks ahead again.

    Attributes:
        share: Which share of its promises came (`share_kept`); None where too little is known.
        rounds: How many rounds tell that.
        advice: What it was advised before, the last one last, under the prices of today.
    """

    share: Amount | None = None
    rounds: int = 0
    advice: tuple[Verdict, ...] = ()


def judged_enough(rounds: Sequence[PromisedRound]) -> list[PromisedRound]:
    """Those that promised something, and that enough labels have judged.

    Args:
        rounds: Those of a campaign.

    Returns:
        The rounds that `share_kept` goes by.
    """
    return [each for each in rounds if each.judged >= FEWEST_LABELS and each.raw > 0.0]


def share_kept(rounds: Sequence[PromisedRound]) -> Amount | None:
    """Which share of what was promised came, from 0 to 1; None where too little is known to say.

    A normal prior, 1 ± 0.5, is updated by every round: delivered = share times promised, with the error of what was
    delivered, and half a promise for rounds differ. Rounds that share labels are taken as independent. What came beyond
    a promise is no reason to promise more: the share is 1 then.

    Args:
        rounds: Those of a campaign.

    Returns:
        The posterior mean, within 0 and 1, and standard deviation.

    Examples:
        >>> from stakes.ranking import Amount, PromisedRound
        >>> from stakes.ranking.promises import share_kept
        >>> one = PromisedRound(20, 8, Amount(0.1, 0.02), 0.1, Amount(0.04, 0.001), judged=30, audited=False)
        >>> share_kept([one]) is None
        True
        >>> round(share_kept([one] * 40).value, 2)
        0.41
    """
    usable = judged_enough(rounds)
    if len(usable) < FEWEST_ROUNDS:
        return None
    precision, total = _TRUST**-2, _TRUST**-2
    for each in usable:
        variance = each.delivered.error**2 + (_UNEVEN * each.raw) ** 2
        precision += each.raw**2 / variance
        total += each.raw * each.delivered.value / variance
    return Amount(min(max(total / precision, 0.0), 1.0), precision**-0.5)


def shrunk(offers: tuple[Offer, ...], share: Amount | None) -> tuple[Offer, ...]:
    """The offers with the share of their worth that came so far, and its error.

    Errors of offers allow for a wrong model already: a record never makes them larger.

    Args:
        offers: What labels are said to save.
        share: As `share_kept` has it; None leaves all as it is.

    Returns:
        The offers.
    """
    if share is None:
        return offers
    return tuple(
        replace(
            offer,
            worth=share.value * offer.worth,
            error=min(math.hypot(share.value * offer.error, share.error * offer.worth), offer.error),
        )
        for offer in offers
    )


def with_past(found: Outlook, past: Past, costs: Host | None) -> Outlook:
    """An outlook in the light of what came of earlier ones: worths are shrunk, and advice does not flicker.

    Args:
        found: The outlook by the model alone.
        past: What the campaign knows.
        costs: [N]: of all rows that could be bought; None where they are not known.

    Returns:
        The outlook, with a note where worths were shrunk.
    """
    record: tuple[str, ...] = ()
    if past.share is not None and past.share.value < 1.0 and found.offers:
        note = Note("promises kept", {"share": past.share.value, "error": past.share.error, "rounds": past.rounds})
        record = (f"Savings are {past.share.value:.0%} of what the model says: so much came of it so far.",)
        ranking = scaled(found.ranking, past.share.value)
        ranking = replace(ranking, notes=(*ranking.notes, note))
        found = replace(found, offers=shrunk(found.offers, past.share), ranking=ranking)
    if found.advice is None or costs is None or found.decisions is None:
        return found
    verdict, sentences = advised(found.offers, found.most, costs, found.budget, found.decisions, past.advice)
    return replace(found, advice=verdict, sentences=(*sentences, *record))


def change(before: Host, after: Host, weights: Host, expected: tuple[Host, float] | None = None) -> Amount:
    """The mean of losses before less after over all rows, by those that have a label.

    Without `expected` it is the weighted mean. With it, it is the mean that the later model expects of all rows, times
    the share of it that came where there are labels (the ratio estimator of surveys). That is right on average if the
    weights are, and also if what comes is in proportion to what is expected, wherever labels were bought: rows are
    bought where much is expected, so that their mean alone is too high. Where few rows change, all of those seen may
    happen to stay the same: so the error counts one row more, which changes by the mean loss.

    Args:
        before: [m]: losses of a model.
        after: [m]: losses of another.
        weights: [m]: of the rows, not negative, some positive.
        expected: [m]: what the later model expects of before less after at these rows; and its mean over all rows.

    Returns:
        The mean, and its standard error.
    """
    shares = weights / weights.sum()
    saved, rows = before - after, 1.0 / float(shares @ shares)
    mean = float(shares @ saved)
    about, scale = np.full(len(saved), mean), 1.0
    if expected is not None:
        here, everywhere = float(shares @ expected[0]), expected[1]
        if 0.0 <= everywhere <= _FAR * here and here > 0.0:
            about, scale = expected[0] * (mean / here), everywhere / here
    spread = float(np.sum((shares * (saved - about)) ** 2)) * rows / max(rows - 1.0, 0.5)
    typical = float(shares @ np.maximum(np.abs(before), np.abs(after)))
    return Amount(scale * mean, scale * math.sqrt(spread + (typical / (rows + 1.0)) ** 2))


def nearest_share(judged: Host, others: Host) -> Host:
    """[m]: how many rows each of m labelled rows stands for: those that are nearer to it than to any other, and itself.

    These are importance weights without a model of how rows were chosen (Loog 2012, nearest neighbour weighting). They
    put right that some regions have many labels and others few. Their weakness: a region without any label is judged by
    the nearest that has one, and in many columns all rows are about equally near; then all weigh about the same.

    Args:
        judged: [m, p]: rows that have a label, columns in like units.
        others: [N, p]: all rows that they are to stand for.

    Returns:
        The weights, 1 or more each.
    """
    counts = np.ones(len(judged))
    squares = np.einsum("ij,ij->i", judged, judged)  # [m]
    step = max(1, _BLOCK // max(1, len(judged)))
    for first in range(0, len(others), step):
        distances = squares[None, :] - 2.0 * others[first : first + step] @ judged.T  # but for the rows' own squares
        counts += np.bincount(distances.argmin(axis=1), minlength=len(judged))
    return counts
