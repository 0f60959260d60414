"""Compiled forests beside scikit-learn's, and their scores beside the product's."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from experiments.labels_saved.trees import SmoothedVotes, grown
from stakes import CategoricalEnsemble, CostMatrix, LogLoss, score
from stakes.models.forests import without_own_label


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


def test_what_trees_say_of_a_row_without_its_label_is_what_the_product_says():
    rows, targets = labelled()
    ours = grown(rows, targets, 3, 4000, 3).without_own_label(rows, targets)
    theirs = without_own_label(ExtraTreesClassifier(2000, random_state=1).fit(rows, targets), rows, targets)
    np.testing.assert_allclose(ours, theirs, atol=0.05)
    np.testing.assert_allclose(ours.sum(axis=1), 1.0)


@pytest.mark.parametrize("n_classes", [2, 3, 11])
def test_scores_of_votes_are_those_of_the_product(n_classes):
    generator = np.random.default_rng(4)
    prior = generator.dirichlet(np.ones(n_classes))
    pool, contexts = generator.integers(n_classes, size=(2, 9, 70))
    pool[0] = 1  # all trees agree: nothing to learn
    contexts[3] = 0
    votes = SmoothedVotes(pool, contexts, prior, 0.06)
    belief = CategoricalEnsemble(votes.members(pool), votes.members(contexts))
    stakes, costs = np.where(np.arange(n_classes) == 1, 10.0, 1.0), 1.0 - np.eye(n_classes)
    weights = np.where(np.arange(n_classes) == 0, 20.0, 1.0)
    for ours, loss in (
        (votes.log_loss_reductions(np.ones(n_classes)), LogLoss()),
        (votes.log_loss_reductions(weights), LogLoss(weights.tolist())),
        (votes.cost_reductions(stakes), CostMatrix(stakes[:, None] * costs)),
    ):
        expected = np.asarray(score(loss, belief))
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6 * expected.max())
        assert ours[0] == pytest.approx(0.0, abs=1e-12)
