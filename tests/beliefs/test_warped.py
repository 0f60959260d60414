"""Warped Gaussian beliefs: closed forms of the log-normal, brute force for the rest, and what is refused."""

import numpy as np
import pytest

from stakes import (
    BoxCox,
    ExponentialWeight,
    GaussianBelief,
    InterpolatedWeight,
    ItakuraSaito,
    Linex,
    LogWarp,
    PoissonDeviance,
    SquaredError,
    WarpedGaussianBelief,
    Weight,
    expected_reduction,
    expected_regret,
    find_form,
    score,
    uncertainty,
)
from stakes.beliefs import MonotoneWarp
from stakes.testing import check_belief
from tests.brute import gaussian_pair, gaussian_reduction

RHO = np.array([1e-10, 0.01, 0.5, 0.93, 0.999, 1.0])
MEAN, VARIANCE = np.array([0.4, -1.0, 11.0]), np.array([0.3, 1.0, 4.0])


def log_normal(mean=MEAN, variance=VARIANCE, rho=RHO):
    return WarpedGaussianBelief(gaussian_pair(mean, variance, rho), LogWarp())


def by_hand(loss, m, v, rho):
    """Derived from E[exp(a f) | y] = exp(a m_y + a^2 v_y / 2)."""
    if isinstance(loss, SquaredError):
        return np.exp(2 * m + v) * np.expm1(rho * v)
    if isinstance(loss, ItakuraSaito):
        return rho * v / 2
    if isinstance(loss, PoissonDeviance):
        return np.exp(m + v / 2) * rho * v / 2
    return (
        rho * v
        if loss.lam == 0
        else np.exp(2 * loss.lam * m + loss.lam**2 * v) * np.expm1(loss.lam**2 * rho * v) / loss.lam**2
    )


