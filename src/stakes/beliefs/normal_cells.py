"""What an ensemble of normals says of whole distributions: w(z) p(z), and that once a label is known.

Contexts have nodes that serve all their members, so that the distribution in a cell is one product over members.
Sizes: N candidates, M contexts, p contexts of a block, K members, J cells, P panels, G nodes a panel, Q = P G.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stakes._array import Array, constant, density, filled, namespace, slices
from stakes._panels import COUNT, panel_nodes
from stakes.beliefs.base import Integrand, Reference, Regret, log_weight
from stakes.beliefs.quadrature import CHUNK, member_slices, windows
from stakes.distributions import Distribution

_WIDTH = 1.0  # of a panel, in the smallest standard deviation of a context


@dataclass(frozen=True, eq=False)
class NormalCells:
    """The distributions of members at the contexts of one belief, and mixtures of them."""

    integrand: Integrand
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
        jump = None if parts[0].jump is None else xp.concat([each.jump for each in parts])
        return Distribution(self._point, edges, nodes, step, mass, jump)

    def over_cells(self, masses: Array, regret: Regret) -> Array:
        """[N, M]: regrets summed over cells that have `masses` [N, J, K] under members."""
        if 0 in masses.shape:
            return filled((masses.shape[0], self.mean.shape[0]), 0.0, self.mean)
        edges = self.edges()
        columns = [self._columns(part, edges[part, :], masses, regret) for part in self._blocks(edges, masses.shape[1])]
        return namespace(edges).concat(columns, axis=1)

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
        jump = self._jumps(part, edges, boost) if self._certain() else None
        return Distribution(point[:, None], edges[:, None, :], nodes[:, None, ...], step[:, None, ...], mass, jump)

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
        count = math.ceil(float(xp.max((stop - start) / (_WIDTH * smallest))))
        own = math.ceil(float(xp.max(high - low)) / _WIDTH)
        if count <= own * mean.shape[1]:
            base = start + (stop - start) * constant(np.linspace(0.0, 1.0, 1 + max(count, 1)), mean)
        else:
            span = low[..., None] + (high - low)[..., None] * constant(np.linspace(0.0, 1.0, 1 + own), mean)
            base = xp.reshape(mean[..., None] + sd[..., None] * span, (mean.shape[0], -1))
        breaks = constant(self.integrand.breakpoints, mean) - self._point[:, None]
        cuts = xp.concat([breaks, self.marks, *([mean] if self._certain() else [])], axis=1)
        cuts = xp.where(cuts < start, start, xp.where(cuts > stop, stop, cuts))
        return xp.sort(xp.concat([base, cuts], axis=1), axis=1)

    def _mixture(self, part: slice, edges: Array, shares: Array) -> Distribution:
        each, xp = self.members(part, edges), namespace(edges)
        jump = None if each.jump is None else xp.sum(shares[:, None] * each.jump, axis=1)
        mass = xp.sum(shares[:, None, None] * each.mass, axis=1)
        return Distribution(each.origin[:, 0], edges, each.nodes[:, 0, ...], each.step[:, 0, ...], mass, jump)

    def _columns(self, part: slice, edges: Array, masses: Array, regret: Regret) -> Array:
        """[N, p]: regrets at a block of contexts, a block of cells at a time."""
        each, xp, marks = self.members(part, edges), namespace(edges), self.marks[part, None, :]
        cells = slices(masses.shape[1], max(1, CHUNK // (edges.shape[0] * edges.shape[1] * COUNT)))
        blocks = list(cells)
        rows = []
        for n in range(masses.shape[0]):
            prior = mixed(each, xp.sum(masses[n, ...], axis=0)[None, :])
            regrets = [regret(mixed(each, masses[n, block, :]), prior, marks) for block in blocks]
            rows.append(xp.sum(xp.concat(regrets, axis=1), axis=1))
        return xp.stack(rows, axis=0)

    def _blocks(self, edges: Array, n_cells: int) -> list[slice]:
        """Blocks of contexts whose arrays, by members or by cells, keep to a chunk."""
        size = max(min(n_cells, CHUNK), self.mean.shape[1]) * edges.shape[1] * COUNT
        return list(slices(self.mean.shape[0], max(1, CHUNK // size)))

    def _windows(self) -> tuple[Array, Array]:
        parts = [windows(self.integrand, self.mean[:, part], self.sd[:, part]) for part in member_slices(self.mean)]
        low, high = (namespace(self.mean).concat(list(each), axis=1) for each in zip(*parts, strict=True))
        return low, high

    def _certain(self) -> bool:
        """Whether some member is certain of a target, which is then an edge."""
        return bool(namespace(self.sd).any(self.sd == 0))

    def _jumps(self, part: slice, edges: Array, boost: Array) -> Array:
        """[p, K, P + 1]: what members that are certain put on each edge (the first of equal ones)."""
        xp, point = namespace(edges), self._point[part]
        mean, sd = self.mean[part, :], self.sd[part, :]
        weight = self.integrand.statistics(mean, point[:, None])[..., 0] * xp.exp(boost)[:, None]  # [p, K]
        before = xp.concat([xp.full_like(edges[:, :1], -xp.inf), edges[:, :-1]], axis=1)[:, None, :]
        offset = (mean - point[:, None])[..., None]
        here = (edges[:, None, :] == offset) & (before < offset) & (sd == 0)[..., None]
        return xp.where(here, weight[..., None], xp.zeros_like(offset))


def mixed(members: Distribution, shares: Array) -> Distribution:
    """[p, J]: mixtures of members' distributions [p, K] by `shares` [J, K]."""
    xp, (n_contexts, n_members, *panels) = namespace(shares), members.mass.shape
    mass = xp.matmul(shares, xp.reshape(members.mass, (n_contexts, n_members, -1)))  # [p, J, Q]
    mass = xp.reshape(mass, (n_contexts, shares.shape[0], *panels))
    jump = None if members.jump is None else xp.matmul(shares, members.jump)
    return Distribution(members.origin, members.edges, members.nodes, members.step, mass, jump)
