"""A table as it is in a file: raw text for ids, targets and classes; columns of numbers and categories for a model.

CSV, spreadsheets, and Parquet and Arrow where pyarrow is installed. Cells stay as they are written; what a column of
them is read as (`stakes.files.cells`) is found once. A fingerprint, a few hashes, tells later whether a table is still
what it was. Sizes: N rows.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from stakes._utils.arguments import as_texts_of
from stakes._utils.text import did_you_mean, listed
from stakes.exceptions import StakesError
from stakes.files.arrow import Columns, read_columns, text_columns
from stakes.files.cells import (
    GAPS,
    PARTS,
    Formats,
    Reading,
    Ways,
    checked_formats,
    parts_of,
    sentences,
    settled,
    unit_of,
    ways_of,
)
from stakes.files.excel import EXCEL
from stakes.files.frame import (
    MAX_CELLS,
    Cells,
    Frame,
    Host,
    all_differ,
    as_numbers,
    as_texts,
    check_text,
    checked_names,
    either_way,
    is_called_id,
    not_finite,
    place_of,
    places_of,
    remarks,
)
from stakes.files.rows import TableRows, read_rows
from stakes.files.write import unescape as unescaped

ARROW = (".parquet", ".arrow", ".feather", ".ipc")
_CSV = (".csv", ".tsv", ".txt")
_PLAIN, _TEXT = Reading("number"), Reading("text")


@dataclass(frozen=True, eq=False)
class Source:
    """A table as it is in a file: named columns of text cells, which become features when asked for.

    Attributes:
        path: The file.
        names: Of the columns.
        cells: For each column N cells, None where they are empty.
        lines: [N]: the line of the file that each row begins at; None where a file has no lines.
        missing: Marks that say, among features, that a value is missing.
        text: Columns that are text, whatever their cells look like.
        floating: Columns that the file says hold floating numbers.
        dated: Columns that the file says hold dates or times, and which of them.
        formats: What decides where a cell can be read in two ways.
        delimiter: What stands between the cells of a CSV.
        sheet: Of a spreadsheet.
        index: The first column where it has no name in the file, as pandas and R write an index.
        notes: Sentences on what was taken for granted in reading.
        rows: [N]: where they are in the file, from 0, where these are some of its rows.

    Examples:
        >>> import tempfile
        >>> from stakes.files import write_csv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["id", "area"], [("a", 40), ("b", None)])
        ...     source = read_table(f"{folder}/t.csv")
        >>> source.texts("area"), source.features(["area"]).column(0).tolist(), source.place(1)
        (['40', None], [40.0, nan], 'line 3')
    """

    path: Path
    names: tuple[str, ...]
    cells: tuple[tuple[str | None, ...], ...] = field(repr=False)
    lines: tuple[int, ...] | None = field(default=None, repr=False)
    missing: frozenset[str] = frozenset()
    text: frozenset[str] = frozenset()
    floating: frozenset[str] = frozenset()
    dated: Mapping[str, str] = field(default_factory=dict)
    formats: Formats = Formats()  # noqa: RUF009 (a tuple)
    delimiter: str | None = None
    sheet: str | None = None
    index: str | None = None
    notes: tuple[str, ...] = ()
    rows: tuple[int, ...] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.cells[0])

    def texts(self, name: str) -> list[str | None]:
        """The cells of a column as they are in the file.

        Args:
            name: The column.

        Returns:
            N texts, None where a cell is empty.

        Raises:
            StakesError: If there is no such column.
        """
        return list(self.cells[place_of(name, self.names)])

    def line(self, row: int) -> int | None:
        """The line of the file at which a row begins.

        Args:
            row: Its position, from 0.

        Returns:
            The number of the line, None where the file has no lines.
        """
        return None if self.lines is None else self.lines[row]

    def place(self, row: int) -> str:
        """Where a row is, for a message.

        Args:
            row: Its position, from 0.

        Returns:
            Its line, or its number from 1.
        """
        if self.lines is None:
            return f"row {self.number(row)}"
        return f"line {self.lines[row]}" if self.sheet is None else f"row {self.lines[row]} of sheet {self.sheet!r}"

    def number(self, row: int) -> int:
        """The number of a row in the file.

        Args:
            row: Its position here, from 0.

        Returns:
            The number, from 1.
        """
        return row + 1 if self.rows is None else self.rows[row] + 1

    def features(self, names: Iterable[str] | None = None) -> Frame:
        """Columns as a model takes them: each numbers throughout, or text throughout; dates by their parts.

        Args:
            names: Those wanted, in the order wanted; all without.

        Returns:
            A frame of them.

        Raises:
            StakesError: If a column holds both numbers and text, a number that is not finite, or cells that can be read
                in two ways.
        """
        chosen = self.names if names is None else as_texts_of("names", names)
        places_of(chosen, self.names)
        arrays: dict[str, Host] = {}
        bad: dict[str, list[int]] = {}
        for name in chosen:
            made = self._arrays(name)
            arrays |= made
            reading = self.reading(name)
            if reading.kind == "number" and (rows := self._not_finite(name, made[name], reading)):
                bad[name] = rows
        self._refuse_not_finite(bad)
        return Frame(tuple(arrays), tuple(arrays.values()), len(self))

    def reading(self, name: str) -> Reading:
        """How the cells of a column are read.

        Args:
            name: The column.

        Returns:
            What its cells are.

        Raises:
            StakesError: If they can be read in two ways, and nothing tells which; or there is no such column.
        """
        if name not in self._readings:
            self._readings[name] = self._read(name)
        return self._readings[name]

    def numbers(self, name: str) -> list[str | None]:
        """The cells of a column as numbers that `float` takes.

        Args:
            name: The column.

        Returns:
            N texts, None where there is a gap; a cell that is no number as it is.

        Raises:
            StakesError: If they can be read in two ways, and nothing tells which; or there is no such column.
        """
        reading, cells = self.reading(name), self._marked(name)
        values = (reading.values or {}) if reading.kind == "number" else {}
        return [None if cell is None or cell in reading.gaps else values.get(cell, cell.strip()) for cell in cells]

    def unit(self, name: str) -> str:
        """What stands beside the numbers of a column.

        Args:
            name: The column.

        Returns:
            "%", the sign of a currency, or "" where nothing does.

        Raises:
            StakesError: If they can be read in two ways, and nothing tells which; or there is no such column.
        """
        reading = self.reading(name)
        cells = reading.values if reading.kind == "number" else None
        return next(filter(None, map(unit_of, cells or ())), "")

    def sentences(self, names: Iterable[str]) -> tuple[str, ...]:
        """How some columns are read, where that is not plain.

        Args:
            names: The columns.

        Returns:
            A sentence for those that are read alike.
        """
        odd = {name: reading for name in names if (reading := self.reading(name)) not in (_PLAIN, _TEXT)}
        return tuple(sentences(odd)) if odd else ()

    @property
    def decimal(self) -> str | None:
        """The sign before decimals that all numbers with one have; None where there is none, or there are two."""
        signs = self._settled_ways() & {".", ","}
        return signs.pop() if len(signs) == 1 else None

    def remarks(self, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Sentences on columns that are likely not meant as features: texts that all differ, and numbers with units.

        Args:
            names: The columns that are features; all without.

        Returns:
            A sentence for each such column.
        """
        chosen = self.names if names is None else as_texts_of("names", names)
        texts = {name: self._marked(name) for name in chosen if self.reading(name).kind == "text"}
        found = {name: remarks(name, cells) for name, cells in texts.items()}
        names_only = [name for name, cells in texts.items() if not found[name] and all_differ(cells)]
        return (*(sentence for each in found.values() for sentence in each), *_names_sentence(names_only))

    def likely_ids(self, names: Iterable[str]) -> list[str]:
        """The columns that could be the id: texts or whole numbers, none empty and none twice.

        Args:
            names: The columns to look at.

        Returns:
            Those that are called as ids are, and then, where there are ten rows or more, other texts.
        """
        apart = [name for name in names if self.tells_apart(name)]
        texts = [name for name in apart if self.reading(name).kind == "text" and all_differ(self._marked(name))]
        return list(dict.fromkeys([*filter(is_called_id, apart), *texts]))

    def tells_apart(self, name: str) -> bool:
        """Whether a column could be the id: texts or whole numbers, none empty and none twice.

        Args:
            name: The column.

        Returns:
            True where it could.
        """
        cells = [None if cell is None else cell.strip() for cell in self._marked(name)]
        if None in cells or len(set(cells)) < len(cells) or len(cells) < 2:
            return False
        kind = self.reading(name).kind
        return kind == "text" or (kind == "number" and all(str(cell).isdigit() for cell in cells))

    @cached_property
    def _readings(self) -> dict[str, Reading]:
        """Columns that were read."""
        return {}

    @cached_property
    def _columns(self) -> dict[str, tuple[Host | None, Ways | None]]:
        """Columns that were looked at: as numbers that `float` takes, and all ways in which they can be read."""
        return {}

    def _looked_at(self, name: str) -> tuple[Host | None, Ways | None]:
        if name not in self._columns:
            cells = self._marked(name)
            values = as_numbers(cells)
            look = values is None or (self.lines is not None and either_way(cells))  # else types tell
            self._columns[name] = values, ways_of({cell for cell in cells if cell is not None}) if look else None
        return self._columns[name]

    def _read(self, name: str) -> Reading:
        if name in self.dated:
            kind = self.dated[name]
            ways = ways_of({cell for cell in self._marked(name) if cell is not None})
            return Reading(kind, next(iter(ways.values.values())) if ways else {})  # type: ignore[arg-type]
        if name in self.text:
            return _TEXT
        values, ways = self._looked_at(name)
        nans = frozenset() if values is None else self._nans(name, values)
        if ways is None:
            gaps = self._all_gaps(name) if values is None else nans
            return Reading("number" if values is not None or gaps else "text", None, gaps)
        try:
            way, why = settled(name, ways, self.formats, self.delimiter, lambda: self._settled_ways(name))
        except StakesError as error:
            raise StakesError(f"{self.path}: {error}") from None
        return Reading(ways.kind, ways.values[way], ways.gaps | nans, why)

    def _settled_ways(self, but: str = "") -> set[str]:
        """Signs before decimals, and orders of dates, that columns tell by themselves."""
        found: set[str] = set()
        for name in self.names:
            if name == but or name in self.text or name in self.dated:
                continue
            values, ways = self._looked_at(name)
            if ways is None and values is not None and either_way(self._marked(name)) is False:
                found.add(".")
            elif ways is not None and len(ways.values) == 1 and ways.kind in ("number", "date", "datetime"):
                way, cells = next(iter(ways.values.items()))
                signed = ways.kind != "number" or any("." in cell or "," in cell for cell in cells)
                found |= {way} if signed else set()
        return found

    def _nans(self, name: str, values: Host) -> frozenset[str]:
        """Cells that say NaN."""
        cells = self._marked(name)
        odd = {cells[row] for row in not_finite(cells, values)}
        return frozenset(cell for cell in odd if cell is not None and cell.strip().lower() in GAPS)

    def _all_gaps(self, name: str) -> frozenset[str]:
        """The cells of a column that holds nothing but marks for gaps."""
        known = frozenset(cell for cell in self._marked(name) if cell is not None)
        return known if all(cell.strip().lower() in GAPS for cell in known) else frozenset()

    def _arrays(self, name: str) -> dict[str, Host]:
        """A column as a model takes it: one array, or one for each part."""
        reading, cells = self.reading(name), self._marked(name)
        if reading.kind == "text":
            return {name: self._as_text(name, cells)}
        if reading.kind == "number" and reading.values is None:
            values = None if reading.gaps and self._looked_at(name)[0] is None else self._looked_at(name)[0]
            return {name: np.full(len(self), np.nan) if values is None else values}
        known = reading.values or {}
        if reading.kind in PARTS:
            moments = [None if cell is None else known.get(cell) for cell in cells]
            parts = parts_of(reading.kind, moments).items()
            return {f"{name} ({part})": np.asarray(each, dtype=float) for part, each in parts}
        nan = float("nan")
        found = [nan if cell is None else float(known.get(cell, nan)) for cell in cells]
        return {f"{name} (hours)" if reading.kind == "time" else name: np.asarray(found, dtype=float)}

    def _as_text(self, name: str, cells: Cells) -> Host:
        if name not in self.text:
            try:
                check_text(name, cells, self.place)
            except StakesError as error:
                raise StakesError(f"{self.path}: {error}") from None
        return as_texts(cells)

    def _not_finite(self, name: str, values: Host, reading: Reading) -> list[int]:
        cells = self._marked(name)
        return [row for row in not_finite(cells, values) if cells[row] not in reading.gaps]

    def _marked(self, name: str) -> Cells:
        """The cells of a column, with gaps in place of the marks that stand for them."""
        cells = self.cells[self._places[name]] if name in self._places else self.cells[place_of(name, self.names)]
        if not self.missing:
            return cells
        return [None if cell in self.missing else cell for cell in cells]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def _refuse_not_finite(self, bad: dict[str, list[int]]) -> None:
        if not bad:
            return
        first = self.place(min(min(rows) for rows in bad.values()))
        counts = listed(f"{name} ({len(rows)})" for name, rows in bad.items())
        raise StakesError(
            f"{self.path}: NaN or infinite values in {len(bad)} column{'s' * (len(bad) > 1)}: {counts}; first at "
            f'{first}. Leave cells empty where values are missing, or name the mark: missing=("nan",) (--missing nan).'
        )


