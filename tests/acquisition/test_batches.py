"""Joint batches: exact under Gaussian beliefs, by enumeration for ensembles, greedy, within the budget."""

from itertools import combinations, product

import numpy as np
import pytest

from stakes import (
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    ItakuraSaito,
    Linex,
    LogLoss,
    LogWarp,
    NormalEnsemble,
    SquaredError,
    VoteEnsemble,
    WarpedGaussianBelief,
    Weight,
    score,
    select,
)

N, M, NOISE = 9, 5, 0.2
SIGMOID = Weight(lambda z: 1 / (1 + np.exp(-2 * z)))
REAL_LOSSES = [SquaredError(), SquaredError(ExponentialWeight(0.5)), Linex(1.0), SquaredError(SIGMOID)]


@pytest.fixture
def latent(rng):
    """The covariance of f at N candidates and M contexts."""
    mixing = rng.standard_normal((N + M, 6)) / 2
    return mixing @ mixing.T


def gaussian(latent, rows=True):
    labels = latent[:N, :N] + NOISE * np.eye(N)
    return GaussianBelief(
        np.linspace(-1, 1, M),
        np.diag(latent)[N:],
        np.diag(labels),
        latent[:N, N:],
        labels if rows else (lambda i: labels[i]),
    )


def joint_rho(belief, batch):
    """The share of each target's variance that the labels of a batch remove together, by a full solve."""
    batch = list(batch)
    block = belief.candidate_covariance[np.ix_(batch, batch)]
    covariance = belief.covariance[batch]  # [t, M]
    return (covariance * np.linalg.solve(block, covariance)).sum(0) / belief.variance


def joint_worth(loss, belief, batch, weights=None):
    """The exact joint reduction: one pseudo-candidate that removes as much as the batch does."""
    latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
    one = GaussianBelief(latent.mean, latent.variance, [1.0], np.sqrt(joint_rho(latent, batch) * latent.variance)[None])
    one = WarpedGaussianBelief(one, belief.warp) if isinstance(belief, WarpedGaussianBelief) else one
    return float(score(loss, one, weights)[0])


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("loss", REAL_LOSSES)
def test_the_joint_reduction_of_a_gaussian_batch_is_exact(latent, loss, rows):
    belief = gaussian(latent)
    chosen = select(loss, gaussian(latent, rows), 5)
    assert chosen.method == "exact"
    assert np.all(chosen.sampling_error == 0)
    wanted = [joint_worth(loss, belief, chosen.indices[: t + 1]) for t in range(5)]
    np.testing.assert_allclose(chosen.joint_reduction, wanted, rtol=1e-6)


@pytest.mark.parametrize("loss", [ItakuraSaito(), SquaredError()])
def test_the_joint_reduction_of_a_warped_batch_is_exact(latent, loss):
    belief = WarpedGaussianBelief(gaussian(latent), LogWarp())
    chosen = select(loss, belief, 4)
    wanted = [joint_worth(loss, belief, chosen.indices[: t + 1]) for t in range(4)]
    np.testing.assert_allclose(chosen.joint_reduction, wanted, rtol=1e-6)


@pytest.mark.parametrize("loss", REAL_LOSSES)
def test_every_pick_gains_most_and_greedy_is_near_the_best_batch(latent, loss):
    belief, weights = gaussian(latent), np.arange(1.0, M + 1)
    chosen = select(loss, belief, 3, context_weights=weights)
    assert len(set(chosen.indices)) == 3
    for t in range(3):
        others = [i for i in range(N) if i not in chosen.indices[:t]]
        worth = {i: joint_worth(loss, belief, [*chosen.indices[:t], i], weights) for i in others}
        assert worth[chosen.indices[t]] >= max(worth.values()) * (1 - 1e-6)
    optimum = max(joint_worth(loss, belief, batch, weights) for batch in combinations(range(N), 3))
    assert (1 - 1 / np.e) * optimum <= chosen.joint_reduction[2] <= optimum * (1 + 1e-6)
    assert chosen.indices[0] == int(np.argmax(score(loss, belief, weights)))


def test_copies_of_a_row_are_not_bought_twice_while_others_tell_more(latent):
    copies = [0, 0, 0, 1, 2]
    order = [*copies, *range(N, N + M)]
    twice = latent[np.ix_(order, order)]
    labels = twice[:5, :5] + 1e-6 * np.eye(5)
    belief = GaussianBelief(np.zeros(M), np.diag(twice)[5:], np.diag(labels), twice[:5, 5:], labels)
    assert sorted(copies[i] for i in select(SquaredError(), belief, 3).indices) == [0, 1, 2]


def test_costs_and_budget(latent, rng):
    belief, costs = gaussian(latent), rng.uniform(1, 3, N)
    chosen = select(SquaredError(), belief, N, costs=costs, budget=7.0)
    spent = costs[list(chosen.indices)].sum()
    assert spent <= 7.0
    assert np.all(costs[[i for i in range(N) if i not in chosen.indices]] > 7.0 - spent)  # nothing else was affordable
    assert chosen.indices[0] == int(np.argmax(score(SquaredError(), belief, costs=costs)))
    assert len(select(SquaredError(), belief, 2, budget=1.5).indices) == 1
    assert select(SquaredError(), belief, 2, costs=costs, budget=0.5).indices == ()
    assert select(SquaredError(), belief, 2, costs=costs, budget=0.5).joint_reduction.shape == (0,)


