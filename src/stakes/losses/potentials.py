"""Convex potentials phi and their Bregman divergences D_phi(x, y), written so that no digits are lost near x = y.

Points have shape [..., d]; a divergence sums over the last axis. Both points are counted from a common origin, so that
a small difference of large numbers is known exactly: `divergence(x, y, origin)` is D_phi(origin + x, origin + y).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from stakes._utils.array import (
    Array,
    asarrays,
    check_all,
    check_shape,
    constant,
    double,
    log_excess,
    log_shortfall,
    namespace,
    ratio,
)
from stakes.exceptions import StakesError
from stakes.losses.domains import NONNEGATIVE, POSITIVE, REAL, Interval


@runtime_checkable
class Potential(Protocol):
    """A strictly convex function phi on a convex set.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import Potential, Square
        >>> isinstance(Square(), Potential)
        True
        >>> print(Square().divergence(np.array([3.0]), np.array([1.0])))
        4.0
    """

    @property
    def scale_free(self) -> bool:
        """Whether D(s x, s y) = D(x, y) for all s > 0, so that T may be measured in any unit."""

    @property
    def domain(self) -> Interval:
        """Where each coordinate must lie."""

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """D_phi(x, y) = phi(x) - phi(y) - <grad phi(y), x - y>.

        Args:
            x: Points [..., d], counted from `origin`.
            y: Points [..., d], counted from `origin`.
            origin: From where both are counted, so that a small difference of large numbers is known exactly.

        Returns:
            [...], at least 0.
        """


@dataclass(frozen=True)
class Square:
    """phi(x) = |x|^2 on the reals; D = |x - y|^2.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import Square
        >>> print(Square().divergence(np.array([3.0, 1.0]), np.array([1.0, 0.0])))  # 2^2 + 1^2
        5.0
    """

    scale_free = False
    domain = REAL

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: |x - y|^2."""
        return _sum((x - y) ** 2)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """phi(x) = x' A x; D = (x - y)' A (x - y).

    Args:
        matrix: A [d, d], symmetric and positive semi-definite.

    Raises:
        StakesError: If it is not symmetric and positive semi-definite, or all 0.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import Quadratic
        >>> phi = Quadratic([[1.0, 0.0], [0.0, 4.0]])
        >>> print(phi.divergence(np.array([3.0, 1.0]), np.array([1.0, 0.0])))  # 2^2 + 4 1^2
        8.0
    """

    matrix: Any
    root: Any = field(init=False, repr=False)
    scale_free = False
    domain = REAL

    def __post_init__(self) -> None:
        (given,) = asarrays(matrix=self.matrix)
        matrix = np.array(np.asarray(given), dtype=float)  # a copy of our own
        check_shape("matrix", matrix, ("d", "d"))
        check_shape("matrix", matrix, (matrix.shape[0], matrix.shape[0]))
        largest = np.max(abs(matrix), initial=0.0)
        check_all(np.asarray(largest > 0), "matrix must not be empty or all 0: no error would cost anything")
        check_all(abs(matrix - matrix.T) <= 1e-9 * largest, "matrix must be symmetric: give (A + A') / 2")
        object.__setattr__(self, "matrix", (matrix + matrix.T) / 2.0)
        object.__setattr__(self, "root", _root_of(self.matrix, largest))

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: |R (x - y)|^2, a sum of squares, so that rounding never makes it negative."""
        step = x - y
        return _sum(namespace(step).matmul(step, constant(self.root.T, step)) ** 2)


def _root_of(matrix: np.ndarray[Any, Any], largest: float) -> np.ndarray[Any, Any]:
    """R with R'R = matrix, positive semi-definite: in units of its diagonal, then in units of its largest entry.

    In the first, no output is lost beside one whose unit makes its price 1e20 times as large; a price of 0 that is not
    quite 0 by rounding has a unit in the second only.
    """
    for scale in (np.sqrt(np.clip(np.diagonal(matrix), 0.0, None)), np.full(len(matrix), np.sqrt(largest))):
        unit = ratio(np.ones_like(scale), scale)
        values, vectors = np.linalg.eigh(unit[:, None] * matrix * unit)
        within = np.all(abs(matrix) <= (1.0 + 1e-9) * scale[:, None] * scale)
        if within and values[0] >= -1e-9:
            return np.asarray(np.sqrt(np.clip(values, 0.0, None))[:, None] * vectors.T * scale)
    raise StakesError(
        "matrix must be positive semi-definite: no error may gain; its smallest eigenvalue is "
        f"{np.linalg.eigvalsh(matrix)[0]:g}"
    )


@dataclass(frozen=True)
class NegativeLog:
    """phi(x) = -sum log x for x > 0; D = sum x/y - log(x/y) - 1 (Itakura-Saito), the same in every unit.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import NegativeLog
        >>> print(NegativeLog().divergence(np.array([2.0]), np.array([1.0])).round(4))  # 2 - log 2 - 1
        0.3069
    """

    scale_free = True
    domain = POSITIVE

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: sum of r - log(1 + r) with r = x/y - 1 near y, and of q - log q - 1 with q = x/y away from it."""
        xp = namespace(x, y, origin)
        # A mean of positive numbers is positive; counted from the origin, rounding can bring it to 0 and no lower.
        rounding = xp.finfo(x.dtype).eps * abs(origin)
        top, base = (
            xp.where(origin + each > rounding, origin + each, rounding + xp.zeros_like(each)) for each in (x, y)
        )
        r, q = ratio(x - y, base), ratio(top, base)
        near, vanished = xp.abs(r) < 0.5, q <= 0
        one = xp.ones_like(r)
        far = xp.where(vanished, xp.inf * one, q - 1.0 - xp.log(xp.where(vanished, one, q)))
        return _sum(xp.where(near, log_shortfall(xp.where(near, r, xp.zeros_like(r))), far))


