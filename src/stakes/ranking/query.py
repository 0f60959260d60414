"""What is asked of a model: which rows of a pool, for which contexts, under which loss. Checked here, trusted inside.

A pool is a table in memory, or a file that is read in chunks of rows. Sizes: N rows, p columns, M contexts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np

from stakes._utils.arguments import (
    DRAWS,
    SUBSAMPLE,
    Progress,
    RandomState,
    as_progress,
    as_seed,
    check_budget,
    generator,
    is_true_or_false,
    no_progress,
)
from stakes._utils.array import asarrays, check_all, check_shape, double, namespace, on_host, shares, slices
from stakes._utils.compute import checked_jobs
from stakes._utils.tables import (
    Host,
    Table,
    check_same_columns,
    check_table,
    first_gap,
    n_rows,
    plain_label,
    row_labels,
    take_rows,
)
from stakes.acquisition import find_form, uncertainty
from stakes.acquisition.batch_states import obstacle
from stakes.acquisition.batches import log_most
from stakes.acquisition.ensemble_batches import variance_of
from stakes.acquisition.forms import n_members
from stakes.acquisition.scores import prepare_score
from stakes.beliefs import (
    Belief,
    CategoricalEnsemble,
    GaussianBelief,
    GaussianMixtureBelief,
    NormalEnsemble,
    VectorGaussianBelief,
    VectorNormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.exceptions import StakesError
from stakes.files.frame import Frame
from stakes.losses import AnyLoss, LogLoss, LogScore, PerContext, align_classes
from stakes.losses.domains import Interval, Vectors
from stakes.losses.multi_label import label_names
from stakes.models import DefaultModel, belief_of, prepare_belief
from stakes.models.inspection import (
    accepts_missing,
    accepts_shapes,
    check_columns,
    check_fitted,
    known_classes,
    n_labels,
    served_by_own_belief,
    taken_for_granted,
)
from stakes.models.labelled import with_belief
from stakes.ranking.cluster import on_cluster
from stakes.ranking.pools import Pool, checked_pool, pool_chunks, pool_labels, pool_rows, pool_size
from stakes.ranking.result import Note

# How much is looked at where the caller does not say, so that an answer comes within seconds. A label of a class has C
# outcomes, after each of which C probabilities change.
_MAX_PAIRS = 50_000_000  # row-context pairs that are scored under a Gaussian belief, a closed form each
_MAX_CLASS_CELLS = 40_000_000  # N M C^2, computed to score rows under an ensemble of classes
_MAX_JOINT_PAIRS = (
    200_000_000  # row-context pairs that are gone through to choose rows together, under a Gaussian belief
)
_MAX_JOINT_CELLS = 300_000_000  # computed to choose rows together, under a mixture
_MAX_JOINT_PRODUCTS = 150_000_000_000  # of members, made to choose rows together under an ensemble of classes
_RACE_PRODUCTS = 3_000_000_000  # of them, in which candidates race for one pick, however many they are
_PER_CELL = 10  # of them take as long as what is made of their sum
CONFIGURATIONS = 256
"""Of labels of a batch under an ensemble: errors of some percent, which are noted."""
_IN_FULL = 3  # candidates that are looked at under all configurations
_CONTEXTS, _FEWEST_CONTEXTS = 1000, 250
_MAX_MEMBER_CONTEXTS = 25_000  # pairs of a member of an ensemble of normals and a context, integrated one by one
_MAX_NUMBERS = 100_000_000  # that forms go through to score rows of a table in memory, some nanoseconds each
_FEW_PAIRS = 1_000_000  # of rows and contexts that any form gets through, but under an ensemble of normals
_FOR_EACH_NUMBER = 4  # numbers under an ensemble of classes are products, and cost as little as one other
_PER_DENSITY = 10  # numbers where members' densities are integrated over cells cost as many others
_PER_SWITCH = 25  # numbers under an ensemble of normals, where switching points are searched for, cost as many others
_PER_DRAWN = 2000  # numbers for each row, context and hypothesis of a mixture, of whose labels a hundred are drawn
_SHORTLIST = 1000  # rows that are looked at together under a Gaussian belief
_ENSEMBLE_SHORTLIST, _SMALLEST_SHORTLIST = (
    100,
    20,
)  # and under an ensemble, whose batches cost hundreds of times as much


@dataclass(frozen=True, eq=False)
class Query:
    """What `rank` is asked, all of it checked: a fitted model, a loss, a pool, contexts, and how many rows to choose.

    Attributes:
        pool: A table in memory, or a `Pool`.
        head: The first row of the pool.
        positions: [M]: where the contexts are in the pool; None where they were given.
        weights: [M]: how often each context comes up; shares.
        notes: What is taken for granted.
        n: How many rows are asked for.
        costs: [N]: what each label costs; None where each costs 1.
        pending: Positions of rows whose labels are on their way.
        batch: Whether rows are chosen together; None: where the belief allows for it.
        shortlist: How many rows are looked at together, those that are worth most alone.
        most_rows: How many rows are scored.
        scored: Positions of the rows that are scored; None: all.
        labels: How many the model was fitted to; None where that is not known.
        made: What was made of the model so that a belief can be had of it: sentences for the notes.
        summarised: Whether an ensemble of normals is summarised by one normal distribution.
        chunk: Rows that are read and scored at a time.
        n_jobs: Workers that score them; see `stakes._utils.compute`.
        prepared: By target and `joint`: the belief as a function of rows, with what the model says of the contexts
            computed once; by target: scores as a function of beliefs; by row: its reductions. It is not sent to other
            processes.
    """

    model: Any
    loss: AnyLoss
    pool: Any
    head: Table
    contexts: Table
    positions: Host | None
    weights: tuple[float, ...]
    target: Literal["label", "latent"]
    classes: Sequence[Any] | None
    seed: int
    progress: Progress
    notes: tuple[Note, ...]
    n: int
    costs: Host | None
    budget: float | None
    pending: tuple[int, ...]
    batch: bool | None
    shortlist: int
    most_rows: int
    chunk: int
    n_jobs: int | None
    scored: Host | None = None
    labels: int | None = None
    made: tuple[str, ...] = ()
    summarised: bool = False
    prepared: dict[Any, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "prepared": {}}

    @property
    def size(self) -> int:
        """The number N of rows."""
        return pool_size(self.pool)

    @property
    def wanted(self) -> int:
        """How many rows are to be chosen: those asked for, or all that are not pending."""
        return min(self.n, self.size - len(self.pending))

    def chunks(self) -> Iterator[tuple[Host, Table]]:
        """Positions and rows of each chunk of what is scored."""
        if self.scored is None:
            for start, rows in pool_chunks(self.pool, self.chunk):
                yield np.arange(start, start + n_rows(rows)), rows
        else:
            for part in slices(len(self.scored), self.chunk):
                yield self.scored[part], pool_rows(self.pool, self.scored[part])

    def belief(self, rows: Host, joint: bool = False) -> Belief:
        """What the model believes of some rows and of all contexts; the same random numbers each time."""
        return self.belief_of(pool_rows(self.pool, rows), rows, joint)

    def first(self, joint: bool = False) -> Belief:
        """What the model believes of the first row, where any will do; the same object each time."""
        key = self.target, joint, "first"
        if key not in self.prepared:
            self.prepared[key] = self.belief_of(self.head, range(1), joint)
        belief: Belief = self.prepared[key]
        return belief

    def belief_of(self, part: Table, rows: Sequence[int] | Host, joint: bool = False) -> Belief:
        """What the model believes of the rows in a part of the pool, which are at some positions there."""
        try:
            belief = self._prepared(joint)(part)
            belief = summary_of(belief) if self.summarised and isinstance(belief, NormalEnsemble) else belief
        except ValueError as error:
            self._refuse_gaps(part, rows, joint, error)
            raise
        wanted, got = (n_rows(part), len(self.weights)), (belief.n_candidates, belief.n_contexts)
        if wanted != got:
            raise StakesError(
                f"the belief of {type(self.model).__name__} must be about the {wanted[0]} rows and {wanted[1]} "
                f"contexts it was asked for; it is about {got[0]} and {got[1]}"
            )
        return belief

    def _prepared(self, joint: bool) -> Callable[[Table], Belief]:
        key = self.target, joint
        if key not in self.prepared:
            self.prepared[key] = prepare_belief(self.model, self.contexts, **self._options(joint))
        prepared: Callable[[Table], Belief] = self.prepared[key]
        return prepared

    def scores(self, belief: Belief) -> tuple[Any, float]:
        """[n]: what each label of a belief over the contexts is worth, over exp(log scale), and that log scale.

        What the loss needs to know of the contexts is computed once.
        """
        key = self.target, "scores"
        if key not in self.prepared:
            self.prepared[key] = prepare_score(self.loss, context_weights=self.weights)
        scored: tuple[Any, float] = self.prepared[key](belief)
        return scored

    def _options(self, joint: bool) -> dict[str, Any]:
        random_state = generator(self.seed, DRAWS)
        return {"target": self.target, "classes": self.classes, "joint": joint, "random_state": random_state}

    def _refuse_gaps(self, part: Table, rows: Sequence[int] | Host, joint: bool, error: ValueError) -> None:
        """Say where the first gap is, if gaps are what the model refuses: steps of a pipeline may take some only."""
        order = np.argsort(rows)
        place = first_gap(take_rows(part, order), np.asarray(rows)[order])
        name = "pool" if place is not None or self.positions is not None else "contexts"
        place = first_gap(self.contexts, self.positions) if place is None else place
        if place is not None and self._answers_without_gaps(part, joint):
            reason = str(error).splitlines()[0]
            raise StakesError(
                f"{name} must hold no gaps but those the model takes; the first gap is at {place}: {reason}"
            ) from error

    def _answers_without_gaps(self, part: Table, joint: bool) -> bool:
        """Whether the model refuses nothing once rows and contexts with gaps are left out."""
        rows, contexts = _without_gaps(part), _without_gaps(self.contexts)
        if n_rows(rows) and n_rows(contexts):
            try:
                belief_of(self.model, rows, contexts, **self._options(joint))
            except ValueError:
                return False
        return True

    def to_send(self) -> Query:
        """The query without its pool: what a worker needs who is sent rows."""
        return replace(self, pool=self.head, costs=None, scored=None, progress=no_progress)

    def context_places(self) -> tuple[Host, list[Any]]:
        """[M], [M]: the position and the id of each context (those in the pool, where the pool stands for them)."""
        if self.positions is None:
            return np.arange(len(self.weights)), row_labels(self.contexts)
        return self.positions, pool_labels(self.pool, self.positions)


def summary_of(belief: NormalEnsemble) -> GaussianBelief:
    """The normal distribution with the means and covariances of an ensemble: members' spread, and their noise."""
    xp, weights = namespace(belief.like), double(belief.member_weights)

    def parts(means: Any, sds: Any) -> tuple[Any, Any, Any]:
        """[n], [n], [n, K]: mean, variance, and how far each member is from the mean."""
        mean = xp.sum(weights * double(means), axis=1)
        gaps = double(means) - mean[:, None]
        return mean, xp.sum(weights * (gaps**2 + double(sds) ** 2), axis=1), gaps

    mean, variance, gaps = parts(belief.context_mean, belief.context_sd)
    _, candidate_variance, candidate_gaps = parts(belief.candidate_mean, belief.candidate_sd)
    return GaussianBelief(mean, variance, candidate_variance, xp.matmul(candidate_gaps * weights, gaps.T))


