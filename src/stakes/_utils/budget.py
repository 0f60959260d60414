"""The one budget rule: what `select`, `rank`, `suggest` and `ask` can afford.

Rows are looked at in their order. A row that the rest of the budget does not pay for is passed over, and the next ones
are still looked at: an expensive row in second place does not end the list. Sums of costs are rounded (three labels at
0.1 cost 0.30000000000000004), so a budget may be exceeded by 1e-9 of itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeVar

from stakes.exceptions import StakesError

ROUNDING = 1e-9
"""Of the budget, by which sums of costs may exceed it."""

T = TypeVar("T")


def check_budget(budget: Any) -> None:
    """Refuse a budget that is neither None nor a positive number."""
    if budget is not None and not (isinstance(budget, Real) and not isinstance(budget, bool) and float(budget) > 0):
        raise StakesError(f"budget must be positive, in the unit of the costs; got {budget!r}")


class Budget:
    """What is left to spend; without a limit, everything is affordable."""

    def __init__(self, limit: float | None) -> None:
        self.limit = math.inf if limit is None else float(limit)
        self.spent = 0.0

    @property
    def left(self) -> float:
        """The largest cost that is still affordable."""
        return self.limit * (1.0 + ROUNDING) - self.spent

    def affords(self, cost: float) -> bool:
        """Whether one more label at this cost is within the budget."""
        return cost <= self.left

    def spend(self, cost: float) -> None:
        """Pay for a label."""
        self.spent += cost


def affordable(rows: Iterable[tuple[T, float]], budget: float | None, n: int | None = None) -> list[T]:
    """The first `n` rows, of pairs (row, cost), that a budget pays for together; None: no limit."""
    purse = Budget(budget)
    chosen: list[T] = []
    for row, cost in rows:
        if n is not None and len(chosen) == n:
            break
        if purse.affords(cost):
            purse.spend(cost)
            chosen.append(row)
    return chosen
