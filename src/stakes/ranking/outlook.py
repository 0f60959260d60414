"""What batches of every size would save, beside what they cost: the offers of `outlook`.

A model that is wrong in a way that it does not know of is wrong about what labels are worth, too. Whatever models
believe, their mean loss falls with n labels towards what cannot be learned, about as L + c / n; then b labels drawn at
random beside n save the share b / (n + b) of what labels can save at all. Labels are not drawn at random, though: the
rows that are worth most come first, so that the first of a batch save more than their share of it. By a learning curve

    curve = rate * today * (b / (n + b))^0.8,     rate: the share of today's expected loss that labels can save at all.

Where the model is known by members (trees, networks, copies), a few labels tell which *member* is right, and joint
worths promise the loss of certainty; worths with the truth left out say less, but after a few labels too few members
are left to act on. The promise is the curve and a share of these worths. Of members that vote or predict numbers it is
no more than the labels would save if one of them were right. Members that give probabilities differ less from one
another than from the truth: of them it is no more than today's loss.

A Gaussian belief says itself how fast it learns, but expects to lose less than it does lose: its promise is what it
says and a fifth more, and no more than labels can save at most; all of these are corrected by what it lost on its own
labels, each left out, where it knows that. With n labels, of which it lost x on average where it expected e, they are

    ((n x + 10 e) / ((n + 10) e))^0.7

times as large: ten labels as expected are added, and the power is what fits 14 tables of numbers.

The standard error of a promise covers contexts, sampling and members, and that the model is wrong: that part is 1.25
times the promise, or where it is larger 1.25 times rate * today * (b / (n + b))^0.5, since a model that sees little
left to learn may be wrong about that. (The root, as the spread of a sum of b worths grows with the root of b.) Shares,
rates and powers are what fits 32 tables (docs/promises.md); no model can know them from a few labels. The rate of
classes is one for each bit of a class: the more classes there are, the more of the loss is for want of labels.

Sizes: M contexts, n rows chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from stakes._utils.arguments import TIES, Progress, RandomState, generator, is_positive
from stakes._utils.array import on_host
from stakes._utils.markup import Markup
from stakes._utils.tables import Host
from stakes._utils.text import by_members, number, plus_minus, plus_minus_explained, short, sizes_shown
from stakes.acquisition import expected_reduction, uncertainty
from stakes.acquisition.batch_states import has_batches, obstacle, start_batch
from stakes.acquisition.batches import log_most
from stakes.acquisition.forms import n_members, simplest
from stakes.acquisition.honest import honest_prefixes
from stakes.acquisition.scores import bayes_prediction
from stakes.beliefs import (
    Belief,
    CategoricalEnsemble,
    Distribution,
    GaussianBelief,
    GaussianMixtureBelief,
    NormalEnsemble,
    VectorGaussianBelief,
    VectorNormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, PerContext, SquaredError
from stakes.models.inspection import labels_left_out
from stakes.ranking.labels import open_rows
from stakes.ranking.query import CONFIGURATIONS, Query, make_query
from stakes.ranking.rank import choose, log_reductions
from stakes.ranking.result import Note, Ranking, plain
from stakes.ranking.stopping import Amount, Offer, Verdict, advised

MEMBER_SHARE, SURE_SHARE, GAUSSIAN_SHARE = 1.0, 1 / 3, 1.2
"""What is promised of what a belief says: of members that give probabilities, none of them the truth; of members that
vote or predict numbers; of a Gaussian belief."""
CLASS_RATE, MEMBER_RATE, GAUSSIAN_RATE = 0.12, 0.25, 0.4
"""The share of today's expected loss that labels can save in the end: of members, for each bit of a class, log2(C); of
members without classes; of a Gaussian belief."""
POWER, SPREAD_POWER = 0.8, 0.5
"""Of the share b / (n + b) of that which b labels save beside n, and of how uncertain that is: 1 would be for labels at
random, and it is less where the best come first."""
SPREAD = 1.25
"""The standard deviation of what came about what was promised, over the promise."""
TOGETHER = "together"
"""What the rows of an outlook are ranked by where the model is known by members: the worth with all rows above."""
_WORTHS = ("worth", "gain", TOGETHER)  # what rows are ranked by, as far as it is a worth
_IN_UNITS = {"joint worth": "worth", "sampling error": "error"}  # notes with a value that goes with worths
_MOST_DRAWS, _FEWEST_DRAWS = 800, 8  # labels of a batch, of all members and of each, where the truth is left out
_NUMBERS = 2**26  # that these may take: half a second or so
AS_EXPECTED = 10.0
"""Labels that are taken to have lost what was expected, beside those that there are."""
LEFT_OUT_POWER = 0.7
FURTHEST = 4.0
"""No factor is larger, nor smaller than one over it."""
_NODES, _INTEGRATED = 256, 200  # numbers for each pair of a member and a context, where those are integrated


@dataclass(frozen=True)
class Outlook:
    """Which labels to buy, and whether to: what `outlook` returns.

    Attributes:
        ranking: Rows in the order in which to buy them.
        today: The loss expected of one decision today.
        most: The most that labels can save of it, however many.
        offers: The first 1, 2, .. rows.
        decisions: How many decisions will be taken, as given.
        budget: What may be spent, as given.
        advice: "go on", "stop" or "too close to call"; None without costs or decisions.
        sentences: The advice as text, and why.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import SquaredError, outlook
        >>> X = np.linspace(-1.0, 1.0, 30)[:, None]
        >>> model = BayesianRidge().fit(X[:10], np.sin(9 * X[:10, 0]))
        >>> found = outlook(model, SquaredError(), X[10:], n=3)
        >>> [offer.size for offer in found.offers], found.advice  # no advice without costs and decisions
        ([1, 2, 3], None)
    """

    ranking: Ranking
    today: Amount
    most: Amount
    offers: tuple[Offer, ...]
    decisions: float | None
    budget: float | None
    advice: Verdict | None
    sentences: tuple[str, ...]

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
        amounts = {"today": plain(self.today._asdict()), "most": plain(self.most._asdict())}
        sentences = {"sentences": list(self.sentences)}
        return {"ranking": self.ranking.to_dict(), **amounts, "offers": offers, **rest, **sentences}

    def __str__(self) -> str:
        condition = by_members(offer.joint for offer in self.offers)
        lines = [
            f"Expected loss of a decision today: {plus_minus_explained(*self.today)}",
            f"The most that labels can save of it{condition}: {self.most}",
            *(_line(offer) for offer in shown(self.offers)),
            *self.sentences,
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from stakes._utils.notebook import Curve, advice_box, cell, curves, folded, lines, table

        condition = by_members(offer.joint for offer in self.offers)
        head, rows = _offers_table(self.offers)
        worths = [
            (offer.size, offer.worth, offer.worth - 2.0 * offer.error, offer.worth + 2.0 * offer.error)
            for offer in self.offers
        ]
        drawn = [Curve("what labels save", worths)]
        if self.decisions is not None and all(offer.cost is not None for offer in self.offers):
            each = [(offer.size, (offer.cost or 0.0) / self.decisions) for offer in self.offers]
            drawn.append(Curve("what they cost", [(size, cost, cost, cost) for size, cost in each]))
        sentences = [
            f"Expected loss of a decision today: {plus_minus_explained(*self.today)}",
            f"The most that labels can save of it{condition}: {self.most}",
        ]
        return cell(
            advice_box(self.sentences),
            lines(sentences),
            table(head, rows, numbers=range(len(head))) if rows else "",
            curves(drawn, "labels", "Saved of a decision"),
            folded("The rows, best first", Markup(self.ranking._repr_html_())) if len(self.ranking) else "",
        )


def shown(offers: tuple[Offer, ...]) -> list[Offer]:
    """Sizes 1, 2, 4, .., the last, and the one that saves most beyond its cost, which the advice names."""
    sizes = sizes_shown([offer.size for offer in offers], [offer.net for offer in offers])
    return [offer for offer in offers if offer.size in sizes]


def _offers_table(offers: tuple[Offer, ...]) -> tuple[list[str], list[list[str]]]:
    """What `_line` says of each offer, in columns."""
    head, rows = ["labels", "saved of a decision"], list[list[str]]()
    last = offers[-1] if offers else None
    if last is not None and last.cost is not None:
        over = "pays from" if last.net is None else f"net over {short(last.decisions or 0.0)} decisions"
        head += ["cost", over]
    for offer in shown(offers):
        row = [str(offer.size), str(Amount(offer.worth, offer.error))]
        if offer.cost is not None:
            row += [
                short(offer.cost),
                _count(offer) if offer.net is None else plus_minus(offer.net, offer.net_error or 0.0),
            ]
        rows.append(row)
    return head, rows


def _line(offer: Offer) -> str:
    label = "label saves" if offer.size == 1 else "labels save"
    text = f"{offer.size} {label} {Amount(offer.worth, offer.error)} a decision"
    if offer.net is not None and offer.decisions is not None:
        total = plus_minus(offer.decisions * offer.worth, offer.decisions * offer.error)
        costs = "costs" if offer.size == 1 else "cost"
        return f"{text}, {total} over {short(offer.decisions)} decisions, and {costs} {short(offer.cost or 0.0)}"
    return (
        text
        if offer.break_even is None
        else f"{text}; worth a cost of {short(offer.cost or 0.0)} from {_count(offer)} on"
    )


def _count(offer: Offer) -> str:
    count = offer.break_even or 0.0
    return "no number of decisions" if count == float("inf") else f"{number(count, 3)} decisions"


def outlook(
    model: Any,
    loss: AnyLoss,
    pool: Any,
    *,
    y: Any = None,
    labelled: tuple[Any, Any] | None = None,
    contexts: Any = None,
    n: int = 8,
    decisions: float | None = None,
    costs: Any = None,
    budget: float | None = None,
    context_weights: Any = None,
    target: Literal["label", "latent"] = "label",
    classes: Sequence[Any] | None = None,
    shortlist: int | None = None,
    pending: Sequence[int] = (),
    random_state: RandomState = 0,
    max_contexts: int | None = None,
    max_rows: int | None = None,
    chunk: int = 4096,
    n_jobs: int | None = None,
    client: Any = None,
    progress: bool | Progress = False,
) -> Outlook:
    """What the best 1, 2, .. n labels would save together, and whether that is worth their cost.

    With `decisions` and `costs` there is an advice: to go on if some batch saves more than it costs, and to stop only
    if none does and larger batches cannot either, because no number of labels saves more than `Outlook.most`.

    If the model is known by members (a forest, an ensemble), what labels save is estimated without assuming that one
    of the members is the truth (`stakes.honest_reduction`), and combined with a learning curve from the labels so far
    (docs/promises.md). Rows are still chosen for their joint worth. The errors include that the model may be wrong. For
    forests of a real target there are no joint batches: rows are ranked alone, and one offer is made.

    Args:
        model: A fitted model, as in `rank`.
        loss: What a wrong answer costs.
        pool: [N, p]: rows that could be labelled, as in `rank`.
        y: [N]: labels of the rows of `pool` with gaps in place, as in `rank`.
        labelled: The rows and labels that the model was fitted to, as in `rank`.
        contexts: [M, p]: where decisions will be made; without them the pool stands for the future.
        n: How many labels to look ahead.
        decisions: How many decisions will be taken with the model.
        costs: What a label costs, one number or one for each row, in units of the loss.
        budget: What all labels may cost together.
        context_weights: [M]: how often each context comes up.
        target: "label" or "latent", as in `rank`.
        classes: All classes in the order of the loss, where the model has not seen them all.
        shortlist: How many rows are looked at together, as in `rank`.
        pending: Positions of rows whose labels are on their way.
        random_state: A whole number or a `numpy.random.Generator`.
        max_contexts: The most rows of the pool that stand for the future, as in `rank`.
        max_rows: The most rows that are scored, as in `rank`.
        chunk: How many rows are read and scored at a time.
        n_jobs: Workers that score them, as in `rank`.
        client: Of a Dask cluster whose workers open the pool themselves, as in `rank`.
        progress: True shows a line on the error stream; a callable is called with what is being done and the share
            that is done.

    Returns:
        The rows in the order in which to buy them, what they save, and the advice.

    Raises:
        StakesError: If an argument is refused.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import SquaredError, outlook
        >>> X = np.linspace(-1.0, 1.0, 30)[:, None]
        >>> model = BayesianRidge().fit(X[:10], np.sin(9 * X[:10, 0]))
        >>> ahead = outlook(model, SquaredError(), X[10:], n=4, costs=0.001, decisions=1000)
        >>> ahead.advice
        'go on'
        >>> [offer.size for offer in ahead.offers]
        [1, 2, 3, 4]
    """
    if decisions is not None and not is_positive(decisions):
        raise StakesError(f"decisions must be a positive number, how often the model will be used; got {decisions!r}")
    asked: dict[str, Any] = {
        "labelled": labelled,
        "contexts": contexts,
        "n": n,
        "costs": costs,
        "budget": budget,
        "context_weights": context_weights,
        "target": target,
        "classes": classes,
        "shortlist": shortlist,
        "pending": pending,
        "random_state": random_state,
        "max_contexts": max_contexts,
        "max_rows": max_rows,
        "chunk": chunk,
        "n_jobs": n_jobs,
        "progress": progress,
    }
    if y is not None:
        rows = open_rows(pool, y, loss, labelled)
        found = outlook(model, loss, rows.pool, decisions=decisions, **rows.arguments(asked))
        return replace(found, ranking=rows.renumbered(found.ranking, contexts is None))
    return _looked_ahead(make_query(model, loss, pool, client=client, **asked), decisions, budget)


def _looked_ahead(query: Query, decisions: float | None, budget: float | None) -> Outlook:
    ranking, errors = choose(query)
    today, most = expected_loss(query), most_saved(query)
    offers = _offers(query, ranking, errors, decisions, today, most)
    ranking = _with_members(query, ranking, offers)
    share, known = share_of(query.first()), left_out(query)
    if all(offer.joint is None for offer in offers):
        ranking = scaled(ranking, share * left_out_factor(query))
    if offers and share != 1.0:
        ranking = replace(ranking, notes=(*ranking.notes, Note("a fifth more", {"share": share})))
    if offers and known is not None:
        values = {"ratio": known.lost / known.expected, "labels": known.labels, "factor": known.factor}
        ranking = replace(ranking, notes=(*ranking.notes, Note("labels left out", values)))
    verdict: Verdict | None = None
    sentences: tuple[str, ...] = ()
    if decisions is not None and query.costs is not None:
        free = np.delete(query.costs, list(query.pending))
        verdict, sentences = advised(offers, most, free, budget, decisions)
    return Outlook(ranking, today, most, offers, decisions, budget, verdict, sentences)


def _offers(
    query: Query, ranking: Ranking, errors: Host | None, decisions: float | None, today: Amount, most: Amount
) -> tuple[Offer, ...]:
    """One for each number of rows from the top; the first alone where joint worths are not known."""
    if len(ranking) == 0:
        return ()
    rows = np.asarray(ranking.indices, dtype=np.intp)
    worths = np.cumsum([reason.worth for reason in ranking.reasons])
    if errors is None:
        worths, errors = _joint_worths(query, rows) or _single_worth(query, ranking)
    worths, errors, joint = _promises(query, rows[: len(worths)], worths, errors, today, most)
    costs = None if query.costs is None else np.cumsum(query.costs[rows])
    return tuple(
        Offer(size, worth, error, None if costs is None else float(costs[size - 1]), decisions, together)
        for size, (worth, error, together) in enumerate(zip(worths.tolist(), errors.tolist(), joint, strict=True), 1)
    )


def _promises(
    query: Query, rows: Host, worths: Host, errors: Host, today: Amount, most: Amount
) -> tuple[Host, Host, list[float | None]]:
    """[n] each: promises of the first rows, their errors, and worths if a member is right (None without members).

    Worths and errors are given as the model sees them.
    """
    belief, factor = query.first(), left_out_factor(query)
    worths, errors = factor * worths, factor * errors
    joint = worths
    labels = None if query.labels is None else query.labels + len(query.pending)
    if n_members(belief) < 2:
        share = share_of(belief)
        return *of_gaussian(worths, errors, today.value, most.value, labels, share), [None] * len(rows)
    if (found := _honest_worths(query, rows)) is not None:
        sizes, own, beside = found
        worths, errors = _with_free_disposal(sizes, factor * own, factor * beside, joint)
    if _is_mixture(belief):
        known = joint.tolist() if found is not None else [None] * len(rows)
        return *of_gaussian(worths, errors, today.value, most.value, labels), known
    honest = (worths, errors) if found is not None else None
    bound = np.maximum(joint, today.value) if are_probabilities(belief) else joint
    promised = of_members(honest, joint, today.value, labels, rate_of(belief), member_share_of(belief), bound)
    return *promised, joint.tolist()


def promise_of_one(query: Query, row: int) -> Amount:
    """What the label of the row at one position of the pool is promised to save, beside those that are pending.

    What the contexts lose today, and what labels save of it at most, is computed once for all queries that share their
    `prepared`.
    """
    today, most = query.prepared.setdefault("today", None) or (expected_loss(query), most_saved(query))
    query.prepared["today"] = today, most
    rows = np.asarray([row], dtype=np.intp)
    beside = _joint_worths(query, rows) if query.pending else None
    if beside is None:
        each = np.exp(log_reductions(query, query.belief(rows))[0])  # [M]: p(c) times what is saved
        beside = np.asarray([each.sum()]), np.asarray([_error(each, query.weights)])
    worths, errors, _ = _promises(query, rows, beside[0], beside[1], today, most)
    return Amount(float(worths[0]), float(errors[0]))


def rate_of(belief: Belief) -> float:
    """The share of today's expected loss that labels can save in the end, where the model is known by members."""
    belief = simplest(belief)
    return class_rate(belief.n_classes) if isinstance(belief, CategoricalEnsemble | VoteEnsemble) else MEMBER_RATE


