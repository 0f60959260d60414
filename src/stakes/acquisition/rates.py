"""Curves EUR_c(rho) from the rate at which a posterior that narrows lowers the least expected loss.

Let h(m, s^2) be the least expected loss once the target is N(m, s^2). A label moves m about and narrows s. What a fixed
answer is expected to cost solves the heat equation whatever the loss, so h falls only as the answer follows m, by

    G(m, s) = dh / d(s^2) - (d^2 h / dm^2) / 2 >= 0

for each unit of variance that is removed, and with x = sqrt(1 - rho), a posterior sd over the prior sd,

    EUR_c(rho) = 2 v integral_x^1 t E[G(m + sqrt(v (1 - t^2)) eta, sqrt(v) t)] dt.

For each loss:

| loss                                  | G                                                                       |
|---------------------------------------|-------------------------------------------------------------------------|
| weighted Bregman loss of T(z)         | W phi''(a) (da / dm)^2 / 2, a = E[w T] / W, W = E[w]                    |
| squared error, so                     | W (Var_w[z] / s^2)^2                                                    |
| Linex, so                             | W (d log a / dm)^2 / 2                                                  |
| CRPS, z = g(f)                        | integral of g'(t) (E[w (f - mu) 1{f <= t}])^2 dt / (W s^4), mu = E_w[f] |
| quantile, z = g(f)                    | g'(a) h^2 / (2 s^3 w(g(a)) pdf((a - m) / s)), a the answer, h in f      |

Moments of weights through points are those of truncated normals; others are integrated in panels of 16 nodes that split
where the weight is rough. Where one expectation of the slope of a warp tells (`SlopeRates`):

| loss, no weight       | G                                        |
|-----------------------|------------------------------------------|
| CRPS, z = g(f)        | E[g'(N(m, s^2 / 2))] / (2 sqrt(pi) s)    |
| quantile, z = g(f)    | pdf(q) g'(m + q s) / (2 s), q its normal |

(docs/theory.md). No rate is negative, nothing cancels, and G is a function of two numbers that all contexts share: its
logarithm is tabulated on a lattice of m for Chebyshev nodes of log s, an octave of s at a time. On the host, whatever
the library of the belief is.
Sizes: M contexts, R values of x, P pairs of a context and an x, J places of a lattice, S nodes of s, K points of a
weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebint, chebval, chebvander
from scipy.special import ndtr, ndtri

from stakes._utils.array import Array, constant, double, log_of, on_host, replaced, slices
from stakes.acquisition.curves import Curves, SmoothCurves, points, series
from stakes.acquisition.forms import by_logarithms
from stakes.beliefs import BoxCoxWarp, GaussianBelief, LogWarp, SoftplusWarp, WarpedGaussianBelief
from stakes.beliefs.quadrature import SPACING, TAIL, modes_and_window
from stakes.beliefs.warped import Warp
from stakes.losses import (
    CRPS,
    Exponential,
    Identity,
    Linex,
    NegativeEntropy,
    NegativeLog,
    Power,
    Square,
    SquaredError,
    WeightedBregman,
)
from stakes.losses.distributional import QuantileScore
from stakes.losses.distributions import NODES_PER_PANEL, Distribution, derivative, legendre_series, panel_nodes
from stakes.losses.transforms import NearExponential
from stakes.losses.weights import InterpolatedWeight, as_weight

Host: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
LogRate: TypeAlias = Callable[[Host, Host], Host]
"""Means m and standard deviations s, which broadcast, to log G(m, s)."""

LEAST = 1e-290
"""Of a mass in the range of numbers."""
CANCELLED = 1e-3
"""Of the weighted variance over s^2, below which too few of its digits are left."""
_SHORT = 0.005  # standard deviations: a piece whose averages are taken from its middle
_PANEL = 2.5  # widest panel of a normal density, in its sds
_PANEL_NUMBERS = 2**17  # numbers at once


Masses: TypeAlias = Callable[[Host, Host], tuple[Host, Host, Host]]
"""Means m, from an origin, and s to W = E[w], s dW/dm and s^2 d^2 W / dm^2."""

_FEW_PAIRS = 2048  # candidates and contexts that are integrated one by one where moments are closed
_MOST_FEW = 2**18  # nodes of few pairs
_FEW_STEP = 0.4  # of eta, or less
_HALVINGS = 3  # of such a step at most
_FEW_BEYOND = 7.0  # standard deviations of a density that is integrated for itself
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
_EVEN = 1e-4  # of the largest weight, that the smallest may be without weighted mass far from the mean
_LOWEST = -120.0  # log E[G], below which the table may lack what matters
_LEAST_SPREAD = 1e-3  # prior sds: as good as none, but at no node of a curve
_WEIGHT_PANEL = 1.25  # widest panel of a weight, in the largest sd
_SMOOTH = 0.4  # of such a panel, over which the rate is smooth
_GENTLE, _STEEPEST = 0.6, 8.0  # steepness of a weight that such a panel resolves, and of the steepest that is tried
_BEYOND, _WIDEST = 8.5, 60.0  # standard deviations around the mass, and of a window
_ROUGH_PANEL = 2.0  # the same where panels split at all rough places, and between them a weight is as smooth as it gets
_MOST_CUTS = 64  # such places
_LOOKED_AT = 512  # places at which a rough weight is compared with the largest
_FAR, _ENDS = 16.0, 1e-12  # standard deviations of a warped target, and what may be left at its ends
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


AnyRates: TypeAlias = Rates | FewRates | SlopeRates


_STARTS = (0.9, 0.75, 0.5, 0.2, 0.05, 0.01, 0.0)  # of curves, in posterior sds
_CURVE_NODES = (9, 15, 27, 81)  # in turn, until they do
_FEW_NODES = (15, 27, 81)  # the same of few contexts, whose rates are not to be looked up
_HUGE = 300.0  # logarithm of a rate over its scale
_ENOUGH = 5e-8  # the error of the interpolation that is aimed at
_SPARE = 0.01  # of the error aimed at, for coefficients that are left out


def start_of_rates(smallest: float) -> float:
    """Where a curve begins that reaches down to a posterior sd."""
    return next(start for start in _STARTS if start <= smallest)


def curves_of_rates(rates: AnyRates, scale: Any, some: Any, low: float, like: Array) -> SmoothCurves | None:
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
    if (masses := _closed_masses(loss, belief)) is not None:
        origin = _middle(loss.weight)
        rate = linex_rate(masses, loss.alpha) if type(loss) is Linex else squared_rate(masses)
        tilts = _tilts(loss, mean, sd)
        if len(mean) <= _FEW_CONTEXTS:
            return FewRates(rate, mean - origin, sd, tilts)
        return Rates(rate, mean - origin, sd, tilts)
    return _rates_in_panels(loss, belief, integrand, mean, sd)


def _rates_in_panels(loss: Any, belief: Any, integrand: Any, mean: Host, sd: Host) -> AnyRates | None:
    """By numerical integration, where the weight is no steeper than panels can follow."""
    rough = bool(getattr(integrand, "breakpoints", ()))
    if not isinstance(belief.like, np.ndarray) or (isinstance(loss, QuantileScore) and (rough or loss.breakpoints)):
        return None  # a quantile that passes a kink of the weight makes G kink
    if not isinstance(loss, QuantileScore | CRPS | WeightedBregman):
        return None
    few = len(mean) <= _FEW_CONTEXTS
    if few if rough else isinstance(loss, WeightedBregman):
        return None  # the general route is quicker: of smooth weights by products of nodes that contexts share
    tilts = _tilts_of(integrand, mean, sd)
    if (panels := _panels_of(loss, belief, integrand, mean, sd, tilts)) is None:
        return None
    if isinstance(loss, QuantileScore):
        rate: LogRate | None = quantile_rate(loss, panels)
    else:
        rate = crps_rate(panels) if isinstance(loss, CRPS) else bregman_rate(loss, panels)
    if rate is None or few:
        return None if rate is None else FewRates(rate, mean, sd, tilts)
    return Rates(rate, mean, sd, tilts, 0.0 if rough else _SMOOTH * panels.width, _MOST_INTEGRALS)


def _panels_of(loss: Any, belief: Any, integrand: Any, mean: Host, sd: Host, tilts: tuple[Host, Host]) -> Panels | None:
    """Panels that follow the weight; None where there are none, or where a rough weight is next to nothing somewhere.

    What is left of such a weight may lie further out than panels reach.
    """
    cuts, weight = np.asarray(integrand.breakpoints), as_weight(loss.weight)
    warp = belief.warp if isinstance(belief, WarpedGaussianBelief) else None
    if integrand.error > 0 or len(cuts) > _MOST_CUTS or by_logarithms(loss, belief) is not None:
        return None
    if not len(cuts) and (integrand.spacing == 0 or integrand.steepness > _STEEPEST):
        return None
    beyond = _BEYOND if len(mean) > _FEW_CONTEXTS else _FEW_BEYOND
    ends = float(np.min(tilts[0])) - beyond, float(np.max(tilts[1])) + beyond
    if ends[1] - ends[0] > _WIDEST:
        return None

    def log_weight(f: Host) -> Host:
        z = f if warp is None else warp.forward(f)
        if type(weight) is InterpolatedWeight:
            return np.asarray(log_of(np.interp(z, weight.values, weight.weights)))
        return np.zeros(f.shape) if weight is None else np.asarray(weight.logarithm(z))

    if len(cuts):
        low, high = float(np.min(mean + ends[0] * sd)), float(np.max(mean + ends[1] * sd))
        logs = log_weight(np.append(np.linspace(low, high, _LOOKED_AT), cuts))
        if not float(np.min(logs)) > float(np.max(logs)) + math.log(_EVEN):
            return None
    width = _WEIGHT_PANEL / max(1.0, integrand.steepness / _GENTLE)
    if len(cuts):
        width = math.inf if type(weight) is InterpolatedWeight and warp is None else _ROUGH_PANEL
    return Panels(log_weight, warp, ends, width * float(np.max(sd)), cuts)


def _closed_masses(loss: Any, belief: Any) -> Masses | None:
    """The mass of a weight through two points or more, for squared error and Linex under a Gaussian belief."""
    if type(loss) not in (SquaredError, Linex) or not isinstance(belief, GaussianBelief):
        return None
    if type(loss.weight) is not InterpolatedWeight or len(loss.weight.values) < 2:
        return None
    if by_logarithms(loss, belief) is not None:
        return None
    return interpolated_mass(loss.weight, _middle(loss.weight))


def _middle(weight: InterpolatedWeight) -> float:
    return (weight.values[0] + weight.values[-1]) / 2.0


def _tilts(loss: Any, mean: Host, sd: Host) -> tuple[Host, Host]:
    """[M] each: between which places, in standard units, weighted mass has its centre."""
    weights = getattr(loss.weight, "weights", (0.0, 1.0))
    if min(weights) >= _EVEN * max(weights):
        return 0.0 * mean, 0.0 * mean
    return _tilts_of(loss, mean, sd)


def _tilts_of(integrand: Any, mean: Host, sd: Host) -> tuple[Host, Host]:
    _, low, high = modes_and_window(integrand, mean, sd)
    return np.minimum(low + TAIL, 0.0), np.maximum(high - TAIL, 0.0)


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
    """Reductions of few pairs of squared error with a weight through points: E[W_eta (a_eta - a)^2], by even nodes."""

    def __init__(self, weight: InterpolatedWeight, mean: Host, sd: Host, tilts: tuple[Host, Host]) -> None:
        origin = _middle(weight)
        self.masses, self.mean, self.sd, self.tilts = interpolated_mass(weight, origin), mean - origin, sd, tilts
        self.mass, slope, bend = self.masses(self.mean, sd)
        self.served = float(np.min(self.mass)) > LEAST
        if self.served:
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
        move = np.where(some, moved + s * slope / np.where(some, mass, 1.0) - shift[:, None], 0.0)
        terms = mass * move**2 * np.exp(-0.5 * eta * eta)
        width = (high - low) / (count - 1) / math.sqrt(2.0 * math.pi) / today
        thirds = [3.0 * width * np.sum(terms[:, first::3], axis=-1) for first in range(3)]
        values = (thirds[0] + thirds[1] + thirds[2]) / 3.0
        return values, np.all([abs(each - values) <= _ROUGHLY * values for each in thirds], axis=0)

    @property
    def log_scale(self) -> Host:
        """[M]: log W."""
        return np.log(self.mass)


def few_regrets(loss: Any, belief: Any) -> FewRegrets | None:
    """For the contexts of a belief with few pairs; None where there are more, or where this does not serve them."""
    if type(loss) is not SquaredError or not isinstance(loss.weight, InterpolatedWeight):
        return None
    if _closed_masses(loss, belief) is None or not 0 < belief.n_candidates * belief.n_contexts <= _FEW_PAIRS:
        return None
    mean, sd = on_host(double(belief.mean)), np.sqrt(on_host(double(belief.variance)))
    if not np.all(sd > 0):
        return None
    found = FewRegrets(loss.weight, mean, sd, _tilts(loss, mean, sd))
    return found if found.served else None


def interpolated_mass(weight: InterpolatedWeight, origin: float) -> Masses:
    """W = E[w] of a weight through points, s dW/dm and s^2 d^2 W / dm^2, for m, counted from an origin, and s.

    W is the weight at one end and, for each piece, its rise times the share of the piece that a normal tail covers on
    average; the end is the nearer one, so that far out nothing cancels. A short piece is a step, but for its moments.
    """
    knots, rises = np.asarray(weight.values) - origin, np.diff(np.asarray(weight.weights))
    middle = (knots[0] + knots[-1]) / 2.0
    lengths = np.diff(knots)

    def masses(m: Host, s: Host) -> tuple[Host, Host, Host]:
        side = np.where(m < middle, 1.0, -1.0)
        base = np.where(m < middle, weight.weights[0], weight.weights[-1])
        mass, slope, bend = base + 0.0 * s, 0.0 * (m + s), 0.0 * (m + s)
        inverse = 1.0 / s
        t = (knots[0] - m) * inverse  # ends of a piece in standard units
        height = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
        tail = ndtr(-side * t)  # on the far side of the end
        for i, rise in enumerate(rises):
            further = (knots[i + 1] - m) * inverse
            above, beyond = np.exp(-0.5 * further * further) / math.sqrt(2.0 * math.pi), ndtr(-side * further)
            if rise:
                long = s / lengths[i]  # of which differences over the piece are averages
                share = (side * (height - above) - (t * tail - further * beyond)) * long
                rate, change = side * (tail - beyond) * long, (height - above) * long
                if lengths[i] < _SHORT * float(np.max(s)):
                    short = lengths[i] < _SHORT * s
                    share, rate, change = (
                        np.where(short, one, other)
                        for one, other in zip(
                            _short_piece(t, lengths[i] * inverse, side), (share, rate, change), strict=True
                        )
                    )
                mass += rise * side * share
                slope += rise * rate
                bend += rise * change
            t, height, tail = further, above, beyond
        return mass, slope, bend

    return masses


def _short_piece(start: Host, length: Host, side: Host) -> tuple[Host, Host, Host]:
    """Averages over a piece of the tail and of the density, and of what the density falls, with their second terms."""
    t = start + length / 2.0
    height, more = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi), length**2 / 24.0
    share = ndtr(-side * t) + side * more * t * height
    return share, height * (1.0 + more * (t * t - 1.0)), height * (t + more * (t**3 - 3.0 * t))


def squared_rate(masses: Masses) -> LogRate:
    """Log G of squared error, log W + 2 log(Var_w / s^2); NaN where too many digits of the variance cancel."""

    def log_rate(m: Host, s: Host) -> Host:
        mass, slope, bend = masses(m, s)
        some = mass > LEAST
        mass = np.where(some, mass, 1.0)
        move = np.where(some, 1.0 + bend / mass - (slope / mass) ** 2, 1.0)  # of the answer, as m moves
        if float(np.min(move)) < CANCELLED:
            return np.full(move.shape, np.nan)
        return np.asarray(np.where(some, np.log(mass) + 2.0 * np.log(move), -np.inf))

    return log_rate


def linex_rate(masses: Masses, alpha: float) -> LogRate:
    """Log G of Linex: log a = -alpha m + alpha^2 s^2 / 2 + log W(m - alpha s^2, s) - log W(m, s).

    NaN where too many digits of its slope, which is -alpha on average, cancel, or a mass is out of range.
    """

    def log_rate(m: Host, s: Host) -> Host:
        mass, slope, _ = masses(m, s)
        other, other_slope, _ = masses(m - alpha * s**2, s)
        some = (mass > LEAST) & (other > LEAST)
        mass, other = np.where(some, mass, 1.0), np.where(some, other, 1.0)
        move = np.where(some, 1.0 + (slope / mass - other_slope / other) / (alpha * s), 1.0)  # of log a, over -alpha
        if float(np.min(move)) < CANCELLED:
            return np.full(move.shape, np.nan)
        logs = np.log(mass) + 2.0 * np.log(move) + math.log(alpha**2 / 2.0)
        return np.asarray(np.where(some, logs, -np.inf))

    return log_rate


class Weighted(NamedTuple):
    """Weighted normal densities N(m, s^2) in panels, in standard units u of each."""

    m: Host
    """[P]"""
    s: Host
    """[P]"""
    edges: Host
    """[P, E + 1], or [E + 1] for all"""
    u: Host
    """[P, E, Q], or [E, Q] for all"""
    step: Host
    """As many: the length that each node stands for"""
    mass: Host
    """[P, E, Q]: w p du, over exp(top)"""
    top: Host
    """[P]"""

    @property
    def places(self) -> Host:
        """[P, E, Q]: the nodes as targets."""
        return np.asarray(self.m[:, None, None] + self.s[:, None, None] * self.u)

    def distribution(self, mass: Host) -> Distribution:
        """Masses as a distribution of u."""
        return Distribution(np.zeros(self.m.shape), self.edges, self.u, self.step, mass)


@dataclass(frozen=True, eq=False)
class Panels:
    """How weighted normal densities are integrated.

    Args:
        log_weight: The logarithm of the weight, as a function of f.
        warp: g, where the target is g(f), or None.
        ends: In standard units, between which all mass lies.
        width: Of a panel on which the weight is smooth, in units of f.
        cuts: [B], in order: where panels split.
    """

    log_weight: Callable[[Host], Host]
    warp: Warp | None
    ends: tuple[float, float]
    width: float
    cuts: Host

    def rate(self, of: Callable[[Weighted], Host]) -> LogRate:
        """Log G as a function of a mean and an s, from that of weighted densities."""

        def log_rate(m: Host, s: Host) -> Host:
            m, s = np.broadcast_arrays(np.asarray(m, dtype=float), np.asarray(s, dtype=float))
            return np.reshape(self.over(np.ravel(m), np.ravel(s), of), m.shape)

        return log_rate

    def over(self, m: Host, s: Host, of: Callable[[Weighted], Host]) -> Host:
        """[P]: what `of` makes of weighted densities of means and sds [P], a block of them at a time."""
        base = self._base(float(np.max(s)))
        step = max(1, _PANEL_NUMBERS // (len(base) * NODES_PER_PANEL))
        return np.concatenate([of(self.weighted(m[part], s[part], base)) for part in slices(len(m), step)])

    def _base(self, widest: float) -> Host:
        width = min(_PANEL, self.width / widest)
        return np.linspace(*self.ends, 1 + math.ceil((self.ends[1] - self.ends[0]) / width))

    def weighted(self, m: Host, s: Host, base: Host | None = None) -> Weighted:
        """The weighted densities of means and sds [P], in panels between `base` and all cuts within reach."""
        edges = self._base(float(np.max(s))) if base is None else base
        low, high = np.min(m + edges[0] * s), np.max(m + edges[-1] * s)
        if len(cuts := self.cuts[(self.cuts > low) & (self.cuts < high)]):
            inside = np.clip((cuts - m[:, None]) / s[:, None], edges[0], edges[-1])
            edges = np.sort(np.concatenate([np.broadcast_to(edges, (len(m), len(edges))), inside], axis=1), axis=1)
        u, step = panel_nodes(edges)
        logs = self.log_weight(m[:, None, None] + s[:, None, None] * u)
        top = np.max(logs, axis=(1, 2))
        mass = np.exp(logs - top[:, None, None] - 0.5 * u * u) * (step / math.sqrt(2.0 * math.pi))
        return Weighted(m, s, edges, u, step, mass, top)


def bregman_rate(loss: Any, panels: Panels) -> LogRate | None:
    """Log G of a weighted Bregman loss; None where phi'' is not known, or the answer may turn about as m rises."""
    if type(loss.potential) not in (Square, NegativeLog, NegativeEntropy):
        return None
    if type(loss.transform) not in (Identity, Exponential, NearExponential, Power):
        return None

    def forward(f: Host) -> Any:
        return f if panels.warp is None else panels.warp.forward(f)

    def of(given: Weighted) -> Host:
        total = np.sum(given.mass, axis=(1, 2))
        chart = loss.chart(forward(given.m)[:, None, None])
        t = chart.coordinate(forward(given.places))[..., 0]
        answer = np.sum(given.mass * t, axis=(1, 2)) / total
        centre = np.sum(given.mass * given.u, axis=(1, 2)) / total
        away = (t - answer[:, None, None]) * (given.u - centre[:, None, None])
        move = abs(np.sum(given.mass * away, axis=(1, 2))) / (total * given.s)  # da / dm
        bend = math.log(2.0)
        if not isinstance(loss.potential, Square):
            power = 2.0 if isinstance(loss.potential, NegativeLog) else 1.0
            origin = np.ravel(chart.origin + np.zeros((len(given.m), 1, 1, 1)))
            bend = -power * log_of(origin + answer)
        return np.asarray(log_of(total) + given.top + 2.0 * log_of(move) + bend - math.log(2.0))

    return panels.rate(of)


def crps_rate(panels: Panels) -> LogRate:
    """Log G of CRPS: the cdf at t falls by E_w[(f - mu) 1{f <= t}] / s^2 as the mean of f rises."""

    def of(given: Weighted) -> Host:
        total = np.sum(given.mass, axis=(1, 2))
        centre = np.sum(given.mass * given.u, axis=(1, 2)) / total
        fallen = given.distribution(given.mass * (given.u - centre[:, None, None])).below()
        lengths, power = given.step, 1.0
        if panels.warp is not None:
            shape, nothing = fallen.shape, np.zeros(given.m.shape)
            edges = given.m[:, None] + given.s[:, None] * given.edges
            f = Distribution(nothing, edges, given.places, np.broadcast_to(given.step, shape), given.mass)
            lengths, power = f.pushed_through(panels.warp.forward).step, 2.0
        integral = np.sum(fallen**2 * lengths, axis=(1, 2))
        return np.asarray(log_of(integral) - log_of(total) + given.top - power * np.log(given.s))

    return panels.rate(of)


def quantile_rate(loss: QuantileScore, panels: Panels) -> LogRate:
    """Log G of a quantile of the target, or of g(f), with a smooth weight: g'(a) h^2 / (2 s^3 w(a) pdf((a - m) / s)).

    h is what the best answer a costs in units of f: its integral ends at a, which is where the mass reaches the level.
    """

    def of(given: Weighted) -> Host:
        answer, cost = quantile_of(loss.level, given)
        there = given.m + given.s * answer
        log_slope = 0.0 if panels.warp is None else log_of(derivative(panels.warp.forward, there, given.s))
        log_weight = panels.log_weight(there) - given.top
        log_pdf = log_weight - 0.5 * answer**2 - math.log(math.sqrt(2.0 * math.pi))
        found = log_slope + 2.0 * log_of(cost) - log_pdf + given.top - np.log(2.0 * given.s / loss.unit)
        return np.asarray(np.where(cost > 0, found, np.nan))

    return panels.rate(of)


def quantile_of(level: float, given: Weighted) -> tuple[Host, Host]:
    """[P] each: the quantile in standard units, and what it costs, over exp(top), a unit of f for each."""
    masses = given.distribution(given.mass)
    short, x, _, _ = masses.crossing(level * masses.total())
    at = np.minimum(np.sum(short, axis=-1), given.edges.shape[-1] - 2)
    edges = np.broadcast_to(given.edges, (len(at), given.edges.shape[-1]))
    low, high = (np.take_along_axis(edges, (at + more)[:, None], axis=1)[:, 0] for more in (0, 1))
    answer = low + (high - low) * (1.0 + x) / 2.0
    moments = replaced(masses, mass=given.mass * (given.u - answer[:, None, None]))
    start, series = moments.mass_within(at, moments.starts())
    return answer, level * moments.total() - (start + legendre_series(series, x))
