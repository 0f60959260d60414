"""The life of a row: the replay against a plain model, and every rule by hand."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes.campaign import Event, RowState
from stakes.campaign.states import Replay, after, checked, link, link_event, needless
from stakes.exceptions import StakesError

KINDS = ("label", "replace", "ask", "release", "skip", "withdraw", "test", "result")
WITH_LABEL = ("label", "replace", "result")

attempts = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from(["007", "7", "row"]),
        st.sampled_from(["cat", "dog"]),
        st.integers(0, 4),  # how long after the attempt before
        st.integers(1, 5),  # how long a lease is
    ),
    max_size=30,
)


def replay(events):
    """The states of the rows that anything has happened to: the last event of each decides."""
    return {row: after(event) for row, event in {event.row: event for event in events}.items()}


def event(kind, row="7", label="cat", at=10.0, until=20.0, number=1):
    named = {"label": label} if kind in WITH_LABEL else {}
    leased = {"until": until, "batch": 1} if kind == "ask" else {}
    return Event(number, at, kind, row, **named, **leased)


class Plain:
    """The rules as one would tell them: sets of rows, a dictionary of labels, one of leases."""

    def __init__(self):
        self.labels, self.leases, self.skipped, self.testing, self.tested = {}, {}, set(), set(), set()

    def status(self, row, now):
        if row in self.labels:
            return "tested" if row in self.tested else "labelled"
        if row in self.testing:
            return "testing"
        if row in self.skipped:
            return "skipped"
        return "asked" if self.leases.get(row, 0) > now else "open"

    def allows(self, kind, status):
        return (
            status
            in {
                "label": {"open", "asked", "skipped", "testing", "tested"},
                "replace": {"labelled"},
                "ask": {"open"},
                "release": {"asked", "skipped", "testing"},
                "skip": {"open", "asked", "testing"},
                "withdraw": {"labelled", "tested"},
                "test": {"open"},
                "result": {"testing", "tested"},
            }[kind]
        )

    def take(self, happened):
        self.labels.pop(happened.row, None)
        self.leases.pop(happened.row, None)
        for rows in (self.skipped, self.testing, self.tested):
            rows.discard(happened.row)
        if happened.kind in WITH_LABEL:
            self.labels[happened.row] = happened.label
            self.tested |= {happened.row} if happened.kind == "result" else set()
        elif happened.kind == "test":
            self.testing.add(happened.row)
        elif happened.kind == "ask":
            self.leases[happened.row] = happened.until
        elif happened.kind == "skip":
            self.skipped.add(happened.row)


def lived(tries):
    """Attempts in their order, with whether each was taken, and what a plain model says of it."""
    states, plain, now, number = {}, Plain(), 0.0, 0
    for kind, row, label, wait, lease in tries:
        now += wait
        wanted = event(kind, row, label, now, now + lease, number + 1)
        allowed = plain.allows(kind, plain.status(row, now))
        try:
            checked(states.get(row, RowState()), wanted)
            taken = True
        except StakesError:
            taken = False
        if taken:
            number += 1
            states[row] = after(wanted)
            plain.take(wanted)
        yield wanted, taken, allowed, plain


@given(attempts)
def test_what_is_allowed_and_what_comes_of_it_are_as_in_a_plain_model(tries):
    events = []
    for wanted, taken, allowed, plain in lived(tries):
        assert taken == allowed
        events += [wanted] if taken else []
        for row, state in replay(events).items():
            assert state.at(wanted.at).status == plain.status(row, wanted.at)
            assert state.label == plain.labels.get(row)


@given(attempts)
def test_what_is_needless_would_change_nothing_that_is_seen(tries):
    events = []
    for wanted, taken, _, _ in lived(tries):
        state = replay(events).get(wanted.row, RowState())
        if needless(state, wanted):
            assert (after(wanted).status, after(wanted).label) == (state.status, state.label)
            assert wanted.kind in ("label", "replace", "skip", "result")
        events += [wanted] if taken else []


def test_a_lease_ends_at_its_end():
    asked = after(event("ask", until=20.0, number=3))
    assert asked.at(19.999) == asked == RowState("asked", None, 20.0, 1, None, 3)
    assert asked.at(20.0) == RowState(event=3)
    checked(asked, event("ask", at=20.0, until=30.0))
    with pytest.raises(StakesError, match=r"asked until 1970-01-01 00:00 UTC"):
        checked(asked, event("ask", at=19.0, until=30.0))


@pytest.mark.parametrize("before", ["ask", "skip", "release", "withdraw"])
def test_a_label_is_welcome_whenever_it_comes(before):
    assert after(checked(after(event(before)), event("label", number=2))) == RowState("labelled", "cat", event=2)


@pytest.mark.parametrize(
    ("before", "then", "message"),
    [
        ("label", event("label", label="dog"), "has the label 'cat' and 'dog' was reported; .* replace or withdraw it"),
        ("skip", event("replace"), "is skipped: there is no label to replace; tell it as a new one"),
        ("skip", event("ask"), "is skipped and cannot be handed out"),
        ("label", event("release"), "has the label 'cat': only rows that are asked, skipped or in a test are released"),
        ("release", event("release"), "is open: only rows"),
        (
            "label",
            event("skip"),
            "has the label 'cat': only rows that are open, asked or in a test are skipped; a label is",
        ),
        ("ask", event("withdraw"), "is asked until .*: there is no label to withdraw"),
    ],
)
def test_a_refusal_says_what_is_and_what_to_do(before, then, message):
    with pytest.raises(StakesError, match=f"^row '7' {message}.*Nothing was recorded"):
        checked(after(event(before)), then)


def test_who_is_kept_with_what_they_did():
    assert after(event("skip")._replace(who="ann")).who == "ann"
    assert after(event("release")._replace(who="ann")) == RowState(event=1)


def test_what_an_interrupt_left_half_done_is_taken_back():
    lines = [(1, 10.0, "ask", "7", None, 20.0, 1, None), (2, 12.0, "label", "7", "cat", None, None, None)]
    whole = Replay.begin([(1, "7", None)])
    whole.take_events([(*line, None) for line in lines], hashed=False)
    for done in (0, 1):
        half = Replay.begin([(1, "7", None)])
        half.take_events([(*line, None) for line in lines[: done + 1]], hashed=False)
        half.hashes.pop()  # as before the last step
        half.drop_half_done()
        assert [event.number for event in half.events] == [1, 2][:done]
        assert half.state("7") == (RowState("asked", until=20.0, batch=1, event=1) if done else RowState())
        half.take_events([(*line, None) for line in lines[done:]], hashed=False)
        assert half == whole


_TEXTS = st.text(st.characters(exclude_characters="\0"))
_TIMES = st.floats(1e-300, 2e11)


@given(
    number=st.integers(1, 2**40),
    at=_TIMES,
    kind=st.sampled_from(KINDS),
    texts=st.tuples(_TEXTS, _TEXTS, st.none() | _TEXTS),
    until=_TIMES,
    batch=st.integers(1, 2**40),
)
def test_the_quick_hash_of_an_event_is_the_hash_of_its_line(number, at, kind, texts, until, batch):
    row, label, who = texts
    lease = (until, batch) if kind == "ask" else (None, None)
    event = Event(number, at, kind, row, label if kind in WITH_LABEL else None, *lease, who)
    assert link_event(b"before", event) == link(b"before", event)


@given(st.dictionaries(_TEXTS.filter(len), st.none() | st.floats(1e-300, 1e300), max_size=5))
def test_the_hash_of_rows_is_that_of_their_lines(costs):
    lines = [(number, row, cost) for number, (row, cost) in enumerate(costs.items(), 1)]
    written = "\n".join(",".join([str(number), json.dumps(row), _hex(cost)]) for number, row, cost in lines)
    assert Replay.begin(lines).start == hashlib.sha256(written.encode("ascii")).digest()


def _hex(cost):
    return "null" if cost is None else cost.hex()
