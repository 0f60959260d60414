"""Several annotators in one file: opinions, leases for them, what is put off, settled and undone; older files."""

import contextlib
import random
import sqlite3

import pytest

from stakes.campaign import Journal
from stakes.exceptions import StakesError

ROWS = [(name, None) for name in "abcdef"]


@pytest.fixture
def journal(tmp_path):
    with Journal.create(tmp_path / "c.stakes", ROWS, {}, {"f": "cat"}, now=1.0) as made:
        yield made


def tell(journal, row, label, who, **more):
    return journal.tell_many([(row, label)], annotator=who, **more)


def opinions_in(journal):
    return [each[:3] for each in journal.opinions()]


def test_a_second_label_of_another_annotator_is_an_opinion_beside_the_first(journal):
    assert tell(journal, "a", "cat", "anna").new == ("a",)
    assert tell(journal, "a", "dog", "ben").opinions == ("a",)
    assert journal.state("a").label == "cat"
    assert journal.state("a").who == "anna"
    assert opinions_in(journal) == [("f", None, "cat"), ("a", "anna", "cat"), ("a", "ben", "dog")]
    assert journal.replay.disagree("a", str.__eq__)


def test_the_same_label_of_another_annotator_is_an_opinion_too_and_no_disagreement(journal):
    tell(journal, "a", "cat", "anna")
    assert tell(journal, "a", "cat", "ben").opinions == ("a",)
    assert len(opinions_in(journal)) == 3
    assert not journal.replay.disagree("a", str.__eq__)


def test_an_annotator_who_says_it_again_changes_nothing_and_another_label_of_theirs_is_refused(journal):
    tell(journal, "a", "cat", "anna")
    tell(journal, "a", "dog", "ben")
    before = journal.version()
    assert tell(journal, "a", "dog", "ben").known == ("a",)
    for who in ("anna", "ben"):
        with pytest.raises(StakesError, match="who now says 'owl'; to change it on purpose, replace or retract"):
            tell(journal, "a", "owl", who)
    assert journal.version() == before


def test_without_a_name_a_different_label_is_still_refused(journal):
    tell(journal, "a", "cat", "anna")
    with pytest.raises(StakesError, match="replace or withdraw it"):
        journal.tell_many([("a", "dog")], who="ben")


def test_an_annotator_replaces_their_own_label_and_nobody_elses(journal):
    tell(journal, "a", "cat", "anna")
    tell(journal, "a", "dog", "ben")
    assert tell(journal, "a", "owl", "ben", replace=True).opinions == ("a",)
    assert journal.state("a").label == "cat"
    assert tell(journal, "a", "owl", "anna", replace=True).replaced == ("a",)
    assert journal.state("a").label == "owl"
    assert opinions_in(journal)[1:] == [("a", "ben", "owl"), ("a", "anna", "owl")]


def test_a_labelled_row_is_given_to_as_many_as_wanted_and_not_to_who_has_labelled_it(journal):
    for row in "ab":
        tell(journal, row, "cat", "anna", now=10.0)
    assert journal.consult(["a", "b", "c"], 9, "anna", now=10.0) == ()
    assert journal.consult(["c", "a"], 9, "ben", seconds=100.0, now=10.0) == ("a",)
    assert journal.consult(["a", "b"], 9, "cleo", seconds=100.0, now=20.0) == ("b",)
    assert journal.consult(["a"], 9, "cleo", now=111.0) == ("a",)  # the lease of ben has ended
    assert journal.consult(["b"], 9, "dora", opinions=3, now=30.0) == ("b",)
    assert [event.row for event in journal.held("cleo", 50.0)] == ["a", "b"]


def test_what_is_put_off_is_three_different_things(journal):
    journal.lease([*"abc"], 3, who="anna")
    journal.put_off("a", "later", "anna")
    journal.put_off("b", "unsure", "anna")
    journal.put_off("c", "skip", "anna")
    states = journal.states()
    assert [states[row].status for row in "abc"] == ["open", "unsure", "skipped"]
    assert journal.lease([*"abc"], 9) == ("a",)
    journal.release(["b"])
    assert journal.state("b").status == "open"


def test_a_row_in_the_hands_of_another_is_not_put_off(journal):
    journal.lease([*"a"], 1, who="ben")
    for kind in ("later", "unsure", "skip"):
        with pytest.raises(StakesError, match="in the hands of 'ben'"):
            journal.put_off("a", kind, "anna")
    assert journal.state("a").status == "asked"


