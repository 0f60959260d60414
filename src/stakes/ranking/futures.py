"""Which contexts stand for the future, and how often each comes up; what labels cost.

Sizes: N rows of the pool, M contexts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes._array import asarrays, check_all, check_shape, shares
from stakes.models.tables import Host
from stakes.ranking.chance import SUBSAMPLE, generator


def stand_ins(context_weights: Any, size: int, most: int, seed: int, weighted: str) -> tuple[Host, Host, str]:
    """[M], [M]: rows of the pool that stand for the future, none that never come up if some are left out; and a word.

    Rows are drawn by position, so that a pool without weights costs no memory.
    """
    if size <= most:
        said = f"The {size} rows of the pool stand for the future contexts, {weighted}."
        return np.arange(size), weights_of(context_weights, size), said
    weights = None if context_weights is None else weights_of(context_weights, size)
    chance = generator(seed, SUBSAMPLE)
    if weights is None:
        drawn = np.sort(chance.choice(size, most, replace=False))
    else:
        rows = np.flatnonzero(weights > 0)
        drawn = np.sort(chance.choice(rows, min(most, len(rows)), replace=False))
    shares_of = weights_of(None if weights is None else weights[drawn], len(drawn))
    said = f"{len(drawn)} of the {size} rows of the pool, drawn with seed {seed}, stand for the future contexts, "
    return drawn, shares_of, f"{said}{weighted}."


def weights_of(context_weights: Any, count: int) -> Host:
    """[M]: how often each context comes up, checked; shares."""
    if context_weights is None:
        return np.full(count, 1.0 / count)
    (weights,) = asarrays(context_weights=np.asarray(context_weights, dtype=float))
    check_shape("context_weights", weights, (count,))
    return np.asarray(shares("context_weights", weights))


def checked_costs(costs: Any, count: int) -> Host | None:
    """[N]: the costs, checked."""
    if costs is None:
        return None
    (prices,) = asarrays(costs=np.asarray(costs, dtype=float))
    check_shape("costs", prices, (count,))
    check_all(prices > 0, "costs must be positive: what it takes to label each row")
    return np.asarray(prices)
