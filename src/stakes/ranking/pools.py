"""Where the rows of a pool come from: a table in memory, or a file that is read in chunks of rows.

Sizes: N rows, p columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stakes._array import slices
from stakes.files import open_pool
from stakes.files.pools import MappedPool
from stakes.models.acceptance import accepts_shapes
from stakes.models.table_checks import check_table
from stakes.models.tables import Host, Table, labels_at, n_rows, take_rows

_CHECKED = 2**16  # rows that are checked at a time


@runtime_checkable
class Pool(Protocol):
    """N rows that need not be in memory at once: what `rank` asks of a source of rows, also of one of your own."""

    @property
    def n_rows(self) -> int:
        """N."""

    def chunks(self, size: int) -> Iterator[tuple[int, Table]]:
        """Where each chunk begins, and its rows, in order: at least one and at most `size`; the same whenever asked."""

    def take(self, rows: Host) -> Table:
        """The rows at some positions, in that order."""


@dataclass(frozen=True, eq=False)
class TablePool:
    """A table in memory."""

    table: Table

    @property
    def n_rows(self) -> int:
        """N."""
        return n_rows(self.table)

    def chunks(self, size: int) -> Iterator[tuple[int, Table]]:
        """Where each chunk begins, and its rows."""
        return ((part.start, take_rows(self.table, part)) for part in slices(self.n_rows, size))

    def take(self, rows: Host) -> Table:
        """The rows at some positions, in that order."""
        return take_rows(self.table, rows)


def opened(pool: Any, model: Any) -> Any:
    """The pool, or what is in the file at that path: the columns that the model was fitted with.

    A model that was fitted without names is given arrays without names.
    """
    if not isinstance(pool, str | os.PathLike):
        return pool
    names = getattr(model, "feature_names_in_", None)
    plain = names is None and hasattr(model, "n_features_in_")
    return open_pool(pool, None if names is None else [str(name) for name in names], plain=plain)


def checked_pool(pool: Any, model: Any, gaps: bool, progress: Callable[[str, float | None], None]) -> Pool:
    """The rows of a table, an array in a file, a path or a `Pool`, all of them checked: finite, or with `gaps`."""
    source = opened(pool, model)
    source, shapes = MappedPool(source) if isinstance(source, np.memmap) else source, accepts_shapes(model)
    if not isinstance(source, Pool):
        return TablePool(check_table("pool", source, gaps, any_shape=shapes))
    if source.n_rows == 0:
        raise ValueError("pool must have at least one row; got none")
    seen = 0
    for start, rows in source.chunks(_CHECKED):
        progress("checking rows", start / source.n_rows)
        check_table("pool", rows, gaps, range(start, start + n_rows(rows)), shapes)
        seen += n_rows(rows)
    if seen != source.n_rows:
        raise ValueError(f"pool says that it has {source.n_rows} rows, but its chunks hold {seen}")
    return source


def pool_labels(pool: Pool, rows: Host) -> list[Any]:
    """Of some rows: the index of a pandas frame, else positions."""
    return labels_at(pool.table, rows) if isinstance(pool, TablePool) else list(rows.tolist())
