"""What a Gaussian belief says of whole distributions: w(z) p(z), and that once a label is known.

z = m + sqrt(v) (sqrt(rho) eta + sqrt(1 - rho) epsilon), with eta what the label tells and epsilon what it leaves open.
Sizes: M contexts, p contexts of a block, J nodes of eta, P panels, G nodes a panel, B breakpoints and marks.
"""

from __future__ import annotations

import math

import numpy as np

from stakes._array import Array, constant, density, filled, namespace, ratio, replaced, slices
from stakes._panels import COUNT, panel_nodes
from stakes.beliefs.base import Integrand, Reference, Regret, log_weight
from stakes.beliefs.quadrature import CHUNK, COARSEST, TAIL, standard, trapezoid, windows
from stakes.distributions import Distribution

# Sixteen nodes on 3 sds of a bell give its cdf to 3e-11; on 1.25 sds of the prior they integrate a sigmoid of slope
# 6/sd to 3e-11.
_BELL_PANEL, _PANEL = 3.0, 1.25
_BELL = 7.5  # standard deviations kept of a posterior, and of eta: the mass beyond is 6e-14
_SPACING = 0.14  # of an even grid of eta, in standard deviations of the target: 6e-11 for that sigmoid
_WIDE = 0.15  # posterior sd (of prior sd) from which nodes of z that serve every eta are fewer than those of each
_LAYER = (-6.0, -2.0, 2.0, 6.0)  # cuts around a kink of z as eta sees it, in posterior sds
_KINKED = 0.1  # posterior sd (of prior sd) from which an even grid of eta sees no kink
_PER_SD = 1.4  # trapezoid nodes to the sd of a bell that integrate it to 1e-16
_HALVINGS = 10  # of the range of eta, and a line from there: a switch that is off costs only the cube of that
_MODEST = 100.0  # a boost that may be applied after the fact: no density has underflowed by then


