"""Hyperparameters that are chosen anew every few labels, by an estimator that keeps no state of its own."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from stakes import SquaredError, score
from stakes.models import GaussianProcess
from stakes.simulation import Trial
from tests.simulation.trial_cases import trials


class Refreshed(BaseEstimator):
    """A process whose hyperparameters are those of the first `first` labels, then of every `every` more."""

    def __init__(self, process, first=6, every=3):
        self.process, self.first, self.every = process, first, every

    def fit(self, X, y):
        known = self.first + (len(y) - self.first) // self.every * self.every
        self.process_ = clone(self.process).fit(X[:known], y[:known])
        if known < len(y):
            self.process_ = self.process_.condition(X[known:], y[known:])
        return self

    def belief(self, pool, contexts):
        return self.process_.belief(pool, contexts)


def scaled(rng):
    """Inputs standardised on initial rows and pool, targets by the initial labels; contexts are the test rows."""
    X = rng.uniform(-2.0, 2.0, size=(40, 2))
    y = 3.0 * np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=40)
    initial, test, pool = np.split(rng.permutation(40), [6, 16])
    known = np.concatenate([initial, pool])
    X = (X - X[known].mean(axis=0)) / X[known].std(axis=0)
    y = (y - y[initial].mean()) / y[initial].std()
    return Trial(X, y, initial, pool, test, test)


@pytest.mark.parametrize("rules", ["text", "published"])
def test_hyperparameters_refreshed_every_few_labels_against_a_loop_with_state(rules):
    process = GaussianProcess(rules=rules)
    found = trials(scaled, model=Refreshed(process), strategies=["loss"], n=7)
    for run, trial in enumerate(found.trials):
        labelled, values, refreshes = trial.initial.tolist(), None, 0
        for step in range(8):
            X, y = trial.X[labelled], trial.y[labelled]
            if step % 3 == 0:
                values, refreshes = clone(process).fit(X, y).hyperparameters_, refreshes + 1
            slow = GaussianProcess(values).fit(X, y)
            pool = np.setdiff1d(trial.pool, labelled)
            errors = trial.y[trial.test] - slow.predict(trial.X[trial.test])
            assert found.losses["loss"][0, run, step] == pytest.approx(np.mean(errors**2), rel=1e-8)
            labelled.append(pool[np.argmax(score(SquaredError(), slow.belief(trial.X[pool], trial.X[trial.test])))])
        assert refreshes == 3
        assert found.acquired[0, run].tolist() == labelled[6:-1]


def test_targets_and_inputs_have_the_scale_of_the_run():
    for trial in trials(scaled, runs=3, strategies=["random"], model=GaussianProcess()).trials:
        known = np.concatenate([trial.initial, trial.pool])
        np.testing.assert_allclose(trial.X[known].std(axis=0), 1.0)
        assert trial.y[trial.initial].std() == pytest.approx(1.0)
