"""Classes that have an order: what an answer costs grows with its distance from the truth.

Sizes: C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from stakes.exceptions import StakesError
from stakes.losses.actions import CostMatrix, distinct_names

Distance = Literal["absolute", "squared"]


def ordinal_costs(
    classes: int | Sequence[Any],
    distance: Distance | Callable[[float, float], float] = "absolute",
    *,
    positions: Sequence[float] | None = None,
) -> CostMatrix:
    """A cost matrix by the distance between the true class and the answer.

    With "absolute" the best answer is a median class, with "squared" the class next to the mean position. Costs that no
    distance tells are given as a `CostMatrix`.

    Args:
        classes: The names of the C classes from the lowest to the highest, or how many they are.
        distance: "absolute": |p_z - p_a|; "squared": (p_z - p_a)^2; or a function of the positions (truth, answer),
            which may cost more on one side.
        positions: [C]: where classes stand, increasing; 0, 1, 2, .. without.

    Returns:
        The matrix; with names, it is matched to the classes of a model by name.

    Raises:
        StakesError: If classes are fewer than two or come twice, positions do not increase, or a cost is negative or
            not finite.

    Examples:
        >>> from stakes.losses import ordinal_costs
        >>> print(ordinal_costs(["mild", "moderate", "severe"]).costs)
        [[0. 1. 2.]
         [1. 0. 1.]
         [2. 1. 0.]]
        >>> too_low = ordinal_costs(3, lambda truth, answer: 3.0 * max(truth - answer, 0.0) + max(answer - truth, 0.0))
        >>> print(too_low.costs[2])  # the highest grade is missed
        [6. 3. 0.]
    """
    names = None if isinstance(classes, int) else list(classes)
    count = classes if isinstance(classes, int) else len(names or ())
    if isinstance(classes, str | bool) or count < 2:
        raise StakesError(f"classes must be two names or more, from the lowest to the highest; got {classes!r}")
    distinct_names("classes", names, count)
    places = np.arange(count, dtype=float) if positions is None else np.asarray(positions, dtype=float)
    if places.shape != (count,) or not np.isfinite(places).all() or not (np.diff(places) > 0).all():
        raise StakesError(f"positions must be {count} finite numbers that increase; got {positions!r}")
    if callable(distance):
        costs = np.asarray([[float(distance(z, a)) for a in places.tolist()] for z in places.tolist()])
    elif distance in ("absolute", "squared"):
        costs = np.abs(places[:, None] - places[None, :]) ** (1 if distance == "absolute" else 2)
    else:
        raise StakesError(f"distance must be 'absolute', 'squared' or a function (truth, answer); got {distance!r}")
    if not np.isfinite(costs).all() or (costs < 0).any():
        raise StakesError(f"costs by distance must be finite numbers, at least 0; got {costs.tolist()}")
    return CostMatrix(costs, classes=names, actions=names)
