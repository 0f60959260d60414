"""Decisions under a Gaussian belief: the bivariate normal, the log curve, and how they meet the general route."""

from __future__ import annotations

from itertools import pairwise
from math import exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import multivariate_normal, norm

from stakes import (
    AccuracyWarning,
    FiniteActions,
    GaussianBelief,
    LogWarp,
    SquaredError,
    ThresholdDecision,
    WarpedGaussianBelief,
    expected_reduction,
    expected_regret,
    find_form,
    score,
    uncertainty,
)
from tests.brute import gaussian_pair

RHO = np.concatenate([10.0 ** -np.linspace(0, 8, 25), 1 - 10.0 ** -np.linspace(0.4, 13, 12), [0.35, 0.0875]])


def threshold_reduction(away, miss, false_alarm, rho):
    """EUR from the definition for a threshold `away` sds above the mean: what acting on eta saves, by quad."""
    even, root, rest = false_alarm / (miss + false_alarm), np.sqrt(rho), np.sqrt(1 - rho)
    switch = (away - rest * norm.isf(even)) / root
    side = 1.0 if norm.sf(away) <= even else -1.0

    def saved(x):  # without scipy.stats, which takes most of its time to look at its arguments
        eta = switch + side * x
        cut = (away - root * eta) / rest
        gain = miss * ndtr(-cut) - false_alarm * ndtr(cut)
        return side * gain * exp(-(eta**2) / 2.0) / sqrt(2 * pi)

    width = min(1.0, rest / root, 1 / max(1.0, side * switch))
    edges = [0.0, *(width * np.array([0.5, 2.0, 8.0, 30.0, 120.0])), 40.0]
    parts = [quad(saved, low, high, epsabs=0, epsrel=1e-11, limit=200)[0] for low, high in pairwise(edges)]
    return sum(part for part in parts if np.isfinite(part))


@pytest.mark.parametrize(("miss", "false_alarm"), [(1.0, 1.0), (50.0, 1.0), (1.0, 9.0)])
@pytest.mark.parametrize("away", [0.0, 0.01, -0.3, 2.0, -2.0, 4.0])
def test_threshold_against_the_definition(away, miss, false_alarm):
    loss = ThresholdDecision(3.0, miss, false_alarm)
    belief = gaussian_pair(3.0 - 2.0 * away, 4.0, RHO)
    for rho, got, general in zip(
        RHO, expected_reduction(loss, belief)[:, 0], expected_regret(loss, belief)[:, 0], strict=True
    ):
        if 1e-4 <= rho <= 1 - 1e-6:  # where quad itself is good
            wanted = threshold_reduction(away, miss, false_alarm, rho)
            assert got == pytest.approx(wanted, rel=1e-7, abs=1e-60)
        assert general == pytest.approx(got, rel=1e-6, abs=1e-13 * (miss + false_alarm))


@pytest.mark.parametrize("away", [0.0, 2.0, -2.0])
def test_threshold_through_the_bivariate_normal(away):
    rho, miss, false_alarm = 0.6, 3.0, 1.0
    even = false_alarm / (miss + false_alarm)
    side = 1.0 if norm.sf(away) <= even else -1.0
    switch = side * (away - np.sqrt(1 - rho) * norm.isf(even)) / np.sqrt(rho)
    both = multivariate_normal([0, 0], [[1, np.sqrt(rho)], [np.sqrt(rho), 1]]).cdf([-switch, -side * away])
    costs = (miss, false_alarm) if side > 0 else (false_alarm, miss)
    wanted = sum(costs) * both - costs[1] * norm.sf(switch)
    got = expected_reduction(ThresholdDecision(away, miss, false_alarm), gaussian_pair(0.0, 1.0, rho))[0, 0]
    assert got == pytest.approx(wanted, abs=2e-7)


def test_hand_computed_limits():
    # Knowing z saves all that today's action is expected to cost; at indifference EUR is sqrt(rho) at first.
    loss = ThresholdDecision(1.0, miss=2.0, false_alarm=2.0)
    belief = gaussian_pair([1.0, -1.0], [1.0, 1.0], [1e-10, 1.0])
    got = expected_reduction(loss, belief)
    assert got[1] == pytest.approx([1.0, 2.0 * norm.sf(2.0)], rel=1e-8)
    assert got[1] == pytest.approx(uncertainty(loss, belief), rel=1e-8)
    assert got[0, 0] == pytest.approx(4.0 * 1e-5 / (2 * np.pi), rel=1e-8)
    assert got[0, 1] == 0.0


