"""Covariances by scikit-learn's kernels, in place where the kernel is known: same numbers, fewer passes over memory.

Sizes: B rows of any block, p features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, Product, Sum, WhiteKernel

from stakes._utils.array import slices

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
_Value: TypeAlias = Numbers | float
_Evaluate: TypeAlias = Callable[[Any, Any, Any], _Value]

_DIAGONAL = 64  # rows whose kernel matrix is made for the sake of its diagonal
_ROUNDING = 1e-12  # of k(x, x): what two ways to compute it may differ by


def cross_covariance(kernel: Any, rows: Any, others: Any) -> Numbers:
    """[B, B']: kernel(rows, others), which leaves out all that is a label's own."""
    value = _value(kernel, rows, others)
    return value if isinstance(value, np.ndarray) else np.full((len(rows), len(others)), value)


def signal_and_noise(kernel: Any, rows: Any) -> tuple[Numbers, Numbers]:
    """[B], [B]: k(x, x) as the covariance of two evaluations at the same x, and what they do not share.

    Called with two sets of rows, a kernel of scikit-learn leaves out all that is a label's own, wherever it stands in
    sums, products and powers: c (k + white) has the noise c white(x), (k + white)^2 has 2 k white + white^2.
    Less than 1e-12 of k(x, x) is taken for rounding.
    """
    shared, total = _diagonal(kernel, rows) + np.zeros(len(rows)), kernel.diag(rows)
    own = total - shared
    return shared, np.where(own > _ROUNDING * abs(total), own, 0.0)


def _value(kernel: Any, rows: Any, others: Any) -> _Value:
    """A fresh array, or a number where that is all there is."""
    evaluate = _KNOWN.get(type(kernel))
    return np.array(kernel(rows, others), dtype=np.float64) if evaluate is None else evaluate(kernel, rows, others)


def _sum(kernel: Sum, rows: Any, others: Any) -> _Value:
    first, second = _value(kernel.k1, rows, others), _value(kernel.k2, rows, others)
    if not isinstance(first, np.ndarray):
        first, second = second, first
    if isinstance(second, np.ndarray) or second != 0.0:  # as that of noise is
        first += second
    return first


def _product(kernel: Product, rows: Any, others: Any) -> _Value:
    first, second = _value(kernel.k1, rows, others), _value(kernel.k2, rows, others)
    if not isinstance(first, np.ndarray):
        first, second = second, first
    if isinstance(second, np.ndarray) or second != 1.0:
        first *= second
    return first


def _linear(kernel: DotProduct, rows: Any, others: Any) -> Numbers:
    value = np.asarray(rows @ others.T)
    if kernel.sigma_0 != 0.0:
        value += kernel.sigma_0**2
    return value


def _bell(kernel: RBF, rows: Any, others: Any) -> Numbers:
    value = cdist(rows / kernel.length_scale, others / kernel.length_scale, "sqeuclidean")
    value *= -0.5
    return np.asarray(np.exp(value, out=value))


def _matern(kernel: Matern, rows: Any, others: Any) -> Numbers:
    if kernel.nu not in _ROOTS:
        return np.asarray(kernel(rows, others))
    distance: Numbers = cdist(rows / kernel.length_scale, others / kernel.length_scale)
    distance *= _ROOTS[kernel.nu]
    decay = np.negative(distance)
    np.exp(decay, out=decay)
    if kernel.nu == 2.5:
        decay *= 1.0 + distance + distance**2 / 3.0
    elif kernel.nu == 1.5:
        distance += 1.0
        decay *= distance
    return np.asarray(decay)


_ROOTS = {0.5: 1.0, 1.5: math.sqrt(3.0), 2.5: math.sqrt(5.0)}  # sqrt(2 nu)
_KNOWN: dict[type, _Evaluate] = {
    ConstantKernel: lambda kernel, rows, others: float(kernel.constant_value),
    WhiteKernel: lambda kernel, rows, others: 0.0,
    Sum: _sum,
    Product: _product,
    DotProduct: _linear,
    RBF: _bell,
    Matern: _matern,
}


def _diagonal(kernel: Any, rows: Any) -> _Value:
    """[B], or a number: k(x, x) of two evaluations at the same x."""
    if type(kernel) is Sum:
        return _diagonal(kernel.k1, rows) + _diagonal(kernel.k2, rows)
    if type(kernel) is Product:
        return _diagonal(kernel.k1, rows) * _diagonal(kernel.k2, rows)
    if type(kernel) is WhiteKernel:
        return 0.0
    if type(kernel) in _KNOWN:  # no noise of its own
        return np.asarray(kernel.diag(rows))
    parts = (rows[part] for part in slices(len(rows), _DIAGONAL))
    return np.concatenate([np.diagonal(kernel(part, part)) for part in parts])
