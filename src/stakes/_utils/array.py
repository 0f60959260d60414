"""What the array standard lacks, each once, and the checks at the door.

No backend is named here or elsewhere: a function that computes asks its arrays for their namespace.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any, TypeAlias, TypeVar

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, is_torch_array, to_device
from numpy.polynomial import Chebyshev
from scipy.special import erfcx

from stakes.exceptions import StakesError

Array: TypeAlias = Any
"""An array of any library that follows the array API standard (NumPy, torch, ...)."""

Namespace: TypeAlias = Any

T = TypeVar("T")

SINGLE_NOTHING = 1e-30
"""A probability below this counts as 0: its inverse may leave the range of single precision."""
SINGLE_EMPTY = 1e-6
"""Of a mass: what is left of it in single precision is rounding."""
AGREED = 64 * float(np.finfo(float).eps)
"""By which members differ that agree: rounding of double precision."""
_ON_DEVICE = 2**24  # numbers of a block: 128 MiB, which takes longer to read than a kernel takes to start


_NUMPY = array_namespace(np.zeros(0))
_LIBRARIES: dict[type, Namespace] = {}


def namespace(*arrays: Array) -> Namespace:
    """The array library of `arrays` (those that are None or Python numbers have none)."""
    for array in arrays:  # it is asked hundreds of times in a call
        if type(array) is not np.ndarray:
            break
    else:
        return _NUMPY if arrays else array_namespace()
    kind = type(array)
    if kind in _LIBRARIES and all(type(each) is kind for each in arrays):
        return _LIBRARIES[kind]
    found = array_namespace(*(array for array in arrays if is_array_api_obj(array)))
    if is_torch_array(array):
        _LIBRARIES[kind] = found
    return found


def asarrays(**values: Any) -> tuple[Array, ...]:
    """`values` as finite floating arrays of one library, one dtype and one device.

    Arrays keep their library; lists and numbers join the arrays beside them, or become NumPy arrays. None stays None.
    NumPy arrays, too, join the array that is given as `like`. Gradients are left behind.
    """
    own = [value for value in values.values() if is_array_api_obj(value)] or [np.zeros(0)]
    if "like" in values and not is_numpy_array(values["like"]):
        own = [value for value in own if not is_numpy_array(value)]
    xp = _one_library(own, values)
    for name, value in values.items():
        if is_array_api_obj(value) and namespace(value).isdtype(value.dtype, "complex floating"):
            raise TypeError(f"{name} must hold real numbers; got {value.dtype}")
    floats = [array.dtype for array in own if xp.isdtype(array.dtype, "real floating")]
    dtype = xp.result_type(*floats) if floats else xp.float64
    place = device(own[0])
    return tuple(
        None if value is None else _check_finite(name, _array(name, value, xp, dtype, place))
        for name, value in values.items()
    )


def _one_library(arrays: list[Array], values: dict[str, Any]) -> Namespace:
    """That of all arrays; refused where they are of several."""
    kinds = " and ".join(sorted({type(array).__module__.split(".")[0] for array in arrays}))
    try:
        return array_namespace(*arrays)
    except TypeError as error:
        names = ", ".join(name for name in values if name != "like")
        raise TypeError(
            f"{names} must be arrays of one library; got arrays of {kinds}. Convert them first, such as by "
            "torch.asarray(array, device=...)."
        ) from error


def detached(array: Array) -> Array:
    """The array without a history for gradients, which would keep all that is computed from it."""
    return array.detach() if getattr(array, "requires_grad", False) else array


def _array(name: str, value: Any, xp: Namespace, dtype: Any, place: Any) -> Array:
    try:
        own = is_array_api_obj(value) and namespace(value) is xp
        return xp.asarray(detached(value) if own else np.array(value, dtype=float), dtype=dtype, device=place)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers; got {type(value).__name__} ({error})") from error


def _check_finite(name: str, array: Array) -> Array:
    """The array, refused where a value is NaN or infinite."""
    xp = namespace(array)
    bad = ~xp.isfinite(array)
    if count := int(xp.count_nonzero(bad)):
        raise StakesError(
            f"{name} must be finite; {count} of {math.prod(array.shape)} values are NaN or infinite. Impute or drop "
            "them."
        )
    return array


def check_shape(name: str, array: Array, shape: tuple[int | str, ...]) -> None:
    """Refuse an array whose shape is not `shape`; a letter there stands for any length."""
    wanted = "[" + ", ".join(str(length) for length in shape) + "]"
    if array is None:
        raise TypeError(f"{name} must be an array of shape {wanted}; got None")
    if array.ndim != len(shape) or any(
        isinstance(length, int) and length != actual for length, actual in zip(shape, array.shape, strict=True)
    ):
        raise StakesError(f"{name} must have shape {wanted}; got {list(array.shape)}.{_transposed(name, array, shape)}")


def _transposed(name: str, array: Array, shape: tuple[int | str, ...]) -> str:
    """The line that puts two axes that were swapped in order, where the sizes tell which they are."""
    if array.ndim != len(shape):
        return ""
    fits = []
    for one, other in combinations(range(len(shape)), 2):
        sizes = list(array.shape)
        sizes[one], sizes[other] = sizes[other], sizes[one]
        if all(wanted == size for wanted, size in zip(shape, sizes, strict=True) if isinstance(wanted, int)):
            fits.append((one, other))
    if len(fits) != 1:
        return ""
    x = name if name.isidentifier() else "x"
    line = f"{x}.T" if len(shape) == 2 else f"np.swapaxes({x}, {fits[0][0]}, {fits[0][1]})"
    return f" Its axes are swapped, by their sizes: give {line}."


def check_all(condition: Array, message: str) -> None:
    """Raise `message` unless `condition` holds everywhere."""
    if not bool(namespace(condition).all(condition)):
        raise StakesError(message)


def shares(name: str, weights: Array) -> Array:
    """Weights that are at least 0, checked, as shares of their sum."""
    xp = namespace(weights)
    check_all(weights >= 0, f"{name} must be at least 0")
    largest = xp.max(weights)
    check_all(largest > 0, f"{name} must not all be 0")
    weights = weights / largest  # so that no sum overflows
    return weights / xp.sum(weights)


def constant(values: Any, like: Array) -> Array:
    """`values` (host numbers) as an array beside `like`: same library, dtype and device."""
    return namespace(like).asarray(np.asarray(values), dtype=like.dtype, device=device(like))


def on_accelerator(array: Array) -> bool:
    """Whether `array` is in the memory of a device of its own, such as a GPU."""
    return getattr(device(array), "type", "cpu") != "cpu"


def on_host(array: Any) -> np.ndarray[Any, Any]:
    """An array, or a column of a table, as NumPy has it, wherever it was: an explicit copy where that is a device."""
    if hasattr(array, "to_numpy"):
        return np.asarray(array.to_numpy())
    if hasattr(array, "cpu"):
        array = array.detach().cpu()
        array = array.float() if "bfloat16" in str(array.dtype) else array  # which NumPy does not know
    try:
        return np.asarray(array)
    except RuntimeError:  # the array is on a device of its own, from where NumPy does not take it
        return np.asarray(to_device(array, namespace(array).__array_namespace_info__().default_device()))


def filled(shape: int | tuple[int, ...], value: float, like: Array) -> Array:
    """An array of `value` in double precision beside `like`."""
    xp = namespace(like)
    return xp.full(shape, value, dtype=xp.float64, device=device(like))


def double(array: Array) -> Array:
    """`array` in double precision: quadrature is done there whatever came in."""
    if type(array) is np.ndarray and array.dtype == np.float64:
        return array
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def single(array: Array) -> Array:
    """`array` in single precision at least: half precision is for storage."""
    xp = namespace(array)
    return array if xp.finfo(array.dtype).bits >= 32 else xp.astype(array, xp.float32)


def replaced(instance: T, **fields: Any) -> T:
    """A copy of a frozen `instance` with new `fields` that are trusted, not checked again."""
    new = copy.copy(instance)
    for name, value in fields.items():
        object.__setattr__(new, name, value)
    return new


def slices(length: int, block: int) -> Iterator[slice]:
    """Blocks that cover 0 .. length - 1; one empty block where there is nothing to cover."""
    return (slice(start, min(start + block, length)) for start in range(0, max(length, 1), block))


def at_once(like: Array, within_cache: int) -> int:
    """How many numbers a block may hold: what stays within a processor's cache, or enough to keep a GPU busy."""
    return _ON_DEVICE if on_accelerator(like) else within_cache


