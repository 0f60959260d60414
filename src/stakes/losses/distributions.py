"""A weighted density w(z) p(z) on Gauss-Legendre panels: what losses of a whole density, or of a quantile, look at.

On each panel the density is a polynomial, known by its values at G nodes in the coordinate x from -1 to 1; mass that
sits in one point sits at an edge between panels. Targets are counted from an origin near the mass, so that an offset
costs no digits. `Distribution` comes first, the functions of panels and Legendre series that it needs below.
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

# Sums over a panel converge at order 2 G, cumulative sums at its nodes at order G: with 16 nodes, on two standard
# deviations of a normal density, they are good to 1e-11 (with 10 nodes to 1e-7).
NODES_PER_PANEL = 16
NODES, _WEIGHTS = leggauss(NODES_PER_PANEL)
# Matrices that take masses q dx at the nodes of a panel to the Legendre coefficients of q ...
_DENSITY = (legvander(NODES, NODES_PER_PANEL - 1) * (np.arange(NODES_PER_PANEL) + 0.5)).T  # [G, G]
_INTEGRAL = legint(_DENSITY, lbnd=-1)  # [G + 1, G]: and of the integral of q from -1
_BELOW = legvander(NODES, NODES_PER_PANEL) @ _INTEGRAL  # [G, G]: masses at nodes to the mass below each node
_SLOPE = legvander(NODES, NODES_PER_PANEL - 2) @ legder(_DENSITY * _WEIGHTS)  # [G, G]: values at nodes to slopes there
_MIDDLE_SLOPE = legvander(np.zeros(1), NODES_PER_PANEL - 2)[0] @ legder(_DENSITY * _WEIGHTS)  # [G]: to the slope at 0
_SLACK = 1e-9
_STEPS = 7  # of a safeguarded Newton search between two neighbouring nodes


@dataclass(frozen=True, eq=False)
class Distribution:
    """The weighted distribution w(z) p(z) of each context, over a scale, as `belief.distribution` gives it.

    `density`, `cdf` and `quantile` are those of p_w = w p / E[w]; they take one point for each context, [M], or
    several, [M, ...], and answer in double precision.

    Attributes:
        origin: [...], the target from which nodes and edges are counted.
        edges: [..., P + 1], the edges of panels.
        nodes: [..., P, G], the nodes within each panel.
        step: [..., P, G], dz: the length that each node stands for.
        mass: [..., P, G], w(z) p(z) dz.
        edge_mass: [..., P + 1], the mass that sits at each edge, where there is any.
        log_weighted_density: A function to log w(z) p(z), over the scale, for targets of any size; None where it was
            not asked for.

    Examples:
        >>> from stakes import CRPS, GaussianBelief
        >>> from stakes.evaluation import bayes_prediction
        >>> belief = GaussianBelief(mean=[10.0], variance=[4.0], candidate_variance=[1.0], covariance=[[1.0]])
        >>> answer = bayes_prediction(CRPS(), belief)  # the whole distribution N(10, 2^2)
        >>> print(answer.quantile(0.5).round(6), answer.cdf([12.0]).round(4))
        [10.] [0.8413]
    """

    origin: Array
    edges: Array
    nodes: Array
    step: Array
    mass: Array
    edge_mass: Array | None = None
    log_weighted_density: Callable[[Array], Array] | None = None

    def total(self) -> Array:
        """[...]: E[w]."""
        xp = namespace(self.mass)
        total = xp.sum(self.mass, axis=(-2, -1))
        return total if self.edge_mass is None else total + xp.sum(self.edge_mass, axis=-1)

    def starts(self) -> Array:
        """[..., P]: the mass up to the left edge of each panel, that at the edge included."""
        xp = namespace(self.mass)
        starts = sums_before(xp.sum(self.mass, axis=-1))
        return starts if self.edge_mass is None else starts + xp.cumulative_sum(self.edge_mass, axis=-1)[..., :-1]

    def below(self) -> Array:
        """[..., P, G]: the mass below each node."""
        return self.starts()[..., None] + namespace(self.mass).matmul(self.mass, constant(_BELOW.T, self.mass))

    def above(self) -> Array:
        """[..., P, G]: the mass above each node, which a difference would round away far out."""
        xp = namespace(self.mass)
        ends = xp.flip(sums_before(xp.flip(xp.sum(self.mass, axis=-1), axis=-1)), axis=-1)
        if self.edge_mass is not None:
            ends = ends + xp.flip(xp.cumulative_sum(xp.flip(self.edge_mass, axis=-1), axis=-1), axis=-1)[..., 1:]
        return ends[..., None] + xp.matmul(self.mass, constant(1.0 - _BELOW.T, self.mass))

    def crossing(self, level: Array) -> tuple[Array, Array, Array, Array]:
        """Where the mass below first reaches a level.

        Args:
            level: A mass [...].

        Returns:
            [..., P]: which panels end before the place. [...]: its coordinate from -1 to 1 on the next panel, and
            whether the level is reached within that panel, and not by the mass at an edge. [..., P]: `starts` less the
            level.
        """
        xp = namespace(self.mass)
        starts, sums = self.starts() - level[..., None], xp.sum(self.mass, axis=-1)  # [..., P]
        short = starts + sums < 0
        before = xp.sum(xp.astype(short, xp.int64), axis=-1)  # [...]
        panel = xp.clip(before, 0, sums.shape[-1] - 1)
        masses, (start, integral) = take_panel(self.mass, panel), self.mass_within(panel, starts)
        density = xp.matmul(masses, constant(_DENSITY.T, masses))
        reached = start[..., None] + xp.matmul(masses, constant(_BELOW.T, masses))  # [..., G]
        x = increasing_root(
            lambda x: start + legendre_series(integral, x),
            lambda x: legendre_series(density, x),
            *bracket_root(reached),
        )
        return short, x, (start < 0) & (before == panel), starts

    def mass_within(self, panel: Array, starts: Array) -> tuple[Array, Array]:
        """The mass below as a function of the coordinate within a panel.

        Args:
            panel: Positions of panels [...].
            starts: The mass up to each panel [..., P].

        Returns:
            [...] and [..., G + 1]: the mass up to the panel, and what the panel adds up to x, as a Legendre series.
        """
        masses = take_panel(self.mass, panel)
        integral = namespace(masses).matmul(masses, constant(_INTEGRAL.T, masses))
        return take_panel(starts[..., None], panel)[..., 0], integral

    def offset_at(self, level: Array) -> Array:
        """The target, from the origin, at which the mass below first reaches a level.

        Args:
            level: A mass [...].

        Returns:
            [...].
        """
        short, x, inside, _ = self.crossing(level)
        xp = namespace(self.mass)
        before = xp.sum(xp.astype(short, xp.int64), axis=-1)
        panel = xp.clip(before, 0, self.mass.shape[-2] - 1)
        edge = take_panel(self.edges[..., None], before)[..., 0]
        return xp.where(inside, legendre_series(series_of_values(take_panel(self.nodes, panel)), x), edge)

    def quantile(self, tau: float) -> Array:
        """The smallest target with at least `tau` of the mass at or below it.

        Args:
            tau: The level, between 0 and 1.

        Returns:
            [M].

        Raises:
            StakesError: If `tau` is not between 0 and 1.
        """
        if not 0.0 < tau < 1.0:
            raise StakesError(f"tau must lie between 0 and 1; got {tau!r}")
        return self.origin + self.offset_at(tau * self.total())

    def cdf(self, z: Any) -> Array:
        """P_w(target <= z).

        Args:
            z: Targets, one for each context [M], or several [M, ...].

        Returns:
            The shape of `z`.
        """
        each, z = self._aligned(z)
        here, x = each._located(z - each.origin)
        xp, (start, integral) = namespace(x), each.mass_within(here, each.starts())
        reached = start + legendre_series(integral, x)
        share = ratio(reached, each.total() + xp.zeros_like(reached))
        low, high = each.edges[..., 0], each.edges[..., -1]
        share = xp.where(z - each.origin < low, xp.zeros_like(share), share)
        return xp.where(z - each.origin >= high, xp.ones_like(share), share)

    def density(self, z: Any) -> Array:
        """p_w(z).

        Args:
            z: Targets, one for each context [M], or several [M, ...].

        Returns:
            The shape of `z`.

        Raises:
            StakesError: If some targets are certain: they have no density.
        """
        return namespace(self.mass).exp(self.log_density(z))

    def log_density(self, z: Any) -> Array:
        """Log p_w(z), however far out z is.

        Args:
            z: Targets, one for each context [M], or several [M, ...].

        Returns:
            The shape of `z`.

        Raises:
            StakesError: If some targets are certain: they have no density.
        """
        self.check_density()
        self.check_spread()
        assert self.log_weighted_density is not None
        each, z = self._aligned(z)
        return self.log_weighted_density(z) - log_of(each.total())

    def check_density(self) -> None:
        """Refuse mass that sits in points."""
        if self.edge_mass is not None:
            check_all(
                self.edge_mass == 0,
                "a density is needed, and here mass sits in points: of members that are certain of a target (give "
                "context_sd > 0), or of draws (which have no density: NormalEnsemble, made of the mean and sd of the "
                "target under each draw, has one).",
            )

    def check_spread(self) -> None:
        """Refuse targets that are certain: they have no density."""
        xp = namespace(self.step)
        check_all(
            xp.sum(self.step, axis=(-2, -1)) > 0,
            "a density is needed: some targets are certain, their variance is 0. Include the noise of labels in it.",
        )

    def crps(self, z: Any) -> Array:
        """The integral over t of (F(t) - 1{z <= t})^2.

        Args:
            z: Targets, one for each context [M], or several [M, ...].

        Returns:
            The shape of `z`.
        """
        each, z = self._aligned(z)
        xp, total, offset = namespace(z), each.total(), z - each.origin
        here, x = each._located(offset)
        panel = (here[..., None] - xp.arange(each.edges.shape[-1] - 1, device=device(z)))[..., None]  # [..., P, 1]
        squares = xp.where(panel > 0, each.below(), each.above()) ** 2 * each.step
        whole = xp.sum(xp.where(panel == 0, xp.zeros_like(squares), squares), axis=(-2, -1))
        steps, one, (start, integral) = (
            take_panel(each.step, here),
            xp.ones_like(x),
            each.mass_within(here, each.starts()),
        )
        for low, high, less in ((-one, x, 0.0 * total), (x, one, total)):
            points, lengths = legendre_rule(low, high)
            reached = start[..., None] + legendre_series(integral, points) - less[..., None]
            whole = whole + xp.sum(lengths * legendre_series(series_of_masses(steps), points) * reached**2, axis=-1)
        outside = xp.where(offset < each.edges[..., 0], each.edges[..., 0] - offset, offset - each.edges[..., -1])
        return ratio(whole, total**2 + xp.zeros_like(whole)) + xp.where(outside > 0, outside, xp.zeros_like(outside))

    def pushed_through(self, forward: Callable[[Array], Array]) -> Distribution:
        """The distribution of forward(z): masses stay, lengths follow the slope of the map.

        Args:
            forward: An increasing map of targets.

        Returns:
            The distribution of the mapped target, without its `log_weighted_density`.
        """
        xp = namespace(self.mass)
        origin = forward(self.origin)
        nodes = forward(self.origin[..., None, None] + self.nodes) - origin[..., None, None]
        rise = nodes - nodes[..., :1]  # so that little is lost where a panel is narrow
        step = xp.matmul(rise, constant((_SLOPE * _WEIGHTS[:, None]).T, nodes))
        edges = forward(self.origin[..., None] + self.edges) - origin[..., None]
        return replaced(self, origin=origin, edges=edges, nodes=nodes, step=step, log_weighted_density=None)

    def integrals_of_below(self) -> Array:
        """[..., P, G]: what each unit of mass at a node adds to the integral of `below` over its panel."""
        return namespace(self.step).matmul(self.step, constant(_BELOW, self.step))

    def integral_of_below(self, offset: Array) -> Array:
        """E[w max(t - z, 0)]: the integral of the mass below, up to t.

        Args:
            offset: Targets t [...], from the origin.

        Returns:
            [...].
        """
        xp, low, high = namespace(self.mass), self.edges[..., 0], self.edges[..., -1]
        inside = xp.minimum(xp.maximum(offset, low), high)
        here, x = self._located(inside)
        starts = self.starts()
        whole = starts * xp.sum(self.step, axis=-1) + xp.sum(self.mass * self.integrals_of_below(), axis=-1)
        panel = xp.arange(whole.shape[-1], device=device(whole))
        before = xp.sum(xp.where(panel < here[..., None], whole, xp.zeros_like(whole)), axis=-1)
        points, lengths = legendre_rule(-xp.ones_like(x), x)  # [..., S]
        start, integral = self.mass_within(here, starts)
        reached = start[..., None] + legendre_series(integral, points)
        slope = legendre_series(series_of_masses(take_panel(self.step, here)), points)
        within = xp.sum(lengths * reached * slope, axis=-1)
        beyond = xp.where(offset > high, offset - high, xp.zeros_like(offset))
        return before + within + beyond * self.total()

    def _located(self, offset: Array) -> tuple[Array, Array]:
        """[...] each: the panel in which `offset` lies, and where there."""
        xp = namespace(offset)
        here = xp.sum(xp.astype(self.edges[..., 1:-1] <= offset[..., None], xp.int64), axis=-1)
        nodes, steps, one = take_panel(self.nodes, here), take_panel(self.step, here), xp.ones_like(offset)
        values, slopes, ends = (
            series_of_values(nodes),
            series_of_masses(steps),
            take_panel(self.edges[..., None], here)[..., 0],
        )
        x = increasing_root(
            lambda x: legendre_series(values, x) - offset,
            lambda x: legendre_series(slopes, x),
            *bracket_root(nodes - offset[..., None]),
        )
        x = xp.where(offset <= ends, -one, x)
        return here, xp.where(offset >= take_panel(self.edges[..., None], here + 1)[..., 0], one, x)

    def _aligned(self, z: Any) -> tuple[Distribution, Array]:
        """The distribution with an axis of length 1 for each axis of z beyond those of contexts, and z."""
        _, z = asarrays(origin=self.origin, z=z)
        lead = self.origin.shape
        if z.shape[: len(lead)] != lead:
            raise StakesError(f"z must have one value for each of the contexts, {list(lead)}; got {list(z.shape)}")
        names = ("origin", "edges", "nodes", "step", "mass")
        fields = {name: align_axes(getattr(self, name), z, len(lead)) for name in names}
        edge_mass = None if self.edge_mass is None else align_axes(self.edge_mass, z, len(lead))
        return replaced(self, **fields, edge_mass=edge_mass), double(z)


def align_axes(array: Array, z: Array, lead: int = 1) -> Array:
    """The array with an axis of length 1, behind its first `lead`, for each further axis of z: to broadcast with it."""
    more = (1,) * (z.ndim - lead)
    return namespace(array).reshape(array, (*array.shape[:lead], *more, *array.shape[lead:]))


def derivative(function: Callable[[Array], Array], x: Array, width: Array) -> Array:
    """[...]: the derivative of a smooth function at x, from its values within `width`."""
    values = function(x[..., None] + width[..., None] * constant(NODES, x)) - function(x)[..., None]
    return namespace(x).matmul(values, constant(_MIDDLE_SLOPE, x)) / width


def legendre_rule(low: Array, high: Array) -> tuple[Array, Array]:
    """[..., G] each: Gauss-Legendre nodes and weights from low to high [...]."""
    half, middle = (high - low)[..., None] / 2.0, (high + low)[..., None] / 2.0
    return middle + half * constant(NODES, low), half * constant(_WEIGHTS, low)


def panel_nodes(edges: Array) -> tuple[Array, Array]:
    """[..., P, G] each: nodes and weights of the panels between `edges` [..., P + 1]."""
    return legendre_rule(edges[..., :-1], edges[..., 1:])


def take_panel(values: Array, position: Array) -> Array:
    """[..., G]: values[..., position, :] of values [..., P, G], both broadcast."""
    xp = namespace(values)
    lead = xp.broadcast_to(position, np.broadcast_shapes(position.shape, values.shape[:-2])).shape
    values = xp.broadcast_to(values, (*lead, *values.shape[-2:]))
    position = xp.broadcast_to(position[..., None, None], (*lead, 1, values.shape[-1]))
    return xp.take_along_axis(values, position, axis=-2)[..., 0, :]


def legendre_series(coefficients: Array, x: Array) -> Array:
    """Legendre series [..., K] at x [...] or [..., S], by the recurrence of the polynomials."""
    if x.ndim == coefficients.ndim:
        coefficients = coefficients[..., None, :]
    past, here = 0.0 * x, 0.0 * x + 1.0
    total = coefficients[..., 0] * here
    for k in range(1, coefficients.shape[-1]):
        past, here = here, ((2 * k - 1) * x * here - (k - 1) * past) / k
        total = total + coefficients[..., k] * here
    return total


def series_of_values(nodes: Array) -> Array:
    """[..., G]: the Legendre series through values at the nodes of a panel."""
    return namespace(nodes).matmul(nodes, constant((_DENSITY * _WEIGHTS).T, nodes))


def series_of_masses(masses: Array) -> Array:
    """[..., G]: the Legendre series of the density, per unit of x, whose masses at the nodes are given."""
    return namespace(masses).matmul(masses, constant(_DENSITY.T, masses))


def sums_before(values: Array) -> Array:
    """[..., P]: the sum of all that comes before."""
    return namespace(values).cumulative_sum(values, axis=-1, include_initial=True)[..., :-1]


def bracket_root(reached: Array) -> tuple[Array, Array]:
    """[...] each: neighbouring nodes, or ends of the panel, between which increasing values [..., G] change sign."""
    xp = namespace(reached)
    behind = xp.sum(xp.astype(reached < 0, xp.int64), axis=-1)
    ends = constant([-1.0, *NODES, 1.0], reached)
    flat = xp.reshape(behind, (-1,))
    return tuple(xp.reshape(xp.take(ends, flat + more), behind.shape) for more in (0, 1))


def increasing_root(value: Callable[[Array], Array], slope: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """[...]: where an increasing function is 0 between low and high: by Newton steps, cut short at the ends."""
    x = (low + high) / 2.0
    xp = namespace(x)
    for _ in range(_STEPS):
        here = value(x)
        low, high = xp.where(here < 0, x, low), xp.where(here < 0, high, x)
        there = x - ratio(here, slope(x))
        inside = (there >= low - _SLACK) & (there <= high + _SLACK)  # an end may be the root, up to rounding
        there = xp.minimum(xp.maximum(there, low), high)
        x = xp.where(inside | (there != x), there, (low + high) / 2.0)  # the root may be close to an end
    return x
