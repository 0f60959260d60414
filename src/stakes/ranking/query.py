"""Where the rows of a pool come from: a table in memory, or a file that is read in chunks of rows.

Sizes: N rows, p columns.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from stakes._utils.array import asarrays, check_all, check_shape, shares, slices
from stakes._utils.random import DRAWS, SUBSAMPLE, generator
from stakes._utils.tables import (
    Host,
    Table,
    check_same_columns,
    check_table,
    first_gap,
    labels_at,
    n_rows,
    row_labels,
    take_rows,
)
from stakes.beliefs import Belief
from stakes.exceptions import StakesError
from stakes.files import open_pool
from stakes.files.pools import MappedPool
from stakes.losses import AnyLoss
from stakes.losses.domains import Interval, Vectors
from stakes.models import prepare_belief
from stakes.models.inspection import accepts_missing, accepts_shapes, check_columns, check_fitted, served_by_own_belief

_CHECKED = 2**16  # rows that are checked at a time


@runtime_checkable
class Pool(Protocol):
    """N rows that need not be in memory at once: what `rank` asks of a source of rows, also of one of your own."""

    @property
    def n_rows(self) -> int:
        """N."""

    def chunks(self, size: int) -> Iterator[tuple[int, Table]]:
        """Where each chunk begins, and its rows, in order: at least one and at most `size`; the same whenever asked."""

    def take(self, rows: Host) -> Table:
        """The rows at some positions, in that order."""


@dataclass(frozen=True, eq=False)
class TablePool:
    """A table in memory."""

    table: Table

    @property
    def n_rows(self) -> int:
        """N."""
        return n_rows(self.table)

    def chunks(self, size: int) -> Iterator[tuple[int, Table]]:
        """Where each chunk begins, and its rows."""
        return ((part.start, take_rows(self.table, part)) for part in slices(self.n_rows, size))

    def take(self, rows: Host) -> Table:
        """The rows at some positions, in that order."""
        return take_rows(self.table, rows)


def opened(pool: Any, model: Any) -> Any:
    """The pool, or what is in the file at that path: the columns that the model was fitted with.

    A model that was fitted without names is given arrays without names.
    """
    if not isinstance(pool, str | os.PathLike):
        return pool
    names = getattr(model, "feature_names_in_", None)
    plain = names is None and hasattr(model, "n_features_in_")
    return open_pool(pool, None if names is None else [str(name) for name in names], plain=plain)


def checked_pool(pool: Any, model: Any, gaps: bool, progress: Callable[[str, float | None], None]) -> Pool:
    """The rows of a table, an array in a file, a path or a `Pool`, all of them checked: finite, or with `gaps`."""
    source = opened(pool, model)
    source, shapes = MappedPool(source) if isinstance(source, np.memmap) else source, accepts_shapes(model)
    if not isinstance(source, Pool):
        return TablePool(check_table("pool", source, gaps, any_shape=shapes))
    if source.n_rows == 0:
        raise StakesError("pool must have at least one row; got none")
    seen = 0
    for start, rows in source.chunks(_CHECKED):
        progress("checking rows", start / source.n_rows)
        check_table("pool", rows, gaps, range(start, start + n_rows(rows)), shapes)
        seen += n_rows(rows)
    if seen != source.n_rows:
        raise StakesError(f"pool says that it has {source.n_rows} rows, but its chunks hold {seen}")
    return source


def pool_labels(pool: Pool, rows: Host) -> list[Any]:
    """Of some rows: the index of a pandas frame, else positions."""
    return labels_at(pool.table, rows) if isinstance(pool, TablePool) else list(rows.tolist())


# ----------------------------------------------------------------------
# Which contexts stand for the future, and how often each comes up; what labels cost.
#
# Sizes: N rows of the pool, M contexts.


def stand_ins(context_weights: Any, size: int, most: int, seed: int, weighted: str) -> tuple[Host, Host, str]:
    """[M], [M]: rows of the pool that stand for the future, none that never come up if some are left out; and a word.

    Rows are drawn by position, so that a pool without weights costs no memory.
    """
    if size <= most:
        said = f"The {size} rows of the pool stand for the future contexts, {weighted}."
        return np.arange(size), weights_of(context_weights, size), said
    weights = None if context_weights is None else weights_of(context_weights, size)
    chance = generator(seed, SUBSAMPLE)
    if weights is None:
        drawn = np.sort(chance.choice(size, most, replace=False))
    else:
        rows = np.flatnonzero(weights > 0)
        drawn = np.sort(chance.choice(rows, min(most, len(rows)), replace=False))
    shares_of = weights_of(None if weights is None else weights[drawn], len(drawn))
    said = f"{len(drawn)} of the {size} rows of the pool, drawn with seed {seed}, stand for the future contexts, "
    return drawn, shares_of, f"{said}{weighted}."


def weights_of(context_weights: Any, count: int) -> Host:
    """[M]: how often each context comes up, checked; shares."""
    if context_weights is None:
        return np.full(count, 1.0 / count)
    (weights,) = asarrays(context_weights=np.asarray(context_weights, dtype=float))
    check_shape("context_weights", weights, (count,))
    return np.asarray(shares("context_weights", weights))


def checked_costs(costs: Any, count: int) -> Host | None:
    """[N]: the costs, checked."""
    if costs is None:
        return None
    (prices,) = asarrays(costs=np.asarray(costs, dtype=float))
    check_shape("costs", prices, (count,))
    check_all(prices > 0, "costs must be positive: what it takes to label each row")
    return np.asarray(prices)


# ----------------------------------------------------------------------
# What is asked of a model: which rows, for which contexts, under which loss. All checked here, trusted inside.
#
# Sizes: N rows of the pool, M contexts.

Progress: TypeAlias = Callable[[str, float | None], None]
"""Told what is being done, and the share that is done where that is known."""


def silent(what: str, share: float | None) -> None:
    """Nobody listens."""


@dataclass(frozen=True, eq=False)
class Question:
    """A fitted model, a loss, a pool and contexts."""

    model: Any
    loss: AnyLoss
    pool: Pool
    head: Table
    """The first row of the pool."""
    contexts: Table
    positions: Host | None
    """[M]: where the contexts are in the pool; None where they were given."""
    weights: tuple[float, ...]
    """[M]: how often each context comes up; shares."""
    target: Literal["label", "latent"]
    classes: Sequence[Any] | None
    seed: int
    progress: Progress
    prepared: dict[Any, Callable[[Table], Belief]] = field(default_factory=dict)
    """By target and `joint`: what the model says of the contexts, as a function of rows. It is not sent to others."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "prepared": {}}

    @property
    def size(self) -> int:
        """N."""
        return self.pool.n_rows

    def belief(self, rows: Host, joint: bool = False) -> Belief:
        """What the model believes of some rows and of all contexts; the same random numbers each time."""
        return self.belief_of(self.pool.take(rows), rows, joint)

    def first(self, joint: bool = False) -> Belief:
        """What the model believes of the first row, where any will do."""
        return self.belief_of(self.head, range(1), joint)

    def belief_of(self, part: Table, rows: Sequence[int] | Host, joint: bool = False) -> Belief:
        """What the model believes of the rows in a part of the pool, which are at some positions there."""
        belief = self._told(part, rows, joint)
        wanted, got = (n_rows(part), len(self.weights)), (belief.n_candidates, belief.n_contexts)
        if wanted != got:
            raise StakesError(
                f"the belief of {type(self.model).__name__} must be about the {wanted[0]} rows and {wanted[1]} "
                f"contexts it was asked for; it is about {got[0]} and {got[1]}"
            )
        return belief

    def _told(self, part: Table, rows: Sequence[int] | Host, joint: bool) -> Belief:
        """What the model says, or where the first gap is if it refuses: steps of a pipeline may take some gaps only."""
        key = self.target, joint
        try:
            if key not in self.prepared:
                chance = generator(self.seed, DRAWS)
                self.prepared[key] = prepare_belief(
                    self.model,
                    self.contexts,
                    target=self.target,
                    classes=self.classes,
                    joint=joint,
                    random_state=chance,
                )
            return self.prepared[key](part)
        except ValueError as error:
            if "NaN" not in str(error):
                raise
            said, order = str(error).splitlines()[0], np.argsort(rows)
            ordered = take_rows(part, order), np.asarray(rows)[order]
            for name, place in (("pool", first_gap(*ordered)), ("contexts", first_gap(self.contexts))):
                if place is not None:
                    raise StakesError(
                        f"{name} must hold no gaps but those the model takes; the first gap is at {place}: {said}"
                    ) from error
            raise

    def to_send(self) -> Question:
        """The question without its pool: what a worker needs who is sent rows."""
        return replace(self, pool=TablePool(self.head), positions=None, progress=silent)

    def with_target(self, target: Literal["label", "latent"]) -> Question:
        """The same question about another target."""
        return replace(self, target=target)

    def context_places(self) -> tuple[Host, list[Any]]:
        """[M], [M]: the position and the label of each context (those in the pool, where the pool stands for them)."""
        if self.positions is None:
            return np.arange(len(self.weights)), row_labels(self.contexts)
        return self.positions, pool_labels(self.pool, self.positions)