def member_share_of(belief: Belief) -> float:
    """What is promised of what members say: less of those that vote, or know numbers alone, as they are too sure."""
    return MEMBER_SHARE if are_probabilities(belief) else SURE_SHARE


def are_probabilities(belief: Belief) -> bool:
    """Whether the model is known by members that give probabilities."""
    return isinstance(simplest(belief), CategoricalEnsemble)


def class_rate(classes: int) -> float:
    """The same for that many classes, at most 1."""
    return min(CLASS_RATE * math.log2(classes), 1.0)


def of_members(
    honest: tuple[Host, Host] | None,
    joint: Host,
    today: float,
    labels: int | None,
    rate: float,
    share: float = MEMBER_SHARE,
    bound: Host | None = None,
) -> tuple[Host, Host]:
    """[n], [n]: promises of 1, 2, .. n labels of a model that is known by members, and standard errors.

    Args:
        honest: Worths [n] where no member is the truth, and errors of members and contexts; None where not known.
        joint: [n]: worths if one of the members is right.
        today: The expected loss of a decision.
        labels: How many labels the model has or waits for; None where that is not known.
        rate: Of the curve, as `rate_of` has it.
        share: Of what members say, as `member_share_of` has it.
        bound: [n]: above which no promise is; None: `joint`.
    """
    nothing = np.zeros(len(joint))
    believed = honest or (joint if labels is None else nothing, nothing)
    beside = curve(rate, today, labels, len(joint))
    worths = np.clip(share * believed[0] + beside, 0.0, np.maximum(joint if bound is None else bound, 0.0))
    worths = np.maximum.accumulate(worths)
    return worths, np.hypot(share * believed[1], wrong_model(worths, rate, today, labels))


