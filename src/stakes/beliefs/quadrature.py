"""Integration under normal distributions, in standard units u = (z - mean) / sd.

Smooth integrands: the trapezoid rule, which converges exponentially on a normal density (spacing 1/8 gives 1e-11 for a
sigmoid of slope 6/sd). Kinks and jumps: Gauss-Legendre panels that split there. Both on a window around the weighted
mass. Sizes: t magnitudes, B breakpoints, Q nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import device
from numpy.polynomial.legendre import leggauss

from stakes._utils.array import Array, constant, density, namespace, normal_tail, slices
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.losses.actions import ThresholdDecision
from stakes.losses.bregman import SquaredError
from stakes.losses.domains import Domain
from stakes.losses.weights import ExponentialWeight

TAIL = 9.0  # standard deviations kept on each side: the mass beyond is 1e-19
FAR_TAIL = 14.0  # the same for finite actions, where all that matters may lie that far out: exp(-98)
SPACING = 0.125  # of trapezoid nodes, in standard deviations of the target
COARSEST = 0.5  # spacing at which the trapezoid rule still integrates the normal density itself to 1e-34
_NEGLIGIBLE = 40.0  # in logarithms
_NEWTON_STEPS, _STILL = 8, 1e-4  # towards a mode, and the standard deviations that the last of them moves at most
_FURTHEST = 70.0  # standard deviations: beyond, a weight relative to its largest leaves the range of numbers
PANEL = 2.0  # widest panel of ten Gauss-Legendre nodes, in standard deviations
_FINER = 0.7  # of the width of panels, for a second rule
_NODES, _WEIGHTS = leggauss(10)
Edges: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
"""Targets in order, and how far from each the statistics look smooth."""
CHUNK = 2**18  # numbers that a temporary of an integration may hold: 2 MiB, within reach of the cache


@dataclass(frozen=True, eq=False)
class Resolved:
    """An integrand, and what it takes to integrate it."""

    of: Any
    """The integrand as it was given"""
    spacing: float = SPACING
    """Of even nodes that resolve it, in standard deviations; 0 where only panels between `edges` do"""
    error: float = 0.0
    """Of what could not be resolved, as a fraction of its moments"""
    find_edges: Callable[[], Edges] = field(default=lambda: ((), ()))
    width: float = 1.0
    """Of panels and spacings, over the usual: below 1 for a second rule, to see what is left of the error"""
    steepness: float = 1.0
    """Of the statistics, over what the usual spacing resolves"""
    reach: float = 0.0
    """Standard deviations to keep on each side, where that is more than the usual"""

    @cached_property
    def _found(self) -> Edges:
        return self.find_edges()

    @property
    def edges(self) -> tuple[float, ...]:
        """Targets between which a panel resolves the statistics, in order; none where all is smooth."""
        return self._found[0]

    @property
    def scales(self) -> tuple[float, ...]:
        """How far from each edge the statistics look smooth; 0 for a jump or a kink."""
        return self._found[1]

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""
        return self.of.domain  # type: ignore[no-any-return]

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The edges, where panels are needed."""
        return self.edges if self.spacing == 0 else ()

    @property
    def finite_actions(self) -> bool:
        """Whether the statistics are the costs of actions."""
        return bool(self.of.finite_actions)

    def log_magnitudes(self, z: Array) -> Array:
        """[..., t]: those of the integrand."""
        return self.of.log_magnitudes(z)

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., D]: those of the integrand."""
        return self.of.statistics(z, reference)

    def refined(self) -> Resolved:
        """The same by a finer rule."""
        return replace(self, width=_FINER, spacing=_FINER * self.spacing, find_edges=lambda: self._found)

    def with_integrand(self, other: Integrand) -> Resolved:
        """Another integrand that is rough in the same places, such as the weight times something smooth."""
        return replace(self, of=other, find_edges=lambda: self._found)


def trapezoid(low: Array, high: Array, spacing: float) -> tuple[Array, Array]:
    """Nodes [..., Q] from low to high [...] at most `spacing` apart, and their weights [..., 1]."""
    widest = float(namespace(low).max(high - low)) if math.prod(low.shape) else 0.0
    count = 1 + math.ceil(widest / spacing)
    share = constant(np.linspace(0.0, 1.0, count), low)
    width = (high - low)[..., None]
    return low[..., None] + width * share, width / max(count - 1, 1)


def panels(low: Array, high: Array, cuts: Array, width: float = PANEL) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights [..., Q] on panels from low to high [...] that split at `cuts` [..., B]."""
    xp = namespace(low)
    widest = float(xp.max(high - low)) if math.prod(low.shape) else 0.0
    share = constant(np.linspace(0.0, 1.0, 1 + math.ceil(widest / width)), low)
    low, high = low[..., None], high[..., None]
    base = low + (high - low) * share
    cuts = xp.where(cuts < low, low, xp.where(cuts > high, high, cuts))
    edges = xp.sort(xp.concat([xp.broadcast_to(base, (*cuts.shape[:-1], base.shape[-1])), cuts], axis=-1), axis=-1)
    half = (edges[..., 1:] - edges[..., :-1])[..., None] / 2.0  # [..., P, 1]
    middle = (edges[..., 1:] + edges[..., :-1])[..., None] / 2.0
    shape = (*edges.shape[:-1], (edges.shape[-1] - 1) * len(_NODES))
    nodes = middle + half * constant(_NODES, low)
    return xp.reshape(nodes, shape), xp.reshape(half * constant(_WEIGHTS, low), shape)


