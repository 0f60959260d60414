"""What a journal refuses, and that nothing is torn: bad input, rewriting, Ctrl-C at any line, threads and forks."""

import itertools
import os
import re
import sys
import threading

import pytest

from stakes.campaign import Journal
from stakes.exceptions import StakesError

OURS = re.compile(r"stakes.campaign.\w+\.py$|contextlib\.py$")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda j: j.tell_many([("a", "x"), ("07", "x")]), "no row '07' among its 6 rows. Did you mean '007' or '7'"),
        (lambda j: j.skip(["a", "A "]), "no row 'A '.*Did you mean 'a'"),
        (lambda j: j.lease(["a", "zebra"], 1), "no row 'zebra' among its 6 rows. Nothing"),
        (lambda j: j.history("e"), "no row 'e'"),
        (lambda j: j.history(7), "the id of a row must be a text, not 7 of type int"),
        (lambda j: j.release(["a"]), "row 'a' is open"),
        (lambda j: j.withdraw(["007", "a"]), "row 'a' is open: there is no label to withdraw"),
        (lambda j: j.skip(["a", "007"]), "withdrawn first"),
        (lambda j: j.skip("ab"), "a list of ids is wanted, not the text 'ab'"),
        (lambda j: j.tell_many({"ab": "x"}), "pairs are wanted, not 'ab'; of a dictionary, give its items"),
        (lambda j: j.tell_many([("a", 1)]), "the label of row 'a' must be a text, not 1 of type int"),
        (lambda j: j.tell_many([("a", "x\0")]), "NUL or half a character"),
        (lambda j: j.tell_many([("a", "\ud800")]), "NUL or half a character"),
        (lambda j: j.tell_many([("a", "x"), ("a", "y")], replace=True), "row 'a' is reported twice, as 'x' and as 'y'"),
        (lambda j: j.tell_many([("", "x")]), "id of a row is empty"),
        (lambda j: j.tell_many([("a", "x")], who="\0"), "who it is holds a NUL"),
        (lambda j: j.tell_many([("a", "x")], now=float("nan")), "the time must be a positive finite number, not nan"),
        (lambda j: j.lease(["a"], 0), "the number of rows must be a whole number from 1"),
        (lambda j: j.lease(["a"], 1.5), "the number of rows must be a whole number from 1"),
        (lambda j: j.lease(["a"], 1, seconds=0), "the seconds of a lease must be a positive finite number"),
        (
            lambda j: j.lease(["a"], 1, seconds=1e300),
            "a lease must end .* before the year 10000",
        ),
        (
            lambda j: j.save_record("ranking", 2, {}),
            "the version of a record must be a whole number from 0 to 1, not 2",
        ),
        (lambda j: j.save_record("ranking", 1, {1, 2}), "must be what JSON can hold"),
        (lambda j: j.save_record("settings", 1, {}), "kept by update_settings"),
        (lambda j: j.update_settings(budget=float("inf")), "must be what JSON can hold"),
    ],
)
def test_what_is_refused_changes_nothing(journal, call, message):
    before = (journal.history(), journal.settings, journal.records("ranking"))
    with pytest.raises(StakesError, match=message):
        call(journal)
    assert (journal.history(), journal.settings, journal.records("ranking")) == before


def interrupted(call, line):
    """Whether a call was ended by a Ctrl-C before its `line`-th line, in whatever function that is."""
    lines = itertools.count()

    def trace(frame, what, _):
        if what == "line" and next(lines) == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace if OURS.search(frame.f_code.co_filename) else None  # others run beside, when memory is collected

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def tell_two(journal, number):
    return journal.tell_many([(f"{number}", "cat"), (f"{number}-", "cat")])


def lease_two(journal, number):
    return journal.lease([f"{number}", f"{number}-"], 2)


@pytest.mark.parametrize("call", [tell_two, lease_two])
def test_ctrl_c_at_any_line_leaves_all_or_nothing_and_no_lock(path, call):
    rows = [(f"{number}{end}", None) for number in range(1000) for end in ("", "-")]
    with Journal.create(path, rows, {}) as journal, Journal.open(path) as other:
        for line in range(1000):
            before = other.version()
            ended = interrupted(lambda line=line: call(journal, line), line)
            assert not journal.connection.in_transaction
            assert other.version() - before in ((0, 2) if ended else (2,))
            if not ended:
                break
        assert 100 < line < 999
        other.check()


def test_what_a_second_ctrl_c_leaves_is_rolled_back_by_the_next_call(journal):
    journal.connection.execute("BEGIN IMMEDIATE")
    journal.connection.execute("INSERT INTO records VALUES (2, 1.0, 'ranking', 1, '{}', x'00')")
    assert journal.tell_many([("a", "cat")]).new == ("a",)
    assert journal.records("ranking") == ()


def test_a_disk_that_is_full_and_a_file_that_is_busy_are_reported_in_plain_english(journal, path):
    journal.connection.execute("PRAGMA max_page_count = 1")  # no less than there are now
    with pytest.raises(StakesError, match=r"the disk is full; free some space and repeat the call \(database"):
        journal.save_record("ranking", 1, "long " * 10_000)
    assert journal.records("ranking") == ()
    journal.connection.execute("PRAGMA busy_timeout = 1")
    with Journal.open(path) as other, other.writing():
        with pytest.raises(StakesError, match="others have been writing to it for 30 s; repeat the call"):
            journal.tell_many([("a", "cat")])
        assert journal.version() == 1
    assert journal.tell_many([("a", "cat")]).new == ("a",)


def test_a_journal_is_used_where_it_was_opened(journal, path):
    messages = []

    def elsewhere():
        try:
            journal.version()
        except StakesError as error:
            messages.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "opened in another thread; open it again here" in messages[0]
    object.__setattr__(journal, "process", os.getpid() + 1)  # as after a fork
    with pytest.raises(StakesError, match="opened by another process"):
        journal.tell_many([("a", "cat")])
    journal.close()
    closed = Journal.open(path)
    closed.close()
    with pytest.raises(StakesError, match="this campaign is closed"):
        closed.version()
