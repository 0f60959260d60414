"""Opinions in place of labels: against brute force over what is said and what is true."""

import numpy as np
import pytest

from stakes import (
    CategoricalEnsemble,
    CostMatrix,
    GaussianBelief,
    GaussianMixtureBelief,
    LogLoss,
    NormalEnsemble,
    SquaredError,
    VectorGaussianBelief,
    VoteEnsemble,
    ZeroOne,
    expected_regret,
    score,
    select,
)
from stakes.beliefs import noisy_labels
from stakes.exceptions import StakesError

CONFUSION = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.15, 0.6]])


def ensemble(seed=0, rows=4, contexts=3, members=6):
    rng = np.random.default_rng(seed)
    return CategoricalEnsemble(*(rng.dirichlet(np.ones(3), size=(count, members)) for count in (rows, contexts)))


@pytest.mark.parametrize("loss", [LogLoss(), CostMatrix([[0, 5, 1], [1, 0, 2], [3, 1, 0]]), LogLoss([1.0, 3.0, 2.0])])
def test_the_worth_of_an_opinion_is_a_sum_over_what_is_reported(loss):
    belief = ensemble()
    found = expected_regret(loss, noisy_labels(belief, CONFUSION))
    reported = np.einsum("nky,yj->nkj", belief.candidates, CONFUSION)  # by member
    for n in range(4):
        for m in range(3):
            joint = np.einsum("kj,kz->jz", reported[n], belief.contexts[m]) / 6  # P(reported, z)
            worth = _least(loss, joint.sum(axis=0)) - sum(_least(loss, each) for each in joint)
            assert found[n, m] == pytest.approx(worth, abs=1e-10)


def _least(loss, mass):
    """The least expected loss of unnormalised class probabilities, by their best answer."""
    if isinstance(loss, LogLoss):
        weights = np.ones(3) if loss.class_weights is None else np.asarray(loss.class_weights)
        weighed = weights * mass
        return -float(weighed @ np.log(weighed / weighed.sum()))
    return float((mass @ np.asarray(loss.costs)).min())


def test_votes_are_the_same_as_their_probabilities():
    rng = np.random.default_rng(0)
    votes = VoteEnsemble(rng.integers(3, size=(5, 7)), rng.integers(3, size=(4, 7)), 3)
    one, other = noisy_labels(votes, CONFUSION), noisy_labels(votes.as_probabilities(), CONFUSION)
    assert score(LogLoss(), one) == pytest.approx(score(LogLoss(), other))


def test_a_perfect_annotator_changes_nothing_and_a_blind_one_is_worth_nothing():
    belief = ensemble()
    assert score(LogLoss(), noisy_labels(belief, np.eye(3))) == pytest.approx(score(LogLoss(), belief))
    assert score(LogLoss(), noisy_labels(belief, np.full((3, 3), 1 / 3))) == pytest.approx(np.zeros(4), abs=1e-12)


def test_noise_never_adds_worth():
    belief = ensemble()
    for loss in (LogLoss(), ZeroOne()):
        assert np.all(score(loss, noisy_labels(belief, CONFUSION)) <= score(loss, belief) + 1e-12)


def test_two_opinions_on_one_row_of_sure_members():
    """Members are sure, so that opinions are independent given the truth: joint worths by all pairs of answers."""
    votes = VoteEnsemble([[0, 0, 1, 1]], [[0, 0, 0, 1]], 2)
    student, expert = np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([[0.95, 0.05], [0.05, 0.95]])
    both = noisy_labels(votes, np.stack([student, expert]), rows=[0, 0])
    selection = select(ZeroOne(), both, n=2)
    joint = np.zeros((2, 2, 2))
    for y, z in ((0, 0), (0, 0), (1, 0), (1, 1)):
        joint[:, :, z] += np.outer(student[y], expert[y]) / 4
    worth = sum(each.max() for each in joint.reshape(4, 2)) - joint.sum(axis=(0, 1)).max()
    assert selection.joint_reduction[-1] == pytest.approx(worth, abs=1e-12)


def gaussian(**more):
    return GaussianBelief([0.0, 1.0], [1.0, 2.0], [1.5, 1.0], [[0.8, 0.4], [0.3, 0.9]], **more)


def test_variance_is_added_to_that_of_the_label():
    belief = gaussian(candidate_covariance=[[1.5, 0.2], [0.2, 1.0]], noise_variance=0.1)
    noisy = noisy_labels(belief, 0.5)
    assert score(SquaredError(), noisy) == pytest.approx([(0.64 + 0.16) / 2 / 2.0, (0.09 + 0.81) / 2 / 1.5])
    assert noisy.candidate_covariance == pytest.approx(np.array([[2.0, 0.2], [0.2, 1.5]]))
    assert noisy.noise_variance == pytest.approx(0.6)


def test_two_measurements_of_one_row_share_its_label():
    """Their joint worth is that of one measurement with the precision of both."""
    belief = gaussian(candidate_covariance=[[1.5, 0.2], [0.2, 1.0]])
    twice = noisy_labels(belief, [0.5, 0.25], rows=[0, 0])
    once = noisy_labels(belief, 1.0 / (1 / 0.5 + 1 / 0.25), rows=[0])
    assert select(SquaredError(), twice, n=2).joint_reduction[-1] == pytest.approx(score(SquaredError(), once)[0])


def test_covariances_by_a_function():
    own = np.array([[1.5, 0.2], [0.2, 1.0]])
    listed, called = (
        noisy_labels(gaussian(candidate_covariance=each), [0.5, 0.25, 0.1], rows=[0, 0, 1])
        for each in (own, lambda i: own[i])
    )
    for place in range(3):
        assert called.candidate_covariance(place) == pytest.approx(listed.candidate_covariance[place])


def test_mixtures_and_ensembles_of_normals():
    mixture = GaussianMixtureBelief(
        [[0.0], [1.0]], [[1.0], [1.0]], [[0.0], [1.0]], [[1.0], [2.0]], [[[0.5]], [[0.7]]], noise_variance=[0.1, 0.2]
    )
    noisy = noisy_labels(mixture, 0.5)
    assert noisy.candidate_variance == pytest.approx(np.array([[1.5], [2.5]]))
    assert score(SquaredError(), noisy)[0] < score(SquaredError(), mixture)[0]
    normal = NormalEnsemble([[0.0, 1.0]], 0.3, [[0.0, 1.0]], 0.0)
    assert noisy_labels(normal, 0.16).candidate_sd == pytest.approx(np.full((1, 2), 0.5))


def test_refusals():
    with pytest.raises(StakesError, match="confusion matrix must have shape"):
        noisy_labels(ensemble(), np.eye(2))
    with pytest.raises(StakesError, match="each row of the confusion matrix"):
        noisy_labels(ensemble(), 2 * np.eye(3))
    with pytest.raises(StakesError, match="must be at least 0"):
        noisy_labels(gaussian(), -1.0)
    with pytest.raises(StakesError, match="rows must be positions of the 2 candidates"):
        noisy_labels(gaussian(), 1.0, rows=[2])
    vector = VectorGaussianBelief(np.zeros((1, 2)), np.eye(2)[None], np.eye(2)[None], np.zeros((1, 1, 2, 2)))
    with pytest.raises(TypeError, match="got VectorGaussianBelief"):
        noisy_labels(vector, 1.0)
