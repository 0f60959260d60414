"""The tables of a campaign file. Nothing in them is ever changed or deleted, and the file itself sees to it."""

from __future__ import annotations

APPLICATION = 0x53746B73  # "Stks": how a campaign is told from other SQLite files
VERSION = 1

_TABLES = (
    "CREATE TABLE rows (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, cost REAL)",
    """CREATE TABLE events (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        row TEXT NOT NULL REFERENCES rows (id),
        label TEXT,
        until REAL,
        batch INTEGER,
        who TEXT
    )""",
    "CREATE INDEX events_of_row ON events (row)",
    "CREATE INDEX events_of_batch ON events (batch) WHERE batch IS NOT NULL",
    """CREATE TABLE notes (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        payload TEXT NOT NULL
    )""",
    "CREATE INDEX notes_of_kind ON notes (kind)",
)

# Not CHECK clauses: those are gone through again, for every line, whenever a campaign is opened.
_SHAPE = """CREATE TRIGGER events_shape BEFORE INSERT ON events
    WHEN NEW.kind NOT IN ('label', 'replace', 'ask', 'release', 'skip', 'withdraw')
        OR (NEW.label IS NOT NULL) <> (NEW.kind IN ('label', 'replace'))
        OR (NEW.until IS NOT NULL) <> (NEW.kind = 'ask')
        OR (NEW.batch IS NOT NULL) <> (NEW.kind = 'ask')
    BEGIN SELECT RAISE(ABORT, 'an event of a campaign lacks something or has too much'); END"""


def _guards(table: str) -> tuple[str, str, str]:
    """Triggers that refuse every change of a table but a line added at its end (INSERT OR REPLACE deletes silently)."""
    refusal = f"BEGIN SELECT RAISE(ABORT, '{table} of a campaign are added, never changed'); END"
    last = f"(SELECT coalesce(max(number), 0) FROM {table})"
    return (
        f"CREATE TRIGGER {table}_updated BEFORE UPDATE ON {table} {refusal}",
        f"CREATE TRIGGER {table}_deleted BEFORE DELETE ON {table} {refusal}",
        f"CREATE TRIGGER {table}_inserted BEFORE INSERT ON {table} WHEN NEW.number <> {last} + 1 {refusal}",
    )


STATEMENTS = (
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
    *_TABLES,
    _SHAPE,
    *(guard for table in ("rows", "events", "notes") for guard in _guards(table)),
)
