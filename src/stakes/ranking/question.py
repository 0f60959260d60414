"""What is asked of a model: which rows, for which contexts, under which loss. All checked here, trusted inside.

Sizes: N rows of the pool, M contexts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from stakes.beliefs import Belief
from stakes.domains import Interval, Vectors
from stakes.losses import AnyLoss
from stakes.models import belief_of
from stakes.models.acceptance import accepts_missing, accepts_shapes, check_columns, check_fitted, served_by_own_belief
from stakes.models.table_checks import check_same_columns, check_table, first_gap
from stakes.models.tables import Host, Table, n_rows, row_labels, take_rows
from stakes.ranking.chance import DRAWS, generator
from stakes.ranking.futures import stand_ins, weights_of
from stakes.ranking.pools import Pool, TablePool, checked_pool, pool_labels

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
    keep: dict[Any, Any] = field(default_factory=dict)
    """What the model needs to know of the contexts, so that no part of the pool asks for it again."""

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
            raise ValueError(
                f"the belief of {type(self.model).__name__} must be about the {wanted[0]} rows and {wanted[1]} "
                f"contexts it was asked for; it is about {got[0]} and {got[1]}"
            )
        return belief

    def _told(self, part: Table, rows: Sequence[int] | Host, joint: bool) -> Belief:
        """What the model says, or where the first gap is if it refuses: steps of a pipeline may take some gaps only."""
        rng = generator(self.seed, DRAWS)
        try:
            return belief_of(
                self.model,
                part,
                self.contexts,
                target=self.target,
                classes=self.classes,
                joint=joint,
                rng=rng,
                keep=self.keep,
            )
        except ValueError as error:
            if "NaN" not in str(error):
                raise
            said, order = str(error).splitlines()[0], np.argsort(rows)
            ordered = take_rows(part, order), np.asarray(rows)[order]
            for name, place in (("pool", first_gap(*ordered)), ("contexts", first_gap(self.contexts))):
                if place is not None:
                    raise ValueError(
                        f"{name} must hold no gaps but those the model takes; the first gap is at {place}: {said}"
                    ) from error
            raise

    def to_send(self) -> Question:
        """The question without its pool: what a worker needs who is sent rows."""
        return replace(self, pool=TablePool(self.head), positions=None, progress=silent, keep={})

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
        raise ValueError(f"{name} must be 1 or more; got {value!r}")
    return number


def _check_classes(loss: AnyLoss, classes: Any) -> None:
    if classes is None:
        return
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise TypeError(f"classes must be a list of all classes, in the order of the loss; got {classes!r}")
    if isinstance(domain := getattr(loss, "domain", None), Interval | Vectors):
        raise ValueError(f"classes are for losses about classes, and this one is about {domain}: leave them out")


def _target_sentence(model: Any, target: str) -> str:
    if served_by_own_belief(model):
        return (
            "The target is what the model's own method `belief` takes it to be; `target` and `classes` were not used."
        )
    if target == "latent":
        return "The target is the latent function at a context, without the noise of a label."
    return "The target is the label that will be realised at a context, noise included."
