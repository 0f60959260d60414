"""Where the best of finitely many actions changes as the label varies: integration over labels splits there.

Between switching points one action is best throughout, so regrets are smooth, and cells may be as wide as they come. A
switching point that is slightly off costs only its square, since both actions are worth the same there.
Sizes: J nodes of the label, A actions, B switching points (of the pair that has most; the others repeat the last node).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from array_api_compat import device

from stakes._array import Array, log_of, namespace, ratio

_ROUNDS = 4  # of regula falsi: from a spacing of 1/2 to an error of 1e-5, whose square is left


def has_switches(integrand: Any) -> bool:
    """Whether the act of a loss jumps from one action to another: whether its statistics are costs of actions."""
    return bool(getattr(integrand, "switches", False))


def switching_points(costs: Callable[[Array], Array], nodes: Array) -> Array:
    """[..., B]: where the cheapest action changes, for expected costs(nodes) [..., J, A] at increasing nodes [..., J].

    Expected costs are at least 0 (counted from the cheapest action for each target), of any scale at each node. Changes that come and go between two nodes are not seen.
    """
    values = costs(nodes)
    nodes = namespace(nodes).broadcast_to(nodes, values.shape[:-1])
    for _ in range(_ROUNDS):
        found = _crossings(nodes, values)
        if found.shape[-1] == 0:
            return found
        nodes, values = _merged(nodes, values, found, costs(found))
    return _crossings(nodes, values)


def _crossings(nodes: Array, values: Array) -> Array:
    """[..., B]: between nodes whose cheapest actions differ, where the log ratio of their costs is 0 if it is linear."""
    xp = namespace(nodes)
    best = xp.argmin(values, axis=-1)  # [..., J]
    before, after = best[..., :-1], best[..., 1:]
    excess = _log_ratio(values[..., :-1, :], after, before)
    saving = _log_ratio(values[..., 1:, :], before, after)
    place = nodes[..., :-1] + (nodes[..., 1:] - nodes[..., :-1]) * ratio(excess, excess + saving)
    changes = before != after
    count = int(xp.max(xp.sum(xp.astype(changes, xp.int64), axis=-1))) if 0 not in changes.shape else 0
    places = xp.sort(xp.where(changes, place, nodes[..., -1:] + xp.zeros_like(place)), axis=-1)
    return places[..., :count]


def _merged(nodes: Array, values: Array, new: Array, new_values: Array) -> tuple[Array, Array]:
    """Nodes and values with new ones among them, in order."""
    xp = namespace(nodes)
    nodes, values = xp.concat([nodes, new], axis=-1), xp.concat([values, new_values], axis=-2)
    order = xp.argsort(nodes, axis=-1)
    rows = xp.broadcast_to(order[..., None], values.shape)
    return xp.take_along_axis(nodes, order, axis=-1), xp.take_along_axis(values, rows, axis=-2)


def _log_ratio(values: Array, dearer: Array, cheaper: Array) -> Array:
    """[...]: the log of what one action costs over what another costs, at most 50: nearly linear also in far tails."""
    xp = namespace(values)
    above, below = log_of(_of(values, dearer)), log_of(_of(values, cheaper))
    finite = xp.isfinite(above) & xp.isfinite(below)
    return xp.where(
        finite,
        xp.where(finite, above, xp.zeros_like(above)) - xp.where(finite, below, xp.zeros_like(above)),
        xp.full_like(above, 50.0),
    )


def _of(values: Array, action: Array) -> Array:
    """[...]: values[..., action]."""
    xp = namespace(values)
    chosen = action[..., None] == xp.arange(values.shape[-1], device=device(values))
    return xp.sum(xp.where(chosen, values, xp.zeros_like(values)), axis=-1)
