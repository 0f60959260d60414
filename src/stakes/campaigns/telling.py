"""Labels on their way into a campaign: refused where they cannot be one, known where they are there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from stakes.campaigns.journal import Journal
from stakes.worksheets import Brief, LabelError
from stakes.worksheets.labels import checked_class, checked_number, domain_of, task_of

Told: TypeAlias = Sequence[tuple[str, str]]
"""Rows and their labels."""


def refuse_bad(journal: Journal, brief: Brief, labels: Told, new_class: bool) -> None:
    """Refuse the first label that cannot be one, with its row."""
    task, classes = task_of(brief.loss), _classes(journal, brief, new_class)
    domain = domain_of(brief.loss) if task == "real" else None
    for row, label in labels:
        try:
            if task == "real":
                checked_number(label, brief.loss, domain)
            else:
                checked_class(label, classes)
        except LabelError as error:
            fixed = task == "real" or _fixed(brief) or not label
            more = "" if fixed else " A class that is new is told as such (--new-class)."
            raise LabelError(f"row {row!r}: {error}{more} Nothing was recorded.") from None


def as_known(journal: Journal, brief: Brief, labels: Told) -> Told:
    """Labels as they were first written, where they are the same numbers: 3.50 is no other label than 3.5."""
    if task_of(brief.loss) != "real":
        return labels
    return [(row, _first_written(journal, row, label)) for row, label in labels]


def _first_written(journal: Journal, row: str, label: str) -> str:
    before = [event.label for event in journal.history(row)[-1:]]
    return next((told for told in before if told is not None and float(told) == float(label)), label)


def _fixed(brief: Brief) -> tuple[str, ...]:
    """Classes that were named at the start; none where labels tell them."""
    return tuple(brief.classes or brief.loss.cost_matrix or ())


def _classes(journal: Journal, brief: Brief, new_class: bool) -> tuple[str, ...]:
    """Classes that a label may be of; none where any may."""
    return _fixed(brief) or (() if new_class else journal.labels_told())
