"""Split moments of labels that tell the same share rho of every context, whose nodes all contexts have in common.

One matrix then takes the statistics at the nodes to E[S | eta] for all eta, whatever the context: a product for each
rho, as a table of the curve EUR_c(rho) wants it. Without breakpoints only: the statistics must be smooth.
Sizes: M contexts, Q nodes of z, J nodes of eta, D statistics, K points of a stencil.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
_REACH = 6  # nodes of a stencil on each side: a polynomial of degree 12 through them
_MODEST = 100.0  # a boost that may be applied after the fact: no density has underflowed by then
_NODES, _WEIGHTS = hermegauss(16)  # exact for the polynomials of a stencil

_Matrix = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class SharedSplit:
    """The statistics of all contexts at the same nodes, in standard units, and the moments that follow."""

    reference: Reference
    """[M]: from where statistics are measured"""
    nodes: _Matrix
    """[Q]: even, a multiple of _FINER apart from the first to the last"""
    statistics: Array
    """[M, D, Q]: over the scale of the reference"""

    def moments(self, rho: float) -> Iterator[tuple[slice, Array]]:
        """Contexts in blocks: which, and [m, J, D]: E[S | eta_j] times the mass of eta_j."""
        xp, (count, depth, _) = namespace(self.statistics), self.statistics.shape
        step, moment = _matrix(self.nodes, rho)
        matrix = constant(moment.T, self.statistics)  # [Q, J]
        for part in slices(count, max(1, CHUNK // (4 * depth * matrix.shape[1]))):
            rows = xp.reshape(self.statistics[part, :, ::step], (-1, matrix.shape[0]))  # [m D, Q]
            moments = xp.reshape(xp.matmul(rows, matrix), (-1, depth, matrix.shape[1]))
            yield part, xp.permute_dims(moments, (0, 2, 1))


def shared_split(integrand: Integrand, mean: Array, sd: Array) -> SharedSplit | None:
    """For targets N(mean, sd^2), each [M]; None where kinks, switches or windows of their own ask for other nodes."""
    if integrand.breakpoints or has_switches(integrand):
        return None
    xp = namespace(mean)
    u, low, high = landscape(integrand, mean, sd)
    low, high = one_window(low, high)
    point = mean + sd * u[:, 0]
    scale = log_weight(point, integrand) - 0.5 * u[:, 0] ** 2
    boost = log_weight(point, integrand) - scale  # [M]
    alike = bool(xp.all(low == low[0])) and bool(xp.all(high == high[0])) and float(xp.max(boost)) < _MODEST
    if not alike:
        return None
    nodes = _even(float(low[0]), float(high[0]))
    statistics = _statistics(integrand, mean, sd, point, constant(nodes, mean)) * xp.exp(boost)[:, None, None]
    return SharedSplit(Reference(point, scale), nodes, statistics)


def _even(low: float, high: float) -> _Matrix:
    """[Q]: nodes at most SPACING / _FINER apart, whose number of steps is a multiple of _FINER."""
    return np.linspace(low, high, 1 + _FINER * math.ceil((high - low) / SPACING))


def _statistics(integrand: Integrand, mean: Array, sd: Array, point: Array, nodes: Array) -> Array:
    """[M, D, Q], in blocks of contexts."""
    xp, parts = namespace(mean), []
    for part in slices(mean.shape[0], max(1, CHUNK // (4 * nodes.shape[0]))):
        z = mean[part, None] + sd[part, None] * nodes  # [m, Q]
        parts.append(xp.permute_dims(integrand.statistics(z, point[part, None]), (0, 2, 1)))
    return xp.concat(parts, axis=0)


def _matrix(nodes: _Matrix, rho: float) -> tuple[int, _Matrix]:
    """Of which nodes, each or every _FINER-th, and [J, Q]: from S there to E[S | eta_j] times the mass of eta_j."""
    root, rest = math.sqrt(rho), math.sqrt(1.0 - rho)
    finest = _PER_SPACING * (nodes[1] - nodes[0])  # the narrowest posterior that nodes resolve
    step = 1 if rest < _FINER * finest else _FINER
    if rest < finest:
        eta, conditional = nodes[::_FINER] / root, _stencils(len(nodes), _PER_SPACING * rest / finest)
    else:
        eta = _eta(nodes[0], nodes[-1], root)
        conditional = _posteriors(nodes[::step], eta, root, rest)
    return step, ((eta[1] - eta[0]) * _density(eta))[:, None] * conditional


def _eta(low: float, high: float, root: float) -> _Matrix:
    """[J]: even nodes for the window of z, which is centred anywhere between low + TAIL and high - TAIL."""
    low, high = (low + TAIL) * root - TAIL, (high - TAIL) * root + TAIL
    return np.linspace(low, high, 1 + math.ceil((high - low) / min(COARSEST, SPACING / root)))


def _posteriors(nodes: _Matrix, eta: _Matrix, root: float, rest: float) -> _Matrix:
    """[J, Q]: the density of z at each node given eta, times the spacing: the trapezoid rule."""
    return np.asarray((nodes[1] - nodes[0]) / rest * _density((nodes - root * eta[:, None]) / rest))


def _stencils(count: int, rest: float) -> _Matrix:
    """[J, Q]: for a posterior around every _FINER-th node, of sd `rest` in spacings: its mean of the polynomial there.

    A posterior that narrow falls between nodes, but smooth statistics are a polynomial as far as it reaches.
    """
    matrix = np.zeros((1 + (count - 1) // _FINER, count))
    places = np.arange(-_REACH, _REACH + 1)
    for place in places:
        others = places[places != place]
        basis = np.prod((rest * _NODES[:, None] - others) / (place - others), axis=1)
        columns = _FINER * np.arange(len(matrix)) + place
        inside = (columns >= 0) & (columns < count)
        matrix[inside, columns[inside]] = basis @ _WEIGHTS / np.sum(_WEIGHTS)
    return matrix


def _density(u: _Matrix) -> _Matrix:
    return np.asarray(np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi))
