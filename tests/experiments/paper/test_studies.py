"""Slices of the paper's studies: they run, go on after a kill, and say what they found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from experiments import __main__ as program
from experiments.paper import table2
from experiments.paper.classification import ClippedLogLoss, StratifiedSplits
from experiments.paper.linex import LinexMetric, LinexRule
from experiments.paper.refreshed import Refreshed
from experiments.paper.results import read, write
from experiments.paper.strategies import clipped_scores
from experiments.paper.study import Place
from experiments.paper.summary import summarised
from stakes import LogLoss, SquaredError
from stakes.models import GaussianProcess
from stakes.simulation import simulate_trials
from tests.experiments.paper.paper_cases import blobs, splits

SLICE = replace(table2.PUBLISHED, budget=3, draws=20)


@pytest.fixture(scope="module")
def found():
    return SLICE.simulate(3, Place(None, None))


def test_the_true_linex_run_under_an_exact_process_is_the_evr_run_point_for_point():
    model = Refreshed(GaussianProcess(rules="published"), first=8, every=3)
    strategies = ["loss", ("Linex", LinexRule(1.0)), ("Itakura-Saito", clipped_scores)]
    loops = simulate_trials(
        model,
        SquaredError(),
        splits("native").draw,
        strategies=strategies,
        n=8,
        runs=3,
        metrics={"Linex": LinexMetric(1.0)},
    )
    evr, true, published = loops.acquired
    assert np.array_equal(evr, true)
    assert np.array_equal(loops.curves("loss", "Linex"), loops.curves("Linex", "Linex"))
    assert not np.array_equal(evr, published)


def test_a_killed_study_goes_on_to_the_same_result(found, tmp_path):
    place = Place(None, tmp_path)
    SLICE.simulate(1, place)
    for path in sorted((tmp_path / SLICE.name).glob("run*.npz"))[2:]:
        path.unlink()  # what a kill in the first run would have left undone
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / SLICE.name).glob("run*.npz")}
    resumed = SLICE.simulate(3, place)
    assert all(path.stat().st_mtime_ns == at for path, at in kept.items())
    assert len(kept) == 2
    assert np.array_equal(resumed.acquired, found.acquired)
    assert all(np.array_equal(resumed.losses[name], found.losses[name]) for name in found.losses)


def test_published_starts_and_tests_are_those_of_the_problem(found):
    for trial in found.trials:
        assert trial.X[trial.initial, 0].tolist() == [-1.0, 1.0]
        np.testing.assert_array_equal(trial.y[trial.test], SLICE.problem.f(trial.X[trial.test, 0]))
        assert len(trial.pool) == 63
        assert (len(trial.contexts), len(trial.test)) == (49, 97)


def test_summaries_are_read_back_as_they_were_written(found, tmp_path):
    made = summarised(SLICE, found, {"command": "c", "runs": 3, "labels": 3, "seconds": 1.0, "settings": "s"})
    write(made, tmp_path)
    (again,) = read(tmp_path)
    assert (again.name, again.about) == (made.name, made.about)
    assert [(p.strategy, p.metric, p.labels) for p in again.points] == [
        (p.strategy, p.metric, p.labels) for p in made.points
    ]
    np.testing.assert_allclose([p.mean for p in again.points], [p.mean for p in made.points], rtol=1e-5)
    one = next(each for each in again.curves if (each.strategy, each.metric, each.run) == ("EVR_w", "SEL", 2))
    np.testing.assert_allclose(one.losses, found.curves("loss", "SEL")[2], rtol=1e-3)
    assert len(again.curves) == len(made.curves) == 4 * 2 * 3  # strategies, metrics of the paper, runs
    final = found.curves("plain", "SEL")[:, -1]
    assert made.point("EVR", "SEL", 3).mean == pytest.approx(final.mean())
    assert made.point("EVR", "SEL", 3).sem == pytest.approx(final.std(ddof=1) / np.sqrt(3))


def test_the_program_runs_a_study_and_makes_its_report_again_from_the_summary(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(program.STUDIES, "table2", (SLICE,))
    monkeypatch.setattr(program, "drawn", lambda summaries: {})
    program.main(["table2", "--quick", "--store", str(tmp_path)])
    first = capsys.readouterr()
    assert "table2-published: 2 runs" in first.err
    assert "python -m experiments table2 --quick" in first.out
    written = [tmp_path / "results" / f"report.{kind}" for kind in ("md", "html")]
    kept = [path.read_text() for path in written]
    for path in written:
        path.unlink()
    program.main(["report", "--results", str(tmp_path / "results")])
    assert capsys.readouterr().out == first.out
    assert [path.read_text() for path in written] == kept


def test_without_data_a_study_is_left_out_with_what_to_do(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("STAKES_DATA", raising=False)
    (tmp_path / "empty").mkdir()
    program.main(["regression", "--quick", "--store", str(tmp_path), "--data", str(tmp_path / "empty")])
    shown = capsys.readouterr()
    assert shown.err.count("left out: regression-") == 6
    assert "Not run." in shown.out


def test_a_slice_of_classification_with_both_readings_of_nll_w():
    weighted = LogLoss([50.0, 1.0, 50.0])
    loops = simulate_trials(
        RandomForestClassifier(8),
        weighted,
        StratifiedSplits(*blobs(), (4, 5, 5)).draw,
        n=2,
        runs=2,
        metrics={"q": ClippedLogLoss(weighted, LogLoss(), 1e-6), "q_w": ClippedLogLoss(weighted, weighted, 1e-6)},
        reseed=False,
    )
    assert np.isfinite(loops.losses["q"]).all()
    assert not np.array_equal(loops.losses["q"], loops.losses["q_w"])
    study = next(each for each in program.chosen("classification", "published") if each.dataset == "vehicle")
    shares = summarised(study, loops, {}).shares
    assert sum(each.mean for each in shares if (each.strategy, each.labels) == ("EPIG", 2)) == pytest.approx(1.0)
    start = [each.mean for each in shares if (each.strategy, each.labels) == ("EPIG_w", 0)]
    assert start == pytest.approx([1 / 3] * 3)  # those labelled at the start count
    bought = summarised(replace(study, count_initial=False), loops, {}).shares
    assert {each.labels for each in bought} == {1, 2}  # there is no share of nothing
    first = [np.mean(loops.bought[1, :, 0] == place) for place in range(3)]
    assert [each.mean for each in bought if (each.strategy, each.labels) == ("EPIG", 1)] == pytest.approx(first)