def _names_sentence(names: list[str]) -> tuple[str, ...]:
    """What to do with columns of names or free text."""
    if not names:
        return ()
    flags = " ".join(f"--ignore {quote(name)}" for name in names)
    one = len(names) == 1
    return (
        f"Column{'' if one else 's'} {listed(map(repr, names))} {'has' if one else 'have'} a different text in nearly "
        f"every row: likely names or free text, which tell a model nothing. Leave {'it' if one else 'them'} out "
        f"({flags}), or make {'it' if one else 'one'} the id (--id {quote(names[0])}).",
    )


def row_ids(source: Source, column: str | None = None) -> tuple[str, ...]:
    """The ids of rows: the texts of a column, none empty and none twice; without a column, numbers from 1.

    Args:
        source: The table.
        column: The column of ids.

    Returns:
        N texts.

    Raises:
        StakesError: If an id is missing, or stands at two rows.

    Examples:
        >>> row_ids(Source(Path("t.csv"), ("id",), (("a", "b"),)), "id")
        ('a', 'b')
    """
    if column is None:
        return tuple(str(source.number(row)) for row in range(len(source)))
    texts = source.texts(column)
    names = [_whole(source, column, row, text) for row, text in enumerate(_known(source, column, texts))]
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if (before := first.setdefault(name, row)) != row:
            raise StakesError(
                f"{source.path}: the id {name!r} stands at {source.place(before)} and at {source.place(row)} of column "
                f"{column!r}; ids must tell rows apart. Change one, or give another column."
            )
    return tuple(names)