def screened_belief(belief: Belief) -> Any:
    """A belief about the same rows under which variance reductions are quick to compute; None where there is none.

    That is the belief itself, the latent one beneath a warp, or one normal distribution in place of several hypotheses.
    """
    if isinstance(belief, WarpedGaussianBelief):
        return belief.latent
    if isinstance(belief, GaussianMixtureBelief):
        return _summary_of_hypotheses(belief)
    kinds = GaussianBelief | VectorGaussianBelief | CategoricalEnsemble | VoteEnsemble
    return belief if isinstance(belief, kinds) else None


def _summary_of_hypotheses(belief: GaussianMixtureBelief) -> GaussianBelief:
    """The normal distribution with the means and covariances of a mixture: within hypotheses, and between them."""
    xp, weights = namespace(belief.like), double(belief.weights)[:, None]  # [S, 1]

    def parts(means: Any, variances: Any) -> tuple[Any, Any, Any]:
        """[n], [n], [S, n]: mean, variance, and how far each hypothesis is from the mean."""
        mean = xp.sum(weights * double(means), axis=0)
        gaps = double(means) - mean
        return mean, xp.sum(weights * (gaps**2 + double(variances)), axis=0), gaps

    mean, variance, gaps = parts(belief.mean, belief.variance)
    _, candidate_variance, candidate_gaps = parts(belief.candidate_mean, belief.candidate_variance)
    within = xp.sum(weights[:, :, None] * double(belief.covariance), axis=0)
    return GaussianBelief(mean, variance, candidate_variance, within + xp.matmul((weights * candidate_gaps).T, gaps))


