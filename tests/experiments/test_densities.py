"""The study of densities: what is stored is what the page says, and a small run of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import densities
from experiments.labels_saved.tables import CLASSES, NUMBERS, Table

ROOT = Path(__file__).parents[2]


def test_what_is_stored_is_what_the_page_says():
    kept = json.loads((densities.RESULTS / "runs.json").read_text())
    assert sorted(kept) == sorted([*NUMBERS, *CLASSES])
    assert densities.whole_report(kept) == (densities.RESULTS / "report.md").read_text()
    for task, names in (("numbers", NUMBERS), ("classes", CLASSES)):
        summary = densities.report({name: kept[name] for name in names}, task).split("\n\n")[1]
        assert summary in (ROOT / "docs" / "does_it_help.md").read_text()


def test_the_page_says_on_which_tables_draws_are_behind():
    text, kept = " ".join((ROOT / "docs" / "does_it_help.md").read_text().split()), densities.RESULTS / "runs.json"
    behind = []
    for count in (20, 60):
        for name, runs in json.loads(kept.read_text()).items():
            if name in NUMBERS and (each := densities.gains(runs, count, "draws")[:, 0]).mean() < 0:
                behind.append((count, name, -each.mean(), each.std(ddof=1) / np.sqrt(len(each))))
    (first, second) = behind
    assert (first[:2], second[:2]) == ((20, "electrical_grid_stability"), (60, "skillcraft1"))
    short = [[f"{each:.3f}".lstrip("0") for each in case[2:]] for case in behind]
    assert f"{first[1]} loses {short[0][0]} (± {short[0][1]}, one standard error)" in text
    assert f"after 60 {second[1]} {short[1][0]} (± {short[1][1]})" in text


def test_gains_are_beside_the_reference_of_the_same_run():
    runs = [
        {"20": {"reference": [-2.0, -4.0], "draws": [-1.5, -3.0]}},
        {"20": {"reference": [1.0, 1.0], "draws": [0, 0]}},
    ]
    assert densities.gains(runs, 20, "draws").tolist() == [[0.5, 1.0], [-1.0, -1.0]]


def test_a_small_run():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 2))
    data = Table("small", "numbers", features, np.exp(features[:, 0]), np.zeros(2, dtype=bool))
    found = densities.carry_out(data, 0, counts=[8])["8"]
    assert set(found) == {"reference", "one Gaussian", "draws"}
    assert np.isfinite(list(found.values())).all()
    assert found["draws"] != found["one Gaussian"]
    assert found["draws"][0] == pytest.approx(found["one Gaussian"][0], abs=1.5)


def test_a_small_run_of_classes():
    rng = np.random.default_rng(0)
    targets = np.arange(60) % 3
    data = Table(
        "small", "classes", rng.normal(size=(60, 2)) + targets[:, None], targets, np.zeros(2, bool), ("a", "b", "c")
    )
    found = densities.carry_out(data, 0, counts=[8])["8"]
    assert set(found) == {"reference", "default"}
    assert (np.asarray(list(found.values())) < 0).all()
    assert found["default"][1] > found["reference"][1]  # trees that are sure of both rows of a pair are often wrong
