"""The profile curve against dense integration, and what it does where it cannot be accurate."""

import warnings

import numpy as np
import pytest

from stakes import (
    AccuracyWarning,
    BregmanLoss,
    ExponentialWeight,
    GaussianBelief,
    InterpolatedWeight,
    Linex,
    LogWarp,
    SquaredError,
    WarpedGaussianBelief,
    Weight,
    expected_reduction,
    expected_regret,
    find_form,
)
from stakes.acquisition.profile import profile_curve
from stakes.losses import Square
from tests.brute import gaussian_pair, gaussian_reduction, squared_regret
from tests.torture.weights import Rough, gaussian_worth, moment_regret, square

RHO = np.array([1e-12, 1e-8, 1e-3, 0.2, 0.6, 0.9, 0.97, 0.99, 0.999, 1 - 1e-6, 1 - 1e-12])


def sigmoid(slope):
    return Weight(lambda z: 1 / (1 + np.exp(-np.clip(slope * z, -700, 700))))


def softplus(slope):
    return Weight(lambda z: np.logaddexp(0, slope * z))


SMOOTH = {
    "sigmoid 6": sigmoid(6.0),
    "sigmoid -3": sigmoid(-3.0),
    "softplus 6": softplus(6.0),
    "softplus 1": softplus(1.0),
    "exp 3": Weight(lambda z: np.exp(3.0 * z)),
    "exp -3": Weight(lambda z: np.exp(-3.0 * z)),
}
KINKED = {
    "hinge": Weight(lambda z: np.maximum(z, 1e-3), breakpoints=(1e-3,)),
    "step": Weight(lambda z: np.where(z > 0.5, 1.0, 0.0), breakpoints=(0.5,)),
    "step on a floor": Weight(lambda z: np.where(z > 0.5, 1.0, 0.01), breakpoints=(0.5,)),
    "elicited": InterpolatedWeight([-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 5.0, 5.0]),
}


@pytest.mark.parametrize("mean", [0.0, 0.8, -3.0])
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_weights_to_1e_6_at_all_rho(name, mean):
    weight = SMOOTH[name]
    belief = gaussian_pair(mean, 1.0, RHO)
    assert find_form(SquaredError(weight), belief).name.startswith("profile curve")
    curve = expected_reduction(SquaredError(weight), belief)[:, 0] / RHO
    wanted = [squared_regret(weight, mean, 1.0, rho) for rho in RHO]
    np.testing.assert_allclose(curve, wanted, rtol=1e-6)
    np.testing.assert_allclose(expected_regret(SquaredError(weight), belief)[:, 0] / RHO, wanted, rtol=1e-6)


@pytest.mark.parametrize("mean", [0.0, -2.0])
@pytest.mark.parametrize("name", KINKED)
def test_kinked_weights_to_1e_4_at_all_rho(name, mean):
    weight = KINKED[name]
    rho = np.array([1e-12, 0.3, 0.95, 0.9995])
    belief = gaussian_pair(mean, 1.0, rho)
    curve = expected_reduction(SquaredError(weight), belief)[:, 0] / rho
    wanted = [squared_regret(weight, mean, 1.0, each, weight.breakpoints) for each in rho]
    np.testing.assert_allclose(curve, wanted, rtol=1e-4)
    np.testing.assert_allclose(expected_regret(SquaredError(weight), belief)[:, 0] / rho, wanted, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.05, 1.0, -4.0])
def test_linex_with_a_sigmoid_weight_equals_direct_integration(alpha):
    weight, rho = sigmoid(2.0), 0.6
    wanted = gaussian_reduction(
        lambda z, a: np.exp(-alpha * z) / a + alpha * z + np.log(a) - 1,
        lambda z: np.exp(-alpha * z),
        weight,
        0.3,
        1.0,
        rho,
    )
    np.testing.assert_allclose(
        expected_reduction(Linex(alpha, weight), gaussian_pair(0.3, 1.0, rho))[0, 0], wanted, rtol=1e-6
    )


