"""Parquet and Arrow files: cells as the text that a CSV file of the same table would hold, and rows read in chunks.

A file may be larger than memory. A piece is what a file can be asked for by itself: a row group of Parquet, a record
batch of Arrow. One piece, and a chunk of rows, are in memory at a time. Files may be damaged, or made to do harm: every
batch is validated in full before it is used, what a record batch takes when it is decompressed is looked up before that
is done, and whatever pyarrow raises is refused in words. Only this file names pyarrow, an extra.

Sizes: N rows, n rows of a chunk, p columns.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from stakes._utils.text import listed
from stakes.exceptions import StakesError
from stakes.files.frame import Host, check_size, checked_names, places_of
from stakes.files.remote import AnyPath, RemotePath

_NO_FRACTION = re.compile(r"\.0+(?!\d)")  # files may keep seconds as milliseconds
_READ = 2**16  # rows that are taken out of a piece at a time, fewer where there are many columns
_CELLS = 2**22  # cells that are
_MOST = 2**31  # bytes that a record batch may take when it is decompressed
_CUT = 200  # characters of what pyarrow says
_BATCH, _DICTIONARY = 3, 2  # kinds of messages in Arrow's format
_FRAGMENT = 2**17  # rows of a fragment at least: less is not worth a task of its own on a cluster


@dataclass(frozen=True)
class Columns:
    """Columns as text, None where there is no value."""

    names: list[str]
    cells: list[list[str | None]]
    text: frozenset[str]
    """Those whose type says that they are text."""
    floating: frozenset[str]
    """Those of floating numbers."""
    dated: Mapping[str, str]
    """Those of dates ("date", "datetime") and times ("time"), which are not among the texts."""


def read_columns(path: Path, max_cells: int) -> Columns:
    """All columns of a Parquet, Arrow or Feather file of a limited size; it is read in chunks."""
    pool = open_arrow([path], share_texts=True)
    names = pool.schema.names
    refuse_types(path, pool.schema)
    shape = f" ({pool.n_rows:,} rows, {len(names):,} columns)"
    check_size(path, max_cells, pool.n_rows * len(names), shape=shape)
    characters = 0
    cells: list[list[str | None]] = [[] for _ in names]
    for batch in (batch for piece in pool.pieces for batch in piece.batches(names)):
        for place, name in enumerate(names):
            texts = texts_of(path, name, batch.column(place), len(cells[place]))
            characters += sum(len(text) for text in texts if text)
            check_size(path, max_cells, 0, characters)
            cells[place] += texts
    return _columns(pool.schema, cells)


def text_columns(path: Path, table: Any) -> Columns:
    """The columns of a table that was read from a file."""
    refuse_types(path, table.schema)
    columns = zip(table.column_names, table.columns, strict=True)
    return _columns(table.schema, [texts_of(path, name, column) for name, column in columns])


def _columns(schema: Any, cells: list[list[str | None]]) -> Columns:
    types = library().types
    kinds = {each.name: _values(each.type) for each in schema}
    dated = {name: kind for name, each in kinds.items() if (kind := _dated(each)) is not None}
    text = frozenset(name for name, each in kinds.items() if is_text(each) and name not in dated)
    floating = frozenset(name for name, each in kinds.items() if types.is_floating(each))
    return Columns(schema.names, cells, text, floating, dated)


def _dated(kind: Any) -> str | None:
    """Whether a type holds dates, moments or times of the day."""
    types = library().types
    if types.is_date(kind):
        return "date"
    return "datetime" if types.is_timestamp(kind) else "time" if types.is_time(kind) else None


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


@contextmanager
def _reading(path: AnyPath, what: str = "") -> Iterator[None]:
    """A block in which a file is read: whatever pyarrow raises is refused in words.

    Any exception: bytes that were changed reach any part of pyarrow, and it answers with what that part raises.
    """
    try:
        yield
    except StakesError:
        raise
    except FileNotFoundError as error:
        raise StakesError(f"there is no file {path}") from error
    except Exception as error:
        why = " ".join(str(error).split())
        why = f"{why[:_CUT]}..." if len(why) > _CUT else why
        short = isinstance(error, MemoryError)
        cause = "it takes more memory than there is" if short else f"it is damaged, or no {path.suffix} file"
        raise StakesError(
            f"{path}{what} cannot be read: {cause}. Save it again, or as CSV. ({type(error).__name__}: {why})"
        ) from error


def _values(kind: Any) -> Any:
    """The type of the values, of a dictionary type; others as they are."""
    return kind.value_type if library().types.is_dictionary(kind) else kind


def is_text(kind: Any) -> bool:
    """Whether a type holds texts, flags or dates, which become categories."""
    types = library().types
    strings = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    dates = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind)
    return bool(strings or types.is_boolean(kind) or dates)


def refuse_types(path: Path, schema: Any) -> None:
    """Refuse the first column of a type that is neither numbers nor text, by its name."""
    types = library().types
    for each in schema:
        kind = _values(each.type)
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind)
        if not number and not is_text(kind):
            raise StakesError(
                f"{path}: column {each.name!r} holds {each.type}, which is no number, text, flag or date. Leave the "
                "column out of the file, or spread it over columns of numbers or text."
            )


def texts_of(path: Path, name: str, column: Any, start: int = 0) -> list[str | None]:
    """The cells of a column, or of a part of it that starts at some row, as texts; equal texts are one object."""
    parts = column.chunks if hasattr(column, "chunks") else [column]
    texts: list[str | None] = []
    for part in parts:
        with _reading(path, f": column {name!r}"):
            found = _texts(part)
        for row, text in enumerate(found):
            if text and "\0" in text:
                place = start + len(texts) + row + 1
                raise StakesError(f"{path}: column {name!r} holds a NUL character at row {place}. Take it out.")
        texts += found
    return texts


def _texts(column: Any) -> list[str | None]:
    """Floating numbers with all their digits, flags as true and false, dates as ISO has them."""
    arrow, kind = library(), column.type
    if arrow.types.is_dictionary(kind):
        known = _texts(column.dictionary)
        return [None if each is None else known[each] for each in column.indices.to_pylist()]
    if not is_text(kind) or arrow.types.is_boolean(kind):
        write = _WRITTEN.get(str(kind), str)
        write = (lambda each: format(each, "f")) if arrow.types.is_decimal(kind) else write
        texts = [None if each is None else write(each) for each in column.to_pylist()]
    else:
        texts = column.cast(arrow.large_string()).to_pylist()
        if arrow.types.is_temporal(kind):
            texts = [each and _NO_FRACTION.sub("", each.replace(" ", "T")) for each in texts]
    same: dict[str, str] = {}
    return [each and same.setdefault(each, each) for each in texts]


def _float(value: float) -> str:
    return repr(float(value))


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "halffloat": _float,
    "float": _float,
    "double": _float,
    "bool": lambda value: str(value).lower(),
}


@dataclass(frozen=True)
class Piece:
    """Some rows of a file that follow each other."""

    path: AnyPath
    place: int | None
    """Which row group or record batch; None for all of a stream, which can only be read in order."""
    start: int
    """The position of its first row among those of all files."""
    count: int
    shared: frozenset[str] = frozenset()
    """Columns of Parquet that come as dictionaries."""

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns, in order, validated; an error that says which rows cannot be read."""
        rows = f", rows {self.start} to {self.start + self.count - 1}, counted from 0,"
        came = 0
        with _reading(self.path, rows):
            for batch in _batches(self, list(names)):
                batch.validate(full=True)  # else an offset that is wrong is followed, wherever it leads
                came += batch.num_rows
                yield batch
        if came != self.count:
            raise StakesError(
                f"{self.path}{rows} is damaged: it says that it holds {self.count} and holds {came} there"
            )