def enumerated(loss, belief, batch):
    """The joint reduction of labels of an ensemble of classes, by a table of all their configurations."""
    table = loss.statistics(np.eye(belief.n_classes))
    expected = belief.contexts @ table  # [M, K, D]
    split = []
    for labels in product(range(belief.n_classes), repeat=len(batch)):
        mass = belief.member_weights.copy()
        for row, label in zip(batch, labels, strict=True):
            mass = mass * belief.candidates[row, :, label]
        split.append(np.einsum("k,mkd->md", mass, expected))
    split = np.stack(split, axis=1)  # [M, Q, D]
    action = loss.action(split.sum(1))
    return loss.regret(split, action[:, None, :]).sum(1).mean()


@pytest.fixture
def classes(rng):
    soft = rng.dirichlet(np.full(3, 0.5), (11, 7))
    return CategoricalEnsemble(soft[:7], soft[7:], rng.uniform(1, 2, 7))


@pytest.mark.parametrize("loss", [LogLoss([1, 50, 2]), BrierLoss(), CostMatrix([[0, 2, 9], [1, 0, 9], [5, 5, 0]])])
def test_batches_of_classes_equal_enumeration(classes, loss):
    chosen = select(loss, classes, 4)
    assert chosen.method == "enumerated"
    wanted = [enumerated(loss, classes, chosen.indices[: t + 1]) for t in range(4)]
    np.testing.assert_allclose(chosen.joint_reduction, wanted, rtol=1e-10)
    best = max(enumerated(loss, classes, [chosen.indices[0], i]) for i in range(7) if i != chosen.indices[0])
    np.testing.assert_allclose(chosen.joint_reduction[1], best, rtol=1e-10)


def test_sampled_configurations_are_within_their_error(classes):
    loss = LogLoss([1, 50, 2])
    misses = []
    for seed in range(8):
        chosen = select(loss, classes, 5, rng=np.random.default_rng(seed), max_configurations=60)
        assert chosen.method == "sampled"
        assert np.all(chosen.sampling_error[:4] == 0)  # three labels are 27 configurations: their extension is exact
        assert chosen.sampling_error[4] > 0
        exact = enumerated(loss, classes, chosen.indices)
        misses.append((chosen.joint_reduction[4] - exact) / chosen.sampling_error[4])
    assert np.sqrt(np.mean(np.square(misses))) < 2.5
    again = select(loss, classes, 5, rng=np.random.default_rng(7), max_configurations=60)
    assert again.indices == chosen.indices


def test_votes_and_their_probabilities_make_the_same_batch(rng):
    votes = rng.integers(3, size=(10, 15))
    belief = VoteEnsemble(votes[:6], votes[6:], 3)
    ours, theirs = select(LogLoss(), belief, 3), select(LogLoss(), belief.as_probabilities(), 3)
    assert ours.indices == theirs.indices
    np.testing.assert_allclose(ours.joint_reduction, theirs.joint_reduction)


def test_batches_of_normal_ensembles(rng):
    """Members so far apart that one label tells which it is: nothing is left for a second."""
    means = np.array([0.0, 10.0, 20.0])
    belief = NormalEnsemble(np.tile(means, (3, 1)), 0.5, rng.standard_normal((2, 3)), 0.1)
    chosen = select(SquaredError(), belief, 2)
    np.testing.assert_allclose(chosen.joint_reduction, belief.context_mean.var(axis=1).mean(), rtol=1e-6)
    overlapping = NormalEnsemble(rng.standard_normal((3, 3)), 1.0, rng.standard_normal((2, 3)), 0.1)
    few = select(SquaredError(), overlapping, 2)
    assert few.method == "enumerated"
    assert score(SquaredError(), overlapping).max() == pytest.approx(few.joint_reduction[0], rel=1e-6)
    assert few.joint_reduction[1] > few.joint_reduction[0]


def test_all_libraries_choose_the_same(xp, latent, classes):
    given = gaussian(latent)
    fields = ("mean", "variance", "candidate_variance", "covariance", "candidate_covariance")
    belief = GaussianBelief(*(xp.asarray(np.array(getattr(given, field))) for field in fields))
    assert select(SquaredError(), belief, 3).indices == select(SquaredError(), given, 3).indices
    soft = CategoricalEnsemble(*(xp.asarray(np.array(each)) for each in (classes.candidates, classes.contexts)))
    plain = CategoricalEnsemble(classes.candidates, classes.contexts)
    for settings in ({}, {"max_configurations": 20}):
        ours, wanted = (select(LogLoss(), each, 4, **settings) for each in (soft, plain))
        assert ours.indices == wanted.indices
        assert ours.method == wanted.method


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be a whole number from 1 to 9"),
        ({"n": 10}, ValueError, "n must be a whole number from 1 to 9"),
        ({"budget": 0.0}, ValueError, "budget must be positive"),
        ({"costs": [1.0]}, ValueError, r"costs must have shape \[9\]"),
        ({"context_weights": [0.0] * M}, ValueError, "context_weights must not all be 0"),
    ],
)
def test_bad_settings_are_refused(latent, settings, error, message):
    with pytest.raises(error, match=message):
        select(SquaredError(), gaussian(latent), **{"n": 2, **settings})


def test_covariances_between_candidates_are_needed(latent):
    given = gaussian(latent)
    belief = GaussianBelief(given.mean, given.variance, given.candidate_variance, given.covariance)
    with pytest.raises(ValueError, match="give candidate_covariance"):
        select(SquaredError(), belief, 2)
