"""Finite actions under a Gaussian belief: one curve EUR_c(rho) for each context, over many orders of magnitude.

At indifference EUR grows like sqrt(rho); k standard deviations from a switch it is exp(-k^2 / (2 rho)) small. So it is
the logarithm that is interpolated, in panels: in s = sqrt(1 - rho) where rho is large, below in log2(sqrt(rho)), one
panel an octave. A threshold decision has its values in closed form, through the bivariate normal; other finite actions
are integrated between switching points. Sizes: M contexts, O panels, R nodes of a panel, n candidates, Q nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtri

from stakes._array import Array, constant, density, double, log_of, namespace, normal_tail
from stakes.acquisition.forms import Form, Reduction, register
from stakes.beliefs import GaussianBelief, WarpedGaussianBelief
from stakes.beliefs.quadrature import standard
from stakes.losses import ThresholdDecision

_TOP, _NODES = 24, 14  # nodes of the panel of large rho, and of each octave below
_OCTAVES = 20  # to rho = 1e-12; below, EUR is either 0 or grows like sqrt(rho)
_SPLIT = 0.4  # rho between the top panel and the octaves, away from what is singular: s at rho = 0, log2 at rho = 1
_RELIABLE = 80.0  # in logarithms: integration resolves no value that is smaller than the largest by exp(80)


def log_curve(belief: GaussianBelief, log_values: Callable[[Any], Array], log_scale: Array) -> Reduction:
    """Tabulate log EUR, which `log_values` gives as [R, M] for rho [R]; interpolate for any block of candidates."""
    octaves = _octaves(belief)
    rho = np.concatenate([_top_nodes(), *(_octave_nodes(octave) for octave in range(octaves))])
    values = _continued(log_values(rho), rho)
    table = _coefficients(values, octaves)  # [O, R, M]

    def of(block: GaussianBelief) -> Array:
        return namespace(block.mean).astype(_interpolated(table, double(block.rho)), block.mean.dtype)

    return Reduction(of, log_scale)


def log_reductions(reductions: Array) -> Array:
    """Log EUR, with -inf for what is too small to have been resolved beside the largest of its context."""
    xp = namespace(reductions)
    logs = log_of(reductions)
    return xp.where(logs > xp.max(logs, axis=0) - _RELIABLE, logs, xp.full_like(logs, -xp.inf))


def _octaves(belief: GaussianBelief) -> int:
    """How many octaves of sqrt(rho) the candidates reach into."""
    xp, rho = namespace(belief.mean), double(belief.rho)
    positive = xp.where(rho > 0, rho, xp.ones_like(rho))
    smallest = float(xp.min(positive)) if math.prod(rho.shape) else 1.0
    return min(_OCTAVES, max(0, math.ceil(0.5 * math.log2(_SPLIT / smallest))))


def _chebyshev_points(count: int) -> Any:
    return np.cos(np.pi * (np.arange(count) + 0.5) / count)


def _top_nodes() -> Any:
    return 1.0 - (1.0 - _SPLIT) * ((1.0 + _chebyshev_points(_TOP)) / 2.0) ** 2


def _octave_nodes(octave: int) -> Any:
    return _SPLIT * 4.0 ** -(octave + (1.0 + _chebyshev_points(_NODES)) / 2.0)


def _continued(logs: Array, rho: Any) -> Array:
    """[R, M]: log EUR where it is -inf goes on as -k^2 / (2 rho) does, from the smallest rho where it is known."""
    xp = namespace(logs)
    shares = constant(rho, logs)[:, None]
    known = xp.isfinite(logs)
    last = xp.min(xp.where(known, shares, xp.ones_like(logs)), axis=0)  # [M]
    top = xp.max(logs, axis=0)
    top = xp.where(xp.isfinite(top), top, xp.full_like(top, -1e4))  # nothing anywhere: exp(-1e4) is 0
    lowest = xp.min(xp.where(known, logs, xp.zeros_like(logs) + top), axis=0)
    return xp.where(known, logs, top + (lowest - top) * (1.0 / shares - 1.0) / (1.0 / last - 1.0))


def _coefficients(values: Array, octaves: int) -> Array:
    """[O, R, M]: Chebyshev coefficients of each panel; those of octaves end in zeros."""
    xp = namespace(values)
    top = xp.matmul(constant(_transform(_TOP, _TOP), values), values[:_TOP, :])
    octave = constant(_transform(_NODES, _TOP), values)  # [_TOP, _NODES]
    starts = range(_TOP, _TOP + octaves * _NODES, _NODES)
    return xp.stack([top, *(xp.matmul(octave, values[start : start + _NODES, :]) for start in starts)])


def _transform(count: int, size: int) -> Any:
    """[size, count]: from values at Chebyshev points to coefficients."""
    angles = np.pi * (np.arange(count) + 0.5) / count
    matrix = 2.0 / count * np.cos(np.outer(np.arange(size), angles)) * (np.arange(size) < count)[:, None]
    matrix[0] /= 2.0
    return matrix


def _interpolated(table: Array, rho: Array) -> Array:
    """[n, M]: EUR at rho [n, M]."""
    xp = namespace(table)
    panels, size, count = table.shape
    smallest = _SPLIT * 4.0 ** (1 - panels)
    depth = 0.5 * xp.log2(_SPLIT / xp.clip(rho, smallest, 1.0))  # which octave, and how far into it
    panel = xp.clip(xp.floor(depth) + 1.0, 0.0, panels - 1.0)
    x = xp.where(panel == 0, 2.0 * xp.sqrt((1.0 - rho) / (1.0 - _SPLIT)), 2.0 * (depth - panel + 1.0)) - 1.0
    start = xp.astype(panel, xp.int64) * (size * count) + xp.arange(count, device=getattr(rho, "device", None))
    flat = xp.reshape(table, (-1,))
    ahead, further = xp.zeros_like(x), xp.zeros_like(x)
    for r in range(size - 1, 0, -1):
        ahead, further = _taken(flat, start + r * count) + 2.0 * x * ahead - further, ahead
    logs = _taken(flat, start) + x * ahead - further
    return xp.exp(logs) * xp.sqrt(xp.clip(rho / smallest, 0.0, 1.0))  # below the table, in proportion to sqrt(rho)


def _taken(flat: Array, positions: Array) -> Array:
    xp = namespace(flat)
    return xp.reshape(xp.take(flat, xp.reshape(positions, (-1,))), positions.shape)


def threshold_curve(loss: ThresholdDecision, belief: GaussianBelief) -> Reduction:
    """(miss + false_alarm) P2, P2 = integral_0^inf Q(e + y s / r) pdf(k - y) dy with r = sqrt(rho), s = sqrt(1 - rho).

    Q is the normal tail. Act on eta iff r eta > t - s k, with t the threshold in standard units and k = Q^-1 of the
    break-even probability; e is that switch, counted outwards from where today's action is right. (docs/theory.md)
    """
    mean, variance = double(belief.mean), double(belief.variance)
    threshold = standard((loss.threshold,), mean, namespace(mean).sqrt(variance))[:, 0]  # [M]
    total = math.log(loss.miss + loss.false_alarm)
    indifferent = _normal_quantile(loss.false_alarm, loss.miss)
    return log_curve(
        belief,
        lambda rho: total + _log_beyond_switch(threshold, indifferent, constant(rho, mean)[:, None]),
        namespace(mean).zeros_like(mean),
    )


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
    return Form("bivariate normal beyond the switch, EUR_c(rho)", prepare, lambda loss, belief: 14, 2048)


register(ThresholdDecision, None, GaussianBelief, _form(threshold_curve))
register(ThresholdDecision, None, WarpedGaussianBelief, _form(warped_threshold_curve))