def share_of(belief: Belief) -> float:
    """What is promised of what a belief says that its labels save, where it has no members: of a Gaussian one more."""
    gaussian = GaussianBelief | VectorGaussianBelief | GaussianMixtureBelief | WarpedGaussianBelief
    return GAUSSIAN_SHARE if isinstance(simplest(belief), gaussian) else 1.0


def of_gaussian(
    worths: Host, errors: Host, today: float, most: float, labels: int | None, share: float = GAUSSIAN_SHARE
) -> tuple[Host, Host]:
    """[n], [n]: promises of a Gaussian belief and standard errors, from those of contexts and sampling.

    `most` is what labels can save at most; a worth above it, as sampling may have it, stays.
    """
    promised = np.minimum(share * worths, np.maximum(worths, most))
    return promised, np.hypot(share * errors, wrong_model(promised, GAUSSIAN_RATE, today, labels))


def wrong_model(promised: Host, rate: float, today: float, labels: int | None) -> Host:
    """[n]: the standard error of promises of 1, 2, .. n labels for that the model may be wrong."""
    return SPREAD * np.maximum(np.abs(promised), curve(rate, today, labels, len(promised), SPREAD_POWER))


def curve(rate: float, today: float, labels: int | None, count: int, power: float = POWER) -> Host:
    """[n]: what 1, 2, .. n labels save by a learning curve beside `labels`; 0 where these are not known."""
    sizes = np.arange(1, count + 1)
    return np.zeros(count) if labels is None else np.asarray(rate * today * (sizes / (labels + sizes)) ** power)


