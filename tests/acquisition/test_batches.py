"""Joint batches: exact under Gaussian beliefs, by enumeration for ensembles, greedy, within the budget."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    ZeroOne,
    expected_reduction,
    score,
    select,
)
from tests.brute import random_table, squared_regret

N, M, NOISE = 9, 5, 0.2
SIGMOID = Weight(lambda z: 1 / (1 + np.exp(-2 * z)))
REAL_LOSSES = [SquaredError(), SquaredError(ExponentialWeight(0.5)), Linex(1.0), SquaredError(SIGMOID)]


def random_latent(rng):
    """The covariance of f at N candidates and M contexts."""
    mixing = rng.standard_normal((N + M, 6)) / 2
    return mixing @ mixing.T


@pytest.fixture
def latent(rng):
    return random_latent(rng)


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


def joint_worths(loss, belief, batches, weights=None):
    """The exact joint reductions: for each batch one pseudo-candidate that removes as much as the batch does."""
    latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
    removed = np.array([joint_rho(latent, batch) for batch in batches]) * latent.variance
    each = GaussianBelief(latent.mean, latent.variance, np.ones(len(removed)), np.sqrt(removed))
    each = WarpedGaussianBelief(each, belief.warp) if isinstance(belief, WarpedGaussianBelief) else each
    return score(loss, each, context_weights=weights)


def first(indices):
    """The batches of the first 1, 2, ... picks."""
    return [indices[: t + 1] for t in range(len(indices))]


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("loss", REAL_LOSSES)
def test_the_joint_reduction_of_a_gaussian_batch_is_exact(latent, loss, rows):
    belief = gaussian(latent)
    chosen = select(loss, gaussian(latent, rows), n=5)
    assert chosen.method == "exact"
    assert np.all(chosen.sampling_error == 0)
    wanted = joint_worths(loss, belief, first(chosen.indices))
    np.testing.assert_allclose(chosen.joint_reduction, wanted, rtol=1e-6)


@pytest.mark.parametrize("loss", [ItakuraSaito(), SquaredError()])
def test_the_joint_reduction_of_a_warped_batch_is_exact(latent, loss):
    belief = WarpedGaussianBelief(gaussian(latent), LogWarp())
    chosen = select(loss, belief, n=4)
    wanted = joint_worths(loss, belief, first(chosen.indices))
    np.testing.assert_allclose(chosen.joint_reduction, wanted, rtol=1e-6)


def test_joint_reductions_by_formula_and_by_dense_integration(latent):
    """For unit weights E_c[rho_B v] and alpha^2 / 2 of it; for a sigmoid weight the definition, integrated anew."""
    belief = gaussian(latent)
    plain, linex, weighted = (select(loss, belief, n=3) for loss in (SquaredError(), Linex(2.0), SquaredError(SIGMOID)))
    removed = [np.mean(joint_rho(belief, batch) * belief.variance) for batch in first(plain.indices)]
    np.testing.assert_allclose(plain.joint_reduction, removed, rtol=1e-12)
    assert linex.indices == plain.indices
    np.testing.assert_allclose(linex.joint_reduction, 2 * np.array(removed), rtol=1e-12)
    rho = joint_rho(belief, weighted.indices)
    each = [squared_regret(SIGMOID, belief.mean[m], belief.variance[m] ** 0.5, rho[m]) * rho[m] for m in range(M)]
    np.testing.assert_allclose(weighted.joint_reduction[2], np.mean(each), rtol=1e-6)


@pytest.mark.parametrize("loss", REAL_LOSSES)
def test_every_pick_gains_most_and_greedy_is_near_the_best_batch(latent, loss):
    belief, weights = gaussian(latent), np.arange(1.0, M + 1)
    chosen = select(loss, belief, n=3, context_weights=weights)
    assert len(set(chosen.indices)) == 3
    for t in range(3):
        others = [[*chosen.indices[:t], i] for i in range(N) if i not in chosen.indices[:t]]
        assert chosen.joint_reduction[t] >= max(joint_worths(loss, belief, others, weights)) * (1 - 1e-6)
    optimum = max(joint_worths(loss, belief, list(combinations(range(N), 3)), weights))
    assert (1 - 1 / np.e) * optimum <= chosen.joint_reduction[2] <= optimum * (1 + 1e-6)
    assert chosen.indices[0] == int(np.argmax(score(loss, belief, context_weights=weights)))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 4))
def test_greedy_is_near_the_best_of_all_batches(seed, n):
    """At least 1 - 1/e = 0.63 of it. Of a thousand random cases the worst reached 0.81, the mean 0.99, 74% all."""
    belief = gaussian(random_latent(np.random.default_rng(seed)))
    reached = select(SquaredError(), belief, n=n).joint_reduction[-1]
    assert reached >= (1 - 1 / np.e) * max(joint_worths(SquaredError(), belief, list(combinations(range(N), n))))


def test_copies_of_a_row_are_not_bought_twice_while_others_tell_more(latent):
    copies = [0, 0, 0, 1, 2]
    order = [*copies, *range(N, N + M)]
    twice = latent[np.ix_(order, order)]
    labels = twice[:5, :5] + 1e-6 * np.eye(5)
    belief = GaussianBelief(np.zeros(M), np.diag(twice)[5:], np.diag(labels), twice[:5, 5:], labels)
    assert sorted(copies[i] for i in select(SquaredError(), belief, n=3).indices) == [0, 1, 2]


def test_noisy_copies_are_not_bought_twice_while_a_fresh_row_tells_as_much():
    """Rows 0 to 4 are one function observed five times, rows 5 and 6 others: averaging noise is worth less."""
    own = np.repeat(np.eye(3), [5, 1, 1], axis=0)  # [N, M]: each row tells of one target
    labels = own @ own.T + 0.5 * np.eye(7)
    belief = GaussianBelief(np.zeros(3), np.ones(3), np.diag(labels), own, labels)
    for loss in (SquaredError(), SquaredError(SIGMOID)):
        chosen = select(loss, belief, n=4).indices
        assert {5, 6} < set(chosen[:3])
        assert chosen[3] < 5  # a second copy once nothing fresh is left


@given(seed=st.integers(0, 2**32 - 1), budget=st.floats(0.5, 15.0), n=st.integers(1, N))
def test_never_a_row_twice_and_never_over_budget(seed, budget, n):
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0.5, 4, N)
    chosen = select(SquaredError(), gaussian(random_latent(rng)), n=n, costs=costs, budget=budget)
    spent = costs[list(chosen.indices)].sum()
    assert len(set(chosen.indices)) == len(chosen.indices) == len(chosen.ranked_by) <= n
    assert spent <= budget * (1 + 1e-9)
    left = [cost for i, cost in enumerate(costs) if i not in chosen.indices]
    assert len(chosen.indices) == n or all(spent + cost > budget for cost in left)


def test_single_precision_in_and_out(latent, classes):
    """Inside all is double, so that gains below rounding of single precision still rank."""
    given = gaussian(latent)
    fields = ("mean", "variance", "candidate_variance", "covariance", "candidate_covariance")
    single = GaussianBelief(*(getattr(given, field).astype(np.float32) for field in fields))
    soft = CategoricalEnsemble(classes.candidates.astype(np.float32), classes.contexts.astype(np.float32))
    plain = CategoricalEnsemble(classes.candidates, classes.contexts)
    for loss, low, high in ((SquaredError(SIGMOID), single, given), (LogLoss(), soft, plain), (ZeroOne(), soft, plain)):
        ours, wanted = select(loss, low, n=3), select(loss, high, n=3)
        assert ours.joint_reduction.dtype == np.float32
        np.testing.assert_allclose(ours.joint_reduction, wanted.joint_reduction, rtol=1e-5)


def test_rounding_does_not_forbid_what_the_budget_pays_for(latent):
    assert len(select(SquaredError(), gaussian(latent), n=4, costs=[0.1] * N, budget=0.3).indices) == 3


def test_costs_and_budget(latent, rng):
    belief, costs = gaussian(latent), rng.uniform(1, 3, N)
    chosen = select(SquaredError(), belief, n=N, costs=costs, budget=7.0)
    spent = costs[list(chosen.indices)].sum()
    assert spent <= 7.0
    assert np.all(costs[[i for i in range(N) if i not in chosen.indices]] > 7.0 - spent)  # nothing else was affordable
    assert chosen.indices[0] == int(np.argmax(score(SquaredError(), belief, costs=costs)))
    assert len(select(SquaredError(), belief, n=2, budget=1.5).indices) == 1
    assert select(SquaredError(), belief, n=2, costs=costs, budget=0.5).indices == ()
    assert select(SquaredError(), belief, n=2, costs=costs, budget=0.5).joint_reduction.shape == (0,)


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
    chosen = select(loss, classes, n=4)
    assert chosen.method == "enumerated"
    wanted = [enumerated(loss, classes, chosen.indices[: t + 1]) for t in range(4)]
    np.testing.assert_allclose(chosen.joint_reduction, wanted, rtol=1e-10)
    best = max(enumerated(loss, classes, [chosen.indices[0], i]) for i in range(7) if i != chosen.indices[0])
    np.testing.assert_allclose(chosen.joint_reduction[1], best, rtol=1e-10)


def test_sampled_configurations_are_within_their_error(classes):
    loss = LogLoss([1, 50, 2])
    misses = []
    for seed in range(8):
        chosen = select(loss, classes, n=6, random_state=np.random.default_rng(seed), max_configurations=60)
        assert chosen.method == "sampled"
        assert np.all(chosen.sampling_error[:4] == 0)  # three labels are 27 configurations: their extension is exact
        assert np.all(chosen.sampling_error[4:] > 0)
        exact = [enumerated(loss, classes, chosen.indices[:t]) for t in (5, 6)]
        misses.append((chosen.joint_reduction[4:] - exact) / chosen.sampling_error[4:])
    assert np.max(np.abs(misses)) < 4
    assert 0.3 < np.sqrt(np.mean(np.square(misses))) < 2  # nor is the error overstated
    again = select(loss, classes, n=6, random_state=np.random.default_rng(7), max_configurations=60)
    assert again.indices == chosen.indices


def test_votes_and_their_probabilities_make_the_same_batch(rng):
    votes = rng.integers(3, size=(10, 15))
    belief = VoteEnsemble(votes[:6], votes[6:], 3)
    ours, theirs = select(LogLoss(), belief, n=3), select(LogLoss(), belief.as_probabilities(), n=3)
    assert ours.indices == theirs.indices
    np.testing.assert_allclose(ours.joint_reduction, theirs.joint_reduction)


def test_batches_of_normal_ensembles(rng):
    """Members so far apart that one label tells which it is: nothing is left for a second."""
    means = np.array([0.0, 10.0, 20.0])
    belief = NormalEnsemble(np.tile(means, (3, 1)), 0.5, rng.standard_normal((2, 3)), 0.1)
    chosen = select(SquaredError(), belief, n=2)
    np.testing.assert_allclose(chosen.joint_reduction, belief.context_mean.var(axis=1).mean(), rtol=1e-6)
    overlapping = NormalEnsemble(rng.standard_normal((3, 3)), 1.0, rng.standard_normal((2, 3)), 0.1)
    few = select(SquaredError(), overlapping, n=2)
    assert few.method == "enumerated"
    assert score(SquaredError(), overlapping).max() == pytest.approx(few.joint_reduction[0], rel=1e-6)
    assert few.joint_reduction[1] > few.joint_reduction[0]


def test_all_libraries_choose_the_same(xp, latent, classes):
    given = gaussian(latent)
    fields = ("mean", "variance", "candidate_variance", "covariance", "candidate_covariance")
    belief = GaussianBelief(*(xp.asarray(np.array(getattr(given, field))) for field in fields))
    assert select(SquaredError(), belief, n=3).indices == select(SquaredError(), given, n=3).indices
    soft = CategoricalEnsemble(*(xp.asarray(np.array(each)) for each in (classes.candidates, classes.contexts)))
    plain = CategoricalEnsemble(classes.candidates, classes.contexts)
    for settings in ({}, {"max_configurations": 20}):
        ours, wanted = (select(LogLoss(), each, n=4, **settings) for each in (soft, plain))
        assert ours.indices == wanted.indices
        assert ours.method == wanted.method


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be a whole number from 1 to 9"),
        ({"n": 10}, ValueError, "n must be a whole number from 1 to 9"),
        ({"budget": 0.0}, ValueError, "budget must be positive"),
        ({"costs": [1.0]}, ValueError, r"costs must have shape \[9\]"),
        ({"max_configurations": 0}, ValueError, "max_configurations must be a whole number, 1 or more"),
        ({"context_weights": [0.0] * M}, ValueError, "context_weights must not all be 0"),
    ],
)
def test_bad_settings_are_refused_and_nothing_is_drawn(latent, settings, error, message):
    draws = np.random.default_rng(5)
    with pytest.raises(error, match=message):
        select(SquaredError(), gaussian(latent), **{"n": 2, "random_state": draws, **settings})
    assert draws.random() == np.random.default_rng(5).random()


def test_covariances_between_candidates_are_needed(latent):
    given = gaussian(latent)
    belief = GaussianBelief(given.mean, given.variance, given.candidate_variance, given.covariance)
    with pytest.raises(ValueError, match="give candidate_covariance"):
        select(SquaredError(), belief, n=2)


def test_beliefs_of_ones_own_have_no_joint_batches(rng):
    with pytest.raises(TypeError, match=r'got TableBelief. .* select\(..., stochastic="power"\) draws'):
        select(SquaredError(), random_table(rng, [0.0, 1.0]), n=2)


@pytest.mark.parametrize("loss", REAL_LOSSES)
def test_gains_come_on_top_of_pending_labels(loss, latent):
    belief, pending = gaussian(latent), (4, 1)
    selection = select(loss, belief, n=3, pending=pending)
    assert not set(selection.indices) & set(pending)
    batches = [pending, *((*pending, *batch) for batch in first(selection.indices))]
    worths = np.asarray(joint_worths(loss, belief, batches))
    assert selection.joint_reduction == pytest.approx(worths[1:] - worths[0], rel=1e-8)
    others = [x for x in range(N) if x not in pending]
    singles = joint_worths(loss, belief, [(*pending, x) for x in others])
    assert selection.indices[0] == others[int(np.argmax(singles))]


def test_pending_labels_of_an_ensemble_are_configurations(rng):
    belief = CategoricalEnsemble(rng.dirichlet(np.ones(3), (6, 4)), rng.dirichlet(np.ones(3), (5, 4)))
    alone = select(LogLoss(), belief, n=3)
    rest = select(LogLoss(), belief, n=2, pending=alone.indices[:1])
    assert rest.indices == alone.indices[1:]
    assert rest.joint_reduction == pytest.approx(alone.joint_reduction[1:] - alone.joint_reduction[0], rel=1e-9)


def test_drawn_batches_leave_out_what_is_pending(latent, rng):
    belief = gaussian(latent)
    drawn = select(SquaredError(), belief, n=N - 2, pending=(0, 3), stochastic="power", random_state=rng)
    assert sorted(drawn.indices) == [x for x in range(N) if x not in (0, 3)]


@pytest.mark.parametrize(("pending", "message"), [((N,), "positions from 0 to 8; got 9"), (range(8), "at most 1")])
def test_pending_positions_are_checked(pending, message, latent):
    with pytest.raises(ValueError, match=message):
        select(SquaredError(), gaussian(latent), n=2, pending=tuple(pending))


@pytest.mark.parametrize("pending", [(), (2,)])
def test_the_error_over_contexts_is_that_of_a_weighted_mean(pending, latent):
    belief, weights = gaussian(latent), np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    selection = select(Linex(1.0), belief, n=2, context_weights=weights, pending=pending)
    contexts = [
        joint_worths(Linex(1.0), belief, [(*pending, *selection.indices)], np.eye(M)[c])[0]
        - (joint_worths(Linex(1.0), belief, [pending], np.eye(M)[c])[0] if pending else 0.0)
        for c in range(M)
    ]
    mean = weights @ contexts
    assert selection.joint_reduction[1] == pytest.approx(mean, rel=1e-9)
    expected = np.sqrt(np.sum(weights**2 * (np.array(contexts) - mean) ** 2))
    assert selection.context_error[1] == pytest.approx(expected, rel=1e-7)


def test_the_error_over_contexts_of_an_ensemble(rng):
    belief = CategoricalEnsemble(rng.dirichlet(np.ones(3), (6, 4)), rng.dirichlet(np.ones(3), (5, 4)))
    selection = select(LogLoss(), belief, n=1)
    each = expected_reduction(LogLoss(), belief)[selection.indices[0]]
    assert selection.context_error[0] == pytest.approx(np.std(each) / np.sqrt(len(each)), rel=1e-9)
