"""The best rows, and how many are as good, from scores that come in chunks and are not kept.

Sizes: n rows of a chunk, k rows that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stakes._utils.arguments import tie_breakers
from stakes._utils.tables import Host

_TIE = 1e-9  # relative: scores nearer than this are equal
_WAITING = 2**16  # rows that are sorted in together


class TopK:
    """The best `k` of all rows that were added, in memory that does not grow with their number.

    Each distinct score near the top is kept with the number of rows that have it, and with those of them that the seed
    puts first.

    Args:
        k: How many rows are wanted.
        seed: It decides between rows whose scores are equal, to within 1e-9; None: rows whose scores are exactly equal
            stay in the order of their positions, and scores need not be logarithms.

    Examples:
        >>> best = TopK(2, seed=0)
        >>> best.add(0, np.log([1.0, 4.0, 2.0]))
        >>> best.add(3, np.log([3.0, 0.5]))
        >>> [row for row, log_score, as_good in best.ordered()][:2]
        [1, 3]
    """

    def __init__(self, k: int, seed: int | None) -> None:
        self._k, self._seed, self._worst = k, seed, -np.inf
        self._tie = 0.0 if seed is None else _TIE
        self._logs, self._keys, self._rows = np.empty(0), np.empty(0, np.uint64), np.empty(0, np.intp)
        self._values, self._counts = np.empty(0), np.empty(0, np.intp)  # falling; how many rows have each
        self._waiting: list[tuple[Host, Host]] = []

    def add(self, rows: int | Host, logs: Host) -> None:
        """Rows at positions [n], or from a position on, with the logs of their scores [n]."""
        near = np.flatnonzero(logs >= self._worst)
        self._waiting.append((rows + near if isinstance(rows, int) else rows[near], logs[near]))
        if sum(len(rows) for rows, _ in self._waiting) > max(_WAITING, len(self._rows)):
            self._sort_in()

    def merge(self, other: TopK) -> None:
        """Add the rows that another has seen, none of which this one has; the order of merging makes no difference.

        Args:
            other: Of the same `k` and seed.
        """
        self._sort_in()
        other._sort_in()
        self._count(other._values, other._counts)
        self._logs, self._rows = np.append(self._logs, other._logs), np.append(self._rows, other._rows)
        self._keys = np.append(self._keys, other._keys)
        self._forget()

    def worst(self) -> float:
        """The log of the k-th best score so far; -inf as long as there are fewer rows."""
        self._sort_in()
        return self._worst + self._tie

    def ordered(self) -> Iterator[tuple[int, float, int]]:
        """At least `k` rows, or all, best first, those that are as good in the order of the seed.

        Returns:
            For each row its position, the log of its score, and how many others score the same.
        """
        self._sort_in()
        order = np.argsort(-self._logs, kind="stable")
        rows, values = -self._logs[order], -self._values  # both rising
        up_to, start = np.append(0, np.cumsum(self._counts)), 0
        while start < len(values):
            last = values[start] + self._tie
            end = int(np.searchsorted(values, last, side="right"))
            group = order[np.searchsorted(rows, values[start]) : np.searchsorted(rows, last, side="right")]
            for place in group[np.argsort(self._keys[group])].tolist():
                yield int(self._rows[place]), float(self._logs[place]), int(up_to[end] - up_to[start]) - 1
            start = end

    def _sort_in(self) -> None:
        """Sort in what waits, and forget what can no longer be among the best."""
        rows, logs = (
            np.concatenate(parts) for parts in zip((self._rows[:0], self._logs[:0]), *self._waiting, strict=True)
        )
        self._waiting = []
        self._count(logs, np.ones(len(logs), np.intp))
        self._rows, self._logs = np.append(self._rows, rows), np.append(self._logs, logs)
        keys = rows.astype(np.uint64) if self._seed is None else tie_breakers(self._seed, rows)
        self._keys = np.append(self._keys, keys)
        self._forget()

    def _forget(self) -> None:
        self._keep(self._logs >= self._worst)
        self._keep(self._place_among_equals() < self._k)

    def _count(self, logs: Host, rows: Host) -> None:
        """Count so many more rows of each of some scores, and see how good the k-th best is now."""
        values, which = np.unique(-np.append(self._values, logs), return_inverse=True)
        counts = np.zeros(len(values), np.intp)
        np.add.at(counts, which, np.append(self._counts, rows))
        reached = int(np.searchsorted(np.cumsum(counts), self._k))
        if reached < len(values):
            self._worst = float(-values[reached] - self._tie)
        self._values, self._counts = -values[-values >= self._worst], counts[-values >= self._worst]

    def _place_among_equals(self) -> Host:
        """[k]: how many rows of exactly the same score come before each."""
        order = np.lexsort((self._keys, self._logs))
        logs = self._logs[order]
        places = np.empty(len(order), np.intp)
        places[order] = np.arange(len(order)) - np.searchsorted(logs, logs)
        return places

    def _keep(self, which: Host) -> None:
        self._rows, self._logs, self._keys = self._rows[which], self._logs[which], self._keys[which]
