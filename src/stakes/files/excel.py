"""Spreadsheets: the cells of a sheet as text, and rows written to be filled in.

.xlsx, .xlsm, .xlsb, .xls and .ods are read by python-calamine, .xlsx is written by openpyxl. Numbers are read as they
are stored, whatever their format shows (12 % is 0.12), dates as ISO has them. Only this file names the two libraries;
each is imported when it is needed.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from stakes._utils.text import did_you_mean, listed
from stakes.exceptions import StakesError
from stakes.files.frame import MAX_COLUMNS, check_size, either_way
from stakes.files.write import Cell, is_plain_number, output_file

EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
"""How the names of spreadsheets end."""
HINT = "Then: stakes import"
"""What the row above the header of a sheet that is written here ends with, but for names."""
_COLUMN = re.compile(rb'<(?:\w+:)?c [^>]*?\br="([A-Z]{1,3})\d')
_ROW = re.compile(rb'<(?:\w+:)?row [^>]*?\br="(\d+)"')
_TOP = 20  # rows among which the names of columns are
_READ = 2**24  # bytes of a sheet that are looked at together
_WIDEST = 40  # characters of a column
_LIST = "classes"  # the hidden sheet of the drop-down


class Sheet(NamedTuple):
    """The cells of a sheet as text, the number that the spreadsheet gives each row, its name, and notes."""

    rows: list[list[str]]
    numbers: list[int]
    name: str
    notes: tuple[str, ...]


def read_sheet(path: Path, name: str | None, having: str | None, max_cells: int) -> Sheet:
    """The cells of the sheet of that name.

    Without, of the first that is shown and has a cell `having` near its top; else of the one with the most cells.
    """
    check_size(path, max_cells, 0, path.stat().st_size)
    if path.suffix.lower() in (".xlsx", ".xlsm"):
        _check_extent(path, max_cells)
    reader = _library("python_calamine")
    try:
        workbook = reader.CalamineWorkbook.from_path(str(path))
        names = [each.name for each in workbook.sheets_metadata if each.visible == reader.SheetVisibleEnum.Visible]
        if name is not None and name not in workbook.sheet_names:
            there = listed(map(repr, workbook.sheet_names))
            raise StakesError(
                f"{path} has no sheet {name!r}; it has {there}.{did_you_mean(name, workbook.sheet_names)}"
            )
        found, most = None, 0
        for each in names or workbook.sheet_names if name is None else [name]:
            sheet = workbook.get_sheet_by_name(each)
            check_size(path, max_cells, sheet.height * sheet.width)
            rows = [[_text(value) for value in row] for row in sheet.to_python(skip_empty_area=False)]
            filled = sum(bool(cell) for row in rows for cell in row)
            right = having is not None and any(having in map(str.strip, row) for row in rows[:_TOP])
            if right or filled > most:
                found, most = Sheet(rows, list(range(1, len(rows) + 1)), each, ()), filled
            if right:
                break
    except StakesError:
        raise
    except BaseException as error:  # what a library of another language raises where it gives up is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise _unreadable(path, error) from error
    if found is None:
        raise StakesError(f"{path} is empty; no sheet of it holds anything")
    others = [each for each in names if each != found.name]
    note = f"Sheet {found.name!r} is read; --sheet names another: {listed(map(repr, others))}."
    return found._replace(notes=(note,) if others and name is None else ())


def _unreadable(path: Path, error: BaseException) -> StakesError:
    why = " ".join(str(error).split())[:200]
    return StakesError(
        f"{path} cannot be read: it is damaged, has a password, or is no {path.suffix} file. Save it again, or as CSV "
        f"UTF-8. ({type(error).__name__}: {why})"
    )


def _text(value: Any) -> str:
    """A cell as the text that a CSV of the sheet would hold; whole numbers without a point, dates as ISO has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        return f"{value!r}0" if either_way([repr(value)]) else repr(value)  # 1.2340: no text of thousands
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return f"{int(seconds // 3600)}:{int(seconds % 3600 // 60):02d}:{int(seconds % 60):02d}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _library(name: str) -> Any:
    """python_calamine or openpyxl, or how to get it."""
    try:
        return __import__(name)
    except ImportError as error:
        raise StakesError(
            f"spreadsheets need {name.replace('_', '-')}: pip install 'stakes[excel]', or save the table as CSV UTF-8"
        ) from error