@pytest.mark.parametrize("away", [0.0, 0.4, 2.0])
def test_finite_actions_by_the_curve_agree_with_threshold(away):
    threshold = ThresholdDecision(0.0, 5.0, 1.0)
    loss = FiniteActions(threshold.cost_rows, breakpoints=(0.0,))
    belief = gaussian_pair(-away, 1.0, RHO)
    assert find_form(loss, belief).name == "profile curve EUR_c(rho)"
    gap = abs(expected_reduction(loss, belief) - expected_reduction(threshold, belief))
    assert gap.max() <= 1e-7 * uncertainty(loss, belief)[0]


@pytest.mark.parametrize("mean", [0.0, 1.1, -3.0])
def test_curve_of_several_actions_against_the_general_route(mean):
    loss = FiniteActions(
        lambda z: np.stack([0.0 * z, np.where(z > 1, -2.0, 1.0), np.where(z > 3, -5.0, 2.0)], axis=-1), (1.0, 3.0)
    )
    rho = np.concatenate([10.0 ** -np.linspace(0, 6, 20), 1 - 10.0 ** -np.linspace(0.4, 12, 10)])
    belief = gaussian_pair([mean, mean + 0.2], [1.3, 2.0], rho)
    wanted = expected_regret(loss, belief)
    assert (abs(expected_reduction(loss, belief) - wanted) <= 1e-8 * wanted.max(axis=0)).all()


@settings(max_examples=20)
@given(st.floats(-6, 6), st.floats(0.01, 100), st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_more_information_is_never_worth_less(away, miss, rho):
    rho = np.sort(rho)
    got = expected_reduction(ThresholdDecision(away, miss), gaussian_pair(0.0, 1.0, rho))[:, 0]
    assert (np.diff(got) >= -1e-8 * got.max()).all()
    assert (got >= 0).all()
    assert got.max() <= uncertainty(ThresholdDecision(away, miss), gaussian_pair(0.0, 1.0, rho))[0] * (1 + 1e-6)


def test_nothing_to_learn():
    loss = ThresholdDecision(0.0)
    belief = GaussianBelief([0.0, 1.0, 500.0], [1.0, 0.0, 1.0], [1.0, 0.0], [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]])
    got = expected_reduction(loss, belief)
    assert got[0, 0] > 0
    assert (got[0, 1:] == 0).all()
    assert (got[1] == 0).all()


def test_the_warp_moves_the_threshold(xp, host):
    latent = gaussian_pair([0.3, -1.0], [0.5, 0.8], [0.2, 0.7])
    belief = WarpedGaussianBelief(
        GaussianBelief(*(xp.asarray(each) for each in (latent.mean, latent.variance, latent.candidate_variance,
                                                       latent.covariance))), LogWarp()
    )  # fmt: skip
    wanted = expected_reduction(ThresholdDecision(np.log(2.0), 4.0), latent)
    loss = ThresholdDecision(2.0, 4.0)
    assert host(expected_reduction(loss, belief)) == pytest.approx(wanted, rel=1e-12)
    assert host(expected_regret(loss, belief)) == pytest.approx(wanted, rel=1e-7)
    below_all = ThresholdDecision(-1.0)  # a positive target always exceeds it
    assert (host(expected_reduction(below_all, belief)) == 0).all()
    assert (host(expected_regret(below_all, belief)) == 0).all()


