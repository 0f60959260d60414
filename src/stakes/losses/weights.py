"""Weights w(z) >= 0: which targets matter more. Each knows its logarithm, so that no weight over- or underflows.

Weights of numbers come first, then those of vectors [..., d], which give one number for each vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, runtime_checkable

from array_api_compat import device

from stakes._utils.array import Array, check_all, constant, log_of, namespace
from stakes.exceptions import StakesError
from stakes.losses.transforms import checked_rate


@runtime_checkable
class WeightFunction(Protocol):
    """How much a unit of divergence costs when the target is z.

    Examples:
        >>> from stakes import ExponentialWeight
        >>> from stakes.losses import WeightFunction
        >>> isinstance(ExponentialWeight(1.0), WeightFunction)
        True
    """

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Targets at which the weight jumps or kinks."""

    def __call__(self, z: Array) -> Array:
        """w(z).

        Args:
            z: Targets [...], indicators [..., C] for classes, or [..., d] for vectors.

        Returns:
            [...], at least 0.
        """

    def logarithm(self, z: Array) -> Array:
        """Log w(z), and -inf where the weight is 0.

        Args:
            z: Targets, as `__call__` takes them.

        Returns:
            [...].
        """


@dataclass(frozen=True)
class ExponentialWeight:
    """w(z) = exp(rate z): errors on high targets cost more (rate > 0), or on low ones (rate < 0).

    Args:
        rate: Any finite number.

    Raises:
        StakesError: If `rate` is not a finite number.

    Examples:
        >>> import numpy as np
        >>> from stakes import ExponentialWeight
        >>> weight = ExponentialWeight(np.log(2.0))  # twice as much for each unit
        >>> print(weight(np.array([0.0, 1.0, 3.0])).round(6))
        [1. 2. 8.]
    """

    rate: float
    breakpoints: tuple[float, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checked_rate("rate", self.rate))

    def __call__(self, z: Array) -> Array:
        """[...]: exp(rate z)."""
        return namespace(z).exp(self.rate * z)

    def logarithm(self, z: Array) -> Array:
        """[...]: rate z."""
        return self.rate * z


