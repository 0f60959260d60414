"""`stakes elicit`: answers to a loss, as flags that other commands take."""

import io

import pytest

from tests.cli.cli_cases import run

TOWARDS_EIGHT = "1,2,2,1,2,1,2,1"


@pytest.mark.usefixtures("here")
def test_flags_that_suggest_takes():
    answer = run(f"elicit asymmetry --answers {TOWARDS_EIGHT} --json").json
    assert answer["kind"] == "asymmetry"
    assert answer["flags"][:2] == ["--loss", "pinball"]
    assert float(answer["flags"][3]) == pytest.approx(
        answer["ratio"]["value"] / (1 + answer["ratio"]["value"]), abs=0.02
    )
    assert run("suggest numbers.csv --target y --id id", answer["flags"]).code == 0


@pytest.mark.usefixtures("here")
def test_a_cost_matrix_in_a_file():
    answer = run(f"elicit costs --classes bus,van --answers {TOWARDS_EIGHT} -o costs.csv")
    assert "Bus taken for van costs " in answer.out
    assert "--loss cost-matrix --cost-matrix costs.csv" in answer.out
    with open("costs.csv", encoding="utf-8-sig") as file:
        assert file.readline().strip().replace('"', "") == "truth,bus,van"
    again = run(f"elicit costs --classes bus,van --answers {TOWARDS_EIGHT} -o costs.csv")
    assert again.code == 1  # it is there


@pytest.mark.usefixtures("here")
def test_a_threshold_and_how_much_the_rows_depend_on_it():
    command = f"elicit threshold numbers.csv --target y --id id --threshold 3 --answers {TOWARDS_EIGHT}"
    answer = run(command, "--json").json
    assert answer["flags"][:4] == ["--loss", "threshold-decision", "--threshold", "3"]
    assert answer["same_rows"]["rows"] == 5
    assert 0 <= answer["same_rows"]["low"] <= 5
    assert "Of 5 rows to label next, " in run(command).out
    assert run("suggest numbers.csv --target y --id id", answer["flags"]).code == 0


@pytest.mark.usefixtures("here")
def test_weights_by_points():
    answers = ",".join([TOWARDS_EIGHT] * 2)
    found = run(f"elicit weight --values 1,2,3 --answers {answers} -o w.csv --json").json
    assert found["flags"] == ["--loss", "squared-error", "--weight", "w.csv"]
    assert found["weights"][0]["value"] == 1.0
    assert run("suggest numbers.csv --target y --id id", found["flags"]).code == 0
    assert "FILE.csv is written with -o:" in run(f"elicit weight --values 1,2,3 --answers {answers}").out


@pytest.mark.usefixtures("here")
def test_the_table_says_what_targets_and_errors_are_usual():
    answers = ",".join([TOWARDS_EIGHT] * 2)
    found = run(f"elicit threshold numbers.csv --target y --id id --answers {answers} --json").json
    assert 0.0 <= found["threshold"]["value"] <= 4.5  # between the labels
    weights = run(f"elicit weight numbers.csv --target y --id id --answers {answers} --json").json
    assert len(weights["values"]) == 3


def test_questions_at_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("1\nperhaps\n" + "2\n" * 6 + "=\n"))
    answer = run("elicit costs")
    assert answer.code == 0
    assert "Which is worse: (1) a miss, once, or (2) a false alarm, once?" in answer.err
    assert "by 8 answers" in " ".join(answer.out.split())


def test_an_input_that_ends_is_refused(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n"))
    answer = run("elicit costs")
    assert answer.code == 1
    assert "the input ended before all questions were answered" in answer.err


@pytest.mark.parametrize(
    ("command", "code", "match"),
    [
        ("elicit price", 2, "price"),
        ("elicit costs --answers 1,2", 1, "wants 8 answers"),
        ("elicit costs --answers 1,2,3,1,1,1,1,1", 1, "wants 1, 2 or ="),
        ("elicit costs --classes a,b,c --answers 1", 2, "two names"),
        ("elicit costs --names a --answers 1", 2, "two names"),
        ("elicit weight --values a,b --answers 1", 2, "wants numbers"),
        (f"elicit threshold --answers {TOWARDS_EIGHT},{TOWARDS_EIGHT}", 1, "give the threshold"),
    ],
)
def test_refused(command, code, match):
    answer = run(command)
    assert answer.code == code
    assert match in answer.err


@pytest.mark.usefixtures("here")
def test_a_table_without_a_target_is_looked_at():
    answer = run("elicit costs numbers.csv --answers 1")
    assert answer.code == 2
    assert "--target is needed: the column of its labels. It may be 'y'" in " ".join(answer.err.split())
