"""One number for each candidate: the expected reduction, averaged over contexts.

Sizes: N candidates, M contexts.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

from stakes._array import Array, asarrays, check_all, check_shape, double, namespace
from stakes.acquisition.forms import check_pair, find_form
from stakes.acquisition.reduction import MEMORY_LIMIT, blocks, check_finite, unscaled
from stakes.beliefs import Belief
from stakes.losses import Loss


@overload
def score(
    loss: Loss,
    belief: Belief,
    context_weights: Any = None,
    costs: Any = None,
    return_log_scale: Literal[False] = False,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> Array: ...


@overload
def score(
    loss: Loss,
    belief: Belief,
    context_weights: Any = None,
    costs: Any = None,
    *,
    return_log_scale: Literal[True],
    memory_limit: int = MEMORY_LIMIT,
) -> tuple[Array, float]: ...


def score(
    loss: Loss,
    belief: Belief,
    context_weights: Any = None,
    costs: Any = None,
    return_log_scale: bool = False,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> Array | tuple[Array, float]:
    """[N]: E_c[EUR(x; c)], what the label of each candidate is worth for one decision, in units of the loss.

    `context_weights` [M] say how often each context comes up (normalised; alike without them). With `costs` [N], the
    worth for each unit of labelling cost. With `return_log_scale`, scores relative to the largest, and a number: the
    worth is `scores * exp(log_scale)`, however large or small. Temporaries stay below `memory_limit` bytes or one pair.
    """
    form = find_form(loss, belief)
    xp = namespace(belief.like)
    weights = _context_weights(context_weights, belief)  # [M]
    total, top = xp.zeros(belief.n_candidates, dtype=xp.float64), -math.inf
    for contexts, log_scale, parts in blocks(form, loss, belief, memory_limit):
        here = weights[contexts]
        log_scale = xp.where(here > 0, double(log_scale), xp.full_like(here, -xp.inf))
        before, top = top, max(top, float(xp.max(log_scale)))
        share = here * xp.exp(log_scale - (top if top > -math.inf else 0.0))  # [m]
        worth = xp.concat([xp.matmul(double(part), share) for part in parts])  # [N]
        total = worth if before == -math.inf else total * math.exp(before - top) + worth
    top = top if top > -math.inf else 0.0
    total = total if costs is None else total / _costs(costs, belief)
    if not return_log_scale:
        return unscaled(total, top, belief)
    largest = float(xp.max(check_finite(total))) if belief.n_candidates else 0.0
    if largest > 0:
        total, top = total / largest, top + math.log(largest)
    return xp.astype(total, belief.like.dtype), top


def effective_context_weights(loss: Loss, belief: Belief, context_weights: Any = None) -> Array:
    """[M]: p_w(c), proportional to p(c) E[w(z) | c]: where the loss looks (the paper's Corollary 1).

    A loss without a weight looks where the contexts are.
    """
    check_pair(loss, belief)
    xp = namespace(belief.like)
    weights = _context_weights(context_weights, belief)
    if getattr(loss, "weight", None) is not None:
        reference = belief.reference(loss)
        mass = weights * double(belief.moments(loss, reference))[:, 0]
        scale = double(reference.log_scale)
        log_mass = scale + xp.log(xp.where(mass > 0, mass, xp.ones_like(mass)))
        top = xp.max(xp.where(mass > 0, log_mass, xp.full_like(mass, -xp.inf)))
        check_all(xp.isfinite(top), "the loss puts no weight on any target that the belief thinks possible")
        weights = xp.where(mass > 0, xp.exp(log_mass - top), xp.zeros_like(mass))
        weights = weights / xp.sum(weights)
    return xp.astype(weights, belief.like.dtype)


def integration_error(loss: Loss, belief: Any, **settings: Any) -> Array:
    """[N]: how far each score moves when the belief's rule is refined, as a fraction of the largest score.

    For beliefs that integrate outcomes by a rule of choice (`NormalEnsemble`): scores are converged where it is small.
    """
    if not hasattr(belief, "refined"):
        raise TypeError(f"{type(belief).__name__} has no rule to refine: its outcomes are exact or to 1e-9")
    now, finer = (score(loss, each, **settings) for each in (belief, belief.refined()))
    xp = namespace(now)
    return abs(finer - now) / xp.max(abs(finer))


def _context_weights(context_weights: Any, belief: Belief) -> Array:
    """[M]: checked, normalised, in double precision."""
    xp = namespace(belief.like)
    count = belief.n_contexts
    if context_weights is None:
        return xp.full((count,), 1.0 / count, dtype=xp.float64)
    _, weights = asarrays(like=belief.like, context_weights=context_weights)
    check_shape("context_weights", weights, (count,))
    check_all(weights >= 0, "context_weights must be at least 0")
    weights = double(weights)
    check_all(xp.sum(weights) > 0, "context_weights must not all be 0")
    return weights / xp.sum(weights)


def _costs(costs: Any, belief: Belief) -> Array:
    _, costs = asarrays(like=belief.like, costs=costs)
    check_shape("costs", costs, (belief.n_candidates,))
    check_all(costs > 0, "costs must be positive: what it takes to label each candidate")
    return double(costs)
