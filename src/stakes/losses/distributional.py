"""Losses of a whole distribution: log score and CRPS answer with it, pinball and absolute error with a quantile.

No finite list of statistics S(z) serves them: the answer is read off the weighted distribution p_w = w p / E[w]. Write
W = E[w], and W_y, F_y for what W and the distribution function F of p_w become once a label y is known.
Sizes: P panels of a distribution, G nodes a panel, S points within a panel, B marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from array_api_compat import device, is_array_api_obj

from stakes._utils.array import Array, asarrays, log_of, namespace, ratio, replaced
from stakes.exceptions import StakesError
from stakes.losses.distributions import Distribution, legendre_rule, legendre_series, series_of_masses, take_panel
from stakes.losses.domains import REAL, Interval
from stakes.losses.potentials import NegativeEntropy
from stakes.losses.weights import WeightLike, as_weight

_KNOWN = 1e100  # a density so many times today's is that of a target that is known


class WeightedScore:
    """The methods that all losses of a distribution share; a loss sets its weight."""

    weight: WeightLike
    finite_actions = False
    """Statistics are not the costs of actions."""

    @property
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The breakpoints of the weight."""
        weight = None if self.weight is None else as_weight(self.weight)
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
        """w(z) times a loss, 0 where either is.

        Args:
            z: Targets [...].
            loss: The loss without its weight, [...].

        Returns:
            [...].
        """
        if self.weight is None or (weight := as_weight(self.weight)) is None:
            return loss
        xp = namespace(z)
        weights, zero = weight(z), xp.zeros_like(loss)
        return xp.where(loss == 0, zero, weights) * xp.where(weights == 0, zero, loss)


