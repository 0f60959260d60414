"""One call: the rows of a pool whose labels lower your loss most, and why.

The pool is scored in chunks of rows; rows are chosen each for what it is worth alone, or for what it adds to those
before it. Sizes: N rows, M contexts, n rows chosen, C classes.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from array_api_compat import is_array_api_obj

from stakes._utils.arguments import ROWS, TIES, Progress, RandomState, affordable, generator, tie_breakers
from stakes._utils.array import double, log_of, namespace, on_host, slices
from stakes._utils.compute import in_parts
from stakes._utils.tables import Host, Table, row_keys
from stakes._utils.text import number
from stakes._utils.top_k import TopK
from stakes.acquisition import Selection, fallback_scores, find_form, select, uncertainty
from stakes.acquisition.batch_states import obstacle
from stakes.acquisition.batches import VARIANCE, fallback_name, worth_floor
from stakes.acquisition.forms import n_members
from stakes.acquisition.scores import bayes_prediction, blocks, prepare_score
from stakes.beliefs import Belief, NormalEnsemble
from stakes.exceptions import StakesError
from stakes.files.frame import Frame
from stakes.losses import AnyLoss, CostMatrix, FiniteChoice, MultiLabelScore, PerContext, ThresholdDecision, ZeroOne
from stakes.losses.domains import Classes
from stakes.models.inspection import trained_weights
from stakes.ranking.cluster import ClusterPool
from stakes.ranking.cold_start import cold_start
from stakes.ranking.labels import open_rows
from stakes.ranking.pools import Pool, pool_labels, pool_rows
from stakes.ranking.query import (
    CONFIGURATIONS,
    Query,
    class_names,
    make_query,
    screened_belief,
    screening,
    summary_of,
)
from stakes.ranking.result import HelpedContext, Note, Ranking, Reason

WORTH = "worth"
_NAMED = 3  # contexts named for each row
_AT_A_TIME = 2**16  # rows that are put in order where none is worth anything
_RANGE = 700.0  # a score beyond exp(700), or all below exp(-700), leaves the range of numbers

Described: TypeAlias = tuple[Any, float | None, str]
"""The answer at a context, its expected loss, and the answer as text."""
_Scores = TypeVar("_Scores", bound=tuple[Any, ...])


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
    y: Any = None,
    labelled: tuple[Any, Any] | None = None,
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
    max_rows: int | None = None,
    chunk: int = 4096,
    n_jobs: int | None = None,
    client: Any = None,
    progress: bool | Progress = False,
) -> Ranking:
    """The `n` rows of `pool` whose labels are expected to lower `loss` most, best first, and why each was chosen.

    Rows are identified by their position in the pool; the index of a pandas frame comes back as `row_ids`. Ties are
    broken by the random state: scores within 1e-9 of each other, or in a batch exactly equal ones. If each row is
    chosen for what it is worth alone, copies of a row (equal in every column) come after all others. If no label is
    worth anything, rows are ranked by `stakes.acquisition.fallback_scores`. A model that is known by random draws is
    drawn anew for each chunk of rows. The notes of the result say what was assumed.

    Args:
        model: A fitted model that `stakes.models.belief_of` knows, or one with a method `belief`. With `y` or
            `labelled` also any other classifier or regressor with scikit-learn's methods, fitted or not
            (docs/estimators.md). None for a `cold_start`.
        loss: What a wrong answer costs.
        pool: [N, p]: the rows that could be labelled. They are passed on to the model as they are: arrays, sparse
            matrices, data frames or Arrow tables; for networks also rows of any shape, texts and dicts of tensors
            (docs/torch.md). A pool may be larger than memory: a `numpy.memmap`, the path of a .npy, Parquet or Arrow
            file or of a folder of these, or a `stakes.ranking.Pool` (docs/large_pools.md).
        y: [N]: the labels of the rows of `pool`, with NaN, None or empty text where there is none. The rows without a
            label are then the pool, and the others are the labelled rows. Positions still count in the whole table.
        labelled: The rows [n, p] and labels [n] that the model was fitted to, if `pool` does not contain them. They are
            needed for a model that does not say how unsure it is: copies of it are fitted to resampled rows
            (`stakes.models.Bootstrap`). A model that is not fitted yet is fitted to them, and a note says so. A model
            with a belief of its own is used as it is.
        contexts: [M, p]: the rows for which predictions or decisions will be needed. Without them the pool stands for
            the future: all of it, or `max_contexts` rows drawn with the random state.
        n: How many rows to choose.
        costs: [N], or one number: what a label costs. Rows are then ranked by worth per unit of cost.
        budget: What all labels together may cost (each costs 1 without `costs`). Rows that no longer fit into it are
            passed over.
        context_weights: [M]: how often each context comes up (without contexts: one for each row of the pool).
        target: "label" to predict the label at a context, noise included; "latent" for the function without noise.
        classes: All classes in the order of the loss, if the model has not seen all of them.
        batch: True: choose rows for what their labels are worth together, which needs a joint belief about a
            `shortlist` of rows. False: choose each row for what it is worth alone, which is fast. None: together if the
            belief allows it and it takes seconds, as in `outlook` and `stakes suggest`; alone under ensembles of a real
            target, with nine classes or more, and for hundreds of rows.
        shortlist: How many rows are considered together: those that are worth most alone. None: 1000; under an ensemble
            100, and fewer with many classes (docs/large_pools.md).
        pending: Positions of rows whose labels are on their way. They are not chosen again, and a batch counts what it
            adds to them.
        random_state: A whole number or a `numpy.random.Generator`.
        max_contexts: At most this many rows of the pool stand for the future. None: 1000; fewer, but at least 250, for
            large pools and many classes (docs/large_pools.md).
        max_rows: At most this many rows are scored; a note says how many were not. None: all rows of a file, and of a
            table in memory as many as can be scored within seconds (docs/large_pools.md).
        chunk: How many rows are read and scored at a time.
        n_jobs: The number of workers that score rows. None: one, or what `joblib.parallel_config` says; -1: one per
            core. The result is the same for any number.
        client: A `dask.distributed.Client`: the workers of its cluster open the files of the pool themselves and send
            back their best rows (docs/clusters.md). `pool` is then the path or address of Parquet or Arrow files that
            all workers can open, or a Dask DataFrame or Array.
        progress: True shows a line on the error stream. A callable is called with what is being done and the share
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

        Any other estimator, with the rows and labels that it was fitted to:

        >>> from sklearn.linear_model import LogisticRegression
        >>> model = LogisticRegression(max_iter=5000).fit(X[:40], y[:40])
        >>> ranking = rank(model, CostMatrix([[0.0, 20.0], [1.0, 0.0]]), X[40:], n=3, labelled=(X[:40], y[:40]))
        >>> len(ranking)
        3
    """
    asked: dict[str, Any] = {
        "labelled": labelled,
        "contexts": contexts,
        "n": n,
        "costs": costs,
        "budget": budget,
        "context_weights": context_weights,
        "target": target,
        "classes": classes,
        "batch": batch,
        "shortlist": shortlist,
        "pending": pending,
        "random_state": random_state,
        "max_contexts": max_contexts,
        "max_rows": max_rows,
        "chunk": chunk,
        "n_jobs": n_jobs,
        "client": client,
        "progress": progress,
    }
    if y is not None:
        rows = open_rows(pool, y, loss, labelled)
        return rows.renumbered(rank(model, loss, rows.pool, **rows.arguments(asked)), contexts is None)
    if model is None:
        if client is not None:
            raise StakesError("a cold start looks at 100,000 rows, which are read here: leave out client")
        return _cold(pool, n, random_state, costs, budget, labelled)
    query = make_query(model, loss, pool, **asked)
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


def _cold(
    pool: Any, n: int, random_state: RandomState, costs: Any, budget: float | None, labelled: tuple[Any, Any] | None
) -> Ranking:
    if costs is not None or budget is not None:
        raise StakesError(
            "without a model no row has a worth to weigh against costs or a budget: leave them out, or give a model"
        )
    return cold_start(pool, n=n, known=None if labelled is None else labelled[0], random_state=random_state)


def warn_of_trained_weights(model: Any, loss: AnyLoss) -> list[Note]:
    """Warn where classes are weighed in training and again in the loss; a note that says so."""
    weighs = isinstance(loss, CostMatrix) or getattr(loss, "class_weights", None) is not None
    found = trained_weights(model) if weighs else None
    if found is None:
        return []
    message = found[0].upper() + found[1:]
    warnings.warn(message, TrainedWeightWarning, stacklevel=3)
    return [Note("trained weights", {"text": message})]


def choose(query: Query) -> tuple[Ranking, Host | None]:
    """The rows of a query, and where they were chosen together [n]: the standard errors of what they are worth.

    Those are of what the first 1, 2, .. n are worth together. Where `query.batch` is None, rows are chosen alone if the
    belief about those that would be looked at together does not allow for it, or joint worths are out of range.
    """
    query = _narrowed(query)
    if query.batch is False:
        return alone(query), None
    listed, notes = _shortlist(query)
    order = listed[np.argsort(tie_breakers(query.seed, listed))]  # so that the seed decides between equals
    belief = query.belief(order, joint=True)
    if query.batch is None and obstacle(belief) is not None:
        return alone(query), None
    try:
        return _together(query, order, belief, notes)
    except FloatingPointError:
        if query.batch:
            raise
        return alone(query), None


def _narrowed(query: Query) -> Query:
    """The query about as many rows as are scored within seconds, with a note where they are not all."""
    if query.scored is not None or query.most_rows >= query.size:
        return query
    numbers = {"count": query.most_rows, "size": query.size}
    with suppress(FloatingPointError):  # a loss that has no worth under one normal distribution
        if isinstance(query.first(), NormalEnsemble):
            return _screened(query, _summarised_worths, Note("screened rows", numbers))
        if screening(query) is not None:
            numbers["count"] = max(2 * (query.wanted + len(query.pending)), query.most_rows // 2)  # half of the effort
            return _screened(query, _variance_reductions, Note("screened by variance", numbers))
    drawn = generator(query.seed, ROWS).choice(query.size, query.most_rows, replace=False)
    note = Note("scored rows", {**numbers, "seed": query.seed})
    return replace(query, scored=np.sort(drawn), notes=(*query.notes, note))


def _screened(query: Query, function: Callable[[Query, Host, Table, bool], tuple[Host]], note: Note) -> Query:
    """The query about the rows that are best by a function that is quicker than the worth, as many as the note says."""
    count = min(note.values["count"], query.size)
    best = _tallied(query, function, _Best(TopK(count, query.seed)), "looking through rows").rows
    found = np.sort([row for row, _, _ in islice(best.ordered(), count)])
    return replace(query, scored=found, notes=(*query.notes, note))


def _summarised_worths(query: Query, positions: Host, rows: Table, first: bool) -> tuple[Host]:  # noqa: ARG001
    """[n]: the log of what each row is worth if members are summarised by one normal distribution for all."""
    belief: Any = query.belief_of(rows, positions)
    key = query.target, "summary"
    if key not in query.prepared:
        query.prepared[key] = prepare_score(query.loss, context_weights=query.weights)
    relative, log_scale = query.prepared[key](summary_of(belief))
    return (log_of(on_host(relative).astype(float)) + log_scale,)


def _variance_reductions(query: Query, positions: Host, rows: Table, first: bool) -> tuple[Host]:  # noqa: ARG001
    """[n]: the log of how much variance each row explains, where the loss can gain from it."""
    key = query.target, "variance"
    if key not in query.prepared:
        found = screening(query)
        assert found is not None
        query.prepared[key] = prepare_score(found[0], context_weights=found[1])
    relative, log_scale = query.prepared[key](screened_belief(query.belief_of(rows, positions)))
    return (log_of(on_host(relative).astype(float)) + log_scale,)


def alone(query: Query) -> Ranking:
    """The rows that are worth most alone, as many as are wanted, or as the budget covers."""
    rows, ranked, as_good, ranked_by, notes = _best_alone(query, query.wanted, query.budget)
    logs = ranked if query.costs is None else ranked + np.log(query.costs[rows])
    log_scale = _log_scale(np.concatenate([logs, ranked]))
    worths = np.exp(logs - log_scale) if ranked_by == WORTH else np.zeros(len(rows))
    tied = sum(equals > 0 for equals in as_good)
    ties = [Note("ties", {"count": tied, "seed": query.seed})] if tied else []
    scores, each_by = np.exp(ranked - log_scale), [ranked_by] * len(rows)
    notes = [*notes, *ties, *_chosen_copies(query, rows, joint=False)]
    return _ranking(query, rows, scores, worths, ranked_by, each_by, as_good, notes, log_scale)


def _together(query: Query, order: Host, belief: Belief, notes: list[Note]) -> tuple[Ranking, Host]:
    """The rows of `order` chosen for what each adds to those before it, of those that a belief is about."""
    query.progress("choosing rows together", None)
    selection = select(
        query.loss,
        belief,
        n=min(query.wanted, len(order) - len(query.pending)),
        costs=None if query.costs is None else query.costs[order].tolist(),
        budget=query.budget,
        context_weights=query.weights,
        random_state=generator(query.seed, TIES),
        max_configurations=CONFIGURATIONS,
        pending=np.flatnonzero(np.isin(order, query.pending)).tolist(),
    )
    query.progress("choosing rows together", 1.0)
    rows = order[np.asarray(selection.indices, dtype=np.intp)]
    gains = np.diff(on_host(selection.joint_reduction).astype(float), prepend=0.0)
    scores = gains if query.costs is None else gains / query.costs[rows]
    each_by = [WORTH if by == "gain" else by for by in selection.ranked_by]
    notes = [*notes, *_joint_notes(query, selection), *_chosen_copies(query, rows, joint=True)]
    ranking = _ranking(query, rows, scores, gains, "gain", each_by, [None] * len(rows), notes, 0.0)
    return ranking, np.hypot(on_host(selection.sampling_error), on_host(selection.context_error))


def _ranking(
    query: Query,
    rows: Host,
    scores: Host,
    worths: Host,
    ranked_by: str,
    each_by: Sequence[str],
    as_good: Sequence[int | None],
    notes: Sequence[Note],
    log_scale: float,
) -> Ranking:
    """The rows chosen, with why each was."""
    contexts, more = helped_contexts(query, rows)
    per_cost = [None] * len(rows) if query.costs is None else (worths / query.costs[rows]).tolist()
    named = [each if by == WORTH else () for each, by in zip(contexts, each_by, strict=True)]
    reasons = map(Reason, worths.tolist(), per_cost, named, as_good, each_by)
    costs = [] if query.costs is None else [Note("per cost", {})]
    scale = [Note("log scale", {"log_scale": log_scale})] if log_scale else []
    return Ranking(
        tuple(rows.tolist()),
        tuple(pool_labels(query.pool, rows)),
        tuple(scores.tolist()),
        query.costs is not None,
        ranked_by,
        tuple(reasons),
        (*query.notes, *costs, *notes, *more, *scale),
        log_scale,
    )


def _best_alone(query: Query, n: int, budget: float | None) -> tuple[Host, Host, list[int], str, list[Note]]:
    """[n] rows, logs of their scores, and how many are as good; what they are ranked by, and notes.

    Of rows that are the same in every column one is scored, and the others come after all that are no copies.
    """
    pending, costs = set(query.pending), query.costs
    tight = budget is not None and costs is not None  # it may pass over any number of rows
    copies = _copies(query)
    if copies is not None:
        query = replace(query, scored=copies.first)
    best, ranked_by, notes = _scored_best(query, query.size if tight else n + len(pending))
    ordered = best.ordered() if copies is None else _in_turn(list(best.ordered()), copies, costs)
    free = ((each, 1.0 if costs is None else float(costs[each[0]])) for each in ordered if each[0] not in pending)
    chosen = affordable(free, budget, n)
    rows, logs, as_good = zip(*chosen, strict=True) if chosen else ((), (), ())
    if copies is not None:
        notes = [*notes, Note("copies", {"count": len(copies.rows) - len(copies.first), "size": len(copies.rows)})]
    return np.asarray(rows, dtype=np.intp), np.asarray(logs, dtype=float), list(as_good), ranked_by, notes


class _Copies(NamedTuple):
    """Rows that are the same in every column."""

    first: Host
    """One row of each kind: not pending where another is not, the cheapest, and of those the first by the seed."""
    rows: Host
    """All rows, kind by kind, each kind with pending rows first and then as above."""
    start: dict[int, tuple[int, int]]
    """By the row of a kind that is in `first`: where the kind begins and ends in `rows`."""


def _copies(query: Query) -> _Copies | None:
    """The copies among the rows that are scored; None where there are none, or nobody can tell in seconds."""
    if isinstance(query.pool, Pool) and not isinstance(query.pool, Frame):
        return None
    rows = np.arange(query.size) if query.scored is None else query.scored
    keys = row_keys(query.pool if query.scored is None else pool_rows(query.pool, rows))
    if keys is None or len(np.unique(keys)) == len(rows):
        return None
    waits = np.isin(rows, query.pending)
    cost = np.zeros(len(rows)) if query.costs is None else query.costs[rows]
    order = np.lexsort((tie_breakers(query.seed, rows), cost, ~waits, keys))
    rows, keys, waits = rows[order], keys[order], waits[order]
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    ends = np.append(begins[1:], len(rows))
    free = np.minimum(begins + np.add.reduceat(waits.astype(np.intp), begins), ends - 1)
    kinds = zip(rows[free].tolist(), begins.tolist(), ends.tolist(), strict=True)
    return _Copies(np.sort(rows[free]), rows, {first: (begin, end) for first, begin, end in kinds})


def _in_turn(
    best: list[tuple[int, float, int]], copies: _Copies, costs: Host | None
) -> Iterator[tuple[int, float, int]]:
    """Rows of each kind one by one: the best first of all kinds, then the second of all, and so on."""
    places = {row: copies.start[row] for row, _, _ in best}
    for turn in range(max((end - begin for begin, end in places.values()), default=0)):
        for row, log, as_good in best:
            begin, end = places[row]
            if begin + turn < end:
                copy = int(copies.rows[begin + turn])
                log_price = 0.0 if costs is None else math.log(costs[row]) - math.log(costs[copy])
                yield copy, log + log_price, as_good + end - begin - 1


def _chosen_copies(query: Query, rows: Host, joint: bool) -> list[Note]:
    """A note where rows that were chosen are the same in every column."""
    keys = row_keys(pool_rows(query.pool, rows)) if len(rows) > 1 else None
    count = 0 if keys is None else len(keys) - len(np.unique(keys))
    return [Note("chosen copies", {"count": count, "joint": joint})] if count else []


def _shortlist(query: Query) -> tuple[Host, list[Note]]:
    """The rows that are looked at together, by position, and a note where they are not all."""
    count = max(query.shortlist, query.wanted)
    if query.scored is None and query.size - len(query.pending) <= count:
        return np.arange(query.size), []
    rows = _best_alone(query, count, None)[0]
    listed = np.union1d(rows, np.asarray(query.pending, dtype=np.intp))
    return listed, [Note("shortlist", {"count": len(rows), "size": query.size})]


def _joint_notes(query: Query, selection: Selection) -> list[Note]:
    """How the joint worth was computed, and where it did not decide."""
    notes = [Note("pending", {"count": len(query.pending)})] if query.pending else []
    joint = on_host(selection.joint_reduction).astype(float).tolist()
    if joint:
        values = {"count": len(joint), "worth": joint[-1], "method": selection.method}
        members = n_members(query.first())
        kind, more = ("joint worth of members", {"members": members}) if members > 1 else ("joint worth", {})
        notes.append(Note(kind, {**values, **more}))
    error = float(on_host(selection.sampling_error).max(initial=0.0))
    if error > 0:
        notes.append(Note("sampling error", {"error": error}))
    if other := [by for by in selection.ranked_by if by != "gain"]:
        notes.append(Note("fallback picks", {"count": len(other), "ranked_by": sorted(set(other))}))
    return [*notes, Note("contexts of single labels", {})]


def _log_scale(logs: Host) -> float:
    """0, or the largest of the logs where numbers cannot hold it."""
    largest = float(logs.max(initial=-np.inf))
    return largest if np.isfinite(largest) and abs(largest) > _RANGE else 0.0


class _Tally(Protocol):
    """What is kept of rows that were scored: of a chunk, a fragment or all."""

    def add(self, rows: Host, found: Any, costs: Host | None) -> None:
        """Take in a chunk of rows, what was found of them, and what each of them costs."""

    def merge(self, other: Any) -> None:
        """Take in what another has kept of other rows, in any order."""


_AnyTally = TypeVar("_AnyTally", bound=_Tally)


@dataclass
class _Best:
    """The best rows for each unit of cost, and what the scores of all of them have in common."""

    rows: TopK
    top: float = -math.inf
    """The log of the largest score."""
    floor: float = -math.inf
    """The log of what is as good as nothing, by the first rows of the pool."""
    forms: set[str] = field(default_factory=set)

    def add(self, rows: Host, found: tuple[Any, ...], costs: Host | None) -> None:
        """Rows with their logs, and where they are worths the form and the floor."""
        logs, *more = found
        self.rows.add(rows, _for_each_unit(logs, costs))
        self.top = max(self.top, float(logs.max()))
        if more:
            form, floor = more
            self.forms.add(form)
            self.floor = self.floor if floor is None else floor

    def merge(self, other: _Best) -> None:
        """Rows of others, one of which knows the floor."""
        self.rows.merge(other.rows)
        self.top, self.floor = max(self.top, other.top), max(self.floor, other.floor)
        self.forms |= other.forms


@dataclass
class _BestFallback:
    """The best rows by each number of labels that some chunk needs; rows of other chunks have nothing by it."""

    rest: TopK
    """All rows as if none was worth anything."""
    by_labels: dict[int | None, TopK] = field(default_factory=dict)

    def add(self, rows: Host, found: tuple[Host, int | None], costs: Host | None) -> None:
        """Rows with the logs of their fallback, and how many labels it takes."""
        logs, n_labels = found
        self._know(n_labels)
        nothing = np.full_like(logs, -math.inf)
        for needed, best in self.by_labels.items():
            best.add(rows, _for_each_unit(logs if needed == n_labels else nothing, costs))
        self.rest.add(rows, nothing)

    def merge(self, other: _BestFallback) -> None:
        """Rows of others."""
        for n_labels in other.by_labels:
            self._know(n_labels)
        for needed, best in self.by_labels.items():
            best.merge(other.by_labels.get(needed, other.rest))
        self.rest.merge(other.rest)

    def _know(self, n_labels: int | None) -> None:
        if n_labels not in self.by_labels:
            self.by_labels[n_labels] = deepcopy(self.rest)


def _scored_best(query: Query, k: int) -> tuple[TopK, str, list[Note]]:
    """The best `k` rows (for each unit of cost), what they are ranked by, and how that was computed."""
    found = _tallied(query, _worths, _Best(TopK(k, query.seed)), "scoring rows")
    notes = [Note("forms", {"names": sorted(found.forms)})]
    if found.top > found.floor:
        return found.rows, WORTH, notes
    if found.floor == math.inf:
        return _worthless(query, k), VARIANCE, [*notes, Note("members agree", {})]
    best, n_labels = _fallback(query, k)
    ranked_by = fallback_name(n_labels)
    return best, ranked_by, [*notes, Note("fallback", {"ranked_by": ranked_by, "labels": n_labels})]


def _tallied(
    query: Query, function: Callable[[Query, Host, Table, bool], _Scores], tally: _AnyTally, what: str
) -> _AnyTally:
    """The tally of all rows that are scored, by what the function makes of each chunk, a number for each row first."""
    carried, done, places = query.to_send(), 0, deque[Host]()
    size = query.size if query.scored is None else len(query.scored)
    query.progress(what, 0.0)
    if isinstance(query.pool, ClusterPool):
        for count, found in query.pool.tallies(carried, function, tally, query.costs, query.scored):
            tally.merge(found)
            done += count
            query.progress(what, done / size)
        return tally

    def parts() -> Iterator[tuple[Query, Host, Table, bool]]:
        for place, (positions, rows) in enumerate(query.chunks()):
            places.append(positions)
            yield carried, positions, rows, place == 0

    with closing(in_parts(function, parts(), query.n_jobs)) as results:
        for found in results:
            rows = places.popleft()
            tally.add(rows, found, None if query.costs is None else query.costs[rows])
            done += len(rows)
            query.progress(what, done / size)
    return tally


def _worths(query: Query, positions: Host, rows: Table, first: bool) -> tuple[Host, str, float | None]:
    """[n]: the log of what each row is worth, by which form, and with the first rows below what that is nothing."""
    belief = query.belief_of(rows, positions)
    relative, log_scale = query.scores(belief)
    floor = worth_floor(query.loss, belief, context_weights=query.weights) if first else None
    form = f"{find_form(query.loss, belief).name}, under {type(belief).__name__}"
    return log_of(on_host(relative).astype(float)) + log_scale, form, floor


def _fallback_worths(query: Query, positions: Host, rows: Table, first: bool) -> tuple[Host, int | None]:  # noqa: ARG001
    """[n]: the log of the fallback that the rows of a chunk need, and how many labels it takes."""
    belief = query.belief_of(rows, positions)
    scores, n_labels = fallback_scores(query.loss, belief, context_weights=query.weights)
    return log_of(on_host(scores).astype(float)), n_labels


def _for_each_unit(logs: Host, costs: Host | None) -> Host:
    return logs if costs is None else logs - np.log(costs)


def _worthless(query: Query, k: int) -> TopK:
    """Rows none of which is worth anything: the seed decides."""
    best = TopK(k, query.seed)
    for part in slices(query.size if query.scored is None else len(query.scored), _AT_A_TIME):
        rows = np.arange(part.start, part.stop) if query.scored is None else query.scored[part]
        best.add(rows, np.full(len(rows), -math.inf))
    return best


def _fallback(query: Query, k: int) -> tuple[TopK, int | None]:
    """By the fewest labels that any chunk needs: rows of other chunks have nothing by that measure."""
    start = _BestFallback(TopK(k, query.seed))
    found = _tallied(query, _fallback_worths, start, "scoring rows by what stands in for worth").by_labels
    fewest = min(found, key=lambda needed: math.inf if needed is None else needed)
    return found[fewest], fewest


def helped_contexts(query: Query, rows: Host) -> tuple[list[tuple[HelpedContext, ...]], list[Note]]:
    """For each of `rows` the contexts that its label alone helps most, and notes on what is out of range."""
    largest: list[list[tuple[int, float]]] = []
    for part in slices(len(rows), query.chunk) if len(rows) else ():
        logs = log_reductions(query, query.belief(rows[part]))
        query.prepared.setdefault(("reductions", int(rows[part][0])), logs[0])
        largest += map(_largest, logs)
    if not len(rows):
        return [], []
    described, notes = _descriptions(query, query.first(), (place for each in largest for place, _ in each))
    positions, row_ids = query.context_places()

    def helped(place: int, share: float) -> HelpedContext:
        prediction, loss, answer = described[place]
        return HelpedContext(int(positions[place]), row_ids[place], share, prediction, loss, answer)

    return [tuple(helped(place, share) for place, share in each) for each in largest], notes


def log_reductions(query: Query, belief: Belief) -> Host:
    """[n, M]: the log of p(c) EUR(x; c)."""
    xp, columns = namespace(belief.like), []
    for _, log_scale, parts in blocks(find_form(query.loss, belief), query.loss, belief, None):
        columns.append(on_host(log_of(double(xp.concat([part() for part in parts], axis=0))) + double(log_scale)))
    return np.asarray(np.concatenate(columns, axis=1) + log_of(np.asarray(query.weights)))


def _largest(logs: Host) -> list[tuple[int, float]]:
    """The few largest of [M], and their shares of the sum; fewer where others are nothing."""
    places = [int(place) for place in np.argsort(-logs, kind="stable")[:_NAMED] if logs[place] > -np.inf]
    if not places:
        return []
    relative = np.exp(logs - logs[places[0]])
    return [(place, float(relative[place] / relative.sum())) for place in places]


def _descriptions(query: Query, belief: Belief, named: Iterable[int]) -> tuple[dict[int, Described], list[Note]]:
    """For each context that is named the answer there today, its text, and its expected loss; and notes."""
    names, found, gaps = class_names(query.model, query.classes), dict[int, Described](), list[str]()
    for place in sorted(set(named)):
        here = belief.take(slice(0, 1), slice(place, place + 1))
        of: Any = query.loss
        of = of.take(slice(place, place + 1), belief.n_contexts) if isinstance(of, PerContext) else of
        (answer,), lost = _in_range(bayes_prediction, of, here)
        (loss,), more = _in_range(uncertainty, of, here)
        of = of.each[0] if isinstance(of, PerContext) else of
        prediction = _named(of, answer, names)
        absent = "not reported" if lost else "a distribution"
        found[place] = prediction, loss, absent if prediction is None else _as_text(of, prediction, names)
        gaps += [*lost, *more]
    return found, [Note("out of range", {"error": error}) for error in dict.fromkeys(gaps)]


def _in_range(function: Callable[[Any, Any], Any], loss: AnyLoss, belief: Belief) -> tuple[list[Any], list[str]]:
    """[M]: a function of each context, None for each where that is no array or out of range; and why."""
    try:
        answers = function(loss, belief)
    except FloatingPointError as error:
        return [None] * belief.n_contexts, [str(error)]
    return (list(on_host(answers).tolist()) if is_array_api_obj(answers) else [None] * belief.n_contexts), []


def _named(loss: AnyLoss, prediction: Any, names: list[Any] | None) -> Any:
    """A predicted class by its name, probabilities as a tuple; all else as it is."""
    if isinstance(prediction, list):
        return tuple(prediction)
    if isinstance(loss, CostMatrix) and loss.actions is not None:
        return loss.actions[int(prediction)]
    return names[int(prediction)] if isinstance(loss, ZeroOne) and names else prediction


def _as_text(loss: AnyLoss, prediction: Any, names: list[Any] | None) -> str:
    if isinstance(loss, ZeroOne):
        return f"class {prediction!r}"
    if isinstance(loss, ThresholdDecision):
        return ("wait", "act")[int(prediction)]
    if isinstance(loss, CostMatrix):
        return _decision(loss, prediction, names)
    if isinstance(loss, FiniteChoice):
        return f"action {prediction}"
    if isinstance(loss, MultiLabelScore) and isinstance(prediction, tuple):
        return ", ".join(f"{name} {share:.0%}" for name, share in zip(loss.labels, prediction, strict=True))
    if isinstance(prediction, tuple) and isinstance(loss.domain, Classes):
        best = int(np.argmax(prediction))
        return f"class {(names or range(len(prediction)))[best]!r} at {prediction[best]:.0%}"
    return ", ".join(number(each) for each in prediction) if isinstance(prediction, tuple) else number(prediction)


def _decision(loss: CostMatrix, prediction: Any, names: list[Any] | None) -> str:
    """An action by its name; without one by that of its class, where the cheapest action is to name the class."""
    if loss.actions is not None:
        return f"{'class' if loss.classes is not None and set(loss.actions) == set(loss.classes) else 'decision'} " + (
            repr(prediction)
        )
    costs = loss.costs
    cheapest = costs.shape[0] == costs.shape[1] and bool(np.all(np.diag(costs) <= costs.min(axis=1)))
    return f"class {names[int(prediction)]!r}" if names and cheapest else f"action {prediction}"
