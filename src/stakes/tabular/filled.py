"""Rows of a table that are written to be filled in, a CSV or a spreadsheet, and the labels that come back in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from stakes.exceptions import StakesError
from stakes.files.excel import EXCEL, HINT, write_sheet
from stakes.files.read import Fingerprint, Source, changes, fingerprint
from stakes.files.write import Cell, write_csv
from stakes.tabular.worksheet import Brief, Worksheet, check_unit, classes_of, labels_of, loss_task, read_source

_ROW = "row"  # the column of ids where the table has none


def write_worksheet(
    path: str | os.PathLike[str],
    sheet: Worksheet,
    rows: Sequence[str],
    labels: Mapping[str, str | None],
    more: Mapping[str, Sequence[Cell]] | None = None,
    *,
    overwrite: bool = False,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Write some rows of a table to be filled in: a CSV, or an .xlsx with a hint and a drop-down of classes.

    Each line has the id, the cells of the table, the label if there is one, and the `more` columns.

    Args:
        path: The file to write.
        sheet: The table.
        rows: Ids of the rows, in the order in which they are written.
        labels: Labels by id; rows without one are left empty.
        more: Further columns by name, each with a value for every one of `rows`.
        overwrite: Whether a file that is there is replaced.
        inputs: Files that are never replaced, beside that of the table.
    """
    source, brief = sheet.source, sheet.brief
    place = {row: position for position, row in enumerate(sheet.ids)}
    others = [name for name in source.names if name not in (brief.id_column, brief.target)]
    cells = [source.texts(name) for name in others]
    added = more or {}
    names = [_id_name(brief, source.names), *others, brief.target, *(_free_name(name, source.names) for name in added)]
    lines = [
        [row, *(column[place[row]] for column in cells), labels.get(row), *(values[at] for values in added.values())]
        for at, row in enumerate(rows)
    ]
    read = [source.path, *inputs]
    if Path(path).suffix.lower() in EXCEL:
        _write_sheet(path, sheet, names, lines, labels, overwrite=overwrite, inputs=read)
        return
    if sheet.task == "real":
        at = names.index(brief.target)
        lines = [[*line[:at], _as_written(line[at], brief), *line[at + 1 :]] for line in lines]
    write_csv(path, names, lines, overwrite=overwrite, inputs=read)


def _as_written(label: Cell, brief: Brief) -> Cell:
    """A number as the table has its labels: with a decimal comma, as per cent."""
    if label is None:
        return None
    text = str(label)
    if brief.unit == "%":
        text = f"{(100 * Decimal(text)).normalize():f} %"
    return text.replace(".", ",") if brief.decimal == "," else text


def _write_sheet(
    path: str | os.PathLike[str],
    sheet: Worksheet,
    names: Sequence[str],
    lines: Sequence[Sequence[Cell]],
    labels: Mapping[str, str | None],
    **options: Any,
) -> None:
    if Path(path).suffix.lower() != ".xlsx":
        raise StakesError(f"{path} cannot be written: spreadsheets are written as .xlsx. Give such a name, or a CSV's.")
    brief, seen = sheet.brief, {*sheet.labels.values(), *filter(None, labels.values())}
    classes = () if sheet.task == "real" else classes_of(brief.classes, brief.loss, seen)
    text = [names[0], *([brief.target] if sheet.task == "classes" else []), *sheet.source.text]
    numbers = "a per cent, such as 12%" if brief.unit == "%" else "a number"
    what = "a class from the list in each cell" if classes else numbers if sheet.task == "real" else "a class"
    hint = (
        f"Fill in {brief.target!r}, the yellow column: {what}. Leave a cell empty where you do not know. {HINT} "
        f"CAMPAIGN {Path(path).name}"
    )
    options |= {"fill": brief.target, "choices": classes, "title": brief.sheet, "keep": text}
    options["percent"] = brief.unit == "%"
    write_sheet(path, names, lines, hint=hint, **options)