def tail_width(integrand: Integrand) -> float:
    """How many standard deviations are kept on each side."""
    usual = FAR_TAIL if integrand.finite_actions else TAIL
    return max(usual, integrand.reach) if isinstance(integrand, Resolved) else usual


def modes_and_window(
    integrand: Integrand,
    mean: Array,
    sd: Array,
    tail: float | Array | None = None,
    negligible: float = _NEGLIGIBLE,
    steps: int = _NEWTON_STEPS,
) -> tuple[Array, Array, Array]:
    """In standard units: where each magnitude times the normal density is largest [..., t], and a window [...], [...].

    A grid finds the neighbourhood, Newton steps the place: exact at once where the log weight is linear, however steep.
    The window holds all that is not smaller by exp(40) (`negligible`) somewhere on the grid, and a tail on each side of
    the places.
    """
    xp = namespace(mean)
    grid = constant(np.linspace(-20.0, 20.0, 81), mean)
    heights = integrand.log_magnitudes(mean[..., None] + sd[..., None] * grid) - 0.5 * (grid * grid)[:, None]
    heights = xp.where(xp.isnan(heights), xp.full_like(heights, -xp.inf), heights)  # [..., 81, t]
    largest = xp.max(heights, axis=-2, keepdims=True)
    matters = xp.isfinite(largest) & (heights > largest - negligible)
    places = xp.where(matters, grid[:, None], xp.zeros_like(heights))
    low, high = xp.min(places, axis=(-2, -1)), xp.max(places, axis=(-2, -1))
    u = xp.sum(xp.where(is_first_largest(heights), places, xp.zeros_like(heights)), axis=-2)  # [..., t]
    for _ in range(steps):
        before, u = u, newton_step(lambda u: _log_heights(integrand, mean, sd, u), u)
        if bool(xp.all(abs(u - before) <= _STILL)):
            break
    if math.prod(u.shape) and (furthest := float(xp.max(abs(u)))) > _FURTHEST:
        raise FloatingPointError(
            f"the weight is so steep that what matters lies {furthest:.0f} standard deviations from the mean, too far "
            "to integrate, or the expected loss is infinite. Scale it down; SquaredError and Linex with an "
            "ExponentialWeight need no integration under a Gaussian belief."
        )
    tail = tail_width(integrand) if tail is None else tail
    below, above = xp.min(u, axis=-1) - tail, xp.max(u, axis=-1) + tail
    return u, xp.where(below < low, below, low), xp.where(above > high, above, high)


