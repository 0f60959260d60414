"""The integration behind a Gaussian belief's split moments, E[S(z) | eta_j] times the mass of node j.

z = m + sqrt(v) (sqrt(rho) eta + sqrt(1 - rho) epsilon), with eta what the label tells and epsilon what it leaves open.
Sizes: N candidates, M contexts, p contexts of a block, J nodes of eta, Q nodes of z, B breakpoints, D statistics.
"""

from __future__ import annotations

import math

from array_api_compat import device

from stakes._array import Array, constant, density, filled, namespace, slices
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.beliefs.quadrature import (
    CHUNK,
    COARSEST,
    PANEL,
    SPACING,
    TAIL,
    panels,
    standard,
    standard_nodes,
    tail,
    trapezoid,
)
from stakes.beliefs.switching import has_switches, switching_points

_RESOLVED = 0.2  # posterior sd (of prior sd) from which nodes of z at SPACING resolve the posterior, to 1e-21
KINKED = 0.1  # the same where breakpoints ask for panels, which are made as narrow as it takes
_MODEST = 100.0  # a boost that may be applied after the fact: no density has underflowed by then
_PER_SD = 1.4  # trapezoid nodes to the sd of a bell that integrate it to 1e-16
_LAYER = (-6.0, -2.0, 2.0, 6.0)  # cuts around a breakpoint of z as eta sees it, in posterior sds
_NEAREST = 12  # breakpoints that a narrow posterior is split at
_BELL, _BELL_PANEL = 7.0, 14.0 / 3.0  # three panels that integrate a bell alone, to 1e-8


