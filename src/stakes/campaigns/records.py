"""The lines of a campaign file, read and added."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from stakes.campaigns.database import Database
from stakes.campaigns.events import Event, Note

_AT_ONCE = 500  # ids in one query: some builds of SQLite take 999
_NEXT = "(SELECT coalesce(max(number), 0) + 1 FROM {})"


def add_rows(database: Database, costs: Mapping[str, float | None]) -> None:
    """Add the rows of a campaign, in their order."""
    lines = ((number, row, cost) for number, (row, cost) in enumerate(costs.items(), start=1))
    database.connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", lines)


def costs(database: Database) -> dict[str, float | None]:
    """The costs of all rows by id, in their order."""
    return dict(database.read("SELECT id, cost FROM rows ORDER BY number"))


def unknown(database: Database, rows: Iterable[str]) -> list[str]:
    """Those of the ids that the campaign does not have."""
    asked, known = list(rows), set[str]()
    for start in range(0, len(asked), _AT_ONCE):
        some = asked[start : start + _AT_ONCE]
        known |= {row for (row,) in database.read(f"SELECT id FROM rows WHERE id IN ({_marks(len(some))})", *some)}
    return [row for row in asked if row not in known]


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def add_event(database: Database, event: Event) -> None:
    """Add an event; its number is the next one."""
    database.write(f"INSERT INTO events VALUES ({_NEXT.format('events')}, ?, ?, ?, ?, ?, ?, ?)", *event[1:])


def events(database: Database, row: str | None = None) -> tuple[Event, ...]:
    """All events, or those of one row, in their order."""
    if row is None:
        return tuple(map(Event._make, database.read("SELECT * FROM events ORDER BY number")))
    return tuple(map(Event._make, database.read("SELECT * FROM events WHERE row = ? ORDER BY number", row)))


def events_since(database: Database, version: int) -> tuple[Event, ...]:
    """The events after the one of a number."""
    return tuple(map(Event._make, database.read("SELECT * FROM events WHERE number > ? ORDER BY number", version)))


def labels(database: Database) -> tuple[str, ...]:
    """All labels that were ever told, each once."""
    found = database.read("SELECT DISTINCT label FROM events WHERE label IS NOT NULL ORDER BY label")
    return tuple(label for (label,) in found)


def last_event_of(database: Database, row: str) -> tuple[Event, ...]:
    """The last event of a row, if there is one."""
    found = database.read("SELECT * FROM events WHERE row = ? ORDER BY number DESC LIMIT 1", row)
    return tuple(map(Event._make, found))


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
