"""Curves by rates against the general route, closed forms, differences of the least expected loss, and brute force."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf, ndtr
from scipy.stats import norm

from stakes import (
    CRPS,
    AbsoluteError,
    AccuracyWarning,
    BoxCox,
    BoxCoxWarp,
    BregmanLoss,
    GaussianBelief,
    InterpolatedWeight,
    ItakuraSaito,
    Linex,
    LogScore,
    LogWarp,
    Pinball,
    PoissonDeviance,
    SoftplusWarp,
    SquaredError,
    WarpedGaussianBelief,
    Weight,
    expected_reduction,
    expected_regret,
    find_form,
    score,
)
from stakes.acquisition import profile, rates
from stakes.acquisition.forms import resolve
from stakes.acquisition.profile import FEW
from stakes.acquisition.rates import average_beyond, few_regrets, rates_of
from stakes.losses import Square
from tests.brute import gaussian_pair, gaussian_reduction, normal_expectation, score_reduction, squared_regret

VALUES = np.linspace(-2.0, 2.0, 8)
WEIGHTS = {
    "eight points": InterpolatedWeight(VALUES.tolist(), (1.0 + VALUES**2).tolist()),
    "nothing below": InterpolatedWeight([-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 5.0, 5.0]),
    "nothing above": InterpolatedWeight([-1.0, 0.5], [1.0, 0.0]),
    "a hat": InterpolatedWeight([-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
    "nearly a step": InterpolatedWeight([0.3, 0.301], [1.0, 0.01]),
    "a ridge": InterpolatedWeight([0.0, 0.3, 0.35, 1.0], [0.1, 1.0, 5.0, 0.1]),
}
SIGMOID = Weight(lambda z: 1.0 / (1.0 + np.exp(-2.0 * z)))
RHO = np.array([1e-12, 1e-8, 1e-3, 0.2, 0.6, 0.9, 0.97])


@pytest.fixture(autouse=True, params=["tables", "own nodes"])
def way(request, monkeypatch):
    """By tables, and by nodes of each context, as few contexts have them."""
    if request.param == "tables":
        monkeypatch.setattr(rates, "_FEW_CONTEXTS", 0)
    return request.param


def many(mean, sd, rho):
    """The pair, and more candidates than are integrated one by one."""
    rest = np.linspace(0.0, np.max(rho), FEW + 1 - len(rho)) if len(rho) <= FEW else []
    return gaussian_pair(mean, np.asarray(sd) ** 2, np.concatenate([rho, rest]))


def by_rates(loss, belief):
    """The rates, for contexts of a belief."""
    mean, sd = (belief.latent if isinstance(belief, WarpedGaussianBelief) else belief)._mean_and_sd()
    return rates_of(loss, belief, resolve(loss, belief), mean, sd)


def weighted_squared(weight, mean, sd):
    """E[w (z - a)^2] for the best a."""
    cuts = weight.breakpoints
    w, first = normal_expectation(lambda z: np.stack([weight(z), weight(z) * z]), mean, sd, cuts, per_sd=32)
    return float(normal_expectation(lambda z: weight(z) * (z - first / w) ** 2, mean, sd, cuts, per_sd=32))


def log_rate_by_differences(least, mean, sd, step=0.02):
    """log G, by differences of the least expected loss in the mean and in the variance, of fourth order."""
    variance, h = sd**2, step * sd
    values = [least(mean + k * h, sd) for k in (-2, -1, 0, 1, 2)]
    bend = (-values[0] + 16.0 * values[1] - 30.0 * values[2] + 16.0 * values[3] - values[4]) / (12.0 * h**2)
    d = step * variance
    below2, below, above, above2 = (least(mean, np.sqrt(variance + k * d)) for k in (-2, -1, 1, 2))
    return np.log((below2 - 8.0 * below + 8.0 * above - above2) / (12.0 * d) - bend / 2.0)


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_rate_of_squared_error_is_how_fast_the_least_expected_loss_falls(name):
    weight = WEIGHTS[name]
    rates = by_rates(SquaredError(weight), gaussian_pair([0.0], 1.0, [0.5]))
    middle = (weight.values[0] + weight.values[-1]) / 2.0
    for mean, sd in ((0.0, 1.0), (-1.3, 0.5), (0.9, 0.4), (0.2, 2.0)):
        found = rates.rate(np.asarray([mean - middle]), np.asarray([sd]))
        wanted = log_rate_by_differences(lambda m, s: weighted_squared(weight, m, s), mean, sd)
        np.testing.assert_allclose(found, wanted, atol=2e-4)


@pytest.mark.parametrize("mean", [0.0, -3.0, 1.2])
@pytest.mark.parametrize("name", WEIGHTS)
def test_curves_of_weights_through_points_equal_brute_force(name, mean):
    weight = WEIGHTS[name]
    few, all_ = (
        expected_reduction(SquaredError(weight), belief)[: len(RHO), 0] / RHO
        for belief in (gaussian_pair(mean, 1.0, RHO), many([mean], 1.0, RHO))
    )
    wanted = [squared_regret(weight, mean, 1.0, rho, weight.breakpoints) for rho in RHO[2:5]]
    np.testing.assert_allclose(few[2:5], wanted, rtol=1e-4)
    np.testing.assert_allclose(few, all_, rtol=2e-7)
    np.testing.assert_allclose(few[2:], expected_regret(SquaredError(weight), gaussian_pair(mean, 1.0, RHO[2:]))[:, 0]
                               / RHO[2:], rtol=1e-7)  # fmt: skip


def test_nodes_that_agree_by_accident_do_not_pass():
    """Halfway between two stretches of weight, 5 sds away each, the answer turns about within .06 sds of the mean."""
    weight = InterpolatedWeight([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0, 0.0, 0.0, 1.0, 1.0])
    for rho in (np.array([0.7]), np.array([1e-3, 0.5, 1.0]) * 0.7, np.linspace(0.1, 0.9, 7)):
        belief = gaussian_pair([2.5, 2.5], np.array([0.1, 0.1]) ** 2, rho)
        wanted = [[squared_regret(weight, 2.5, 0.1, rho, weight.breakpoints) * rho] for rho in belief.rho[:, 0]]
        np.testing.assert_allclose(expected_reduction(SquaredError(weight), belief), wanted + np.zeros(2), rtol=2e-6)


@st.composite
def weights_and_contexts(draw):
    count = draw(st.integers(2, 6))
    gaps = draw(st.lists(st.floats(-3.0, 0.5), min_size=count - 1, max_size=count - 1))
    heights = draw(st.lists(st.floats(-1.5, 1.5), min_size=count, max_size=count))
    empty = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    offset = draw(st.sampled_from([0.0, -3.0, 1e6]))
    values = offset + np.concatenate([[0.0], np.cumsum(10.0 ** np.asarray(gaps))])
    weights = 10.0 ** np.asarray(heights) * np.where(np.asarray(empty) & (np.arange(count) > 0), 0.0, 1.0)
    scale = draw(st.sampled_from([1.0, 0.1, 1e-3]))
    mean = np.mean(values) + np.asarray(draw(st.lists(st.floats(-2.0, 2.0), min_size=2, max_size=2)))
    sd = scale * np.asarray(draw(st.lists(st.floats(0.3, 1.0), min_size=2, max_size=2)))
    return InterpolatedWeight(values.tolist(), weights.tolist()), mean, sd


@settings(max_examples=15, deadline=None)
@given(weights_and_contexts(), st.sampled_from([0.1, 0.7, 0.95]))
def test_any_weight_through_points_gives_what_the_general_route_does(case, largest):
    weight, mean, sd = case
    loss, rho = SquaredError(weight), np.array([1e-3, 0.5, 1.0]) * largest
    few, all_ = gaussian_pair(mean, sd**2, rho), many(mean, sd, rho)
    with warnings.catch_warnings(record=True) as doubts:  # where all weight is far away
        warnings.simplefilter("always", AccuracyWarning)
        wanted = expected_regret(loss, few)
        found, curve = expected_reduction(loss, few), expected_reduction(loss, all_)[:3]
    nothing, error = 1e-9 * np.max(wanted), 1e-4 if doubts else 2e-6
    np.testing.assert_allclose(found, wanted, rtol=error, atol=nothing)
    np.testing.assert_allclose(curve, wanted, rtol=error, atol=nothing)


def test_contexts_of_all_sizes_share_a_table(rng):
    mean, sd = rng.normal(size=60), 10.0 ** rng.uniform(-2.0, 0.3, 60)
    rho = rng.uniform(0.0, 0.9, size=(70, 60))
    belief = GaussianBelief(mean, sd**2, np.ones(70), np.sqrt(rho) * sd)
    loss = SquaredError(WEIGHTS["eight points"])
    assert by_rates(loss, belief) is not None
    some = slice(0, 70, 30), slice(0, 60, 7)
    np.testing.assert_allclose(
        expected_reduction(loss, belief)[some], expected_regret(loss, belief.take(*some)), rtol=2e-7
    )


def test_an_offset_costs_no_digits():
    weight = WEIGHTS["eight points"]
    moved = InterpolatedWeight([value + 2.0**20 for value in weight.values], weight.weights)
    for count in (10, 100):
        rho = np.linspace(0.0, 0.9, count)
        mean, variance = np.array([0.25, -0.5]), np.array([0.25, 0.25])
        here, there = gaussian_pair(mean, variance, rho), gaussian_pair(2.0**20 + mean, variance, rho)
        np.testing.assert_allclose(
            expected_reduction(SquaredError(moved), there), expected_reduction(SquaredError(weight), here), rtol=1e-8
        )


def test_a_context_that_is_known_gains_nothing_and_leaves_the_others_as_they_are():
    loss, rho = SquaredError(WEIGHTS["eight points"]), np.linspace(0.0, 0.9, 80)
    sd = np.array([0.0, 0.7])
    for part in (slice(0, 80), slice(0, 80, 10)):
        both = GaussianBelief([0.1, 0.3], sd**2, np.ones(80), np.sqrt(rho)[:, None] * sd).take(part, slice(None))
        found = expected_reduction(loss, both)
        assert np.all(found[:, 0] == 0.0)
        np.testing.assert_allclose(found[:, 1:], expected_reduction(loss, both.take(slice(None), slice(1, 2))), 1e-7)


def test_labels_that_tell_nearly_all():
    loss, rho = SquaredError(WEIGHTS["eight points"]), 1.0 - 10.0 ** -np.arange(1.0, 13.0)
    few, all_ = gaussian_pair(0.3, 1.0, rho), many([0.3], 1.0, rho)
    wanted = expected_regret(loss, few)
    np.testing.assert_allclose(expected_reduction(loss, few), wanted, rtol=1e-6)
    np.testing.assert_allclose(expected_reduction(loss, all_)[: len(rho)], wanted, rtol=1e-6)


def test_where_digits_would_cancel_the_general_route_runs():
    narrow = SquaredError(InterpolatedWeight([0.0, 0.001, 0.002], [0.0, 3.0, 0.0]))
    belief = gaussian_pair(0.3, 1.0, [0.2, 0.6])
    assert few_regrets(narrow, belief) is None
    found = by_rates(narrow, belief)
    assert not found.settled(0.5) or found.at(np.linspace(0.5, 1.0, 5)) is None
    np.testing.assert_allclose(expected_reduction(narrow, belief), expected_regret(narrow, belief), rtol=1e-9)


def test_a_context_beyond_all_numbers_takes_the_general_route():
    """The weight begins 30 standard deviations above."""
    loss = SquaredError(InterpolatedWeight([30.0, 31.0], [0.0, 1.0]))
    rho = np.linspace(0.1, 0.9, FEW + 1)
    curve = expected_reduction(loss, gaussian_pair(0.0, 1.0, rho))[::20]
    np.testing.assert_allclose(curve, expected_regret(loss, gaussian_pair(0.0, 1.0, rho[::20])), rtol=1e-4)


def test_blocks_that_reach_further_than_the_first():
    loss, belief = SquaredError(WEIGHTS["nothing below"]), many([0.2], 1.0, np.array([0.999]))
    of, log_scale = profile.profile_curve(loss, belief.take(slice(1, 30), slice(None)))
    whole = of(belief) * np.exp(log_scale)
    np.testing.assert_allclose(whole[:1], expected_regret(loss, belief.take(slice(0, 1), slice(None))), rtol=1e-6)


def lognormal_crps(mean, sd, rho):
    """E[z] (erf(sd / 2) - erf(sd sqrt(1 - rho) / 2)), z the exponential of a normal."""
    return np.exp(mean + sd**2 / 2.0) * (erf(sd / 2.0) - erf(sd * np.sqrt(1.0 - rho)[:, None] / 2.0))


def test_crps_of_a_log_warp_in_closed_form():
    mean, sd, rho = np.array([0.0, -3.0, 5.0, 700.0]), np.array([1.0, 0.3, 2.0, 0.01]), RHO[2:]
    latent = gaussian_pair(mean, sd**2, np.append(rho, 1.0))
    found = expected_reduction(CRPS(), WarpedGaussianBelief(latent, LogWarp()))
    np.testing.assert_allclose(found, lognormal_crps(mean, sd, np.append(rho, 1.0)), rtol=2e-9)
    assert find_form(CRPS(), WarpedGaussianBelief(latent, LogWarp())).name.startswith("profile curve")


WARPS = [LogWarp(), SoftplusWarp(3.0), BoxCoxWarp(0.3), BoxCoxWarp(0.0)]


@pytest.mark.parametrize("loss", [CRPS(), Pinball(0.8), AbsoluteError()], ids=repr)
@pytest.mark.parametrize("warp", WARPS, ids=repr)
def test_warped_targets_without_weights(loss, warp):
    belief = WarpedGaussianBelief(gaussian_pair([6.0, 9.0], [0.09, 1.0], [1e-8, 1e-3, 0.2, 0.6, 0.9, 0.99]), warp)
    assert by_rates(loss, belief).settled(0.05)
    np.testing.assert_allclose(expected_reduction(loss, belief), expected_regret(loss, belief), rtol=3e-8)


def test_a_pinball_of_a_log_warp_against_brute_force():
    belief = WarpedGaussianBelief(gaussian_pair(0.2, 0.49, [0.6]), LogWarp())
    wanted = score_reduction("pinball", np.ones_like, 0.2, 0.7, 0.6, tau=0.8, forward=np.exp, slope=np.exp)
    np.testing.assert_allclose(expected_reduction(Pinball(0.8), belief)[0, 0], wanted, rtol=1e-4)


def pinball_least(weight, tau, mean, sd):
    """E[w l(z, a)] for the best a, on a dense grid."""
    u = np.linspace(-10.0, 10.0, 200001)
    mass = weight(mean + sd * u) * norm.pdf(u)
    below = np.cumsum(mass) - mass / 2.0
    a = np.interp(tau * mass.sum(), below, u)
    return sd * np.sum(mass * np.maximum(tau * (u - a), (tau - 1.0) * (u - a))) * (u[1] - u[0])


def test_the_rate_of_a_weighted_quantile_is_how_fast_the_least_expected_loss_falls():
    rates = by_rates(Pinball(0.8, SIGMOID), gaussian_pair([0.0], 1.0, [0.5]))
    for mean, sd in ((0.0, 1.0), (-2.0, 0.5), (1.0, 0.8)):
        found = rates.rate(np.asarray([mean]), np.asarray([sd]))
        wanted = log_rate_by_differences(lambda m, s: pinball_least(SIGMOID, 0.8, m, s), mean, sd, step=0.1)
        np.testing.assert_allclose(found, wanted, atol=2e-3)


def crps_least(weight, mean, sd):
    """E[w] times the integral of F (1 - F), on a dense grid."""
    u = np.linspace(-10.0, 10.0, 200001)
    mass = weight(mean + sd * u) * norm.pdf(u) * (u[1] - u[0])
    below = np.cumsum(mass) - mass / 2.0
    return sd * np.sum(below * (mass.sum() - below)) / mass.sum() * (u[1] - u[0])


def linex_least(weight, alpha, mean, sd):
    """E[w (log a - log T)] for T = exp(-alpha z) and the best a = E_w[T]."""
    cuts = weight.breakpoints
    w, raised, first = normal_expectation(
        lambda z: np.stack([weight(z), weight(z) * np.exp(-alpha * z), weight(z) * z]), mean, sd, cuts, per_sd=32
    )
    return float(w * np.log(raised / w) + alpha * first)


KINKED = Weight(lambda z: 1.0 + np.maximum(z - 0.5, 0.0), breakpoints=(0.5,))
JUMPING = Weight(lambda z: np.where(z > 0.3, 5.0, 1.0), breakpoints=(0.3,))


@pytest.mark.parametrize("weight", [SIGMOID, WEIGHTS["eight points"], KINKED], ids=["sigmoid", "points", "kink"])
def test_the_rate_of_crps_is_how_fast_the_least_expected_loss_falls(weight, monkeypatch):
    monkeypatch.setattr(rates, "_FEW_CONTEXTS", 0)
    found = by_rates(CRPS(weight), gaussian_pair([0.0], 1.0, [0.5]))
    for mean, sd in ((0.0, 1.0), (-1.3, 0.5), (1.0, 0.8)):
        wanted = log_rate_by_differences(lambda m, s: crps_least(weight, m, s), mean, sd, step=0.1)
        np.testing.assert_allclose(found.rate(np.asarray([mean]), np.asarray([sd])), wanted, atol=2e-3)


@pytest.mark.parametrize("alpha", [1.5, -0.7])
@pytest.mark.parametrize("name", WEIGHTS)
def test_the_rate_of_linex_is_how_fast_the_least_expected_loss_falls(name, alpha):
    weight = WEIGHTS[name]
    found = by_rates(Linex(alpha, weight), gaussian_pair([0.0], 1.0, [0.5]))
    middle = (weight.values[0] + weight.values[-1]) / 2.0
    for mean, sd in ((0.0, 1.0), (-1.3, 0.5), (0.9, 0.4)):
        wanted = log_rate_by_differences(lambda m, s: linex_least(weight, alpha, m, s), mean, sd)
        np.testing.assert_allclose(found.rate(np.asarray([mean - middle]), np.asarray([sd])), wanted, atol=2e-4)


@pytest.mark.parametrize("alpha", [1.0, -2.0, 0.01])
@pytest.mark.parametrize("name", WEIGHTS)
def test_linex_with_a_weight_through_points(name, alpha, monkeypatch):
    monkeypatch.setattr(rates, "_FEW_PAIRS", 0)
    loss, rho = Linex(alpha, WEIGHTS[name]), RHO[2:6]
    belief = gaussian_pair([0.2, -1.5], np.array([1.0, 0.36]), rho)
    assert by_rates(loss, belief) is not None
    np.testing.assert_allclose(expected_reduction(loss, belief), expected_regret(loss, belief), rtol=2e-7)
    tiny = expected_reduction(loss, gaussian_pair([0.2, -1.5], np.array([1.0, 0.36]), [1e-9, 1e-7]))
    np.testing.assert_allclose(100.0 * tiny[0], tiny[1], rtol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, -2.0, 0.01])
@pytest.mark.parametrize("name", WEIGHTS)
def test_few_pairs_of_linex_with_a_weight_through_points(name, alpha):
    loss, belief = Linex(alpha, WEIGHTS[name]), gaussian_pair([0.2, -1.5], np.array([1.0, 0.36]), RHO)
    assert few_regrets(loss, belief).at(belief.rho) is not None
    found = expected_reduction(loss, belief)
    np.testing.assert_allclose(found[2:], expected_regret(loss, belief)[2:], rtol=1e-8)
    np.testing.assert_allclose(1e4 * found[0], found[1], rtol=1e-3)


def test_linex_with_a_weight_through_points_equals_brute_force():
    weight = WEIGHTS["eight points"]
    wanted = gaussian_reduction(
        lambda z, a: np.exp(-z) / a + z + np.log(a) - 1.0,
        lambda z: np.exp(-z),
        weight,
        0.3,
        0.5,
        0.6,
        weight.breakpoints,
    )
    found = expected_reduction(Linex(1.0, weight), gaussian_pair(0.3, 0.5, [0.6]))
    np.testing.assert_allclose(found[0, 0], wanted, rtol=1e-6)


PLAIN = [each for loss in (CRPS, SquaredError) for each in ((loss, WEIGHTS["eight points"]), (loss, KINKED))]
WARPED = [(loss, JUMPING) for loss in (CRPS, ItakuraSaito, PoissonDeviance, lambda weight: BoxCox(0.5, weight))]


@pytest.mark.parametrize(
    ("make", "weight", "warp"),
    [(*each, None) for each in [*PLAIN, (lambda weight: Linex(1.0, weight), JUMPING)]]
    + [(*each, LogWarp()) for each in WARPED],
)
def test_weights_that_kink_and_jump(make, weight, warp, monkeypatch):
    monkeypatch.setattr(rates, "_FEW_CONTEXTS", 0)
    loss = make(weight)

    def belief(rho):
        rest = np.linspace(0.0, 0.9, FEW + 1) if len(rho) > 1 else []
        latent = gaussian_pair([0.2, -1.5], np.array([0.25, 0.36]), np.append(rho, rest))
        return latent if warp is None else WarpedGaussianBelief(latent, warp)

    rho = np.array([1e-8, 0.6, 0.9])
    assert by_rates(loss, belief(rho)).settled(0.3)
    found = expected_reduction(loss, belief(rho))
    np.testing.assert_allclose(found[1:2], expected_regret(loss, belief(rho[1:2])), rtol=3e-7)
    again = expected_reduction(loss, belief(np.array([1e-6, 0.5])))
    np.testing.assert_allclose(100.0 * found[0], again[0], rtol=1e-4)


def test_answers_that_turn_about_take_the_general_route(monkeypatch):
    monkeypatch.setattr(rates, "_FEW_CONTEXTS", 0)
    square = BregmanLoss(Square(), lambda z: z**2, KINKED)
    vector = BregmanLoss(Square(), lambda z: np.stack([z, z**2], axis=-1), KINKED)
    own = BregmanLoss(lambda x: np.exp(x[..., 0]), weight=KINKED)
    for loss in (square, vector, own):
        assert by_rates(loss, gaussian_pair(0.0, 1.0, [0.5])) is None


@pytest.mark.parametrize("warp", [None, LogWarp()], ids=["plain", "log"])
def test_crps_with_a_smooth_weight(warp):
    def belief(rho):
        latent = gaussian_pair([0.0, -1.5], [0.05, 0.7], rho)
        return latent if warp is None else WarpedGaussianBelief(latent, warp)

    loss, rho = CRPS(SIGMOID), np.array([1e-8, 0.6, 0.9])
    assert by_rates(loss, belief(rho)) is not None
    found = expected_reduction(loss, belief(rho))
    np.testing.assert_allclose(found[1:2], expected_regret(loss, belief(rho[1:2])), rtol=3e-7)
    if warp is None:
        wanted = score_reduction("crps", SIGMOID, 0.0, np.sqrt(0.05), 0.6)
        np.testing.assert_allclose(found[1, 0], wanted, rtol=1e-4)


def test_a_rough_weight_that_is_next_to_nothing_somewhere_takes_the_general_route(monkeypatch):
    """What is left of it may lie beyond the panels of a posterior that is narrow."""
    monkeypatch.setattr(rates, "_FEW_CONTEXTS", 0)
    step = Weight(lambda z: np.where(z > 0.3, 1.0, 0.0), breakpoints=(0.3,))
    for loss in (CRPS(step), CRPS(WEIGHTS["nothing below"]), SquaredError(step)):
        assert by_rates(loss, gaussian_pair(0.0, 1.0, [0.5])) is None


SMOOTH = {
    "sigmoid 2": SIGMOID,
    "sigmoid 4 on a floor": Weight(lambda z: 0.2 + 1.0 / (1.0 + np.exp(-4.0 * z))),
    "square": Weight(lambda z: 1.0 + z**2),
    "exponential": Weight(lambda z: np.exp(1.5 * z), log=lambda z: 1.5 * z),
    "sigmoid 8": Weight(lambda z: 1.0 / (1.0 + np.exp(-8.0 * z))),
}


@pytest.mark.parametrize("warp", [None, LogWarp()], ids=["plain", "log"])
@pytest.mark.parametrize("name", SMOOTH)
def test_quantiles_with_smooth_weights(name, warp):
    def belief(rho):
        latent = gaussian_pair([0.0, -1.5], [0.05, 0.7], rho)
        return latent if warp is None else WarpedGaussianBelief(latent, warp)

    if warp is not None and name == "exponential":
        pytest.skip("infinite")
    rho, loss = np.array([1e-8, 0.6, 0.9]), Pinball(0.7, SMOOTH[name])
    assert by_rates(loss, belief(rho)).settled(0.2)
    found = expected_reduction(loss, belief(rho))
    np.testing.assert_allclose(found[1:2], expected_regret(loss, belief(rho[1:2])), rtol=3e-7)
    half = AbsoluteError(SMOOTH[name])
    np.testing.assert_allclose(expected_reduction(half, belief(rho)), 2.0 * expected_reduction(
        Pinball(0.5, SMOOTH[name]), belief(rho)), rtol=1e-12)  # fmt: skip


def test_an_exponential_weight_of_a_quantile_gives_the_closed_form():
    belief = gaussian_pair([0.0, -1.5], [0.05, 0.7], RHO)
    found = expected_reduction(Pinball(0.7, SMOOTH["exponential"]), belief)
    k = np.exp(1.5 * belief.mean + 1.5**2 * belief.variance / 2.0) * norm.pdf(norm.ppf(0.7)) * np.sqrt(belief.variance)
    np.testing.assert_allclose(found, k * (RHO / (1.0 + np.sqrt(1.0 - RHO)))[:, None], rtol=1e-7)


INFORMATION = [*((name, None) for name in WEIGHTS), ("kink", None), ("jump", LogWarp()), ("steep", None)]


@pytest.mark.parametrize(("name", "warp"), INFORMATION)
def test_the_log_score_with_rough_weights(name, warp):
    steep = Weight(lambda z: 0.1 + 1.0 / (1.0 + np.exp(-np.clip(20.0 * z, -700.0, 700.0))))
    weight = {**WEIGHTS, "kink": KINKED, "jump": JUMPING, "steep": steep}[name]
    latent = gaussian_pair([0.1, -1.2], [0.3, 0.7], [1e-8, 0.3, 0.95])
    belief = latent if warp is None else WarpedGaussianBelief(latent, warp)
    wanted = expected_regret(LogScore(weight), belief)
    np.testing.assert_allclose(expected_reduction(LogScore(weight), belief), wanted, rtol=5e-8)


def test_the_log_score_of_a_label_that_tells_nearly_all():
    loss, belief = LogScore(WEIGHTS["eight points"]), gaussian_pair([0.1, -1.2], [0.3, 0.7], [0.3, 0.99999])
    np.testing.assert_allclose(expected_reduction(loss, belief), expected_regret(loss, belief), rtol=1e-7)


def test_few_contexts_of_a_quantile_with_a_rough_weight_take_the_general_route(way):
    known = by_rates(Pinball(0.7, KINKED), gaussian_pair(0.0, 1.0, [0.5]))
    assert (known is None) == (way == "own nodes")


def test_the_average_of_what_is_left_of_a_curve():
    x = 0.2 + 0.8 * (1.0 + np.cos(np.pi * (np.arange(9) + 0.5) / 9)) / 2.0
    found = average_beyond(np.stack([1.0 + 0.0 * x, 3.0 * x**2], axis=1), 0.2)
    np.testing.assert_allclose(found, np.stack([1.0 / (1.0 + x), (1.0 - x**3) / (1.0 - x**2)], axis=1), rtol=1e-12)


def test_scores_are_the_means_of_reductions(rng):
    sd, rho = rng.uniform(0.2, 1.0, 30), rng.uniform(0.0, 0.9, (80, 30))
    belief = GaussianBelief(rng.normal(size=30), sd**2, np.ones(80), np.sqrt(rho) * sd)
    for loss in (SquaredError(WEIGHTS["nothing below"]), Pinball(0.8, SIGMOID)):
        np.testing.assert_allclose(score(loss, belief), expected_reduction(loss, belief).mean(axis=1), rtol=1e-9)


def test_single_precision_is_that_of_the_belief():
    belief = gaussian_pair(0.3, 1.0, np.linspace(0.0, 0.9, 80))
    single = GaussianBelief(*(np.asarray(each, np.float32) for each in (
        belief.mean, belief.variance, belief.candidate_variance, belief.covariance)))  # fmt: skip
    for part in (slice(0, 80), slice(0, 8)):
        here, there = (each.take(part, slice(None)) for each in (belief, single))
        found = expected_reduction(SquaredError(WEIGHTS["eight points"]), there)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected_reduction(SquaredError(WEIGHTS["eight points"]), here), rtol=1e-4)


def test_moments_of_a_weight_through_points_are_those_of_truncated_normals():
    weight = WEIGHTS["nothing below"]
    few = few_regrets(SquaredError(weight), gaussian_pair(0.4, 0.25, [0.5]))
    pieces = sum(
        rise * ((1.0 - ndtr((low - 0.4) / 0.5)) * (0.4 - low) + 0.5 * norm.pdf((low - 0.4) / 0.5)
                - (1.0 - ndtr((high - 0.4) / 0.5)) * (0.4 - high) - 0.5 * norm.pdf((high - 0.4) / 0.5)) / (high - low)
        for low, high, rise in ((-1.0, 0.0, 1.0), (0.0, 1.0, 4.0))
    )  # fmt: skip
    np.testing.assert_allclose(np.exp(few.log_scale), pieces, rtol=1e-13)
