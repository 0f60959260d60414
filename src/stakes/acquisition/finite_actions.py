"""The curve EUR_c(rho) of any finite set of actions, integrated between switching points.

Sizes: M contexts, R values of rho.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import device

from stakes._array import Array, constant, log_of, namespace, slices
from stakes.acquisition.decisions import log_curve
from stakes.acquisition.forms import GENERAL, Reduction
from stakes.beliefs import GaussianBelief
from stakes.beliefs.gaussian_split import KINKED
from stakes.losses import Loss

_RESOLVED = 75.0  # in logarithms: integration over 14 sds resolves nothing smaller than the costs by exp(75)
_PAIRS = 1024  # of a context and a rho that are integrated at once

Under: TypeAlias = Callable[[GaussianBelief], Any]
"""From a Gaussian belief to the one that a loss is integrated under: itself, or one about a warped target."""


def finite_actions_curve(loss: Loss, belief: GaussianBelief, under: Under) -> Reduction:
    """The logarithm of the curve, over as many orders of magnitude as there are."""

    def log_values(rho: Any, mean: Array, variance: Array) -> Array:
        values = _reductions(loss, under, mean, variance, rho)
        resolved = values > math.exp(-_RESOLVED) * _worst_cost(loss, under, mean, variance)
        xp = namespace(values)
        return xp.where(resolved, log_of(values), xp.full_like(values, -xp.inf))

    return log_curve(belief, log_values)


def _reductions(loss: Loss, under: Under, mean: Array, variance: Array, rho: np.ndarray[Any, Any]) -> Array:
    """[R, M]: EUR by the general route, those of similar rho at once."""
    xp, groups, order = namespace(mean), [], []
    depth = np.floor(np.log2(np.clip(np.sqrt(1.0 - rho), KINKED, 1.0)))
    for each in np.unique(depth):
        rows = np.flatnonzero(depth == each)
        order.append(rows)
        groups.append(_at_once(loss, under, mean, variance, rho[rows]))
    back = np.argsort(np.concatenate(order))
    return xp.take(xp.concat(groups, axis=0), xp.asarray(back, device=device(mean)), axis=0)


def _at_once(loss: Loss, under: Under, mean: Array, variance: Array, rho: np.ndarray[Any, Any]) -> Array:
    """[R, M]: of one candidate, with R M contexts, in blocks."""
    xp = namespace(mean)
    shape = (len(rho), mean.shape[0])
    mean, variance, shares = (
        xp.reshape(xp.broadcast_to(each, shape), (-1,)) for each in (mean, variance, constant(rho, mean)[:, None])
    )
    table = under(GaussianBelief(mean, variance, xp.ones_like(mean[:1]), xp.sqrt(shares * variance)[None, :]))
    parts = [table.take(slice(None), part) for part in slices(table.n_contexts, _PAIRS)]
    return xp.reshape(xp.concat([GENERAL.prepare(loss, part).of(part)[0, :] for part in parts]), shape)


def _worst_cost(loss: Loss, under: Under, mean: Array, variance: Array) -> Array:
    """[M]: what the worst action is expected to cost beyond the best: the scale of all reductions."""
    alone = under(GaussianBelief(mean, variance, mean[:0], namespace(mean).zeros_like(mean)[None, :][:0, :]))
    return namespace(mean).max(alone.moments(loss, alone.reference(loss)), axis=-1)
