"""Runs that advance together against runs that go one by one."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from stakes import (
    BayesianProcess,
    ExponentialWeight,
    Pinball,
    SquaredError,
    ThresholdDecision,
    simulate,
)
from stakes.acquisition import fallback_scores, score
from stakes.exceptions import StakesError
from stakes.models import DefaultModel
from stakes.simulation import Trial, simulate_trials

torch = pytest.importorskip("torch", reason="torch is an extra")
bulk = pytest.importorskip("stakes.simulation.bulk")
LabelMoments = pytest.importorskip("stakes.models.processes_on_device").LabelMoments

LOSS = SquaredError(ExponentialWeight(1.0))


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(70, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * generator.normal(size=70)


@pytest.fixture(scope="module")
def found(data):
    return simulate(
        BayesianProcess(n_draws=8),
        LOSS,
        *data,
        n=4,
        runs=2,
        device="cpu",
        strategies=("random", "plain", "loss", "predictive variance"),
    )


def test_random_choice_buys_the_same_rows(data, found):
    alone = simulate(BayesianProcess(n_draws=2), LOSS, *data, n=4, runs=2, strategies=("random",))
    assert found.acquired[0].tolist() == alone.acquired[0].tolist()
    assert found.settings["in bulk"] is True
    assert alone.settings["in bulk"] is None


def test_losses_are_near_those_of_runs_one_by_one(data, found):
    alone = simulate(BayesianProcess(), LOSS, *data, n=4, runs=2, strategies=("random",))
    together, apart = found.curves("random"), alone.curves("random")
    assert together.shape == apart.shape == (2, 5)
    assert np.abs(np.log(together / apart)).mean() < 0.7  # other draws of hyperparameters from ten labels
    assert together[:, -1].mean() < together[:, 0].mean()
    assert set(found.losses) == {"loss", "plain"}


def test_a_row_is_bought_once_and_what_it_promises_is_kept(found):
    for strategy in found.acquired:
        assert all(len(set(rows.tolist())) == 4 for rows in strategy)
    assert np.isnan(found.promised[[0, 3]]).all()
    assert (found.promised[[1, 2]] > 0).all()
    assert found.fit_seconds.shape == (4, 2, 5)


def test_it_is_the_same_twice_and_goes_on_from_a_store(data, tmp_path):
    call = {"n": 2, "device": "cpu", "strategies": ("random", "loss"), "store": tmp_path / "kept"}
    model = BayesianProcess(n_draws=4)
    first = simulate(model, LOSS, *data, runs=2, **call)
    again = simulate(model, LOSS, *data, runs=2, **call)
    assert again.acquired.tolist() == first.acquired.tolist()
    more = simulate(model, LOSS, *data, runs=3, **call)
    assert more.acquired[:, :2].tolist() == first.acquired.tolist()
    with pytest.raises(StakesError, match="in bulk"):
        simulate(model, LOSS, *data, runs=2, **{**call, "device": None})


@pytest.mark.parametrize("loss", [SquaredError(), LOSS, ThresholdDecision(0.5, 5.0), Pinball(0.9)], ids=repr)
def test_scores_are_those_of_each_belief(loss):
    generator = np.random.default_rng(1)
    groups, candidates, contexts = 3, 5, 4
    variance, label = generator.uniform(0.5, 2.0, (groups, contexts)), generator.uniform(0.5, 2.0, (groups, candidates))
    rho = generator.uniform(-0.9, 0.9, (groups, candidates, contexts))
    covariance = rho * np.sqrt(label[..., None] * variance[:, None])
    arrays = (generator.normal(size=(groups, contexts)), variance, label, covariance, 0.1 * label)
    moments = LabelMoments(*map(torch.as_tensor, arrays))
    scores, most = bulk._reductions(loss, moments)
    for place in range(groups):
        assert scores[place].numpy() == pytest.approx(score(loss, bulk._one(moments, place)), rel=1e-5)
        assert float(most[place]) >= float(scores[place].max())


def test_where_no_label_pays_it_falls_back_as_one_run_does():
    arrays = ([[0.0]], [[1.0]], [[1.0, 1.0]], [[[0.05], [0.1]]], [[0.1, 0.1]])
    moments = LabelMoments(*(torch.as_tensor(each, dtype=torch.float64) for each in arrays))
    loss = ThresholdDecision(6.0)
    scores, most = bulk._reductions(loss, moments)
    assert float(scores.max()) <= 1e-6 * float(most)
    assert fallback_scores(loss, bulk._one(moments, 0))[1] == 64


def test_functions_choose_and_measure(data):
    seen = []

    def first(belief, loss, random_state):  # noqa: ARG001
        seen.append(belief.n_candidates)
        return np.arange(belief.n_candidates, 0, -1.0)

    call = {
        "strategies": [("first", first)],
        "metrics": {"gap": lambda belief, y: float(np.abs(belief.mean - y).mean())},
    }
    found = simulate(BayesianProcess(n_draws=4), SquaredError(), *data, n=2, runs=1, device="cpu", **call)
    pool = found.trials[0].pool
    assert found.acquired[0, 0].tolist() == pool[:2].tolist()
    assert seen == [len(pool), len(pool) - 1]
    assert (found.losses["gap"] > 0).all()


def test_trials_of_different_sizes(data):
    X, y = data

    def trial(random_state):
        rows = random_state.permutation(70)
        count = int(random_state.integers(8, 10))
        return Trial(X, y, rows[:count], rows[count:40], contexts=rows[40:50], test=rows[50:])

    found = simulate_trials(DefaultModel("real"), SquaredError(), trial, n=2, runs=3, device="cpu")
    assert found.acquired.shape == (3, 3, 2)
    for run, each in enumerate(found.trials):
        assert set(found.acquired[:, run].ravel()) <= set(each.pool)


def test_what_cannot_advance_together_is_refused(data):
    with pytest.raises(StakesError, match="BayesianRidge"):
        simulate(BayesianRidge(), SquaredError(), *data, n=2, runs=1, device="cpu")
    with pytest.raises(StakesError, match="mixture"):
        bulk.process_of(BayesianProcess(belief="mixture"))
    with pytest.raises(StakesError, match="nowhere"):
        simulate(BayesianProcess(), SquaredError(), *data, n=2, runs=1, device="nowhere")