def as_it_is(table: Any) -> Any:
    """The table; a function by a name, which can be sent to another process."""
    return table


@dataclass(frozen=True, eq=False)
class ArrowPool:
    """N rows of p columns of Parquet or Arrow files, as tables of Arrow or as what `made` makes of those."""

    pieces: tuple[Piece, ...] = field(repr=False)
    schema: Any
    """Arrow's, of the p columns."""
    made: Callable[[Any], Any] = as_it_is

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
        order, start = np.argsort(rows, kind="stable"), self.pieces[0].start if self.pieces else 0
        found = [batch for piece in self.pieces for batch in self._found(piece, rows[order] + start)]
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

    def fragments(self) -> list[ArrowPool]:
        """The pool in parts of consecutive rows, each of which can be sent to a worker that opens its files itself."""
        parts: list[list[Piece]] = []
        enough = 0
        for piece in self.pieces:
            if enough <= 0:
                parts.append([])
                enough = _FRAGMENT
            parts[-1].append(piece)
            enough -= piece.count
        return [replace(self, pieces=tuple(part)) for part in parts]

    def select(self, names: Sequence[str]) -> ArrowPool:
        """Some columns; the others are not read."""
        return replace(self, schema=library().schema([self.schema.field(name) for name in names]))

    def _table(self, batches: list[Any]) -> Any:
        return library().Table.from_batches(batches, schema=self.schema)


