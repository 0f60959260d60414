"""Trees of several outputs: members over label sets, and the default model of them."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from stakes import CostMatrix, LogLoss, VoteEnsemble, outlook, rank
from stakes.exceptions import StakesError
from stakes.losses import label_sets, multi_label
from stakes.models import belief_of, default

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.stack([X[:, 0] > 0, X[:, 0] + X[:, 1] > 0.5], axis=1).astype(int)
LOSS = multi_label(LogLoss(), labels=["a", "b"])


def test_members_are_the_trees_with_labels_independent_in_a_leaf():
    forest = RandomForestClassifier(4, min_samples_leaf=5, random_state=0).fit(X[:50], Y[:50])
    belief = belief_of(forest, X[50:55], X[55:60])
    for k, tree in enumerate(forest.estimators_):
        first, second = tree.predict_proba(X[50:55])
        expected = np.stack([first[:, a] * second[:, b] for a, b in label_sets(2)], axis=1)
        np.testing.assert_allclose(belief.candidates[:, k], expected, atol=1e-7)


def test_grown_trees_vote_for_sets():
    forest = ExtraTreesClassifier(6, random_state=0).fit(X[:50], Y[:50])
    belief = belief_of(forest, X[50:55], X[55:60])
    assert isinstance(belief, VoteEnsemble)
    answers = np.stack([tree.predict(X[50:55]) @ [2, 1] for tree in forest.estimators_], axis=1)
    assert np.array_equal(belief.candidates, answers)


def test_a_label_that_was_never_there_has_no_probability():
    forest = RandomForestClassifier(3, random_state=0).fit(X[:50], np.stack([Y[:50, 0], np.zeros(50, int)], axis=1))
    belief = belief_of(forest, X[50:52], X[52:55])
    assert set(np.unique(belief.contexts)) <= {0, 2}  # none, and the first


def test_rows_are_ranked_for_all_their_labels():
    forest = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)
    ranking = rank(forest, LOSS, X[50:], n=2, labelled=(X[:50], Y[:50]))
    assert "a " in ranking.reasons[0].contexts[0].answer
    costs = multi_label(CostMatrix([[0.0, 1.0], [5.0, 0.0]]), labels=["a", "b"])
    assert "decision" in rank(forest.fit(X[:50], Y[:50]), costs, X[50:], n=1).reasons[0].contexts[0].answer


def test_the_default_model_of_several_labels():
    model = default(X[:50], Y[:50], pool=X[50:], labels=["a", "b"])
    assert model.classes_.tolist() == ["none", "b", "a", "a+b"]
    probabilities = model.predict_proba(X[50:])
    assert probabilities.sum(axis=1) == pytest.approx(1.0)
    right = np.asarray(model.classes_)[Y[50:] @ [2, 1]]
    assert np.mean(model.predict(X[50:]) == right) > 0.7
    names = np.asarray(model.classes_)[Y[:50] @ [2, 1]]
    assert np.allclose(default(X[:50], names, pool=X[50:], labels=["a", "b"]).predict_proba(X[50:]), probabilities)
    assert outlook(model, LOSS, X[50:], n=2).offers[0].worth > 0


def test_what_is_refused():
    model = default(X[:50], Y[:50], pool=X[50:], labels=["a", "b"])
    own = CostMatrix([[0.0, 1.0], [5.0, 0.0]])
    for losses in ({"b": own, "a": own}, {"a": LogLoss(), "c": LogLoss()}):
        with pytest.raises(StakesError, match=r"the same labels in the same order; .* the model about \['a', 'b'\]"):
            rank(model, multi_label(losses), X[50:])
    assert len(rank(model, multi_label(own, labels=2), X[50:], n=1)) == 1  # without names, by their places
    with pytest.raises(StakesError, match="one output at a time"):
        belief_of(RandomForestClassifier(2).fit(X, 2 * Y), X[:2], X[:2])
    with pytest.raises(StakesError, match="their sets"):
        default(X[:5], Y[:5], labels=["a", "b"], classes=["a", "b"])
    with pytest.raises(StakesError, match="give one of them"):
        default(X[:5], Y[:5], labels=["a", "b"], ordinal=True)
