"""Joint batches of vector labels: exact from stacked covariances, greedy, and by configurations for ensembles."""

from itertools import combinations

import numpy as np
import pytest

from stakes import (
    ExponentialLinearWeight,
    GaussianBelief,
    Mahalanobis,
    SquaredError,
    VectorGaussianBelief,
    VectorNormalEnsemble,
    Weight,
    expected_regret,
    score,
    select,
)
from stakes.beliefs import SymmetricNodes
from tests.brute import stacked_vectors

pytestmark = pytest.mark.filterwarnings("ignore::stakes.AccuracyWarning")  # rules of few nodes are tried on purpose

N, M = 6, 3
MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])
SMALL = SymmetricNodes(64, 64)
LOSSES = {
    "plain": Mahalanobis(MATRIX),
    "exponential": Mahalanobis(MATRIX, ExponentialLinearWeight([0.6, -0.4])),
    "sigmoid": Mahalanobis(MATRIX, Weight(lambda z: 1 / (1 + np.exp(-2 * z[..., 0])))),
}


def joint_worth(loss, given, batch, weights=None, rule=SMALL):
    """The labels of a batch as one long label, from the stacked covariances."""
    batch, size = list(batch), given["candidate_variance"].shape[1]
    whole = len(batch) * size
    one = VectorGaussianBelief(
        given["mean"],
        given["variance"],
        given["candidate_covariance"][np.ix_(batch, range(size), batch)].reshape(1, whole, whole),
        given["covariance"][batch].transpose(1, 0, 2, 3).reshape(1, len(given["mean"]), whole, -1),
        rule=rule,
    )
    return float(score(loss, one, context_weights=weights)[0])


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", ["plain", "exponential"])
def test_the_joint_reduction_is_exact(rng, name, lazy, size):
    given = stacked_vectors(rng, N, M, size, 2)
    rows = given["candidate_covariance"]
    belief = VectorGaussianBelief(**{**given, "candidate_covariance": (lambda i: rows[i]) if lazy else rows})
    chosen = select(LOSSES[name], belief, n=4)
    assert chosen.method == "exact"
    assert np.all(chosen.sampling_error == 0)
    wanted = [joint_worth(LOSSES[name], given, chosen.indices[: t + 1]) for t in range(4)]
    np.testing.assert_allclose(chosen.joint_reduction, wanted, rtol=1e-9)


def test_the_joint_reduction_of_another_weight(rng):
    """By the rule: a batch is one white label of two numbers, here against more nodes for the long label."""
    given = stacked_vectors(rng, 3, 2, 1, 2)
    chosen = select(LOSSES["sigmoid"], VectorGaussianBelief(**given), n=2)
    wanted = joint_worth(LOSSES["sigmoid"], given, chosen.indices, rule=SymmetricNodes(512, 1024))
    np.testing.assert_allclose(chosen.joint_reduction[1], wanted, rtol=1e-5)
    np.testing.assert_allclose(
        chosen.joint_reduction[0], score(LOSSES["sigmoid"], VectorGaussianBelief(**given)).max(), rtol=1e-4
    )


@pytest.mark.parametrize("name", ["plain", "exponential"])
def test_every_pick_gains_most_and_greedy_is_near_the_best_batch(rng, name):
    given, weights, loss = stacked_vectors(rng, N, M, 2, 2), np.arange(1.0, M + 1), LOSSES[name]
    belief = VectorGaussianBelief(**given)
    chosen = select(loss, belief, n=3, context_weights=weights)
    for t in range(3):
        others = [i for i in range(N) if i not in chosen.indices[:t]]
        worth = {i: joint_worth(loss, given, [*chosen.indices[:t], i], weights) for i in others}
        assert worth[chosen.indices[t]] >= max(worth.values()) * (1 - 1e-9)
    optimum = max(joint_worth(loss, given, batch, weights) for batch in combinations(range(N), 3))
    assert (1 - 1 / np.e) * optimum <= chosen.joint_reduction[2] <= optimum * (1 + 1e-9)
    assert chosen.indices[0] == int(np.argmax(score(loss, belief, context_weights=weights)))


def test_one_number_is_the_scalar_batch(rng):
    given = stacked_vectors(rng, N, M, 1, 1)
    scalar = GaussianBelief(
        given["mean"][:, 0],
        given["variance"][:, 0, 0],
        given["candidate_variance"][:, 0, 0],
        given["covariance"][..., 0, 0],
        given["candidate_covariance"][:, 0, :, 0],
    )
    ours, theirs = (
        select(*pair, n=4) for pair in ((Mahalanobis([[1.0]]), VectorGaussianBelief(**given)), (SquaredError(), scalar))
    )
    assert ours.indices == theirs.indices
    np.testing.assert_allclose(ours.joint_reduction, theirs.joint_reduction, rtol=1e-9)


