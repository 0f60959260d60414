"""Curves EUR_c(rho) from the rate at which a posterior that narrows lowers the least expected loss.

With G(m, s) the rate of a loss (`loss_rates`), and x = sqrt(1 - rho), a posterior sd over the prior sd,

    EUR_c(rho) = 2 v integral_x^1 t E[G(m + sqrt(v (1 - t^2)) eta, sqrt(v) t)] dt.

No rate is negative, nothing cancels, and G is a function of two numbers that all contexts share: its logarithm is
tabulated on a lattice of m for Chebyshev nodes of log s, an octave of s at a time (`Rates`). Few contexts have nodes of
their own (`FewRates`), and few pairs of squared error need no curve (`FewRegrets`). Where one expectation of the slope
of a warp tells (`SlopeRates`):

| loss, no weight       | G                                        |
|-----------------------|------------------------------------------|
| CRPS, z = g(f)        | E[g'(N(m, s^2 / 2))] / (2 sqrt(pi) s)    |
| quantile, z = g(f)    | pdf(q) g'(m + q s) / (2 s), q its normal |

(docs/theory.md). On the host, whatever the library of the belief is.
Sizes: M contexts, R values of x, P pairs of a context and an x, J places of a lattice, S nodes of s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebint, chebval, chebvander
from scipy.special import ndtri

from stakes._utils.array import Array, constant, double, log_of, on_host
from stakes.acquisition.curves import Curves, SmoothCurves, points, series
from stakes.acquisition.loss_rates import (
    CANCELLED,
    GENTLE,
    LEAST,
    Host,
    LogRate,
    bregman_rate,
    closed_masses,
    crps_rate,
    interpolated_mass,
    linex_rate,
    log_score_rate,
    middle_of,
    panels_of,
    quantile_rate,
    squared_rate,
    tilts_of,
    tilts_of_points,
)
from stakes.acquisition.quantile_rates import STARTS_OF_PIECES, QuantileRates
from stakes.beliefs import BoxCoxWarp, LogWarp, SoftplusWarp, WarpedGaussianBelief
from stakes.beliefs.quadrature import SPACING
from stakes.beliefs.warped import Warp
from stakes.losses import CRPS, Linex, SquaredError, WeightedBregman
from stakes.losses.distributional import LogScore, QuantileScore
from stakes.losses.weights import InterpolatedWeight

_IN_PANELS = QuantileScore | LogScore | CRPS | WeightedBregman
_FEW_PAIRS = 2048  # candidates and contexts that are integrated one by one where moments are closed
_MOST_FEW = 2**18  # nodes of few pairs
_FEW_STEP = 0.4  # of eta, or less
_NEAR = 0.02  # of the series of an exponential, of which 1e-12 is left
_HALVINGS = 3  # of such a step at most
_FEW_CONTEXTS = 16  # that are not worth a table of rates
_FEW_ETA, _FEW_REACH = 0.4, 6.0  # standard deviations: nodes of a label, and its ends: the mass beyond is 2e-9
_LEAST_RHO = 1e-8  # rho, below which a reduction over rho is as good as constant, and moves of answers are lost
_ROUGHLY = 2e-3  # by which a third of the nodes may differ: 1e-8 is left of all of them
_FEW_ROUGHLY = 1e-4  # the same of rates, which bend quickly where a weight kinks and little is left to learn
_CHECKED = np.asarray(
    [0.002, 0.06, 0.15, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97, 0.99, 1.0]
)  # along the posterior sds of a curve, where a finer table is compared
_SAMPLE = 3  # contexts that are
_AGREED = 2e-8  # difference of logarithms of two tables that agree
_FINER, _FINEST = 1.4, 2.8  # by how much a table is refined, and at most
_LEFT = 0.01  # of the error of one table in the next: 1.4^-14 of its polynomials of degree 13
_LOWEST = -120.0  # log E[G], below which the table may lack what matters
_LEAST_SPREAD = 1e-3  # prior sds: as good as none, but at no node of a curve
_SMOOTH = 0.4  # of a panel of a weight, over which the rate is smooth
_FAR, _ENDS = 16.0, 1e-12  # standard deviations of a warped target, and what may be left at its ends
_BESIDE, _JUMP = 1e-9, 1e-6  # standard deviations beside a kink, and by how much logarithms of weights differ at a jump
_STEP = 0.25  # of the lattice of m, in the smallest s of an octave
_NODES = 12  # of log s in an octave
_REACH = 7.8  # standard deviations of m on each side: the mass beyond is 6e-15
_NARROW = 1.6  # sd of m in steps of the lattice, up to which m has nodes of its own between its places
_OWN_STEP = 0.7  # of these, in standard deviations: the trapezoid rule leaves 1e-17 of a normal density
_STENCIL = 14  # places of the lattice that such a node is interpolated from
# Places of a table, and more for each context, beyond which the general route is quicker: of sums of a few numbers, and
# of integrals over targets.
_MOST_PLACES, _MOST_INTEGRALS = (2**15, 256), (2**12, 64)
_MOST_PAIRS = 1e5  # of a place and an x, for each context
_BLOCK = 2**18  # numbers at once
_NOTHING = -1e5  # log G where G is out of the range of numbers


class Rates:
    """The expected rates of contexts, with as fine a table as it takes.

    Args:
        rate: log G.
        mean: [M].
        sd: [M], above 0.
        tilts: [M] each: between which places, in prior sds from the mean, weighted mass has its centre; 0 is one.
        smooth: A length over which G is smooth in m however small s is.
        places: How many places a table may have, and how many more for each context.
    """

    def __init__(
        self,
        rate: LogRate,
        mean: Host,
        sd: Host,
        tilts: tuple[Host, Host],
        smooth: float = 0.0,
        places: tuple[int, int] = _MOST_PLACES,
    ) -> None:
        self.rate, self.mean, self.sd, self.tilts, self.smooth, self.places = rate, mean, sd, tilts, smooth, places
        self.top = float(np.max(sd)) * (1.0 + 1e-12)
        self.finer, self.low = 1.0, 1.0
        self.error = 0.0
        """By how much a finer table differs, relative to the rates"""
        self._tables: dict[tuple[float, int], _Table | None] = {}

    def settled(self, low: float) -> bool:
        """Whether tables agree from posterior sds `low` on, over prior ones; the first that does is taken."""
        x, few = low + (1.0 - low) * _CHECKED, self._few()
        self._reach(low)
        few._reach(low)
        before = few._expected(x, self.finer, self)
        while before is not None and self.finer < _FINEST:
            after = few._expected(x, self.finer * _FINER)
            if after is None or not np.all(after > _LOWEST):
                return False
            self.error = float(np.max(abs(after - before)))
            if self.error <= _AGREED:
                return True
            self.finer, before = self.finer * _FINER, after
            if self.error * _LEFT <= _AGREED:
                self.error *= _LEFT
                return True
        return False

    def at(self, x: Host) -> Host | None:
        """[R, M]: log 2 v x E[G] at posterior sds x [R], over prior ones; None where it is not to be had."""
        self._reach(float(np.min(x)))
        logs = self._expected(x, self.finer)
        if logs is None or not np.all(logs > _LOWEST):
            return None
        return np.asarray(logs + np.log(2.0 * x)[:, None] + 2.0 * np.log(self.sd))

    def _few(self) -> Rates:
        """Some of the contexts, from all over them."""
        if len(self.mean) <= 2 * _SAMPLE:
            return self
        some = slice(0, None, len(self.mean) // _SAMPLE)
        tilts = self.tilts[0][some], self.tilts[1][some]
        few = Rates(self.rate, self.mean[some], self.sd[some], tilts, self.smooth, self.places)
        few.top = self.top
        return few

    def _reach(self, low: float) -> None:
        """Make tables for posterior sds from `low` on."""
        if low < self.low:
            self.low = low
            self._tables.clear()

    def _expected(self, x: Host, finer: float, tables: Rates | None = None) -> Host | None:
        """[R, M]: log E[G]; None if that is too much work. Tables are its own, or those of all contexts."""
        tables = tables or self
        root = np.sqrt(1.0 - x**2)
        s, spread = (np.ravel(self.sd * each[:, None]) for each in (x, root))  # [P]
        m, tilt_low, tilt_high = (np.ravel(each + 0.0 * x[:, None]) for each in (self.mean, *self.tilts))
        share = np.ravel(root[:, None] ** 2 * self.sd)
        low, high = m + share * tilt_low - _REACH * spread, m + share * tilt_high + _REACH * spread
        octave = np.floor(np.log2(self.top / s)).astype(int)
        steps = _STEP / finer * np.maximum(self.top * 2.0 ** -(octave + 1.0), self.smooth)
        if float(np.sum((high - low) / steps)) > _MOST_PAIRS * len(self.mean):
            return None
        found = np.empty(len(m))
        for each in np.unique(octave):
            table = tables._table(int(each), finer)
            if table is None:
                return None
            at = np.flatnonzero(octave == each)
            at = at[np.argsort(m[at], kind="stable")]
            found[at] = table.expectations(m[at], s[at], spread[at], low[at], high[at])
        return np.reshape(found, (len(x), len(self.mean)))

    def _table(self, octave: int, finer: float) -> _Table | None:
        """That of an octave of s below the largest, for all that contexts ask of it; None where it is too large."""
        key = finer, octave
        if key not in self._tables:
            top = self.top * 2.0**-octave
            some = (self.sd * self.low <= top) & (self.sd >= top / 2.0)
            mean, sd = self.mean[some], self.sd[some]
            root = np.sqrt(1.0 - np.clip(top / 2.0 / sd, self.low, 1.0) ** 2)
            low, high = (
                mean + sd * (root**2 * tilt[some] + side * _REACH * root)
                for tilt, side in zip(self.tilts, (-1.0, 1.0), strict=True)
            )
            most = self.places[0] + self.places[1] * len(self.mean)
            self._tables[key] = _Table.of(self.rate, top, finer, self.smooth, low, high, most)
        return self._tables[key]


class FewRates:
    """The same of few contexts, for each of which eta has nodes of its own: a table would be more work.

    Args:
        rate: log G.
        mean: [M].
        sd: [M], above 0.
        tilts: [M] each, as those of `Rates`.
    """

    def __init__(self, rate: LogRate, mean: Host, sd: Host, tilts: tuple[Host, Host]) -> None:
        self.rate, self.mean, self.sd, self.tilts = rate, mean, sd, tilts
        self.error = 0.0

    def settled(self, low: float) -> bool:
        """True: nodes are checked wherever rates are asked for."""
        return True

    def at(self, x: Host) -> Host | None:
        """[R, M]: log 2 v x E[G] at posterior sds x [R], over prior ones; None where nodes do not do."""
        shape = len(x), len(self.mean)
        left, values = np.arange(len(x) * len(self.mean)), np.empty(len(x) * len(self.mean))
        step = _FEW_ETA
        for _ in range(_HALVINGS + 1):
            found, good = self._expected(x, left, step)
            values[left] = found
            if np.any(np.isnan(found)) or not len(left := left[~good]):
                break
            step /= 2.0
        if len(left) or not np.all(values > _LOWEST):
            return None
        return np.asarray(np.reshape(values, shape) + np.log(2.0 * x)[:, None] + 2.0 * np.log(self.sd))

    def _expected(self, x: Host, pairs: Any, step: float) -> tuple[Host, Any]:
        """[P] each: log E[G] of pairs of an x and a context, and whether nodes do, as in `FewRegrets`."""
        rows, context = np.divmod(pairs, len(self.mean))
        x, mean, sd = x[rows], self.mean[context], self.sd[context]
        root = np.sqrt(1.0 - x**2)
        low, high = self.tilts[0][context] * root - _FEW_REACH, self.tilts[1][context] * root + _FEW_REACH
        count = 3 * math.ceil((float(np.max(high - low)) / step + 1.0) / 3.0)
        eta = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, count)
        logs = self.rate(mean[:, None] + (sd * root)[:, None] * eta, (sd * x)[:, None] + 0.0 * eta)
        logs = np.maximum(logs, _NOTHING) - 0.5 * eta * eta
        top = np.max(logs, axis=1)
        terms = np.exp(logs - top[:, None])
        width = (high - low) / (count - 1) / math.sqrt(2.0 * math.pi)
        thirds = [3.0 * width * np.sum(terms[:, first::3], axis=1) for first in range(3)]
        values = (thirds[0] + thirds[1] + thirds[2]) / 3.0
        good = np.all([abs(each - values) <= _FEW_ROUGHLY * values for each in thirds], axis=0)
        return log_of(values) + top, good


class SlopeRates:
    """The same for targets g(f) where one expectation of the slope of g tells them.

    | loss                 | 2 v x E[G]                                                                    |
    |----------------------|-------------------------------------------------------------------------------|
    | CRPS                 | sqrt(v / pi) E[g'(N(m, v (1 - x^2 / 2)))]                                     |
    | quantile, no weight  | pdf(q) sqrt(v) E[g'(N(m + q sqrt(v) x, v (1 - x^2)))], q that of a normal     |
    """

    def __init__(self, warp: Warp, loss: CRPS | QuantileScore, mean: Host, sd: Host) -> None:
        self.warp, self.mean, self.sd = warp, mean, sd
        self.finer = 1.0
        self.error = 0.0
        self.share, self.shift, self.factor = 0.5, 0.0, 1.0 / math.sqrt(math.pi)
        if isinstance(loss, QuantileScore):
            self.share, self.shift = 1.0, float(ndtri(loss.level))
            self.factor = loss.unit * math.exp(-0.5 * self.shift**2) / math.sqrt(2.0 * math.pi)

    def settled(self, low: float) -> bool:
        """Whether two rules agree; the first that does is taken."""
        if type(self.warp) is LogWarp:
            return True
        x, some = low + (1.0 - low) * _CHECKED, slice(0, None, max(1, len(self.mean) // _SAMPLE))
        few = [each[:, some] for each in self._normals(x)]
        before = self._log_slopes(few[0], few[1], self.finer)
        while self.finer < _FINEST:
            after = self._log_slopes(few[0], few[1], self.finer * _FINER)
            self.error = float(np.max(abs(after - before))) if np.all(np.isfinite(after)) else math.inf
            if self.error <= _AGREED:
                return True
            self.finer, before = self.finer * _FINER, after
        return False

    def at(self, x: Host) -> Host | None:
        """[R, M]: log 2 v x E[G] at posterior sds x [R], over prior ones; None where it is not to be had."""
        means, spreads = self._normals(x)
        if type(self.warp) is LogWarp:
            logs = means + spreads**2 / 2.0
        else:
            logs = np.stack([self._log_slopes(*each, self.finer) for each in zip(means, spreads, strict=True)])
        return logs + np.log(self.sd * self.factor) if np.all(np.isfinite(logs)) else None

    def _normals(self, x: Host) -> tuple[Host, Host]:
        """[R, M] each: the means and sds of f that the slope is averaged over; no sd is 0."""
        spread = np.sqrt(np.maximum(1.0 - self.share * x**2, _LEAST_SPREAD**2))
        return self.mean + self.shift * self.sd * x[:, None], self.sd * spread[:, None]

    def _log_slopes(self, mean: Host, spread: Host, finer: float) -> Host:
        """[..., M]: log E[g'(N(mean, spread^2))], as E[(g - g(mean)) u] / spread with u standard normal."""
        u = np.linspace(-_FAR, _FAR, 1 + 2 * math.ceil(_FAR / (SPACING / finer)))
        f = mean[..., None] + spread[..., None] * u
        with np.errstate(over="ignore", invalid="ignore"):
            terms = (self.warp.forward(f) - self.warp.forward(mean)[..., None]) * (u * np.exp(-0.5 * u * u))
            total = np.sum(terms, axis=-1)
            held = np.maximum(abs(terms[..., 0]), abs(terms[..., -1])) <= _ENDS * total
        shares = np.where(held, total, np.nan) * (u[1] - u[0]) / math.sqrt(2.0 * math.pi) / spread
        return np.asarray(log_of(shares))


AnyRates: TypeAlias = Rates | FewRates | SlopeRates | QuantileRates


_STARTS = (0.9, 0.75, 0.5, 0.2, 0.05, 0.01, 0.0)  # of curves, in posterior sds
_CURVE_NODES = (9, 15, 27, 81)  # in turn, until they do
_FEW_NODES = (15, 27, 81)  # the same of few contexts, whose rates are not to be looked up
_HUGE = 300.0  # logarithm of a rate over its scale
_ENOUGH = 5e-8  # the error of the interpolation that is aimed at
_SPARE = 0.01  # of the error aimed at, for coefficients that are left out


def start_of_rates(rates: AnyRates, smallest: float) -> float:
    """Where a curve begins that reaches down to a posterior sd."""
    starts = STARTS_OF_PIECES if isinstance(rates, QuantileRates) else _STARTS
    return next(start for start in starts if start <= smallest)


def curves_of_rates(
    rates: Rates | FewRates | SlopeRates, scale: Any, some: Any, low: float, like: Array
) -> SmoothCurves | None:
    """Curves from a posterior sd on, of contexts some of which vary, without their scale [M]; None where rates fail."""
    if not rates.settled(low):
        return None
    for count in _FEW_NODES if isinstance(rates, FewRates) else _CURVE_NODES:
        logs = rates.at(low + (1.0 - low) * (1.0 + points(count)) / 2.0)
        if logs is None or not np.all(logs - scale[some] < _HUGE):
            return None
        averages = np.zeros((count, len(scale)))
        averages[:, some] = average_beyond(np.exp(logs - scale[some]), low)
        curves = Curves(constant(series(averages, count), double(like)), low)
        if curves.tail() < _ENOUGH:
            return curves.truncated(_SPARE * _ENOUGH).astype(like.dtype)
    return None


def average_beyond(values: Host, low: float) -> Host:
    """[R, M]: from F at Chebyshev nodes x of [low, 1] to the average of F from x to 1, over 1 + x: EUR_c / rho."""
    count = values.shape[0]
    nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    coefficients = 2.0 / count * chebvander(nodes, count - 1).T @ values
    coefficients[0] /= 2.0
    integral = chebint(coefficients, lbnd=1.0)  # [R + 1, M]
    x = low + (1.0 - low) * (1.0 + nodes) / 2.0
    return np.asarray(chebval(nodes, integral).T / (nodes - 1.0)[:, None] / (1.0 + x)[:, None])


def rates_of(loss: Any, belief: Any, integrand: Any, mean: Host, sd: Host) -> AnyRates | None:
    """The rates of a loss for contexts N(mean, sd^2), [M] each with sd above 0; None where they are not known."""
    if isinstance(belief, WarpedGaussianBelief):
        known = type(belief.warp) in (LogWarp, BoxCoxWarp, SoftplusWarp) or isinstance(belief.like, np.ndarray)
        if isinstance(loss, CRPS | QuantileScore) and loss.weight is None and known:
            return SlopeRates(belief.warp, loss, mean, sd)
    if (masses := closed_masses(loss, belief)) is not None:
        origin = middle_of(loss.weight)
        if type(loss) is Linex:
            rate = linex_rate(masses, loss.alpha)
        else:
            rate = (log_score_rate if isinstance(loss, LogScore) else squared_rate)(masses)
        tilts = tilts_of_points(loss, mean, sd)
        if len(mean) <= _FEW_CONTEXTS:
            return FewRates(rate, mean - origin, sd, tilts)
        return Rates(rate, mean - origin, sd, tilts)
    return _rates_in_panels(loss, belief, integrand, mean, sd)


def _rates_in_panels(loss: Any, belief: Any, integrand: Any, mean: Host, sd: Host) -> AnyRates | None:
    """By numerical integration, where the weight is no steeper than panels can follow."""
    rough = bool(getattr(integrand, "breakpoints", ()))
    if not isinstance(belief.like, np.ndarray) or not isinstance(loss, _IN_PANELS):
        return None
    few = len(mean) <= _FEW_CONTEXTS
    if isinstance(loss, QuantileScore) and not few and (integrand.edges or integrand.steepness > GENTLE):
        return _rates_of_answers(loss, belief, integrand, mean, sd)
    if few if rough else isinstance(loss, WeightedBregman):
        return None  # the general route is quicker: of smooth weights by products of nodes that contexts share
    tilts = tilts_of(integrand, mean, sd)
    if (panels := panels_of(loss, belief, integrand, mean, sd, tilts, few=few)) is None:
        return None
    if isinstance(loss, QuantileScore):
        rate: LogRate | None = quantile_rate(loss, panels)
    elif isinstance(loss, WeightedBregman):
        rate = bregman_rate(loss, panels)
    else:
        rate = (crps_rate if isinstance(loss, CRPS) else log_score_rate)(panels)
    if rate is None or few:
        return None if rate is None else FewRates(rate, mean, sd, tilts)
    return Rates(rate, mean, sd, tilts, 0.0 if rough else _SMOOTH * panels.width, _MOST_INTEGRALS)


def _rates_of_answers(loss: Any, belief: Any, integrand: Any, mean: Host, sd: Host) -> AnyRates | None:
    """Of a quantile whose weight jumps, kinks or is steep, so that its rate is rough; None where panels do not do."""
    tilts = tilts_of(integrand, mean, sd)
    edges, soft = np.asarray(integrand.edges), np.asarray(integrand.scales) > 0
    edges = edges[~soft | (np.cumsum(soft) % 2 == 0)]  # half as many do for a smooth weight: panels have more nodes
    split = replace(integrand, spacing=0.0, find_edges=lambda: (tuple(edges), ())) if len(edges) else integrand
    if (panels := panels_of(loss, belief, split, mean, sd, tilts, few=True)) is None:
        return None
    sides = [panels.log_weight(edges + side * _BESIDE * np.min(sd)) for side in (-1.0, 1.0)]
    jumps = np.any(soft) or np.any(abs(sides[1] - sides[0]) > _JUMP)
    return QuantileRates(loss, panels, mean, sd, tilts, jumps=bool(jumps))


@dataclass(frozen=True, eq=False)
class _Table:
    """log G for s from top / 2 to top."""

    top: float
    places: Any
    """[J]: positions on the lattice, integers, in order"""
    origin: float
    step: float
    logs: Host
    """[S, J]: Chebyshev series in log s"""

    @classmethod
    def of(
        cls, rate: LogRate, top: float, finer: float, smooth: float, low: Host, high: Host, most: int
    ) -> _Table | None:
        """Where it is needed: from low to high [P]; None where that is at more than `most` places."""
        step, origin = _STEP / finer * max(top / 2.0, smooth), float(low[0])
        margin = _STENCIL // 2 + 1
        starts = np.floor((low - origin) / step).astype(np.int64) - margin
        stops = np.ceil((high - origin) / step).astype(np.int64) + margin
        places = _union(starts, stops, most)
        if places is None:
            return None
        count = round(_NODES * finer)
        nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
        to_series = 2.0 / count * chebvander(nodes, count - 1).T / (1.0 + (np.arange(count) == 0))[:, None]
        s = top * 2.0 ** ((nodes - 1.0) / 2.0)
        values = rate(origin + step * places, s[:, None])
        if np.any(np.isnan(values)):
            return None
        logs = to_series @ np.maximum(values, _NOTHING)
        logs[:, np.any(values <= _NOTHING, axis=0)] = _NOTHING * (np.arange(count) == 0)[:, None]
        return cls(top, places, origin, step, logs)

    def expectations(self, m: Host, s: Host, spread: Host, low: Host, high: Host) -> Host:
        """[P]: log E[G(N(m, spread^2), s)], each [P], in order of m."""
        in_s = chebvander(2.0 * np.log2(s / self.top) + 1.0, self.logs.shape[0] - 1)  # [P, S]
        margin = _STENCIL // 2
        first = np.searchsorted(self.places, np.floor((low - self.origin) / self.step)) - margin
        last = np.searchsorted(self.places, np.ceil((high - self.origin) / self.step), side="right") + margin
        narrow, found = spread <= _NARROW * self.step, np.empty(len(m))
        for of, some in ((self._between, np.flatnonzero(narrow)), (self._on_lattice, np.flatnonzero(~narrow))):
            for part in _blocks(first[some], last[some]):
                at = some[part]
                window = slice(int(np.min(first[at])), int(np.max(last[at])))
                found[at] = of(window, in_s[at] @ self.logs[:, window], m[at], spread[at], low[at], high[at])
        return found

    def _at(self, window: slice) -> Host:
        return np.asarray(self.origin + self.step * self.places[window])

    def _on_lattice(self, window: slice, logs: Host, m: Host, spread: Host, low: Host, high: Host) -> Host:
        away = (self._at(window) - m[:, None]) / spread[:, None]
        logs = logs - 0.5 * away**2
        return _log_sum(logs) + np.log(self.step / (spread * math.sqrt(2.0 * math.pi)))

    def _between(self, window: slice, logs: Host, m: Host, spread: Host, low: Host, high: Host) -> Host:
        """By nodes of their own, and polynomials through the nearest places of the lattice."""
        known = spread > 0
        scale = np.where(known, spread, 1.0)
        widest = float(np.max(np.where(known, (high - low) / scale, 0.0)))
        eta = np.linspace(0.0, 1.0, 1 + math.ceil(widest / _OWN_STEP))  # [E]
        nodes = low[:, None] + (high - low)[:, None] * eta  # [P, E]
        depth = (nodes - self.origin) / self.step
        base = np.floor(depth).astype(np.int64) - (_STENCIL // 2 - 1)
        column = np.searchsorted(self.places[window], base)
        column = np.clip(column, 0, logs.shape[1] - _STENCIL)
        offsets = np.arange(_STENCIL)
        weights = _lagrange(depth - base)  # [P, E, stencil]
        rows = np.arange(len(m))[:, None, None]
        near = logs[rows, column[..., None] + offsets]  # [P, E, stencil]
        values = np.where(np.min(near, axis=-1) > _NOTHING / 2.0, np.sum(near * weights, axis=-1), _NOTHING)
        step = (high - low) / max(1, len(eta) - 1)
        away = np.where(known[:, None], (nodes - m[:, None]) / scale[:, None], 0.0)
        sums = _log_sum(values - 0.5 * away**2) + log_of(step / (scale * math.sqrt(2.0 * math.pi)))
        return np.asarray(np.where(known, sums, values[:, 0]))


def _union(starts: Any, stops: Any, most: int) -> Any:
    """[J]: the integers within any of the ranges, in order; None where they are too many."""
    order = np.argsort(starts)
    starts, stops = starts[order], np.maximum.accumulate(stops[order])
    new = np.concatenate([[True], starts[1:] > stops[:-1] + 1])
    firsts, lasts = starts[new], stops[np.concatenate([new[1:], [True]])]
    lengths = lasts - firsts + 1
    if np.sum(lengths.astype(float)) > most:
        return None
    before = np.cumsum(lengths) - lengths
    return np.repeat(firsts - before, lengths) + np.arange(int(np.sum(lengths)))


def _blocks(first: Any, last: Any) -> Iterator[slice]:
    """Pairs in order of m, as many at a time as look at a moderate number of places together."""
    start = 0
    while start < len(first):
        size = min(len(first) - start, 256)
        while size > 1:
            part = slice(start, start + size)
            if size * int(np.max(last[part]) - np.min(first[part])) <= _BLOCK:
                break
            size = (size + 1) // 2
        yield slice(start, start + size)
        start += size


def _lagrange(t: Host) -> Host:
    """[..., stencil]: weights of values at 0, 1, ... in the polynomial through them, at t [...]."""
    signs = np.asarray([(-1.0) ** i * math.comb(_STENCIL - 1, i) for i in range(_STENCIL)])
    away = t[..., None] - np.arange(_STENCIL)
    parts = signs / np.where(away == 0, 1e-300, away)
    return np.asarray(parts / np.sum(parts, axis=-1, keepdims=True))


def _log_sum(logs: Host) -> Host:
    top = np.maximum(np.max(logs, axis=-1), _NOTHING)
    return np.asarray(np.log(np.sum(np.exp(logs - top[..., None]), axis=-1)) + top)


class FewRegrets:
    """Reductions of few pairs with a weight through points, by even nodes of a label.

    Of squared error E[W_eta (a_eta - a)^2], and of Linex E[W_eta (exp(d) - d - 1)], d = log a_eta - log a.
    """

    def __init__(self, loss: SquaredError | Linex, mean: Host, sd: Host, tilts: tuple[Host, Host]) -> None:
        assert isinstance(loss.weight, InterpolatedWeight)
        origin = middle_of(loss.weight)
        self.masses, self.mean, self.sd, self.tilts = interpolated_mass(loss.weight, origin), mean - origin, sd, tilts
        self.alpha = loss.alpha if isinstance(loss, Linex) else 0.0
        self.mass, slope, bend = self.masses(self.mean, sd)
        self.served = float(np.min(self.mass)) > LEAST
        if self.served and self.alpha:
            other = self.masses(self.mean - self.alpha * sd**2, sd)[0]
            self.served = float(np.min(other)) > LEAST
            self.shift = log_of(other) - np.log(self.mass)  # [M]: of log a, from -alpha m + alpha^2 v / 2
            exponential = -self.alpha * sd  # where, in prior sds, the mass of exp(-alpha z) has its centre
            self.tilts = tilts[0] + np.minimum(exponential, 0.0), tilts[1] + np.maximum(exponential, 0.0)
        elif self.served:
            self.shift = sd * slope / self.mass  # [M]: of today's answer, from the mean
            self.served = float(np.min(1.0 + bend / self.mass - (slope / self.mass) ** 2)) >= CANCELLED

    def at(self, rho: Host) -> Host | None:
        """[N, M]: reductions, over W; None where nodes do not do, or would be too many."""
        clipped = np.clip(np.ravel(rho), _LEAST_RHO, 1.0)  # below, in proportion to rho
        context = np.ravel(np.arange(rho.shape[1]) + np.zeros(rho.shape, np.int64))
        ratios = np.sqrt((1.0 - clipped) / clipped)
        level = np.maximum(np.ceil(np.log2(_FEW_STEP / (_STEP * np.maximum(ratios, 1e-9)))), 0.0)
        values, left = np.empty(len(clipped)), np.arange(len(clipped))
        for halving in range(_HALVINGS + 1):
            steps = _FEW_STEP * 0.5 ** (level + halving)
            if float(np.sum(2.0 * _REACH / steps[left])) > _MOST_FEW:
                return None
            poor = []
            for each in np.unique(level[left]):
                at = left[level[left] == each]
                values[at], good = self._at(clipped[at], context[at], float(steps[at[0]]))
                poor.append(at[~good])
            if not len(left := np.concatenate(poor)):
                return np.reshape(values * (np.ravel(rho) / clipped), rho.shape)
        return None

    def _at(self, rho: Host, context: Any, step: float) -> tuple[Host, Any]:
        """[P] each: of pairs of one step of eta, and whether nodes do.

        Every third of them must do nearly as well, wherever the first of these is: the error is the cube of theirs.
        """
        mean, sd, shift, today, *tilts = (
            each[context] for each in (self.mean, self.sd, self.shift, self.mass, *self.tilts)
        )
        root, rest = np.sqrt(rho), np.sqrt(1.0 - rho)
        low, high = tilts[0] * root - _REACH, tilts[1] * root + _REACH  # [P]
        count = 3 * math.ceil((float(np.max(high - low)) / step + 1.0) / 3.0)
        eta = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, count)
        s, moved = (rest * sd)[:, None], (root * sd)[:, None] * eta
        mass, slope, _ = self.masses(mean[:, None] + moved, s)
        some = mass > LEAST
        if self.alpha:
            other = self.masses(mean[:, None] + moved - self.alpha * s**2, s)[0]
            some &= other > LEAST
            narrowed = 0.5 * self.alpha**2 * (rho * sd**2)[:, None]
            ratios = np.log(np.where(some, other, 1.0) / np.where(some, mass, 1.0))
            move = np.where(some, ratios - shift[:, None] - self.alpha * moved - narrowed, 0.0)
            regret = _exponential_gap(move)
        else:
            move = np.where(some, moved + s * slope / np.where(some, mass, 1.0) - shift[:, None], 0.0)
            regret = move**2
        terms = mass * regret * np.exp(-0.5 * eta * eta)
        width = (high - low) / (count - 1) / math.sqrt(2.0 * math.pi) / today
        thirds = [3.0 * width * np.sum(terms[:, first::3], axis=-1) for first in range(3)]
        values = (thirds[0] + thirds[1] + thirds[2]) / 3.0
        return values, np.all([abs(each - values) <= _ROUGHLY * values for each in thirds], axis=0)

    @property
    def log_scale(self) -> Host:
        """[M]: log W."""
        return np.log(self.mass)


def _exponential_gap(x: Host) -> Host:
    """exp(x) - x - 1, by its series near 0."""
    near = x * x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0))))
    return np.where(abs(x) < _NEAR, near, np.expm1(x) - x)


def few_regrets(loss: Any, belief: Any) -> FewRegrets | None:
    """For the contexts of a belief with few pairs; None where there are more, or where this does not serve them."""
    if type(loss) not in (SquaredError, Linex) or not isinstance(loss.weight, InterpolatedWeight):
        return None
    if closed_masses(loss, belief) is None or not 0 < belief.n_candidates * belief.n_contexts <= _FEW_PAIRS:
        return None
    mean, sd = on_host(double(belief.mean)), np.sqrt(on_host(double(belief.variance)))
    if not np.all(sd > 0):
        return None
    found = FewRegrets(loss, mean, sd, tilts_of_points(loss, mean, sd))
    return found if found.served else None
