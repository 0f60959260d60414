"""Polynomials on Gauss-Legendre panels, in the coordinate x from -1 to 1 of each panel.

Sizes: P panels, G = 16 nodes a panel, S points within a panel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import legder, leggauss, legint, legvander

from stakes._array import Array, constant, namespace, ratio

# Sums over a panel converge at order 2 G, cumulative sums at its nodes at order G: with 16 nodes, on two standard
# deviations of a bell, they are good to 1e-11 (with 10 nodes to 1e-7).
COUNT = 16
NODES, WEIGHTS = leggauss(COUNT)
COEFFICIENTS = (legvander(NODES, COUNT - 1) * (np.arange(COUNT) + 0.5)).T  # of masses q dx at the nodes: those of q
INTEGRAL = legint(COEFFICIENTS, lbnd=-1)  # [G + 1, G]: those of the integral of q from -1
BELOW = legvander(NODES, COUNT) @ INTEGRAL  # [G, G]: masses at nodes to the mass below each node
SLOPE = legvander(NODES, COUNT - 2) @ legder(COEFFICIENTS * WEIGHTS)  # [G, G]: values at nodes to slopes there
_MIDDLE_SLOPE = legvander(np.zeros(1), COUNT - 2)[0] @ legder(COEFFICIENTS * WEIGHTS)  # [G]: to the slope at 0
_SLACK = 1e-9
_STEPS = 7  # of a safeguarded Newton search between two neighbouring nodes


def beside(array: Array, z: Array, lead: int = 1) -> Array:
    """The array with an axis of length 1, behind its `lead` first, for each further axis of z."""
    more = (1,) * (z.ndim - lead)
    return namespace(array).reshape(array, (*array.shape[:lead], *more, *array.shape[lead:]))


def slope(function: Callable[[Array], Array], x: Array, width: Array) -> Array:
    """[...]: the derivative of a smooth function at x, from its values within `width`."""
    values = function(x[..., None] + width[..., None] * constant(NODES, x)) - function(x)[..., None]
    return namespace(x).matmul(values, constant(_MIDDLE_SLOPE, x)) / width


def panel_nodes(edges: Array) -> tuple[Array, Array]:
    """[..., P, G] each: nodes and weights of the panels between `edges` [..., P + 1]."""
    half = (edges[..., 1:] - edges[..., :-1])[..., None] / 2.0
    middle = (edges[..., 1:] + edges[..., :-1])[..., None] / 2.0
    return middle + half * constant(NODES, edges), half * constant(WEIGHTS, edges)


def between(low: Array, high: Array) -> tuple[Array, Array]:
    """[..., S] each: nodes and weights from low to high [...]."""
    half, middle = (high - low)[..., None] / 2.0, (high + low)[..., None] / 2.0
    return middle + half * constant(NODES, low), half * constant(WEIGHTS, low)


def row(values: Array, position: Array) -> Array:
    """[..., G]: values[..., position, :] of values [..., P, G], both broadcast."""
    xp = namespace(values)
    lead = xp.broadcast_to(position, np.broadcast_shapes(position.shape, values.shape[:-2])).shape
    values = xp.broadcast_to(values, (*lead, *values.shape[-2:]))
    position = xp.broadcast_to(position[..., None, None], (*lead, 1, values.shape[-1]))
    return xp.take_along_axis(values, position, axis=-2)[..., 0, :]


def series(coefficients: Array, x: Array) -> Array:
    """Legendre series [..., K] at x [...] or [..., S], by the recurrence of the polynomials."""
    if x.ndim == coefficients.ndim:
        coefficients = coefficients[..., None, :]
    past, here = 0.0 * x, 0.0 * x + 1.0
    total = coefficients[..., 0] * here
    for k in range(1, coefficients.shape[-1]):
        past, here = here, ((2 * k - 1) * x * here - (k - 1) * past) / k
        total = total + coefficients[..., k] * here
    return total


def values_series(nodes: Array) -> Array:
    """[..., G]: the series through values at the nodes of a panel."""
    return namespace(nodes).matmul(nodes, constant((COEFFICIENTS * WEIGHTS).T, nodes))


def densities(masses: Array) -> Array:
    """[..., G]: the series of the density, per unit of x, whose masses at the nodes are given."""
    return namespace(masses).matmul(masses, constant(COEFFICIENTS.T, masses))


def before(values: Array) -> Array:
    """[..., P]: the sum of all that comes before."""
    return namespace(values).cumulative_sum(values, axis=-1, include_initial=True)[..., :-1]


def bracket(reached: Array) -> tuple[Array, Array]:
    """[...] each: neighbouring nodes, or ends of the panel, between which increasing values [..., G] change sign."""
    xp = namespace(reached)
    behind = xp.sum(xp.astype(reached < 0, xp.int64), axis=-1)
    ends = constant([-1.0, *NODES, 1.0], reached)
    flat = xp.reshape(behind, (-1,))
    return tuple(xp.reshape(xp.take(ends, flat + more), behind.shape) for more in (0, 1))


def root(value: Callable[[Array], Array], slope: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """[...]: where an increasing function is 0 between low and high: Newton steps, halving where one leads outside."""
    x = (low + high) / 2.0
    xp = namespace(x)
    for _ in range(_STEPS):
        here = value(x)
        low, high = xp.where(here < 0, x, low), xp.where(here < 0, high, x)
        there = x - ratio(here, slope(x))
        inside = (there >= low - _SLACK) & (there <= high + _SLACK)  # an end may be the root, up to rounding
        x = xp.where(inside, xp.minimum(xp.maximum(there, low), high), (low + high) / 2.0)
    return x
