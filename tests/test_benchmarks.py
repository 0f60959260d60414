"""Benchmarks run in small, their scores agree, and what is absent is reported. Never a time."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from benchmarks import (
    batches,
    cluster,
    ensembles,
    gpu_gaussian,
    guard,
    honest,
    measure,
    members,
    mixtures,
    normals,
    peer_jobs,
    plain,
    screening,
    small,
    soft,
    speed_of_peers,
    startup,
    suggest,
)
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.measure import Row
from benchmarks.members import Shape
from stakes import CategoricalEnsemble, LogLoss, VoteEnsemble, score
from stakes.files import open_pool

AGREED = 1e-6  # of ours, relative to the best score
IN_FLOAT32 = 1e-4  # of plain scorers, which subtract


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The quick table of ensembles as saved, without processes of their own, which take seconds to start."""
    folder = tmp_path_factory.mktemp("benchmarks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensembles, "in_child", lambda job, *arguments: job(*arguments))
        main(["ensembles", "--quick", "--repeats", "2", "--folder", str(folder)])
    return folder


@pytest.fixture(scope="module")
def table(quick):
    return [Row(**row) for row in json.loads((quick / "ensembles.json").read_text())]


@pytest.mark.parametrize(
    "job",
    [
        "Landsat: bare product",
        "Landsat: plain scorer",
        "Landsat: weighted EPIG of votes, not compiled",
        "Landsat: Brier of votes",
        "Landsat: cost matrix of votes",
        "Landsat: memory of weighted EPIG of votes",
        "soft: bare product",
        "soft: plain scorer",
        "soft: weighted EPIG of members, not compiled",
        "soft: EPIG by products",
        "soft: EPIG by logarithms",
        "soft: memory of weighted EPIG of members",
        "forest to votes: loop over trees",
        "forest to votes: not compiled",
        "whole step: straightforward",
        "whole step: scikit-learn, not compiled",
        "growth in rows",
        "growth of votes: contexts doubled",
        "growth of votes: members doubled",
        "growth of votes: classes doubled",
    ],
)
def test_the_table_has_its_rows(table, job):
    found = [row for row in table if row.job.startswith(job)]
    assert found
    assert all(row.seconds is not None and row.seconds >= 0.0 for row in found)


def test_scores_agree_with_the_general_route(table):
    wrong = {row.job: row.error for row in table if row.error is not None}
    theirs = {job for job in wrong if "plain scorer" in job or "straightforward" in job or "EPIG by" in job}
    assert all(wrong[job] < IN_FLOAT32 for job in theirs)
    assert all(wrong[job] < AGREED for job in wrong.keys() - theirs)
    assert theirs
    assert any("EPIG of votes" in job for job in wrong)
    assert any("EPIG of members" in job for job in wrong)


def test_trees_walked_together_vote_as_one_by_one(table):
    walked = [row for row in table if row.job.startswith("forest to votes") and "loop" not in row.job.split(";")[0]]
    assert walked
    assert all(row.error == 0.0 for row in walked)


def test_several_benchmarks_may_be_named_and_each_is_run_once(monkeypatch, tmp_path, capsys):
    made = []
    for name in ("ensembles", "gaussian"):
        row = Row(f"job of {name}", "", 1.0)
        monkeypatch.setattr(f"benchmarks.{name}.rows", lambda settings, row=row: made.append(row.job) or [row])
    main(["gaussian", "ensembles", "gaussian", "--quick", "--folder", str(tmp_path)])
    assert made == ["job of gaussian", "job of ensembles"]
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["ensembles.json", "gaussian.json"]
    assert "job of ensembles" in capsys.readouterr().out


def test_the_help_lists_all_benchmarks_and_others_are_refused(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in BENCHMARKS)
    with pytest.raises(SystemExit, match="2"):
        main(["ensembles", "gausian"])
    assert "invalid choice: 'gausian'" in capsys.readouterr().err


def test_the_table_is_saved_to_be_read(quick, table):
    lines = (quick / "ensembles.md").read_text().splitlines()
    assert lines[0] == "| job | sizes | seconds | ratio | error | peak MB |"
    assert len(lines) == len(table) + 2
    assert all(line.count("|") == len(measure.HEAD) + 1 for line in lines)


def test_plain_scorers_agree_with_each_other():
    here, there = (members.probabilities(n, 30, 4, seed=n).astype(np.float32) for n in (7, 5))
    by_products = plain.epig_by_products(here, there)
    assert np.argmax(by_products) != np.argmin(by_products)
    np.testing.assert_allclose(plain.epig_by_logarithms(here, there), by_products, rtol=1e-3)
    np.testing.assert_allclose(plain.weighted_epig(here, there, np.ones(4, np.float32)), by_products, rtol=1e-3)


def test_plain_scorers_go_in_chunks(monkeypatch):
    here, there = (members.probabilities(n, 10, 3, seed=n) for n in (9, 4))  # float64, so that only chunks can differ
    weights = np.array([1.0, 50.0, 0.0])
    whole = plain.weighted_epig(here, there, weights)
    monkeypatch.setattr(plain, "CELLS", 2 * 3 * 12)
    np.testing.assert_allclose(plain.weighted_epig(here, there, weights), whole, rtol=1e-6)


def test_an_error_is_seen_where_the_best_score_is_wrong():
    belief = VoteEnsemble(members.votes(20, 50, 3, seed=1), members.votes(6, 50, 3, seed=2), 3)
    scores = score(LogLoss(), belief)
    best = int(np.argmax(scores))
    assert members.error(LogLoss(), belief, scores) < 1e-12
    assert members.error(LogLoss(), belief, np.where(np.arange(20) == best, 2.0 * scores, scores)) == pytest.approx(1.0)


def test_votes_hang_together_whatever_the_seed():
    votes = np.concatenate([members.votes(2, 1000, 2, seed=seed) for seed in (1, 2)])
    assert votes.dtype == np.uint8
    assert np.linalg.matrix_rank(np.cov(votes)) > 1
    assert np.all(np.cov(votes) > 0.0)


def test_least_seconds_are_of_two_turns_at_least():
    turns = []
    found = measure.race({"one": lambda: turns.append(1) or len(turns), "other": lambda: None}, repeats=1)
    assert found["one"][0] == 2
    assert found.keys() == {"one", "other"}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="elsewhere a peak is never forgotten")
