"""The rate G(m, s) at which a posterior that narrows lowers the least expected loss, for each loss that has one.

Let h(m, s^2) be the least expected loss once the target is N(m, s^2). A label moves m about and narrows s. What a fixed
answer is expected to cost solves the heat equation whatever the loss, so h falls only as the answer follows m, by

    G(m, s) = dh / d(s^2) - (d^2 h / dm^2) / 2 >= 0

for each unit of variance that is removed:

| loss                                  | G                                                                       |
|---------------------------------------|-------------------------------------------------------------------------|
| weighted Bregman loss of T(z)         | W phi''(a) (da / dm)^2 / 2, a = E[w T] / W, W = E[w]                    |
| squared error, so                     | W (Var_w[z] / s^2)^2                                                    |
| Linex, so                             | W (d log a / dm)^2 / 2                                                  |
| log score, z = g(f)                   | W Var_w[f] / (2 s^4)                                                    |
| CRPS, z = g(f)                        | integral of g'(t) (E[w (f - mu) 1{f <= t}])^2 dt / (W s^4), mu = E_w[f] |
| quantile, z = g(f)                    | g'(a) h^2 / (2 s^3 w(g(a)) pdf((a - m) / s)), a the answer, h in f      |

Moments of weights through points are those of truncated normals (`interpolated_mass`); others are integrated in panels
of 16 nodes that split where the weight is rough (`Panels`).
Sizes: M contexts, P pairs of a mean and an s, E panels, Q nodes of each, B cuts, K points of a weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from stakes._utils.array import log_of, replaced, slices
from stakes.acquisition.forms import by_logarithms
from stakes.beliefs import GaussianBelief, WarpedGaussianBelief
from stakes.beliefs.quadrature import TAIL, modes_and_window
from stakes.beliefs.warped import Warp
from stakes.losses import (
    Exponential,
    Identity,
    Linex,
    NegativeEntropy,
    NegativeLog,
    Power,
    Square,
    SquaredError,
)
from stakes.losses.distributional import LogScore, QuantileScore
from stakes.losses.distributions import NODES_PER_PANEL, Distribution, derivative, legendre_series, panel_nodes
from stakes.losses.transforms import NearExponential
from stakes.losses.weights import InterpolatedWeight, as_weight

Host: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
LogRate: TypeAlias = Callable[[Host, Host], Host]
"""Means m and standard deviations s, which broadcast, to log G(m, s)."""
Masses: TypeAlias = Callable[[Host, Host], tuple[Host, Host, Host]]
"""Means m, from an origin, and s to W = E[w], s dW/dm and s^2 d^2 W / dm^2."""

LEAST = 1e-290
"""Of a mass in the range of numbers."""
CANCELLED = 1e-3
"""Of the weighted variance over s^2, below which too few of its digits are left."""
GENTLE = 0.6
"""Steepness of a weight that a panel of the widest resolves."""
_SHORT = 0.005  # standard deviations: a piece whose averages are taken from its middle
_PANEL = 2.5  # widest panel of a normal density, in its sds
_PANEL_NUMBERS = 2**15  # numbers at once, whose memory is kept from one block to the next
_EVEN = 1e-4  # of the largest weight, that the smallest may be without weighted mass far from the mean
_WEIGHT_PANEL = 1.25  # widest panel of a weight, in the largest sd
_STEEPEST = 8.0  # of the weights that panels follow without splitting
_BEYOND, _FEW_BEYOND = 8.5, 7.0  # standard deviations that panels reach around the mass, of many contexts and of few
_WIDEST = 60.0  # standard deviations of a window
_ROUGH_PANEL = 2.0  # the same where panels split at all rough places, and between them a weight is as smooth as it gets
_ASTRAY = 0.7  # standard deviations by which a weight may move a quantile without moving its mass much
_MOST_CUTS = 64  # such places
_LOOKED_AT = 512  # places at which a rough weight is compared with the largest


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
    return _rate_of_variance(masses, 2.0)


def log_score_rate(given: Masses | Panels) -> LogRate:
    """Log G of the log score, half the Fisher information of the weighted density about m: W Var_w / (2 s^4)."""
    if not isinstance(given, Panels):
        shares = _rate_of_variance(given, 1.0)
        return lambda m, s: np.asarray(shares(m, s) - np.log(2.0 * s * s))

    def of(given: Weighted) -> Host:
        total = np.sum(given.mass, axis=(1, 2))
        centre = np.sum(given.mass * given.u, axis=(1, 2)) / total
        spread = np.sum(given.mass * (given.u - centre[:, None, None]) ** 2, axis=(1, 2)) / total
        return np.asarray(log_of(total) + given.top + log_of(spread) - np.log(2.0 * given.s**2))

    return given.rate(of)


def _rate_of_variance(masses: Masses, power: float) -> LogRate:
    """The log of W (Var_w / s^2)^power; NaN where too many digits of the variance cancel."""

    def log_rate(m: Host, s: Host) -> Host:
        mass, slope, bend = masses(m, s)
        some = mass > LEAST
        mass = np.where(some, mass, 1.0)
        move = np.where(some, 1.0 + bend / mass - (slope / mass) ** 2, 1.0)  # of the answer, as m moves
        if float(np.min(move)) < CANCELLED:
            return np.full(move.shape, np.nan)
        return np.asarray(np.where(some, np.log(mass) + power * np.log(move), -np.inf))

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
        widest: Panel of a normal density, in its sds.
    """

    log_weight: Callable[[Host], Host]
    warp: Warp | None
    ends: tuple[float, float]
    width: float
    cuts: Host
    widest: float = _PANEL

    def rate(self, of: Callable[[Weighted], Host], numbers: int = _PANEL_NUMBERS) -> LogRate:
        """Log G as a function of a mean and an s, from that of weighted densities, so many numbers at once."""

        def log_rate(m: Host, s: Host) -> Host:
            m, s = np.broadcast_arrays(np.asarray(m, dtype=float), np.asarray(s, dtype=float))
            return np.reshape(self.over(np.ravel(m), np.ravel(s), of, numbers), m.shape)

        return log_rate

    def over(self, m: Host, s: Host, of: Callable[[Weighted], Host], numbers: int = _PANEL_NUMBERS) -> Host:
        """[P]: what `of` makes of weighted densities of means and sds [P], a block of them at a time."""
        base = self._base(float(np.max(s)))
        step = max(1, numbers // (len(base) * NODES_PER_PANEL))
        return np.concatenate([of(self.weighted(m[part], s[part], base)) for part in slices(len(m), step)])

    def _base(self, widest: float) -> Host:
        width = min(self.widest, self.width / widest)
        return np.linspace(*self.ends, 1 + math.ceil((self.ends[1] - self.ends[0]) / width))

    def finer(self) -> Panels:
        """By a second rule."""
        return replace(self, width=self.width / 1.4, widest=self.widest / 1.4)

    def around(self, level: float, widest: float) -> Host:
        """Edges of panels about an answer, 0 among them: as far as mass may lie from it, in units of s."""
        usual, more = float(ndtri(level)), _ASTRAY + self.ends[1] - self.ends[0] - 2.0 * _FEW_BEYOND
        ends = self.ends[0] - more - usual, self.ends[1] + more - usual
        width = min(self.widest, self.width / widest)
        below, above = (np.linspace(0.0, end, 1 + math.ceil(abs(end) / width)) for end in ends)
        return np.concatenate([below[:0:-1], above])

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

    return panels.rate(of, 2 * _PANEL_NUMBERS)  # the search for the quantile takes many steps, whatever their number


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


def panels_of(
    loss: Any, belief: Any, integrand: Any, mean: Host, sd: Host, tilts: tuple[Host, Host], *, few: bool
) -> Panels | None:
    """Panels that follow the weight; None where there are none, or where a rough weight is next to nothing somewhere.

    What is left of such a weight may lie further out than panels reach.
    """
    cuts, weight = np.asarray(integrand.breakpoints), as_weight(loss.weight)
    warp = belief.warp if isinstance(belief, WarpedGaussianBelief) else None
    if integrand.error > 0 or len(cuts) > _MOST_CUTS or by_logarithms(loss, belief) is not None:
        return None
    if not len(cuts) and (integrand.spacing == 0 or integrand.steepness > _STEEPEST):
        return None
    beyond = _FEW_BEYOND if few else _BEYOND
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
    width = _WEIGHT_PANEL / max(1.0, integrand.steepness / GENTLE)
    if len(cuts):
        width = math.inf if type(weight) is InterpolatedWeight and warp is None else _ROUGH_PANEL
    return Panels(log_weight, warp, ends, width * float(np.max(sd)), cuts)


def closed_masses(loss: Any, belief: Any) -> Masses | None:
    """The mass of a weight through two points or more, for losses of a Gaussian belief whose rates need no more."""
    if type(loss) not in (SquaredError, Linex, LogScore) or not isinstance(belief, GaussianBelief):
        return None
    if type(loss.weight) is not InterpolatedWeight or len(loss.weight.values) < 2:
        return None
    if by_logarithms(loss, belief) is not None:
        return None
    return interpolated_mass(loss.weight, middle_of(loss.weight))


def middle_of(weight: InterpolatedWeight) -> float:
    """The origin that means are counted from."""
    return (weight.values[0] + weight.values[-1]) / 2.0


def tilts_of_points(loss: Any, mean: Host, sd: Host) -> tuple[Host, Host]:
    """[M] each: between which places, in standard units, weighted mass has its centre."""
    weights = getattr(loss.weight, "weights", (0.0, 1.0))
    if min(weights) >= _EVEN * max(weights):
        return 0.0 * mean, 0.0 * mean
    return tilts_of(loss, mean, sd)


def tilts_of(integrand: Any, mean: Host, sd: Host) -> tuple[Host, Host]:
    """The same of any integrand."""
    _, low, high = modes_and_window(integrand, mean, sd)
    return np.minimum(low + TAIL, 0.0), np.maximum(high - TAIL, 0.0)
