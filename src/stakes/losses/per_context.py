"""Losses that depend on the context: `loss(z, a, c)`, such as a price or a threshold for each row.

Contexts do not share their targets or actions, so each is scored under its own loss by whatever form serves that loss:
all closed forms stay exact. Neighbouring contexts with the same loss are computed together. Sizes: M contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stakes._utils.array import replaced
from stakes.exceptions import StakesError
from stakes.losses.base import AnyLoss, DistributionLoss, Loss
from stakes.losses.domains import Domain


@dataclass(frozen=True, eq=False)
class PerContext:
    """A loss of its own for each context, and what a unit of it costs there.

    `score`, `select`, `honest_reduction`, `uncertainty`, `rank` and `outlook` take it in place of a loss. `rank` and
    `outlook` ask the function for each context; where the pool stands for the contexts, lists have one entry for each
    row of the pool.

    Args:
        losses: One loss for each context; a function from a row of the contexts (a pandas row, a dict, an array) to
            its loss; or one loss for all.
        prices: [M], by which the loss of each context is multiplied; or a function from a row to that; None for 1.

    Raises:
        TypeError: If there is something else than losses.
        StakesError: If there is no loss, or a price is not positive.

    Examples:
        A batch is recalled if it is too impure, and the limit differs from product to product:

        >>> from stakes import GaussianBelief, PerContext, SquaredError, ThresholdDecision, score
        >>> belief = GaussianBelief([1.0, 1.0], [1.0, 1.0], [1.0, 1.0], covariance=[[0.8, 0.0], [0.0, 0.8]])
        >>> loss = PerContext([ThresholdDecision(1.0), ThresholdDecision(4.0)])
        >>> print(score(loss, belief).round(3))  # nobody doubts the decision on the second
        [0.148 0.   ]
        >>> print(score(PerContext(SquaredError(), prices=[1.0, 10.0]), belief).round(2))  # the second is expensive
        [0.32 3.2 ]
    """

    losses: Any
    prices: Any = None
    each: tuple[AnyLoss, ...] = field(init=False, repr=False, default=())
    """[M]: the losses of the contexts at hand; one where it is the same for all."""
    factors: tuple[float, ...] = field(init=False, repr=False, default=())
    """[M]: their prices; none where all are 1."""

    weight = None  # effective context weights are those of the contexts

    def __post_init__(self) -> None:
        losses = self.losses
        if isinstance(losses, Loss | DistributionLoss):
            object.__setattr__(self, "each", (_checked(losses),))
        elif not callable(losses):
            found = tuple(_checked(each) for each in losses)
            if not found:
                raise StakesError("PerContext needs a loss for each context; got none")
            object.__setattr__(self, "each", found)
        if self.prices is not None and not callable(self.prices):
            object.__setattr__(self, "factors", _positive(self.prices))

    @property
    def domain(self) -> Domain:
        """That of the first loss."""
        return self._known[0].domain

    @property
    def finite_actions(self) -> bool:
        """Whether any of the losses has finitely many actions."""
        return any(bool(each.finite_actions) for each in set(self._known))

    @property
    def _known(self) -> tuple[AnyLoss, ...]:
        if not self.each:
            raise StakesError(
                "the losses of this PerContext are a function of rows, which rank and outlook call; others take a list "
                "of losses, one for each context of the belief"
            )
        return self.each

    def at(self, rows: Callable[[int], Any], places: Any, size: int | None) -> PerContext:
        """The losses of contexts that are known by their rows.

        Args:
            rows: From a number 0 .. M - 1 to the row of that context.
            places: [M], where the contexts are in lists of losses and prices.
            size: How long such lists must be; None for any length.

        Returns:
            The same with a loss and a price for each of these contexts.

        Raises:
            StakesError: If a list has another length.
        """
        count = len(places)
        if callable(self.losses) and not isinstance(self.losses, Loss | DistributionLoss):
            each = tuple(_checked(self.losses(rows(place))) for place in range(count))
        elif isinstance(self.losses, Loss | DistributionLoss):
            each = (_checked(self.losses),)
        else:
            each = _picked("losses", tuple(self.losses), places, size)
        factors: tuple[float, ...] = ()
        if callable(self.prices):
            factors = _positive([self.prices(rows(place)) for place in range(count)])
        elif self.prices is not None:
            factors = _picked("prices", _positive(self.prices), places, size)
        return replaced(self, each=each, factors=factors)

    def mapped(self, function: Callable[[AnyLoss], AnyLoss]) -> PerContext:
        """The same with each loss replaced, such as by one whose classes are in another order.

        Args:
            function: From a loss to that in its place.

        Returns:
            The same for the other losses.
        """
        found = {id(each): function(each) for each in self._known}
        return replaced(self, each=tuple(found[id(each)] for each in self._known))

    def take(self, contexts: slice, count: int) -> PerContext:
        """The losses of a block of contexts.

        Args:
            contexts: Which of them.
            count: How many there are in all.

        Returns:
            Those of the block.
        """
        self.check_count(count)
        each = self._known if len(self._known) == 1 else self._known[contexts]
        return replaced(self, each=each, factors=self.factors[contexts] if self.factors else ())

    def check_count(self, count: int) -> None:
        """Refuse a number of contexts that the losses are not for.

        Args:
            count: How many contexts a belief is about.

        Raises:
            StakesError: If there is another number of losses or prices.
        """
        for name, values in (("losses", self._known), ("prices", self.factors)):
            if len(values) not in (0, 1 if name == "losses" else 0, count):
                raise StakesError(
                    f"PerContext has {len(values)} {name}, and the belief is about {count} contexts: give one for each"
                )

    def runs(self, count: int) -> Iterator[tuple[slice, AnyLoss, Any]]:
        """Neighbours with one loss: where they are, the loss, and their prices (None for 1).

        Args:
            count: How many contexts there are.

        Returns:
            One for each run of neighbours.
        """
        self.check_count(count)
        each = self._known * count if len(self._known) == 1 else self._known
        start = 0
        for stop in range(1, count + 1):
            if stop == count or each[stop] is not each[start]:
                part = slice(start, stop)
                yield part, each[start], np.asarray(self.factors[part]) if self.factors else None
                start = stop

    def __call__(self, z: Any, prediction: Any) -> Any:
        """The loss of answering `prediction` [M, ..] where the targets are `z` [M]."""
        targets, answers = np.asarray(z), np.asarray(prediction)
        parts = [
            np.asarray(one(targets[part], answers[part])) * (1.0 if prices is None else prices)
            for part, one, prices in self.runs(len(targets))
        ]
        return np.concatenate(parts)


def _checked(loss: Any) -> AnyLoss:
    if isinstance(loss, type) or not isinstance(loss, Loss | DistributionLoss):
        raise TypeError(f"PerContext takes losses such as SquaredError(), one for each context; got {loss!r:.100}")
    return loss


def _positive(prices: Any) -> tuple[float, ...]:
    found = np.asarray(prices, dtype=float)
    if found.ndim != 1 or not np.isfinite(found).all() or not (found > 0).all():
        raise StakesError(f"prices must be positive numbers, one for each context; got {prices!r:.100}")
    return tuple(found.tolist())


def _picked(name: str, values: tuple[Any, ...], places: Any, size: int | None) -> tuple[Any, ...]:
    if size is not None and len(values) != size:
        raise StakesError(f"PerContext has {len(values)} {name}, and there are {size} rows: give one for each")
    return tuple(values[place] for place in places)
