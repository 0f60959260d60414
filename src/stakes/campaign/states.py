"""What happens to a row: events, the states they lead to, and which events a row can take.

Events are added and never changed, and the state of a campaign is their replay. A row is open until it is asked for,
and open again when it is released or its lease ends. A label makes it labelled, whatever it was but that: labels are
welcome whenever they come. A label can be replaced, or withdrawn, which makes the row open. An open or asked row can be
skipped; only a release brings it back. An open row can be drawn to test the model: its label is then the result of a
test, which is kept apart from the labels that the model is fitted to until it is used for them on purpose.

Several people may label. A person can be asked for an opinion on a row that another has labelled: the row keeps its
label, and the opinion stands beside it. Where opinions differ, somebody settles the row. Whoever is handed a row may
put it off ("later": it is open again), or say that they are not sure ("unsure": it waits for somebody to settle it). An
opinion, a label or a settlement can be retracted by whoever gave it.

Ids, labels, times and counts are checked here, before they reach the file, and again when they are read.

Every event and every record has a hash: that of the hash before it and of what is in its line. The first ones follow
the hash of all rows, and the head of the file has the numbers of lines and a hash of the last ones. What was changed,
left out, added or put in another order is found so; a history that was rewritten together with all hashes is not, as
there is no secret in them.
"""

from __future__ import annotations

import difflib
import hashlib
import heapq
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

from stakes.exceptions import StakesError

Kind = Literal[
    "label", "replace", "ask", "release", "skip", "withdraw", "test", "result",
    "opinion", "consult", "later", "unsure", "settle", "retract",
]  # fmt: skip
RowStatus = Literal["open", "asked", "labelled", "skipped", "testing", "tested", "unsure"]

_BECOMES: dict[Kind, RowStatus] = {
    "label": "labelled",
    "replace": "labelled",
    "ask": "asked",
    "release": "open",
    "skip": "skipped",
    "withdraw": "open",
    "test": "testing",
    "result": "tested",
    "opinion": "labelled",
    "consult": "labelled",
    "later": "open",
    "unsure": "unsure",
    "settle": "labelled",
    "retract": "open",
}
OF_SEVERAL: frozenset[Kind] = frozenset({"opinion", "consult", "later", "unsure", "settle", "retract"})
"""Kinds of events that came with several annotators: a file without them is read by earlier versions, too."""
_LABELS: frozenset[Kind] = frozenset({"label", "replace", "result", "opinion", "settle"})  # that have a label
_LEASES: frozenset[Kind] = frozenset({"ask", "consult"})  # that have an end and a batch
_ACTS: tuple[Kind, ...] = ("label", "result", "opinion", "skip", "later", "unsure", "settle")  # that can be undone
_OTHERS_ASIDE: tuple[Kind, ...] = (
    "opinion",
    "consult",
    "later",
    "unsure",
    "retract",
)  # leave what a person did as it is
_FIRST: tuple[Kind, ...] = ("label", "ask", "skip", "test")  # what a row takes that nothing has happened to
_YEAR_10000 = 253402300800.0
_COMPARED = 1000  # ids that a wrong one is compared with: difflib takes some 20 microseconds for each


class Event(NamedTuple):
    """Something that happened to one row.

    Attributes:
        number: 1, 2, 3 ... over all rows, without gaps.
        at: When, in seconds since 1970 (UTC), by the clock of whoever recorded it.
        kind: "label": reported, or known from the start; "replace": another label on purpose; "ask": handed out;
            "release": handed back; "skip": not to be asked again; "withdraw": the label is taken back; "test": drawn to
            test the model; "result": the label of such a row, which the model is not fitted to; "consult": somebody
            is asked for an opinion on a labelled row; "opinion": it came; "later": put off by whoever was asked;
            "unsure": whoever was asked cannot tell; "settle": what the label is, after opinions differed or somebody
            was not sure; "retract": whoever gave a label, an opinion or a settlement takes it back.
        row: The id of the row.
        label: Of "label", "replace", "result", "opinion" and "settle".
        until: Of "ask" and "consult": when the row comes back by itself, in seconds since 1970.
        batch: Of "ask" and "consult": rows handed out together share it.
        who: Who did it, where that was given.

    Examples:
        >>> Event(1, 0.0, "label", "flat-001", "310.5").label
        '310.5'
    """

    number: int
    at: float
    kind: Kind
    row: str
    label: str | None = None
    until: float | None = None
    batch: int | None = None
    who: str | None = None


