"""Where no single label is worth anything: the worth of several like it, then variance reduction, and it says so."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from stakes import (
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    GaussianBelief,
    LogLoss,
    LogWarp,
    NormalEnsemble,
    SquaredError,
    ThresholdDecision,
    VoteEnsemble,
    WarpedGaussianBelief,
    ZeroOne,
    score,
    select,
    uncertainty,
)
from stakes.acquisition import fallback_scores
from stakes.acquisition.batch_states import start_batch
from stakes.acquisition.batches import worth_floor
from tests.brute import normal_expectation, random_table

FAR = (0, 1)


def near_and_far(near=2, xp=np):
    """Two labels of a target thirteen sd from a threshold of 6, then some of one six sd from it.

    Each removes a tenth of the variance of its own target; the far one has four times as much.
    """
    own = np.repeat(np.eye(2), [2, near], axis=0)  # [N, M]
    latent = own * [4.0, 1.0]  # covariances with the targets
    labels = latent @ own.T + np.diag(9.0 * latent.sum(1))
    arrays = ([-20.0, 0.0], [4.0, 1.0], np.diag(labels), latent, labels)
    return GaussianBelief(*(xp.asarray(np.array(each, float)) for each in arrays))


def threshold_reduction(threshold, rho):
    """E[max(0, 2 P(z > threshold | y) - 1)] for z ~ N(0, 1): what changing one's mind to act is worth."""

    def worth(eta):
        above = norm.sf((threshold - np.sqrt(rho) * eta) / np.sqrt(1 - rho))
        return np.maximum(0, 2 * above - 1)

    return normal_expectation(worth, 0.0, 1.0, [threshold / np.sqrt(rho)])


def test_labels_near_the_threshold_come_before_those_that_remove_more_variance():
    belief = near_and_far(10)
    chosen = select(ThresholdDecision(6.0), belief, n=10)
    assert set(chosen.indices) == set(range(2, 12))
    assert chosen.ranked_by[0] == "worth of 8 such labels"
    assert chosen.joint_reduction[0] == pytest.approx(0.0, abs=1e-30)
    assert chosen.joint_reduction[9] > 0
    assert select(SquaredError(), belief, n=1).indices[0] in FAR


def test_single_labels_gain_once_a_batch_has_brought_the_threshold_near():
    chosen = select(ThresholdDecision(3.0), near_and_far(8), n=8)
    assert chosen.ranked_by[0].startswith("worth of")
    assert "gain" in chosen.ranked_by
    assert np.all(np.diff(chosen.joint_reduction) >= 0)


def test_scores_of_several_labels_by_hand(xp, host):
    scores, n_labels = fallback_scores(ThresholdDecision(6.0), near_and_far(xp=xp))
    assert n_labels == 8
    wanted = threshold_reduction(6.0, 1 - 0.9**8) / 2  # of two contexts
    np.testing.assert_allclose(host(scores), [0, 0, wanted, wanted], rtol=0.2, atol=1e-60)  # a tail, by whatever route


def test_variance_reduction_is_the_last_resort(xp, host):
    belief, loss = near_and_far(1, xp), ThresholdDecision(200.0)  # out of reach of any number of labels
    scores, n_labels = fallback_scores(loss, belief, context_weights=[1.0, 3.0])
    assert n_labels is None
    np.testing.assert_allclose(
        host(scores), host(score(SquaredError(), belief, context_weights=[1.0, 3.0])), rtol=1e-12
    )
    ours, wanted = (select(each, belief, n=2, context_weights=[1.0, 3.0]) for each in (loss, SquaredError()))
    assert ours.indices == wanted.indices
    assert ours.ranked_by == ("variance reduction",) * 2


def test_a_warped_belief_ranks_by_its_latent_one():
    latent = near_and_far()
    warped = WarpedGaussianBelief(latent, LogWarp())
    chosen = select(ThresholdDecision(float(np.exp(6.0))), warped, n=2)
    assert chosen.indices == select(ThresholdDecision(6.0), latent, n=2).indices == (2, 3)
    assert chosen.ranked_by[0] == "worth of 8 such labels"
    assert set(select(ThresholdDecision(1e80), warped, n=2).indices) == set(FAR)


