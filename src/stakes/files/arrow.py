"""Parquet and Arrow files: cells as the text that a CSV file of the same table would hold, and rows read in chunks.

A file may be larger than memory. A piece is what a file can be asked for by itself: a row group of Parquet, a record
batch of Arrow. One piece, and a chunk of rows, are in memory at a time. Only this file names pyarrow, an extra.

Sizes: N rows, n rows of a chunk, p columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from stakes._utils.text import listed
from stakes.exceptions import StakesError
from stakes.files.frame import Host, place_of

_NO_FRACTION = re.compile(r"\.0+(?!\d)")  # files may keep seconds as milliseconds
_READ = 2**16  # rows that are taken out of a piece at a time


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
    return text_columns(path, _table(path))


def text_columns(path: Path, table: Any) -> Columns:
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
        raise StakesError(
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
        raise StakesError(f"{path} cannot be read as a {path.suffix} file ({error}). Save it again.") from error


def _ipc(arrow: Any, data: bytes) -> Any:
    """Arrow's format for files, or the one for streams."""
    if data.startswith(b"ARROW1"):
        return arrow.ipc.open_file(data).read_all()
    return arrow.ipc.open_stream(data).read_all()


def decoded(column: Any) -> Any:
    """A column of a dictionary type with the values in place of their numbers."""
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
        raise StakesError(
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
            raise StakesError(f"{path}: column {name!r} holds a NUL character at row {row + 1}. Take it out.")
    return texts


@dataclass(frozen=True)
class Piece:
    """Some rows of a file that follow each other."""

    path: Path
    place: int | None
    """Which row group or record batch; None for all of a stream, which can only be read in order."""
    start: int
    """The position of its first row among those of all files."""
    count: int

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns, in order; an error that says which rows cannot be read."""
        arrow = library()
        try:
            yield from _batches(self, list(names))
        except (arrow.ArrowException, OSError) as error:
            raise StakesError(
                f"{self.path}: rows {self.start} to {self.start + self.count - 1}, counted from 0, cannot be read "
                f"({error}). Save the file again."
            ) from error


@dataclass(frozen=True, eq=False)
class ArrowPool:
    """N rows of p columns of Parquet or Arrow files, as tables of Arrow or as what `made` makes of those."""

    pieces: tuple[Piece, ...] = field(repr=False)
    schema: Any
    """Arrow's, of the p columns."""
    made: Callable[[Any], Any] = lambda table: table

    @property
    def n_rows(self) -> int:
        """The number of rows, N."""
        return sum(piece.count for piece in self.pieces)

    def chunks(self, size: int) -> Iterator[tuple[int, Any]]:
        """Where each chunk begins, and its rows: `size` of them, fewer in the last."""
        start, waiting = 0, self.schema.empty_table()
        for batch in (batch for piece in self.pieces for batch in piece.batches(self.schema.names)):
            waiting = library().concat_tables([waiting, self._table([batch])])
            while waiting.num_rows >= size:
                yield start, self.made(waiting.slice(0, size))
                start, waiting = start + size, waiting.slice(size)
        if waiting.num_rows:
            yield start, self.made(waiting)

    def take(self, rows: Host) -> Any:
        """The rows at some positions, in that order; pieces without any are not read."""
        order = np.argsort(rows, kind="stable")
        found = [batch for piece in self.pieces for batch in self._found(piece, rows[order])]
        back = np.empty(len(rows), dtype=np.intp)
        back[order] = np.arange(len(rows))
        return self.made(self._table(found).take(back))

    def _found(self, piece: Piece, rising: Host) -> Iterator[Any]:
        """The rows of a piece that are among some, in rising order."""
        start, inside = piece.start, (rising >= piece.start) & (rising < piece.start + piece.count)
        if not inside.any():
            return
        for batch in piece.batches(self.schema.names):
            here = rising[(rising >= start) & (rising < start + batch.num_rows)] - start
            if len(here):
                yield batch.take(library().array(here))
            start += batch.num_rows

    def _table(self, batches: list[Any]) -> Any:
        return library().Table.from_batches(batches, schema=self.schema)


def open_arrow(paths: Sequence[Path], columns: Sequence[str] | None = None) -> ArrowPool:
    """The rows of some files, one file after the other: all columns, or some in the order that is asked for."""
    schemas = [_schema(path) for path in paths]
    for path, schema in zip(paths, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise StakesError(
                f"{path} must have the columns of {paths[0]}, of the same types and in the same order; it has "
                f"{listed(f'{each.name} ({each.type})' for each in schema)}, and {paths[0].name} has "
                f"{listed(f'{each.name} ({each.type})' for each in schemas[0])}"
            )
    chosen = schemas[0].names if columns is None else list(columns)
    places = [place_of(name, schemas[0].names) for name in chosen]
    schema = library().schema([schemas[0].field(place) for place in places])
    return ArrowPool(tuple(_all_pieces(paths)), schema)


def _all_pieces(paths: Sequence[Path]) -> Iterator[Piece]:
    counted = [(path, place, count) for path in paths for place, count in _counts(path)]
    starts = accumulate((count for *_, count in counted), initial=0)
    for (path, place, count), start in zip(counted, starts, strict=False):
        yield Piece(path, place, start, count)


def _counts(path: Path) -> list[tuple[int | None, int]]:
    """The number of each piece of a file, and of its rows."""
    with _opened(path) as file:
        if _is_parquet(path):
            return [(place, file.metadata.row_group(place).num_rows) for place in range(file.num_row_groups)]
        if hasattr(file, "get_batch"):
            return [(place, file.get_batch(place).num_rows) for place in range(file.num_record_batches)]
        return [(None, sum(batch.num_rows for batch in file))]


def _batches(piece: Piece, names: list[str]) -> Iterator[Any]:
    with _opened(piece.path) as file:
        if _is_parquet(piece.path):
            yield from (
                each.select(names) for each in file.iter_batches(_READ, row_groups=[piece.place], columns=names)
            )
            return
        for batch in file if piece.place is None else [file.get_batch(piece.place)]:
            yield from (batch.select(names).slice(start, _READ) for start in range(0, batch.num_rows, _READ))


def _schema(path: Path) -> Any:
    with _opened(path) as file:
        return (file.schema_arrow if _is_parquet(path) else file.schema).remove_metadata()


def _opened(path: Path) -> Any:
    """A file of Parquet, of Arrow's format for files, or of the one for streams."""
    arrow = library()
    try:
        if _is_parquet(path):
            return arrow.parquet.ParquetFile(path, pre_buffer=False)
        mapped = arrow.memory_map(str(path))
        in_pieces = mapped.read(6) == b"ARROW1"
        mapped.seek(0)
        return arrow.ipc.open_file(mapped) if in_pieces else arrow.ipc.open_stream(mapped)
    except (arrow.ArrowException, OSError) as error:
        raise StakesError(f"{path} cannot be read as a {path.suffix} file ({error}). Save it again.") from error


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
