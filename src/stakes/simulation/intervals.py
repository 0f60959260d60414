"""How far numbers of a few runs can be trusted. Sizes: R runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from stakes.models.tables import Host

LEVEL = 0.95
_FEW = 6  # the fewest values that can tell anything if all they show is a sign: 2 / 2^6 < 5%
_SAME = 1e-9  # relative: what rounding may make of equal values


@dataclass(frozen=True)
class Estimate:
    """A number and its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def tells(self) -> bool:
        """Whether 0 is outside the interval."""
        return self.low > 0 or self.high < 0


def mean_of(values: Host) -> Estimate:
    """The mean of R independent values with Student's t interval, mean -+ t_{R-1} sd / sqrt(R).

    Infinite values have no mean. One value tells no spread, nor do a few that are all the same, as losses that count
    errors on few rows may well be. The interval then has no ends.
    """
    values = np.asarray(values, dtype=float)
    if not np.isfinite(values).all():
        return Estimate(math.nan, -math.inf, math.inf)
    value, count = float(values.mean()), len(values)
    if count == 1 or (count < _FEW and np.ptp(values) <= _SAME * np.abs(values).max()):
        return Estimate(value, -math.inf, math.inf)
    half = float(stats.t.ppf(0.5 + LEVEL / 2, count - 1) * values.std(ddof=1) / math.sqrt(count))
    return Estimate(value, value - half, value + half)


def median_of(values: Host) -> Estimate:
    """The median of R values that are at least 0 and may be infinite, with its interval by order statistics.

    From the k-th smallest to the k-th largest, k the most for which Binomial(R, 1/2) is below k with probability under
    2.5%; fewer than six values bound nothing.
    """
    values = np.sort(np.asarray(values, dtype=float))
    rank = int(stats.binom.ppf(0.5 - LEVEL / 2, len(values), 0.5))
    low, high = (values[rank - 1], values[-rank]) if rank else (0.0, math.inf)
    return Estimate(float(np.median(values)), float(low), float(high))
