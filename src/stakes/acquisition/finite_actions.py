"""Any finite set of actions under a Gaussian belief: curves EUR_c(rho), integrated between switching points.

Contexts whose curve a table does not resolve get more nodes, and in the end no table: an action that is best only in a
window of targets has no worth at all up to some rho, and a singular one there. Sizes: M contexts, R values of rho, n
candidates, P pairs of a context and a rho.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from array_api_compat import device

from stakes._array import Array, constant, double, log_of, namespace, slices
from stakes.acquisition.forms import GENERAL, Reduction
from stakes.acquisition.log_table import LogTable, octaves_of
from stakes.beliefs import GaussianBelief
from stakes.beliefs.gaussian_split import KINKED
from stakes.losses import Loss

_RESOLVED = 75.0  # in logarithms: integration over 14 sds resolves nothing smaller than the costs by exp(75)
_PAIRS = 1024  # that are integrated at once
_EFFORTS = (1, 2)  # by how much tables are refined
_FEW = 64  # candidates that are not worth a table
_DOUBT = 1e-7  # of the worth of knowing the target, by which a table may be wrong

Under: TypeAlias = Callable[[GaussianBelief], Any]
"""From a Gaussian belief to the one that a loss is integrated under: itself, or one about a warped target."""


def finite_actions_curve(loss: Loss, belief: GaussianBelief, under: Under) -> Reduction:
    """Tables for contexts where they serve, the general route for each pair of the others."""
    xp, mean, variance = namespace(belief.mean), double(belief.mean), double(belief.variance)
    if belief.n_candidates == 0:
        return Reduction(lambda block: xp.zeros_like(block.covariance), xp.zeros_like(mean))

    def log_values(rho: Any, mean: Array, variance: Array) -> Array:
        shares, shape = constant(rho, mean)[:, None], (len(rho), mean.shape[0])
        values = _reductions(loss, under, *(xp.broadcast_to(each, shape) for each in (mean, variance, shares)))
        resolved = values > math.exp(-_RESOLVED) * _worst_cost(loss, under, mean, variance)
        return xp.where(resolved, log_of(values), xp.full_like(values, -xp.inf))

    groups: list[tuple[Array, LogTable]] = []
    left = xp.arange(mean.shape[0], device=device(mean))
    for effort in _EFFORTS if belief.n_candidates > _FEW else ():
        if left.shape[0]:
            here = xp.take(mean, left), xp.take(variance, left)
            table = LogTable.of(*here, octaves_of(belief), log_values, effort)
            good, bad = xp.nonzero(table.doubt <= _DOUBT)[0], xp.nonzero(~(table.doubt <= _DOUBT))[0]
            groups.append((xp.take(left, good), table.take(good)))
            left = xp.take(left, bad)

    def of(block: GaussianBelief) -> Array:
        rho, parts = double(block.rho), [table.at(xp.take(double(block.rho), at, axis=1)) for at, table in groups]
        here = xp.take(mean, left), xp.take(variance, left), xp.take(rho, left, axis=1)
        parts.append(_reductions(loss, under, *(xp.broadcast_to(each, here[2].shape) for each in here)))
        order = xp.argsort(xp.concat([*(at for at, _ in groups), left]))
        return xp.astype(xp.take(xp.concat(parts, axis=1), order, axis=1), block.mean.dtype)

    return Reduction(of, xp.zeros_like(mean))


def _reductions(loss: Loss, under: Under, mean: Array, variance: Array, rho: Array) -> Array:
    """[R, M]: EUR by the general route for each pair, those of similar rho at once."""
    xp, shape = namespace(mean), rho.shape
    if 0 in shape:
        return xp.zeros_like(rho)
    flat = [xp.reshape(each, (-1,)) for each in (mean, variance, rho)]  # [P] each
    depth = xp.floor(xp.log2(xp.clip(xp.sqrt(1.0 - flat[2]), KINKED, 1.0)))
    places, values = [], []
    for each in range(math.floor(math.log2(KINKED)), 1):
        at = xp.nonzero(depth == float(each))[0]
        for part in slices(at.shape[0], _PAIRS) if at.shape[0] else ():
            places.append(at[part])
            values.append(_at_once(loss, under, *(xp.take(one, at[part]) for one in flat)))
    return xp.reshape(xp.take(xp.concat(values), xp.argsort(xp.concat(places))), shape)


def _at_once(loss: Loss, under: Under, mean: Array, variance: Array, rho: Array) -> Array:
    """[P]: of one candidate, each pair as one of its contexts."""
    xp = namespace(mean)
    table = under(GaussianBelief(mean, variance, xp.ones_like(mean[:1]), xp.sqrt(rho * variance)[None, :]))
    return GENERAL.prepare(loss, table).of(table)[0, :]


def _worst_cost(loss: Loss, under: Under, mean: Array, variance: Array) -> Array:
    """[M]: what the worst action is expected to cost beyond the best: the scale of all reductions."""
    alone = under(GaussianBelief(mean, variance, mean[:0], namespace(mean).zeros_like(mean)[None, :][:0, :]))
    return namespace(mean).max(alone.moments(loss, alone.reference(loss)), axis=-1)
