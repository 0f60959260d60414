"""What a table looks like before anybody has said what is asked of it."""

import pytest

from stakes.files import read_table
from stakes.tabular.proposals import id_proposals, look, loss_proposals, target_proposals


@pytest.fixture
def columns(tmp_path):
    def made(*lines):
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        return look(read_table(tmp_path / "t.csv"))

    return made


TARGETS = {
    "partly empty, wherever it is": ("id,grade,x,z", "a,good,1,2", "b,,2,3", "c,bad,3,4", "grade", "2 of 3 rows"),
    "the emptier of two": ("x,z,y", "1,,5", "2,3,", "3,4,", "y", "1 of 3 rows"),
    "an empty one of that name": ("label,x,z", ",1,2", ",2,3", ",3,1", "label", "its name says so"),
    "the last of full ones": ("x,z,v", "1,2,3", "2,3,3", "3,4,3", "v", "it is the last column"),
    "a name among full ones": ("class,x,z", "a,2,3", "b,3,3", "a,4,3", "class", "its name says so"),
    "not a column of ids, though last": ("x,z,id", "1,2,a", "2,3,b", "3,4,c", "x", ""),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_likeliest_target_and_why(columns, name):
    *lines, target, why = TARGETS[name]
    column, reason = target_proposals(columns(*lines))[0]
    assert column.name == target
    assert why in reason


IDS = {
    "texts that all differ": ("sample,x,y", "a,1,1", "b,1,", ["sample"]),
    "numbers that are called so": ("x,id,y", "5,1,1", "6,2,", ["id"]),
    "not any numbers": ("x,z,y", "5,1,1", "6,2,", []),
    "not texts that repeat": ("kind,x,y", "a,1,1", "a,1,", []),
    "the one of that name first": ("town,id,y", "x,a,1", "z,b,", ["id", "town"]),
}


@pytest.mark.parametrize("name", IDS)
def test_columns_that_could_name_rows(columns, name):
    *lines, wanted = IDS[name]
    assert [column.name for column, _ in id_proposals(columns(*lines), "y")] == wanted


LOSSES = {
    "classes": (["a", "b", ""], ["zero-one", "cost-matrix", "log-loss"]),
    "two numbers": (["0", "1", ""], ["zero-one", "cost-matrix", "log-loss"]),
    "measured": (["0.5", "1.25", ""], ["squared-error", "absolute-error", "pinball", "threshold-decision"]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_for_a_target(columns, name):
    cells, names = LOSSES[name]
    target = columns("x,y", *(f"{place},{cell}" for place, cell in enumerate(cells)))[1]
    assert [each.name for each in loss_proposals(target)] == names


def test_a_few_whole_numbers_can_be_either(columns):
    target = columns("x,y", "1,1", "2,2", "3,3", "4,1", "5,2", "6,3", "7,")[1]
    assert [each.name for each in loss_proposals(target)][:1] == ["squared-error"]
    assert "zero-one" in [each.name for each in loss_proposals(target)]


def test_examples_are_of_the_table(columns):
    grades = columns("x,y", "1,good", "2,good", "3,bad", "4,")[1]
    assert loss_proposals(grades)[1].example == "'bad' answered by 'good' costs 5, 'good' answered by 'bad' costs 1"
    prices = columns("x,y", *(f"{i},{i * 10}.5" for i in range(9)), "9,")[1]
    assert loss_proposals(prices)[0].example == "20 off costs 4 times as much as 10 off"


def test_whole_numbers_that_all_differ_are_no_classes(columns):
    target = columns("x,y", "1,1", "2,2", "3,3", "4,")[1]
    assert "zero-one" not in [each.name for each in loss_proposals(target)]


def test_the_class_that_costs_more_is_the_positive_one(columns):
    target = columns("x,y", "1,yes", "2,no", "3,yes", "4,")[1]
    assert loss_proposals(target)[1].example == "'yes' answered by 'no' costs 5, 'no' answered by 'yes' costs 1"
