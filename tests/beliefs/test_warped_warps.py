"""Box-Cox and softplus warps: bijections of all reals, what losses make of them by brute force, and who is let in."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import (
    BoxCox,
    BoxCoxWarp,
    ExponentialWeight,
    GaussianBelief,
    ItakuraSaito,
    Linex,
    LogWarp,
    PoissonDeviance,
    SquaredError,
    WarpedGaussianBelief,
    expected_reduction,
    expected_regret,
    score,
    uncertainty,
)
from stakes.beliefs import MonotoneWarp, SoftplusWarp
from stakes.beliefs.warped import warped_moments
from stakes.evaluation import bayes_prediction, calibration
from stakes.exceptions import StakesError
from stakes.losses.domains import POSITIVE, REAL, Interval
from stakes.testing import check_belief
from tests.brute import gaussian_pair, gaussian_reduction

LAMS = [2.0, 1.0, 0.5, 0.1, 0.0, -0.1, -0.5, -1.0]
RHO = np.array([1e-8, 0.3, 0.9, 1.0])


def belief(lam, mean, variance, rho=RHO):
    return WarpedGaussianBelief(gaussian_pair(mean, variance, rho), BoxCoxWarp(lam))


def test_by_hand(xp, host):
    f = xp.asarray(np.array([0.0, 1.5, 4.0]))
    np.testing.assert_allclose(host(BoxCoxWarp(0.5).forward(f)), [1, 1.75**2, 9], rtol=1e-14)
    np.testing.assert_allclose(host(BoxCoxWarp(1).forward(f)), [1, 2.5, 5], rtol=1e-14)
    np.testing.assert_allclose(host(BoxCoxWarp(-1.0).forward(f - 4.0)), [1 / 5, 1 / 3.5, 1], rtol=1e-14)
    np.testing.assert_allclose(host(BoxCoxWarp(0).forward(f)), np.exp([0, 1.5, 4]), rtol=1e-14)
    beyond = 1e-6 / (2e-3 + 3.0)  # x = 1 - 4
    np.testing.assert_allclose(host(BoxCoxWarp(1.0).forward(-f))[2], beyond, rtol=1e-13)
    np.testing.assert_allclose(host(BoxCoxWarp(-1.0).forward(f))[2], 1 / beyond, rtol=1e-13)


def test_where_the_map_is_what_it_says():
    assert BoxCoxWarp(0.5).latent == Interval(low=-2.0)
    assert BoxCoxWarp(-0.25).latent == Interval(high=4.0)
    for warp in (BoxCoxWarp(0.0), LogWarp(), MonotoneWarp(lambda f: f, lambda z: z)):
        assert warp.latent == REAL
    assert BoxCoxWarp(3.0).domain == POSITIVE


@given(lam=st.sampled_from(LAMS), f=st.floats(-200, 200), step=st.floats(1e-6, 100))
def test_an_increasing_bijection_of_all_reals(lam, f, step):
    warp = BoxCoxWarp(lam)
    points = np.array([f, f + step])
    z = warp.forward(points)
    assert np.all(np.isfinite(z))
    assert 0 < z[0] < z[1]
    np.testing.assert_allclose(warp.inverse(z), points, rtol=1e-12, atol=1e-12)


@given(lam=st.sampled_from(LAMS), log_z=st.floats(-80, 80))
def test_the_inverse_is_one_from_the_other_side_too(lam, log_z):
    warp = BoxCoxWarp(lam)
    f = warp.inverse(np.exp(np.array([log_z])))
    x = np.exp(lam * log_z)
    slope = min(1 / x, x / 1e-6) / abs(lam or 1)  # of log z in x: what rounding x = 1 + lam f costs
    rounding = 4e-16 * (1 + abs(f[0])) * slope
    np.testing.assert_allclose(np.log(warp.forward(f)), [log_z], rtol=1e-12, atol=1e-12 + rounding)


@pytest.mark.parametrize("lam", [0.5, -0.5])
def test_the_continuation_joins_smoothly(lam):
    warp, join, h = BoxCoxWarp(lam), (1e-3 - 1) / lam, 1e-8
    log_x = lam * np.log(warp.forward(join + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])))
    slopes = np.diff(log_x) / h
    np.testing.assert_allclose(slopes, lam / 1e-3, rtol=1e-4)


def power(lam):
    return (lambda z: np.log(z)) if lam == 0 else (lambda z: (z**lam - 1) / lam)


LOSSES = [
    (SquaredError(), lambda z, a: (z - a) ** 2, lambda z: z),
    (ItakuraSaito(), lambda z, a: z / a - np.log(z / a) - 1, lambda z: z),
    (PoissonDeviance(), lambda z, a: z * np.log(z / a) - z + a, lambda z: z),
    (Linex(0.2), lambda z, a: np.exp(-0.2 * z) / a + 0.2 * z + np.log(a) - 1, lambda z: np.exp(-0.2 * z)),
    (BoxCox(0.0), lambda z, a: (np.log(z) - a) ** 2, power(0.0)),
    (BoxCox(0.7), lambda z, a: (power(0.7)(z) - a) ** 2, power(0.7)),
]


@pytest.mark.parametrize(("lam", "mean", "variance"), [(0.5, 1.0, 0.04), (2.0, 1.0, 0.005), (-0.5, -1.0, 0.05)])
@pytest.mark.parametrize(("loss", "of_target", "statistic"), LOSSES, ids=lambda each: type(each).__name__)
def test_every_loss_against_dense_integration(loss, of_target, statistic, lam, mean, variance):
    def warped(f):
        return (1 + lam * f) ** (1 / lam)

    rho = np.array([0.3, 0.9])
    wanted = [
        gaussian_reduction(
            lambda f, a: of_target(warped(f), a),
            lambda f: statistic(warped(f)),
            np.ones_like,
            mean,
            variance,
            r,
            (),
            8.0,
        )
        for r in rho
    ]
    given = belief(lam, mean, variance, rho)
    np.testing.assert_allclose(expected_reduction(loss, given)[:, 0], wanted, rtol=1e-6)
    np.testing.assert_allclose(expected_regret(loss, given)[:, 0], wanted, rtol=1e-6)


@pytest.mark.parametrize("lam", [1.0, 0.5, 0.1, 0.0, -0.1, -0.5])
def test_box_cox_loss_under_its_own_warp_is_squared_error_of_the_model(lam):
    """T(z) = f, so EUR = rho v."""
    mean, variance = np.array([0.5, -0.3]), np.array([0.01, 0.008])
    given = belief(lam, mean, variance)
    np.testing.assert_allclose(expected_reduction(BoxCox(lam), given), RHO[:, None] * variance, rtol=1e-6)
    np.testing.assert_allclose(uncertainty(BoxCox(lam), given), variance, rtol=1e-6)
    np.testing.assert_allclose(bayes_prediction(BoxCox(lam), given), BoxCoxWarp(lam).forward(mean), rtol=1e-6)


@pytest.mark.parametrize("lam", [1e-9, -1e-9, 0.0])
def test_a_small_lam_is_the_logarithm(lam):
    latent = gaussian_pair([0.4, -1.0], [0.3, 1.0], RHO)
    for loss in (SquaredError(), ItakuraSaito(), BoxCox(0.3)):
        ours, wanted = (
            expected_reduction(loss, WarpedGaussianBelief(latent, warp)) for warp in (BoxCoxWarp(lam), LogWarp())
        )
        np.testing.assert_allclose(ours, wanted, rtol=2e-7)


def test_targets_of_a_calibrated_model_are_calibrated(rng):
    mean, sd = rng.uniform(0.0, 2.0, 4000), rng.uniform(0.05, 0.2, 4000)
    targets = (1 + 0.5 * (mean + sd * rng.standard_normal(4000))) ** 2
    given = WarpedGaussianBelief(GaussianBelief(mean, sd**2, np.ones(1), np.zeros((1, 4000))), BoxCoxWarp(0.5))
    found = calibration(given, targets)
    np.testing.assert_allclose(found.coverage, found.levels, atol=4 * 0.5 / math.sqrt(4000))
    np.testing.assert_allclose(np.sort(found.pit), (np.arange(4000) + 0.5) / 4000, atol=1.7 / math.sqrt(4000))


@pytest.mark.parametrize("lam", [0.5, -0.5])
def test_laws(rng, lam):
    mixing = rng.standard_normal((8, 4)) / 12
    covariance = mixing @ mixing.T
    latent = GaussianBelief(np.zeros(3), np.diag(covariance)[5:], np.diag(covariance)[:5] + 0.1, covariance[:5, 5:])
    for loss in (SquaredError(), ItakuraSaito()):
        check_belief(WarpedGaussianBelief(latent, BoxCoxWarp(lam)), loss)


def test_other_libraries(xp, host):
    given = [np.array([0.1]), np.array([0.03]), np.ones(2), np.full((2, 1), 0.1)]
    for lam in (0.5, -0.3):
        ours = WarpedGaussianBelief(GaussianBelief(*(xp.asarray(array) for array in given)), BoxCoxWarp(lam))
        wanted = WarpedGaussianBelief(GaussianBelief(*given), BoxCoxWarp(lam))
        np.testing.assert_allclose(host(score(ItakuraSaito(), ours)), score(ItakuraSaito(), wanted), rtol=1e-9)


def test_a_model_that_leaves_the_range_of_the_warp_is_refused(xp):
    def warped(mean, variance, warp):
        latent = GaussianBelief(xp.asarray(np.array(mean)), variance, [1.0], [[0.0] * len(mean)])
        return WarpedGaussianBelief(latent, warp)

    with pytest.raises(ValueError, match=r"f in \(-2, inf\).* 2\.3e-02 of its mass outside at context 1.*Use another"):
        warped([1.0, 0.0, 0.0], [0.01, 1.0, 0.5], BoxCoxWarp(0.5))  # P(U > 2) = 0.0228
    with pytest.raises(ValueError, match=r"f in \(-inf, 2\).* 1\.0e\+00 of its mass outside at context 0"):
        warped([2.5], [0.0], BoxCoxWarp(-0.5))
    six = (2 / 5.9977) ** 2  # P(U > 5.9978) = 1e-9
    with pytest.raises(ValueError, match="1e-09 is allowed"):
        warped([0.0], [six * 1.001], BoxCoxWarp(0.5))
    warped([0.0], [six * 0.999], BoxCoxWarp(0.5))
    warped([0.0, 1.0], [0.0, 0.0], BoxCoxWarp(0.5))
    warped([-300.0], [100.0], BoxCoxWarp(0.0))


def test_a_loss_that_turns_on_the_continuation_is_refused(xp):
    """At lam = -1/4 and six sd, E[z] is what a mass of 1e-10 near f = 4 makes it; the logarithm does not care."""
    latent = GaussianBelief(xp.asarray(np.zeros(1)), [0.4], [1.0], [[0.3]])
    given = WarpedGaussianBelief(latent, BoxCoxWarp(-0.25))
    for loss in (SquaredError(), ItakuraSaito(), Linex(-0.1)):
        with pytest.raises(FloatingPointError, match=r"turns on latent f outside \(-inf, 4\)"):
            score(loss, given)
    given.unwarped(BoxCox(0.0))
    given.unwarped(BoxCox(-1.0))


def test_a_warp_of_ones_own_says_where_it_holds():
    latent = gaussian_pair(0.0, 1.0, 0.5)
    root = MonotoneWarp(lambda f: f * abs(f), lambda z: np.sign(z) * np.sqrt(abs(z)), latent=Interval(low=0.0))
    with pytest.raises(ValueError, match=r"5\.0e-01 of its mass outside"):
        WarpedGaussianBelief(latent, root)


@pytest.mark.parametrize("lam", [math.nan, math.inf, -math.inf])
def test_lam_must_be_finite(lam):
    with pytest.raises(ValueError, match="lam must be a finite number"):
        BoxCoxWarp(lam)


def test_softplus_by_hand(xp, host):
    f = xp.asarray(np.array([-30.0, 0.0, 1.0, 40.0]))
    wanted = [3.0 * math.exp(-30.0), 3.0 * math.log(2.0), 3.0 * math.log(1.0 + math.e), 120.0]
    np.testing.assert_allclose(host(SoftplusWarp(3).forward(f)), wanted, rtol=1e-13)
    assert SoftplusWarp(3.0).domain == POSITIVE
    assert SoftplusWarp(3.0).latent == REAL


@given(scale=st.sampled_from([1e-3, 1.0, 1e5]), f=st.floats(-300, 300), step=st.floats(1e-6, 100))
def test_softplus_is_an_increasing_bijection(scale, f, step):
    warp, points = SoftplusWarp(scale), np.array([f, f + step])
    z = warp.forward(points)
    assert 0 < z[0] < z[1]
    np.testing.assert_allclose(warp.inverse(z), points, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan, True, "3"])
def test_a_scale_must_be_positive(scale):
    with pytest.raises(StakesError, match="scale must be a positive number"):
        SoftplusWarp(scale)


@pytest.mark.parametrize(("mean", "sd"), [(-20.0, 1.0), (-2.0, 3.0), (0.5, 0.01), (3.0, 2.0), (50.0, 8.0)])
def test_moments_of_a_warped_normal_against_dense_integration(mean, sd):
    u = np.linspace(-20.0, 20.0, 400_001)
    density = np.exp(-0.5 * u**2) / np.sum(np.exp(-0.5 * u**2))
    for warp in (SoftplusWarp(2.0), LogWarp()):
        if isinstance(warp, LogWarp):
            sd = min(sd, 2.0)
        z = warp.forward(mean + sd * u)
        first = np.sum(density * z)
        found = warped_moments(warp, np.array([mean]), np.array([sd**2]))
        np.testing.assert_allclose(np.ravel(found), [first, np.sum(density * (z - first) ** 2)], rtol=1e-9)


def test_moments_of_many_and_of_none():
    mean, variance = np.linspace(-3.0, 3.0, 5000), np.linspace(0.0, 4.0, 5000)
    whole = warped_moments(SoftplusWarp(1.0), mean, variance)
    few = warped_moments(SoftplusWarp(1.0), mean[4000:4010], variance[4000:4010])
    np.testing.assert_allclose(np.stack(whole)[:, 4000:4010], few, rtol=1e-14)
    assert [each.shape for each in warped_moments(SoftplusWarp(1.0), mean[:0], variance[:0])] == [(0,), (0,)]


def test_a_softplus_belief_is_finite_where_a_log_normal_is_not():
    latent = gaussian_pair(0.5, 1.0, RHO)
    loss = SquaredError(ExponentialWeight(1.0))
    with pytest.raises(FloatingPointError):
        score(loss, WarpedGaussianBelief(latent, LogWarp()))
    assert np.isfinite(score(loss, WarpedGaussianBelief(latent, SoftplusWarp(2.0)))).all()


def test_laws_of_softplus(rng):
    latent = GaussianBelief(
        rng.normal(size=3), rng.uniform(0.5, 1.5, 3), rng.uniform(1.0, 2.0, 4), np.full((4, 3), 0.3)
    )
    check_belief(WarpedGaussianBelief(latent, SoftplusWarp(1.5)))
