"""A threshold decision under a Gaussian belief, in closed form through the bivariate normal.

Sizes: M contexts, R values of rho, n candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numpy.polynomial.legendre import leggauss
from scipy.special import ndtri

from stakes._array import Array, constant, density, double, log_of, namespace, normal_tail
from stakes.acquisition.forms import Form, Reduction, register
from stakes.acquisition.log_table import LogTable, octaves_of
from stakes.beliefs import GaussianBelief, WarpedGaussianBelief
from stakes.beliefs.quadrature import standard
from stakes.losses import ThresholdDecision


def threshold_curve(loss: ThresholdDecision, belief: GaussianBelief) -> Reduction:
    """(miss + false_alarm) P2, P2 = integral_0^inf Q(e + y s / r) pdf(k - y) dy with r = sqrt(rho), s = sqrt(1 - rho).

    Q is the normal tail. Act on eta iff r eta > t - s k, with t the threshold in standard units and k = Q^-1 of the
    break-even probability; e is that switch, counted outwards from where today's action is right. (docs/theory.md)
    """

    def log_values(rho: Any, mean: Array, variance: Array) -> Array:
        threshold = standard((loss.threshold,), mean, namespace(mean).sqrt(variance))[:, 0]  # [m]
        indifferent = _normal_quantile(loss.false_alarm, loss.miss)
        logs = _log_beyond_switch(threshold, indifferent, constant(rho, mean)[:, None])
        return math.log(loss.miss + loss.false_alarm) + logs

    table = LogTable.of(double(belief.mean), double(belief.variance), octaves_of(belief), log_values)

    def of(block: GaussianBelief) -> Array:
        return namespace(block.mean).astype(table.at(double(block.rho)), block.mean.dtype)

    return Reduction(of, namespace(belief.mean).zeros_like(double(belief.mean)))


def warped_threshold_curve(loss: ThresholdDecision, belief: WarpedGaussianBelief) -> Reduction:
    """The same with the threshold in units of the latent f; nothing to decide where the warp does not reach it."""
    places = belief.unwarped(loss).breakpoints
    if not places:
        return Reduction(lambda block: namespace(block.rho).zeros_like(block.rho), 0.0 * double(belief.latent.mean))
    curve = threshold_curve(ThresholdDecision(places[0], loss.miss, loss.false_alarm), belief.latent)
    return Reduction(lambda block: curve.of(block.latent), curve.log_scale)


def _normal_quantile(upper: float, lower: float) -> float:
    """The u with P(U > u) : P(U < u) = upper : lower, from the smaller of the two."""
    share = min(upper, lower) / (upper + lower)
    return float(ndtri(share)) * (1.0 if lower < upper else -1.0)


def _log_beyond_switch(threshold: Array, indifferent: float, rho: Array) -> Array:
    """[R, M]: the logarithm of P2."""
    xp = namespace(threshold)
    root, rest = xp.sqrt(rho), xp.sqrt(1.0 - rho)
    side = xp.where(threshold >= indifferent, xp.ones_like(threshold), -xp.ones_like(threshold))
    k = side * indifferent  # [M]
    switch = (abs(threshold - indifferent) + k * rho / (1.0 + rest)) / root  # [R, M]: e
    outside = xp.clip(switch, 0.0, None)
    slope = xp.clip(rest / root, 1e-150, None)
    # Beyond `end` the integrand has fallen by exp(40): that of Q, or that of the density.
    inward = xp.clip(k, None, 0.0)
    end = xp.minimum((xp.sqrt(outside**2 + 80.0) - switch) / slope, k + xp.sqrt(inward**2 + 80.0))
    nodes, weights = _unit_panels()
    total = xp.zeros_like(switch)
    for node, weight in zip(nodes, weights, strict=True):
        y = node * end
        total = total + weight * normal_tail(switch + slope * y, 0.5 * outside**2) * density(k - y)
    return log_of(total * end) - 0.5 * outside**2


def _unit_panels() -> tuple[list[float], list[float]]:
    """Gauss-Legendre nodes and weights on [0, 1], in panels that get wider."""
    nodes, weights = leggauss(20)
    parts = [(low + (high - low) * (1.0 + nodes) / 2.0, (high - low) / 2.0 * weights) for low, high in _PARTS]
    return [float(x) for part in parts for x in part[0]], [float(x) for part in parts for x in part[1]]


_PARTS = ((0.0, 0.2), (0.2, 0.5), (0.5, 1.0))


def _form(prepare: Callable[[Any, Any], Reduction]) -> Form:
    return Form("bivariate normal beyond the switch, EUR_c(rho)", prepare, lambda loss, belief: 28, 4096)


register(ThresholdDecision, None, GaussianBelief, _form(threshold_curve))
register(ThresholdDecision, None, WarpedGaussianBelief, _form(warped_threshold_curve))
