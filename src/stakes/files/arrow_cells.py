"""The cells of Parquet and Arrow files as the text that a CSV file of the same table would hold.

Only this file names pyarrow, which is an extra.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stakes.files.errors import TableError

_NO_FRACTION = re.compile(r"\.0+(?!\d)")  # files may keep seconds as milliseconds


@dataclass(frozen=True)
class Columns:
    """Columns as text, None where there is no value."""

    names: list[str]
    cells: list[list[str | None]]
    text: frozenset[str]
    """Those whose type says that they are text."""
    floating: frozenset[str]
    """Those of floating numbers."""


def read_columns(path: Path) -> Columns:
    """All columns of a Parquet, Arrow or Feather file."""
    return columns_of(path, _table(path))


def columns_of(path: Path, table: Any) -> Columns:
    """The columns of a table that was read from a file."""
    columns = [(name, decoded(table.column(place))) for place, name in enumerate(table.column_names)]
    cells = [texts_of(path, name, column) for name, column in columns]
    types = library().types
    return Columns(
        [name for name, _ in columns],
        cells,
        frozenset(name for name, column in columns if is_text(column.type)),
        frozenset(name for name, column in columns if types.is_floating(column.type)),
    )


def library() -> Any:
    """pyarrow, or how to get it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise TableError(
            "Parquet and Arrow files need pyarrow: pip install 'stakes[parquet]', or save the table as CSV"
        ) from error
    return pyarrow


def _table(path: Path) -> Any:
    arrow = library()
    try:
        if path.suffix.lower() == ".parquet":
            return arrow.parquet.ParquetFile(path).read()
        return _ipc(arrow, path.read_bytes())
    except (arrow.ArrowException, OSError) as error:
        raise TableError(f"{path} cannot be read as a {path.suffix} file ({error}). Save it again.") from error


def _ipc(arrow: Any, data: bytes) -> Any:
    """Arrow's format for files, or the one for streams."""
    if data.startswith(b"ARROW1"):
        return arrow.ipc.open_file(data).read_all()
    return arrow.ipc.open_stream(data).read_all()


def decoded(column: Any) -> Any:
    """A dictionary's values in place of their numbers."""
    is_dictionary = library().types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_dictionary else column


def is_text(kind: Any) -> bool:
    """Whether a type holds texts, flags or dates, which become categories."""
    types = library().types
    strings = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return strings or types.is_boolean(kind) or (types.is_temporal(kind) and not types.is_duration(kind))


def texts_of(path: Path, name: str, column: Any) -> list[str | None]:
    """Floating numbers with all their digits, flags as true and false, dates as ISO has them."""
    types, kind = library().types, column.type
    if types.is_floating(kind):
        return [None if each is None else repr(float(each)) for each in column.to_pylist()]
    if types.is_boolean(kind):
        return [None if each is None else str(each).lower() for each in column.to_pylist()]
    if types.is_decimal(kind):
        return [None if each is None else format(each, "f") for each in column.to_pylist()]
    if types.is_integer(kind) or types.is_null(kind):
        return [None if each is None else str(each) for each in column.to_pylist()]
    if not is_text(kind):
        raise TableError(
            f"{path}: column {name!r} holds {kind}, which is no number, text, flag or date. Leave the column out of "
            "the file, or spread it over columns of numbers or text."
        )
    return _strings(path, name, column)


def _strings(path: Path, name: str, column: Any) -> list[str | None]:
    arrow = library()
    texts: list[str | None] = column.cast(arrow.large_string()).to_pylist()
    if arrow.types.is_temporal(column.type):
        texts = [each and _NO_FRACTION.sub("", each.replace(" ", "T")) for each in texts]
    for row, text in enumerate(texts):
        if text and "\0" in text:
            raise TableError(f"{path}: column {name!r} holds a NUL character at row {row + 1}. Take it out.")
    return texts
