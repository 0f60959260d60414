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

from stakes._array import Array, constant, log_excess, log_shortfall, namespace, ratio


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


_LEGENDRE, _LEGENDRE_WEIGHTS = ((values + shift) / 2.0 for values, shift in zip(leggauss(8), (1.0, 0.0), strict=True))
# Chebyshev points on [0, 1] and the matrix from values there to the coefficients of their polynomial.
_POINTS = (1.0 - np.cos(np.pi * np.arange(9) / 8)) / 2.0
_COEFFICIENTS = np.linalg.inv(np.vander(_POINTS, increasing=True))
_REACH = 0.2  # of each coordinate: a phi that is analytic for positive arguments is such a polynomial there, to 1e-11
_START = 0.05  # of the way to x, at least


@dataclass(frozen=True)
class ConvexFunction:
    """Anyone's own phi: `function` maps [..., d] to [...], `gradient` maps [..., d] to [..., d].

    With the gradient, divergences keep about ten digits however close the points. Without it they are taken from values
    of phi: as good where all coordinates move little, and to 1e-12 of phi otherwise.
    """

    function: Callable[[Array], Array]
    gradient: Callable[[Array], Array] | None = None
    scale_free: bool = False

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: the definition, in a form that does not cancel where x is close to y."""
        if self.gradient is None:
            return self._from_values(x - y, origin + y)
        return self._from_gradient(self.gradient, x - y, origin + y)

    def _from_gradient(self, gradient: Callable[[Array], Array], step: Array, start: Array) -> Array:
        """Where the definition cancels, the integral of <grad phi(y + t (x - y)) - grad phi(y), x - y> over t."""
        here, slope = self.function(start), gradient(start)
        plain = self.function(start + step) - here - _sum(slope * step)
        gap = sum(
            float(weight) * _sum((gradient(start + float(t) * step) - slope) * step)
            for weight, t in zip(_LEGENDRE_WEIGHTS, _LEGENDRE, strict=True)
        )
        return namespace(plain).where(plain > 1e-6 * (abs(here) + abs(_sum(slope * step))), plain, gap)

    def _from_values(self, step: Array, start: Array) -> Array:
        """A polynomial through phi along the line from y to x, as far as 20% of any coordinate.

        Where that lies beyond x, its terms from the square on are the divergence; otherwise it gives the slope at y.
        """
        xp = namespace(step)
        still = step == 0
        reach = _REACH * abs(start) / xp.where(still, xp.ones_like(step), abs(step))
        reach = xp.min(xp.where(still, xp.full_like(step, 1e30), reach), axis=-1)  # [...], in steps
        beyond = reach > 1.0
        reach = xp.where(reach > _START, reach, xp.full_like(reach, _START))
        line = [self.function(start + (reach * float(t))[..., None] * step) for t in _POINTS]
        terms = xp.matmul(xp.stack(line, axis=-1), constant(_COEFFICIENTS.T, step))  # [..., 9]
        powers = (1.0 / reach)[..., None] ** constant(range(9), step)
        plain = self.function(start + step) - line[0] - terms[..., 1] * powers[..., 1]
        return xp.where(beyond, _sum((terms * powers)[..., 2:]), plain)


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
