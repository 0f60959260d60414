"""Random numbers: `random_state` is an int or a NumPy generator in every public function.

Sizes: n rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes._utils.tables import Host  # which takes SciPy

RandomState: TypeAlias = int | np.random.Generator | None
"""A whole number, a generator, or None (which is 0: the same call gives the same answer)."""

SUBSAMPLE, TIES, DRAWS = range(3)  # what a stream of random numbers is for: one seed, several independent streams


def as_seed(random_state: Any) -> int:
    """A seed for several independent streams.

    Args:
        random_state: A whole number, 0 or more, or a `numpy.random.Generator`, of which one number is drawn. None is 0:
            the same call gives the same answer.

    Returns:
        The seed.

    Raises:
        TypeError: If it is neither.
        StakesError: If it is negative.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(f"random_state must be a whole number or a numpy.random.Generator; got {random_state!r}")
    if random_state < 0:
        raise StakesError(f"random_state must be 0 or more; got {random_state!r}")
    return int(random_state)


def as_generator(random_state: Any) -> np.random.Generator:
    """The generator of an argument `random_state`: itself, or one that is seeded with it (None: with 0)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(as_seed(random_state))


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Random numbers for one purpose (`SUBSAMPLE`, `TIES`, `DRAWS`)."""
    return np.random.default_rng([seed, purpose])


def tie_breakers(seed: int, rows: Host) -> Host:
    """[n]: a number for each position, its own whichever others it comes with: by it the seed decides between equals.

    SplitMix64 of the position: a mixing of 64 bits, one to one, so that no two rows have the same.
    """
    key = generator(seed, TIES).integers(2**64, dtype=np.uint64)
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
