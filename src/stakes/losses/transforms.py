"""Transforms T: what of the target the act estimates, and its coordinates near a reference.

A transform takes targets to points [..., d]. Its chart at a reference writes `T(z) = unit (origin + coordinate(z))`
with coordinates that keep their digits near the reference, and takes coordinates back to targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from stakes._utils.array import Array, log_of, namespace
from stakes.exceptions import StakesError
from stakes.losses.domains import POSITIVE, REAL, Classes, Domain, Interval, Vectors


@dataclass(frozen=True)
class Chart:
    """Coordinates of T about a reference: `T(z) = unit (origin + coordinate(z))`.

    Attributes:
        origin: T(reference) in these coordinates, or 0.
        coordinate: A function from targets to coordinates [..., d].
        target: Its inverse, from coordinates to targets.
        log_coordinate: Where T is positive: a function from targets to log(T(z) / T(reference)) [...], which stays in
            the range of numbers where T leaves it.
        log_target: The inverse of that.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import Identity
        >>> chart = Identity().chart(np.array(100.0), scale_free=False)  # coordinates count from 100
        >>> print(chart.coordinate(np.array(103.0)), chart.target(np.array([3.0])))
        [3.] 103.0
    """

    origin: Array | float
    coordinate: Callable[[Array], Array]
    target: Callable[[Array], Array]
    log_coordinate: Callable[[Array], Array] | None = None
    log_target: Callable[[Array], Array] | None = None


@runtime_checkable
class Transform(Protocol):
    """A map T from targets to the space where the act lives.

    Examples:
        >>> from stakes.losses import Identity, Transform
        >>> isinstance(Identity(), Transform)
        True
    """

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """Coordinates that keep their digits near a reference.

        Args:
            reference: A target, or None for the origin.
            scale_free: Whether divergences are the same in every unit: T may then be in units of T(reference).

        Returns:
            The chart.
        """

    def log_size(self, z: Array) -> Array | None:
        """The log of how large T(z) makes regrets, so that integration looks there.

        Args:
            z: Targets [...].

        Returns:
            [...], or None for classes, which need no integration.
        """


@dataclass(frozen=True)
class Identity:
    """T(z) = z, on the reals or a part of them.

    Args:
        domain: Where the target must lie.

    Examples:
        >>> from stakes import BregmanLoss
        >>> from stakes.losses import POSITIVE, Identity, Square
        >>> print(BregmanLoss(Square(), Identity(POSITIVE)).domain)  # squared error of positive targets
        (0, inf)
    """

    domain: Interval = REAL

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """`z - reference`."""
        if reference is None:
            return Chart(0.0, lambda z: z[..., None], lambda t: t[..., 0])
        chart = Chart(reference[..., None], lambda z: (z - reference)[..., None], lambda t: reference + t[..., 0])
        if self.domain not in POSITIVE:
            return chart
        xp = namespace(reference)
        return replace(
            chart, log_coordinate=lambda z: _log_ratio(z, reference), log_target=lambda t: reference * xp.exp(t)
        )

    def log_size(self, z: Array) -> Array:
        """2 log(1 + |z|)."""
        return 2.0 * namespace(z).log1p(abs(z))


@dataclass(frozen=True)
class VectorIdentity:
    """T(z) = z for vectors.

    Args:
        count: How many numbers a vector has.

    Examples:
        >>> from stakes.losses import VectorIdentity
        >>> print(VectorIdentity(3).domain)
        vectors of 3 numbers
    """

    count: int

    @property
    def domain(self) -> Vectors:
        """All vectors of that length."""
        return Vectors(self.count)

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """`z - reference`, which is [..., d] too."""
        if reference is None:
            return Chart(0.0, lambda z: z, lambda t: t)
        return Chart(reference, lambda z: z - reference, lambda t: reference + t)

    def log_size(self, z: Array) -> Array:
        """2 log(1 + |z|), with the largest of |z|."""
        xp = namespace(z)
        return 2.0 * xp.log1p(xp.max(abs(z), axis=-1))


@dataclass(frozen=True)
class Indicator:
    """T(z) = e_z for classes, which come as indicators [..., C] already.

    Args:
        domain: The classes.

    Examples:
        >>> from stakes.losses import Classes, Indicator
        >>> print(Indicator(Classes(3)).domain)
        3 classes
    """

    domain: Classes = Classes()  # noqa: RUF009 (frozen)

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """Class probabilities, less those of the reference."""
        if reference is None:
            return Chart(0.0, lambda z: z, lambda t: t)
        return Chart(reference, lambda z: z - reference, lambda t: t + reference)

    def log_size(self, z: Array) -> None:
        """None: classes need no integration."""


@dataclass(frozen=True)
class Power:
    """T(z) = (z^lam - 1) / lam for z > 0, and log z for lam = 0 (Box and Cox).

    Args:
        lam: The exponent.
        domain: Where the target must lie.

    Raises:
        StakesError: If `lam` is not a finite number.

    Examples:
        >>> from stakes import BregmanLoss
        >>> from stakes.losses import Power, Square
        >>> print(BregmanLoss(Square(), Power(0.5))(9.0, 4.0))  # (2 (3 - 1) - 2 (2 - 1))^2, as BoxCox(0.5) has it
        4.0
    """

    lam: float
    domain: Interval = POSITIVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", checked_rate("lam", self.lam))

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """T(z) - T(reference) = reference^lam expm1(lam log(z / reference)) / lam."""
        if reference is None:
            return Chart(0.0, lambda z: self._difference(z, 1.0)[..., None], lambda t: self._back(t[..., 0], 1.0))
        return Chart(
            self._difference(reference, 1.0)[..., None],
            lambda z: self._difference(z, reference)[..., None],
            lambda t: self._back(t[..., 0], reference),
        )

    def log_size(self, z: Array) -> Array:
        """[...]: 2 log(1 + |T(z)|)."""
        return 2.0 * namespace(z).log1p(abs(self._difference(z, 1.0)))

    def _difference(self, z: Array, reference: Array | float) -> Array:
        xp = namespace(z, reference)
        log_ratio = _log_ratio(z, reference)
        return log_ratio if self.lam == 0 else reference**self.lam * xp.expm1(self.lam * log_ratio) / self.lam

    def _back(self, t: Array, reference: Array | float) -> Array:
        xp = namespace(t)
        log_ratio = t if self.lam == 0 else xp.log1p(self.lam * t / reference**self.lam) / self.lam
        return reference * xp.exp(log_ratio)


@dataclass(frozen=True)
class Exponential:
    """T(z) = exp(rate z), measured in units of T(reference) where it can be: no price overflows it.

    Args:
        rate: Any finite number but 0.
        domain: Where the target must lie.

    Raises:
        StakesError: If `rate` is 0 or not a finite number.

    Examples:
        >>> from stakes import BregmanLoss
        >>> from stakes.losses import Exponential, NegativeLog
        >>> loss = BregmanLoss(NegativeLog(), Exponential(-1.0))  # Linex(1)
        >>> print(loss(0.0, 1.0).round(4))  # e - 2
        0.7183
    """

    rate: float
    domain: Interval = REAL

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checked_rate("rate", self.rate))
        if self.rate == 0:
            raise StakesError("rate must not be 0: T would be constant")

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """`exp(rate (z - reference))`, from the origin: ratios of T stay exact however far they span."""
        if not scale_free or reference is None:
            transform = Function(lambda z: namespace(z).exp(self.rate * z), lambda t: namespace(t).log(t) / self.rate)
            return transform.chart(reference, scale_free=False)
        return Chart(
            0.0,
            lambda z: namespace(z).exp(self.rate * (z - reference))[..., None],
            lambda t: reference + namespace(t).log(t[..., 0]) / self.rate,
            lambda z: self.rate * (z - reference),
            lambda t: reference + t / self.rate,
        )

    def log_size(self, z: Array) -> Array:
        """[...]: rate z."""
        return self.rate * z


@dataclass(frozen=True)
class NearExponential:
    """T(z) = exp(rate z) where that varies little: in coordinates T(z) / T(reference) - 1, which keep their digits."""

    rate: float
    domain: Interval = REAL

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """`expm1(rate (z - reference))`, from 1."""
        if reference is None or not scale_free:
            return Exponential(self.rate, self.domain).chart(reference, scale_free)
        return Chart(
            1.0 + 0.0 * reference[..., None],
            lambda z: namespace(z).expm1(self.rate * (z - reference))[..., None],
            lambda t: reference + namespace(t).log1p(t[..., 0]) / self.rate,
        )

    def log_size(self, z: Array) -> Array:
        """[...]: rate z."""
        return self.rate * z


@dataclass(frozen=True)
class Function:
    """A transform T of your own.

    Args:
        function: T, from targets [...] to [...] or [..., d].
        inverse: From points back to targets; without it the act has no target units.
        domain: Where the target must lie.

    Examples:
        >>> import numpy as np
        >>> from stakes import BregmanLoss
        >>> from stakes.losses import Function, Square
        >>> loss = BregmanLoss(Square(), Function(np.arctan, inverse=np.tan))
        >>> print(loss(1.0, 0.0).round(4))  # (pi / 4)^2
        0.6169
    """

    function: Callable[[Array], Array]
    inverse: Callable[[Array], Array] | None = None
    domain: Interval = REAL

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """`T(z) - T(reference)`."""
        if reference is None:
            return Chart(0.0, self._points, self._targets)
        origin = self._points(reference)
        return Chart(origin, lambda z: self._points(z) - origin, lambda t: self._targets(origin + t))

    def log_size(self, z: Array) -> Array:
        """[...]: 2 log(1 + |T(z)|)."""
        xp = namespace(z)
        return 2.0 * xp.log1p(xp.max(abs(self._points(z)), axis=-1))

    def _points(self, z: Array) -> Array:
        points = self.function(z)
        return points[..., None] if points.ndim == z.ndim else points

    def _targets(self, t: Array) -> Array:
        if self.inverse is None:
            raise TypeError(
                "this transform has no inverse, so its act has no target units; give Function(T, inverse=...)"
            )
        return self.inverse(t[..., 0] if t.shape[-1] == 1 else t)


def _log_ratio(z: Array, reference: Array | float) -> Array:
    """[...]: log(z / reference) of positive numbers, to full relative accuracy also near 0."""
    xp = namespace(z, reference)
    relative = (z - reference) / reference
    near = abs(relative) < 0.5
    return xp.where(near, xp.log1p(xp.where(near, relative, xp.zeros_like(relative))), log_of(z / reference))


TransformLike = Transform | Callable[[Array], Array]


_OWN = (Identity, Indicator, Power, Exponential)


def as_transform(transform: TransformLike) -> Transform:
    """A transform as it is; a plain function wrapped."""
    if isinstance(transform, _OWN):  # asking for the protocol takes as long as a small integral
        return transform
    if isinstance(transform, Transform) and not isinstance(transform, type):
        return transform
    if callable(transform) and not isinstance(transform, type):
        return Function(transform)
    raise TypeError(f"transform must be a Transform such as Identity(), or a function of the target; got {transform!r}")


_LARGEST = 1e100  # rate, whose products with targets and whose square are numbers


def checked_rate(name: str, value: float) -> float:
    """The number, refused where it is not finite or its square would leave the range of numbers."""
    if not abs(value) <= _LARGEST:
        raise StakesError(
            f"{name} must be a finite number, at most {_LARGEST:g} in size; got {value!r}. Give targets in other units."
        )
    return float(value)