class DensityScore(WeightedScore):
    """The methods of losses whose answer is the weighted distribution itself."""

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

    Args:
        weight: w, an object such as `ExponentialWeight(1.0)` or a function of the target; None for 1.

    Examples:
        >>> from stakes import GaussianBelief, LogScore, expected_reduction
        >>> belief = GaussianBelief(mean=[0.0], variance=[1.0], candidate_variance=[1.0], covariance=[[0.6]])
        >>> print(expected_reduction(LogScore(), belief).round(4))  # -log(1 - rho) / 2 with rho = 0.36
        [[0.2231]]
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

    Args:
        weight: w, an object or a function of the target; None for 1.

    Examples:
        >>> from stakes import CRPS, GaussianBelief, uncertainty
        >>> belief = GaussianBelief(mean=[0.0], variance=[1.0], candidate_variance=[1.0], covariance=[[0.6]])
        >>> print(uncertainty(CRPS(), belief).round(4))  # 1 / sqrt(pi)
        [0.5642]
    """

    weight: WeightLike = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))

    def regret(self, posterior: Distribution, prior: Distribution, marks: Array) -> Array:
        """[...]: W_y times the integral of (F_y - F)^2."""
        xp, total = namespace(posterior.mass), posterior.total()
        gap = replaced(posterior, mass=_share(posterior.mass, total) - _share(prior.mass, prior.total()))
        if posterior.edge_mass is not None and prior.edge_mass is not None:
            at_edges = _share(posterior.edge_mass[..., None], total) - _share(prior.edge_mass[..., None], prior.total())
            gap = replaced(gap, edge_mass=at_edges[..., 0])
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


class QuantileScore(WeightedScore):
    """The methods that pinball and absolute error share: unit max(tau (z - b), (tau - 1)(z - b)).

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
        return distribution.offset_at(self.level * distribution.total())[..., None]

    def prediction(self, distribution: Distribution) -> Array:
        """[...]: the tau-quantile of p_w."""
        return distribution.origin + self.marks(distribution)[..., 0]

    def regret(self, posterior: Distribution, prior: Distribution, marks: Array) -> Array:
        """[...]: the integral of |W_y F_y(t) - tau W_y| where its sign is not that of t - a; a is an edge of panels."""
        xp, answer = namespace(posterior.mass), marks[..., 0]
        beyond = (prior.edges[..., :-1] + prior.edges[..., 1:]) / 2.0 > answer[..., None]  # [..., P]
        level = self._level(prior, answer, beyond) * posterior.total()
        short, x, inside, starts = posterior.crossing(level)  # the level is crossed in no panel but one
        panel = xp.clip(xp.sum(xp.astype(short, xp.int64), axis=-1), 0, short.shape[-1] - 1)
        lengths, within = xp.sum(prior.step, axis=-1), prior.integrals_of_below()
        excess = starts * lengths + xp.sum(posterior.mass * within, axis=-1)
        position = xp.arange(short.shape[-1], device=device(short))
        partial = (panel[..., None] == position) & inside[..., None]
        wrong = xp.where((short == beyond) & ~partial, abs(excess), xp.zeros_like(excess))
        above = take_panel(xp.astype(beyond, excess.dtype)[..., None], panel)[..., 0] > 0
        low, high = xp.where(above, -xp.ones_like(x), x), xp.where(above, x, xp.ones_like(x))
        part = self._part(posterior, prior, starts, panel, low, high)
        return self.unit * (xp.sum(wrong, axis=-1) + xp.where(inside, part, xp.zeros_like(part)))

    def _level(self, prior: Distribution, answer: Array, beyond: Array) -> Array:
        """[...]: tau, up to the error of today's mass below the answer on these nodes: today the answer is right."""
        xp = namespace(answer)
        sums = xp.sum(prior.mass, axis=-1)
        below = above = xp.sum(xp.where(beyond, xp.zeros_like(sums), sums), axis=-1)
        if prior.edge_mass is not None:
            sides = (prior.edges < answer[..., None], prior.edges <= answer[..., None])
            none = xp.zeros_like(prior.edge_mass)
            below, above = (below + xp.sum(xp.where(each, prior.edge_mass, none), axis=-1) for each in sides)
        low, high = ratio(below, prior.total()), ratio(above, prior.total())
        level = xp.full_like(low, self.level)
        return xp.where(level < low, low, xp.where(level > high, high, level))

    def _part(
        self, posterior: Distribution, prior: Distribution, starts: Array, panel: Array, low: Array, high: Array
    ) -> Array:
        """[...]: the same integral from low to high of the panel within which the level is crossed."""
        x, lengths = legendre_rule(low, high)  # [..., S]
        start, integral = posterior.mass_within(panel, starts)
        excess = start[..., None] + legendre_series(integral, x)  # the mass below less the level
        slope = series_of_masses(take_panel(prior.step, panel))
        return namespace(x).sum(lengths * abs(excess) * legendre_series(slope, x), axis=-1)

    def uncertainty(self, distribution: Distribution, marks: Array) -> Array:
        """[...]: E[l(z, a)], over the scale of the distribution; a is an edge of panels."""
        xp, answer = namespace(distribution.mass), marks[..., 0]
        total = xp.sum(distribution.mass * self.step_cost(distribution.nodes - answer[..., None, None]), axis=(-2, -1))
        if distribution.edge_mass is None:
            return total
        return total + xp.sum(distribution.edge_mass * self.step_cost(distribution.edges - answer[..., None]), axis=-1)

    def charge(self, distribution: Distribution, answer: Array) -> Array:
        """E[l(z, b)] of any answer b, by max(tau s, (tau - 1) s) = tau s + max(-s, 0) with s = z - b.

        Args:
            distribution: The distribution [...].
            answer: Answers [...], from its origin; they need not be edges of panels.

        Returns:
            [...], over the scale of the distribution.
        """
        xp = namespace(distribution.mass)
        first = xp.sum(distribution.mass * distribution.nodes, axis=(-2, -1))  # E[w z]
        if distribution.edge_mass is not None:
            first = first + xp.sum(distribution.edge_mass * distribution.edges, axis=-1)
        short = distribution.integral_of_below(answer)  # E[w max(b - z, 0)]
        return self.unit * (self.level * (first - answer * distribution.total()) + short)

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: w(z) times what answering `prediction` costs."""
        z, prediction = asarrays(z=z, prediction=prediction)
        z, prediction = namespace(z).broadcast_arrays(z, prediction)
        return self.weighted(z, self.step_cost(z - prediction))

    def step_cost(self, step: Array) -> Array:
        """What a target costs that lies `step` above the answer, without its weight.

        Args:
            step: The target less the answer, [...].

        Returns:
            [...].
        """
        xp = namespace(step)
        return self.unit * xp.where(step > 0, self.level * step, (self.level - 1.0) * step)


@dataclass(frozen=True)
class Pinball(QuantileScore):
    """l(z, b) = w(z) max(tau (z - b), (tau - 1)(z - b)): the quantile loss; answer the `tau`-quantile of p_w.

    Args:
        tau: The level of the quantile, between 0 and 1.
        weight: w, an object or a function of the target; None for 1.

    Raises:
        StakesError: If `tau` is not between 0 and 1.

    Examples:
        >>> from stakes import Pinball
        >>> loss = Pinball(0.9)
        >>> print(loss(3.0, 1.0), loss(1.0, 3.0).round(6))  # 0.9 for each unit too low, 0.1 for each too high
        1.8 0.2
    """

    tau: float
    weight: WeightLike = None

    def __post_init__(self) -> None:
        if not isinstance(self.tau, int | float) or not 0.0 < self.tau < 1.0:
            raise StakesError(f"tau must be a number between 0 and 1, the level of the quantile; got {self.tau!r}")
        object.__setattr__(self, "tau", float(self.tau))
        if self.weight is not None:
            object.__setattr__(self, "weight", as_weight(self.weight))

    @property
    def level(self) -> float:
        """The level of the quantile."""
        return self.tau

    @property
    def unit(self) -> float:
        """1: the pinball loss itself."""
        return 1.0


@dataclass(frozen=True)
class AbsoluteError(QuantileScore):
    """l(z, b) = w(z) |z - b|, twice the pinball loss at 1/2; answer the median of p_w.

    Args:
        weight: w, an object or a function of the target; None for 1.

    Examples:
        >>> from stakes import AbsoluteError
        >>> print(AbsoluteError()(3.0, 1.0))
        2.0
    """

    weight: WeightLike = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))

    @property
    def level(self) -> float:
        """1/2: the median."""
        return 0.5

    @property
    def unit(self) -> float:
        """2: twice the pinball loss."""
        return 2.0
