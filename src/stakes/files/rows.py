"""The rows of a CSV or a spreadsheet, and what stands around them: encoding, delimiter, titles, blank rows, an index.

The standard library's reader takes the cells of a CSV apart, in strict mode. Encodings other than UTF-8 are recognised
where the bytes tell them, and else asked for by name.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from stakes._utils.text import listed
from stakes.exceptions import StakesError
from stakes.files.cells import reads_as_number
from stakes.files.excel import EXCEL, HINT, read_sheet
from stakes.files.frame import MAX_CELLS, check_size

_UTF8 = b"\xef\xbb\xbf"  # what Excel puts before UTF-8
_MARKS = {_UTF8: "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_HEAD = 100_000  # characters that tell the delimiter
_LINES = 100  # lines that do
_TITLES = 20  # rows among which the header is
_INDEX = "index"
_UNNAMED = "Unnamed: 0"  # what pandas calls a column without a name
_CALLED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_HIGH = re.compile(rb"[\x80-\xff]+")
_WESTERN = re.compile(rb"[A-Za-z][\x80-\x91\x93-\x95\x98-\x9f\xa1-\xbf][a-z]")  # signs that stand in no word there
_MANY = 0.8  # of the characters, from which on they tell an encoding
_RUN = 2  # bytes beyond ASCII side by side, in words of western Europe


class TableRows(NamedTuple):
    """The rows of a table below its header, and what was found around them."""

    header: list[str]
    rows: list[list[str]]
    lines: tuple[int, ...]
    """Of the file, at which rows begin; numbers of rows in a spreadsheet."""
    notes: tuple[str, ...]
    """Sentences on what was taken for granted."""
    delimiter: str | None
    unnamed: str | None
    """The name given to a first column that had none."""
    sheet: str | None


class _Raw(NamedTuple):
    """All rows of a file, the line at which each begins, and what was found out in reading them."""

    rows: list[list[str]]
    lines: list[int]
    notes: tuple[str, ...]
    delimiter: str | None = None
    quoted: bool = False
    """Whether the second line begins with a quote, as R writes the names of rows."""
    sheet: str | None = None


def read_rows(
    path: Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    having: str | None = None,
    max_cells: int = MAX_CELLS,
    keep_blank: bool = False,
) -> TableRows:
    """The header of a CSV file or a spreadsheet, and the rows below it, blank ones at the end only to be kept."""
    if path.suffix.lower() in EXCEL:
        found = read_sheet(path, sheet, having, max_cells)
        return _table(path, _Raw(found.rows, found.numbers, found.notes, sheet=found.name), keep_blank)
    if sheet is not None:
        raise StakesError(f"{path} is no spreadsheet and has no sheet {sheet!r}; leave the sheet out (--sheet)")
    return _table(path, _delimited(path, delimiter, encoding, max_cells), keep_blank)


def _table(path: Path, raw: _Raw, keep_blank: bool) -> TableRows:
    """What is the header, what the rows, and what is left out."""
    rows, blank = _without_blank_end(raw.rows, keep_blank)
    if not rows:
        raise StakesError(f"{path} is empty; a line of column names was expected, then a line for each row")
    start, titles = _header(rows)
    header, body = _same_width(list(rows[start]), rows[start + 1 :], raw)
    header, body, unnamed = _without_empty(header, body, first=0 if raw.sheet else 1)
    header, index = _with_index(header)
    _check_lengths(path, [header, *body], raw.lines[start:], raw)
    left_out = [
        *_counted(unnamed, "column", " without a name or a value"),
        *_counted(blank, "blank row", " at the end"),
    ]
    left_out = [] if raw.sheet else left_out  # a sheet has no end of its own
    notes = (*raw.notes, *_title_notes(titles, raw.lines[start], raw), *_index_notes(index), *left_out)
    lines = tuple(raw.lines[start + 1 : start + 1 + len(body)])
    return TableRows(header, body, lines, notes, raw.delimiter, index, raw.sheet)


def _without_blank_end(rows: list[list[str]], keep_blank: bool) -> tuple[list[list[str]], int]:
    """Rows without those at the end that hold nothing, and how many of these had cells."""
    end, blank = len(rows), 0
    while end > 0 and not any(map(str.strip, rows[end - 1])):
        whole = len(rows[end - 1]) >= len(rows[0])
        if whole and (keep_blank or len(rows[0]) < 2):  # a gap in a table of one column
            break
        end, blank = end - 1, blank + whole
    return rows[:end], blank


def _counted(count: int, what: str, where: str) -> list[str]:
    return [f"{count} {what}{'s' * (count > 1)}{where} left out."] if count else []


def _header(rows: list[list[str]]) -> tuple[int, list[str]]:
    """Where the header is, and the titles above it: rows with a cell or two, above the first that names all columns."""
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows[:_TITLES]]
    widths = Counter(len(row) for row in rows[:_LINES] if row)
    width = max(widths, key=lambda each: (widths[each], each))
    if filled[0] == 1 and HINT in rows[0][0] and len(rows) > 1:
        return 1, []
    for place, row in enumerate(rows[:_TITLES]):
        if filled[place] > 1 and 2 * filled[place] > width:
            whole = len(row) in (width, width - 1) and _names_columns(row)
            return (place, _titles(rows[:place])) if whole else (0, [])
        if width < 2:
            return 0, []
    return 0, []


def _names_columns(row: list[str]) -> bool:
    """Whether every cell, but for one before them and blank ones at both ends, is a name and no number."""
    names = [cell.strip() for cell in row]
    filled = [place for place, name in enumerate(names) if name]
    inner = names[filled[0] : filled[-1] + 1]
    return all(inner) and not any(map(reads_as_number, inner))


def _titles(rows: list[list[str]]) -> list[str]:
    texts = (" ".join(cell.strip() for cell in row if cell.strip()) for row in rows)
    return [text for text in texts if text]


def _same_width(header: list[str], body: list[list[str]], raw: _Raw) -> tuple[list[str], list[list[str]]]:
    """A header that lacks the name of the first column, as R writes it, or of a last one that is empty."""
    if not body or any(len(row) != len(header) + 1 for row in body):
        return header, body
    if not any(row[-1].strip() for row in body):
        return [*header, ""], body
    first = [row[0] for row in body]
    # A decimal comma that is not quoted gives a cell more, too; names of rows come in quotes.
    named = len(header) > 1 and len(set(first)) == len(first) and (raw.quoted or raw.delimiter != ",")
    return (["", *header] if named else header), body


def _without_empty(header: list[str], body: list[list[str]], first: int) -> tuple[list[str], list[list[str]], int]:
    """The table without columns, from the `first` on, that have neither a name nor a value, and how many those were."""
    empty = [place for place, name in enumerate(header) if place >= first and not name.strip()]
    if not empty or len(empty) == len(header) or any(len(row) != len(header) for row in body):
        return header, body, 0
    gone = {place for place in empty if not any(row[place].strip() for row in body)}
    kept = [place for place in range(len(header)) if place not in gone]
    if not gone or not body:
        return header, body, 0
    return [header[place] for place in kept], [[row[place] for place in kept] for row in body], len(gone)


def _with_index(header: list[str]) -> tuple[list[str], str | None]:
    """A first column without a name gets one; one that pandas has named keeps that."""
    if header[0].strip() == _UNNAMED:
        return header, _UNNAMED
    if len(header) < 2 or header[0].strip() or not all(name.strip() for name in header[1:]):
        return header, None
    name = _INDEX
    while name in header:
        name = f"{name} {_INDEX}"
    return [name, *header[1:]], name


def _title_notes(titles: list[str], line: int, raw: _Raw) -> list[str]:
    if not titles:
        return []
    where = f"{'line' if raw.sheet is None else 'row'} {line}"
    return [f"{listed(map(repr, titles))} above the header is taken for a title; columns are named at {where}."]


def _index_notes(index: str | None) -> list[str]:
    if index is None:
        return []
    return [f"The first column has no name, as pandas and R write an index; it is called {index!r} and is no feature."]


def _check_lengths(path: Path, rows: list[list[str]], lines: list[int], raw: _Raw) -> None:
    wanted = len(rows[0])
    for row, line in zip(rows, lines, strict=False):
        if len(row) != wanted:
            got = f"has {len(row)} cell{'s' * (len(row) != 1)}" if row else "is blank"
            raise StakesError(
                f"{path}: line {line} {got}, the header has {wanted}. Put a cell that holds {raw.delimiter!r} in "
                "quotes; leave cells empty rather than out."
            )


def _delimited(path: Path, delimiter: str | None, encoding: str | None, max_cells: int) -> _Raw:
    """All rows of a CSV file, whatever stands above its header."""
    check_size(path, max_cells, 0, path.stat().st_size)
    text, notes = _decoded(path, path.read_bytes(), encoding)
    if not text.strip():
        raise StakesError(f"{path} is empty; a line of column names was expected, then a line for each row")
    given, skipped = delimiter, 0
    if note := re.match(r"sep=(.)[^\S\r\n]*(\r\n|\r|\n)", text):  # to Excel
        given, skipped, text = delimiter or note[1], 1, text[note.end() :]
    chosen, more = _delimiter(path, text, given)
    rows, lines = _parsed(path, text, chosen, max_cells, skipped)
    second = re.split(r"\r\n|\r|\n", text[:_HEAD], maxsplit=2)[1:2]
    return _Raw(rows, lines, (*notes, *more), chosen, bool(second and second[0].startswith('"')))


def _decoded(path: Path, data: bytes, encoding: str | None) -> tuple[str, tuple[str, ...]]:
    """Text without its byte order mark, and a sentence where the encoding was found out."""
    marked = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    known = _MARKS.get(marked) or encoding
    name, notes = (known, ()) if known is not None else _encoding(data)
    try:
        text = data[len(marked) :].decode(name)
    except LookupError as error:
        raise StakesError(f"there is no encoding {name!r}; give one such as utf-8, cp1252, gbk or utf-16") from error
    except UnicodeError as error:
        raise StakesError(_bad_bytes(path, data, name, error)) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise StakesError(f"{path} holds a NUL character at line {line}: it is no text. Save it as UTF-8.")
    return text.removeprefix("\ufeff"), notes


def _bad_bytes(path: Path, data: bytes, name: str, error: UnicodeError) -> str:
    start = getattr(error, "start", 0)
    line, byte = data.count(b"\n", 0, start) + 1, data[start] if start < len(data) else 0
    called = "UTF-8" if codecs.lookup(name).name == "utf-8" else name
    return (
        f"{path} is not {called}: line {line} holds the byte 0x{byte:02x} where no character begins or goes on so. "
        "Name its encoding: encoding='cp1252' (--encoding cp1252; others are gbk, cp1251, shift_jis, utf-16), or save "
        "it as UTF-8."
    )


def _encoding(data: bytes) -> tuple[str, tuple[str, ...]]:
    """UTF-8 where it is that; else what the bytes tell, with a sentence; UTF-8, which then fails, where they do not."""
    if b"\0" in data:
        return _wide(data) or "utf-8", ()
    try:
        data.decode("utf-8")
        return "utf-8", ()
    except UnicodeDecodeError:
        found = "gbk" if _is_chinese(data) else "cp1252" if _is_western(data) else None
    if found is None:
        return "utf-8", ()
    called = {"gbk": "GBK (Chinese)", "cp1252": "Windows-1252 (western Europe)"}[found]
    return found, (f"The file is not UTF-8; it is read as {called}. Name another encoding by --encoding.",)


def _wide(data: bytes) -> str | None:
    """UTF-16 without a byte order mark: every other byte of plain letters is 0, and no byte between."""
    for name, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        zeros, others = data[first:_HEAD:2].count(0), data[1 - first : _HEAD : 2].count(0)
        if zeros > 0.5 * len(data[first:_HEAD:2]) and not others:
            return name
    return None


def _is_chinese(data: bytes) -> bool:
    """Whether nearly all characters beyond ASCII are among the 3755 common ones of GB 2312."""
    try:
        text = data.decode("gbk")
    except UnicodeDecodeError:
        return False
    beyond = [each.encode("gbk") for each in text if ord(each) > 127]
    common = sum(0xB0 <= each[0] <= 0xD7 and each[-1] >= 0xA1 for each in beyond)
    signs = sum(0xA1 <= each[0] <= 0xA3 for each in beyond)
    return common > 0 and common + signs >= _MANY * len(beyond)


def _is_western(data: bytes) -> bool:
    """Whether characters beyond ASCII stand by one and two, as in words of western Europe."""
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    runs = [len(run) for run in _HIGH.findall(data)]
    return sum(run <= _RUN for run in runs) >= _MANY * len(runs) and not _WESTERN.search(data)


def _delimiter(path: Path, text: str, given: str | None) -> tuple[str, tuple[str, ...]]:
    """What stands between cells, and a sentence where that was found out rather than given."""
    if given is not None:
        if len(given) != 1 or given in '"\r\n':
            raise StakesError(f"the delimiter must be one character, such as ';' or a tab; got {given!r}")
        return given, ()
    if path.suffix.lower() == ".tsv":
        return "\t", ()
    found = _most_regular(text[:_HEAD])
    if found == ",":
        return ",", ()
    return found, (f"{_CALLED[found].capitalize()} are taken to stand between cells, as they do so in most lines.",)


def _most_regular(text: str) -> str:
    """The sign that comes equally often in most lines; a comma where none does."""
    lines = [line for line in re.split(r"[\r\n]+", _QUOTED.sub("x", text)) if line.strip()][:_LINES]
    best, most = ",", (0.0, 0.0)
    for sign in ",;\t|":
        counts = Counter(line.count(sign) for line in lines)
        usual = max((count for count in counts if count), key=lambda count: counts[count], default=0)
        if usual:
            regular = (counts[usual] / len(lines), _share_of_numbers(lines, sign))
            best, most = (sign, regular) if regular > most else (best, most)
    return " " if not most[0] and _is_spaced(text, len(lines)) else best


def _share_of_numbers(lines: list[str], sign: str) -> float:
    cells = [cell for line in lines[1:] for cell in line.split(sign)]
    return sum(map(reads_as_number, cells)) / max(1, len(cells))


def _is_spaced(text: str, count: int) -> bool:
    """Whether single spaces stand between cells, as R writes tables; the header may lack the name of the first."""
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=" ", strict=True))[:count]
    except csv.Error:
        return False
    widths = {len(row) for row in rows[1:] if row}
    return len(widths) == 1 and len(rows[0]) > 1 and len(rows[0]) in (min(widths), min(widths) - 1)


def _parsed(path: Path, text: str, delimiter: str, max_cells: int, skipped: int) -> tuple[list[list[str]], list[int]]:
    """Rows, and the line at which each begins (quoted cells may hold line breaks)."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines, last, cells = [], skipped, 0
    try:
        for row in reader:
            cells += len(row) if rows else 0  # those of the header do not count
            check_size(path, max_cells, cells)
            rows.append(row)
            lines.append(last + 1)
            last = skipped + reader.line_num
    except csv.Error as error:
        raise StakesError(_quote_sentence(path, last + 1, skipped + reader.line_num, str(error))) from error
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
