"""Log loss from the covariances of members, cell by cell: loops that are compiled where numba is installed.

In float32, contexts along the last axis, so that the machine takes many at a time.
Sizes: n candidates, M contexts, K members, C classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes._jit import loop

_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(1e-30)
NOTHING = 1e-300
"""A probability whose inverse leaves the range of numbers: of no account."""
EMPTY = np.float32(1e-6)
"""Of its mass: a label whose weighted mass has all but gone adds nothing."""
_SMALL = np.float32(0.15)  # below, (1 + q) log(1 + q) - q is its series
_SERIES = tuple(np.float32(sign / (k * (k - 1))) for sign, k in zip((1, -1) * 4, range(2, 10), strict=True))
_SQUARE = _SMALL * _SMALL


@loop
def centre(probabilities: Any, weights: Any, means: Any, centred: Any) -> None:
    """Fill `means` [n, C] with sum_k q_k p_k and `centred` [n, C, K] with p_k / mean - 1, 0 where that is nothing."""
    for n in range(probabilities.shape[0]):
        means[n] = 0.0
        for k in range(probabilities.shape[1]):
            for c in range(probabilities.shape[2]):
                means[n, c] += weights[k] * probabilities[n, k, c]
        for c in range(probabilities.shape[2]):
            scale = 1.0 / means[n, c] if means[n, c] > NOTHING else 0.0
            for k in range(probabilities.shape[1]):
                centred[n, c, k] = (probabilities[n, k, c] - means[n, c]) * scale


@loop
def ratios(r: Any, shares: Any, q: Any, x: Any, mean: Any) -> None:
    """Of r = J / (p_y p_z) - 1 [n C, C, M]: `mean` rbar [n C, M], q = (r - rbar) / (1 + rbar), and x = 1 + q.

    rbar is the mean of r over z with `shares` [C, M].
    """
    for i in range(r.shape[0]):
        mean[i] = _ZERO
        for z in range(r.shape[1]):
            for m in range(r.shape[2]):
                mean[i, m] += shares[z, m] * r[i, z, m]
        for z in range(r.shape[1]):
            for m in range(r.shape[2]):
                mass = _ONE + mean[i, m]
                near = _ONE / mass if mass > EMPTY else _ZERO
                q[i, z, m] = (r[i, z, m] - mean[i, m]) * near
                x[i, z, m] = max(_ONE + q[i, z, m], _LEAST)


@loop
def excesses(q: Any, logs: Any, shares: Any, mean: Any, means: Any, out: Any) -> None:
    """Add to `out` [n, M] sum_y p_y (1 + rbar) sum_z share (x log x - q), for `logs` of x = 1 + q.

    By a series where q is small: there the two terms cancel.
    """
    a, b, c, d, e, f, g, h = _SERIES
    total = np.empty(q.shape[2], np.float32)
    for i in range(q.shape[0]):
        total[:] = _ZERO
        for z in range(q.shape[1]):
            for m in range(q.shape[2]):
                v = q[i, z, m]
                excess = (_ONE + v) * logs[i, z, m] - v
                if v * v < _SQUARE:
                    excess = v * v * (a + v * (b + v * (c + v * (d + v * (e + v * (f + v * (g + v * h)))))))
                total[m] += shares[z, m] * excess
        n, y = divmod(i, q.shape[1])
        for m in range(q.shape[2]):
            out[n, m] += means[n, y] * max(_ONE + mean[i, m], _ZERO) * total[m]
