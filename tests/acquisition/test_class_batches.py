"""Batches of classes, by products over members: beside the general route, enumeration, and full comparisons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import (
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    LogLoss,
    SphericalLoss,
    VoteEnsemble,
    ZeroOne,
    select,
)
from stakes.acquisition import class_batches
from stakes.acquisition.class_batches import ClassBatch, serves
from stakes.acquisition.ensemble_batches import EnsembleBatch

COSTS = CostMatrix([[0, 2, 9], [1, 0, 9], [5, 5, 0]])
LOSSES = [LogLoss(), LogLoss([1, 50, 2]), BrierLoss(), BrierLoss([1, 5, 2]), COSTS, ZeroOne(), SphericalLoss()]
NAMES = ["log", "weighted log", "Brier", "weighted Brier", "costs", "zero-one", "spherical"]


def members(seed, n=9, contexts=6, k=8, sharp=0.5):
    """Soft members that hang together, with weights of their own."""
    rng = np.random.default_rng(seed)
    soft = rng.dirichlet(np.full(3, sharp), (n + contexts, k))
    return CategoricalEnsemble(soft[:n], soft[n:], rng.uniform(0.5, 2.0, k))


def votes(seed, n=9, contexts=6, k=12):
    rng = np.random.default_rng(seed)
    each = rng.integers(3, size=(n + contexts, k))
    return VoteEnsemble(each[:n], each[n:], 3, rng.uniform(0.5, 2.0, k))


def both(loss, belief, most=4096):
    """The quick way and the general one."""
    weights = np.log(np.arange(1.0, belief.n_contexts + 1) / np.arange(1.0, belief.n_contexts + 1).sum())
    return [kind(loss, belief, weights, np.random.default_rng(0), most) for kind in (ClassBatch, EnsembleBatch)]


@pytest.mark.parametrize("kind", [members, votes])
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_every_pick_is_worth_what_the_general_route_says(loss, kind):
    quick, slow = both(loss, kind(3))
    for candidate in (4, 1, 7):
        np.testing.assert_allclose(np.exp(quick.log_reductions()), np.exp(slow.log_reductions()), rtol=1e-9, atol=1e-14)
        one = quick.log_reduction(candidate), slow.log_reduction(candidate)
        np.testing.assert_allclose(*np.exp(one), rtol=1e-9)
        np.testing.assert_allclose(quick.variance_gains(), slow.variance_gains(), rtol=1e-7, atol=1e-13)
        assert quick.add(candidate) == slow.add(candidate) == 0.0
        np.testing.assert_allclose(np.exp(quick.log_joint()), np.exp(slow.log_joint()), rtol=1e-9)
        contexts = np.exp(quick.log_contexts()), np.exp(slow.log_contexts())
        np.testing.assert_allclose(*contexts, rtol=1e-8, atol=1e-13)
        np.testing.assert_allclose(quick.log_most(), slow.log_most(), rtol=1e-9)
        assert quick.method == "enumerated"


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_repeats_are_worth_what_the_general_route_says(loss):
    quick, slow = both(loss, members(5))
    assert quick.repeats == slow.repeats == (2, 4, 8)
    for count in quick.repeats:
        found = np.exp(quick.log_reductions(count)), np.exp(slow.log_reductions(count))
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("loss", [LogLoss(), LogLoss([1, 50, 2]), BrierLoss(), BrierLoss([1, 5, 2])])
def test_members_that_nearly_agree_keep_their_digits(loss):
    rng, base = np.random.default_rng(0), np.array([0.5, 0.3, 0.2])
    step = 1e-5 * rng.standard_normal((15, 8, 3))
    soft = base + step - step.mean(axis=2, keepdims=True)
    quick, slow = both(loss, CategoricalEnsemble(soft[:9], soft[9:]))
    np.testing.assert_allclose(quick.log_reductions(), slow.log_reductions(), rtol=0, atol=1e-6)


@given(seed=st.integers(0, 10_000), loss=st.sampled_from(LOSSES), hard=st.booleans())
def test_joint_worths_grow_and_stay_below_the_most(seed, loss, hard):
    belief = votes(seed) if hard else members(seed, sharp=0.2)
    found = select(loss, belief, n=5, random_state=0, max_configurations=40)
    most = np.exp(ClassBatch(loss, belief, np.full(6, -np.log(6.0)), np.random.default_rng(0), 40).log_most()).sum()
    assert np.all(np.diff(found.joint_reduction) >= -1e-12)
    assert found.joint_reduction[-1] <= most * (1 + 1e-9) + 3 * found.sampling_error[-1]


def test_votes_are_never_sampled():
    belief = votes(1, n=30, k=40)
    found = select(LogLoss(), belief, n=20, max_configurations=5)
    assert found.method == "enumerated"
    assert np.all(found.sampling_error == 0)
    plain = np.full(6, -np.log(6.0))
    slow = EnsembleBatch(LogLoss(), belief, plain, np.random.default_rng(0), 4096)
    for candidate in found.indices:
        slow.add(candidate)
    np.testing.assert_allclose(np.exp(slow.log_joint()), found.joint_reduction[-1], rtol=1e-9)


@pytest.mark.parametrize("loss", [LogLoss(), BrierLoss(), COSTS], ids=["log", "Brier", "costs"])
def test_paths_that_are_drawn_are_right_on_average(loss):
    """Errors are those that many seeds show, and the mean is that of all configurations."""
    belief, batch = members(2, n=6), (0, 3, 1, 5, 2, 4)
    exact = both(loss, belief)[0]
    for candidate in batch:
        exact.add(candidate)
    found, errors = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        few = ClassBatch(loss, belief, exact.log_weights, rng, 30)
        errors.append([few.add(candidate) for candidate in batch][-1] * np.exp(few.log_joint()))
        found.append(np.exp(few.log_joint()))
        assert few.method == "sampled"
        assert len(few.rows) == 30
    wanted = np.exp(exact.log_joint())
    assert abs(np.mean(found) - wanted) < 4 * np.std(found) / np.sqrt(60) + 1e-12
    assert 0.4 < np.std(found) / np.mean(errors) < 1.3  # evenly drawn: no larger than what is stated
    assert np.std(found) < 0.06 * wanted


@pytest.mark.parametrize("loss", [LogLoss(), LogLoss([1, 5, 2]), BrierLoss(), COSTS, SphericalLoss()])
def test_a_race_ends_near_the_best(loss, monkeypatch):
    belief = members(7, n=60, contexts=40, k=20)
    full = select(loss, belief, n=5, random_state=0, max_configurations=300)
    monkeypatch.setattr(class_batches, "_FULL", 0)
    monkeypatch.setattr(class_batches, "_ROUND", 2**21)
    raced = select(loss, belief, n=5, random_state=0, max_configurations=300)
    assert raced.joint_reduction[-1] > 0.95 * full.joint_reduction[-1]
    batch = ClassBatch(loss, belief, np.full(40, -np.log(40.0)), np.random.default_rng(0), 300)
    for candidate in raced.indices[:4]:
        batch.add(candidate)
    np.testing.assert_allclose(np.exp(batch.log_joint()), raced.joint_reduction[3], rtol=1e-9)  # of the winner, in full


def test_a_race_minds_prices_and_what_is_taken(monkeypatch):
    monkeypatch.setattr(class_batches, "_FULL", 0)
    belief = members(7, n=60, contexts=40, k=20)
    best = select(LogLoss(), belief, n=1).indices[0]
    costs = np.ones(60)
    costs[best] = 1000.0
    found = select(LogLoss(), belief, n=4, costs=costs, pending=[3])
    assert best not in found.indices
    assert 3 not in found.indices
    assert len(set(found.indices)) == 4


@pytest.mark.parametrize("size", [1e-2, 1e-4])
def test_weak_races_keep_their_digits(size, monkeypatch):
    rng, base = np.random.default_rng(0), np.array([0.5, 0.3, 0.2])
    step = size * rng.standard_normal((90, 20, 3))
    soft = base + step - step.mean(axis=2, keepdims=True)
    belief = CategoricalEnsemble(soft[:60], soft[60:])
    full = select(LogLoss(), belief, n=1)
    monkeypatch.setattr(class_batches, "_FULL", 0)
    raced = select(LogLoss(), belief, n=1)
    assert raced.indices == full.indices
    np.testing.assert_allclose(raced.joint_reduction, full.joint_reduction, rtol=1e-6)


def test_contexts_out_of_range_of_each_other_take_the_general_route():
    belief = members(0)
    assert serves(LogLoss(), belief, np.full(6, -np.log(6.0)))
    assert not serves(LogLoss(), belief, np.array([0.0, -800.0, 0.0, 0.0, 0.0, 0.0]))


def test_a_belief_of_a_users_own_takes_the_general_route():
    class Own(CategoricalEnsemble):
        pass

    ours = CategoricalEnsemble(members(0).candidates, members(0).contexts)
    own = Own(ours.candidates, ours.contexts)
    assert not serves(LogLoss(), own, np.zeros(6))
    assert select(LogLoss(), own, n=2).indices == select(LogLoss(), ours, n=2).indices


def test_where_members_agree_nothing_is_gained():
    soft = np.random.default_rng(0).dirichlet(np.ones(3), (5, 4))
    agreed = np.repeat(soft[:3, :1], 4, axis=1)
    batch = ClassBatch(
        LogLoss(), CategoricalEnsemble(soft, agreed), np.log(np.ones(3) / 3), np.random.default_rng(0), 9
    )
    assert np.all(batch.log_reductions() == -np.inf)
    assert batch.add(0) == 0.0
    assert batch.log_joint() == -np.inf
