"""Ensembles whose members predict vectors: deep ensembles, dropout or posterior draws with several outputs.

Given member k the numbers of y and z are independent normals. The label is integrated by one even grid over all members
where its nodes resolve each of them; else by nodes of each member, weighed under all members (the nested estimate). The
split moments are one matrix product.
Sizes: N candidates, n of some, M contexts, K members, L numbers of y, d of z, I nodes a member, J cells of y (those of
the grid, or K I), D statistics.
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
    filled,
    log_of,
    namespace,
    ratio,
    replaced,
)
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.beliefs.categorical import check_rows_first, normalised_member_weights
from stakes.beliefs.normal import broadcast_sd
from stakes.beliefs.quadrature import is_first_largest
from stakes.beliefs.vector_integration import SymmetricNodes, squared_norm, vector_moments, weighted_mode
from stakes.exceptions import StakesError
from stakes.losses.domains import Vectors

_REACH = 7.5  # standard deviations of each member that a grid covers: the mass beyond is 6e-14
_FINEST, _COARSEST = (
    3.0,
    1.1,
)  # points of a grid to the smallest sd: 1e-7 for members whose labels are 6 sds apart, 1e-5
_GRID = 2**14  # nodes of a grid that has as many as _FINEST asks for


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
        check_rows_first({"candidate_mean": candidate_mean, "context_mean": context_mean}, weights)
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
        """J, and room for the masses of these cells under each member."""
        members = self.candidate_mean.shape[1]
        return int(self._size() * (1 + math.ceil(members / self.n_contexts)))

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
        """[N, J, K]: the probability of cell j and member k, 0 beyond the cells of a candidate.

        Each member's cells are scaled to sum to its weight, so that the error of the nodes moves no moment.
        """
        xp, weights = namespace(self.context_mean), double(self.member_weights)
        resolved, size = self._resolved(), self._size()
        order, parts = [], []
        for by_grid, masses in ((True, self._grid_masses), (False, self._nested_masses)):
            some = xp.nonzero(resolved == by_grid)[0]
            if some.shape[0]:
                found = masses(self._some(some))  # [n, j, K]
                empty = filled((found.shape[0], size - found.shape[1], found.shape[2]), 0.0, found)
                order.append(some)
                parts.append(xp.concat([found, empty], axis=1))
        if not parts:
            return filled((0, size, weights.shape[0]), 0.0, weights)
        shared = xp.take(xp.concat(parts), xp.argsort(xp.concat(order)), axis=0)
        return shared * ratio(weights / xp.sum(weights), xp.sum(shared, axis=1, keepdims=True))

    def _grid_masses(self, some: VectorNormalEnsemble) -> Array:
        """[n, J, K]: the density of each member at the nodes of one even grid, times the volume of a cell."""
        xp, mean, sd = namespace(self.context_mean), double(some.candidate_mean), double(some.candidate_sd)
        low, high = some._range()  # [n, L]
        log_mass = log_of(double(self.member_weights))[None, None, :]  # [n, J so far, K]
        for i, count in enumerate(self._counts()):
            step = (high - low)[:, i] / (count - 1)
            y = low[:, i, None] + step[:, None] * constant(np.arange(count), mean)  # [n, count]
            u = (y[..., None] - mean[:, None, :, i]) / sd[:, None, :, i]  # [n, count, K]
            along = xp.log(step[:, None, None] / sd[:, None, :, i]) - 0.5 * u**2
            log_mass = log_mass[:, :, None, :] + along[:, None, :, :]
            log_mass = xp.reshape(log_mass, (along.shape[0], log_mass.shape[1] * count, along.shape[2]))
        return xp.exp(log_mass)

    def _nested_masses(self, some: VectorNormalEnsemble) -> Array:
        """[n, K I, K]: that of a node of a member, shared out by p(k | y).

        Through log densities relative to the largest: a node far from all members but its own is no 0 / 0.
        """
        xp, weights = namespace(self.context_mean), double(self.member_weights)
        log_joint = log_of(weights) + some._log_densities()  # [n, J, K]
        joint = xp.exp(log_joint - xp.max(log_joint, axis=2, keepdims=True))
        node_masses = constant(self.rule.outcomes(self.candidate_mean.shape[2])[1], weights)  # [I]
        mass = xp.reshape(weights[:, None] * node_masses, (-1, 1))  # [J, 1]
        return mass * joint / xp.sum(joint, axis=2, keepdims=True)

    def _some(self, candidates: Array) -> VectorNormalEnsemble:
        """Candidates by their positions."""
        xp = namespace(self.context_mean)
        mean, sd = (xp.take(each, candidates, axis=0) for each in (self.candidate_mean, self.candidate_sd))
        return replaced(self, candidate_mean=mean, candidate_sd=sd)

    def _range(self) -> tuple[Array, Array]:
        """[N, L] each: where labels may fall."""
        xp, mean, reach = namespace(self.context_mean), double(self.candidate_mean), _REACH * double(self.candidate_sd)
        return xp.min(mean - reach, axis=1), xp.max(mean + reach, axis=1)

    def _widths(self) -> Array:
        """[N, L]: the range of labels in the smallest standard deviations of members."""
        low, high = self._range()
        return (high - low) / namespace(low).min(double(self.candidate_sd), axis=1)

    def _resolved(self) -> Array:
        """[N]: whether a grid of as many nodes as the rule allows resolves every member."""
        if 0 in self.candidate_mean.shape:
            return filled(self.n_candidates, 0.0, self.context_mean) > 0
        xp = namespace(self.context_mean)
        logs = xp.sum(xp.log(_COARSEST * self._widths()), axis=1)
        return logs <= math.log(max(self.rule.grid, 1))

    def _counts(self) -> tuple[int, ...]:
        """Points of the grid on each axis, enough for every candidate that it resolves."""
        xp, size = namespace(self.context_mean), int(self.candidate_mean.shape[2])
        some = xp.nonzero(self._resolved())[0]
        if not some.shape[0]:
            return (0,) * size
        widths = [float(each) for each in xp.max(xp.take(self._widths(), some, axis=0), axis=0)]
        finest = _FINEST * (self.rule.grid / _GRID) ** (1.0 / size)
        per_sd = max(_COARSEST, min(finest, (self.rule.grid / math.prod(widths)) ** (1.0 / size)))
        return tuple(1 + math.ceil(width * per_sd) for width in widths)

    def _size(self) -> int:
        """J: that of the grid, or of the nodes of members where some candidate needs those."""
        _, members, size = self.candidate_mean.shape
        nested = members * len(self.rule.outcomes(size)[0])
        by_grid = math.prod(self._counts())
        every = bool(namespace(self.context_mean).all(self._resolved())) and self.n_candidates > 0
        return by_grid if every else max(nested, by_grid)

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
