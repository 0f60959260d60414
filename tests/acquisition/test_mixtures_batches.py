"""Joint batches under mixtures of Gaussian beliefs, against the definition and against one Gaussian belief."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stakes import (
    CRPS,
    AbsoluteError,
    BoxCox,
    ExponentialWeight,
    GaussianBelief,
    GaussianMixtureBelief,
    Linex,
    LogWarp,
    SquaredError,
    ThresholdDecision,
    WarpedGaussianBelief,
    expected_reduction,
    select,
)
from stakes.acquisition import fallback_scores
from stakes.acquisition.batch_states import start_batch

LOSSES = [SquaredError(), SquaredError(ExponentialWeight(0.6)), Linex(0.8), ThresholdDecision(0.6, 3.0, 1.0)]


def joint_mixture(rng, n_hypotheses=2, n_candidates=4, n_contexts=2, spread=1.0, noise=0.3):
    """A mixture whose covariances, between labels too, come from one joint normal under each hypothesis."""
    total = n_candidates + n_contexts
    roots = rng.standard_normal((n_hypotheses, total, total + 1)) / np.sqrt(total)
    joint = roots @ np.swapaxes(roots, 1, 2) + noise * np.eye(total)
    means = spread * rng.standard_normal((n_hypotheses, total))
    rows, n = joint[:, :n_candidates, :n_candidates], n_candidates
    return GaussianMixtureBelief(
        means[:, n:],
        np.diagonal(joint, axis1=1, axis2=2)[:, n:],
        means[:, :n],
        np.diagonal(rows, axis1=1, axis2=2),
        joint[:, :n, n:],
        rng.uniform(0.5, 1.0, n_hypotheses),
        rows,
    )


def pair_worth(belief, pair, loss, count=121):
    """[M]: E[regret of today's answer] once two labels are known, on a dense grid of both, with closed moments."""
    i, j = pair
    labels = belief.candidate_mean[:, [i, j]]
    sd = np.sqrt(belief.candidate_variance[:, [i, j]])
    axes = [np.linspace((labels - 8 * sd)[:, k].min(), (labels + 8 * sd)[:, k].max(), count) for k in (0, 1)]
    y = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    area = np.prod([axis[1] - axis[0] for axis in axes])
    rates = {"SquaredError": (loss.weight.rate if loss.weight else 0.0,)} if isinstance(loss, SquaredError) else {}
    split = 0.0
    for s in range(belief.n_hypotheses):
        rows = belief.candidate_covariance[s][np.ix_(pair, pair)]
        away, inverse = y - labels[s], np.linalg.inv(rows)
        density = np.exp(-0.5 * np.einsum("qi,ij,qj->q", away, inverse, away)) / (
            2 * np.pi * np.sqrt(np.linalg.det(rows))
        )
        gain = inverse @ belief.covariance[s][list(pair)]  # [2, M]
        mean = belief.mean[s] + away @ gain  # [Q, M]
        rest = belief.variance[s] - np.einsum("im,im->m", belief.covariance[s][list(pair)], gain)
        mass = (belief.weights[s] * area * density)[:, None]
        rate = rates.get("SquaredError", (0.0,))[0]
        weight = mass * np.exp(rate * mean + rate**2 * rest / 2)
        other = weight * (mean + rate * rest)
        if isinstance(loss, Linex):
            other = mass * np.exp(-loss.alpha * mean + loss.alpha**2 * rest / 2)
        if isinstance(loss, ThresholdDecision):
            from scipy.special import ndtr

            above = ndtr((mean - loss.threshold) / np.sqrt(rest))
            weight, other = mass * loss.miss * above, mass * loss.false_alarm * (1 - above)  # of waiting, of acting
        split = split + np.stack([weight, other], axis=-1)
    total = split.sum(0)  # [M, 2]
    if isinstance(loss, SquaredError):
        return ((split[..., 1] - total[:, 1] / total[:, 0] * split[..., 0]) ** 2 / split[..., 0]).sum(0)
    if isinstance(loss, Linex):
        return -(split[..., 0] * np.log(split[..., 1] / split[..., 0] * total[:, 0] / total[:, 1])).sum(0)
    return total.min(-1) - split.min(-1).sum(0)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_two_labels_are_worth_what_the_definition_says(rng, loss):
    belief = joint_mixture(rng)
    chosen = select(loss, belief, n=2)
    assert chosen.method == "enumerated"
    assert_allclose(chosen.sampling_error, 0.0)
    assert_allclose(chosen.joint_reduction[0], expected_reduction(loss, belief).mean(1).max(), rtol=1e-9)
    rtol = 2e-3 if loss.finite_actions else 1e-4  # the grid of the test does not split where decisions change
    assert_allclose(chosen.joint_reduction[1], pair_worth(belief, chosen.indices, loss).mean(), rtol=rtol)
    others = [pair for pair in np.ndindex(4, 4) if pair[0] == chosen.indices[0] and pair[1] != pair[0]]
    best = max(others, key=lambda pair: pair_worth(belief, pair, loss).mean())
    assert best == chosen.indices


def test_more_labels_are_drawn_and_their_error_is_stated(rng):
    belief = joint_mixture(rng, 3, 6, 3)
    chosen = [select(SquaredError(), belief, n=4, random_state=seed) for seed in range(5)]
    assert {each.method for each in chosen} == {"sampled"}
    assert chosen[0].sampling_error[1] == 0.0
    assert np.all(chosen[0].sampling_error[2:] > 0)
    assert np.all(np.diff(chosen[0].joint_reduction) > -3 * chosen[0].sampling_error[1:].max())
    last = np.array([each.joint_reduction[3] for each in chosen if each.indices == chosen[0].indices])
    assert np.std(last) < 3 * np.mean([each.sampling_error[3] for each in chosen])
    again = select(SquaredError(), belief, n=4, random_state=0)
    assert again.indices == chosen[0].indices
    np.testing.assert_array_equal(again.joint_reduction, chosen[0].joint_reduction)


@pytest.mark.parametrize("loss", [*LOSSES, CRPS(), AbsoluteError()], ids=lambda loss: type(loss).__name__)
def test_hypotheses_that_agree_choose_as_one(rng, loss):
    belief = joint_mixture(rng, 1, 4, 2)
    arrays = belief.mean, belief.variance, belief.candidate_mean, belief.candidate_variance, belief.covariance
    rows = np.repeat(belief.candidate_covariance, 2, axis=0)
    two = GaussianMixtureBelief(*(np.repeat(each, 2, axis=0) for each in arrays), [1.0, 2.0], rows)
    if isinstance(loss, CRPS | AbsoluteError):
        two, belief = (each.take(slice(0, 3), slice(0, 1)) for each in (two, belief))
    n = 2 if isinstance(loss, CRPS | AbsoluteError) else 3
    one = select(loss, belief.hypothesis(0), n=n)
    chosen = select(loss, two, n=n, random_state=1)
    assert chosen.indices[:2] == one.indices[:2]
    rtol = 1e-2 if loss.finite_actions else 2e-4
    assert_allclose(chosen.joint_reduction[:2], one.joint_reduction[:2], rtol=rtol)
    if n == 2:
        return
    errors = chosen.sampling_error[2] + 1e-4 * one.joint_reduction[2]
    assert abs(chosen.joint_reduction[2] - one.joint_reduction[2]) < 5 * errors


def test_pending_candidates_costs_and_functions_to_rows(rng):
    belief = joint_mixture(rng)
    rows = belief.candidate_covariance
    lazy = GaussianMixtureBelief(
        belief.mean,
        belief.variance,
        belief.candidate_mean,
        belief.candidate_variance,
        belief.covariance,
        belief.weights,
        lambda i: rows[:, i],
    )
    first, second = (select(SquaredError(), each, n=2, pending=[1], random_state=0) for each in (belief, lazy))
    assert first.indices == second.indices
    assert 1 not in first.indices
    assert_allclose(first.joint_reduction, second.joint_reduction)
    assert select(SquaredError(), belief, n=3, costs=[9.0, 1.0, 9.0, 9.0], budget=1.5).indices == (1,)


def test_a_copy_of_a_label_without_noise_tells_nothing_more(rng):
    belief = joint_mixture(rng, 2, 3, 2)
    at = [0, 0, 1, 2]  # the first twice
    rows = belief.candidate_covariance[:, at][:, :, at]
    copied = GaussianMixtureBelief(
        belief.mean,
        belief.variance,
        belief.candidate_mean[:, at],
        belief.candidate_variance[:, at],
        belief.covariance[:, at],
        belief.weights,
        rows,
    )
    batch = start_batch(SquaredError(), copied, None, np.random.default_rng(0), 4096)
    batch.add(0)
    assert_allclose(batch.log_reductions()[1], batch.log_joint(), rtol=1e-6)


def test_covariances_between_labels_are_asked_for(rng):
    belief = joint_mixture(rng)
    without = GaussianMixtureBelief(
        belief.mean, belief.variance, belief.candidate_mean, belief.candidate_variance, belief.covariance
    )
    with pytest.raises(ValueError, match=r"give candidate_covariance, \[S, N, N\]"):
        select(SquaredError(), without, n=2)
    drawn = select(SquaredError(), without, n=2, stochastic="power", random_state=0)
    assert drawn.joint_reduction is None


def test_a_decision_that_no_label_changes_falls_back(rng):
    belief = joint_mixture(rng)
    scores, n_labels = fallback_scores(ThresholdDecision(60.0), belief)
    assert n_labels is None
    assert np.all(scores > 0)
    assert select(ThresholdDecision(60.0), belief, n=2).ranked_by == ("variance reduction", "variance reduction")


def test_warped(rng):
    """Squared error of logarithms under a log warp is squared error of f."""
    belief = joint_mixture(rng, 2, 4, 2, spread=0.3)
    warped = WarpedGaussianBelief(belief, LogWarp())
    chosen, wanted = select(BoxCox(0.0), warped, n=2), select(SquaredError(), belief, n=2)
    assert chosen.indices == wanted.indices
    assert_allclose(chosen.joint_reduction, wanted.joint_reduction, rtol=1e-5)
    few = WarpedGaussianBelief(belief.take(slice(0, 2), slice(0, 1)), LogWarp())
    joint = select(CRPS(), few, n=2).joint_reduction
    assert joint[1] > joint[0] > 0


def test_torch(rng):
    torch = pytest.importorskip("torch")
    belief = joint_mixture(rng)
    names = (
        "mean",
        "variance",
        "candidate_mean",
        "candidate_variance",
        "covariance",
        "weights",
        "candidate_covariance",
    )
    tensors = GaussianMixtureBelief(**{each: torch.asarray(np.array(getattr(belief, each))) for each in names})
    for loss in LOSSES:
        chosen, wanted = (select(loss, each, n=2, random_state=0) for each in (tensors, belief))
        assert chosen.indices == wanted.indices
        assert_allclose(chosen.joint_reduction.numpy(), wanted.joint_reduction, rtol=1e-6)


def test_a_gaussian_belief_is_the_limit(rng):
    belief = joint_mixture(rng, 1)
    assert isinstance(belief.simplest(), GaussianBelief)
    assert select(SquaredError(), belief, n=2).method == "exact"
