"""Classifiers that learn in context, by a stand-in whose joint is known exactly."""

import numpy as np
import pytest

from stakes import BrierLoss, LogLoss, rank, score
from stakes.exceptions import StakesError
from stakes.integrations.foundation_models import InContext
from stakes.testing import check_belief
from tests.integrations.pages import run_page


class Cells:
    """Two classes in each cell x = 0, 1, ..: counts plus one, a Dirichlet prior: the joint is known."""

    def fit(self, X, y):
        self.counts = {cell: np.ones(2) for cell in range(9)}
        for row, label in zip(X[:, 0], y, strict=True):
            self.counts[int(row)][int(label)] += 1.0
        return self

    def predict_proba(self, X):
        found = np.stack([self.counts[int(cell)] for cell in X[:, 0]])
        return found / found.sum(axis=1, keepdims=True)


X = np.array([[0], [0], [0], [1], [1], [2]])
Y = np.array([0, 0, 1, 0, 1, 1])
POOL, CONTEXTS = np.array([[0], [1], [2], [3]]), np.array([[0], [1], [3]])


def _reduction(counts):
    """By hand: of the entropy at a cell by one more label in it."""

    def entropy(counts):
        p = counts / counts.sum()
        return -(p * np.log(p)).sum()

    return entropy(counts) - sum(p * entropy(counts + e) for p, e in zip(counts / counts.sum(), np.eye(2), strict=True))


def test_conditioning_is_exact_where_the_model_is_coherent():
    model = InContext(Cells(), X, Y)
    belief = model.belief(POOL, CONTEXTS)
    check_belief(belief)
    np.testing.assert_allclose(model.predict_proba(POOL)[:, 1], [2 / 5, 1 / 2, 2 / 3, 1 / 2])
    wanted = np.array([_reduction(np.array(each)) for each in ([3.0, 2.0], [2.0, 2.0], [1.0, 1.0])]) / 3.0
    found = score(LogLoss(), belief)
    np.testing.assert_allclose(found[[0, 1, 3]], wanted, rtol=1e-9)
    assert found[2] == pytest.approx(0.0, abs=1e-12)  # no context is in its cell
    assert rank(model, LogLoss(), POOL, contexts=CONTEXTS, n=1).indices[0] == 3


def test_the_least_certain_candidates_are_asked_about():
    found = score(LogLoss(), InContext(Cells(), X, Y, max_candidates=2).belief(POOL, CONTEXTS))
    assert (found[[1, 3]] > 0.0).all()  # p = 1/2
    np.testing.assert_allclose(found[[0, 2]], 0.0, atol=1e-12)


def test_draws_agree_with_conditioning():
    """Ten labels of a cell, beside four or two counts, tell 10/14 or 10/12 of it; worths go by the square of that."""
    exact = score(BrierLoss(), InContext(Cells(), X, Y).belief(POOL[[1, 3]], CONTEXTS[1:]))
    model = InContext(Cells(), X, Y, joint="drawn", n_draws=600, n_rows=20)
    drawn = model.belief(POOL[[1, 3]], CONTEXTS[1:])
    np.testing.assert_allclose(score(BrierLoss(), drawn), exact * [(10 / 14) ** 2, (10 / 12) ** 2], rtol=0.2)
    np.testing.assert_allclose(drawn.contexts.mean(axis=1)[:, 1], [0.5, 0.5], atol=0.05)


def test_what_is_refused():
    with pytest.raises(TypeError, match="wants a classifier"):
        InContext(object(), X, Y)
    for wrong in ((X, Y[:2]), (X[:2], Y[:2])):
        with pytest.raises(StakesError, match="two classes"):
            InContext(Cells(), *wrong)
    for wrong in ({"joint": "both"}, {"n_draws": 0}):
        with pytest.raises(StakesError, match="conditioned"):
            InContext(Cells(), X, Y, **wrong)


def test_page(tmp_path):
    run_page("foundation_models", tmp_path)
