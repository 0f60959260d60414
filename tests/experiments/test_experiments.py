"""The studies run from a checkout with what scikit-learn ships alone, and go on where they were stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import does_it_help, markdown
from experiments.problems import PROBLEMS, missed, read_low
from experiments.tables import MissingTableError, is_shipped, load
from stakes import SquaredError, simulate
from stakes.baselines import BASELINES
from stakes.models import DefaultModel
from tests.in_process import run_module

ROOT = Path(__file__).resolve().parents[2]
HEADINGS = ("What was run", "The loss after the last label", "The mean over all steps", "What was bought")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The quick preset, run once: what came of it, and its store."""
    folder = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("STAKES_DATA", raising=False)
        return run_module("experiments.does_it_help", ROOT, "--quick", "--store", str(folder)), folder


def test_the_quick_study_prints_a_row_for_each_problem(quick):
    (out, complained), _ = quick
    assert "Warning" not in complained
    assert all(f"### {heading}" in out for heading in HEADINGS)
    assert out.count("\n| ") == len(HEADINGS) * (2 + len(does_it_help.QUICK.problems))


def test_a_study_that_is_run_again_takes_all_from_its_store(quick, capsys):
    (out, _), folder = quick
    written = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")}
    does_it_help.main(["--quick", "--store", str(folder)])
    assert capsys.readouterr().out == out
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.npz")} == written
    assert len(written) == 2 * 4 * len(does_it_help.QUICK.problems)  # runs and strategies


def test_what_is_not_there_is_left_out_and_said(monkeypatch, capsys, tmp_path):
    yacht = next(each for each in PROBLEMS if each.table == "yacht")
    diabetes = next(each for each in PROBLEMS if each.table == "diabetes")
    monkeypatch.setattr(does_it_help, "QUICK", does_it_help.Preset(2, 1, (yacht, diabetes)))
    monkeypatch.delenv("STAKES_DATA", raising=False)
    does_it_help.main(["--quick", "--store", str(tmp_path)])
    shown = capsys.readouterr()
    assert "left out: yacht needs a folder with yacht.csv: give --data FOLDER, or set STAKES_DATA" in shown.err
    assert "diabetes" in shown.out
    assert "yacht" not in shown.out


def test_a_folder_without_the_file_is_told_which_one_is_wanted(tmp_path):
    with pytest.raises(MissingTableError, match=r"landsat needs landsat\.csv; there is none"):
        load("landsat", tmp_path)


def test_a_file_of_reals_gives_its_features_and_the_target_in_standard_deviations(tmp_path):
    lines = ["cement,water,slump_cm,flow_cm,compressive_strength_28d_mpa", "1,2,9,9,10", "3,4,9,9,30"]
    (tmp_path / "slump.csv").write_text("\n".join(lines))
    table = load("slump", tmp_path)
    assert table.features.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert table.target.tolist() == [1.0, 3.0]


def test_a_file_of_classes_leaves_out_what_describes_the_row(tmp_path):
    (tmp_path / "landsat.csv").write_text("split,band,class\ntrain,35,10\ntest,5,2")
    table = load("landsat", tmp_path)
    assert table.features.tolist() == [[35.0], [5.0]]
    assert table.target.tolist() == [10, 2]  # numbers, so that their order is that of the codes


def test_rows_that_are_drawn_are_the_same_every_time():
    first, second = (load("digits", None) for _ in range(2))
    assert first.n_rows == 600
    assert np.array_equal(first.features, second.features)
    assert set(first.target.tolist()) == set(range(10))


def test_problems_are_told_apart_and_name_rules_and_classes_that_exist():
    assert len({each.name for each in PROBLEMS}) == len(PROBLEMS)
    assert all(each.usual in BASELINES for each in PROBLEMS)
    for each in (each for each in PROBLEMS if is_shipped(each.table) and each.heavy is not None):
        assert each.heavy in load(each.table, None).target


def test_costs_by_hand():
    assert missed(1, 20.0, 3).costs.tolist() == [[0, 1, 1], [20, 0, 20], [1, 1, 0]]
    assert read_low(5.0, 3).costs.tolist() == [[0, 1, 2], [5, 0, 1], [10, 5, 0]]


def test_the_share_of_rows_that_two_strategies_both_bought():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    settings = {"strategies": ("plain", "loss", "random"), "n": 4, "runs": 2}
    found = simulate(DefaultModel(task="real"), SquaredError(), rows, rows[:, 0], **settings)
    assert markdown.shared(found, "loss", "plain") == 1.0
    both = [len(set(a) & set(b)) / 4 for a, b in zip(found.acquired[1], found.acquired[2], strict=True)]
    assert markdown.shared(found, "loss", "random") == pytest.approx(np.mean(both))


@pytest.mark.parametrize(
    ("value", "text"), [(1e-18, "0"), (-0.0034712, "-0.00347"), (5.2e-5, "0.000052"), (99.97, "100"), (-404.2, "-404")]
)
def test_numbers_are_written_out(value, text):
    assert markdown.number(value) == text


def test_without_their_library_the_benchmark_of_peers_says_what_to_install():
    hidden = "import runpy, sys; sys.modules['skactiveml'] = None; runpy.run_path('benchmarks/peers.py')"
    done = subprocess.run([sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install scikit-activeml" in done.stderr
    assert "Traceback" not in done.stderr
