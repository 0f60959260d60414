"""What is checked at the door of a campaign; inside, it is trusted."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stakes.campaign.sqlite import Database, create_file, open_file, refuse_damage
from stakes.campaign.states import Event, Kind, Note, Outcome, RowState, checked, needless, replay, unknown_row
from stakes.exceptions import StakesError

_YEAR_10000 = 253402300800.0


def checked_id(row: object) -> str:
    """An id of a row, if it can be one."""
    if not (text := checked_text(row, "the id of a row")):
        raise StakesError("the id of a row is empty; give every row an id of its own")
    return text


def checked_text(text: object, name: str) -> str:
    """A text that every tool reads back as it was written: no NUL, no halves of characters."""
    if not isinstance(text, str):
        raise StakesError(f"{name} must be a text, not {text!r} of type {type(text).__name__}; give it in quotes")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise StakesError(f"{name} holds a NUL or half a character: {text!r}; remove it, or read the file as UTF-8")
    return text


def checked_number(number: Any, name: str) -> float:
    """A finite number above zero."""
    real = isinstance(number, Real) and not isinstance(number, bool)
    if not real or not 0 < number <= sys.float_info.max:
        raise StakesError(f"{name} must be a positive finite number, not {number!r}")
    return float(number)


def checked_time(at: object, name: str) -> float:
    """A time that a calendar has a date for."""
    if (seconds := checked_number(at, name)) >= _YEAR_10000:
        raise StakesError(f"{name} must lie before the year 10000, in seconds since 1970; {at!r} does not")
    return seconds


def checked_clock(now: object) -> float:
    """The time given, or else what the clock says."""
    return time.time() if now is None else checked_time(now, "the time")


def checked_who(who: object) -> str | None:
    """A name, or none."""
    return None if who is None else checked_text(who, "who it is")


def checked_rows(rows: Iterable[tuple[str, float | None]]) -> dict[str, float | None]:
    """The costs of rows by id, each id once."""
    costs: dict[str, float | None] = {}
    for row, cost in map(_pair, rows):
        if checked_id(row) in costs:
            raise StakesError(f"two rows have the id {row!r}; give every row an id of its own")
        costs[row] = None if cost is None else checked_number(cost, f"the cost of row {row!r}")
    if not costs:
        raise StakesError("a campaign needs at least one row; none was given")
    return costs


def checked_labels(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The labels of rows by id, each row with one."""
    labels: dict[str, str] = {}
    for row, label in map(_pair, pairs):
        told = labels.setdefault(checked_id(row), checked_text(label, f"the label of row {row!r}"))
        if told != label:
            raise StakesError(f"row {row!r} is told twice, as {told!r} and as {label!r}; give it one label")
    return labels


def checked_ids(rows: Iterable[str]) -> tuple[str, ...]:
    """Ids of rows, each once, in the order given."""
    if isinstance(rows, str):
        raise StakesError(f"a list of ids is wanted, not the text {rows!r}; put it in a list")
    return tuple(dict.fromkeys(map(checked_id, rows)))


def _pair(pair: Any) -> tuple[Any, Any]:
    """Two things: a text of two letters would pass for them."""
    if isinstance(pair, str) or len(pair) != 2:
        raise StakesError(f"pairs are wanted, not {pair!r}; of a dictionary, give its items()")
    return pair[0], pair[1]


def checked_count(count: Any, name: str, least: int, most: int = sys.maxsize) -> int:
    """A whole number within bounds."""
    whole = isinstance(count, Integral) and not isinstance(count, bool)
    if not whole or not least <= count <= most:
        raise StakesError(f"{name} must be a whole number from {least} to {most}, not {count!r}")
    return int(count)


def checked_json(value: Any, name: str) -> str:
    """A value as JSON, if it can be written so that any program reads it back."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StakesError(f"{name} must be what JSON can hold: texts, finite numbers, lists ... ({error})") from error


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path of a file; old names that are not Unicode are names too."""
    if "\0" in str(path):
        raise StakesError(f"the path holds a NUL: {str(path)!r}; remove it")
    return Path(path)


# ----------------------------------------------------------------------
# The lines of a campaign file, read and added.


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


# ----------------------------------------------------------------------
# Events added by the rules. A change looks at its own rows only: its cost does not grow with the campaign.


