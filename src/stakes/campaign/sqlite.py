"""The SQLite file of a campaign: its tables, the chain of hashes, and how it is made, opened and converted.

A file is made whole or not at all, and never overwritten. Before anything is read of a file, its tables are compared
with ours, word for word: a file with a trigger, a view, an index or a column more is not ours, and nothing in it runs.

Every event and every record has a hash: that of the hash before it and of what is in its line. The first ones follow
the hash of all rows, and the head of the file has the numbers of lines and a hash of the last ones. What was changed,
left out, added or put in another order is found so; a history that was rewritten together with all hashes is not, as
there is no secret in them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shlex
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from stakes.exceptions import StakesError

APPLICATION = 0x53746B73  # "Stks": marks a campaign among SQLite files
VERSION = 3
"""The version of the tables and of what is kept in them."""
UNCHAINED = 2
"""The version before there were hashes; such a file is converted when it is opened."""

_WAIT = 30.0  # seconds that a writer waits for the others
_ADVICE = "Put a backup in its place, or take what is sound into a new file: stakes doctor {path} --recover NEW"

_TABLES = (
    "CREATE TABLE rows (number INTEGER PRIMARY KEY, id TEXT NOT NULL, cost REAL)",
    "CREATE TABLE events (number INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, row TEXT NOT NULL, "
    "label TEXT, until REAL, batch INTEGER, who TEXT, hash BLOB NOT NULL)",
    "CREATE TABLE records (number INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, version INTEGER NOT NULL, "
    "payload TEXT NOT NULL, hash BLOB NOT NULL)",
    "CREATE TABLE head (number INTEGER PRIMARY KEY, rows INTEGER NOT NULL, events INTEGER NOT NULL, "
    "records INTEGER NOT NULL, hash BLOB NOT NULL)",
)
_UNCHAINED_TABLES = (
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
_SCHEMAS = {
    VERSION: frozenset(_TABLES),
    UNCHAINED: frozenset({*_UNCHAINED_TABLES, None}),  # None: the index that UNIQUE makes
}
ROWS = "SELECT number, id, cost FROM rows ORDER BY number"
EVENTS = "SELECT number, at, kind, row, label, until, batch, who{} FROM events WHERE number > ? ORDER BY number"
RECORDS = "SELECT number, at, kind, version, payload{} FROM records WHERE number > ? ORDER BY number"

_SENTENCES = {
    sqlite3.SQLITE_BUSY: f"others have been writing to it for {_WAIT:.0f} s; repeat the call",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and repeat the call",
    sqlite3.SQLITE_IOERR: "the disk does not take or give data: it may be full or gone; see to it and repeat the call",
    sqlite3.SQLITE_READONLY: "it cannot be written to; allow writing to the file and to its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened for this; allow writing to the file and to its folder",
    sqlite3.SQLITE_PERM: "access to it is not allowed; change its permissions",
    sqlite3.SQLITE_NOTADB: "it is not a campaign file (not even an SQLite file); give another path",
}

# What SQLite answers where a file is not what it was; 0: a text that is not UTF-8, which Python finds.
_DAMAGE = {0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}

# What file systems without hard links answer, by kind of system and of file system.
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}

_CELLS: dict[type, Callable[[Any], str]] = {
    str: json.encoder.encode_basestring_ascii,
    float: float.hex,
    int: str,
    type(None): lambda _: "null",
}


def _text(line: Iterable[Any]) -> str:
    return ",".join([_CELLS[type(cell)](cell) for cell in line])


def link(before: bytes, line: Iterable[str | float | None]) -> bytes:
    """The hash of a line: SHA-256 of the hash before it and of its cells, with commas between them.

    Texts are written as JSON does in ASCII, floating numbers in hexadecimal (`float.hex`), nothing as null: the same on
    every machine and in every version of Python.
    """
    return hashlib.sha256(before + _text(line).encode("ascii")).digest()


class Head(NamedTuple):
    """How long the parts of a campaign are, and the hash of where they end."""

    rows: int
    events: int
    records: int
    hash: bytes


class Ends(NamedTuple):
    """Where the chains of a campaign end: numbers of lines, and the hashes of the last ones."""

    rows: int
    rows_hash: bytes
    events: int
    event_hash: bytes
    records: int
    record_hash: bytes

    def head(self) -> Head:
        """What the head of the file must be."""
        counts = [self.rows, self.events, self.records]
        whole = link(self.rows_hash + self.event_hash + self.record_hash, counts)
        return Head(self.rows, self.events, self.records, whole)


def ends_of_rows(lines: Sequence[Sequence[Any]]) -> Ends:
    """Where the chains begin: after the hash of all rows (number, id, cost), a line of text for each."""
    start = hashlib.sha256("\n".join(map(_text, lines)).encode("ascii")).digest()
    return Ends(len(lines), start, 0, start, 0, start)


class Writer:
    """Adds lines at the ends of the chains, within one transaction, and then writes the head."""

    def __init__(self, connection: sqlite3.Connection, ends: Ends) -> None:
        self._connection, self._first, self.ends = connection, ends, ends

    def add_event(self, event: Sequence[Any]) -> None:
        """Add an event; the first of its cells is put right: its number is the next one."""
        number = self.ends.events + 1
        line = (number, *event[1:])
        made = link(self.ends.event_hash, line)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*line, made))
        self.ends = self.ends._replace(events=number, event_hash=made)

    def add_record(self, at: float, kind: str, version: int, payload: str) -> None:
        """Add a record, whose payload is JSON."""
        number = self.ends.records + 1
        line = (number, at, kind, version, payload)
        made = link(self.ends.record_hash, line)
        self._connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", (*line, made))
        self.ends = self.ends._replace(records=number, record_hash=made)

    def finish(self) -> None:
        """Write the head, if anything was added."""
        if self.ends != self._first:
            _, events, records, whole = self.ends.head()
            change = "UPDATE head SET events = ?, records = ?, hash = ? WHERE number = 1"
            self._connection.execute(change, (events, records, whole))


def damaged(path: Path, what: str) -> StakesError:
    """The refusal of a file that is not what was written."""
    return StakesError(
        f"{path} is damaged, or was changed by another program: {what}. {_ADVICE.format(path=shlex.quote(str(path)))}"
    )


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
        if isinstance(error, sqlite3.ProgrammingError):  # raised by Python: closed, or used in another thread
            raise StakesError(
                f"{path}: this campaign is closed, or was opened in another thread; open it again here ({error})"
            ) from error
        primary = (
            -1 if isinstance(error, OSError) else getattr(error, "sqlite_errorcode", 0) & 0xFF
        )  # the higher bits say where in SQLite it happened
        if primary not in _DAMAGE:
            said = _SENTENCES.get(primary, "it could not be used; nothing was recorded")
            raise StakesError(f"{path}: {said} ({error})") from error
        raise damaged(path, f"SQLite says: {error}") from error


def path_of_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file; old names that are not Unicode are names too."""
    if "\0" in str(path):
        raise StakesError(f"the path holds a NUL: {str(path)!r}; remove it")
    return Path(path)


