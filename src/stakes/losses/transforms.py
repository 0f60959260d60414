"""Transforms T: what of the target the act estimates, and its coordinates near a reference.

A transform takes targets to points [..., d]. Its chart at a reference writes `T(z) = unit (origin + coordinate(z))`
with coordinates that keep their digits near the reference, and takes coordinates back to targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from stakes._array import Array, namespace
from stakes.domains import POSITIVE, REAL, Classes, Domain, Interval


@dataclass(frozen=True)
class Chart:
    """Coordinates of T about a reference."""

    origin: Array | float
    coordinate: Callable[[Array], Array]
    """Targets to [..., d]."""
    target: Callable[[Array], Array]
    """[..., d] to targets, the inverse of `coordinate`."""


@runtime_checkable
class Transform(Protocol):
    """A map T from targets to the space where the act lives."""

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """Coordinates about `reference`; in units of T(reference) where the potential knows no unit."""

    def log_size(self, z: Array) -> Array | None:
        """[...]: log |T(z)| where T spans many orders of magnitude; None where it does not."""


@dataclass(frozen=True)
class Identity:
    """T(z) = z, on the reals or a part of them."""

    domain: Interval = REAL

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:  # noqa: ARG002 (differences serve both)
        """Z - reference."""
        if reference is None:
            return Chart(0.0, lambda z: z[..., None], lambda t: t[..., 0])
        return Chart(reference[..., None], lambda z: (z - reference)[..., None], lambda t: reference + t[..., 0])

    def log_size(self, z: Array) -> None:
        """None."""


@dataclass(frozen=True)
class Indicator:
    """T(z) = e_z for classes, which come as indicators [..., C] already."""

    domain: Classes = Classes()  # noqa: RUF009 (frozen)

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:  # noqa: ARG002 (the simplex has an origin)
        """Class probabilities."""
        return Chart(0.0, lambda z: z, lambda t: t)

    def log_size(self, z: Array) -> None:
        """None."""


@dataclass(frozen=True)
class Power:
    """T(z) = (z^lam - 1) / lam for z > 0, and log z for lam = 0 (Box and Cox)."""

    lam: float
    domain: Interval = POSITIVE

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """T(z) - T(reference) = reference^lam expm1(lam log(z / reference)) / lam."""
        if scale_free:
            return Function(self._transform, self._inverse, self.domain).chart(reference, scale_free)
        if reference is None:
            return Chart(0.0, lambda z: self._transform(z)[..., None], lambda t: self._inverse(t[..., 0]))
        origin = self._transform(reference)
        return Chart(
            origin[..., None],
            lambda z: self._difference(z, reference)[..., None],
            lambda t: self._inverse(origin + t[..., 0]),
        )

    def log_size(self, z: Array) -> None:
        """None."""

    def _transform(self, z: Array) -> Array:
        xp = namespace(z)
        return xp.log(z) if self.lam == 0 else xp.expm1(self.lam * xp.log(z)) / self.lam

    def _difference(self, z: Array, reference: Array) -> Array:
        xp = namespace(z, reference)
        log_ratio = xp.log1p((z - reference) / reference)
        return log_ratio if self.lam == 0 else reference**self.lam * xp.expm1(self.lam * log_ratio) / self.lam

    def _inverse(self, t: Array) -> Array:
        xp = namespace(t)
        return xp.exp(t) if self.lam == 0 else xp.exp(xp.log1p(self.lam * t) / self.lam)


@dataclass(frozen=True)
class Exponential:
    """T(z) = exp(rate z), measured in units of T(reference) where it can be: no price overflows it."""

    rate: float
    domain: Interval = REAL

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:
        """exp(rate (z - reference)), from the origin: ratios of T stay exact however far they span."""
        if not scale_free or reference is None:
            transform = Function(lambda z: namespace(z).exp(self.rate * z), lambda t: namespace(t).log(t) / self.rate)
            return transform.chart(reference, scale_free=False)
        return Chart(
            0.0,
            lambda z: namespace(z).exp(self.rate * (z - reference))[..., None],
            lambda t: reference + namespace(t).log(t[..., 0]) / self.rate,
        )

    def log_size(self, z: Array) -> Array:
        """Rate z."""
        return self.rate * z


@dataclass(frozen=True)
class Function:
    """Anyone's own T: `function` maps targets [...] to [...] or [..., d]; `inverse`, if any, takes them back."""

    function: Callable[[Array], Array]
    inverse: Callable[[Array], Array] | None = None
    domain: Interval = REAL

    def chart(self, reference: Array | None, scale_free: bool) -> Chart:  # noqa: ARG002 (differences serve both)
        """T(z) - T(reference)."""
        if reference is None:
            return Chart(0.0, self._points, self._targets)
        origin = self._points(reference)
        return Chart(origin, lambda z: self._points(z) - origin, lambda t: self._targets(origin + t))

    def log_size(self, z: Array) -> None:
        """None."""

    def _points(self, z: Array) -> Array:
        points = self.function(z)
        return points[..., None] if points.ndim == z.ndim else points

    def _targets(self, t: Array) -> Array:
        if self.inverse is None:
            raise TypeError(
                "this transform has no inverse, so its act has no target units; give Function(T, inverse=...)"
            )
        return self.inverse(t[..., 0] if t.shape[-1] == 1 else t)


TransformLike = Transform | Callable[[Array], Array]


def as_transform(transform: TransformLike) -> Transform:
    """A transform as it is; a plain function wrapped."""
    if isinstance(transform, Transform):
        return transform
    if callable(transform):
        return Function(transform)
    raise TypeError(f"transform must be a Transform such as Identity(), or a function of the target; got {transform!r}")
