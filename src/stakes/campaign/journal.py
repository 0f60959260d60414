"""The durable part of a campaign: rows, events and records in one SQLite file.

Nothing in the file is ever changed or deleted, and the file itself sees to it (triggers). A file is made whole or not
at all, opened only if it is what it should be, and never overwritten. Writers take turns; what a call returned from is
on the disk. A change looks at its own rows only: its cost does not grow with the campaign.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from stakes.campaign.states import (
    Event,
    Kind,
    Record,
    Recorded,
    RowState,
    checked,
    checked_clock,
    checked_count,
    checked_ids,
    checked_json,
    checked_label_pairs,
    checked_lease,
    checked_rows,
    checked_text,
    checked_who,
    needless,
    replay,
    unknown_row,
)
from stakes.exceptions import StakesError

WEEK = 7 * 24 * 3600.0
APPLICATION = 0x53746B73  # "Stks": marks a campaign among SQLite files
VERSION = 2
"""The version of the tables and of what is kept in them; a file of another version is refused, not converted."""

_WAIT = 30.0  # seconds that a writer waits for the others
_AT_ONCE = 500  # ids in one query: some builds of SQLite take 999
_NEXT = "(SELECT coalesce(max(number), 0) + 1 FROM {})"
_OPEN = RowState()

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
    """CREATE TABLE records (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        version INTEGER NOT NULL,
        payload TEXT NOT NULL
    )""",
    "CREATE INDEX records_of_kind ON records (kind)",
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


_STATEMENTS = (
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
    *_TABLES,
    _SHAPE,
    *(guard for table in ("rows", "events", "records") for guard in _guards(table)),
)

_SENTENCES = {
    sqlite3.SQLITE_BUSY: f"others have been writing to it for {_WAIT:.0f} s; repeat the call",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and repeat the call",
    sqlite3.SQLITE_IOERR: "the disk does not take or give data: it may be full or gone; see to it and repeat the call",
    sqlite3.SQLITE_READONLY: "it cannot be written to; allow writing to the file and to its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened for this; allow writing to the file and to its folder",
    sqlite3.SQLITE_PERM: "access to it is not allowed; change its permissions",
    sqlite3.SQLITE_CORRUPT: "it is damaged; put a backup in its place, or rescue what is there with sqlite3's .recover",
    sqlite3.SQLITE_NOTADB: "it is not a campaign file (not even an SQLite file); give another path",
}

# What file systems without hard links answer, by kind of system and of file system.
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}


@dataclass(frozen=True, eq=False)
class Journal:
    """A campaign file, open: rows with costs, events, and records beside them.

    What a call returned from is on the disk; a call that raised has recorded nothing. Any number of processes may have
    the same file open; within one, every thread opens its own. `now` is the time in seconds since 1970; the clock is
    read where it is not given.

    Attributes:
        path: The file.
        connection: SQLite's, of the thread and the process that opened it.
        process: The number of that process.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Journal.create(f"{folder}/c.stakes", [("a", None), ("b", 2.5)], {}, {"a": "cat"}) as journal:
        ...         leased = journal.lease(["a", "b"], 1)
        ...         recorded = journal.tell_many([("b", "dog")])
        >>> leased, recorded.new
        (('b',), ('b',))
    """

    path: Path
    connection: sqlite3.Connection
    process: int = field(default_factory=os.getpid)

    @staticmethod
    def create(
        path: str | os.PathLike[str],
        rows: Iterable[tuple[str, float | None]],
        settings: Mapping[str, Any],
        labels: Mapping[str, str] | None = None,
        *,
        now: float | None = None,
    ) -> Journal:
        """Make a new campaign file; a file that is there is never replaced.

        Args:
            path: The file to make.
            rows: The id of each row, and what its label costs (None where that is not known).
            settings: Anything that JSON can hold.
            labels: The labels that are known from the start, by id.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            The journal, open.

        Raises:
            StakesError: If the file is there, or the input cannot be used. Nothing is left behind then.
        """
        costs, known, at = checked_rows(rows), checked_label_pairs((labels or {}).items()), checked_clock(now)
        text = checked_json(dict(settings), "the settings")
        if unknown := known.keys() - costs.keys():
            raise unknown_row(min(unknown), tuple(costs))

        def fill(journal: Journal) -> None:
            lines = ((number, row, cost) for number, (row, cost) in enumerate(costs.items(), start=1))
            journal.connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", lines)
            journal._add_record(at, "settings", 0, text)
            for row, label in known.items():
                journal._add_event(Event(0, at, "label", row, label))

        _create_file(_path_without_nul(path), fill)
        return Journal.open(path)

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Journal:
        """Open a campaign file; anything else that the file may be is refused and left as it is.

        Args:
            path: The file.

        Returns:
            The journal, open.

        Raises:
            StakesError: If there is no file, or it is no campaign, is damaged, or is of another version.
        """
        return _open_file(_path_without_nul(path))

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as they are now; `records("settings")` are all their changes."""
        return {name: value for record in self.records("settings") for name, value in record.payload.items()}

    def update_settings(self, /, **settings: Any) -> None:
        """Change some settings; what they were is kept.

        Args:
            **settings: Anything that JSON can hold.
        """
        text = checked_json(settings, "the settings")
        with self.writing():
            self._add_record(checked_clock(), "settings", self.version(), text)

    def ids(self) -> tuple[str, ...]:
        """The ids of all rows, in their order."""
        return tuple(self.costs())

    def costs(self) -> dict[str, float | None]:
        """What a label of each row costs, by id in their order; None where it is not known."""
        return dict(self.read("SELECT id, cost FROM rows ORDER BY number"))

    def version(self) -> int:
        """The number of the last event, 0 before the first."""
        ((number,),) = self.read("SELECT coalesce(max(number), 0) FROM events")
        return int(number)

    def history(self, row: str | None = None, *, since: int = 0) -> tuple[Event, ...]:
        """The events in their order.

        Args:
            row: The id of a row, for its events only.
            since: The number of an event, for those after it only.

        Returns:
            All events that are asked for.

        Raises:
            StakesError: If there is no such row.
        """
        first = checked_count(since, "the version", 0)
        if row is None:
            found = self.read("SELECT * FROM events WHERE number > ? ORDER BY number", first)
        else:
            self._refuse_unknown(checked_ids([row]))
            found = self.read("SELECT * FROM events WHERE row = ? AND number > ? ORDER BY number", row, first)
        return tuple(map(Event._make, found))

    def known_labels(self) -> tuple[str, ...]:
        """Every label that any row has had, each once."""
        found = self.read("SELECT DISTINCT label FROM events WHERE label IS NOT NULL ORDER BY label")
        return tuple(label for (label,) in found)

    def states(self, now: float | None = None) -> dict[str, RowState]:
        """The states of all rows by id, in their order: the replay of the events.

        Args:
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            The state of each row.
        """
        at, happened = checked_clock(now), replay(self.history())
        return {row: happened.get(row, _OPEN).at(at) for row in self.costs()}

    def lease(
        self, wanted: Iterable[str], n: int, *, seconds: float = WEEK, who: str | None = None, now: float | None = None
    ) -> tuple[str, ...]:
        """Hand out the first `n` of the wanted rows that are open, or all of them, as one batch and to nobody else.

        Args:
            wanted: Ids, in the order in which they are wanted.
            n: How many.
            seconds: For how long.
            who: Who gets them, for the history.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            The ids of the rows that were handed out.

        Raises:
            StakesError: If there is no such row, or a number cannot be used.
        """
        rows, at = checked_ids(wanted), checked_clock(now)
        until = checked_lease(seconds, at)
        most, by = checked_count(n, "the number of rows", 1), checked_who(who)
        self._refuse_unknown(rows)
        with self.writing():
            ((batch,),) = self.read("SELECT coalesce(max(batch), 0) + 1 FROM events WHERE batch IS NOT NULL")
            free = tuple(itertools.islice((row for row in rows if self._state(row).at(at).status == "open"), most))
            for row in free:
                self._add(Event(0, at, "ask", row, None, until, batch, by))
        return free

    def tell_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        replace: bool = False,
        who: str | None = None,
        now: float | None = None,
    ) -> Recorded:
        """Record labels of rows, all or none.

        Args:
            pairs: Ids and labels.
            replace: Whether a label may take the place of another one.
            who: Who reports them, for the history.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            What became of each.

        Raises:
            StakesError: If there is no such row, or it has another label.
        """
        labels, at, by = checked_label_pairs(pairs), checked_clock(now), checked_who(who)
        self._refuse_unknown(labels)
        with self.writing():
            became = [
                (self._tell(Event(0, at, "label", row, label, who=by), replace), row) for row, label in labels.items()
            ]
        return Recorded(*(tuple(row for kind, row in became if kind == which) for which in ("label", None, "replace")))

    def skip(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Never hand these rows out again, until they are released; all or none.

        Args:
            rows: Ids of rows that are open or asked.
            who: Who says so, for the history.
            now: The time, in seconds since 1970; the clock's without.
        """
        self._add_all("skip", rows, who, now)

    def release(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Give asked or skipped rows back to the pool; all or none.

        Args:
            rows: Ids of rows that are asked or skipped.
            who: Who says so, for the history.
            now: The time, in seconds since 1970; the clock's without.
        """
        self._add_all("release", rows, who, now)

    def withdraw(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Take labels back: the rows are open again, and their history is kept; all or none.

        Args:
            rows: Ids of rows that are labelled.
            who: Who says so, for the history.
            now: The time, in seconds since 1970; the clock's without.
        """
        self._add_all("withdraw", rows, who, now)

    def save_record(self, kind: str, version: int, payload: Any, *, now: float | None = None) -> None:
        """Keep something beside the events.

        Args:
            kind: Its name, such as "ranking".
            version: The number of the last event that it knows of.
            payload: Anything that JSON can hold.
            now: The time, in seconds since 1970; the clock's without.
        """
        text, at = checked_json(payload, "the payload of a record"), checked_clock(now)
        if checked_text(kind, "the kind of a record") == "settings":
            raise StakesError("records of the kind 'settings' are kept by update_settings; use that, or another kind")
        number = checked_count(version, "the version of a record", 0, self.version())
        with self.writing():
            self._add_record(at, kind, number, text)

    def records(self, kind: str) -> tuple[Record, ...]:
        """All records of a kind, in their order.

        Args:
            kind: Such as "ranking".

        Returns:
            The records.
        """
        return tuple(map(_record, self.read("SELECT * FROM records WHERE kind = ? ORDER BY number", kind)))

    def last_record(self, kind: str) -> Record | None:
        """The last record of a kind; those before it, which may be large, are not read.

        Args:
            kind: Such as "ranking".

        Returns:
            The record, None if there is none.
        """
        found = self.read("SELECT * FROM records WHERE kind = ? ORDER BY number DESC LIMIT 1", kind)
        return _record(found[0]) if found else None

    def check(self) -> None:
        """Look through the whole file and replay every event by the rules.

        Raises:
            StakesError: If anything is wrong.
        """
        with self.reading():
            _refuse_damage(self.path, self.connection, "integrity_check")
            if self.read("PRAGMA foreign_key_check"):
                raise StakesError(f"{self.path}: it is damaged (events of unknown rows); put a backup in its place")
            recorded = self.history()
        try:
            states: dict[str, RowState] = {}
            for number, event in enumerate(recorded, start=1):
                if event.number != number:
                    raise StakesError(f"event {number} is missing")
                states |= replay([checked(states.get(event.row, _OPEN), event)])
        except StakesError as error:
            raise StakesError(f"{self.path}: its events break the rules ({error}); put a backup in place") from error

    def read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All that a query finds, at once: a query left half read would keep writers out.

        Args:
            query: SQL.
            *values: For its question marks.

        Returns:
            The lines found.

        Raises:
            StakesError: If the file cannot be read, or the journal was opened elsewhere.
        """
        with self._guarded():
            return self.connection.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A block whose changes are on the disk together when it ends, or not at all; one at a time."""
        with self._guarded(), _transaction(self.connection, "BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block whose queries all see the same moment."""
        with self._guarded(), _transaction(self.connection, "BEGIN"):
            yield

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if os.getpid() != self.process:  # a lock of SQLite is lost in a fork, and the file with it
            raise StakesError(f"{self.path} was opened by another process; open it again in this one")
        with _plain_errors(self.path):
            yield

    def _refuse_unknown(self, rows: Iterable[str]) -> None:
        """Refuse ids that the campaign does not have; rows never change, so this needs no transaction."""
        asked, known = list(rows), set[str]()
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            known |= {row for (row,) in self.read(f"SELECT id FROM rows WHERE id IN ({marks})", *some)}
        for row in asked:
            if row not in known:
                raise unknown_row(row, self.ids())

    def _state(self, row: str) -> RowState:
        """The state of one row: the last of its events decides."""
        found = self.read("SELECT * FROM events WHERE row = ? ORDER BY number DESC LIMIT 1", row)
        return replay(map(Event._make, found)).get(row, _OPEN)

    def _add(self, event: Event) -> bool:
        """Record an event if the row can take it; False, and nothing recorded, if it is already so."""
        state = self._state(event.row)
        if needless(state, event):
            return False
        self._add_event(checked(state, event))
        return True

    def _add_all(self, kind: Kind, given: Iterable[str], who: str | None, now: float | None) -> None:
        """Record an event of one kind for each row, all or none."""
        rows, by, at = checked_ids(given), checked_who(who), checked_clock(now)
        self._refuse_unknown(rows)
        with self.writing():
            for row in rows:
                self._add(Event(0, at, kind, row, who=by))

    def _tell(self, event: Event, replace: bool) -> Kind | None:
        """Record a label; as what it was recorded, None if it was known."""
        if replace and self._state(event.row).status == "labelled":
            event = event._replace(kind="replace")
        return event.kind if self._add(event) else None

    def _add_event(self, event: Event) -> None:
        """Add an event, inside `writing`; its number is the next one."""
        number = _NEXT.format("events")
        self.connection.execute(f"INSERT INTO events VALUES ({number}, ?, ?, ?, ?, ?, ?, ?)", event[1:])

    def _add_record(self, at: float, kind: str, version: int, payload: str) -> None:
        """Add a record, inside `writing`; its payload is JSON."""
        number = _NEXT.format("records")
        self.connection.execute(f"INSERT INTO records VALUES ({number}, ?, ?, ?, ?)", (at, kind, version, payload))


def _record(line: tuple[Any, ...]) -> Record:
    number, at, kind, version, payload = line
    return Record(number, at, kind, version, json.loads(payload))


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
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
def _plain_errors(path: Path) -> Iterator[None]:
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


def _path_without_nul(path: str | os.PathLike[str]) -> Path:
    """The path of a file; old names that are not Unicode are names too."""
    if "\0" in str(path):
        raise StakesError(f"the path holds a NUL: {str(path)!r}; remove it")
    return Path(path)


def _create_file(path: Path, fill: Callable[[Journal], None]) -> None:
    """Make a campaign beside `path` and put it there when it is whole; what is there already stays."""
    _refuse_taken(path)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with _plain_errors(path):
            _write_new(part, fill)
            _sync(part)
            _put(part, path)
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _open_file(path: Path) -> Journal:
    """A campaign file, opened for reading and, where allowed, writing."""
    with _plain_errors(path):
        _refuse_other_things(path)
        _refuse_other_programs(path)
        connection = _connect(path, "mode=rw")
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            # EXTRA: a commit is on the disk, and so is the end of its journal, before it is acknowledged.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA foreign_keys = ON")
            _refuse_damage(path, connection, "quick_check")
        except BaseException:
            connection.close()
            raise
    return Journal(path, connection)


def _refuse_damage(path: Path, connection: sqlite3.Connection, check: str) -> None:
    """Let SQLite look through the file: quick_check for its pages, integrity_check for its indexes as well."""
    found = [text for (text,) in connection.execute(f"PRAGMA {check}(3)").fetchall()]
    if found != ["ok"]:
        raise StakesError(f"{path}: it is damaged ({'; '.join(found)}); put a backup in its place")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=_WAIT, isolation_level=None)


def _write_new(part: Path, fill: Callable[[Journal], None]) -> None:
    connection = _connect(part, "mode=rwc")
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # on any failure the whole file goes
        with _transaction(connection, "BEGIN IMMEDIATE"):
            for statement in _STATEMENTS:
                connection.execute(statement)
            fill(Journal(part, connection))
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


def _refuse_other_programs(path: Path) -> None:
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