class RowState(NamedTuple):
    """Where a row stands.

    Attributes:
        status: "open", "asked", "labelled", "skipped", "testing" (drawn to test the model), "tested" (with a label
            that the model is not fitted to) or "unsure" (somebody could not tell; it waits to be settled).
        label: Of a labelled or tested row.
        until: Of an asked row: when its lease ends, in seconds since 1970.
        batch: Of an asked row: the rows that were handed out together share it.
        who: Who asked for, labelled or skipped it, where that was given.
        event: The number of the event that brought it here; 0 where nothing has happened yet.

    Examples:
        >>> RowState("asked", until=100.0).at(200.0).status
        'open'
    """

    status: RowStatus = "open"
    label: str | None = None
    until: float | None = None
    batch: int | None = None
    who: str | None = None
    event: int = 0

    def at(self, now: float) -> RowState:
        """The state at a time: an asked row is open again from the end of its lease on.

        Args:
            now: In seconds since 1970.

        Returns:
            This state, or that of an open row.
        """
        return RowState(event=self.event) if self.until is not None and self.until <= now else self


_OPEN = RowState()


class Opinion(NamedTuple):
    """What one annotator says of a row.

    Attributes:
        row: The id of the row.
        annotator: Who says so; None for a label of the table, or one that was reported without a name.
        label: What the label is.
        at: When, in seconds since 1970.

    Examples:
        >>> Opinion("flat-001", "anna", "310.5", 0.0).annotator
        'anna'
    """

    row: str
    annotator: str | None
    label: str
    at: float


class Undone(NamedTuple):
    """An act that was taken back.

    Attributes:
        row: The id of the row.
        kind: What was done: "label", "opinion", "skip", "later", "unsure" or "settle".
        label: Of a label, an opinion or a settlement.
        held: Whether whoever did it has the row again, to decide anew.

    Examples:
        >>> Undone("flat-001", "skip", None, True).kind
        'skip'
    """

    row: str
    kind: Kind
    label: str | None
    held: bool


class Recorded(NamedTuple):
    """What became of labels that were reported: ids of rows, in the order given.

    Attributes:
        new: Rows that had no label.
        known: Rows that had this very label already; nothing was recorded.
        replaced: Rows that had another label.
        opinions: Rows that have a label from somebody else, beside which this one was recorded.

    Examples:
        >>> Recorded(new=("flat-001",), known=(), replaced=()).new
        ('flat-001',)
    """

    new: tuple[str, ...]
    known: tuple[str, ...]
    replaced: tuple[str, ...]
    opinions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """Where a campaign stands.

    Attributes:
        rows: How many there are.
        labelled: How many have a label.
        asked: How many are handed out.
        skipped: How many are not to be asked for.
        open: How many can be asked for.
        spent: The cost of labels since the start, in units of the costs (1 each without).
        pending: The cost of labels on their way.
        budget: For all labels since the start; None where there is no limit.
        outlook: What the next labels are worth, as `stakes.ranking.Outlook.to_dict` has it; None before the first
            ranking, and in a cold start.
        outlook_labels: How many labels the outlook knew of.
        stale: Why the outlook is an old one; None where it is not.
        advice: Whether to go on, and why.
        testing: How many rows are drawn to test the model, and have no label yet.
        tested: How many have the label of a test, which the model is not fitted to.
        audit: What the model loses, as the last audit tells, or how far that is; None where there was none.
        unsure: How many wait to be settled, as somebody was not sure.
        disagreements: How many labelled rows have opinions that differ, and are not settled.
        annotators: How reliable annotators are, and how far they agree, in sentences; none where nothing tells.

    Examples:
        >>> Status(3, 1, 1, 0, 1, 2.0, 1.0, 5.0, None, None, None, "Ask for rows.").budget_left
        2.0
    """

    rows: int
    labelled: int
    asked: int
    skipped: int
    open: int
    spent: float
    pending: float
    budget: float | None
    outlook: dict[str, Any] | None
    outlook_labels: int | None
    stale: str | None
    advice: str
    testing: int = 0
    tested: int = 0
    audit: dict[str, Any] | None = None
    unsure: int = 0
    disagreements: int = 0
    annotators: tuple[str, ...] = ()

    @property
    def budget_left(self) -> float | None:
        """What may still be spent; None where there is no limit."""
        return None if self.budget is None else max(0.0, self.budget - self.spent - self.pending)

    def to_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return {**asdict(self), "budget_left": self.budget_left}


