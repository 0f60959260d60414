"""One call from a path to a table: CSV by the standard library, Parquet and Arrow by pyarrow where it is installed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stakes.files.arrow_cells import Columns, columns_of, read_columns
from stakes.files.csv_cells import read_rows
from stakes.files.errors import TableError, did_you_mean, listed
from stakes.files.frame import place_of
from stakes.files.safe_cells import unescape as unescaped
from stakes.files.source import Source

_CSV = (".csv", ".tsv", ".txt")
ARROW = (".parquet", ".arrow", ".feather", ".ipc")


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    missing: Sequence[str] = (),
    text: Sequence[str] = (),
    unescape: bool = False,
) -> Source:
    """The table in a file: .csv, .tsv, .txt, .parquet, .arrow, .feather or .ipc.

    `missing` are marks such as "NA" that stand for gaps among features; `text` are columns that are text although
    their cells are numbers; `unescape` takes back what `write_csv` did to cells that a spreadsheet would run.
    """
    where = checked_path(path)
    try:
        table = _from_arrow(where, read_columns(where)) if is_arrow(where) else _read_csv(where, delimiter, unescape)
    except OSError as error:
        raise TableError(f"{where} cannot be read: {error.strerror or error}") from error
    return _with_words(table, missing, text)


def some_rows(
    path: Path, table: Any, rows: Sequence[int], *, missing: Sequence[str] = (), text: Sequence[str] = ()
) -> Source:
    """What `read_table` would say of some rows of an Arrow file, given as a table of Arrow and by position."""
    source = _with_words(_from_arrow(path, columns_of(path, table)), missing, text)
    return replace(source, rows=tuple(rows))


def is_arrow(path: Path) -> bool:
    """Whether a file is Parquet or Arrow, by its name."""
    return path.suffix.lower() in ARROW


def _with_words(table: Source, missing: Sequence[str], text: Sequence[str]) -> Source:
    """The table with marks for gaps, and columns that are text whatever they look like."""
    marks, texts = _words("missing", missing), _words("text", text)
    for name in texts:
        place_of(name, table.names)
    return replace(table, missing=marks, text=table.text | texts)


def checked_path(path: str | os.PathLike[str]) -> Path:
    """A path at which there is a file of a kind that can be read."""
    where = Path(path)
    if where.is_dir():
        raise TableError(f"{where} is a folder; give a file in it, such as {where / 'table.csv'}")
    if where.suffix.lower() not in _CSV + ARROW:
        raise TableError(
            f"{where} must be a file that ends in {', '.join(_CSV + ARROW)}; it ends in {where.suffix!r}. Save a "
            "spreadsheet as CSV UTF-8."
        )
    if not where.exists():
        beside = sorted(each.name for each in where.parent.glob("*.*")) if where.parent.is_dir() else []
        raise TableError(f"there is no file {where}.{did_you_mean(where.name, beside)}")
    return where


def _read_csv(path: Path, delimiter: str | None, unescape: bool) -> Source:
    read = read_rows(path, delimiter)
    columns: list[tuple[str, ...]] = list(zip(*read.rows, strict=True)) or [()] * len(read.header)
    header = read.header
    if unescape:
        header, columns = [unescaped(name) for name in header], [tuple(map(unescaped, cells)) for cells in columns]
    names = _checked_names(path, header)
    blank = [line for row, line in zip(read.rows, read.lines, strict=True) if not any(map(str.strip, row))]
    said = (*read.said, *_blank_words(blank))
    return Source(path, names, tuple(map(_with_gaps, columns)), read.lines, said=said)


def _from_arrow(path: Path, columns: Columns) -> Source:
    names = _checked_names(path, columns.names)
    called = dict(zip(columns.names, names, strict=True))
    text, floating = (frozenset(called[name] for name in some) for some in (columns.text, columns.floating))
    return Source(path, names, tuple(map(_with_gaps, columns.cells)), text=text, floating=floating)


def _with_gaps(cells: Iterable[str | None]) -> tuple[str | None, ...]:
    """A cell of nothing but spaces is empty."""
    return tuple(cell if cell and not cell.isspace() else None for cell in cells)


def _checked_names(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Names without spaces around them, none empty, none twice."""
    stripped = tuple(name.strip() for name in names)
    if not stripped:
        raise TableError(f"{path} has no columns")
    if "" in stripped:
        raise TableError(
            f"{path}: column {stripped.index('') + 1} has no name. Give it one; pandas leaves it out for the index, "
            "unless it is saved with index=False."
        )
    if twice := [name for place, name in enumerate(stripped) if name in stripped[:place]]:
        places = [str(place + 1) for place, name in enumerate(stripped) if name == twice[0]]
        raise TableError(
            f"{path}: {twice[0]!r} names {len(places)} columns, {listed(places)}. Give each a name of its own."
        )
    return stripped


def _blank_words(lines: list[int]) -> tuple[str, ...]:
    if not lines:
        return ()
    rows = "row has" if len(lines) == 1 else "rows have"
    return (f"{len(lines)} {rows} no value in any column, the first at line {lines[0]}; all are kept.",)


def _words(name: str, given: Sequence[str]) -> frozenset[str]:
    if isinstance(given, str):
        raise TableError(f"{name} must be a list of texts, such as ({given!r},); got the text {given!r}")
    return frozenset(given)