def test_all_libraries_and_single_precision(xp, host):
    plain = gaussian_pair([0.3, -1.0, 2.0], [0.5, 0.8, 1.0], [0.001, 0.2, 0.7])
    arrays = plain.mean, plain.variance, plain.candidate_variance, plain.covariance

    def actions(z):
        return xp.stack([0.0 * z, xp.where(z > 1, -2.0 + 0.0 * z, 1.0 + 0.0 * z)], axis=-1)

    wanted_actions = ThresholdDecision(1.0, 2.0, 1.0)  # costs 0 and -2 or 1: the same up to a constant
    cases = [
        (wanted_actions, xp.float64, 1e-7),
        (wanted_actions, xp.float32, 1e-3),
        (FiniteActions(actions, (1.0,)), xp.float64, 1e-7),
    ]
    for loss, dtype, tolerance in cases:
        belief = GaussianBelief(*(xp.asarray(each, dtype=dtype) for each in arrays))
        got = expected_reduction(loss, belief)
        assert got.dtype == dtype
        assert host(got) == pytest.approx(expected_reduction(wanted_actions, plain), rel=tolerance, abs=1e-12)
    assert host(score(wanted_actions, belief)) == pytest.approx(score(wanted_actions, plain), rel=1e-7)


@pytest.mark.parametrize("rho", [0.01, 0.5, 0.999])
def test_jumps_that_are_not_declared_are_found(rho):
    loss = FiniteActions(lambda z: np.stack([0.0 * z, np.where(z > 0.3217, -1.0, 1.0)], axis=-1))
    wanted = expected_reduction(ThresholdDecision(0.3217), gaussian_pair(0.0, 1.0, rho))
    assert expected_reduction(loss, gaussian_pair(0.0, 1.0, rho)) == pytest.approx(wanted, rel=1e-6)


def test_noise_is_reported():
    loss = FiniteActions(lambda z: np.stack([0.0 * z, np.sin(1e6 * z)], axis=-1))
    with pytest.warns(AccuracyWarning, match=r"breakpoints=\(\.\.\.\)"):
        expected_reduction(loss, gaussian_pair(0.0, 1.0, 0.5))


def test_one_action_has_nothing_to_decide():
    loss = FiniteActions(lambda z: (z**2)[..., None])
    belief = gaussian_pair([0.0, 2.0], [1.0, 1.0], [0.5])
    assert (expected_regret(loss, belief) == 0).all()
    assert (expected_reduction(loss, belief) == 0).all()


def test_many_quadratic_actions_tend_to_squared_error():
    places = np.linspace(-4.0, 4.0, 81)  # posterior means lie within them by seven standard deviations
    belief = gaussian_pair([0.03], [1.0], [0.3])
    got = expected_regret(FiniteActions(lambda z: (z[..., None] - places) ** 2), belief)[0, 0]
    wanted = expected_reduction(SquaredError(), belief)[0, 0]
    assert got == pytest.approx(wanted, abs=0.1**2 / 4)


@pytest.mark.parametrize(("outside", "width"), [(2.0, 0.5), (1.0, 0.5), (1.0, 0.1)])
def test_an_action_that_is_right_in_a_window_only(outside, width):
    """Up to some rho no label can tell that z is inside, and EUR is exactly 0; it is singular there."""
    loss = FiniteActions(lambda z: np.stack([0 * z, np.where(abs(z) <= width, -1.0, outside)], -1), (-width, width))
    rho = np.concatenate([np.linspace(0.3, 0.99, 70), [0.999, 0.99999]])  # more than are computed pair by pair
    eta = np.linspace(-1, 1, 50_001)  # to act, the mean has to lie inside: sqrt(rho) |eta| < width
    density = norm.pdf(eta)

    def worth(rho):
        ends = np.array([-width, width])[:, None]
        inside = np.diff(ndtr((ends - np.sqrt(rho) * eta) / np.sqrt(1 - rho)), axis=0)[0]
        gain = np.maximum(0, inside - outside * (1 - inside))  # of acting; not to act is best today
        return np.sum(gain * density) * (eta[1] - eta[0])

    wanted = np.array([worth(each) for each in rho])
    got = expected_reduction(loss, gaussian_pair(0.0, 1.0, rho))[:, 0]
    assert got == pytest.approx(wanted, abs=1e-6 * wanted.max())
    assert (got[wanted == 0] == 0).all()


