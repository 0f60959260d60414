"""Where the best of finitely many actions changes as the label varies: integration over labels splits there.

Between switching points one action is best throughout, so regrets are smooth, and cells may be as wide as they come. A
switching point that is slightly off costs only its square, since both actions are worth the same there.
Sizes: J nodes of the label, A actions, B switching points (of the pair that has most; the others repeat the last node).
"""

from __future__ import annotations

from collections.abc import Callable

from array_api_compat import device

from stakes._utils.array import Array, column, log_of, namespace, ratio

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