@dataclass(frozen=True)
class NegativeEntropy:
    """phi(x) = sum x log x - x for x >= 0; D = sum x log(x/y) - x + y: generalised KL, and KL on the simplex.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import NegativeEntropy
        >>> print(NegativeEntropy().divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])).round(4))  # log 2
        0.6931
    """

    scale_free = False
    domain = NONNEGATIVE

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: sum of y ((1 + r) log(1 + r) - r), r = x/y - 1; as defined far above y; infinite where y = 0 < x."""
        xp = namespace(x, y, origin)
        top, base, step = origin + x, origin + y, x - y
        near = step <= 10.0 * base
        close = base * log_excess(ratio(xp.where(near, step, xp.zeros_like(step)), base))
        one = xp.ones_like(top)
        far_top, far_base = xp.where(near, one, top), xp.where(near | (base <= 0), one, base)
        far = far_top * (xp.log(far_top) - xp.log(far_base)) - step
        return _sum(xp.where(near, close, xp.where(base > 0, far, xp.full_like(far, xp.inf))))


@dataclass(frozen=True)
class Norm:
    """phi(x) = |x| on the simplex; D = |x| (1 - cos(x, y)), the spherical score.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import Norm
        >>> print(Norm().divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])).round(4))  # 1 - 1 / sqrt 2
        0.2929
    """

    scale_free = False
    domain = NONNEGATIVE

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: |across|^2 |y| / (|x| |y| + <x, y>), where `across` is the part of x - y at right angles to y."""
        xp = namespace(x, y, origin)
        step, x, y = x - y, origin + x, origin + y
        length, other = xp.sqrt(_sum(x**2)), xp.sqrt(_sum(y**2))
        across = step - y * ratio(_sum(step * y), other**2)[..., None]
        return ratio(_sum(across**2) * other, length * other + _sum(x * y))


# A function g along a line is the polynomial through its values at nine Chebyshev points: on both sides of the start,
# or ahead of it where there is no room behind. It is the sum of a_k T_k, a = _FROM_VALUES g; _BOTH and _AHEAD hold the
# powers of T_k(t) and of T_k(2 t - 1). What the last two T_k add is what the other seven would leave out, and more than
# what all nine do: the error where g is not smooth, and where it is, what the rounding of g makes of it.
_POINTS = np.cos(np.pi * np.arange(9) / 8)
_HALVED = np.array([0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5])
_FROM_VALUES = np.cos(np.pi * np.outer(np.arange(9), np.arange(9)) / 8) * np.outer(_HALVED, _HALVED) / 4.0
_BOTH, _AHEAD = (
    np.array([Chebyshev.basis(k, domain).convert(kind=Polynomial).coef.tolist() + [0.0] * (8 - k) for k in range(9)])
    for domain in ([-1.0, 1.0], [0.0, 1.0])
)
_REACH = (
    0.05  # of the way to the end of the domain, or to 0, of the coordinate closest to it: where most phi are smooth
)
_START = 0.002  # of the step: how far a line goes at the least
_LONGER = 10.0  # times that a line ahead is longer where it is as good as one on both sides
_SHORTER = 8.0  # times that a line is shortened while g is not smooth along it
_TRIES = 14
_ENOUGH = 1e-11  # of the divergence: an error that needs no other line
_BLUR = 1e-15  # of phi: its rounding
_SLOPE = 2e-14, 1e-13  # of values: rounding in the slope, on both sides and ahead
_CURVATURE = 2e-14, 2e-12  # the same in the curvature


