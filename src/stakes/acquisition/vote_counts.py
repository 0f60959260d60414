"""How many members vote y at a candidate and z at a context: from packed words, or from a matrix product.

Only (C - 1)^2 counts are made for each pair, as the margins give the others. A product in float32 is exact: counts are
whole numbers below 2^24. Sizes: n candidates, M contexts, K members, C classes, W words of 64 members.
"""

from __future__ import annotations

from collections.abc import Iterator
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


@dataclass(frozen=True, eq=False)
class Indicated:
    """Votes at contexts as a matrix product takes them."""

    indicators: Array
    """[K, (C - 1) M]: 1 where a member votes for the class at the context"""
    margins: Array
    """[C, M]"""

    @staticmethod
    def of(votes: Array, classes: int) -> Indicated:
        """From class numbers [M, K]."""
        xp = namespace(votes)
        each = xp.concat([_indicator(votes, z) for z in range(classes)], axis=0)[: (classes - 1) * votes.shape[0], :]
        return Indicated(xp.permute_dims(each, (1, 0)), xp.permute_dims(margins(votes, classes), (1, 0)))

    def counts_by_label(self, votes: Array) -> Iterator[Array]:
        """For each class y in turn [n, C, M]: how many members vote y in `votes` [n, K] and z at the context."""
        xp, (classes, contexts) = namespace(votes), self.margins.shape
        left = self.margins[None, ...] + xp.zeros((votes.shape[0], 1, 1), dtype=xp.float32)  # of labels to come
        for y in range(classes - 1):
            here = _indicator(votes, y)  # [n, K]
            both = xp.reshape(xp.matmul(here, self.indicators), (votes.shape[0], classes - 1, contexts))
            rest = xp.sum(here, axis=1)[:, None, None] - xp.sum(both, axis=1, keepdims=True)
            counts = xp.concat([both, rest], axis=1)
            left = left - counts
            yield counts
        yield left


def margins(votes: Array, classes: int) -> Array:
    """[n, C]: how many members vote for each class."""
    xp = namespace(votes)
    return xp.stack([xp.sum(_indicator(votes, z), axis=1) for z in range(classes)], axis=1)


def _indicator(votes: Array, label: int) -> Array:
    """[n, K]: 1 where a member votes for the class."""
    return namespace(votes).astype(votes == label, namespace(votes).float32)