def weight_modes(integrand: Integrand, mean: Array, sd: Array) -> Array:
    """[...]: in standard units, where the weight times the normal density is largest."""
    rate = _log_rate(integrand)
    if rate is None or (rate and math.prod(sd.shape) and abs(rate) * float(namespace(sd).max(sd)) > _FURTHEST):
        return modes_and_window(integrand, mean, sd)[0][..., 0]
    return rate * sd


def _log_rate(integrand: Any) -> float | None:
    """The slope of the log of the weight, where that is a line: 0 without one; None where it is not known.

    Costs of an action have the magnitudes of their loss.
    """
    given = integrand.of if isinstance(integrand, Resolved) else integrand
    loss = getattr(given.log_magnitudes, "__self__", None)
    if type(loss) not in (SquaredError, ThresholdDecision):
        return None
    weight = getattr(loss, "weight", None)
    return 0.0 if weight is None else weight.rate if type(weight) is ExponentialWeight else None


def is_first_largest(heights: Array) -> Array:
    """[..., G, t]: true at the first of the largest along G."""
    xp = namespace(heights)
    best = xp.argmax(heights, axis=-2, keepdims=True)
    return best == xp.reshape(xp.arange(heights.shape[-2], device=device(heights)), (-1, 1))


def _log_heights(integrand: Integrand, mean: Array, sd: Array, u: Array) -> Array:
    """[..., t]: the log of each magnitude times the density, each at its own point u [..., t]."""
    xp = namespace(mean)
    magnitudes = integrand.log_magnitudes(mean[..., None] + sd[..., None] * u)  # [..., t, t]
    own = constant(np.eye(magnitudes.shape[-1]), mean) > 0
    return xp.sum(xp.where(own, magnitudes, xp.zeros_like(magnitudes)), axis=-1) - 0.5 * u * u


def newton_step(height: Callable[[Array], Array], u: Array) -> Array:
    """One safeguarded Newton step towards a maximum of `height`."""
    xp = namespace(u)
    step = 0.25
    here, above, below = height(u), height(u + step), height(u - step)
    finite = xp.isfinite(here) & xp.isfinite(above) & xp.isfinite(below)
    zero = xp.zeros_like(u)
    here, above, below = (xp.where(finite, value, zero) for value in (here, above, below))
    slope, bend = (above - below) / (2.0 * step), (above - 2.0 * here + below) / step**2
    move = xp.clip(slope / xp.where(bend < -0.1, -bend, xp.ones_like(bend)), -16.0, 16.0)  # a warp may run away
    for shrink in (1.0, 0.25):
        there = height(u + shrink * move)
        better = xp.isfinite(there) & (there > here) & finite
        u, here = xp.where(better, u + shrink * move, u), xp.where(better, there, here)
        move = xp.where(better, zero, move)
    return u


def windows(integrand: Integrand, mean: Array, sd: Array) -> tuple[Array, Array]:
    """[...], [...]: in standard units, a window that holds the mass of every statistic under each normal."""
    _, low, high = modes_and_window(integrand, mean, sd)
    return common_window(low, high)


def common_window(low: Array, high: Array) -> tuple[Array, Array]:
    """[...], [...]: the window that holds all of them, where it is less than twice as wide as the widest."""
    xp = namespace(low)
    if math.prod(low.shape) == 0:
        return low, high
    lowest, highest = xp.min(low), xp.max(high)
    if float(highest - lowest) < 2.0 * float(xp.max(high - low)):  # one window for all: nodes can be shared
        low, high = xp.zeros_like(low) + lowest, xp.zeros_like(high) + highest
    return low, high