def test_the_curve_of_a_closed_form_is_that_form(rng):
    """BregmanLoss(Square()) is squared error, but has no closed form of its own: the curve must find it."""
    mixing = rng.standard_normal((40, 12))
    covariance = mixing @ mixing.T
    belief = GaussianBelief(
        rng.standard_normal(15), np.diag(covariance)[25:], np.diag(covariance)[:25] + 0.1, covariance[:25, 25:]
    )
    for weight in (None, ExponentialWeight(0.1), ExponentialWeight(-0.3)):
        np.testing.assert_allclose(
            expected_reduction(BregmanLoss(Square(), weight=weight), belief),
            expected_reduction(SquaredError(weight), belief),
            rtol=1e-9,
        )


def test_contexts_without_variance_have_nothing_to_gain():
    belief = gaussian_pair([0.0, 1.0], [1.0, 0.0], [0.5, 1.0])
    reduction = expected_reduction(SquaredError(sigmoid(2.0)), belief)
    assert np.all(reduction[:, 0] > 0)
    np.testing.assert_array_equal(reduction[:, 1], 0.0)


ROUGH = {
    "sigmoid 20": (sigmoid(20.0), ((0.0, 1 / 20),)),
    "sigmoid 60": (sigmoid(60.0), ((0.0, 1 / 60),)),
    "sigmoid 200, declared": (Weight(sigmoid(200.0).function, breakpoints=(0.0,)), ((0.0, 1 / 200),)),
    "sigmoid 1000": (sigmoid(1000.0), ((0.0, 1 / 1000),)),
    "step": (Weight(lambda z: np.where(z > 0.037, 1.0, 0.0)), ((0.037, 0.0),)),
    "box": (Weight(lambda z: np.where(abs(z - 0.3) < 5e-4, 30.0, 0.1)), ((0.2995, 0.0), (0.3005, 0.0))),
    "kink": (Weight(lambda z: 0.1 + np.maximum(z - 0.2, 0.0)), ((0.2, 0.0),)),
}


@pytest.mark.parametrize("n_candidates", [1, 80])
@pytest.mark.parametrize("name", ROUGH)
def test_rough_weights_to_1e_6_though_they_declare_nothing(name, n_candidates):
    weight, places = ROUGH[name]
    rho = np.concatenate([[0.6], np.linspace(0.05, 0.9, n_candidates - 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = expected_reduction(SquaredError(weight), gaussian_pair(0.1, 1.0, rho))[0, 0]
    rough = Rough(lambda u: weight(0.1 + u), tuple((place - 0.1, width) for place, width in places))
    assert got == pytest.approx(gaussian_worth(rough, moment_regret(lambda u: u, square), 0.6), rel=1e-6)


def test_noise_is_reported_and_a_declared_step_is_not():
    noise = Weight(lambda z: 1.0 + 0.9 * np.sin(1e6 * z))
    with pytest.warns(AccuracyWarning, match="breakpoints") as caught:
        profile_curve(SquaredError(noise), gaussian_pair(0.0, 1.0, 0.5))
    assert caught[0].message.relative_error > 0.1
    declared = Weight(lambda z: np.where(z > 0.037, 1.0, 0.0), breakpoints=(0.037,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profile_curve(SquaredError(declared), gaussian_pair(0.0, 1.0, 0.5))


def test_a_curve_whose_statistics_underflow_is_that_of_the_general_route():
    """A log-normal target with so wide a tail that exp(-z) underflows, as of a model of few labels."""
    belief = WarpedGaussianBelief(gaussian_pair(0.6, 2.15, [0.3, 0.97]), LogWarp())
    np.testing.assert_allclose(expected_reduction(Linex(1.0), belief), expected_regret(Linex(1.0), belief), rtol=1e-6)


def test_curves_of_many_contexts_are_those_of_each(rng):
    """Contexts share nodes where they can; that must not show."""
    weight = sigmoid(1.5)
    mean, variance, rho = rng.normal(0, 2, 7), rng.uniform(0.01, 4, 7), [0.001, 0.4, 0.98]
    together = expected_reduction(SquaredError(weight), gaussian_pair(mean, variance, rho))
    alone = [
        expected_reduction(SquaredError(weight), gaussian_pair(m, v, rho)) for m, v in zip(mean, variance, strict=True)
    ]
    np.testing.assert_allclose(together, np.concatenate(alone, axis=1), rtol=1e-7)
