"""Is the next label worth its cost? Offers of labels against what they cost, and whether to stop.

Stopping is right only if no batch within the budget pays, and larger ones cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from stakes._utils.arguments import affords
from stakes._utils.tables import Host
from stakes._utils.text import number, plus_minus, short

Verdict: TypeAlias = Literal["go on", "stop", "too close to call"]
_SURE = 2.0  # standard errors


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
        worth: What their labels are expected to save together, for one decision; below 0 where they would make answers
            worse. Where the model is known by members (an ensemble, hypotheses of a mixture), none of these is taken
            for the truth (`stakes.honest_reduction`).
        error: Its standard error: over contexts, over members, and of sampling where labels of a batch are sampled.
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
    def break_even(self) -> float | None:
        """The number of decisions from which on the labels are worth their cost; infinite where they are worth none."""
        if self.cost is None:
            return None
        return self.cost / self.worth if self.worth > 0 else float("inf")


def advised(
    offers: tuple[Offer, ...], most: Amount, costs: Host, budget: float | None, decisions: float
) -> tuple[Verdict, tuple[str, ...]]:
    """Whether to buy, and why, when no number of labels saves more than `most` for one decision.

    The worth of labels need not be concave in their number: one may be worth nothing where ten are worth much. So a
    first label that does not pay is no reason to stop. `costs` are those of all rows that could be bought.
    """
    if not offers:
        return "stop", ("Stop: the budget covers no label.",)
    best = max(offers, key=_net)
    if _net(best) > _SURE * (best.net_error or 0.0):
        return "go on", (f"Go on: {_saves(best)}.",)
    if any(_net(offer) + _SURE * (offer.net_error or 0.0) > 0.0 for offer in offers):
        return "too close to call", (f"Too close to call: {_saves(best)}.",)
    return _stop_or_not(len(offers), most, _cheapest_larger(len(offers), costs, budget), decisions)


def _stop_or_not(tried: int, most: Amount, larger: float | None, decisions: float) -> tuple[Verdict, tuple[str, ...]]:
    """None of the offers pays; a `larger` batch, at that cost, may, unless it is above the most that it can save."""
    bound = decisions * (most.value + _SURE * most.error)
    none = f"no batch of up to {tried} labels saves what it costs" if tried > 1 else "the next label does not pay"
    if larger is None:
        return "stop", (f"Stop: {none}, and the budget or the pool allows no more.",)
    if larger >= bound:
        limit = f"{short(decisions)} decisions can save {number(bound)} at most"
        cost = f"{tried + 1} labels cost {number(larger)}"
        return "stop", (f"Stop: {none}, and larger ones cannot: {limit}, and {cost}.",)
    why = f"{none}, but more might: all that could be learned is worth {number(decisions * most.value)}"
    return "too close to call", (f"Too close to call: {why}. Ask for an outlook on more labels.",)


def _cheapest_larger(tried: int, costs: Host, budget: float | None) -> float | None:
    """The least that one label more than were tried can cost; None where there is no such batch."""
    if len(costs) <= tried:
        return None
    cost = float(np.sort(costs)[: tried + 1].sum())
    return cost if affords(budget, 0.0, cost) else None


def _saves(offer: Offer) -> str:
    """Such as: the next 4 labels save 12 over 100 decisions and cost 8."""
    labels = "the next label saves" if offer.size == 1 else f"the next {offer.size} labels save"
    error = 0.0 if offer.decisions is None else offer.decisions * offer.error
    total = 0.0 if offer.decisions is None else offer.decisions * offer.worth
    amount = f"{plus_minus(total, error)} over {short(offer.decisions or 0.0)} decisions"
    return f"{labels} {amount} and {'costs' if offer.size == 1 else 'cost'} {short(offer.cost or 0.0)}"


def _net(offer: Offer) -> float:
    assert offer.net is not None
    return offer.net
