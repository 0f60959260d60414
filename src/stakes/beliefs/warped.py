"""Warped Gaussian beliefs: z = g(f) for a latent f that is jointly Gaussian with what the labels tell, g increasing.

A price whose logarithm is modelled, a rate, a share: what a model of g^-1(label) believes about the label itself. Only
the statistics change, from S to S o g, so all integration is that of the latent belief; the closed forms of Gaussian
targets do not carry over, which is why this is a type of its own. Sizes: N candidates, M contexts, D statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from stakes._array import Array, constant, double, log_of, namespace, replaced
from stakes._panels import beside, slope
from stakes.beliefs.base import Integrand, Reference, Regret
from stakes.beliefs.gaussian import GaussianBelief
from stakes.distributions import Distribution
from stakes.domains import POSITIVE, REAL, Domain, Interval


@runtime_checkable
class Warp(Protocol):
    """An increasing map g from all reals onto `domain`, and its inverse."""

    @property
    def domain(self) -> Interval:
        """Where targets z = g(f) fall."""

    def forward(self, f: Array) -> Array:
        """[...]: g(f)."""

    def inverse(self, z: Array) -> Array:
        """[...]: g^-1(z)."""


@dataclass(frozen=True)
class LogWarp:
    """z = exp(f): the model is of log z."""

    domain: Interval = POSITIVE

    def forward(self, f: Array) -> Array:
        """Exp(f)."""
        return namespace(f).exp(f)

    def inverse(self, z: Array) -> Array:
        """Log z."""
        return namespace(z).log(z)


@dataclass(frozen=True)
class MonotoneWarp:
    """Anyone's own increasing g, with its inverse and the interval it maps onto."""

    function: Callable[[Array], Array]
    inverse_function: Callable[[Array], Array]
    domain: Interval = REAL

    def forward(self, f: Array) -> Array:
        """The function."""
        return self.function(f)

    def inverse(self, z: Array) -> Array:
        """The inverse function."""
        return self.inverse_function(z)