@dataclass(frozen=True)
class ConvexFunction:
    """A convex function phi of your own.

    Two points that are near each other are compared by the polynomial that phi is along the line through them, further
    than from one to the other: their divergence keeps its digits however close they are, and is 0 where they are one.
    Without the gradient it is good to about 1e-9, and to 1e-13 of the numbers that phi is computed from, where phi is
    smooth, up to the ends of its domain. Where it kinks, or is singular at an end (x^2.5 or x log x at 0), it is so
    between points whose coordinates keep within a factor of two; seen from 1e-12 of such an end a divergence is good to
    1e-8 of phi for x^2.5 and to 1e-3 for x log x: give the gradient.

    Args:
        function: phi, from points [..., d] to [...].
        gradient: Its gradient, from points [..., d] to [..., d].
        scale_free: Whether D(s x, s y) = D(x, y) for all s > 0.
        domain: Where each coordinate must lie.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import ConvexFunction
        >>> phi = ConvexFunction(lambda t: np.sum(t**4, axis=-1), gradient=lambda t: 4.0 * t**3)
        >>> print(phi.divergence(np.array([2.0]), np.array([1.0])))  # 2^4 - 1 - 4
        11.0
    """

    function: Callable[[Array], Array]
    gradient: Callable[[Array], Array] | None = None
    scale_free: bool = False
    domain: Interval = REAL

    def divergence(self, x: Array, y: Array, origin: Array | float = 0.0) -> Array:
        """[...]: D = g(1) - g(0) - g'(0), g(t) = phi(y + t (x - y)), by the polynomial that g is around 0.

        Of several lines the one with the smallest error: one along which most functions are smooth, then the longest in
        the domain, and shorter ones while g is not smooth. Rounding counts the less the longer a line is.
        """
        xp, dtype = namespace(x, y, origin), x.dtype
        step, start = xp.broadcast_arrays(double(x - y), double(origin + y))  # single precision would not do
        shape = step.shape[:-1]
        step, start = (xp.reshape(each, (-1, each.shape[-1])) for each in (step, start))
        (length, both), (longest, open_behind) = self._lines(start, step)
        there, here = (self.function(self._inside(each)) for each in (start + step, start))
        rise, blur = there - here, _BLUR * xp.maximum(abs(there), abs(here))
        left, found = xp.any(step != 0, axis=1), xp.zeros_like(rise)
        least = xp.full_like(rise, xp.inf)
        for turn in range(_TRIES):
            if not bool(xp.any(left)):
                break
            value, error, done = self._along(*(each[left] for each in (start, step, length, both, rise, blur)))
            better = (error < least[left]) | (turn == 0)
            found[left] = xp.where(better, value, found[left])
            least[left] = xp.where(better, error, least[left])
            rest = xp.zeros_like(left)
            rest[left] = (error > _ENOUGH * value) & ~(done & (turn > 0))
            length, both = (longest, open_behind) if turn == 0 else (length / _SHORTER, both)
            left = rest
        return xp.astype(xp.reshape(found, shape), dtype)

    def _lines(self, start: Array, step: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Two lines, each its length [n] in steps and whether it goes both ways: a cautious one and the longest."""
        xp, low, high = namespace(start), self.domain.low, self.domain.high
        never = xp.full_like(step, xp.inf)
        below = start - low if np.isfinite(low) else never
        above = high - start if np.isfinite(high) else never
        moved = step != 0
        size = xp.where(moved, abs(step), xp.ones_like(step))

        def first(distance: Array) -> Array:
            return xp.min(xp.where(moved, distance / size, never), axis=1)

        room = _REACH * xp.minimum(first(below), first(above) if np.isfinite(low) else first(abs(start)))
        cautious = xp.where(room >= _START, room, xp.full_like(room, _START))
        # Where no end is in sight, as long as the points are large.
        scale = ratio(xp.max(abs(start), axis=1), xp.max(abs(step), axis=1))
        scale = xp.maximum(scale, xp.ones_like(scale))
        ahead, behind = (
            xp.maximum(xp.minimum(first(xp.where(step * way > 0, above, below)), scale), floor * xp.ones_like(scale))
            for way, floor in ((1.0, 1.0), (-1.0, 0.0))
        )
        shorter = xp.minimum(ahead, behind)
        open_behind = (shorter >= 1.0) & (_LONGER * shorter >= ahead)
        return (cautious, room >= _START), (xp.where(open_behind, shorter, ahead), open_behind)

    def _along(
        self, start: Array, step: Array, length: Array, both: Array, rise: Array, blur: Array
    ) -> tuple[Array, Array, Array]:
        """[n] each: divergences by a line of a length in steps, their errors, and whether these are rounding only.

        By the curvature where the line reaches the other point, or by its slope. What is not above its error is 0.
        """
        xp, first = namespace(start), 2 if self.gradient is None else 1  # the first power that is curvature
        values = []
        with np.errstate(all="ignore"):  # further than the points themselves phi may leave the range of numbers
            for point in _POINTS:
                at = xp.where(both, xp.full_like(length, point), xp.full_like(length, (1.0 + point) / 2.0))
                values.append(self._value(start + (at * length)[:, None] * step, step))
            line = xp.stack(values, axis=1)  # [n, 9]
            here, size = xp.where(both, line[:, 4], line[:, 8]), xp.max(abs(line), axis=1)
            a = xp.matmul(line - here[:, None], constant(_FROM_VALUES.T, line))
            share = 1.0 / length
            within = xp.where(share <= 1.0, share, xp.zeros_like(share))
            rounding = [xp.where(both, *(pair * size for pair in each)) for each in (_CURVATURE, _SLOPE)]
            powers = constant(range(first, 9), line)
            each = (within[:, None] ** powers) / (1.0 if first == 2 else powers + 1.0)
            terms = a * _of_either(both, each, slice(first, 9))
            near, near_error = _sum(terms), _sum(abs(terms[:, 7:]))
            near_noise = rounding[0] * within**first
            if first == 2:
                terms = a * _of_either(both, share[:, None], slice(1, 2))
                slope, far_error = _sum(terms), _sum(abs(terms[:, 7:]))
                far_noise = rounding[1] * share + blur
            else:
                slope, far_error = here, xp.zeros_like(here)
                far_noise = _SLOPE[0] * (abs(rise) + abs(slope)) + blur
            by_curvature = (share <= 1.0) & (near_error + near_noise < far_error + far_noise)
            value = xp.where(by_curvature, near, rise - slope)
            noise = xp.where(by_curvature, near_noise, far_noise)
            error = xp.where(by_curvature, near_error, far_error)
            resolved = error <= noise
            error = xp.maximum(error, noise)
        known = xp.isfinite(error)
        value = xp.where(value <= error, xp.zeros_like(value), value)
        return value, xp.where(known, error, xp.full_like(error, xp.inf)), resolved

    def _inside(self, point: Array) -> Array:
        """The point, out of the domain by rounding only."""
        low = self.domain.low
        return point if low == -np.inf else namespace(point).clip(point, low, None)

    def _value(self, point: Array, step: Array) -> Array:
        """[...]: phi, or its slope in the direction of the step where the gradient is known."""
        point = self._inside(point)
        return self.function(point) if self.gradient is None else _sum(self.gradient(point) * step)


def _of_either(both: Array, powers: Array, which: slice) -> Array:
    """[n, 9]: the part of each T_k in some powers, of values [n, p], for lines on both sides or ahead."""
    xp = namespace(powers)
    sides = (xp.matmul(powers, constant(each[:, which].T, powers)) for each in (_BOTH, _AHEAD))
    return xp.where(both[:, None], *sides)


PotentialLike = Potential | Callable[[Array], Array]


_OWN = (Square, NegativeEntropy, NegativeLog)


def as_potential(potential: PotentialLike) -> Potential:
    """A potential as it is; a plain convex function wrapped."""
    if isinstance(potential, _OWN):  # asking for the protocol takes as long as a small integral
        return potential
    if isinstance(potential, Potential) and not isinstance(potential, type):
        return potential
    if callable(potential) and not isinstance(potential, type):
        return ConvexFunction(potential)
    raise TypeError(
        f"potential must be a Potential such as Square(), or a convex function of [..., d]; got {potential!r}"
    )


def _sum(values: Array) -> Array:
    return namespace(values).sum(values, axis=-1)
