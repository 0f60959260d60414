"""The study of classes that have an order: what is stored is what the page says, and a small run of it."""

import json
from pathlib import Path

import numpy as np

from experiments import ordinal
from experiments.labels_saved.tables import Table

ROOT = Path(__file__).parents[2]


def stored(name):
    return json.loads((ordinal.RESULTS / name).read_text())


def test_the_page_shows_what_is_stored():
    summary = ordinal.summarised(stored("runs.json"))
    assert summary == stored("summary.json")
    assert set(summary["tables"]) == set(ordinal.TABLES)
    report = ordinal.report(summary)
    assert report == (ordinal.RESULTS / "report.md").read_text()
    assert report.strip() in (ROOT / "docs" / "ordinal.md").read_text()


def test_choosing_for_own_costs_ends_lower_than_random_choice_as_the_page_says():
    for each in stored("summary.json")["tables"].values():
        for model in ordinal.MODELS:
            assert each[f"{model}, own costs"]["end"] < each[f"{model}, random"]["end"]


def test_a_small_run():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 2))
    numbers = Table("small", "numbers", features, features[:, 0] + 0.1 * rng.normal(size=60), np.zeros(2, dtype=bool))
    data = ordinal.graded(numbers, 3)
    assert np.bincount(data.y).tolist() == [20, 20, 20]
    assert (np.diff(data.y[np.argsort(numbers.y)]) >= 0).all()
    found = ordinal.carry_out(data, 0, bought=2)
    assert set(found) == set(ordinal.STRATEGIES)
    for model in ordinal.MODELS:  # which know the same at the start
        own, at_random = (found[f"{model}, {choice}"] for choice in ("own costs", "random"))
        assert len(own) == 3
        assert own[0] == at_random[0]


def test_the_labels_needed_are_those_of_the_reference_level():
    curves = {each: [2.0, 1.0, 1.0] for each in ordinal.STRATEGIES} | {ordinal.REFERENCE: [3.0, 2.0, 1.5]}
    found = ordinal.summarised({"servo 0": {"costs": curves}})["tables"]["servo"]
    assert [found[each]["labels"] for each in ("trees, own costs", ordinal.REFERENCE)] == [1, 2]
    assert found["trees, own costs"]["better"] == 1.0
