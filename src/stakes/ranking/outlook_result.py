"""What an outlook says: the loss today, what labels would save, and whether to buy them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from stakes._words import number, plus_minus, short
from stakes.ranking.result import Ranking, plain

Verdict: TypeAlias = Literal["go on", "stop", "too close to call"]


@dataclass(frozen=True)
class Amount:
    """A mean over contexts, for one decision, in units of the loss."""

    value: float
    error: float
    """Its standard error, where the contexts are draws of those to come."""

    def __str__(self) -> str:
        return plus_minus(self.value, self.error)


@dataclass(frozen=True)
class Offer:
    """The first `size` rows of the ranking, bought together."""

    size: int
    worth: float
    """What their labels are expected to save together, for one decision."""
    error: float
    """Its standard error: over contexts, and of sampling where labels of a batch are sampled."""
    cost: float | None
    """Of all of them, in units of the loss."""
    decisions: float | None
    """How many decisions will be taken."""

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


@dataclass(frozen=True)
class Outlook:
    """Labels to buy, and whether to."""

    ranking: Ranking
    """Rows in the order in which to buy them."""
    today: Amount
    """The loss expected of one decision today."""
    most: Amount
    """The most that labels can save of it, however many."""
    offers: tuple[Offer, ...]
    """The first 1, 2, .. rows."""
    decisions: float | None
    budget: float | None
    advice: Verdict | None
    """None without costs or decisions."""
    sentences: tuple[str, ...]
    """The advice in words, and why."""

    @property
    def best(self) -> Offer | None:
        """The offer with the largest net saving, or without costs the last; None where there is none."""
        if not self.offers:
            return None
        nets = [offer.net for offer in self.offers if offer.net is not None]
        return self.offers[nets.index(max(nets))] if nets else self.offers[-1]

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON knows; an infinite number as None."""
        offers = [
            {**plain(vars(offer)), "net": plain(offer.net), "break_even": plain(offer.break_even)}
            for offer in self.offers
        ]
        rest = {"decisions": self.decisions, "budget": self.budget, "advice": self.advice}
        amounts = {"today": plain(vars(self.today)), "most": plain(vars(self.most))}
        said = {"sentences": list(self.sentences)}
        return {"ranking": self.ranking.to_dict(), **amounts, "offers": offers, **rest, **said}

    def __str__(self) -> str:
        lines = [
            f"Expected loss of a decision today: {self.today}",
            f"The most that labels can save of it: {self.most}",
            *(_line(offer) for offer in shown(self.offers)),
            *self.sentences,
        ]
        return "\n".join(lines)


def shown(offers: tuple[Offer, ...]) -> list[Offer]:
    """Sizes 1, 2, 4, .. and the last."""
    last = len(offers)
    return [offer for offer in offers if offer.size == last or offer.size & (offer.size - 1) == 0]


def _line(offer: Offer) -> str:
    label = "label saves" if offer.size == 1 else "labels save"
    text = f"{offer.size} {label} {Amount(offer.worth, offer.error)} a decision"
    if offer.net is not None and offer.net_error is not None:
        net = plus_minus(offer.net, offer.net_error)
        return f"{text}, {net} over {short(offer.decisions or 0.0)} decisions less a cost of {short(offer.cost or 0.0)}"
    return (
        text
        if offer.break_even is None
        else f"{text}; worth a cost of {short(offer.cost or 0.0)} from {_count(offer)} on"
    )


def _count(offer: Offer) -> str:
    count = offer.break_even or 0.0
    return "no number of decisions" if count == float("inf") else f"{number(count, 3)} decisions"
