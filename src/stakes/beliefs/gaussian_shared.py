"""Split moments of labels that tell the same share rho of every context, whose nodes all contexts have in common.

One matrix then takes the statistics at the nodes to E[S | eta] for all eta, whatever the context: a product for each
rho, as a table of the curve EUR_c(rho) wants it. Without breakpoints only: the statistics must be smooth.
Sizes: M contexts, Q nodes of z, J nodes of eta, D statistics, K nodes of a narrow posterior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from stakes._array import Array, constant, namespace, slices
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.beliefs.quadrature import CHUNK, COARSEST, SPACING, TAIL, landscape, one_window, panels
from stakes.beliefs.switching import has_switches

_FINER = 3  # nodes of a narrow posterior for each of SPACING
_FINEST = 1.6 * SPACING / _FINER  # posterior sd (of prior sd) that they resolve, to 1e-21
_PANEL = 0.65  # width of a panel, which resolves posteriors of a quarter of it
_PER_SD = 2.0  # nodes of eta to the sd of a posterior: a square of what it smooths has exp(-4 pi^2) beyond them
_MODEST = 100.0  # a boost that may be applied after the fact: no density has underflowed by then
# A posterior too narrow for the nodes has some of its own, by Gauss and Hermite: few, as statistics vary little there,
# and all of positive weight, so that what is positive stays so. For a sigmoid of slope 6/sd they leave 4e-8 and 4e-10.
_TINY = 0.01  # of the prior sd
_FEW, _MORE = hermegauss(3), hermegauss(7)

_Matrix = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class SharedSplit:
    """The statistics of all contexts at the same nodes, in standard units, and the moments that follow."""

    reference: Reference
    """[M]: from where statistics are measured"""
    statistics: Callable[[slice, _Matrix], Array]
    """Of some contexts at nodes [q]: [m, D, q], over the scale of the reference"""
    window: tuple[float, float]
    """From where to where nodes are needed"""
    panels: bool = False
    """Whether by Gauss and Legendre, for posteriors that are not narrow: to check the even nodes by"""

    def moments(self, rho: float) -> Iterator[tuple[slice, Array]]:
        """Contexts in blocks: which, and [m, J, D]: E[S | eta_j] times the mass of eta_j."""
        root, rest = math.sqrt(rho), math.sqrt(1.0 - rho)
        eta = _eta(*self.window, root, rest)
        narrow = rest < _FINEST
        conditional = self._narrow(eta, root, rest) if narrow else self._wide(eta, root, rest)
        mass = constant((eta[1] - eta[0]) * _density(eta), self.reference.log_scale)  # [J]
        for part in self._parts(len(eta) * (len(_MORE[0]) if narrow else 1)):
            yield part, namespace(mass).permute_dims(conditional(part) * mass, (0, 2, 1))

    def _parts(self, count: int) -> Iterator[slice]:
        """Contexts in blocks for `count` nodes each, of a few statistics."""
        return slices(self.reference.log_scale.shape[0], max(1, CHUNK // (4 * count)))

    def some(self, step: int) -> SharedSplit:
        """Every so many of the contexts."""
        point, log_scale = self.reference
        assert point is not None

        def statistics(part: slice, nodes: _Matrix) -> Array:
            return self.statistics(slice(part.start * step, part.stop * step, step), nodes)

        return replace(self, reference=Reference(point[::step], log_scale[::step]), statistics=statistics)

    def _wide(self, eta: _Matrix, root: float, rest: float) -> Callable[[slice], Array]:
        """Some contexts to E[S | eta], [m, D, J]: one product, with the rule of integration in the matrix."""
        coarse = rest >= _FINER * _FINEST
        nodes, lengths, statistics = self._in_panels if self.panels else self._coarse if coarse else self._fine
        weights = (lengths / rest)[:, None] * _density((nodes[:, None] - root * eta) / rest)  # [Q, J]
        matrix, xp = constant(weights, statistics), namespace(statistics)

        def conditional(part: slice) -> Array:
            rows = xp.reshape(statistics[part, ...], (-1, len(nodes)))  # [m D, Q]
            return xp.reshape(xp.matmul(rows, matrix), (-1, statistics.shape[1], len(eta)))

        return conditional

    @cached_property
    def _coarse(self) -> tuple[_Matrix, _Matrix, Array]:
        return self._at_nodes(*_even(*self.window, SPACING))

    @cached_property
    def _fine(self) -> tuple[_Matrix, _Matrix, Array]:
        return self._at_nodes(*_even(*self.window, SPACING / _FINER))

    @cached_property
    def _in_panels(self) -> tuple[_Matrix, _Matrix, Array]:
        low, high = (np.asarray([each]) for each in self.window)
        nodes, lengths = panels(low, high, np.zeros((1, 0)), _PANEL)
        return self._at_nodes(nodes[0], lengths[0])

    def _at_nodes(self, nodes: _Matrix, lengths: _Matrix) -> tuple[_Matrix, _Matrix, Array]:
        """[Q], [Q] and [M, D, Q]: with the statistics there."""
        parts = [self.statistics(part, nodes) for part in self._parts(len(nodes))]
        return nodes, lengths, namespace(parts[0]).concat(parts, axis=0)

    def _narrow(self, eta: _Matrix, root: float, rest: float) -> Callable[[slice], Array]:
        """Some contexts to E[S | eta], [m, D, J], by nodes around each posterior mean."""
        own, weights = _FEW if rest < _TINY else _MORE
        places = np.reshape(root * eta[:, None] + rest * own, -1)  # [J K]

        def conditional(part: slice) -> Array:
            statistics = self.statistics(part, places)
            xp, shares = namespace(statistics), constant(weights / np.sum(weights), statistics)
            return xp.matmul(xp.reshape(statistics, (*statistics.shape[:2], len(eta), len(own))), shares)

        return conditional


def shared_split(integrand: Integrand, mean: Array, sd: Array) -> SharedSplit | None:
    """For targets N(mean, sd^2), each [M]; None where kinks, switches or windows of their own ask for other nodes."""
    if integrand.breakpoints or has_switches(integrand):
        return None
    xp = namespace(mean)
    u, low, high = landscape(integrand, mean, sd)
    low, high = one_window(low, high)
    boost = 0.5 * u[:, 0] ** 2  # [M]
    alike = bool(xp.all(low == low[0])) and bool(xp.all(high == high[0]))
    if not alike or float(xp.max(boost)) > _MODEST:
        return None
    point, scale = mean + sd * u[:, 0], xp.exp(boost)

    def statistics(part: slice, nodes: _Matrix) -> Array:
        z = mean[part, None] + sd[part, None] * constant(nodes, mean)  # [m, q]
        return scale[part, None, None] * xp.permute_dims(integrand.statistics(z, point[part, None]), (0, 2, 1))

    reference = Reference(point, log_weight(point, integrand) - boost)
    return SharedSplit(reference, statistics, (float(low[0]), float(high[0])))


def _even(low: float, high: float, spacing: float) -> tuple[_Matrix, _Matrix]:
    """[Q], [Q]: nodes and their weights in the trapezoid rule, whose ends do not matter."""
    nodes = np.linspace(low, high, 1 + math.ceil((high - low) / spacing))
    return nodes, np.full(len(nodes), nodes[1] - nodes[0])


def _eta(low: float, high: float, root: float, rest: float) -> _Matrix:
    """[J]: even nodes for the window of z, which is centred anywhere between low + TAIL and high - TAIL.

    To eta, the statistics are no sharper than in z, and no sharper than the posterior that smooths them.
    """
    low, high = (low + TAIL) * root - TAIL, (high - TAIL) * root + TAIL
    spacing = min(COARSEST, max(SPACING, rest / _PER_SD) / root)
    return np.linspace(low, high, 1 + math.ceil((high - low) / spacing))


def _density(u: _Matrix) -> _Matrix:
    return np.asarray(np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi))
