"""The durable part of a campaign: rows, events and records in one SQLite file.

Nothing that was added is ever changed or deleted. A file is made whole or not at all, and never overwritten. Before
anything in it is run, its tables are compared with ours, word for word: a file with a trigger, a view, an index or a
column more is refused. Then its chain of hashes is gone through, every value is checked, and the events are replayed by
the rules; what is new in an open file is verified before it is used. Writers take turns; what a call returned from is
on the disk. A change looks at its own rows only: its cost does not grow with the campaign.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stakes.campaign.sqlite import (
    EVENTS,
    MOST_BYTES,
    RECORDS,
    ROWS,
    UNCHAINED,
    VERSION,
    damaged,
    kept_in,
    open_file,
    path_of_file,
    plain_errors,
    transaction,
)
from stakes.campaign.states import (
    OF_SEVERAL,
    Event,
    Head,
    Kind,
    Opinion,
    Record,
    Recorded,
    Replay,
    RowState,
    Undone,
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
    link,
    needless,
    record_parsed,
    record_read,
    unknown_row,
)
from stakes.exceptions import StakesError

WEEK = 7 * 24 * 3600.0


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
        replay: What was read and verified of the file so far; every call reads what is new.

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
    replay: Replay = field(default_factory=lambda: Replay.begin([]), repr=False)
    _together: list[bool] = field(default_factory=list, init=False, repr=False)  # not empty within `together`

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

        from stakes.campaign.new_files import create_file  # here, as most calls open a file that is there

        events = [Event(0, at, "label", row, label) for row, label in known.items()]
        create_file(path_of_file(path), list(costs.items()), events, [(at, "settings", 0, text)])
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
        try:
            with plain_errors(where):
                if version == UNCHAINED:
                    from stakes.campaign.new_files import add_hashes  # here, as few files need it

                    add_hashes(where, connection)
                with kept_in(where, "its rows"):
                    replay = Replay.begin(connection.execute(ROWS).fetchall())
            journal = Journal(where, connection, replay=replay)
            journal._synced()
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
            journal.read("PRAGMA journal_mode = DELETE")  # where another program has chosen another one
        except BaseException:
            connection.close()
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
        with kept_in(self.path, "its settings"):
            return {name: value for record in self.records("settings") for name, value in record.payload.items()}

    def update_settings(self, /, **settings: Any) -> None:
        """Change some settings; what they were is kept.

        Args:
            **settings: Anything that JSON can hold.
        """
        text = checked_json(settings, "the settings")
        with self.writing():
            self._append(records=[(checked_clock(), "settings", len(self.replay.events), text)])

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
        at, replay = checked_clock(now), self._synced()
        return {row: replay.state(row).at(at) for row in replay.rows}

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
        at, replay = checked_clock(now), self._synced()
        self._refuse_unknown(checked_ids([row]))
        return replay.state(row).at(at)

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
            batch = self._next_batch()
            free = tuple(itertools.islice((row for row in rows if self._state(row).at(at).status == "open"), most))
            self._append([checked(self._state(row), Event(0, at, "ask", row, None, until, batch, by)) for row in free])
        return free

    def consult(
        self,
        wanted: Iterable[str],
        n: int,
        who: str,
        *,
        opinions: int = 2,
        seconds: float = WEEK,
        now: float | None = None,
    ) -> tuple[str, ...]:
        """Hand out labelled rows to one more person, for an opinion that stands beside the label.

        Args:
            wanted: Ids of labelled rows, in the order in which they are wanted.
            n: How many, at most.
            who: Who gets them; rows on which they have an opinion are left out.
            opinions: How many people a row is to have labels from; those who are asked at the moment count.
            seconds: For how long.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            The ids of the rows that were handed out.

        Raises:
            StakesError: If there is no such row, or a number cannot be used.
        """
        rows, at, by = checked_ids(wanted), checked_clock(now), checked_text(who, "who it is")
        until = checked_lease(seconds, at)
        most, several = checked_count(n, "the number of rows", 1), checked_count(opinions, "the number of opinions", 2)
        self._refuse_unknown(rows)
        with self.writing():
            free = tuple(itertools.islice((row for row in rows if self._may_consult(row, by, several, at)), most))
            batch = self._next_batch() if free else 0
            self._append([self.replay.checked(Event(0, at, "consult", row, None, until, batch, by)) for row in free])
        return free

    def held(self, who: str, now: float | None = None) -> tuple[Event, ...]:
        """The rows that a person has in hand, to label or to give an opinion on: what was handed out last comes first.

        Args:
            who: The person.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            The events by which they were handed out, "ask" or "consult"; rows of one batch in its order.
        """
        at, replay = checked_clock(now), self._synced()
        asked = [event for event in replay.last.values() if event.kind == "ask"]
        consults = [event for each in replay.consults.values() for event in each.values()]
        ours = [event for event in (*asked, *consults) if event.who == who and at < (event.until or 0.0)]
        return tuple(sorted(ours, key=lambda event: (-(event.batch or 0), event.number)))

    def renew(self, row: str, who: str, *, seconds: float = WEEK, now: float | None = None) -> bool:
        """Let a person have a row for longer, if they have it in hand.

        Args:
            row: Its id.
            who: The person.
            seconds: For how long from now.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            Whether they have it; nothing is recorded where they do not.

        Raises:
            StakesError: If there is no such row, or a number cannot be used.
        """
        (one,), at, by = checked_ids([row]), checked_clock(now), checked_text(who, "who it is")
        until = checked_lease(seconds, at)
        self._refuse_unknown([one])
        with self.writing():
            state, consult = self._state(one).at(at), self.replay.consults.get(one, {}).get(by)
            if state.status == "asked" and state.who == by:
                back = Event(0, at, "release", one, who=by)
                self._append([back, Event(0, at, "ask", one, None, until, state.batch, by)])
            elif consult is not None and at < (consult.until or 0.0):
                again = Event(0, at, "consult", one, None, until, consult.batch, by)
                self._append([self.replay.checked(again)])
            else:
                return False
        return True

    def put_off(self, row: str, kind: Kind, who: str, *, now: float | None = None) -> None:
        """Record what a person does with a row in hand other than labelling it.

        Args:
            row: Its id.
            kind: "later": back to the pool; "unsure": to be settled; "skip": not to be asked for again. Of a row that
                they were asked an opinion on, "skip" is "unsure": it keeps its label.
            who: The person.
            now: The time, in seconds since 1970; the clock's without.

        Raises:
            StakesError: If somebody else has the row, or it cannot be put off; nothing is recorded then.
        """
        (one,), at, by = checked_ids([row]), checked_clock(now), checked_text(who, "who it is")
        if kind not in ("later", "unsure", "skip"):
            raise StakesError(f"a row is put off by later, unsure or skip, not by {kind!r}")
        self._refuse_unknown([one])
        with self.writing():
            labelled = self._state(one).status == "labelled"
            done: Kind = "unsure" if labelled and kind == "skip" else kind
            if done == "skip":  # as for the others: not what somebody else has in hand
                self.replay.checked(Event(0, at, "unsure", one, who=by))
            self._append([self.replay.checked(Event(0, at, done, one, who=by))])

    def settle(self, row: str, label: str, who: str, *, now: float | None = None) -> None:
        """Record what the label of a row is, after opinions differed or somebody was not sure.

        Args:
            row: Its id.
            label: Its label from now on.
            who: Who says so.
            now: The time, in seconds since 1970; the clock's without.

        Raises:
            StakesError: If there is nothing to settle; nothing is recorded then.
        """
        ((one, text),) = checked_label_pairs([(row, label)]).items()
        at, by = checked_clock(now), checked_text(who, "who it is")
        self._refuse_unknown([one])
        with self.writing():
            self._append([self.replay.checked(Event(0, at, "settle", one, text, who=by))])

    def undo(self, who: str, *, seconds: float = WEEK, now: float | None = None) -> Undone | None:
        """Take back the last thing that a person did to a row, and hand the row to them again.

        Args:
            who: The person.
            seconds: For how long they have the row.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            What was taken back; None where there is nothing to take back.

        Raises:
            StakesError: If a number cannot be used.
        """
        at, by = checked_clock(now), checked_text(who, "who it is")
        until = checked_lease(seconds, at)
        with self.writing():
            acts = self.replay.acts(by)
            if not acts:
                return None
            act, batch = acts[-1], self._next_batch()
            row, labelled = act.row, self._state(act.row).status == "labelled"
            again = Event(0, at, "ask", row, None, until, batch, by)
            consult = Event(0, at, "consult", row, None, until, batch, by)
            back = Event(0, at, "release" if act.kind in ("skip", "unsure") else "retract", row, who=by)
            given = self.replay.opinions.get(row, {})
            before = next((each for each in reversed(self.replay.events[: act.number - 1]) if each.row == row), None)
            if act.kind == "result" or (act.kind == "skip" and before is not None and before.kind == "test"):
                taken: Kind = "withdraw" if act.kind == "result" else "release"
                events = [Event(0, at, taken, row, who=by), Event(0, at, "test", row, who=by)]
            elif act.kind in ("label", "opinion"):
                events = [back, consult if given.keys() - {by} or row in self.replay.settled else again]
            elif act.kind == "settle":
                events = [back] if given else [back, Event(0, at, "unsure", row, who=by)]
            elif labelled:  # an opinion that was put off
                events = [consult]
            else:
                events = [again] if act.kind == "later" else [back, again]
            self._append(events)
        return Undone(row, act.kind, act.label, events[-1].kind in ("ask", "consult"))

    def opinions(self) -> tuple[Opinion, ...]:
        """Opinions of annotators on rows, in the order in which they came; what was taken back is left out."""
        events = [event for each in self._synced().opinions.values() for event in each.values()]
        return tuple(
            Opinion(event.row, event.who, event.label, event.at) for event in sorted(events) if event.label is not None
        )

    def _may_consult(self, row: str, who: str, opinions: int, at: float) -> bool:
        """Whether one more opinion on a row is wanted, and from this person."""
        replay = self.replay
        given, waiting = replay.opinions.get(row, {}), replay.consults.get(row, {}).values()
        asked = {event.who for event in waiting if at < (event.until or 0.0)}
        return (
            replay.state(row).status == "labelled"
            and row not in replay.settled
            and who not in given
            and who not in asked
            and who not in replay.declined.get(row, ())
            and len(given) + len(asked) < opinions
        )

    def _next_batch(self) -> int:
        return next((event.batch for event in reversed(self.replay.events) if event.batch), 0) + 1

    def test(
        self, rows: Iterable[str], kind: str, payload: Any, *, who: str | None = None, now: float | None = None
    ) -> bool:
        """Draw open rows to test a model, with a record of the draw, all at once.

        Args:
            rows: Ids of the rows.
            kind: Of the record, such as "audit".
            payload: What it keeps: anything that JSON can hold.
            who: Who asked for it, for the history.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            Whether it was done; not where one of the rows is no longer open, or another test is under way: nothing is
            recorded then.

        Raises:
            StakesError: If there is no such row, or the payload cannot be kept.
        """
        drawn, at, by = checked_ids(rows), checked_clock(now), checked_who(who)
        text = checked_json(payload, "the payload of a record")
        self._refuse_unknown(drawn)
        with self.writing():
            states = {row: self._state(row).at(at) for row in self.replay.rows}
            if any(state.status == "testing" for state in states.values()):
                return False
            if any(states[row].status != "open" for row in drawn):
                return False
            record = (at, checked_text(kind, "the kind of a record"), len(self.replay.events), text)
            self._append([Event(0, at, "test", row, who=by) for row in drawn], [record])
        return True

    def use_results(self, *, release: bool, use: bool, who: str | None = None, now: float | None = None) -> None:
        """End a test: give back rows without a label, and let labels be used as any others; all or none.

        Args:
            release: Whether rows that have no label yet go back to the pool.
            use: Whether the labels of tested rows become labels as any others.
            who: Who says so, for the history.
            now: The time, in seconds since 1970; the clock's without.
        """
        at, by = checked_clock(now), checked_who(who)
        with self.writing():
            states = {row: self._state(row) for row in self.replay.rows}
            back = [Event(0, at, "release", row, who=by) for row, s in states.items() if s.status == "testing"]
            used = [Event(0, at, "label", row, s.label, who=by) for row, s in states.items() if s.status == "tested"]
            self._append([*(back if release else []), *(used if use else [])])

    def tell_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        replace: bool = False,
        who: str | None = None,
        annotator: str | None = None,
        now: float | None = None,
    ) -> Recorded:
        """Record labels of rows, all or none.

        Args:
            pairs: Ids and labels.
            replace: Whether a label may take the place of another one, by the same annotator where there is one.
            who: Who reports them, for the history.
            annotator: Whose labels they are: where somebody else has labelled a row, theirs is an opinion beside it.
            now: The time, in seconds since 1970; the clock's without.

        Returns:
            What became of each.

        Raises:
            StakesError: If there is no such row, or it has another label.
        """
        labels, at, by = checked_label_pairs(pairs), checked_clock(now), checked_who(annotator or who)
        self._refuse_unknown(labels)
        with self.writing():
            before = {row: self._state(row) for row in labels}
            as_event = self._label_event if annotator is None else self._opinion_event
            events = [as_event(Event(0, at, "label", row, label, who=by), replace) for row, label in labels.items()]
            self._append([event for event in events if event is not None])
        became = [(_became(event, before[row]), row) for row, event in zip(labels, events, strict=True)]
        kinds = ("label", None, "replace", "opinion")
        return Recorded(*(tuple(row for kind, row in became if kind == which) for which in kinds))

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
            self._append(records=[(at, kind, number, text)])

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
            for number in range(1, len(again.replay.records) + 1):
                again._record(number)

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
        with self._guarded(), self._transaction("BEGIN IMMEDIATE"):
            self._sync()
            yield

    @contextmanager
    def together(self) -> Iterator[None]:
        """A block whose calls are on the disk together when it ends, or not at all: it waits for the disk once.

        Raises:
            StakesError: If the changes cannot be written; none of them was recorded then.
        """
        before = None
        try:
            with self.writing():
                before = len(self.replay.hashes), len(self.replay.records)
                self._together.append(True)
                try:
                    yield
                finally:
                    self._together.clear()
        except BaseException:
            if before is not None:
                self.replay.back_to(*before)
            raise

    def _transaction(self, begin: str) -> AbstractContextManager[None]:
        return nullcontext() if self._together else transaction(self.connection, begin)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block whose queries all see the same moment."""
        with self._guarded(), self._transaction("BEGIN"):
            yield

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if os.getpid() != self.process:  # a lock of SQLite is lost in a fork, and the file with it
            raise StakesError(f"{self.path} was opened by another process; open it again in this one")
        with plain_errors(self.path):
            yield

    def _synced(self) -> Replay:
        """All that is in the file now, verified."""
        with self.reading():
            self._sync()
        return self.replay

    def _sync(self) -> None:
        """Within a transaction: read and verify what is new in the file."""
        found = self.connection.execute("SELECT number, rows, events, records, hash FROM head LIMIT 2").fetchall()
        head = Head._make(found[0][1:]) if len(found) == 1 and found[0][0] == 1 else None
        if head == self.replay.head():
            return
        try:
            extend(self.replay, self.connection, head)
        except StakesError as error:
            count = len(self.replay.hashes)
            sound = f"events 1 to {count} are sound" if count else "no event is known to be sound"
            raise damaged(self.path, f"{error}; {sound}") from error

    def _append(self, events: Sequence[Event] = (), records: Sequence[tuple[float, str, int, str]] = ()) -> None:
        """Within `writing`: add events, and records (at, kind, version, JSON)."""
        if events or records:
            append(self.connection, self.replay, events, records)

    def _record(self, number: int) -> Record:
        """A record, read again and compared with the hash that it had."""
        found = [line[:-1] for line in self.read(RECORDS.format("hash").replace(">", "="), number)]
        try:
            expected = link(self.replay.hash_before(number), record_read(found[0], number)) if len(found) == 1 else b""
            if expected != self.replay.records[number - 1][1]:
                raise StakesError(f"record {number} is not what was written")
            return record_parsed(found[0])
        except StakesError as error:
            raise damaged(self.path, str(error)) from error

    def _refuse_unknown(self, rows: Iterable[str]) -> None:
        """Refuse ids that the campaign does not have; rows never change, so this needs no transaction."""
        known = self.replay.rows
        for row in rows:
            if row not in known:
                raise unknown_row(row, tuple(known))

    def _state(self, row: str) -> RowState:
        """The state of one row, within `writing`."""
        return self.replay.state(row)

    def _add_all(self, kind: Kind, given: Iterable[str], who: str | None, now: float | None) -> None:
        """Record an event of one kind for each row, all or none."""
        rows, by, at = checked_ids(given), checked_who(who), checked_clock(now)
        self._refuse_unknown(rows)
        with self.writing():
            events = [(self._state(row), Event(0, at, kind, row, who=by)) for row in rows]
            self._append([checked(state, event) for state, event in events if not needless(state, event)])

    def _label_event(self, event: Event, replace: bool) -> Event | None:
        """A label as it is to be recorded, apart from others where the row is in a test; None if it is known."""
        state = self._state(event.row)
        if state.status in ("testing", "tested"):
            event = event._replace(kind="result")
            if state.status == "tested" and not replace and state.label != event.label:
                raise StakesError(
                    f"row {event.row!r} has the label {state.label!r} and {event.label!r} was reported; to change it "
                    "on purpose, replace or withdraw it. Nothing was recorded."
                )
        if replace and state.status == "labelled":
            event = event._replace(kind="replace")
        return None if needless(state, event) else checked(state, event)

    def _opinion_event(self, event: Event, replace: bool) -> Event | None:
        """A label of an annotator: an opinion where somebody else has labelled the row; None if it is known."""
        state, row = self._state(event.row), event.row
        if state.status != "labelled":
            return self._label_event(event, replace)
        own = self.replay.opinions.get(row, {}).get(event.who)
        if own is None:
            return self.replay.checked(event._replace(kind="opinion"))
        if own.label == event.label:
            return None
        if not replace:
            raise StakesError(
                f"row {row!r} has the label {own.label!r} from {event.who!r}, who now says {event.label!r}; to change "
                "it on purpose, replace or retract it. Nothing was recorded."
            )
        first = next(iter(self.replay.opinions[row].values()))
        return self.replay.checked(event._replace(kind="replace" if own is first else "opinion"))


