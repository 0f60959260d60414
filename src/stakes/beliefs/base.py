"""The belief's side of the waist.

Sizes: N candidates, M contexts, K members, C classes, J cells of the label y, D statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from stakes._utils.array import Array, namespace
from stakes.losses.distributions import Distribution
from stakes.losses.domains import Domain


class Integrand(Protocol):
    """What a belief may ask of a loss: where it is defined, where it is rough or large, and its statistics."""

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Targets at which the statistics jump or kink."""

    def log_magnitudes(self, z: Array) -> Array:
        """[..., t]: the log of how large the statistics are at z, log w(z) first."""

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., D]: S(z) measured from `reference`, which has the leading axes of z or broadcasts to them."""


class Reference(NamedTuple):
    """From where the statistics of each context are measured, and the scale that was taken out of their moments."""

    point: Array | None
    """[M], or [M, d] for vectors: a target near the mass of w(z) p(z | c); None for classes."""
    log_scale: Array
    """[M]: moments are E[S] over exp(log_scale)."""


def reference_at(point: Array, integrand: Integrand) -> Reference:
    """The reference whose scale is the weight at `point` [M], which is what statistics about it leave out."""
    return Reference(point, log_weight(point, integrand))


def log_weight(point: Array, integrand: Integrand) -> Array:
    """[M]: log w at `point`, or 0 where there is no weight to scale by."""
    log_w = integrand.log_magnitudes(point)[..., 0]
    xp = namespace(log_w)
    return xp.where(xp.isfinite(log_w), log_w, xp.zeros_like(log_w))


@runtime_checkable
class Belief(Protocol):
    """What is believed of the label y of each of N candidates and the target z of each of M contexts.

    A belief answers with expectations of statistics S(z), split by what y turns out to be. Cells are an exhaustive list
    of outcomes of y (classes, or nodes of an integration rule with their mass); nothing is divided by the probability
    of a cell, so impossible outcomes do no harm.
    """

    @property
    def n_candidates(self) -> int:
        """N."""

    @property
    def n_contexts(self) -> int:
        """M."""

    def n_cells(self, integrand: Integrand) -> int:
        """J, or a bound on it: how large `split_moments` gets."""

    @property
    def domain(self) -> Domain:
        """Where the target can fall."""

    @property
    def like(self) -> Array:
        """Any array of the belief: results have its library, dtype and device."""

    def reference(self, integrand: Integrand) -> Reference:
        """From where to measure the statistics of each context; `reference_at(point, integrand)` makes one."""

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: E[S(z) | c] over exp(log_scale), with `integrand.statistics(z, point)` for z of shape [M, ...].

        The first axis of z is that of contexts (or has length 1), and the point is shaped to broadcast with it.
        """

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: E[S(z) 1{y in cell j} | c], whose sum over cells is `moments`."""

    def take(self, candidates: slice, contexts: slice) -> Belief:
        """The belief over a block of candidates and contexts."""


Regret: TypeAlias = Callable[[Distribution, Distribution, Array], Array]
"""The distribution in each cell, today's on the same nodes and marks [..., B], to regrets [...]."""


@runtime_checkable
class GivesDistributions(Protocol):
    """A belief that knows the whole weighted distribution w(z) p(z | c), today's and in each cell of a label.

    Marks [M, B] are targets, counted from the reference of each context, that must be edges between panels.
    """

    def distribution(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """[M]: w(z) p(z | c) over exp(log_scale)."""

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Array) -> Array:
        """[N, M]: the regret in each cell, whose distribution is w(z) p(z, y in cell | c), summed over cells."""

    def n_nodes(self, integrand: Integrand) -> int:
        """A bound on cells times nodes of a distribution, for one candidate and context."""
