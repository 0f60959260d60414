"""Convex potentials phi and their Bregman divergences D_phi(x, y), written so that no digits are lost near x = y.

Points have shape [..., d]; a divergence sums over the last axis. Both points are counted from a common origin, so that
a small difference of large numbers is known exactly: `divergence(x, y, origin)` is D_phi(origin + x, origin + y).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

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
# or ahead of it where there is no room behind. From values to coefficients: the inverse of the powers of the points.
_BOTH = np.cos(np.pi * np.arange(9) / 8)
_AHEAD = (1.0 + _BOTH) / 2.0
_FROM_BOTH, _FROM_AHEAD = (np.linalg.inv(np.vander(points, increasing=True)) for points in (_BOTH, _AHEAD))
_REACH = 0.05  # of the way to 0 of the coordinate that is closest to it: how far a line goes, beyond the step or not
_START = 0.002  # of the step: how far at the least
_SHORTER = 8.0  # times that a line is shortened if g is not smooth along it
_TRIES = 8
_SMOOTH = 1e-7  # of the curvature: what the last two coefficients of a smooth function are below
_ROUNDING = 2e-14, 2e-12  # of values: in the slope and the curvature, on both sides and ahead
_ROUGH = 5e-14, 5e-11  # the same in the last two coefficients


@dataclass(frozen=True)
class ConvexFunction:
    """A convex function phi of your own.

    Two points that are near each other are compared by the polynomial that phi is along the line through them, further
    than from one to the other: their divergence keeps its digits however close they are, and is 0 where they are one.
    Without the gradient it is good to about 1e-10 where phi is smooth, and to about 1e-11 of phi where it kinks, or
    where one point is a hundred times the other.

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
        """[...]: D = g(1) - g(0) - g'(0), g(t) = phi(y + t (x - y)), by the polynomial that g is around 0."""
        xp, dtype = namespace(x, y, origin), x.dtype
        step, start = xp.broadcast_arrays(double(x - y), double(origin + y))  # single precision would not do
        shape = step.shape[:-1]
        step, start = (xp.reshape(each, (-1, each.shape[-1])) for each in (step, start))
        moved = step != 0
        room = xp.min(xp.where(moved, ratio(abs(start), abs(step)), xp.full_like(step, xp.inf)), axis=1)
        length = xp.where(xp.isfinite(room), _REACH * room, xp.ones_like(room))
        both, found, left = length >= _START, xp.zeros_like(room), xp.any(moved, axis=1)
        length = xp.where(both, length, xp.full_like(length, _START))
        rise = self.function(self._inside(start + step)) - self.function(self._inside(start))
        for _ in range(_TRIES):
            if not bool(xp.any(left)):
                break
            value, smooth = self._along(*(each[left] for each in (start, step, length, both, rise)))
            found[left] = value
            rough = xp.zeros_like(left)
            rough[left] = ~smooth
            left = rough
            length = length / _SHORTER
        return xp.astype(xp.reshape(found, shape), dtype)

    def _along(self, start: Array, step: Array, length: Array, both: Array, rise: Array) -> tuple[Array, Array]:
        """[n], [n]: divergences by the line of a length in steps, and whether phi is smooth along it.

        By the curvature where the line reaches the other point, else by its slope. What is not above rounding is 0.
        """
        xp, first = namespace(start), 2 if self.gradient is None else 1  # the first power that is curvature
        values = []
        with np.errstate(all="ignore"):  # further than the points themselves phi may leave the range of numbers
            for two, one in zip(_BOTH, _AHEAD, strict=True):
                at = _either(both, float(two), float(one), length)
                values.append(self._value(start + (at * length)[:, None] * step, step))
        line = xp.stack(values, axis=1)  # [n, 9]
        here, size = xp.where(both, line[:, 4], line[:, 8]), xp.max(abs(line), axis=1)
        sides = (xp.matmul(line - here[:, None], constant(each.T, line)) for each in (_FROM_BOTH, _FROM_AHEAD))
        c = xp.where(both[:, None], *sides)  # [n, 9]
        noise, rough = (_either(both, *each, length) * size for each in (_ROUNDING, _ROUGH))
        smooth = abs(c[:, 7]) + abs(c[:, 8]) <= _SMOOTH * xp.max(abs(c[:, first:]), axis=1) + rough
        share, powers = 1.0 / length, constant(range(first, 9), line)
        terms = c[:, first:] * xp.where(share <= 1.0, share, xp.zeros_like(share))[:, None] ** powers
        near = _sum(terms if first == 2 else terms / (powers + 1.0))
        slope = c[:, 1] * share if first == 2 else here
        lost = noise * share if first == 2 else _ROUNDING[0] * (abs(rise) + abs(slope))
        nothing = xp.zeros_like(near)
        near = xp.where(near > noise * share**first, near, nothing)
        far = xp.where(rise - slope <= lost, nothing, rise - slope)
        return xp.where(smooth & (length >= 1.0), near, far), smooth

    def _inside(self, point: Array) -> Array:
        """The point, out of the domain by rounding only."""
        low = self.domain.low
        return point if low == -np.inf else namespace(point).clip(point, low, None)

    def _value(self, point: Array, step: Array) -> Array:
        """[...]: phi, or its slope in the direction of the step where the gradient is known."""
        point = self._inside(point)
        return self.function(point) if self.gradient is None else _sum(self.gradient(point) * step)


def _either(both: Array, two: float, one: float, like: Array) -> Array:
    """[n]: `two` on both sides, `one` ahead."""
    xp = namespace(like)
    return xp.where(both, xp.full_like(like, two), xp.full_like(like, one))


PotentialLike = Potential | Callable[[Array], Array]


def as_potential(potential: PotentialLike) -> Potential:
    """A potential as it is; a plain convex function wrapped."""
    if isinstance(potential, Potential) and not isinstance(potential, type):
        return potential
    if callable(potential) and not isinstance(potential, type):
        return ConvexFunction(potential)
    raise TypeError(
        f"potential must be a Potential such as Square(), or a convex function of [..., d]; got {potential!r}"
    )


def _sum(values: Array) -> Array:
    return namespace(values).sum(values, axis=-1)
