"""Where the best of finitely many actions changes, as the label varies or as the posterior does.

Between switching points of the label one action is best throughout, so regrets are smooth, and cells may be as wide as
they come. A switching point that is slightly off costs only its square, since both actions are worth the same there.

Under a Gaussian belief switches of the posterior tell all. Once the target is N(m, s^2), action a costs C_a(m, s^2),
which solves the heat equation whatever the costs. Labels move m about and narrow s, so the least cost falls only where
two actions change places: with switches m_k(s), at which the slope of the least cost drops by J_k(s), a label that
tells the share rho = sin(angle)^2 of a variance v is worth

    EUR = integral_0^angle sqrt(v) cos(t) sum_k J_k(s) pdf((m_k(s) - m) / (sqrt(v) sin(t))) dt,  s = sqrt(v) cos(t).

Switches are functions of s alone: all contexts share them, nothing is integrated over labels, no term is negative.
Sizes: J nodes of the label, or of a block, A actions, B switching points (of the pair that has most; the others repeat
the last node), or blocks of m; M contexts, R values of rho, T nodes of t, P panels of s, Q nodes of targets, K
switches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import device
from numpy.polynomial.chebyshev import chebval, chebvander
from numpy.polynomial.legendre import leggauss

from stakes._utils.array import Array, column, constant, log_of, namespace, on_host, ratio, slices
from stakes.beliefs.quadrature import FAR_TAIL, PANEL, TAIL, Resolved, panels

_ROUNDS = 5  # of regula falsi with two neighbours: from a spacing of 1/4 to an error of 1e-8, whose square is left
_NEIGHBOURS = (-0.02, 0.0, 0.02)  # of the place that a line gives, in lengths of the interval: one of them is beyond


def switching_points(costs: Callable[[Array], Array], nodes: Array) -> Array:
    """[..., B]: where the cheapest action changes, for expected costs(nodes) [..., J, A] at increasing nodes [..., J].

    Expected costs are at least 0, counted from the cheapest action for each target, and of any scale at each node.
    A change that comes and goes between two nodes is looked for where the second best action comes nearest to the best.
    """
    values = costs(nodes)
    nodes = namespace(nodes).broadcast_to(nodes, values.shape[:-1])
    found = _near_misses(nodes, values)
    if found.shape[-1]:
        nodes, values = _merged(nodes, values, found, costs(found))
    for _ in range(_ROUNDS):
        nodes, values = _around_switches(nodes, values)
        if not nodes.shape[-1]:
            return nodes
        found = _crossings(nodes, values, _NEIGHBOURS)
        nodes, values = _merged(nodes, values, found, costs(found))
    return _crossings(nodes, values)


def _around_switches(nodes: Array, values: Array) -> tuple[Array, Array]:
    """[..., 2 B] and [..., 2 B, A]: the nodes between which the cheapest action changes; the last for fewer changes."""
    xp, last = namespace(nodes), nodes.shape[-1] - 1
    best = xp.argmin(values, axis=-1)
    changes = best[..., :-1] != best[..., 1:]
    count = int(xp.max(xp.sum(xp.astype(changes, xp.int64), axis=-1))) if 0 not in changes.shape else 0
    positions = xp.arange(last, device=device(nodes))
    left = xp.sort(xp.where(changes, positions, xp.full_like(positions, last)), axis=-1)[..., :count]
    both = xp.stack([left, xp.clip(left + 1, 0, last)], axis=-1)
    both = xp.reshape(both, (*left.shape[:-1], 2 * count))
    rows = xp.broadcast_to(both[..., None], (*both.shape, values.shape[-1]))
    return xp.take_along_axis(nodes, both, axis=-1), xp.take_along_axis(values, rows, axis=-2)


def _crossings(nodes: Array, values: Array, shifts: tuple[float, ...] = (0.0,)) -> Array:
    """[..., B]: between nodes whose cheapest actions differ, where the log ratio of their costs is 0 (as a line).

    With `shifts`, that many lengths of the interval from there, within it, one after the other.
    """
    xp = namespace(nodes)
    best = xp.argmin(values, axis=-1)  # [..., J]
    before, after = best[..., :-1], best[..., 1:]
    excess = _log_ratio(values[..., :-1, :], after, before)
    saving = _log_ratio(values[..., 1:, :], before, after)
    share, length = ratio(excess, excess + saving), nodes[..., 1:] - nodes[..., :-1]
    places = [nodes[..., :-1] + length * xp.clip(share + shift, 0.0, 1.0) for shift in shifts]
    return xp.concat([_gathered(before != after, place, nodes) for place in places], axis=-1)


def _near_misses(nodes: Array, values: Array) -> Array:
    """[..., B]: where the log ratio of the costs of the second best action and the best is least, as a parabola."""
    xp = namespace(nodes)
    if nodes.shape[-1] < 3 or values.shape[-1] < 2:
        return nodes[..., :0]
    best = xp.argmin(values, axis=-1, keepdims=True)
    others = xp.where(best == xp.arange(values.shape[-1], device=device(values)), xp.inf * xp.ones_like(values), values)
    best, second = best[..., 1:-1, 0], xp.argmin(others, axis=-1)[..., 1:-1]  # [..., J - 2]
    parts = (slice(None, -2), slice(1, -1), slice(2, None))
    before, here, after = (_log_ratio(values[..., part, :], second, best) for part in parts)
    left, middle, right = (nodes[..., part] for part in parts)
    rise, fall = (after - here) * (middle - left), (before - here) * (right - middle)
    shift = 0.5 * ratio(fall * (right - middle) - rise * (middle - left), rise + fall)
    lowest = (here <= before) & (here <= after) & (rise + fall > 0) & (here < 50.0)
    return _gathered(lowest, middle + shift, nodes)


def _gathered(chosen: Array, places: Array, nodes: Array) -> Array:
    """[..., B]: the chosen places, in order; pairs that have fewer than the others repeat the last node."""
    xp = namespace(nodes)
    count = int(xp.max(xp.sum(xp.astype(chosen, xp.int64), axis=-1))) if 0 not in chosen.shape else 0
    return xp.sort(xp.where(chosen, places, nodes[..., -1:] + xp.zeros_like(places)), axis=-1)[..., :count]


def _merged(nodes: Array, values: Array, new: Array, new_values: Array) -> tuple[Array, Array]:
    """Nodes and values with new ones among them, in order."""
    xp = namespace(nodes)
    nodes, values = xp.concat([nodes, new], axis=-1), xp.concat([values, new_values], axis=-2)
    order = xp.argsort(nodes, axis=-1)
    rows = xp.broadcast_to(order[..., None], values.shape)
    return xp.take_along_axis(nodes, order, axis=-1), xp.take_along_axis(values, rows, axis=-2)


def _log_ratio(values: Array, costlier: Array, cheaper: Array) -> Array:
    """[...]: the log of what one action costs over what another costs, 50 where that is not finite.

    It is nearly linear also in far tails.
    """
    xp = namespace(values)
    above, below = (log_of(column(values, each[..., None])) for each in (costlier, cheaper))
    finite = xp.isfinite(above) & xp.isfinite(below)
    return xp.where(
        finite,
        xp.where(finite, above, xp.zeros_like(above)) - xp.where(finite, below, xp.zeros_like(above)),
        xp.full_like(above, 50.0),
    )


_Host = np.ndarray[Any, np.dtype[np.float64]]

_NODES = 14  # of s in a panel
_CHEBYSHEV = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
_TO_SERIES = 2.0 / _NODES * chebvander(_CHEBYSHEV, _NODES - 1).T / (1.0 + (np.arange(_NODES) == 0))[:, None]
_RESOLVED = 1e-9  # of s, and of J: what the last coefficients may leave
_ROUNDING = 1e-13  # of the place of a switch: halving panels would not help
_SHORTEST = 2.0**-22  # of the largest s: a panel in which switches come or go
_MOST_PANELS = 256
_BLOCK, _STEPS = 8.0, 32  # posterior sds that a block of m covers, and steps of a first look at it
_SHIFT = 0.3183  # of a block, by which all are moved: a switch is at the end of none
_LOOKS = 256  # at costs, for each of the largest sds
_NEXT_TO = 2e-5  # of the largest sd: edges so near to a place where costs cross are that place, if nothing jumps
_NO_STEP, _NO_JUMP = (
    1e-10,
    1e-6,
)  # of the largest sd, over which costs change by no more than that share, if they do not
_HALVINGS = 60  # until a place where costs cross is known to rounding
_BISECTIONS, _POLISH = 24, 3  # towards a switch, and Newton steps after them
_AT_ONCE = 2**16  # densities, which stay within the cache
_SAME = 1e-7  # posterior sds: switches no further apart are one
_PLACES, _SHARES = leggauss(12)
_RUNG, _RUNGS = (
    0.75,
    20,
)  # of angles: each step of the integration, and steps below the smallest angle that is asked for


class _Panel(NamedTuple):
    """Switches for s from low to high, as Chebyshev series."""

    low: float
    high: float
    places: _Host
    """[R, K]: of m_k"""
    drops: _Host
    """[R, K]: of s J_k"""
    actions: Any
    """[K, 2]: the best action below and above each"""


@dataclass(frozen=True, eq=False)
class Switches:
    """Where the best action changes as a posterior mean moves, for every posterior sd up to the largest."""

    panels: tuple[_Panel, ...]

    def log_reductions(self, rho: Any, mean: Array, variance: Array) -> Array:
        """[R, M]: log EUR at rho [R], each above 0; -inf where there is nothing to decide."""
        order = np.argsort(np.asarray(rho))
        angles = np.arcsin(np.sqrt(np.asarray(rho)[order]))
        m, sd = on_host(mean)[:, None], np.sqrt(on_host(variance))[:, None]
        ends = np.asarray([panel.low for panel in self.panels])
        turns = np.arccos(np.clip(ratio(ends, sd + 0.0 * ends), 0.0, 1.0))  # [M, P]: between panels
        ladder = angles[-1] * _RUNG ** np.arange(_RUNGS + math.log(angles[0] / angles[-1]) / math.log(_RUNG))
        nodes = np.concatenate([[0.0], ladder, angles]) + 0.0 * sd  # [M, ...]
        edges = np.sort(np.concatenate([nodes, np.minimum(turns, angles[-1])], axis=1), axis=1)  # [M, E + 1]
        steps = np.diff(edges, axis=1)[..., None] / 2.0
        t = np.reshape(edges[:, :-1, None] + steps * (1.0 + _PLACES), (len(sd), -1))  # [M, T]
        logs = np.reshape(self._log_rates(m, sd, t), (*steps.shape[:2], -1))
        top = np.maximum(np.max(logs, axis=(1, 2)), -1e300)
        sums = np.cumsum(np.sum(np.exp(logs - top[:, None, None]) * _SHARES * steps, axis=2), axis=1)  # [M, E]
        values = np.empty((len(order), len(sd)))
        for context in range(len(sd)):
            values[order, context] = sums[context, np.searchsorted(edges[context], angles) - 1]
        return log_of(constant(values, mean)) + constant(top, mean)

    def reductions(self, mean: Array, variance: Array, rho: Array) -> Array:
        """[n, M]: EUR for contexts [M] and rho [n, M]."""
        shares, values = on_host(rho), np.zeros(rho.shape)
        for context in range(shares.shape[1]):
            informative = np.flatnonzero(shares[:, context] > 0)
            here = slice(context, context + 1)
            if len(informative):
                logs = self.log_reductions(shares[informative, context], mean[here], variance[here])
                values[informative, context] = np.exp(on_host(logs))[:, 0]
        return constant(values, mean)

    def _log_rates(self, mean: _Host, sd: _Host, t: _Host) -> _Host:
        """[M, T]: the logarithm of the integrand at t [M, T]."""
        s, across = sd * np.cos(t), np.maximum(sd * np.sin(t), 1e-300)
        found = np.full(s.shape, -np.inf)
        for panel in self.panels:
            rows, columns = np.nonzero((s > panel.low) & (s <= panel.high))
            if not len(rows) or not panel.places.shape[1]:
                continue
            here = s[rows, columns]
            x = (2.0 * here - panel.low - panel.high) / (panel.high - panel.low)
            away = (chebval(x, panel.places) - mean[rows, 0]) / across[rows, columns]  # [K, n]
            with np.errstate(divide="ignore", over="ignore"):
                logs = np.log(np.maximum(chebval(x, panel.drops), 0.0)) - 0.5 * away**2
            found[rows, columns] = np.logaddexp.reduce(logs, axis=0) - 0.5 * math.log(2.0 * math.pi)
        return found


def find_switches(integrand: Resolved, mean: Array, variance: Array) -> Switches | None:
    """The switches that matter to contexts N(mean, variance), each [M]; None where they cannot be followed."""
    m, sd = on_host(mean), np.sqrt(on_host(variance))
    largest = float(np.max(sd))
    if not largest > 0:
        return Switches(())
    costs = _Costs(integrand, mean, float(np.min(m - FAR_TAIL * sd)), float(np.max(m + FAR_TAIL * sd)), largest)
    shortest = _SHORTEST * largest
    waiting, found = [(0.0, largest)], list[_Panel]()
    while waiting:
        low, high = waiting.pop()
        panel, good, change = _panel(costs, low, high)
        differ = bool(found) and not np.array_equal(panel.actions, found[-1].actions)
        if differ and good and found[-1].high - found[-1].low > shortest:  # some come or go in between
            change = float(_nodes(low, high)[0]), float(_nodes(found[-1].low, found[-1].high)[-1])
            high = found.pop().high
        if change is not None and high - low > shortest:
            if len(found) + len(waiting) > _MOST_PANELS:
                return None
            waiting += _around(costs, low, high, *change, shortest)
        elif good or high - low <= shortest:
            found.append(panel)
        elif len(found) + len(waiting) > _MOST_PANELS:
            return None
        else:
            waiting += _halves(low, high)
    return Switches(tuple(found))


def _halves(low: float, high: float) -> list[tuple[float, float]]:
    return [(low, (low + high) / 2.0), ((low + high) / 2.0, high)]


def _around(
    costs: _Costs, low: float, high: float, below: float, above: float, shortest: float
) -> list[tuple[float, float]]:
    """Three panels, the one between as short as may be: switches come or go in it, and from `below` to `above`."""
    (wanted,) = costs.switches(np.asarray([above]))
    while above - below > shortest and below < (middle := (below + above) / 2.0) < above:
        (here,) = costs.switches(np.asarray([middle]))
        if np.array_equal(here.actions, wanted.actions):
            above = middle
        else:
            below = middle
    return [(low, below), (below, above), (above, high)]


def _panel(costs: _Costs, low: float, high: float) -> tuple[_Panel, bool, tuple[float, float] | None]:
    """The panel, whether polynomials resolve it, and two s between which switches come or go.

    Where they do within the panel, it has the switches of one node.
    """
    s = _nodes(low, high)
    switches = costs.switches(s)
    for upper, lower, above, below in zip(switches[:-1], switches[1:], s[:-1], s[1:], strict=True):
        if not np.array_equal(upper.actions, lower.actions):
            middle = switches[_NODES // 2]
            panel = _Panel(low, high, middle.places[None, :], middle.drops[None, :], middle.actions)
            return panel, False, (float(below), float(above))
    places, drops = (_TO_SERIES @ np.stack([getattr(each, name) for each in switches]) for name in _NAMES)
    tails = [np.sum(abs(each[-3:]), axis=0) for each in (places, drops)]
    scale = np.min(np.stack([each.drops for each in switches]), axis=0)
    rounding = _ROUNDING * np.max(abs(places[0]), initial=0.0)
    good = np.all(tails[0] <= _RESOLVED * high + rounding) and np.all(tails[1] <= _RESOLVED * scale)
    return _Panel(low, high, places, drops, switches[0].actions), bool(good), None


def _nodes(low: float, high: float) -> _Host:
    """[R]: nodes of s, from `high` down to `low`."""
    return np.asarray((low + high) / 2.0 + (high - low) / 2.0 * _CHEBYSHEV)


def _bisected(costs: Callable[[_Host, Any], _Host], nodes: _Host) -> tuple[Any, _Host]:
    """Blocks [b] in which the cheapest action changes, and [b, K] near where; the costs are those of some blocks.

    Two such places may lie between two of the nodes [B, J].
    """
    values = costs(nodes, np.arange(len(nodes)))
    between = _near_misses(nodes, values)
    if between.shape[-1]:
        some = np.flatnonzero(np.any(between != nodes[:, -1:], axis=1))
        added = np.repeat(values[:, -1:, :], between.shape[-1], axis=1)
        added[some] = costs(between[some], some)
        nodes, values = _merged(nodes, values, between, added)
    best = np.argmin(values, axis=-1)
    rows = np.flatnonzero(np.any(best[:, 1:] != best[:, :-1], axis=1))
    nodes, values = _around_switches(nodes[rows], values[rows])
    low, high = nodes[:, ::2], nodes[:, 1::2]
    best = np.argmin(values[:, ::2, :], axis=-1)
    for _ in range(_BISECTIONS if low.size else 0):
        middle = (low + high) / 2.0
        same = np.argmin(costs(middle, rows), axis=-1) == best
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return rows, np.asarray((low + high) / 2.0)


class _Found(NamedTuple):
    """The switches for one s, in order."""

    places: _Host
    """[K]: m_k"""
    drops: _Host
    """[K]: s J_k"""
    actions: Any
    """[K, 2]: the best action below and above"""


_NAMES = ("places", "drops")


def _reach(costs: _Host) -> float:
    """Posterior sds from a crossing where a switch may be, and costs beyond it count, for costs [Q, A].

    An action that costs R times as much as another is as expensive with a probability of 1 / R, which a normal has
    sqrt(2 log R) standard deviations out.
    """
    most = np.max(costs, axis=0)
    spread = math.log(np.max(most) / np.min(most[most > 0])) if np.any(most > 0) else 0.0
    return max(FAR_TAIL, TAIL + math.sqrt(2.0 * spread))


class _Costs:
    """Costs of actions for targets from low to high, and as they are expected."""

    def __init__(self, integrand: Resolved, like: Array, low: float, high: float, largest: float) -> None:
        self.integrand, self.like = integrand, like
        edges = np.asarray(integrand.edges)
        looks = np.linspace(low, high, 2 + math.ceil(_LOOKS * (high - low) / largest))
        inside = edges[(edges > low) & (edges < high)]
        near = 1e-9 * largest
        z = np.unique(np.concatenate([looks, inside - near, inside + near]))
        best = self._best(z)
        at = np.flatnonzero(best[1:] != best[:-1])
        below, above, before = z[at], z[at + 1], best[at]
        for _ in range(_HALVINGS):
            middle = (below + above) / 2.0
            same = self._best(middle) == before
            below, above = np.where(same, middle, below), np.where(same, above, middle)
        self.crossings = (below + above) / 2.0
        self.reach = _reach(self._rows(z))
        self.edges = self._edges(largest)

    def _edges(self, largest: float) -> _Host:
        """[E]: edges of costs, with one for all those that were found around a place where costs cross.

        There costs beyond the cheapest kink, and that place is known to rounding. Jumps next to it are kept.
        """
        edges, step = np.asarray(self.integrand.edges, dtype=float), _NO_STEP * largest
        if not len(self.crossings) or not len(edges):
            return edges
        next_to = np.min(abs(edges[:, None] - self.crossings), axis=1) <= _NEXT_TO * largest
        below, above = self._rows(edges - step), self._rows(edges + step)
        jumps = np.max(abs(above - below), axis=1) > _NO_JUMP * np.max(abs(below), axis=1)
        kept = edges[~next_to | jumps | np.isin(edges, np.asarray(self.integrand.of.breakpoints, dtype=float))]
        return np.unique(np.concatenate([kept, self.crossings]))

    def _rows(self, z: _Host) -> _Host:
        return np.asarray(on_host(self.integrand.statistics(constant(z, self.like))), dtype=float)

    def _best(self, z: _Host) -> Any:
        return np.argmin(self._rows(z), axis=-1)

    def switches(self, s: _Host) -> list[_Found]:
        """Those for each s [S]."""
        owner, start = self._blocks(s)
        if not len(owner):
            return [_Found(np.zeros(0), np.zeros(0), np.zeros((0, 2), dtype=int)) for _ in s]
        sd = s[owner]  # [B]
        cuts = (self.edges[None, :] - start[:, None]) / sd[:, None]  # [B, E]
        inside = (cuts > -self.reach) & (cuts < _BLOCK + self.reach)
        cuts = np.sort(np.where(inside, cuts, np.inf), axis=1)[:, : int(np.max(np.sum(inside, axis=1)))]
        ends = np.full(len(sd), -self.reach), np.full(len(sd), _BLOCK + self.reach)
        x, lengths = panels(*ends, cuts, PANEL)  # [B, Q], in posterior sds from the start
        weighted = lengths[..., None] * self._rows(start[:, None] + sd[:, None] * x) / math.sqrt(2.0 * math.pi)

        def moments(u: _Host, rows: Any, power: int = 0) -> _Host:
            """[b, J, A]: expected costs, times the distance from u to a power, where the mean is u [b, J]."""
            found = np.empty((*u.shape, weighted.shape[-1]))
            for part in slices(len(rows), max(1, _AT_ONCE // max(1, u.shape[1] * x.shape[1]))) if u.size else ():
                away = x[rows[part], None, :] - u[part, :, None]
                kernel = np.exp(-0.5 * away * away)
                found[part] = np.matmul(kernel * away if power else kernel, weighted[rows[part]])
            return found

        u = np.broadcast_to(np.linspace(0.0, _BLOCK, 1 + _STEPS), (len(sd), 1 + _STEPS))
        rows, near = _bisected(moments, u)
        return self._polished(s, owner[rows], start[rows], near, lambda u, power: moments(u, rows, power))

    def _polished(self, s: _Host, owner: Any, start: _Host, u: _Host, moments: Any) -> list[_Found]:
        """Switches by Newton's rule from places u [B, J] near them, in posterior sds from the start of each block."""
        if not u.shape[1]:
            return self._collected(s, owner, start, u, u, np.zeros((*u.shape, 2), dtype=int), u > 0)
        for step in range(_POLISH + 1):
            costs, slopes = moments(u, 0), moments(u, 1)  # [B, J, A]
            if step == 0:
                pair = np.argsort(costs, axis=-1, kind="stable")[..., :2]
            of_pair, slope = (np.take_along_axis(each, pair, axis=-1) for each in (costs, slopes))
            gap, drop = of_pair[..., 0] - of_pair[..., 1], slope[..., 0] - slope[..., 1]
            if step < _POLISH:
                u = u - np.where(drop != 0, gap / np.where(drop != 0, drop, 1.0), 0.0)
        least = np.min(costs, axis=-1)
        real = (abs(gap) <= 1e-9 * abs(drop)) & (drop != 0) & (u >= 0) & (u <= _BLOCK)
        real &= of_pair[..., 0] <= least + 1e-9 * abs(drop)
        ordered = np.where((drop > 0)[..., None], pair, pair[..., ::-1])  # what is best below rises more quickly
        return self._collected(s, owner, start, u, abs(drop), ordered, real)

    def _collected(
        self, s: _Host, owner: Any, start: _Host, u: _Host, drop: _Host, pair: Any, real: Any
    ) -> list[_Found]:
        """For each s its real switches, each once."""
        places, owners = start[:, None] + s[owner][:, None] * u, np.broadcast_to(owner[:, None], u.shape)
        found = []
        for i, sd in enumerate(s):
            here = real & (owners == i)
            order = np.argsort(places[here])
            place, jump, actions = places[here][order], drop[here][order], pair[here][order]
            new = np.concatenate([[True], np.diff(place) > _SAME * sd])[: len(place)]
            found.append(_Found(place[new], jump[new], actions[new]))
        return found

    def _blocks(self, s: _Host) -> tuple[Any, _Host]:
        """[B], [B]: which s, and where a block of m starts within reach of a place where costs cross."""
        owners, starts = [np.zeros(0, dtype=int)], [np.zeros(0)]
        for i, sd in enumerate(s):
            width = _BLOCK * sd
            count = math.ceil(2.0 * self.reach / _BLOCK) + 1
            first = np.floor((self.crossings - self.reach * sd) / width - _SHIFT)
            numbers = np.unique((first[:, None] + np.arange(count)).ravel())
            owners.append(np.full(len(numbers), i))
            starts.append((numbers + _SHIFT) * width)
        return np.concatenate(owners), np.concatenate(starts)