def test_worth_is_for_each_unit_of_cost_and_within_the_budget():
    belief, costs = near_and_far(4), np.array([1.0, 1.0, 1.0, 0.5, 3.0, 1.0])
    chosen = select(ThresholdDecision(6.0), belief, n=6, costs=costs, budget=3.5)
    assert chosen.indices[0] == 3
    assert 4 not in chosen.indices
    assert costs[list(chosen.indices)].sum() == 3.5
    plain, priced = (fallback_scores(ThresholdDecision(6.0), belief, costs=each)[0] for each in (None, costs))
    np.testing.assert_allclose(priced, plain / costs)


def test_gains_are_what_counts_where_there_are_any(rng):
    assert select(SquaredError(), near_and_far(), n=4).ranked_by == ("gain",) * 4
    assert select(ThresholdDecision(0.5), near_and_far(), n=2).ranked_by == ("gain",) * 2
    soft = rng.dirichlet(np.ones(3), (7, 5))
    assert select(LogLoss(), CategoricalEnsemble(soft[:4], soft[4:]), n=3).ranked_by == ("gain",) * 3


def test_worth_that_single_precision_cannot_hold_is_nothing():
    """At twelve sd knowing the target is worth 2e-33, four labels 1e-46 or so."""
    own = np.array([[1.0], [0.5]])
    labels = own @ own.T + np.diag([1.0, 1.0])
    arrays = ([0.0], [1.0], np.diag(labels), own, labels)
    belief = GaussianBelief(*(np.array(each, np.float32) for each in arrays))
    chosen = select(ThresholdDecision(12.0), belief, n=2)
    assert chosen.joint_reduction.dtype == np.float32
    assert chosen.joint_reduction.tolist() == [0, 0]
    assert chosen.indices == (0, 1)
    assert "gain" not in chosen.ranked_by
    scores, _ = fallback_scores(ThresholdDecision(12.0), belief)
    assert scores[0] > scores[1] >= 0


def test_labels_that_tell_nothing_are_reported_to_be_chosen_for_nothing():
    belief = GaussianBelief([0.0], [1.0], [1.0, 1.0], [[0.0], [0.0]], np.eye(2))
    chosen = select(SquaredError(), belief, n=2)
    assert chosen.ranked_by == ("variance reduction",) * 2
    assert chosen.joint_reduction.tolist() == [0, 0]


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_a_constant_added_to_all_costs_changes_nothing(offset):
    """What is too small to count is measured by the most that labels can be worth, not by the size of costs."""
    soft = np.array([[[0.5 + 1e-5, 0.5 - 1e-5], [0.5 - 1e-5, 0.5 + 1e-5]]])
    belief = CategoricalEnsemble(soft, np.array([[[0.6, 0.4], [0.4, 0.6]]]))
    assert select(CostMatrix(np.array([[0.0, 1.0], [1.0, 0.0]]) + offset), belief, n=1).ranked_by == ("gain",)


COSTS = CostMatrix([[0, 1], [50, 0]])  # wait or treat: treating is right above a probability of 1 / 51


def soft_members(members=200):
    """Rows 0 to 5 are weak signs of a disease that one member in 200 believes in; row 6, of an even more open one."""
    ill = np.arange(members)[None, :] == 0
    even = np.arange(members)[None, :] % 2 == 0
    sick = np.concatenate([np.repeat(ill, 6, axis=0), even])
    probability = np.where(sick, 0.6, 0.4)
    contexts = np.concatenate([ill, even]).astype(float)
    return CategoricalEnsemble(*(np.stack([1 - each, each], axis=-1) for each in (probability, contexts)))