def test_memory_is_that_of_the_job():
    array = np.zeros(10)
    kept = measure.peak_megabytes(lambda: np.ones(4_000_000)) - measure.peak_megabytes(lambda: array)
    assert 25.0 < kept < 60.0


def test_compiled_loops_come_back_after_a_job_without(monkeypatch):
    monkeypatch.setenv("STAKES_JIT", "1")
    with pytest.raises(ZeroDivisionError):
        measure.without_jit(lambda: 1 / 0)
    assert measure.os.environ["STAKES_JIT"] == "1"


@pytest.mark.skipif(importlib.util.find_spec("emukit") is not None, reason="it is here")
def test_a_peer_that_is_absent_says_so():
    found, note = speed_of_peers.asked(sys.executable, "emukit", speed_of_peers.variance(3, 2, 2, 1).arrays)
    assert found is None
    assert note.startswith("ModuleNotFoundError")


def test_peers_are_left_out_with_a_note_and_ours_stays(monkeypatch):
    monkeypatch.setattr(speed_of_peers, "in_child", lambda job, *arguments: job(*arguments))
    found = list(speed_of_peers.rows(measure.Settings(quick=True, repeats=2)))
    absent = [row for row in found if row.seconds is None and "left out: no --python" in row.job]
    assert [row.job.split()[1] for row in absent] == ["botorch", "emukit", "scikit-activeml", "baal"]
    assert {row.job for row in found} >= {"variance: stakes, not compiled", "EPIG: stakes, not compiled"}


def test_expected_errors_of_modal_come_back_in_the_order_of_the_candidates(monkeypatch):
    """modAL gives positions, best first, and their errors; it is not installed here, as it wants an old numpy."""

    class Learner:
        def __init__(self, estimator, X_training, y_training):
            self.model = estimator.fit(X_training, y_training)

    def reduction(learner, rows, loss, n_instances):
        assert (loss, n_instances, len(rows), learner.model.n_estimators) == ("binary", 3, 3, 2)
        return np.array([2, 0, 1]), np.array([0.1, 0.2, 0.3])

    monkeypatch.setitem(sys.modules, "modAL", ModuleType("modAL"))
    monkeypatch.setitem(sys.modules, "modAL.models", SimpleNamespace(ActiveLearner=Learner))
    monkeypatch.setitem(sys.modules, "modAL.expected_error", SimpleNamespace(expected_error_reduction=reduction))
    task = {"trees": 2, "random_state": 0, "rows": np.eye(4), "labels": np.array([0, 1, 0, 1])}
    scores = peer_jobs.JOBS["modAL expected error"](task)(np.zeros((3, 4)))
    np.testing.assert_array_equal(scores, [-0.2, -0.3, -0.1])


def test_an_interpreter_that_is_not_there_is_refused(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["peers", "--quick", "--python", "nowhere/python", "--folder", str(tmp_path)])
    assert "there is none at 'nowhere/python'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_peer_is_scaled_to_all_candidates_and_distinguished():
    task = speed_of_peers.epig(*Shape(8, 3, 5, 2))
    ours = task.ours()
    found = {"scores": ours[:4], "seconds": 2.0, "megabytes": 1.0, "version": "1.0"}
    row = speed_of_peers._row("baal", task, ours[:4], 0.5, found)
    assert (row.seconds, row.ratio, row.error, row.peak_megabytes) == (4.0, 8.0, 0.0, 1.0)
    assert row.job == "EPIG: baal 1.0, Spearman 1.000000, from 4 candidates"


