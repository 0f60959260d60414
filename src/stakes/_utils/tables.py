"""Rows and columns of whatever holds features: arrays, sparse matrices, data frames, Arrow tables, lists.

Networks also take rows of any shape (images [N, 1, 8, 8]) and dicts of arrays, a part of each row in each of them.

No library of tables is imported: each is known by what it offers (`iloc`: pandas; `to_series`: polars; `column_names`:
Arrow; `tocsr`: sparse matrices). Rows differ by position. Tables are checked at the door: rows of one kind,
finite numbers, the columns that are expected; errors name the place. Sizes: N rows, p columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import device, is_array_api_obj

from stakes._utils.array import namespace, on_host, slices
from stakes._utils.text import listed
from stakes.exceptions import StakesError

Table: TypeAlias = Any
"""N rows of p features, N texts, or N rows of any shape."""
Host: TypeAlias = np.ndarray[Any, Any]

_NUMBERS = "fiu"  # kinds of dtype that are numbers
_COMPARED = 10**8  # cells of a table whose rows are compared: a second or two
_KEYED = 2**12  # rows whose keys are made together
_LOOKED_AT = 2**16  # rows that are looked at together for numbers that are not finite


def n_rows(table: Table) -> int:
    """The number N of rows."""
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
    if _is_arrow(table):
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


def _is_arrow(table: Table) -> bool:
    """Whether columns are reached as in Arrow; it is not asked for the names, which takes as long as there are many."""
    return hasattr(type(table), "column_names") or "column_names" in getattr(table, "__dict__", ())


def column_at(table: Table, position: int) -> Host:
    """[N]: one column on the host; numbers with gaps are floating numbers with NaN."""
    if hasattr(table, "iloc"):
        values = table.iloc[:, position]
    elif _is_arrow(table):
        values = table.column(position)
    elif hasattr(table, "to_series"):
        values = table.to_series(position)
    else:
        values = table[:, position]
    host = on_host(values)
    return _numbers(host) if host.dtype.kind == "O" else host


def row_keys(table: Table) -> Host | None:
    """[N]: a number for each row that only rows share which are the same in every column, but for a pair in 2^64.

    None where that would take long, or rows lie on another device.
    """
    if isinstance(table, Mapping):
        parts = [row_keys(part) for part in table.values()]
        return None if any(part is None for part in parts) else _mixed([part for part in parts if part is not None])
    cells = n_rows(table) * int(np.prod(getattr(table, "shape", (1, 1))[1:]))
    if not 0 < cells <= _COMPARED or (is_array_api_obj(table) and "cpu" not in str(device(table))):
        return None
    if hasattr(table, "tocsr"):
        return _sparse_keys(table.tocsr())
    dimensions = len(getattr(table, "shape", ()))
    if dimensions < 2:
        return _mixed([_cell_keys(np.asarray(list(table), dtype=object))])
    if dimensions > 2 or is_array_api_obj(table):
        flat = on_host(table).reshape(n_rows(table), -1)
        blocks = (np.ascontiguousarray(flat[part].T) for part in slices(len(flat), _KEYED))  # [p, n] each, in the cache
        return np.concatenate([np.empty(0, np.uint64), *(_mixed([*map(_cell_keys, block)]) for block in blocks)])
    return _mixed([_cell_keys(column_at(table, place)) for place in range(n_columns(table))])


def _cell_keys(values: Host) -> Host:
    """[N]: the bits of numbers; of all else a hash of how Python shows it."""
    if values.dtype.kind == "f":
        numbers = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, and one zero
        return np.ascontiguousarray(numbers, dtype=float).view(np.uint64)
    if values.dtype.kind in "iub":
        return values.astype(np.uint64)
    hashes = [0 if _is_gap(each) else hash(repr(each)) for each in values.tolist()]  # hash(-1) is hash(-2)
    return np.asarray(hashes, dtype=np.int64).view(np.uint64)


def _mixed(columns: Sequence[Host]) -> Host:
    """[N]: one number of those of each column, in their order: by the steps of SplitMix64, which mix 64 bits."""
    keys = np.zeros(len(columns[0]) if columns else 0, np.uint64)
    for column in columns:
        keys = (keys ^ column) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(0x9E3779B97F4A7C15)
        keys = keys ^ (keys >> np.uint64(31))
    return keys


def _sparse_keys(table: Any) -> Host:
    """[N]: a sum over the entries of each row, whatever their order; zeros that are stored count as none."""
    table = table.copy()
    table.sum_duplicates()
    table.eliminate_zeros()
    entries = _mixed([table.indices.astype(np.uint64), _cell_keys(table.data)])
    keys = np.zeros(table.shape[0], np.uint64)
    np.add.at(keys, np.repeat(np.arange(table.shape[0]), np.diff(table.indptr)), entries)
    return keys


def joined(columns: Sequence[Host]) -> Host:
    """One column after the other; objects, unless all hold numbers."""
    if all(is_number(values) for values in columns) or len(columns) == 1:
        return np.concatenate(list(columns))
    return _numbers(np.concatenate([values.astype(object) for values in columns]))


def plain_label(label: Any) -> Any:
    """A label as Python has it, so that np.int64(1) and 1 are one."""
    return label.item() if isinstance(label, np.generic) else label


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


def check_table(
    name: str,
    data: Any,
    allow_nan: bool = False,
    rows: Sequence[int] | Host | None = None,
    any_shape: bool = False,
) -> Table:
    """`data` as a table: N x p with finite numbers (NaN too with `allow_nan`), or a list of texts.

    With `any_shape` also arrays N x anything, and dicts of them. Nested lists of numbers become an array; all else
    stays what it is. Columns that hold no numbers are the model's affair. `rows` [N] are where its rows are in a larger
    table, for the text of an error.
    """
    if any_shape and isinstance(data, Mapping):
        return _checked_parts(name, data, allow_nan, rows)
    table = _as_table(name, data, any_shape)
    if n_rows(table) == 0:
        raise StakesError(f"{name} must have at least one row; got none")
    for row, position, value in _first_bad(table, allow_nan):
        place = _place(table, row, position, rows)
        advice = "" if np.isinf(value) else ", or put an imputer before the model in a Pipeline"
        raise StakesError(
            f"{name} must hold finite numbers; the first that is not is {value} at {place}. Impute or drop it{advice}."
        )
    return table


def _checked_parts(
    name: str, data: Mapping[str, Any], allow_nan: bool, rows: Sequence[int] | Host | None
) -> Mapping[str, Any]:
    """A dict of arrays, each checked, all with the same number of rows."""
    parts = {key: check_table(f"{name}[{key!r}]", part, allow_nan, rows, True) for key, part in data.items()}
    lengths = {key: n_rows(part) for key, part in parts.items()}
    if len(set(lengths.values())) != 1:
        raise StakesError(f"{name} must have as many rows in each of its parts, and one part at least; got {lengths}")
    return parts


def _place(table: Table, row: int, position: int | tuple[int, ...], rows: Sequence[int] | Host | None) -> str:
    """A row and a column as a text, by name where they have names; or where it is in a row of any shape."""
    names, where = column_names(table), row if rows is None else int(rows[row])
    label = labels_at(table, [row])[0] if hasattr(table, "iloc") else where
    called = "" if label == where else f" (label {label!r})"
    if isinstance(position, tuple):
        return f"row {where}, at {list(position)} there"
    return f"row {where}{called}, column {names[position]!r}" if names else f"row {where}, column {position}"


def first_gap(table: Table, rows: Sequence[int] | Host | None = None) -> str | None:
    """Where the first gap among the numbers is, as a text; None where there is none."""
    if isinstance(table, Mapping):
        return next((gap for part in table.values() if (gap := first_gap(part, rows)) is not None), None)
    return next((_place(table, row, position, rows) for row, position, _ in _first_bad(table, allow_nan=False)), None)


def check_same_columns(table: Table, other: Table, name: str = "the pool", other_name: str = "contexts") -> None:
    """Refuse another table whose columns are not those of the first, in the same order; or rows of another shape."""
    shapes = [list(getattr(each, "shape", ()))[1:] for each in (table, other)]
    if max(map(len, shapes)) > 1 and shapes[0] != shapes[1]:
        raise StakesError(f"{other_name} must have rows of the shape {shapes[0]} of {name}; got {shapes[1]}")
    if (ours := n_columns(table)) != (theirs := n_columns(other)):
        raise StakesError(f"{other_name} must have the {ours} columns of {name}; got {theirs}")
    check_names(other_name, column_names(other), column_names(table), f"those of {name}")


def check_names(name: str, got: list[str] | None, wanted: list[str] | None, whose: str) -> None:
    """Refuse columns with other names, or in another order, where both have names."""
    if got is None or wanted is None or got == wanted:
        return
    came, due = set(got), set(wanted)
    missing, other = [each for each in wanted if each not in came], [each for each in got if each not in due]
    differ = [i for i, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]]
    if missing or other:
        detail = f"missing [{listed(map(repr, missing))}], not expected [{listed(map(repr, other))}]"
    elif differ:
        first = differ[0]
        detail = f"column {first} is {got[first]!r}, {wanted[first]!r} was expected: put them in the same order"
    else:
        detail = f"{len(got)} came, {len(wanted)} were expected"
    raise StakesError(f"the columns of {name} must be {whose}, in that order; {detail}")


def _as_table(name: str, data: Any, any_shape: bool) -> Table:
    if isinstance(data, list | tuple):
        if len(data) == 0 or all(isinstance(each, str) for each in data):
            return data
        data = _array(name, data)
    if isinstance(data, np.ma.MaskedArray) and is_number(data):
        data = np.where(np.ma.getmaskarray(data), np.nan, data.data)  # what is masked is a gap, not the number beneath
    shape = getattr(data, "shape", None)
    if shape is None or not (
        len(shape) == 2 or (len(shape) > 2 and any_shape) or (len(shape) == 1 and on_host(data).dtype.kind in "OUST")
    ):
        got = type(data).__name__ if shape is None else f"shape {list(shape)}"
        advice = " Give one row as data.reshape(1, -1), one column as data.reshape(-1, 1)." if shape else ""
        if any(kind.__module__.startswith("torch.utils.data") for kind in type(data).__mro__):
            advice = " A data set or a loader is a pool by stakes.models.networks.DatasetPool."
        raise StakesError(f"{name} must have rows and columns, [N, p] (or be a list of texts); got {got}.{advice}")
    return data


def _array(name: str, data: Any) -> Host:
    """Nested lists as [N, p]: of numbers where all are, else of objects, so that no number becomes text."""
    try:
        array = np.asarray(data)
        return array if is_number(array) else np.asarray(data, dtype=object)
    except ValueError as error:
        raise StakesError(f"{name} must have rows of one length; {error}") from error


def _first_bad(table: Table, allow_nan: bool) -> Sequence[tuple[int, int | tuple[int, ...], float]]:
    """Row, column and value of the first number that is not finite, if there is one."""
    if hasattr(table, "tocoo"):
        return _first_bad_sparse(table, allow_nan)
    dimensions = len(getattr(table, "shape", ()))
    if is_array_api_obj(table) and dimensions >= 2 and (dimensions > 2 or not isinstance(table, np.ndarray)):
        return _first_bad_anywhere(table, allow_nan)
    if dimensions != 2:
        return []
    found = []
    for position in range(n_columns(table)):
        values = column_at(table, position)
        if values.dtype.kind == "f" and (bad := _bad(values, allow_nan)).any():
            row = int(np.argmax(bad))
            found.append((row, position, float(values[row])))
    return sorted(found)[:1]


def _first_bad_anywhere(table: Any, allow_nan: bool) -> list[tuple[int, int | tuple[int, ...], float]]:
    """The same in rows of any shape, looked for where the array is; a place within the row for the column."""
    xp = namespace(table)
    if not xp.isdtype(table.dtype, "real floating"):
        return []
    for part in slices(n_rows(table), _LOOKED_AT):
        bad = xp.isinf(table[part, ...]) if allow_nan else ~xp.isfinite(table[part, ...])
        if bool(xp.any(bad)):
            first = int(xp.argmax(xp.astype(xp.reshape(bad, (-1,)), xp.uint8)))
            row, *within = (int(each) for each in np.unravel_index(first, tuple(bad.shape)))
            place = (part.start + row, *within)
            return [(place[0], within[0] if len(within) == 1 else tuple(within), float(table[place]))]
    return []


def _first_bad_sparse(table: Table, allow_nan: bool) -> list[tuple[int, int, float]]:
    entries = table.tocoo()
    bad = np.flatnonzero(_bad(entries.data, allow_nan))
    return sorted((int(entries.row[i]), int(entries.col[i]), float(entries.data[i])) for i in bad)[:1]


def _bad(values: Host, allow_nan: bool) -> Host:
    return np.isinf(values) if allow_nan else ~np.isfinite(values)
