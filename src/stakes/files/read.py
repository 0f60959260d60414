"""A table as it is in a file: raw text for ids, targets and classes; columns of numbers and categories for a model.

CSV is read by the standard library's reader in strict mode (UTF-8 with or without a byte order mark, any line ends),
Parquet and Arrow by pyarrow where it is installed. A fingerprint, a few hashes, tells later whether a table is still
what it was. Sizes: N rows.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from stakes._utils.arguments import as_texts_of
from stakes._utils.text import did_you_mean, listed
from stakes.exceptions import StakesError
from stakes.files.arrow import Columns, read_columns, text_columns
from stakes.files.frame import (
    MAX_CELLS,
    Cells,
    Frame,
    Host,
    as_numbers,
    as_texts,
    check_size,
    check_text,
    checked_names,
    not_finite,
    place_of,
    places_of,
    remarks,
)
from stakes.files.write import unescape as unescaped

ARROW = (".parquet", ".arrow", ".feather", ".ipc")
_CSV = (".csv", ".tsv", ".txt")
_MARK = b"\xef\xbb\xbf"  # what Excel puts before UTF-8
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_HEAD = 100_000  # characters among which the header ends
_CALLED = {",": "commas", ";": "semicolons", "\t": "tabs"}


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
        return f"row {self.number(row)}" if self.lines is None else f"line {self.lines[row]}"

    def number(self, row: int) -> int:
        """The number of a row in the file.

        Args:
            row: Its position here, from 0.

        Returns:
            The number, from 1.
        """
        return row + 1 if self.rows is None else self.rows[row] + 1

    def features(self, names: Iterable[str] | None = None) -> Frame:
        """Columns as a model takes them: each numbers throughout, or text throughout.

        Args:
            names: Those wanted, in the order wanted; all without.

        Returns:
            A frame of them.

        Raises:
            StakesError: If a column holds both numbers and text, or a number that is not finite.
        """
        chosen = self.names if names is None else as_texts_of("names", names)
        cells = self._without_marks(chosen)
        arrays = {name: self._typed(name, each) for name, each in cells.items()}
        bad = {name: not_finite(cells[name], values) for name, values in arrays.items() if values.dtype.kind == "f"}
        self._refuse_not_finite({name: rows for name, rows in bad.items() if rows})
        return Frame(chosen, tuple(arrays[name] for name in chosen), len(self))

    def remarks(self, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Sentences on columns that are likely not meant as features: dates, and texts that all differ.

        Args:
            names: The columns that are features; all without.

        Returns:
            A sentence for each such column.
        """
        chosen = self.names if names is None else as_texts_of("names", names)
        cells = self._without_marks(chosen)
        texts = {name: each for name, each in cells.items() if self._typed(name, each).dtype.kind == "O"}
        return tuple(sentence for name, each in texts.items() for sentence in remarks(name, each))

    def _without_marks(self, names: Sequence[str]) -> dict[str, Cells]:
        """Columns by name, with gaps in place of the marks that stand for them."""
        chosen = {name: self.cells[place] for name, place in zip(names, places_of(names, self.names), strict=True)}
        if not self.missing:
            return dict(chosen)
        return {name: [None if cell in self.missing else cell for cell in cells] for name, cells in chosen.items()}

    def _typed(self, name: str, cells: Cells) -> Host:
        if name in self.text:
            return as_texts(cells)
        values = as_numbers(cells)
        if values is not None:
            return values
        try:
            check_text(name, cells, self.place)
        except StakesError as error:
            raise StakesError(f"{self.path}: {error}") from None
        return as_texts(cells)

    def _refuse_not_finite(self, bad: dict[str, list[int]]) -> None:
        if not bad:
            return
        first = self.place(min(min(rows) for rows in bad.values()))
        counts = listed(f"{name} ({len(rows)})" for name, rows in bad.items())
        raise StakesError(
            f"{self.path}: NaN or infinite values in {len(bad)} column{'s' * (len(bad) > 1)}: {counts}; first at "
            f'{first}. Leave cells empty where values are missing, or name the mark: missing=("nan",) (--missing nan).'
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


def read_rows(
    path: Path, delimiter: str | None = None, max_cells: int = MAX_CELLS
) -> tuple[list[str], list[list[str]], tuple[int, ...], tuple[str, ...]]:
    """The header of a CSV file, its rows, the line each begins at, and sentences on what was taken for granted."""
    check_size(path, max_cells, 0, path.stat().st_size)
    text = _decoded(path, path.read_bytes())
    if not text.strip():
        raise StakesError(f"{path} is empty; a line of column names was expected, then a line for each row")
    chosen, notes = _delimiter(path, text, delimiter)
    rows, lines = _parsed(path, text, chosen, max_cells)
    while len(rows[-1]) < len(rows[0]) and not "".join(rows[-1]).strip():
        rows.pop()  # blank lines at the end
    _check_lengths(path, rows, lines, chosen)
    return rows[0], rows[1:], tuple(lines[1 : len(rows)]), notes


def _decoded(path: Path, data: bytes) -> str:
    data = data.removeprefix(_MARK)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StakesError(
            f"{path} is not UTF-8: line {_line(data, error.start)} holds the byte 0x{data[error.start]:02x} where no "
            "character begins or goes on so. Save it as UTF-8 (in Excel: CSV UTF-8)."
        ) from error
    if (place := data.find(b"\0")) >= 0:
        raise StakesError(
            f"{path} holds a NUL byte at line {_line(data, place)}: it is no text, or text in UTF-16. Save it as UTF-8 "
            "(in Excel: CSV UTF-8)."
        )
    return text


def _line(data: bytes, place: int) -> int:
    return data.count(b"\n", 0, place) + 1


def _delimiter(path: Path, text: str, given: str | None) -> tuple[str, tuple[str, ...]]:
    """What stands between cells, and a sentence where that was found out rather than given."""
    if given is not None:
        if len(given) != 1 or given in '"\r\n':
            raise StakesError(f"the delimiter must be one character, such as ';' or a tab; got {given!r}")
        return given, ()
    if path.suffix.lower() == ".tsv":
        return "\t", ()
    if text.startswith("sep="):
        note = text.splitlines()[0]
        raise StakesError(
            f"{path}: line 1, {note!r}, is a note to Excel. Take it out, and give delimiter={note[4:]!r}."
        )
    header = re.split(r"[\r\n]", _QUOTED.sub("", text[:_HEAD]), maxsplit=1)[0]
    found = "," if "," in header else max(";\t", key=header.count)
    if found not in header or found == ",":
        return ",", ()
    return found, (f"The first line has no comma, so {_CALLED[found]} are taken to stand between cells.",)


def _parsed(path: Path, text: str, delimiter: str, max_cells: int) -> tuple[list[list[str]], list[int]]:
    """Rows, and the line at which each begins (quoted cells may hold line breaks)."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines, last, cells = [], 0, 0
    try:
        for row in reader:
            cells += len(row) if rows else 0  # those of the header do not count
            check_size(path, max_cells, cells)
            rows.append(row)
            lines.append(last + 1)
            last = reader.line_num
    except csv.Error as error:
        raise StakesError(_quote_sentence(path, last + 1, reader.line_num, str(error))) from error
    return rows, lines


def _quote_sentence(path: Path, begin: int, end: int, why: str) -> str:
    if "end of data" in why:
        return f"{path}: a quote that opens in the row at line {begin} is never closed. Close it, or double it."
    if "field limit" in why:
        limit = csv.field_size_limit()
        return (
            f"{path}: a cell in the row at line {begin} has more than {limit} characters: most likely a quote opens "
            "there that is never closed. Close it, or double it."
        )
    return (
        f"{path}: text follows a closing quote at line {end} ({why}). Within a quoted cell, write a quote twice: "
        '"5"" pipe".'
    )


def _check_lengths(path: Path, rows: list[list[str]], lines: list[int], delimiter: str) -> None:
    wanted = len(rows[0])
    if wanted == 0:
        raise StakesError(f"{path}: line 1 is blank; it must hold the names of the columns")
    for row, line in zip(rows, lines, strict=False):
        if len(row) != wanted:
            got = f"has {len(row)} cell{'s' * (len(row) != 1)}" if row else "is blank"
            raise StakesError(
                f"{path}: line {line} {got}, the header has {wanted}. Put a cell that holds {delimiter!r} in quotes; "
                "leave cells empty rather than out."
            )


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    missing: Sequence[str] = (),
    text: Sequence[str] = (),
    unescape: bool = False,
    max_cells: int = MAX_CELLS,
) -> Source:
    """Read the table in a file: .csv, .tsv, .txt, .parquet, .arrow, .feather or .ipc.

    Args:
        path: The file.
        delimiter: What stands between the cells of a CSV; found in its first line without.
        missing: Marks such as "NA" that stand for gaps among features.
        text: Columns that are text although their cells are numbers.
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
        ...     write_csv(f"{folder}/t.csv", ["id", "area"], [("a", 40)])
        ...     source = read_table(f"{folder}/t.csv")
        >>> source.names, len(source)
        (('id', 'area'), 1)
    """
    where = checked_path(path)
    try:
        if is_arrow(where):
            table = _from_arrow(where, read_columns(where, max_cells))
        else:
            table = _read_csv(where, delimiter, unescape, max_cells)
    except OSError as error:
        raise StakesError(f"{where} cannot be read: {error.strerror or error}") from error
    return _with_marks(table, missing, text)


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
    return replace(table, missing=marks, text=table.text | texts)


def checked_path(path: str | os.PathLike[str]) -> Path:
    """A path at which there is a file of a kind that can be read."""
    where = Path(path)
    if where.is_dir():
        raise StakesError(f"{where} is a folder; give a file in it, such as {where / 'table.csv'}")
    if where.suffix.lower() not in _CSV + ARROW:
        raise StakesError(
            f"{where} must be a file that ends in {', '.join(_CSV + ARROW)}; it ends in {where.suffix!r}. Save a "
            "spreadsheet as CSV UTF-8."
        )
    if not where.exists():
        beside = sorted(each.name for each in where.parent.glob("*.*")) if where.parent.is_dir() else []
        raise StakesError(f"there is no file {where}.{did_you_mean(where.name, beside)}")
    if not where.is_file():
        raise StakesError(f"{where} is a pipe or a device, which may never end; give a file, such as a copy of it")
    return where


def _read_csv(path: Path, delimiter: str | None, unescape: bool, max_cells: int) -> Source:
    header, rows, lines, notes = read_rows(path, delimiter, max_cells)
    columns: list[tuple[str, ...]] = list(zip(*rows, strict=True)) or [()] * len(header)
    if unescape:
        header, columns = [unescaped(name) for name in header], [tuple(map(unescaped, cells)) for cells in columns]
    names = checked_names(path, header)
    blank = [line for row, line in zip(rows, lines, strict=True) if not any(map(str.strip, row))]
    return Source(path, names, tuple(map(_with_gaps, columns)), lines, notes=(*notes, *_blank_sentence(blank)))


def _from_arrow(path: Path, columns: Columns) -> Source:
    names = checked_names(path, columns.names)
    called = dict(zip(columns.names, names, strict=True))
    text, floating = (frozenset(called[name] for name in some) for some in (columns.text, columns.floating))
    return Source(path, names, tuple(map(_with_gaps, columns.cells)), text=text, floating=floating)


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
