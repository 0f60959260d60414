"""Rules that lay out the outcomes y of a candidate in cells, when each member predicts y ~ N(mean, sd^2).

Sizes: N candidates, K members, J cells, I nodes a member.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtri
from scipy.stats import qmc

from stakes._array import Array, constant, density, namespace, ratio
from stakes.beliefs.quadrature import TAIL

_MARKS = (-8.5, -4.5, -1.5, 1.5, 4.5, 8.5)  # panels of a bell, in its standard deviations


@runtime_checkable
class OutcomeRule(Protocol):
    """How the outcomes y of a candidate are laid out in cells."""

    def size(self, mean: Array, sd: Array) -> int:
        """J for members with `mean` and `sd` [N, K]."""

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """[N, J]: the outcome y that each cell stands for."""

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

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """Evenly spaced over all members."""
        low, high = self._range(mean, sd)
        return low[:, None] + (high - low)[:, None] * constant(np.linspace(0.0, 1.0, self.size(mean, sd)), mean)

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """The density of each member at each point, times the spacing."""
        y = self.outcomes(mean, sd)
        spacing = (y[:, -1] - y[:, 0]) / max(y.shape[1] - 1, 1)
        return member_weights * spacing[:, None, None] * likelihood(y, mean, sd)

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

    def size(self, mean: Array, sd: Array) -> int:
        """K I."""
        return int(mean.shape[1]) * len(self.nodes)

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """The nodes about each member."""
        y = mean[..., None] + sd[..., None] * constant(self.nodes, mean)  # [N, K, I]
        return namespace(mean).reshape(y, (mean.shape[0], self.size(mean, sd)))

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """The mass of each node, shared out among members by their posterior probability at its outcome."""
        xp = namespace(mean)
        mass = xp.reshape(member_weights[:, None] * constant(self.weights, mean), (1, -1, 1))
        joint = member_weights * likelihood(self.outcomes(mean, sd), mean, sd)  # [N, K I, K]
        return mass * ratio(joint, xp.sum(joint, axis=-1, keepdims=True))

    def refined(self) -> MemberNodes:
        """Twice the nodes (new draws, where they are random)."""
        count = 2 * len(self.nodes)
        if self.generator is None:
            return MemberNodes.spaced(count)
        draw = MemberNodes.monte_carlo if self.kind == "monte_carlo" else MemberNodes.quasi_monte_carlo
        return draw(count, self.generator)


@dataclass(frozen=True)
class MemberPanels:
    """Gauss-Legendre panels between marks around every member, for members of very different widths."""

    per_panel: int = 10

    def size(self, mean: Array, sd: Array) -> int:
        """Ten nodes between any two of six marks a member."""
        return (len(_MARKS) * int(mean.shape[1]) - 1) * self.per_panel

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """The nodes of all panels."""
        return self._nodes(mean, sd)[0]

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """The density of each member at each node, times the weight of the node."""
        y, weights = self._nodes(mean, sd)
        return member_weights * weights[..., None] * likelihood(y, mean, sd)

    def _nodes(self, mean: Array, sd: Array) -> tuple[Array, Array]:
        """[N, J] each: nodes and their weights."""
        xp = namespace(mean)
        marks = mean[..., None] + sd[..., None] * constant(_MARKS, mean)  # [N, K, 6]
        marks = xp.sort(xp.reshape(marks, (mean.shape[0], mean.shape[1] * len(_MARKS))), axis=1)
        half, middle = (marks[:, 1:] - marks[:, :-1]) / 2.0, (marks[:, 1:] + marks[:, :-1]) / 2.0
        nodes, weights = (constant(each, mean) for each in leggauss(self.per_panel))
        shape = (mean.shape[0], self.size(mean, sd))
        y = xp.reshape(middle[..., None] + half[..., None] * nodes, shape)
        return y, xp.reshape(half[..., None] * weights, shape)

    def refined(self) -> MemberPanels:
        """Twice the nodes in each panel."""
        return MemberPanels(2 * self.per_panel)


@dataclass(frozen=True)
class Automatic:
    """A grid over the mixture, or panels around each member where that grid would need more than `most` points."""

    most: int = 4096
    grid: MixtureGrid = MixtureGrid()
    panels: MemberPanels = MemberPanels()

    def chosen(self, mean: Array, sd: Array) -> OutcomeRule:
        """The rule that runs."""
        return self.grid if self.grid.size(mean, sd) <= self.most else self.panels

    def size(self, mean: Array, sd: Array) -> int:
        """That of the chosen rule."""
        return self.chosen(mean, sd).size(mean, sd)

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """Those of the chosen rule."""
        return self.chosen(mean, sd).outcomes(mean, sd)

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """Those of the chosen rule."""
        return self.chosen(mean, sd).masses(mean, sd, member_weights)

    def refined(self) -> Automatic:
        """Both refined."""
        return Automatic(2 * self.most, self.grid.refined(), self.panels.refined())


def likelihood(y: Array, mean: Array, sd: Array) -> Array:
    """[N, ..., K]: the density of outcomes y [N, ...] under each member [N, K]."""
    shape = (mean.shape[0], *(1,) * (y.ndim - 1), mean.shape[1])
    mean, sd = (namespace(mean).reshape(each, shape) for each in (mean, sd))
    return density((y[..., None] - mean) / sd) / sd
