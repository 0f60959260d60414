"""A weighted density w(z) p(z) on Gauss-Legendre panels: what losses of a whole density, or of a quantile, look at.

On each panel the density is a polynomial, known by its values at G nodes; mass that sits in one point sits at an edge
between panels. Targets are counted from an origin near the mass, so that an offset costs no digits.
Sizes: P panels, G = 16 nodes a panel, S points within a panel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device
from numpy.polynomial.legendre import legder, leggauss, legint, legvander

from stakes._utils.array import Array, asarrays, check_all, constant, double, log_of, namespace, ratio, replaced
from stakes.exceptions import StakesError

# ----------------------------------------------------------------------
# Polynomials on Gauss-Legendre panels, in the coordinate x from -1 to 1 of each panel.
#
# Sizes: P panels, G = 16 nodes a panel, S points within a panel.


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


@dataclass(frozen=True, eq=False)
class Distribution:
    """w(z) p(z) of each context, over a scale; `density`, `cdf` and `quantile` are those of p_w = w p / E[w].

    These take one point for each context, [M], or several, [M, ...], and answer in double precision.
    """

    origin: Array
    """[...]: the target from which nodes and edges are counted."""
    edges: Array
    """[..., P + 1]"""
    nodes: Array
    """[..., P, G]"""
    step: Array
    """[..., P, G]: dz, the length that each node stands for."""
    mass: Array
    """[..., P, G]: w(z) p(z) dz."""
    jump: Array | None = None
    """[..., P + 1]: the mass that sits at each edge, where there is any."""
    log_height: Callable[[Array], Array] | None = None
    """log w(z) p(z), over the scale, for targets of any size; None where it was not asked for."""

    def total(self) -> Array:
        """[...]: E[w]."""
        xp = namespace(self.mass)
        total = xp.sum(self.mass, axis=(-2, -1))
        return total if self.jump is None else total + xp.sum(self.jump, axis=-1)

    def starts(self) -> Array:
        """[..., P]: the mass up to the left edge of each panel, that at the edge included."""
        xp = namespace(self.mass)
        starts = before(xp.sum(self.mass, axis=-1))
        return starts if self.jump is None else starts + xp.cumulative_sum(self.jump, axis=-1)[..., :-1]

    def below(self) -> Array:
        """[..., P, G]: the mass below each node."""
        return self.starts()[..., None] + namespace(self.mass).matmul(self.mass, constant(BELOW.T, self.mass))

    def above(self) -> Array:
        """[..., P, G]: the mass above each node, which a difference would round away far out."""
        xp = namespace(self.mass)
        ends = xp.flip(before(xp.flip(xp.sum(self.mass, axis=-1), axis=-1)), axis=-1)
        if self.jump is not None:
            ends = ends + xp.flip(xp.cumulative_sum(xp.flip(self.jump, axis=-1), axis=-1), axis=-1)[..., 1:]
        return ends[..., None] + xp.matmul(self.mass, constant(1.0 - BELOW.T, self.mass))

    def crossing(self, level: Array) -> Crossing:
        """Where the mass below first reaches `level` [...]."""
        xp = namespace(self.mass)
        starts, sums = self.starts() - level[..., None], xp.sum(self.mass, axis=-1)  # [..., P]
        behind = xp.sum(xp.astype(starts + sums < 0, xp.int64), axis=-1)  # [...]
        here = xp.clip(behind, 0, sums.shape[-1] - 1)
        start, masses = row(starts[..., None], here)[..., 0], row(self.mass, here)
        reached = start[..., None] + xp.matmul(masses, constant(BELOW.T, masses))  # [..., G]
        integral, slope = (xp.matmul(masses, constant(each.T, masses)) for each in (INTEGRAL, COEFFICIENTS))
        x = root(lambda x: start + series(integral, x), lambda x: series(slope, x), *bracket(reached))
        return Crossing(behind, here, x, start, integral, (start < 0) & (behind == here), starts, sums)

    def at(self, crossing: Crossing) -> Array:
        """[...]: the target, from the origin, of a crossing."""
        xp = namespace(self.mass)
        edge = row(self.edges[..., None], crossing.behind)[..., 0]
        return xp.where(crossing.inside, series(values_series(row(self.nodes, crossing.here)), crossing.x), edge)

    def quantile(self, tau: float) -> Array:
        """[M]: the smallest target with at least `tau` of the mass at or below it."""
        if not 0.0 < tau < 1.0:
            raise StakesError(f"tau must lie between 0 and 1; got {tau!r}")
        return self.origin + self.at(self.crossing(tau * self.total()))

    def cdf(self, z: Any) -> Array:
        """[M, ...]: P_w(target <= z)."""
        each, z = self._beside(z)
        here, x = each._located(z - each.origin)
        xp, masses = namespace(x), row(each.mass, here)
        reached = row(each.starts()[..., None], here)[..., 0] + series(
            xp.matmul(masses, constant(INTEGRAL.T, masses)), x
        )
        share = ratio(reached, each.total() + xp.zeros_like(reached))
        low, high = each.edges[..., 0], each.edges[..., -1]
        share = xp.where(z - each.origin < low, xp.zeros_like(share), share)
        return xp.where(z - each.origin >= high, xp.ones_like(share), share)

    def density(self, z: Any) -> Array:
        """[M, ...]: p_w(z)."""
        return namespace(self.mass).exp(self.log_density(z))

    def log_density(self, z: Any) -> Array:
        """[M, ...]: log p_w(z), however far out z is."""
        self.check_density()
        self.check_spread()
        assert self.log_height is not None
        each, z = self._beside(z)
        return self.log_height(z) - log_of(each.total())

    def check_density(self) -> None:
        """Refuse mass that sits in points."""
        if self.jump is not None:
            check_all(self.jump == 0, "a density is needed: some members are certain of a target. Give context_sd > 0.")

    def check_spread(self) -> None:
        """Refuse targets that are certain: they have no density."""
        xp = namespace(self.step)
        check_all(
            xp.sum(self.step, axis=(-2, -1)) > 0,
            "a density is needed: some targets are certain, their variance is 0. Include the noise of labels in it.",
        )

    def crps(self, z: Any) -> Array:
        """[M, ...]: the integral over t of (F(t) - 1{z <= t})^2."""
        each, z = self._beside(z)
        xp, total, offset = namespace(z), each.total(), z - each.origin
        here, x = each._located(offset)
        panel = (here[..., None] - xp.arange(each.edges.shape[-1] - 1, device=device(z)))[..., None]  # [..., P, 1]
        squares = xp.where(panel > 0, each.below(), each.above()) ** 2 * each.step
        whole = xp.sum(xp.where(panel == 0, xp.zeros_like(squares), squares), axis=(-2, -1))
        masses, steps = row(each.mass, here), row(each.step, here)
        integral = xp.matmul(masses, constant(INTEGRAL.T, masses))
        start, one = row(each.starts()[..., None], here), xp.ones_like(x)
        for low, high, less in ((-one, x, 0.0 * total), (x, one, total)):
            points, lengths = between(low, high)
            reached = start + series(integral, points) - less[..., None]
            whole = whole + xp.sum(lengths * series(densities(steps), points) * reached**2, axis=-1)
        outside = xp.where(offset < each.edges[..., 0], each.edges[..., 0] - offset, offset - each.edges[..., -1])
        return ratio(whole, total**2 + xp.zeros_like(whole)) + xp.where(outside > 0, outside, xp.zeros_like(outside))

    def pushed(self, forward: Callable[[Array], Array]) -> Distribution:
        """The distribution of forward(z), for an increasing map: masses stay, lengths follow its slope."""
        xp = namespace(self.mass)
        origin = forward(self.origin)
        nodes = forward(self.origin[..., None, None] + self.nodes) - origin[..., None, None]
        rise = nodes - nodes[..., :1]  # so that little is lost where a panel is narrow
        step = xp.matmul(rise, constant((SLOPE * WEIGHTS[:, None]).T, nodes))
        edges = forward(self.origin[..., None] + self.edges) - origin[..., None]
        return replaced(self, origin=origin, edges=edges, nodes=nodes, step=step, log_height=None)

    def integrals_of_below(self) -> Array:
        """[..., P, G]: what each unit of mass at a node adds to the integral of `below` over its panel."""
        return namespace(self.step).matmul(self.step, constant(BELOW, self.step))

    def _located(self, offset: Array) -> tuple[Array, Array]:
        """[...] each: the panel in which `offset` lies, and where there."""
        xp = namespace(offset)
        here = xp.sum(xp.astype(self.edges[..., 1:-1] <= offset[..., None], xp.int64), axis=-1)
        nodes, steps, one = row(self.nodes, here), row(self.step, here), xp.ones_like(offset)
        values, slopes, ends = values_series(nodes), densities(steps), row(self.edges[..., None], here)[..., 0]
        x = root(lambda x: series(values, x) - offset, lambda x: series(slopes, x), *bracket(nodes - offset[..., None]))
        x = xp.where(offset <= ends, -one, x)
        return here, xp.where(offset >= row(self.edges[..., None], here + 1)[..., 0], one, x)

    def _beside(self, z: Any) -> tuple[Distribution, Array]:
        """The distribution with an axis of length 1 for each axis of z beyond those of contexts, and z."""
        _, z = asarrays(origin=self.origin, z=z)
        lead = self.origin.shape
        if z.shape[: len(lead)] != lead:
            raise StakesError(f"z must have one value for each of the contexts, {list(lead)}; got {list(z.shape)}")
        names = ("origin", "edges", "nodes", "step", "mass")
        fields = {name: beside(getattr(self, name), z, len(lead)) for name in names}
        jump = None if self.jump is None else beside(self.jump, z, len(lead))
        return replaced(self, **fields, jump=jump), double(z)


@dataclass(frozen=True, eq=False)
class Crossing:
    """Where the mass below reaches a level."""

    behind: Array
    """[...]: how many panels lie before it"""
    here: Array
    """[...]: the panel, the last one where the level is reached at its right edge only"""
    x: Array
    """[...]: the place on that panel, from -1 to 1"""
    start: Array
    """[...]: the mass below that panel, less the level"""
    integral: Array
    """[..., G + 1]: what the panel adds to it up to x, as a series"""
    inside: Array
    """[...]: whether it is reached within the panel, and not by what sits at an edge"""
    starts: Array
    """[..., P]: the mass below each panel, less the level"""
    sums: Array
    """[..., P]: the mass of each panel"""

    def excess(self, x: Array) -> Array:
        """[..., S]: the mass below less the level, at places x [..., S] of the panel."""
        return self.start[..., None] + series(self.integral, x)