def create_file(path: Path, rows: Sequence[tuple[str, float | None]], fill: Callable[[Writer], None]) -> None:
    """Make a campaign beside `path` and put it there when it is whole; what is there already stays."""
    _refuse_taken(path)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with plain_errors(path):
            connection = _connect(part, "mode=rwc")
            try:
                connection.execute("PRAGMA journal_mode = OFF")  # on any failure the whole file goes
                with transaction(connection, "BEGIN IMMEDIATE"):
                    _fill_tables(connection, [(number, *row) for number, row in enumerate(rows, start=1)], fill)
            finally:
                connection.close()
            _sync(part)
            _put(part, path)
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _fill_tables(connection: sqlite3.Connection, rows: Sequence[Any], fill: Callable[[Writer], None]) -> None:
    for statement in (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}", *_TABLES):
        connection.execute(statement)
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
    writer = Writer(connection, ends_of_rows(rows))
    connection.execute("INSERT INTO head VALUES (1, ?, ?, ?, ?)", writer.ends.head())
    fill(writer)
    writer.finish()


def open_file(path: Path) -> tuple[sqlite3.Connection, int]:
    """A connection to a campaign file whose tables and pages are sound, and the version of its tables."""
    with plain_errors(path):
        _refuse_other_things(path)
        version = _refuse_other_programs(path)
        connection = _connect(path, "mode=rw")
        try:
            _harden(connection)
            _refuse_other_tables(path, connection, version)  # again: an unfinished write has been undone by now
            connection.execute("PRAGMA journal_mode = DELETE")
            # EXTRA: a commit is on the disk, and so is the end of its journal, before it is acknowledged.
            connection.execute("PRAGMA synchronous = EXTRA")
            _refuse_bad_pages(path, connection)
        except BaseException:
            connection.close()
            raise
    return connection, version