@dataclass(frozen=True)
class InterpolatedWeight:
    """Importance as a few points: linear between them, constant before the first and beyond the last.

    Args:
        values: Targets, increasing.
        weights: The weight at each of them, at least 0 and not all 0.

    Raises:
        StakesError: If the two are of different length, the values not increasing, or the weights negative or all 0.

    Examples:
        >>> import numpy as np
        >>> from stakes import InterpolatedWeight
        >>> weight = InterpolatedWeight(values=[0.0, 10.0], weights=[1.0, 3.0])
        >>> print(weight(np.array([-5.0, 5.0, 20.0])))
        [1. 2. 3.]
    """

    values: Sequence[float]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        values, weights = tuple(float(v) for v in self.values), tuple(float(w) for w in self.weights)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", weights)
        if len(values) != len(weights) or not values:
            raise StakesError(
                f"values and weights must be of one length, 1 or more; got {len(values)} and {len(weights)}"
            )
        if not all(map(math.isfinite, values)) or any(left >= right for left, right in pairwise(values)):
            raise StakesError(
                f"values must be finite and increasing; got {values}. Sort the points, keep each value once."
            )
        if not all(map(math.isfinite, weights)) or min(weights) < 0 or max(weights) == 0:
            raise StakesError(f"weights must be finite, at least 0 and not all 0; got {weights}")

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The values: the weight kinks there."""
        return tuple(self.values)

    def __call__(self, z: Array) -> Array:
        """The interpolated weight."""
        xp = namespace(z)
        values, weights = constant(self.values, z), constant(self.weights, z)
        if len(self.values) == 1:
            return xp.zeros_like(z) + weights[0]
        flat = xp.reshape(z, (-1,))
        right = xp.clip(xp.searchsorted(values, flat), 1, len(self.values) - 1)
        low, high = xp.take(values, right - 1), xp.take(values, right)
        apart = xp.where(high > low, high - low, xp.ones_like(low))  # in single precision two values may be one
        share = xp.where(high > low, xp.clip((flat - low) / apart, 0.0, 1.0), xp.astype(flat > low, z.dtype))
        flat = (1.0 - share) * xp.take(weights, right - 1) + share * xp.take(weights, right)
        return xp.reshape(flat, z.shape)

    def logarithm(self, z: Array) -> Array:
        """The logarithm of the interpolated weight."""
        return log_of(self(z))


@dataclass(frozen=True)
class Weight:
    """A weight function of your own, with its logarithm and its breakpoints where they are known.

    For vector targets both functions take [..., d] to [...], and there are no breakpoints.

    Args:
        function: w, a function of targets [...] that is at least 0.
        log: Its logarithm; give it where w would over- or underflow.
        breakpoints: Every target at which w jumps or kinks: integration splits there.

    Raises:
        TypeError: If `function` is not a function.
        StakesError: If a breakpoint is not finite.

    Examples:
        >>> import numpy as np
        >>> from stakes import SquaredError, Weight
        >>> weight = Weight(lambda z: np.where(z > 1.0, 10.0, 1.0), breakpoints=(1.0,))
        >>> print(SquaredError(weight)(3.0, 1.0), SquaredError(weight)(0.0, 1.0))
        40.0 1.0
    """

    function: Callable[[Array], Array]
    log: Callable[[Array], Array] | None = None
    breakpoints: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise TypeError(f"a weight must be a function of the target, or None; got {self.function!r}")
        object.__setattr__(self, "breakpoints", tuple(sorted(float(point) for point in self.breakpoints)))
        if not all(map(math.isfinite, self.breakpoints)):
            raise StakesError(f"breakpoints must be finite targets; got {self.breakpoints}")

    def __call__(self, z: Array) -> Array:
        """The function, checked to be at least 0."""
        xp = namespace(z)
        weight = xp.astype(xp.asarray(self.function(z), device=device(z)), z.dtype) + xp.zeros_like(z)
        check_all(weight >= 0, "a weight must be at least 0 for every target; this one gave a negative or NaN value")
        return weight

    def logarithm(self, z: Array) -> Array:
        """The logarithm as given, or that of the function."""
        return log_of(self(z)) if self.log is None else self.log(z)


@dataclass(frozen=True)
class ClassWeights:
    """w(z) = weights[z] for classes, which come as indicators [..., C].

    Args:
        weights: A number for each class, at least 0 and not all 0.

    Raises:
        StakesError: If they are negative, not finite or all 0.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import ClassWeights
        >>> print(ClassWeights([1.0, 5.0])(np.eye(2)))  # of class 0 and of class 1
        [1. 5.]
    """

    weights: Sequence[float]
    breakpoints: tuple[float, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        weights = tuple(float(weight) for weight in self.weights)
        object.__setattr__(self, "weights", weights)
        if not weights or not all(map(math.isfinite, weights)) or min(weights) < 0 or max(weights) == 0:
            raise StakesError(f"class weights must be finite, at least 0 and not all 0, one per class; got {weights}")

    def __call__(self, z: Array) -> Array:
        """The class's weight."""
        return namespace(z).matmul(z, constant(self.weights, z))

    def logarithm(self, z: Array) -> Array:
        """The logarithm of the class's weight."""
        return log_of(self(z))


_OWN = (ExponentialWeight, InterpolatedWeight, Weight, ClassWeights)
WeightLike = WeightFunction | Callable[[Array], Array] | None


def relative_weights(loss: object) -> tuple[tuple[float, ...] | None, float]:
    """[C]: class weights over the largest, so that they may have any scale, and the log of that; None without any."""
    weights = getattr(loss, "class_weights", None)
    if weights is None:
        return None, 0.0
    return tuple(weight / max(weights) for weight in weights), math.log(max(weights))


