"""Chebyshev series on [-1, 1], for curves that are tabulated once and looked up for every candidate.

Sizes: R nodes, M contexts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes._array import Array, constant, namespace


def points(count: int) -> np.ndarray[Any, Any]:
    """The nodes, from 1 down to -1."""
    return np.asarray(np.cos(np.pi * (np.arange(count) + 0.5) / count))


def series(values: Array, size: int) -> Array:
    """[size, M]: the coefficients of values [R, M] at the nodes, then zeros."""
    count = values.shape[0]
    angles = np.pi * (np.arange(count) + 0.5) / count
    transform = 2.0 / count * np.cos(np.outer(np.arange(size), angles)) * (np.arange(size) < count)[:, None]
    transform[0] /= 2.0
    return namespace(values).matmul(constant(transform, values), values)