def test_few_candidates_many_and_none_agree():
    loss = FiniteActions(lambda z: np.stack([0 * z, np.where(z > 1, -2.0, 1.0), 1.5 - z], -1), (1.0,))
    many = gaussian_pair([0.2, 1.4], [1.0, 0.5], np.linspace(0.01, 0.95, 80))
    few = many.take(slice(0, 80, 20), slice(None))
    assert expected_reduction(loss, few) == pytest.approx(expected_reduction(loss, many)[::20], rel=1e-6, abs=1e-9)
    assert expected_reduction(loss, many.take(slice(0, 0), slice(None))).shape == (0, 2)


def test_thresholds_have_a_form_of_their_own():
    name = find_form(ThresholdDecision(0.0), gaussian_pair(0.0, 1.0, 0.5)).name
    assert name == "bivariate normal beyond the switch, EUR_c(rho)"


EXTREME = {  # by mpmath, 40 digits: miss, false alarm, threshold, rho, EUR
    "a miss of 1e6": (1e6, 1e-3, 0.3, 0.99, 3.7555168e-4),
    "the same, less told": (1e6, 1e-3, 2.0, 0.9, 5.2234469e-4),
    "a false alarm of 1e9": (1.0, 1e9, -2.0, 0.95, 0.73865362),
    "a miss of 1e300": (1e300, 1.0, 0.5, 0.999, 0.25056253),
    "the same, all but told": (1e300, 1.0, 0.5, 0.999999, 0.67829136),
    "the same, further out": (1e300, 1.0, 3.0, 0.99, 0.23855261),
}


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_costs_by_every_route(name):
    """The switching point lies dozens of posterior standard deviations out."""
    miss, false_alarm, threshold, rho, wanted = EXTREME[name]
    belief, loss = gaussian_pair(0.0, 1.0, rho), ThresholdDecision(threshold, miss, false_alarm)

    def costs(z):
        above = z > threshold
        return np.stack([miss * above, false_alarm * ~above, np.full_like(z, max(miss, false_alarm))], axis=-1)

    three = FiniteActions(costs, (threshold,))
    warped = WarpedGaussianBelief(belief, LogWarp())
    again = ThresholdDecision(np.exp(threshold), miss, false_alarm)
    for got in (
        expected_reduction(loss, belief),
        expected_regret(loss, belief),
        expected_reduction(three, belief),
        expected_regret(again, warped),
    ):
        assert got[0, 0] == pytest.approx(wanted, rel=1e-6)


def test_a_decision_is_never_worth_more_than_knowing_the_target():
    """With a false alarm of 1 the most is P(z <= threshold), which the closed form once exceeded by 2.6e-4."""
    rho = 1.0 - np.geomspace(1e-12, 0.5, 40)
    for miss in (1e3, 1e30, 1e100, 1e300):
        for threshold in (0.0, 3.0, 9.0):
            got = expected_reduction(ThresholdDecision(threshold, miss, 1.0), gaussian_pair(0.0, 1.0, rho))[:, 0]
            assert np.all(got <= norm.cdf(threshold) * (1.0 + 1e-7))
            assert np.all(np.diff(got) <= 1e-7)  # the more a label reveals, the more it is worth


@pytest.mark.parametrize("count", [3, 100])  # each pair for itself, and by a table
@pytest.mark.parametrize("threshold", [1e6, -1e6, 1e9, 1e200, -1e300])
def test_a_threshold_out_of_reach_is_worth_nothing_and_says_nothing(count, threshold):
    belief = gaussian_pair([0.0, 1.0], [1.0, 1e-20], np.full(count, 0.3))
    weak = GaussianBelief(belief.mean, belief.variance, belief.candidate_variance, 1e-160 * belief.covariance)
    for each in (belief, weak):
        assert np.all(expected_reduction(ThresholdDecision(threshold, miss=3.0), each) == 0)  # warnings are errors


def test_few_candidates_need_no_table():
    few = gaussian_pair([0.3, -2.0, 9.0], [1.0, 0.5, 2.0], np.linspace(0.0, 1.0, 10))
    many = gaussian_pair([0.3, -2.0, 9.0], [1.0, 0.5, 2.0], np.tile(np.linspace(0.0, 1.0, 10), 10))
    loss = ThresholdDecision(0.5, miss=4.0)
    wanted = expected_reduction(loss, many)[:10]
    np.testing.assert_allclose(expected_reduction(loss, few), wanted, rtol=1e-7, atol=1e-13)