class Record(NamedTuple):
    """Something kept beside the events, such as settings or a ranking."""

    number: int
    at: float
    kind: str
    version: int
    """The number of the last event that it knows of."""
    payload: Any
    """Anything that JSON can hold."""


def after(event: Event) -> RowState:
    """The state of a row after an event; what was before plays no part."""
    who = None if _BECOMES[event.kind] == "open" else event.who
    return RowState(_BECOMES[event.kind], event.label, event.until, event.batch, who, event.number)


def needless(state: RowState, event: Event) -> bool:
    """Whether a row is already as the event would leave it: the same label twice, a skipped row skipped again."""
    same = (_BECOMES[event.kind], event.label) == (state.status, state.label)
    return same and event.kind in ("label", "replace", "skip", "result")


def checked(state: RowState, event: Event) -> Event:
    """The event, if a row in this state can take it."""
    if refusal := _refusal(state.at(event.at), event):
        raise StakesError(f"row {event.row!r} {refusal}. Nothing was recorded.")
    return event


def _refusal(state: RowState, event: Event) -> str | None:
    """Why a row does not take an event, and what to do about it; None where it does."""
    match event.kind:
        case "label" if state.status == "labelled":
            return f"{_is(state)} and {event.label!r} was reported; to change it on purpose, replace or withdraw it"
        case "replace" if state.status != "labelled":
            return f"{_is(state)}: there is no label to replace; tell it as a new one"
        case "ask" if state.status != "open":
            return f"{_is(state)} and cannot be handed out now; ask for another"
        case "release" if state.status not in ("asked", "skipped", "testing", "unsure"):
            return f"{_is(state)}: only rows that are asked, skipped or in a test are released; a label is withdrawn"
        case "skip" if state.status not in ("open", "asked", "testing", "unsure"):
            return f"{_is(state)}: only rows that are open, asked or in a test are skipped; a label is withdrawn first"
        case "withdraw" if state.status not in ("labelled", "tested"):
            return f"{_is(state)}: there is no label to withdraw"
        case "test" if state.status != "open":
            return f"{_is(state)} and cannot be drawn for a test now"
        case "result" if state.status not in ("testing", "tested"):
            return f"{_is(state)} and was not drawn for a test; tell its label as any other"
        case "opinion" | "consult" if state.status != "labelled":
            return f"{_is(state)}: an opinion stands beside a label, and there is none; tell it as one"
        case "later" | "unsure" if state.status not in ("open", "asked", "labelled"):
            return f"{_is(state)}: only rows that are handed out are put off"
        case "settle" if state.status not in ("labelled", "unsure"):
            return f"{_is(state)}: there is nothing to settle; tell its label"
    return None


def _is(state: RowState) -> str:
    """The state as the middle of a sentence."""
    match state.status:
        case "labelled":
            return f"has the label {state.label!r}"
        case "tested":
            return f"has the label {state.label!r}, of a test,"
        case "testing":
            return "is drawn to test the model"
        case "unsure":
            return "waits to be settled"
        case "asked":
            return f"is asked until {datetime.fromtimestamp(state.until or 0.0, UTC):%Y-%m-%d %H:%M} UTC"
    return f"is {state.status}"


_text = json.encoder.encode_basestring_ascii
_CELLS: dict[type, Callable[[Any], str]] = {
    str: _text,
    float: float.hex,
    int: str,
}