Each = Callable[[Callable[[AnyPath], Any], Sequence[AnyPath]], Iterable[Any]]
"""Like `map`: what a function makes of each file, in their order, wherever that is done."""


def open_arrow(
    paths: Sequence[AnyPath], columns: Sequence[str] | None = None, *, share_texts: bool = False, each: Each = map
) -> ArrowPool:
    """The rows of some files, one file after the other: all columns, or some in the order that is asked for.

    With `share_texts`, texts of Parquet come as dictionaries, so that a long text that comes often is held once. `each`
    goes through the files, of which there may be thousands, for what they hold.
    """
    described = list(each(partial(_described, share_texts=share_texts), paths))
    first = described[0][0]
    for path, (schema, _) in zip(paths, described, strict=True):
        if not schema.equals(first):
            raise StakesError(
                f"{path} must have the columns of {paths[0]}, of the same types and in the same order; it has "
                f"{listed(f'{each.name} ({each.type})' for each in schema)}, and {paths[0].name} has "
                f"{listed(f'{each.name} ({each.type})' for each in first)}"
            )
    chosen = first.names if columns is None else list(columns)
    places = places_of(chosen, first.names)
    schema = library().schema([first.field(place) for place in places])
    types = library().types
    shared = frozenset(each.name for each in first if share_texts and types.is_dictionary(each.type))
    return ArrowPool(tuple(_all_pieces(paths, [counts for _, counts in described], shared)), schema)


def _described(path: AnyPath, share_texts: bool) -> tuple[Any, list[tuple[int | None, int]]]:
    """The columns of a file, and of each of its pieces the number and how many rows it has."""
    return _schema(path, share_texts), _counts(path)


def _all_pieces(
    paths: Sequence[AnyPath], counts: Sequence[list[tuple[int | None, int]]], shared: frozenset[str]
) -> Iterator[Piece]:
    counted = [(path, place, count) for path, pieces in zip(paths, counts, strict=True) for place, count in pieces]
    starts = accumulate((count for *_, count in counted), initial=0)
    for (path, place, count), start in zip(counted, starts, strict=False):
        yield Piece(path, place, start, count, shared)


def _counts(path: AnyPath) -> list[tuple[int | None, int]]:
    """The number of each piece of a file, and of its rows."""
    with _reading(path):
        if _is_parquet(path):
            with _opened(path) as file:
                return [(place, file.metadata.row_group(place).num_rows) for place in range(file.num_row_groups)]
        mapped = _mapped(path)
        if _in_blocks(mapped):
            dictionaries, batches = _blocks(mapped)
            for offset in dictionaries:
                _rows(path, mapped, offset)
            return [(place, _rows(path, mapped, offset)) for place, offset in enumerate(batches)]
        return [(None, sum(_rows_of_stream(path, mapped)))]


