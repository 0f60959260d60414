"""The tables of a campaign file. Nothing in them is ever changed or deleted, and the file itself sees to it."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from stakes.exceptions import StakesError

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


# ----------------------------------------------------------------------
# One connection to a campaign file: reading, writing all or nothing, and SQLite's errors in plain words.


WAIT = 30.0  # seconds that a writer waits for the others

_SENTENCES = {
    sqlite3.SQLITE_BUSY: f"others have been writing to it for {WAIT:.0f} s; repeat the call",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and repeat the call",
    sqlite3.SQLITE_IOERR: "the disk does not take or give data: it may be full or gone; see to it and repeat the call",
    sqlite3.SQLITE_READONLY: "it cannot be written to; allow writing to the file and to its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened for this; allow writing to the file and to its folder",
    sqlite3.SQLITE_PERM: "access to it is not allowed; change its permissions",
    sqlite3.SQLITE_CORRUPT: "it is damaged; put a backup in its place, or rescue what is there with sqlite3's .recover",
    sqlite3.SQLITE_NOTADB: "it is not a campaign file (not even an SQLite file); give another path",
}


@dataclass(frozen=True, eq=False)
class Database:
    """A campaign file, open in one thread of one process."""

    path: Path
    connection: sqlite3.Connection
    process: int = field(default_factory=os.getpid)

    def read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All that a query finds, at once: a query left half read would keep writers out."""
        with self._guarded():
            return self.connection.execute(query, values).fetchall()

    def write(self, statement: str, *values: Any) -> None:
        """One change, inside `writing`."""
        self.connection.execute(statement, values)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A block whose changes are on the disk together when it ends, or not at all; one at a time."""
        with self._guarded(), transaction(self.connection, "BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block whose queries all see the same moment."""
        with self._guarded(), transaction(self.connection, "BEGIN"):
            yield

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if os.getpid() != self.process:  # a lock of SQLite is lost in a fork, and the file with it
            raise StakesError(f"{self.path} was opened by another process; open it again in this one")
        with plain_errors(self.path):
            yield


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """A block that is committed when it ends and rolled back when anything, Ctrl-C too, ends it early."""
    if connection.in_transaction:  # a second Ctrl-C can come while the first one is being seen to
        connection.execute("ROLLBACK")
    try:
        connection.execute(begin)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system as sentences that say what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StakesError(f"{path}: {_sentence(error)} ({error})") from error


def _sentence(error: Exception) -> str:
    if isinstance(error, sqlite3.ProgrammingError):  # raised by Python: closed, or used in another thread
        return "this campaign is closed, or was opened in another thread; open it again here"
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bits say where in SQLite it happened
    return _SENTENCES.get(primary, "it could not be used; nothing was recorded")


# ----------------------------------------------------------------------
# Campaign files: made whole or not at all, opened only if they are what they should be, never overwritten.


# What file systems without hard links answer, by kind of system and of file system.
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}


def create_file(path: Path, fill: Callable[[Database], None]) -> None:
    """Make a campaign beside `path` and put it there when it is whole; what is there already stays."""
    _refuse_taken(path)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with plain_errors(path):
            _write_new(part, fill)
            _sync(part)
            _put(part, path)
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def open_file(path: Path) -> Database:
    """A campaign file, opened for reading and, where allowed, writing."""
    with plain_errors(path):
        _refuse_other_things(path)
        _refuse_foreigners(path)
        connection = _connect(path, "mode=rw")
        try:
            _prepare(connection)
            refuse_damage(path, connection, "quick_check")
        except BaseException:
            connection.close()
            raise
    return Database(path, connection)


def refuse_damage(path: Path, connection: sqlite3.Connection, check: str) -> None:
    """Let SQLite look through the file: quick_check for its pages, integrity_check for its indexes as well."""
    found = [text for (text,) in connection.execute(f"PRAGMA {check}(3)").fetchall()]
    if found != ["ok"]:
        raise StakesError(f"{path}: it is damaged ({'; '.join(found)}); put a backup in its place")


def _prepare(connection: sqlite3.Connection) -> None:
    """EXTRA: a commit is on the disk, and so is the end of its journal, before it is acknowledged."""
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA foreign_keys = ON")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=WAIT, isolation_level=None)


def _write_new(part: Path, fill: Callable[[Database], None]) -> None:
    connection = _connect(part, "mode=rwc")
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # on any failure the whole file goes
        with transaction(connection, "BEGIN IMMEDIATE"):
            for statement in STATEMENTS:
                connection.execute(statement)
            fill(Database(part, connection))
    finally:
        connection.close()


def _put(part: Path, path: Path) -> None:
    """Give a file its name, unless the name was taken meanwhile."""
    try:
        _link(part, path)
    except FileExistsError as error:
        raise _taken(path) from error


def _taken(path: Path) -> StakesError:
    return StakesError(f"{path} is there already and was left as it is; open it, or give another path")


def _link(part: Path, path: Path) -> None:
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


def _refuse_other_things(path: Path) -> None:
    if not path.exists():
        raise StakesError(f"there is no campaign at {path}; check the path, or create one")
    if not stat.S_ISREG(path.stat().st_mode):
        raise StakesError(f"{path} is a folder or a device, not a campaign file; give the path of a file")
    if path.stat().st_size == 0:
        raise StakesError(f"{path} is empty: no campaign was ever in it; delete it and create one")


def _refuse_foreigners(path: Path) -> None:
    """Look at the numbers in the header without taking part: no lock is asked for, no foreign journal played back."""
    connection = _connect(path, "mode=ro&immutable=1")
    try:
        connection.execute("PRAGMA writable_schema = ON")  # so that a header newer than the rest can still be read
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    finally:
        connection.close()
    if application != APPLICATION:
        raise StakesError(f"{path} is an SQLite file of another program, not a campaign; give another path")
    if version != VERSION:
        raise StakesError(f"{path} has schema {version} and this stakes reads {VERSION}; use the stakes that made it")
