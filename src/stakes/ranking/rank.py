"""One call: the rows of a pool whose labels lower your loss most, and why.

Sizes: N rows, M contexts, n rows chosen.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

from stakes._utils.parallel import checked_jobs
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, CostMatrix
from stakes.models.inspection import trained_weights
from stakes.ranking.cold_start import cold_start
from stakes.ranking.query import Progress, Question, ask, at_least_one, checked_costs, pool_labels
from stakes.ranking.result import Ranking, Reason, helped_contexts
from stakes.ranking.top_k import WORTH, Picks, Purchase, Work, alone, together


class TrainedWeightWarning(UserWarning):
    """The loss weighs classes, and the model was trained with class weights: the same concern would count twice."""


def rank(
    model: Any,
    loss: AnyLoss,
    pool: Any,
    contexts: Any = None,
    n: int = 10,
    *,
    costs: Any = None,
    budget: float | None = None,
    context_weights: Any = None,
    target: Literal["label", "latent"] = "label",
    classes: Sequence[Any] | None = None,
    batch: bool = False,
    shortlist: int | None = None,
    pending: Sequence[int] = (),
    seed: int = 0,
    max_contexts: int = 1000,
    chunk: int = 4096,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Ranking:
    """The `n` rows of `pool` whose labels are expected to lower `loss` most, best first, and why each was chosen.

    `pool` [N, p] and `contexts` [M, p] go to the fitted `model` as they are: arrays, sparse matrices, data frames,
    Arrow tables; to networks also rows of any shape, texts and dicts of tensors (docs/torch.md). A pool may be larger
    than memory: a `numpy.memmap`, the path of a .npy, Parquet or Arrow file or of a folder of these, or a
    `stakes.ranking.Pool`, of which the best rows are kept (docs/large_pools.md). Rows are told apart by position; the
    index of a pandas frame comes back as labels. Without contexts the pool stands for the future: all of it, or
    `max_contexts` rows drawn with the seed. `context_weights` [M] say how often each context comes up (without
    contexts: one for each row of the pool).

    With `costs` [N], by worth for each unit of cost; a `budget` passes over rows that it does not reach (each costs 1
    without costs). With `batch`, rows are chosen for what their labels are worth together, which needs a belief about
    them all at once: about a `shortlist` of as many rows, those that are worth most alone (1000 without, or 100 under
    an ensemble). Without `batch`, each for what it is worth alone. `pending` rows (positions) have labels on their way:
    they are not chosen, and a batch counts what it adds to them.

    Rows are read and scored `chunk` at a time by `n_jobs` workers (None: one, or what `joblib.parallel_config` says;
    -1: all cores), with the same result for any number of them.

    Rows whose scores are within 1e-9 of each other are put in an order by the seed (in a batch: rows that are exactly
    equal). A model that is known by draws draws anew for each block. Where no label is worth anything,
    `stakes.acquisition.fallback_scores` ranks. Without a model (None), `cold_start` does. What was assumed is in the
    result. `progress(what, share)` is called now and then.
    """
    n, work = at_least_one("n", n), Work(at_least_one("chunk", chunk), checked_jobs(n_jobs))
    if model is None:
        return _cold(pool, n, seed, costs, budget)
    question, said = ask(model, loss, pool, contexts, context_weights, target, classes, seed, max_contexts, progress)
    said += warn_of_trained_weights(model, loss)
    purchase = checked_purchase(question.size, n, costs, budget, pending, shortlist)
    picks = together(question, purchase, work) if batch else alone(question, purchase, work)
    return described(question, purchase, picks, chunk, [*said, *_shortfall(n, question.size, purchase, picks)])


def checked_purchase(
    size: int, n: int, costs: Any, budget: float | None, pending: Sequence[int], shortlist: int | None
) -> Purchase:
    """What is wanted of a pool of `size` rows, all of it checked."""
    if budget is not None and not (isinstance(budget, Real) and budget > 0):
        raise StakesError(f"budget must be positive, in the unit of the costs; got {budget!r}")
    waiting = tuple(dict.fromkeys(pending))
    if bad := [row for row in waiting if not isinstance(row, Integral) or not 0 <= row < size]:
        raise StakesError(f"pending must hold positions of rows, 0 to {size - 1}; got {bad[0]!r}")
    if len(waiting) == size:
        raise StakesError(f"all {size} rows of the pool are pending: there is none to choose")
    listed = None if shortlist is None else at_least_one("shortlist", shortlist)
    return Purchase(min(n, size - len(waiting)), checked_costs(costs, size), budget, waiting, listed)


def _shortfall(n: int, size: int, purchase: Purchase, picks: Picks) -> list[str]:
    """Why there are fewer rows than were asked for."""
    said = []
    if n > purchase.n:
        pending = f", {len(purchase.pending)} of them pending" if purchase.pending else ""
        said.append(f"{n} rows were asked for; the pool has {size}{pending}.")
    if len(picks.rows) < purchase.n:
        said.append(f"The budget of {purchase.budget:g} reached for {len(picks.rows)} of {purchase.n} rows.")
    return said


def _cold(pool: Any, n: int, seed: int, costs: Any, budget: float | None) -> Ranking:
    if costs is not None or budget is not None:
        raise StakesError(
            "without a model no row has a worth to weigh against costs or a budget: leave them out, or give a model"
        )
    return cold_start(pool, n, seed=seed)


def described(question: Question, purchase: Purchase, picks: Picks, chunk: int, said: list[str]) -> Ranking:
    """The ranking of what was picked, with reasons."""
    prices = purchase.prices
    contexts, untold = helped_contexts(question, picks.rows, chunk)
    per_cost: list[float | None] = [None] * len(picks.rows)
    if prices is not None:
        per_cost, said = (picks.worths / prices[picks.rows]).tolist(), [*said, "Scores are for each unit of cost."]
    if picks.log_scale:
        untold = [*untold, f"Scores and worths are to be multiplied by exp({picks.log_scale:.6g})."]
    named = [each if by == WORTH else () for each, by in zip(contexts, picks.ranked_by, strict=True)]
    reasons = map(Reason, picks.worths.tolist(), per_cost, named, picks.as_good, picks.ranked_by)
    return Ranking(
        tuple(picks.rows.tolist()),
        tuple(pool_labels(question.pool, picks.rows)),
        tuple(picks.scores.tolist()),
        prices is not None,
        picks.name,
        tuple(reasons),
        (*said, *picks.sentences, *untold),
        picks.log_scale,
    )


def warn_of_trained_weights(model: Any, loss: AnyLoss) -> list[str]:
    """Warn where classes are weighed in training and again in the loss; the sentences of the warning."""
    weighs = isinstance(loss, CostMatrix) or getattr(loss, "class_weights", None) is not None
    found = trained_weights(model) if weighs else None
    if found is None:
        return []
    message = found[0].upper() + found[1:]
    warnings.warn(message, TrainedWeightWarning, stacklevel=3)
    return [message]
