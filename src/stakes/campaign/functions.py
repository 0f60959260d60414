"""A Python function as an annotator: it labels the rows on which its opinion is worth most for its price."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stakes.campaign.opinions import prices_of_annotators
from stakes.campaign.project import Project
from stakes.campaign.rankings import ask_for_opinions, ask_for_rows
from stakes.campaign.states import Recorded
from stakes.exceptions import StakesError

LabelFunction = Callable[[str, Mapping[str, str], Sequence[str]], str | float | None]
"""From the id of a row, its cells by column, and the classes to a label; None where it does not know."""


def rows_for_function(project: Project, name: str, n: int, lease: float) -> list[str]:
    """Rows that are handed out to a function: by what its opinion is worth, and as they are ranked before any label."""
    if project.journal.known_labels() and project.sheet.stream is None:
        return [project.sheet.ids[offer.row] for offer in ask_for_opinions(project, name, n, lease=lease)]
    return list(ask_for_rows(project, n, lease=lease, who=name, progress=False).row_ids)


def label_rows(
    project: Project, function: LabelFunction, rows: Sequence[str], name: str, record: Callable[..., Recorded]
) -> Recorded:
    """Ask a function about rows that it has in hand, one after another; what it does not know is for people."""
    prices_of_annotators(project)  # what others have set is known
    found: list[Recorded] = []
    columns = _columns(project)
    place = {row: position for position, row in enumerate(project.sheet.ids)}
    brief = project.brief
    classes = (
        () if project.numbers else tuple(brief.classes or brief.loss.cost_matrix or project.journal.known_labels())
    )
    for at, row in enumerate(rows):
        try:
            label = function(row, {each: cells[place[row]] or "" for each, cells in columns.items()}, classes)
            if label is None:
                project.journal.put_off(row, "unsure", name)
            else:
                found.append(record(row, label, annotator=name))
        except BaseException as error:
            _give_back(project, rows[at:], name)
            if not isinstance(error, Exception):
                raise
            raise StakesError(
                f"the annotator {name!r} failed on row {row!r:.100}: {error or type(error).__name__}. What it labelled "
                f"before, {len(found)} of {len(rows)} rows, is recorded; the others are given back."
            ) from error
    return Recorded(*(tuple(row for each in found for row in each[place]) for place in range(len(Recorded._fields))))


def _columns(project: Project) -> dict[str, Sequence[str | None]]:
    """All columns but those of the id, the labels and the cost."""
    brief, source = project.brief, project.sheet.source
    left_out = {brief.target, brief.id_column, brief.cost_column}
    return {name: source.texts(name) for name in source.names if name not in left_out}


def _give_back(project: Project, rows: Sequence[str], name: str) -> None:
    """Let go of rows that are still in the hands of an annotator."""
    held = {event.row for event in project.journal.held(name)}
    for row in rows:
        if row in held:
            project.journal.put_off(row, "later", name)