def screening(query: Query) -> tuple[AnyLoss, Host] | None:
    """How rows are screened that are too many: a loss under `screened_belief`, and weights [M] of contexts.

    A label is worth about p(c) G_c at a context, times the share of the variance there that it explains; G_c is what
    can be gained there: the expected loss today, or under an ensemble of classes what it is worth to know the member.
    None where that is not known.
    """
    belief = query.first()
    plain = screened_belief(belief)
    if plain is None:
        return None
    by: AnyLoss = LogLoss() if isinstance(plain, VoteEnsemble) else variance_of(plain)  # of votes entropies are quick
    if isinstance(plain, VoteEnsemble | CategoricalEnsemble):
        gains, spreads = (np.exp(on_host(log_most(loss, belief, query.weights))) for loss in (query.loss, by))
        share = np.asarray(query.weights) * np.divide(gains, spreads, out=np.zeros_like(gains), where=spreads > 0)
    else:
        today = np.ones(plain.n_contexts) if isinstance(query.loss, LogScore) else _relative_loss(query.loss, belief)
        spread = on_host(uncertainty(by, plain)).astype(float)
        share = np.asarray(query.weights) * np.divide(today, spread, out=np.zeros_like(today), where=spread > 0)
    total = float(share.sum())
    return (by, share / total) if 0.0 < total < np.inf else None


