"""How the labels of an ensemble of normals are integrated: rules that lay outcomes y out in cells.

Given member k, y ~ N(mean, sd^2); a rule says how much mass cell j has under member k.
Sizes: N candidates, K members, J cells of y, I nodes a member, P panels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtri
from scipy.stats import qmc

from stakes._utils.arguments import RandomState, as_generator
from stakes._utils.array import Array, constant, namespace, ratio
from stakes.beliefs.quadrature import TAIL

_MEMBER_MARKS = (-8.5, -4.5, -1.5, 1.5, 4.5, 8.5)  # edges of panels around a member, in its standard deviations


@runtime_checkable
class OutcomeRule(Protocol):
    """How the outcomes y of a candidate are laid out in cells, when each member predicts y ~ N(mean, sd^2).

    Examples:
        >>> from stakes.beliefs import MixtureGrid, OutcomeRule
        >>> isinstance(MixtureGrid(), OutcomeRule)
        True
    """

    def size(self, mean: Array, sd: Array) -> int:
        """How many cells there are.

        Args:
            mean: [N, K], of the members.
            sd: [N, K], their standard deviations.

        Returns:
            J.
        """

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """The outcome y that each cell stands for.

        Args:
            mean: [N, K], of the members.
            sd: [N, K], their standard deviations.

        Returns:
            [N, J].
        """

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """The probability of cell j and member k.

        Args:
            mean: [N, K], of the members.
            sd: [N, K], their standard deviations.
            member_weights: [K], which sum to one.

        Returns:
            [N, J, K].
        """

    def refined(self) -> OutcomeRule:
        """The same rule with twice the effort, to see what is left of its error."""


@dataclass(frozen=True)
class MixtureGrid:
    """One even grid over the whole mixture of a candidate.

    Args:
        per_sd: How many points to the smallest standard deviation.

    Examples:
        >>> import numpy as np
        >>> from stakes.beliefs import MixtureGrid
        >>> means, sds = np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]])
        >>> MixtureGrid(per_sd=3.0).size(means, sds)  # 3 points to each of 19 sds, and the end
        58
    """

    per_sd: float = 3.0

    def size(self, mean: Array, sd: Array) -> int:
        """J of the candidate that needs most points."""
        xp = namespace(mean)
        if 0 in mean.shape:
            return 1
        low, high = self._range(mean, sd)
        return 1 + math.ceil(float(xp.max((high - low) / xp.min(sd, axis=1))) * self.per_sd)

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """[N, J]: evenly spaced over all members."""
        low, high = self._range(mean, sd)
        return low[:, None] + (high - low)[:, None] * constant(np.linspace(0.0, 1.0, self.size(mean, sd)), mean)

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """[N, J, K]: the density of each member at each point, times the spacing."""
        y = self.outcomes(mean, sd)
        spacing = (y[:, -1] - y[:, 0]) / max(y.shape[1] - 1, 1)
        return _weighted_likelihood(y, mean, sd, member_weights * spacing[:, None])

    def refined(self) -> MixtureGrid:
        """A grid twice as fine."""
        return MixtureGrid(2.0 * self.per_sd)

    def _range(self, mean: Array, sd: Array) -> tuple[Array, Array]:
        xp = namespace(mean)
        return xp.min(mean - TAIL * sd, axis=1), xp.max(mean + TAIL * sd, axis=1)


@dataclass(frozen=True, eq=False)
class MemberNodes:
    """Nodes of each member, weighed under all members: the nested (contrastive) estimate of the paper's appendix D.3.

    The nodes are the same for every member and candidate (common random numbers). `spaced`, `monte_carlo` and
    `quasi_monte_carlo` make them; the computation is the same.

    Args:
        nodes: [I], outcomes in standard units.
        weights: [I], their masses, which sum to one.
        random_state: The generator that drew them; None where they are not random.
        kind: By which of the three they were made.

    Examples:
        >>> from stakes.beliefs import MemberNodes
        >>> rule = MemberNodes.monte_carlo(100, random_state=0)
        >>> print(len(rule.nodes), len(rule.refined().nodes))
        100 200
    """

    nodes: Any
    weights: Any
    random_state: np.random.Generator | None = field(default=None, repr=False)
    kind: str = "spaced"

    @classmethod
    def spaced(cls, count: int = 65) -> MemberNodes:
        """Evenly spaced nodes: the trapezoid rule, deterministic.

        Args:
            count: I, how many for each member.

        Returns:
            The rule.
        """
        nodes = np.linspace(-TAIL, TAIL, count)
        weights = np.exp(-0.5 * nodes**2)
        return cls(nodes, weights / weights.sum())

    @classmethod
    def monte_carlo(cls, count: int, random_state: RandomState = None) -> MemberNodes:
        """Independent draws.

        Args:
            count: I, how many for each member.
            random_state: A whole number, a NumPy generator, or None for 0.

        Returns:
            The rule.
        """
        generator = as_generator(random_state)
        return cls(generator.standard_normal(count), np.full(count, 1.0 / count), generator, "monte_carlo")

    @classmethod
    def quasi_monte_carlo(cls, count: int, random_state: RandomState = None) -> MemberNodes:
        """A scrambled Sobol sequence.

        Args:
            count: I, how many for each member; best a power of two.
            random_state: A whole number, a NumPy generator, or None for 0.

        Returns:
            The rule.
        """
        generator = as_generator(random_state)
        points = qmc.Sobol(1, rng=generator).random(count)[:, 0]
        return cls(
            ndtri(np.clip(points, 1e-16, 1 - 1e-16)), np.full(count, 1.0 / count), generator, "quasi_monte_carlo"
        )

    def size(self, mean: Array, sd: Array) -> int:
        """J = K I."""
        return int(mean.shape[1]) * len(self.nodes)

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """[N, J]: the nodes about each member."""
        y = mean[..., None] + sd[..., None] * constant(self.nodes, mean)  # [N, K, I]
        return namespace(mean).reshape(y, (mean.shape[0], self.size(mean, sd)))

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """[N, J, K]: the mass of each node, shared out among members by their posterior probability at its outcome."""
        xp = namespace(mean)
        mass = xp.reshape(member_weights[:, None] * constant(self.weights, mean), (1, -1, 1))
        joint = member_weights * likelihood(self.outcomes(mean, sd), mean, sd)  # [N, K I, K]
        return mass * ratio(joint, xp.sum(joint, axis=-1, keepdims=True))

    def refined(self) -> MemberNodes:
        """Twice the nodes (new draws, where they are random)."""
        count = 2 * len(self.nodes)
        if self.random_state is None:
            return MemberNodes.spaced(count)
        draw = MemberNodes.monte_carlo if self.kind == "monte_carlo" else MemberNodes.quasi_monte_carlo
        return draw(count, self.random_state)


@dataclass(frozen=True)
class MemberPanels:
    """Gauss-Legendre panels between marks around every member, for members of very different widths.

    Args:
        per_panel: How many nodes a panel has.

    Examples:
        >>> import numpy as np
        >>> from stakes.beliefs import MemberPanels
        >>> means, sds = np.array([[0.0, 1.0]]), np.array([[0.001, 1.0]])
        >>> MemberPanels(per_panel=10).size(means, sds)  # 11 panels between 12 marks
        110
    """

    per_panel: int = 10

    def size(self, mean: Array, sd: Array) -> int:
        """J: ten nodes between any two of six marks a member."""
        return (len(_MEMBER_MARKS) * int(mean.shape[1]) - 1) * self.per_panel

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """[N, J]: the nodes of all panels."""
        return self._nodes(mean, sd)[0]

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """[N, J, K]: the density of each member at each node, times the weight of the node."""
        y, weights = self._nodes(mean, sd)
        return member_weights * weights[..., None] * likelihood(y, mean, sd)

    def _nodes(self, mean: Array, sd: Array) -> tuple[Array, Array]:
        """[N, J] each: nodes and their weights."""
        xp = namespace(mean)
        marks = mean[..., None] + sd[..., None] * constant(_MEMBER_MARKS, mean)  # [N, K, 6]
        marks = xp.sort(xp.reshape(marks, (mean.shape[0], mean.shape[1] * len(_MEMBER_MARKS))), axis=1)
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
    """A grid over the mixture, or panels around each member where that grid would need too many points.

    Args:
        most: How many points the grid may have.
        grid: The grid.
        panels: The panels.

    Examples:
        >>> import numpy as np
        >>> from stakes.beliefs import Automatic
        >>> Automatic().chosen(np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]]))
        MixtureGrid(per_sd=3.0)
        >>> Automatic().chosen(np.array([[0.0, 1.0]]), np.array([[0.001, 1.0]]))
        MemberPanels(per_panel=10)
    """

    most: int = 4096
    grid: MixtureGrid = MixtureGrid()
    panels: MemberPanels = MemberPanels()

    def chosen(self, mean: Array, sd: Array) -> OutcomeRule:
        """The rule that runs.

        Args:
            mean: [N, K], of the members.
            sd: [N, K], their standard deviations.

        Returns:
            The grid or the panels.
        """
        return self.grid if self.grid.size(mean, sd) <= self.most else self.panels

    def size(self, mean: Array, sd: Array) -> int:
        """J of the chosen rule."""
        return self.chosen(mean, sd).size(mean, sd)

    def outcomes(self, mean: Array, sd: Array) -> Array:
        """[N, J]: the outcomes of the chosen rule."""
        return self.chosen(mean, sd).outcomes(mean, sd)

    def masses(self, mean: Array, sd: Array, member_weights: Array) -> Array:
        """[N, J, K]: the masses of the chosen rule."""
        return self.chosen(mean, sd).masses(mean, sd, member_weights)

    def edges(self, mean: Array, sd: Array) -> Array:
        """Edges of panels of y of 16 nodes each, as narrow as the narrowest member or as each of them.

        Args:
            mean: [N, K], of the members.
            sd: [N, K], their standard deviations.

        Returns:
            [N, P + 1].
        """
        xp, width = namespace(mean), 3.0 / self.grid.per_sd
        low, high = xp.min(mean - TAIL * sd, axis=1), xp.max(mean + TAIL * sd, axis=1)
        count = math.ceil(float(xp.max((high - low) / xp.min(sd, axis=1))) / width) if 0 not in mean.shape else 1
        own = math.ceil(2.0 * TAIL / width)
        if count <= own * mean.shape[1]:
            return low[:, None] + (high - low)[:, None] * constant(np.linspace(0.0, 1.0, 1 + count), mean)
        around = mean[..., None] + sd[..., None] * constant(np.linspace(-TAIL, TAIL, 1 + own), mean)
        return xp.sort(xp.reshape(around, (mean.shape[0], -1)), axis=1)

    def refined(self) -> Automatic:
        """Both rules refined."""
        return Automatic(2 * self.most, self.grid.refined(), self.panels.refined())


def likelihood(y: Array, mean: Array, sd: Array) -> Array:
    """[N, ..., K]: the density of outcomes y [N, ...] under each member [N, K]."""
    return _weighted_likelihood(y, mean, sd, 1.0)


def _weighted_likelihood(y: Array, mean: Array, sd: Array, weights: Array | float) -> Array:
    """[N, ..., K]: the same times weights [N, K], in place: memory is what takes the time."""
    xp = namespace(mean)
    shape = (mean.shape[0], *(1,) * (y.ndim - 1), mean.shape[1])
    mean, sd, heights = (xp.reshape(each, shape) for each in (mean, sd, weights / (math.sqrt(2.0 * math.pi) * sd)))
    found = y[..., None] - mean
    found /= sd
    found *= found
    found *= -0.5
    found = xp.exp(found)
    found *= heights
    return found
