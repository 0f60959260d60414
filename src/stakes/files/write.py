"""CSV files that a spreadsheet opens without running what is in them, and that come back as they were.

A cell that a spreadsheet would take for a formula gets an apostrophe in front. Cells that begin with an apostrophe get
another, so that taking one off always gives back the cell.
"""

from __future__ import annotations

import csv
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from stakes.exceptions import StakesError

Cell: TypeAlias = str | int | float | None

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Spreadsheets may strip spaces and quotes before they look; the last four are the full-width forms of the others.
_RUNS = re.compile(r"[\t\r\n']|[\s\"'`]*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def escape(cell: str) -> str:
    """The cell, with an apostrophe in front if a spreadsheet might run it; plain numbers such as -3.5 stay.

    Args:
        cell: Any text.

    Returns:
        A text that no spreadsheet runs.

    Examples:
        >>> escape("=1+1"), escape("-3.5")
        ("'=1+1", '-3.5')
    """
    return f"'{cell}" if _RUNS.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unescape(cell: str) -> str:
    """The cell that `escape` was given.

    Args:
        cell: What `escape` returned.

    Returns:
        The text before that.

    Examples:
        >>> unescape(escape("=1+1"))
        '=1+1'
    """
    return cell.removeprefix("'")


def write_csv(path: str | os.PathLike[str], names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write a table with safe cells, whole or not at all; `read_table(path, unescape=True)` gives it back.

    Args:
        path: The file, which is replaced if it is there.
        names: Of the columns.
        rows: A cell for each name; None is an empty cell.

    Raises:
        StakesError: If the file cannot be written, or a row has another number of cells; nothing is changed then.

    Examples:
        >>> import tempfile
        >>> from stakes.files import read_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["id", "note"], [("a", "=1+1"), ("b", None)])
        ...     read_table(f"{folder}/t.csv", unescape=True).texts("note")
        ['=1+1', None]
    """
    lines = [[escape(name) for name in names]]
    lines += [_line(place, row, len(names)) for place, row in enumerate(rows)]
    where = Path(path)
    if not where.parent.is_dir():
        raise StakesError(f"{where} cannot be written: there is no folder {where.parent}")
    part = where.with_name(f".{where.name}.{secrets.token_hex(4)}.part")
    try:
        _write(part, lines)
        os.replace(part, where)
        _sync_folder(where.parent)
    except (OSError, UnicodeEncodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise StakesError(f"{where} cannot be written: {why}. Nothing was changed.") from error
    finally:
        part.unlink(missing_ok=True)


def _line(place: int, row: Sequence[Cell], width: int) -> list[str]:
    if len(row) != width:
        raise StakesError(f"each row must have {width} cells, one for each name; row {place + 1} has {len(row)}")
    cells = ["" if cell is None else escape(str(cell)) for cell in row]
    if any("\0" in cell for cell in cells):
        raise StakesError(f"row {place + 1} holds a NUL character, which no CSV file can. Take it out.")
    return cells


def _write(part: Path, lines: list[list[str]]) -> None:
    # The byte order mark tells Excel that this is UTF-8; quotes keep a cell with ; whole where ; stands between cells.
    with part.open("x", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(lines)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """So that the new name, too, outlives a loss of power; not every system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
