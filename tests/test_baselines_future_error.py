"""Expected future error: a loop over candidates and labels that refits, and nothing else."""

import sys
import types

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from stakes import (
    BrierLoss,
    CostMatrix,
    GaussianBelief,
    LogLoss,
    LogWarp,
    NormalEnsemble,
    SquaredError,
    VectorNormalEnsemble,
    WarpedGaussianBelief,
    ZeroOne,
    uncertainty,
)
from stakes.baselines import expected_future_error, label_quantiles
from stakes.models import Bootstrap, belief_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=12) > 0, "right", "left")
POOL, CONTEXTS = RNG.normal(size=(6, 2)), RNG.normal(size=(15, 2))

LOSSES = {
    "log": (LogLoss(), lambda p: -np.sum(p * np.log(p), axis=1)),
    "brier": (BrierLoss(), lambda p: 1.0 - np.sum(p**2, axis=1)),
    "zero-one": (ZeroOne(), lambda p: 1.0 - np.max(p, axis=1)),
    "costs": (CostMatrix([[0.0, 1.0], [10.0, 0.0]]), lambda p: np.min(p @ [[0.0, 1.0], [10.0, 0.0]], axis=1)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_it_is_the_loop(name):
    loss, entropy = LOSSES[name]
    wanted = np.zeros(6)
    now = LogisticRegression().fit(X, Y).predict_proba(POOL)
    for i in range(6):
        for j, label in enumerate(["left", "right"]):
            model = LogisticRegression().fit(np.vstack([X, POOL[i]]), [*Y, label])
            wanted[i] -= now[i, j] * entropy(model.predict_proba(CONTEXTS)).mean()
    np.testing.assert_allclose(
        expected_future_error(LogisticRegression(), loss, X, Y, POOL, contexts=CONTEXTS), wanted, rtol=1e-10
    )


def test_workers_and_kinds_of_rows_change_nothing():
    plain = expected_future_error(LogisticRegression(), LogLoss(), X, Y, POOL, contexts=CONTEXTS)
    parallel = expected_future_error(LogisticRegression(), LogLoss(), X, Y, POOL, contexts=CONTEXTS, n_jobs=2)
    np.testing.assert_array_equal(parallel, plain)
    lists = expected_future_error(
        LogisticRegression(), LogLoss(), X.tolist(), Y.tolist(), POOL.tolist(), contexts=CONTEXTS.tolist()
    )
    np.testing.assert_allclose(lists, plain)
    rows = (sparse.csr_matrix(each) for each in (X, POOL, CONTEXTS))
    inputs, pool, contexts = rows
    thin = expected_future_error(LogisticRegression(), LogLoss(), inputs, Y, pool, contexts=contexts)
    np.testing.assert_allclose(thin, plain, rtol=1e-4)


def test_frames_are_joined_by_their_own_library():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(each, columns=["a", "b"]) for each in (X, POOL, CONTEXTS)]
    found = expected_future_error(LogisticRegression(), LogLoss(), frames[0], Y, frames[1], contexts=frames[2])
    np.testing.assert_allclose(
        found, expected_future_error(LogisticRegression(), LogLoss(), X, Y, POOL, contexts=CONTEXTS)
    )


def test_a_library_of_frames_is_found_where_it_was_imported(monkeypatch):
    library = types.ModuleType("framelike")
    library.concat = lambda frames: np.concatenate([each.rows for each in frames])
    monkeypatch.setitem(sys.modules, "framelike", library)
    frame = type("Frame", (), {"__module__": "framelike.core", "__array__": lambda self, *_, **__: self.rows})
    inputs, pool = frame(), frame()
    inputs.rows, pool.rows = X, POOL
    type(inputs).shape = property(lambda self: self.rows.shape)
    type(inputs).__len__ = lambda self: len(self.rows)
    found = expected_future_error(GaussianNB(), LogLoss(), inputs, Y, pool, contexts=CONTEXTS)
    np.testing.assert_allclose(found, expected_future_error(GaussianNB(), LogLoss(), X, Y, POOL, contexts=CONTEXTS))


def test_an_obvious_case():
    # A step somewhere between 0 and 1, labels at both ends: the middle tells most, the known ends nothing.
    ends = np.array([[0.0], [1.0]])
    pool, contexts = np.array([[0.0], [0.45], [1.0]]), np.linspace(0, 1, 41)[:, None]
    model = LogisticRegression(C=1e3)
    scores = expected_future_error(model, LogLoss(), ends, [0, 1], pool, contexts=contexts)
    assert np.argmax(scores) == 1


def test_classes_that_no_label_has_had():
    found = expected_future_error(
        GaussianNB(), CostMatrix(1.0 - np.eye(3)), X, Y, POOL, contexts=CONTEXTS, classes=["right", "up", "left"]
    )
    two = expected_future_error(GaussianNB(), CostMatrix(1.0 - np.eye(2)), X, Y, POOL, contexts=CONTEXTS)
    np.testing.assert_allclose(found, two)
    one = expected_future_error(
        KNeighborsClassifier(1), LogLoss(), X[:2], ["left"] * 2, POOL, contexts=CONTEXTS, classes=["left", "up"]
    )
    np.testing.assert_allclose(one, 0.0)
    with pytest.raises(ValueError, match=r"'right'.* not in"):
        expected_future_error(GaussianNB(), LogLoss(), X, Y, POOL, contexts=CONTEXTS, classes=["left", "up"])


def test_labels_that_cannot_be_are_not_fitted():
    fits = []

    class Counting(DecisionTreeClassifier):
        def fit(self, rows, labels):
            fits.append(len(labels))
            return DecisionTreeClassifier.fit(self, rows, labels)

    expected_future_error(Counting(), LogLoss(), X, Y, POOL, contexts=CONTEXTS)
    assert fits == [12] + [13] * 6  # pure leaves think one label possible


def test_forests_with_a_seed_repeat():
    forest = RandomForestClassifier(5, random_state=0)
    first, second = (expected_future_error(forest, BrierLoss(), X, Y, POOL[:2], contexts=CONTEXTS) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not hasattr(forest, "estimators_")


def test_real_labels_are_tried_at_quantiles():
    labels = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=12)
    model = Bootstrap(Ridge(), 6, random_state=0)
    found = expected_future_error(model, SquaredError(), X, labels, POOL[:3], contexts=CONTEXTS)
    current = model.fit(X, labels)
    means = np.stack([member.predict(POOL[:3]) for member in current.estimators_], axis=1)
    wanted = np.zeros(3)
    for i in range(3):
        for part in (0.1, 0.3, 0.5, 0.7, 0.9):
            grid = np.linspace(-10, 10, 400_001)
            below = np.mean([norm.cdf(grid, mean, current.noise_sd_) for mean in means[i]], axis=0)
            label = grid[np.searchsorted(below, part)]
            refit = Bootstrap(Ridge(), 6, random_state=0).fit(np.vstack([X, POOL[i]]), [*labels, label])
            wanted[i] -= uncertainty(SquaredError(), belief_of(refit, POOL[:1], CONTEXTS)).mean() / 5.0
    np.testing.assert_allclose(found, wanted, rtol=1e-3)


def test_quantiles_of_each_belief():
    parts = np.array([0.1, 0.5, 0.9])
    normal = GaussianBelief(mean=[1.0, 2.0], variance=[4.0, 9.0], candidate_variance=[1.0], covariance=[[0.0, 0.0]])
    np.testing.assert_allclose(label_quantiles(normal, parts)[1], norm.ppf(parts, 2.0, 3.0))
    warped = WarpedGaussianBelief(normal, LogWarp())
    np.testing.assert_allclose(label_quantiles(warped, parts)[1], np.exp(norm.ppf(parts, 2.0, 3.0)))
    mixture = NormalEnsemble([[0.0, 5.0]], 1.0, [[0.0, 5.0]], [[1.0, 2.0]], member_weights=[1.0, 3.0])
    found = label_quantiles(mixture, parts)[0]
    np.testing.assert_allclose(0.25 * norm.cdf(found) + 0.75 * norm.cdf(found, 5.0, 2.0), parts, atol=1e-12)
    with pytest.raises(TypeError, match="got a VectorNormalEnsemble"):
        label_quantiles(VectorNormalEnsemble(np.zeros((1, 2, 2)), 1.0, np.zeros((1, 2, 2)), 1.0), parts)


def test_what_is_wrong_is_found():
    with pytest.raises(TypeError, match="RidgeClassifier has no predict_proba"):
        expected_future_error(RidgeClassifier(), LogLoss(), X, Y, POOL, contexts=CONTEXTS)
    with pytest.raises(TypeError, match="X and pool must be of one type"):
        expected_future_error(GaussianNB(), LogLoss(), X, Y, POOL.tolist(), contexts=CONTEXTS)
    with pytest.raises(TypeError, match="arrays, sparse matrices or frames"):
        expected_future_error(GaussianNB(), LogLoss(), {"a": 1}, Y, {"a": 1}, contexts=CONTEXTS)
    with pytest.raises(TypeError, match="no adapter knows a Ridge"):
        expected_future_error(Ridge(), SquaredError(), X, X[:, 0], POOL, contexts=CONTEXTS)
