"""Where a target can lie: an interval of real numbers, classes, or vectors.

A loss says where it is defined, a belief where its target can fall. Also the checks of labels and probabilities.
Sizes: C classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from stakes._utils.array import Array, asarrays, check_all, constant, namespace
from stakes.exceptions import StakesError


@dataclass(frozen=True)
class Interval:
    """The real numbers between `low` and `high`. Targets have shape [...].

    Args:
        low: The lower end.
        high: The upper end, not included.
        closed_low: Whether the lower end is included.

    Examples:
        >>> from stakes.losses import POSITIVE, REAL, Interval
        >>> print(POSITIVE in REAL, REAL in POSITIVE, Interval(0.0, 1.0))
        True False (0, 1)
    """

    low: float = -math.inf
    high: float = math.inf
    closed_low: bool = False

    def __contains__(self, other: object) -> bool:
        """Whether every point of the domain `other` lies in this one."""
        if not isinstance(other, Interval) or other.high > self.high:
            return False
        return other.low > self.low or (other.low == self.low and self.closed_low >= other.closed_low)

    def check(self, name: str, values: Array) -> None:
        """Refuse values outside the interval.

        Args:
            name: What the values are, for the message.
            values: An array of any shape.

        Raises:
            StakesError: If one of them lies outside.
        """
        above = values >= self.low if self.closed_low else values > self.low
        check_all(above & (values < self.high), f"{name} must lie in {self}; {_extremes(values)}")

    def __str__(self) -> str:
        return f"{'[' if self.closed_low else '('}{self.low:g}, {self.high:g})"


@dataclass(frozen=True)
class Classes:
    """The classes 0 .. count - 1.

    Inside losses and beliefs a class is its indicator e_z, shape [..., C]; people write labels, shape [...].

    Args:
        count: How many; None for any number.

    Examples:
        >>> from stakes.losses import Classes
        >>> print(Classes(3), Classes(3) in Classes())
        3 classes True
    """

    count: int | None = None

    def __contains__(self, other: object) -> bool:
        """Whether every class of the domain `other` is one of these."""
        return isinstance(other, Classes) and self.count in (None, other.count)

    def __str__(self) -> str:
        return "classes" if self.count is None else f"{self.count} classes"


@dataclass(frozen=True)
class Vectors:
    """The vectors of `count` real numbers. Targets have shape [..., count].

    Args:
        count: How many numbers a vector has, 1 or more.

    Raises:
        StakesError: If `count` is not a whole number, 1 or more.

    Examples:
        >>> from stakes.losses import Vectors
        >>> print(Vectors(2), Vectors(3) in Vectors(2))
        vectors of 2 numbers False
    """

    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or self.count < 1:
            raise StakesError(f"count must be a whole number, 1 or more: the numbers of a vector; got {self.count!r}")

    def __contains__(self, other: object) -> bool:
        """Whether the domain `other` holds vectors of as many numbers."""
        return isinstance(other, Vectors) and other.count == self.count

    def check(self, name: str, values: Array) -> None:
        """Refuse values that are not [..., count].

        Args:
            name: What the values are, for the message.
            values: An array.

        Raises:
            StakesError: If the last axis has another length.
        """
        if values.ndim == 0 or values.shape[-1] != self.count:
            raise StakesError(f"{name} must be {self}, shape [..., {self.count}]; got {list(values.shape)}")

    def __str__(self) -> str:
        return f"vectors of {self.count} numbers"


Domain = Interval | Classes | Vectors


def target_axes(domain: Domain) -> int:
    """How many of the last axes of an array of targets belong to each target: 1 for indicators and vectors."""
    return 0 if isinstance(domain, Interval) else 1


REAL = Interval()
NONNEGATIVE = Interval(low=0.0, closed_low=True)
POSITIVE = Interval(low=0.0)


def indicators(classes: Classes, labels: Any, probabilities: Any) -> tuple[Array, Array]:
    """Labels [...] as indicators e_z [..., C] beside class probabilities [..., C], both checked."""
    labels, probabilities = asarrays(labels=labels, probabilities=probabilities)
    count = probabilities.shape[-1] if probabilities.ndim else 0
    if classes.count not in (None, count) or count == 0:
        raise StakesError(f"the prediction must end in one probability for each of the {classes}; got {count}")
    check_probabilities("the prediction", probabilities)
    return labels_to_indicators(labels, count), probabilities


def labels_to_indicators(labels: Array, count: int) -> Array:
    """Labels [...] (as floating numbers) to e_z [..., C]."""
    check_labels("the target", labels, count)
    return namespace(labels).astype(labels[..., None] == constant(range(count), labels), labels.dtype)


def check_labels(name: str, labels: Array, count: int | None) -> None:
    """Refuse labels that are not whole numbers from 0 to count - 1 (any number of them where count is None)."""
    xp = namespace(labels)
    whole = labels >= 0
    if not xp.isdtype(labels.dtype, "integral"):
        whole = whole & (labels == xp.floor(labels))
    check_all(
        whole if count is None else whole & (labels < count),
        f"{name} must be a position, a whole number from 0{'' if count is None else f' to {count - 1}'}; "
        f"{_extremes(labels)}",
    )


def check_probabilities(name: str, probabilities: Array) -> None:
    """Refuse rows [..., C] that are not finite, are negative or do not sum to one: within 1e-5, a network's rounding.

    In half precision within the spacing of numbers at one: each is off by half of that, relative, and so is their sum.
    """
    xp = namespace(probabilities)
    eps = float(xp.finfo(probabilities.dtype).eps)
    total = xp.sum(probabilities, axis=-1, dtype=xp.float64 if eps < 1e-10 else xp.float32)
    summed = abs(total - 1.0) <= max(1e-5, eps)
    if 0 not in probabilities.shape and bool(xp.all(summed & (xp.min(probabilities, axis=-1) >= 0))):
        return  # which what is not finite does not pass
    (probabilities,) = asarrays(**{name: probabilities})
    check_all(probabilities >= 0, f"{name} must hold probabilities, none negative; {_extremes(probabilities)}")
    advice = "Nothing is renormalised for you: divide by the sum if that is what you mean."
    if probabilities.ndim == 3 and bool(xp.all(abs(xp.sum(probabilities, axis=1) - 1.0) <= max(1e-5, eps))):
        advice = f"They do over the second axis, so classes and members are swapped: give np.swapaxes({name}, 1, 2)."
    check_all(
        summed, f"{name} must hold probabilities that sum to one over the last axis; {_extremes(total)}. {advice}"
    )


def _extremes(values: Array) -> str:
    xp = namespace(values)
    if 0 in values.shape:
        return "got none"
    return f"got values from {float(xp.min(values)):g} to {float(xp.max(values)):g}"
