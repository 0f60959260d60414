"""Rows of Parquet and Arrow files, or of a folder of them, read a few at a time: they may be larger than memory.

A piece is what a file can be asked for by itself: a row group of Parquet, a record batch of Arrow. One piece, and a
chunk of rows, are in memory at a time. Sizes: N rows, n rows of a chunk, p columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from stakes.files.arrow_cells import library
from stakes.files.errors import TableError, listed
from stakes.files.frame import Host, place_of

_READ = 2**16  # rows that are taken out of a piece at a time


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
            raise TableError(
                f"{self.path}: rows {self.start} to {self.start + self.count - 1}, counted from 0, cannot be read "
                f"({error}). Save the file again."
            ) from error


@dataclass(frozen=True, eq=False)
class ArrowPool:
    """N rows of p columns of Parquet or Arrow files, as tables of Arrow or as what `made` makes of those."""

    pieces: tuple[Piece, ...] = field(repr=False)
    schema: Any
    """Of the p columns."""
    made: Callable[[Any], Any] = lambda table: table

    @property
    def n_rows(self) -> int:
        """N."""
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
            raise TableError(
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
        raise TableError(f"{path} cannot be read as a {path.suffix} file ({error}). Save it again.") from error


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