@dataclass(frozen=True, eq=False)
class WarpedGaussianBelief:
    """Targets z = g(f) of M contexts and labels of N candidates, Gaussian once g is undone.

    `latent` is the Gaussian belief about f, in the units of the model: if the model was fitted to log prices, means and
    variances of log prices, and `warp` is LogWarp(). With label noise in `latent.variance`, z is the label that will be
    realised. A candidate's label tells as much warped as not, so `latent` holds all there is to say of candidates.
    """

    latent: GaussianBelief
    warp: Warp

    def __post_init__(self) -> None:
        if not isinstance(self.latent, GaussianBelief):
            raise TypeError(f"latent must be a GaussianBelief about g^-1(z); got {type(self.latent).__name__}")
        if not isinstance(self.warp, Warp) or isinstance(self.warp, type):
            raise TypeError(f"warp must be a warp such as LogWarp(); got {self.warp!r}")

    @property
    def n_candidates(self) -> int:
        """N."""
        return self.latent.n_candidates

    @property
    def n_contexts(self) -> int:
        """M."""
        return self.latent.n_contexts

    @property
    def domain(self) -> Interval:
        """The range of the warp."""
        return self.warp.domain

    @property
    def like(self) -> Array:
        """That of the latent belief."""
        return self.latent.like

    @property
    def rho(self) -> Array:
        """[N, M]: the fraction of the latent variance that observing y removes."""
        return self.latent.rho

    def n_cells(self, integrand: Integrand) -> int:
        """J of the latent belief."""
        return self.latent.n_cells(self.unwarped(integrand))

    def reference(self, integrand: Integrand) -> Reference:
        """The reference of the latent belief, as a target."""
        reference = self.latent.reference(self.unwarped(integrand))
        return Reference(self.warp.forward(reference.point), reference.log_scale)

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: E[S(g(f)) | c]."""
        return self.latent.moments(self.unwarped(integrand), self._latent(reference))

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: E[S(g(f)) | eta_j] times the mass of node j."""
        return self.latent.split_moments(self.unwarped(integrand), self._latent(reference))

    def distribution(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """[M]: w(z) p(z | c), that of the latent belief pushed through the warp."""
        below = self._latent(reference)
        latent = self.latent.distribution(self.unwarped(integrand), below, self._latent_marks(below, marks))
        return replaced(latent.pushed(self.warp.forward), log_height=lambda z: self._log_height(latent, z))

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Array) -> Array:
        """[N, M]: regrets in the cells of the latent belief, pushed through the warp, summed."""
        below, forward = self._latent(reference), self.warp.forward

        def pushed(posterior: Distribution, prior: Distribution, marks: Array) -> Array:
            today = prior.pushed(forward)
            targets = forward(prior.origin[..., None] + marks) - today.origin[..., None]
            return regret(replaced(today, mass=posterior.mass), today, targets)

        latent_marks = self._latent_marks(below, marks)
        return self.latent.regret_over_cells(pushed, self.unwarped(integrand), below, latent_marks)

    def n_nodes(self, integrand: Integrand) -> int:
        """That of the latent belief."""
        return self.latent.n_nodes(self.unwarped(integrand))

    def take(self, candidates: slice, contexts: slice) -> WarpedGaussianBelief:
        """A block of candidates and contexts."""
        return replaced(self, latent=self.latent.take(candidates, contexts))

    def unwarped(self, integrand: Any) -> Unwarped:
        """The integrand as one of the latent f."""
        return Unwarped(integrand, self.warp, self.latent.mean)

    def _latent_marks(self, below: Reference, marks: Array) -> Array:
        """[M, B]: marks as values of f, from the latent reference."""
        assert below.point is not None
        point = below.point[:, None]
        return self.warp.inverse(self.warp.forward(point) + marks) - point

    def _log_height(self, latent: Distribution, z: Array) -> Array:
        """[M, ...]: log w(z) p(z | c) = that of f less log g'(f); -inf where the warp does not reach."""
        assert latent.log_height is not None
        xp, domain = namespace(z), self.warp.domain
        reached = (z > domain.low) & (z < domain.high)
        f = self.warp.inverse(xp.where(reached, z, beside(self.warp.forward(latent.origin), z)))
        width = beside(xp.sqrt(double(self.latent.variance)), z) / 2.0 + xp.zeros_like(f)
        log_height = latent.log_height(f) - log_of(slope(self.warp.forward, f, width))
        return xp.where(reached, log_height, xp.full_like(log_height, -xp.inf))

    def _latent(self, reference: Reference) -> Reference:
        assert reference.point is not None
        return Reference(self.warp.inverse(reference.point), reference.log_scale)


@dataclass(frozen=True, eq=False)
class Unwarped:
    """A loss (or any integrand) of z = g(f) as an integrand of f: statistics S o g."""

    of_target: Any
    warp: Warp
    like: Array
    """Any array of the belief, in whose library breakpoints are unwarped."""

    @property
    def domain(self) -> Domain:
        """All reals."""
        return REAL

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Those of the loss that the warp reaches, in units of f."""
        inside = [point for point in self.of_target.breakpoints if self.warp.domain.low < point < self.warp.domain.high]
        places = self.warp.inverse(constant(inside, self.like)) if inside else constant((), self.like)
        return tuple(float(places[i]) for i in range(len(inside)))

    def log_magnitudes(self, f: Array) -> Array:
        """[..., t]: those of the loss at g(f)."""
        return self.of_target.log_magnitudes(self.warp.forward(f))

    def statistics(self, f: Array, reference: Array | None = None) -> Array:
        """[..., D]: S(g(f)) about g(reference)."""
        return self.of_target.statistics(self.warp.forward(f), self._point(reference))

    def _point(self, reference: Array | None) -> Array | None:
        return None if reference is None else self.warp.forward(reference)
