"""What happens to a row: events are added and never changed, and the state of a campaign is their replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

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
