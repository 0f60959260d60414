"""The candidates with the largest scores, without scoring those that cannot be among them.

Log loss on an ensemble is bounded from above by a quadratic form that costs the same for any number of contexts: as
(1 + r) log(1 + r) - r <= r^2, with J[y, z] = p_y p_z (1 + r),

    EUR(x; c) <= sum_yz w_z p_y p_z r^2 = sum_y cov_y' diag(w / p) cov_y / p_y.

Candidates are scored in the order of their bounds until no bound is left above the worst of the best.
Sizes: N candidates, M contexts, K members, C classes, k candidates asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stakes._array import Array, constant, double, namespace, replaced, slices
from stakes.acquisition.quadratic import covariance_matrix, quadratic_form
from stakes.acquisition.reduction import numbers_within
from stakes.acquisition.scores import checked_context_weights, checked_costs, score
from stakes.beliefs import Belief, CategoricalEnsemble
from stakes.losses import AnyLoss, LogLoss

_FIRST = 64  # candidates scored at first, twice as many after that
_ROUNDING = 1e-5  # by which a score in float32 may be above its bound


@dataclass(frozen=True, eq=False)
class Best:
    """Candidates with the largest scores, the largest first; of equal ones the first."""

    positions: Array
    """[k]"""
    scores: Array
    """[k]"""
    n_scored: int
    """How many candidates were scored; the others could not be among the best."""


def best(
    loss: AnyLoss,
    belief: Belief,
    count: int = 1,
    context_weights: Any = None,
    costs: Any = None,
    *,
    memory_limit: int | None = None,
) -> Best:
    """The `count` candidates with the largest scores (all of them where there are fewer), as `score` gives them."""
    check_count(count)
    settings = {"context_weights": context_weights, "memory_limit": memory_limit}
    if not (isinstance(loss, LogLoss) and isinstance(belief, CategoricalEnsemble) and _pays(belief)):
        scores = score(loss, belief, costs=costs, **settings)
        order = namespace(scores).argsort(-scores, stable=True)[:count]
        return Best(order, namespace(scores).take(scores, order, axis=0), belief.n_candidates)
    bounds = _bounds(loss, belief, checked_context_weights(context_weights, belief), memory_limit)
    prices = None if costs is None else checked_costs(costs, belief)
    return _searched(loss, belief, count, bounds if prices is None else bounds / prices, prices, settings)


def check_count(count: Any) -> None:
    """Refuse what is not a number of candidates."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError(f"count must be a whole number, 1 or more: how many candidates are wanted; got {count!r}")


def _searched(
    loss: LogLoss, belief: CategoricalEnsemble, count: int, bounds: Array, prices: Array, settings: dict[str, Any]
) -> Best:
    """Score in the order of `bounds`, a growing number at a time, until the rest cannot be among the best."""
    xp = namespace(bounds)
    order = xp.argsort(-bounds, stable=True)
    positions, scores, done = order[:0], bounds[:0], 0
    while done < belief.n_candidates:
        some = order[done : done + max(_FIRST, count, done)]
        prices_here = None if prices is None else xp.take(prices, some)
        block = replaced(belief, candidates=xp.take(belief.candidates, some, axis=0))
        positions = xp.concat([positions, some])
        scores = xp.concat([scores, double(score(loss, block, costs=prices_here, **settings))])
        done += some.shape[0]
        positions, scores = largest(positions, scores, count)
        left = float(bounds[int(order[done])]) if done < belief.n_candidates else 0.0  # what the rest cannot exceed
        if scores.shape[0] == count and float(scores[-1]) > (1.0 + _ROUNDING) * left:
            break
    return Best(positions, xp.astype(scores, belief.like.dtype), done)


def largest(positions: Array, scores: Array, count: int) -> tuple[Array, Array]:
    """The `count` largest; of equal scores those of the first candidates."""
    xp = namespace(scores)
    first = xp.argsort(positions, stable=True)
    kept = xp.take(first, xp.argsort(-xp.take(scores, first), stable=True)[:count])
    return xp.take(positions, kept), xp.take(scores, kept)


def _bounds(loss: LogLoss, belief: CategoricalEnsemble, shares: Array, memory_limit: int | None) -> Array:
    """[N]: what no score is above."""
    xp = namespace(belief.contexts)
    weights = double(constant(loss.class_weights or (1.0,) * belief.n_classes, belief.like))

    def values(block: CategoricalEnsemble) -> Array:
        contexts = double(block.contexts)
        mean = xp.sum(double(block.member_weights)[:, None] * contexts, axis=1, keepdims=True)  # [m, 1, C]
        return contexts * xp.sqrt(weights / xp.where(mean > 0, mean, xp.ones_like(mean)))

    matrix = covariance_matrix(belief, shares, values)
    step = max(1, numbers_within(memory_limit, belief) // (4 * belief.n_classes * belief.member_weights.shape[0]))
    parts = slices(belief.n_candidates, step)
    return xp.concat([quadratic_form(belief.take(part, slice(None)), matrix) for part in parts])


def _pays(belief: CategoricalEnsemble) -> bool:
    """Whether bounds cost a small part of what scores do."""
    return belief.n_candidates > _FIRST and 4 * belief.member_weights.shape[0] < belief.n_contexts * belief.n_classes
