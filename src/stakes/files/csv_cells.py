"""The cells of a CSV file as text, with the line that each row begins at.

The standard library's reader in strict mode; UTF-8 with or without a byte order mark, any line ends.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from stakes.files.errors import TableError

_MARK = b"\xef\xbb\xbf"  # what Excel puts before UTF-8
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_HEAD = 100_000  # characters among which the header ends
_CALLED = {",": "commas", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True)
class Rows:
    """The header, the rows below it, all of one length, and the line each begins at."""

    header: list[str]
    rows: list[list[str]]
    lines: tuple[int, ...]
    said: tuple[str, ...]
    """What was taken for granted."""


def read_rows(path: Path, delimiter: str | None = None) -> Rows:
    """All cells of a file, rows of one length."""
    text = _decoded(path, path.read_bytes())
    if not text.strip():
        raise TableError(f"{path} is empty; a line of column names was expected, then a line for each row")
    chosen, said = _delimiter(path, text, delimiter)
    rows, lines = _parsed(path, text, chosen)
    while len(rows[-1]) < len(rows[0]) and not "".join(rows[-1]).strip():
        rows.pop()  # blank lines at the end
    _check_lengths(path, rows, lines, chosen)
    return Rows(rows[0], rows[1:], tuple(lines[1 : len(rows)]), said)


def _decoded(path: Path, data: bytes) -> str:
    data = data.removeprefix(_MARK)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is not UTF-8: line {_line(data, error.start)} holds the byte 0x{data[error.start]:02x} where no "
            "character begins or goes on so. Save it as UTF-8 (in Excel: CSV UTF-8)."
        ) from error
    if (place := data.find(b"\0")) >= 0:
        raise TableError(
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
            raise TableError(f"the delimiter must be one character, such as ';' or a tab; got {given!r}")
        return given, ()
    if path.suffix.lower() == ".tsv":
        return "\t", ()
    if text.startswith("sep="):
        note = text.splitlines()[0]
        raise TableError(f"{path}: line 1, {note!r}, is a note to Excel. Take it out, and give delimiter={note[4:]!r}.")
    header = re.split(r"[\r\n]", _QUOTED.sub("", text[:_HEAD]), maxsplit=1)[0]
    found = "," if "," in header else max(";\t", key=header.count)
    if found not in header or found == ",":
        return ",", ()
    return found, (f"The first line has no comma, so {_CALLED[found]} are taken to stand between cells.",)


def _parsed(path: Path, text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Rows, and the line at which each begins (quoted cells may hold line breaks)."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines, last = [], 0
    try:
        for row in reader:
            rows.append(row)
            lines.append(last + 1)
            last = reader.line_num
    except csv.Error as error:
        raise TableError(_quote_words(path, last + 1, reader.line_num, str(error))) from error
    return rows, lines


def _quote_words(path: Path, begin: int, end: int, said: str) -> str:
    if "end of data" in said:
        return f"{path}: a quote that opens in the row at line {begin} is never closed. Close it, or double it."
    if "field limit" in said:
        limit = csv.field_size_limit()
        return (
            f"{path}: a cell in the row at line {begin} has more than {limit} characters: most likely a quote opens "
            "there that is never closed. Close it, or double it."
        )
    return (
        f"{path}: text follows a closing quote at line {end} ({said}). Within a quoted cell, write a quote twice: "
        '"5"" pipe".'
    )


def _check_lengths(path: Path, rows: list[list[str]], lines: list[int], delimiter: str) -> None:
    wanted = len(rows[0])
    if wanted == 0:
        raise TableError(f"{path}: line 1 is blank; it must hold the names of the columns")
    for row, line in zip(rows, lines, strict=False):
        if len(row) != wanted:
            got = f"has {len(row)} cell{'s' * (len(row) != 1)}" if row else "is blank"
            raise TableError(
                f"{path}: line {line} {got}, the header has {wanted}. Put a cell that holds {delimiter!r} in quotes; "
                "leave cells empty rather than out."
            )
