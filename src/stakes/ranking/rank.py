"""One call: the rows of a pool whose labels lower your loss most, and why.

Sizes: N rows, M contexts, n rows chosen.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from stakes._utils.arguments import Progress, RandomState
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, CostMatrix
from stakes.models.inspection import trained_weights
from stakes.ranking.cold_start import cold_start
from stakes.ranking.query import Query, make_query
from stakes.ranking.result import Note, Ranking
from stakes.ranking.top_k import choose


class TrainedWeightWarning(UserWarning):
    """The loss weighs classes, and the model was trained with class weights: the same concern would count twice.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from stakes import LogLoss, rank
        >>> X, y = np.arange(8.0)[:, None], np.array([0, 1] * 4)
        >>> model = RandomForestClassifier(5, class_weight="balanced", random_state=0).fit(X, y)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     ranking = rank(model, LogLoss(class_weights=[1.0, 5.0]), X, n=1)
        >>> [warning.category.__name__ for warning in caught]
        ['TrainedWeightWarning']
    """


def rank(
    model: Any,
    loss: AnyLoss,
    pool: Any,
    *,
    contexts: Any = None,
    n: int = 10,
    costs: Any = None,
    budget: float | None = None,
    context_weights: Any = None,
    target: Literal["label", "latent"] = "label",
    classes: Sequence[Any] | None = None,
    batch: bool | None = None,
    shortlist: int | None = None,
    pending: Sequence[int] = (),
    random_state: RandomState = 0,
    max_contexts: int | None = None,
    chunk: int = 4096,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
) -> Ranking:
    """The `n` rows of `pool` whose labels are expected to lower `loss` most, best first, and why each was chosen.

    Rows are told apart by position; the index of a pandas frame comes back as `row_ids`. Rows whose scores are within
    1e-9 of each other are put in an order by the random state (in a batch: rows that are exactly equal). A model that
    is known by draws draws anew for each chunk. Where no label is worth anything, `stakes.acquisition.fallback_scores`
    ranks. What was taken for granted is in the notes of the result.

    Args:
        model: A fitted model of any kind that `stakes.models.belief_of` knows, or with a method `belief`; None for a
            `cold_start`.
        loss: What a wrong answer costs.
        pool: [N, p]: rows that could be labelled. They go to the model as they are: arrays, sparse matrices, data
            frames, Arrow tables; to networks also rows of any shape, texts and dicts of tensors (docs/torch.md). A pool
            may be larger than memory: a `numpy.memmap`, the path of a .npy, Parquet or Arrow file or of a folder of
            these, or a `stakes.ranking.Pool`, of which the best rows are kept (docs/large_pools.md).
        contexts: [M, p]: where predictions or decisions will be made. Without them the pool stands for the future: all
            of it, or `max_contexts` rows drawn with the random state.
        n: How many rows to choose.
        costs: [N], or one number: what a label costs. Rows are then ranked by worth for each unit of cost.
        budget: What all labels may cost together (each costs 1 without `costs`); rows that it does not reach are passed
            over.
        context_weights: [M]: how often each context comes up (without contexts: one for each row of the pool).
        target: "label" to predict the label that will be realised at a context, noise included; "latent" for the
            function without it.
        classes: All classes in the order of the loss, where the model has not seen them all.
        batch: True to choose rows for what their labels are worth together, which needs a belief about them all at
            once: about a `shortlist` of rows. False: each for what it is worth alone, which is fast. None: together
            where the belief allows for it and it takes seconds, as `outlook` and `stakes suggest` do; alone under
            ensembles of a real target, with nine classes or more, and for hundreds of rows.
        shortlist: How many rows are looked at together, those that are worth most alone. None: 1000, or under an
            ensemble 100, and fewer with many classes (docs/large_pools.md).
        pending: Positions of rows whose labels are on their way: they are not chosen, and a batch counts what it adds
            to them.
        random_state: A whole number or a `numpy.random.Generator`.
        max_contexts: The most rows of the pool that stand for the future. None: 1000, and fewer, but 250 at least, for
            large pools and many classes (docs/large_pools.md).
        chunk: How many rows are read and scored at a time.
        n_jobs: Workers that score them (None: one, or what `joblib.parallel_config` says; -1: all cores), with the same
            result for any number of them.
        progress: True shows a line on the error stream; a callable is called with what is being done and the share
            that is done.

    Returns:
        The rows, their scores, a reason for each, and notes.

    Raises:
        StakesError: If an argument is refused.
        TypeError: If an argument has the wrong type, or no adapter knows the model.

    Examples:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from stakes import CostMatrix, rank
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = RandomForestClassifier(50, random_state=0).fit(X[:40], y[:40])
        >>> ranking = rank(model, CostMatrix([[0.0, 20.0], [1.0, 0.0]]), X[40:], n=3)
        >>> len(ranking), len(ranking.reasons[0].contexts)
        (3, 3)
    """
    if model is None:
        return _cold(pool, n, random_state, costs, budget)
    query = make_query(
        model,
        loss,
        pool,
        contexts=contexts,
        n=n,
        costs=costs,
        budget=budget,
        context_weights=context_weights,
        target=target,
        classes=classes,
        batch=batch,
        shortlist=shortlist,
        pending=pending,
        random_state=random_state,
        max_contexts=max_contexts,
        chunk=chunk,
        n_jobs=n_jobs,
        progress=progress,
    )
    query = replace(query, notes=(*query.notes, *warn_of_trained_weights(model, loss)))
    ranking, _ = choose(query)
    return replace(ranking, notes=(*ranking.notes, *_shortfall(query, len(ranking))))


def _shortfall(query: Query, count: int) -> list[Note]:
    """Why there are fewer rows than were asked for."""
    notes = []
    if query.n > query.wanted:
        notes.append(Note("too few rows", {"n": query.n, "size": query.size, "pending": len(query.pending)}))
    if count < query.wanted:
        notes.append(Note("budget", {"budget": query.budget, "count": count, "n": query.wanted}))
    return notes


def _cold(pool: Any, n: int, random_state: RandomState, costs: Any, budget: float | None) -> Ranking:
    if costs is not None or budget is not None:
        raise StakesError(
            "without a model no row has a worth to weigh against costs or a budget: leave them out, or give a model"
        )
    return cold_start(pool, n=n, random_state=random_state)


def warn_of_trained_weights(model: Any, loss: AnyLoss) -> list[Note]:
    """Warn where classes are weighed in training and again in the loss; a note that says so."""
    weighs = isinstance(loss, CostMatrix) or getattr(loss, "class_weights", None) is not None
    found = trained_weights(model) if weighs else None
    if found is None:
        return []
    message = found[0].upper() + found[1:]
    warnings.warn(message, TrainedWeightWarning, stacklevel=3)
    return [Note("trained weights", {"text": message})]
