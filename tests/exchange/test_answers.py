"""Labels of several people: all are recorded, or none."""

import pytest

from stakes.exceptions import StakesError
from stakes.exchange.answers import Answer, checked_answers, label_of, record_answers, row_of
from tests.exchange.conftest import row


def state(campaign):
    return campaign.journal.version(), len(campaign.journal.records("settings"))


def test_each_person_is_an_annotator_and_who_differs_has_an_opinion(classes):
    recorded = record_answers(
        classes,
        [
            Answer(row(8), "bus", "anna", "task 1"),
            Answer(row(8), "$5", "ben", "task 1"),
            Answer(row(9), "bus", "anna", "task 2"),
        ],
    )
    assert recorded.new == (row(8), row(9))
    assert recorded.opinions == (row(8),)
    assert [each[:3] for each in classes.opinions() if each.row == row(8)] == [
        (row(8), "anna", "bus"),
        (row(8), "ben", "$5"),
    ]
    assert classes.disagreements() == (row(8),)


def test_the_same_file_once_more_changes_nothing(numbers):
    answers = [Answer(row(8), 3.50, "anna", "task 1"), Answer(row(9), "4,5", None, "task 2")]
    record_answers(numbers, answers)
    before = state(numbers)
    recorded = record_answers(numbers, [answers[0]._replace(label="3.5"), answers[1]])
    assert (recorded.new, recorded.known, state(numbers)) == ((), (row(8), row(9)), before)
    assert numbers.journal.state(row(9)).label == "4.5"


def test_of_several_labels_of_one_person_the_last_counts(classes):
    record_answers(classes, [Answer(row(8), name, "anna", "task 1") for name in ("bus", "$5")])
    assert [event.label for event in classes.history(row(8))] == ["$5"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(row(9), "buss", "ben", "task 5"), r"task 5, row .*'buss' is no class; there are '\$5', 'bus', 'van"),
        (Answer(row(9), 3.5, "ben", "task 5"), "task 5.*'3.5' is no class"),
        (Answer(row(10), "$5", "anna", "task 5"), "task 5: row .* has the label 'bus' from 'anna' and .* was reported"),
        (Answer(row(0), "$5", None, "task 5"), "task 5: row .* has the label 'bus' and .* was reported"),
    ],
)
def test_nothing_is_recorded_if_one_is_refused(classes, answer, message):
    classes.tell(row(10), "bus", annotator="anna")
    before = state(classes)
    with pytest.raises(StakesError, match=message) as caught:
        record_answers(classes, [Answer(row(8), "bus", "carl", "task 1"), answer])
    assert "Nothing was recorded" in str(caught.value)
    assert state(classes) == before


def test_two_labels_of_nobody_in_particular_and_of_somebody(classes):
    before = state(classes)
    with pytest.raises(StakesError, match=r"task 2: row .* has the label 'bus' and .* was reported"):
        record_answers(classes, [Answer(row(8), "bus", "anna", "task 1"), Answer(row(8), "$5", None, "task 2")])
    assert state(classes) == before


def test_the_label_of_a_test_is_one(classes):
    (drawn,) = classes.audit(1)
    before = state(classes)
    with pytest.raises(StakesError, match="task 2"):
        record_answers(classes, [Answer(drawn, "bus", "anna", "task 1"), Answer(drawn, "$5", "ben", "task 2")])
    assert state(classes) == before
    record_answers(classes, [Answer(drawn, "bus", "anna", "task 1")])
    assert classes.journal.state(drawn).status == "tested"


def test_labels_are_replaced_on_purpose(classes):
    classes.tell(row(8), "bus", annotator="anna")
    recorded = record_answers(classes, [Answer(row(8), "$5", "anna", "task 1")], replace=True)
    assert recorded.replaced == (row(8),)
    assert classes.journal.state(row(8)).label == "$5"


def test_a_new_class_is_taken_on_purpose_and_names_are_filled_in(classes):
    record_answers(classes, [Answer(row(8), "tram", None, "task 1")], new_class=True, annotator="anna")
    assert classes.journal.state(row(8)).who == "anna"
    record_answers(classes, [Answer(row(9), "bus", None, "task 1")], who="ben")
    assert classes.journal.state(row(9)).who == "ben"


def test_before_is_called_between_the_checks_and_the_first_label(classes):
    seen = []
    record_answers(classes, [Answer(row(8), "bus", "anna", "t")], before=lambda: seen.append(state(classes)))
    assert seen == [(8, 1)]
    with pytest.raises(StakesError):
        record_answers(classes, [Answer(row(9), "?", "anna", "t")], before=lambda: seen.append("never"))
    assert seen == [(8, 1)]


def test_checks_alone_record_nothing(classes):
    before = state(classes)
    answer = Answer(row(8), "bus", None, "task 1")
    assert checked_answers(classes, [answer]) == [answer]
    with pytest.raises(StakesError, match="task 2"):
        checked_answers(classes, [Answer(row(8), "bus", None, "task 1"), Answer(row(9), "", None, "task 2")])
    assert state(classes) == before


def test_ids_may_be_numbers_and_have_the_apostrophe_of_a_csv(tmp_path):
    from stakes.campaign import Campaign

    (tmp_path / "t.csv").write_text("id,x,y\n7,1,1.0\n-a,2,2.0\n8,3,\n")
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.csv", "y", "squared-error", id_column="id") as campaign:
        assert row_of(campaign, "task 1", {"stakes_id": 8}) == "8"
        assert row_of(campaign, "task 1", None, {"stakes_id": "'-a"}) == "-a"
        with pytest.raises(StakesError, match="no 'stakes_id' or 'id'"):
            row_of(campaign, "task 1", {"stakes_id": True}, "text")


def test_one_label():
    assert [label_of(each, "t") for each in ("a ", ["a"], [], None, " ", 3, 2.5)] == [
        "a",
        "a",
        None,
        None,
        None,
        3,
        2.5,
    ]