def ratio(numerator: Array, denominator: Array) -> Array:
    """`numerator / denominator`, and 0 where the denominator is 0."""
    xp = namespace(numerator, denominator)
    empty = denominator == 0
    if type(empty) is np.ndarray and not empty.any():
        return np.asarray(numerator / denominator)
    one = xp.ones_like(denominator)
    return xp.where(empty, xp.zeros_like(one), numerator / xp.where(empty, one, denominator))


def column(rows: Array, positions: Array) -> Array:
    """[...]: rows[..., position] for positions [..., 1], both broadcast."""
    xp = namespace(rows, positions)
    chosen = xp.astype(positions, rows.dtype) == constant(range(rows.shape[-1]), rows)
    return xp.sum(xp.where(chosen, rows, xp.zeros_like(rows)), axis=-1)


def log_of(values: Array) -> Array:
    """The logarithm, -inf at 0 (and below, which only rounding can be), without a warning."""
    xp = namespace(values)
    positive = values > 0
    if type(values) is np.ndarray and positive.all():
        return np.log(values)
    return xp.where(positive, xp.log(xp.where(positive, values, xp.ones_like(values))), -xp.inf * xp.ones_like(values))


def finite_or_zero(array: Array) -> Array:
    """The array, with 0 in place of what is infinite or no number."""
    xp = namespace(array)
    return xp.where(xp.isfinite(array), array, xp.zeros_like(array))


