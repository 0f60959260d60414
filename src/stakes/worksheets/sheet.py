"""A table and what is asked of it, read and checked.

Sizes: N rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stakes.files import Frame, Source, TableError, ids, read_table
from stakes.files.cells import kind_of
from stakes.files.frame import Host, place_of
from stakes.worksheets.brief import Brief
from stakes.worksheets.labels import LabelError, Task, checked_class, checked_number, classes_of, domain_of, task_of

_FEW = 10  # classes that may well be called by numbers


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
        return (*self.source.said, *self.source.remarks(self.features.names), *self._numbers_as_classes())

    def classes(self, labels: dict[int, str]) -> tuple[str, ...] | None:
        """All classes, as far as the brief and some labels tell them; None for numbers."""
        if self.task == "real":
            return None
        return classes_of(self.brief.classes, self.brief.loss, labels.values())

    def _numbers_as_classes(self) -> tuple[str, ...]:
        """A caution where a loss for classes is given labels that look measured."""
        found = set(self.labels.values()) if self.task == "classes" else set()
        if len(found) <= _FEW or any(kind_of(label) != "number" for label in found):
            return ()
        what = f"The labels are {len(found)} different numbers, and {self.brief.loss.name} takes each for a class."
        return (f"{what} If they are measured, take a loss for numbers, such as squared-error.",)


def read_worksheet(path: str | os.PathLike[str], brief: Brief) -> Worksheet:
    """The table of a file, with every cell that matters checked."""
    return worksheet_of(read_table(path, delimiter=brief.delimiter, missing=brief.missing, text=brief.text), brief)


def feature_names(path: os.PathLike[str], names: Sequence[str], brief: Brief) -> list[str]:
    """The columns that a model may see."""
    for name in brief.roles:
        place_of(name, names)
    features = [name for name in names if name not in brief.roles]
    if not features:
        raise TableError(f"{path} has no column left to learn from; {', '.join(brief.roles)} are taken")
    return features


def worksheet_of(source: Source, brief: Brief) -> Worksheet:
    """A table that was read, with every cell that matters checked."""
    sheet = unchecked(source, brief)
    _check_labels(sheet)
    return sheet


def unchecked(source: Source, brief: Brief) -> Worksheet:
    """A table that was read, with labels as they are."""
    names = feature_names(source.path, source.names, brief)
    task = task_of(brief.loss)
    cells = {row: text.strip() for row, text in enumerate(source.texts(brief.target)) if text is not None}
    named, features = ids(source, brief.id_column), source.features(names)
    return Worksheet(source, brief, task, named, features, cells, _costs(source, brief))


def _check_labels(sheet: Worksheet) -> None:
    """Refuse the first label that cannot be one, with its place."""
    brief, domain = sheet.brief, domain_of(sheet.brief.loss) if sheet.task == "real" else None
    named = tuple(brief.classes or brief.loss.cost_matrix or ())
    for row, label in sheet.labels.items():
        try:
            if sheet.task == "real":
                checked_number(label, brief.loss, domain)
            else:
                checked_class(label, named)
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