def link(before: bytes, line: Iterable[str | float | None]) -> bytes:
    """The hash of a line: SHA-256 of the hash before it and of its cells, with commas between them.

    Texts are written as JSON does in ASCII, floating numbers in hexadecimal (`float.hex`), nothing as null: the same on
    every machine and in every version of Python.
    """
    return hashlib.sha256(before + _line(line).encode("ascii")).digest()


def _line(cells: Iterable[Any]) -> str:
    return ",".join(["null" if cell is None else _CELLS[type(cell)](cell) for cell in cells])


def link_event(before: bytes, event: Event) -> bytes:
    """`link` of an event whose types were checked, in a third of the time: a campaign has thousands of them."""
    number, at, kind, row, label, until, batch, who = event
    ends = "null,null" if until is None else f"{until.hex()},{batch}"
    line = (
        f'{number},{at.hex()},"{kind}",{_text(row)},{"null" if label is None else _text(label)},{ends},'
        f"{'null' if who is None else _text(who)}"
    )
    return hashlib.sha256(before + line.encode("ascii")).digest()


class Head(NamedTuple):
    """How many lines a campaign has, and a hash of where its chains end."""

    rows: int
    events: int
    records: int
    hash: bytes

    @staticmethod
    def of(start: bytes, counts: tuple[int, int, int], event_hash: bytes, record_hash: bytes) -> Head:
        """From the hash of the rows, the numbers of rows, events and records, and the hashes of the last ones."""
        return Head(*counts, link(start + event_hash + record_hash, counts))


