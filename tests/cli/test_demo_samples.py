"""Sample tables: what they say they are, and never in the place of a file."""

import csv

import pytest

from stakes.cli.demo import SAMPLES, write_sample
from stakes.exceptions import StakesError


def rows_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_its_answers_with_most_labels_left_out(name, tmp_path):
    sample = SAMPLES[name]
    table, answers = map(rows_of, write_sample(name, tmp_path))
    assert [row[sample.target] != "" for row in table] == [place < sample.labelled for place in range(len(table))]
    assert all(row[sample.target] for row in answers)
    for shown, whole in zip(table, answers, strict=True):
        assert {**shown, sample.target: ""} == {**whole, sample.target: ""}
    assert len({row[sample.id] for row in table}) == len(table)
    assert sample.what.startswith(str(len(table)))


def test_malignant_tumours_are_rare(tmp_path):
    _, answers = write_sample("tumours", tmp_path)
    assert sum(row["diagnosis"] == "malignant" for row in rows_of(answers)) == 40


@pytest.mark.parametrize("there", ["prices.csv", "prices-answers.csv"])
def test_a_file_that_is_there_is_left_as_it_is(there, tmp_path):
    (tmp_path / there).write_text("mine")
    with pytest.raises(StakesError, match="is there already"):
        write_sample("prices", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_an_unknown_sample_is_refused(tmp_path):
    with pytest.raises(StakesError, match="there are prices, tumours, progression"):
        write_sample("cars", tmp_path)
