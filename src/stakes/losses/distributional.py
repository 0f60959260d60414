"""Losses whose answer is a whole density: log score and CRPS, and what they share with losses of a quantile.

No finite list of statistics S(z) serves them: the answer is read off the weighted distribution p_w = w p / E[w]. Write
W = E[w], and W_y, F_y for what W and the distribution function F of p_w become once a label y is known.
Sizes: P panels of a distribution, G nodes a panel, B marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from array_api_compat import device, is_array_api_obj

from stakes._utils.array import Array, asarrays, log_of, namespace, ratio, replaced
from stakes.exceptions import StakesError
from stakes.losses.distributions import Crossing, Distribution, between, densities, row, series
from stakes.losses.domains import REAL, Interval
from stakes.losses.potentials import NegativeEntropy
from stakes.losses.weights import WeightLike, as_weight

_KNOWN = 1e100  # a density so many times today's is that of a target that is known


class WeightedScore:
    """The part that all losses of a distribution share; a loss says its weight."""

    weight: WeightLike
    finite_actions = False
    """Statistics are not the costs of actions."""

    @property
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Those of the weight."""
        weight = as_weight(self.weight)
        return () if weight is None else weight.breakpoints

    def log_magnitudes(self, z: Array) -> Array:
        """[..., 2]: log w(z), and log w(z) (1 + |z|), since costs grow with distances."""
        xp, weight = namespace(z), as_weight(self.weight)
        log_weight = xp.zeros_like(z) if weight is None else weight.logarithm(z)
        return xp.stack([log_weight, log_weight + xp.log1p(abs(z))], axis=-1)

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., 1]: w(z), over w(reference)."""
        xp, weight = namespace(z), as_weight(self.weight)
        if weight is None:
            return xp.ones_like(z)[..., None]
        if reference is None:
            return weight(z)[..., None]
        scale = weight.logarithm(reference)
        return xp.exp(weight.logarithm(z) - xp.where(xp.isfinite(scale), scale, xp.zeros_like(scale)))[..., None]

    def weighted(self, z: Array, loss: Array) -> Array:
        """w(z) times a loss, 0 where either is."""
        xp, weight = namespace(z), as_weight(self.weight)
        if weight is None:
            return loss
        weights, zero = weight(z), xp.zeros_like(loss)
        return xp.where(loss == 0, zero, weights) * xp.where(weights == 0, zero, loss)


class DensityScore(WeightedScore):
    """The part that losses share whose answer is the weighted distribution itself."""

    def marks(self, distribution: Distribution) -> Array:
        """[..., 0]: none."""
        return distribution.origin[..., None][..., :0]

    def prediction(self, distribution: Distribution) -> Distribution:
        """The distribution p_w."""
        return distribution


@dataclass(frozen=True)
class LogScore(DensityScore):
    """l(z, q) = -w(z) log q(z) for a density q on the reals; answer p_w. Its objective is EPIG, weighted or not.

    Regret W_y KL(p_w(. | y) || p_w), uncertainty -E[w log p_w(z)], which depends on the unit of z and may be negative.
    A label that tells a target exactly is worth infinitely much.
    """

    weight: WeightLike = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))

    def log_magnitudes(self, z: Array) -> Array:
        """[..., 1]: log w(z)."""
        weight = as_weight(self.weight)
        return (namespace(z).zeros_like(z) if weight is None else weight.logarithm(z))[..., None]

    def regret(self, posterior: Distribution, prior: Distribution, marks: Array) -> Array:
        """[...]: W_y KL(p_w(. | y) || p_w)."""
        prior.check_density()
        xp, total = namespace(posterior.mass), posterior.total()
        after, before = (_share(each.mass, each.total()) for each in (posterior, prior))
        after, before = xp.broadcast_arrays(after, before)
        lead = after.shape[:-2]
        after, before = (xp.reshape(each, (*lead, -1)) for each in (after, before))
        after = xp.where(before > 0, after, before)  # both are out of range
        known = xp.any(ratio(after, before) > _KNOWN, axis=-1)
        divergence = NegativeEntropy().divergence(after, before)
        return total * xp.where(known, xp.full_like(divergence, xp.inf), divergence)

    def uncertainty(self, distribution: Distribution, marks: Array) -> Array:
        """[...]: -E[w log p_w(z)], over the scale of the distribution."""
        distribution.check_density()
        distribution.check_spread()
        xp, mass = namespace(distribution.mass), distribution.mass
        height = ratio(mass, distribution.step) / distribution.total()[..., None, None]
        logs = xp.where(height > 0, log_of(height), xp.zeros_like(height))
        return -xp.sum(mass * logs, axis=(-2, -1))

    def __call__(self, z: Any, prediction: Distribution) -> Array:
        """[...]: -w(z) log q(z)."""
        z = _targets(z, prediction)
        return _like(z, self.weighted(z, -prediction.log_density(z)))


@dataclass(frozen=True)
class CRPS(DensityScore):
    """l(z, F) = w(z) times the integral over t of (F(t) - 1{z <= t})^2, in units of z; answer the cdf of p_w.

    The continuous ranked probability score: Brier scores of "z <= t", over all t. Regret: W_y times the integral of
    (F_y - F)^2. Uncertainty: W times that of F (1 - F).
    """

    weight: WeightLike = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))

    def regret(self, posterior: Distribution, prior: Distribution, marks: Array) -> Array:
        """[...]: W_y times the integral of (F_y - F)^2."""
        xp, total = namespace(posterior.mass), posterior.total()
        gap = replaced(posterior, mass=_share(posterior.mass, total) - _share(prior.mass, prior.total()))
        if posterior.jump is not None and prior.jump is not None:
            jump = _share(posterior.jump[..., None], total) - _share(prior.jump[..., None], prior.total())
            gap = replaced(gap, jump=jump[..., 0])
        return total * xp.sum(gap.below() ** 2 * prior.step, axis=(-2, -1))

    def uncertainty(self, distribution: Distribution, marks: Array) -> Array:
        """[...]: W times the integral of F (1 - F), over the scale of the distribution."""
        integral = namespace(distribution.mass).sum(
            distribution.below() * distribution.above() * distribution.step, axis=(-2, -1)
        )
        return ratio(integral, distribution.total())

    def __call__(self, z: Any, prediction: Distribution) -> Array:
        """[...]: w(z) times the integral of (F(t) - 1{z <= t})^2."""
        z = _targets(z, prediction)
        return _like(z, self.weighted(z, prediction.crps(z)))


def _share(mass: Array, total: Array) -> Array:
    """[..., P, G]: masses over their total; 0 where that is nothing, or too little to divide by."""
    xp = namespace(total)
    some = total > xp.finfo(total.dtype).smallest_normal
    inverse = xp.where(some, 1.0 / xp.where(some, total, xp.ones_like(total)), xp.zeros_like(total))
    return mass * inverse[..., None, None]


def _targets(z: Any, prediction: Any) -> Array:
    """Targets beside a distribution, checked."""
    if not isinstance(prediction, Distribution):
        raise TypeError(
            "the prediction must be a Distribution, such as bayes_prediction gives for this loss; got "
            f"{type(prediction).__name__}"
        )
    return asarrays(z=z)[0] if is_array_api_obj(z) else asarrays(origin=prediction.origin, z=z)[1]


def _like(z: Array, values: Array) -> Array:
    return namespace(values).astype(values, z.dtype)


# ----------------------------------------------------------------------
# Losses whose answer is a quantile of the weighted distribution p_w: pinball and absolute error.
#
# Sizes: P panels of a distribution, G nodes a panel, S points within a panel.


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
            raise StakesError(f"tau must be a number between 0 and 1, the level of the quantile; got {self.tau!r}")
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