class GaussianCells:
    """The distributions of all contexts of one Gaussian belief, today's and those in the cells of a label.

    Both are taken at the same nodes, which resolve both: what distinguishes them is exact however little they differ.
    """

    def __init__(self, integrand: Integrand, mean: Array, sd: Array, reference: Reference, marks: Array) -> None:
        assert reference.point is not None
        self.integrand, self.mean, self.sd, self.point, self.marks = integrand, mean, sd, reference.point, marks
        self.xp = xp = namespace(mean)
        self.low, self.high = windows(integrand, mean, sd)  # [M] each, in standard units
        spread = xp.where(sd > 0, sd, xp.full_like(sd, 1e-150))[:, None]
        marked = xp.clip((marks + (self.point - mean)[:, None]) / spread, -1e100, 1e100)
        self.cuts = xp.concat([standard(integrand.breakpoints, mean, sd), marked], axis=1)  # [M, B]
        boost = log_weight(self.point, integrand) - reference.log_scale  # [M]
        modest = 0 in mean.shape or float(xp.max(boost)) < _MODEST
        # A boost beyond that is shared between eta and epsilon as the variance is: neither density leaves the range.
        self.inside, self.outside = (0.0 * boost, xp.exp(boost)) if modest else (boost, xp.ones_like(boost))
        self.switches = bool(integrand.breakpoints) and bool(marks.shape[1])
        self.level = self._level() if self.switches else self.low  # [M]: of the prior, below the mark
        self.one_window = not self.cuts.shape[1] and modest and _same(self.low) and _same(self.high)

    def today(self) -> Distribution:
        """[M]: w(z) p(z | c)."""
        edges = self._edges(self.low, self.high, self.cuts, _PANEL)
        u, length = panel_nodes(edges)  # [M, P, G]
        mass = length * density(u, self.inside[:, None, None]) * self._weight(u, slice(None))
        return self._distribution(slice(None), edges, u, length, mass)

    def _level(self) -> Array:
        """[M]: the share of today's mass that lies below the first mark."""
        distribution, mark = self.today(), self.marks[:, :1]
        sums = self.xp.sum(distribution.mass, axis=-1)  # [M, P]
        below = self.xp.where(distribution.nodes[..., 0] < mark, sums, self.xp.zeros_like(sums))
        return ratio(self.xp.sum(below, axis=1), self.xp.sum(sums, axis=1))

    def over_cells(self, rho: Array, regret: Regret) -> Array:
        """[N, M]: regrets summed over the cells of each label."""
        if 0 in rho.shape:
            return filled(rho.shape, 0.0, rho)
        return self.xp.stack([self._row(rho[n, :], regret) for n in range(rho.shape[0])], axis=0)

    def most_nodes(self) -> int:
        """A bound on J P G: of an even grid of eta, or of panels around kinks, times the panels of a wide posterior."""
        width, n_cuts = float(self.xp.max(self.high - self.low)), self.cuts.shape[1]
        n_eta = max(width / _SPACING, (width / _PANEL + 1 + len(_LAYER) * n_cuts) * COUNT)
        n_eta = max(n_eta, width * _PER_SD / _KINKED) if n_cuts else n_eta
        return int(n_eta * (width / min(_PANEL, _BELL_PANEL * _WIDE) + 2 + n_cuts) * COUNT)

    def _row(self, rho: Array, regret: Regret) -> Array:
        """[M]: regrets of one candidate, in blocks of contexts."""
        root = self.xp.clip(self.xp.sqrt(rho), 1e-150, 1.0)  # [M]
        rest = self.xp.clip(self.xp.sqrt(1.0 - rho), 1e-150, 1.0)  # the posterior sd, in standard units
        shared = self.one_window and _same(rho, float(self.xp.min(self.xp.minimum(rho, 1.0 - rho))))
        first = slice(0, 1)
        some = first if shared else slice(None)  # contexts that need nodes of their own
        eta, mass = self._outer(root[some], rest[some], some)  # [M, J]
        make = self._wide_panels if float(self.xp.min(rest)) >= _WIDE else self._narrow_panels
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
        low, high = (self.low[some] + TAIL) * root - _BELL, (self.high[some] - TAIL) * root + _BELL  # [M]
        if self.switches or (kinked and float(xp.min(rest)) < _KINKED):
            width = min(_BELL_PANEL, _PANEL / float(xp.max(root)))  # what is sharp in z is wider to eta
            eta, weights = panel_nodes(self._edges(low, high, self._kinks(low, high, root, rest), width))
            eta, weights = (xp.reshape(each, (low.shape[0], -1)) for each in (eta, weights))
        else:
            smooth = float(xp.min(rest / root)) if kinked else 1.0
            eta, weights = trapezoid(low, high, min(COARSEST, _SPACING / float(xp.max(root)), smooth / _PER_SD))
        return eta, weights * density(eta, (root * root * self.inside[some])[:, None])

    def _kinks(self, low: Array, high: Array, root: Array, rest: Array) -> Array:
        """[M, ...]: between which eta regrets are smooth.

        To eta a kink of z is a layer as wide as rest / root; an even grid resolves it until it gets narrow.
        """
        kinks = [self.xp.zeros_like(root)[:, None][:, :0]]
        if float(self.xp.min(rest)) < _KINKED:
            layers = self.cuts[..., None] + rest[:, None, None] * constant(_LAYER, rest)  # [M, B, L]
            kinks.append(self.xp.reshape(layers / root[:, None, None], (low.shape[0], -1)))
        if self.switches:
            parts = slices(low.shape[0], max(1, CHUNK // (1024 * self.cuts.shape[1] ** 2)))
            found = [self._switches(low[part], high[part], root[part], rest[part], part) for part in parts]
            kinks.append(self.xp.concat(found))
        return self.xp.concat(kinks, axis=1)

    def _switches(self, low: Array, high: Array, root: Array, rest: Array, some: slice) -> Array:
        """[M, b]: eta at which as much of the posterior lies below a breakpoint as of the prior below the mark.

        There a quantile of the posterior, which today is the mark, passes a breakpoint of the density: the regret of
        keeping it has a kink in its second derivative. What lies below a breakpoint falls as eta grows.
        """
        xp, breaks, level = self.xp, self.cuts[some, : -self.marks.shape[1]], self.level[some, None]  # [M, b]
        low, high = (each[:, None] + xp.zeros_like(breaks) for each in (low, high))
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
        width = min(_PANEL, _BELL_PANEL * float(self.xp.min(rest)))
        edges = self._edges(self.low[few], self.high[few], self.cuts[few, :], width)[:, None, :]
        u, length = panel_nodes(edges)
        return edges, u, length, (u - (root[:, None] * eta)[..., None, None]) / rest[:, None, None, None]

    def _narrow_panels(self, eta: Array, root: Array, rest: Array, few: slice) -> tuple[Array, Array, Array, Array]:
        """The same with panels for each eta, [p, J, ...], in units of epsilon first: a narrow bell keeps its digits."""
        centre, scale = (root[:, None] * eta)[..., None], rest[:, None, None]
        edges = self._edges_of_epsilon(centre, scale, few)
        epsilon, length = panel_nodes(edges)
        edges, (centre, scale) = centre + scale * edges, (centre[..., None], scale[..., None])
        return edges, centre + scale * epsilon, scale * length, epsilon

    def _edges_of_epsilon(self, centre: Array, rest: Array, few: slice) -> Array:
        """[p, J, P + 1]: panels as wide as the posterior asks for around it, as wide as the prior does outside.

        Outside are even steps along what is left of the window once the posterior's part is taken out.
        """
        xp = self.xp
        low, high = ((each[few, None, None] - centre) / rest for each in (self.low, self.high))  # [p, J, 1]
        first = (self.low[few] + TAIL)[:, None, None] * rest - _BELL
        last = (self.high[few] - TAIL)[:, None, None] * rest + _BELL
        bell = _clipped(first + (last - first) * _shares(float(xp.max(last - first)) / _BELL_PANEL, rest), low, high)
        start, stop = bell[..., :1], bell[..., -1:]
        before, left = start - low, (start - low) + (high - stop)
        steps = left * _shares(float(xp.max(left * rest)) / _PANEL, rest)
        outer = xp.where(steps < before, low + steps, stop + (steps - before))
        cuts = _clipped((self.cuts[few, None, :] - centre) / rest, low, high)
        return xp.sort(xp.concat([bell, outer, cuts], axis=-1), axis=-1)

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
        between = (...,) + (None,) * (u.ndim - 1)
        mean, sd, point, outside = (each[part][between] for each in (self.mean, self.sd, self.point, self.outside))
        return self.integrand.statistics(mean + sd * u, point)[..., 0] * outside

    def _distribution(self, part: slice, edges: Array, u: Array, weights: Array, mass: Array) -> Distribution:
        """In target units, counted from the reference."""
        between = (...,) + (None,) * (edges.ndim - 1)
        origin, sd = self.point[part], self.sd[part]
        shift, sd = (self.mean[part] - origin)[between], sd[between]
        nodes = shift[..., None] + sd[..., None] * u
        origin = origin if edges.ndim == 2 else origin[:, None]
        return Distribution(origin, shift + sd * edges, nodes, sd[..., None] * weights, mass)

    def _edges(self, low: Array, high: Array, cuts: Array, width: float) -> Array:
        """[M, P + 1]: even edges of panels from low to high [M], and the cuts [M, B] between them."""
        xp, low, high = self.xp, low[:, None], high[:, None]
        base = low + (high - low) * _shares(float(xp.max(high - low)) / width, low)
        return xp.sort(xp.concat([base, _clipped(cuts, low, high)], axis=1), axis=1)


def _shares(count: float, like: Array) -> Array:
    """From 0 to 1 in `count` even steps, rounded up."""
    return constant(np.linspace(0.0, 1.0, 1 + max(1, math.ceil(count))), like)


def _clipped(values: Array, low: Array, high: Array) -> Array:
    """Values between low and high, which broadcast with them."""
    xp = namespace(values)
    return xp.where(values < low, low, xp.where(values > high, high, values))


def _same(values: Array, scale: float = 1e-7) -> bool:
    """Whether all are one number, up to 1e-8 of `scale`."""
    return bool(namespace(values).all(abs(values - values[0]) <= 1e-8 * scale))