_OPEN = RowState()


def refuse_unknown(database: Database, rows: Iterable[str]) -> None:
    """Refuse ids that the campaign does not have; rows never change, so this needs no transaction."""
    if strangers := unknown(database, rows):
        raise unknown_row(strangers[0], tuple(costs(database)))


def row_state(database: Database, row: str) -> RowState:
    """The state of one row: the last of its events decides."""
    return replay(last_event_of(database, row)).get(row, _OPEN)


def row_states(database: Database, now: float) -> dict[str, RowState]:
    """The states of all rows by id, in their order, by the replay of all events."""
    happened = replay(events(database))
    return {row: happened.get(row, _OPEN).at(now) for row in costs(database)}


def is_open(database: Database, row: str, now: float) -> bool:
    """Whether a row can be handed out."""
    return row_state(database, row).at(now).status == "open"


def add(database: Database, event: Event) -> bool:
    """Record an event if the row can take it; False, and nothing recorded, if it is already so."""
    state = row_state(database, event.row)
    if needless(state, event):
        return False
    add_event(database, checked(state, event))
    return True


def add_all(database: Database, kind: Kind, rows: tuple[str, ...], who: str | None, at: float) -> None:
    """Record an event of one kind for each row, all or none."""
    refuse_unknown(database, rows)
    with database.writing():
        for row in rows:
            add(database, Event(0, at, kind, row, who=who))


def hand_out(
    database: Database, rows: tuple[str, ...], n: int, at: float, until: float, who: str | None
) -> tuple[str, ...]:
    """Record that the first n rows that are open are asked, as one batch."""
    refuse_unknown(database, rows)
    with database.writing():
        batch = next_batch(database)
        free = tuple(itertools.islice((row for row in rows if is_open(database, row, at)), n))
        for row in free:
            add(database, Event(0, at, "ask", row, None, until, batch, who))
    return free


def tell(database: Database, event: Event, replace: bool) -> Kind | None:
    """Record a label, as what it was recorded, None if it was known."""
    if replace and row_state(database, event.row).status == "labelled":
        event = event._replace(kind="replace")
    return event.kind if add(database, event) else None


def check(database: Database) -> None:
    """Look through the whole file and replay every event by the rules; raise if anything is wrong."""
    with database.reading():
        refuse_damage(database.path, database.connection, "integrity_check")
        if database.read("PRAGMA foreign_key_check"):
            raise StakesError(f"{database.path}: it is damaged (events of unknown rows); put a backup in its place")
        recorded = events(database)
    try:
        _refuse_lawless(recorded)
    except StakesError as error:
        raise StakesError(f"{database.path}: its events break the rules ({error}); put a backup in place") from error


def _refuse_lawless(events: tuple[Event, ...]) -> None:
    states: dict[str, RowState] = {}
    for number, event in enumerate(events, start=1):
        if event.number != number:
            raise StakesError(f"event {number} is missing")
        states |= replay([checked(states.get(event.row, _OPEN), event)])


# ----------------------------------------------------------------------
# The durable part of a campaign: rows, events and notes in one SQLite file.


WEEK = 7 * 24 * 3600.0


