"""How many members vote y at a candidate and z at a context: from packed words, or from a matrix product.

Only (C - 1)^2 counts are made for each pair, as the margins give the others. A product in float32 is exact: counts are
whole numbers below 2^24. Sizes: n candidates, M contexts, K members, C classes, W words of 64 members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._array import Array, namespace
from stakes.acquisition import vote_loops

MOST_MEMBERS = 2**24
"""Beyond, float32 does not tell whole numbers apart."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Votes as bits: bit k of a word says whether member k votes for the class."""

    words: Any
    """[n, C - 1, W]"""
    margins: Any
    """[n, C]"""

    @staticmethod
    def of(votes: Array, classes: int) -> Packed:
        """From class numbers [n, K]."""
        words = np.zeros((len(votes), classes - 1, -(-votes.shape[1] // 64)), dtype=np.uint64)
        counts = np.zeros((len(votes), classes), dtype=np.int64)
        vote_loops.pack(votes, words, counts)
        return Packed(words, counts)


def joint_counts(votes: Array, others: Array, classes: int) -> Array:
    """[n, M, C, C]: how many members vote y in `votes` [n, K] and z in `others` [M, K]."""
    xp = namespace(votes)
    here, there = (_indicators(each, classes - 1) for each in (votes, others))  # [., C - 1, K]
    both = xp.permute_dims(xp.tensordot(here, there, axes=([2], [2])), (0, 2, 1, 3))  # [n, M, C - 1, C - 1]
    rows = margins(votes, classes)[:, None, :-1, None] - xp.sum(both, axis=3, keepdims=True)  # [n, M, C - 1, 1]
    upper = xp.concat([both, rows], axis=3)  # [n, M, C - 1, C]
    columns = margins(others, classes)[None, :, None, :] - xp.sum(upper, axis=2, keepdims=True)  # [n, M, 1, C]
    return xp.concat([upper, columns], axis=2)


def margins(votes: Array, classes: int) -> Array:
    """[n, C]: how many members vote for each class."""
    return namespace(votes).sum(_indicators(votes, classes), axis=2)


def _indicators(votes: Array, classes: int) -> Array:
    """[n, classes, K]: 1 where a member votes for the class."""
    xp = namespace(votes)
    numbers = xp.astype(xp.arange(classes), votes.dtype)
    return xp.astype(votes[:, None, :] == numbers[:, None], xp.float32)