def as_weight(weight: WeightLike) -> WeightFunction | None:
    """A weight as it is; a plain positive function wrapped; None stays None."""
    if weight is None or isinstance(weight, _OWN):  # asking for the protocol takes as long as a small integral
        return weight
    return weight if isinstance(weight, WeightFunction) and not isinstance(weight, type) else Weight(weight)


@dataclass(frozen=True)
class ExponentialLinearWeight:
    """w(z) = exp(rates . z) for vectors: errors cost more the further z lies in the direction of `rates`.

    Args:
        rates: A number for each coordinate of the target.

    Raises:
        StakesError: If they are not finite numbers.

    Examples:
        >>> import numpy as np
        >>> from stakes import ExponentialLinearWeight
        >>> weight = ExponentialLinearWeight([np.log(2.0), 0.0])  # the first coordinate alone matters
        >>> print(weight(np.array([[0.0, 7.0], [3.0, 7.0]])).round(6))
        [1. 8.]
    """

    rates: Sequence[float]
    breakpoints: tuple[float, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        rates = tuple(float(rate) for rate in self.rates)
        object.__setattr__(self, "rates", rates)
        if not rates or not all(map(math.isfinite, rates)):
            raise StakesError(f"rates must be finite numbers, one for each coordinate of the target; got {rates}")
        for rate in rates:
            checked_rate("each of rates", rate)

    def __call__(self, z: Array) -> Array:
        """[...]: exp(rates . z)."""
        return namespace(z).exp(self.logarithm(z))

    def logarithm(self, z: Array) -> Array:
        """[...]: rates . z."""
        return namespace(z).matmul(z, constant(self.rates, z))


@dataclass(frozen=True)
class VectorWeight:
    """A weight function of your own for vectors: `function`, and its logarithm if known, take [..., d] to [...]."""

    function: Callable[[Array], Array]
    log: Callable[[Array], Array] | None = None
    breakpoints: tuple[float, ...] = field(default=(), init=False, repr=False)

    def __call__(self, z: Array) -> Array:
        """The function, checked to be at least 0."""
        weight = _one_each(self.function(z), z)
        check_all(weight >= 0, "a weight must be at least 0 for every target; this one gave a negative or NaN value")
        return weight

    def logarithm(self, z: Array) -> Array:
        """The logarithm as given, or that of the function."""
        return log_of(self(z)) if self.log is None else _one_each(self.log(z), z)


def _one_each(values: Array, z: Array) -> Array:
    """[...]: what a function gave for vectors z [..., d], refused unless it is one number for each."""
    xp = namespace(z)
    values = xp.astype(xp.asarray(values, device=device(z)), z.dtype)
    if values.ndim and values.shape != z.shape[:-1]:
        raise StakesError(
            f"a weight of vectors takes targets [..., {z.shape[-1]}] and gives one number for each; for targets of "
            f"shape {list(z.shape)} this one gave {list(values.shape)}, wanted {list(z.shape[:-1])}"
        )
    return values + xp.zeros_like(z[..., 0])


def as_vector_weight(weight: WeightFunction | None, count: int) -> WeightFunction | None:
    """A weight for vectors of `count` numbers; one that is made for numbers or classes is refused."""
    if isinstance(weight, ExponentialLinearWeight) and len(weight.rates) != count:
        raise StakesError(f"rates must hold {count} numbers, one for each coordinate of the target; got {weight.rates}")
    of_numbers = isinstance(weight, ExponentialWeight | InterpolatedWeight | ClassWeights)
    if weight is not None and (of_numbers or weight.breakpoints):
        raise TypeError(
            f"{weight!r} is a weight of single numbers or classes, and targets are vectors of {count}. Use "
            "ExponentialLinearWeight(rates), or a function that takes [..., d] to [...], without breakpoints."
        )
    return VectorWeight(weight.function, weight.log) if isinstance(weight, Weight) else weight
