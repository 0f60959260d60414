"""Grades and several labels of a row, as tables and the command line have them."""

import json

import click
import numpy as np
import pytest
from click.testing import CliRunner

from stakes.cli.init import init_command
from stakes.cli.options import brief_from
from stakes.cli.questions import Incomplete, complete
from stakes.cli.suggest import suggest_command
from stakes.exceptions import StakesError
from stakes.files import write_csv
from stakes.files.read import read_table
from stakes.tabular import LossSpec, ModelSpec, build_problem, read_worksheet
from stakes.tabular.proposals import ColumnLook
from stakes.tabular.target_kinds import labels_in, of_grades, of_labels, with_label_sets

X = np.random.default_rng(0).normal(size=(30, 2)).round(3)
GRADES = ["low", "medium", "high"]


@pytest.fixture
def grades(tmp_path):
    names = np.array(GRADES)[np.digitize(X[:, 0], [-0.5, 0.8])]
    rows = [(f"r{i}", *X[i], names[i] if i < 20 else None) for i in range(30)]
    write_csv(tmp_path / "grades.csv", ["id", "x", "z", "grade"], rows)
    return str(tmp_path / "grades.csv")


@pytest.fixture
def several(tmp_path):
    rows = [
        (f"r{i}", *X[i], *((int(X[i, 0] > 0), "yes" if X[i, 1] > 0.5 else "no") if i < 20 else (None, None)))
        for i in range(30)
    ]
    write_csv(tmp_path / "several.csv", ["id", "x", "z", "crack", "stain"], rows)
    return str(tmp_path / "several.csv")


def called(command, *arguments):
    done = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_grades_have_costs_by_distance_and_the_default_model_knows_their_order():
    loss, model = of_grades(LossSpec("squared-error"), ModelSpec(), GRADES)
    assert loss.cost_matrix["low"] == {"low": 0.0, "medium": 1.0, "high": 4.0}
    assert model == ModelSpec("default", {"ordinal": True})
    assert of_grades(LossSpec("absolute-error"), ModelSpec(), GRADES)[0].cost_matrix["high"]["low"] == 2.0
    kept = of_grades(LossSpec("log-loss"), ModelSpec("extra-trees"), GRADES)
    assert kept == (LossSpec("log-loss"), ModelSpec("extra-trees"))
    with pytest.raises(StakesError, match="takes no weight"):
        of_grades(LossSpec("squared-error", weight="exp:1"), ModelSpec(), GRADES)


def test_suggest_takes_grades(grades):
    found = called(suggest_command, grades, "--target", "grade", "--ordinal", "low,medium,high", "-n", "2", "--json")
    assert len(found["rows"]) == 2
    assert "ordered probit" in str(found["notes"])


def test_several_labels_become_one_column_of_sets(several):
    source = with_label_sets(read_table(several), ["crack", "stain"], "crack,stain")
    assert source.names == ("id", "x", "z", "crack,stain")
    wanted = [
        "+".join(n for n, v in (("crack", X[i, 0] > 0), ("stain", X[i, 1] > 0.5)) if v) or "none" for i in range(20)
    ]
    assert source.texts("crack,stain") == [*wanted, *[None] * 10]
    assert labels_in("crack,stain", ["id", "crack", "stain"]) == ("crack", "stain")
    assert labels_in("crack,stain", ["crack,stain", "crack", "stain"]) == ()
    assert labels_in("crack,other", ["crack", "stain"]) == ()


@pytest.mark.parametrize(
    ("cells", "message"), [((1, None), "'stain' is empty"), ((1, "maybe"), "'stain' holds 'maybe'")]
)
def test_labels_are_yes_or_no_and_all_there(tmp_path, cells, message):
    write_csv(tmp_path / "t.csv", ["x", "crack", "stain"], [(1.0, *cells), (2.0, 0, 1)])
    with pytest.raises(StakesError, match=message):
        with_label_sets(read_table(tmp_path / "t.csv"), ["crack", "stain"], "crack,stain")


def test_costs_and_weights_of_labels():
    loss, model, names = of_labels(
        LossSpec("zero-one"), ModelSpec(), ["crack", "stain"], {"miss": 5.0, "false-alarm": 1.0}, {"crack": 2.0}
    )
    assert names == ("none", "stain", "crack", "crack+stain")
    assert loss.cost_matrix["crack+stain"]["none"] == 15.0
    assert loss.cost_matrix["none"]["crack+stain"] == 3.0
    assert model.parameters == {"labels": ["crack", "stain"]}
    assert of_labels(LossSpec("log-loss"), ModelSpec(), ["a", "b"])[0] == LossSpec("log-loss")
    with pytest.raises(StakesError, match="no label 'x'"):
        of_labels(LossSpec("zero-one"), ModelSpec(), ["a", "b"], weights={"x": 1.0})
    with pytest.raises(StakesError, match="default model"):
        of_labels(LossSpec("zero-one"), ModelSpec("extra-trees"), ["a", "b"])


def test_suggest_and_init_take_several_labels(several, tmp_path):
    target = ("--target", "crack,stain")
    found = called(
        suggest_command, several, *target, "--costs", "miss=5,false-alarm=1", "--id", "id", "-n", "2", "--json"
    )
    assert len(found["rows"]) == 2
    made = called(init_command, str(tmp_path / "c.stakes"), several, *target, "--id", "id", "--json")  # zero-one
    assert (made["rows"], made["labelled"]) == (30, 20)


def test_the_problem_of_several_labels(several):
    given = dict.fromkeys(
        ("costs", "classes", "ordinal", "weight", "class_weights", "cost_matrix", "alpha", "tau", "threshold", "miss")
    )
    given |= {
        "false_alarm": None,
        "lam": None,
        "loss": "zero-one",
        "model": "default",
        "model_option": (),
        "loss_option": (),
    }
    given |= {"target": "crack,stain", "id_column": "id"}
    brief, _ = brief_from(given, several)
    model, loss, _, targets, classes = build_problem(read_worksheet(several, brief))
    assert model.labels == ["crack", "stain"]
    assert loss.costs[3].tolist() == [2.0, 1.0, 1.0, 0.0]  # each label that is missed
    assert set(targets) <= set(classes)


def look(values, numbers=None):
    return ColumnLook("grade", 30, 20, numbers, values)


def test_grades_are_recognised_where_they_are_clear():
    assert look(("3", "1", "2"), (1.0, 1.0, 2.0, 2.0, 3.0, 3.0)).grades == ("1", "2", "3")
    assert look(("High", "low", "medium")).grades == ("low", "medium", "High")
    for unclear in (look(("0", "1"), (0.0, 1.0)), look(("1", "2", "4"), (1.0, 2.0, 4.0)), look(("bus", "car", "van"))):
        assert unclear.grades == ()
    assert look(("1.5", "2", "3"), (1.5, 2.0, 3.0)).grades == ()


def test_the_order_is_proposed(grades):
    given = {"target": "grade", "loss": None, "costs": None, "ordinal": None}
    with click.Context(suggest_command, info_name="suggest"), pytest.raises(Incomplete) as caught:
        complete(grades, given, as_json=True)
    assert "--ordinal low,medium,high" in " ".join(caught.value.format_message().split())
