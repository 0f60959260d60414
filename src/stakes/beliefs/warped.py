"""Warped Gaussian beliefs: z = g(f), g increasing, for a latent f that is jointly Gaussian with what the labels tell.

A price whose logarithm is modelled, a rate, a share: what a model of g^-1(label) believes about the label itself. The
latent belief may be a mixture of hypotheses. Only the statistics change, from S to S o g, so all integration is that of
the latent belief; the closed forms of Gaussian targets do not carry over, which is why this is a type of its own. The
warps g come first, then the belief, then the loss as an integrand of f. Sizes: S hypotheses, N candidates, M contexts,
J cells, B marks, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stakes._utils.arguments import is_positive
from stakes._utils.array import (
    Array,
    at_once,
    constant,
    double,
    log_of,
    namespace,
    normal_tail,
    ratio,
    replaced,
    slices,
)
from stakes.beliefs.base import Integrand, Reference, Regret
from stakes.beliefs.gaussian import GaussianBelief
from stakes.beliefs.gaussian_integration import SharedSplit
from stakes.beliefs.log_moments import LogIntegrand
from stakes.beliefs.mixture import GaussianMixtureBelief
from stakes.beliefs.quadrature import Resolved
from stakes.beliefs.roughness import resolved, scanned
from stakes.exceptions import StakesError
from stakes.losses.distributions import Distribution, align_axes, derivative
from stakes.losses.domains import POSITIVE, REAL, Domain, Interval

_JOIN = 1e-3  # x = 1 + lam f below which the Box-Cox map is continued
_OUTSIDE = 1e-9  # latent mass that may lie where the warp is only a continuation
_NEGLIGIBLE = 9.0  # in logarithms: a ten-thousandth
_FAR = 40.0  # standard deviations, beyond which no mass is left
_REACH, _NODES = 16.0, 161  # standard deviations and nodes of moments of a warped normal
_ROWS = 2048  # that are taken at once


@runtime_checkable
class Warp(Protocol):
    """An increasing map g from all reals onto `domain`, and its inverse.

    Examples:
        >>> from stakes.beliefs import LogWarp, Warp
        >>> isinstance(LogWarp(), Warp)
        True
    """

    @property
    def domain(self) -> Interval:
        """Where targets z = g(f) fall."""

    @property
    def latent(self) -> Interval:
        """Where f must fall for g to be what it says; beyond, it is some continuation that keeps it increasing."""

    def forward(self, f: Array) -> Array:
        """g(f).

        Args:
            f: Latent values [...].

        Returns:
            [...].
        """

    def inverse(self, z: Array) -> Array:
        """g^-1(z).

        Args:
            z: Targets [...].

        Returns:
            [...].
        """


@dataclass(frozen=True)
class LogWarp:
    """z = exp(f): the model is of log z.

    Args:
        domain: Where targets fall.
        latent: Where f may fall.

    Examples:
        >>> import numpy as np
        >>> from stakes import LogWarp
        >>> print(LogWarp().forward(np.array([0.0])), LogWarp().inverse(np.array([1.0])))
        [1.] [0.]
    """

    domain: Interval = POSITIVE
    latent: Interval = REAL

    def forward(self, f: Array) -> Array:
        """[...]: exp(f)."""
        return namespace(f).exp(f)

    def inverse(self, z: Array) -> Array:
        """[...]: log z."""
        return namespace(z).log(z)


@dataclass(frozen=True)
class BoxCoxWarp:
    """z = (1 + lam f)^(1 / lam), so that the model is of (z^lam - 1) / lam; `lam = 0` is z = exp(f).

    The map needs x = 1 + lam f > 0. Below x = 0.001, where a belief that is let in has next to no mass, x is replaced
    by its continuation 0.001^2 / (0.002 - x), positive and increasing, so that f may be any real. A negative lam sends
    f near -1 / lam to infinity, so that E[z] exists only for want of mass there: losses of z itself are refused unless
    -1 / lam is many standard deviations away. Losses of z^lam, such as BoxCox(lam), do not mind.

    Args:
        lam: The exponent, any finite number.

    Raises:
        StakesError: If `lam` is not a finite number.

    Examples:
        >>> import numpy as np
        >>> from stakes import BoxCoxWarp
        >>> print(BoxCoxWarp(0.5).forward(np.array([4.0])))  # (1 + 0.5 4)^2
        [9.]
    """

    lam: float
    domain: Interval = field(default=POSITIVE, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.lam, Real) or not math.isfinite(self.lam):
            raise StakesError(f"lam must be a finite number; got {self.lam!r}. For z = exp(f) it is 0.")
        object.__setattr__(self, "lam", float(self.lam))

    @property
    def latent(self) -> Interval:
        """Where 1 + lam f > 0."""
        if self.lam == 0:
            return REAL
        return Interval(low=-1.0 / self.lam) if self.lam > 0 else Interval(high=-1.0 / self.lam)

    def forward(self, f: Array) -> Array:
        """[...]: exp(log(x) / lam), by log1p: a small lam costs no digits."""
        xp = namespace(f)
        if self.lam == 0:
            return xp.exp(f)
        step, zero = self.lam * f, xp.zeros_like(f)
        inside = step >= _JOIN - 1.0
        log_beyond = 2.0 * math.log(_JOIN) - xp.log(2.0 * _JOIN - 1.0 - xp.where(inside, zero - 1.0, step))
        return xp.exp(xp.where(inside, xp.log1p(xp.where(inside, step, zero)), log_beyond) / self.lam)

    def inverse(self, z: Array) -> Array:
        """[...]: (z^lam - 1) / lam, continued likewise."""
        xp = namespace(z)
        if self.lam == 0:
            return xp.log(z)
        log_x = self.lam * xp.log(z)
        inside, zero = log_x >= math.log(_JOIN), xp.zeros_like(z)
        beyond = 2.0 * _JOIN - 1.0 - _JOIN**2 * xp.exp(-xp.where(inside, zero, log_x))
        return xp.where(inside, xp.expm1(xp.where(inside, log_x, zero)), beyond) / self.lam


@dataclass(frozen=True)
class SoftplusWarp:
    """z = scale log(1 + exp(f)): an exponential well below `scale`, a straight line well above.

    Effects multiply where targets are small, as under `LogWarp`, but a target beyond all labels so far is as far away
    as a straight line has it, so that every loss that is finite for a Gaussian belief is finite.

    Args:
        scale: Where the exponential turns into a line, a positive number: the largest label, say.

    Raises:
        StakesError: If `scale` is not a positive number.

    Examples:
        >>> import numpy as np
        >>> from stakes import SoftplusWarp
        >>> print(SoftplusWarp(2.0).forward(np.array([-20.0, 0.0, 20.0])).round(3))  # 2 exp(-20), 2 log 2, 2 20
        [ 0.     1.386 40.   ]
    """

    scale: float
    domain: Interval = field(default=POSITIVE, init=False, repr=False)
    latent: Interval = field(default=REAL, init=False, repr=False)

    def __post_init__(self) -> None:
        if not is_positive(self.scale):
            raise StakesError(f"scale must be a positive number; got {self.scale!r}")
        object.__setattr__(self, "scale", float(self.scale))

    def forward(self, f: Array) -> Array:
        """[...]: scale log(1 + exp(f)), by the larger of 0 and f and what is left."""
        xp = namespace(f)
        return self.scale * (xp.where(f > 0, f, xp.zeros_like(f)) + xp.log1p(xp.exp(-xp.abs(f))))

    def inverse(self, z: Array) -> Array:
        """[...]: log(exp(z / scale) - 1)."""
        xp, share = namespace(z), z / self.scale
        return share + xp.log(-xp.expm1(-share))


@dataclass(frozen=True)
class MonotoneWarp:
    """An increasing map g of your own.

    Args:
        function: g, from latent values [...] to targets [...].
        inverse_function: g^-1.
        domain: The interval that g maps onto.
        latent: Where f must fall for g to be what it says.

    Examples:
        >>> import numpy as np
        >>> from stakes.beliefs import MonotoneWarp
        >>> from stakes.losses import Interval
        >>> share = MonotoneWarp(lambda f: 1 / (1 + np.exp(-f)), lambda z: np.log(z / (1 - z)), Interval(0.0, 1.0))
        >>> print(share.forward(np.array([0.0])))
        [0.5]
    """

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


@dataclass(frozen=True, eq=False)
class WarpedGaussianBelief:
    """Targets z = g(f) of M contexts and labels of N candidates, Gaussian once g is undone.

    A candidate's label tells as much warped as not, so `latent` holds all there is to say of candidates.

    Args:
        latent: The Gaussian belief about f, or the mixture of such, in the units of the model: if the model was fitted
            to log prices, means and variances of log prices. With label noise in `latent.variance`, z is the label that
            will be realised. A mixture of one hypothesis is taken for the Gaussian belief that it is.
        warp: The map g, such as `LogWarp()`.

    Raises:
        TypeError: If `latent` is no GaussianBelief or GaussianMixtureBelief, or `warp` no warp.
        StakesError: If the belief puts mass where the warp is only a continuation.

    Examples:
        A model of log prices, and the relative error of prices, which is squared error of their logarithms:

        >>> from stakes import BoxCox, GaussianBelief, LogWarp, WarpedGaussianBelief, score
        >>> latent = GaussianBelief(mean=[12.0], variance=[0.04], candidate_variance=[1.0], covariance=[[0.1]])
        >>> prices = WarpedGaussianBelief(latent, LogWarp())
        >>> print(prices.domain, score(BoxCox(0.0), prices).round(6))  # 0.1^2 of the variance 0.04
        (0, inf) [0.01]
    """

    latent: GaussianBelief | GaussianMixtureBelief
    warp: Warp

    def __post_init__(self) -> None:
        if isinstance(self.latent, GaussianMixtureBelief):
            object.__setattr__(self, "latent", self.latent.simplest())
        elif not isinstance(self.latent, GaussianBelief):
            raise TypeError(
                f"latent must be a GaussianBelief or GaussianMixtureBelief about g^-1(z); got "
                f"{type(self.latent).__name__}"
            )
        if not isinstance(self.warp, Warp) or isinstance(self.warp, type):
            raise TypeError(
                f"warp must be a warp such as LogWarp(), with the fields of stakes.beliefs.Warp; got {self.warp!r}"
            )
        self._check_latent_mass()

    def _check_latent_mass(self) -> None:
        (mean, sd), xp = self._normals(), namespace(self.latent.mean)
        outside = _mass_outside(self.warp.latent, mean, sd)
        worst = int(xp.argmax(outside))
        if (mass := float(outside[worst])) > _OUTSIDE:
            raise StakesError(
                f"{self.warp} needs a latent f in {self.warp.latent}, but the belief puts {mass:.1e} of its mass "
                f"outside at context {worst % self.n_contexts} (mean {float(mean[worst]):.4g}, variance "
                f"{float(sd[worst]) ** 2:.4g}); {_OUTSIDE:.0e} is allowed. Use another lam, LogWarp(), "
                "which takes every f, or a model with less spread there."
            )

    def _normals(self) -> tuple[Array, Array]:
        """[M] each, or [S M]: means and standard deviations of f, under each hypothesis in turn."""
        xp = namespace(self.latent.mean)
        mean, variance = (xp.reshape(double(each), (-1,)) for each in (self.latent.mean, self.latent.variance))
        return mean, xp.sqrt(variance)

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return self.latent.n_candidates

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return self.latent.n_contexts

    @property
    def domain(self) -> Interval:
        """The range of the warp."""
        return self.warp.domain

    @property
    def like(self) -> Array:
        """The mean of the latent belief."""
        return self.latent.like

    @property
    def rho(self) -> Array:
        """[N, M]: the fraction of the latent variance that observing y removes; [S, N, M] under hypotheses."""
        return self.latent.rho

    def n_cells(self, integrand: Integrand) -> int:
        """J of the latent belief."""
        return self.latent.n_cells(self.unwarped(integrand))

    def reference(self, integrand: Integrand) -> Reference:
        """The reference of the latent belief, as a target."""
        plain = isinstance(integrand, Resolved) and isinstance(integrand.of, Unwarped)
        reference = self.latent.reference(integrand if plain else Unwarped(integrand, self.warp, self.latent.mean))
        return Reference(self.warp.forward(reference.point), reference.log_scale)

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: E[S(g(f)) | c]."""
        return self.latent.moments(self.unwarped(integrand), self._latent(reference))

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: E[S(g(f)) | eta_j] times the mass of node j."""
        return self.latent.split_moments(self.unwarped(integrand), self._latent(reference))

    def log_span(self, integrand: LogIntegrand) -> float:
        """That of the latent belief, refused where the expectation of T is infinite."""
        latent = self._unwarped(integrand)
        _check_finite_expectation(latent, *self._normals())
        return self.latent.log_span(latent)

    def log_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """[M, 2]: log E[S(z) | c]."""
        return self.latent.log_moments(self._unwarped(integrand), self._latent(reference))

    def log_split_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """[N, M, J, 2]: log E[S(z) 1{y in cell j} | c]."""
        return self.latent.log_split_moments(self._unwarped(integrand), self._latent(reference))

    def shared_split(self, integrand: Integrand) -> SharedSplit | None:
        """Split moments of labels that tell the same share of every context, from the reference as a target.

        Args:
            integrand: The loss.

        Returns:
            The moments of the latent belief; None where contexts share no nodes.
        """
        assert isinstance(self.latent, GaussianBelief)  # profile curves are of one rho
        split = self.latent.shared_split(self.unwarped(integrand))
        if split is None:
            return None
        return replaced(split, reference=Reference(self.warp.forward(split.reference.point), split.reference.log_scale))

    def distribution(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """[M]: w(z) p(z | c), that of the latent belief pushed through the warp."""
        below = self._latent(reference)
        latent = self.latent.distribution(self.unwarped(integrand), below, self._latent_marks(below, marks))
        return replaced(
            latent.pushed_through(self.warp.forward),
            log_weighted_density=lambda z: self._log_weighted_density(latent, z),
        )

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Array) -> Array:
        """[N, M]: regrets in the cells of the latent belief, pushed through the warp, summed."""
        below, forward = self._latent(reference), self.warp.forward

        def pushed(posterior: Distribution, prior: Distribution, marks: Array) -> Array:
            today = prior.pushed_through(forward)
            targets = forward(prior.origin[..., None] + marks) - today.origin[..., None]
            return regret(replaced(today, mass=posterior.mass), today, targets)

        latent_marks = self._latent_marks(below, marks)
        return self.latent.regret_over_cells(pushed, self.unwarped(integrand), below, latent_marks)

    def member_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """E[S(z) | c, s] under each hypothesis of a latent mixture.

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, S, D].
        """
        return self._mixture.member_moments(self.unwarped(integrand), self._latent(reference))

    def member_log_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """Log E[S(z) | c, s] of positive statistics, under each hypothesis of a latent mixture.

        Args:
            integrand: The loss by logarithms.
            reference: From where statistics are measured.

        Returns:
            [M, S, 2].
        """
        return self._mixture.member_log_moments(self._unwarped(integrand), self._latent(reference))

    def member_distributions(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """w(z) p(z | c, s) under each hypothesis of a latent mixture, on nodes that they share.

        Args:
            integrand: The loss.
            reference: From where targets are counted.
            marks: [M, B], targets that must be edges of panels.

        Returns:
            [M, S].
        """
        below = self._latent(reference)
        latent = self._mixture.member_distributions(self.unwarped(integrand), below, self._latent_marks(below, marks))
        return latent.pushed_through(self.warp.forward)

    @property
    def _mixture(self) -> GaussianMixtureBelief:
        assert isinstance(self.latent, GaussianMixtureBelief)  # one Gaussian has no members
        return self.latent

    def n_nodes(self, integrand: Integrand) -> int:
        """The bound of the latent belief."""
        return self.latent.n_nodes(self.unwarped(integrand))

    def take(self, candidates: slice, contexts: slice) -> WarpedGaussianBelief:
        """A block of candidates and contexts."""
        return replaced(self, latent=self.latent.take(candidates, contexts))

    def resolved(self, integrand: Integrand) -> Resolved:
        """The same integrand, with what it takes to integrate it; all methods take it in place of the loss.

        Args:
            integrand: The loss.

        Returns:
            The integrand as one of the latent f, and where it is steep, jumps or kinks.
        """
        return self.unwarped(integrand)

    def unwarped(self, integrand: Any) -> Resolved:
        """The loss as an integrand of the latent f.

        Args:
            integrand: The loss, or any integrand of z.

        Returns:
            Statistics S o g, and what it takes to integrate them.

        Raises:
            FloatingPointError: If the loss turns on f where the warp is only a continuation.
        """
        if isinstance(integrand, Resolved) and isinstance(integrand.of, Unwarped):
            return integrand
        if isinstance(integrand, Resolved):
            return integrand.with_integrand(self._unwarped(integrand.of))
        latent = self._unwarped(integrand)
        return (scanned if hasattr(integrand, "regret") else resolved)(latent, *self._normals())

    def _unwarped(self, integrand: Any) -> Unwarped:
        latent = Unwarped(integrand, self.warp, self.latent.mean)
        if self.warp.latent != REAL:
            self._check_reach(latent)
        return latent

    def _check_reach(self, integrand: Unwarped) -> None:
        """Refuse what turns on f where the warp is only a continuation, however little mass is there."""
        (mean, sd), xp, interval = self._normals(), namespace(self.latent.mean), self.warp.latent
        u = constant(np.linspace(-20.0, 20.0, 81), mean)
        f = mean[:, None] + sd[:, None] * u  # [M, 81]
        sizes = xp.mean(integrand.log_magnitudes(f), axis=-1) - 0.5 * u * u  # log of w |T| times the density
        lowest = xp.full_like(sizes, -xp.inf)
        inside = (f > interval.low) & (f < interval.high)
        within = xp.max(xp.where(inside, sizes, lowest), axis=1)
        beyond = xp.max(xp.where(inside | xp.isnan(sizes), lowest, sizes), axis=1)
        if bool(xp.any(beyond > within - _NEGLIGIBLE)):
            raise FloatingPointError(
                f"this loss turns on latent f outside {interval}, where {self.warp} is only a continuation: the "
                "expected loss is infinite, or nearly so. Use a loss of the transformed target, such as BoxCox with "
                "the same lam, LogWarp(), or a model with less spread."
            )

    def _latent_marks(self, below: Reference, marks: Array) -> Array:
        """[M, B]: marks as values of f, from the latent reference."""
        assert below.point is not None
        point = below.point[:, None]
        return self.warp.inverse(self.warp.forward(point) + marks) - point

    def _log_weighted_density(self, latent: Distribution, z: Array) -> Array:
        """[M, ...]: log w(z) p(z | c) = that of f less log g'(f); -inf where the warp does not reach."""
        assert latent.log_weighted_density is not None
        xp, domain = namespace(z), self.warp.domain
        reached = (z > domain.low) & (z < domain.high)
        f = self.warp.inverse(xp.where(reached, z, align_axes(self.warp.forward(latent.origin), z)))
        spread = xp.reshape(self._normals()[1], (-1, self.n_contexts))  # [S, M]
        width = align_axes(xp.max(spread, axis=0), z) / 2.0 + xp.zeros_like(f)
        log_height = latent.log_weighted_density(f) - log_of(derivative(self.warp.forward, f, width))
        return xp.where(reached, log_height, xp.full_like(log_height, -xp.inf))

    def _latent(self, reference: Reference) -> Reference:
        assert reference.point is not None
        return Reference(self.warp.inverse(reference.point), reference.log_scale)