def _known(source: Source, column: str, texts: list[str | None]) -> list[str]:
    if None in texts:
        raise StakesError(
            f"{source.path}: the id at {source.place(texts.index(None))}, column {column!r}, is empty; every row needs "
            "one. Fill it in, or give another column."
        )
    return [text for text in texts if text is not None]


def _whole(source: Source, column: str, row: int, text: str) -> str:
    """An id of floating numbers without its .0: whole numbers with gaps are saved so by many tools."""
    if column not in source.floating:
        return text
    number = float(text)
    if not number.is_integer():
        raise StakesError(
            f"{source.path}: ids must be text or whole numbers; column {column!r} holds {text} at "
            f"{source.place(row)}. Give another column, or save this one as text."
        )
    return str(int(number))


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    missing: Sequence[str] = (),
    text: Sequence[str] = (),
    decimal: str | None = None,
    thousands: str | None = None,
    date: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    having: str | None = None,
    unescape: bool = False,
    max_cells: int = MAX_CELLS,
) -> Source:
    """Read the table in a file: CSV, a spreadsheet, Parquet or Arrow.

    Args:
        path: The file: .csv, .tsv, .txt, .xlsx, .xlsm, .xlsb, .xls, .ods, .parquet, .arrow, .feather or .ipc.
        delimiter: What stands between the cells of a CSV; found in its lines without.
        missing: Marks such as "NA" that stand for gaps.
        text: Columns that are text although their cells are numbers.
        decimal: The sign before decimals, "." or ",", where a number can be read both ways.
        thousands: The sign between thousands, where it can be read in two ways.
        date: The order in dates of digits, "dmy", "mdy" or "ymd", where they can be read in several.
        encoding: Of a CSV; found in its bytes without.
        sheet: Of a spreadsheet; without, the one with the target, or with the most cells.
        having: A column that tells which sheet is meant, where no sheet is named.
        unescape: Whether to take back what `write_csv` did to cells that a spreadsheet would run.
        max_cells: How large the table may be, in rows times columns, and in characters 50 times that.

    Returns:
        The table, with its cells as they are in the file.

    Raises:
        StakesError: If the file cannot be read, or is larger than that; the message names the line.

    Examples:
        >>> import tempfile
        >>> from stakes.files import write_csv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["id", "area"], [("a", "1.040,5")])
        ...     source = read_table(f"{folder}/t.csv")
        >>> source.names, source.texts("area"), source.numbers("area")
        (('id', 'area'), ['1.040,5'], ['1040.5'])
    """
    where, formats = checked_path(path), _formats(decimal, thousands, date)
    try:
        if is_arrow(where):
            table = _from_arrow(where, read_columns(where, max_cells))
        else:
            found = read_rows(
                where,
                delimiter=delimiter,
                encoding=encoding,
                sheet=sheet,
                having=having,
                max_cells=max_cells,
                keep_blank=unescape,
            )
            table = _from_rows(where, found, unescape and found.sheet is None)
    except OSError as error:
        raise StakesError(f"{where} cannot be read: {error.strerror or error}") from error
    return replace(_with_marks(table, missing, text), formats=formats)


