"""Events added by the rules. A change looks at its own rows only: its cost does not grow with the campaign."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from stakes.campaigns import records
from stakes.campaigns.database import Database
from stakes.campaigns.errors import CampaignError, unknown_row
from stakes.campaigns.events import Event, Kind
from stakes.campaigns.files import refuse_damage
from stakes.campaigns.states import RowState, checked, needless, replay

_OPEN = RowState()


def refuse_unknown(database: Database, rows: Iterable[str]) -> None:
    """Refuse ids that the campaign does not have; rows never change, so this needs no transaction."""
    if strangers := records.unknown(database, rows):
        raise unknown_row(strangers[0], tuple(records.costs(database)))


def row_state(database: Database, row: str) -> RowState:
    """The state of one row: the last of its events decides."""
    return replay(records.last_event_of(database, row)).get(row, _OPEN)


def row_states(database: Database, now: float) -> dict[str, RowState]:
    """The states of all rows by id, in their order, by the replay of all events."""
    happened = replay(records.events(database))
    return {row: happened.get(row, _OPEN).at(now) for row in records.costs(database)}


def is_open(database: Database, row: str, now: float) -> bool:
    """Whether a row can be handed out."""
    return row_state(database, row).at(now).status == "open"


def add(database: Database, event: Event) -> bool:
    """Record an event if the row can take it; False, and nothing recorded, if it is already so."""
    state = row_state(database, event.row)
    if needless(state, event):
        return False
    records.add_event(database, checked(state, event))
    return True


def add_all(database: Database, kind: Kind, rows: tuple[str, ...], who: str | None, at: float) -> None:
    """Record an event of one kind for each row, all or none."""
    refuse_unknown(database, rows)
    with database.writing():
        for row in rows:
            add(database, Event(0, at, kind, row, who=who))


def hand_out(
    database: Database, rows: tuple[str, ...], n: int, at: float, until: float, who: str | None
) -> tuple[str, ...]:
    """Record that the first n rows that are open are asked, as one batch."""
    refuse_unknown(database, rows)
    with database.writing():
        batch = records.next_batch(database)
        free = tuple(itertools.islice((row for row in rows if is_open(database, row, at)), n))
        for row in free:
            add(database, Event(0, at, "ask", row, None, until, batch, who))
    return free


def tell(database: Database, event: Event, replace: bool) -> Kind | None:
    """Record a label, as what it was recorded, None if it was known."""
    if replace and row_state(database, event.row).status == "labelled":
        event = event._replace(kind="replace")
    return event.kind if add(database, event) else None


def check(database: Database) -> None:
    """Look through the whole file and replay every event by the rules; raise if anything is wrong."""
    with database.reading():
        refuse_damage(database.path, database.connection, "integrity_check")
        if database.read("PRAGMA foreign_key_check"):
            raise CampaignError(f"{database.path}: it is damaged (events of unknown rows); put a backup in its place")
        events = records.events(database)
    try:
        _refuse_lawless(events)
    except CampaignError as error:
        raise CampaignError(f"{database.path}: its events break the rules ({error}); put a backup in place") from error


def _refuse_lawless(events: tuple[Event, ...]) -> None:
    states: dict[str, RowState] = {}
    for number, event in enumerate(events, start=1):
        if event.number != number:
            raise CampaignError(f"event {number} is missing")
        states |= replay([checked(states.get(event.row, _OPEN), event)])