def log_sum(logs: Array, axis: int = -1) -> Array:
    """The log of the sum of exp(logs) along an axis, -inf standing for 0: no sum leaves the range of numbers."""
    xp = namespace(logs)
    top = xp.max(logs, axis=axis, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return log_of(xp.sum(xp.exp(logs - top), axis=axis)) + xp.squeeze(top, axis=axis)


_SMALL = 0.1
# Both series below are cut where the next term is under 1e-13 of the sum at |r| = _SMALL.
_EXCESS = [(-1) ** k / (k * (k - 1)) for k in range(2, 14)]
_SHORTFALL = [(-1) ** k / k for k in range(2, 16)]


def log_excess(r: Array) -> Array:
    """`(1 + r) log(1 + r) - r` for r >= -1, to full relative accuracy also near 0."""
    xp = namespace(r)
    positive = 1.0 + r > 0
    inside = xp.where(positive, r, xp.zeros_like(r))
    plain = xp.where(positive, (1.0 + inside) * xp.log1p(inside) - inside, -r)
    return xp.where(xp.abs(r) < _SMALL, _series(_EXCESS, r), plain)


def log_shortfall(r: Array) -> Array:
    """`r - log(1 + r)` for r > -1, to full relative accuracy also near 0."""
    xp = namespace(r)
    return xp.where(xp.abs(r) < _SMALL, _series(_SHORTFALL, r), r - xp.log1p(r))


def linex(d: Array) -> Array:
    """`exp(d) - d - 1`, to full relative accuracy also near 0."""
    xp = namespace(d)
    near = abs(d) < 0.5
    return xp.where(near, log_shortfall(xp.expm1(xp.where(near, d, xp.zeros_like(d)))), xp.exp(d) - d - 1.0)


def _series(coefficients: list[float], r: Array) -> Array:
    """`sum_i coefficients[i] r^(i + 2)` by Horner's rule, for small r (large ones are not used)."""
    xp = namespace(r)
    r = xp.where(xp.abs(r) < _SMALL, r, xp.zeros_like(r))
    total = xp.full_like(r, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = coefficient + r * total
    return r * r * total


def density(u: Array, boost: Array | float = 0.0) -> Array:
    """The standard normal density times exp(boost), which may be needed to keep it in range far out."""
    return namespace(u).exp(boost - 0.5 * u * u) / math.sqrt(2.0 * math.pi)


def log_normal(z: Array, mean: Array, sd: Array) -> Array:
    """[...]: the logarithm of the density of N(mean, sd^2) at z, for sd > 0."""
    u = (z - mean) / sd
    return -0.5 * u * u - namespace(u).log(math.sqrt(2.0 * math.pi) * sd)


def normal_tail(u: Array, boost: Array | float = 0.0) -> Array:
    """P(U > u) exp(boost) for U ~ N(0, 1), to full relative accuracy also far out."""
    xp = namespace(u)
    upper, zero = density(u, boost) * _mills(xp.abs(u)), xp.zeros_like(u)
    return xp.where(u < 0, xp.exp(xp.where(u < 0, boost + zero, zero)) - upper, upper)  # a far tail needs a large boost


def normal_between(low: Array, high: Array) -> Array:
    """P(low < U < high) for U ~ N(0, 1) and low <= high, relative to whichever tail both are in."""
    xp = namespace(low)
    flip = low + high < 0
    return normal_tail(xp.where(flip, -high, low)) - normal_tail(xp.where(flip, -low, high))


# The Mills ratio P(U > t) / density(t) for t >= 0 is smooth in (t - 4) / (t + 4), which maps t >= 0 to [-1, 1): 30
# Chebyshev coefficients leave 1e-16. Times (t + 1) it neither vanishes nor grows.
_MIDDLE = 4.0


def _scaled_mills(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    t = _MIDDLE * (1.0 + x) / np.maximum(1.0 - x, 1e-300)
    return np.asarray((t + 1.0) * math.sqrt(math.pi / 2.0) * erfcx(t / math.sqrt(2.0)))


_MILLS = [float(each) for each in Chebyshev.interpolate(_scaled_mills, 29).coef]


def _mills(t: Array) -> Array:
    """P(U > t) / density(t) for t >= 0, by Clenshaw's rule."""
    x = (t - _MIDDLE) / (t + _MIDDLE)
    ahead, further = namespace(t).zeros_like(t), namespace(t).zeros_like(t)
    for coefficient in reversed(_MILLS[1:]):
        ahead, further = coefficient + 2.0 * x * ahead - further, ahead
    return (_MILLS[0] + x * ahead - further) / (t + 1.0)
