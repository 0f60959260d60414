"""Ensembles of normals: forests for regression, deep ensembles, posterior draws.

Given member k, y ~ N(candidate_mean, candidate_sd^2) and z ~ N(context_mean, context_sd^2), independent. The label y is
integrated by a rule that says how much mass cell j has under member k, and the split moments are one matrix product.
Sizes: N candidates, M contexts, K members, J cells of y, I nodes a member, D statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stakes._array import (
    Array,
    asarrays,
    check_all,
    check_shape,
    double,
    filled,
    log_normal,
    log_of,
    namespace,
    normal_between,
    ratio,
    replaced,
)
from stakes._panels import COUNT, beside
from stakes.beliefs.base import Integrand, Reference, Regret, log_weight
from stakes.beliefs.categorical import normalised_members
from stakes.beliefs.normal_cells import NormalCells
from stakes.beliefs.outcomes import Automatic, OutcomeRule, likelihood
from stakes.beliefs.quadrature import CHUNK, first_largest, landscape, member_slices, normal_moments
from stakes.beliefs.switching import has_switches, switching_points
from stakes.distributions import Distribution
from stakes.domains import REAL, Interval

_FAR = 1e3  # standard deviations, beyond which no mass is left


@dataclass(frozen=True, eq=False)
class NormalEnsemble:
    """Normal predictions of K members for N candidates and M contexts, members in the same order in both.

    Standard deviations are numbers, or arrays that broadcast to the means; those of candidates include the noise of the
    label and are positive, those of contexts may be 0 (the target is then the member's function itself).
    """

    candidate_mean: Array
    """[N, K]"""
    candidate_sd: Array
    """[N, K] or broadcast"""
    context_mean: Array
    """[M, K]"""
    context_sd: Array
    """[M, K] or broadcast"""
    member_weights: Array = None
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
        if not isinstance(self.rule, OutcomeRule):
            raise TypeError(f"rule must be a rule of stakes.beliefs such as MixtureGrid(); got {self.rule!r}")
        check_all(candidate_sd > 0, "candidate_sd must be positive: it includes the noise of the label")
        check_all(context_sd >= 0, "context_sd must be at least 0")
        object.__setattr__(self, "candidate_mean", candidate_mean)
        object.__setattr__(self, "candidate_sd", broadcast_sd("candidate_sd", candidate_sd, candidate_mean))
        object.__setattr__(self, "context_mean", context_mean)
        object.__setattr__(self, "context_sd", broadcast_sd("context_sd", context_sd, context_mean))
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

    def n_cells(self, integrand: Integrand) -> int:
        """J of the rule, and room for the masses of cells under each member."""
        members_per_context = math.ceil(self.context_mean.shape[1] / self.n_contexts)
        size = self.rule.size(self.candidate_mean, self.candidate_sd) * (1 + members_per_context)
        return int(size + (self.context_mean.shape[1] if has_switches(integrand) else 0))

    def reference(self, integrand: Integrand) -> Reference:
        """The place, among those where each member's w(z) p(z | c, k) is largest, where it is largest of all."""
        xp = namespace(self.context_mean)
        mean, sd = double(self.context_mean), double(self.context_sd)
        u = xp.concat([landscape(integrand, mean[:, k], sd[:, k])[0][..., 0] for k in member_slices(mean)], axis=1)
        z = mean + sd * u  # [M, K]
        height = integrand.log_magnitudes(z)[..., 0] - 0.5 * u * u
        height = xp.where(xp.isnan(height), xp.full_like(height, -xp.inf), height)
        largest = first_largest(height[..., None])[..., 0]
        point, u = (xp.sum(xp.where(largest, each, xp.zeros_like(z)), axis=1) for each in (z, u))
        return Reference(point, log_weight(point, integrand) - 0.5 * u * u)

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: sum_k q_k E[S(z) | c, k]."""
        weighted = double(self.member_weights)[:, None] * self.member_moments(integrand, reference)
        return namespace(weighted).sum(weighted, axis=1)

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: one matrix product [N J, K] x [K, M D]; between switching points for finitely many actions."""
        xp = namespace(self.context_mean)
        expected = self.member_moments(integrand, reference)  # [M, K, D]
        if has_switches(integrand):
            return xp.matmul(self._between_switches(expected), expected)
        return xp.permute_dims(xp.tensordot(self._masses(), expected, axes=([2], [1])), (0, 2, 1, 3))

    def member_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, K, D]: E[S(z) | c, k]."""
        return normal_moments(integrand, double(self.context_mean), double(self.context_sd), reference)

    def member_outcomes(self) -> Array:
        """[N, J, K]: the probability of cell j under member k (0 for a member without weight)."""
        masses = self._masses()
        return ratio(masses, double(self.member_weights) + namespace(masses).zeros_like(masses))

    def distribution(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """[M]: w(z) sum_k q_k p(z | c, k)."""
        weights = double(self.member_weights)
        mixture = self._cells(integrand, reference, marks).mixture(weights)
        return replaced(mixture, log_height=lambda z: self._log_height(z, integrand, reference))

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Array) -> Array:
        """[N, M]: regrets in the cells of the rule, summed; of a finer rule where there are marks.

        A quantile may pass quickly from one member to another as y varies, and its regret bend there.
        """
        finer = self.refined().refined() if marks.shape[1] else self
        return self._cells(integrand, reference, marks).over_cells(finer._masses(), regret)

    def member_distributions(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """[M, K]: w(z) p(z | c, k), on nodes that members share."""
        cells = self._cells(integrand, reference, marks)
        return cells.members(slice(None), cells.edges())

    def n_nodes(self, integrand: Integrand) -> int:
        """J Q, of which no more than a chunk is held at a time, or the K Q of members."""
        marks = double(self.context_mean[:, :1])
        n_nodes = COUNT * self._cells(integrand, self.reference(integrand), marks).edges().shape[1]
        n_cells = 4 * self.rule.size(self.candidate_mean, self.candidate_sd)  # where there are marks
        return int(max(min(n_cells * n_nodes, CHUNK), n_nodes * self.context_mean.shape[1]))

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

    def _between_switches(self, expected: Array) -> Array:
        """[N, M, B + 1, K]: the probability of each member and of y between two switching points."""
        xp = namespace(expected)
        mean, sd, weights = (double(each) for each in (self.candidate_mean, self.candidate_sd, self.member_weights))

        def costs(y: Array) -> Array:
            return xp.matmul(weights * likelihood(y, mean, sd), expected)

        nodes = xp.sort(self.rule.outcomes(mean, sd), axis=-1)[:, None, :]  # [N, 1, J]
        cuts = switching_points(costs, nodes)  # [N, M, B]
        away = (cuts[..., None] - mean[:, None, None, :]) / sd[:, None, None, :]  # [N, M, B, K]
        end = filled((*away.shape[:2], 1, away.shape[3]), _FAR, away)
        return weights * normal_between(xp.concat([-end, away], axis=2), xp.concat([away, end], axis=2))

    def _cells(self, integrand: Integrand, reference: Reference, marks: Array) -> NormalCells:
        return NormalCells(integrand, double(self.context_mean), double(self.context_sd), reference, marks)

    def _log_height(self, z: Array, integrand: Integrand, reference: Reference) -> Array:
        """[M, ...]: log w(z) sum_k q_k p(z | c, k), over exp(log_scale)."""
        xp = namespace(z)
        mean, sd = (beside(double(each), z, lead=1) for each in (self.context_mean, self.context_sd))
        logs = log_normal(z[..., None], mean, sd) + log_of(double(self.member_weights))  # [M, ..., K]
        top = xp.max(logs, axis=-1)
        top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
        log_density = top + log_of(xp.sum(xp.exp(logs - top[..., None]), axis=-1))
        log_w = integrand.log_magnitudes(z)[..., 0]
        return log_density + log_w - beside(reference.log_scale, z)

    def _masses(self) -> Array:
        """[N, J, K]: the probability of cell j and member k."""
        return self.rule.masses(double(self.candidate_mean), double(self.candidate_sd), double(self.member_weights))


def broadcast_sd(name: str, sd: Array, mean: Array) -> Array:
    """Standard deviations in the shape of the means."""
    try:
        return namespace(mean).broadcast_to(sd, mean.shape)
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} must be a number or broadcast to the means, {list(mean.shape)}; got {list(sd.shape)}"
        ) from error
