"""Spreadsheets: what is read from real ones, what is refused, and what is written to be filled in."""

import zipfile
from contextlib import suppress
from datetime import date, datetime, time, timedelta

import numpy as np
import openpyxl
import pytest

from stakes.exceptions import StakesError
from stakes.files import read_table
from stakes.files.excel import write_sheet


def saved(path, sheets):
    """Sheets by name, with rows of cells."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_cells_of_every_kind(tmp_path):
    rows = [
        ["name", "whole", "real", "flag", "day", "moment", "clock", "long", "text"],
        [
            "007",
            3,
            1.234,
            True,
            date(2024, 5, 6),
            datetime(2024, 5, 6, 7, 30),
            time(14, 30),
            timedelta(hours=26),
            "1,5",
        ],
        [None, -4.0, 1e300, False, None, None, None, None, "2,5"],
    ]
    source = read_table(saved(tmp_path / "t.xlsx", {"Data": rows}))
    assert [source.texts(name)[0] for name in source.names] == [
        "007",
        "3",
        "1.2340",
        "TRUE",
        "2024-05-06",
        "2024-05-06T07:30:00",
        "14:30:00",
        "26:00:00",
        "1,5",
    ]
    assert source.texts("whole")[1] == "-4"
    assert source.place(1) == "row 3 of sheet 'Data'"
    frame = source.features()
    found = dict(zip(frame.names, frame.arrays, strict=True))
    assert found["real"].tolist() == [1.234, 1e300]
    assert (found["flag"].tolist(), found["text"].tolist()) == ([1.0, 0.0], [1.5, 2.5])
    assert (found["clock (hours)"][0], found["long (hours)"][0], found["moment (hour)"][0]) == (14.5, 26.0, 7.5)
    assert np.isnan(found["day (year)"][1])


def test_a_number_of_a_sheet_is_never_taken_for_thousands(tmp_path):
    """1.234 is a number in its cell, whatever the texts beside it look like."""
    rows = [["a", "b"], [1.234, "1,5"], [2.345, "2,5"]]
    source = read_table(saved(tmp_path / "t.xlsx", {"s": rows}))
    assert source.features().column(0).tolist() == [1.234, 2.345]
    mixed = read_table(saved(tmp_path / "m.xlsx", {"s": [["a", "b"], [1.234, 1], ["1,5", 2]]}))
    with pytest.raises(StakesError, match=r"holds '1.2340' at row 2 of sheet 's' and '1,5' at row 3.*Write them alike"):
        mixed.features()


def test_sheets(tmp_path):
    path = saved(tmp_path / "t.xlsx", {"Info": [["about"], ["flats"]], "Data": [["a", "y"], [1, 2]], "More": []})
    assert read_table(path).sheet == "Data"  # it holds more
    assert "--sheet names another: 'Info', 'More'" in read_table(path).notes[0]
    assert read_table(path, having="y").names == ("a", "y")
    assert read_table(path, sheet="Data").notes == ()
    with pytest.raises(StakesError, match=r"has no sheet 'Dta'; it has 'Info', 'Data', 'More'. Did you mean 'Data'\?"):
        read_table(path, sheet="Dta")
    with pytest.raises(StakesError, match="no sheet of it holds anything"):
        read_table(saved(tmp_path / "e.xlsx", {"s": []}))


def test_a_table_somewhere_on_the_sheet(tmp_path):
    rows = [["Flats"], [], [None, "id", "area"], [None, "a", 40], [None, "b", 50.5], [None, None, None]]
    source = read_table(saved(tmp_path / "t.xlsx", {"s": rows}))
    assert (source.names, source.texts("area"), source.place(0)) == (
        ("id", "area"),
        ["40", "50.5"],
        "row 4 of sheet 's'",
    )
    assert "'Flats' above the header is taken for a title; columns are named at row 3." in source.notes


@pytest.mark.parametrize("ending", ["xlsx", "ods", "xls", "xlsb"])
@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04 and more"])
def test_what_is_no_spreadsheet(tmp_path, ending, content):
    path = tmp_path / f"t.{ending}"
    path.write_bytes(content)
    with pytest.raises(StakesError, match=r"cannot be read: it is damaged, has a password, or is no"):
        read_table(path)


def test_a_damaged_spreadsheet_is_refused_with_a_message(tmp_path):
    path = saved(tmp_path / "t.xlsx", {"s": [["a", "b"], *([row, f"x{row}"] for row in range(50))]})
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        place = int(rng.integers(len(data)))
        path.write_bytes(data[:place] + bytes([data[place] ^ int(rng.integers(1, 256))]) + data[place + 1 :])
        with suppress(StakesError):  # whatever it is, it is said
            read_table(path).texts("a")


def test_a_few_cells_that_are_far_apart_are_refused_at_once(tmp_path):
    """The library would hold what lies between them: 17 thousand million cells."""
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
        "</sheetData></worksheet>"
    )
    path = saved(tmp_path / "t.xlsx", {"s": [["a"]]})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "far.xlsx", "w") as new:
        for part in old.namelist():
            new.writestr(part, sheet if part.endswith("sheet1.xml") else old.read(part))
    with pytest.raises(StakesError, match=r"is too large: it has 17,179,869,184 cells"):
        read_table(tmp_path / "far.xlsx")


def test_a_library_that_is_not_there(tmp_path, monkeypatch):
    path = saved(tmp_path / "t.xlsx", {"s": [["a"], [1]]})
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(StakesError, match=r"need python-calamine: pip install 'stakes\[excel\]'"):
        read_table(path)


def test_what_is_written_to_be_filled_in(tmp_path):
    path = tmp_path / "rows.xlsx"
    rows = [("007", 1.5, "=1+1", None), ("-x", None, "+cmd", "b")]
    write_sheet(
        path, ["id", "x", "note", "y"], rows, fill="y", hint="Fill in y.", choices=("a, b", "c"), keep=["id", "y"]
    )
    sheet = openpyxl.load_workbook(path)["rows"]
    assert sheet["A1"].value == "Fill in y."
    assert [cell.value for cell in sheet[2]] == ["id", "x", "note", "y"]
    assert [(cell.value, cell.data_type) for cell in sheet[3]][:3] == [("007", "s"), (1.5, "n"), ("=1+1", "s")]
    (allowed,) = sheet.data_validations.dataValidation
    assert (allowed.type, str(allowed.sqref), allowed.formula1) == ("list", "D3:D4", "'classes'!$A$1:$A$2")
    hidden = openpyxl.load_workbook(path)["classes"]
    assert (hidden.sheet_state, [row[0].value for row in hidden.rows]) == ("hidden", ["a, b", "c"])
    assert sheet["D3"].fill.fgColor.rgb.endswith("FFF2CC")
    source = read_table(path)
    assert (source.names, source.texts("note")) == (("id", "x", "note", "y"), ["=1+1", "+cmd"])
    with pytest.raises(StakesError, match="is there already"):
        write_sheet(path, ["y"], [], fill="y", hint="")
    with pytest.raises(StakesError, match=r"row 1 holds the character '\\x1b', which no spreadsheet can"):
        write_sheet(tmp_path / "n.xlsx", ["y"], [("\x1b",)], fill="y", hint="")


def test_numbers_to_be_filled_in_are_numbers(tmp_path):
    write_sheet(tmp_path / "rows.xlsx", ["id", "y"], [("a", None)], fill="y", hint="Fill in y.")
    (allowed,) = openpyxl.load_workbook(tmp_path / "rows.xlsx")["rows"].data_validations.dataValidation
    assert (allowed.type, str(allowed.sqref), allowed.allow_blank) == ("decimal", "B3", True)