class GaussianSplit:
    """The integration of split moments over all pairs of one belief.

    Where the posterior is wide, all nodes eta share one set of nodes of z and only the density changes: the split
    moments are then those of one discrete measure, and what distinguishes cells is exact however little they differ.
    Where it is narrow (posterior sd below _RESOLVED), each eta has nodes of its own.
    """

    def __init__(self, integrand: Integrand, mean: Array, sd: Array, rho: Array, reference: Reference) -> None:
        assert reference.point is not None
        self.integrand, self.mean, self.sd, self.point = integrand, mean, sd, reference.point  # [M] each
        # Shared between eta and epsilon as the variance is, so that neither density leaves the range of numbers.
        self.boost = log_weight(self.point, integrand) - reference.log_scale  # [M]
        self.rho = rho  # [N, M]
        xp = self.xp = namespace(rho)
        self.root = xp.clip(xp.sqrt(rho), 1e-150, 1.0)  # sqrt(rho)
        self.rest = xp.clip(xp.sqrt(1.0 - rho), 1e-150, 1.0)  # the posterior sd, in standard units
        self.resolved = KINKED if integrand.breakpoints else _RESOLVED
        # A panel resolves a posterior of a quarter of its width.
        narrowest = self._smallest(self.rest[self.rest >= self.resolved], 1.0)
        width = min(PANEL, 4.0 * narrowest)
        reach = tail(integrand)
        self.u, weights, low, high = standard_nodes(integrand, self.mean, self.sd, width)  # [M, Q], [M, Q], [M], [M]
        z = self.mean[:, None] + self.sd[:, None] * self.u
        self.weighted = weights[..., None] * integrand.statistics(z, self.point[:, None])  # [M, Q, D]
        self.tilt_low, self.tilt_high = low + reach, high - reach  # [M]: between them the weighted mass has its centre
        self.cuts = standard(integrand.breakpoints, self.mean, self.sd)  # [M, B]
        low, high = self.tilt_low * self.root - reach, self.tilt_high * self.root + reach  # [N, M]
        self.eta, weights = self._even(low, high) if self._wide() else self._layered(low, high)  # [N, M, J]
        if has_switches(integrand):
            self.eta, weights = self._layered(low, high, switching_points(self._conditional, self.eta))
        self.mass = weights * density(self.eta, (self.rho * self.boost)[..., None])

    def all_pairs(self) -> Array:
        """[N, M, J, D]: E[S | eta] times the mass of eta."""
        return self.mass[..., None] * self._conditional(self.eta)

    def _conditional(self, eta: Array) -> Array:
        """[N, M, J, D]: E[S | eta] at eta [N, M, J]."""
        if 0 in eta.shape:
            return filled((*eta.shape, self.weighted.shape[-1]), 0.0, self.rho)
        shared = not self.integrand.breakpoints and _same(self.tilt_low) and _same(self.tilt_high)
        shared = shared and float(self.xp.max(self.boost)) < _MODEST
        rows = [
            self._one_correlation(n, eta[n, ...]) if shared and _same(self.rho[n, :]) else self._row(n, eta[n, ...])
            for n in range(self.rho.shape[0])
        ]
        return self.xp.stack(rows, axis=0)

    def _wide(self) -> bool:
        """Whether an even grid of eta will do.

        E[S | eta] is S smoothed by the posterior, as wide as rest / root to eta: a breakpoint of z is a layer of that
        width, which an even grid resolves until it gets narrow, and panels around it from then on.
        """
        return not self.integrand.breakpoints or self._smallest(self.rest, 1.0) >= self.resolved

    def _even(self, low: Array, high: Array) -> tuple[Array, Array]:
        """[N, M, J] each: evenly spaced eta, and their weights."""
        steepest = 1.0 / self._smallest(1.0 / self.root, 1.0)
        smooth = self._smallest(self.rest / self.root, 1.0) if self.integrand.breakpoints else 1.0
        return trapezoid(low, high, min(COARSEST, SPACING / steepest, smooth / _PER_SD))

    def _layered(self, low: Array, high: Array, *more: Array) -> tuple[Array, Array]:
        """[N, M, J] each: eta in panels around every breakpoint of z and between `more` points [N, M, B]."""
        layer = self.rest[..., None, None] * constant(_LAYER, self.rho)  # [N, M, 1, L]
        cuts = (self.cuts[..., None] + layer) / self.root[..., None, None]  # [N, M, B, L]
        cuts = self.xp.reshape(cuts, (*low.shape, cuts.shape[2] * cuts.shape[3]))
        return panels(low, high, self.xp.concat([cuts, *more], axis=-1))

    def _smallest(self, values: Array, default: float) -> float:
        return float(self.xp.min(values)) if math.prod(values.shape) else default

    def _one_correlation(self, n: int, eta: Array) -> Array:
        """[M, J, D]: E[S | eta] for a candidate equally correlated with all contexts, which share their nodes."""
        if float(self.rest[n, 0]) < self.resolved:
            return self._row(n, eta)
        first = slice(0, 1)
        kernel = self._kernel(n, first, eta)[0, ...] / self.xp.exp(
            self._left(n, first)[0, ...]
        )  # [J, Q], without its boost
        conditional = self.xp.permute_dims(self.xp.tensordot(self.weighted, kernel, axes=([1], [1])), (0, 2, 1))
        return conditional * self.xp.exp(self._left(n, slice(None)))

    def _row(self, n: int, eta: Array) -> Array:
        """[M, J, D]: E[S | eta] for one candidate at eta [M, J], in blocks of contexts."""
        block = max(1, CHUNK // (eta.shape[-1] * self.u.shape[-1]))
        return self.xp.concat([self._block(n, part, eta) for part in slices(self.rho.shape[1], block)], axis=0)

    def _block(self, n: int, part: slice, eta: Array) -> Array:
        wide = self.rest[n, part] >= self.resolved  # [p]
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
        """[p, 1, 1]: what of the boost is for epsilon."""
        return ((1.0 - self.rho[n, part]) * self.boost[part])[:, None, None]

    def _own_nodes(self, n: int, part: slice, eta: Array) -> Array:
        """[p, J, D]: nodes of z around the posterior mean of each eta."""
        rest, centre = self.rest[n, part], self.root[n, part, None] * eta[part, :]  # [p], [p, J]
        reach = _BELL if self.integrand.breakpoints else TAIL
        low, high = self.tilt_low[part] * rest - reach, self.tilt_high[part] * rest + reach
        if not self.integrand.breakpoints:
            nodes, weights = trapezoid(low[:, None], high[:, None], COARSEST)  # [p, 1, Q]
        else:
            cuts = (self._nearest_cuts(centre, part) - centre[..., None]) / rest[:, None, None]  # [p, J, b]
            nodes, weights = panels(low[:, None], high[:, None], cuts, _BELL_PANEL)  # [p, J, Q]
        u = centre[..., None] + rest[:, None, None] * nodes  # [p, J, Q]
        z = self.mean[part, None, None] + self.sd[part, None, None] * u
        statistics = self.integrand.statistics(z, self.point[part, None, None])  # [p, J, Q, D]
        return self.xp.sum((weights * density(nodes, self._left(n, part)))[..., None] * statistics, axis=2)

    def _nearest_cuts(self, centre: Array, part: slice) -> Array:
        """[p, J, b]: the breakpoints around each posterior mean; more than a few within its reach are smoothed out."""
        count = self.cuts.shape[-1]
        cuts = self.cuts[part, None, :]
        if count <= _NEAREST:
            return cuts
        xp = self.xp
        below = xp.sum(xp.astype(cuts < centre[..., None], xp.int64), axis=-1)  # [p, J]
        first = xp.clip(below - _NEAREST // 2, 0, count - _NEAREST)
        positions = xp.reshape(first[..., None] + xp.arange(_NEAREST, device=device(centre)), (centre.shape[0], -1))
        return xp.reshape(xp.take_along_axis(cuts[:, 0, :], positions, axis=1), (*centre.shape, _NEAREST))


def _same(values: Array) -> bool:
    """Whether all are one number, up to rounding."""
    return bool(namespace(values).all(abs(values - values[0]) <= 1e-15))
