"""Ensembles whose members predict vectors: deep ensembles, dropout or posterior draws with several outputs.

Given member k the numbers of y and z are independent normals. The label is integrated by nodes of each member, weighed
under all members (the nested estimate), and the split moments are one matrix product.
Sizes: N candidates, M contexts, K members, L numbers of y, d of z, I nodes a member, J = K I cells, D statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stakes._utils.array import (
    Array,
    asarrays,
    check_all,
    check_shape,
    constant,
    double,
    log_of,
    namespace,
    ratio,
    replaced,
)
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.beliefs.categorical import normalised_member_weights
from stakes.beliefs.normal import broadcast_sd
from stakes.beliefs.quadrature import is_first_largest
from stakes.beliefs.vector_integration import SymmetricNodes, squared_norm, vector_moments, weighted_mode
from stakes.exceptions import StakesError
from stakes.losses.domains import Vectors


@dataclass(frozen=True, eq=False)
class VectorNormalEnsemble:
    """Normal predictions of K members for labels of L numbers and targets of d numbers.

    Given the member, the numbers of a label and of a target are independent.

    Args:
        candidate_mean: [N, K, L], of the labels, one for each member.
        candidate_sd: Their standard deviations, a number or an array that broadcasts to the means: with the noise of
            the label, and positive.
        context_mean: [M, K, d], of the targets, members in the same order.
        context_sd: Their standard deviations, likewise; 0 where the target is the member's function itself.
        member_weights: [K], normalised; without them members count alike.
        rule: The nodes that integrate over labels and targets.

    Raises:
        StakesError: If shapes disagree or a standard deviation is out of range.

    Examples:
        >>> import numpy as np
        >>> from stakes import Mahalanobis, VectorNormalEnsemble, score
        >>> means = np.array([[[-1.0, 0.0], [1.0, 0.0]]])  # two members that disagree about the first output
        >>> belief = VectorNormalEnsemble(means, 0.1, means, 0.0)
        >>> print(score(Mahalanobis(np.eye(2)), belief).round(6))  # a label tells which member is right
        [1.]
    """

    candidate_mean: Array
    candidate_sd: Array
    context_mean: Array
    context_sd: Array
    member_weights: Array = None
    rule: SymmetricNodes = SymmetricNodes(outer=128)  # noqa: RUF009 (frozen)

    def __post_init__(self) -> None:
        candidate_mean, candidate_sd, context_mean, context_sd, weights = asarrays(
            candidate_mean=self.candidate_mean,
            candidate_sd=self.candidate_sd,
            context_mean=self.context_mean,
            context_sd=self.context_sd,
            member_weights=self.member_weights,
        )
        check_shape("candidate_mean", candidate_mean, ("N", "K", "L"))
        check_shape("context_mean", context_mean, ("M", candidate_mean.shape[1], "d"))
        if 0 in (candidate_mean.shape[2], context_mean.shape[0], context_mean.shape[2]):
            raise StakesError(
                "an ensemble of vectors needs at least one context and one number in each label and target; got "
                f"candidate_mean {[*candidate_mean.shape]} and context_mean {[*context_mean.shape]}"
            )
        if not isinstance(self.rule, SymmetricNodes):
            raise TypeError(f"rule must be a SymmetricNodes(outer=..., inner=...); got {self.rule!r}")
        check_all(candidate_sd > 0, "candidate_sd must be positive: it includes the noise of the label")
        check_all(context_sd >= 0, "context_sd must be at least 0")
        object.__setattr__(self, "candidate_mean", candidate_mean)
        object.__setattr__(self, "candidate_sd", broadcast_sd("candidate_sd", candidate_sd, candidate_mean))
        object.__setattr__(self, "context_mean", context_mean)
        object.__setattr__(self, "context_sd", broadcast_sd("context_sd", context_sd, context_mean))
        object.__setattr__(self, "member_weights", normalised_member_weights(weights, context_mean))

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return int(self.candidate_mean.shape[0])

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return int(self.context_mean.shape[0])

    @property
    def domain(self) -> Vectors:
        """Vectors of d numbers."""
        return Vectors(int(self.context_mean.shape[2]))

    @property
    def like(self) -> Array:
        """The context means, of whose library, dtype and device results are."""
        return self.context_mean

    def n_cells(self, integrand: Integrand) -> int:
        """K I, and room for the masses of these cells under each member."""
        _, members, size = self.candidate_mean.shape
        return int(members * len(self.rule.outcomes(size)[0]) * (1 + math.ceil(members / self.n_contexts)))

    def reference(self, integrand: Integrand) -> Reference:
        """The place, among those where each member's w(z) p(z | c, k) is largest, where it is largest of all."""
        xp, sd = namespace(self.context_mean), double(self.context_sd)
        u = self._centres(integrand)
        z = double(self.context_mean) + sd * u  # [M, K, d]
        height = integrand.log_magnitudes(z)[..., 0] - 0.5 * squared_norm(u)  # [M, K]
        height = xp.where(xp.isnan(height), xp.full_like(height, -xp.inf), height)
        largest = is_first_largest(height[..., None])  # [M, K, 1]
        point, u = (xp.sum(xp.where(largest, each, xp.zeros_like(z)), axis=1) for each in (z, u))
        return Reference(point, log_weight(point, integrand) - 0.5 * squared_norm(u))

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: sum_k q_k E[S(z) | c, k]."""
        weighted = double(self.member_weights)[:, None] * self.member_moments(integrand, reference)
        return namespace(weighted).sum(weighted, axis=1)

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: one matrix product [N J, K] x [K, M D]."""
        xp = namespace(self.context_mean)
        split = xp.tensordot(self.masses(), self.member_moments(integrand, reference), axes=([2], [1]))
        return xp.permute_dims(split, (0, 2, 1, 3))

    def member_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """E[S(z) | c, k].

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, K, D].
        """
        mean, nodes = double(self.context_mean), self.rule.targets(self.context_mean.shape[2])
        return vector_moments(integrand, mean, self._roots(), self._centres(integrand), reference, nodes)

    def member_outcomes(self) -> Array:
        """[N, J, K]: the probability of cell j under member k (0 for a member without weight)."""
        masses = self.masses()
        return ratio(masses, double(self.member_weights) + namespace(masses).zeros_like(masses))

    def masses(self) -> Array:
        """[N, J, K]: the probability of cell j and member k: that of a node, shared out by p(k | y).

        Through log densities relative to the largest: a node far from all members but its own is no 0 / 0. Each
        member's cells are scaled to sum to its weight, so that the error of the nodes moves no moment.
        """
        xp, weights = namespace(self.context_mean), double(self.member_weights)
        log_joint = log_of(weights) + self._log_densities()  # [N, J, K]
        joint = xp.exp(log_joint - xp.max(log_joint, axis=2, keepdims=True))
        node_masses = constant(self.rule.outcomes(self.candidate_mean.shape[2])[1], weights)  # [I]
        mass = xp.reshape(weights[:, None] * node_masses, (-1, 1))  # [J, 1]
        shared = mass * joint / xp.sum(joint, axis=2, keepdims=True)
        return shared * ratio(weights / xp.sum(weights), xp.sum(shared, axis=1, keepdims=True))

    def take(self, candidates: slice, contexts: slice) -> VectorNormalEnsemble:
        """A block of candidates and contexts."""
        return replaced(
            self,
            candidate_mean=self.candidate_mean[candidates, ...],
            candidate_sd=self.candidate_sd[candidates, ...],
            context_mean=self.context_mean[contexts, ...],
            context_sd=self.context_sd[contexts, ...],
        )

    def refined(self) -> VectorNormalEnsemble:
        """The same belief with a rule of twice the effort."""
        return replaced(self, rule=self.rule.refined())

    def _log_densities(self) -> Array:
        """[N, J, K]: of the nodes of all members under each member, up to a constant; number by number of y."""
        xp, mean, sd = namespace(self.context_mean), double(self.candidate_mean), double(self.candidate_sd)
        nodes = constant(self.rule.outcomes(mean.shape[2])[0], mean)  # [I, L]
        total = 0.0
        for i in range(mean.shape[2]):
            centre, spread = mean[..., i], sd[..., i]  # [N, K]
            y = centre[..., None] + spread[..., None] * nodes[:, i]  # [N, K, I]
            y = xp.reshape(y, (y.shape[0], y.shape[1] * y.shape[2], 1))  # [N, J, 1]
            u = (y - centre[:, None, :]) / spread[:, None, :]  # [N, J, K]
            total = total - 0.5 * u**2 - xp.log(spread)[:, None, :]
        return total

    def _roots(self) -> Array:
        """[M, K, d, d]: standard deviations as diagonal matrices."""
        sd = double(self.context_sd)
        return sd[..., None] * constant(np.eye(sd.shape[-1]), sd)

    def _centres(self, integrand: Integrand) -> Array:
        """[M, K, d]: where each member's w(z) p(z | c, k) is largest, in its standard deviations."""
        mean = double(self.context_mean)
        return weighted_mode(integrand, mean, self._roots(), self.rule.targets(mean.shape[2]))
