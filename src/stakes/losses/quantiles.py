"""Losses whose answer is a quantile of the weighted distribution p_w: pinball and absolute error.

Sizes: P panels of a distribution, G nodes a panel, S points within a panel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from array_api_compat import device

from stakes._array import Array, asarrays, namespace, ratio
from stakes._panels import between, densities, row, series
from stakes.distributions import Crossing, Distribution
from stakes.losses.distributional import WeightedScore
from stakes.losses.weights import WeightLike, as_weight


class QuantileScore(WeightedScore):
    """The part that pinball and absolute error share: unit max(tau (z - b), (tau - 1)(z - b)).

    Answer a, the tau-quantile of p_w. Once y is known and a_y would be right, keeping a costs the integral between them
    of |W_y F_y(t) - tau W_y|: at each threshold t between them it answers "is z <= t?" wrongly.
    """

    @property
    def level(self) -> float:
        """The level of the quantile."""
        raise NotImplementedError

    @property
    def unit(self) -> float:
        """What the pinball loss is multiplied by."""
        raise NotImplementedError

    def marks(self, distribution: Distribution) -> Array:
        """[..., 1]: the answer, from the origin: regrets kink there."""
        return distribution.at(distribution.crossing(self.level * distribution.total()))[..., None]

    def prediction(self, distribution: Distribution) -> Array:
        """[...]: the tau-quantile of p_w."""
        return distribution.origin + self.marks(distribution)[..., 0]

    def regret(self, posterior: Distribution, prior: Distribution, marks: Array) -> Array:
        """[...]: the integral of |W_y F_y(t) - tau W_y| where its sign is not that of t - a; a is an edge of panels."""
        xp, answer = namespace(posterior.mass), marks[..., 0]
        beyond = (prior.edges[..., :-1] + prior.edges[..., 1:]) / 2.0 > answer[..., None]  # [..., P]
        crossing = posterior.crossing(self._level(prior, answer, beyond) * posterior.total())
        short = crossing.starts + crossing.sums < 0  # [..., P]: the level is crossed in no panel but one
        lengths, within = xp.sum(prior.step, axis=-1), prior.integrals_of_below()
        excess = crossing.starts * lengths + xp.sum(posterior.mass * within, axis=-1)
        position = xp.arange(short.shape[-1], device=device(short))
        partial = (crossing.here[..., None] == position) & crossing.inside[..., None]
        wrong = xp.where((short == beyond) & ~partial, abs(excess), xp.zeros_like(excess))
        above = row(xp.astype(beyond, excess.dtype)[..., None], crossing.here)[..., 0] > 0
        return self.unit * (xp.sum(wrong, axis=-1) + self._part(prior, crossing, above))

    def _level(self, prior: Distribution, answer: Array, beyond: Array) -> Array:
        """[...]: tau, up to the error of today's mass below the answer on these nodes: today the answer is right."""
        xp = namespace(answer)
        sums = xp.sum(prior.mass, axis=-1)
        below = above = xp.sum(xp.where(beyond, xp.zeros_like(sums), sums), axis=-1)
        if prior.jump is not None:
            sides = (prior.edges < answer[..., None], prior.edges <= answer[..., None])
            jumps = (xp.sum(xp.where(each, prior.jump, xp.zeros_like(prior.jump)), axis=-1) for each in sides)
            below, above = (below + jump for jump in jumps)
        low, high = ratio(below, prior.total()), ratio(above, prior.total())
        level = xp.full_like(low, self.level)
        return xp.where(level < low, low, xp.where(level > high, high, level))

    def _part(self, prior: Distribution, crossing: Crossing, beyond: Array) -> Array:
        """[...]: the same on the panel within which the level is crossed, up to there or from there on."""
        xp, one = namespace(crossing.x), namespace(crossing.x).ones_like(crossing.x)
        x, lengths = between(xp.where(beyond, -one, crossing.x), xp.where(beyond, crossing.x, one))  # [..., S]
        slope = densities(row(prior.step, crossing.here))
        part = xp.sum(lengths * abs(crossing.excess(x)) * series(slope, x), axis=-1)
        return xp.where(crossing.inside, part, xp.zeros_like(part))

    def uncertainty(self, distribution: Distribution, marks: Array) -> Array:
        """[...]: E[l(z, a)], over the scale of the distribution; a is an edge of panels."""
        xp, answer = namespace(distribution.mass), marks[..., 0]
        total = xp.sum(distribution.mass * self._pinball(distribution.nodes - answer[..., None, None]), axis=(-2, -1))
        if distribution.jump is None:
            return total
        return total + xp.sum(distribution.jump * self._pinball(distribution.edges - answer[..., None]), axis=-1)

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: w(z) times what answering `prediction` costs."""
        z, prediction = asarrays(z=z, prediction=prediction)
        z, prediction = namespace(z).broadcast_arrays(z, prediction)
        return self.weighted(z, self._pinball(z - prediction))

    def _pinball(self, step: Array) -> Array:
        """[...]: what a target costs that lies `step` above the answer."""
        xp = namespace(step)
        return self.unit * xp.where(step > 0, self.level * step, (self.level - 1.0) * step)


@dataclass(frozen=True)
class Pinball(QuantileScore):
    """l(z, b) = w(z) max(tau (z - b), (tau - 1)(z - b)): the quantile loss; answer the `tau`-quantile of p_w."""

    tau: float
    weight: WeightLike = None

    def __post_init__(self) -> None:
        if not isinstance(self.tau, int | float) or not 0.0 < self.tau < 1.0:
            raise ValueError(f"tau must be a number between 0 and 1, the level of the quantile; got {self.tau!r}")
        object.__setattr__(self, "tau", float(self.tau))
        object.__setattr__(self, "weight", as_weight(self.weight))

    @property
    def level(self) -> float:
        """The level of the quantile."""
        return self.tau

    @property
    def unit(self) -> float:
        """1."""
        return 1.0


@dataclass(frozen=True)
class AbsoluteError(QuantileScore):
    """l(z, b) = w(z) |z - b|, twice the pinball loss at 1/2; answer the median of p_w."""

    weight: WeightLike = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))

    @property
    def level(self) -> float:
        """1/2."""
        return 0.5

    @property
    def unit(self) -> float:
        """2."""
        return 2.0
