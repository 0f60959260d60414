"""Other ways to choose, on a small table; and what their study says on the page."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from experiments import choices
from experiments.__main__ import main
from experiments.choices import BASES, STARTS, VARIANTS, curve, stacked, with_contexts
from experiments.labels_saved.beliefs import DEFAULT
from experiments.labels_saved.compiled import Process
from experiments.labels_saved.problems import problems
from experiments.labels_saved.splits import split
from experiments.labels_saved.tables import Table
from stakes import CategoricalEnsemble, CostMatrix, score

ROOT = Path(__file__).parents[2]


def blobs(rows=90, n_classes=3):
    generator = np.random.default_rng(0)
    targets = np.arange(rows) % n_classes
    features = generator.normal(size=(rows, 3)) + 1.2 * targets[:, None]
    return Table("blobs", "classes", features, targets, np.zeros(3, dtype=bool), tuple("abc"[:n_classes]))


@pytest.mark.parametrize("variant", [*BASES, *VARIANTS], ids=lambda each: each.name)
def test_every_variant_buys_labels_and_measures_its_losses(variant):
    table = blobs()
    for loss in variant.losses:
        found = curve(variant, table, 100, problems(table)[loss], bought=2)
        assert found.shape == (3,)
        assert np.isfinite(found).all()


def test_contexts_are_the_first_of_those_of_the_yardstick_and_then_the_others():
    trial = split(blobs(rows=400), 0, 5)
    few, every = with_contexts(60)(trial), with_contexts(None)(trial)
    np.testing.assert_array_equal(few.contexts, trial.contexts[:60])
    assert set(every.contexts) == {*trial.initial, *trial.pool}


def test_a_steep_soft_minimum_is_the_minimum_and_a_soft_one_lets_no_label_be_worth_nothing():
    generator = np.random.default_rng(1)
    belief = CategoricalEnsemble(*generator.dirichlet([1.0, 1.0], size=(2, 8, 60)))
    costs = np.asarray([[0.0, 10.0], [1.0, 0.0]])
    expected = np.asarray(score(CostMatrix(costs), belief))
    np.testing.assert_allclose(choices.soft_reductions(belief, costs, 1e4), expected, atol=1e-3)
    assert (choices.soft_reductions(belief, costs, 2.0) > 0).all()


def test_a_log_loss_takes_over_where_single_worths_are_small():
    table = blobs()
    process = Process(table, split(table, 0, 2), 0, problems(table), 2)
    fit, problem = process.fitted((), DEFAULT), problems(table)["cost of a miss"]
    by_log_loss = int(fit.pool[np.argmax(fit.reductions(process.losses["log loss"])[0])])
    assert choices.by_log_loss_below(np.inf)(process, fit, problem) == by_log_loss
    assert choices.by_log_loss_below(0.0)(process, fit, problem) == choices.by_reduction(process, fit, problem)


def test_logistic_members_are_logistic_regressions():
    table = blobs(n_classes=2)
    rows, targets = table.X[:40], table.y[:40]
    found = np.zeros((5, 1, 2))
    choices.fit_logistic(rows @ rows.T + 1.0, table.X[40:45] @ rows.T + 1.0, targets, np.ones((1, 40)), found)
    features = np.column_stack([rows, np.ones(40)])  # the intercept has the ridge, too
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10).fit(features, targets)
    expected = model.predict_proba(np.column_stack([table.X[40:45], np.ones(5)]))
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


def test_stacking_weighs_what_foretells_labels_that_were_left_out():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(60, 6))
    targets = (rows.sum(axis=1) > 0).astype(int)  # a plane: logistic regression's own
    stack = stacked(rows, targets, 2, 0, np.asarray([0.5, 0.5]), 0.03)
    assert stack.weights.sum() == pytest.approx(1.0)
    assert stack.weights[2] > 0.5
    members, shares = stack.members(rows[:4])
    assert shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(members.sum(axis=2), 1.0)


def test_k_centre_goes_for_the_corners():
    rows = np.asarray([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    assert {2, 3} <= set(choices.by_k_centre(rows, 3, 0))


def test_the_study_goes_on_where_it_was_and_prints_its_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(choices, "load", lambda name: blobs())
    few = ["choices", "--tables", "wine", "--labels", "1", "--variants", "60 contexts", "--results", str(tmp_path)]
    main([*few, "--runs", "1"])
    monkeypatch.setattr(choices, "split", None)  # nothing is left to do
    main([*few, "--runs", "1"])
    out = capsys.readouterr().out
    assert out.count("| 60 contexts | cost of a miss | 1 |") == 2
    assert all(f"first labels: {name}" in out for name in list(STARTS)[1:])


def test_the_page_has_the_table_of_the_results():
    assert choices.report(ROOT / choices.FOLDER) in (ROOT / "docs" / "does_it_help.md").read_text()
