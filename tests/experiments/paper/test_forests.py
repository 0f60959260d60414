"""Forests that others grow are forests to stakes: deterministic, packed, and under a name of their own."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from experiments import __main__ as program
from experiments.paper import classification, forests
from experiments.paper.classification import StratifiedSplits
from stakes import CategoricalEnsemble, LogLoss, VoteEnsemble, score
from stakes.models import belief_of
from stakes.simulation import simulate_trials
from tests.experiments.paper.paper_cases import blobs

WEIGHTED = LogLoss([50.0, 1.0, 50.0])


@pytest.fixture(params=["intelex", "compiled"])
def other(request):
    library = {"intelex": "sklearnex", "compiled": "numba"}[request.param]
    pytest.importorskip(library, reason=f"{library} is not installed, and these forests need it")
    return forests.forest(request.param, 12)


def grown(forest, seed):
    X, y = blobs()
    return clone(forest).set_params(random_state=seed).fit(X, y)


def test_one_seed_one_forest(other):
    X, _ = blobs()
    first, again, unlike = (grown(other, seed).predict_proba(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, unlike)


def test_their_trees_vote_and_are_those_that_predict(other):
    X, y = blobs()
    fitted = grown(other, 0)
    belief = belief_of(fitted, X[::2], X[1::2], classes=(0, 1, 2))
    assert isinstance(belief, VoteEnsemble)
    votes = np.asarray(belief.candidates)
    assert votes.shape == (len(X[::2]), 12)
    shares = np.stack([np.mean(votes == place, axis=1) for place in range(3)], axis=1)
    np.testing.assert_allclose(fitted.predict_proba(X[::2]), shares, atol=1e-12)
    assert np.mean(fitted.predict_proba(X).argmax(axis=1) == y) > 0.9
    assert (np.asarray(score(WEIGHTED, belief)) >= 0).all()


def test_compiled_trees_are_as_sure_as_those_of_scikit_learn():
    """Same statistics, other random numbers: mean probabilities of 2,000 trees each, on overlapping classes."""
    pytest.importorskip("numba", reason="compiled forests need numba")
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X, tests = rng.normal(size=(60, 5)) + 0.7 * y[:, None], rng.normal(size=(200, 5)) + 0.7
    found = [
        forests.forest(kind, 2000).set_params(random_state=seed).fit(X, y).predict_proba(tests)
        for kind, seed in (("compiled", 0), ("scikit-learn", 0), ("scikit-learn", 1))
    ]
    apart, between_seeds = (np.sqrt(np.mean((found[i] - found[1]) ** 2)) for i in (0, 2))
    assert apart < 1.3 * between_seeds


def test_compiled_trees_with_leaves_of_several_classes_give_probabilities():
    pytest.importorskip("numba", reason="compiled forests need numba")
    X, y = np.repeat([[0.0], [1.0]], 4, axis=0), np.array([0, 0, 0, 1, 1, 1, 1, 1])
    fitted = forests.forest("compiled", 50).fit(X, y)
    belief = fitted.belief(X[:1], X[3:5])
    assert isinstance(belief, CategoricalEnsemble)
    mean = np.asarray(belief.contexts).mean(axis=1)
    np.testing.assert_allclose(mean, fitted.predict_proba(X[3:5]), atol=1e-12)
    assert 0.1 < mean[0, 1] < 0.5


def test_a_simulation_with_them_is_the_same_in_other_processes(other):
    def loops(jobs):
        splits = StratifiedSplits(*blobs(), (4, 5, 5))
        return simulate_trials(other, WEIGHTED, splits.draw, n=2, runs=2, reseed=False, n_jobs=jobs)

    alone, together = loops(1), loops(2)
    assert np.array_equal(alone.acquired, together.acquired)
    assert np.array_equal(alone.losses["loss"], together.losses["loss"])


@pytest.mark.parametrize("grower", ["intelex", "compiled"])
def test_their_studies_have_names_of_their_own(grower):
    for study in classification.STUDIES:
        assert replace(study, forest=grower).name == f"{study.name}-{grower}"
    asked = program.chosen("all", None, grower)
    assert {each.name for each in asked if each.study == "classification"} == {
        f"{each.name}-{grower}" for each in classification.STUDIES
    }
    assert {each.name for each in asked if each.study != "classification"} <= {
        each.name for each in program.chosen("all", None)
    }


def test_a_forest_for_a_study_without_one_is_refused():
    with pytest.raises(SystemExit, match=r"--forest is for classification, .* table2 has none"):
        program.main(["table2", "--forest", "intelex", "--quick"])


@pytest.mark.parametrize("grower", ["intelex", "compiled"])
def test_without_the_library_it_is_reported_how_to_get_it(monkeypatch, grower):
    monkeypatch.setitem(sys.modules, "sklearnex.ensemble", None)
    monkeypatch.setenv("STAKES_JIT", "0")
    with pytest.raises(SystemExit, match=r"pip install 'stakes\[fast\]', or leave --forest out"):
        program.main(["classification", "--forest", grower, "--quick"])
