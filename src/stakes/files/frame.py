"""Columns with names on the host: what a table from a file is for a model.

It offers what `stakes.models.tables` knows of an Arrow table, so that encoders, `rank` and `simulate` take it as it is.
Sizes: N rows, p columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stakes.files.errors import TableError, did_you_mean, listed

Host: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Frame:
    """N rows of p named columns: floating numbers with NaN for gaps, or texts with None for gaps."""

    names: tuple[str, ...]
    arrays: tuple[Host, ...]
    """p of them, each [N], which nothing can write to"""
    count: int
    """N, also where there is no column"""

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or len(self.names) != len(self.arrays):
            raise TableError(f"a frame needs a name of its own for each of its columns; got {list(self.names)}")
        for name, values in zip(self.names, self.arrays, strict=True):
            if values.shape != (self.count,):
                raise TableError(f"column {name!r} must hold {self.count} values; got shape {list(values.shape)}")
        object.__setattr__(self, "arrays", tuple(_read_only(values) for values in self.arrays))

    @property
    def column_names(self) -> list[str]:
        """The p names."""
        return list(self.names)

    @property
    def shape(self) -> tuple[int, int]:
        """N and p."""
        return self.count, len(self.names)

    def __len__(self) -> int:
        return self.count

    def column(self, position: int) -> Host:
        """[N]: one column."""
        return self.arrays[position]

    def take(self, indices: Sequence[int] | Host) -> Frame:
        """The rows at some positions, in that order."""
        rows = np.asarray(indices, dtype=np.intp)
        arrays = tuple(values[rows] for values in self.arrays)
        return Frame(self.names, arrays, len(np.empty(self.count, dtype=bool)[rows]))

    def select(self, names: Iterable[str]) -> Frame:
        """Some columns, in the order of `names`."""
        chosen = tuple(names)
        places = [place_of(name, self.names) for name in chosen]
        return Frame(chosen, tuple(self.arrays[place] for place in places), self.count)

    def drop(self, names: Iterable[str]) -> Frame:
        """All columns but some."""
        gone = {place_of(name, self.names) for name in names}
        return self.select(name for place, name in enumerate(self.names) if place not in gone)


def place_of(name: str, names: Sequence[str]) -> int:
    """Where a column is; refused, with the name that was perhaps meant, where it is not."""
    if name in names:
        return names.index(name)
    raise TableError(f"there is no column {name!r}; there are {listed(names)}.{did_you_mean(name, names)}")


def _read_only(values: Host) -> Host:
    """A view of our own that nothing can write to."""
    view = values.view()
    view.flags.writeable = False
    return view
