"""Losses by logarithms: what Linex makes of beliefs under which its two statistics have no number in common."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stakes import (
    CRPS,
    AbsoluteError,
    BregmanLoss,
    ExponentialLinearWeight,
    ExponentialWeight,
    GaussianBelief,
    InterpolatedWeight,
    Linex,
    LogScore,
    LogWarp,
    Mahalanobis,
    NormalEnsemble,
    SquaredError,
    VectorGaussianBelief,
    WarpedGaussianBelief,
    Weight,
    effective_context_weights,
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    score,
    select,
    uncertainty,
)
from stakes.evaluation import bayes_prediction
from stakes.losses import Exponential, NegativeLog


def half_known(mean=0.0, sd=1.0, rho=0.5):
    return GaussianBelief([mean], [sd**2], [1.0], [[rho**0.5 * sd]])


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-2.0 * z))


@pytest.mark.parametrize("alpha", [10.0, 22.0, 32.0, 60.0, -32.0])
def test_linex_without_a_weight_is_its_closed_form_by_the_general_route_too(alpha):
    """Beyond alpha sd = 22 the moment of w underflows where that of w T has its mass."""
    belief = half_known()
    own = BregmanLoss(NegativeLog(), Exponential(-alpha))  # has no closed form
    for loss in (Linex(alpha), own):
        assert_allclose(uncertainty(loss, belief), alpha**2 / 2, rtol=1e-9)
        assert_allclose(expected_regret(loss, belief), alpha**2 / 4, rtol=1e-9)
        assert_allclose(score(loss, belief), alpha**2 / 4, rtol=1e-6)
        assert_allclose(expected_posterior_uncertainty(loss, belief), alpha**2 / 4, rtol=1e-6)
        assert_allclose(bayes_prediction(loss, belief), -alpha / 2, rtol=1e-9)


def test_a_sigmoid_weight_beyond_the_range_of_plain_numbers():
    assert_allclose(score(Linex(40.0, weight=sigmoid), half_known()), 186.304934, rtol=1e-6)


def test_prices_are_ranked_by_what_labels_are_worth():
    belief = GaussianBelief(
        [250_000.0] * 2,
        [60_000.0**2, 10_000.0**2],
        [1.0, 1.0],
        [[60_000 * 0.5**0.5, 0.0], [0.0, 10_000 * 0.9**0.5]],
    )
    loss = Linex(0.001, InterpolatedWeight([0.0], [2.0]))
    assert_allclose(score(loss, belief), [900.0, 45.0], rtol=1e-6)
    assert_allclose(score(loss, belief), score(Linex(0.001), belief) * 2.0, rtol=1e-6)


def test_an_ensemble_of_wide_normals():
    """With the same sd, exp(alpha^2 sd^2 / 2) is common to all members and drops out."""
    wide, narrow = (NormalEnsemble([[0.0, 3.0]], 1.0, [[0.0, 3.0]], sd) for sd in (30.0, 0.5))
    assert_allclose(score(Linex(1.0), wide), score(Linex(1.0), narrow), rtol=1e-9)


def test_an_ensemble_whose_members_are_far_apart():
    """A cell that one member alone explains still knows how unlikely the other is: log p(1 | y) T_1 counts."""
    belief = NormalEnsemble([[0.0, 50.0]], 1.0, [[0.0, 1000.0]], 1.0)
    y = np.linspace(-9.0, 59.0, 68001)
    log_one, log_two = -0.5 * y**2, -0.5 * (y - 50.0) ** 2
    log_mass = np.logaddexp(log_one, log_two)
    log_raised = np.logaddexp(log_one, log_two - 1000.0)
    r = log_raised - log_mass - (np.log(np.exp(log_raised).sum()) - np.log(np.exp(log_mass).sum()))
    regret = np.exp(log_mass + r) - np.exp(log_mass) * (r + 1.0)
    assert_allclose(score(Linex(1.0), belief), regret.sum() / np.exp(log_mass).sum(), rtol=1e-6)


def test_linex_of_a_log_normal_target():
    """T = exp(-exp(f)) underflows twice as fast as anything else; its expectations are finite."""
    belief = WarpedGaussianBelief(half_known(rho=0.97), LogWarp())
    assert_allclose(uncertainty(Linex(1.0), belief), 0.685749, rtol=1e-6)
    assert_allclose(expected_reduction(Linex(1.0), belief), 0.598647, rtol=1e-6)
    assert_allclose(expected_regret(Linex(1.0), belief), 0.598647, rtol=1e-6)


@pytest.mark.parametrize("sd", [1e-3, 1.0])
def test_an_infinite_expectation_is_refused_however_little_of_it_shows(sd):
    with pytest.raises(FloatingPointError, match="infinite"):
        score(Linex(-1.0), WarpedGaussianBelief(half_known(sd=sd), LogWarp()))


def test_batches_under_gaussian_and_warped_beliefs():
    latent = GaussianBelief([0.0], [1.0], [1.0, 1.0], [[0.6], [0.5]], candidate_covariance=[[1.0, 0.1], [0.1, 1.0]])
    cov, joint = np.array([0.6, 0.5]), np.array([[1.0, 0.1], [0.1, 1.0]])
    rho = cov @ np.linalg.solve(joint, cov)
    own = BregmanLoss(NegativeLog(), Exponential(-30.0))
    assert_allclose(select(own, latent, n=2).joint_reduction[-1], 450.0 * rho, rtol=1e-6)
    warped = WarpedGaussianBelief(latent, LogWarp())
    both = WarpedGaussianBelief(half_known(rho=rho), LogWarp())
    assert_allclose(select(Linex(1.0), warped, n=2).joint_reduction[-1], score(Linex(1.0), both)[0], rtol=1e-6)


def test_an_exponential_weight_that_no_number_holds():
    belief = GaussianBelief([0.0, 0.01], [1.0, 1.0], [1.0], [[0.5, 0.5]])
    loss = Linex(2.0, ExponentialWeight(100.0))
    with pytest.raises(FloatingPointError, match="return_log_scale"):
        uncertainty(loss, belief)
    values, log_scale = uncertainty(loss, belief, return_log_scale=True)
    assert_allclose(np.log(values) + log_scale, 5000.0 + np.array([0.0, 1.0]) + np.log(2.0), rtol=1e-12)
    assert_allclose(effective_context_weights(loss, belief), [1.0 / (1.0 + np.e), np.e / (1.0 + np.e)], rtol=1e-9)


@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        (SquaredError, 1.0),
        (AbsoluteError, (2.0 / np.pi) ** 0.5),
        (CRPS, np.pi**-0.5),
        (LogScore, 0.5 * np.log(2.0 * np.pi * np.e)),
    ],
)
def test_what_score_answers_uncertainty_answers_too(loss, plain):
    """w = exp(100 z) on N(0, 1): E[w] = exp(5000) times what there is without a weight."""
    belief = half_known()
    weighted = loss(weight=ExponentialWeight(100.0))
    assert_allclose(score(weighted, belief, return_log_scale=True)[1], 5000.0, atol=2.0)
    values, log_scale = uncertainty(weighted, belief, return_log_scale=True)
    assert_allclose(np.log(values[0]) + log_scale, 5000.0 + np.log(plain), rtol=1e-12)
    assert_allclose(effective_context_weights(weighted, belief), [1.0])


def test_vectors_with_a_weight_that_no_number_holds():
    belief = VectorGaussianBelief([[0.0, 0.0]], [np.eye(2)], [[[1.0]]], [[[[0.5, 0.5]]]])
    loss = Mahalanobis([[1.0, 0.0], [0.0, 2.0]], ExponentialLinearWeight([100.0, 0.0]))
    values, log_scale = uncertainty(loss, belief, return_log_scale=True)
    assert_allclose(np.log(values[0]) + log_scale, 5000.0 + np.log(3.0), rtol=1e-12)
    assert_allclose(effective_context_weights(loss, belief), [1.0])


def test_uncertainty_by_logarithms_splits_where_the_weight_jumps():
    """w = 1 above -0.5: h = E[w] (log a - E_w[log T]), by dense integration."""
    loss = Linex(30.0, Weight(lambda z: np.where(z > -0.5, 1.0, 0.0), breakpoints=(-0.5,)))
    z = np.linspace(-0.5, 12.5, 1_300_001)
    mass = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) * 1e-5
    mass[0] /= 2.0
    total = mass.sum()
    wanted = total * np.log((mass * np.exp(-30.0 * z)).sum() / total) + 30.0 * (mass * z).sum()
    assert_allclose(uncertainty(loss, half_known()), wanted, rtol=1e-6)


@pytest.mark.parametrize("alpha", [40.0, -25.0])
@pytest.mark.parametrize("place", [-0.7, 1.3])
def test_an_undeclared_step_is_found_by_logarithms_too(alpha, place):
    """Under the mass of w, and under that of w T, which lies alpha standard deviations away."""

    def step(z):
        return np.where(z > place, 1.0, 0.2) + np.where(z > -alpha + place, 0.0, 3.0)

    belief = GaussianBelief([0.0], [1.0], [1.0, 1.0], [[0.5], [0.95]])
    found = score(Linex(alpha, Weight(step)), belief, return_log_scale=True)
    wanted = score(Linex(alpha, Weight(step, breakpoints=(place, place - alpha))), belief, return_log_scale=True)
    assert_allclose(np.log(found[0]) + found[1], np.log(wanted[0]) + wanted[1], atol=1e-6)
