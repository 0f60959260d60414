"""Moments in logarithms, of positive statistics whose masses lie too far apart for plain numbers.

Linex has the statistics w and w T with T = exp(-alpha z): under N(m, v) the mass of the second lies alpha sd standard
deviations below that of the first, and where one has its mass, the other is exp(-(alpha sd)^2 / 2) small. What a label
tells is the ratio of the two everywhere, so both are kept as logarithms, each summed around its own peak.

Smooth statistics are summed on even nodes, whose spacing is halved until nothing changes; those with breakpoints in
Gauss-Legendre panels that split there, and in steps around them that a steep T asks for. Units are those of
`stakes.beliefs.gaussian_integration`: u = (z - mean) / sd, `root` is sqrt(rho) and `rest` is sqrt(1 - rho).
Sizes: N candidates, M contexts, p of a block, K members, J nodes of eta, Q nodes of z, B breakpoints, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from stakes._utils.array import Array, constant, filled, log_of, log_sum, namespace, slices
from stakes.beliefs.base import Integrand, Reference
from stakes.beliefs.quadrature import (
    CHUNK,
    COARSEST,
    SPACING,
    TAIL,
    member_slices,
    modes_and_window,
    newton_step,
    panels,
    standard_units,
    trapezoid,
)

_HALVINGS = 5  # of the spacing of nodes at most
_FINEST = 8.0  # of nodes of pairs: what has not converged then is not smooth
_CONVERGED = 1e-12  # of a logarithm: a change that is rounding
_PANEL = 1.0  # width of a panel of ten nodes, in standard deviations
_ONE_PANEL = 1e9
_STEPS = (0.0, *(sign * 2.0**k for k in range(7) for sign in (1.0, -1.0)))  # cuts around a breakpoint, over its slope
_FEW_STEPS = (0.0, 1.0, -1.0, 6.0, -6.0)  # the same where breakpoints are many
_MANY = 4  # breakpoints
_LAYER = (-6.0, -2.0, 2.0, 6.0)  # cuts around a breakpoint of z as eta sees it, in posterior sds
_LITTLE = 0.3  # sqrt(rho), up to which all eta share their nodes of z: what distinguishes cells is exact then
_POSTERIOR_PANEL = 2.0  # posterior sds
_NEAR_PEAK = 0.1  # posterior sds
_LOG_NORMAL = 0.5 * math.log(2.0 * math.pi)


class LogIntegrand(Integrand, Protocol):
    """An integrand of two positive statistics, w and w T, that are known by their logarithms."""

    @property
    def weighted(self) -> bool:
        """Whether w is not 1 everywhere."""

    @property
    def width(self) -> float:
        """Of panels and spacings, over the usual: below 1 for a second rule."""

    def log_statistics(self, z: Array, reference: Array) -> tuple[Array, Array]:
        """[...] each: log w(z), and log w(z) T(z) / T(reference)."""

    def log_ratio(self, z: Array, reference: Array) -> Array:
        """[...]: log T(z) / T(reference)."""


def log_span(integrand: LogIntegrand, mean: Array, sd: Array) -> float:
    """The range of log T over the windows of normals [M, K], of the context where it is widest."""
    xp = namespace(mean)
    if math.prod(mean.shape) == 0:
        return 0.0
    _, low, high = modes_and_window(integrand, mean, sd, steps=0)  # which is near enough
    ends = xp.concat([mean + sd * low, mean, mean + sd * high], axis=1)  # [M, 3 K]
    logs = integrand.log_ratio(ends, mean[:, :1])
    return float(xp.max(xp.max(logs, axis=1) - xp.min(logs, axis=1)))


def normal_log_moments(integrand: LogIntegrand, mean: Array, sd: Array, reference: Reference) -> Array:
    """[M, K, 2]: log E[S(z)] for z ~ N(mean, sd^2), both [M, K]; the reference is shared along K. In blocks of K."""
    assert reference.point is not None
    point = reference.point[:, None]
    parts = [_Today(integrand, mean[:, part], sd[:, part], point).log_moments for part in member_slices(mean)]
    return namespace(mean).concat(parts, axis=1) - reference.log_scale[:, None, None]


class _Today:
    """Nodes of z ~ N(mean, sd^2), each [...], as fine as it takes: their spacing is halved until nothing changes."""

    def __init__(self, integrand: LogIntegrand, mean: Array, sd: Array, point: Array) -> None:
        self.integrand, self.mean, self.sd, self.point = integrand, mean, sd, point  # [...] each
        self.modes, self.low, self.high = modes_and_window(integrand, mean, sd)  # [..., 2], [...], [...]
        self.cuts = self._graded_cuts()  # [..., B]
        self.fineness = 1.0
        self.u, self.log_terms = self._nodes()  # [..., Q], and logs of both S times the weight of the node
        self.log_moments = self._log_sum()  # [..., 2]
        for _ in range(_HALVINGS if math.prod(mean.shape) else 0):
            before, self.fineness = self.log_moments, 2.0 * self.fineness
            self.u, self.log_terms = self._nodes()
            self.log_moments = self._log_sum()
            if self._same(before):
                break
        self.fineness = min(self.fineness / 2.0, _FINEST)  # that before was enough

    @property
    def spacing(self) -> float:
        """Of even nodes, in standard deviations."""
        return self.integrand.width * SPACING / self.fineness

    @property
    def panel(self) -> float:
        """The widest panel, in standard deviations."""
        return self.integrand.width * _PANEL / self.fineness

    def log_statistics(self, u: Array, part: slice = slice(None)) -> tuple[Array, Array]:
        """[...] each: at u, of which contexts (all, or a block of the first axis) are the leading axes."""
        lead = (...,) + (None,) * (u.ndim - self.mean.ndim)
        mean, sd, point = (each[part][lead] for each in (self.mean, self.sd, self.point + 0.0 * self.mean))
        return self.integrand.log_statistics(mean + sd * u, point)

    def _nodes(self) -> tuple[Array, tuple[Array, Array]]:
        if self.integrand.breakpoints:
            u, weights = panels(self.low, self.high, self.cuts, self.panel)
        else:
            u, weights = trapezoid(self.low, self.high, self.spacing)
        log_weights, (first, second) = log_of(weights), self.log_statistics(u)
        return u, (first + log_weights, second + log_weights)

    def _log_sum(self) -> Array:
        log_density = -0.5 * self.u**2 - _LOG_NORMAL
        return namespace(self.u).stack([log_sum(each + log_density) for each in self.log_terms], axis=-1)

    def _same(self, before: Array) -> bool:
        xp, now = namespace(before), self.log_moments
        finite = xp.isfinite(before) & xp.isfinite(now)
        gap = abs(xp.where(finite, now, xp.zeros_like(now)) - xp.where(finite, before, xp.zeros_like(now)))
        return bool(xp.all(gap <= _CONVERGED * (1.0 + abs(xp.where(finite, now, xp.zeros_like(now))))))

    def _graded_cuts(self) -> Array:
        """[..., B S]: breakpoints in standard units, and steps around them that double, from 1 / slope of log T on."""
        count = len(self.integrand.breakpoints)
        xp, low, high = namespace(self.mean), self.low[..., None], self.high[..., None]
        cuts = standard_units(self.integrand.breakpoints, self.mean, self.sd)
        if count == 0:
            return cuts
        cuts = xp.where(cuts < low, low, xp.where(cuts > high, high, cuts))
        mean, sd, point = (each[..., None] for each in (self.mean, self.sd, self.point + 0.0 * self.mean))
        above, below = (self.integrand.log_ratio(mean + sd * (cuts + step), point) for step in (0.01, -0.01))
        slope = xp.clip(abs(above - below) / 0.02, 1.0, 1e6)
        steps = constant(_STEPS if count <= _MANY else _FEW_STEPS, self.mean)
        graded = cuts[..., None] + steps / slope[..., None]
        return xp.reshape(graded, (*cuts.shape[:-1], count * len(steps)))


class LogSplit:
    """The logarithms of split moments over all pairs of one Gaussian belief."""

    def __init__(self, integrand: LogIntegrand, mean: Array, sd: Array, rho: Array, reference: Reference) -> None:
        assert reference.point is not None
        xp = self.xp = namespace(rho)
        self.today, self.scale = _Today(integrand, mean, sd, reference.point), reference.log_scale
        self.root = xp.clip(xp.sqrt(rho), 1e-150, 1.0)  # [N, M]
        self.rest = xp.clip(xp.sqrt(1.0 - rho), 1e-150, 1.0)
        self.kinked, self.coarsest = bool(integrand.breakpoints), integrand.width * COARSEST
        # Between them the mass of every statistic has its centre; only at the modes, unless there are more of them.
        self.tilt_low, self.tilt_high = self.today.low + TAIL, self.today.high - TAIL  # [M]
        first, last = xp.min(self.today.modes, axis=-1), xp.max(self.today.modes, axis=-1)
        self.two_peaks = (first <= self.tilt_low + 1e-9) & (last >= self.tilt_high - 1e-9)  # [M]

    def moments(self) -> Array:
        """[N, M, J, 2]: log E[S 1{eta in cell j}]."""
        low, _, _, high = self.ends()
        eta, weights = panels(low, high, self.cuts(), _ONE_PANEL) if self.kinked else self._even()  # [N, M, J] each
        log_mass = log_of(weights + 0.0 * eta) - 0.5 * eta**2 - _LOG_NORMAL
        return self.conditional(eta) + log_mass[..., None]

    def conditional(self, eta: Array) -> Array:
        """[N, M, J, 2]: log E[S | eta] at eta [N, M, J]."""
        if 0 in eta.shape:
            return filled((*eta.shape, 2), -math.inf, eta)
        rows = [self._row(n, eta[n, ...]) for n in range(eta.shape[0])]
        return self.xp.stack(rows, axis=0) - self.scale[:, None, None]

    def ends(self) -> tuple[Array, Array, Array, Array]:
        """[N, M] each: from where to where eta has the mass of one statistic, and then of the other."""
        xp = self.xp
        low, high = self.tilt_low * self.root, self.tilt_high * self.root
        apart = self.two_peaks & (high - low > 2.0 * TAIL)
        middle = (low + high) / 2.0
        first_end, last_start = xp.where(apart, low + TAIL, middle), xp.where(apart, high - TAIL, middle)
        return low - TAIL, first_end, last_start, high + TAIL

    def _even(self) -> tuple[Array, Array]:
        """[N, M, J] each: evenly spaced eta and their weights; in two parts where the masses lie apart."""
        xp = self.xp
        low, first_end, last_start, high = self.ends()
        apart = last_start > first_end
        width = xp.where(apart, 4.0 * TAIL + xp.zeros_like(low), high - low)
        steepest = float(xp.max(self.root)) if math.prod(low.shape) else 1.0
        widest = float(xp.max(width)) if math.prod(low.shape) else 1.0
        half = 1 + math.ceil(widest / min(self.coarsest, self.today.spacing / steepest) / 2.0)
        two = [trapezoid_of(*ends, half) for ends in ((low, first_end), (last_start, high))]
        both = [xp.concat([first, last], axis=-1) for first, last in zip(*two, strict=True)]
        one = trapezoid_of(low, high, 2 * half)
        return tuple(xp.where(apart[..., None], each, other) for each, other in zip(both, one, strict=True))

    def cuts(self) -> Array:
        """[N, M, B]: edges of panels of eta that split around every breakpoint of z, and are few between the masses."""
        xp, (low, first_end, last_start, high) = self.xp, self.ends()
        layer = self.rest[..., None, None] * constant(_LAYER, self.root)
        breaks = standard_units(self.today.integrand.breakpoints, self.today.mean, self.today.sd)  # [M, B]
        layer = xp.reshape(breaks[..., None] + layer, (*low.shape, breaks.shape[-1] * len(_LAYER)))
        cuts = xp.concat([layer, self.today.cuts + xp.zeros_like(low)[..., None]], axis=-1) / self.root[..., None]
        for start, end in ((low, first_end), (last_start, high)):
            widest = float(xp.max(end - start)) if math.prod(low.shape) else 1.0
            share = constant(np.linspace(0.0, 1.0, 1 + math.ceil(widest / self.today.panel)), low)
            cuts = xp.concat([cuts, start[..., None] + (end - start)[..., None] * share], axis=-1)
        return cuts

    def _row(self, n: int, eta: Array) -> Array:
        """[M, J, 2]: log E[S | eta] for one candidate at eta [M, J]."""
        little = self.root[n, :] <= _LITTLE  # [M]
        if not bool(self.xp.any(little)):
            return self._own_nodes(n, eta)
        shared = self._in_blocks(eta, lambda part: self._shared_nodes(n, part, eta), self.today.u.shape[-1])
        if bool(self.xp.all(little)):
            return shared
        return self.xp.where(little[:, None, None], shared, self._own_nodes(n, eta))

    def _in_blocks(self, eta: Array, of: Callable[[slice], Array], n_nodes: int) -> Array:
        """What a function gives for blocks of contexts, whose pairs of eta and one of so many nodes keep to a chunk."""
        parts = slices(eta.shape[0], max(1, CHUNK // (n_nodes * eta.shape[-1])))
        return self.xp.concat([of(part) for part in parts], axis=0)

    def _shared_nodes(self, n: int, part: slice, eta: Array) -> Array:
        """[p, J, 2]: nodes of z that serve every eta."""
        u, rest = self.today.u[part, None, :], self.rest[n, part, None, None]
        centre = (self.root[n, part, None] * eta[part, :])[..., None]
        log_kernel = -0.5 * ((u - centre) / rest) ** 2 - self.xp.log(rest) - _LOG_NORMAL  # [p, J, Q]
        each = [log_sum(log_kernel + terms[part, None, :]) for terms in self.today.log_terms]
        return self.xp.stack(each, axis=-1)

    def _own_nodes(self, n: int, eta: Array) -> Array:
        """[M, J, 2]: nodes of z around the mass of each statistic under the posterior of each eta."""
        first = self._around_peak(n, eta, 0) if self.today.integrand.weighted else self.xp.zeros_like(eta)
        return self.xp.stack([first, self._around_peak(n, eta, 1)], axis=-1)

    def _around_peak(self, n: int, eta: Array, d: int) -> Array:
        """[M, J]: log E[S_d | eta], with t the target in posterior standard units."""
        xp, rest = self.xp, self.rest[n, :, None]  # [M, 1]
        centre = self.root[n, :, None] * eta  # [M, J]

        def log_height(t: Array, part: slice = slice(None)) -> Array:
            lead = (part, ..., *(None,) * (t.ndim - 2))
            return self.today.log_statistics(centre[lead] + rest[lead] * t, part)[d] - 0.5 * t * t

        peak = _peak(log_height, xp.zeros_like(centre))
        lowest, highest = (each[:, None] * rest for each in (self.tilt_low, self.tilt_high))
        low, high = xp.minimum(xp.minimum(peak, lowest), 0.0 * peak), xp.maximum(xp.maximum(peak, highest), 0.0 * peak)
        low, high, widest = low - TAIL, high + TAIL, float(xp.max(rest))

        def log_sums(part: slice) -> Array:
            if self.kinked:
                cuts = (self.today.cuts[part, None, :] - centre[part, :, None]) / rest[part, :, None]
                width = min(self.today.integrand.width * _POSTERIOR_PANEL, self.today.panel / widest)
                t, weights = panels(low[part, :], high[part, :], cuts, width)
            else:
                t, weights = trapezoid(low[part, :], high[part, :], min(self.coarsest, self.today.spacing / widest))
            return log_sum(log_height(t, part) + log_of(weights)) - _LOG_NORMAL

        return self._in_blocks(eta, log_sums, self.today.u.shape[-1] // 2)


def trapezoid_of(low: Array, high: Array, count: int) -> tuple[Array, Array]:
    """[..., count] each: even nodes from low to high [...], and their weights."""
    width = (high - low)[..., None]
    nodes = low[..., None] + width * constant(np.linspace(0.0, 1.0, count), low)
    return nodes, width / (count - 1) + 0.0 * nodes


def _peak(height: Callable[[Array], Array], t: Array) -> Array:
    """Where `height` is largest, from t on, to within what does not matter to a window of nodes around it."""
    xp = namespace(t)
    for _ in range(12):
        before, t = t, newton_step(height, t)
        if bool(xp.all(abs(t - before) < _NEAR_PEAK)):
            break
    return t


def split_by_member(log_masses: Array, log_expected: Array) -> Array:
    """[N, M, J, 2]: the log of sum_k mass[n, j, k] expected[m, k, d], from logs [N, J, K] and [M, K, 2]."""
    xp, total = namespace(log_masses), None
    for k in range(log_masses.shape[2]):
        each = log_masses[:, None, :, k, None] + log_expected[None, :, None, k, :]
        total = each if total is None else log_sum(xp.stack([total, each], axis=0), axis=0)
    return total
