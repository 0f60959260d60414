"""Trees laid end to end: every row falls into the leaf that scikit-learn says, however it is walked."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from stakes import CategoricalEnsemble, VoteEnsemble
from stakes.models import belief_of
from stakes.models import forests as trees
from stakes.models.forests import laid_out, tree_means, tree_votes

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(301, 4)).astype(np.float32).astype(float)  # scikit-learn's trees read float32
CLASSES = np.array(["c", "a", "b"])[(ROWS[:, 0] > 0).astype(int) + (ROWS[:, 1] > 0.5)]


@pytest.fixture(params=["compiled", "scikit-learn"])
def way(request, monkeypatch):
    """Both walks, whatever the size."""
    if request.param == "compiled":
        pytest.importorskip("numba", reason="loops are compiled by numba")
        monkeypatch.delenv("STAKES_JIT", raising=False)
        monkeypatch.setattr(trees, "_WORTH_COMPILING", 0)
    else:
        monkeypatch.setenv("STAKES_JIT", "0")


def missing(rows):
    return np.where(RNG.random(rows.shape) < 0.2, np.nan, rows)


FORESTS = [
    RandomForestClassifier(7, random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    RandomForestClassifier(6, max_depth=1, random_state=0),  # not pure, but votes say the heavier class
]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("forest", FORESTS, ids=str)
@pytest.mark.parametrize(
    "rows", [ROWS, missing(ROWS), ROWS[:1], ROWS[:9], ROWS[:0, :]], ids=lambda rows: f"{len(rows)}"
)
def test_votes_are_those_of_each_tree(forest, rows):
    forest.fit(missing(ROWS) if np.isnan(rows).any() else ROWS, CLASSES)
    if len(rows) == 0:
        with pytest.raises(ValueError, match="0 sample"):
            tree_votes(forest, laid_out(forest))(rows)
        return
    each = np.stack([tree.predict_proba(rows).argmax(axis=1) for tree in forest.estimators_], axis=1)
    np.testing.assert_array_equal(tree_votes(forest, laid_out(forest))(rows), each)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_means_are_those_of_each_tree(kind):
    forest = kind(9, random_state=0).fit(ROWS, ROWS[:, 0] + ROWS[:, 1] ** 2)
    each = np.stack([tree.predict(ROWS) for tree in forest.estimators_], axis=1)
    np.testing.assert_array_equal(tree_means(forest, laid_out(forest))(ROWS), each)


@pytest.mark.usefixtures("way")
def test_a_row_on_the_threshold_goes_left():
    forest = RandomForestClassifier(3, bootstrap=False, random_state=0).fit([[0.1], [0.3]], [0, 1])
    threshold = forest.estimators_[0].tree_.threshold[0]
    near = np.float32(threshold)
    rows = np.array([[np.nextafter(near, np.float32(-9))], [near], [np.nextafter(near, np.float32(9))]])
    each = np.stack([tree.predict(rows) for tree in forest.estimators_], axis=1)
    np.testing.assert_array_equal(tree_votes(forest, laid_out(forest))(rows), each)


@pytest.mark.usefixtures("way")
def test_rows_are_checked_as_the_forest_checks_them():
    forest = RandomForestClassifier(3, random_state=0).fit(ROWS, CLASSES)
    votes = tree_votes(forest, laid_out(forest))
    with pytest.raises(ValueError, match="features"):
        votes(ROWS[:, :2])
    with pytest.raises(ValueError, match="infinity"):
        votes(np.full((2, 4), np.inf))
    np.testing.assert_array_equal(votes(csr_matrix(ROWS)), votes(ROWS))


def test_leaves_that_are_pure_make_votes_and_others_probabilities():
    pure = RandomForestClassifier(5, random_state=0).fit(ROWS, CLASSES)
    mixed = RandomForestClassifier(5, max_depth=1, random_state=0).fit(ROWS, CLASSES)
    assert isinstance(belief_of(pure, ROWS, ROWS[:5]), VoteEnsemble)
    assert isinstance(belief_of(mixed, ROWS, ROWS[:5]), CategoricalEnsemble)


@pytest.mark.usefixtures("way")
def test_classes_that_no_label_has_had_move_the_votes():
    forest = RandomForestClassifier(5, random_state=0).fit(ROWS, CLASSES)
    belief = belief_of(forest, ROWS, ROWS[:5], classes=["d", "c", "b", "a"])
    each = np.stack([tree.predict(ROWS).astype(int) for tree in forest.estimators_], axis=1)  # of a, b, c
    np.testing.assert_array_equal(belief.candidates, 3 - each)


def test_forests_of_scikit_learn_intelex_are_walked_too():
    ensemble = pytest.importorskip("sklearnex.ensemble", reason="scikit-learn-intelex is an extra")
    forest = ensemble.RandomForestClassifier(7, random_state=0).fit(ROWS, CLASSES)
    belief = belief_of(forest, ROWS, ROWS[:5])
    assert isinstance(belief, VoteEnsemble)
    shares = np.mean(belief.candidates[:, :, None] == np.arange(3), axis=1)  # [n, C]
    np.testing.assert_allclose(shares, forest.predict_proba(ROWS), atol=1e-12)
