"""Compiled runs of classes beside those of the product."""

import numpy as np
import pytest

from experiments.labels_saved import command, rivals
from experiments.labels_saved.beliefs import DEFAULT, REFERENCE
from experiments.labels_saved.compiled import BALD, Process, carry_out_compiled, realised
from experiments.labels_saved.loop import LOSS, RANDOM, carry_out, keys_of, settings_of
from experiments.labels_saved.problems import problems
from experiments.labels_saved.splits import split
from experiments.labels_saved.store import Key, Store
from experiments.labels_saved.tables import Table
from stakes import CategoricalEnsemble
from stakes.baselines import BASELINES
from stakes.simulation.strategies import reductions

BOUGHT = 4


def blobs(rows=120, n_classes=3, whole=False):
    """A table of classes; of whole numbers, in which equal rows have other labels."""
    generator = np.random.default_rng(0)
    targets = np.arange(rows) % n_classes
    features = generator.normal(size=(rows, 3)) + 1.0 * targets[:, None]
    features = np.rint(features[:, :2]) if whole else features
    return Table("blobs", "classes", features, targets, np.zeros(features.shape[1], bool), tuple("abcd"[:n_classes]))


def process(table, run=0):
    return Process(table, split(table, run, BOUGHT), run, problems(table), BOUGHT)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same study by the product and by compiled loops."""
    table, stores = blobs(), [Store(tmp_path_factory.mktemp(name)) for name in ("product", "compiled")]
    for belief in (REFERENCE, DEFAULT):
        carry_out(table, belief, stores[0], runs=3, bought=BOUGHT, strategies=[RANDOM])
        carry_out_compiled(table, belief, stores[1], runs=3, bought=BOUGHT, strategies=[RANDOM, LOSS, "margin"])
    return table, *(store.records(table.name, settings_of(table, BOUGHT)) for store in stores)


@pytest.mark.parametrize("belief", [REFERENCE, DEFAULT])
def test_random_choice_buys_the_same_rows_and_measures_the_same_up_to_the_draws_of_trees(both, belief):
    table, product, compiled = both
    ours, theirs = (each[Key(table.name, belief, RANDOM)] for each in (compiled, product))
    np.testing.assert_array_equal(ours.acquired, theirs.acquired)
    np.testing.assert_allclose(ours.losses["log loss"], theirs.losses["log loss"], rtol=0.15)
    np.testing.assert_allclose(ours.log_density, theirs.log_density, atol=0.1)
    np.testing.assert_allclose(ours.joint_log_density, theirs.joint_log_density, atol=0.2)
    assert ours.losses["log loss"].mean() == pytest.approx(theirs.losses["log loss"].mean(), rel=0.04)


def test_under_the_reference_only_random_choice_is_run(both):
    table, _, compiled = both
    assert [key.strategy for key in compiled if key.belief == REFERENCE] == [RANDOM]
    assert {key.driver for key in compiled if key.strategy == LOSS} == set(problems(table))


def test_promises_are_those_of_the_choice(both):
    table, _, compiled = both
    record = compiled[Key(table.name, DEFAULT, LOSS, "cost of a miss")]
    assert (record.promised >= 0).all()
    assert np.isnan(compiled[Key(table.name, DEFAULT, RANDOM)].promised).all()


@pytest.mark.parametrize("whole", [False, True])
def test_scores_are_those_of_the_product_under_the_same_belief(whole):
    table = blobs(whole=whole)
    fit = process(table).fitted((), DEFAULT)
    assert fit.trees.pure != whole
    for problem in problems(table).values():
        scores, worth = fit.reductions(problem)
        expected, log_factor = reductions(problem.loss, fit.belief)
        np.testing.assert_allclose(scores / scores.max(), expected / expected.max(), rtol=1e-5, atol=1e-7)
        assert worth == pytest.approx(float(expected.max() * np.exp(log_factor)), rel=1e-5)
    for rival in ("margin", "predictive entropy", BALD, "predictive variance"):
        np.testing.assert_allclose(
            fit.scores(rival)[0], BASELINES[rival](fit.belief, np.random.default_rng(0)), atol=1e-5
        )


def test_losses_are_those_of_the_yardstick():
    table, probabilities = blobs(), np.random.default_rng(1).dirichlet(np.ones(3), size=50)
    targets = table.y[:50]
    for problem in problems(table).values():
        expected = problem(CategoricalEnsemble(probabilities[:1, None], probabilities[:, None]), targets)
        assert realised(problem, probabilities, targets) == pytest.approx(expected, rel=1e-12)


def test_with_two_classes_margin_entropy_and_variance_are_one_run(tmp_path, monkeypatch):
    table, made = blobs(n_classes=2), []
    record = Process.record
    monkeypatch.setattr(Process, "record", lambda self, key: made.append(str(key)) or record(self, key))
    names = ["margin", "predictive entropy", "predictive variance"]
    carry_out_compiled(table, DEFAULT, Store(tmp_path), runs=1, bought=BOUGHT, strategies=names)
    assert made == ["margin"]
    found = Store(tmp_path).records(table.name)
    assert {key.strategy for key in found} == set(names)


def test_a_rival_that_is_not_there_is_left_out_with_the_reason(tmp_path, monkeypatch):
    def refuse(*_):
        raise rivals.NotFinishedError("not today")

    monkeypatch.setattr("experiments.labels_saved.compiled.expected_error_reduction", refuse)
    table, name = blobs(), rivals.ERROR_REDUCTION
    found = carry_out_compiled(table, DEFAULT, Store(tmp_path), runs=2, bought=BOUGHT, strategies=[name])
    assert found == {f"{name} on blobs": "not today"}


def test_the_command_takes_compiled_loops(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "load", lambda name: blobs())
    arguments = ["--tables", "wine", "--runs", "2", "--labels", "3", "--strategies", RANDOM, LOSS, "--compiled"]
    command.main([*arguments, "--store", str(tmp_path / "store"), "--results", str(tmp_path / "results")])
    assert "default, own loss" in capsys.readouterr().out
    assert len(keys_of(blobs(), DEFAULT)) > 4  # others were not asked for
