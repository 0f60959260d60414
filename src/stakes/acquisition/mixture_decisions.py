"""Threshold decisions under mixtures of Gaussian beliefs, quickly.

The excess f_j of what waiting costs over what acting costs, or the opposite where we would act today, has one normal
probability for each node y_j of the label and each hypothesis, from a table. EUR is the integral of its positive part:
the sum over nodes, with corrections from a polynomial of degree 9 where f changes its sign.
Sizes: S hypotheses, n candidates of a block, M contexts, J nodes of a label.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr

from stakes._utils.array import Array, constant, double, filled, namespace
from stakes._utils.compute import loop
from stakes.acquisition.forms import Form, Reduction, register
from stakes.acquisition.mixtures import (
    TAIL,
    even_nodes,
    for_loops,
    numbers_of_slopes,
    packed,
    runs_compiled,
    slopes_of,
    with_general_route,
)
from stakes.beliefs import GaussianMixtureBelief, WarpedGaussianBelief
from stakes.losses import ThresholdDecision

RESOLVED = 0.19
"""Spacing of nodes, in the width of a density times a normal probability, that a polynomial resolves."""
_EXTREME = 1e-4  # share of a cost, below which a table of probabilities is too rough
_PER_UNIT, _END = 128, 8.5  # entries of the table of normal probabilities, and where it ends
_TABLE = np.arange(-_END, _END + 0.5 / _PER_UNIT, 1.0 / _PER_UNIT)
_PROBABILITY, _DENSITY = ndtr(_TABLE), np.exp(-0.5 * _TABLE**2) / math.sqrt(2.0 * math.pi)
_BEFORE, _SIZE = 4, 10  # nodes before a change of sign, and in all, through which there is a polynomial
_COEFFICIENTS = np.linalg.inv(np.vander(np.arange(_SIZE) - float(_BEFORE), increasing=True))  # values to coefficients
_LEGENDRE = np.stack(leggauss(8))  # [2, 8]
_BERNOULLI = np.array([1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760])  # B_2k / 2k


def _threshold(loss: ThresholdDecision, belief: GaussianMixtureBelief) -> Reduction:
    xp = namespace(belief.mean)
    mean, variance = packed(double(belief.mean).T) - loss.threshold, packed(double(belief.variance).T)  # [M, S]

    def quick(block: GaussianMixtureBelief) -> tuple[Array, Array]:
        slopes = packed(xp.permute_dims(slopes_of(block), (1, 2, 0)))  # [n, M, S]
        tail = filled(block.candidate_mean.shape, TAIL, block.mean)
        spacing = RESOLVED / np.sqrt(1.0 + _steepest(slopes, variance) ** 2)  # [n]
        nodes = even_nodes(block, -tail, tail, constant(spacing, tail))
        found, costs = np.zeros(slopes.shape[:2]), (float(loss.miss), float(loss.false_alarm))
        _sum_decisions(*for_loops(nodes, slopes), mean, variance, *costs, found)
        return constant(found, tail), nodes.served

    return with_general_route(loss, belief, quick, filled(belief.n_contexts, 0.0, belief.mean))


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
            while 4 * stride * stride * (steepest + widest * widest) <= RESOLVED * RESOLVED:
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
            found[n, m] = stride * positive_part(excess[:count], sums[:count], -1.0 if total > 0.0 else 1.0)


@loop
def _normal_below(place: float) -> Any:
    """P(U < u) for u at a place of the table, by the Taylor series around the nearest entry."""
    place = min(max(place, 0.0), 2.0 * _END * _PER_UNIT)
    i = int(place + 0.5)
    away, u = (place - i) / _PER_UNIT, i / _PER_UNIT - _END
    return _PROBABILITY[i] + _DENSITY[i] * away * (1.0 - 0.5 * away * (u + away * (1.0 - u * u) / 3.0))


@loop
def positive_part(values: Any, whole: Any, sign: float) -> float:
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
def _at_crossing(values: Any, whole: Any, j: int, sign: float, rises: bool) -> Any:
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
    return runs_compiled(belief.mean) and least >= _EXTREME


_FORM = Form("normal probabilities along even labels", _threshold, numbers_of_slopes, serves=_tabulates)
register(ThresholdDecision, None, GaussianMixtureBelief, _FORM)


def _warped_threshold(loss: ThresholdDecision, belief: WarpedGaussianBelief) -> Reduction:
    """The same with the threshold in units of the latent f; nothing to decide where the warp does not reach it."""
    latent, places = belief.latent, belief.unwarped(loss).breakpoints
    assert isinstance(latent, GaussianMixtureBelief)
    if not places:
        zero = filled(belief.n_contexts, 0.0, belief.like)
        return lambda block: zero + 0.0 * block.latent.covariance[0, ...], zero
    of, log_scale = _threshold(ThresholdDecision(places[0], loss.miss, loss.false_alarm), latent)
    return lambda block: of(block.latent), log_scale


def _warped_tabulates(loss: ThresholdDecision, belief: WarpedGaussianBelief) -> bool:
    return isinstance(belief.latent, GaussianMixtureBelief) and _tabulates(loss, belief.latent)


DECISIONS_UNDER_WARPED_HYPOTHESES = Form(
    "normal probabilities along even labels, warped",
    _warped_threshold,
    lambda loss, belief: numbers_of_slopes(loss, belief.latent),
    serves=_warped_tabulates,
)
"""For threshold decisions under a warped mixture."""
