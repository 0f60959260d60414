"""The best rows of a pool, and how many are as good, from scores that come in chunks and are not kept.

Sizes: n rows of a chunk, k rows in the lead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stakes.models.tables import Host
from stakes.ranking.chance import luck

_TIE = 1e-9  # relative: scores nearer than this are equal
_WAITING = 2**16  # rows that are sorted in together


@dataclass(frozen=True)
class Leader:
    """A row in the lead."""

    row: int
    log: float
    """Of its score."""
    as_good: int
    """How many others score the same."""


class Leaders:
    """The best `most` of all rows that were shown, in memory that does not grow with their number.

    Each distinct score near the top is kept with the number of rows that have it, and with the luckiest of those.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most, self._seed, self._worst = most, seed, -np.inf
        self._logs, self._luck, self._rows = np.empty(0), np.empty(0, np.uint64), np.empty(0, np.intp)
        self._values, self._counts = np.empty(0), np.empty(0, np.intp)  # falling; how many rows have each
        self._waiting: list[tuple[Host, Host]] = []

    def show(self, start: int, logs: Host) -> None:
        """Rows from position `start` on, with the logs of their scores [n]."""
        near = np.flatnonzero(logs >= self._worst)
        self._waiting.append((start + near, logs[near]))
        if sum(len(rows) for rows, _ in self._waiting) > max(_WAITING, len(self._rows)):
            self._settle()

    def ordered(self) -> Iterator[Leader]:
        """At least `most` rows, or all, from best to worst; the seed orders those that are as good."""
        self._settle()
        order = np.argsort(-self._logs, kind="stable")
        rows, values = -self._logs[order], -self._values  # both rising
        up_to, start = np.append(0, np.cumsum(self._counts)), 0
        while start < len(values):
            last = values[start] + _TIE
            end = int(np.searchsorted(values, last, side="right"))
            group = order[np.searchsorted(rows, values[start]) : np.searchsorted(rows, last, side="right")]
            for place in group[np.argsort(self._luck[group])].tolist():
                yield Leader(int(self._rows[place]), float(self._logs[place]), int(up_to[end] - up_to[start]) - 1)
            start = end

    def _settle(self) -> None:
        """Sort in what waits, and forget what can no longer lead."""
        rows, logs = (
            np.concatenate(parts) for parts in zip((self._rows[:0], self._logs[:0]), *self._waiting, strict=True)
        )
        self._waiting = []
        self._count(logs)
        self._rows, self._logs = np.append(self._rows, rows), np.append(self._logs, logs)
        self._luck = np.append(self._luck, luck(self._seed, rows))
        self._keep(self._logs >= self._worst)
        self._keep(self._place_among_equals() < self._most)

    def _count(self, logs: Host) -> None:
        values, which = np.unique(-np.append(self._values, logs), return_inverse=True)
        counts = np.zeros(len(values), np.intp)
        np.add.at(counts, which, np.append(self._counts, np.ones(len(logs), np.intp)))
        reached = int(np.searchsorted(np.cumsum(counts), self._most))
        if reached < len(values):
            self._worst = float(-values[reached] - _TIE)
        self._values, self._counts = -values[-values >= self._worst], counts[-values >= self._worst]

    def _place_among_equals(self) -> Host:
        """[k]: how many rows of exactly the same score are luckier."""
        order = np.lexsort((self._luck, self._logs))
        logs = self._logs[order]
        places = np.empty(len(order), np.intp)
        places[order] = np.arange(len(order)) - np.searchsorted(logs, logs)
        return places

    def _keep(self, which: Host) -> None:
        self._rows, self._logs, self._luck = self._rows[which], self._logs[which], self._luck[which]
