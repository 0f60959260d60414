"""New files of campaigns: made whole or not at all, of a table, of a damaged file, or of one without hashes."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from stakes.campaign.journal import append
from stakes.campaign.sqlite import (
    APPLICATION,
    EVENTS,
    RECORDS,
    ROWS,
    TABLES,
    UNCHAINED,
    VERSION,
    connect,
    harden,
    path_of_file,
    plain_errors,
    refuse_other_tables,
    refuse_other_things,
    transaction,
)
from stakes.campaign.states import Event, Replay
from stakes.exceptions import StakesError
from stakes.files.write import checked_output

UNCHAINED_TABLES = (
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
    """CREATE TABLE records (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        payload TEXT NOT NULL
    )""",
    "CREATE INDEX records_of_kind ON records (kind)",
    """CREATE TRIGGER events_shape BEFORE INSERT ON events
    WHEN NEW.kind NOT IN ('label', 'replace', 'ask', 'release', 'skip', 'withdraw')
        OR (NEW.label IS NOT NULL) <> (NEW.kind IN ('label', 'replace'))
        OR (NEW.until IS NOT NULL) <> (NEW.kind = 'ask')
        OR (NEW.batch IS NOT NULL) <> (NEW.kind = 'ask')
    BEGIN SELECT RAISE(ABORT, 'an event of a campaign lacks something or has too much'); END""",
    *(
        f"CREATE TRIGGER {table}_{done} BEFORE {change} ON {table} {when}"
        f"BEGIN SELECT RAISE(ABORT, '{table} of a campaign are added, never changed'); END"
        for table in ("rows", "events", "records")
        for done, change, when in (
            ("updated", "UPDATE", ""),
            ("deleted", "DELETE", ""),
            ("inserted", "INSERT", f"WHEN NEW.number <> (SELECT coalesce(max(number), 0) FROM {table}) + 1 "),
        )
    ),
)
"""The tables of a file without hashes, word for word."""

# What file systems without hard links answer, by kind of system and of file system.
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}


def create_file(
    path: Path,
    rows: Sequence[tuple[str, float | None]],
    events: Sequence[Event],
    records: Sequence[tuple[float, str, int, str]],
) -> None:
    """Make a campaign beside `path` and put it there when it is whole; what is there already stays."""
    _refuse_taken(path)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with plain_errors(path):
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # labels are for whoever made it
            connection = connect(part, "mode=rw")
            try:
                connection.execute("PRAGMA journal_mode = OFF")  # on any failure the whole file goes
                with transaction(connection, "BEGIN IMMEDIATE"):
                    _fill_tables(connection, [(number, *row) for number, row in enumerate(rows, 1)], events, records)
            finally:
                connection.close()
            _sync(part)
            _put(part, path)
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _fill_tables(
    connection: sqlite3.Connection,
    rows: Sequence[tuple[int, str, float | None]],
    events: Sequence[Event],
    records: Sequence[tuple[float, str, int, str]],
) -> None:
    """Make the tables of a campaign, with all that it has at first."""
    for statement in (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}", *TABLES):
        connection.execute(statement)
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
    append(connection, Replay.begin(rows), events, records)


def add_hashes(path: Path, connection: sqlite3.Connection) -> None:
    """Put a campaign of the version before into tables with hashes, all or nothing, if it keeps to the rules."""
    with transaction(connection, "BEGIN IMMEDIATE"):
        if connection.execute("PRAGMA user_version").fetchall() != [(UNCHAINED,)]:
            return  # another process was quicker
        rows = connection.execute(ROWS).fetchall()
        events = connection.execute(EVENTS.format("NULL"), (0,)).fetchall()
        records = connection.execute(RECORDS.format("NULL"), (0,)).fetchall()
        try:
            replay = Replay.begin(rows)
            replay.take_events(events, hashed=False)
            replay.take_records(records, hashed=False)
        except StakesError as error:
            raise StakesError(f"{path} is damaged: {error}; put a backup in its place") from error
        for table in ("events", "records", "rows"):
            connection.execute(f"DROP TABLE {table}")  # and its indexes and triggers
        _fill_tables(connection, rows, replay.events, [(at, *rest) for _, at, *rest, _ in records])
        refuse_other_tables(path, connection, VERSION)


def recover(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> tuple[int, str]:
    """Take what is sound in a damaged campaign, up to the first break, into a new file.

    The damaged file is left as it is.

    Args:
        path: The damaged file.
        new: The file to make.

    Returns:
        How many events were taken over, and what comes after them.

    Raises:
        StakesError: If not even rows and settings are sound, or the new file is there already.
    """
    where = path_of_file(path)
    with plain_errors(where):
        connection = _open_damaged(where)
        try:
            replay, records, why = _sound_part(connection)
        except (StakesError, sqlite3.Error, MemoryError) as error:
            raise StakesError(f"{where}: nothing can be recovered ({error}); put a backup in its place") from error
        finally:
            connection.close()
    create_file(path_of_file(new), list(replay.rows.items()), replay.events, records)
    return len(replay.events), why


def _open_damaged(path: Path) -> sqlite3.Connection:
    """A connection that reads a file whatever is wrong with it, and changes nothing; its tables are ours."""
    refuse_other_things(path)
    connection = connect(path, "mode=ro&immutable=1")
    try:
        harden(path, connection)
        connection.execute("PRAGMA writable_schema = ON")
        refuse_other_tables(path, connection, VERSION)
    except BaseException:
        connection.close()
        raise
    return connection


def _sound_part(connection: sqlite3.Connection) -> tuple[Replay, list[Any], str]:
    """What of a damaged file is as it was written, its records (at, kind, version, JSON), and what comes after."""
    replay, records, why = Replay.begin(connection.execute(ROWS).fetchall()), list[Any](), "nothing is missing"
    try:
        for line in connection.execute(RECORDS.format("hash"), (0,)):
            replay.take_records([line])
            records.append(line[1:-1])
    except (StakesError, sqlite3.Error, MemoryError) as error:
        if not records:
            raise
        why = str(error) or "a line without end"  # of which SQLite says that memory is short
    if not records:  # the first one is the settings, and its hash, which follows that of the rows, vouches for them
        raise StakesError("its settings are gone")
    try:
        replay.take_events(connection.execute(EVENTS.format("hash"), (0,)))
    except (StakesError, sqlite3.Error, MemoryError) as error:
        why = str(error) or "a line without end"  # of which SQLite says that memory is short
    return replay, [record for record in records if record[2] <= len(replay.events)], why


def _put(part: Path, path: Path) -> None:
    """Give a file its name, unless the name was taken meanwhile."""
    try:
        _link_name(part, path)
    except FileExistsError as error:
        raise _taken(path) from error


def _taken(path: Path) -> StakesError:
    return StakesError(f"{path} is there already and was left as it is; open it, or give another path")


def _link_name(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))  # the name is ours now: nobody's file is replaced
        os.replace(part, path)


def _sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk; Windows does the latter by itself."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_taken(path: Path) -> None:
    """A name is free where its journal's is too: an old journal would be played back into the new file."""
    if not path.parent.is_dir():
        raise StakesError(f"there is no folder {path.parent}; make it first, or give another path")
    if os.path.lexists(path):
        raise _taken(path)
    for left in (path.with_name(f"{path.name}{suffix}") for suffix in ("-journal", "-wal")):
        if os.path.lexists(left):
            raise StakesError(f"{left} is left from a file that is gone; move it away, or give another path")
    checked_output(path)  # not what SQLite would take for a part of another campaign
