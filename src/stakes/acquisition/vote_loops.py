"""Counts of votes from packed words, and what log loss makes of them: loops that are compiled where numba is installed.

Bit k of a word says whether member k votes for the class. Counts are made for the first C - 1 classes of either side;
the rest follows from the margins. Sizes: n candidates, M contexts, K members, C classes, W words of 64 members.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes._jit import loop

_ODD, _PAIRS, _NIBBLES, _BYTES = (
    np.uint64(mask) for mask in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)
)
_ONE, _TWO, _FOUR, _TOP = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@loop
def bits(word: Any) -> Any:
    """How many bits are set; compilers know this idiom and write the machine's own instruction."""
    word = word - ((word >> _ONE) & _ODD)
    word = (word & _PAIRS) + ((word >> _TWO) & _PAIRS)
    word = (word + (word >> _FOUR)) & _NIBBLES
    return (word * _BYTES) >> _TOP


@loop
def pack(votes: Any, words: Any, margins: Any) -> None:
    """Fill `words` [n, C - 1, W], given as zeros, and `margins` [n, C], zeros too, from class numbers [n, K]."""
    for n in range(votes.shape[0]):
        for k in range(votes.shape[1]):
            vote = votes[n, k]
            margins[n, vote] += 1
            if vote < words.shape[1]:
                words[n, vote, k >> 6] |= _ONE << np.uint64(k & 63)


@loop
def count(words: Any, others: Any, rows: Any, columns: Any, n: int, m: int, table: Any) -> None:
    """Fill `table` [C, C] with how many members vote y at candidate n and z at context m.

    `words` [n, C - 1, W] and `rows` [n, C] are votes and margins of candidates, `others` and `columns` of contexts.
    """
    last = words.shape[1]
    for z in range(last + 1):
        table[last, z] = columns[m, z]
    for y in range(last):
        rest = rows[n, y]
        for z in range(last):
            both = np.uint64(0)
            for w in range(words.shape[2]):
                both += bits(words[n, y, w] & others[m, z, w])
            votes = np.int64(both)
            table[y, z] = votes
            table[last, z] -= votes
            rest -= votes
        table[y, last] = rest
        table[last, last] -= rest


@loop
def moments(words: Any, others: Any, rows: Any, columns: Any, statistics: Any, split: Any) -> None:
    """Fill `split` [n, M, C, D] with sum_z count[y, z] S(z), for `statistics` S [C, D]."""
    classes, size = statistics.shape
    table = np.empty((classes, classes), np.int64)
    for n in range(words.shape[0]):
        for m in range(others.shape[0]):
            count(words, others, rows, columns, n, m, table)
            for y in range(classes):
                for d in range(size):
                    total = 0.0
                    for z in range(classes):
                        total += table[y, z] * statistics[z, d]
                    split[n, m, y, d] = total


@loop
def entropies(words: Any, others: Any, rows: Any, columns: Any, weights: Any, table: Any, out: Any, mass: Any) -> None:
    """Fill `out` [n, M] with sum_yz w_z c log c and `mass` [n, M, C] with sum_z w_z c, c the counts of y and z.

    `table` [K + 1] holds k log k. Counts are used as they come: to write them down first costs a third more time.
    """
    last = words.shape[1]
    left = np.empty(last + 1, np.int64)  # of the context's votes, for the candidate's last class
    for n in range(words.shape[0]):
        for m in range(others.shape[0]):
            left[:] = columns[m]
            total = 0.0
            for y in range(last):
                rest, weight = rows[n, y], 0.0
                for z in range(last):
                    both = np.uint64(0)
                    for w in range(words.shape[2]):
                        both += bits(words[n, y, w] & others[m, z, w])
                    votes = np.int64(both)
                    rest -= votes
                    left[z] -= votes
                    total += weights[z] * table[votes]
                    weight += weights[z] * votes
                left[last] -= rest
                total += weights[last] * table[rest]
                mass[n, m, y] = weight + weights[last] * rest
            weight = 0.0
            for z in range(last + 1):
                total += weights[z] * table[left[z]]
                weight += weights[z] * left[z]
            mass[n, m, last] = weight
            out[n, m] = total
