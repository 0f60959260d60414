"""What a report is made from: the labels in the order told, the rows without, and what was last thought of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stakes.campaigns import Campaign, CampaignError, Event, Status
from stakes.campaigns.setup import Setup
from stakes.campaigns.standing import RANKING
from stakes.worksheets import Worksheet
from stakes.worksheets.labels import Task


@dataclass(frozen=True)
class Told:
    """A label that stands."""

    row: int
    """Its position in the table."""
    label: str
    initial: bool
    """Whether it came with the table; others were bought."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A campaign at one moment."""

    name: str
    """Of its file."""
    setup: Setup
    sheet: Worksheet
    status: Status
    failure: str | None
    """Why the rows could not be ranked; None where they could."""
    told: tuple[Told, ...]
    """In the order told; a label that was replaced keeps its place."""
    pool: tuple[int, ...]
    """Positions of rows that are open or asked for."""
    ranking: dict[str, Any] | None
    """The last one, as the campaign keeps it: ids, scores, why."""
    open_ids: frozenset[str]
    history: tuple[Event, ...]

    @property
    def task(self) -> Task:
        """Classes or numbers."""
        return self.sheet.task

    @property
    def initial(self) -> int:
        """How many of the labels came with the table."""
        return sum(each.initial for each in self.told)

    def labels(self, count: int | None = None) -> dict[int, str]:
        """By row: the first `count` labels, or all."""
        return {each.row: each.label for each in self.told[:count]}

    def next_rows(self) -> list[tuple[str, float | None, str]]:
        """Id, score and reason of the ranked rows that are still open."""
        if self.ranking is None:
            return []
        found = zip(self.ranking["ids"], self.ranking["scores"], self.ranking["why"], strict=False)
        return [row for row in found if row[0] in self.open_ids]


def gather(campaign: Campaign) -> Evidence:
    """All that there is to report, with what labels are worth thought over again if it was an old thought."""
    status, failure = _status(campaign)
    sheet, states, history = campaign.sheet, campaign.journal.states(), campaign.history()
    note = campaign.journal.last_note(RANKING)
    return Evidence(
        name=campaign.path.name,
        setup=campaign.setup,
        sheet=sheet,
        status=status,
        failure=failure,
        told=told_labels(history, sheet.ids, campaign.setup.initial),
        pool=tuple(place for place, row in enumerate(sheet.ids) if states[row].status in ("open", "asked")),
        ranking=None if note is None else note.payload,
        open_ids=frozenset(row for row, state in states.items() if state.status == "open"),
        history=history,
    )


def told_labels(history: Sequence[Event], ids: Sequence[str], initial: int) -> tuple[Told, ...]:
    """The labels that stand after all events, of which the first `initial` came with the table."""
    place = {row: position for position, row in enumerate(ids)}
    standing: dict[str, Told] = {}
    for event in history:
        if event.kind == "withdraw":
            standing.pop(event.row, None)
        elif event.kind in ("label", "replace") and event.label is not None:
            first = standing.get(event.row)
            early = event.number <= initial if first is None else first.initial
            standing[event.row] = Told(place[event.row], event.label, early)
    return tuple(standing.values())


def _status(campaign: Campaign) -> tuple[Status, str | None]:
    campaign.sheet  # noqa: B018 (a table that is gone or changed is refused, as there is nothing to show then)
    try:
        return campaign.status(), None
    except CampaignError as error:
        return campaign.status(refresh=False), str(error)
