"""Weights w(z) of vector targets [..., d]: one number for each vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from array_api_compat import device

from stakes._array import Array, check_all, constant, log_of, namespace
from stakes.losses.weights import ClassWeights, ExponentialWeight, InterpolatedWeight, Weight, WeightFunction


@dataclass(frozen=True)
class ExponentialLinearWeight:
    """w(z) = exp(rates . z): errors cost more the further z lies in the direction of `rates`."""

    rates: Sequence[float]
    breakpoints: tuple[float, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        rates = tuple(float(rate) for rate in self.rates)
        object.__setattr__(self, "rates", rates)
        if not rates or not all(map(math.isfinite, rates)):
            raise ValueError(f"rates must be finite numbers, one for each coordinate of the target; got {rates}")

    def __call__(self, z: Array) -> Array:
        """Exp(rates . z)."""
        return namespace(z).exp(self.logarithm(z))

    def logarithm(self, z: Array) -> Array:
        """Rates . z."""
        return namespace(z).matmul(z, constant(self.rates, z))


@dataclass(frozen=True)
class VectorWeight:
    """Anyone's own w of vectors: `function`, and its logarithm if known, take targets [..., d] to [...]."""

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
        raise ValueError(
            f"a weight of vectors takes targets [..., {z.shape[-1]}] and gives one number for each; for targets of "
            f"shape {list(z.shape)} this one gave {list(values.shape)}, wanted {list(z.shape[:-1])}"
        )
    return values + xp.zeros_like(z[..., 0])


def as_vector_weight(weight: WeightFunction | None, count: int) -> WeightFunction | None:
    """A weight for vectors of `count` numbers; one that is made for numbers or classes is refused."""
    if isinstance(weight, ExponentialLinearWeight) and len(weight.rates) != count:
        raise ValueError(f"rates must hold {count} numbers, one for each coordinate of the target; got {weight.rates}")
    of_numbers = isinstance(weight, ExponentialWeight | InterpolatedWeight | ClassWeights)
    if weight is not None and (of_numbers or weight.breakpoints):
        raise TypeError(
            f"{weight!r} is a weight of single numbers or classes, and targets are vectors of {count}. Use "
            "ExponentialLinearWeight(rates), or a function that takes [..., d] to [...], without breakpoints."
        )
    return VectorWeight(weight.function, weight.log) if isinstance(weight, Weight) else weight