def _check_extent(path: Path, max_cells: int) -> None:
    """Refuse a sheet of a few cells that lie so far apart that no memory holds what is between them."""
    try:
        with zipfile.ZipFile(path) as archive:
            for part in archive.infolist():
                check_size(path, max_cells, 0, part.file_size // 4)  # tags take more room than cells
                if re.fullmatch(r"xl/worksheets/[^/]+\.xml", part.filename):
                    with archive.open(part) as file:
                        rows, columns = _extent(file)
                    if columns > MAX_COLUMNS:
                        raise StakesError(f"{path} has {columns:,} columns; at most {MAX_COLUMNS:,} are read.")
                    check_size(path, max_cells, rows * columns)
    except StakesError:
        raise
    except Exception as error:  # bytes that were changed reach any part of the library
        raise _unreadable(path, error) from error


def _extent(file: Any) -> tuple[int, int]:
    """The last row and the last column that a sheet names."""
    rows, columns, kept = 0, {b"A"}, b""
    while block := file.read(_READ):
        text = kept + block
        columns |= set(_COLUMN.findall(text))
        rows = max([rows, *map(int, _ROW.findall(text))])
        kept = text[-200:]
    return rows, max(_number_of(each) for each in columns)


def _number_of(letters: bytes) -> int:
    """1 for A, 27 for AA."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def write_sheet(
    path: str | os.PathLike[str],
    names: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    fill: str,
    hint: str,
    choices: Sequence[str] = (),
    title: str | None = None,
    keep: Sequence[str] = (),
    percent: bool = False,
    overwrite: bool = False,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Write rows to be filled in: a hint above the header, the column `fill` marked, with a drop-down of `choices`.

    Columns to `keep` stay text whatever their cells look like. Without choices the column takes numbers only, shown as
    `percent` where that is wanted: 12, typed there, is 12%. Nothing that is written is run as a formula.
    """
    library = _library("openpyxl")
    book = library.Workbook()
    sheet = book.active
    sheet.title = title or "rows"
    _put(sheet, 1, 1, hint)
    count = 2
    for place, name in enumerate(names, 1):
        _put(sheet, 2, place, name).font = library.styles.Font(bold=True)
    for count, row in enumerate(rows, 3):
        for place, (name, cell) in enumerate(zip(names, row, strict=True), 1):
            number = isinstance(cell, int | float) or (isinstance(cell, str) and is_plain_number(cell))
            value = float(cell) if number and cell is not None and name not in keep else cell
            _put(sheet, count, place, value)
    _mark(library, book, sheet, list(names).index(fill) + 1, count, choices, percent)
    for place, name in enumerate(names, 1):
        letter = library.utils.get_column_letter(place)
        sheet.column_dimensions[letter].width = min(_WIDEST, max(10, len(name) + 4))
    sheet.freeze_panes = "A3"
    with output_file(path, inputs=inputs, overwrite=overwrite) as file:
        book.save(file)


def _put(sheet: Any, row: int, column: int, value: Cell) -> Any:
    """A cell whose text is text, also where it begins as a formula does."""
    cell = sheet.cell(row, column)
    if isinstance(value, str):
        _refuse_controls(value, row)
        cell.value = value
        cell.data_type, cell.quotePrefix = "s", value[:1] in "=+-@'"
    elif value is not None:
        cell.value = int(value) if float(value).is_integer() and abs(value) < 2**53 else value
    return cell


def _refuse_controls(text: str, row: int) -> None:
    if bad := re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", text):
        raise StakesError(
            f"row {row - 2} holds the character {bad[0]!r}, which no spreadsheet can. Take it out, or write a CSV."
        )


def _mark(library: Any, book: Any, sheet: Any, column: int, last: int, choices: Sequence[str], percent: bool) -> None:
    """The column to fill in: coloured, with a drop-down of classes, or for numbers only."""
    letter = library.utils.get_column_letter(column)
    for row in range(2, last + 1):
        cell = sheet.cell(row, column)
        cell.fill = library.styles.PatternFill("solid", fgColor="FFF2CC")
        if percent:
            cell.number_format = "0.0##%"
    validation = library.worksheet.datavalidation.DataValidation
    if choices:
        hidden = book.create_sheet(_LIST if sheet.title != _LIST else f"{_LIST} 2")
        hidden.sheet_state = "hidden"
        for place, choice in enumerate(choices, 1):
            _put(hidden, place, 1, choice)
        allowed = validation(type="list", formula1=f"'{hidden.title}'!$A$1:$A${len(choices)}", allow_blank=True)
        allowed.error = "Choose one of the classes in the list, or leave the cell empty."
    else:
        allowed = validation(
            type="decimal", operator="between", formula1="-1E+300", formula2="1E+300", allow_blank=True
        )
        allowed.error = "Write a number, or leave the cell empty."
    allowed.showErrorMessage = True
    sheet.add_data_validation(allowed)
    allowed.add(f"{letter}3:{letter}{max(last, 3)}")
