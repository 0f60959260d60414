"""Rows and columns of whatever holds features: arrays, sparse matrices, data frames, Arrow tables, lists.

Networks also take rows of any shape (images [N, 1, 8, 8]) and dicts of arrays, a part of each row in each of them.

No library of tables is imported: each is known by what it offers (`iloc`: pandas; `to_series`: polars; `column_names`:
Arrow; `tocsr`: sparse matrices). Rows are told apart by position. Sizes: N rows, p columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import device, is_array_api_obj

from stakes._array import namespace
from stakes._array import on_host as array_on_host

Table: TypeAlias = Any
"""N rows of p features, N texts, or N rows of any shape."""
Host: TypeAlias = np.ndarray[Any, Any]

_NUMBERS = "fiu"  # kinds of dtype that are numbers


def n_rows(table: Table) -> int:
    """N."""
    if isinstance(table, Mapping):
        return n_rows(next(iter(table.values())))
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def n_columns(table: Table) -> int:
    """The number p of columns; 1 for a list of texts."""
    return int(table.shape[1]) if len(getattr(table, "shape", ())) == 2 else 1


def column_names(table: Table) -> list[str] | None:
    """The p names, where columns have names."""
    names = getattr(table, "column_names", None)  # Arrow, whose `columns` are the columns themselves
    names = getattr(table, "columns", None) if names is None else names
    return None if names is None or callable(names) else [str(name) for name in names]


def row_labels(table: Table) -> list[Any]:
    """[N]: the index of a pandas frame, else positions."""
    return labels_at(table, range(n_rows(table)))


def labels_at(table: Table, rows: Sequence[int] | Host) -> list[Any]:
    """Of some rows: the index of a pandas frame, else positions."""
    where = np.asarray(rows, dtype=np.intp)
    return list((table.index[where] if hasattr(table, "iloc") else where).tolist())


def take_rows(table: Table, rows: slice | Sequence[int] | Host) -> Table:
    """The rows at some positions, in that order, as a table of the same kind."""
    where = rows if isinstance(rows, slice) else np.asarray(rows, dtype=np.intp)
    if hasattr(table, "iloc"):
        return table.iloc[where]
    if hasattr(table, "column_names"):
        return table.take(np.arange(n_rows(table))[where])
    if hasattr(table, "tocsr"):
        return table.tocsr()[where]
    if isinstance(table, Mapping):
        return {name: take_rows(part, rows) for name, part in table.items()}
    if isinstance(table, list | tuple):
        return table[where] if isinstance(where, slice) else [table[i] for i in where]
    if is_array_api_obj(table) and not isinstance(table, np.ndarray):
        if isinstance(where, slice):
            return table[where, ...]
        xp = namespace(table)
        where = xp.asarray(np.arange(n_rows(table))[where], device=device(table))
        return xp.take(table, where, axis=0)
    return table[where]


def column(table: Table, position: int) -> Host:
    """[N]: one column on the host; numbers with gaps are floating numbers with NaN."""
    if hasattr(table, "iloc"):
        values = table.iloc[:, position]
    elif hasattr(table, "column_names"):
        values = table.column(position)
    elif hasattr(table, "to_series"):
        values = table.to_series(position)
    else:
        values = table[:, position]
    host = on_host(values)
    return _numbers(host) if host.dtype.kind == "O" else host


def joined(columns: Sequence[Host]) -> Host:
    """One column after the other; objects, unless all hold numbers."""
    if all(is_number(values) for values in columns) or len(columns) == 1:
        return np.concatenate(list(columns))
    return _numbers(np.concatenate([values.astype(object) for values in columns]))


def on_host(values: Any) -> Host:
    """An array, or a column of a table, as a NumPy array."""
    return np.asarray(values.to_numpy()) if hasattr(values, "to_numpy") else array_on_host(values)


def is_number(values: Host) -> bool:
    """Whether a column holds numbers; flags (bool) are not."""
    return values.dtype.kind in _NUMBERS


def _numbers(values: Host) -> Host:
    """A column of objects as floating numbers, if it holds nothing but numbers and gaps."""
    if not all(_is_gap(each) or _is_number(each) for each in values):
        return values
    return np.asarray([np.nan if _is_gap(each) else float(each) for each in values])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_gap(value: Any) -> bool:
    """Whether a value of an object column stands for "missing": None, NaN, pandas' NA."""
    absent = value is None or type(value).__name__ in ("NAType", "NaTType")
    return absent or (isinstance(value, float) and value != value)


def is_gap(values: Host) -> Host:
    """[N]: where a column is missing a value."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    gaps = [_is_gap(each) for each in values] if values.dtype.kind == "O" else np.zeros(len(values))
    return np.asarray(gaps, dtype=bool)
