"""The candidates with the largest scores, without scoring those that cannot be among them.

Log loss on an ensemble is bounded from above by a quadratic form that costs the same for any number of contexts: as
(1 + r) log(1 + r) - r <= r^2, with J[y, z] = p_y p_z (1 + r),

    EUR(x; c) <= sum_yz w_z p_y p_z r^2 = sum_y cov_y' diag(w / p) cov_y / p_y.

Candidates are scored in the order of their bounds until no bound is left above the worst of the best.
Sizes: N candidates, M contexts, K members, C classes, k candidates asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import device, is_array_api_obj, is_numpy_array, is_torch_array

from stakes._utils.array import Array, constant, detached, double, filled, namespace, on_accelerator, replaced, slices
from stakes.acquisition.centred import covariance_matrix, quadratic_form
from stakes.acquisition.forms import Form
from stakes.acquisition.reduction import numbers_within, unscaled
from stakes.acquisition.scores import checked_context_weights, checked_costs, chosen_form, log_scorer, score
from stakes.beliefs import Belief, CategoricalEnsemble, VoteEnsemble
from stakes.exceptions import StakesError
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
        raise StakesError(f"count must be a whole number, 1 or more: how many candidates are wanted; got {count!r}")


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


# ----------------------------------------------------------------------
# The best of more candidates than a device has room for: they come from the host in blocks and are forgotten.
#
# Sizes: N candidates, n of a block, k candidates asked for.

_BLOCK = 2**29  # bytes of candidates that are on their way at once


def best_streamed(
    loss: AnyLoss,
    belief: CategoricalEnsemble | VoteEnsemble,
    candidates: Any,
    count: int = 1,
    context_weights: Any = None,
    costs: Any = None,
    *,
    form: Form | None = None,
    block: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Best:
    """The `count` best of `candidates` in host memory, for the contexts of `belief`, wherever that is.

    `candidates` are what the belief would hold, [N, K, C] probabilities or [N, K] votes: a NumPy array (a memory map,
    too) or a tensor, best in the precision in which they are to travel. Those that the belief holds itself are not
    looked at. To a GPU they are copied through pinned memory, `block` rows at a time (None: 512 MB), while the block
    before is scored; the best are kept there. `progress(what, share)` is called after each block.
    """
    check_count(count)
    _check(belief, candidates)
    candidates, xp, place = detached(candidates), namespace(belief.like), device(belief.like)
    total = candidates.shape[0]
    if costs is not None and (shape := np.shape(costs)) != (total,):
        raise StakesError(f"costs must have one number for each of the {total} candidates; got {list(shape)}")
    step = _rows(candidates) if block is None else _checked(block)
    positions, scores, start, scored = xp.arange(0, device=place), filled(0, 0.0, belief.like), 0, None
    with closing(_blocks(candidates, belief, step)) as arriving:
        for rows in arriving:
            part = replace(belief, candidates=rows)
            here = slice(start, start + part.n_candidates)
            scored = scored or log_scorer(chosen_form(form, loss, part), loss, part, context_weights)
            found = scored(part)
            if costs is not None:
                found = found - xp.log(checked_costs(_beside(costs[here], belief.like), part))
            first = xp.argsort(-found, stable=True)[:count]
            positions = xp.concat([positions, start + first])
            positions, scores = largest(positions, xp.concat([scores, xp.take(found, first)]), count)
            start = here.stop
            if progress is not None:
                progress("scoring candidates", start / total)
    top = float(scores[0]) if float(scores[0]) > -math.inf else 0.0
    return Best(positions, unscaled(xp.exp(scores - top), top, belief), total)


def _blocks(candidates: Any, belief: Any, step: int) -> Generator[Array]:
    """Blocks of candidates beside the belief, one after the other."""
    if is_torch_array(belief.contexts) and on_accelerator(belief.contexts):
        from stakes.gpu.pinned import travelling

        return travelling(candidates, belief.contexts.device, step)
    xp, place = namespace(belief.contexts), device(belief.contexts)
    own = is_numpy_array(candidates) and not is_numpy_array(belief.contexts)
    parts = (candidates[part, ...] for part in slices(candidates.shape[0], step))
    return (xp.asarray(_native(each) if own else each, device=place) for each in parts)


def _native(rows: Any) -> Any:
    """A copy: other libraries take no memory that is read-only, backwards or in a foreign order of bytes."""
    return np.array(rows, dtype=rows.dtype.newbyteorder("="), order="C")


def _checked(block: Any) -> int:
    if isinstance(block, int) and not isinstance(block, bool) and block >= 1:
        return block
    raise StakesError(f"block must be a whole number of candidates, 1 or more; got {block!r}")


def _rows(candidates: Any) -> int:
    """How many make a block of 512 MB."""
    return int(max(1, _BLOCK // (candidates.dtype.itemsize * math.prod(candidates.shape[1:]))))


def _check(belief: Any, candidates: Any) -> None:
    if not isinstance(belief, CategoricalEnsemble | VoteEnsemble):
        raise TypeError(
            f"candidates are streamed to a CategoricalEnsemble or a VoteEnsemble; got {type(belief).__name__}. "
            "stakes.rank reads rows of a pool in chunks for any model."
        )
    wanted = ["N", *belief.contexts.shape[1:]]
    if not is_array_api_obj(candidates) or list(candidates.shape[1:]) != wanted[1:] or candidates.shape[0] == 0:
        got = list(candidates.shape) if hasattr(candidates, "shape") else type(candidates).__name__
        raise StakesError(f"candidates must be an array {wanted} as the contexts are, with a row at least; got {got}")


def _beside(costs: Any, like: Array) -> Array:
    """Costs of a block where its scores are."""
    return constant(costs, like) if not is_array_api_obj(costs) or is_numpy_array(costs) else costs