def _formats(*given: str | None) -> Formats:
    return checked_formats(*given) if any(each is not None for each in given) else Formats()


def some_rows(
    path: Path, table: Any, rows: Sequence[int], *, missing: Sequence[str] = (), text: Sequence[str] = ()
) -> Source:
    """What `read_table` would say of some rows of an Arrow file, given as a table of Arrow and by position."""
    source = _with_marks(_from_arrow(path, text_columns(path, table)), missing, text)
    return replace(source, rows=tuple(rows))


def is_arrow(path: Path) -> bool:
    """Whether a file is Parquet or Arrow, by its name."""
    return path.suffix.lower() in ARROW


def _with_marks(table: Source, missing: Sequence[str], text: Sequence[str]) -> Source:
    """The table with marks for gaps, and columns that are text whatever they look like."""
    marks, texts = frozenset(as_texts_of("missing", missing)), frozenset(as_texts_of("text", text))
    for name in texts:
        place_of(name, table.names)
    dated = {name: kind for name, kind in table.dated.items() if name not in texts}
    return replace(table, missing=marks, text=table.text | texts, dated=dated)


def checked_path(path: str | os.PathLike[str]) -> Path:
    """A path at which there is a file of a kind that can be read."""
    where = Path(path)
    if where.is_dir():
        raise StakesError(f"{where} is a folder; give a file in it, such as {where / 'table.csv'}")
    if where.suffix.lower() not in _CSV + EXCEL + ARROW:
        raise StakesError(
            f"{where} must be a file that ends in {', '.join(_CSV + EXCEL + ARROW)}; it ends in {where.suffix!r}. "
            "Save it as CSV UTF-8."
        )
    if not where.exists():
        beside = sorted(each.name for each in where.parent.glob("*.*")) if where.parent.is_dir() else []
        raise StakesError(f"there is no file {where}.{did_you_mean(where.name, beside)}")
    if not where.is_file():
        raise StakesError(f"{where} is a pipe or a device, which may never end; give a file, such as a copy of it")
    return where