def test_whoever_declines_an_opinion_is_not_asked_again_and_the_label_stands(journal):
    tell(journal, "a", "cat", "anna")
    assert journal.consult([*"a"], 1, "ben") == ("a",)
    journal.put_off("a", "skip", "ben")
    assert journal.state("a").label == "cat"
    assert journal.consult([*"a"], 1, "ben") == ()
    assert journal.consult([*"a"], 1, "cleo") == ("a",)
    journal.put_off("a", "later", "cleo")
    assert journal.consult([*"a"], 1, "cleo") == ("a",)


def test_settling_ends_a_disagreement_and_is_nobodys_opinion(journal):
    tell(journal, "a", "cat", "anna")
    tell(journal, "a", "dog", "ben")
    journal.settle("a", "dog", "cleo")
    assert journal.state("a").label == "dog"
    assert not journal.replay.disagree("a", str.__eq__)
    assert {each[1] for each in opinions_in(journal)} == {None, "anna", "ben"}
    assert journal.consult([*"a"], 1, "dora", opinions=5) == ()
    assert journal.undo("cleo").kind == "settle"
    assert journal.state("a").label == "cat"
    assert journal.replay.disagree("a", str.__eq__)


def test_a_row_of_which_somebody_was_unsure_is_settled_and_that_can_be_undone(journal):
    journal.lease([*"a"], 1, who="anna")
    journal.put_off("a", "unsure", "anna")
    journal.settle("a", "dog", "ben")
    assert journal.state("a").label == "dog"
    journal.undo("ben")
    assert journal.state("a").status == "unsure"
    with pytest.raises(StakesError, match="nothing to settle"):
        journal.settle("b", "dog", "ben")


@pytest.mark.parametrize("kind", ["label", "skip", "later", "unsure"])
def test_undo_gives_the_row_back_to_whoever_had_it(journal, kind):
    journal.lease([*"a"], 1, who="anna")
    tell(journal, "a", "cat", "anna") if kind == "label" else journal.put_off("a", kind, "anna")
    undone = journal.undo("anna")
    assert (undone.row, undone.kind, undone.held) == ("a", kind, True)
    assert [event.row for event in journal.held("anna")] == ["a"]
    assert journal.undo("anna") is None
    assert opinions_in(journal) == [("f", None, "cat")]


def test_undo_goes_back_over_rows_and_the_last_one_undone_comes_first_again(journal):
    for row in "abc":
        journal.lease([row], 1, who="anna")
        tell(journal, row, "cat", "anna")
    journal.lease([*"d"], 1, who="anna")
    assert [journal.undo("anna").row for _ in range(3)] == ["c", "b", "a"]
    assert [event.row for event in journal.held("anna")] == ["a", "b", "c", "d"]


def test_undo_of_a_label_that_others_have_an_opinion_on_leaves_theirs(journal):
    tell(journal, "a", "cat", "anna")
    tell(journal, "a", "dog", "ben")
    assert journal.undo("anna").held
    assert journal.state("a").label == "dog"
    assert [event.kind for event in journal.held("anna")] == ["consult"]
    tell(journal, "a", "dog", "anna")
    assert opinions_in(journal)[1:] == [("a", "ben", "dog"), ("a", "anna", "dog")]


def test_undo_of_an_opinion_asks_for_it_again(journal):
    tell(journal, "a", "cat", "anna")
    tell(journal, "a", "dog", "ben")
    assert journal.undo("ben").kind == "opinion"
    assert opinions_in(journal)[1:] == [("a", "anna", "cat")]
    assert [event.row for event in journal.held("ben")] == ["a"]


def test_what_another_has_changed_since_is_not_undone(journal):
    journal.lease([*"a"], 1, who="anna")
    journal.put_off("a", "later", "anna")
    journal.lease([*"a"], 1, who="ben")
    assert journal.undo("anna") is None
    tell(journal, "b", "cat", "anna")
    journal.withdraw(["b"], who="ben")
    assert journal.undo("anna") is None


