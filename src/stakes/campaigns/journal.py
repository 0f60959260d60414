"""The durable part of a campaign: rows, events and notes in one SQLite file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from stakes.campaigns import changes, records
from stakes.campaigns.checks import (
    checked_clock,
    checked_count,
    checked_ids,
    checked_json,
    checked_labels,
    checked_number,
    checked_path,
    checked_rows,
    checked_text,
    checked_time,
    checked_who,
)
from stakes.campaigns.database import Database
from stakes.campaigns.errors import CampaignError, unknown_row
from stakes.campaigns.events import Event, Note, Outcome
from stakes.campaigns.files import create_file, open_file
from stakes.campaigns.states import RowState

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
            records.add_rows(database, costs)
            records.add_note(database, at, "settings", 0, text)
            for row, label in known.items():
                records.add_event(database, Event(0, at, "label", row, label))

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
            records.add_note(self.database, time.time(), "settings", self.version(), text)

    def ids(self) -> tuple[str, ...]:
        """The ids of all rows, in their order."""
        return tuple(self.costs())

    def costs(self) -> dict[str, float | None]:
        """What a label of each row costs, by id, None where it was not said."""
        return records.costs(self.database)

    def version(self) -> int:
        """The number of the last event, 0 before the first."""
        return records.last_event(self.database)

    def history(self, row: str | None = None) -> tuple[Event, ...]:
        """All events, or those of one row, in their order."""
        changes.refuse_unknown(self.database, () if row is None else checked_ids([row]))
        return records.events(self.database, row)

    def history_since(self, version: int) -> tuple[Event, ...]:
        """The events after the one of number `version`."""
        return records.events_since(self.database, checked_count(version, "the version", 0))

    def labels_told(self) -> tuple[str, ...]:
        """Every label that any row has had, each once."""
        return records.labels(self.database)

    def states(self, now: float | None = None) -> dict[str, RowState]:
        """The states of all rows by id, in their order: the replay of the events."""
        return changes.row_states(self.database, checked_clock(now))

    def lease(
        self, wanted: Iterable[str], n: int, *, seconds: float = WEEK, who: str | None = None, now: float | None = None
    ) -> tuple[str, ...]:
        """Hand out the first n of the wanted rows that are open, or all of them, for some time and to nobody else."""
        rows, at = checked_ids(wanted), checked_clock(now)
        until = checked_time(at + checked_number(seconds, "the seconds of a lease"), "the end of a lease")
        most = checked_count(n, "the number of rows", 1)
        return changes.hand_out(self.database, rows, most, at, until, checked_who(who))

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
        changes.refuse_unknown(self.database, labels)
        with self.database.writing():
            became = [
                (changes.tell(self.database, Event(0, at, "label", row, label, who=by), replace), row)
                for row, label in labels.items()
            ]
        return Outcome(*(tuple(row for kind, row in became if kind == which) for which in ("label", None, "replace")))

    def skip(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Never hand these rows out again, until they are released; all or none."""
        changes.add_all(self.database, "skip", checked_ids(rows), checked_who(who), checked_clock(now))

    def release(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Give asked or skipped rows back to the pool; all or none."""
        changes.add_all(self.database, "release", checked_ids(rows), checked_who(who), checked_clock(now))

    def withdraw(self, rows: Iterable[str], *, who: str | None = None, now: float | None = None) -> None:
        """Take labels back: the rows are open again, and their history is kept; all or none."""
        changes.add_all(self.database, "withdraw", checked_ids(rows), checked_who(who), checked_clock(now))

    def save_note(self, kind: str, version: int, payload: Any, *, now: float | None = None) -> None:
        """Keep a record beside the events, of what was thought after the event of number `version`."""
        text, at = checked_json(payload, "the payload of a note"), checked_clock(now)
        if checked_text(kind, "the kind of a note") == "settings":
            raise CampaignError("notes of the kind 'settings' are kept by update_settings; use that, or another kind")
        number = checked_count(version, "the version of a note", 0, self.version())
        with self.database.writing():
            records.add_note(self.database, at, kind, number, text)

    def notes(self, kind: str) -> tuple[Note, ...]:
        """All notes of a kind, in their order."""
        return records.notes(self.database, kind)

    def last_note(self, kind: str) -> Note | None:
        """The last note of a kind, None if there is none."""
        return records.last_note(self.database, kind)

    def check(self) -> None:
        """Look through the whole file and replay every event by the rules; raise if anything is wrong."""
        changes.check(self.database)
