"""Integration under a Gaussian belief: expectations given a label, and whole distributions.

A target is z = m + sqrt(v) (sqrt(rho) eta + sqrt(1 - rho) epsilon), with eta what the label tells and epsilon what it
leaves open, both standard normal. In the code, `root` is sqrt(rho), `rest` is sqrt(1 - rho), the posterior sd in units
of the prior sd, and u = (z - m) / sqrt(v). Three classes, each with the functions that it alone needs below it:

* `GaussianSplit`: split moments E[S(z) | eta_j] times the mass of node j, of any pairs of candidates and contexts.
* `SharedSplit`: the same for labels that tell the same share rho of every context, whose nodes all contexts have in
  common: one matrix takes the statistics at the nodes to E[S | eta], a product for each rho, as a table of the curve
  EUR_c(rho) wants it. Without breakpoints only: the statistics must be smooth.
* `GaussianCells`: the distributions w(z) p(z) once a label is known, for losses of a whole distribution;
  `distribution_today` gives those before.

A *boost* is an exponent that keeps a density in the range of numbers far from its centre: the weight is scaled down by
as much. Sizes: N candidates, M contexts, p or m contexts of a block, J nodes of eta, Q nodes of z, P panels and G nodes
a panel of a distribution, B breakpoints and marks, K nodes of a narrow posterior, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device
from numpy.polynomial.hermite_e import hermegauss

from stakes._utils.array import (
    Array,
    constant,
    density,
    filled,
    namespace,
    normal_between,
    on_host,
    ratio,
    replaced,
    slices,
)
from stakes.beliefs.base import Integrand, Reference, Regret, log_weight
from stakes.beliefs.quadrature import (
    CHUNK,
    COARSEST,
    PANEL,
    SPACING,
    TAIL,
    Resolved,
    common_window,
    modes_and_window,
    panels,
    standard_nodes,
    standard_units,
    tail_width,
    trapezoid,
    windows,
)
from stakes.beliefs.switching import switching_points
from stakes.losses.distributions import NODES_PER_PANEL, Distribution, panel_nodes

# Split moments
_WIDE_SD = 1.6  # posterior sd, in spacings of even nodes of z, from which these resolve the posterior, to 1e-21
WIDE_SD_AT_KINKS = 0.1  # the same where breakpoints ask for panels, which are made as narrow as it takes
_MODEST_BOOST = 100.0  # one that may be applied after the fact: no density has underflowed by then
# Nodes of eta to the sd of a posterior. A square of what that smooths has exp(-4 pi^2) beyond them; regrets are ratios,
# and where the weight falls to 1/1000 across a jump these leave 1e-6, and 1.4 nodes ten times as much.
_ETA_PER_SD = 2.0
_KINK_LAYER = (-6.0, -2.0, 2.0, 6.0)  # cuts around an edge of z as eta sees it, in posterior sds
_EXTREME = 5.0  # logarithms by which costs may differ without further ado
_FAR_STEPS = (3.0, 10.0, 40.0)  # cuts beyond one that is k sds out, over k: at the last, exp(-40) is left
_FAR_LAYER = (10.0, 14.0, 18.0, 22.0, 26.0, 30.0, 34.0, 38.0, 42.0)  # more cuts around an edge, in posterior sds
_SMOOTH_SCALE = 8.0  # posterior sds: an edge around which the statistics are smooth for so long needs no such cuts
_SEARCH_SPACING = 0.25  # of eta, at which switching points are looked for
_FAR = 1e3  # standard deviations, beyond which no mass is left
_NARROW_TAIL, _NARROW_PANEL = 7.0, 14.0 / 3.0  # sds: three panels that integrate a normal density alone, to 1e-8

# Split moments whose nodes all contexts share
_FINER = 3  # nodes of a narrow posterior for each even node
_FINEST_SD = _WIDE_SD / _FINER  # posterior sd, in spacings of even nodes, that they resolve, to 1e-21
_FINER_ETA = 0.7  # of the spacing of eta, to check it by
_CHECK_PANEL = 5.2  # spacings: width of a panel that checks the even nodes, and resolves posteriors of a quarter of it
# A posterior too narrow for the nodes has some of its own, by Gauss and Hermite: few, as statistics vary little there,
# and all of positive weight, so that what is positive stays so. For a sigmoid of slope 6/sd they leave 4e-8 and 4e-10.
_TINY_SD = 0.08  # in spacings of even nodes
_HERMITE_3, _HERMITE_7 = hermegauss(3), hermegauss(7)

# Distributions. Sixteen nodes on 3 sds of a normal density give its cdf to 3e-11; on 1.25 sds of the prior they
# integrate a sigmoid of slope 6/sd to 3e-11.
_POSTERIOR_PANEL, _PRIOR_PANEL = 3.0, 1.25
_POSTERIOR_TAIL = 7.5  # standard deviations kept of a posterior, and of eta: the mass beyond is 6e-14
_ETA_SPACING = 0.14  # of an even grid of eta, in standard deviations of the target: 6e-11 for that sigmoid
_SHARED_PANELS_SD = 0.15  # posterior sd (of prior sd) from which nodes of z for every eta are fewer than those of each
_PASSING = 2.5  # times as many where an answer may pass along a weight quickly
_GENTLE = 0.5  # steepness up to which it does not: a sigmoid of slope 4/sd leaves 5e-8
_STEEP, _CLOSE = 0.6, 0.003  # standard deviations: within which a weight varies that an answer passes quickly
_SWITCH_REACH = 9.0  # posterior sds of a breakpoint within which a quantile passes it
_HALVINGS = 10  # of the range of eta, and a line from there: a switch that is off costs only the cube of that

_Matrix = np.ndarray[Any, np.dtype[np.float64]]


class GaussianSplit:
    """The integration of split moments over all pairs of one belief.

    Where the posterior is wide, all nodes eta share one set of nodes of z and only the density changes: the split
    moments are then those of one discrete measure, and what distinguishes cells is exact however little they differ.
    Where it is narrow (posterior sd below _WIDE_SD), each eta has nodes of its own.
    """

    def __init__(self, integrand: Resolved, mean: Array, sd: Array, rho: Array, reference: Reference) -> None:
        assert reference.point is not None
        self.integrand, self.mean, self.sd, self.point = integrand, mean, sd, reference.point  # [M] each
        # Shared between eta and epsilon as the variance is, so that neither density leaves the range of numbers.
        self.boost = log_weight(self.point, integrand) - reference.log_scale  # [M]
        self.rho = rho  # [N, M]
        xp = self.xp = namespace(rho)
        self.root = xp.clip(xp.sqrt(rho), 1e-150, 1.0)  # sqrt(rho)
        self.rest = xp.clip(xp.sqrt(1.0 - rho), 1e-150, 1.0)  # the posterior sd, in standard units
        self.wide_sd = WIDE_SD_AT_KINKS if integrand.breakpoints else _WIDE_SD * integrand.spacing
        # A panel resolves a posterior of a quarter of its width.
        narrowest = self._smallest(self.rest[self.rest >= self.wide_sd], 1.0)
        width = min(PANEL, 4.0 * narrowest)
        reach = tail_width(integrand)
        self.u, weights, low, high = standard_nodes(integrand, self.mean, self.sd, width)  # [M, Q], [M, Q], [M], [M]
        z = self.mean[:, None] + self.sd[:, None] * self.u
        self.weighted = weights[..., None] * integrand.statistics(z, self.point[:, None])  # [M, Q, D]
        self.tilt_low, self.tilt_high = low + reach, high - reach  # [M]: between them the weighted mass has its centre
        self.further = self._further()
        self.cuts = standard_units(integrand.breakpoints, self.mean, self.sd)  # [M, B]
        self.scales = _scales(integrand.scales if integrand.breakpoints else (), self.sd)  # [M, B]
        self.low, self.high = self.tilt_low * self.root - reach, self.tilt_high * self.root + reach  # [N, M]: of eta

    @cached_property
    def nodes(self) -> tuple[Array, Array, Array | None]:
        """[N, M, J] each: eta and their masses; and [N, M, B]: switches, where cells are what lies between them."""
        even = self.smooth_in_eta()
        eta, weights = trapezoid(self.low, self.high, self.spacing()) if even else self._layered()
        switches: Array | None = None
        if self.integrand.finite_actions:
            switches = switching_points(self.conditional, eta)
            if not self.wide_throughout():
                eta, weights = self._layered(*self.around_switches(switches))
                switches = None
        return eta, weights * density(eta, (self.rho * self.boost)[..., None]), switches

    def moments(self) -> Array:
        """[N, M, J, D]: E[S | eta] times the mass of eta; for switches between which it is wide, E[S 1{between}]."""
        eta, mass, switches = self.nodes
        if switches is None:
            return mass[..., None] * self.conditional(eta)
        end = filled((*self.rho.shape, 1), _FAR, switches)
        cuts = self.xp.concat([-end, switches, end], axis=2)
        return self.between(cuts[..., :-1], cuts[..., 1:])

    def wide_throughout(self) -> bool:
        """Whether nodes of z that all eta share resolve every posterior."""
        return not self.further and self._smallest(self.rest, 1.0) >= self.wide_sd

    def _further(self) -> float:
        """Posterior sds beyond the usual at which a cost may still matter, for costs of actions far apart in size.

        An action that costs R times as much as another is as expensive with a probability of 1 / R, which a normal has
        sqrt(2 log R) standard deviations out.
        """
        if not self.integrand.finite_actions or 0 in self.weighted.shape:
            return 0.0
        xp, z = self.xp, self.mean[:, None] + self.sd[:, None] * self.u
        costs = xp.max(self.integrand.statistics(z, self.point[:, None]), axis=(0, 1))  # [A]
        largest = float(xp.max(costs))
        least = float(xp.min(xp.where(costs > 0, costs, xp.full_like(costs, xp.inf))))
        spread = math.log(largest) - math.log(least) if largest > 0 and math.isfinite(least) else 0.0
        return math.sqrt(2.0 * spread) if spread > _EXTREME else 0.0

    def around_switches(self, switches: Array) -> list[Array]:
        """[N, M, B] each: switching points, and places around them where the smaller of two costs dies out quickly."""
        if not self.further:
            return [switches]
        step = (self.rest / (self.root * self.further))[..., None]
        return [switches, *(switches + side * each * step for each in _FAR_STEPS for side in (-1.0, 1.0))]

    def between(self, low: Array, high: Array) -> Array:
        """[N, M, J, D]: E[S 1{low < eta < high}] for ends [N, M, J], where posteriors are wide throughout."""
        if 0 in low.shape:
            return filled((*low.shape, self.weighted.shape[-1]), 0.0, self.rho)
        return self.xp.stack([self._between(n, low[n, ...], high[n, ...]) for n in range(low.shape[0])], axis=0)

    def _between(self, n: int, low: Array, high: Array) -> Array:
        """[M, J, D]: the same for one candidate, with eta | u ~ N(root u, rest^2), in blocks of contexts."""
        xp, parts = self.xp, []
        for part in slices(low.shape[0], max(1, CHUNK // (8 * low.shape[1] * self.u.shape[1]))):
            centre = (self.root[n, part, None] * self.u[part, :])[:, None, :]  # [p, 1, Q]
            rest = self.rest[n, part, None, None]
            share = normal_between((low[part, :, None] - centre) / rest, (high[part, :, None] - centre) / rest)
            mass = density(self.u[part, :], self.boost[part, None])[:, None, :]
            parts.append(xp.matmul(share * mass, self.weighted[part, ...]))
        return xp.concat(parts, axis=0)

    def conditional(self, eta: Array) -> Array:
        """[N, M, J, D]: E[S | eta] at eta [N, M, J], over exp((1 - rho) boost)."""
        if 0 in eta.shape:
            return filled((*eta.shape, self.weighted.shape[-1]), 0.0, self.rho)
        shared = not self.integrand.breakpoints and _all_equal(self.tilt_low) and _all_equal(self.tilt_high)
        shared = shared and float(self.xp.max(self.boost)) < _MODEST_BOOST
        shared = shared and bool(self.xp.all(eta == eta[:, :1, :]))
        rows = []
        for n in range(self.rho.shape[0]):
            one = shared and _all_equal(self.rho[n, :])
            rows.append(self._one_correlation(n, eta[n, ...]) if one else self._row(n, eta[n, ...]))
        return self.xp.stack(rows, axis=0)

    def smooth_in_eta(self) -> bool:
        """Whether an even grid of eta will do.

        E[S | eta] is S smoothed by the posterior, as wide as rest / root to eta: a breakpoint of z is a layer of that
        width, which an even grid resolves until it gets narrow, and panels around it from then on.
        """
        return not self.integrand.breakpoints or self._smallest(self.rest, 1.0) >= self.wide_sd

    def spacing(self) -> float:
        """Of an even grid of eta that resolves E[S | eta], or that finds where the best action changes."""
        steepest = 1.0 / self._smallest(1.0 / self.root, 1.0)
        smooth = self._smallest(self.rest / self.root, 1.0) if self.integrand.breakpoints else 1.0
        if self.integrand.finite_actions:  # to be searched, not summed
            return min(_SEARCH_SPACING, smooth)
        spacing = self.integrand.spacing or SPACING
        if not self.integrand.breakpoints:  # to eta, statistics are no sharper than the posterior that smooths them
            spacing = max(spacing, min(SPACING, self._smallest(self.rest, 1.0) / _ETA_PER_SD))
        return self.integrand.width * min(COARSEST, spacing / steepest, smooth / _ETA_PER_SD)

    def layers(self) -> Array:
        """[N, M, b]: eta around every edge of z, between which E[S | eta] is smooth."""
        further = [step for step in _FAR_LAYER if self.further and step < self.further + 3.0]
        layer = (*_KINK_LAYER, *further, *(-step for step in further))
        return layers(self.cuts, self.scales, self.root, self.rest, layer)

    def _layered(self, *more: Array) -> tuple[Array, Array]:
        """[N, M, J] each: eta in panels around every edge of z and between `more` points [N, M, B]."""
        cuts = self.xp.concat([self.layers(), *more], axis=-1)
        return panels(self.low, self.high, cuts, self.integrand.width * PANEL)

    def _smallest(self, values: Array, default: float) -> float:
        return float(self.xp.min(values)) if math.prod(values.shape) else default

    def _one_correlation(self, n: int, eta: Array) -> Array:
        """[M, J, D]: E[S | eta] for a candidate equally correlated with all contexts, which share their nodes."""
        if float(self.rest[n, 0]) < self.wide_sd:
            return self._row(n, eta)
        first = slice(0, 1)
        kernel = self._kernel(n, first, eta) / self.xp.exp(self._left(n, first))  # [1, J, Q], without its boost
        conditional = self.xp.tensordot(self.weighted, kernel[0, ...], axes=([1], [1]))  # [M, D, J]
        conditional = self.xp.permute_dims(conditional, (0, 2, 1))
        return conditional * self.xp.exp(self._left(n, slice(None)))

    def _row(self, n: int, eta: Array) -> Array:
        """[M, J, D]: E[S | eta] for one candidate at eta [M, J], in blocks of contexts."""
        block = max(1, CHUNK // (eta.shape[-1] * self.u.shape[-1]))
        return self.xp.concat([self._block(n, part, eta) for part in slices(self.rho.shape[1], block)], axis=0)

    def _block(self, n: int, part: slice, eta: Array) -> Array:
        """[p, J, D]: E[S | eta] for one candidate and a block of contexts."""
        wide = self.rest[n, part] >= self.wide_sd  # [p]
        if self.further:
            return self._own_nodes(n, part, eta)
        if bool(self.xp.all(wide)):
            return self._shared_nodes(n, part, eta)
        if not bool(self.xp.any(wide)):
            return self._own_nodes(n, part, eta)
        return self.xp.where(wide[:, None, None], self._shared_nodes(n, part, eta), self._own_nodes(n, part, eta))

    def _shared_nodes(self, n: int, part: slice, eta: Array) -> Array:
        """[p, J, D]: nodes of z that serve every eta."""
        return self.xp.matmul(self._kernel(n, part, eta), self.weighted[part, ...])

    def _kernel(self, n: int, part: slice, eta: Array) -> Array:
        """[p, J, Q]: the density of u given eta."""
        rest, centre = self.rest[n, part, None, None], self.root[n, part, None] * eta[part, :]
        epsilon = (self.u[part, None, :] - centre[..., None]) / rest
        return density(epsilon, self._left(n, part)) / rest

    def _left(self, n: int, part: slice) -> Array:
        """[p, 1, 1]: the part of the boost that is for epsilon."""
        return ((1.0 - self.rho[n, part]) * self.boost[part])[:, None, None]

    def _own_nodes(self, n: int, part: slice, eta: Array) -> Array:
        """[p, J, D]: nodes of z around the posterior mean of each eta."""
        rest, centre = self.rest[n, part], self.root[n, part, None] * eta[part, :]  # [p], [p, J]
        reach = (_NARROW_TAIL if self.integrand.breakpoints else TAIL) + self.further
        low, high = self.tilt_low[part] * rest - reach, self.tilt_high[part] * rest + reach
        if not self.integrand.breakpoints:
            spacing = self.integrand.spacing / self._smallest(rest, 1.0)
            spacing = min(self.integrand.width * COARSEST, 0.8 * spacing)
            nodes, weights = trapezoid(low[:, None], high[:, None], spacing)  # [p, 1, Q]
        else:
            low, high = low[:, None], high[:, None]
            cuts = self._cuts_within(part, centre + rest[:, None] * low, centre + rest[:, None] * high)
            cuts = (cuts - centre[..., None]) / rest[:, None, None]  # [p, J, b]
            if self.further:  # beyond a cut far out the density falls quickly
                outward = self.xp.sign(cuts) / self.xp.clip(abs(cuts), 1.0, None)
                cuts = self.xp.concat([cuts, *(cuts + step * outward for step in _FAR_STEPS)], axis=-1)
            nodes, weights = panels(low, high, cuts, self.integrand.width * _NARROW_PANEL)  # [p, J, Q]
        u = centre[..., None] + rest[:, None, None] * nodes  # [p, J, Q]
        z = self.mean[part, None, None] + self.sd[part, None, None] * u
        statistics = self.integrand.statistics(z, self.point[part, None, None])  # [p, J, Q, D]
        return self.xp.sum((weights * density(nodes, self._left(n, part)))[..., None] * statistics, axis=2)

    def _cuts_within(self, part: slice, low: Array, high: Array) -> Array:
        """[p, J, b]: the edges between low and high [p, J], and others where there are fewer than elsewhere."""
        xp, cuts = self.xp, self.cuts[part, :]  # [p, B]
        first, stop = (xp.sum(xp.astype(cuts[:, None, :] < each[..., None], xp.int64), axis=-1) for each in (low, high))
        count = max(1, int(xp.max(stop - first)))
        first = xp.clip(first, 0, cuts.shape[1] - count)
        positions = xp.reshape(first[..., None] + xp.arange(count, device=device(low)), (low.shape[0], -1))
        return xp.reshape(xp.take_along_axis(cuts, positions, axis=1), (*low.shape, count))


def _scales(scales: tuple[float, ...], sd: Array) -> Array:
    """[M, B]: how far from each edge the statistics look smooth, in standard deviations [M]."""
    each = constant(scales, sd) + namespace(sd).zeros_like(sd)[:, None]
    return ratio(each, sd[:, None] + namespace(sd).zeros_like(each))


def layers(cuts: Array, scales: Array, root: Array, rest: Array, layer: tuple[float, ...] = _KINK_LAYER) -> Array:
    """[N, M, b]: eta between which expectations are smooth, for edges of u [M, B] and `root`, `rest` [N, M].

    To eta an edge is a layer as wide as rest / root, unless the statistics are smooth around it at that scale. Layers
    that overlap share their cuts.
    """
    shape, like = root.shape, root
    cuts, scales, root, rest = (on_host(each) for each in (cuts, scales, root, rest))
    rows = []
    for n, m in np.ndindex(shape):
        narrow = scales[m] < _SMOOTH_SCALE * rest[n, m]
        around = cuts[m][narrow][:, None] + rest[n, m] * np.asarray(layer)
        places = np.sort(np.concatenate([cuts[m][~narrow], around.ravel()]))
        places = places[abs(places) < _FAR]
        cells = np.floor(places / rest[n, m])
        rows.append(places[np.concatenate([[True], cells[1:] != cells[:-1]])[: len(places)]] / root[n, m])
    count = max((len(row) for row in rows), default=0)
    padded = [np.concatenate([row, np.full(count - len(row), _FAR / 1e-3)]) for row in rows]
    return constant(np.reshape(np.asarray(padded), (*shape, count)), like)


@dataclass(frozen=True, eq=False)
class SharedSplit:
    """The statistics of all contexts at the same nodes, in standard units, and the moments that follow."""

    reference: Reference
    """[M]: from where statistics are measured"""
    statistics: Callable[[slice, _Matrix], Array]
    """Of some contexts at nodes [q]: [m, D, q], over the scale of the reference"""
    window: tuple[float, float]
    """From where to where nodes are needed"""
    spacing: float = SPACING
    """Of even nodes, which resolves the statistics"""
    panels: bool = False
    """Whether by Gauss and Legendre, for posteriors that are not narrow: to check the even nodes by"""

    def moments(self, rho: float) -> Iterator[tuple[slice, Array]]:
        """Contexts in blocks: which, and [m, J, D]: E[S | eta_j] times the mass of eta_j."""
        root, rest = math.sqrt(rho), math.sqrt(1.0 - rho)
        eta = _eta_nodes(*self.window, root, rest, self.spacing * (_FINER_ETA if self.panels else 1.0))
        narrow = rest < _FINEST_SD * self.spacing
        conditional = self._narrow(eta, root, rest) if narrow else self._wide(eta, root, rest)
        mass = constant((eta[1] - eta[0]) * _normal_density(eta), self.reference.log_scale)  # [J]
        for part in self._blocks(len(eta) * (len(_HERMITE_7[0]) if narrow else 1)):
            yield part, namespace(mass).permute_dims(conditional(part) * mass, (0, 2, 1))

    def _blocks(self, count: int) -> Iterator[slice]:
        """Contexts in blocks for `count` nodes each, of a few statistics."""
        return slices(self.reference.log_scale.shape[0], max(1, CHUNK // (4 * count)))

    def every(self, step: int) -> SharedSplit:
        """The same for every `step`-th context."""
        point, log_scale = self.reference
        assert point is not None

        def statistics(part: slice, nodes: _Matrix) -> Array:
            return self.statistics(slice(part.start * step, part.stop * step, step), nodes)

        return replace(self, reference=Reference(point[::step], log_scale[::step]), statistics=statistics)

    def _wide(self, eta: _Matrix, root: float, rest: float) -> Callable[[slice], Array]:
        """Some contexts to E[S | eta], [m, D, J]: one product, with the rule of integration in the matrix."""
        coarse = rest >= _WIDE_SD * self.spacing
        nodes, lengths, statistics = self._in_panels if self.panels else self._coarse if coarse else self._fine
        weights = (lengths / rest)[:, None] * _normal_density((nodes[:, None] - root * eta) / rest)  # [Q, J]
        matrix, xp = constant(weights, statistics), namespace(statistics)

        def conditional(part: slice) -> Array:
            rows = xp.reshape(statistics[part, ...], (-1, len(nodes)))  # [m D, Q]
            return xp.reshape(xp.matmul(rows, matrix), (-1, statistics.shape[1], len(eta)))

        return conditional

    @cached_property
    def _coarse(self) -> tuple[_Matrix, _Matrix, Array]:
        return self._at_nodes(*_even_nodes(*self.window, self.spacing))

    @cached_property
    def _fine(self) -> tuple[_Matrix, _Matrix, Array]:
        return self._at_nodes(*_even_nodes(*self.window, self.spacing / _FINER))

    @cached_property
    def _in_panels(self) -> tuple[_Matrix, _Matrix, Array]:
        low, high = (np.asarray([each]) for each in self.window)
        nodes, lengths = panels(low, high, np.zeros((1, 0)), _CHECK_PANEL * self.spacing)
        return self._at_nodes(nodes[0], lengths[0])

    def _at_nodes(self, nodes: _Matrix, lengths: _Matrix) -> tuple[_Matrix, _Matrix, Array]:
        """[Q], [Q] and [M, D, Q]: nodes, their lengths and the statistics there."""
        parts = [self.statistics(part, nodes) for part in self._blocks(len(nodes))]
        return nodes, lengths, namespace(parts[0]).concat(parts, axis=0)

    def _narrow(self, eta: _Matrix, root: float, rest: float) -> Callable[[slice], Array]:
        """Some contexts to E[S | eta], [m, D, J], by nodes around each posterior mean."""
        own, weights = _HERMITE_3 if rest < _TINY_SD * self.spacing else _HERMITE_7
        places = np.reshape(root * eta[:, None] + rest * own, -1)  # [J K]

        def conditional(part: slice) -> Array:
            statistics = self.statistics(part, places)
            xp, shares = namespace(statistics), constant(weights / np.sum(weights), statistics)
            return xp.matmul(xp.reshape(statistics, (*statistics.shape[:2], len(eta), len(own))), shares)

        return conditional


def shared_split(integrand: Resolved, mean: Array, sd: Array) -> SharedSplit | None:
    """The shared nodes of targets N(mean, sd^2), each [M]; None where kinks, switches or windows ask for others."""
    if integrand.breakpoints or integrand.finite_actions:
        return None
    xp = namespace(mean)
    u, low, high = modes_and_window(integrand, mean, sd)
    low, high = common_window(low, high)
    boost = 0.5 * u[:, 0] ** 2  # [M]
    alike = bool(xp.all(low == low[0])) and bool(xp.all(high == high[0]))
    if not alike or float(xp.max(boost)) > _MODEST_BOOST:
        return None
    point, scale = mean + sd * u[:, 0], xp.exp(boost)

    def statistics(part: slice, nodes: _Matrix) -> Array:
        z = mean[part, None] + sd[part, None] * constant(nodes, mean)  # [m, q]
        return scale[part, None, None] * xp.permute_dims(integrand.statistics(z, point[part, None]), (0, 2, 1))

    reference = Reference(point, log_weight(point, integrand) - boost)
    return SharedSplit(reference, statistics, (float(low[0]), float(high[0])), integrand.spacing)


def _even_nodes(low: float, high: float, spacing: float) -> tuple[_Matrix, _Matrix]:
    """[Q], [Q]: nodes and their weights in the trapezoid rule, whose ends do not matter."""
    nodes = np.linspace(low, high, 1 + math.ceil((high - low) / spacing))
    return nodes, np.full(len(nodes), nodes[1] - nodes[0])


def _eta_nodes(low: float, high: float, root: float, rest: float, resolved: float) -> _Matrix:
    """[J]: even nodes for the window of z, which is centred anywhere between low + TAIL and high - TAIL.

    To eta, the statistics are no sharper than in z, and no sharper than the posterior that smooths them.
    """
    low, high = (low + TAIL) * root - TAIL, (high - TAIL) * root + TAIL
    spacing = min(COARSEST, max(resolved, min(SPACING, rest / _ETA_PER_SD)) / root)
    return np.linspace(low, high, 1 + math.ceil((high - low) / spacing))


def _normal_density(u: _Matrix) -> _Matrix:
    return np.asarray(np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi))


class GaussianCells:
    """The distributions of all contexts of one Gaussian belief in the cells of a label, beside those of today.

    Both are taken at the same nodes, which resolve both: what distinguishes them is exact however little they differ.
    """

    def __init__(self, integrand: Resolved, mean: Array, sd: Array, reference: Reference, marks: Array) -> None:
        assert reference.point is not None
        self.integrand, self.mean, self.sd, self.point, self.marks = integrand, mean, sd, reference.point, marks
        self.xp = xp = namespace(mean)
        self.low, self.high = windows(integrand, mean, sd)  # [M] each, in standard units
        self.cuts = _cuts(integrand, mean, sd, reference, marks)  # [M, B]
        self.inside, self.outside = _boosts(integrand, reference)  # [M] each
        self.scales = xp.concat([_scales(integrand.scales, sd), xp.zeros_like(marks)], axis=1)  # [M, B]
        self.steep = xp.asarray(_steep_places(integrand, sd), device=device(mean))
        self.switches = bool(self.steep.shape[0]) and bool(marks.shape[1])
        self.level = self.low  # [M]: of the prior, below the mark
        if self.switches:
            self.level = _share_below_mark(distribution_today(integrand, mean, sd, reference, marks), marks)
        alike = _all_equal(self.low) and _all_equal(self.high)
        self.one_window = alike and not self.cuts.shape[1] and not bool(xp.any(self.inside != 0))

    def over_cells(self, rho: Array, regret: Regret) -> Array:
        """[N, M]: regrets summed over the cells of each label."""
        if 0 in rho.shape:
            return filled(rho.shape, 0.0, rho)
        return self.xp.stack([self._row(rho[n, :], regret) for n in range(rho.shape[0])], axis=0)

    def most_nodes(self) -> int:
        """A bound on J P G: of an even grid of eta, or of panels around kinks, times the panels of a wide posterior."""
        width, n_cuts = float(self.xp.max(self.high - self.low)), self.cuts.shape[1]
        n_eta = max(width / _ETA_SPACING, (width / _PRIOR_PANEL + 1 + len(_KINK_LAYER) * n_cuts) * NODES_PER_PANEL)
        n_eta = max(n_eta, width * _ETA_PER_SD / WIDE_SD_AT_KINKS) if n_cuts else n_eta
        return int(
            n_eta * (width / min(_PRIOR_PANEL, _POSTERIOR_PANEL * _SHARED_PANELS_SD) + 2 + n_cuts) * NODES_PER_PANEL
        )

    def _row(self, rho: Array, regret: Regret) -> Array:
        """[M]: regrets of one candidate, in blocks of contexts."""
        root = self.xp.clip(self.xp.sqrt(rho), 1e-150, 1.0)  # [M]
        rest = self.xp.clip(self.xp.sqrt(1.0 - rho), 1e-150, 1.0)  # the posterior sd, in standard units
        shared = self.one_window and _all_equal(rho, 1e-8 * float(self.xp.min(self.xp.minimum(rho, 1.0 - rho))))
        first = slice(0, 1)
        some = first if shared else slice(None)  # contexts that need nodes of their own
        eta, mass = self._outer(root[some], rest[some], some)  # [M, J]
        make = self._wide_panels if float(self.xp.min(rest)) >= _SHARED_PANELS_SD else self._narrow_panels
        n_nodes = math.prod(make(eta[first, :], root[first], rest[first], first)[3].shape)
        parts = []
        for part in slices(rho.shape[0], max(1, CHUNK // n_nodes)):
            few = first if shared else part
            panels = make(eta[few, :], root[few], rest[few], few)
            parts.append(self._block(part, few, panels, rest[few], mass[few, :], regret))
        return self.xp.concat(parts)

    def _outer(self, root: Array, rest: Array, some: slice) -> tuple[Array, Array]:
        """[M, J] each: nodes eta and their masses, evenly spaced where regrets are smooth in eta."""
        xp, kinked = self.xp, bool(self.cuts.shape[1])
        low, high = (
            (self.low[some] + TAIL) * root - _POSTERIOR_TAIL,
            (self.high[some] - TAIL) * root + _POSTERIOR_TAIL,
        )  # [M]
        if self.switches or (kinked and float(xp.min(rest)) < WIDE_SD_AT_KINKS):
            width = min(_POSTERIOR_PANEL, _PRIOR_PANEL / float(xp.max(root)))  # what is sharp in z is wider to eta
            width *= self.integrand.width
            eta, weights = panel_nodes(_edges(low, high, self._kinks(low, high, root, rest, some), width))
            eta, weights = (xp.reshape(each, (low.shape[0], -1)) for each in (eta, weights))
        else:
            smooth = float(xp.min(rest / root)) if kinked else 1.0
            passes = self.marks.shape[1] and self.integrand.steepness > _GENTLE
            spacing = _ETA_SPACING / (_PASSING if passes else 1.0)
            spacing = min(COARSEST, spacing / float(xp.max(root)), smooth / _ETA_PER_SD)
            eta, weights = trapezoid(low, high, self.integrand.width * spacing)
        return eta, weights * density(eta, (root * root * self.inside[some])[:, None])

    def _kinks(self, low: Array, high: Array, root: Array, rest: Array, some: slice) -> Array:
        """[M, ...]: between which eta regrets are smooth.

        To eta a kink of z is a layer as wide as rest / root; an even grid resolves it until it gets narrow.
        """
        kinks = [self.xp.zeros_like(root)[:, None][:, :0]]
        if float(self.xp.min(rest)) < WIDE_SD_AT_KINKS:
            kinks.append(layers(self.cuts[some, :], self.scales[some, :], root[None, :], rest[None, :])[0, ...])
        if self.switches:
            parts = slices(low.shape[0], max(1, CHUNK // (1024 * self.cuts.shape[1] * (1 + self.steep.shape[0]))))
            found = [self._switches(low[part], high[part], root[part], rest[part], part) for part in parts]
            kinks.append(self.xp.concat(found))
        return self.xp.concat(kinks, axis=1)

    def _switches(self, low: Array, high: Array, root: Array, rest: Array, some: slice) -> Array:
        """[M, b]: eta at which as much of the posterior lies below a breakpoint as of the prior below the mark.

        There a quantile of the posterior, which today is the mark, passes a breakpoint of the density: the regret of
        keeping it has a kink in its second derivative. What lies below a breakpoint falls as eta grows.
        """
        xp, level = self.xp, self.level[some, None]
        breaks = xp.take(self.cuts[some, :], self.steep, axis=1)  # [M, b]
        reach, root_of_each = _SWITCH_REACH * rest[:, None], root[:, None]
        low = _clip((breaks - reach) / root_of_each, low[:, None], high[:, None])
        high = _clip((breaks + reach) / root_of_each, low, high[:, None])
        above, below = xp.ones_like(low), -xp.ones_like(low)  # the excess at low and at high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            excess = self._share_below(breaks, middle, root, rest, some) - level
            lower = excess > 0
            low, high = xp.where(lower, middle, low), xp.where(lower, high, middle)
            above, below = xp.where(lower, excess, above), xp.where(lower, below, excess)
        return low + (high - low) * ratio(above, above - below)

    def _share_below(self, point: Array, eta: Array, root: Array, rest: Array, some: slice) -> Array:
        """[M, b]: the share of the weighted posterior given eta that lies below a point, both [M, b]."""
        xp, inside = self.xp, (rest**2 * self.inside[some])[:, None, None, None]
        _, u, length, epsilon = self._narrow_panels(eta, root, rest, some)
        sums = xp.sum(length * self._weight(u, some) * density(epsilon, inside), axis=-1)  # [M, b, P]
        below = xp.sum(xp.where(u[..., 0] < point[..., None], sums, xp.zeros_like(sums)), axis=-1)
        return ratio(below, xp.sum(sums, axis=-1))

    def _wide_panels(self, eta: Array, root: Array, rest: Array, few: slice) -> tuple[Array, Array, Array, Array]:
        """Edges u [p, 1, P + 1], nodes u and their lengths [p, 1, P, G] for all eta, and epsilon [p, J, P, G]."""
        width = self.integrand.width * min(_PRIOR_PANEL, _POSTERIOR_PANEL * float(self.xp.min(rest)))
        edges = _edges(self.low[few], self.high[few], self.cuts[few, :], width)[:, None, :]
        u, length = panel_nodes(edges)
        return edges, u, length, (u - (root[:, None] * eta)[..., None, None]) / rest[:, None, None, None]

    def _narrow_panels(self, eta: Array, root: Array, rest: Array, few: slice) -> tuple[Array, Array, Array, Array]:
        """The same with panels for each eta, [p, J, ...], in units of epsilon first: a narrow one keeps its digits."""
        centre, scale = (root[:, None] * eta)[..., None], rest[:, None, None]
        edges = self._edges_of_epsilon(centre, scale, few)
        epsilon, length = panel_nodes(edges)
        edges, (centre, scale) = centre + scale * edges, (centre[..., None], scale[..., None])
        return edges, centre + scale * epsilon, scale * length, epsilon

    def _edges_of_epsilon(self, centre: Array, rest: Array, few: slice) -> Array:
        """[p, J, P + 1]: panels as wide as the posterior asks for around it, as wide as the prior does outside.

        Outside are even steps along what is left of the window once the posterior's part is taken out.
        """
        xp, width = self.xp, self.integrand.width
        low, high = ((each[few, None, None] - centre) / rest for each in (self.low, self.high))  # [p, J, 1]
        first = (self.low[few] + TAIL)[:, None, None] * rest - _POSTERIOR_TAIL
        last = (self.high[few] - TAIL)[:, None, None] * rest + _POSTERIOR_TAIL
        middle = _clip(
            first + (last - first) * _even_steps(float(xp.max(last - first)) / (width * _POSTERIOR_PANEL), rest),
            low,
            high,
        )
        start, stop = middle[..., :1], middle[..., -1:]
        before, left = start - low, (start - low) + (high - stop)
        steps = left * _even_steps(float(xp.max(left * rest)) / (width * _PRIOR_PANEL), rest)
        outer = xp.where(steps < before, low + steps, stop + (steps - before))
        cuts = _clip((self.cuts[few, None, :] - centre) / rest, low, high)
        return xp.sort(xp.concat([middle, outer, cuts], axis=-1), axis=-1)

    def _block(
        self, part: slice, few: slice, panels: tuple[Array, ...], rest: Array, mass: Array, regret: Regret
    ) -> Array:
        """[p]: regrets summed over eta; `few` contexts have nodes of their own."""
        edges, u, length, epsilon = panels
        left = (rest**2 * self.inside[few])[:, None, None, None]
        weight = length * self._weight(u, part)  # [p, 1 or J, P, G]
        prior = self._distribution(part, edges, u, length, density(u, self.inside[few, None, None, None]) * weight)
        after = density(epsilon, left) * (mass / rest[:, None])[..., None, None] * weight
        return self.xp.sum(regret(replaced(prior, mass=after), prior, self.marks[part, None, :]), axis=1)

    def _weight(self, u: Array, part: slice) -> Array:
        """[p, ..., G]: the weight at u, over its scale."""
        mean, sd, point, outside = (each[part] for each in (self.mean, self.sd, self.point, self.outside))
        return _weights_at(self.integrand, mean, sd, point, outside, u)

    def _distribution(self, part: slice, edges: Array, u: Array, length: Array, mass: Array) -> Distribution:
        """The distribution of a block of contexts, from arrays in standard units."""
        return _in_target_units(self.mean[part], self.sd[part], self.point[part], edges, u, length, mass)


def distribution_today(integrand: Resolved, mean: Array, sd: Array, reference: Reference, marks: Array) -> Distribution:
    """[M]: w(z) p(z | c) for targets N(mean, sd^2), each [M], before any label is known."""
    assert reference.point is not None
    low, high = windows(integrand, mean, sd)
    edges = _edges(low, high, _cuts(integrand, mean, sd, reference, marks), integrand.width * _PRIOR_PANEL)
    u, length = panel_nodes(edges)  # [M, P, G]
    inside, outside = _boosts(integrand, reference)
    weights = _weights_at(integrand, mean, sd, reference.point, outside, u)
    mass = length * density(u, inside[:, None, None]) * weights
    return _in_target_units(mean, sd, reference.point, edges, u, length, mass)


def _share_below_mark(distribution: Distribution, marks: Array) -> Array:
    """[M]: the share of the mass that lies below the first mark."""
    xp = namespace(marks)
    sums = xp.sum(distribution.mass, axis=-1)  # [M, P]
    below = xp.where(distribution.nodes[..., 0] < marks[:, :1], sums, xp.zeros_like(sums))
    return ratio(xp.sum(below, axis=1), xp.sum(sums, axis=1))


def _cuts(integrand: Resolved, mean: Array, sd: Array, reference: Reference, marks: Array) -> Array:
    """[M, B]: breakpoints and marks in standard units."""
    assert reference.point is not None
    xp = namespace(mean)
    spread = xp.where(sd > 0, sd, xp.full_like(sd, 1e-150))[:, None]
    marked = xp.clip((marks + (reference.point - mean)[:, None]) / spread, -1e100, 1e100)
    return xp.concat([standard_units(integrand.edges, mean, sd), marked], axis=1)


def _steep_places(integrand: Resolved, sd: Array) -> Any:
    """[b]: positions of edges at which the weight jumps, or is steep; of those close together, the steepest."""
    places, scales, spread = np.asarray(integrand.edges), np.asarray(integrand.scales), on_host(sd)
    largest = float(np.max(spread))
    smallest = float(np.min(spread[spread > 0])) if np.any(spread > 0) else 1.0
    chosen: list[int] = []
    for i in np.flatnonzero(scales < _STEEP * largest):
        close = bool(chosen) and places[i] - places[chosen[-1]] < _CLOSE * smallest
        if close and scales[i] + scales[chosen[-1]] > 0:  # two jumps are two places
            chosen[-1] = int(i) if scales[i] < scales[chosen[-1]] else chosen[-1]
        else:
            chosen.append(int(i))
    return np.asarray(chosen, dtype=np.int64)


def _boosts(integrand: Integrand, reference: Reference) -> tuple[Array, Array]:
    """[M] each: the exponents that densities are taken with, and the factors that are applied to weights.

    A boost that is not modest is shared between eta and epsilon as the variance is: neither density leaves the range.
    """
    assert reference.point is not None
    boost = log_weight(reference.point, integrand) - reference.log_scale
    xp = namespace(boost)
    if 0 in boost.shape or float(xp.max(boost)) < _MODEST_BOOST:
        return 0.0 * boost, xp.exp(boost)
    return boost, xp.ones_like(boost)


def _weights_at(integrand: Integrand, mean: Array, sd: Array, point: Array, outside: Array, u: Array) -> Array:
    """[p, ..., G]: the weight at u, over its scale, for contexts [p]."""
    between = (...,) + (None,) * (u.ndim - 1)
    mean, sd, point, outside = (each[between] for each in (mean, sd, point, outside))
    return integrand.statistics(mean + sd * u, point)[..., 0] * outside


def _in_target_units(
    mean: Array, sd: Array, point: Array, edges: Array, u: Array, length: Array, mass: Array
) -> Distribution:
    """The distribution with panels `edges` and nodes u in standard units, counted from the reference point."""
    between = (...,) + (None,) * (edges.ndim - 1)
    shift, sd = (mean - point)[between], sd[between]
    nodes = shift[..., None] + sd[..., None] * u
    origin = point if edges.ndim == 2 else point[:, None]
    return Distribution(origin, shift + sd * edges, nodes, sd[..., None] * length, mass)


def _edges(low: Array, high: Array, cuts: Array, width: float) -> Array:
    """[M, P + 1]: even edges of panels from low to high [M], and the cuts [M, B] between them."""
    xp, low, high = namespace(low), low[:, None], high[:, None]
    base = low + (high - low) * _even_steps(float(xp.max(high - low)) / width, low)
    return xp.sort(xp.concat([base, _clip(cuts, low, high)], axis=1), axis=1)


def _even_steps(count: float, like: Array) -> Array:
    """From 0 to 1 in `count` even steps, rounded up."""
    return constant(np.linspace(0.0, 1.0, 1 + max(1, math.ceil(count))), like)


def _clip(values: Array, low: Array, high: Array) -> Array:
    """Values between low and high, which broadcast with them."""
    xp = namespace(values)
    return xp.where(values < low, low, xp.where(values > high, high, values))


def _all_equal(values: Array, tolerance: float = 1e-15) -> bool:
    """Whether all are one number, up to `tolerance`."""
    return bool(namespace(values).all(abs(values - values[0]) <= tolerance))
