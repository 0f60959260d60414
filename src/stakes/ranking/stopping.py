"""What an outlook says: the loss today, what labels would save, and whether to buy them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from stakes._utils.parallel import checked_jobs
from stakes._utils.tables import Host, on_host
from stakes._utils.text import number, plus_minus, short
from stakes.acquisition import expected_reduction, uncertainty
from stakes.acquisition.batch_states import has_batches, obstacle, start_batch
from stakes.acquisition.fallback import MAX_CONFIGURATIONS
from stakes.beliefs import Belief, GaussianBelief, NormalEnsemble, VectorNormalEnsemble, WarpedGaussianBelief
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss
from stakes.ranking.query import Progress, Question, ask, at_least_one
from stakes.ranking.rank import checked_purchase, described
from stakes.ranking.result import Ranking, log_reductions, plain
from stakes.ranking.top_k import Picks, Purchase, Work, alone, together

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


# ----------------------------------------------------------------------
# What the loss is expected to be today, and the most that labels could save of it, for one decision.
#
# Sizes: M contexts.


def expected_loss(question: Question) -> Amount:
    """E_c[h]: the expected loss of the best answers today."""
    each = on_host(uncertainty(question.loss, question.first())).astype(float)
    return _mean(each, question.weights)


def most_saved(question: Question) -> Amount:
    """The most that labels can save, however many there are and wherever they are bought.

    Under a Gaussian belief (also a warped one) they tell the function, and leave the noise of the outcome; under an
    ensemble they tell the member. Of any other belief no more is known than that they save all of the expected loss.
    """
    belief = question.first()
    if isinstance(belief, GaussianBelief | WarpedGaussianBelief):
        return _mean(on_host(expected_reduction(question.loss, _oracle(question, belief)))[0], question.weights)
    if has_batches(belief):
        shares = np.exp(on_host(_start(question, belief).log_most()).astype(float))  # [M]: p(c) times what is saved
        return Amount(float(shares.sum()), context_error(shares, question.weights))
    return expected_loss(question)


def context_error(shares: Host, weights: tuple[float, ...]) -> float:
    """The standard error of a mean over contexts, sum_c p(c) v_c, of `shares` [M] = p(c) v_c."""
    return float(np.sqrt(np.sum((shares - np.asarray(weights) * shares.sum()) ** 2)))


def _mean(values: Host, weights: tuple[float, ...]) -> Amount:
    shares = np.asarray(weights) * values
    return Amount(float(shares.sum()), context_error(shares, weights))


def _start(question: Question, belief: Belief) -> Any:
    return start_batch(question.loss, belief, question.weights, np.random.default_rng(0), MAX_CONFIGURATIONS)


def _oracle(question: Question, belief: GaussianBelief | WarpedGaussianBelief) -> Belief:
    """One candidate that tells the function at every context: rho_c = (variance without noise) / (variance)."""
    function = _gaussian(question.with_target("latent").first())
    label = _gaussian(belief)
    known = np.clip(on_host(function.variance), 0.0, on_host(label.variance))  # [M]
    told = GaussianBelief(on_host(label.mean), on_host(label.variance), np.ones(1), np.sqrt(known)[None, :])
    return told if isinstance(belief, GaussianBelief) else WarpedGaussianBelief(told, belief.warp)


def _gaussian(belief: Any) -> GaussianBelief:
    latent: GaussianBelief = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
    return latent


# ----------------------------------------------------------------------
# To go on, or to stop: stopping is right only if no batch within the budget pays, and larger ones cannot.


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


# ----------------------------------------------------------------------
# Is the next label worth its cost? What batches of every size would save, against what they cost.
#
# Sizes: M contexts, n rows chosen.


def outlook(
    model: Any,
    loss: AnyLoss,
    pool: Any,
    contexts: Any = None,
    n: int = 8,
    *,
    decisions: float | None = None,
    costs: Any = None,
    budget: float | None = None,
    pending: Sequence[int] = (),
    context_weights: Any = None,
    target: Literal["label", "latent"] = "label",
    classes: Sequence[Any] | None = None,
    shortlist: int | None = None,
    seed: int = 0,
    max_contexts: int = 1000,
    chunk: int = 4096,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Outlook:
    """What the best 1, 2, .. n labels would save together, and whether that is worth their cost.

    `decisions` is how many decisions will be taken with the model; `costs` is what a label costs, one number or one for
    each row, in units of the loss. With both, the advice is to go on if any of the batches saves more than it costs,
    and to stop only if none does and larger ones cannot: no number of labels saves more than `Outlook.most`. All else
    is as in `rank`. Forests of a real target have no joint batches: rows are then ranked alone, and one offer is made.
    """
    question, said = ask(model, loss, pool, contexts, context_weights, target, classes, seed, max_contexts, progress)
    alike = costs is not None and np.ndim(costs) == 0
    prices = np.broadcast_to(float(costs), question.size) if alike else costs
    if decisions is not None and not 0 < decisions < np.inf:
        raise StakesError(f"decisions must be a positive number, how often the model will be used; got {decisions!r}")
    purchase = checked_purchase(question.size, at_least_one("n", n), prices, budget, pending, shortlist)
    picks = _picked(question, purchase, Work(at_least_one("chunk", chunk), checked_jobs(n_jobs)))
    ranking = described(question, purchase, picks, chunk, [*said, *_member_sentences(question, picks)])
    offers = _offers(question, purchase, picks, decisions)
    today, most = expected_loss(question), most_saved(question)
    advice = Advice(None, ()) if decisions is None or costs is None else advised(offers, most, purchase, decisions)
    return Outlook(ranking, today, most, offers, decisions, budget, advice.verdict, advice.sentences)


def _picked(question: Question, purchase: Purchase, work: Work) -> Picks:
    """Rows chosen together where the belief has batches that take seconds, else alone."""
    belief = question.first(joint=True)
    slow = isinstance(belief, NormalEnsemble | VectorNormalEnsemble)
    return (alone if slow or obstacle(belief) is not None else together)(question, purchase, work)


def _offers(question: Question, purchase: Purchase, picks: Picks, decisions: float | None) -> tuple[Offer, ...]:
    """One for each number of rows from the top; the first alone where joint worths are not known."""
    if len(picks.rows) == 0:
        return ()
    unit = float(np.exp(picks.log_scale))
    if picks.errors is None:
        logs = log_reductions(question, question.belief(picks.rows[:1]))[0]
        joint, errors = picks.worths[:1] * unit, np.asarray([context_error(np.exp(logs), question.weights)])
    else:
        joint, errors = np.cumsum(picks.worths), picks.errors
    costs = _costs(purchase, picks.rows)
    return tuple(
        Offer(size, worth, error, None if costs is None else float(costs[size - 1]), decisions)
        for size, (worth, error) in enumerate(zip(joint.tolist(), errors.tolist(), strict=True), 1)
    )


def _member_sentences(question: Question, picks: Picks) -> list[str]:
    """A caution on batches under ensembles, which have no more to tell than which member is right."""
    members = getattr(question.first(), "member_weights", None)
    if members is None or picks.errors is None:
        return []
    return [
        f"The model is known by {len(members)} members. Several labels tell most of them apart, and then seem to tell "
        "all there is to know: the worth of larger batches is an upper estimate."
    ]


def _costs(purchase: Purchase, rows: Host) -> Host | None:
    """[n]: what the first 1, 2, .. n rows cost together."""
    return None if purchase.prices is None else np.cumsum(purchase.prices[rows])
