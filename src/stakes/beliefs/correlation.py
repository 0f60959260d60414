"""Whether covariances can be what they are said to be: no correlation is beyond 1.

Sizes: N candidates, n of a block, M contexts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes._array import Array, at_once, namespace, slices
from stakes._jit import has_jit, loop

_PAIRS = 2**17  # of a block: 1 MiB, within the cache


def count_excess(covariance: Array, sd: Array, target_sd: Array) -> int:
    """How many covariances [N, M] are beyond the product of standard deviations [N] and [M]."""
    if has_jit() and isinstance(covariance, np.ndarray):
        return int(_count(covariance, sd, target_sd))
    xp, count = namespace(covariance), 0
    for part in slices(covariance.shape[0], max(1, at_once(covariance, _PAIRS) // covariance.shape[1])):
        count += int(xp.count_nonzero(xp.abs(covariance[part, :]) > sd[part, None] * target_sd))
    return count


@loop
def _count(covariance: Any, sd: Any, target_sd: Any) -> int:
    count = 0
    for n in range(covariance.shape[0]):
        row, own = covariance[n], sd[n]
        for m in range(covariance.shape[1]):
            count += abs(row[m]) > own * target_sd[m]
    return count
