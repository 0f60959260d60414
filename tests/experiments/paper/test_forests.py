"""Forests that another library grows are forests to stakes: deterministic, packed, and under a name of their own."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from experiments import __main__ as program
from experiments.paper import classification, forests
from experiments.paper.classification import StratifiedSplits
from stakes import LogLoss, VoteEnsemble, score
from stakes.models import belief_of
from stakes.simulation import simulate_trials
from tests.experiments.paper.paper_cases import blobs

WEIGHTED = LogLoss([50.0, 1.0, 50.0])


@pytest.fixture
def intelex():
    pytest.importorskip("sklearnex", reason="scikit-learn-intelex is not installed, and these forests need it")
    return forests.forest("intelex", 12)


def grown(forest, seed):
    X, y = blobs()
    return clone(forest).set_params(random_state=seed).fit(X, y)


def test_one_seed_one_forest(intelex):
    X, _ = blobs()
    first, again, other = (grown(intelex, seed).predict_proba(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_their_trees_vote_and_are_those_that_predict(intelex):
    X, y = blobs()
    fitted = grown(intelex, 0)
    belief = belief_of(fitted, X[::2], X[1::2], classes=(0, 1, 2))
    assert isinstance(belief, VoteEnsemble)
    assert len(fitted.estimators_) == 12
    np.testing.assert_array_equal(fitted.predict(X[::2]), fitted.classes_[fitted.predict_proba(X[::2]).argmax(axis=1)])
    assert np.mean(fitted.predict(X) == y) > 0.9
    assert (np.asarray(score(WEIGHTED, belief)) >= 0).all()


def test_a_simulation_with_them_is_the_same_in_other_processes(intelex):
    def loops(jobs):
        splits = StratifiedSplits(*blobs(), (4, 5, 5))
        return simulate_trials(intelex, WEIGHTED, splits.draw, n=2, runs=2, reseed=False, n_jobs=jobs)

    alone, together = loops(1), loops(2)
    assert np.array_equal(alone.acquired, together.acquired)
    assert np.array_equal(alone.losses["loss"], together.losses["loss"])


def test_their_studies_have_names_of_their_own():
    for study in classification.STUDIES:
        assert replace(study, forest="intelex").name == f"{study.name}-intelex"
    asked = program.chosen("all", None, "intelex")
    assert {each.name for each in asked if each.study == "classification"} == {
        f"{each.name}-intelex" for each in classification.STUDIES
    }
    assert {each.name for each in asked if each.study != "classification"} <= {
        each.name for each in program.chosen("all", None)
    }


def test_a_forest_for_a_study_without_one_is_refused():
    with pytest.raises(SystemExit, match=r"--forest is for classification, .* table2 has none"):
        program.main(["table2", "--forest", "intelex", "--quick"])


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearnex.ensemble", None)
    with pytest.raises(SystemExit, match=r"pip install 'stakes\[fast\]', or leave --forest out"):
        program.main(["classification", "--forest", "intelex", "--quick"])