def _relative_loss(loss: AnyLoss, belief: Belief) -> Host:
    """[M]: the expected loss today, over its scale."""
    relative, _ = uncertainty(loss, belief, return_log_scale=True)
    return on_host(relative).astype(float)


def _without_gaps(table: Table) -> Table:
    """The rows of a table without a gap."""
    return take_rows(table, [row for row in range(n_rows(table)) if first_gap(take_rows(table, [row])) is None])


def make_query(
    model: Any,
    loss: AnyLoss,
    pool: Any,
    *,
    contexts: Any = None,
    n: int = 1,
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
    progress: bool | Progress = False,
    client: Any = None,
    labelled: tuple[Any, Any] | None = None,
) -> Query:
    """The arguments of `rank`, checked."""
    show, seed, jobs = as_progress(progress), as_seed(random_state), checked_jobs(n_jobs)
    model, made = (model, ()) if labelled is None else with_belief(model, labelled, random_state=seed, n_jobs=jobs)
    check_fitted(model)
    loss = _checked_loss(loss, classes, model)
    check_budget(budget)
    most = 0 if contexts is not None else _CONTEXTS if max_contexts is None else max_contexts
    head = pool_rows(rows := _rows_of(pool, model, show, client, seed, most), np.arange(1))
    check_columns(model, "pool", head)
    query = Query(
        model,
        _at_first(loss, head),
        rows,
        head,
        head,
        None,
        (1.0,),
        target,
        classes,
        seed,
        show,
        (),
        at_least_one("n", n),
        row_costs(costs, pool_size(rows)),
        budget,
        _checked_pending(pending, pool_size(rows)),
        batch,
        _SHORTLIST if shortlist is None else at_least_one("shortlist", shortlist),
        pool_size(rows) if max_rows is None else at_least_one("max_rows", max_rows),
        at_least_one("chunk", chunk),
        jobs,
        labels=n_labels(model) if labelled is None else n_rows(labelled[0]),
        made=made,
    )
    query = _at_contexts(query, contexts, context_weights, max_contexts, within_seconds=max_rows is None)
    return query if batch is False else _with_shortlist(query, given=shortlist is not None)


def _at_contexts(query: Query, given: Any, weights: Any, most: int | None, within_seconds: bool) -> Query:
    """The query about the contexts that it was given, checked, or about rows of the pool."""
    if given is not None:
        gaps, shapes = accepts_missing(query.model), accepts_shapes(query.model)
        given = check_table("contexts", given, gaps, any_shape=shapes)
    about = partial(_with_some_contexts, given=given, weights=weights, most=most)
    return _within_seconds(about(query), about) if within_seconds else about(query)


