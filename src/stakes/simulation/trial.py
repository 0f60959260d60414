"""The data of one run, and the part that each row plays in it.

Sizes: n rows, p features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stakes._utils.tables import Host, Table, n_rows, on_host
from stakes.exceptions import StakesError

PARTS = ("initial", "pool", "contexts", "test")


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows with their labels, and positions of those that are labelled at the start, may be bought, or judge.

    No row is twice in `initial` and `pool`: a label is had once. Contexts and test rows may be any rows, also the same.
    Where a test row has another y than a row that can be bought (without noise, say), give it a row of its own.
    """

    X: Table
    """[n, p]"""
    y: Any
    """[n]; rows that are contexts only, or nothing, may have none (NaN or None)"""
    initial: Host
    """labelled at the start, in the order in which the model gets them"""
    pool: Host
    """may be bought"""
    contexts: Host
    """stand for the future: labels are chosen for what they tell about these"""
    test: Host
    """judge the answers"""

    def __post_init__(self) -> None:
        count = _row_count(self.X)
        for name in PARTS:
            object.__setattr__(self, name, _positions(name, getattr(self, name), count))
        rows, times = np.unique(np.concatenate([self.initial, self.pool]), return_counts=True)
        if (times > 1).any():
            raise StakesError(
                "initial and pool must hold a row once, as a label is had once; more than once there "
                f"{'are' if (times > 1).sum() > 1 else 'is'} {rows_in_words(rows[times > 1].tolist())}"
            )

    @property
    def labelled(self) -> Host:
        """Positions, rising, of rows whose labels are used: in initial, pool or test."""
        return np.unique(np.concatenate([self.initial, self.pool, self.test]))


TrialFunction: TypeAlias = Callable[[np.random.Generator], Trial]
"""The random numbers of a run to its trial."""


def drawn(trial: TrialFunction, rng: np.random.Generator) -> Trial:
    """The trial that the function of a user draws, refused if it is none."""
    if not callable(trial):
        raise TypeError(f"trial must be a function of a generator that returns a Trial; got {trial!r}")
    if not isinstance(found := trial(rng), Trial):
        raise TypeError(f"trial must be a function of a generator that returns a Trial; it returned {found!r}")
    return found


def rows_in_words(positions: list[int], named: int = 5) -> str:
    """The first few rows by position, and how many more there are."""
    more = f" and {len(positions) - named} more" if len(positions) > named else ""
    return f"row{'s' * (len(positions) > 1)} {', '.join(map(str, positions[:named]))}{more}"


def _row_count(table: Table) -> int:
    try:
        return n_rows(table)
    except TypeError as error:
        raise TypeError(f"X must have rows and columns, [n, p]; got {table!r}") from error


def _positions(name: str, given: Any, count: int) -> Host:
    """One or more whole numbers from 0 to `count` - 1; none is allowed for the pool, which the budget is checked by."""
    rows = on_host(given)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        advice = " Give np.flatnonzero(mask) for a mask." if rows.dtype.kind == "b" else ""
        raise TypeError(
            f"{name} must be a list of positions of rows; got shape {list(rows.shape)} of {rows.dtype}.{advice}"
        )
    if rows.size == 0 and name != "pool":
        raise StakesError(f"{name} must hold at least one row; got none")
    if outside := rows[(rows < 0) | (rows >= count)].tolist():
        raise StakesError(
            f"{name} must hold positions from 0 to {count - 1}, of the {count} rows of X; got {outside[0]}"
        )
    return rows.astype(np.intp)
