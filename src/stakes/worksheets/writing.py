"""Rows of a table for a spreadsheet: to look at, or to fill in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from stakes.files import write_csv
from stakes.files.safe_cells import Cell
from stakes.worksheets.brief import Brief
from stakes.worksheets.sheet import Worksheet

_ROW = "row"  # the column of ids where the table has none


def write_rows(
    path: str | os.PathLike[str],
    sheet: Worksheet,
    rows: Sequence[str],
    labels: Mapping[str, str | None],
    more: Mapping[str, Sequence[Cell]] | None = None,
) -> None:
    """Rows by id, in their order: the id, the cells of the table, the label if there is one, and `more` columns."""
    source, brief = sheet.source, sheet.brief
    place = {row: position for position, row in enumerate(sheet.ids)}
    others = [name for name in source.names if name not in (brief.id_column, brief.target)]
    cells = [source.texts(name) for name in others]
    added = more or {}
    names = [id_name(brief, source.names), *others, brief.target, *(free_name(name, source.names) for name in added)]
    lines = [
        [row, *(column[place[row]] for column in cells), labels.get(row), *(values[at] for values in added.values())]
        for at, row in enumerate(rows)
    ]
    write_csv(path, names, lines)


def id_name(brief: Brief, names: Sequence[str]) -> str:
    """The column of ids in a file that is written."""
    return brief.id_column or free_name(_ROW, names)


def free_name(name: str, names: Sequence[str]) -> str:
    """A name that no column of the table has."""
    return name if name not in names else free_name(f"stakes {name}", names)
