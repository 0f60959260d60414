"""Rows that want a label, in our order."""

import pytest

from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from stakes.exchange.tasks import Task, choosable_classes, open_tasks, ranking_version, row_text
from tests.exchange.conftest import row


def test_the_first_rows_are_those_that_ask_would_hand_out_and_nobody_is_handed_any(classes):
    found = open_tasks(classes)
    assert {task.row for task in found.tasks} == {row(i) for i in range(8, 20)}
    assert classes.status(refresh=False).asked == 0
    assert classes.ask(4).row_ids == tuple(task.row for task in found.tasks[:4])


def test_scores_are_ranks_from_zero_to_one(classes):
    scores = [task.score for task in open_tasks(classes).tasks]
    assert scores == [place / 11 for place in range(12)]
    assert [task.score for task in open_tasks(classes, 1).tasks] == [0.0]


def test_rows_that_somebody_has_in_hand_or_skipped_are_left_out(classes):
    asked = classes.ask(2).row_ids
    classes.skip([row(19) if row(19) not in asked else row(18)])
    found = open_tasks(classes)
    assert found.asked == 2
    assert len(found.tasks) == 9
    assert set(asked).isdisjoint(task.row for task in found.tasks)


def test_rows_that_test_the_model_come_first_in_the_order_of_the_draw(classes):
    drawn = classes.audit(3)
    assert tuple(task.row for task in open_tasks(classes).tasks[:3]) == drawn
    assert {task.guess for task in open_tasks(classes, guess=True).tasks[:3]} == {None}  # it is a test


def test_cells_are_those_of_the_table_without_the_id_and_the_target(numbers):
    first = next(task for task in open_tasks(numbers).tasks if task.row == row(8))
    assert first.cells == {"x": "4.0", "<b>z</b>": "1", "remark": "$x"}
    assert first.guess is None


def test_guesses_are_what_the_model_would_answer(classes, numbers):
    assert {task.guess for task in open_tasks(classes, guess=True).tasks} <= {"bus", 'van & <"co">', "$5"}
    guesses = {task.row: float(task.guess) for task in open_tasks(numbers, guess=True).tasks}
    assert guesses[row(19)] > guesses[row(8)] > 0  # the labels rise with x


def test_the_version_changes_with_every_change_of_a_label(classes):
    assert ranking_version(classes) == "stakes-8"
    classes.tell(row(8), "bus", annotator="anna")
    classes.retract(row(8), "anna")
    assert ranking_version(classes) == "stakes-10"
    classes.ask(1)
    assert ranking_version(classes) == "stakes-10"


def test_a_choice_needs_two_classes(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,\n3,\n")
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.csv", "y", "zero-one") as campaign:
        with pytest.raises(StakesError, match="two classes at least") as caught:
            choosable_classes(campaign)
        assert "--classes" in str(caught.value)


def test_without_a_model_rows_are_spread(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},\n" for i in range(30)))
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.csv", "y", "zero-one", classes=("a", "b")) as campaign:
        found = open_tasks(campaign, guess=True)
    assert len(found.tasks) == 30
    assert len({task.row for task in found.tasks}) == 30
    assert abs(int(found.tasks[0].row) - int(found.tasks[1].row)) > 5
    assert found.tasks[0].guess is None


def test_no_row_is_left(numbers):
    numbers.tell_many([(row(i), 1.0) for i in range(8, 20)])
    assert open_tasks(numbers).tasks == ()


def test_a_row_as_text():
    assert row_text(Task("a", {"review": "Fine."}, 0.0)) == "Fine."
    assert row_text(Task("a", {"review": None}, 0.0)) == "a"
    assert row_text(Task("a", {"x": "1", "y": None, "z": "3"}, 0.0)) == "x: 1\nz: 3"