def _from_rows(path: Path, found: TableRows, unescape: bool) -> Source:
    header, rows, lines = found.header, found.rows, found.lines
    columns: list[tuple[str, ...]] = list(zip(*rows, strict=True)) or [()] * len(header)
    if unescape:
        header, columns = [unescaped(name) for name in header], [tuple(map(unescaped, cells)) for cells in columns]
    names = checked_names(path, header)
    blank = [line for row, line in zip(rows, lines, strict=True) if not any(map(str.strip, row))]
    return Source(
        path,
        names,
        tuple(map(_with_gaps, columns)),
        lines,
        notes=(*found.notes, *_blank_sentence(blank)),
        delimiter=found.delimiter,
        sheet=found.sheet,
        index=found.unnamed,
    )


def _from_arrow(path: Path, columns: Columns) -> Source:
    names = checked_names(path, columns.names)
    called = dict(zip(columns.names, names, strict=True))
    text, floating = (frozenset(called[name] for name in some) for some in (columns.text, columns.floating))
    dated = {called[name]: kind for name, kind in columns.dated.items()}
    cells = tuple(map(_with_gaps, columns.cells))
    return Source(path, names, cells, text=text, floating=floating, dated=dated)


def _with_gaps(cells: Iterable[str | None]) -> tuple[str | None, ...]:
    """A cell of nothing but spaces is empty."""
    return tuple(cell if cell and not cell.isspace() else None for cell in cells)


