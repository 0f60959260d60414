"""Is the next label worth its cost? Offers of labels against what they cost, and whether to stop.

Stopping is right if no batch within the budget is expected to pay, whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from stakes._utils.arguments import affords
from stakes._utils.tables import Host
from stakes._utils.text import number, plus_minus, short

Verdict: TypeAlias = Literal["go on", "stop", "too close to call"]
_SURE = 2.0  # standard errors
_CLOSE, _SMALL = 0.25, 0.1  # of the error of a net saving, and of a cost: less is too close to call
_CLEARLY = 2.0  # margins, by which labels must pay after the advice was to stop
_ROUNDING = 1e-12  # of a saving: an error that is smaller is none
_SURELY = 0.02  # of a net saving: a regret that is smaller is not worth a sentence
_DOUBLINGS, _STEEPEST, _EACH_DOUBLING = 3, 2.0, 0.5  # beyond what was offered: how far, the power, the relative error


class Amount(NamedTuple):
    """A mean over contexts, for one decision, in units of the loss.

    Attributes:
        value: The mean.
        error: Its standard error, where the contexts are draws of those to come.

    Examples:
        >>> from stakes.ranking import Amount
        >>> Amount(value=0.25, error=0.01).value
        0.25
    """

    value: float
    error: float

    def __str__(self) -> str:
        return plus_minus(self.value, self.error)


@dataclass(frozen=True)
class Offer:
    """The first rows of the ranking, bought together.

    Attributes:
        size: How many rows.
        worth: What their labels are expected to save together, for one decision. Where the model is known by members
            (an ensemble, hypotheses of a mixture), none of these is taken for the truth (`stakes.honest_reduction`);
            for an ensemble a learning curve has a say, too. It is made of what the model says by what came of such
            promises on real tables (docs/promises.md).
        error: Its standard error: over contexts, over members, of sampling where labels of a batch are sampled, and of
            not knowing the model.
        cost: What all of them cost, in units of the loss; None where that is not known.
        decisions: How many decisions will be taken; None where that is not known.
        joint: What they would save if one of the members were the truth; None where there are no members.

    Examples:
        >>> from stakes.ranking import Offer
        >>> offer = Offer(size=3, worth=0.02, error=0.0, cost=10.0, decisions=1000)
        >>> print(offer.net, offer.break_even)  # 1000 decisions save 20, the labels cost 10
        10.0 500.0
    """

    size: int
    worth: float
    error: float
    cost: float | None
    decisions: float | None
    joint: float | None = None

    @property
    def net(self) -> float | None:
        """What is saved over all decisions, less the cost; None where either is not known."""
        return None if self.cost is None or self.decisions is None else self.decisions * self.worth - self.cost

    @property
    def net_error(self) -> float | None:
        """The standard error of `net`."""
        return None if self.net is None or self.decisions is None else self.decisions * self.error

    @property
    def regret_of_buying(self) -> float | None:
        """What buying loses if it is wrong, on average: the mean of cost less saving, where that is positive.

        No more than the cost, as labels that are worth something save no less than nothing.
        """
        return None if self.net is None or (forgone := self.regret_of_stopping) is None else forgone - self.net

    @property
    def regret_of_stopping(self) -> float | None:
        """What stopping forgoes if it is wrong, on average: the mean of saving less cost, where that is positive."""
        if self.cost is None or self.decisions is None:
            return None
        return _mean_above(self.cost, self.decisions * self.worth, self.decisions * self.error)

    @property
    def break_even(self) -> float | None:
        """The number of decisions from which on the labels are worth their cost; infinite where they are worth none."""
        if self.cost is None:
            return None
        return self.cost / self.worth if self.worth > 0 else float("inf")


def advised(
    offers: tuple[Offer, ...],
    most: Amount,
    costs: Host,
    budget: float | None,
    decisions: float,
    history: Sequence[Verdict] = (),
) -> tuple[Verdict, tuple[str, ...]]:
    """Whether to buy, and why.

    What a batch saves is known as worth ± error, a log-normal distribution as it is not below 0; so either advice may
    turn out wrong: buying loses what the labels cost beyond what they save, stopping forgoes what they save beyond
    what they cost. The means of both (`Offer.regret_of_buying`, `Offer.regret_of_stopping`) differ by the net saving:
    the advice with the smaller one is to go on if any batch has a positive net saving, and to stop if none has.
    It is too close to call where all net savings are within a margin of 0 (a quarter of their standard error, or of
    what is saved if that is less, and at least a tenth of the cost), so that both regrets are about the same. A
    campaign that was advised to go on is advised to stop as soon as no net saving is positive, and then to go on only
    where one is twice its margin.

    The worth of labels need not be concave in their number: one may be worth nothing where ten are worth much. So
    batches of every size count; and where worth grows faster than the number of labels, larger ones than were offered
    do, too, by the same power of their size.

    Args:
        offers: The first 1, 2, .. rows.
        most: The most that labels save for one decision, however many.
        costs: [N]: of all rows that could be bought.
        budget: What may be spent; None for any amount.
        decisions: How many decisions will be taken.
        history: What was advised before, the last one last, under the same prices.

    Returns:
        The advice, and sentences: what it is and why, and what is at risk where it may well be wrong.
    """
    if not offers:
        return "stop", ("Stop: the budget covers no label.",)
    before = next((verdict for verdict in reversed(history) if verdict != "too close to call"), None)
    up, down = {"go on": (0.0, 0.0), "stop": (_CLEARLY, 1.0), None: (1.0, 1.0)}[before]  # margins to be left
    tried, every = offers[-1].size, offers
    if not any(_net(offer) > up * _margin(offer) for offer in offers):
        every = (*offers, *_further(offers, most, len(costs), budget))
    best = max(every, key=_net)
    pays = any(_net(offer) > up * _margin(offer) for offer in every)
    fails = all(_net(offer) < -down * _margin(offer) for offer in every)
    if pays:
        return "go on", (f"Go on: {_saves(best, tried)}.", *_at_risk(best))
    if fails or before is not None:
        larger = _cheapest_larger(tried, costs, budget)
        why = _why_stop(every, tried, most, larger, decisions)
        if before == "stop" and not fails:
            why = f"as before, since labels do not clearly pay: {_saves(best, tried)}"
        return "stop", (f"Stop: {why}.", *_at_risk(max(every, key=lambda offer: _regrets(offer)[0])))
    return "too close to call", (f"Too close to call: {_saves(best, tried)}.", *_at_risk(best, always=True))


def _further(offers: tuple[Offer, ...], most: Amount, rows: int, budget: float | None) -> tuple[Offer, ...]:
    """Two, four and eight times as many labels as were offered, where worth grows faster than their number.

    Where it does not, they cannot pay unless the last of the offers does.
    """
    last = offers[-1]
    half = next((offer for offer in reversed(offers) if 2 * offer.size <= last.size), None)
    if half is None or last.worth <= 0.0 or last.cost is None:
        return ()
    doublings = math.log2(last.size / half.size)
    power = min(math.log2(last.worth / half.worth) / doublings, _STEEPEST) if half.worth > 0.0 else _STEEPEST
    found = []
    for double in range(1, _DOUBLINGS + 1):
        size, cost = last.size * 2**double, last.cost * 2**double
        if power <= 1.0 or size > rows or not affords(budget, 0.0, cost):
            break
        worth = min(last.worth * 2 ** (power * double), most.value)
        error = worth * math.hypot(last.error / last.worth, _EACH_DOUBLING * double)
        found.append(Offer(size, worth, error, cost, last.decisions))
    return tuple(found)


def _margin(offer: Offer) -> float:
    """Net savings that are nearer to 0 than this are about 0.

    An error may be far above what is saved; labels that are said to save nothing are not worth nearly what they cost.
    """
    saved = max(0.0, (offer.decisions or 0.0) * offer.worth)
    return max(_CLOSE * min(offer.net_error or 0.0, saved), _SMALL * (offer.cost or 0.0))


def _why_stop(every: tuple[Offer, ...], tried: int, most: Amount, larger: float | None, decisions: float) -> str:
    """That none pays, and what of those that were not tried, of which the next costs `larger`."""
    size = every[-1].size
    none = f"no batch of up to {size} labels saves what it costs" if size > 1 else "the next label does not pay"
    bound = decisions * (most.value + _SURE * most.error)
    if larger is None:
        return f"{none}, and the budget or the pool allows no more"
    if larger >= bound:
        limit = f"{short(decisions)} decisions can save {number(bound)} at most"
        return f"{none}, and larger ones cannot: {limit}, and {tried + 1} labels cost {number(larger)}"
    return f"{none}; {_saves(max(every, key=_net), tried)}"


def _at_risk(offer: Offer, *, always: bool = False) -> tuple[str, ...]:
    """What either course may lose, where the sign of the net saving is not clear."""
    stopping, buying = _regrets(offer)
    if not always and min(stopping, buying) <= _SURELY * abs(stopping - buying):
        return ()
    return (
        f"At risk, weighed by how likely it is: {number(buying, 2)} if you buy, {number(stopping, 2)} if you stop.",
    )


def _regrets(offer: Offer) -> tuple[float, float]:
    """Of stopping, and of buying."""
    return offer.regret_of_stopping or 0.0, offer.regret_of_buying or 0.0


def _cheapest_larger(tried: int, costs: Host, budget: float | None) -> float | None:
    """The least that one label more than were tried can cost; None where there is no such batch."""
    if len(costs) <= tried:
        return None
    cost = float(np.sort(costs)[: tried + 1].sum())
    return cost if affords(budget, 0.0, cost) else None


def _saves(offer: Offer, tried: int) -> str:
    """Such as: the next 4 labels save 12 over 100 decisions and cost 8."""
    labels = "the next label saves" if offer.size == 1 else f"the next {offer.size} labels save"
    error = 0.0 if offer.decisions is None else offer.decisions * offer.error
    total = 0.0 if offer.decisions is None else offer.decisions * offer.worth
    amount = f"{plus_minus(total, error)} over {short(offer.decisions or 0.0)} decisions"
    saves = f"{labels} {amount} and {'costs' if offer.size == 1 else 'cost'} {short(offer.cost or 0.0)}"
    return saves if offer.size <= tried else f"{saves}, if worth grows as it does up to {tried}"


def _net(offer: Offer) -> float:
    assert offer.net is not None
    return offer.net


def _mean_above(cost: float, mean: float, error: float) -> float:
    """E[max(s - cost, 0)] of a log-normal saving s with this mean and standard deviation.

    A saving has a long tail upwards and none below 0: a normal one of mean 46 and error 75 would lose 14 where labels
    for 4 are bought in vain.
    """
    if mean <= 0.0 or error <= _ROUNDING * mean or cost <= 0.0:
        return max(mean - cost, 0.0)
    ratio = min(error / mean, 1e150)  # whose square is a number
    spread = math.sqrt(math.log1p(ratio**2))
    distance = (math.log(mean) - math.log(cost)) / spread + spread / 2.0
    return max(mean * _below(distance) - cost * _below(distance - spread), mean - cost, 0.0)


def _below(z: float) -> float:
    """The normal distribution function."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))
