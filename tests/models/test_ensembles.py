"""Any function that gives members' predictions is an ensemble."""

import numpy as np
import pytest

from stakes import (
    BrierLoss,
    CategoricalEnsemble,
    NormalEnsemble,
    SquaredError,
    VectorNormalEnsemble,
    VoteEnsemble,
    score,
)
from stakes.models import EnsembleOf, belief_of
from stakes.models.ensembles import calibrated

SLOPES = np.array([0.5, 1.0, 2.0])
POOL, CONTEXTS = np.array([[0.0], [1.0], [3.0]]), np.array([[2.0], [-1.0]])


def means(rows):
    return SLOPES[:, None] * rows[:, 0]  # [K, n]


def probabilities(rows):
    one = 1.0 / (1.0 + np.exp(-means(rows)))
    return np.stack([1.0 - one, one], axis=2)  # [K, n, C]


def test_probabilities():
    belief = belief_of(EnsembleOf(probabilities), POOL, CONTEXTS)
    assert isinstance(belief, CategoricalEnsemble)
    np.testing.assert_array_equal(belief.candidates, np.swapaxes(probabilities(POOL), 0, 1))
    np.testing.assert_array_equal(belief.contexts, np.swapaxes(probabilities(CONTEXTS), 0, 1))
    named = belief_of(
        EnsembleOf(probabilities, classes=["no", "yes"]), POOL, CONTEXTS, classes=["yes", "perhaps", "no"]
    )
    np.testing.assert_array_equal(named.contexts[..., [2, 0]], belief.contexts)
    assert np.argmax(score(BrierLoss(), belief)) == 2
    single = EnsembleOf(lambda rows: probabilities(rows).astype(np.float32))
    assert belief_of(single, POOL, CONTEXTS).contexts.dtype == np.float32


def test_no_member_is_rounded_for_the_sake_of_another():
    class Fixed:
        classes_ = (0, 1)

        def __init__(self, dtype):
            self.dtype = dtype

        def predict(self, rows):
            raise NotImplementedError

        def predict_proba(self, rows):
            return np.full((len(rows), 2), [0.1, 0.9], dtype=self.dtype)

    members = [Fixed(np.float32), Fixed(np.float64)]
    assert belief_of(members, POOL, CONTEXTS).contexts[0, 1, 0] == 0.1
    assert belief_of(members[:1], POOL, CONTEXTS).contexts.dtype == np.float32


def test_means():
    belief = belief_of(EnsembleOf(means, noise_sd=0.3, member_weights=[1, 1, 2]), POOL, CONTEXTS)
    assert isinstance(belief, NormalEnsemble)
    np.testing.assert_array_equal(belief.context_mean, means(CONTEXTS).T)
    np.testing.assert_allclose(belief.member_weights, [0.25, 0.25, 0.5])
    np.testing.assert_allclose(score(SquaredError(), belief)[0], 0.0, atol=1e-12)  # all members agree at 0
    vectors = EnsembleOf(lambda rows: np.stack([means(rows), -means(rows)], axis=2), noise_sd=[0.3, 0.5])
    belief = belief_of(vectors, POOL, CONTEXTS)
    assert isinstance(belief, VectorNormalEnsemble)
    np.testing.assert_array_equal(belief.candidate_sd[0, 0], [0.3, 0.5])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EnsembleOf(means), r"contexts must have shape \[K, 2, C\]"),
        (EnsembleOf(lambda rows: rows[:, 0], noise_sd=1.0), r"must have shape \[K, 2\]"),
        (EnsembleOf(lambda rows: rows.T @ rows, noise_sd=1.0, classes=[0]), "got both"),
        (EnsembleOf(probabilities, classes=["a", "b", "c"]), "a column for each of its classes"),
        (EnsembleOf(lambda rows: probabilities(rows)[: len(rows)]), r"pool must have shape \[2, 3, C\]"),
        (EnsembleOf(lambda rows: means(rows)[..., None] + 2.0), "probabilities"),
        (EnsembleOf(means, noise_sd=-1.0), "positive and finite"),
        (EnsembleOf(means, noise_sd=1.0, member_weights=[1.0]), "member_weights"),
    ],
)
def test_what_is_wrong_is_reported(model, message):
    with pytest.raises(ValueError, match=message):
        belief_of(model, POOL, CONTEXTS)


@pytest.mark.parametrize("power", [0.6, 1.0, 2.5])
def test_answers_are_calibrated_and_labels_come_as_members_say_them(rng, power):
    prior = np.array([0.7, 0.2, 0.1])
    votes = VoteEnsemble(rng.integers(3, size=(4, 6)), rng.integers(2, size=(5, 6)), 3)
    indicators = [np.eye(3)[side] for side in (votes.candidates, votes.contexts)]
    for belief in (votes, CategoricalEnsemble(*indicators)):
        found = calibrated(belief, prior, power, 0.1)
        np.testing.assert_allclose(found.candidates, 0.97 * indicators[0] + 0.03 * prior, atol=1e-7)
        raised = indicators[1].mean(axis=1) ** power
        expected = 0.9 * raised / raised.sum(axis=1, keepdims=True) + 0.1 * prior
        np.testing.assert_allclose(found.contexts.mean(axis=1), expected, atol=1e-7)
        assert found.contexts.min() > 0