def _blank_sentence(lines: list[int]) -> tuple[str, ...]:
    if not lines:
        return ()
    rows = "row has" if len(lines) == 1 else "rows have"
    return (f"{len(lines)} {rows} no value in any column, the first at line {lines[0]}; all are kept.",)


class Fingerprint(NamedTuple):
    """What a table was when it was read.

    Attributes:
        rows: The number of rows.
        columns: For each column a hash of its name and cells.

    Examples:
        >>> old = fingerprint(Source(Path("t.csv"), ("a", "b"), (("1",), ("2",))))
        >>> new = fingerprint(Source(Path("t.csv"), ("a", "b"), (("1",), ("3",))))
        >>> Fingerprint.from_dict(old.to_dict()) == old, changes(old, new)
        (True, ["column 'b' changed"])
    """

    rows: int
    columns: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """All fields, as JSON keeps them."""
        return {"rows": self.rows, "columns": dict(self.columns)}

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Fingerprint:
        """From JSON.

        Args:
            kept: What `to_dict` gave.

        Returns:
            The fingerprint.

        Raises:
            StakesError: If it is something else.
        """
        try:
            return Fingerprint(int(kept["rows"]), {str(name): str(each) for name, each in kept["columns"].items()})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StakesError(
                f'a fingerprint must be {{"rows": n, "columns": {{name: hash}}}}; got {kept!r}'
            ) from error


def fingerprint(source: Source) -> Fingerprint:
    """Hashes that are the same for the same cells, whatever the line ends, the byte order mark or the kind of file.

    Args:
        source: The table.

    Returns:
        Its fingerprint.

    Examples:
        >>> fingerprint(Source(Path("t.csv"), ("a",), (("1", "2"),))).rows
        2
    """
    return Fingerprint(len(source), {name: _hash(name, source.texts(name)) for name in source.names})


def changes(old: Fingerprint, new: Fingerprint) -> list[str]:
    """What is no longer as it was; the order of columns does not count.

    Args:
        old: The fingerprint of the table as it was.
        new: That of the table as it is.

    Returns:
        A sentence for each difference; none where there is none.

    Examples:
        >>> changes(Fingerprint(2, {"a": "1"}), Fingerprint(3, {"a": "2"}))
        ['1 row was added']
    """
    found = _row_changes(new.rows - old.rows)
    if gone := [name for name in old.columns if name not in new.columns]:
        found.append(f"columns missing: {listed(gone)}")
    if added := [name for name in new.columns if name not in old.columns]:
        found.append(f"columns added: {listed(added)}")
    if new.rows == old.rows:  # else every column has changed
        both = [name for name in old.columns if name in new.columns]
        found += [f"column {name!r} changed" for name in both if old.columns[name] != new.columns[name]]
    return found


def _row_changes(more: int) -> list[str]:
    if more == 0:
        return []
    rows = "1 row was" if abs(more) == 1 else f"{abs(more)} rows were"
    return [f"{rows} {'added' if more > 0 else 'removed'}"]


def _hash(name: str, cells: list[str | None]) -> str:
    """Cells hold no NUL, so it tells them apart; line breaks within cells count as one whatever they are."""
    text = "\0".join([name, *(cell or "" for cell in cells)])
    return hashlib.sha256(text.replace("\r\n", "\n").replace("\r", "\n").encode()).hexdigest()
