"""The rows of cells in the raw files of the repository: lines of text, and one spreadsheet.

A parser takes the contents of a set's files in their order, and gives rows whose cells are in the order of the set's
columns. Whether the cells are those of the set is found out afterwards, for every source alike.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from typing import TypeAlias
from xml.etree import ElementTree

from experiments.datasets.dataset import DatasetError

Rows: TypeAlias = Sequence[Sequence[str | None]]
"""Cells of text, None where a cell is empty."""
Parser: TypeAlias = Callable[[Sequence[bytes]], Rows]

_SHEET = "xl/worksheets/sheet1.xml"
_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def lines(files: Sequence[bytes]) -> Rows:
    """The lines of all files, cut at blanks or commas."""
    return [row for content in files for row in text_rows(content)]


def numbered_lines(files: Sequence[bytes]) -> Rows:
    """The lines below a header, without the number that each begins with."""
    return [row[1:] for row in text_rows(files[0])[1:]]


def numbered_sheet(files: Sequence[bytes]) -> Rows:
    """The rows of a spreadsheet below a header, without the number that each begins with."""
    return [row[1:] for row in sheet_rows(files[0])[1:]]


def training_then_test(files: Sequence[bytes]) -> Rows:
    """The lines of two files, each with the part that its file is."""
    return [[part, *row] for part, content in zip(("train", "test"), files, strict=True) for row in text_rows(content)]


def text_rows(content: bytes) -> list[list[str]]:
    """Cells between blanks or commas; empty lines and a header of lines that begin with @ (KEEL's) are left out."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(f"the file must be text; {error}") from error
    return [line.replace(",", " ").split() for line in text.splitlines() if line.strip() and not line.startswith("@")]


def sheet_rows(content: bytes) -> list[list[str]]:
    """What is kept for the cells of the first sheet of an .xlsx file: numbers as written, texts as their place."""
    try:
        sheet = ElementTree.fromstring(zipfile.ZipFile(io.BytesIO(content)).read(_SHEET))
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError) as error:
        raise DatasetError(f"the file must be a spreadsheet of the kind .xlsx; {error}") from error
    return [[value.text or "" for value in row.iter(f"{_SPACE}v")] for row in sheet.iter(f"{_SPACE}row")]