def test_copies_are_not_bought_twice_while_others_tell_more(rng):
    """Without noise a copy of a label is known from the batch, and a label that repeats a number is singular."""
    given = stacked_vectors(rng, 3, M, 2, 2, noise=1e-3)
    copies, numbers = [0, 0, 0, 1, 2], [0, 1, 0]
    rows = given["candidate_covariance"][copies][:, numbers][:, :, copies][:, :, :, numbers]
    belief = VectorGaussianBelief(
        given["mean"],
        given["variance"],
        np.stack([rows[n, :, n] for n in range(5)]),
        given["covariance"][copies][:, :, numbers],
        rows,
    )
    chosen = select(LOSSES["plain"], belief, n=5)
    assert sorted(copies[i] for i in chosen.indices[:3]) == [0, 1, 2]
    np.testing.assert_allclose(chosen.joint_reduction[3:], chosen.joint_reduction[2], rtol=1e-8)
    wanted = joint_worth(LOSSES["plain"], given, [0, 1, 2])
    np.testing.assert_allclose(chosen.joint_reduction[2], wanted, rtol=1e-8)


def test_costs_and_budget(rng):
    belief, costs = VectorGaussianBelief(**stacked_vectors(rng, N, M, 2, 2)), rng.uniform(1, 3, N)
    chosen = select(LOSSES["plain"], belief, n=N, costs=costs, budget=5.0)
    assert costs[list(chosen.indices)].sum() <= 5.0
    assert chosen.indices[0] == int(np.argmax(score(LOSSES["plain"], belief, costs=costs)))


def test_covariances_between_candidates_are_needed(rng):
    given = stacked_vectors(rng, N, M, 2, 2)
    del given["candidate_covariance"]
    with pytest.raises(ValueError, match=r"give candidate_covariance, \[N, L, N, L\] with the noise on its diagonal"):
        select(LOSSES["plain"], VectorGaussianBelief(**given), n=2)


def test_ensembles_by_configurations(rng):
    """Two labels of one number together are one label of two: given the member they are independent."""
    means, contexts = rng.standard_normal((2, 4, 1)), rng.standard_normal((M, 4, 2))
    loss = LOSSES["exponential"]
    apart = VectorNormalEnsemble(means, 0.5, contexts, 0.3, rule=SymmetricNodes(16, 64))
    together = VectorNormalEnsemble(means.transpose(2, 1, 0), 0.5, contexts, 0.3, rule=SymmetricNodes(1024, 64))
    chosen = select(loss, apart, n=2)
    assert chosen.method == "enumerated"
    np.testing.assert_allclose(chosen.joint_reduction[0], score(loss, apart).max(), rtol=1e-9)
    np.testing.assert_allclose(chosen.joint_reduction[1], expected_regret(loss, together).mean(), rtol=1e-3)
    sampled = select(loss, apart, n=2, max_configurations=50)
    assert sampled.method == "sampled"
    assert sampled.indices[0] == chosen.indices[0]


def test_where_nothing_is_gained_variance_decides(rng):
    """A direction of price 0 is all that labels tell of: every gain is 0, and the variance of the rest decides."""
    given = stacked_vectors(rng, N, M, 1, 2)
    given["covariance"][..., 1] = 0.0  # labels tell of the first output only
    given["variance"][:, 0, 1] = given["variance"][:, 1, 0] = 0.0
    belief = VectorGaussianBelief(**given)
    chosen = select(Mahalanobis(np.diag([0.0, 1.0])), belief, n=2)
    wanted = select(Mahalanobis(np.eye(2)), belief, n=2)
    assert chosen.ranked_by == ("variance reduction",) * 2
    assert chosen.indices == wanted.indices
    assert wanted.ranked_by == ("gain",) * 2
    assert (chosen.joint_reduction == 0).all()


def test_drawn_batches_know_their_joint_reduction(rng):
    belief = VectorGaussianBelief(**stacked_vectors(rng, N, M, 2, 2))
    drawn = select(Mahalanobis(np.eye(2)), belief, n=3, stochastic="power", random_state=np.random.default_rng(1))
    again = VectorGaussianBelief(**stacked_vectors(np.random.default_rng(2026), N, M, 2, 2))
    assert (np.diff(drawn.joint_reduction) > 0).all()
    assert drawn.joint_reduction[0] == pytest.approx(score(Mahalanobis(np.eye(2)), again)[drawn.indices[0]])
