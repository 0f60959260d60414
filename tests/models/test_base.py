"""Contexts are asked for once, however many parts a pool comes in, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import LogLoss, SquaredError, rank
from stakes.models import EnsembleOf, GaussianProcess, belief_of
from stakes.models.base import Request

RNG = np.random.default_rng(0)
ROWS, OTHERS = RNG.normal(size=(60, 3)), RNG.normal(size=(12, 3))
CLASSES, REALS = (ROWS[:, 0] > 0).astype(int), ROWS @ [1.0, -1.0, 0.5]
MODELS = {
    "forest": RandomForestClassifier(5, random_state=0).fit(ROWS, CLASSES),
    "soft forest": RandomForestClassifier(5, max_depth=1, random_state=0).fit(ROWS, CLASSES),
    "regression forest": RandomForestRegressor(20, oob_score=True, random_state=0).fit(ROWS, REALS),
    "voting": VotingClassifier([("a", LogisticRegression()), ("b", LogisticRegression(C=0.1))], voting="soft").fit(
        ROWS, CLASSES
    ),
    "process": GaussianProcess().fit(ROWS, REALS),
    "regressor": GaussianProcessRegressor(alpha=0.1).fit(ROWS, REALS),
    "pipeline": make_pipeline(StandardScaler(), GaussianProcess()).fit(ROWS, REALS),
    "outputs": MultiOutputRegressor(BayesianRidge()).fit(ROWS, np.stack([REALS, -2.0 * REALS], axis=1)),
}


@pytest.mark.parametrize("name", MODELS)
def test_beliefs_are_the_same_with_what_was_kept(name):
    keep: dict[object, object] = {}
    for part in (slice(0, 20), slice(20, 33)):
        plain, kept = (belief_of(MODELS[name], ROWS[part], OTHERS, **more) for more in ({}, {"keep": keep}))
        for one, other in zip(vars(plain).values(), vars(kept).values(), strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, other)


def test_a_function_is_asked_of_contexts_once():
    asked = []

    def members(rows):
        asked.append(len(rows))
        p = 1 / (1 + np.exp(-np.outer([1.0, 2.0, -1.0], rows[:, 0])))
        return np.stack([p, 1 - p], axis=2)

    ranking = rank(EnsembleOf(members), LogLoss(), ROWS, contexts=OTHERS[:11], n=60, chunk=16)
    assert asked.count(11) == 2  # once for all chunks of the pool, and once with the rows that are told of
    assert ranking.indices == rank(EnsembleOf(members), LogLoss(), ROWS, contexts=OTHERS[:11], n=60, chunk=1000).indices


def test_models_within_models_keep_apart():
    request = Request(keep={})
    first, second = object(), object()
    assert request.of(first).kept("x", lambda: 1) == 1
    assert request.of(second).kept("x", lambda: 2) == 2
    assert request.of(first).kept("x", lambda: 3) == 1
    assert Request().kept("x", lambda: 4) == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_rankings_are_the_same_for_any_chunk(jobs):
    for name in ("process", "pipeline"):
        answers = [
            rank(MODELS[name], SquaredError(), ROWS, contexts=OTHERS, n=5, chunk=c, n_jobs=jobs) for c in (7, 60)
        ]
        assert answers[0].indices == answers[1].indices