def _became(event: Event | None, before: RowState) -> str | None:
    """What became of a label: "label" where there was none, "replace", or None where it was known."""
    if event is None or event.kind != "result":
        return None if event is None else event.kind
    return "replace" if before.status == "tested" else "label"


def append(
    connection: sqlite3.Connection,
    replay: Replay,
    events: Sequence[Event],
    records: Sequence[tuple[float, str, int, str]],
) -> None:
    """Add lines, with their numbers and hashes, after what a replay has, and write the head."""
    if any(event[2] in OF_SEVERAL for event in events):  # which the version before does not know
        connection.execute(f"PRAGMA user_version = {VERSION}")
    before, made = replay.event_hash, replay.record_hash
    for number, event in enumerate(events, start=len(replay.hashes) + 1):
        before = link(before, (number, *event[1:]))
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *event[1:], before))
    for number, record in enumerate(records, start=len(replay.records) + 1):
        made = link(made, (number, *record))
        connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", (number, *record, made))
    counts = (len(replay.rows), len(replay.hashes) + len(events), len(replay.records) + len(records))
    head = Head.of(replay.start, counts, before, made)
    connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?, ?)", head)


def extend(replay: Replay, connection: sqlite3.Connection, head: Head | None) -> None:
    """Read and verify what a file has beyond a replay, up to its head."""
    replay.drop_half_done()
    replay.take_events(connection.execute(EVENTS.format("hash"), (len(replay.events),)).fetchall())
    replay.take_records(connection.execute(RECORDS.format("hash"), (len(replay.records),)))
    if head is None:
        raise StakesError("its head is gone, or there are several")
    found = replay.head()
    for name, wanted, got in zip(("rows", "events", "records"), head, found, strict=False):
        if wanted != got:
            raise StakesError(f"{wanted!r:.50} {name} were written and {got} are there")
    if head != found:
        raise StakesError("its rows, or its head, are not what was written")
