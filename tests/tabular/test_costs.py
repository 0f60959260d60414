"""Costs of mistakes, in a line and in a file."""

import pytest

from stakes.exceptions import StakesError
from stakes.tabular import LossSpec, build_loss, read_cost_matrix
from stakes.tabular.costs import (
    cost_line,
    costs_by_class,
    costs_of_tests,
    is_miss_and_false_alarm,
    parse_costs,
    positive_class,
)


@pytest.mark.parametrize(
    ("line", "costs"),
    [
        ("miss=5,false-alarm=1", {"miss": 5.0, "false-alarm": 1.0}),
        ("Miss = 5, False_Alarm = .5", {"miss": 5.0, "false-alarm": 0.5}),
        ("false alarm=2", {"false-alarm": 2.0}),
        ("bad>good=5", {"bad>good": 5.0}),
        ('"a, b>c=5",c>"x=1', {"a, b>c": 5.0, 'c>"x': 1.0}),
        ("a=b>c=2", {"a=b>c": 2.0}),
    ],
)
def test_a_line(line, costs):
    assert parse_costs(line) == costs


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "got ''"),
        ("miss", "got 'miss'"),
        ("miss=5,5", "got '5'.*Decimals come after a point"),
        ("miss=high", "got 'miss=high'"),
        ("bad>good=5;good>bad=1", "Put commas between the mistakes"),
        ("miss=inf", "got 'miss=inf'"),
        ("miss=1,MISS=2", "'miss' is given twice"),
        ("a>b=1,a>b=2", "'a>b' is given twice"),
    ],
)
def test_a_line_that_is_refused(line, message):
    with pytest.raises(StakesError, match=message):
        parse_costs(line)


def test_both_ways_at_once_are_refused():
    assert is_miss_and_false_alarm({"miss": 1.0})
    assert not is_miss_and_false_alarm({"bad>good": 1.0})
    with pytest.raises(StakesError, match="got 'miss' beside 'bad>good'"):
        is_miss_and_false_alarm({"miss": 1.0, "bad>good": 2.0})


@pytest.mark.parametrize(
    ("counts", "first", "positive", "why"),
    [
        ({"good": 20, "bad": 10}, None, "bad", "the rarer one, 10 of 30 labels"),
        ({"good": 20, "bad": 10}, "good", "good", "the first of --classes"),
        ({"No": 3, "Yes": 30}, None, "Yes", "by its name"),
        ({"0": 5, "1": 5}, None, "1", "by its name"),
    ],
)
def test_which_class_must_not_be_missed(counts, first, positive, why):
    found, message = positive_class(counts, first)
    assert found == positive
    assert why in message


@pytest.mark.parametrize("counts", [{"good": 15, "bad": 14}, {"good": 19, "bad": 10}, {"good": 9, "bad": 0}])
def test_nothing_tells_which(counts):
    assert positive_class(counts) is None


def test_a_miss_is_the_truth_that_was_not_answered():
    table, message = costs_of_tests({"miss": 5.0, "false-alarm": 2.0}, "ill", "well")
    assert table == {"ill": {"ill": 0.0, "well": 5.0}, "well": {"ill": 2.0, "well": 0.0}}
    assert message == (
        "A miss is 'ill' answered by 'well' and costs 5; a false alarm is 'well' answered by 'ill' and costs 2"
    )


def test_mistakes_that_are_not_named_cost_1():
    table, message = costs_by_class({"a>b": 5.0, "c>a": 0.5}, ["a", "b", "c"], complete=True)
    assert table == {
        "a": {"a": 0.0, "b": 5.0, "c": 1.0},
        "b": {"a": 1.0, "b": 0.0, "c": 1.0},
        "c": {"a": 0.5, "b": 1.0, "c": 0.0},
    }
    assert message == "Mistakes that --costs leaves out cost 1: a>c, b>a, b>c, c>b."


def test_classes_with_a_sign_in_their_names():
    table, message = costs_by_class({"<=50K>>50K": 3.0, ">50K><=50K": 2.0}, ["<=50K", ">50K"], complete=True)
    assert table == {"<=50K": {"<=50K": 0.0, ">50K": 3.0}, ">50K": {"<=50K": 2.0, ">50K": 0.0}}
    assert message == ""


@pytest.mark.parametrize(
    ("costs", "classes", "message"),
    [
        ({"bda>good": 5.0}, ["bad", "good"], r"no class 'bda' in 'bda>good'.*Did you mean 'bad'\?.*--classes"),
        ({"bad>refer": 5.0}, ["bad", "good"], "no class 'refer'.*--cost-matrix FILE"),
        ({"bad": 5.0}, ["bad", "good"], "has no > in it"),
        ({"mis": 5.0}, ["bad", "good"], r"Did you mean 'miss'\?"),
        ({"a>a>a": 5.0}, ["a", "a>a"], "can be read in 2 ways"),
    ],
)
def test_mistakes_that_are_refused(costs, classes, message):
    with pytest.raises(StakesError, match=message):
        costs_by_class(costs, classes, complete=True)


def test_without_labels_the_classes_are_those_named():
    assert list(costs_by_class({"bad>good": 5.0}, [], complete=False)[0]) == ["bad", "good"]


def test_a_line_says_its_matrix_again():
    table, _ = costs_by_class({"a, 1>b": 5000.5, 'b>"c"': 0.25}, ["a, 1", "b", '"c"'], complete=True)
    assert costs_by_class(parse_costs(cost_line(table)), list(table), complete=True)[0] == table


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (",a,b\na,0,1\n,1,0\n", "look at line 3"),
        (",a,b\na,0,1\na,1,0\n", "'a' twice, again at line 3"),
        (",a,\na,0,1\n", "look at line 1"),
        (",a,b\n", "from line 2 on"),
        (",a,b\na,0,1\nb,x,0\n", "got 'x' at line 3, column 'a'"),
    ],
)
def test_a_file_is_refused_with_its_line(tmp_path, content, message):
    (tmp_path / "costs.csv").write_text(content)
    with pytest.raises(StakesError, match=rf"costs\.csv.*{message}"):
        read_cost_matrix(str(tmp_path / "costs.csv"))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["bad", "good"], r"costs\.csv, line 3: there is no class 'goood'.*Did you mean 'good'\?"),
        (["bad", "goood", "ugly"], r"costs\.csv: the cost matrix must have a row for every class.*none for ugly"),
    ],
)
def test_a_file_that_does_not_fit_the_classes_is_named_with_its_line(tmp_path, classes, message):
    (tmp_path / "costs.csv").write_text(",bad,good\nbad,0,5\ngoood,1,0\n")
    spec = LossSpec("cost-matrix", cost_matrix=read_cost_matrix(str(tmp_path / "costs.csv")))
    with pytest.raises(StakesError, match=message):
        build_loss(spec, classes)
    kept = LossSpec.from_dict(spec.to_dict())
    assert kept == spec  # a campaign keeps the costs, not where they were read
