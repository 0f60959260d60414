"""Mixtures of Gaussian beliefs, quickly: squared error, exponential weights, Linex and threshold decisions.

With t = (y - mu_s) / sd_s(y) and b = cov(z, y) / sd_s(y) under hypothesis s, z | y, s ~ N(m_s + b t, v_s - b^2). Labels
are even nodes y_j of each candidate, with r_sj = pi_s p_s(y_j) dy their masses under each hypothesis. Then

* squared error: EUR = sum_j p_j (sum_s (r_sj / p_j - pi_s) (m_s - m) + r_sj / p_j b t_sj)^2, with p_j = sum_s r_sj and
  m today's mean: a quadratic form in (m_s - m, b), whose matrix of 2 S rows all contexts of a candidate share.
* weights and transforms exp(c z): E_s[exp(c z) | y] = W_s exp(c b t - c^2 b^2 / 2) with W_s = E_s[exp(c z)]: along even
  nodes a geometric sequence, so that there are two exponentials for each hypothesis and pair, and products beyond that.
* threshold decisions: the excess f_j of what waiting costs over what acting costs, or of the opposite where we would act
  today, has one normal probability for each node and hypothesis, from a table. EUR is the integral of its positive
  part: the sum over nodes, with corrections from a polynomial of degree 9 where f changes its sign.

Candidates that even nodes do not serve (hypotheses of very different widths, labels that tell a target nearly exactly)
go by the general route, one by one.
Sizes: S hypotheses, n candidates of a block, M contexts, J nodes of a label.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

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
    on_host,
    ratio,
)
from stakes._utils.compute import has_jit, loop
from stakes.acquisition.forms import Form, Reduction, prepare_general, register, resolve
from stakes.beliefs import GaussianMixtureBelief
from stakes.losses import ExponentialWeight, Linex, SquaredError, ThresholdDecision

_SPACING = 0.25  # of nodes, in the smallest standard deviation of a candidate's label: see `stakes.beliefs.mixture`
_TAIL = 8.5  # standard deviations kept on each side of every hypothesis: the mass beyond is 2e-17
_MOST = 1024  # nodes of a candidate, beyond which the general route is quicker or safer
_LARGEST = 600.0  # exponents, within which products of two stay in the range of numbers
_STEEPEST = 12.0  # rate times standard deviation, up to which exponentials are served here


class _Nodes(NamedTuple):
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


def _nodes(block: GaussianMixtureBelief, low: Array, high: Array, spacing: Array) -> _Nodes:
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
    return _Nodes((first[:, None] - mean) / sd, step[:, None] / sd, mass, count, served)


def _slopes(block: GaussianMixtureBelief) -> Array:
    """[S, n, M]: b, the covariance of target and label over the standard deviation of the label."""
    sd = namespace(block.mean).sqrt(double(block.candidate_variance))
    return double(block.covariance) / sd[..., None]


Quick = Callable[[Any], tuple[Array, Array]]
"""From a block to reductions [n, M], and to whether each of its candidates [n] was served."""


def _with_general_route(loss: Any, belief: GaussianMixtureBelief, quick: Quick, log_scale: Array) -> Reduction:
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
        tail = filled(shape, _TAIL, block.mean)
        nodes = _nodes(block, -tail, tail, filled(shape[1], _SPACING, block.mean))
        total = xp.sum(nodes.mass, axis=-1)  # [n, J]: p_j
        share = ratio(nodes.mass, total[..., None] + xp.zeros_like(nodes.mass))  # [n, J, S]
        root = xp.sqrt(total)[..., None]
        told, within = root * (share - double(block.weights)), root * share * nodes.places()
        told, within = (xp.permute_dims(each, (0, 2, 1)) for each in (told, within))  # [n, S, J]
        within_turned = xp.matrix_transpose(within)
        slopes = xp.permute_dims(_slopes(block), (1, 0, 2))  # [n, S, M]
        pull = xp.matmul(xp.matmul(within, within_turned), slopes)
        pull = pull + 2.0 * xp.matmul(xp.matmul(within, xp.matrix_transpose(told)), away)
        between = xp.matmul(xp.matmul(told, xp.matrix_transpose(told)), away)
        found = xp.sum(pull * slopes, axis=1) + xp.sum(between * away, axis=1)
        return xp.where(found > 0, found, xp.zeros_like(found)), nodes.served  # below 0 by rounding only

    return _with_general_route(loss, belief, quick, filled(belief.n_contexts, 0.0, belief.mean))


def _log_masses(belief: GaussianMixtureBelief, rate: float) -> Array:
    """[S, M]: log pi_s E_s[exp(rate z)]."""
    log_weights = log_of(double(belief.weights))[:, None]
    return log_weights + rate * double(belief.mean) + 0.5 * rate**2 * double(belief.variance)


def _shares(logs: Array) -> tuple[Array, Array]:
    """[M, S] and [M]: exp(logs [S, M]) over pi_s and over their sum, with which masses are multiplied; the log of it."""
    total = log_sum(logs, axis=0)
    return namespace(logs).permute_dims(namespace(logs).exp(logs - total), (1, 0)), total


def _exponential_nodes(block: GaussianMixtureBelief, rates: tuple[float, ...]) -> tuple[_Nodes, Array]:
    """Nodes wherever labels matter to weights exp(rate z), which move their mass by rate b; and b [S, n, M]."""
    xp, slopes = namespace(block.mean), _slopes(block)
    largest, smallest = xp.max(slopes, axis=2), xp.min(slopes, axis=2)  # [S, n]
    ends = [rate * each for rate in rates for each in (largest, smallest)]
    low = xp.min(xp.stack([0.0 * largest, *ends]), axis=0) - _TAIL
    high = xp.max(xp.stack([0.0 * largest, *ends]), axis=0) + _TAIL
    nodes = _nodes(block, low, high, filled(block.n_candidates, _SPACING, block.mean))
    furthest = xp.maximum(abs(nodes.start), abs(nodes.start + nodes.step * (nodes.count - 1.0)[:, None]))  # [n, S]
    steepest = xp.permute_dims(xp.max(abs(xp.stack(ends)), axis=0), (1, 0))
    within = xp.max(steepest * furthest, axis=1) < _LARGEST
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
        run = _squared_loop if _runs(slopes) else _squared_steps
        return run(nodes, slopes, rate, shares, away), nodes.served

    return _with_general_route(loss, belief, quick, log_scale)


def _linex(loss: Any, belief: GaussianMixtureBelief) -> Reduction:
    xp, rate = namespace(belief.mean), 0.0 if loss.weight is None else float(loss.weight.rate)
    other = rate - float(loss.alpha)
    masses, log_scale = _shares(_log_masses(belief, rate))  # of w
    others, _ = _shares(_log_masses(belief, other))  # of w T
    masses, others = (ratio(each, double(belief.weights) + xp.zeros_like(each)) for each in (masses, others))

    def quick(block: GaussianMixtureBelief) -> tuple[Array, Array]:
        nodes, slopes = _exponential_nodes(block, (rate, other))
        slopes = xp.permute_dims(slopes, (1, 2, 0))  # [n, M, S]
        run = _linex_loop if _runs(slopes) else _linex_steps
        return run(nodes, slopes, (rate, other), masses, others), nodes.served

    return _with_general_route(loss, belief, quick, log_scale)


def _runs(array: Array) -> bool:
    """Whether compiled loops run on it."""
    return has_jit() and isinstance(array, np.ndarray)


def _growth(nodes: _Nodes, slopes: Array, rate: float) -> tuple[Array, Array]:
    """[n, M, S] each: exp(rate b t - rate^2 b^2 / 2) at the first node, and by how much it grows to the next."""
    xp, x = namespace(slopes), rate * slopes
    return xp.exp(x * nodes.start[:, None, :] - 0.5 * x * x), xp.exp(x * nodes.step[:, None, :])


def _squared_steps(nodes: _Nodes, slopes: Array, rate: float, shares: Array, away: Array) -> Array:
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


def _linex_steps(nodes: _Nodes, slopes: Array, rates: tuple[float, float], masses: Array, others: Array) -> Array:
    """[n, M]: sum_j A_j (q - log(1 + q)) with 1 + q = B_j / A_j, a node at a time for all pairs."""
    xp, total = namespace(slopes), 0.0 * slopes[..., 0]
    (first, growth), (second, other_growth) = (_growth(nodes, slopes, rate) for rate in rates)
    first, second = first * masses, second * others
    for j in range(nodes.mass.shape[1]):
        mass = nodes.mass[:, j, None, :]
        weight, moment = xp.sum(first * mass, axis=-1), xp.sum(second * mass, axis=-1)
        told = (weight > 0) & (moment > 0)
        excess = xp.where(told, ratio(moment - weight, weight), xp.zeros_like(weight))
        total = total + weight * log_shortfall(excess)
        first, second = first * growth, second * other_growth
    return total


def _squared_loop(nodes: _Nodes, slopes: Array, rate: float, shares: Array, away: Array) -> Array:
    """As `_squared_steps`, compiled."""
    found = np.zeros(slopes.shape[:2])
    counts = np.where(nodes.served, nodes.count, 0.0).astype(np.int64)
    arrays = (nodes.start, nodes.step, np.ascontiguousarray(nodes.mass), np.ascontiguousarray(slopes))
    _sum_squares(counts, *arrays, rate, np.ascontiguousarray(shares), np.ascontiguousarray(away), found)
    return found


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


def _linex_loop(nodes: _Nodes, slopes: Array, rates: tuple[float, float], masses: Array, others: Array) -> Array:
    """As `_linex_steps`, compiled."""
    found = np.zeros(slopes.shape[:2])
    counts = np.where(nodes.served, nodes.count, 0.0).astype(np.int64)
    arrays = (nodes.start, nodes.step, np.ascontiguousarray(nodes.mass), np.ascontiguousarray(slopes))
    _sum_shortfalls(counts, *arrays, *rates, np.ascontiguousarray(masses), np.ascontiguousarray(others), found)
    return found


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
                if weight > 0.0 and moment > 0.0:
                    total += weight * _shortfall((moment - weight) / weight)
            found[n, m] = total


@loop
def _shortfall(r: float) -> float:
    """r - log(1 + r), by its series near 0."""
    if abs(r) >= 0.1:
        return r - np.log1p(r)
    total = 1.0 / 15.0
    for k in range(14, 1, -1):
        total = 1.0 / k - r * total
    return r * r * total


def _gentle(loss: Any, belief: GaussianMixtureBelief) -> bool:
    """Whether exponentials of the target stay within the range of numbers."""
    rate = 0.0 if loss.weight is None else float(loss.weight.rate)
    other = rate - float(loss.alpha) if isinstance(loss, Linex) else rate
    largest = float(namespace(belief.mean).max(belief.variance))
    return max(abs(rate), abs(other)) * math.sqrt(largest) <= _STEEPEST


def _numbers(loss: Any, belief: GaussianMixtureBelief) -> int:  # noqa: ARG001 (any loss)
    """Slopes, their products, and what is made of them for each hypothesis."""
    return 8 * belief.n_hypotheses


_FORM = Form("quadratic form over hypotheses", _squared_error, _numbers)
register(SquaredError, None, GaussianMixtureBelief, _FORM)
_FORM = Form("exponentials along even labels", _weighted_squared_error, _numbers, serves=_gentle)
register(SquaredError, ExponentialWeight, GaussianMixtureBelief, _FORM)
_FORM = Form("exponentials along even labels", _linex, _numbers, serves=_gentle)
register(Linex, None, GaussianMixtureBelief, _FORM)
register(Linex, ExponentialWeight, GaussianMixtureBelief, _FORM)


# Threshold decisions

_RESOLVED = 0.22  # spacing of nodes, in the width of a density times a normal probability, that a polynomial resolves
_EXTREME = 1e-4  # share of a cost, below which a table of probabilities is too rough
_PER_UNIT, _END = 128, 8.5  # entries of the table of normal probabilities, and where it ends
_TABLE = np.arange(-_END, _END + 0.5 / _PER_UNIT, 1.0 / _PER_UNIT)
_PROBABILITY, _DENSITY = ndtr(_TABLE), np.exp(-0.5 * _TABLE**2) / math.sqrt(2.0 * math.pi)
_BEFORE, _SIZE = 4, 10  # nodes before a change of sign, and in all, through which there is a polynomial
_COEFFICIENTS = np.linalg.inv(np.vander(np.arange(_SIZE) - float(_BEFORE), increasing=True))  # values to coefficients
_LEGENDRE = np.stack(leggauss(8))  # [2, 8]
_BERNOULLI = np.array([1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760])  # B_2k / 2k


def _threshold(loss: ThresholdDecision, belief: GaussianMixtureBelief) -> Reduction:
    mean = np.ascontiguousarray(double(belief.mean).T) - loss.threshold  # [M, S]
    variance = np.ascontiguousarray(double(belief.variance).T)

    def quick(block: GaussianMixtureBelief) -> tuple[Array, Array]:
        slopes = np.ascontiguousarray(np.transpose(_slopes(block), (1, 2, 0)))  # [n, M, S]
        tail = filled(block.candidate_mean.shape, _TAIL, block.mean)
        steepest = _steepest(slopes, variance)  # [n]
        nodes = _nodes(block, -tail, tail, _RESOLVED / np.sqrt(1.0 + steepest**2))
        counts = np.where(nodes.served, nodes.count, 0.0).astype(np.int64)
        found, costs = np.zeros(slopes.shape[:2]), (float(loss.miss), float(loss.false_alarm))
        mass = np.ascontiguousarray(nodes.mass)
        _sum_decisions(counts, nodes.start, nodes.step, mass, slopes, mean, variance, *costs, found)
        return found, nodes.served

    return _with_general_route(loss, belief, quick, filled(belief.n_contexts, 0.0, belief.mean))


@loop
def _steepest(slopes: Any, variance: Any) -> Any:
    """[n]: the largest b / sqrt(v - b^2), by which the layer of a probability is narrower than the density of t."""
    found = np.zeros(slopes.shape[0])
    for n in range(slopes.shape[0]):
        largest = 0.0
        for m in range(slopes.shape[1]):
            for s in range(slopes.shape[2]):
                squared = slopes[n, m, s] * slopes[n, m, s]
                largest = max(largest, squared / max(variance[m, s] - squared, 1e-12 * squared + 1e-300))
        found[n] = np.sqrt(largest)
    return found


@loop
def _sum_decisions(
    counts: Any,
    start: Any,
    step: Any,
    mass: Any,
    slopes: Any,
    mean: Any,
    variance: Any,
    miss: float,
    false_alarm: float,
    found: Any,
) -> None:
    n_contexts, size = mean.shape
    place, move, excess, sums = np.empty(size), np.empty(size), np.empty(mass.shape[1]), np.empty(mass.shape[1])
    for n in range(counts.shape[0]):
        widest = np.max(step[n])
        for m in range(n_contexts):
            steepest = 0.0
            for s in range(size):
                b = slopes[n, m, s]
                rest = np.sqrt(max(variance[m, s] - b * b, 1e-300))
                place[s] = (mean[m, s] + b * start[n, s]) / rest
                move[s] = b * step[n, s] / rest
                steepest = max(steepest, move[s] * move[s])
            stride = 1
            while 4 * stride * stride * (steepest + widest * widest) <= _RESOLVED * _RESOLVED:
                stride *= 2
            count, total = (counts[n] + stride - 1) // stride, 0.0
            for s in range(size):
                place[s] = (place[s] + _END) * _PER_UNIT
                move[s] *= stride * _PER_UNIT
            for j in range(count):
                row, act, whole = mass[n, stride * j], 0.0, 0.0
                for s in range(size):
                    act += row[s] * _normal_below(place[s])
                    whole += row[s]
                    place[s] += move[s]
                excess[j] = (miss + false_alarm) * act - false_alarm * whole
                sums[j] = whole
                total += excess[j]
            found[n, m] = stride * _positive_part(excess[:count], sums[:count], -1.0 if total > 0.0 else 1.0)


@loop
def _normal_below(place: float) -> float:
    """P(U < u) for u at a place of the table, by the Taylor series around the nearest entry."""
    place = min(max(place, 0.0), 2.0 * _END * _PER_UNIT)
    i = int(place + 0.5)
    away, u = (place - i) / _PER_UNIT, i / _PER_UNIT - _END
    return _PROBABILITY[i] + _DENSITY[i] * away * (1.0 - 0.5 * away * (u + away * (1.0 - u * u) / 3.0))


@loop
def _positive_part(values: Any, whole: Any, sign: float) -> float:
    """The integral of the positive part of sign times a smooth function, in spacings of its values at even nodes."""
    count, total = values.shape[0], 0.0
    for j in range(count):
        total += max(sign * values[j], 0.0)
        first, last = j - _BEFORE, j - _BEFORE + _SIZE - 1
        if first < 0 or last >= count or not whole[first] > 0.0 or not whole[last] > 0.0:
            continue
        here, after, before = sign * values[j], sign * values[j + 1], sign * values[j - 1]
        if (here > 0.0) != (after > 0.0):
            total += _at_crossing(values, whole, j, sign, after > 0.0)
        elif abs(here) <= abs(after) and abs(here) < abs(before) and (before > 0.0) == (here > 0.0):
            bend, slope = before - 2.0 * here + after, (after - before) / 2.0
            if (here - 0.5 * slope * slope / bend) * here < 0.0:  # it comes and goes between nodes
                total += _of_dip(values, whole, j, sign, -slope / bend)
    return total


@loop
def _local(values: Any, whole: Any, j: int, sign: float) -> Any:
    """[11]: the values around j as a polynomial times exp(a u), with a in the last place.

    So that the polynomial resolves what is left also far out, where the density falls quickly.
    """
    found, first = np.zeros(_SIZE + 1), j - _BEFORE
    found[_SIZE] = np.log(whole[first + _SIZE - 1] / whole[first]) / (_SIZE - 1)
    for k in range(_SIZE):
        value = sign * values[first + k] * np.exp(-found[_SIZE] * (k - _BEFORE))
        for i in range(_SIZE):
            found[i] += _COEFFICIENTS[i, k] * value
    return found


@loop
def _polynomial(c: Any, u: float) -> float:
    total = 0.0
    for k in range(_SIZE - 1, -1, -1):
        total = total * u + c[k]
    return total


@loop
def _integral(c: Any, low: float, high: float) -> float:
    """That of the polynomial times exp(a u), by Gauss and Legendre."""
    total, half, middle = 0.0, 0.5 * (high - low), 0.5 * (high + low)
    for k in range(8):
        u = middle + half * _LEGENDRE[0, k]
        total += _LEGENDRE[1, k] * _polynomial(c, u) * np.exp(c[_SIZE] * u)
    return total * half


@loop
def _root(c: Any, low: float, high: float) -> float:
    """Where the polynomial changes its sign between low and high; what is off costs only its square."""
    at_low = _polynomial(c, low) > 0.0
    for _ in range(24):
        middle = 0.5 * (low + high)
        if (_polynomial(c, middle) > 0.0) == at_low:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@loop
def _at_crossing(values: Any, whole: Any, j: int, sign: float, rises: bool) -> float:
    """What the sum of positive values lacks where there is a change of sign between j and j + 1.

    The positive side from there to its first node, and from that on the formula of Euler and Maclaurin.
    """
    c, end = _local(values, whole, j, sign), 1.0 if rises else 0.0
    place = _root(c, 0.0, 1.0)
    correction = _end_of_sum(c, end) * np.exp(c[_SIZE] * end)
    if rises:
        return _integral(c, place, 1.0) - 0.5 * sign * values[j + 1] + correction
    return _integral(c, 0.0, place) - 0.5 * sign * values[j] - correction


@loop
def _end_of_sum(c: Any, end: float) -> float:
    """sum_k B_2k / 2k f_(2k - 1) of the Taylor coefficients f of the function at `end`, over exp(a end)."""
    shifted, series, total = np.zeros(12), np.zeros(12), 0.0
    for k in range(_SIZE):
        shifted[k] = c[k]
    for i in range(_SIZE - 1 if end != 0.0 else 0):  # the polynomial around `end`, by Horner's rule again and again
        for k in range(_SIZE - 2, i - 1, -1):
            shifted[k] += end * shifted[k + 1]
    series[0] = 1.0
    for k in range(1, 12):
        series[k] = c[_SIZE] * series[k - 1] / k
    for i in range(6):
        value, order = 0.0, 2 * i + 1
        for k in range(min(order, _SIZE - 1) + 1):
            value += shifted[k] * series[order - k]
        total += _BERNOULLI[i] * value
    return total


@loop
def _of_dip(values: Any, whole: Any, j: int, sign: float, vertex: float) -> float:
    """What the sum of positive values lacks where the sign changes twice near j."""
    c = _local(values, whole, j, sign)
    vertex = min(max(vertex, -1.0), 1.0)
    if (_polynomial(c, vertex) > 0.0) == (c[0] > 0.0):
        return 0.0
    return abs(_integral(c, _root(c, -1.0, vertex), _root(c, vertex, 1.0)))


def _tabulates(loss: ThresholdDecision, belief: GaussianMixtureBelief) -> bool:
    """Whether loops run, and a table of probabilities tells the smaller cost."""
    least = min(loss.miss, loss.false_alarm) / (loss.miss + loss.false_alarm)
    return _runs(belief.mean) and least >= _EXTREME


_FORM = Form("normal probabilities along even labels", _threshold, _numbers, serves=_tabulates)
register(ThresholdDecision, None, GaussianMixtureBelief, _FORM)
