"""To go on, or to stop: stopping is right only if no batch within the budget pays, and larger ones cannot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stakes._words import number, plus_minus, short
from stakes.ranking.outlook_result import Amount, Offer, Verdict
from stakes.ranking.picks import Purchase

_SURE = 2.0  # standard errors


@dataclass(frozen=True)
class Advice:
    """A verdict, and why."""

    verdict: Verdict | None
    sentences: tuple[str, ...]


def advised(offers: tuple[Offer, ...], most: Amount, purchase: Purchase, decisions: float) -> Advice:
    """What to do about `offers`, when no number of labels saves more than `most` for one decision.

    The worth of labels need not be concave in their number: one may be worth nothing where ten are worth much. So a
    first label that does not pay is no reason to stop.
    """
    if not offers:
        return Advice("stop", ("Stop: the budget reaches for no label.",))
    best = max(offers, key=_net)
    if _net(best) > 0.0:
        sure = _net(best) > _SURE * (best.net_error or 0.0)
        return _go_on(best) if sure else Advice("too close to call", (f"Too close to call: {_saves(best)}.",))
    if any(_net(offer) + _SURE * (offer.net_error or 0.0) > 0.0 for offer in offers):
        return Advice("too close to call", (f"Too close to call: {_saves(best)}.",))
    return _stop_or_not(offers, most, purchase, decisions)


def _go_on(best: Offer) -> Advice:
    return Advice("go on", (f"Go on: {_saves(best)}.",))


def _stop_or_not(offers: tuple[Offer, ...], most: Amount, purchase: Purchase, decisions: float) -> Advice:
    """None of the offers pays; larger batches may, unless their cost is above the most that they can save."""
    tried, bound = len(offers), decisions * (most.value + _SURE * most.error)
    none = f"no batch of up to {tried} labels saves what it costs" if tried > 1 else "the next label does not pay"
    larger = _cheapest_larger(tried, purchase)
    if larger is None:
        return Advice("stop", (f"Stop: {none}, and the budget or the pool reaches for no more.",))
    if larger >= bound:
        limit = f"{short(decisions)} decisions can save {number(bound)} at most"
        cost = f"{tried + 1} labels cost {number(larger)}"
        return Advice("stop", (f"Stop: {none}, and larger ones cannot: {limit}, and {cost}.",))
    why = f"{none}, but more might: all that could be learned is worth {number(decisions * most.value)}"
    return Advice("too close to call", (f"Too close to call: {why}. Ask for an outlook on more labels.",))


def _cheapest_larger(tried: int, purchase: Purchase) -> float | None:
    """The least that one label more than were tried can cost; None where there is no such batch."""
    assert purchase.prices is not None
    free = np.delete(purchase.prices, list(purchase.pending))
    if len(free) <= tried:
        return None
    cost = float(np.sort(free)[: tried + 1].sum())
    return None if purchase.budget is not None and cost > purchase.budget else cost


def _saves(offer: Offer) -> str:
    """In words: 4 labels save 12 over 100 decisions and cost 8."""
    labels = "the next label saves" if offer.size == 1 else f"the next {offer.size} labels save"
    error = 0.0 if offer.decisions is None else offer.decisions * offer.error
    total = 0.0 if offer.decisions is None else offer.decisions * offer.worth
    amount = f"{plus_minus(total, error)} over {short(offer.decisions or 0.0)} decisions"
    return f"{labels} {amount} and {'costs' if offer.size == 1 else 'cost'} {short(offer.cost or 0.0)}"


def _net(offer: Offer) -> float:
    assert offer.net is not None
    return offer.net
