"""What events have made of a row, and which events it can take: every rule of the life of a row is here.

A row is open until it is asked for, and open again when it is released or its lease ends. A label makes it labelled,
whatever it was but that: labels are welcome whenever they come. A label can be replaced, or withdrawn, which makes the
row open. An open or asked row can be skipped; only a release brings it back.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from stakes.campaigns.errors import CampaignError
from stakes.campaigns.events import Event, Kind

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
        raise CampaignError(f"row {event.row!r} {refusal}. Nothing was recorded.")
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