def _batches(piece: Piece, names: list[str]) -> Iterator[Any]:
    size = max(1, min(_READ, _CELLS // max(1, len(names))))
    if _is_parquet(piece.path):
        with _opened(piece.path, [name for name in names if name in piece.shared]) as file:
            batches = file.iter_batches(size, row_groups=[piece.place], columns=names)
            yield from (each.select(names) for each in batches)
        return
    with _opened(piece.path, names) as file:
        for batch in file if piece.place is None else [file.get_batch(piece.place)]:
            yield from (batch.select(names).slice(start, size) for start in range(0, batch.num_rows, size))


def _schema(path: AnyPath, share_texts: bool) -> Any:
    with _reading(path), _opened(path) as file:
        schema = (file.schema_arrow if _is_parquet(path) else file.schema).remove_metadata()
        checked_names(path, schema.names)
    if not (share_texts and _is_parquet(path)):
        return schema
    texts = [each.name for each in schema if is_text(_values(each.type))]
    with _reading(path), _opened(path, texts) as file:
        return file.schema_arrow.remove_metadata()


@contextmanager
def _opened(path: AnyPath, names: Sequence[str] = ()) -> Iterator[Any]:
    """A file of Parquet, of Arrow's format for files, or of the one for streams.

    `names` are the columns that come as dictionaries, of Parquet; those that are read at all, of Arrow (all without).
    """
    if _is_parquet(path):
        remote = isinstance(path, RemotePath)
        with closing(path.open()) if isinstance(path, RemotePath) else nullcontext(path) as source:
            file = library().parquet.ParquetFile(source, pre_buffer=remote, read_dictionary=list(names))
            with file:
                yield file
        return
    mapped = _mapped(path)
    in_blocks = _in_blocks(mapped)
    open_it = library().ipc.open_file if in_blocks else library().ipc.open_stream
    if not names:
        yield open_it(mapped)
        return
    places = {name: place for place, name in enumerate(open_it(mapped).schema.names)}
    mapped.seek(0)
    wanted = [places[name] for name in names]
    yield open_it(mapped, options=library().ipc.IpcReadOptions(included_fields=wanted))


def _mapped(path: AnyPath) -> Any:
    """A file of Arrow's as pages of memory, or as a file elsewhere."""
    if isinstance(path, RemotePath):
        return library().PythonFile(path.open(), mode="r")
    return library().memory_map(str(path))


def _is_parquet(path: AnyPath) -> bool:
    return path.suffix.lower() == ".parquet"


# Arrow's format for files is a row of messages, each a table of FlatBuffers and a body, and a footer with their places;
# the one for streams is the messages alone. A message says how many rows it holds, and before each buffer of its body
# that is compressed stands how long it will be: both are read here without decompressing anything.


def _in_blocks(mapped: Any) -> bool:
    mapped.seek(0)
    found = bool(mapped.read(6) == b"ARROW1")
    mapped.seek(0)
    return found


def _blocks(mapped: Any) -> tuple[list[int], list[int]]:
    """Where the messages of dictionaries, and those of record batches, begin."""
    mapped.seek(mapped.size() - 10)
    (length,) = struct.unpack("<i", mapped.read(4))
    mapped.seek(mapped.size() - 10 - length)
    footer = mapped.read(length)
    root = _at(footer, "I", 0)
    dictionaries, batches = (_vector(footer, root, number, 24) for number in (2, 3))
    return [_at(footer, "q", place) for place in dictionaries], [_at(footer, "q", place) for place in batches]


def _rows(path: AnyPath, mapped: Any, offset: int) -> int:
    """The number of rows of the record batch at some place; refused where it takes too much when decompressed."""
    mapped.seek(offset)
    return _checked_message(path, library().ipc.read_message(mapped))


def _rows_of_stream(path: AnyPath, mapped: Any) -> Iterator[int]:
    while True:
        try:
            message = library().ipc.read_message(mapped)
        except EOFError:
            return
        yield _checked_message(path, message)


def _checked_message(path: AnyPath, message: Any) -> int:
    """The number of rows of a message, 0 of one that is no record batch."""
    data = message.metadata.to_pybytes()
    root = _at(data, "I", 0)
    kind = _field(data, root, 1)
    header = _field(data, root, 2)
    if kind is None or header is None or data[kind] not in (_BATCH, _DICTIONARY):
        return 0
    batch = header + _at(data, "I", header)
    if data[kind] == _DICTIONARY:
        if (within := _field(data, batch, 1)) is None:
            return 0
        batch = within + _at(data, "I", within)
    if _field(data, batch, 3) is not None:
        _refuse_large(path, data, batch, message.body)
    rows = _field(data, batch, 0)
    return 0 if rows is None or data[kind] == _DICTIONARY else _at(data, "q", rows)


def _refuse_large(path: AnyPath, data: bytes, batch: int, body: Any) -> None:
    total = 0
    for place in _vector(data, batch, 2, 16):
        offset, length = _at(data, "q", place), _at(data, "q", place + 8)
        if length >= 8:
            total += max(length, _at(body.slice(offset, 8).to_pybytes(), "q", 0))
    if total > _MOST:
        raise StakesError(
            f"{path} holds a record batch that takes {total:,} bytes when it is decompressed; at most {_MOST:,} are "
            "read. Save it in smaller batches, such as of 65,536 rows."
        )


def _at(data: bytes, kind: str, place: int) -> int:
    if place < 0:
        raise ValueError("a place before the beginning of a message")
    (value,) = struct.unpack_from(f"<{kind}", data, place)
    return int(value)


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where a field of a table of FlatBuffers is; None where it has its default."""
    vtable = table - _at(data, "i", table)
    if 4 + 2 * number >= _at(data, "H", vtable):
        return None
    offset = _at(data, "H", vtable + 4 + 2 * number)
    return table + offset if offset else None


def _vector(data: bytes, table: int, number: int, size: int) -> list[int]:
    """Where the elements of a field are that is a vector of structs of some size."""
    if (place := _field(data, table, number)) is None:
        return []
    start = place + _at(data, "I", place)
    count = _at(data, "I", start)
    if start + 4 + count * size > len(data):
        raise ValueError("a list that is longer than its message")
    return [start + 4 + each * size for each in range(count)]
