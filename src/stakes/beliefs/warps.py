"""Warps: increasing maps g from a latent f to the target z = g(f)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Protocol, runtime_checkable

from stakes._array import Array, namespace
from stakes.domains import POSITIVE, REAL, Interval

_JOIN = 1e-3  # x = 1 + lam f below which the Box-Cox map is continued


@runtime_checkable
class Warp(Protocol):
    """An increasing map g from all reals onto `domain`, and its inverse."""

    @property
    def domain(self) -> Interval:
        """Where targets z = g(f) fall."""

    @property
    def latent(self) -> Interval:
        """Where f must fall for g to be what it says; beyond, it is some continuation that keeps it increasing."""

    def forward(self, f: Array) -> Array:
        """[...]: g(f)."""

    def inverse(self, z: Array) -> Array:
        """[...]: g^-1(z)."""


@dataclass(frozen=True)
class LogWarp:
    """z = exp(f): the model is of log z."""

    domain: Interval = POSITIVE
    latent: Interval = REAL

    def forward(self, f: Array) -> Array:
        """Exp(f)."""
        return namespace(f).exp(f)

    def inverse(self, z: Array) -> Array:
        """Log z."""
        return namespace(z).log(z)


@dataclass(frozen=True)
class BoxCoxWarp:
    """z = (1 + lam f)^(1 / lam), so that the model is of (z^lam - 1) / lam; `lam = 0` is z = exp(f).

    The map needs x = 1 + lam f > 0. Below x = 0.001, where a belief that is let in has next to no mass, x is replaced
    by its continuation 0.001^2 / (0.002 - x), positive and increasing, so that f may be any real. A negative lam sends
    f near -1 / lam to infinity, so that E[z] exists only for want of mass there: losses of z itself are refused unless
    -1 / lam is many standard deviations away. Losses of z^lam, such as BoxCox(lam), do not mind.
    """

    lam: float
    domain: Interval = field(default=POSITIVE, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.lam, Real) or not math.isfinite(self.lam):
            raise ValueError(f"lam must be a finite number; got {self.lam!r}. For z = exp(f) it is 0.")
        object.__setattr__(self, "lam", float(self.lam))

    @property
    def latent(self) -> Interval:
        """Where 1 + lam f > 0."""
        if self.lam == 0:
            return REAL
        return Interval(low=-1.0 / self.lam) if self.lam > 0 else Interval(high=-1.0 / self.lam)

    def forward(self, f: Array) -> Array:
        """Exp(log(x) / lam), by log1p: a small lam costs no digits."""
        xp = namespace(f)
        if self.lam == 0:
            return xp.exp(f)
        step, zero = self.lam * f, xp.zeros_like(f)
        inside = step >= _JOIN - 1.0
        log_beyond = 2.0 * math.log(_JOIN) - xp.log(2.0 * _JOIN - 1.0 - xp.where(inside, zero - 1.0, step))
        return xp.exp(xp.where(inside, xp.log1p(xp.where(inside, step, zero)), log_beyond) / self.lam)

    def inverse(self, z: Array) -> Array:
        """(z^lam - 1) / lam, continued likewise."""
        xp = namespace(z)
        if self.lam == 0:
            return xp.log(z)
        log_x = self.lam * xp.log(z)
        inside, zero = log_x >= math.log(_JOIN), xp.zeros_like(z)
        beyond = 2.0 * _JOIN - 1.0 - _JOIN**2 * xp.exp(-xp.where(inside, zero, log_x))
        return xp.where(inside, xp.expm1(xp.where(inside, log_x, zero)), beyond) / self.lam


@dataclass(frozen=True)
class MonotoneWarp:
    """Anyone's own increasing g, with its inverse and the interval it maps onto."""

    function: Callable[[Array], Array]
    inverse_function: Callable[[Array], Array]
    domain: Interval = REAL
    latent: Interval = REAL

    def forward(self, f: Array) -> Array:
        """The function."""
        return self.function(f)

    def inverse(self, z: Array) -> Array:
        """The inverse function."""
        return self.inverse_function(z)
