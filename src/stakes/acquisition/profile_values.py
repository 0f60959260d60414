"""Values of the curves EUR_c(rho) / rho at a few rho, by integration: what a profile curve interpolates.

Sizes: M contexts, m of a block, R values of rho, J cells of a label, D statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stakes._array import Array, double, filled, namespace, replaced
from stakes.acquisition.finite_actions import Under
from stakes.acquisition.forms import general_form
from stakes.acquisition.reduction import check_finite
from stakes.beliefs import GaussianBelief
from stakes.beliefs.gaussian_shared import SharedSplit
from stakes.losses import DistributionLoss

Values: TypeAlias = Callable[[np.ndarray[Any, Any]], Array]
"""From rho [R], each above 0, to EUR_c / rho [R, M]."""


class Table(NamedTuple):
    """Curves to be, of all contexts."""

    values: Values
    log_scale: Array
    """[M]: the log of the scale that was taken out of each"""
    split: SharedSplit | None
    """The nodes that contexts share; None where each has its own"""


def tabulator(loss: Any, belief: GaussianBelief, under: Under) -> Table:
    """By one product for each rho where contexts share their nodes, by the general route otherwise."""
    mean, variance = double(belief.mean), double(belief.variance)
    empty = GaussianBelief(mean, variance, filled((0,), 1.0, mean), filled((0, mean.shape[0]), 0.0, mean))
    split = None if isinstance(loss, DistributionLoss) else under(empty).shared_split(loss)
    if split is not None:
        return Table(_rows(lambda rho: shared_reductions(loss, split, rho)), split.reference.log_scale, split)
    reduction, xp = general_form(loss).prepare(loss, under(empty)), namespace(mean)

    def row(rho: float) -> Array:
        one = replaced(empty, candidate_variance=filled(1, 1.0, mean), covariance=xp.sqrt(rho * variance)[None, :])
        return reduction.of(under(one))[0, :]

    return Table(_rows(row), reduction.log_scale, None)


def _rows(of: Callable[[float], Array]) -> Values:
    """Values one rho at a time, so that only those of one are integrated at once."""

    def values(shares: np.ndarray[Any, Any]) -> Array:
        rows = [of(float(rho)) / float(rho) for rho in shares]
        return check_finite(namespace(rows[0]).stack(rows, axis=0))

    return values


def shared_reductions(loss: Any, split: SharedSplit, rho: float) -> Array:
    """[M]: EUR_c(rho), the expected regret of keeping today's answer, as the general route has it."""
    point, parts = split.reference.point, []
    assert point is not None
    for part, moments in split.moments(rho):  # [m, J, D]
        xp = namespace(moments)
        action = loss.action(xp.sum(moments, axis=1))  # [m, d]
        parts.append(xp.sum(loss.regret(moments, action[:, None, :], point[part, None]), axis=1))
    return xp.concat(parts)
