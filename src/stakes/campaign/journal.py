"""The durable part of a campaign: rows, events and records in one SQLite file.

Nothing that was added is ever changed or deleted. A file is opened only if it is what was written: its chain of hashes
is gone through, every value is checked, and the events are replayed by the rules; what is new in an open file is
verified before it is used. Writers take turns; what a call returned from is on the disk. A change looks at its own rows
only: its cost does not grow with the campaign.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stakes.campaign.sqlite import (
    EVENTS,
    RECORDS,
    ROWS,
    UNCHAINED,
    Ends,
    Head,
    Writer,
    convert,
    create_file,
    damaged,
    ends_of_rows,
    link,
    open_damaged,
    open_file,
    path_of_file,
    plain_errors,
    transaction,
)
from stakes.campaign.states import (
    Event,
    Kind,
    Record,
    Recorded,
    RowState,
    after,
    checked,
    checked_clock,
    checked_count,
    checked_ids,
    checked_json,
    checked_label_pairs,
    checked_positive,
    checked_rows,
    checked_text,
    checked_time,
    checked_who,
    event_read,
    needless,
    record_parsed,
    record_read,
    row_read,
    unknown_row,
)
from stakes.exceptions import StakesError

WEEK = 7 * 24 * 3600.0
_OPEN = RowState()
_NO_HASH = object()  # of a file of the version before


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
    _verified: _Verified = field(default_factory=lambda: _Verified(), repr=False)

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

        def fill(writer: Writer) -> None:
            writer.add_record(at, "settings", 0, text)
            for row, label in known.items():
                writer.add_event(Event(0, at, "label", row, label))

        create_file(path_of_file(path), list(costs.items()), fill)
        return Journal.open(path)

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Journal:
        """Open a campaign file; anything else that the file may be is refused and left as it is.

        The tables of the file are compared with ours before anything in it is run, then every value, rule and hash is
        checked. A file without hashes, of the version before, gets them now.

        Args:
            path: The file.

        Returns:
            The journal, open.

        Raises:
            StakesError: If there is no file, or it is no campaign, is damaged, or is of another version.
        """
        where = path_of_file(path)
        connection, version = open_file(where)
        journal = Journal(where, connection)
        try:
            if version == UNCHAINED:
                journal._convert()
            journal._synced()
        except BaseException:
            journal.close()
            raise
        return journal

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
        with self.writing() as writer:
            writer.add_record(time.time(), "settings", writer.ends.events, text)

    def ids(self) -> tuple[str, ...]:
        """The ids of all rows, in their order."""
        return tuple(self._synced().rows)

    def costs(self) -> dict[str, float | None]:
        """What a label of each row costs, by id in their order; None where it is not known."""
        return dict(self._synced().rows)

    def version(self) -> int:
        """The number of the last event, 0 before the first."""
        return len(self._synced().events)

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
        events = self._synced().events
        if row is None:
            return tuple(events[first:])
        self._refuse_unknown(checked_ids([row]))
        return tuple(event for event in events[first:] if event.row == row)

    def known_labels(self) -> tuple[str, ...]:
        """Every label that any row has had, each once."""
        return tuple(sorted({event.label for event in self._synced().events if event.label is not None}))

    def states(self, now: float | None = None) -> dict[str, RowState]:
        """The states of all rows by id, in their order: the replay of the events.

        Args:
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            The state of each row.
        """
        at, verified = checked_clock(now), self._synced()
        return {row: verified.states.get(row, _OPEN).at(at) for row in verified.rows}

    def state(self, row: str, now: float | None = None) -> RowState:
        """The state of one row.

        Args:
            row: Its id.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            Its state.

        Raises:
            StakesError: If there is no such row.
        """
        at, verified = checked_clock(now), self._synced()
        self._refuse_unknown(checked_ids([row]))
        return verified.states.get(row, _OPEN).at(at)

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
        until = checked_time(at + checked_positive(seconds, "the seconds of a lease"), "the end of a lease")
        most, by = checked_count(n, "the number of rows", 1), checked_who(who)
        self._refuse_unknown(rows)
        with self.writing() as writer:
            batch = self._verified.last_batch + 1
            free = tuple(itertools.islice((row for row in rows if self._state(row).at(at).status == "open"), most))
            for row in free:
                self._add(writer, Event(0, at, "ask", row, None, until, batch, by))
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
        with self.writing() as writer:
            became = [
                (self._tell(writer, Event(0, at, "label", row, label, who=by), replace), row)
                for row, label in labels.items()
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
        with self.writing() as writer:
            writer.add_record(at, kind, number, text)

    def records(self, kind: str) -> tuple[Record, ...]:
        """All records of a kind, in their order.

        Args:
            kind: Such as "ranking".

        Returns:
            The records.
        """
        kinds = self._synced().records
        return tuple(self._record(number) for number, (each, _) in enumerate(kinds, start=1) if each == kind)

    def last_record(self, kind: str) -> Record | None:
        """The last record of a kind; those before it, which may be large, are not read.

        Args:
            kind: Such as "ranking".

        Returns:
            The record, None if there is none.
        """
        kinds = self._synced().records
        number = next((number for number in range(len(kinds), 0, -1) if kinds[number - 1][0] == kind), None)
        return None if number is None else self._record(number)

    def check(self) -> None:
        """Read the whole file again: every page, hash, value and record, and the replay of all events.

        Raises:
            StakesError: If anything is wrong.
        """
        with Journal.open(self.path) as again:
            for number in range(1, len(again._verified.records) + 1):
                again._record(number)

    @staticmethod
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
        connection = open_damaged(where)
        try:
            verified, lines, why = _sound_part(connection)
        except (StakesError, sqlite3.Error) as error:
            raise StakesError(f"{where}: nothing can be recovered ({error}); put a backup in its place") from error
        finally:
            connection.close()

        def fill(writer: Writer) -> None:
            for event in verified.events:
                writer.add_event(event)
            for line in lines:
                writer.add_record(*line[1:])

        create_file(path_of_file(new), list(verified.rows.items()), fill)
        return len(verified.events), why

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
    def writing(self) -> Iterator[Writer]:
        """A block whose changes are on the disk together when it ends, or not at all; one at a time."""
        with self._guarded(), transaction(self.connection, "BEGIN IMMEDIATE"):
            writer = Writer(self.connection, self._sync().ends)
            yield writer
            writer.finish()

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

    def _synced(self) -> _Verified:
        """All that is in the file now, verified."""
        with self.reading():
            return self._sync()

    def _sync(self) -> _Verified:
        """Within a transaction: read and verify what is new in the file."""
        verified = self._verified
        head = _head(self.connection)
        if head == verified.ends.head():
            return verified
        try:
            verified.extend(self.connection, head)
        except StakesError as error:
            raise damaged(self.path, f"{error}; {_sound(verified)}") from error
        return verified

    def _convert(self) -> None:
        """Put hashes into a file of the version before, if what is in it keeps to the rules."""
        with self._guarded(), transaction(self.connection, "BEGIN IMMEDIATE"):
            if self.read("PRAGMA user_version") != [(UNCHAINED,)]:
                return  # another process was quicker
            rows, events, records = self.read(ROWS), self.read(EVENTS.format(""), 0), self.read(RECORDS.format(""), 0)
            try:
                verified = _Verified()
                verified.begin(rows)
                for event in events:
                    verified.take_event(event)
                for record in records:
                    verified.take_record(record)
            except StakesError as error:
                raise StakesError(f"{self.path} is damaged: {error}; put a backup in its place") from error

            def fill(writer: Writer) -> None:
                for event in events:
                    writer.add_event(event)
                for _, *rest in records:
                    writer.add_record(*rest)

            convert(self.connection, rows, fill)

    def _record(self, number: int) -> Record:
        """A record, read again and compared with the hash that it had."""
        _, before = self._verified.records[number - 1]
        found = self.read(RECORDS.format(", hash").replace(">", "="), number)
        try:
            if len(found) != 1 or link(before, record_read(found[0][:-1], number)) != found[0][-1]:
                raise StakesError(f"record {number} is not what was written")
            return record_parsed(found[0][:-1])
        except StakesError as error:
            raise damaged(self.path, str(error)) from error

    def _refuse_unknown(self, rows: Iterable[str]) -> None:
        """Refuse ids that the campaign does not have; rows never change, so this needs no transaction."""
        known = self._verified.rows
        for row in rows:
            if row not in known:
                raise unknown_row(row, tuple(known))

    def _state(self, row: str) -> RowState:
        """The state of one row, within `writing`."""
        return self._verified.states.get(row, _OPEN)

    def _add(self, writer: Writer, event: Event) -> bool:
        """Record an event if the row can take it; False, and nothing recorded, if it is already so."""
        state = self._state(event.row)
        if needless(state, event):
            return False
        writer.add_event(checked(state, event))
        return True

    def _add_all(self, kind: Kind, given: Iterable[str], who: str | None, now: float | None) -> None:
        """Record an event of one kind for each row, all or none."""
        rows, by, at = checked_ids(given), checked_who(who), checked_clock(now)
        self._refuse_unknown(rows)
        with self.writing() as writer:
            for row in rows:
                self._add(writer, Event(0, at, kind, row, who=by))

    def _tell(self, writer: Writer, event: Event, replace: bool) -> Kind | None:
        """Record a label; as what it was recorded, None if it was known."""
        if replace and self._state(event.row).status == "labelled":
            event = event._replace(kind="replace")
        return event.kind if self._add(writer, event) else None


class _Verified:
    """What was read of a file and found to be as it was written.

    Rows, events with the states that they lead to, and the kinds of records, each with the hash before it. It only
    grows, and the ends (a number and a hash) are moved last: what lies beyond them was left half done by an interrupt,
    and is taken anew.
    """

    def __init__(self) -> None:
        self.rows: dict[str, float | None] = {}
        self.start = self.event_end = self.record_end = (0, b"")
        self.events: list[Event] = []
        self.states: dict[str, RowState] = {}
        self.records: list[tuple[str, bytes]] = []
        self.last_batch = 0

    def begin(self, lines: list[tuple[Any, ...]]) -> None:
        """Verify the rows."""
        rows: dict[str, float | None] = {}
        for number, line in enumerate(lines, start=1):
            row, cost = row_read(line, number)
            if row in rows:
                raise StakesError(f"row {number} has the id of another, {row!r:.100}")
            rows[row] = cost
        self.rows = rows
        ends = ends_of_rows(lines)
        self.event_end = self.record_end = (0, ends.rows_hash)
        self.start = (ends.rows, ends.rows_hash)

    @property
    def ends(self) -> Ends:
        """Where the chains end."""
        return Ends(*self.start, *self.event_end, *self.record_end)

    def extend(self, connection: sqlite3.Connection, head: Head) -> None:
        """Read and verify what a file has beyond this, up to its head."""
        if not self.start[0]:
            self.begin(connection.execute(ROWS).fetchall())
        self._drop_half_done()
        for line in connection.execute(EVENTS.format(", hash"), (len(self.events),)).fetchall():
            self.take_event(line[:-1], line[-1])
        for line in connection.execute(RECORDS.format(", hash"), (len(self.records),)):
            self.take_record(line[:-1], line[-1])
        found = self.ends.head()
        for name, wanted, got in zip(("rows", "events", "records"), head, found, strict=False):
            if wanted != got:
                raise StakesError(f"{wanted!r:.50} {name} were written and {got} are there")
        if head != found:
            raise StakesError("its rows, or its head, are not what was written")

    def _drop_half_done(self) -> None:
        sound = self.events[: self.event_end[0]]
        for event in self.events[len(sound) :]:
            self.states[event.row] = next((after(each) for each in reversed(sound) if each.row == event.row), _OPEN)
        del self.events[len(sound) :], self.records[self.record_end[0] :]

    def take_event(self, line: tuple[Any, ...], made: object = _NO_HASH) -> None:
        """Verify the next event."""
        last, before = self.event_end
        number = last + 1
        event = event_read(line, number)
        expected = link(before, event)
        if made is not _NO_HASH and made != expected:
            raise StakesError(f"event {number} is not what was written")
        if event.row not in self.rows:
            raise StakesError(f"event {number} is of the row {event.row!r:.100}, which there is not")
        try:
            state = after(checked(self.states.get(event.row, _OPEN), event))
        except StakesError as error:
            raise StakesError(f"event {number} breaks the rules ({error})") from error
        self.events.append(event)
        self.states[event.row] = state
        if event.batch is not None and event.batch > self.last_batch:
            self.last_batch = event.batch
        self.event_end = (number, expected)

    def take_record(self, line: tuple[Any, ...], made: object = _NO_HASH) -> None:
        """Verify the next record."""
        last, before = self.record_end
        number = last + 1
        expected = link(before, record_read(line, number))
        if made is not _NO_HASH and made != expected:
            raise StakesError(f"record {number} is not what was written")
        self.records.append((line[2], before))
        self.record_end = (number, expected)


def _sound(verified: _Verified) -> str:
    """Up to where a file is as it was written."""
    count = len(verified.events)
    return f"events 1 to {count} are sound" if count else "no event is known to be sound"


def _head(connection: sqlite3.Connection) -> Head:
    found = connection.execute("SELECT rows, events, records, hash FROM head LIMIT 2").fetchall()
    return Head._make(found[0]) if len(found) == 1 else Head(-1, -1, -1, b"")


def _sound_part(connection: sqlite3.Connection) -> tuple[_Verified, list[tuple[Any, ...]], str]:
    """What of a damaged file is as it was written, the records of it, and what comes after."""
    verified, lines, why = _Verified(), list[tuple[Any, ...]](), "nothing is missing"
    verified.begin(connection.execute(ROWS).fetchall())
    try:
        for *line, made in connection.execute(RECORDS.format(", hash"), (0,)):
            verified.take_record(tuple(line), made)
            lines.append(tuple(line))
    except (StakesError, sqlite3.Error) as error:
        if not lines:  # the first one is the settings, and its hash that of the rows
            raise
        why = str(error)
    try:
        for *line, made in connection.execute(EVENTS.format(", hash"), (0,)):
            verified.take_event(tuple(line), made)
    except (StakesError, sqlite3.Error) as error:
        why = str(error)
    known = [line for line in lines if line[3] <= len(verified.events)]
    return verified, known if known[:1] == lines[:1] else [], why
