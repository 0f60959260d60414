"""Random numbers of one seed, for several purposes.

Sizes: n rows.
"""

from __future__ import annotations

import numpy as np

from stakes._utils.tables import Host
from stakes.exceptions import StakesError

SUBSAMPLE, LUCK, DRAWS = range(3)  # what a stream of random numbers is for: one seed, several independent streams


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Random numbers for one purpose."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise StakesError(f"seed must be a whole number, 0 or more; got {seed!r}")
    return np.random.default_rng([seed, purpose])


def luck(seed: int, rows: Host) -> Host:
    """[n]: a number for each position, its own whichever others it comes with: by it the seed decides between equals.

    SplitMix64 of the position: a mixing of 64 bits, one to one, so that no two rows have the same.
    """
    key = generator(seed, LUCK).integers(2**64, dtype=np.uint64)
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