def read_filled_labels(
    path: str | os.PathLike[str],
    brief: Brief,
    old: Fingerprint,
    ids: Sequence[str],
    reading: Mapping[str, Any] | None = None,
) -> list[tuple[str, str]]:
    """The labels by id in a file of `write_worksheet` that was filled in, or in the filled-in table itself.

    Rows without a label are passed over. `old` is the fingerprint of the table and `ids` [N] are its rows; `reading`
    has options of `stakes.files.read_table` for this file.
    """
    plain = _filled_table(path, brief, reading or {})
    same = set(changes(old, fingerprint(plain))) <= {f"column {brief.target!r} changed"}
    # A file that was written here has apostrophes to take off; those of the table itself are its own.
    source = plain if same else _filled_table(path, brief, reading or {}, unescape=True)
    given = {name: value for name, value in (reading or {}).items() if name in ("decimal", "thousands", "missing")}
    known = replace(brief, **given)
    labels = labels_of(source, known, loss_task(brief.loss))
    if loss_task(brief.loss) == "real" and source.lines is not None and source.sheet is None:
        _check_units(source, known, labels)
    named = _filled_ids(source, _id_name(brief, tuple(old.columns)), ids if same else None, labels)
    pairs = [(named[place] or "", label, place) for place, label in labels.items()]
    first: dict[str, int] = {}
    for row, _, place in pairs:
        if first.setdefault(row, place) != place:
            raise StakesError(
                f"{path}: row {row!r} stands at {source.place(first[row])} and at {source.place(place)}; nothing was "
                "recorded"
            )
    return [(row, label) for row, label, _ in pairs]


def _filled_table(
    path: str | os.PathLike[str], brief: Brief, reading: Mapping[str, Any], *, unescape: bool = False
) -> Source:
    """The file with the options of the table where they are of use; ours are UTF-8, with commas."""
    excel = Path(path).suffix.lower() in EXCEL
    ways: list[dict[str, Any]] = [
        {"delimiter": brief.delimiter, "encoding": None},
        {"delimiter": None, "encoding": None},
        {"delimiter": brief.delimiter, "encoding": brief.encoding},
    ]
    if excel:  # another program may have renamed the sheet
        ways = [{"sheet": brief.sheet}, {"sheet": None}]
    errors: list[StakesError] = []
    for way in ways:
        try:
            source = read_source(path, brief, **{"text": (), "sheet": None, **way, **reading, "unescape": unescape})
        except StakesError as error:
            errors.append(error)
            continue
        if brief.target in source.names:
            return source
        lacking = f"{path} has no column {brief.target!r}, which holds the labels; nothing was recorded"
        errors.append(StakesError(lacking))
    raise errors[-1 if excel else 0]


def _check_units(source: Source, brief: Brief, rows: Iterable[int]) -> None:
    """Refuse labels that are no per cents, or in another currency, where those of the table are."""
    cells = source.texts(brief.target)
    for row in rows:
        try:
            check_unit(cells[row] or "", brief)
        except StakesError as error:
            raise StakesError(f"{source.path}, {source.place(row)}: {error}. Nothing was recorded.") from None


def _filled_ids(
    source: Source, name: str, ids: Sequence[str] | None, labels: Mapping[int, str]
) -> Sequence[str | None]:
    """The ids in a filled-in file; those given where it is the table itself and has no column of ids."""
    if name in source.names:
        texts = source.texts(name)
        if lacking := [row for row in labels if texts[row] is None]:
            raise StakesError(
                f"{source.path}: the id at {source.place(lacking[0])}, column {name!r}, is empty; nothing was recorded"
            )
        return texts
    if ids is not None:
        return ids
    raise StakesError(
        f"{source.path} has no column {name!r} to tell rows by, and is not the table of the campaign with labels "
        "filled in. Fill in a file made by export or ask; nothing was recorded."
    )


def _id_name(brief: Brief, names: Sequence[str]) -> str:
    """The column of ids in a file that is written."""
    return brief.id_column or _free_name(_ROW, names)


def _free_name(name: str, names: Sequence[str]) -> str:
    """A name that no column of the table has."""
    return name if name not in names else _free_name(f"stakes {name}", names)
