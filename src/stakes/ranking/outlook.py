"""Is the next label worth its cost? What batches of every size would save, against what they cost.

Sizes: M contexts, n rows chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from stakes.acquisition.joint import obstacle
from stakes.acquisition.workers import checked_jobs
from stakes.beliefs import NormalEnsemble, VectorNormalEnsemble
from stakes.losses import AnyLoss
from stakes.models.tables import Host
from stakes.ranking.advice import Advice, advised
from stakes.ranking.choose import checked_purchase, described
from stakes.ranking.outlook_result import Offer, Outlook
from stakes.ranking.picks import Picks, Purchase, alone, together
from stakes.ranking.prospects import context_error, expected_loss, most_saved
from stakes.ranking.question import Progress, Question, ask, at_least_one
from stakes.ranking.reasons import log_reductions
from stakes.ranking.worths import Work


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
        raise ValueError(f"decisions must be a positive number, how often the model will be used; got {decisions!r}")
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