def test_any_mix_of_acts_leaves_a_file_that_opens_with_the_same_state(tmp_path):
    """Every event that is written must pass the rules when it is read: five hundred random acts of three people."""
    random_state, people = random.Random(0), ("anna", "ben", "cleo")
    with Journal.create(tmp_path / "c.stakes", ROWS, {}, {"f": "cat"}, now=1.0) as journal:
        for at in range(2, 500):
            who, row, label = (
                random_state.choice(people),
                random_state.choice("abcdef"),
                random_state.choice(["cat", "dog"]),
            )
            act = random_state.choice(
                [
                    lambda: journal.lease([row], 1, who=who, seconds=20.0, now=float(at)),  # noqa: B023
                    lambda: journal.consult([row], 1, who, opinions=3, seconds=20.0, now=float(at)),  # noqa: B023
                    lambda: tell(journal, row, label, who, now=float(at)),  # noqa: B023
                    lambda: tell(journal, row, label, who, replace=True, now=float(at)),  # noqa: B023
                    lambda: journal.put_off(row, random_state.choice(["later", "unsure", "skip"]), who, now=float(at)),  # noqa: B023
                    lambda: journal.settle(row, label, who, now=float(at)),  # noqa: B023
                    lambda: journal.undo(who, seconds=20.0, now=float(at)),  # noqa: B023
                    lambda: journal.release([row], who=who, now=float(at)),  # noqa: B023
                    lambda: journal.withdraw([row], who=who, now=float(at)),  # noqa: B023
                    lambda: journal.tell_many([(row, label)], replace=True, who=who, now=float(at)),  # noqa: B023
                ]
            )
            with contextlib.suppress(StakesError):  # refused, which leaves the file as it was
                act()
            journal.states()
        with Journal.open(journal.path) as again:
            assert again.states(1000.0) == journal.states(1000.0)
            assert again.opinions() == journal.opinions()
        kinds = {event.kind for event in journal.history()}
    assert kinds >= {"opinion", "consult", "later", "unsure", "settle", "retract", "replace", "withdraw"}


def version(path):
    connection = sqlite3.connect(path)
    ((found,),) = connection.execute("PRAGMA user_version").fetchall()
    connection.close()
    return found


def test_a_file_of_the_version_before_is_read_and_becomes_one_of_ours_with_the_first_opinion(tmp_path):
    path = tmp_path / "c.stakes"
    Journal.create(path, ROWS, {}, {"a": "cat"}).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    with Journal.open(path) as journal:
        journal.tell_many([("b", "dog")])
        assert version(path) == 3
        tell(journal, "b", "cat", "ben")
    assert version(path) == 4
    with Journal.open(path) as journal:
        assert opinions_in(journal) == [("a", None, "cat"), ("b", None, "dog"), ("b", "ben", "cat")]


def test_an_interrupt_between_an_event_and_its_hash_is_taken_back(journal):
    tell(journal, "a", "cat", "anna")
    tell(journal, "a", "dog", "ben")
    replay = journal._synced()
    hashes = replay.hashes.pop()
    replay.drop_half_done()
    assert annotators_of(replay, "a") == {"anna"}
    assert hashes not in replay.hashes
    assert opinions_in(journal)[1:] == [("a", "anna", "cat"), ("a", "ben", "dog")]  # read again from the file


def annotators_of(replay, row):
    return set(replay.opinions[row])


def test_changes_made_together_are_kept_together_or_not_at_all(journal):
    with journal.together():
        tell(journal, "a", "cat", "anna")
        assert journal.lease(["a", "b"], 1, who="anna") == ("b",)
    with Journal.open(journal.path) as again:
        assert again.states() == journal.states()
    before, events = journal.states(), journal.version()
    with pytest.raises(StakesError, match="only rows"):
        three_of_which_the_last_is_refused(journal)
    assert journal.states() == before
    assert journal.version() == events
    tell(journal, "c", "dog", "anna")
    journal.check()
    assert journal.records("note") == ()


def three_of_which_the_last_is_refused(journal):
    with journal.together():
        tell(journal, "c", "cat", "anna")
        journal.save_record("note", 0, {})
        journal.release(["f"])


def test_a_lease_is_renewed_for_whoever_has_the_row_and_nobody_else(journal):
    journal.lease(["a"], 1, seconds=10.0, who="anna", now=100.0)
    assert not journal.renew("a", "ben", seconds=10.0, now=105.0)
    assert journal.renew("a", "anna", seconds=10.0, now=105.0)
    assert (journal.state("a", 112.0).who, journal.state("a", 116.0).status) == ("anna", "open")
    assert not journal.renew("a", "anna", seconds=10.0, now=120.0)
    tell(journal, "a", "cat", "anna")
    journal.consult(["a"], 1, "ben", seconds=10.0, now=200.0)
    assert journal.renew("a", "ben", seconds=10.0, now=205.0)
    assert [each.row for each in journal.held("ben", 212.0)] == ["a"]
    journal.check()
