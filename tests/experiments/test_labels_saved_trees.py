"""Compiled forests beside scikit-learn's."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from experiments.labels_saved.trees import grown


def labelled(rows=40, columns=5, n_classes=3):
    generator = np.random.default_rng(1)
    targets = np.arange(rows) % n_classes
    features = generator.normal(size=(rows, columns)) + 0.8 * targets[:, None]
    return features.astype(np.float32), targets


@pytest.mark.parametrize(
    ("extremely", "forest"),
    [(True, ExtraTreesClassifier(2000, random_state=0)), (False, RandomForestClassifier(2000, random_state=0))],
)
def test_trees_are_drawn_as_scikit_learn_draws_them(extremely, forest):
    rows, targets = labelled()
    asked = np.random.default_rng(2).normal(size=(200, rows.shape[1])) + 0.8
    ours = grown(rows, targets, 3, 2000, 7, extremely=extremely)
    theirs = forest.fit(rows, targets).predict_proba(asked)
    error = np.sqrt(2.0 * np.clip(theirs * (1.0 - theirs), 1e-3, None) / 2000)  # of a difference of two forests
    gaps = (ours.shares(ours.leaves(asked)).mean(axis=1) - theirs) / error
    assert np.sqrt(np.mean(gaps**2)) < 1.3
    assert np.abs(gaps).max() < 5.0
    sizes = [tree.tree_.node_count for tree in forest.estimators_]
    assert (ours.counts.sum(axis=-1) > 0).sum(axis=1).mean() == pytest.approx(np.mean(sizes), rel=0.02)


def test_a_tree_knows_the_labels_that_it_was_grown_on():
    rows, targets = labelled()
    trees = grown(rows, targets, 3, 50, 0)
    leaves = trees.leaves(rows)
    assert trees.pure
    np.testing.assert_array_equal(trees.votes(leaves), np.repeat(targets[:, None], 50, axis=1))
    np.testing.assert_allclose(trees.mean_shares(leaves), np.eye(3)[targets])


def test_equal_rows_with_other_labels_share_a_leaf():
    rows, targets = np.zeros((4, 2)), np.asarray([0, 1, 1, 1])
    trees = grown(rows, targets, 2, 5, 0)
    assert not trees.pure
    np.testing.assert_allclose(trees.mean_shares(trees.leaves(rows)), [[0.25, 0.75]] * 4)
