"""Splits are shared, curves agree with a loop written out, strategies choose what they say."""

import os
import signal

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.ensemble import BaggingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import LogLoss, SquaredError, ThresholdDecision, ZeroOne
from stakes.simulation import simulate
from stakes.simulation.problem import checked_problem, split, split_sizes
from stakes.simulation.runner import refitted
from tests.simulation.simulation_cases import (
    COSTS,
    WEIGHTED,
    BayesianLine,
    Committee,
    DiesElsewhere,
    committees,
    line_data,
    lines,
    same,
)


def posterior(X, y, noise=0.1):
    covariance = np.linalg.inv(X.T @ X / noise + np.eye(X.shape[1]))
    return covariance @ X.T @ y / noise, covariance


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_curves_against_a_loop_written_out(rate):
    X, y = line_data(n=30)
    loss = WEIGHTED if rate else SquaredError()
    found = simulate(BayesianLine(), loss, X, y, n=5, runs=2, n_initial=2, n_contexts=6, n_test=8, random_state=3)
    for run in range(2):
        parts = split(checked_problem(BayesianLine(), loss, X, y, None), (2, 6, 8), 3, run)
        labelled, pool = list(parts.initial), list(parts.pool)
        for step in range(6):
            mean, covariance = posterior(X[labelled], y[labelled])
            variance = np.sum(X @ covariance * X, axis=1) + 0.1
            answer = X @ mean + rate * variance  # the mean of a Gaussian tilted by exp(rate z)
            realised = np.mean((np.exp(rate * y) * (y - answer) ** 2)[parts.test])
            assert found.losses["loss"][2, run, step] == pytest.approx(realised, rel=1e-9)
            if step < 5:
                tilt = np.exp(rate * X @ mean + rate**2 * variance / 2)[parts.contexts]
                gains = (X[pool] @ covariance @ X[parts.contexts].T) ** 2 / variance[pool][:, None] @ tilt
                best = pool.pop(int(np.argmax(gains)))
                assert found.acquired[2, run, step] == best
                labelled.append(best)


def test_strategies_share_the_start_and_runs_differ():
    found = lines(runs=4)
    for values in found.losses.values():
        assert (values[:, :, 0] == values[:1, :, 0]).all()
        assert len(set(values[0, :, 0])) == 4


def test_parts_are_disjoint_and_stratified():
    labels = np.repeat([0, 1, 2], [170, 28, 2])
    data = checked_problem(Committee(), ZeroOne(), np.zeros((200, 1)), labels, None)
    for run in range(20):
        parts = split(data, (20, 40, 60), 0, run)
        rows = np.concatenate([parts.initial, parts.contexts, parts.test, parts.pool])
        assert sorted(rows) == list(range(200))
        assert set(labels[parts.initial]) == {0, 1, 2}
        assert abs(np.mean(labels[parts.test] == 0) - 0.85) < 0.035
        assert abs(np.mean(labels[parts.contexts] == 0) - 0.85) < 0.055


def test_fewer_initial_labels_than_classes_are_allowed():
    data = checked_problem(Committee(), ZeroOne(), np.zeros((40, 1)), np.arange(40) % 20, None)
    assert len(split(data, (5, 5, 5), 0, 0).initial) == 5


def test_default_sizes():
    X, y = line_data(n=100)
    data = checked_problem(BayesianLine(), SquaredError(), X, y, None)
    assert split_sizes(data, 30, None, None, None) == (10, 20, 30)
    large = checked_problem(Committee(), ZeroOne(), np.zeros((10_000, 1)), np.arange(10_000) % 7, None)
    assert split_sizes(large, 30, None, None, None) == (14, 200, 1000)


def test_no_row_is_bought_twice_and_rows_are_positions_in_x():
    X, y = line_data(n=40)
    X[:] = X[0]  # duplicates: only positions tell them apart
    found = simulate(BayesianLine(), SquaredError(), X, y, n=15, runs=2, n_initial=2)
    parts = [split(checked_problem(BayesianLine(), SquaredError(), X, y, None), (2, 8, 12), 0, run) for run in (0, 1)]
    for rows in found.acquired:
        for run in (0, 1):
            assert len(set(rows[run])) == 15
            assert set(rows[run]) <= set(parts[run].pool)
    assert (found.acquired[1] == found.acquired[2]).all()  # all tie: the run decides, for both alike
    assert not (found.acquired[1] == np.sort(found.acquired[1], axis=1)).all()


def test_the_whole_pool_may_be_bought():
    found = lines(n=12, n_contexts=10, n_test=35, runs=1)
    assert all(len(set(rows[0])) == 12 for rows in found.acquired)
    assert np.ptp(found.losses["loss"][:, 0, -1]) < 1e-9  # in the end all know the same


def test_one_random_state_one_result():
    assert same(committees(random_state=5), committees(random_state=5))
    assert not same(committees(random_state=5), committees(random_state=6))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
