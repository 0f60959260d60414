"""Curves of quantiles whose weight jumps, kinks or is steep: the rate is summed over answers, and not over means.

For such a weight the rate G(m, s) of a quantile (`loss_rates`) itself jumps or kinks, where the answer passes a rough
place of the weight. But the answer a rises with the mean m, by da / dm = h / (s^2 w(a) p(a)), and G is
g'(a) h / (2 s^2) times that. So with m(a, s) the mean under which a is the answer,

    E[G(m + sqrt(V) eta, s)] = integral of g'(a) h(a, s) / (2 s^2) N(m(a, s); m, V) da,

in which the weight at the answer is gone. What is right under N(m, s^2) solves

    tau E[w 1{f > a}] = (1 - tau) E[w 1{f <= a}],

so m(a, s) and h(a, s) are smooth in s, and in a between rough places. They are tabulated once for all contexts: at
Gauss-Legendre nodes of a, in panels that split at rough places, as Chebyshev series in log s, an octave of s at a time.
What remains for a context and an x is a sum over nodes; where labels move the mean over a part of a panel only, over
nodes of that part.

A curve sees a jump or a kink at whatever distance it lies, once labels move the answer as far. So curves come in
pieces, integrated in sqrt(rho) where rho is small and in the posterior sd where it is large.
Sizes: M contexts, R values of x, P pairs of a context and an x, A panels of answers, K nodes of each, S of log s,
Y nodes of a density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebint, chebval, chebvander
from numpy.polynomial.legendre import leggauss, legvander
from scipy.special import ndtri

from stakes._utils.array import Array, constant, double, log_of, slices
from stakes.acquisition.curves import PanelCurves, points, series
from stakes.acquisition.loss_rates import Host, Panels, Weighted, quantile_of
from stakes.losses.distributional import QuantileScore
from stakes.losses.distributions import NODES_PER_PANEL, derivative

_WIDTH = 1.5  # of a panel of answers, in the smallest s of an octave
_ANSWERS = 12  # nodes of such a panel
_FEWEST, _MOST = 12, 20  # nodes of log s in an octave
_SLOW, _HALVED = 3e-8, 4  # the last coefficients of a series that needs more, and how often a panel is halved
_MARGIN = 0.25  # sds around the answers that are needed
_REACH = 6.0  # standard deviations of m on each side: the mass beyond is 2e-9
_PART = 22  # nodes of a part of a panel, which see as many standard deviations
_WHOLE = 3.3  # standard deviations of m across a panel, up to which its nodes do
_STEPS, _NEAR = 20, 1e-4  # of the search for a mean, and a move after which the next is the last
_MOST_PANELS = 1024, 4  # of a table, and more for each context
_NUMBERS, _PAIRS = 2**15, 2**14  # at once
_CHECKS, _AGREED = 64, 1e-7  # answers at which a table is compared with what it is of, and by how much it may differ
_NODES, _LENGTHS = leggauss(_ANSWERS)
_LAST = (legvander(_NODES, _ANSWERS - 1) * _LENGTHS[:, None] * (np.arange(_ANSWERS) + 0.5)).T[-2:]  # of Legendre series
_TO_POWERS = np.linalg.inv(np.vander(_NODES, increasing=True)).T  # [K, K]: values at nodes to coefficients of powers
_TO_ENDS = _TO_POWERS @ np.vander([-1.0, 1.0], _ANSWERS, increasing=True).T  # [K, 2]
_PART_NODES, _PART_LENGTHS = leggauss(_PART)
_LOWEST = -700.0
_FIRST = 1e-6  # sqrt(rho) of the first piece of a curve
STARTS_OF_PIECES = (0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.07, 0.05, 0.0)
"""Of curves, in posterior sds."""
_LAST_TABLE = 0.05  # posterior sd down to which there are tables
_FURTHER, _PLACES = 2.5, 9  # up to how many times that, and from how many places, what is below is interpolated
_PIECE, _PIECE_NODES = 4.0, 16  # ratio of the ends of a piece, and its nodes
_KINKS, _KINK_NODES = 0.05, 10  # sqrt(rho) up to which a curve that kinks, but does not jump, is nearly straight
_MIDDLE, _END = math.sqrt(0.5), math.sqrt(2.0)  # places of `PanelCurves`


class QuantileRates:
    """The expected rates of contexts, from tables of the answers that labels may lead to.

    Args:
        loss: The loss.
        panels: How weighted densities are integrated; all rough places of the weight are cuts.
        mean: [M].
        sd: [M], above 0.
        tilts: [M] each: between which places, in prior sds from the mean, weighted mass has its centre; 0 is one.
        jumps: Whether the weight jumps, or is so steep that it may as well.
    """

    def __init__(
        self, loss: QuantileScore, panels: Panels, mean: Host, sd: Host, tilts: tuple[Host, Host], *, jumps: bool
    ) -> None:
        self.loss, self.panels, self.mean, self.sd, self.tilts, self.jumps = loss, panels, mean, sd, tilts, jumps
        self.top = float(np.max(sd)) * (1.0 + 1e-12)
        self.low = 1.0
        self.error = 0.0
        self._tables: dict[int, _Answers | None] = {}

    def settled(self, low: float) -> bool:
        """Whether tables from posterior sds `low` on, over prior ones, are right between their nodes."""
        self._reach(low)
        last = math.floor(math.log2(self.top / (low * float(np.min(self.sd)))))
        tables = [self._table(octave) for octave in range(last + 1) if self._asked(octave).any()]
        if any(table is None for table in tables):
            return False
        self.error = max(table.error(self.loss, self.panels) for table in tables if table is not None)
        return self.error <= _AGREED

    def at(self, x: Host) -> Host | None:
        """[R, M]: log 2 v x E[G] at posterior sds x [R], over prior ones; None where it is not to be had."""
        return self.logs(x, np.sqrt(1.0 - x**2))

    def logs(self, x: Host, root: Host) -> Host | None:
        """[R, M]: the same, with root = sqrt(1 - x^2) as well, which x near 1 does not tell."""
        self._reach(float(np.min(x)))
        shape = len(x), len(self.mean)
        s, spread = (np.ravel(self.sd * each[:, None]) for each in (x, np.maximum(root, _FIRST)))  # [P]
        mean, found = np.ravel(np.broadcast_to(self.mean, shape)), np.empty(len(s))
        octave = np.floor(np.log2(self.top / s)).astype(int)
        order = np.lexsort((mean, octave))
        starts = np.flatnonzero(np.diff(octave[order], prepend=-1))
        for first, last in zip(starts, [*starts[1:], len(order)], strict=True):
            table = self._table(int(octave[order[first]]))
            if table is None:
                return None
            for part in slices(last - first, _PAIRS):
                at = order[first:last][part]
                found[at] = table.expectations(mean[at], s[at], spread[at])
        if not np.all(found > _LOWEST):
            return None
        return np.asarray(np.reshape(found, shape) + np.log(2.0 * x)[:, None] + 2.0 * np.log(self.sd))

    def last(self, x: Host) -> Host | None:
        """[R, M]: as `at`, for x from 0 to where tables end, by a polynomial through the limit at 0 and places beyond.

        At 0 the answer is q sds from the mean and costs w pdf(q) s, with q that of a standard normal.
        """
        places = _LAST_TABLE * (1.0 + (_FURTHER - 1.0) * (1.0 + points(_PLACES)) / 2.0)
        if (logs := self.at(places)) is None:
            return None
        at_zero = self.panels.over(self.mean, self.sd, self._limit)
        values = np.exp(np.concatenate([logs, at_zero[None]]) - at_zero)
        knots = np.append(places, 0.0) / places[0]
        found, other = (
            np.vander(x / places[0], len(given), increasing=True)
            @ np.linalg.solve(np.vander(knots[given], increasing=True), values[given])
            for given in (np.arange(len(knots)), np.arange(1, len(knots)))
        )
        share = _LAST_TABLE  # of EUR, that comes from there
        self.error = max(self.error, share * float(np.max(abs(other - found) / abs(found))))
        return np.asarray(log_of(found) + at_zero) if np.all(found > 0) else None

    def _limit(self, given: Weighted) -> Host:
        """[P]: log of what 2 v x E[G] tends to as x goes to 0, pdf(q) sqrt(v) E[w g']."""
        mass = given.mass
        if self.panels.warp is not None:
            width = 0.1 * given.s[:, None, None] + 0.0 * mass
            mass = mass * derivative(self.panels.warp.forward, given.places + 0.0 * mass, width)
        density = self.loss.unit * math.exp(-0.5 * float(ndtri(self.loss.level)) ** 2) / math.sqrt(2.0 * math.pi)
        return np.asarray(log_of(np.sum(mass, axis=(1, 2))) + given.top + np.log(given.s * density))

    def _reach(self, low: float) -> None:
        """Make tables for posterior sds from `low` on."""
        if low < self.low:
            self.low = low
            self._tables.clear()

    def _asked(self, octave: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """[M]: which contexts have a posterior sd in an octave below the largest."""
        top = self.top * 2.0**-octave
        return (self.sd * self.low <= top) & (self.sd >= top / 2.0)

    def _table(self, octave: int) -> _Answers | None:
        """That of an octave, for all that contexts ask of it; None where it is too large."""
        if octave not in self._tables:
            top, some = self.top * 2.0**-octave, self._asked(octave)
            mean, sd = self.mean[some], self.sd[some]
            root = np.sqrt(1.0 - np.clip(top / 2.0 / sd, self.low, 1.0) ** 2)
            low, high = (
                mean + sd * (root**2 * tilt[some] + side * _REACH * root)
                for tilt, side in zip(self.tilts, (-1.0, 1.0), strict=True)
            )
            most = _MOST_PANELS[0] + _MOST_PANELS[1] * len(self.mean)
            self._tables[octave] = _Answers.of(self.loss, self.panels, top, low, high, most)
        return self._tables[octave]


@dataclass(frozen=True, eq=False)
class _Answers:
    """The means under which answers are right, and what they cost, for s from top / 2 to top."""

    top: float
    low: Host
    """[A]: where panels of answers begin, in order"""
    high: Host
    """[A]"""
    ends: Host
    """[A, S, 2]: (a - m) / s at both, Chebyshev series in log s"""
    offsets: Host
    """[A, S, K]: the same at the nodes"""
    logs: Host
    """[A, S, K]: log g' h / (2 s^2)"""

    @classmethod
    def of(cls, loss: QuantileScore, panels: Panels, top: float, low: Host, high: Host, most: int) -> _Answers | None:
        """Where it is needed: for means from low to high [M]; None where that takes more than `most` panels."""
        low, high = _merged(low, high)
        level = loss.level
        answers = [
            [
                m + s * quantile_of(level, panels.weighted(m, np.full(m.shape, s)))[0] + side * _MARGIN * top
                for s in (top / 2.0, top)
            ]
            for m, side in ((low, -1.0), (high, 1.0))
        ]
        low, high = _merged(np.min(answers[0], axis=0), np.max(answers[1], axis=0))
        width = _WIDTH * top / 2.0
        if float(np.sum((high - low) / width)) + len(low) + len(panels.cuts) > most:
            return None
        edges = []
        for start, stop in zip(low, high, strict=True):
            inside = panels.cuts[(panels.cuts > start) & (panels.cuts < stop)]
            edges.append(np.unique([*np.linspace(start, stop, 1 + math.ceil((stop - start) / width)), *inside]))
        low, high = (np.concatenate([each[part] for each in edges]) for part in (slice(0, -1), slice(1, None)))
        return cls(top, *_resolved(loss, panels, top, low, high))

    def error(self, loss: QuantileScore, panels: Panels) -> float:
        """By how much interpolation differs from what it is of, at some places between nodes."""
        rng = np.random.default_rng(0)
        at = rng.integers(0, len(self.low), _CHECKS)
        half = (self.high - self.low)[at] / 2.0
        answers = self.low[at] + half * (1.0 + (place := rng.uniform(-1.0, 1.0, _CHECKS)))
        s = self.top * 2.0 ** -rng.uniform(0.0, 1.0, _CHECKS)
        offset, cost = _means(loss, panels.finer(), answers, s)
        in_s = chebvander(2.0 * np.log2(s / self.top) + 1.0, _MOST - 1)
        found = [
            _polynomial(np.einsum("ps,psk->pk", in_s, each[at]) @ _TO_POWERS, place[:, None])[:, 0]
            for each in (self.offsets, self.logs)
        ]
        wanted = cost + _log_slope(panels, answers, self.top / 2.0) + math.log(loss.unit / 2.0) - np.log(s)
        return float(np.max(abs(found[0] - offset) + abs(found[1] - wanted)))

    def expectations(self, mean: Host, s: Host, spread: Host) -> Host:
        """[P]: log E[G(N(m, spread^2), s)], each [P], for means near each other."""
        in_s, reach = chebvander(2.0 * np.log2(s / self.top) + 1.0, _MOST - 1), _REACH * spread
        furthest = np.max(np.sum(abs(self.ends), axis=1)) * self.top
        first = np.searchsorted(self.high, np.min(mean - reach) - furthest)
        last = np.searchsorted(self.low, np.max(mean + reach) + furthest)
        here = slice(int(first), int(last))
        begin, end = (  # [A, P]: means at the ends of panels, from those of pairs, in their spread
            (edge[here, None] - mean - (series[here] @ in_s.T) * s) / spread
            for edge, series in ((self.low, self.ends[..., 0]), (self.high, self.ends[..., 1]))
        )
        touched, whole = (begin < _REACH) & (end > -_REACH), end - begin < _WHOLE
        top, total = np.full(len(mean), -np.inf), np.zeros(len(mean))
        for panel in range(end.shape[0]):
            each = panel + here.start
            for all_of_it in (True, False):
                at = np.flatnonzero(touched[panel] & (whole[panel] == all_of_it))
                if not len(at):
                    continue
                middle, half = (self.high[each] + self.low[each]) / 2.0, (self.high[each] - self.low[each]) / 2.0
                offsets, logs = in_s[at] @ self.offsets[each], in_s[at] @ self.logs[each]  # [p, K]
                away = (middle + half * _NODES - mean[at, None] - s[at, None] * offsets) / spread[at, None]
                if all_of_it:
                    lengths = np.broadcast_to(half * _LENGTHS, away.shape)
                else:
                    away, logs, lengths = _part(away, logs, begin[panel, at], end[panel, at])
                    lengths = half * lengths
                _add(top, total, at, logs - 0.5 * away * away, lengths)
        return np.asarray(top + log_of(total) - np.log(spread * math.sqrt(2.0 * math.pi)))


def _add(top: Host, total: Host, at: Any, logs: Host, lengths: Host) -> None:
    """Add the sums of exp(logs) lengths, [p, n] each, to exp(top) total [P] at places [p]."""
    highest = np.maximum(np.max(logs, axis=1), top[at])
    sums = np.sum(np.exp(logs - highest[:, None]) * lengths, axis=1)
    total[at] = total[at] * np.exp(top[at] - highest) + sums
    top[at] = highest


def _part(away: Host, logs: Host, begin: Host, end: Host) -> tuple[Host, Host, Host]:
    """[p, n] each: at nodes of the part of a panel that means reach, from values [p, K] at those of the panel.

    `away` are means in standard deviations, from `begin` to `end` [p].
    """
    away, logs = away @ _TO_POWERS, logs @ _TO_POWERS  # [p, K]: coefficients
    slopes = away[:, 1:] * np.arange(1.0, _ANSWERS)
    ends = []
    for wanted in (-_REACH, _REACH):
        x = np.clip(2.0 * (wanted - begin) / (end - begin) - 1.0, -1.0, 1.0)[:, None]
        for _ in range(4):
            x = np.clip(x - (_polynomial(away, x) - wanted) / _polynomial(slopes, x), -1.0, 1.0)
        ends.append(x)
    half = (ends[1] - ends[0]) / 2.0
    nodes = (ends[1] + ends[0]) / 2.0 + half * _PART_NODES
    return _polynomial(away, nodes), _polynomial(logs, nodes), half * _PART_LENGTHS


def _polynomial(coefficients: Host, x: Host) -> Host:
    """[p, n]: of coefficients [p, K] of powers of x [p, n]."""
    found = np.broadcast_to(coefficients[:, -1:], x.shape).copy()
    for k in range(coefficients.shape[1] - 2, -1, -1):
        found *= x
        found += coefficients[:, k, None]
    return found


def _merged(low: Host, high: Host) -> tuple[Host, Host]:
    """The same ranges, in order, with those that overlap as one."""
    order = np.argsort(low)
    low, high = low[order], np.maximum.accumulate(high[order])
    new = np.concatenate([[True], low[1:] > high[:-1]])
    return low[new], high[np.concatenate([new[1:], [True]])]


def _resolved(
    loss: QuantileScore,
    panels: Panels,
    top: float,
    low: Host,
    high: Host,
    count: int = _FEWEST,
    halvings: int = _HALVED,
) -> tuple[Host, Host, Host, Host, Host]:
    """Low, high, ends, offsets and logs of `_Answers`, of panels between low and high [A] or parts of them.

    A panel along which series fall slowly is halved; one where they do in log s gets more nodes of that.
    """
    ends, offsets, logs = _tabulated(loss, panels, top, low, high, count)
    along_a, along_s = np.zeros(len(low)), np.zeros(len(low))
    for each in (offsets, logs):
        along_a = np.maximum(along_a, np.sum(abs(each @ _LAST.T), axis=(1, 2)))
        along_s = np.maximum(along_s, np.max(np.sum(abs(each[:, -2:]), axis=1), axis=1))
    halved = (along_a > _SLOW) & (halvings > 0)
    more = ~halved & (along_s > _SLOW) & (count < _MOST)
    good = ~(halved | more)
    spare = ((0, 0), (0, _MOST - count), (0, 0))
    found = [(low[good], high[good], *(np.pad(each[good], spare) for each in (ends, offsets, logs)))]
    if halved.any():
        start, stop = low[halved], high[halved]
        middle = (start + stop) / 2.0
        parts = np.concatenate([start, middle]), np.concatenate([middle, stop])
        found.append(_resolved(loss, panels, top, *parts, count, halvings - 1))
    if more.any():
        found.append(_resolved(loss, panels, top, low[more], high[more], _MOST, halvings))
    order = np.argsort(np.concatenate([each[0] for each in found]))
    low, high, ends, offsets, logs = (np.concatenate(each)[order] for each in zip(*found, strict=True))
    return low, high, ends, offsets, logs


def _tabulated(
    loss: QuantileScore, panels: Panels, top: float, low: Host, high: Host, count: int
) -> tuple[Host, Host, Host]:
    """[A, S, 2], [A, S, K] twice: as in `_Answers`, for S nodes of log s."""
    nodes = points(count)
    to_series = 2.0 / count * chebvander(nodes, count - 1).T / (1.0 + (np.arange(count) == 0))[:, None]
    s = top * 2.0 ** ((nodes - 1.0) / 2.0)
    answers = (high + low)[:, None] / 2.0 + (high - low)[:, None] / 2.0 * _NODES  # [A, K]
    pairs = np.ravel(answers[:, None, :] + 0.0 * s[:, None]), np.ravel(s[:, None] + 0.0 * answers[:, None, :])
    shape = len(low), count, _ANSWERS
    offsets, costs = (np.reshape(each, shape) for each in _means(loss, panels, *pairs))
    slope = np.reshape(_log_slope(panels, np.ravel(answers), top / 2.0), answers.shape)
    costs = costs + slope[:, None, :] - np.log(s)[:, None] + math.log(loss.unit / 2.0)
    offsets, costs = (np.einsum("sr,ark->ask", to_series, each) for each in (offsets, costs))
    return offsets @ _TO_ENDS, offsets, costs


def _log_slope(panels: Panels, answers: Host, width: float) -> Host:
    """[P]: log g'."""
    if panels.warp is None:
        return np.zeros(len(answers))
    return np.asarray(log_of(derivative(panels.warp.forward, answers, np.full(len(answers), width))))


def _means(loss: QuantileScore, panels: Panels, answers: Host, s: Host) -> tuple[Host, Host]:
    """[P] each: (a - m) / s of the mean under which a is the answer for s, and the log of what it costs over s.

    With y = (f - a) / s and u the first, the density of f is exp(-y u) times that of y, but for a factor: the weights
    are asked for once. Of the two sides of a, the log of the ratio of their masses is nearly linear in u.
    """
    found, costs = np.empty(len(answers)), np.empty(len(answers))
    base, odds = panels.around(loss.level, float(np.max(s))), math.log(loss.level / (1.0 - loss.level))
    for part in slices(len(answers), max(1, _NUMBERS // (NODES_PER_PANEL * (len(base) + len(panels.cuts))))):
        given = panels.weighted(answers[part], s[part], base)
        y, mass = (np.reshape(each + 0.0 * given.mass, (len(given.m), -1)) for each in (given.u, given.mass))  # [p, Y]
        sides = [np.where(y > 0, mass, 0.0), np.where(y > 0, 0.0, mass)]
        u, last = np.full(len(y), float(ndtri(loss.level))), False
        for _ in range(_STEPS):
            tilt = np.exp(-y * u[:, None])
            sums = [np.einsum("py,py->p", each, tilt) for each in sides]
            tilt *= y
            centres = [np.einsum("py,py->p", each, tilt) / total for each, total in zip(sides, sums, strict=True)]
            apart = centres[0] - centres[1]
            move = (np.log(sums[0] / sums[1]) + odds) / apart
            if last:
                break
            u, last = u + np.clip(move, -2.0, 2.0), not np.max(abs(move)) > _NEAR
        found[part] = u + move
        costs[part] = np.log(loss.level * sums[0] * apart) - 0.5 * u * u + given.top
    return found, costs


def curves_in_pieces(rates: QuantileRates, scale: Host, some: Any, low: float, like: Array) -> PanelCurves | None:
    """Curves from a posterior sd on, of contexts some of which vary, without their scale [M]; None where rates fail."""
    if not rates.settled(max(low, _LAST_TABLE)):
        return None
    edges = [_FIRST]
    parts: list[Array] = []
    gained: Any = 0.0  # [M]: EUR up to the piece
    for start, stop in _pieces(low):
        upper = start >= _MIDDLE
        nodes = points(_KINK_NODES if stop < _KINKS and not rates.jumps else _PIECE_NODES)
        place = start + (stop - start) * (1.0 + nodes) / 2.0
        root = np.sqrt(1.0 - (_END - place) ** 2) if upper else place
        x = _END - place if upper else np.sqrt((1.0 - root) * (1.0 + root))
        logs = rates.logs(x, root) if stop < _END - _LAST_TABLE / 2.0 else rates.last(x)
        if logs is None:
            return None
        values = np.zeros((len(place), len(scale)))
        values[:, some] = np.exp(logs - scale[some])
        if not upper:  # in root: t dt is root d(root)
            values *= (root / x)[:, None]
        if not parts:
            gained = values[-1] / root[-1] * start**2 / 2.0
        integral = chebint(np.asarray(series(values, len(place))), scl=(stop - start) / 2.0, lbnd=-1.0)
        parts.append(series((gained + chebval(nodes, integral).T) / (root**2)[:, None], _PIECE_NODES))
        gained = gained + chebval(1.0, integral)
        edges.append(stop)
    return PanelCurves(constant(np.stack(parts), double(like)), tuple(edges)).astype(like.dtype)


def _pieces(low: float) -> list[tuple[float, float]]:
    """Places between which curves are polynomials, upwards."""
    top, bottom = min(_MIDDLE, math.sqrt(1.0 - low**2)), max(low, _LAST_TABLE)
    below = _FIRST * (top / _FIRST) ** np.linspace(0.0, 1.0, 1 + math.ceil(math.log(top / _FIRST, _PIECE)))
    count = math.ceil(math.log(_MIDDLE / bottom, _PIECE)) if low < _MIDDLE else 0
    above = _END - _MIDDLE * (bottom / _MIDDLE) ** np.linspace(0.0, 1.0, 1 + count)[1:]
    edges = [*below.tolist()[:-1], top, *above.tolist(), *((_END,) if low < bottom else ())]
    return list(pairwise(edges))
