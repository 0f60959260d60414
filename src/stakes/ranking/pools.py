"""Where rows come from: tables in memory, files that are read in chunks, and what a source of one's own must do.

Sizes: N rows, p columns.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stakes._utils.arguments import Progress, no_progress
from stakes._utils.array import slices
from stakes._utils.tables import Host, Table, check_table, labels_at, n_rows, take_rows
from stakes.exceptions import StakesError
from stakes.files import open_pool
from stakes.files.pools import MappedPool
from stakes.models.inspection import accepts_shapes

_CHECKED = 2**16  # rows that are checked at a time


@runtime_checkable
class Pool(Protocol):
    """N rows that need not be in memory at once: what `rank` needs of a source of rows, also of one of your own.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import SquaredError, rank
        >>> class Squares:
        ...     n_rows = 50
        ...
        ...     def take(self, rows):
        ...         return np.asarray(rows, dtype=float)[:, None] ** 2
        ...
        ...     def chunks(self, size):
        ...         for start in range(0, self.n_rows, size):
        ...             yield start, self.take(np.arange(start, min(start + size, self.n_rows)))
        >>> isinstance(Squares(), Pool)
        True
        >>> model = BayesianRidge().fit([[0.0], [400.0], [900.0]], [0.0, 20.0, 30.0])
        >>> rank(model, SquaredError(), Squares(), n=1).indices
        (49,)
    """

    @property
    def n_rows(self) -> int:
        """The number N of rows."""

    def chunks(self, size: int) -> Iterator[tuple[int, Table]]:
        """Where each chunk begins, and its rows, in order: at least one and at most `size`; the same whenever asked.

        Args:
            size: The most rows that a chunk may have.

        Returns:
            Pairs of a position and a table.
        """

    def take(self, rows: Host) -> Table:
        """The rows at some positions, in that order.

        Args:
            rows: Positions, from 0 to N - 1.

        Returns:
            A table.
        """


def pool_size(pool: Any) -> int:
    """The number of rows of a table or a `Pool`."""
    return int(pool.n_rows) if isinstance(pool, Pool) else n_rows(pool)


def pool_chunks(pool: Any, size: int) -> Iterator[tuple[int, Table]]:
    """Where each chunk of a table or a `Pool` begins, and its rows."""
    if isinstance(pool, Pool):
        return pool.chunks(size)
    return ((part.start, take_rows(pool, part)) for part in slices(n_rows(pool), size))


def pool_rows(pool: Any, rows: Host) -> Table:
    """The rows of a table or a `Pool` at some positions, in that order."""
    return pool.take(rows) if isinstance(pool, Pool) else take_rows(pool, rows)


def pool_labels(pool: Any, rows: Host) -> list[Any]:
    """Of some rows of a table or a `Pool`: their names, where it has some, else positions."""
    named = getattr(pool, "row_labels", None)
    found: list[Any] = labels_at(pool, rows) if named is None else named(rows)
    return found


def fitted_columns(model: Any) -> tuple[list[str] | None, bool]:
    """The columns that a model was fitted with, and whether it takes arrays without names instead."""
    names = getattr(model, "feature_names_in_", None)
    plain = names is None and hasattr(model, "n_features_in_")
    return None if names is None else [str(name) for name in names], plain


def checked_pool(pool: Any, model: Any, gaps: bool, progress: Progress = no_progress) -> Any:
    """A table or a `Pool`, of a table, an array in a file, a path or a `Pool`; its rows are finite, or with `gaps`."""
    columns, plain = fitted_columns(model)
    source = open_pool(pool, columns, plain=plain) if isinstance(pool, str | os.PathLike) else pool
    source, shapes = MappedPool(source) if isinstance(source, np.memmap) else source, accepts_shapes(model)
    if not isinstance(source, Pool):
        return check_table("pool", source, gaps, any_shape=shapes)
    if source.n_rows == 0:
        raise StakesError("pool must have at least one row; got none")
    seen = 0
    for start, rows in source.chunks(_CHECKED):
        progress("checking rows", start / source.n_rows)
        check_table("pool", rows, gaps, range(start, start + n_rows(rows)), shapes)
        seen += n_rows(rows)
    if seen != source.n_rows:
        raise StakesError(f"pool says that it has {source.n_rows} rows, but its chunks hold {seen}")
    return source