class Replay(NamedTuple):
    """What was read of a campaign and found to be as it was written, and what it comes to.

    It only grows. The hash of an event is added last: an event without one was left half done by an interrupt.
    """

    rows: dict[str, float | None]
    """What a label of each row costs, by id in their order."""
    start: bytes
    """The hash of all rows, which the chains of events and of records begin with."""
    events: list[Event]
    hashes: list[bytes]
    """Of the events."""
    last: dict[str, Event]
    """Of the rows that anything has happened to: it says what became of them."""
    records: list[tuple[str, bytes]]
    """Kinds and hashes of the records."""
    opinions: dict[str, dict[str | None, Event]]
    """Of each row the labels that stand, by who gave them; the first is that of the row, unless it is settled."""
    settled: dict[str, Event]
    """Of the rows that were settled: how."""
    consults: dict[str, dict[str, Event]]
    """Of each row the leases to those who are asked for an opinion."""
    declined: dict[str, set[str]]
    """Who could not tell, for each row: they are not asked for an opinion on it."""

    @staticmethod
    def begin(lines: Sequence[tuple[Any, ...]]) -> Replay:
        """Of a campaign with these rows (number, id, cost), in which nothing has happened."""
        rows: dict[str, float | None] = {}
        texts = []  # each as `_line` has it
        for number, line in enumerate(lines, start=1):
            row, cost = _row_read(line, number)
            if row in rows:
                raise StakesError(f"row {number} has the id of another, {row!r:.100}")
            rows[row] = cost
            texts.append(f"{number},{_text(row)},{'null' if cost is None else cost.hex()}")
        start = hashlib.sha256("\n".join(texts).encode("ascii")).digest()
        return Replay(rows, start, [], [], {}, [], {}, {}, {}, {})

    @property
    def event_hash(self) -> bytes:
        """Of the last event."""
        return self.hashes[-1] if self.hashes else self.start

    @property
    def record_hash(self) -> bytes:
        """Of the last record."""
        return self.hash_before(len(self.records) + 1)

    def hash_before(self, number: int) -> bytes:
        """The hash that a record follows."""
        return self.records[number - 2][1] if number > 1 else self.start

    def head(self) -> Head:
        """What the head of the file must be."""
        counts = (len(self.rows), len(self.hashes), len(self.records))
        return Head.of(self.start, counts, self.event_hash, self.record_hash)

    def drop_half_done(self) -> None:
        """Take back an event that has no hash."""
        if len(self.events) == len(self.hashes):
            return
        del self.events[len(self.hashes) :]
        for each in (self.last, self.opinions, self.settled, self.consults, self.declined):
            each.clear()
        for event in self.events:
            self._happen(event)

    def back_to(self, events: int, records: int) -> None:
        """Forget all but the first events and records, which others were not kept after."""
        del self.hashes[events:], self.records[records:]
        self.drop_half_done()

    def state(self, row: str) -> RowState:
        """Where a row stands, with a lease that may have ended: see `RowState.at`."""
        return after(self.last[row]) if row in self.last else _OPEN

    def checked(self, event: Event) -> Event:
        """The event, if its row can take it, and if it is for this person to do."""
        checked(self.state(event.row), event)
        if refusal := self._refusal(event) if event.kind in OF_SEVERAL else None:
            raise StakesError(f"row {event.row!r} {refusal}. Nothing was recorded.")
        return event

    def _refusal(self, event: Event) -> str | None:
        """Why a person cannot do this to a row; None where they can."""
        row, who = event.row, event.who
        given: Mapping[str | None, Event] = self.opinions.get(row, {})
        labelled = self.state(row).status == "labelled"
        match event.kind:
            case "opinion" if self.last[row].who == who and who in given:
                return f"has its label from {who!r} already; to change it on purpose, replace it"
            case "consult" if who in given:
                return f"has an opinion of {who!r} already"
            case "later" | "unsure" if (holder := self._held_by_another(event)) is not None:
                return f"is in the hands of {holder!r}"
            case "later" | "unsure" if labelled and (who in given or who not in self.consults.get(row, {})):
                return f"has the label {self.state(row).label!r}, and {who!r} was not asked for an opinion on it"
            case "retract" if who not in given and not (row in self.settled and self.settled[row].who == who):
                return f"has no label of {who!r} that could be retracted"
        return None

    def _held_by_another(self, event: Event) -> str | None:
        """Who has the row of an event, where that is somebody else."""
        state = self.state(event.row).at(event.at)
        return state.who or "somebody" if state.status == "asked" and state.who != event.who else None

    def disagree(self, row: str, same: Callable[[str, str], bool]) -> bool:
        """Whether opinions on a row differ and it is not settled; `same` says whether two labels are alike."""
        given = [event.label or "" for event in self.opinions.get(row, {}).values()]
        if row in self.settled or len(given) < 2 or self.state(row).status != "labelled":
            return False
        return any(not same(given[0], other) for other in given[1:])

    def acts(self, who: str) -> list[Event]:
        """The last thing that a person did to each row, where it can be undone, in the order in which it was done."""
        found: dict[str, Event] = {}
        for event in self.events:
            own = event.who == who
            if own and event.kind in _ACTS:
                found[event.row] = event
            elif event.row in found and (own or event.kind not in _OTHERS_ASIDE):
                del found[event.row]
        return sorted(found.values())

    def _happen(self, event: Event) -> None:
        """Let an event that was checked happen: what became of its row, and who says what of it."""
        kind, row, who = event.kind, event.row, event.who
        if kind == "label":
            self.opinions[row] = {who: event}
            self.consults.pop(row, None)
        elif kind in OF_SEVERAL:
            stands_by = self._aside(event)
            if stands_by is None:
                return
            event = stands_by
        elif kind == "replace":
            given = self.opinions.setdefault(row, {})
            given.pop(self.last[row].who, None)
            self.opinions[row] = {who: event, **{other: each for other, each in given.items() if other != who}}
            self.settled.pop(row, None)
            self.consults.get(row, {}).pop(who or "", None)
        elif kind == "withdraw":
            for each in (self.opinions, self.settled, self.consults):
                each.pop(row, None)
        self.last[row] = event

    def _aside(self, event: Event) -> Event | None:
        """What an event of several annotators leaves behind: the event that the row stands by, None for the same."""
        kind, row, who = event.kind, event.row, event.who
        labelled = row in self.last and self.state(row).status == "labelled"
        if kind != "consult" and who is not None:
            self.consults.get(row, {}).pop(who, None)
        if kind == "unsure" and who is not None:
            self.declined.setdefault(row, set()).add(who)
        if kind == "consult" and who is not None:
            self.consults.setdefault(row, {})[who] = event
            self.declined.get(row, set()).discard(who)
        elif kind == "opinion":
            self.opinions.setdefault(row, {})[who] = event
        elif kind == "settle":
            self.settled[row] = event
            return event
        elif kind == "retract":
            return self._retracted(event)
        elif not labelled:  # put off, or not sure, with the row in hand
            return event
        return None

    def _retracted(self, event: Event) -> Event:
        """The event that a row stands by once somebody has taken back their opinion."""
        row, given = event.row, self.opinions.get(event.row, {})
        own, settled = given.get(event.who), self.settled.get(row)
        if settled is not None and settled.who == event.who and (own is None or own.number < settled.number):
            del self.settled[row]
        else:
            given.pop(event.who, None)
        return self.settled.get(row) or next(iter(given.values()), event)

    def take_events(self, lines: Iterable[tuple[Any, ...]], *, hashed: bool = True) -> None:
        """Verify the next events, each with its hash as the last cell of its line, and let them happen."""
        rows, last, made = self.rows, self.last, self.event_hash
        for number, line in enumerate(lines, start=len(self.hashes) + 1):
            event = _event_read(line[:-1], number)
            made = link_event(made, event)
            if hashed and made != line[-1]:
                raise StakesError(f"event {number} is not what was written")
            row = event.row
            if row not in rows:
                raise StakesError(f"event {number} is of the row {row!r:.100}, which there is not")
            if row in last or event.kind not in _FIRST:
                try:
                    self.checked(event)
                except StakesError as error:
                    raise StakesError(f"event {number} breaks the rules ({error})") from error
            self.events.append(event)
            self._happen(event)
            self.hashes.append(made)

    def take_records(self, lines: Iterable[tuple[Any, ...]], *, hashed: bool = True) -> None:
        """Verify the next records, each with its hash as the last cell; their payloads are not looked into."""
        for number, line in enumerate(lines, start=len(self.records) + 1):
            made = link(self.record_hash, record_read(line[:-1], number))
            if hashed and made != line[-1]:
                raise StakesError(f"record {number} is not what was written")
            self.records.append((line[2], made))


