"""What a journal promises, one process at a time."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stakes.campaign import Journal, Recorded, RowState
from stakes.exceptions import StakesError

ROWS = ("007", "7", "a", "b", "c", "d")


def statuses(journal, now=200.0):
    return {row: state.status for row, state in journal.states(now).items()}


@pytest.mark.usefixtures("journal")
def test_a_new_campaign_is_what_was_given(path):
    with Journal.open(path) as again:
        assert again.ids() == ROWS
        assert again.costs() == dict.fromkeys(ROWS) | {"7": 2.5}
        assert again.settings == {"loss": "log"}
        assert again.states(200.0) == dict.fromkeys(ROWS, RowState()) | {"007": RowState("labelled", "cat", event=1)}
        assert [(e.number, e.at, e.kind, e.row) for e in again.history()] == [(1, 100.0, "label", "007")]
        again.check()


def test_labels_are_recorded_once(journal):
    assert journal.tell_many([("7", "dog"), ("a", "cat")], who="ann", now=200.0) == Recorded(("7", "a"), (), ())
    assert journal.tell_many([("7", "dog"), ("b", "")], now=201.0) == Recorded(("b",), ("7",), ())
    assert journal.version() == 4
    assert journal.states()["7"] == RowState("labelled", "dog", who="ann", event=2)
    assert journal.states()["b"].label == ""


def test_another_label_is_refused_with_all_that_came_with_it_unless_on_purpose(journal):
    with pytest.raises(StakesError, match="row '007' has the label 'cat' and 'dog' was reported"):
        journal.tell_many([("7", "dog"), ("007", "dog")])
    assert journal.version() == 1
    outcome = journal.tell_many([("7", "dog"), ("007", "dog")], replace=True)
    assert outcome == Recorded(("7",), (), ("007",))
    assert journal.tell_many([("007", "dog")], replace=True) == Recorded((), ("007",), ())
    assert [(e.kind, e.label) for e in journal.history("007")] == [("label", "cat"), ("replace", "dog")]


def test_a_withdrawn_label_goes_back_to_the_pool_and_stays_in_the_history(journal):
    journal.withdraw(["007"], who="bob")
    assert statuses(journal)["007"] == "open"
    assert journal.lease(ROWS, 1) == ("007",)
    assert [(e.kind, e.label, e.who) for e in journal.history("007")][:2] == [
        ("label", "cat", None),
        ("withdraw", None, "bob"),
    ]


def test_rows_are_leased_in_the_order_wanted_and_come_back(journal):
    assert journal.lease(["d", "007", "d", "b", "a", "c"], 3, seconds=50, who="ann", now=200.0) == ("d", "b", "a")
    assert journal.states(249.0)["b"] == RowState("asked", None, 250.0, 1, "ann", 3)
    assert journal.lease(ROWS, 9, now=249.0) == ("7", "c")
    assert journal.lease(ROWS, 9, now=249.0) == ()
    assert journal.lease(ROWS, 9, now=250.0) == ("a", "b", "d")
    assert {e.batch for e in journal.history() if e.at == 250.0} == {3}


def test_a_lease_is_a_week_by_the_clock(journal):
    before = time.time()
    journal.lease(["a"], 1)
    assert before + 604800 <= journal.states()["a"].until <= time.time() + 604800


def test_released_rows_are_open_and_skipped_ones_are_not_handed_out(journal):
    assert journal.lease(["a", "b"], 2, now=200.0) == ("a", "b")
    journal.skip(["a", "c"], now=201.0)
    journal.skip(["a"], now=202.0)
    journal.release(["b"], now=203.0)
    assert statuses(journal) == dict(zip(ROWS, ("labelled", "open", "skipped", "open", "skipped", "open"), strict=True))
    assert journal.lease(ROWS, 9, now=204.0) == ("7", "b", "d")
    journal.release(["a"], now=205.0)
    assert journal.lease(ROWS, 9, now=206.0) == ("a",)
    assert journal.tell_many([("c", "dog")]).new == ("c",)
    assert [e.kind for e in journal.history("a")] == ["ask", "skip", "release", "ask"]


changes = st.tuples(
    st.sampled_from(["tell", "replace", "lease", "release", "skip", "withdraw"]),
    st.lists(st.sampled_from(ROWS), min_size=1, max_size=3, unique=True),
    st.sampled_from(["cat", "dog"]),
    st.integers(0, 30),
)


def made(journal, kind, rows, label, now):
    if kind in ("tell", "replace"):
        return journal.tell_many([(row, label) for row in rows], replace=kind == "replace", now=now)
    if kind == "lease":
        return journal.lease(rows, 2, seconds=20, now=now)
    return getattr(journal, kind)(rows, now=now)


@given(steps=st.lists(changes, max_size=12))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_call_is_all_or_nothing_and_the_file_keeps_to_the_rules(folder, steps):
    path, now = folder / f"{time.monotonic_ns()}.stakes", 100.0
    with Journal.create(path, [(row, None) for row in ROWS], {}) as journal:
        for kind, rows, label, wait in steps:
            now, before = now + wait, journal.history()
            try:
                made(journal, kind, rows, label, now)
            except StakesError:
                assert journal.history() == before
                continue
            states, added = journal.states(now), journal.history()[len(before) :]
            expected = {"tell": "labelled", "replace": "labelled", "skip": "skipped"}.get(kind)
            assert expected is None or all(states[row].status == expected for row in rows)
            assert kind not in ("tell", "replace") or all(states[row].label == label for row in rows)
            assert kind not in ("release", "withdraw") or [e.row for e in added] == rows
        journal.check()


def test_settings_change_and_what_they_were_is_kept(journal, path):
    journal.update_settings(budget=3, loss={"name": "é", "self": [1, None]})
    with Journal.open(path) as again:
        assert again.settings == {"loss": {"name": "é", "self": [1, None]}, "budget": 3}
        assert [record.payload for record in again.records("settings")] == [{"loss": "log"}, journal.settings]


def test_records_are_kept_in_their_order(journal):
    assert journal.last_record("ranking") is None
    journal.save_record("ranking", 0, [1.5, "a"], now=5.0)
    journal.save_record("plan", 1, None)
    journal.save_record("ranking", 1, {"b": 2}, now=6.0)
    assert [(record.version, record.payload) for record in journal.records("ranking")] == [
        (0, [1.5, "a"]),
        (1, {"b": 2}),
    ]
    assert (journal.last_record("ranking").payload, journal.last_record("ranking").at) == ({"b": 2}, 6.0)


def test_a_tell_does_not_read_the_campaign(folder):
    seen = []
    rows = [(f"{i:05d}", None) for i in range(20_000)]
    with Journal.create(folder / "large", rows, {}, {row: "cat" for row, _ in rows[:10_000]}) as journal:
        journal.connection.set_progress_handler(lambda: seen.append(1), 1000)  # steps of SQLite's machine
        journal.tell_many([("15000", "dog")])
        journal.lease(["15000", "15001"], 1)
    assert len(seen) < 5
