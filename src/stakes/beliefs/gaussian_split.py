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
    trapezoid,
)

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
        self.u, weights, low, high = standard_nodes(integrand, self.mean, self.sd, width)  # [M, Q], [M, Q], [M], [M]
        z = self.mean[:, None] + self.sd[:, None] * self.u
        self.weighted = weights[..., None] * integrand.statistics(z, self.point[:, None])  # [M, Q, D]
        self.tilt_low, self.tilt_high = low + TAIL, high - TAIL  # [M]: between them the weighted mass has its centre
        self.cuts = standard(integrand.breakpoints, self.mean, self.sd)  # [M, B]
        self.eta, self.mass = self._outer()  # [N, M, J]

    def all_pairs(self) -> Array:
        """[N, M, J, D]."""
        if 0 in self.rho.shape:
            return filled((*self.eta.shape, self.weighted.shape[-1]), 0.0, self.rho)
        shared = not self.integrand.breakpoints and _same(self.tilt_low) and _same(self.tilt_high)
        shared = shared and float(self.xp.max(self.boost)) < _MODEST
        conditional = [
            self._one_correlation(n) if shared and _same(self.rho[n, :]) else self._row(n)
            for n in range(self.rho.shape[0])
        ]
        return self.mass[..., None] * self.xp.stack(conditional, axis=0)

    def _outer(self) -> tuple[Array, Array]:
        """[N, M, J] each: nodes eta and their masses.

        E[S | eta] is S smoothed by the posterior, as wide as rest / root to eta: a breakpoint of z is a layer of that
        width, which an even grid resolves until it gets narrow, and panels around it from then on.
        """
        low, high = self.tilt_low * self.root - TAIL, self.tilt_high * self.root + TAIL
        steepest = 1.0 / self._smallest(1.0 / self.root, 1.0)
        if not self.integrand.breakpoints or self._smallest(self.rest, 1.0) >= self.resolved:
            smooth = self._smallest(self.rest / self.root, 1.0) if self.integrand.breakpoints else 1.0
            eta, weights = trapezoid(low, high, min(COARSEST, SPACING / steepest, smooth / _PER_SD))
        else:
            layer = self.rest[..., None, None] * constant(_LAYER, self.rho)  # [N, M, 1, L]
            cuts = (self.cuts[..., None] + layer) / self.root[..., None, None]  # [N, M, B, L]
            eta, weights = panels(low, high, self.xp.reshape(cuts, (*low.shape, cuts.shape[2] * cuts.shape[3])))
        return eta, weights * density(eta, (self.rho * self.boost)[..., None])

    def _smallest(self, values: Array, default: float) -> float:
        return float(self.xp.min(values)) if math.prod(values.shape) else default

    def _one_correlation(self, n: int) -> Array:
        """[M, J, D]: E[S | eta] for a candidate equally correlated with all contexts, which share their nodes."""
        if float(self.rest[n, 0]) < self.resolved:
            return self._row(n)
        first = slice(0, 1)
        kernel = self._kernel(n, first)[0, ...] / self.xp.exp(self._left(n, first)[0, ...])  # [J, Q], without its boost
        conditional = self.xp.permute_dims(self.xp.tensordot(self.weighted, kernel, axes=([1], [1])), (0, 2, 1))
        return conditional * self.xp.exp(self._left(n, slice(None)))

    def _row(self, n: int) -> Array:
        """[M, J, D]: E[S | eta] for one candidate, in blocks of contexts."""
        block = max(1, CHUNK // (self.eta.shape[-1] * self.u.shape[-1]))
        return self.xp.concat([self._block(n, part) for part in slices(self.rho.shape[1], block)], axis=0)

    def _block(self, n: int, part: slice) -> Array:
        wide = self.rest[n, part] >= self.resolved  # [p]
        if bool(self.xp.all(wide)):
            return self._shared_nodes(n, part)
        if not bool(self.xp.any(wide)):
            return self._own_nodes(n, part)
        return self.xp.where(wide[:, None, None], self._shared_nodes(n, part), self._own_nodes(n, part))

    def _shared_nodes(self, n: int, part: slice) -> Array:
        """[p, J, D]: nodes of z that serve every eta."""
        return self.xp.matmul(self._kernel(n, part), self.weighted[part, ...])

    def _kernel(self, n: int, part: slice) -> Array:
        """[p, J, Q]: the density of u given eta."""
        rest, centre = self.rest[n, part, None, None], self.root[n, part, None] * self.eta[n, part, :]
        epsilon = (self.u[part, None, :] - centre[..., None]) / rest
        return density(epsilon, self._left(n, part)) / rest

    def _left(self, n: int, part: slice) -> Array:
        """[p, 1, 1]: what of the boost is for epsilon."""
        return ((1.0 - self.rho[n, part]) * self.boost[part])[:, None, None]

    def _own_nodes(self, n: int, part: slice) -> Array:
        """[p, J, D]: nodes of z around the posterior mean of each eta."""
        rest, centre = self.rest[n, part], self.root[n, part, None] * self.eta[n, part, :]  # [p], [p, J]
        tail = _BELL if self.integrand.breakpoints else TAIL
        low, high = self.tilt_low[part] * rest - tail, self.tilt_high[part] * rest + tail
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