def test_the_task_of_peers_is_the_belief_that_we_score():
    task = speed_of_peers.epig(*Shape(6, 3, 5, 2))
    belief = CategoricalEnsemble(task.arrays["candidates"], task.arrays["contexts"])
    np.testing.assert_array_equal(task.ours(), score(LogLoss(), belief))


def test_without_a_gpu_it_is_reported_that_nothing_was_timed():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (row,) = gpu_gaussian.rows(measure.Settings(quick=True))
    assert row.seconds is None
    assert "no GPU" in row.job


def test_processes_on_a_device_score_as_those_of_numpy(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(gpu_gaussian, "BLOCK", 64)
    found = list(gpu_gaussian.table("cpu", gpu_gaussian.Shape(20, 150, 10, 2), 1))
    errors = [row.error for row in found if row.error is not None]
    assert len(errors) == 4
    assert max(errors[:2]) < 1e-9
    assert max(errors[2:]) < 1e-3
    assert sum("as NumPy picks them" in row.job for row in found) == 2


SCREENED = {
    ("votes", "costs"): (700, 60),
    ("class probabilities", "costs"): (700, 250),
    ("Gaussian process", "absolute error"): (700, 500),
}


@pytest.mark.parametrize(("kind", "name"), SCREENED)
def test_rows_that_are_screened_are_worth_nearly_what_the_best_are(kind, name):
    """And no less than the worst case on the page, docs/large_pools.md, but for what a smaller pool costs."""
    fit, losses, *_ = screening.KINDS[kind]
    found = [screening._case(fit, losses[name], *SCREENED[kind, name], labels, 0) for labels in (60, 300)]
    shares = [(share, drawn) for share, drawn, _ in filter(None, found)]
    page = (Path(__file__).parents[1] / "docs" / "large_pools.md").read_text()
    median, worst = map(float, re.search(rf"^\| {kind}, {name} \| (\S+) \| (\S+) \|", page, re.MULTILINE).groups())
    assert 0.9 <= worst <= median <= 1.0
    assert shares
    assert all(worst - 0.05 <= share <= 1.0 + 1e-6 for share, _ in shares)
    assert all(drawn < share for share, drawn in shares)


def test_honest_worths():
    """All losses of members and votes, and how much of the error is of drawing labels."""
    found = list(honest.rows(measure.Settings(quick=True, repeats=1)))
    assert {row.job for row in found if row.sizes == str(honest.QUICK[0])} == {
        "bare product",
        *(f"{name} of {kind}" for name in honest.losses(2) for kind in ("members", "votes")),
    }
    assert all(row.error is None or 0 <= row.error <= 1.5 for row in found)


def test_mixtures(monkeypatch):
    monkeypatch.setattr(mixtures, "QUICK", mixtures.Shape(3, 8, 4))
    monkeypatch.setattr(mixtures, "_CALLS", 1)
    found = list(mixtures.rows(measure.Settings(quick=True, repeats=1)))
    assert {row.job.rpartition(", ")[0] for row in found} >= set(mixtures.LOSSES)
    assert all(row.error < 1e-6 for row in found if row.error is not None)
    assert sum(row.job.startswith("small: ") for row in found) == len(mixtures.LOSSES)
    assert all(row.seconds > 0 for row in found)


def test_the_table_that_suggest_is_timed_on_has_labels_first(tmp_path):
    for target in ("y", "kind"):
        lines = suggest.written(tmp_path, target, open_rows=4).read_text().splitlines()
        cells = [line.split(",")[-1] for line in lines[1:]]
        assert len(cells) == suggest.LABELLED + 4
        assert all(cells[: suggest.LABELLED])
        assert not any(cells[suggest.LABELLED :])


def test_suggest_is_timed_in_turns_and_the_least_counts(monkeypatch, capsys):
    calls = []

    def seconds(*given):
        calls.append(given[-1])
        return (4.0 if given[-1] == "old" else 6.0) + (len(calls) <= 2)

    monkeypatch.setattr(suggest, "seconds_of", seconds)
    suggest.main(["--before", "old", "--now", "new", "--repeats", "2"])
    assert calls[:4] == ["old", "new", "old", "new"]
    assert capsys.readouterr().out.count("| 1.5 |") == len(suggest.JOBS)


def test_what_a_fresh_process_costs_is_reported_beside_scikit_learn_alone(monkeypatch):
    ran = []

    def seconds(arguments, more=None):
        ran.append((arguments, more))
        return 1.0 if more is None else 3.0

    monkeypatch.setattr(startup, "process_seconds", seconds)
    found = {row.job: row.ratio for row in startup.rows(measure.Settings(quick=True, repeats=2))}
    assert {"import stakes", "import stakes; rank", "stakes --version", "stakes suggest"} < found.keys()
    loops = {job for job in found if job.startswith("first score of")}
    assert len(loops) == (4 if importlib.util.find_spec("numba") else 0)
    assert {found[job] for job in loops} <= {3.0}
    for code in {arguments[1] for arguments, _ in ran if arguments[0] == "-c"}:
        compile(code, "startup", "exec")


def test_the_first_ranking_runs_in_a_process_of_its_own():
    assert measure.process_seconds(("-c", startup._RANKED)) > 0.0
    with pytest.raises(SystemExit, match="ZeroDivisionError"):
        measure.process_seconds(("-c", "1 / 0"))


def test_a_suggestion_is_a_command_of_its_own(tmp_path):
    table = suggest.written(tmp_path, "y", open_rows=3)
    target, *options = suggest.JOBS["squared error"]
    assert suggest.seconds_of(table, target, options, None) > 0
    with pytest.raises(SystemExit, match="no-such-loss"):
        suggest.seconds_of(table, target, ["--loss", "no-such-loss"], None)


@pytest.mark.parametrize(
    ("benchmark", "jobs"),
    [
        (batches, {"log loss of votes", "zero-one of members", "suggest one row, to the fit of the model"}),
        (normals, {"squared error", "threshold decision", "rank of a forest"}),
        (small, {"log loss of members", "weight of eight points of a process"}),
        (soft, {"members: plain log loss", "trees: zero-one, not compiled"}),
    ],
)
def test_benchmarks_of_batches_and_of_normals_run_in_small(benchmark, jobs, monkeypatch):
    monkeypatch.setattr(small, "_CALLS", 2)
    found = {row.job: row for row in benchmark.rows(measure.Settings(quick=True, repeats=1))}
    assert jobs <= found.keys()
    assert all(found[job].ratio > 0 for job in jobs)


def test_the_guard_names_what_fell_and_what_is_gone(tmp_path):
    path = tmp_path / "ratios.json"
    assert guard.stored(path) == {}
    rows = [Row("a", "N=1", 1.0, 2.0), Row("b", "N=1", 1.0, 3.0), Row("memory", "N=1", 1.0)]
    guard.store({"one": guard.ratios(rows)}, path)
    guard.store({"two": {"c, N=1": 1.0}}, path)
    before = guard.stored(path)
    assert before == {"one": {"a, N=1": 2.0, "b, N=1": 3.0}, "two": {"c, N=1": 1.0}}
    assert guard.fallen("one", before["one"], {"a, N=1": 2.9, "b, N=1": 1.0}) == []
    assert guard.fallen("one", before["one"], {"a, N=1": 3.1}) == [
        "one: a, N=1: 3.1 times its reference, was 2",
        "one: b, N=1: is gone",
    ]


def test_the_guard_ends_with_an_error_where_something_fell(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(small, "rows", lambda settings: [Row("log loss of members", "N=10 M=5", 1e-4, 8.0)])
    monkeypatch.setattr(guard, "stored", lambda: {"small": {"log loss of members, N=10 M=5": 1e-9}})
    arguments = ["guard", "--quick", "--repeats", "1", "--folder", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    assert "small: log loss of members, N=10 M=5" in capsys.readouterr().out
    monkeypatch.setattr(guard, "stored", lambda: {"small": {"log loss of members, N=10 M=5": 1e9}})
    main(arguments)
    assert "Nothing fell: small." in capsys.readouterr().out
    with pytest.raises(SystemExit, match="--store wants the names"):
        main(["guard", "--store"])


def test_a_cluster_is_measured_by_its_processes(tmp_path):
    """What is printed of a run, and the files that it reads; a run itself takes a cluster (tests/ranking)."""
    run = cluster.Run((3, 1), 20.0, 30.0, 500_000, 300.0, (410.0, 420.0))
    found = {row.job: row for row in cluster.lines(run, 1_000_000, 1.1)}
    assert found["rank: microseconds of a processor for each row"].ratio == pytest.approx(30.0)
    assert found["client: bytes sent for each row"].ratio == pytest.approx(0.5)
    assert found["worker, the larger of two"].peak_megabytes == 420.0
    pytest.importorskip("pyarrow", reason="files of Parquet need pyarrow")
    pool = open_pool(cluster.saved(tmp_path, 1000), plain=True)
    assert (pool.n_rows, pool.take(np.arange(2)).shape) == (1000, (2, cluster.COLUMNS))
    assert len(cluster.fitted().estimators_) == cluster.TREES