def _honest_worths(query: Query, rows: Host) -> tuple[list[int], Host, Host] | None:
    """What the first 1, 2, 4, .. and all rows are worth where no member is the truth: sizes, worths, standard errors.

    None where the model has no members, or where it would take long.
    """
    pending, count = np.asarray(query.pending, dtype=np.intp), len(rows)
    belief = query.belief(np.concatenate([pending, rows]), joint=len(pending) + count > 1)
    sizes = sorted({count, *(2**power for power in range(count.bit_length()))})
    draws = _draws(query, belief, len(sizes))
    if draws is None:
        return None
    places = range(len(pending) + count)
    given = places[: len(pending)], query.weights, draws, sizes
    try:
        found = honest_prefixes(query.loss, belief, places[len(pending) :], *given)
    except FloatingPointError:  # a user's own score that is infinite for a class that the others rule out
        return None
    if found is None:
        return None
    return sizes, on_host(found.reduction).astype(float), on_host(found.error).astype(float)


def _with_free_disposal(sizes: list[int], worths: Host, errors: Host, joint: Host) -> tuple[Host, Host]:
    """[n], [n]: worths and errors of the first 1, 2, .. n labels, of which no more need be used than are of use.

    So more labels are worth no less than fewer, and none less than nothing: where they would leave too few members to
    act on, the answers of fewer labels stay. Of a few members the others are so wrong before any label that they seem
    to gain more than if one of them were right: no worth is above the `joint` one [n].
    """
    each = {size: (min(w, joint[size - 1]), e) for size, w, e in zip(sizes, worths, errors, strict=True)}
    found, best, error = [], 0.0, float(errors[0])
    for size in range(1, len(joint) + 1):
        worth, spread = each.get(size, (best, error))
        if worth > best:
            best, error = float(worth), float(spread)
        found.append((best, error))
    return np.asarray([value for value, _ in found]), np.asarray([value for _, value in found])


