"""Convex potentials phi and their Bregman divergences D_phi(x, y), written so that no digits are lost near x = y.

Points have shape [..., d]; a divergence sums over the last axis. Both points are counted from a common origin, so that
a small difference of large numbers is known exactly: `divergence(x, y, origin)` is D_phi(origin + x, origin + y).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.polynomial.legendre import leggauss

from stakes._array import Array, log_excess, log_shortfall, namespace, ratio


@runtime_checkable
class Potential(Protocol):
    """A strictly convex function phi on a convex set."""

    @property
    def scale_free(self) -> bool:
        """Whether D(s x, s y) = D(x, y) for all s > 0, so that T may be measured in any unit."""

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: phi(x) - phi(y) - <grad phi(y), x - y>, with x and y counted from `origin`."""


@dataclass(frozen=True)
class Square:
    """phi(x) = |x|^2 on the reals; D = |x - y|^2."""

    scale_free = False

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:  # noqa: ARG002 (no origin in it)
        """[...]: |x - y|^2."""
        return _sum((x - y) ** 2)


@dataclass(frozen=True)
class NegativeLog:
    """phi(x) = -sum log x for x > 0; D = sum x/y - log(x/y) - 1 (Itakura-Saito), which knows no unit."""

    scale_free = True

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: sum of r - log(1 + r) with r = x/y - 1 near y, and of q - log q - 1 with q = x/y away from it."""
        xp = namespace(x, y, origin)
        # A mean of positive numbers is positive; counted from the origin, rounding can bring it to 0 and no lower.
        info = xp.finfo(x.dtype)
        rounding = info.smallest_normal + info.eps * abs(origin)
        top, base = (
            xp.where(origin + each > rounding, origin + each, rounding + xp.zeros_like(each)) for each in (x, y)
        )
        r, q = (x - y) / base, top / base
        near = xp.abs(r) < 0.5
        return _sum(xp.where(near, log_shortfall(xp.where(near, r, xp.zeros_like(r))), q - xp.log(q) - 1.0))


@dataclass(frozen=True)
class NegativeEntropy:
    """phi(x) = sum x log x - x for x >= 0; D = sum x log(x/y) - x + y: generalised KL, and KL on the simplex."""

    scale_free = False

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: sum of y ((1 + r) log(1 + r) - r) with r = x/y - 1; infinite where y = 0 < x."""
        xp = namespace(x, y, origin)
        base = origin + y
        impossible = (base <= 0) & (x > y)
        value = base * log_excess(ratio(x - y, base))
        return _sum(xp.where(impossible, xp.full_like(value, xp.inf), value))


@dataclass(frozen=True)
class Norm:
    """phi(x) = |x| on the simplex; D = |x| (1 - cos(x, y)), the spherical score."""

    scale_free = False

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: |x| |x/|x| - y/|y||^2 / 2."""
        xp = namespace(x, y, origin)
        x, y = origin + x, origin + y
        length = xp.sqrt(_sum(x**2))[..., None]  # [..., 1]
        other = xp.sqrt(_sum(y**2))[..., None]
        return length[..., 0] * _sum((ratio(x, length) - ratio(y, other)) ** 2) / 2.0


# Nodes on [0, 1]: Gauss-Legendre for the integral of the gradient, and Chebyshev points on the first 5% of the way for
# the slope at its start (8 points: the truncation error is below 1e-14 for any phi that is analytic up to x).
_LEGENDRE, _LEGENDRE_WEIGHTS = ((values + shift) / 2.0 for values, shift in zip(leggauss(8), (1.0, 0.0), strict=True))
_REACH = 0.05
_UNIT = (1.0 - np.cos(np.pi * np.arange(9) / 8)) / 2.0
_START = _REACH * _UNIT
_SLOPE = np.linalg.solve(np.vander(_UNIT, increasing=True).T, np.eye(9)[1]) / _REACH


@dataclass(frozen=True)
class ConvexFunction:
    """Anyone's own phi: `function` maps [..., d] to [...], `gradient` maps [..., d] to [..., d].

    With the gradient, divergences keep about ten digits however close the points. Without it the slope is taken from
    values of phi between the points, good to 1e-12 of phi: enough unless labels say next to nothing.
    """

    function: Callable[[Array], Array]
    gradient: Callable[[Array], Array] | None = None
    scale_free: bool = False

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: the definition, or where it cancels the integral of <grad phi(y + t (x-y)) - grad phi(y), x-y>."""
        xp = namespace(x, y, origin)
        step, start = x - y, origin + y
        if self.gradient is None:
            slope = sum(float(c) * self.function(start + float(t) * step) for c, t in zip(_SLOPE, _START, strict=True))
            return self.function(origin + x) - self.function(start) - slope
        gradient = self.gradient(start)
        rise, slope = self.function(origin + x) - self.function(start), _sum(gradient * step)
        size = abs(self.function(start)) + abs(slope)
        gap = sum(
            float(weight) * _sum((self.gradient(start + float(t) * step) - gradient) * step)
            for weight, t in zip(_LEGENDRE_WEIGHTS, _LEGENDRE, strict=True)
        )
        return xp.where(rise - slope > 1e-6 * size, rise - slope, gap)


PotentialLike = Potential | Callable[[Array], Array]


def as_potential(potential: PotentialLike) -> Potential:
    """A potential as it is; a plain convex function wrapped."""
    if isinstance(potential, Potential):
        return potential
    if callable(potential):
        return ConvexFunction(potential)
    raise TypeError(
        f"potential must be a Potential such as Square(), or a convex function of [..., d]; got {potential!r}"
    )


def _sum(values: Array) -> Array:
    return namespace(values).sum(values, axis=-1)