def _row_read(line: tuple[Any, ...], number: int) -> tuple[str, float | None]:
    """The id and the cost in a line of a file, if they can be that."""
    came, row, cost = line
    if type(came) is not int or came != number:
        raise StakesError(f"row {number} is missing")
    if type(row) is not str or not row or "\0" in row:
        raise StakesError(f"row {number} has no id but {row!r:.100}")
    if cost is not None and not (type(cost) is float and 0 < cost <= sys.float_info.max):
        raise StakesError(f"row {number} has no cost but {cost!r:.100}")
    return row, cost


def _event_read(line: tuple[Any, ...], number: int) -> Event:
    """The event in a line of a file, if it can be one: types, ranges, and what belongs to its kind."""
    event = Event._make(line)
    came, at, kind, row, label, until, batch, who = event
    if type(came) is not int or came != number:
        raise StakesError(f"event {number} is missing")
    sound = (
        type(kind) is str
        and kind in _BECOMES
        and _is_time(at)
        and type(row) is str
        and (who is None or _is_text(who))
        and (who is not None or kind not in OF_SEVERAL)
        and (_is_text(label) if kind in _LABELS else label is None)
        and (_is_time(until) and type(batch) is int and batch > 0 if kind in _LEASES else until is batch is None)
    )
    if not sound:
        raise StakesError(f"event {number} cannot be one: {line!r:.200}")
    return event