def warped_moments(warp: Warp, mean: Array, variance: Array) -> tuple[Array, Array]:
    """[N], [N]: mean and variance of z = g(f) for normal f [N], by the trapezoid rule, about g(mean)."""
    xp = namespace(mean)
    nodes = constant(np.linspace(-_REACH, _REACH, _NODES), mean)
    weights = xp.exp(-0.5 * nodes**2)
    weights = weights / xp.sum(weights)
    found = []
    for part in slices(mean.shape[0], at_once(mean, _ROWS)):
        origin = warp.forward(mean[part])
        away = warp.forward(mean[part, None] + xp.sqrt(variance[part])[:, None] * nodes) - origin[:, None]
        shift = away @ weights
        found.append((origin + shift, (away - shift[:, None]) ** 2 @ weights))
    means, variances = zip(*found, strict=True) if found else ((mean,), (variance,))
    return xp.concat(means), xp.concat(variances)


def _mass_outside(interval: Interval, mean: Array, sd: Array) -> Array:
    """[M]: P(f < low) + P(f > high) for normals."""
    xp = namespace(mean)
    below, above = (
        normal_tail(xp.clip(xp.where(sd > 0, ratio(room, sd), _FAR * xp.sign(room)), -_FAR, _FAR))
        for room in (mean - interval.low, interval.high - mean)
    )
    return below + above