def _rows_of(pool: Any, model: Any, progress: Progress, client: Any, seed: int, most: int) -> Any:
    """A table or a `Pool`, checked here, or one that workers of a cluster read and check."""
    gaps = accepts_missing(model)
    if client is None and not hasattr(pool, "__dask_graph__"):
        return checked_pool(pool, model, gaps, progress)
    return on_cluster(pool, model, client, gaps, seed, most and at_least_one("max_contexts", most), progress)


def _with_shortlist(query: Query, given: bool) -> Query:
    """The query about as many rows together as seconds allow for, where that was not given; none where none do."""
    listed, cheap = enough_listed(len(query.weights), query.wanted, query.first(joint=True))
    alone = query.batch is None and not cheap
    return replace(query, shortlist=query.shortlist if given else listed, batch=False if alone else query.batch)


def _with_some_contexts(query: Query, given: Table | None, weights: Any, most: int | None) -> Query:
    """The query about contexts that were given, or about rows of the pool."""
    return _with_pool_contexts(query, weights, most) if given is None else _with_contexts(query, given, weights)


def _with_contexts(query: Query, contexts: Table, context_weights: Any) -> Query:
    """The query about contexts that were given."""
    check_same_columns(query.head, contexts)
    weights, weighted = _weights_of(context_weights, n_rows(contexts)), context_weights is not None
    note = Note("given contexts", {"count": n_rows(contexts), "weighted": weighted})
    return _about(query, contexts, None, weights, note)