def _is_mixture(belief: Belief) -> bool:
    """Whether members are hypotheses of a mixture, also a warped one."""
    return isinstance(simplest(belief), GaussianMixtureBelief | WarpedGaussianBelief)


def _draws(query: Query, belief: Belief, count: int) -> int | None:
    """How many labels are drawn from each member for each of `count` batches; None without members, or for too long."""
    if (members := n_members(belief)) < 2:
        return None
    loss: Any = query.loss
    losses = loss.each if isinstance(loss, PerContext) else (loss,)
    statistics = _NODES if any(isinstance(each, DistributionLoss) for each in losses) else 2
    numbers = count * members * belief.n_contexts * statistics
    if _is_mixture(belief):
        plain = all(type(each) is SquaredError for each in losses)
        numbers *= 2 * members if plain else _INTEGRATED * members
    draws = min(_MOST_DRAWS // members + _FEWEST_DRAWS, _NUMBERS // numbers)
    return draws if draws >= 2 else None


def _single_worth(query: Query, ranking: Ranking) -> tuple[Host, Host]:
    """[1], [1]: what the first row is worth, and its standard error."""
    row = ranking.indices[0]
    known = query.prepared.get(("reductions", row))  # by whoever named the contexts that it helps
    logs = log_reductions(query, query.belief(np.asarray([row])))[0] if known is None else known
    worth = np.asarray([ranking.reasons[0].worth], dtype=float) * np.exp(ranking.log_scale)
    return worth, np.asarray([_error(np.exp(logs), query.weights)])


def _joint_worths(query: Query, rows: Host) -> tuple[Host, Host] | None:
    """[n], [n]: what the first 1, 2, .. n rows are worth together, and standard errors; None where that is not known.

    For rows that were chosen alone, because choosing them together takes long.
    """
    pending = np.asarray(query.pending, dtype=np.intp)
    belief = query.belief(np.concatenate([pending, rows]), joint=True)
    if isinstance(belief, NormalEnsemble | VectorNormalEnsemble) or obstacle(belief) is not None:
        return None
    rng = generator(query.seed, TIES)
    batch: Any = start_batch(query.loss, belief, query.weights, rng, CONFIGURATIONS)
    for place in range(len(pending)):
        batch.add(place)
    before = np.exp(on_host(batch.log_contexts()).astype(float)) if len(pending) else 0.0
    worths, errors = [], []
    for place in range(len(pending), len(pending) + len(rows)):
        error = batch.add(place)  # relative, of sampling
        each = np.exp(on_host(batch.log_contexts()).astype(float)) - before  # [M]: p(c) times what is saved
        worths.append(float(each.sum()))
        errors.append(float(np.hypot(error * np.exp(batch.log_joint()), _error(each, query.weights))))
    return np.asarray(worths), np.asarray(errors)


def _with_members(query: Query, ranking: Ranking, offers: tuple[Offer, ...]) -> Ranking:
    """The ranking with worths for which no member is the truth, and a note; or with a note that one of them is."""
    count, before = n_members(query.first()), len(query.notes)
    if count < 2 or not offers or (offers[-1].joint is None and len(offers) < min(2, len(ranking))):
        return ranking
    last = offers[-1]
    note = Note("members", {"count": count})
    if last.joint is not None:
        values = {"count": count, "size": last.size, "joint": last.joint}
        used = next(offer.size for offer in offers if offer.worth == last.worth) if last.worth > 0 else 0
        note = Note("left out", {**values, "used": used})
        if query.labels is not None and not _is_mixture(query.first()):
            note = Note("learning curve", {**values, "labels": query.labels, "worth": last.worth})
    kept = [
        each
        for each in ranking.notes
        if last.joint is None or each.kind not in ("joint worth of members", "sampling error")
    ]
    ranking = replace(ranking, notes=(*kept[:before], note, *kept[before:]))
    return ranking if last.joint is None or len(offers) < len(ranking) else _with_worths(ranking, offers)


def scaled(ranking: Ranking, share: float) -> Ranking:
    """The ranking with that share of its worths; what rows are ranked by in their place stays."""
    if ranking.ranked_by not in _WORTHS:
        return ranking
    notes = tuple(
        note._replace(values={**note.values, _IN_UNITS[note.kind]: share * note.values[_IN_UNITS[note.kind]]})
        if note.kind in _IN_UNITS
        else note
        for note in ranking.notes
    )
    reasons = tuple(
        replace(
            reason,
            worth=None if reason.worth is None else share * reason.worth,
            worth_per_cost=None if reason.worth_per_cost is None else share * reason.worth_per_cost,
        )
        for reason in ranking.reasons
    )
    return replace(ranking, scores=tuple(share * score for score in ranking.scores), reasons=reasons, notes=notes)


def _with_worths(ranking: Ranking, offers: tuple[Offer, ...]) -> Ranking:
    """The ranking with what each row is worth together with those above it: what one adds to others is not its own."""
    scores = [offer.worth / (offer.cost or 1.0) if ranking.per_cost else offer.worth for offer in offers]
    reasons = tuple(replace(reason, worth=None, worth_per_cost=None) for reason in ranking.reasons)
    return replace(ranking, scores=tuple(scores), ranked_by=TOGETHER, reasons=reasons)


def expected_loss(query: Query) -> Amount:
    """E_c[h]: the expected loss of the best answers today, by labels left out where they are known."""
    each = on_host(uncertainty(query.loss, query.first())).astype(float)
    return _mean(left_out_factor(query) * each, query.weights)


def most_saved(query: Query) -> Amount:
    """The most that labels can save, however many there are and wherever they are bought.

    Under a Gaussian belief (also a warped one) they reveal the function, and leave the noise of the outcome; under
    an ensemble they reveal the member, and under a mixture the hypothesis and the function. By the learning curve of an
    ensemble they may save more (`most_of_members`). Of any other belief no more is known than that they save all of the
    expected loss. Labels left out count as in `expected_loss`.
    """
    belief, factor = query.first(), left_out_factor(query)
    if isinstance(_gaussian(belief), GaussianBelief):
        return _mean(factor * on_host(expected_reduction(query.loss, _oracle(query, belief)))[0], query.weights)
    if isinstance(mixture := simplest(belief), GaussianMixtureBelief):
        return _mean(factor * _known_function(query, mixture), query.weights)
    if has_batches(belief):
        logs = on_host(log_most(query.loss, belief, query.weights)).astype(float)
        shares = factor * np.exp(logs)  # [M]: p(c) times the most
        right = Amount(float(shares.sum()), _error(shares, query.weights))
        if query.labels is None or not are_probabilities(belief):
            return right
        return most_of_members(right, expected_loss(query), rate_of(belief))
    return expected_loss(query)


def most_of_members(right: Amount, today: Amount, rate: float) -> Amount:
    """The most that labels save of members that give probabilities: what they promise of as many labels as one likes.

    Args:
        right: What it would save to know which of them is right.
        today: The expected loss of a decision.
        rate: Of the curve, as `rate_of` has it.
    """
    value = min(MEMBER_SHARE * right.value + rate * today.value, today.value)
    error = np.hypot(MEMBER_SHARE * right.error, rate * today.error)
    return Amount(value, float(error)) if value > right.value else right


def _known_function(query: Query, mixture: GaussianMixtureBelief) -> Host:
    """[M]: what it saves to know the hypothesis, and the function under each."""
    function = replace(query, target="latent").first()
    function = function if isinstance(function, GaussianMixtureBelief) else mixture
    worth = np.exp(on_host(log_most(query.loss, mixture.marginals(), None)).astype(float)) * mixture.n_contexts
    for s in range(mixture.n_hypotheses):
        oracle = _revealed(mixture.hypothesis(s), function.hypothesis(s))
        worth = worth + float(mixture.weights[s]) * on_host(expected_reduction(query.loss, oracle))[0]
    return np.asarray(worth)


def _error(shares: Host, weights: tuple[float, ...]) -> float:
    """The standard error of a mean over contexts, sum_c p(c) v_c, of `shares` [M] = p(c) v_c."""
    return float(np.sqrt(np.sum((shares - np.asarray(weights) * shares.sum()) ** 2)))


def _mean(values: Host, weights: tuple[float, ...]) -> Amount:
    shares = np.asarray(weights) * values
    return Amount(float(shares.sum()), _error(shares, weights))


def _oracle(query: Query, belief: Any) -> Belief:
    """One candidate that reveals the function at every context: rho_c = (variance without noise) / (variance)."""
    oracle = _revealed(_gaussian(belief), _gaussian(replace(query, target="latent").first()))
    return WarpedGaussianBelief(oracle, belief.warp) if isinstance(belief, WarpedGaussianBelief) else oracle


def _revealed(label: GaussianBelief, function: GaussianBelief) -> GaussianBelief:
    """The candidate for a belief about labels, and that about the function."""
    known = np.clip(on_host(function.variance), 0.0, on_host(label.variance))  # [M]
    return GaussianBelief(on_host(label.mean), on_host(label.variance), np.ones(1), np.sqrt(known)[None, :])


def _gaussian(belief: Any) -> Any:
    return belief.latent if isinstance(belief, WarpedGaussianBelief) else simplest(belief)


# How much more a model loses than it expects, by its own labels, each left out.


class LeftOut(NamedTuple):
    """Mean losses on labels that were left out."""

    lost: float
    expected: float
    labels: int

    @property
    def ratio(self) -> float:
        """How many times as much was lost as expected, with AS_EXPECTED labels beside."""
        return (self.labels * self.lost / self.expected + AS_EXPECTED) / (self.labels + AS_EXPECTED)

    @property
    def factor(self) -> float:
        """By which expected losses and worths are multiplied."""
        return float(min(max(self.ratio**LEFT_OUT_POWER, 1.0 / FURTHEST), FURTHEST))


def left_out(query: Query) -> LeftOut | None:
    """What the model of a query lost on labels left out, and expected to lose, under its loss.

    None where the model does not know, where the loss is another one in each row, a score of distributions, or not
    counted from 0, and where what is asked for is not a label.
    """
    if "labels left out" not in query.prepared:
        query.prepared["labels left out"] = _left_out(query)
    found: LeftOut | None = query.prepared["labels left out"]
    return found


def left_out_factor(query: Query) -> float:
    """Its factor; 1 where nothing is known."""
    found = left_out(query)
    return 1.0 if found is None else found.factor


def _left_out(query: Query) -> LeftOut | None:
    if query.target != "label" or isinstance(query.loss, PerContext):
        return None
    if (known := labels_left_out(query.model)) is None:
        return None
    mean, variance, labels = (np.asarray(each, dtype=float) for each in known)
    belief = GaussianBelief(mean, np.maximum(variance, np.finfo(float).tiny), np.ones(1), np.zeros((1, len(mean))))
    try:
        answers = bayes_prediction(query.loss, belief)
        if isinstance(answers, Distribution):
            return None
        expected = on_host(uncertainty(query.loss, belief)).astype(float)
        lost = np.asarray(on_host(query.loss(labels, on_host(answers))), dtype=float)
    except FloatingPointError:  # an expected loss is infinite
        return None
    if not (np.isfinite(expected).all() and np.isfinite(lost).all() and min(lost.min(), expected.min()) >= 0.0):
        return None
    found = float(lost.mean()), float(expected.mean())
    return LeftOut(*found, len(labels)) if found[1] > 0.0 and math.isfinite(found[0] / found[1]) else None
