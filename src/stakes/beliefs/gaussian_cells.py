"""What a Gaussian belief says of whole distributions: w(z) p(z), and that once a label is known.

z = m + sqrt(v) (sqrt(rho) eta + sqrt(1 - rho) epsilon), with eta what the label tells and epsilon what it leaves open.
Sizes: M contexts, p contexts of a block, J nodes of eta, P panels, G nodes a panel, B breakpoints and marks.
"""

from __future__ import annotations

import math

import numpy as np

from stakes._array import Array, constant, density, filled, namespace, slices
from stakes.beliefs.base import Integrand, Reference, Regret, log_weight
from stakes.beliefs.quadrature import CHUNK, COARSEST, SPACING, TAIL, standard, trapezoid, windows
from stakes.distributions import COUNT, Distribution, panel_nodes

_WIDTH = 1.0  # of a panel, in standard deviations of the prior
_BELL = np.arange(-8.0, 9.0, 2.0)  # edges of panels that hold a posterior bell, in its standard deviations
_LAYER = (-6.0, -2.0, 2.0, 6.0)  # cuts around a kink of z as eta sees it, in posterior sds
_KINKED = 0.1  # posterior sd (of prior sd) from which an even grid of eta sees no kink
_PER_SD = 1.4  # trapezoid nodes to the sd of a bell that integrate it to 1e-16
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
        self.one_window = not self.cuts.shape[1] and modest and _same(self.low) and _same(self.high)

    def today(self) -> Distribution:
        """[M]: w(z) p(z | c)."""
        edges = self._edges(self.low, self.high, self.cuts)
        u, weights = panel_nodes(edges)  # [M, P, G]
        mass = weights * density(u, self.inside[:, None, None]) * self._weight(u, slice(None))
        return self._distribution(slice(None), edges, u, weights, mass)

    def over_cells(self, rho: Array, regret: Regret) -> Array:
        """[N, M]: regrets summed over the cells of each label."""
        if 0 in rho.shape:
            return filled(rho.shape, 0.0, rho)
        return self.xp.stack([self._row(rho[n, :], regret) for n in range(rho.shape[0])], axis=0)

    def most_nodes(self) -> int:
        """A bound on J P G."""
        width = float(self.xp.max(self.high - self.low))
        n_eta = max(width / SPACING, (width / _WIDTH + 1 + len(_LAYER) * self.cuts.shape[1]) * COUNT)
        n_eta = max(n_eta, width * _PER_SD / _KINKED if self.cuts.shape[1] else 0.0)
        n_panels = width / _WIDTH + len(_BELL) + width / 2.0 + self.cuts.shape[1] + 2
        return math.ceil(n_eta * n_panels * COUNT)

    def _row(self, rho: Array, regret: Regret) -> Array:
        """[M]: regrets of one candidate, in blocks of contexts."""
        root = self.xp.clip(self.xp.sqrt(rho), 1e-150, 1.0)  # [M]
        rest = self.xp.clip(self.xp.sqrt(1.0 - rho), 1e-150, 1.0)  # the posterior sd, in standard units
        shared = self.one_window and _same(rho, float(self.xp.min(self.xp.minimum(rho, 1.0 - rho))))
        some = slice(0, 1) if shared else slice(None)  # contexts that need nodes of their own
        eta, mass = self._outer(root[some], rest[some], some)  # [M, J]
        edges = self._posterior_edges(eta, root[some], rest[some], some)  # [M, J, P + 1]
        block = max(1, CHUNK // (math.prod(edges.shape[1:]) * COUNT))
        return self.xp.concat(
            [
                self._block(part, some if shared else part, root, rest, eta, mass, edges, regret)
                for part in slices(rho.shape[0], block)
            ]
        )

    def _outer(self, root: Array, rest: Array, some: slice) -> tuple[Array, Array]:
        """[M, J] each: nodes eta and their masses.

        Regrets are smooth in eta but where a kink of z is a layer as wide as rest / root, which an even grid resolves
        until it gets narrow, and panels around it from then on.
        """
        xp, cuts = self.xp, self.cuts[some, :]
        low, high = (self.low[some] + TAIL) * root - TAIL, (self.high[some] - TAIL) * root + TAIL  # [M]
        if not cuts.shape[1] or float(xp.min(rest)) >= _KINKED:
            smooth = float(xp.min(rest / root)) if cuts.shape[1] else 1.0
            eta, weights = trapezoid(low, high, min(COARSEST, SPACING / float(xp.max(root)), smooth / _PER_SD))
        else:
            layers = (cuts[..., None] + rest[:, None, None] * constant(_LAYER, rest)) / root[:, None, None]  # [M, B, L]
            eta, weights = panel_nodes(self._edges(low, high, xp.reshape(layers, (low.shape[0], -1))))
            eta, weights = (xp.reshape(each, (low.shape[0], -1)) for each in (eta, weights))
        return eta, weights * density(eta, (root * root * self.inside[some])[:, None])

    def _posterior_edges(self, eta: Array, root: Array, rest: Array, some: slice) -> Array:
        """[M, J, P + 1]: edges of panels for each eta, in units of epsilon so that a narrow posterior keeps its digits.

        Around the posterior the panels are as wide as it asks for; outside it, where the prior alone has mass, as wide
        as that asks for: even steps along what is left of the window once the posterior's part is taken out.
        """
        xp, rest = self.xp, rest[:, None, None]  # [M, 1, 1]
        centre = (root[:, None] * eta)[..., None]  # [M, J, 1]
        low, high = ((each[some, None, None] - centre) / rest for each in (self.low, self.high))
        tilts = float(xp.max((self.high - self.low)[some] - 2.0 * TAIL)) * float(xp.max(rest))
        first, last = ((self.low[some] + TAIL)[:, None, None] * rest + _BELL[0], (self.high[some] - TAIL)[:, None, None] * rest + _BELL[-1])
        share = constant(np.linspace(0.0, 1.0, len(_BELL) + math.ceil(tilts / 2.0)), eta)
        bell = _clipped(first + (last - first) * share, low, high)  # [M, J, b]
        start, stop = bell[..., :1], bell[..., -1:]
        before, left = start - low, (start - low) + (high - stop)
        steps = left * constant(np.linspace(0.0, 1.0, 1 + math.ceil(float(xp.max(left * rest)) / _WIDTH)), eta)
        outer = xp.where(steps < before, low + steps, stop + (steps - before))
        cuts = _clipped((self.cuts[some, None, :] - centre) / rest, low, high)
        return xp.sort(xp.concat([bell, outer, cuts], axis=-1), axis=-1)

    def _block(
        self, part: slice, few: slice, root: Array, rest: Array, eta: Array, mass: Array, edges: Array, regret: Regret
    ) -> Array:
        """[p]: regrets summed over eta; `few` contexts have nodes of their own."""
        xp = self.xp
        eta, mass, edges = eta[few, :], mass[few, :], edges[few, ...]
        left = (rest[few] ** 2 * self.inside[few])[:, None, None, None]
        centre, scale = (root[few, None] * eta)[..., None, None], rest[few, None, None, None]
        epsilon, weights = panel_nodes(edges)  # [p, J, P, G]
        u, length = centre + scale * epsilon, scale * weights
        weight = self._weight(u, part)
        before = length * density(u, self.inside[few, None, None, None]) * weight
        after = mass[..., None, None] * weights * density(epsilon, left) * weight
        prior = self._distribution(part, centre[..., 0] + scale[..., 0] * edges, u, length, before)
        posterior = Distribution(prior.origin, prior.edges, prior.nodes, prior.step, after)
        return xp.sum(regret(posterior, prior, self.marks[part, None, :]), axis=1)

    def _weight(self, u: Array, part: slice) -> Array:
        """w at u [p, ..., G] over its scale."""
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

    def _edges(self, low: Array, high: Array, cuts: Array) -> Array:
        """[M, P + 1]: even edges of panels from low to high [M], and the cuts [M, B] between them."""
        xp = self.xp
        share = constant(np.linspace(0.0, 1.0, 1 + math.ceil(float(xp.max(high - low)) / _WIDTH)), low)
        base = low[:, None] + (high - low)[:, None] * share
        return xp.sort(xp.concat([base, _clipped(cuts, low[:, None], high[:, None])], axis=1), axis=1)


def _clipped(values: Array, low: Array, high: Array) -> Array:
    """Values between low and high, which broadcast with them."""
    xp = namespace(values)
    return xp.where(values < low, low, xp.where(values > high, high, values))


def _same(values: Array, scale: float = 1e-7) -> bool:
    """Whether all are one number, up to 1e-8 of `scale`."""
    return bool(namespace(values).all(abs(values - values[0]) <= 1e-8 * scale))
