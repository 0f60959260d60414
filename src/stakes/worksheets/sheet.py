"""A table and what is asked of it, read and checked.

Sizes: N rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from stakes.files import Frame, Source, TableError, ids, read_table
from stakes.files.cells import kind_of
from stakes.files.frame import Host, place_of
from stakes.worksheets.brief import Brief
from stakes.worksheets.labels import LabelError, Task, checked_class, checked_number, classes_of, task_of


@dataclass(frozen=True, eq=False)
class Worksheet:
    """N rows with ids, features, and labels where there are any."""

    source: Source
    brief: Brief
    task: Task
    ids: tuple[str, ...]
    features: Frame
    labels: dict[int, str]
    """By row, those that the table has."""
    costs: Host | None
    """[N]"""

    @property
    def said(self) -> tuple[str, ...]:
        """What was taken for granted in reading."""
        return (*self.source.said, *self.source.remarks(self.features.names))

    def classes(self, labels: dict[int, str]) -> tuple[str, ...] | None:
        """All classes, as far as the brief and some labels tell them; None for numbers."""
        if self.task == "real":
            return None
        return classes_of(self.brief.classes, self.brief.loss, labels.values())


def read_worksheet(path: str | os.PathLike[str], brief: Brief) -> Worksheet:
    """The table of a file, with every cell that matters checked."""
    source = read_table(path, delimiter=brief.delimiter, missing=brief.missing, text=brief.text)
    for name in brief.roles:
        place_of(name, source.names)
    names = [name for name in source.names if name not in brief.roles]
    if not names:
        raise TableError(f"{path} has no column left to learn from; {', '.join(brief.roles)} are taken")
    task = task_of(brief.loss)
    cells = {row: text.strip() for row, text in enumerate(source.texts(brief.target)) if text is not None}
    sheet = Worksheet(
        source, brief, task, ids(source, brief.id_column), source.features(names), cells, _costs(source, brief)
    )
    _check_labels(sheet)
    return sheet


def _check_labels(sheet: Worksheet) -> None:
    """Refuse the first label that cannot be one, with its place."""
    classes, brief = sheet.classes({}) if sheet.brief.classes or sheet.brief.loss.cost_matrix else None, sheet.brief
    for row, label in sheet.labels.items():
        try:
            if sheet.task == "real":
                checked_number(label, brief.loss)
            elif classes is not None:
                checked_class(label, classes)
        except LabelError as error:
            where = f"{sheet.source.path}, {sheet.source.place(row)}, column {brief.target!r}"
            raise LabelError(f"{where}: {error}") from None
    sheet.classes(sheet.labels)


def _costs(source: Source, brief: Brief) -> Host | None:
    """[N]: what each label costs."""
    if brief.cost_column is None:
        return None if brief.label_cost is None else np.full(len(source), float(brief.label_cost))
    cells = source.texts(brief.cost_column)
    bad = [row for row, cell in enumerate(cells) if cell is None or kind_of(cell) != "number" or float(cell) <= 0]
    if bad:
        came = "nothing" if cells[bad[0]] is None else repr(cells[bad[0]])
        raise TableError(
            f"{source.path}: costs must be positive numbers; column {brief.cost_column!r} holds {came} at "
            f"{source.place(bad[0])}. Fill it in; a label that cannot be bought can be left out of the table."
        )
    return np.asarray([float(cell) for cell in cells if cell is not None])