@pytest.mark.parametrize("kept", [False, True])
def test_a_killed_worker_does_not_change_the_result(tmp_path, kept):
    settings = {"model": DiesElsewhere(home=os.getpid()), "runs": 3}
    store = {"store": tmp_path / "runs"} if kept else {}
    with parallel_config(backend="loky"), pytest.warns(RuntimeWarning, match="a worker process was ended"):
        found = lines(n_jobs=2, **settings, **store)
    assert same(found, lines(**settings))
    if kept:
        assert same(found, lines(**settings, **store))  # all of it is in the store, and none of it twice


def test_a_generator_is_a_random_state():
    first, again, other = (committees(random_state=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert same(first, again)
    assert not same(first, other)


def test_progress_is_passed_to_a_function_run_by_run():
    seen = []
    lines(runs=3, progress=lambda what, share: seen.append((what, share)))
    assert seen == [("simulate", pytest.approx(done / 3)) for done in (1, 2, 3)]


def test_classes_by_name_and_missing_classes_keep_their_column():
    found = committees(n_initial=2, metrics={"error": ZeroOne()}, strategies=["loss", "margin", "random"])
    assert found.classes == ("a", "b", "c")
    assert list(found.losses) == ["loss", "error"]
    assert ((found.losses["error"] >= 0) & (found.losses["error"] <= 1)).all()


def test_a_model_that_forgets_a_class_is_refused():
    with pytest.raises(ValueError, match="a column for each of the 3 classes"):
        committees(model=Committee(classes=("a", "b")), loss=LogLoss())


def test_own_strategies_and_every_baseline_by_name():
    first = ("first row", lambda belief, loss, random_state: -np.arange(belief.n_candidates))
    found = lines(strategies=[first, "predictive variance", "predictive entropy"])
    assert found.strategies[0] == "first row"
    assert (np.diff(found.acquired[0], axis=1) > 0).all()  # the pool is in the order of positions
    assert (found.acquired[1] == found.acquired[2]).all()  # both rank by the variance


def test_where_no_label_is_worth_anything_the_fallback_ranks():
    far = ThresholdDecision(threshold=1e3)
    found = lines(loss=far, strategies=["loss", "plain"], metrics={})
    assert (found.losses["loss"] == 0).all()
    assert (found.acquired[0] == found.acquired[1]).all()  # variance reduction is what the plain objective is


@pytest.mark.parametrize("scores", [lambda n: np.full(n, np.nan), lambda n: np.zeros(n + 1)])
def test_scores_of_own_strategies_are_checked(scores):
    with pytest.raises(ValueError, match="'mine' must give one score for each of"):
        lines(strategies=[("mine", lambda belief, loss, random_state: scores(belief.n_candidates))])


def test_random_states_are_drawn_at_every_depth():
    X, y = line_data()
    model = make_pipeline(StandardScaler(), BaggingRegressor(BayesianLine(), n_estimators=2, random_state=7))
    fits = [refitted(model, X, y, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    names = ("baggingregressor__random_state", "baggingregressor__estimator__random_state")
    drawn = [[each.get_params()[name] for name in names] for each in fits]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 2
    assert model.get_params()[names[0]] == 7  # the user's model is left alone


def test_strategies_share_the_random_numbers_of_the_model():
    found = committees(
        strategies=["random", ("again", lambda belief, loss, random_state: random_state.random(belief.n_candidates))]
    )
    assert (found.acquired[0] == found.acquired[1]).all()
    assert (found.losses["loss"][0] == found.losses["loss"][1]).all()


def test_costs_lower_the_loss_they_are_about():
    found = committees(loss=COSTS, n=8)
    assert found.losses["loss"].shape == (3, 2, 9)
    assert found.acquired.shape == (3, 2, 8)
    assert np.isfinite(found.losses["plain"]).all()
    assert found.fit_seconds.shape == (3, 2, 9)
    assert found.score_seconds.shape == (3, 2, 8)


def regimes(n=300, p=10, seed=0):
    """Two regressions that share nothing; one row in seven is of the one whose targets are high and weigh most."""
    rng = np.random.default_rng(seed)
    high = rng.random(n) < 0.15
    x = np.column_stack([np.full(n, 4.0), rng.normal(size=(n, p))])
    X = np.concatenate([x * ~high[:, None], x * high[:, None]], axis=1)
    w = np.concatenate([[0.0], rng.normal(size=p) * 0.5, [1.0], rng.normal(size=p) * 0.5])
    return X, X @ w + 0.3 * rng.normal(size=n)


def test_the_loss_driven_choice_wins_where_it_must():
    """Plain choice learns the many rows of low targets, which hardly count; the weighted one those that do."""
    parts = {"n_initial": 6, "n_test": 100, "n_contexts": 40}
    found = simulate(BayesianLine(), WEIGHTED, *regimes(), n=8, runs=6, **parts)
    for rival in ("plain", "random"):
        assert found.compare("loss", rival).area.high < 0, found
    assert found.compare("loss", "plain", "plain").area.value > 0  # and pays for it where nobody looks
    assert found.verdict().startswith("After 8 labels, in 6 runs, 'loss' helps against 'plain': the loss is lower by")