LOSSES = [SquaredError(), ItakuraSaito(), PoissonDeviance(), BoxCox(0.0), BoxCox(0.5), BoxCox(-1.0), BoxCox(1.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_log_normal_targets_have_known_reductions(loss):
    belief = log_normal()
    assert find_form(loss, belief).name == "profile curve EUR_c(rho)"
    wanted = by_hand(loss, MEAN, VARIANCE, RHO[:, None])
    np.testing.assert_allclose(expected_regret(loss, belief), wanted, rtol=2e-6)
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=2e-6)
    np.testing.assert_allclose(uncertainty(loss, belief), wanted[-1], rtol=1e-8)


def test_the_answer_is_in_target_units():
    belief = log_normal()
    for loss, wanted in [
        (SquaredError(), np.exp(MEAN + VARIANCE / 2)),
        (BoxCox(0.0), np.exp(MEAN)),
        (BoxCox(0.5), ((np.exp(MEAN / 2 + VARIANCE / 8)) ** 2)),
    ]:
        reference = belief.reference(loss)
        answer = loss.prediction(loss.action(belief.moments(loss, reference)), reference.point)
        np.testing.assert_allclose(answer, wanted, rtol=1e-9)


@pytest.mark.parametrize("rho", [0.3, 0.9])
@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_linex_does_rank_differently_on_prices(alpha, rho):
    """Under a log-warped belief Linex is no multiple of squared error; here against direct integration."""
    mean, variance = 0.2, 0.2
    wanted = gaussian_reduction(
        lambda f, a: np.exp(-alpha * np.exp(f)) / a + alpha * np.exp(f) + np.log(a) - 1,
        lambda f: np.exp(-alpha * np.exp(f)),
        np.ones_like,
        mean,
        variance,
        rho,
        reach=9.0,
    )
    belief = log_normal(mean, variance, rho)
    np.testing.assert_allclose(expected_reduction(Linex(alpha), belief)[0, 0], wanted, rtol=1e-6)


def test_a_loss_that_is_infinite_on_log_normal_targets_is_reported():
    """exp(0.3 z) has no mean under a log-normal: underestimates would cost infinitely much."""
    with pytest.raises(FloatingPointError, match=r"expected loss is infinite.*positive alpha"):
        score(Linex(-0.3), log_normal(0.2, 0.2, 0.5))


def test_linex_and_squared_error_disagree_on_which_label_to_buy():
    """One label tells of a high price, the other of a low one, as much in logarithms."""
    latent = GaussianBelief([0.0, 1.5], [0.2, 0.2], [1.0, 1.0], np.sqrt(0.2) * np.array([[0.9, 0.0], [0.0, 0.5]]))
    belief = WarpedGaussianBelief(latent, LogWarp())
    ratio = {loss: np.divide(*score(loss, belief)) for loss in (SquaredError(), Linex(3.0), BoxCox(0.0))}
    assert ratio[SquaredError()] < 1 < ratio[BoxCox(0.0)]
    assert ratio[Linex(3.0)] > 1.1 * ratio[SquaredError()]


@pytest.mark.parametrize(
    "weight",
    [
        Weight(lambda z: 1 / (1 + z)),
        InterpolatedWeight([1.0, 2.0, 5.0], [0.1, 1.0, 0.5]),
        Weight(lambda z: np.where(z > 1.5, 1.0, 0.1), breakpoints=(1.5, -3.0)),
        ExponentialWeight(-0.5),
    ],
)
def test_weights_of_the_target_under_a_warp(weight):
    mean, variance, rho = 0.4, 0.3, 0.6
    cuts = [np.log(point) for point in weight.breakpoints if point > 0]
    wanted = gaussian_reduction(
        lambda f, a: (np.exp(f) - a) ** 2, np.exp, lambda f: weight(np.exp(f)), mean, variance, rho, cuts
    )
    belief = log_normal(mean, variance, rho)
    np.testing.assert_allclose(expected_reduction(SquaredError(weight), belief)[0, 0], wanted, rtol=1e-5)


def test_the_identity_is_no_warp():
    latent = gaussian_pair([0.0, 1.0], [1.0, 0.5], RHO)
    belief = WarpedGaussianBelief(latent, MonotoneWarp(lambda f: f, lambda z: z))
    for loss in (SquaredError(), Linex(1.0), SquaredError(ExponentialWeight(0.5))):
        np.testing.assert_allclose(expected_reduction(loss, belief), expected_reduction(loss, latent), rtol=1e-7)


@pytest.mark.parametrize("loss", [SquaredError(), ItakuraSaito(), SquaredError(InterpolatedWeight([1, 2], [0, 1]))])
def test_laws(rng, loss):
    mixing = rng.standard_normal((9, 4)) / 2
    covariance = mixing @ mixing.T
    latent = GaussianBelief(
        rng.standard_normal(4), np.diag(covariance)[5:], np.diag(covariance)[:5] + 0.1, covariance[:5, 5:]
    )
    check_belief(WarpedGaussianBelief(latent, LogWarp()), loss)


def test_other_libraries(xp, host):
    given = [np.array([0.1, 0.5]), np.array([0.3, 0.2]), np.ones(3), np.full((3, 2), 0.3)]
    belief = WarpedGaussianBelief(GaussianBelief(*(xp.asarray(array) for array in given)), LogWarp())
    wanted = WarpedGaussianBelief(GaussianBelief(*given), LogWarp())
    for loss in (ItakuraSaito(), SquaredError(InterpolatedWeight([1.0, 2.0], [0.5, 1.0])), Linex(0.5)):
        np.testing.assert_allclose(host(score(loss, belief)), score(loss, wanted), rtol=1e-9)


def test_what_is_no_latent_belief_or_no_warp_is_refused():
    latent = gaussian_pair(0.0, 1.0, 0.5)
    with pytest.raises(TypeError, match="latent must be a GaussianBelief"):
        WarpedGaussianBelief(log_normal(), LogWarp())
    for bad in (np.exp, LogWarp):
        with pytest.raises(TypeError, match=r"warp must be a warp such as LogWarp\(\)"):
            WarpedGaussianBelief(latent, bad)
