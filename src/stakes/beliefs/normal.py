"""Ensembles of normals: forests for regression, deep ensembles, posterior draws.

Given member k, y ~ N(candidate_mean, candidate_sd^2) and z ~ N(context_mean, context_sd^2), independent. The label y is
integrated by a rule that says how much mass cell j has under member k, and the split moments are one matrix product.
Sizes: N candidates, M contexts, K members, J cells of y, I nodes a member, D statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from stakes._array import Array, asarrays, check_all, check_shape, constant, double, namespace, replaced
from stakes.beliefs.base import Integrand
from stakes.beliefs.categorical import normalised_members
from stakes.beliefs.quadrature import TAIL, density, modes, normal_moments
from stakes.domains import REAL, Interval


class OutcomeRule(Protocol):
    """How the outcomes y of a candidate are laid out in cells."""

    def size(self, mean: Array, sd: Array) -> int:
        """J for members with `mean` and `sd` [N, K]."""

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """[N, J, K]: the probability of cell j and member k."""

    def refined(self) -> OutcomeRule:
        """The same rule with twice the effort, to see what is left of its error."""


@dataclass(frozen=True)
class MixtureGrid:
    """One grid over the whole mixture of a candidate, `per_sd` points to the smallest standard deviation."""

    per_sd: float = 3.0

    def size(self, mean: Array, sd: Array) -> int:
        """The grid of the candidate that needs most points."""
        xp = namespace(mean)
        if 0 in mean.shape:
            return 1
        low, high = self._range(mean, sd)
        return 1 + math.ceil(float(xp.max((high - low) / xp.min(sd, axis=1))) * self.per_sd)

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """The density of each member at each point, times the spacing."""
        xp = namespace(mean)
        low, high = self._range(mean, sd) if mean.shape[0] else (mean[:, 0], mean[:, 0])
        count = self.size(mean, sd)
        share = constant(np.linspace(0.0, 1.0, count), mean)
        y = low[:, None] + (high - low)[:, None] * share  # [N, J]
        spacing = xp.reshape((high - low) / max(count - 1, 1), (-1, 1, 1))
        return member_weights * spacing * _likelihood(y, mean, sd)

    def refined(self) -> MixtureGrid:
        """Twice as fine."""
        return MixtureGrid(2.0 * self.per_sd)

    def _range(self, mean: Array, sd: Array) -> tuple[Array, Array]:
        xp = namespace(mean)
        return xp.min(mean - TAIL * sd, axis=1), xp.max(mean + TAIL * sd, axis=1)


@dataclass(frozen=True, eq=False)
class MemberNodes:
    """Nodes of each member, weighed under all members: the nested (contrastive) estimate of the paper's appendix D.3.

    `nodes` are outcomes in standard units and `weights` their masses, the same for every member and candidate (common
    random numbers). `spaced`, `monte_carlo` and `quasi_monte_carlo` make them; the computation is the same.
    """

    nodes: Any
    """[I]"""
    weights: Any
    """[I], summing to one"""
    generator: np.random.Generator | None = field(default=None, repr=False)
    kind: str = "spaced"

    @classmethod
    def spaced(cls, count: int = 65) -> MemberNodes:
        """Evenly spaced nodes: the trapezoid rule, deterministic."""
        nodes = np.linspace(-TAIL, TAIL, count)
        weights = np.exp(-0.5 * nodes**2)
        return cls(nodes, weights / weights.sum())

    @classmethod
    def monte_carlo(cls, count: int, generator: np.random.Generator) -> MemberNodes:
        """Independent draws."""
        return cls(generator.standard_normal(count), np.full(count, 1.0 / count), generator, "monte_carlo")

    @classmethod
    def quasi_monte_carlo(cls, count: int, generator: np.random.Generator) -> MemberNodes:
        """A scrambled Sobol sequence (best where `count` is a power of two)."""
        points = qmc.Sobol(1, rng=generator).random(count)[:, 0]
        return cls(
            ndtri(np.clip(points, 1e-16, 1 - 1e-16)), np.full(count, 1.0 / count), generator, "quasi_monte_carlo"
        )

    def size(self, mean: Array, sd: Array) -> int:  # noqa: ARG002
        """K I."""
        return int(mean.shape[1]) * len(self.nodes)

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """The mass of each node, shared out among members by their posterior probability at its outcome."""
        xp = namespace(mean)
        shape = (mean.shape[0], self.size(mean, sd))
        y = xp.reshape(mean[..., None] + sd[..., None] * constant(self.nodes, mean), shape)  # [N, K I]
        mass = xp.reshape(member_weights[:, None] * constant(self.weights, mean), (1, -1, 1))
        joint = member_weights * _likelihood(y, mean, sd)  # [N, K I, K]
        return mass * joint / xp.sum(joint, axis=-1, keepdims=True)

    def refined(self) -> MemberNodes:
        """Twice the nodes (new draws, where they are random)."""
        count = 2 * len(self.nodes)
        if self.generator is None:
            return MemberNodes.spaced(count)
        return getattr(MemberNodes, self.kind)(count, self.generator)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Automatic:
    """A grid over the mixture, or nodes of each member where that grid would need more than `most` points."""

    most: int = 4096
    grid: MixtureGrid = MixtureGrid()
    nodes: MemberNodes = field(default_factory=MemberNodes.spaced)

    def chosen(self, mean: Array, sd: Array) -> OutcomeRule:
        """The rule that runs."""
        return self.grid if self.grid.size(mean, sd) <= self.most else self.nodes

    def size(self, mean: Array, sd: Array) -> int:
        """That of the chosen rule."""
        return self.chosen(mean, sd).size(mean, sd)

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """Those of the chosen rule."""
        return self.chosen(mean, sd).masses(mean, sd, member_weights)

    def refined(self) -> Automatic:
        """Both refined."""
        return Automatic(2 * self.most, self.grid.refined(), self.nodes.refined())


@dataclass(frozen=True, eq=False)
class NormalEnsemble:
    """Normal predictions of K members for N candidates and M contexts, members in the same order in both.

    Standard deviations are numbers, or arrays that broadcast to the means; those of candidates include the noise of the
    label and are positive, those of contexts may be 0 (the target is then the member's function itself).
    """

    candidate_mean: Array
    """[N, K]"""
    candidate_sd: Array | float
    """[N, K] or broadcast"""
    context_mean: Array
    """[M, K]"""
    context_sd: Array | float
    """[M, K] or broadcast"""
    member_weights: Array | None = None
    """[K]"""
    rule: OutcomeRule = field(default_factory=Automatic)

    def __post_init__(self) -> None:
        candidate_mean, candidate_sd, context_mean, context_sd, weights = asarrays(
            candidate_mean=self.candidate_mean,
            candidate_sd=self.candidate_sd,
            context_mean=self.context_mean,
            context_sd=self.context_sd,
            member_weights=self.member_weights,
        )
        check_shape("candidate_mean", candidate_mean, ("N", "K"))
        check_shape("context_mean", context_mean, ("M", candidate_mean.shape[1]))
        if context_mean.shape[0] == 0:
            raise ValueError("context_mean must hold at least one context: the loss is averaged over them; got none")
        check_all(candidate_sd > 0, "candidate_sd must be positive: it includes the noise of the label")
        check_all(context_sd >= 0, "context_sd must be at least 0")
        object.__setattr__(self, "candidate_mean", candidate_mean)
        object.__setattr__(self, "candidate_sd", _spread("candidate_sd", candidate_sd, candidate_mean))
        object.__setattr__(self, "context_mean", context_mean)
        object.__setattr__(self, "context_sd", _spread("context_sd", context_sd, context_mean))
        object.__setattr__(self, "member_weights", normalised_members(weights, context_mean))

    @property
    def n_candidates(self) -> int:
        """N."""
        return int(self.candidate_mean.shape[0])

    @property
    def n_contexts(self) -> int:
        """M."""
        return int(self.context_mean.shape[0])

    @property
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    @property
    def like(self) -> Array:
        """The context means."""
        return self.context_mean

    def n_cells(self, integrand: Integrand) -> int:  # noqa: ARG002 (the rule is laid over y)
        """J of the rule."""
        return self.rule.size(self.candidate_mean, self.candidate_sd)

    def reference(self, integrand: Integrand) -> Array:
        """[M]: the place, among those where each member's w(z) p(z | c, k) is largest, where it is largest of all."""
        xp = namespace(self.context_mean)
        mean, sd = double(self.context_mean), double(self.context_sd)
        u = modes(integrand, mean, sd)[..., 0]  # [M, K]
        z = mean + sd * u
        height = integrand.log_magnitudes(z)[..., 0] - 0.5 * u * u  # [M, K]
        height = xp.where(xp.isnan(height), xp.full_like(height, -xp.inf), height)
        largest = xp.argmax(height, axis=1, keepdims=True) == xp.arange(mean.shape[1])
        return xp.sum(xp.where(largest, z, xp.zeros_like(z)), axis=1)

    def moments(self, integrand: Integrand, reference: Array) -> Array:
        """[M, D]: sum_k q_k E[S(z) | c, k]."""
        return namespace(reference).sum(self._member_moments(integrand, reference), axis=1)

    def split_moments(self, integrand: Integrand, reference: Array) -> Array:
        """[N, M, J, D]: one matrix product [N J, K] x [K, M D]."""
        xp = namespace(self.context_mean)
        masses = self.rule.masses(double(self.candidate_mean), double(self.candidate_sd), double(self.member_weights))
        expected = normal_moments(integrand, double(self.context_mean), double(self.context_sd), reference)  # [M, K, D]
        return xp.permute_dims(xp.tensordot(masses, expected, axes=([2], [1])), (0, 2, 1, 3))

    def take(self, candidates: slice, contexts: slice) -> NormalEnsemble:
        """A block of candidates and contexts."""
        return replaced(
            self,
            candidate_mean=self.candidate_mean[candidates, :],
            candidate_sd=self.candidate_sd[candidates, :],
            context_mean=self.context_mean[contexts, :],
            context_sd=self.context_sd[contexts, :],
        )

    def refined(self) -> NormalEnsemble:
        """The same belief with a rule of twice the effort."""
        return replaced(self, rule=self.rule.refined())

    def _member_moments(self, integrand: Integrand, reference: Array) -> Array:
        expected = normal_moments(integrand, double(self.context_mean), double(self.context_sd), reference)
        return double(self.member_weights)[:, None] * expected


def _likelihood(y: Array, mean: Array, sd: Array) -> Array:
    """[N, J, K]: the density of outcomes y [N, J] under each member [N, K]."""
    return density((y[..., None] - mean[:, None, :]) / sd[:, None, :]) / sd[:, None, :]


def _spread(name: str, sd: Array, mean: Array) -> Array:
    try:
        return namespace(mean).broadcast_to(sd, mean.shape)
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} must be a number or broadcast to the means, {list(mean.shape)}; got {list(sd.shape)}"
        ) from error
