"""A ranking outlives the process: it comes back from JSON as it was."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import BayesianRidge

from stakes import LogLoss, SquaredError, cold_start, rank
from stakes.ranking import Ranking

X = np.random.default_rng(0).normal(size=(40, 3))


def numbers(**more):
    return rank(BayesianRidge().fit(X[:10], X[:10, 0]), SquaredError(), X[10:], n=3, **more)


def classes():
    forest = RandomForestClassifier(20, random_state=0).fit(X[:20], np.where(X[:20, 0] > 0, "yes", "no"))
    return rank(forest, LogLoss(), X[20:], n=3)


@pytest.mark.parametrize("make", [numbers, classes, lambda: numbers(costs=np.arange(1.0, 31.0), budget=9.0)])
def test_a_ranking_comes_back_from_json(make):
    ranking = make()
    kept = json.loads(json.dumps(ranking.to_dict(), allow_nan=False))
    again = Ranking.from_dict(kept)
    assert again.to_dict() == kept
    assert [str(note) for note in again.notes] == [str(note) for note in ranking.notes]
    assert str(again) == str(ranking)


def test_an_infinite_score_comes_back_as_nan():
    ranking = cold_start(X, n=2)
    again = Ranking.from_dict(ranking.to_dict())
    assert np.isnan(again.scores[0])
    assert replace(again, scores=ranking.scores).row_ids == ranking.row_ids