@dataclass(frozen=True, eq=False)
class Journal:
    """A campaign file, open. What a call returned from is on the disk; a call that raised has recorded nothing.

    Any number of processes may have the same file open; within one, every thread opens its own. `now` is the time in
    seconds since 1970; the clock is read where it is not given.
    """

    database: Database

    @staticmethod
    def create(
        path: str | os.PathLike[str],
        rows: Iterable[tuple[str, float | None]],
        settings: Mapping[str, Any],
        labels: Mapping[str, str] | None = None,
        *,
        now: float | None = None,
    ) -> Journal:
        """A new campaign of rows (id, cost), with the labels that are known; a file that is there is never replaced."""
        costs, known, at = checked_rows(rows), checked_labels((labels or {}).items()), checked_clock(now)
        text = checked_json(dict(settings), "the settings")
        if strangers := known.keys() - costs.keys():
            raise unknown_row(min(strangers), tuple(costs))

        def fill(database: Database) -> None:
            add_rows(database, costs)
            add_note(database, at, "settings", 0, text)
            for row, label in known.items():
                add_event(database, Event(0, at, "label", row, label))

        create_file(checked_path(path), fill)
        return Journal.open(path)

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Journal:
        """The campaign in a file; anything else that the file may be is refused and left as it is."""
        return Journal(open_file(checked_path(path)))

    def close(self) -> None:
        """Let go of the file."""
        self.database.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as they are now; `notes("settings")` are all their changes."""
        return {name: value for note in self.notes("settings") for name, value in note.payload.items()}

    def update_settings(self, /, **settings: Any) -> None:
        """Change some settings; what they were is kept."""
        text = checked_json(settings, "the settings")
        with self.database.writing():
            add_note(self.database, time.time(), "settings", self.version(), text)

    def ids(self) -> tuple[str, ...]:
        """The ids of all rows, in their order."""
        return tuple(self.costs())

    def costs(self) -> dict[str, float | None]:
        """What a label of each row costs, by id, None where it was not said."""
        return costs(self.database)

    def version(self) -> int:
        """The number of the last event, 0 before the first."""
        return last_event(self.database)

    def history(self, row: str | None = None) -> tuple[Event, ...]:
        """All events, or those of one row, in their order."""
        refuse_unknown(self.database, () if row is None else checked_ids([row]))
        return events(self.database, row)

    def history_since(self, version: int) -> tuple[Event, ...]:
        """The events after the one of number `version`."""
        return events_since(self.database, checked_count(version, "the version", 0))

    def labels_told(self) -> tuple[str, ...]:
        """Every label that any row has had, each once."""
        return labels(self.database)

    def states(self, now: float | None = None) -> dict[str, RowState]:
        """The states of all rows by id, in their order: the replay of the events."""
        return row_states(self.database, checked_clock(now))

    def lease(
        self, wanted: Iterable[str], n: int, *, seconds: float = WEEK, who: str | None = None, now: float | None = None
    ) -> tuple[str, ...]:
        """Hand out the first n of the wanted rows that are open, or all of them, for some time and to nobody else."""
        rows, at = checked_ids(wanted), checked_clock(now)
        until = checked_time(at + checked_number(seconds, "the seconds of a lease"), "the end of a lease")
        most = checked_count(n, "the number of rows", 1)
        return hand_out(self.database, rows, most, at, until, checked_who(who))

    def tell_many(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        replace: bool = False,
        who: str | None = None,
        now: float | None = None,
    ) -> Outcome:
        """Record labels of rows, all or none; another label than the one that a row has only with `replace`."""
        labels, at, by = checked_labels(pairs), checked_clock(now), checked_who(who)
        refuse_unknown(self.database, labels)
        with self.database.writing():
            became = [
                (tell(self.database, Event(0, at, "label", row, label, who=by), replace), row)
                for row, label in labels.items()
            ]
        return Outcome(*(tuple(row for kind, row in became if kind == which) for which in ("label", None, "replace")))

    def skip(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Never hand these rows out again, until they are released; all or none."""
        add_all(self.database, "skip", checked_ids(rows), checked_who(who), checked_clock(now))

    def release(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Give asked or skipped rows back to the pool; all or none."""
        add_all(self.database, "release", checked_ids(rows), checked_who(who), checked_clock(now))

    def withdraw(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Take labels back: the rows are open again, and their history is kept; all or none."""
        add_all(self.database, "withdraw", checked_ids(rows), checked_who(who), checked_clock(now))

    def save_note(self, kind: str, version: int, payload: Any, *, now: float | None = None) -> None:
        """Keep a record beside the events, of what was thought after the event of number `version`."""
        text, at = checked_json(payload, "the payload of a note"), checked_clock(now)
        if checked_text(kind, "the kind of a note") == "settings":
            raise StakesError("notes of the kind 'settings' are kept by update_settings; use that, or another kind")
        number = checked_count(version, "the version of a note", 0, self.version())
        with self.database.writing():
            add_note(self.database, at, kind, number, text)

    def notes(self, kind: str) -> tuple[Note, ...]:
        """All notes of a kind, in their order."""
        return notes(self.database, kind)

    def last_note(self, kind: str) -> Note | None:
        """The last note of a kind, None if there is none."""
        return last_note(self.database, kind)

    def check(self) -> None:
        """Look through the whole file and replay every event by the rules; raise if anything is wrong."""
        check(self.database)
