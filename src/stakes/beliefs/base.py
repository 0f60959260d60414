"""The belief's side of the waist.

Sizes: N candidates, M contexts, K members, C classes, J cells of the label y, D statistics.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from stakes._array import Array
from stakes.domains import Domain


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

    def reference(self, integrand: Integrand) -> Array | None:
        """[M]: for each context a target near the mass of w(z) p(z | c); None for classes."""

    def moments(self, integrand: Integrand, reference: Array | None) -> Array:
        """[M, D]: E[S(z) | c]."""

    def split_moments(self, integrand: Integrand, reference: Array | None) -> Array:
        """[N, M, J, D]: E[S(z) 1{y in cell j} | c], whose sum over cells is `moments`."""

    def take(self, candidates: slice, contexts: slice) -> Belief:
        """The belief over a block of candidates and contexts."""
