"""The data of one run, and what each row of it is used for.

Sizes: n rows, p features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stakes._utils.array import on_host
from stakes._utils.tables import Host, Table, n_rows
from stakes.exceptions import StakesError

PARTS = ("initial", "pool", "contexts", "test")


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows with their labels, and the positions of the rows that start, can be acquired, are contexts, or test.

    No row is twice in `initial` and `pool`, because a label is acquired once. Contexts and test rows may be any rows,
    also the same. Where a test row has another y than a row that can be acquired (one without noise, say), give it a
    row of its own.

    Attributes:
        X: [n, p]: the rows.
        y: [n]: the labels; rows that are only contexts, or are not used, may have none (NaN or None).
        initial: Positions of the rows that are labelled at the start, in the order in which the model gets them.
        pool: Positions of the rows whose labels can be acquired.
        contexts: Positions of the rows that stand for the future: labels are chosen for what they say about these.
        test: Positions of the rows on which the losses are measured.

    Raises:
        TypeError: If X has no rows and columns, or positions are not whole numbers.
        StakesError: If a position is outside X, a part other than the pool is empty, or a row is twice in `initial`
            and `pool`.

    Examples:
        >>> import numpy as np
        >>> X, y = np.arange(8.0)[:, None], np.arange(8.0) ** 2
        >>> trial = Trial(X, y, initial=[0, 7], pool=[1, 2, 3], contexts=[4, 5], test=[6])
        >>> trial.labelled.tolist()
        [0, 1, 2, 3, 6, 7]
    """

    X: Table
    y: Any
    initial: Host
    pool: Host
    contexts: Host
    test: Host

    def __post_init__(self) -> None:
        count = _row_count(self.X)
        for name in PARTS:
            object.__setattr__(self, name, _positions(name, getattr(self, name), count))
        rows, times = np.unique(np.concatenate([self.initial, self.pool]), return_counts=True)
        if (times > 1).any():
            raise StakesError(
                "initial and pool must hold a row once, as a label is had once; more than once there "
                f"{'are' if (times > 1).sum() > 1 else 'is'} {listed_rows(rows[times > 1].tolist())}"
            )

    @property
    def labelled(self) -> Host:
        """Positions, rising, of the rows whose labels are used: those in initial, pool or test."""
        return np.unique(np.concatenate([self.initial, self.pool, self.test]))


TrialFunction: TypeAlias = Callable[[np.random.Generator], Trial]
"""A function (random_state) -> `Trial` that draws the data of a run; `random_state` is a NumPy generator."""


def draw_trial(trial: TrialFunction, random_state: np.random.Generator) -> Trial:
    """The trial that a user's function draws, refused if it is none."""
    if not callable(trial):
        raise TypeError(f"trial must be a function of a generator that returns a Trial; got {trial!r}")
    if not isinstance(found := trial(random_state), Trial):
        raise TypeError(f"trial must be a function of a generator that returns a Trial; it returned {found!r}")
    return found


def listed_rows(positions: list[int], most: int = 5) -> str:
    """The first few rows by position, and how many more there are."""
    more = f" and {len(positions) - most} more" if len(positions) > most else ""
    return f"row{'s' * (len(positions) > 1)} {', '.join(map(str, positions[:most]))}{more}"


def _row_count(table: Table) -> int:
    try:
        return n_rows(table)
    except TypeError as error:
        raise TypeError(f"X must have rows and columns, [n, p]; got {table!r}") from error


def _positions(name: str, given: Any, count: int) -> Host:
    """Whole numbers from 0 to `count` - 1, one or more; the pool may be empty, as its size is checked against n."""
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