def enumerated_repeats(loss, belief, row, count):
    """The worth of `count` repeats of a label, by all their sequences."""
    expected = belief.contexts @ loss.statistics(np.eye(belief.n_classes))  # [M, K, D]
    split = []
    for labels in product(range(belief.n_classes), repeat=count):
        mass = belief.member_weights * np.prod([belief.candidates[row, :, label] for label in labels], axis=0)
        split.append(np.einsum("k,mkd->md", mass, expected))
    split = np.stack(split, axis=1)  # [M, Q, D]
    return loss.regret(split, loss.action(split.sum(1))[:, None, :]).sum(1).mean()


def test_signs_too_weak_alone_are_bought_for_what_four_are_worth(xp, host):
    given = soft_members()
    belief = CategoricalEnsemble(*(xp.asarray(each) for each in (given.candidates, given.contexts)))
    assert np.all(host(score(COSTS, belief)) == 0)
    scores, n_labels = fallback_scores(COSTS, belief)
    assert n_labels == 4
    np.testing.assert_allclose(host(scores), [enumerated_repeats(COSTS, given, i, 4) for i in range(7)], rtol=1e-10)
    chosen = select(COSTS, belief, n=4)
    assert chosen.ranked_by[0] == "worth of 4 such labels"
    assert 6 not in chosen.indices
    assert float(chosen.joint_reduction[0]) == 0
    np.testing.assert_allclose(float(chosen.joint_reduction[3]), host(scores)[0], rtol=1e-10)
    assert int(np.argmax(host(score(BrierLoss(), belief)))) == 6  # where variance reduction would have gone


def test_too_many_configurations_leave_variance_reduction():
    chosen = select(COSTS, soft_members(), n=2, max_configurations=2)
    assert chosen.ranked_by == ("variance reduction",) * 2
    assert chosen.indices[0] == 6


def test_the_most_that_labels_can_be_worth():
    """Knowing the target, which is today's expected cost; for an ensemble, knowing the member."""
    latent = near_and_far()
    for belief, loss in (
        (latent, ThresholdDecision(3.0)),
        (WarpedGaussianBelief(latent, LogWarp()), ThresholdDecision(9.0)),
    ):
        batch = start_batch(loss, belief, None, np.random.default_rng(0), 4096)
        np.testing.assert_allclose(np.exp(batch.log_most()).sum(), np.mean(uncertainty(loss, belief)), rtol=1e-3)
    belief = soft_members()
    batch = start_batch(COSTS, belief, None, np.random.default_rng(0), 4096)
    assert np.exp(batch.log_most()).sum() == pytest.approx((50 / 200 + 1 * 0.5) / 2)  # waits though ill, or treats


def test_repeats_of_three_classes_equal_their_sequences(rng):
    soft = rng.dirichlet(np.ones(3), (6, 5))
    belief = CategoricalEnsemble(soft[:3], soft[3:], rng.uniform(1, 2, 5))
    batch = start_batch(LogLoss(), belief, None, rng, 4096)
    assert batch.repeats == (2, 4, 8)
    for count in (2, 4):
        wanted = [enumerated_repeats(LogLoss(), belief, i, count) for i in range(3)]
        np.testing.assert_allclose(np.exp(batch.log_reductions(count)), wanted, rtol=1e-10)
    batch.add(0)
    np.testing.assert_allclose(np.exp(batch.log_reductions(1)[0]), enumerated_repeats(LogLoss(), belief, 0, 2))
    np.testing.assert_allclose(np.exp(batch.log_reduction(0)), enumerated_repeats(LogLoss(), belief, 0, 2))
    np.testing.assert_allclose(np.exp(batch.log_joint()), score(LogLoss(), belief)[0])


def test_votes_that_flip_no_decision_alone():
    """A repeated vote tells no more than one, so variance decides; two votes that halve the members differently flip.

    One member in 200 believes in the disease: 0.005, then 0.01 and 0.02, which is above 1 / 51.
    """
    member = np.arange(200)
    votes = np.stack([member < 100, member % 2 == 0, member < 100]).astype(int)
    belief = VoteEnsemble(votes, (member == 0)[None, :].astype(int), 2)
    chosen = select(COSTS, belief, n=3)
    assert chosen.ranked_by[0] == "variance reduction"
    assert chosen.ranked_by[1] == "gain"
    assert set(chosen.indices[:2]) in ({0, 1}, {1, 2})
    np.testing.assert_allclose(chosen.joint_reduction, [0, (50 * 1 - 49) / 200, (50 * 1 - 49) / 200], atol=1e-15)


