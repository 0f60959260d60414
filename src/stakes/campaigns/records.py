"""The lines of a campaign file, read and added."""

from __future__ import annotations

import json
from collections.abc import Mapping

from stakes.campaigns.database import Database
from stakes.campaigns.events import Event, Note

_NEXT = "(SELECT coalesce(max(number), 0) + 1 FROM {})"


def add_rows(database: Database, costs: Mapping[str, float | None]) -> None:
    """Add the rows of a campaign, in their order."""
    lines = ((number, row, cost) for number, (row, cost) in enumerate(costs.items(), start=1))
    database.connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", lines)


def costs(database: Database) -> dict[str, float | None]:
    """The costs of all rows by id, in their order."""
    return {row: cost for row, cost in database.read("SELECT id, cost FROM rows ORDER BY number")}


def has_row(database: Database, row: str) -> bool:
    """Whether the campaign has a row of this id."""
    return bool(database.read("SELECT 1 FROM rows WHERE id = ?", row))


def add_event(database: Database, event: Event) -> None:
    """Add an event; its number is the next one."""
    database.write(f"INSERT INTO events VALUES ({_NEXT.format('events')}, ?, ?, ?, ?, ?, ?, ?)", *event[1:])


def events(database: Database, row: str | None = None) -> tuple[Event, ...]:
    """All events, or those of one row, in their order."""
    if row is None:
        return tuple(map(Event._make, database.read("SELECT * FROM events ORDER BY number")))
    return tuple(map(Event._make, database.read("SELECT * FROM events WHERE row = ? ORDER BY number", row)))


def last_event(database: Database) -> int:
    """The number of the last event, 0 before the first."""
    ((number,),) = database.read("SELECT coalesce(max(number), 0) FROM events")
    return int(number)


def next_batch(database: Database) -> int:
    """The number of the next batch."""
    ((number,),) = database.read("SELECT coalesce(max(batch), 0) + 1 FROM events WHERE batch IS NOT NULL")
    return int(number)


def add_note(database: Database, at: float, kind: str, version: int, payload: str) -> None:
    """Add a note, its payload as JSON."""
    database.write(f"INSERT INTO notes VALUES ({_NEXT.format('notes')}, ?, ?, ?, ?)", at, kind, version, payload)


def notes(database: Database, kind: str) -> tuple[Note, ...]:
    """The notes of a kind, in their order."""
    return tuple(map(_note, database.read("SELECT * FROM notes WHERE kind = ? ORDER BY number", kind)))


def last_note(database: Database, kind: str) -> Note | None:
    """The last note of a kind; those before it, which may be large, are not read."""
    found = database.read("SELECT * FROM notes WHERE kind = ? ORDER BY number DESC LIMIT 1", kind)
    return _note(found[0]) if found else None


def _note(line: tuple[int, float, str, int, str]) -> Note:
    return Note(*line[:4], json.loads(line[4]))