def ask(
    model: Any,
    loss: AnyLoss,
    pool: Any,
    contexts: Any,
    context_weights: Any,
    target: Literal["label", "latent"],
    classes: Sequence[Any] | None,
    seed: int,
    max_contexts: int,
    progress: Progress | None,
) -> tuple[Question, list[str]]:
    """The question, checked, and in sentences what it takes for granted."""
    check_fitted(model)
    _check_classes(loss, classes)
    gaps = accepts_missing(model)
    pool = checked_pool(pool, model, gaps, progress or silent)
    head = pool.take(np.arange(1))
    check_columns(model, "pool", head)
    weighted = "each as likely" if context_weights is None else "weighted as given"
    if contexts is not None:
        contexts = check_table("contexts", contexts, gaps, any_shape=accepts_shapes(model))
        check_same_columns(head, contexts)
        weights = weights_of(context_weights, n_rows(contexts))
        positions, said = None, f"The {n_rows(contexts)} contexts given stand for the future, {weighted}."
    else:
        most = at_least_one("max_contexts", max_contexts)
        positions, weights, said = stand_ins(context_weights, pool.n_rows, most, seed, weighted)
        contexts = pool.take(positions)
    shares_of = tuple(weights.tolist())
    question = Question(
        model, loss, pool, head, contexts, positions, shares_of, target, classes, seed, progress or silent
    )
    return question, [said, _target_sentence(model, target)]


def at_least_one(name: str, value: Any) -> int:
    """A whole number, 1 or more."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} must be a whole number; got {value!r}") from error
    if number < 1:
        raise StakesError(f"{name} must be 1 or more; got {value!r}")
    return number


def _check_classes(loss: AnyLoss, classes: Any) -> None:
    if classes is None:
        return
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise TypeError(f"classes must be a list of all classes, in the order of the loss; got {classes!r}")
    if isinstance(domain := getattr(loss, "domain", None), Interval | Vectors):
        raise StakesError(f"classes are for losses about classes, and this one is about {domain}: leave them out")


def _target_sentence(model: Any, target: str) -> str:
    if served_by_own_belief(model):
        return (
            "The target is what the model's own method `belief` takes it to be; `target` and `classes` were not used."
        )
    if target == "latent":
        return "The target is the latent function at a context, without the noise of a label."
    return "The target is the label that will be realised at a context, noise included."