def test_normal_ensembles_go_by_variance(rng):
    belief = NormalEnsemble(rng.standard_normal((5, 4)), 0.5, rng.standard_normal((3, 4)), 0.2)
    ours, wanted = (
        select(loss, belief, n=2, max_configurations=50) for loss in (ThresholdDecision(50.0), SquaredError())
    )
    assert ours.ranked_by == ("variance reduction",) * 2
    assert ours.indices[0] == wanted.indices[0]
    scores, _ = fallback_scores(ThresholdDecision(50.0), belief)
    np.testing.assert_allclose(scores, score(SquaredError(), belief), rtol=1e-9)


@st.composite
def agreeing(draw):
    """An ensemble of any kind whose members differ on candidates and say the same at contexts, and a loss for it."""
    rng, members = np.random.default_rng(draw(st.integers(0, 99))), draw(st.integers(1, 7))
    weights = rng.dirichlet(np.ones(members))
    table = rng.dirichlet(np.ones(3), size=(3, members))
    here = np.repeat(rng.dirichlet(np.ones(3), size=(2, 1)), members, axis=1)
    means, there = rng.normal(size=(3, members)), np.repeat(rng.normal(size=(2, 1)), members, axis=1)
    votes = rng.integers(3, size=(3, members)), np.repeat(rng.integers(3, size=(2, 1)), members, axis=1)
    return draw(
        st.sampled_from(
            [
                (LogLoss(), CategoricalEnsemble(table, here, weights)),
                (ZeroOne(), CategoricalEnsemble(table, here, weights)),
                (BrierLoss(), VoteEnsemble(*votes, 3, weights)),
                (SquaredError(), NormalEnsemble(means, 0.3, there, 0.3, weights)),
            ]
        )
    )


@settings(max_examples=25)
@given(agreeing())
def test_where_members_agree_at_contexts_no_rounding_is_taken_for_worth(pair):
    loss, belief = pair
    assert worth_floor(loss, belief) == np.inf
    scores, n_labels = fallback_scores(loss, belief)
    assert n_labels is None
    np.testing.assert_array_equal(scores, 0.0)
    assert score(loss, belief).max() < 1e-14  # all that there is to go by
    assert select(loss, belief, n=2).ranked_by == ("variance reduction",) * 2


def test_members_that_differ_at_one_context_are_listened_to(rng):
    contexts = np.repeat(rng.dirichlet(np.ones(3), size=(4, 1)), 5, axis=1)
    contexts[2, 3] = contexts[2, 3, ::-1]
    belief = CategoricalEnsemble(rng.dirichlet(np.ones(3), size=(6, 5)), contexts)
    assert worth_floor(LogLoss(), belief) == -np.inf
    assert select(LogLoss(), belief, n=1).ranked_by == ("gain",)
    assert score(LogLoss(), belief).min() > 1e-9


def test_beliefs_of_ones_own_go_by_variance(rng):
    belief = random_table(rng, [0.0, 1.0, 3.0])
    scores, n_labels = fallback_scores(
        ThresholdDecision(10.0), belief, context_weights=[1, 2, 3, 4], costs=[1.0, 2.0, 1.0]
    )
    assert n_labels is None
    np.testing.assert_allclose(
        scores, score(SquaredError(), belief, context_weights=[1, 2, 3, 4], costs=[1.0, 2.0, 1.0])
    )


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="costs must be positive"):
        fallback_scores(ThresholdDecision(6.0), near_and_far(), costs=np.zeros(4))
    with pytest.raises(TypeError, match="the first argument must be a loss"):
        fallback_scores("squared", near_and_far())
    with pytest.raises(TypeError, match="LogLoss is for class targets"):
        fallback_scores(LogLoss(), near_and_far())
