"""Contexts are asked for once, however many parts a pool comes in, and nothing else changes."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import LogLoss, SquaredError, rank
from stakes.models import (
    EnsembleOf,
    GaussianProcess,
    base,
    belief_of,
    bootstrap,
    default_model,
    inspection,
    labelled,
    prepare_belief,
)
from stakes.models.base import is_one_of

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
def test_a_prepared_belief_is_that_of_each_part(name):
    prepared = prepare_belief(MODELS[name], OTHERS)
    for part in (slice(0, 20), slice(20, 33)):
        plain, once = belief_of(MODELS[name], ROWS[part], OTHERS), prepared(ROWS[part])
        for one, other in zip(vars(plain).values(), vars(once).values(), strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, other)


def test_a_function_is_asked_of_contexts_once():
    asked = []

    def members(rows):
        asked.append(len(rows))
        p = 1 / (1 + np.exp(-np.outer([1.0, 2.0, -1.0], rows[:, 0])))
        return np.stack([p, 1 - p], axis=2)

    options = {"contexts": OTHERS[:11], "n": 60, "batch": False}
    ranking = rank(EnsembleOf(members), LogLoss(), ROWS, chunk=16, **options)
    assert asked.count(11) == 1  # for all chunks of the pool, and the rows that reasons are given for
    assert ranking.indices == rank(EnsembleOf(members), LogLoss(), ROWS, chunk=1000, **options).indices


def test_models_within_models_keep_apart():
    both = MultiOutputRegressor(BayesianRidge()).fit(ROWS, np.stack([REALS, ROWS[:, 1]], axis=1))
    prepared = prepare_belief(both, OTHERS)
    wanted = [prepare_belief(each, OTHERS)(ROWS[:4]).mean for each in both.estimators_]
    np.testing.assert_array_equal(prepared(ROWS[:4]).mean, np.stack(wanted, axis=1))


def test_draws_are_the_same_for_every_part():
    model = GaussianProcessClassifier(optimizer=None).fit(ROWS[:20], CLASSES[:20])
    generator = np.random.default_rng(3)
    prepared = prepare_belief(model, OTHERS, random_state=generator)
    first, again, other = prepared(ROWS[:5]), prepared(ROWS[:5]), prepare_belief(model, OTHERS, random_state=generator)
    np.testing.assert_array_equal(first.contexts, again.contexts)
    assert np.any(first.contexts != other(ROWS[:5]).contexts)  # the generator of the caller has moved on


@pytest.mark.parametrize("jobs", [1, 2])
def test_rankings_are_the_same_for_any_chunk(jobs):
    for name in ("process", "pipeline"):
        answers = [
            rank(MODELS[name], SquaredError(), ROWS, contexts=OTHERS, n=5, chunk=c, n_jobs=jobs) for c in (7, 60)
        ]
        assert answers[0].indices == answers[1].indices


LAZY = """
import sys
from stakes import models
from stakes.models import base
assert not {"sklearn.ensemble", "sklearn.linear_model", "sklearn.compose"} & set(sys.modules)
assert not base.is_one_of([], "sklearn.ensemble.RandomForestClassifier")
"""
"""Adapters of these are imported with the first model of theirs."""


@pytest.mark.parametrize(
    "code",
    [
        "from sklearn.ensemble import RandomForestClassifier as Kind; base.register_model(Kind, print)",
        "from sklearn.linear_model import BayesianRidge as Kind; base.register_model(Kind, print)",
        "from sklearn.compose import TransformedTargetRegressor as Kind; base.register_model(Kind, print)",
    ],
)
def test_an_adapter_that_is_imported_late_still_has_the_first_word(code):
    done = subprocess.run([sys.executable, "-c", LAZY + code], capture_output=True, text=True, check=False)
    assert re.search(r"StakesError: an adapter for \w+ is registered already", done.stderr)


def test_members_of_a_forest_are_known_before_its_belief_was_asked_for():
    code = """
import numpy as np
from sklearn.ensemble import RandomForestRegressor
X = np.arange(40.0)[:, None]
forest = RandomForestRegressor(20, random_state=0).fit(X, X[:, 0])
print(float(models.out_of_bag_noise(forest, X, X[:, 0])))
"""
    done = subprocess.run([sys.executable, "-c", LAZY + code], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 0.0


@pytest.mark.parametrize("module", [base, bootstrap, default_model, inspection, labelled])
def test_classes_that_are_asked_for_by_name_are_there(module):
    names = set(re.findall(r'"(sklearn\.\w+\.\w+)"', inspect.getsource(module)))
    assert names
    for name in names:
        home, _, kind = name.rpartition(".")
        assert is_one_of(getattr(import_module(home), kind).__new__(getattr(import_module(home), kind)), name)
    assert not is_one_of(Pipeline([]), *names)
