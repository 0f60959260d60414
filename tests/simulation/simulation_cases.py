"""Tiny models and data that the tests of simulations share; a module, so that other processes can import them."""

import os
import signal
import time

import numpy as np
from sklearn.base import BaseEstimator

from stakes import CategoricalEnsemble, CostMatrix, ExponentialWeight, GaussianBelief, SquaredError
from stakes.simulation import simulate


class BayesianLine(BaseEstimator):
    """y = x w + noise, w ~ N(0, prior)."""

    def __init__(self, noise=0.1, prior=1.0, pause=0.0, random_state=None):
        self.noise, self.prior, self.pause, self.random_state = noise, prior, pause, random_state

    def fit(self, X, y):
        time.sleep(self.pause)
        X = np.asarray(X)
        self.covariance_ = np.linalg.inv(X.T @ X / self.noise + np.eye(X.shape[1]) / self.prior)
        self.mean_ = self.covariance_ @ X.T @ y / self.noise
        return self

    def predict(self, X):
        return np.asarray(X) @ self.mean_

    def belief(self, pool, contexts):
        pool, contexts = np.asarray(pool), np.asarray(contexts)
        variance, candidate_variance = (
            np.sum((rows @ self.covariance_) * rows, axis=1) + self.noise for rows in (contexts, pool)
        )
        covariance = pool @ self.covariance_ @ contexts.T
        return GaussianBelief(contexts @ self.mean_, variance, candidate_variance, covariance)


class Committee(BaseEstimator):
    """Members fitted to resampled rows: p(c | x) ~ (n_c + 1) exp(-|x - centre_c|^2 / 2); all classes are kept."""

    def __init__(self, classes=("a", "b"), members=6, random_state=None):
        self.classes, self.members, self.random_state = classes, members, random_state

    def fit(self, X, y):
        rng, y = np.random.default_rng(self.random_state), np.asarray(y)
        self.members_ = []
        for _ in range(self.members):
            rows = rng.integers(len(y), size=len(y))
            indicators = (y[rows][:, None] == np.asarray(self.classes)).astype(float)  # [n, C]
            counts = indicators.sum(axis=0) + 1.0
            self.members_.append((counts, indicators.T @ np.asarray(X)[rows] / counts[:, None]))
        return self

    def belief(self, pool, contexts):
        return CategoricalEnsemble(self._probabilities(pool), self._probabilities(contexts))

    def _probabilities(self, rows):
        return np.stack([self._member(np.asarray(rows), *member) for member in self.members_], axis=1)

    @staticmethod
    def _member(rows, counts, centres):
        logits = np.log(counts) - ((rows[:, None, :] - centres) ** 2).sum(axis=2) / 2.0
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)


class DiesElsewhere(BayesianLine):
    """A line whose fit kills every process but the one that made it, as the system does where memory is short."""

    def __init__(self, noise=0.1, prior=1.0, pause=0.0, random_state=None, home=None):
        super().__init__(noise, prior, pause, random_state)
        self.home = home

    def fit(self, X, y):
        if os.getpid() != self.home:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


def line_data(n=60, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) + 0.3 * rng.normal(size=n)


def class_data(n=80, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b", "c"], size=n, p=[0.6, 0.3, 0.1])
    centres = {"a": (0, 0), "b": (2, 0), "c": (0, 2)}
    return np.asarray([centres[each] for each in labels]) + rng.normal(size=(n, 2)), labels


WEIGHTED = SquaredError(weight=ExponentialWeight(1.0))
COSTS = CostMatrix([[0, 1, 1], [1, 0, 1], [8, 8, 0]])


def lines(**arguments):
    given = {"n": 3, "runs": 2, "n_initial": 3, **arguments}
    return simulate(given.pop("model", BayesianLine()), given.pop("loss", WEIGHTED), *line_data(), **given)


def committees(**arguments):
    given = {"n": 4, "runs": 2, **arguments}
    model = Committee(classes=("a", "b", "c"))
    return simulate(given.pop("model", model), given.pop("loss", COSTS), *class_data(), **given)


def same(a, b):
    """Whether two simulations agree to the last bit (but for times)."""
    keep = ("strategies", "losses", "acquired", "bought", "initial", "classes", "settings", "versions")
    return all(a.to_dict()[name] == b.to_dict()[name] for name in keep)


def breaks_on_demand(belief, _, random_state):
    """A strategy that fails while the environment says so: in the middle of a simulation, as a kill would."""
    scores = random_state.random(belief.n_candidates)
    if os.environ.get("STAKES_TEST_BREAK") and scores[0] < 0.2:
        raise RuntimeError("killed")
    return scores
