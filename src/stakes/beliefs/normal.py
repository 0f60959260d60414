"""Ensembles of normals: forests for regression, deep ensembles, posterior draws.

Given member k, y ~ N(candidate_mean, candidate_sd^2) and z ~ N(context_mean, context_sd^2), independent. The label y is
integrated by a rule that says how much mass cell j has under member k, and the split moments are one matrix product.
First comes the belief `NormalEnsemble`, then `NormalCells`: whole distributions w(z) p(z), today's and those once a
label is known, on nodes that serve all members of a context.
Sizes: N candidates, M contexts, p contexts of a block, K members, J cells of y, P panels, G nodes a panel, Q = P G, B
marks, E bends, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from stakes._utils.array import (
    Array,
    asarrays,
    check_all,
    check_shape,
    constant,
    density,
    double,
    filled,
    log_normal,
    log_of,
    log_sum,
    namespace,
    normal_between,
    ratio,
    replaced,
    slices,
)
from stakes.beliefs.base import Integrand, Reference, Regret, log_weight
from stakes.beliefs.categorical import check_rows_first, normalised_member_weights
from stakes.beliefs.log_moments import LogIntegrand, log_span, normal_log_moments, split_by_member
from stakes.beliefs.outcomes import Automatic, OutcomeRule, likelihood
from stakes.beliefs.quadrature import (
    CHUNK,
    Resolved,
    is_first_largest,
    member_slices,
    normal_moments,
    weight_modes,
    windows,
)
from stakes.beliefs.roughness import resolved
from stakes.beliefs.switching import switching_points
from stakes.exceptions import StakesError
from stakes.losses.bregman import LogDomainLoss
from stakes.losses.distributional import QuantileScore
from stakes.losses.distributions import NODES_PER_PANEL, Distribution, align_axes, panel_nodes
from stakes.losses.domains import REAL, Interval

_PANEL_WIDTH = 1.0  # of a distribution, in the smallest standard deviation of a context
_FAR = 1e3  # standard deviations, beyond which no mass is left

_T = TypeVar("_T")


def loss_of(integrand: Any) -> Any:
    """What an integrand has its magnitudes of: the loss itself, beneath what says how to integrate it."""
    if isinstance(integrand, Resolved):
        return loss_of(integrand.of)
    return loss_of(integrand.loss) if isinstance(integrand, LogDomainLoss) else integrand


@dataclass(frozen=True, eq=False)
class NormalEnsemble:
    """Normal predictions of K members for N candidates and M contexts.

    Args:
        candidate_mean: [N, K], of the labels: rows first, then members.
        candidate_sd: Their standard deviations, a number or an array that broadcasts to the means: with the noise of
            the label, and positive.
        context_mean: [M, K], of the targets, members in the same order.
        context_sd: Their standard deviations, likewise; 0 where the target is the member's function itself.
        member_weights: [K], normalised; without them members count alike.
        rule: How labels are integrated.

    Raises:
        StakesError: If shapes disagree or a standard deviation is out of range.
        TypeError: If `rule` is no rule.

    Examples:
        Two members that disagree at the context; only the first candidate tells which is right:

        >>> from stakes import NormalEnsemble, SquaredError, score
        >>> belief = NormalEnsemble(
        ...     candidate_mean=[[-3.0, 3.0], [0.0, 0.0]], candidate_sd=0.1, context_mean=[[-1.0, 1.0]], context_sd=0.0
        ... )
        >>> print(score(SquaredError(), belief).round(6))  # the whole variance between members, or nothing of it
        [1. 0.]
    """

    candidate_mean: Array
    candidate_sd: Array
    context_mean: Array
    context_sd: Array
    member_weights: Array = None
    rule: OutcomeRule = field(default_factory=Automatic)
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # of the contexts, for all candidates

    def __post_init__(self) -> None:
        candidate_mean, candidate_sd, context_mean, context_sd, weights = asarrays(
            candidate_mean=self.candidate_mean,
            candidate_sd=self.candidate_sd,
            context_mean=self.context_mean,
            context_sd=self.context_sd,
            member_weights=self.member_weights,
        )
        check_shape("candidate_mean", candidate_mean, ("N", "K"))
        check_rows_first({"candidate_mean": candidate_mean, "context_mean": context_mean}, weights)
        check_shape("context_mean", context_mean, ("M", candidate_mean.shape[1]))
        if context_mean.shape[0] == 0:
            raise StakesError("context_mean must hold at least one context: the loss is averaged over them; got none")
        if not isinstance(self.rule, OutcomeRule):
            raise TypeError(f"rule must be a rule of stakes.beliefs such as MixtureGrid(); got {self.rule!r}")
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
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    @property
    def like(self) -> Array:
        """The context means, of whose library, dtype and device results are."""
        return self.context_mean

    def n_cells(self, integrand: Integrand) -> int:
        """J of the rule, and room for the masses of cells under each member."""
        members_per_context = math.ceil(self.context_mean.shape[1] / self.n_contexts)
        size = self.rule.size(self.candidate_mean, self.candidate_sd) * (1 + members_per_context)
        return int(size + (self.context_mean.shape[1] if integrand.finite_actions else 0))

    def reference(self, integrand: Integrand) -> Reference:
        """The place, among those where each member's w(z) p(z | c, k) is largest, where it is largest of all."""
        return self._once("reference", (loss_of(integrand),), lambda: self._reference(integrand))

    def _reference(self, integrand: Integrand) -> Reference:
        xp = namespace(self.context_mean)
        mean, sd = double(self.context_mean), double(self.context_sd)
        modes = [weight_modes(integrand, mean[:, part], sd[:, part]) for part in member_slices(mean)]
        u = xp.concat(modes, axis=1)  # [M, K]
        z = mean + sd * u  # [M, K]
        height = integrand.log_magnitudes(z)[..., 0] - 0.5 * u * u
        height = xp.where(xp.isnan(height), xp.full_like(height, -xp.inf), height)
        largest = is_first_largest(height[..., None])[..., 0]
        point, u = (xp.sum(xp.where(largest, each, xp.zeros_like(z)), axis=1) for each in (z, u))
        return Reference(point, log_weight(point, integrand) - 0.5 * u * u)

    def resolved(self, integrand: Integrand) -> Resolved:
        """The same integrand, with what it takes to integrate it; all methods take it in place of the loss.

        Args:
            integrand: The loss.

        Returns:
            The integrand, and where it is steep, jumps or kinks.
        """
        mean, sd = double(self.context_mean), double(self.context_sd)
        return self._once("resolved", (integrand,), lambda: resolved(integrand, mean, sd))

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: sum_k q_k E[S(z) | c, k]."""
        weighted = double(self.member_weights)[:, None] * self.member_moments(integrand, reference)
        return namespace(weighted).sum(weighted, axis=1)

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: one matrix product [N J, K] x [K, M D]; between switching points for finitely many actions."""
        xp = namespace(self.context_mean)
        expected = self.member_moments(integrand, reference)  # [M, K, D]
        if integrand.finite_actions:
            return xp.matmul(self._between_switches(expected), expected)
        return xp.permute_dims(xp.tensordot(self.member_masses(), expected, axes=([2], [1])), (0, 2, 1, 3))

    def log_span(self, integrand: LogIntegrand) -> float:
        """Over how many units log T ranges where the loss may look."""
        mean, sd = double(self.context_mean), double(self.context_sd)
        return self._once("log span", (loss_of(integrand),), lambda: log_span(integrand, mean, sd))

    def log_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """[M, 2]: log E[S(z) | c]."""
        weighted = log_of(double(self.member_weights))[:, None] + self.member_log_moments(integrand, reference)
        return log_sum(weighted, axis=1)

    def log_split_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """[N, M, J, 2]: log E[S(z) 1{y in cell j} | c]."""
        return split_by_member(self._log_masses(), self.member_log_moments(integrand, reference))

    def member_log_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """Log E[S(z) | c, k] of positive statistics.

        Args:
            integrand: The loss by logarithms.
            reference: From where statistics are measured.

        Returns:
            [M, K, 2].
        """
        mean, sd = double(self.context_mean), double(self.context_sd)
        about = "log moments", (loss_of(integrand), reference)
        return self._once(*about, lambda: normal_log_moments(integrand, mean, sd, reference))

    def member_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """E[S(z) | c, k].

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, K, D].
        """
        mean, sd = double(self.context_mean), double(self.context_sd)
        about = "moments", (integrand, reference)
        return self._once(*about, lambda: normal_moments(self.resolved(integrand), mean, sd, reference))

    def _once(self, what: str, about: tuple[Any, ...], made: Callable[[], _T]) -> _T:
        """What the contexts say of these very objects, which blocks of candidates ask for again and again."""
        known, found = self._known.get(what, ((None,), None))
        if any(one is not other for one, other in zip(known, about, strict=False)):
            found = made()
            self._known[what] = about, found
        kept: _T = found
        return kept

    def member_outcomes(self) -> Array:
        """[N, J, K]: the probability of cell j under member k (0 for a member without weight)."""
        masses = self.member_masses()
        return ratio(masses, double(self.member_weights) + namespace(masses).zeros_like(masses))

    def member_log_outcomes(self) -> Array:
        """[N, J, K]: the log of the probability of cell j under member k (-inf for a member without weight)."""
        xp, log_weights = namespace(self.context_mean), log_of(double(self.member_weights))
        return self._log_masses() - xp.where(log_weights > -xp.inf, log_weights, xp.zeros_like(log_weights))

    def distribution(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """[M]: w(z) sum_k q_k p(z | c, k)."""
        weights = double(self.member_weights)
        mixture = self._cells(integrand, reference, marks).mixture(weights)
        return replaced(mixture, log_weighted_density=lambda z: self._log_weighted_density(z, integrand, reference))

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Array) -> Array:
        """[N, M]: regrets in the cells of the rule, summed; of finer cells where there are marks.

        A quantile may pass quickly from one member to another as y varies, and its regret bends where it passes a jump
        or a kink of the weighted distribution: cells split there.
        """
        cells = self._cells(integrand, reference, marks)
        if not marks.shape[1]:
            return cells.over_cells(self.member_masses(), regret)
        loss, rule = cells.integrand.of, self.rule
        if not isinstance(loss, QuantileScore) or not isinstance(rule, Automatic) or not cells.bends():
            return cells.over_cells(self.refined().refined().member_masses(), regret)
        columns = [
            self._between_bends(cells.take(slice(m, m + 1)), loss.level, rule, regret) for m in range(self.n_contexts)
        ]
        return namespace(self.context_mean).concat(columns, axis=1)

    def _between_bends(self, cells: NormalCells, level: float, rule: Automatic, regret: Regret) -> Array:
        """[N, 1]: regrets at one context, over cells of y that split where the quantile passes a bend."""
        xp = namespace(self.context_mean)
        means, sds, weights = (double(each) for each in (self.candidate_mean, self.candidate_sd, self.member_weights))
        costs, known, rows = weights[:, None] * cells.costs_at_bends(level), bool(xp.all(cells.sd == 0)), []
        for n in range(self.n_candidates):
            mean, sd = means[n : n + 1, :], sds[n : n + 1, :]
            nodes = xp.sort(rule.outcomes(mean, sd), axis=-1)[:, None, :]  # [1, 1, J]
            bends = xp.reshape(switching_points(partial(_expected_costs, mean, sd, costs), nodes), (1, -1))
            if known:  # between two bends the answer stays where it is
                masses = _masses_between(bends, mean, sd, weights)
            else:
                y, lengths = panel_nodes(xp.sort(xp.concat([rule.edges(mean, sd), bends], axis=1), axis=1))
                y, lengths = (xp.reshape(each, (1, -1)) for each in (y, lengths))
                masses = weights * lengths[..., None] * likelihood(y, mean, sd)
            rows.append(cells.over_cells(masses, regret))
        return xp.concat(rows, axis=0) if rows else filled((0, 1), 0.0, means)

    def member_distributions(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """w(z) p(z | c, k), on nodes that members share.

        Args:
            integrand: The loss.
            reference: From where targets are counted.
            marks: [M, B], targets that must be edges of panels.

        Returns:
            [M, K].
        """
        cells = self._cells(integrand, reference, marks)
        return cells.members(slice(None), cells.edges())

    def n_nodes(self, integrand: Integrand) -> int:
        """J Q, of which no more than a chunk is held at a time, or the K Q of members."""
        marks = double(self.context_mean[:, :1])
        n_nodes = NODES_PER_PANEL * self._cells(integrand, self.reference(integrand), marks).edges().shape[1]
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
            _known=self._known if contexts.indices(self.n_contexts) == (0, self.n_contexts, 1) else {},
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
        mean, sd = double(self.context_mean), double(self.context_sd)
        return NormalCells(self.resolved(integrand), mean, sd, reference, marks)

    def _log_weighted_density(self, z: Array, integrand: Integrand, reference: Reference) -> Array:
        """[M, ...]: log w(z) sum_k q_k p(z | c, k), over exp(log_scale)."""
        xp = namespace(z)
        mean, sd = (align_axes(double(each), z, lead=1) for each in (self.context_mean, self.context_sd))
        logs = log_normal(z[..., None], mean, sd) + log_of(double(self.member_weights))  # [M, ..., K]
        top = xp.max(logs, axis=-1)
        top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
        log_density = top + log_of(xp.sum(xp.exp(logs - top[..., None]), axis=-1))
        log_w = integrand.log_magnitudes(z)[..., 0]
        return log_density + log_w - align_axes(reference.log_scale, z)

    def member_masses(self) -> Array:
        """[N, J, K]: the probability of cell j and member k."""
        return self.rule.masses(double(self.candidate_mean), double(self.candidate_sd), double(self.member_weights))

    def _log_masses(self) -> Array:
        """[N, J, K]: the log of the probability of cell j and member k, which may be out of the range of numbers."""
        mean, sd, weights = (double(each) for each in (self.candidate_mean, self.candidate_sd, self.member_weights))
        y = self.rule.outcomes(mean, sd)  # [N, J]
        joint = log_of(weights) + log_normal(y[..., None], mean[:, None, :], sd[:, None, :])  # [N, J, K]
        cell = log_of(namespace(mean).sum(self.rule.masses(mean, sd, weights), axis=2))  # [N, J]
        return joint + (cell - log_sum(joint))[..., None]


@dataclass(frozen=True, eq=False)
class NormalCells:
    """The distributions of members at the contexts of one belief, and mixtures of them."""

    integrand: Resolved
    mean: Array
    """[M, K]"""
    sd: Array
    """[M, K]"""
    reference: Reference
    marks: Array
    """[M, B]"""

    def mixture(self, shares: Array) -> Distribution:
        """[M]: w(z) p(z | c) for members with `shares` [K]."""
        edges = self.edges()
        parts = [self._mixture(part, edges[part, :], shares) for part in self._blocks(edges, 1)]
        xp = namespace(edges)
        nodes, step, mass = (xp.concat([getattr(each, name) for each in parts]) for name in ("nodes", "step", "mass"))
        edge_mass = None if parts[0].edge_mass is None else xp.concat([each.edge_mass for each in parts])
        return Distribution(self._point, edges, nodes, step, mass, edge_mass)

    def over_cells(self, masses: Array, regret: Regret) -> Array:
        """[N, M]: regrets summed over cells that have `masses` [N, J, K] under members."""
        if 0 in masses.shape:
            return filled((masses.shape[0], self.mean.shape[0]), 0.0, self.mean)
        edges = self.edges()
        columns = [self._columns(part, edges[part, :], masses, regret) for part in self._blocks(edges, masses.shape[1])]
        return namespace(edges).concat(columns, axis=1)

    def take(self, part: slice) -> NormalCells:
        """Those of some contexts."""
        assert self.reference.point is not None
        reference = Reference(self.reference.point[part], self.reference.log_scale[part])
        return replaced(
            self, mean=self.mean[part, :], sd=self.sd[part, :], reference=reference, marks=self.marks[part, :]
        )

    def bends(self) -> bool:
        """Whether weighted distributions jump or kink anywhere."""
        return bool(self.integrand.edges) or self._certain()

    def costs_at_bends(self, level: float) -> Array:
        """[E, K, 2]: of one context, what each member adds to the cost of an answer below a bend, and of one above.

        Both are equal where the quantile of that level is at the bend.
        """
        xp, edges = namespace(self.mean), self.edges()
        each = self.members(slice(None), edges)
        mean, sd = self.mean[0, :], self.sd[0, :]
        bends = xp.concat([constant(self.integrand.edges, edges), mean[sd == 0]]) - self._point[0]
        first, last = (
            xp.sum(xp.astype(place, xp.int64), axis=1)
            for place in (edges[0, :] < bends[:, None], edges[0, :] <= bends[:, None])
        )  # [E]: the first edge at each bend, and the one after the last
        inside = xp.nonzero((first < edges.shape[1]) & (last > 0))[0]
        up_to = xp.concat([each.starts(), each.total()[..., None]], axis=-1)[0, ...]  # [K, P + 1], with what sits there
        below = [xp.take(up_to, xp.take(last, inside) - 1, axis=1)]  # [K, E]
        if each.edge_mass is not None:
            below.append(below[0] - xp.take(each.edge_mass[0, ...], xp.take(first, inside), axis=1))
        under = xp.permute_dims(xp.clip(xp.concat(below, axis=1), 0.0, None), (1, 0))  # [E, K]
        above = xp.clip(each.total()[0, :] - under, 0.0, None)
        return xp.stack([(1.0 - level) * under, level * above], axis=-1)

    def members(self, part: slice, edges: Array) -> Distribution:
        """[p, K]: the distribution of each member, on panels between `edges` [p, P + 1] that they share."""
        point = self._point[part]
        nodes, step = panel_nodes(edges)  # [p, P, G]
        boost = log_weight(point, self.integrand) - self.reference.log_scale[part]  # [p]
        weight = self.integrand.statistics(point[:, None, None] + nodes, point[:, None, None])[..., 0]
        mean, sd = (self.mean[part, :] - point[:, None])[..., None, None], self.sd[part, :][..., None, None]
        xp, known = namespace(mean), sd == 0
        spread = xp.where(known, xp.ones_like(sd), sd)
        heights = density((nodes[:, None, ...] - mean) / spread, boost[:, None, None, None]) / spread
        heights = xp.where(known, xp.zeros_like(heights), heights)
        mass = heights * (step * weight)[:, None, ...]  # [p, K, P, G]
        edge_mass = self._edge_masses(part, edges, boost) if self._certain() else None
        return Distribution(point[:, None], edges[:, None, :], nodes[:, None, ...], step[:, None, ...], mass, edge_mass)

    @property
    def _point(self) -> Array:
        """[M]: the reference point of each context."""
        assert self.reference.point is not None
        return self.reference.point

    def edges(self) -> Array:
        """[M, P + 1], from the reference: even panels, or those that each member asks for where they are fewer."""
        xp, mean, sd = namespace(self.mean), self.mean - self._point[:, None], self.sd
        low, high = self._windows()  # [M, K] each, in standard units
        start, stop = xp.min(mean + sd * low, axis=1)[:, None], xp.max(mean + sd * high, axis=1)[:, None]  # [M, 1]
        smallest = xp.min(xp.where(sd > 0, sd, xp.full_like(sd, xp.inf)), axis=1)[:, None]
        width = self.integrand.width * _PANEL_WIDTH
        count = math.ceil(float(xp.max((stop - start) / (width * smallest))))
        own = math.ceil(float(xp.max(high - low)) / width)
        if count <= own * mean.shape[1]:
            base = start + (stop - start) * constant(np.linspace(0.0, 1.0, 1 + max(count, 1)), mean)
        else:
            span = low[..., None] + (high - low)[..., None] * constant(np.linspace(0.0, 1.0, 1 + own), mean)
            base = xp.reshape(mean[..., None] + sd[..., None] * span, (mean.shape[0], -1))
        breaks = constant(self.integrand.edges, mean) - self._point[:, None]
        cuts = xp.concat([breaks, self.marks, *([mean] if self._certain() else [])], axis=1)
        cuts = xp.where(cuts < start, start, xp.where(cuts > stop, stop, cuts))
        return xp.sort(xp.concat([base, cuts], axis=1), axis=1)

    def _mixture(self, part: slice, edges: Array, shares: Array) -> Distribution:
        """[p]: the mixture at a block of contexts."""
        each, xp = self.members(part, edges), namespace(edges)
        edge_mass = None if each.edge_mass is None else xp.sum(shares[:, None] * each.edge_mass, axis=1)
        mass = xp.sum(shares[:, None, None] * each.mass, axis=1)
        return Distribution(each.origin[:, 0], edges, each.nodes[:, 0, ...], each.step[:, 0, ...], mass, edge_mass)

    def _columns(self, part: slice, edges: Array, masses: Array, regret: Regret) -> Array:
        """[N, p]: regrets at a block of contexts, a block of cells at a time."""
        each, xp, marks = self.members(part, edges), namespace(edges), self.marks[part, None, :]
        cells = slices(masses.shape[1], max(1, CHUNK // (edges.shape[0] * edges.shape[1] * NODES_PER_PANEL)))
        blocks = list(cells)
        rows = []
        for n in range(masses.shape[0]):
            prior = mixtures(each, xp.sum(masses[n, ...], axis=0)[None, :])
            regrets = [regret(mixtures(each, masses[n, block, :]), prior, marks) for block in blocks]
            rows.append(xp.sum(xp.concat(regrets, axis=1), axis=1))
        return xp.stack(rows, axis=0)

    def _blocks(self, edges: Array, n_cells: int) -> list[slice]:
        """Blocks of contexts whose arrays, by members or by cells, keep to a chunk."""
        size = max(min(n_cells, CHUNK), self.mean.shape[1]) * edges.shape[1] * NODES_PER_PANEL
        return list(slices(self.mean.shape[0], max(1, CHUNK // size)))

    def _windows(self) -> tuple[Array, Array]:
        """[M, K] each: the windows of members, in their standard units."""
        parts = [windows(self.integrand, self.mean[:, part], self.sd[:, part]) for part in member_slices(self.mean)]
        low, high = (namespace(self.mean).concat(list(each), axis=1) for each in zip(*parts, strict=True))
        return low, high

    def _certain(self) -> bool:
        """Whether some member is certain of a target, which is then an edge."""
        return bool(namespace(self.sd).any(self.sd == 0))

    def _edge_masses(self, part: slice, edges: Array, boost: Array) -> Array:
        """[p, K, P + 1]: what members that are certain put on each edge (the first of equal ones)."""
        xp, point = namespace(edges), self._point[part]
        mean, sd = self.mean[part, :], self.sd[part, :]
        weight = self.integrand.statistics(mean, point[:, None])[..., 0] * xp.exp(boost)[:, None]  # [p, K]
        before = xp.concat([xp.full_like(edges[:, :1], -xp.inf), edges[:, :-1]], axis=1)[:, None, :]
        offset = (mean - point[:, None])[..., None]
        here = (edges[:, None, :] == offset) & (before < offset) & (sd == 0)[..., None]
        return xp.where(here, weight[..., None], xp.zeros_like(offset))


def mixtures(members: Distribution, shares: Array) -> Distribution:
    """[p, J]: mixtures of members' distributions [p, K] by `shares` [J, K]."""
    xp, (n_contexts, n_members, *panels) = namespace(shares), members.mass.shape
    mass = xp.matmul(shares, xp.reshape(members.mass, (n_contexts, n_members, -1)))  # [p, J, Q]
    mass = xp.reshape(mass, (n_contexts, shares.shape[0], *panels))
    edge_mass = None if members.edge_mass is None else xp.matmul(shares, members.edge_mass)
    return Distribution(members.origin, members.edges, members.nodes, members.step, mass, edge_mass)


def _expected_costs(mean: Array, sd: Array, costs: Array, y: Array) -> Array:
    """[N, E, J, 2]: costs [E, K, 2] of members, under what outcomes y [N, E, J] tell of them."""
    return namespace(y).matmul(likelihood(y, mean, sd), costs)


def _masses_between(cuts: Array, mean: Array, sd: Array, weights: Array) -> Array:
    """[N, B + 1, K]: the probability of each member and of y between two cuts [N, B]."""
    xp = namespace(cuts)
    away = (xp.sort(cuts, axis=1)[..., None] - mean[:, None, :]) / sd[:, None, :]  # [N, B, K]
    end = filled((away.shape[0], 1, away.shape[2]), _FAR, away)
    return weights * normal_between(xp.concat([-end, away], axis=1), xp.concat([away, end], axis=1))


def broadcast_sd(name: str, sd: Array, mean: Array) -> Array:
    """Standard deviations in the shape of the means."""
    try:
        return namespace(mean).broadcast_to(sd, mean.shape)
    except (ValueError, RuntimeError) as error:
        raise StakesError(
            f"{name} must be a number or broadcast to the means, {list(mean.shape)}; got {list(sd.shape)}"
        ) from error
