"""What is asked of a model: which rows, for which contexts, under which loss. All checked here, trusted inside.

Sizes: N rows of the pool, M contexts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from stakes._array import asarrays, check_all, check_shape, shares
from stakes.beliefs import Belief
from stakes.domains import Interval, Vectors
from stakes.losses import AnyLoss
from stakes.models import belief_of
from stakes.models.acceptance import accepts_missing, check_columns, check_fitted, served_by_own_belief
from stakes.models.tables import Host, Table, check_same_columns, check_table, first_gap, n_rows, row_labels, take_rows

SUBSAMPLE, LUCK, DRAWS = range(3)  # what a stream of random numbers is for: one seed, several independent streams


Progress: TypeAlias = Callable[[str, float | None], None]
"""Told what is being done, and the share that is done where that is known."""


def silent(what: str, share: float | None) -> None:
    """Nobody listens."""


@dataclass(frozen=True, eq=False)
class Question:
    """A fitted model, a loss, a pool and contexts."""

    model: Any
    loss: AnyLoss
    pool: Table
    contexts: Table
    positions: Host | None
    """[M]: where the contexts are in the pool; None where they were given."""
    weights: tuple[float, ...]
    """[M]: how often each context comes up; shares."""
    target: Literal["label", "latent"]
    classes: Sequence[Any] | None
    seed: int
    progress: Progress

    @property
    def size(self) -> int:
        """N."""
        return n_rows(self.pool)

    def belief(self, rows: slice | Host, joint: bool = False) -> Belief:
        """What the model believes of some rows and of all contexts; the same random numbers each time."""
        part = take_rows(self.pool, rows)
        belief = self._told(part, joint)
        wanted, got = (n_rows(part), len(self.weights)), (belief.n_candidates, belief.n_contexts)
        if wanted != got:
            raise ValueError(
                f"the belief of {type(self.model).__name__} must be about the {wanted[0]} rows and {wanted[1]} "
                f"contexts it was asked for; it is about {got[0]} and {got[1]}"
            )
        return belief

    def _told(self, part: Table, joint: bool) -> Belief:
        """What the model says, or where the first gap is if it refuses: steps of a pipeline may take some gaps only."""
        rng = generator(self.seed, DRAWS)
        try:
            return belief_of(
                self.model, part, self.contexts, target=self.target, classes=self.classes, joint=joint, rng=rng
            )
        except ValueError as error:
            if "NaN" not in str(error):
                raise
            said = str(error).splitlines()[0]
            for name, table in (("pool", self.pool), ("contexts", self.contexts)):
                if (place := first_gap(table)) is not None:
                    raise ValueError(
                        f"{name} must hold no gaps but those the model takes; the first gap is at {place}: {said}"
                    ) from error
            raise

    def with_target(self, target: Literal["label", "latent"]) -> Question:
        """The same question about another target."""
        return replace(self, target=target)

    def context_places(self) -> tuple[Host, list[Any]]:
        """[M], [M]: the position and the label of each context (those in the pool, where the pool stands for them)."""
        if self.positions is None:
            return np.arange(len(self.weights)), row_labels(self.contexts)
        labels = row_labels(self.pool)
        return self.positions, [labels[i] for i in self.positions]


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Random numbers for one purpose."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number, 0 or more; got {seed!r}")
    return np.random.default_rng([seed, purpose])


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
    pool = check_table("pool", pool, gaps)
    check_columns(model, "pool", pool)
    weighted = "each as likely" if context_weights is None else "weighted as given"
    if contexts is not None:
        contexts = check_table("contexts", contexts, gaps)
        check_same_columns(pool, contexts)
        weights = _weights(context_weights, n_rows(contexts))
        positions, said = None, f"The {n_rows(contexts)} contexts given stand for the future, {weighted}."
    else:
        weights = _weights(context_weights, n_rows(pool))
        positions, said = _stand_ins(weights, at_least_one("max_contexts", max_contexts), seed, weighted)
        contexts, weights = take_rows(pool, positions), np.asarray(shares("context_weights", weights[positions]))
    shares_of = tuple(weights.tolist())
    question = Question(model, loss, pool, contexts, positions, shares_of, target, classes, seed, progress or silent)
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


def _stand_ins(weights: Host, most: int, seed: int, weighted: str) -> tuple[Host, str]:
    """[M]: rows of the pool that stand for the future, none that never come up if some are left out; and a sentence."""
    size = len(weights)
    if size <= most:
        return np.arange(size), f"The {size} rows of the pool stand for the future contexts, {weighted}."
    rows = np.flatnonzero(weights > 0)
    drawn = generator(seed, SUBSAMPLE).choice(rows, min(most, len(rows)), replace=False)
    return np.sort(drawn), (
        f"{len(drawn)} of the {size} rows of the pool, drawn with seed {seed}, stand for the future contexts, "
        f"{weighted}."
    )


def _weights(context_weights: Any, count: int) -> Host:
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


def _target_sentence(model: Any, target: str) -> str:
    if served_by_own_belief(model):
        return (
            "The target is what the model's own method `belief` takes it to be; `target` and `classes` were not used."
        )
    if target == "latent":
        return "The target is the latent function at a context, without the noise of a label."
    return "The target is the label that will be realised at a context, noise included."
