"""What happens to a row: events are added and never changed, and the state of a campaign is their replay."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from stakes.exceptions import StakesError

Kind = Literal["label", "replace", "ask", "release", "skip", "withdraw"]


class Event(NamedTuple):
    """Something that happened to one row."""

    number: int
    """1, 2, 3 ... over all rows, without gaps."""
    at: float
    """Seconds since 1970, UTC, by the clock of whoever recorded it."""
    kind: Kind
    """label: told, or known from the start; replace: another label on purpose; ask: handed out; release: handed back;
    skip: not to be asked again; withdraw: the label is taken back."""
    row: str
    label: str | None = None
    """Of label and replace."""
    until: float | None = None
    """Of ask: when the row comes back by itself, in seconds since 1970."""
    batch: int | None = None
    """Of ask: rows handed out together share it."""
    who: str | None = None


@dataclass(frozen=True)
class Note:
    """A record kept beside the events."""

    number: int
    at: float
    kind: str
    version: int
    """The number of the last event that it knows of."""
    payload: Any
    """Anything that JSON can hold."""


@dataclass(frozen=True)
class Outcome:
    """What became of the labels told: ids, in the order told."""

    told: tuple[str, ...]
    """New labels."""
    known: tuple[str, ...]
    """The row had this very label already; nothing was recorded."""
    replaced: tuple[str, ...]
    """The row had another label."""


# ----------------------------------------------------------------------
# What events have made of a row, and which events it can take: every rule of the life of a row is here.
#
# A row is open until it is asked for, and open again when it is released or its lease ends. A label makes it
# labelled, whatever it was but that: labels are welcome whenever they come. A label can be replaced, or withdrawn,
# which makes the row open. An open or asked row can be skipped; only a release brings it back.

Status = Literal["open", "asked", "labelled", "skipped"]

_BECOMES: dict[Kind, Status] = {
    "label": "labelled",
    "replace": "labelled",
    "ask": "asked",
    "release": "open",
    "skip": "skipped",
    "withdraw": "open",
}


class RowState(NamedTuple):
    """Where a row stands."""

    status: Status = "open"
    label: str | None = None
    """Of a labelled row."""
    until: float | None = None
    """Of an asked row: when its lease ends, in seconds since 1970."""
    batch: int | None = None
    """Of an asked row: the rows that were handed out together."""
    who: str | None = None
    """Who asked for, told or skipped it, where that was said."""
    event: int = 0
    """The number of the event that brought it here; 0 where nothing has happened yet."""

    def at(self, now: float) -> RowState:
        """The state at a time: an asked row is open again from the end of its lease on."""
        return RowState(event=self.event) if self.until is not None and self.until <= now else self


def after(event: Event) -> RowState:
    """The state of a row after an event; what was before plays no part."""
    who = None if _BECOMES[event.kind] == "open" else event.who
    return RowState(_BECOMES[event.kind], event.label, event.until, event.batch, who, event.number)


def replay(events: Iterable[Event]) -> dict[str, RowState]:
    """The states of the rows that anything has happened to, leases that have ended among them: see `RowState.at`."""
    return {row: after(event) for row, event in {event.row: event for event in events}.items()}


def needless(state: RowState, event: Event) -> bool:
    """Whether a row is already as the event would leave it: the same label told twice, a skipped row skipped again."""
    same = (_BECOMES[event.kind], event.label) == (state.status, state.label)
    return same and event.kind in ("label", "replace", "skip")


def checked(state: RowState, event: Event) -> Event:
    """The event, if a row in this state can take it."""
    if refusal := _refusal(state.at(event.at), event):
        raise StakesError(f"row {event.row!r} {refusal}. Nothing was recorded.")
    return event


def _refusal(state: RowState, event: Event) -> str | None:
    """Why a row does not take an event, what to do about it, or None."""
    match event.kind:
        case "label" if state.status == "labelled":
            return f"{_is(state)} and was told {event.label!r}; to change it on purpose, replace or withdraw it"
        case "replace" if state.status != "labelled":
            return f"{_is(state)}: there is no label to replace; tell it as a new one"
        case "ask" if state.status != "open":
            return f"{_is(state)} and cannot be handed out now; ask for another"
        case "release" if state.status not in ("asked", "skipped"):
            return f"{_is(state)}: only rows that are asked or skipped are released; a label is withdrawn"
        case "skip" if state.status not in ("open", "asked"):
            return f"{_is(state)}: only rows that are open or asked are skipped; a label is withdrawn first"
        case "withdraw" if state.status != "labelled":
            return f"{_is(state)}: there is no label to withdraw"
    return None


def _is(state: RowState) -> str:
    """A row's state in words."""
    match state.status:
        case "labelled":
            return f"has the label {state.label!r}"
        case "asked":
            return f"is asked until {datetime.fromtimestamp(state.until or 0.0, UTC):%Y-%m-%d %H:%M} UTC"
    return f"is {state.status}"


_COMPARED = 1000  # ids that a wrong one is compared with: difflib takes some 20 microseconds for each


def unknown_row(row: str, ids: Sequence[str]) -> StakesError:
    """The refusal of an id that the campaign does not have, with the ids that look like it."""
    near = _same_but_for_writing(row, ids) or difflib.get_close_matches(row, _same_beginning(row, ids))
    meant = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    return StakesError(f"the campaign has no row {row!r} among its {len(ids):,} rows.{meant} Nothing was recorded.")


def _same_but_for_writing(row: str, ids: Sequence[str]) -> list[str]:
    """The ids that differ in case, outer spaces and leading zeros only: what spreadsheets change on their own."""
    return [other for other in ids if _plain(other) == _plain(row)]


def _plain(row: str) -> str:
    return row.strip().lstrip("0").casefold()


def _same_beginning(row: str, ids: Sequence[str]) -> list[str]:
    """The ids that share most letters at the beginning."""
    return heapq.nlargest(_COMPARED, ids, key=lambda other: _shared(row, other))


def _shared(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