def _with_pool_contexts(query: Query, context_weights: Any, max_contexts: int | None) -> Query:
    """The query about rows of the pool that stand for the future: all of them, or some that are drawn."""
    if max_contexts is not None:
        most = at_least_one("max_contexts", max_contexts)
    elif query.size <= _FEWEST_CONTEXTS:
        most = query.size
    else:
        most = enough_contexts(query.size, query.wanted, _class_count(query))
        if isinstance(belief := query.first(), NormalEnsemble):
            most = min(most, max(_FEWEST_CONTEXTS, _MAX_MEMBER_CONTEXTS // belief.member_weights.shape[0]))
    positions, weights, note = _pool_contexts(context_weights, query.pool, most, query.seed)
    return _about(query, pool_rows(query.pool, positions), positions, weights, note)


def _about(query: Query, contexts: Table, positions: Host | None, weights: Host, note: Note) -> Query:
    target = Note("target", {"target": "own" if served_by_own_belief(query.model) else query.target})
    share = tuple(weights.tolist())
    loss: Any = query.loss
    if isinstance(loss, PerContext):
        places, size = (range(n_rows(contexts)), n_rows(contexts)) if positions is None else (positions, query.size)
        names = class_names(query.model, query.classes)
        loss = loss.at(partial(_row, contexts), places, size).mapped(partial(align_classes, classes=names))
    granted = (Note("model", {"text": text}) for text in (*query.made, *taken_for_granted(query.model)))
    notes = (note, target, *granted)
    return replace(query, loss=loss, contexts=contexts, positions=positions, weights=share, notes=notes, prepared={})


def _at_first(loss: Any, head: Table) -> Any:
    """A loss for each context with that of the first row, until contexts are known; any other as it is."""
    return loss.at(partial(_row, head), range(1), None) if isinstance(loss, PerContext) else loss


def _row(table: Table, place: int) -> Any:
    """One row, as people look things up in it: by name where columns have names."""
    if hasattr(table, "iloc"):
        return table.iloc[place]
    if callable(getattr(table, "row", None)):
        return table.row(place, named=True)
    return take_rows(table, [place])[0]


def _class_count(query: Query) -> int | None:
    """How many classes a label may be of; None for numbers."""
    if isinstance(getattr(query.loss, "domain", None), Interval | Vectors):
        return None
    names = class_names(query.model, query.classes)
    return getattr(query.first(), "n_classes", None) if names is None else len(names)


def class_names(model: Any, classes: Sequence[Any] | None) -> list[Any] | None:
    """[C]: those given, or those of the model, or none known."""
    known = known_classes(model) if classes is None else classes
    return None if known is None else [plain_label(name) for name in known]


def enough_contexts(size: int, n: int, classes: int | None) -> int:
    """How many rows of a pool of `size` stand for the future, so that n of them are chosen within seconds."""
    if classes is None:
        return min(_CONTEXTS, max(_FEWEST_CONTEXTS, _MAX_PAIRS // size))
    joint = max(_FEWEST_CONTEXTS, _MAX_JOINT_CELLS // (_configurations(n) * classes**2 * max(_ENSEMBLE_SHORTLIST, n)))
    return min(_CONTEXTS, joint, max(_FEWEST_CONTEXTS, _MAX_CLASS_CELLS // classes**2 // size))


def _within_seconds(query: Query, about: Callable[[Query], Query]) -> Query:
    """The query about as many rows of a table as are scored within seconds; `about` gives a query its contexts.

    Where that is next to none, members are summarised.
    """
    normals = isinstance(query.first(), NormalEnsemble)
    if not normals and query.size * len(query.weights) <= _FEW_PAIRS:
        return query
    fewest, most = 2 * (query.wanted + len(query.pending)), enough_rows(query)
    if most < fewest and normals:
        query = about(replace(query, summarised=True, prepared={}))
        query = replace(query, notes=(*query.notes, Note("summarised members", {})))
        most = enough_rows(query)
    if isinstance(query.pool, Pool) and not isinstance(query.pool, Frame):  # of a file every row is scored
        return query
    return replace(query, most_rows=min(query.size, max(most, fewest)))


def enough_rows(query: Query) -> int:
    """How many rows of a table are scored within seconds, by the numbers that their form goes through."""
    belief = query.first()
    form = find_form(query.loss, belief)
    if form.total is not None:
        each = form.total.numbers(query.loss, belief) * (_PER_DENSITY if isinstance(belief, NormalEnsemble) else 1)
    else:
        each = form.numbers(query.loss, belief) * belief.n_contexts
    if isinstance(belief, CategoricalEnsemble):
        return _MAX_NUMBERS * _FOR_EACH_NUMBER // max(1, each)
    if isinstance(belief, NormalEnsemble) and getattr(query.loss, "finite_actions", False):
        each *= _PER_SWITCH
    return _MAX_NUMBERS // max(1, each)


def enough_listed(contexts: int, n: int, belief: Belief) -> tuple[int, bool]:
    """How many rows n are chosen from together within seconds, and whether that can be done at all."""
    if isinstance(belief, NormalEnsemble | VectorNormalEnsemble) or obstacle(belief) is not None:
        return _ENSEMBLE_SHORTLIST, False
    if (hypotheses := getattr(getattr(belief, "latent", belief), "n_hypotheses", 1)) > 1:
        each = _PER_DRAWN * n * contexts * hypotheses
        listed = min(_ENSEMBLE_SHORTLIST, max(_SMALLEST_SHORTLIST, _MAX_JOINT_CELLS // each))
        return listed, each * max(_SMALLEST_SHORTLIST, n) <= _MAX_JOINT_CELLS
    classes: int | None = getattr(belief, "n_classes", None)
    if classes is None:
        return _SHORTLIST, n * max(_SHORTLIST, n) * contexts <= _MAX_JOINT_PAIRS
    each = CONFIGURATIONS * classes**2 * contexts * (n_members(belief) + _PER_CELL)  # products for one row
    pick = min(each * max(_ENSEMBLE_SHORTLIST, n), _RACE_PRODUCTS + _IN_FULL * each)
    return _ENSEMBLE_SHORTLIST, n * pick <= _MAX_JOINT_PRODUCTS


def _configurations(n: int) -> int:
    """How many configurations of labels are gone through to choose n rows of classes: about 256 for each row.

    The first few rows have fewer: with 2 classes the first eight have 2, 4, ... 256, which is 1150 less than 8 x 256
    up to a few; other numbers of classes are near enough for an estimate of the effort.
    """
    return 256 * max(n, 8) - 1150


def _pool_contexts(context_weights: Any, pool: Any, most: int, seed: int) -> tuple[Host, Host, Note]:
    """[M], [M]: positions and weights of the rows of the pool that are taken as contexts, and a note.

    All rows if there are at most `most`; else a uniform draw of those whose weight is not 0, with their weights
    normalised.

    Rows are drawn by position, so that a pool without weights costs no memory.
    """
    weighted, size = context_weights is not None, pool_size(pool)
    weights = _weights_of(context_weights, size) if weighted or size <= most else None
    if size <= most:
        assert weights is not None
        return np.arange(size), weights, Note("pool as contexts", {"size": size, "weighted": weighted})
    rng, reservoir = generator(seed, SUBSAMPLE), getattr(pool, "reservoir", None)
    if weights is None and reservoir is not None:  # drawn when its rows were counted
        drawn = np.sort(reservoir[:most])
    elif weights is None:
        drawn = np.sort(rng.choice(size, most, replace=False))
    else:
        rows = np.flatnonzero(weights > 0)
        drawn = np.sort(rng.choice(rows, min(most, len(rows)), replace=False))
    share = _weights_of(None if weights is None else weights[drawn], len(drawn))
    values = {"count": len(drawn), "size": size, "seed": seed, "weighted": weighted}
    return drawn, share, Note("drawn contexts", values)


def _weights_of(context_weights: Any, count: int) -> Host:
    """[M]: how often each context comes up, checked; shares."""
    if context_weights is None:
        return np.full(count, 1.0 / count)
    (weights,) = asarrays(context_weights=np.asarray(context_weights, dtype=float))
    check_shape("context_weights", weights, (count,))
    return np.asarray(shares("context_weights", weights))


def row_costs(costs: Any, size: int) -> Host | None:
    """[N]: the costs, checked; one number is the cost of each."""
    if costs is None:
        return None
    if np.asarray(costs).dtype == bool:
        raise StakesError(f"costs must be positive numbers: what it takes to label each row; got {costs!r:.100}")
    given = np.asarray(costs, dtype=float)
    (prices,) = asarrays(costs=given[None] if given.ndim == 0 else given)
    check_shape("costs", prices, (1,) if given.ndim == 0 else (size,))
    check_all(prices > 0, "costs must be positive: what it takes to label each row")
    return np.broadcast_to(np.asarray(prices), size)  # one number takes no memory for each row


def _checked_pending(pending: Sequence[int], size: int) -> tuple[int, ...]:
    """Positions of rows on their way, each once; there are others."""
    waiting = tuple(dict.fromkeys(pending))
    if bad := [row for row in waiting if not isinstance(row, Integral) or not 0 <= row < size]:
        raise StakesError(f"pending must hold positions of rows, 0 to {size - 1}; got {bad[0]!r}")
    if len(waiting) == size:
        raise StakesError(f"all {size} rows of the pool are pending: there is none to choose")
    return tuple(int(row) for row in waiting)


def at_least_one(name: str, value: Any) -> int:
    """A whole number, 1 or more."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} must be a whole number; got {value!r}") from error
    if is_true_or_false(value):
        raise TypeError(f"{name} must be a whole number; got {value!r}")
    if number < 1:
        raise StakesError(f"{name} must be 1 or more; got {value!r}")
    return number


def _checked_loss(loss: AnyLoss, classes: Any, model: Any) -> AnyLoss:
    """The loss with its classes in the order of the model's, where it names them; refused where `classes` are none."""
    if classes is not None:
        if isinstance(classes, str) or not isinstance(classes, Iterable):
            raise TypeError(f"classes must be a list of all classes, in the order of the loss; got {classes!r}")
        if isinstance(domain := getattr(loss, "domain", None), Interval | Vectors):
            raise StakesError(f"classes are for losses about classes, and this one is about {domain}: leave them out")
    _check_same_labels(loss, model)
    return loss if getattr(loss, "classes", None) is None else align_classes(loss, class_names(model, classes))


def _check_same_labels(loss: AnyLoss, model: Any) -> None:
    """Of rows with several labels, the loss and the model that know the names count sets by them in the same order."""
    known = model.labels if isinstance(model, DefaultModel) else None
    if known is None or (wanted := label_names(loss)) is None:
        return
    if [str(name) for name in known] != list(wanted):
        raise StakesError(
            "the loss and the model must be about the same labels in the same order; the loss is about "
            f"{list(wanted)}, and the model about {list(known)}"
        )
