"""Mixtures of Gaussian beliefs: quick forms of squared error, exponential weights and Linex, and joint batches.

With t = (y - mu_s) / sd_s(y) and b = cov(z, y) / sd_s(y) under hypothesis s, z | y, s ~ N(m_s + b t, v_s - b^2). Labels
are even nodes y_j of each candidate, with r_sj = pi_s p_s(y_j) dy their masses under each hypothesis. Then

* squared error: EUR = sum_j p_j (sum_s (r_sj / p_j - pi_s) (m_s - m) + r_sj / p_j b t_sj)^2, with p_j = sum_s r_sj and
  m today's mean: a quadratic form in (m_s - m, b), whose matrix of 2 S rows all contexts of a candidate share.
* weights and transforms exp(c z): E_s[exp(c z) | y] = W_s exp(c b t - c^2 b^2 / 2) with W_s = E_s[exp(c z)]: along even
  nodes a geometric sequence, so that there are two exponentials for each hypothesis and pair, and products beyond that.

Candidates that even nodes do not serve (hypotheses of very different widths, labels that tell a target nearly exactly)
go by the general route, one by one.
Sizes: S hypotheses, n candidates of a block, M contexts, J nodes of a label.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import device
from scipy.special import ndtri
from scipy.stats import qmc

from stakes._utils.array import (
    Array,
    constant,
    density,
    double,
    filled,
    log_of,
    log_shortfall,
    log_sum,
    namespace,
    on_accelerator,
    on_host,
    ratio,
    replaced,
)
from stakes._utils.compute import has_jit, loop
from stakes.acquisition.forms import (
    Form,
    Reduction,
    find_form,
    prepare_general,
    register,
    resolve,
)
from stakes.acquisition.scores import best_of_knowing, blocks, log_scorer
from stakes.beliefs import GaussianMixtureBelief, WarpedGaussianBelief
from stakes.losses import AnyLoss, ExponentialWeight, Linex, SquaredError

_SPACING = 0.25  # of nodes, in the smallest standard deviation of a candidate's label: see `stakes.beliefs.mixture`
TAIL = 8.5
"""Standard deviations kept on each side of every hypothesis: the mass beyond is 2e-17."""
_MOST = 2048  # nodes of a candidate, beyond which the general route is quicker or safer
_LARGEST = 600.0  # exponents, within which products of two stay in the range of numbers
_STEEP = 2.0  # rate times b, up to which the usual spacing of nodes will do
_STEEPEST = 12.0  # rate times standard deviation, up to which exponentials are served here


class Nodes(NamedTuple):
    """Even nodes of the labels of some candidates."""

    start: Array
    """[n, S]: the first node in standard units t of each hypothesis"""
    step: Array
    """[n, S]: from one node to the next"""
    mass: Array
    """[n, J, S]: r_sj"""
    count: Array
    """[n]: how many nodes each candidate needs; the masses of the others are next to nothing"""
    served: Array
    """[n]: whether that is not too many"""

    def places(self) -> Array:
        """[n, J, S]: t at every node."""
        steps = constant(range(self.mass.shape[1]), self.mass)
        return self.start[:, None, :] + self.step[:, None, :] * steps[:, None]


def even_nodes(block: GaussianMixtureBelief, low: Array, high: Array, spacing: Array) -> Nodes:
    """Nodes from low to high [S, n], in standard units of each hypothesis, and no further apart than `spacing` [n]."""
    xp, mean = namespace(block.mean), double(block.candidate_mean)  # [S, n]
    sd, weights = xp.sqrt(double(block.candidate_variance)), double(block.weights)
    first, last = xp.min(mean + sd * low, axis=0), xp.max(mean + sd * high, axis=0)  # [n]
    wanted = xp.ceil((last - first) / (spacing * xp.min(sd, axis=0)))
    served = wanted <= _MOST
    count = xp.where(served, wanted, xp.ones_like(wanted)) + 1.0
    step = (last - first) / (count - 1.0)
    most = int(xp.max(count)) if count.shape[0] else 1
    y = first[:, None] + step[:, None] * constant(range(most), mean)  # [n, J]
    mean, sd = xp.permute_dims(mean, (1, 0)), xp.permute_dims(sd, (1, 0))  # [n, S]
    t = (y[..., None] - mean[:, None, :]) / sd[:, None, :]
    mass = (weights / sd * step[:, None])[:, None, :] * density(t)
    return Nodes((first[:, None] - mean) / sd, step[:, None] / sd, mass, count, served)


def slopes_of(block: GaussianMixtureBelief) -> Array:
    """[S, n, M]: b, the covariance of target and label over the standard deviation of the label."""
    sd = namespace(block.mean).sqrt(double(block.candidate_variance))
    return double(block.covariance) / sd[..., None]


Quick = Callable[[Any], tuple[Array, Array]]
"""From a block to reductions [n, M], and to whether each of its candidates [n] was served."""


def with_general_route(loss: Any, belief: GaussianMixtureBelief, quick: Quick, log_scale: Array) -> Reduction:
    """The reductions of `quick`, and those of the general route for candidates that it does not serve."""
    prepared: list[Reduction] = []

    def of(block: GaussianMixtureBelief) -> Array:
        xp = namespace(block.mean)
        found, served = quick(block)
        if not bool(xp.all(served)):
            if not prepared:
                prepared.append(prepare_general(loss, belief, resolve(loss, belief)))
            general, scale = prepared[0]
            rows = [found[n : n + 1, :] for n in range(block.n_candidates)]
            for n in np.flatnonzero(~on_host(served)).tolist():
                one = block.take(slice(n, n + 1), slice(None))
                rows[n] = general(one) * xp.exp(double(scale) - log_scale)
            found = xp.concat(rows, axis=0)
        return xp.astype(found, block.mean.dtype)

    return of, log_scale


def _squared_error(loss: SquaredError, belief: GaussianMixtureBelief) -> Reduction:
    xp, mean = namespace(belief.mean), double(belief.mean)  # [S, M]
    away = mean - xp.sum(double(belief.weights)[:, None] * mean, axis=0)  # [S, M]: m_s - m

    def quick(block: GaussianMixtureBelief) -> tuple[Array, Array]:
        shape = block.candidate_mean.shape
        tail = filled(shape, TAIL, block.mean)
        nodes = even_nodes(block, -tail, tail, filled(shape[1], _SPACING, block.mean))
        total = xp.sum(nodes.mass, axis=-1)  # [n, J]: p_j
        share = ratio(nodes.mass, total[..., None] + xp.zeros_like(nodes.mass))  # [n, J, S]
        root = xp.sqrt(total)[..., None]
        shifted, within = root * (share - double(block.weights)), root * share * nodes.places()
        shifted, within = (xp.permute_dims(each, (0, 2, 1)) for each in (shifted, within))  # [n, S, J]
        within_turned = xp.matrix_transpose(within)
        slopes = xp.permute_dims(slopes_of(block), (1, 0, 2))  # [n, S, M]
        pull = xp.matmul(xp.matmul(within, within_turned), slopes)
        pull = pull + 2.0 * xp.matmul(xp.matmul(within, xp.matrix_transpose(shifted)), away)
        between = xp.matmul(xp.matmul(shifted, xp.matrix_transpose(shifted)), away)
        found = xp.sum(pull * slopes, axis=1) + xp.sum(between * away, axis=1)
        return xp.where(found > 0, found, xp.zeros_like(found)), nodes.served  # below 0 by rounding only

    return with_general_route(loss, belief, quick, filled(belief.n_contexts, 0.0, belief.mean))


def _log_masses(belief: GaussianMixtureBelief, rate: float) -> Array:
    """[S, M]: log pi_s E_s[exp(rate z)]."""
    log_weights = log_of(double(belief.weights))[:, None]
    return log_weights + rate * double(belief.mean) + 0.5 * rate**2 * double(belief.variance)


def _shares(logs: Array) -> tuple[Array, Array]:
    """[M, S] and [M]: exp(logs [S, M]) over their sum, and the log of that."""
    total = log_sum(logs, axis=0)
    return namespace(logs).permute_dims(namespace(logs).exp(logs - total), (1, 0)), total


def _exponential_nodes(block: GaussianMixtureBelief, rates: tuple[float, ...]) -> tuple[Nodes, Array]:
    """Nodes wherever labels matter to weights exp(rate z), which move their mass by rate b; and b [S, n, M]."""
    xp, slopes = namespace(block.mean), slopes_of(block)
    largest, smallest = xp.max(slopes, axis=2), xp.min(slopes, axis=2)  # [S, n]
    ends = [rate * each for rate in rates for each in (largest, smallest)]
    low = xp.min(xp.stack([0.0 * largest, *ends]), axis=0) - TAIL
    high = xp.max(xp.stack([0.0 * largest, *ends]), axis=0) + TAIL
    steepest = xp.max(abs(xp.stack(ends)), axis=0)  # [S, n]
    apart = xp.max(steepest, axis=0) / _STEEP  # where hypotheses differ more in slope, they change places more quickly
    nodes = even_nodes(block, low, high, _SPACING / xp.where(apart > 1.0, apart, xp.ones_like(apart)))
    furthest = xp.maximum(abs(nodes.start), abs(nodes.start + nodes.step * (nodes.count - 1.0)[:, None]))  # [n, S]
    within = xp.max(xp.permute_dims(steepest, (1, 0)) * furthest, axis=1) < _LARGEST
    return nodes._replace(served=nodes.served & within), slopes


def _weighted_squared_error(loss: Any, belief: GaussianMixtureBelief) -> Reduction:
    xp, rate = namespace(belief.mean), float(loss.weight.rate)
    shares, log_scale = _shares(_log_masses(belief, rate))  # [M, S]
    answers = xp.permute_dims(double(belief.mean) + rate * double(belief.variance), (1, 0))  # [M, S]
    away = answers - xp.sum(shares * answers, axis=1, keepdims=True)
    shares = ratio(shares, double(belief.weights) + xp.zeros_like(shares))

    def quick(block: GaussianMixtureBelief) -> tuple[Array, Array]:
        nodes, slopes = _exponential_nodes(block, (rate,))
        slopes = xp.permute_dims(slopes, (1, 2, 0))  # [n, M, S]
        run = _squared_loop if runs_compiled(slopes) else _squared_steps
        return run(nodes, slopes, rate, shares, away), nodes.served

    return with_general_route(loss, belief, quick, log_scale)


def _linex(loss: Any, belief: GaussianMixtureBelief) -> Reduction:
    xp, rate = namespace(belief.mean), 0.0 if loss.weight is None else float(loss.weight.rate)
    other = rate - float(loss.alpha)
    masses, log_scale = _shares(_log_masses(belief, rate))  # of w
    others, _ = _shares(_log_masses(belief, other))  # of w T
    masses, others = (ratio(each, double(belief.weights) + xp.zeros_like(each)) for each in (masses, others))

    def quick(block: GaussianMixtureBelief) -> tuple[Array, Array]:
        nodes, slopes = _exponential_nodes(block, (rate, other))
        slopes = xp.permute_dims(slopes, (1, 2, 0))  # [n, M, S]
        run = _linex_loop if runs_compiled(slopes) else _linex_steps
        return run(nodes, slopes, (rate, other), masses, others), nodes.served

    return with_general_route(loss, belief, quick, log_scale)


def runs_compiled(array: Array) -> bool:
    """Whether compiled loops run on it: an array in the memory of the host."""
    return has_jit() and not on_accelerator(array)


def _growth(nodes: Nodes, slopes: Array, rate: float) -> tuple[Array, Array]:
    """[n, M, S] each: exp(rate b t - rate^2 b^2 / 2) at the first node, and by how much it grows to the next."""
    xp, x = namespace(slopes), rate * slopes
    return xp.exp(x * nodes.start[:, None, :] - 0.5 * x * x), xp.exp(x * nodes.step[:, None, :])


def _squared_steps(nodes: Nodes, slopes: Array, rate: float, shares: Array, away: Array) -> Array:
    """[n, M]: sum_j B_j^2 / A_j with A_j = E[w 1_j] and B_j = E[w (z - a) 1_j], a node at a time for all pairs."""
    xp, (heights, growth) = namespace(slopes), _growth(nodes, slopes, rate)
    heights, offset = heights * shares, away - rate * slopes**2 + slopes * nodes.start[:, None, :]
    step, total = slopes * nodes.step[:, None, :], 0.0 * slopes[..., 0]
    for j in range(nodes.mass.shape[1]):
        mass = heights * nodes.mass[:, j, None, :]
        first = xp.sum(mass, axis=-1)
        total = total + ratio(xp.sum(mass * offset, axis=-1) ** 2, first)
        heights, offset = heights * growth, offset + step
    return total


def _linex_steps(nodes: Nodes, slopes: Array, rates: tuple[float, float], masses: Array, others: Array) -> Array:
    """[n, M]: sum_j A_j (q - log(1 + q)) with 1 + q = B_j / A_j, a node at a time for all pairs."""
    xp, total = namespace(slopes), 0.0 * slopes[..., 0]
    (first, growth), (second, other_growth) = (_growth(nodes, slopes, rate) for rate in rates)
    first, second = first * masses, second * others
    for j in range(nodes.mass.shape[1]):
        mass = nodes.mass[:, j, None, :]
        weight, moment = xp.sum(first * mass, axis=-1), xp.sum(second * mass, axis=-1)
        both, zero = (weight > 0) & (moment > 0), xp.zeros_like(weight)
        large = both & ((moment > 2.0 * weight) | (weight > 2.0 * moment))  # whose ratio may be out of range
        excess = xp.where(both & ~large, ratio(moment - weight, weight), zero)
        logs = xp.where(large, log_of(moment), zero) - xp.where(large, log_of(weight), zero)
        whole = xp.where(large, moment - weight - weight * logs, xp.where(both, zero, moment))
        total = total + weight * log_shortfall(excess) + whole
        first, second = first * growth, second * other_growth
    return total


def _squared_loop(nodes: Nodes, slopes: Array, rate: float, shares: Array, away: Array) -> Array:
    """As `_squared_steps`, compiled."""
    found = np.zeros(slopes.shape[:2])
    _sum_squares(*for_loops(nodes, slopes), rate, packed(shares), packed(away), found)
    return constant(found, slopes)


def packed(array: Array) -> Any:
    """The array as loops take it."""
    return np.ascontiguousarray(on_host(array))


def for_loops(nodes: Nodes, slopes: Array) -> tuple[Any, Any, Any, Any, Any]:
    """Counts of nodes, none for candidates that are not served; starts, steps, masses and slopes."""
    counts = np.where(on_host(nodes.served), on_host(nodes.count), 0.0).astype(np.int64)
    return counts, packed(nodes.start), packed(nodes.step), packed(nodes.mass), packed(slopes)


@loop
def _sum_squares(
    counts: Any, start: Any, step: Any, mass: Any, slopes: Any, rate: float, shares: Any, away: Any, found: Any
) -> None:
    n_contexts, size = away.shape
    height, growth, offset, move = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for n in range(counts.shape[0]):
        for m in range(n_contexts):
            for s in range(size):
                b = slopes[n, m, s]
                x = rate * b
                growth[s] = np.exp(x * step[n, s])
                height[s] = shares[m, s] * np.exp(x * start[n, s] - 0.5 * x * x)
                offset[s] = away[m, s] - x * b + b * start[n, s]
                move[s] = b * step[n, s]
            total = 0.0
            for j in range(counts[n]):
                row, first, second = mass[n, j], 0.0, 0.0
                for s in range(size):
                    own = row[s] * height[s]
                    first += own
                    second += own * offset[s]
                    height[s] *= growth[s]
                    offset[s] += move[s]
                if first > 0.0:
                    total += second * second / first
            found[n, m] = total


def _linex_loop(nodes: Nodes, slopes: Array, rates: tuple[float, float], masses: Array, others: Array) -> Array:
    """As `_linex_steps`, compiled."""
    found = np.zeros(slopes.shape[:2])
    _sum_shortfalls(*for_loops(nodes, slopes), *rates, packed(masses), packed(others), found)
    return constant(found, slopes)


@loop
def _sum_shortfalls(
    counts: Any,
    start: Any,
    step: Any,
    mass: Any,
    slopes: Any,
    rate: float,
    other: float,
    masses: Any,
    others: Any,
    found: Any,
) -> None:
    n_contexts, size = masses.shape
    height, growth, second, pace = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for n in range(counts.shape[0]):
        for m in range(n_contexts):
            for s in range(size):
                x, z = rate * slopes[n, m, s], other * slopes[n, m, s]
                growth[s], pace[s] = np.exp(x * step[n, s]), np.exp(z * step[n, s])
                height[s] = masses[m, s] * np.exp(x * start[n, s] - 0.5 * x * x)
                second[s] = others[m, s] * np.exp(z * start[n, s] - 0.5 * z * z)
            total = 0.0
            for j in range(counts[n]):
                row, weight, moment = mass[n, j], 0.0, 0.0
                for s in range(size):
                    weight += row[s] * height[s]
                    moment += row[s] * second[s]
                    height[s] *= growth[s]
                    second[s] *= pace[s]
                total += _shortfall(weight, moment)
            found[n, m] = total


@loop
def _shortfall(weight: float, moment: float) -> Any:
    """A (r - log(1 + r)) with 1 + r = B / A, by its series near 0, and with no ratio that may be out of range."""
    if weight <= 0.0 or moment <= 0.0:
        return moment
    if moment > 2.0 * weight or weight > 2.0 * moment:
        return moment - weight - weight * (np.log(moment) - np.log(weight))
    r = (moment - weight) / weight
    if abs(r) >= 0.1:
        return weight * (r - np.log1p(r))
    total = 1.0 / 15.0
    for k in range(14, 1, -1):
        total = 1.0 / k - r * total
    return weight * r * r * total


def _gentle(loss: Any, belief: GaussianMixtureBelief) -> bool:
    """Whether exponentials of the target stay within the range of numbers."""
    rate = 0.0 if loss.weight is None else float(loss.weight.rate)
    other = rate - float(loss.alpha) if isinstance(loss, Linex) else rate
    largest = float(namespace(belief.mean).max(belief.variance))
    return max(abs(rate), abs(other)) * math.sqrt(largest) <= _STEEPEST


def numbers_of_slopes(loss: Any, belief: GaussianMixtureBelief) -> int:  # noqa: ARG001 (any loss)
    """Slopes, their products, and what is made of them for each hypothesis."""
    return 8 * belief.n_hypotheses


_FORM = Form("quadratic form over hypotheses", _squared_error, numbers_of_slopes)
register(SquaredError, None, GaussianMixtureBelief, _FORM)
_FORM = Form("exponentials along even labels", _weighted_squared_error, numbers_of_slopes, serves=_gentle)
register(SquaredError, ExponentialWeight, GaussianMixtureBelief, _FORM)
_FORM = Form("exponentials along even labels", _linex, numbers_of_slopes, serves=_gentle)
register(Linex, None, GaussianMixtureBelief, _FORM)
register(Linex, ExponentialWeight, GaussianMixtureBelief, _FORM)


# Joint batches

_SAMPLES, _FEWER_SAMPLES, _MANY_PAIRS = 128, 32, 2**17  # of the labels of a batch; fewer where pairs are many
_KNOWN = 1e-12  # of its variance: a label that is known from the batch tells no more
_LABEL_SPACING = 0.5  # of the labels of one candidate, in its smallest sd: what is left out is 1e-5 ..
_DECISION_SPACING = 0.125  # .. or, where decisions change between labels, a percent or less
_NOTHING = 1e-9  # probability of a label, over that of the most probable: the others are left out


class MixtureBatch:
    """Under a mixture of Gaussian beliefs: labels of the batch so far, and the mixture that each of them leaves.

    Given labels, each hypothesis is Gaussian still, with covariances that do not depend on them: what is left is a
    mixture with other means and weights, whose reductions are computed as ever. What labels are worth together is what
    the first is worth, and the second once the first is known, and so on. Labels of one candidate are the nodes of its
    rule; those of more are drawn from the mixture, the same for all candidates.
    """

    repeats: tuple[int, ...] = ()

    def __init__(
        self, loss: AnyLoss, belief: Any, log_weights: Array, rng: np.random.Generator, max_configurations: int
    ) -> None:
        self.loss, self.belief, self.rng, self.log_weights = loss, belief, rng, log_weights  # [M]
        latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
        assert isinstance(latent, GaussianMixtureBelief)
        self.left = _in_double(latent)  # variances and covariances once the labels are known
        xp, size, like = namespace(latent.mean), latent.n_hypotheses, self.left.mean
        self.candidates = filled((size, belief.n_candidates, 0), 0.0, like)  # [S, N, t]: covariances with the labels ..
        self.contexts = filled((size, belief.n_contexts, 0), 0.0, like)  # [S, M, t]: .. in standard units
        self.labels = filled((1, size, 0), 0.0, like)  # [Q, S, t]: in standard units, given those before
        self.log_shares = log_of(double(latent.weights))[None, :]  # [Q, S]: of hypotheses, given the labels
        self.mass = filled(1, 1.0, like)  # [Q]
        many = belief.n_candidates * belief.n_contexts > _MANY_PAIRS
        self.most = min(max_configurations, _FEWER_SAMPLES if many else _SAMPLES)
        largest = xp.max(self.left.candidate_variance, axis=0, keepdims=True)
        self.least = xp.broadcast_to(_KNOWN * largest, (size, belief.n_candidates))  # of labels that are known
        self.log_saved = filled(belief.n_contexts, -math.inf, like)  # [M]: of p(c) times what the labels save
        self.log_error, self.sampled = -math.inf, False

    @property
    def method(self) -> str:
        """Whether labels were enumerated or drawn."""
        return "sampled" if self.sampled else "enumerated"

    def log_joint(self) -> float:
        """The log of what the labels so far are worth."""
        return float(log_sum(self.log_saved))

    def log_contexts(self) -> Array:
        """[M]: the log of p(c) times what the labels so far save there."""
        return self.log_saved

    def log_most(self) -> Array:
        """[M]: the log of p(c) times what is saved there once the target is known."""
        return log_of(double(best_of_knowing(self.loss, self.belief))) + self.log_weights

    def log_reduction(self, candidate: int) -> float:
        """That of `log_reductions` for one candidate."""
        gains = log_sum(self._by_context(candidate) + log_of(self.mass)[:, None], axis=0)
        return float(np.logaddexp(self.log_joint(), float(log_sum(gains))))

    def log_reductions(self, count: int = 1, prices: Array | None = None) -> Array:
        """[N]: of what the labels so far are worth, and what that of each candidate adds to it."""
        assert count == 1
        gains = self._gains(self.loss, self._given)
        return log_sum(namespace(gains).stack([gains, self.log_joint() + namespace(gains).zeros_like(gains)]), axis=0)

    def variance_gains(self) -> Array:
        """[N]: E_c of the variance that each label removes of what is left."""
        return namespace(self.mass).exp(self._gains(SquaredError(), self._latent))

    def add(self, candidate: int) -> float:
        """Condition on the candidate's label: on each of its nodes, or on one that is drawn for the labels so far."""
        xp, each = namespace(self.mass), self._by_context(candidate)  # [Q, M]
        if self.sampled:
            self.log_error = float(np.logaddexp(self.log_error, 2.0 * _log_standard_error(log_sum(each, axis=1))))
        gains = log_sum(each + log_of(self.mass)[:, None], axis=0)
        self.log_saved = log_sum(xp.stack([self.log_saved, gains]), axis=0)
        sd = xp.sqrt(self.left.candidate_variance[:, candidate])  # [S]
        nodes = self._nodes_of(candidate) if self.labels.shape[2] == 0 else None
        if nodes is None:
            self._resample()
            y = self._drawn(self._means(candidate), sd)
        else:
            y, self.mass = nodes
        step = (y[:, None] - self._means(candidate)) / sd  # [Q, S]
        logs = self.log_shares - 0.5 * step**2 - xp.log(sd)
        self.log_shares = logs - log_sum(logs)[:, None]
        before = xp.broadcast_to(self.labels, (step.shape[0], *self.labels.shape[1:]))
        self.labels = xp.concat([before, step[..., None]], axis=2)
        self._condition(candidate, sd)
        return math.exp(0.5 * self.log_error - self.log_joint()) if self.log_error > -math.inf else 0.0

    def _gains(self, loss: AnyLoss, given: Callable[[int], Any]) -> Array:
        """[N]: the log of what one more label saves, averaged over the labels so far."""
        xp, rows, weights = namespace(self.mass), [], namespace(self.mass).exp(self.log_weights)
        for q in range(self.mass.shape[0]):
            left = given(q)
            rows.append(log_scorer(find_form(loss, left), loss, left, weights)(left))
        return log_sum(xp.stack(rows, axis=0) + log_of(self.mass)[:, None], axis=0)

    def _by_context(self, candidate: int) -> Array:
        """[Q, M]: the log of p(c) times what the label of one candidate saves there, given each of the labels."""
        xp, rows = namespace(self.mass), []
        for q in range(self.mass.shape[0]):
            one = self._given(q).take(slice(candidate, candidate + 1), slice(None))
            parts = blocks(find_form(self.loss, one), self.loss, one, None)
            logs = [log_of(double(next(each)()[0, :])) + double(log_scale) for _, log_scale, each in parts]
            rows.append(xp.concat(logs) + self.log_weights)
        return xp.stack(rows, axis=0)

    def _latent(self, q: int) -> GaussianMixtureBelief:
        """The mixture that is left by labels q."""
        xp, steps = namespace(self.mass), self.labels[q, ..., None]  # [S, t, 1]
        return replaced(
            self.left,
            mean=self.left.mean + xp.matmul(self.contexts, steps)[..., 0],
            candidate_mean=self.left.candidate_mean + xp.matmul(self.candidates, steps)[..., 0],
            weights=xp.exp(self.log_shares[q, :]),
            _known={"checked": self.left.hypothesis(0)},
        )

    def _given(self, q: int) -> Any:
        """The belief that is left by labels q."""
        latent = self._latent(q)
        return replaced(self.belief, latent=latent) if isinstance(self.belief, WarpedGaussianBelief) else latent

    def _means(self, candidate: int) -> Array:
        """[Q, S]: of the candidate's label, given the labels so far."""
        moved = namespace(self.mass).sum(self.candidates[:, candidate, :] * self.labels, axis=2)
        return self.left.candidate_mean[:, candidate] + moved

    def _nodes_of(self, candidate: int) -> tuple[Array, Array] | None:
        """[Q], [Q]: labels of one candidate and their probabilities; None where they would be many."""
        one, xp = self.left.take(slice(candidate, candidate + 1), slice(None)), namespace(self.mass)
        tail = filled((one.n_hypotheses, 1), TAIL, one.mean)
        spacing = _DECISION_SPACING if self.loss.finite_actions else _LABEL_SPACING
        while spacing <= _LABEL_SPACING:
            nodes = even_nodes(one, -tail, tail, filled(1, spacing, one.mean))
            mass = xp.sum(nodes.mass[0, ...], axis=1)  # [J]
            kept = xp.nonzero(mass > _NOTHING * xp.max(mass))[0]
            if bool(nodes.served[0]) and kept.shape[0] <= 2 * self.most:
                break
            spacing *= 2.0
        else:
            return None
        y = one.candidate_mean[0, 0] + xp.sqrt(one.candidate_variance[0, 0]) * nodes.places()[0, :, 0]
        mass = xp.take(mass, kept)
        return xp.take(y, kept), mass / xp.sum(mass)

    def _resample(self) -> None:
        """As many labels as are drawn, each as often as it is probable."""
        xp, count = namespace(self.mass), self.most
        if not self.sampled:
            ends = np.cumsum(on_host(self.mass))
            places = (np.arange(count) + self.rng.uniform()) / count
            drawn = np.minimum(np.searchsorted(ends / ends[-1], places), len(ends) - 1)
            rows = xp.asarray(drawn, device=device(self.mass))
            self.labels, self.log_shares = (xp.take(each, rows, axis=0) for each in (self.labels, self.log_shares))
        self.mass, self.sampled = filled(count, 1.0 / count, self.mass), True

    def _drawn(self, mean: Array, sd: Array) -> Array:
        """[Q]: a label for each, from the mixture with means [Q, S]: even parts of its probability, in any order."""
        count = mean.shape[0]
        even = qmc.Sobol(2, rng=self.rng).random_base2(math.ceil(math.log2(count)))[:count]
        first, second = np.clip(even[self.rng.permutation(count)], 1e-12, 1.0 - 1e-12).T
        ends = np.cumsum(np.exp(on_host(self.log_shares)), axis=1)  # [Q, S]
        which = np.minimum((ends < first[:, None] * ends[:, -1:]).sum(axis=1), ends.shape[1] - 1)
        y = on_host(mean)[np.arange(count), which] + on_host(sd)[which] * ndtri(second)
        return constant(y, mean)

    def _condition(self, candidate: int, sd: Array) -> None:
        """Covariances given the label of the candidate, with standard deviations sd [S] until then."""
        xp, left, rows = namespace(self.mass), self.left, self.left.candidate_covariance
        assert rows is not None
        row = double(rows(candidate) if callable(rows) else rows[:, candidate, :])  # [S, N]
        explained = xp.matmul(self.candidates, self.candidates[:, candidate, :, None])[..., 0]
        loading = (row - explained) / sd[:, None]  # [S, N]
        share = left.covariance[:, candidate, :] / sd[:, None]  # [S, M]
        rest = left.candidate_variance - loading**2
        known = rest <= self.least
        covariance = left.covariance - loading[..., None] * share[:, None, :]
        variance = left.variance - share**2
        self.left = replaced(
            left,
            variance=xp.where(variance > 0, variance, xp.zeros_like(variance)),
            candidate_variance=xp.where(known, self.least, rest),
            covariance=xp.where(known[..., None], xp.zeros_like(covariance), covariance),
        )
        self.candidates = xp.concat([self.candidates, loading[..., None]], axis=2)
        self.contexts = xp.concat([self.contexts, share[..., None]], axis=2)


def _log_standard_error(logs: Array) -> float:
    """The log of the standard error of the mean of exp(logs) [Q], as if they had been drawn independently."""
    xp = namespace(logs)
    if not bool(xp.any(logs > -math.inf)):
        return -math.inf
    values = xp.exp(logs - xp.max(logs))
    error = float(xp.std(values, correction=1)) / math.sqrt(values.shape[0])
    return math.log(error) + float(xp.max(logs)) if error > 0 else -math.inf


def _in_double(latent: GaussianMixtureBelief) -> GaussianMixtureBelief:
    """The mixture in double precision: gains are differences of what may differ little."""
    fields = ("mean", "variance", "candidate_mean", "candidate_variance", "covariance")
    known = {"checked": latent.hypothesis(0)}
    return replaced(latent, **{each: double(getattr(latent, each)) for each in fields}, _known=known)