def standard_nodes(
    integrand: Resolved, mean: Array, sd: Array, width: float = PANEL
) -> tuple[Array, Array, Array, Array]:
    """Nodes u and weights (without the density) [..., Q] to integrate the statistics, and their window [...] twice."""
    low, high = windows(integrand, mean, sd)
    if integrand.breakpoints:
        nodes, weights = panels(low, high, standard_units(integrand.breakpoints, mean, sd), integrand.width * width)
    else:
        nodes, weights = trapezoid(low, high, integrand.spacing)
    return nodes, namespace(mean).broadcast_to(weights, nodes.shape), low, high


def standard_units(points: tuple[float, ...], mean: Array, sd: Array) -> Array:
    """[..., B]: `points` in standard units of each normal (a constant has none: far away)."""
    xp = namespace(mean)
    spread = xp.where(sd > 0, sd, xp.full_like(sd, 1e-150))[..., None]
    away = constant(points, mean) - mean[..., None]
    near = abs(away) < 1e100 * spread  # elsewhere the quotient may leave the range of numbers
    return xp.where(near, xp.where(near, away, xp.zeros_like(away)) / spread, 1e100 * xp.sign(away))


def normal_moments(integrand: Resolved, mean: Array, sd: Array, reference: Reference) -> Array:
    """[M, K, D]: E[S(z)] for z ~ N(mean, sd^2), both [M, K]; the reference is shared along K. In blocks of K."""
    xp = namespace(mean)
    point = reference.point
    assert point is not None
    if (closed := _closed_moments(integrand.of, mean, sd, reference)) is not None:
        return closed
    boost = (log_weight(point, integrand) - reference.log_scale)[:, None, None]
    parts = []
    for part in member_slices(mean, integrand):
        centre, spread = mean[:, part], sd[:, part]
        u, weights, _, _ = standard_nodes(integrand, centre, spread)  # [M, k, Q]
        statistics = integrand.statistics(centre[..., None] + spread[..., None] * u, point[:, None, None])
        parts.append(xp.sum((weights * density(u, boost))[..., None] * statistics, axis=2))  # [M, k, D]
    return xp.concat(parts, axis=1)


def _closed_moments(loss: Any, mean: Array, sd: Array, reference: Reference) -> Array | None:
    """[M, K, D]: the same in closed form; None where there is none.

    | loss                    | E[S], of N(m, v), about the point p                               |
    |-------------------------|-------------------------------------------------------------------|
    | squared error           | (1, m - p), times exp(a (m - p) + a^2 v / 2) for w = exp(a z) ..  |
    |                         | .. and m + a v in place of m                                      |
    | threshold decision      | (miss P(z > t), false alarm P(z <= t))                            |
    """
    xp, point = namespace(mean), reference.point
    assert point is not None
    if type(loss) is ThresholdDecision:
        boost = -reference.log_scale[:, None]
        away = standard_units((loss.threshold,), mean, sd)[..., 0]
        known, above = sd <= 0, xp.astype(mean > loss.threshold, mean.dtype)
        scale = xp.exp(boost) + xp.zeros_like(mean)
        parts = (
            (loss.miss, normal_tail(away, boost), above),
            (loss.false_alarm, normal_tail(-away, boost), 1.0 - above),
        )
        return xp.stack([cost * xp.where(known, scale * sure, tail) for cost, tail, sure in parts], axis=-1)
    rate = _log_rate(loss) if type(loss) is SquaredError else None
    if rate is None:
        return None
    apart = mean - point[:, None]
    mass = xp.exp(rate * apart + rate**2 * sd * sd / 2.0 + rate * point[:, None] - reference.log_scale[:, None])
    return xp.stack([mass, mass * (apart + rate * sd * sd)], axis=-1)


def member_slices(mean: Array, integrand: Resolved | None = None) -> Iterator[slice]:
    """Blocks of K for means [M, K], so that some hundreds of nodes for each keep to a chunk."""
    count = 512 if integrand is None else max(512, 32 * len(integrand.breakpoints))
    count = count if integrand is None or not integrand.spacing else int(count * SPACING / integrand.spacing)
    return slices(mean.shape[1], max(1, CHUNK // (count * max(mean.shape[0], 1))))
