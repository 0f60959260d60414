"""A loss of a distribution as one with finitely many statistics: the masses at the nodes that all members share.

Sizes: M contexts, K members, P panels, G nodes a panel, D = P G, and P + 1 more where mass sits in points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stakes._array import Array, namespace
from stakes.acquisition.forms import today
from stakes.beliefs import NormalEnsemble
from stakes.distributions import Distribution
from stakes.losses import DistributionLoss


@dataclass(frozen=True, eq=False)
class Tabulated:
    """The waist of a loss under one ensemble: moments are distributions, written as rows."""

    loss: DistributionLoss
    members: Distribution
    """[M, K]"""
    marks: Array
    """[M, B]"""

    @classmethod
    def under(cls, loss: DistributionLoss, belief: NormalEnsemble) -> Tabulated:
        """With panels that split at the marks of today's distribution."""
        reference, _, marks = today(loss, belief)
        return cls(loss, belief.member_distributions(loss, reference, marks), marks)

    def member_moments(self) -> Array:
        """[M, K, D]: the distribution of each member."""
        xp, mass = namespace(self.members.mass), self.members.mass
        rows = xp.reshape(mass, (*mass.shape[:2], -1))
        return rows if self.members.jump is None else xp.concat([rows, self.members.jump], axis=2)

    def action(self, moments: Array) -> Array:
        """[..., D]: today's distribution is what the answer is read off."""
        return moments

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: that of the loss; contexts are the last axis but one of `moments`, and the first of `action`."""
        return self.loss.regret(self._distribution(moments), self._distribution(action), self.marks[:, None, :])

    def _distribution(self, rows: Array) -> Distribution:
        xp, each = namespace(rows), self.members
        panels = each.mass.shape[2:]
        count = math.prod(panels)
        mass = xp.reshape(rows[..., :count], (*rows.shape[:-1], *panels))
        jump = None if each.jump is None else rows[..., count:]
        return Distribution(each.origin, each.edges, each.nodes, each.step, mass, jump)
