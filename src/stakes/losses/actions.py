"""A finite set of actions: the statistics are the row of costs, the act is the cheapest action.

Sizes: A actions, C classes. Only differences between actions decide what to do, so the row of statistics of a target is
counted from its cheapest action: a constant added to all costs costs no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._array import Array, asarrays, check_shape, constant, namespace
from stakes.domains import Classes, Domain, check_labels, labels_to_indicators, target_axes


class FiniteChoice:
    """The part that all losses with a finite set of actions share; a loss says what each action costs."""

    weight = None
    breakpoints: tuple[float, ...] = ()

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""
        raise NotImplementedError

    def cost_rows(self, z: Array) -> Array:
        """[..., A]: the cost of every action for targets z."""
        raise NotImplementedError

    def log_magnitudes(self, z: Array) -> Array:
        """[..., 1]: 0, nothing is taken out."""
        return namespace(z).zeros_like(z[..., :1] if target_axes(self.domain) else z[..., None])

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., A]: the costs beyond the cheapest action for z."""
        rows = self.cost_rows(z)
        return rows - namespace(z).min(rows, axis=-1, keepdims=True)

    def action(self, moments: Array) -> Array:
        """[..., 1]: the position of the cheapest action, the first of equals."""
        return namespace(moments).argmin(moments, axis=-1, keepdims=True)

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: the expected cost of `action` less that of the cheapest."""
        return _column(moments, action) - namespace(moments).min(moments, axis=-1)

    def pointwise(self, z: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: the cost of `action` for z."""
        return _column(self.cost_rows(z), action)

    def prediction(self, action: Array, reference: Array | None = None) -> Array:
        """[...]: the position of the action."""
        return action[..., 0]


@dataclass(frozen=True, eq=False)
class CostMatrix(FiniteChoice):
    """`costs[z, a]`: what action `a` costs when the class is `z` (rows: classes; columns: actions).

    The Bayes act is the column with the smallest expected cost, the objective the value of information. Costs may be
    negative (gains); there need not be as many actions as classes.
    """

    costs: Any

    def __post_init__(self) -> None:
        (given,) = asarrays(costs=self.costs)
        costs = np.array(np.asarray(given), dtype=float)  # a copy of our own
        check_shape("costs", costs, ("C", "A"))
        if 0 in costs.shape:
            raise ValueError(f"costs must have a row for each class and a column for each action; got {costs.shape}")
        object.__setattr__(self, "costs", costs)

    @property
    def domain(self) -> Classes:
        """One class a row."""
        return Classes(self.costs.shape[0])

    def cost_rows(self, z: Array) -> Array:
        """[..., A]: costs[z]."""
        return namespace(z).matmul(z, constant(self.costs, z))

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: costs[z, prediction], for a label and the position of an action."""
        z, prediction = asarrays(z=z, prediction=prediction)
        n_classes, n_actions = self.costs.shape
        check_labels("the prediction", prediction, n_actions)
        z, prediction = namespace(z).broadcast_arrays(z, prediction)
        return self.pointwise(labels_to_indicators(z, n_classes), prediction[..., None])


@dataclass(frozen=True)
class ZeroOne(FiniteChoice):
    """l(z, a) = 1 if a != z else 0: the error rate. The act is the most probable class, of however many there are."""

    @property
    def domain(self) -> Classes:
        """Any number of classes."""
        return Classes()

    def cost_rows(self, z: Array) -> Array:
        """[..., C]: 1 - e_z."""
        return 1.0 - z

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: whether the predicted label differs from z."""
        z, prediction = asarrays(z=z, prediction=prediction)
        check_labels("the target", z, None)
        check_labels("the prediction", prediction, None)
        return namespace(z).astype(z != prediction, z.dtype)


def _column(rows: Array, action: Array) -> Array:
    """[...]: rows[..., action[..., 0]], both broadcast."""
    xp = namespace(rows, action)
    chosen = xp.astype(action, rows.dtype) == constant(range(rows.shape[-1]), rows)  # [..., A]
    return xp.sum(xp.where(chosen, rows, xp.zeros_like(rows)), axis=-1)
