"""The presets differ where the paper's text and its published numbers do, and nowhere else by accident."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from experiments.__main__ import STUDIES, chosen
from experiments.paper import classification, linex, regression, table2
from experiments.paper.study import Place
from tests.experiments.paper.paper_cases import drawn


def differing(published, text):
    """Names of settings that are not the same in both."""
    theirs = asdict(text)
    return {name for name, value in asdict(published).items() if value != theirs[name]} - {"preset"}


def pairs(studies, key):
    published = {key(each): each for each in studies if each.preset == "published"}
    return [(published[key(each)], each) for each in studies if each.preset == "text"]


def test_table_2_differs_in_its_problem_and_in_what_is_charged():
    assert differing(table2.PUBLISHED, table2.TEXT) == {"reading", "answer", "divided"}
    assert table2.PUBLISHED.problem.fixed_start == (-1.0, 1.0)
    assert table2.TEXT.problem.n_start == 3


def test_regression_differs_in_units_contexts_rules_and_how_often_they_are_looked_at():
    common = {"own_contexts", "unit", "every", "rules", "answer", "divided"}
    for published, text in pairs(regression.STUDIES, lambda each: each.dataset):
        assert differing(published, text) == common | ({"nu"} if text.dataset == "yacht" else set())
        assert (published.every, text.every) == (5, 3)
        assert (published.n_initial, published.budget, published.runs) == (10, 20, 100)


def test_linex_differs_in_its_start_contexts_and_rules():
    for published, text in pairs(linex.STUDIES, lambda each: each.model):
        assert differing(published, text) == {"n_initial", "own_contexts", "rules"}
        assert (published.n_initial, text.n_initial) == (5, 10)


def test_classification_differs_in_runs_contexts_the_order_of_vowels_and_what_shares_are_of():
    for published, text in pairs(classification.STUDIES, lambda each: (each.dataset, each.part)):
        own = {"vehicle": set(), "landsat": {"contexts"}, "vowel": {"order"}}
        assert differing(published, text) == {"runs", "count_initial"} | own[text.dataset]
        assert sorted(text.weights)[-2:] == [50.0, 50.0]
        assert sum(text.weights) == 100.0 + len(text.weights) - 2


def test_names_are_unlike_and_presets_can_be_chosen():
    names = [each.name for each in chosen("all", None)]
    assert len(set(names)) == len(names) == sum(map(len, STUDIES.values()))
    assert [each.name for each in chosen("table2", "text")] == ["table2-text"]
    assert [each.name for each in chosen("linex-estate-text-exact", None)] == ["linex-estate-text-exact"]
    assert chosen("report", None) == []


@pytest.mark.parametrize(
    ("unit", "mean", "sd"), [("standard", 0.0, 1.0), ("over sd", None, 1.0), ("native", None, None)]
)
def test_targets_are_in_the_unit_of_the_initial_labels(unit, mean, sd):
    trial, native = drawn(unit), drawn("native")
    initial = trial.y[trial.initial]
    assert mean is None or initial.mean() == pytest.approx(mean, abs=1e-12)
    assert sd is None or initial.std() == pytest.approx(sd)
    slope = np.polyfit(native.y, trial.y, 1)
    np.testing.assert_allclose(np.polyval(slope, native.y), trial.y, atol=1e-9)


@pytest.mark.parametrize("own_contexts", [False, True])
def test_the_parts_of_a_run_share_no_row_but_contexts_may_be_the_tests(own_contexts):
    trial = drawn(own_contexts=own_contexts)
    assert (trial.contexts is trial.test or np.array_equal(trial.contexts, trial.test)) != own_contexts
    parts = [trial.initial, trial.pool, trial.test, *([trial.contexts] if own_contexts else [])]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(60))
    known = np.concatenate([trial.initial, trial.pool])
    np.testing.assert_allclose(trial.X[known].std(axis=0), 1.0)


def test_stratified_parts_have_as_many_rows_of_each_class():
    target = np.repeat([0, 1, 2], [20, 14, 30])
    made = classification.StratifiedSplits(np.arange(64.0)[:, None], target, (3, 4, 5))
    trial = made.draw(np.random.default_rng(0))
    for rows, size in ((trial.initial, 3), (trial.contexts, 4), (trial.test, 5)):
        assert np.bincount(target[rows]).tolist() == [size] * 3
    everything = np.concatenate([trial.initial, trial.contexts, trial.test, trial.pool])
    assert np.array_equal(np.sort(everything), np.arange(64))


def test_a_shortened_study_is_the_same_but_for_its_size():
    for study in chosen("all", None):
        assert differing(study, study.shortened()) <= {"budget", "draws", "trees", "contexts"}
        assert study.shortened().budget <= 3
        assert study.shortened().name == study.name


def test_a_store_has_a_folder_for_each_study(tmp_path):
    assert Place(None, tmp_path).settings("a")["store"] == tmp_path / "a"
    assert Place(None, None).settings("a")["store"] is None
