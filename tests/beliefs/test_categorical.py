"""Ensembles of classifiers: what is refused, votes, members, and the product against a loop."""

import numpy as np
import pytest

from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, VoteEnsemble, ZeroOne, score
from stakes.testing import check_belief

HALF = np.full((2, 3, 2), 0.5)


@pytest.mark.parametrize(
    ("candidates", "contexts", "members", "message"),
    [
        (np.full((2, 3), 0.5), HALF, None, r"candidates must have shape \[N, K, C\]; got \[2, 3\]"),
        (HALF, np.full((2, 4, 2), 0.5), None, r"contexts must have shape \[M, 3, 2\]; got \[2, 4, 2\]"),
        (HALF, np.full((2, 3, 4), 0.25), None, r"contexts must have shape \[M, 3, 2\]"),
        (HALF, np.full((0, 3, 2), 0.5), None, "at least one context"),
        (HALF * 1.01, HALF, None, "candidates must hold probabilities that sum to one.*1.01.*renormalised"),
        (HALF, HALF * [3.0, -1.0], None, "contexts must hold probabilities, none negative; got values from -0.5"),
        (HALF * np.nan, HALF, None, "candidates must be finite; 12 of 12"),
        (HALF, HALF, [1.0, 2.0], r"member_weights must have shape \[3\]"),
        (HALF, HALF, [1.0, -2.0, 1.0], "member_weights must be at least 0"),
        (HALF, HALF, [0.0, 0.0, 0.0], "member_weights must not all be 0"),
        (np.zeros((2, 0, 2)), np.zeros((2, 0, 2)), None, "at least one member"),
    ],
)
def test_bad_input_is_refused(candidates, contexts, members, message):
    with pytest.raises(ValueError, match=message):
        CategoricalEnsemble(candidates, contexts, members)


@pytest.mark.parametrize(
    ("candidates", "contexts", "message"),
    [
        ([[0, 2]], [[0, 1]], "every vote of candidates must be a position.*0 to 1.*to 2"),
        ([[0, 1]], [[0.5, 1]], "every vote of contexts must be a position"),
        ([[0, 1]], [[0, -1]], "every vote of contexts"),
        ([0, 1], [[0, 1]], r"candidates must have shape \[N, K\]"),
        ([[0, 1]], [[0, 1, 1]], r"contexts must have shape \[M, 2\]"),
    ],
)
def test_bad_votes_are_refused(candidates, contexts, message):
    with pytest.raises(ValueError, match=message):
        VoteEnsemble(candidates, contexts, 2)


def test_only_whole_votes_become_votes():
    with pytest.raises(ValueError, match="all their mass on one class; candidates hold other"):
        CategoricalEnsemble(HALF, np.eye(2)[[[0, 1, 1]]]).as_votes()


def test_rounding_of_single_precision_networks_is_accepted(rng):
    logits = rng.standard_normal((50, 4, 100)).astype(np.float32)
    soft = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    assert np.any(soft.sum(-1) != 1)
    CategoricalEnsemble(soft[:25], soft[25:])
    CategoricalEnsemble(soft[:25].astype(np.float64), soft[25:].astype(np.float64))


def test_split_moments_are_the_sum_over_members(rng):
    candidates, contexts = rng.dirichlet(np.ones(3), (4, 5)), rng.dirichlet(np.ones(3), (2, 5))
    members = rng.uniform(0, 2, 5)
    belief = CategoricalEnsemble(candidates, contexts, members)
    loss = CostMatrix(rng.uniform(0, 1, (3, 2)))
    table = loss.statistics(np.eye(3))
    wanted = np.zeros((4, 2, 3, 2))
    for k in range(5):
        for n in range(4):
            for m in range(2):
                wanted[n, m] += members[k] / members.sum() * np.outer(candidates[n, k], contexts[m, k] @ table)
    reference = belief.reference(loss)
    split = belief.split_moments(loss, reference) * np.exp(reference.log_scale)[:, None, None]
    np.testing.assert_allclose(split, wanted, rtol=1e-13)


def test_a_member_of_weight_two_is_two_members(rng):
    soft = rng.dirichlet(np.ones(3), (6, 3))
    twice = soft[:, [0, 1, 1, 2]]
    for loss in (LogLoss(), BrierLoss([1, 2, 3])):
        np.testing.assert_allclose(
            score(loss, CategoricalEnsemble(soft[:4], soft[4:], [1, 2, 1])),
            score(loss, CategoricalEnsemble(twice[:4], twice[4:])),
            rtol=1e-12,
        )
        np.testing.assert_allclose(
            score(loss, CategoricalEnsemble(soft[:4], soft[4:], [1e308, 1e308, 0.0])),
            score(loss, CategoricalEnsemble(soft[:4, :2], soft[4:, :2])),
            rtol=1e-12,
        )


@pytest.mark.parametrize("loss", [LogLoss(), BrierLoss([1, 5, 0]), CostMatrix([[0, -1], [5, 0], [2, 2]]), ZeroOne()])
def test_laws(rng, loss):
    soft = rng.dirichlet(np.ones(3), (9, 6))
    check_belief(CategoricalEnsemble(soft[:5], soft[5:]), loss)
    votes = rng.integers(3, size=(9, 6))
    check_belief(VoteEnsemble(votes[:5], votes[5:], 3), loss)