_FURTHEST_SD = 1e12  # to where growth that outruns a normal density is looked for


def _check_finite_expectation(integrand: Unwarped, mean: Array, sd: Array) -> None:
    """Refuse a T whose logarithm grows as u^2 / 2 or faster, however little of that shows within reach."""
    xp, mean, sd = namespace(mean), mean[:, None], sd[:, None]

    def log_t(u: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return integrand.log_ratio(mean + sd * u, mean + xp.zeros_like(u))

    for side in (1.0, -1.0):
        u = constant(side * np.geomspace(1.0, _FURTHEST_SD, 240), mean) + xp.zeros_like(mean)  # [M, U]
        u = side * xp.max(xp.where(xp.isfinite(log_t(u)), side * u, xp.ones_like(u)), axis=1, keepdims=True)
        here, halfway = (log_t(share * u) / (share * u) ** 2 for share in (1.0, 0.5))
        if bool(xp.any((here > 0.5) & (here > 0.75 * halfway) & (sd > 0))):
            raise FloatingPointError(
                f"the expected loss is infinite: under {type(integrand.warp).__name__} the transform of the target "
                "grows faster than a normal density falls. Linex on a log-warped belief needs a positive alpha, which "
                "charges overestimates; or use a loss of the logarithm, such as BoxCox(0.0)."
            )


@dataclass(frozen=True, eq=False)
class Unwarped:
    """A loss (or any integrand) of z = g(f) as an integrand of f: statistics S o g."""

    of_target: Any
    warp: Warp
    like: Array

    @property
    def domain(self) -> Domain:
        """All reals."""
        return REAL

    @property
    def finite_actions(self) -> bool:
        """Whether the loss has finitely many actions."""
        return bool(self.of_target.finite_actions)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The breakpoints of the loss that the warp reaches, in units of f."""
        inside = [point for point in self.of_target.breakpoints if self.warp.domain.low < point < self.warp.domain.high]
        places = self.warp.inverse(constant(inside, self.like)) if inside else constant((), self.like)
        return tuple(float(places[i]) for i in range(len(inside)))

    def log_magnitudes(self, f: Array) -> Array:
        """[..., t]: the magnitudes of the loss at g(f)."""
        return self.of_target.log_magnitudes(self.warp.forward(f))

    def statistics(self, f: Array, reference: Array | None = None) -> Array:
        """[..., D]: S(g(f)) about g(reference)."""
        return self.of_target.statistics(self.warp.forward(f), self._point(reference))

    @property
    def weighted(self) -> bool:
        """Whether the loss has a weight."""
        return bool(self.of_target.weighted)

    @property
    def width(self) -> float:
        """That of the loss."""
        return float(self.of_target.width)

    def log_statistics(self, f: Array, reference: Array) -> tuple[Array, Array]:
        """[...] each: log S(g(f)) about g(reference)."""
        logs: tuple[Array, Array] = self.of_target.log_statistics(self.warp.forward(f), self.warp.forward(reference))
        return logs

    def log_ratio(self, f: Array, reference: Array) -> Array:
        """[...]: log T(g(f)) / T(g(reference))."""
        return self.of_target.log_ratio(self.warp.forward(f), self.warp.forward(reference))

    def _point(self, reference: Array | None) -> Array | None:
        return None if reference is None else self.warp.forward(reference)