def convert(connection: sqlite3.Connection, rows: Sequence[Any], fill: Callable[[Writer], None]) -> None:
    """Put a campaign without hashes into tables that have them, in one transaction that the caller has begun."""
    for table in ("events", "records", "rows"):
        connection.execute(f"DROP TABLE {table}")  # and its indexes and triggers
    _fill_tables(connection, rows, fill)


def open_damaged(path: Path) -> sqlite3.Connection:
    """A connection that reads a campaign which `open_file` refuses, and changes nothing; its tables are ours."""
    with plain_errors(path):
        _refuse_other_things(path)
        connection = _connect(path, "mode=ro&immutable=1")
        try:
            _harden(connection)
            connection.execute("PRAGMA writable_schema = ON")
            _refuse_other_tables(path, connection, VERSION)
        except BaseException:
            connection.close()
            raise
    return connection


def _harden(connection: sqlite3.Connection) -> None:
    """Let nothing that is in a stranger's file run, and have every page looked at before it is used."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    for limit in (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, sqlite3.SQLITE_LIMIT_ATTACHED):
        connection.setlimit(limit, 0)
    if hasattr(connection, "setconfig"):  # from Python 3.12 on
        for name in ("SQLITE_DBCONFIG_ENABLE_TRIGGER", "SQLITE_DBCONFIG_ENABLE_VIEW"):
            connection.setconfig(getattr(sqlite3, name), False)


def _refuse_other_tables(path: Path, connection: sqlite3.Connection, version: int) -> None:
    """Refuse a file whose tables are not word for word those of its version: nothing else in it was looked at yet."""
    found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    ours = _SCHEMAS[version]
    if strange := [f"the {kind} {name}" for kind, name, sql in found if sql not in ours]:
        raise damaged(path, f"{', '.join(map(_printable, strange[:3]))} is not as stakes makes it, and nothing was run")
    if len(found) != len(ours) or len({sql for _, _, sql in found}) != len(ours):
        names = ", ".join(_printable(str(name)) for _, name, _ in found) or "none"
        raise damaged(path, f"its tables are not those of a campaign but {names}")


def _printable(text: str) -> str:
    """A name of a stranger's, in letters that a terminal shows and does not obey."""
    return text[:80].encode("unicode_escape").decode("ascii")


def _refuse_bad_pages(path: Path, connection: sqlite3.Connection) -> None:
    """Let SQLite look through all pages of the file."""
    found = [str(text) for (text,) in connection.execute("PRAGMA quick_check(3)").fetchall()]
    if found != ["ok"]:
        raise damaged(path, "; ".join(" ".join(text.split()) for text in found))


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=_WAIT, isolation_level=None)


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


def _refuse_other_things(path: Path) -> None:
    if not path.exists():
        raise StakesError(f"there is no campaign at {path}; check the path, or create one")
    if not stat.S_ISREG(path.stat().st_mode):
        raise StakesError(f"{path} is a folder or a device, not a campaign file; give the path of a file")
    if path.stat().st_size == 0:
        raise StakesError(f"{path} is empty: no campaign was ever in it; delete it and create one")
    if os.path.lexists(wal := path.with_name(f"{path.name}-wal")):  # SQLite would write it into the file
        raise StakesError(f"{wal} is there, which stakes never makes; close the program that did, or move it away")


def _refuse_other_programs(path: Path) -> int:
    """The version in the header, read without taking part: no lock is asked for, no foreign journal played back."""
    connection = _connect(path, "mode=ro&immutable=1")
    try:
        _harden(connection)
        connection.execute("PRAGMA writable_schema = ON")  # so that a header newer than the rest can still be read
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        if application != APPLICATION:
            raise StakesError(f"{path} is an SQLite file of another program, not a campaign; give another path")
        if version not in _SCHEMAS:
            raise StakesError(
                f"{path} has schema {version} and this stakes reads {VERSION}; use the stakes that made it"
            )
        if not os.path.lexists(path.with_name(f"{path.name}-journal")):  # else the tables may be half written
            _refuse_other_tables(path, connection, version)
    finally:
        connection.close()
    return int(version)