def record_read(line: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    """The line of a record, if it can be one; its payload is not looked into."""
    came, at, kind, version, payload = line
    if type(came) is not int or came != number:
        raise StakesError(f"record {number} is missing")
    sound = _is_time(at) and _is_text(kind) and type(version) is int and version >= 0 and type(payload) is str
    if not sound:
        raise StakesError(f"record {number} cannot be one: {line!r:.200}")
    return line


def record_parsed(line: tuple[Any, ...]) -> Record:
    """A record with what its payload holds."""
    number, at, kind, version, payload = line
    try:
        return Record(number, at, kind, version, json.loads(payload, parse_constant=_no_number))
    except (ValueError, RecursionError) as error:
        raise StakesError(f"record {number} ({kind!r:.50}) is no JSON: {error}") from error


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _is_time(at: object) -> bool:
    return type(at) is float and 0 < at < _YEAR_10000


def _is_text(text: object) -> bool:
    return type(text) is str and "\0" not in text


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


def checked_id(row: object) -> str:
    """An id of a row, if it can be one."""
    if not (text := checked_text(row, "the id of a row")):
        raise StakesError("the id of a row is empty; give every row an id of its own")
    return text


def checked_ids(rows: Iterable[str]) -> tuple[str, ...]:
    """Ids of rows, each once, in the order given."""
    if isinstance(rows, str):
        raise StakesError(f"a list of ids is wanted, not the text {rows!r}; put it in a list")
    return tuple(dict.fromkeys(map(checked_id, rows)))


def checked_rows(rows: Iterable[tuple[str, float | None]]) -> dict[str, float | None]:
    """The costs of rows by id, each id once."""
    costs: dict[str, float | None] = {}
    for row, cost in map(_pair, rows):
        if checked_id(row) in costs:
            raise StakesError(f"two rows have the id {row!r}; give every row an id of its own")
        costs[row] = None if cost is None else checked_positive(cost, f"the cost of row {row!r}")
    if not costs:
        raise StakesError("a campaign needs at least one row; none was given")
    return costs


def checked_label_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The labels of rows by id, each row with one."""
    labels: dict[str, str] = {}
    for row, label in map(_pair, pairs):
        first = labels.setdefault(checked_id(row), checked_text(label, f"the label of row {row!r}"))
        if first != label:
            raise StakesError(f"row {row!r} is reported twice, as {first!r} and as {label!r}; give it one label")
    return labels


def _pair(pair: Any) -> tuple[Any, Any]:
    """Two things: a text of two letters would pass for them."""
    if isinstance(pair, str) or len(pair) != 2:
        raise StakesError(f"pairs are wanted, not {pair!r}; of a dictionary, give its items()")
    return pair[0], pair[1]


def checked_text(text: object, name: str) -> str:
    """A text that every tool reads back as it was written: no NUL, no halves of characters."""
    if not isinstance(text, str):
        raise StakesError(f"{name} must be a text, not {text!r} of type {type(text).__name__}; give it in quotes")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise StakesError(f"{name} holds a NUL or half a character: {text!r}; remove it, or read the file as UTF-8")
    return text


def checked_who(who: object) -> str | None:
    """A name, or none."""
    return None if who is None else checked_text(who, "who it is")


def checked_positive(number: Any, name: str) -> float:
    """A finite number above zero."""
    real = isinstance(number, Real) and not isinstance(number, bool)
    if not real or not 0 < number <= sys.float_info.max:
        raise StakesError(f"{name} must be a positive finite number, not {number!r}")
    return float(number)


def checked_time(at: object, name: str) -> float:
    """A time that a calendar has a date for."""
    if (seconds := checked_positive(at, name)) >= _YEAR_10000:
        raise StakesError(f"{name} must lie before the year 10000, in seconds since 1970; {at!r} does not")
    return seconds


def checked_clock(now: object = None) -> float:
    """The time given, or else what the clock says, if a calendar has a date for it."""
    if now is not None:
        return checked_time(now, "the time")
    if not 0.0 < (seconds := time.time()) < _YEAR_10000:
        raise StakesError(
            f"the clock of this machine is wrong: it says {seconds:.0f} seconds since 1970, which is before 1970 or "
            "after the year 9999. Set it, and repeat the call. Nothing was recorded."
        )
    return seconds


def checked_lease(seconds: Any, at: float) -> float:
    """When a lease of so many seconds ends, if a calendar has a date for it, and the clock can tell it from now."""
    length = checked_positive(seconds, "the seconds of a lease")
    if not at < (until := at + length) < _YEAR_10000:
        raise StakesError(
            f"a lease must end after now, as the clock tells it, and before the year 10000; one of {length:g} seconds "
            "does not. Nothing was handed out."
        )
    return until


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
