"""Campaign files changed by hand, and files of the version before."""

import sqlite3

VERSION_2 = """
PRAGMA application_id = 1400138611;
PRAGMA user_version = 2;
CREATE TABLE rows (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, cost REAL);
CREATE TABLE events (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        row TEXT NOT NULL REFERENCES rows (id),
        label TEXT,
        until REAL,
        batch INTEGER,
        who TEXT
    );
CREATE INDEX events_of_row ON events (row);
CREATE INDEX events_of_batch ON events (batch) WHERE batch IS NOT NULL;
CREATE TABLE records (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        payload TEXT NOT NULL
    );
CREATE INDEX records_of_kind ON records (kind);
CREATE TRIGGER events_shape BEFORE INSERT ON events
    WHEN NEW.kind NOT IN ('label', 'replace', 'ask', 'release', 'skip', 'withdraw')
        OR (NEW.label IS NOT NULL) <> (NEW.kind IN ('label', 'replace'))
        OR (NEW.until IS NOT NULL) <> (NEW.kind = 'ask')
        OR (NEW.batch IS NOT NULL) <> (NEW.kind = 'ask')
    BEGIN SELECT RAISE(ABORT, 'an event of a campaign lacks something or has too much'); END;
"""
GUARDS = """
CREATE TRIGGER {0}_updated BEFORE UPDATE ON {0} BEGIN SELECT RAISE(ABORT, '{0} of a campaign are added, never changed'); END;
CREATE TRIGGER {0}_deleted BEFORE DELETE ON {0} BEGIN SELECT RAISE(ABORT, '{0} of a campaign are added, never changed'); END;
CREATE TRIGGER {0}_inserted BEFORE INSERT ON {0} WHEN NEW.number <> (SELECT coalesce(max(number), 0) FROM {0}) + 1 BEGIN SELECT RAISE(ABORT, '{0} of a campaign are added, never changed'); END;
"""  # noqa: E501 (as SQLite keeps them)


def changed(path, script):
    """Run SQL on a file."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(script)
    connection.close()


def unchained(path, rows, more=""):
    """A campaign as the version before, which had no hashes, made it."""
    changed(path, VERSION_2 + "".join(map(GUARDS.format, ("rows", "events", "records"))))
    lines = "".join(f"INSERT INTO rows VALUES ({number}, '{row}', NULL);" for number, row in enumerate(rows[1:], 2))
    changed(
        path,
        f"INSERT INTO rows VALUES (1, '{rows[0]}', 2.5);{lines}"
        """INSERT INTO records VALUES (1, 100.0, 'settings', 0, '{"loss": "log"}');"""
        "INSERT INTO events VALUES (1, 100.0, 'label', 'a', 'cat', NULL, NULL, NULL);"
        f"INSERT INTO events VALUES (2, 200.0, 'ask', 'b', NULL, 300.0, 1, 'ann');{more}",
    )
