"""Split moments of labels that tell the same share rho of every context, whose nodes all contexts have in common.

One matrix then takes the statistics at the nodes to E[S | eta] for all eta, whatever the context: a product for each
rho, as a table of the curve EUR_c(rho) wants it. Without breakpoints only: the statistics must be smooth.
Sizes: M contexts, Q nodes of z, J nodes of eta, D statistics, K nodes of a narrow posterior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from stakes._array import Array, constant, namespace, slices
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.beliefs.quadrature import CHUNK, COARSEST, SPACING, TAIL, landscape, one_window
from stakes.beliefs.switching import has_switches

_FINER = 3  # nodes of a narrow posterior for each of SPACING
_PER_SPACING = 1.6  # spacings to the posterior sd from which nodes resolve it, to 1e-21
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
    nodes: _Matrix
    """[Q]: even; their number of steps is a multiple of _FINER"""
    at_nodes: Array
    """[M, D, Q]"""

    def moments(self, rho: float) -> Iterator[tuple[slice, Array]]:
        """Contexts in blocks: which, and [m, J, D]: E[S | eta_j] times the mass of eta_j."""
        root, rest = math.sqrt(rho), math.sqrt(1.0 - rho)
        finest = _PER_SPACING * (self.nodes[1] - self.nodes[0])  # the narrowest posterior that nodes resolve
        eta = _eta(self.nodes[0], self.nodes[-1], root)
        mass = (eta[1] - eta[0]) * _density(eta)  # [J]
        xp, (count, depth, _) = namespace(self.at_nodes), self.at_nodes.shape
        conditional = self._narrow(eta, root, rest) if rest < finest else self._wide(eta, root, rest, finest)
        for part in slices(count, max(1, CHUNK // (4 * depth * len(eta)))):
            moments = conditional(part) * constant(mass, self.at_nodes)  # [m, D, J]
            yield part, xp.permute_dims(moments, (0, 2, 1))

    def _wide(self, eta: _Matrix, root: float, rest: float, finest: float) -> Callable[[slice], Array]:
        """Some contexts to E[S | eta], [m, D, J]: one product, with the trapezoid rule in the matrix."""
        step, xp = 1 if rest < _FINER * finest else _FINER, namespace(self.at_nodes)
        nodes = self.nodes[::step]
        weights = (nodes[1] - nodes[0]) / rest * _density((nodes[:, None] - root * eta) / rest)  # [Q, J]
        matrix = constant(weights, self.at_nodes)

        def conditional(part: slice) -> Array:
            rows = xp.reshape(self.at_nodes[part, :, ::step], (-1, len(nodes)))  # [m D, Q]
            return xp.reshape(xp.matmul(rows, matrix), (-1, self.at_nodes.shape[1], len(eta)))

        return conditional

    def _narrow(self, eta: _Matrix, root: float, rest: float) -> Callable[[slice], Array]:
        """Some contexts to E[S | eta], [m, D, J], by nodes around each posterior mean."""
        own, weights = _FEW if rest < _TINY else _MORE
        places = np.reshape(root * eta[:, None] + rest * own, -1)  # [J K]
        shares, xp = constant(weights / np.sum(weights), self.at_nodes), namespace(self.at_nodes)

        def conditional(part: slice) -> Array:
            statistics = self.statistics(part, places)
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

    nodes = np.linspace(float(low[0]), float(high[0]), 1 + _FINER * math.ceil(float(high[0] - low[0]) / SPACING))
    parts = slices(mean.shape[0], max(1, CHUNK // (4 * len(nodes))))
    at_nodes = xp.concat([statistics(part, nodes) for part in parts], axis=0)
    return SharedSplit(Reference(point, log_weight(point, integrand) - boost), statistics, nodes, at_nodes)


def _eta(low: float, high: float, root: float) -> _Matrix:
    """[J]: even nodes for the window of z, which is centred anywhere between low + TAIL and high - TAIL."""
    low, high = (low + TAIL) * root - TAIL, (high - TAIL) * root + TAIL
    return np.linspace(low, high, 1 + math.ceil((high - low) / min(COARSEST, SPACING / root)))


def _density(u: _Matrix) -> _Matrix:
    return np.asarray(np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi))
