"""Losses of vectors: hand-computed values, the laws, and what is refused."""

import array_api_compat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stakes import (
    BregmanLoss,
    ExponentialLinearWeight,
    ExponentialWeight,
    InterpolatedWeight,
    Mahalanobis,
    SquaredError,
    Weight,
)
from stakes.losses import ClassWeights, NegativeLog, Quadratic, Square, VectorIdentity
from stakes.losses.domains import Vectors
from stakes.testing import check_loss

MATRIX = [[2.0, 1.0], [1.0, 3.0]]
TARGETS = np.array([[1.0, 2.0], [-0.5, 0.3], [0.2, -1.0], [2.0, 0.9]])


def first_sigmoid(z):
    return 1.0 / (1.0 + array_api_compat.array_namespace(z).exp(-2.0 * z[..., 0]))


LOSSES = {
    "plain": Mahalanobis(MATRIX),
    "singular": Mahalanobis([[1.0, -1.0], [-1.0, 1.0]]),
    "exponential": Mahalanobis(MATRIX, ExponentialLinearWeight([0.7, -0.4])),
    "own weight": Mahalanobis(MATRIX, first_sigmoid),
    "own weight with a logarithm": Mahalanobis(
        MATRIX, Weight(lambda z: abs(z[..., 0]), lambda z: abs(z[..., 0]) * 0.0)
    ),
    "composed": BregmanLoss(Square(), VectorIdentity(2), first_sigmoid),
}


def test_values_by_hand(xp, host):
    """(1, 2) A (1, 2)' = 2 + 2 * 2 + 3 * 4 = 18, weighed by exp(0.5 * 1 - 1 * 2)."""
    z, b = xp.asarray(np.array([[1.0, 2.0]])), xp.asarray(np.zeros(2))
    np.testing.assert_allclose(host(Mahalanobis(MATRIX)(z, b)), [18.0], rtol=1e-14)
    weighted = Mahalanobis(MATRIX, ExponentialLinearWeight([0.5, -1.0]))
    np.testing.assert_allclose(host(weighted(z, b)), [18.0 * np.exp(-1.5)], rtol=1e-14)
    np.testing.assert_allclose(
        host(weighted(z[0, :], xp.asarray(np.array([[0.0, 2.0], [1.0, 2.0]])))), [2 * np.exp(-1.5), 0], rtol=1e-14
    )


def test_the_identity_is_the_sum_of_squared_errors():
    answers = TARGETS[::-1] + 0.3
    each = SquaredError()(TARGETS, answers).sum(1)
    np.testing.assert_allclose(Mahalanobis(np.eye(2))(TARGETS, answers), each, rtol=1e-14)


@pytest.mark.parametrize("name", [name for name in LOSSES if "logarithm" not in name])
def test_laws(xp, name):
    check_loss(LOSSES[name], xp.asarray(TARGETS))


def test_laws_of_a_steep_weight_far_from_zero():
    check_loss(Mahalanobis(MATRIX, ExponentialLinearWeight([1.0, -1.0])), TARGETS + 100.0)
    check_loss(Mahalanobis(np.eye(3), ExponentialLinearWeight([2.0, 0.0, 1.0])), np.arange(12.0).reshape(4, 3) + 90)


def test_the_laws_want_vectors():
    with pytest.raises(AssertionError, match=r"\[Z, d\]"):
        check_loss(LOSSES["plain"], [1.0, 2.0])


def test_the_answer_is_the_weighted_mean(xp, host):
    loss, z = LOSSES["exponential"], xp.asarray(TARGETS)
    moments = xp.mean(loss.statistics(z), axis=0)
    weights = np.exp(TARGETS @ [0.7, -0.4])
    np.testing.assert_allclose(
        host(loss.prediction(loss.action(moments))), weights @ TARGETS / weights.sum(), rtol=1e-13
    )


def test_a_given_logarithm_is_used():
    loss = LOSSES["own weight with a logarithm"]
    np.testing.assert_array_equal(loss.log_magnitudes(TARGETS)[:, 0], 0.0)


def test_a_small_miss_far_from_zero_keeps_its_digits():
    loss = Mahalanobis(MATRIX)
    reference = np.array([[1e6, -1e6]])
    statistics = loss.statistics(reference + np.array([0.5, 0.25]), reference)
    regret = loss.regret(statistics, np.array([[0.0, 0.0]]), reference)
    np.testing.assert_allclose(regret, [2 * 0.25 + 2 * 0.125 + 3 * 0.0625], rtol=1e-14)


numbers = st.floats(-1e3, 1e3)


@given(arrays(float, (3, 3), elements=numbers), arrays(float, 3, elements=numbers), arrays(float, 3, elements=numbers))
def test_a_divergence_is_the_quadratic_form_and_never_negative(mixing, x, y):
    matrix = mixing @ mixing.T + np.eye(3)
    divergence, step = Quadratic(matrix).divergence(x, y), x - y
    assert divergence >= 0
    np.testing.assert_allclose(
        divergence, step @ matrix @ step, rtol=1e-6, atol=1e-9 * np.abs(matrix).max() * step @ step
    )


def test_a_direction_of_price_0_costs_nothing():
    loss = LOSSES["singular"]
    np.testing.assert_allclose(loss(TARGETS, TARGETS + 0.7), 0.0, atol=1e-15)
    assert loss(TARGETS, TARGETS + np.array([0.7, 0.0])).min() > 0.4


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([1.0, 2.0], r"matrix must have shape \[d, d\]; got \[2\]"),
        ([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], r"matrix must have shape \[2, 2\]; got \[2, 3\]"),
        ([[1.0, np.nan], [0.0, 1.0]], "matrix must be finite"),
        ([[1.0, 0.5], [0.0, 1.0]], "matrix must be symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive semi-definite.*smallest eigenvalue is -1"),
        (np.zeros((2, 2)), "must not be empty or all 0"),
        (np.zeros((0, 0)), "must not be empty or all 0"),
    ],
)
def test_bad_matrices_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        Mahalanobis(matrix)


def test_rounding_below_0_is_forgiven():
    thin = np.outer([1.0, 1 / 3, 1 / 7], [1.0, 1 / 3, 1 / 7])
    assert Mahalanobis(thin).potential.root.shape == (3, 3)


@pytest.mark.parametrize(
    "weight",
    [
        ExponentialWeight(1.0),
        InterpolatedWeight([0.0], [1.0]),
        ClassWeights([1, 2]),
        Weight(np.exp, breakpoints=(0.0,)),
    ],
    ids=lambda weight: type(weight).__name__,
)
def test_weights_of_numbers_are_refused(weight):
    with pytest.raises(TypeError, match="weight of single numbers or classes, and targets are vectors of 2"):
        Mahalanobis(MATRIX, weight)


@pytest.mark.parametrize("rates", [[], [1.0, np.inf], [np.nan]])
def test_bad_rates_are_refused(rates):
    with pytest.raises(ValueError, match="rates must be finite numbers, one for each coordinate"):
        ExponentialLinearWeight(rates)


def test_rates_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"rates must hold 2 numbers.*got \(1.0, 2.0, 3.0\)"):
        Mahalanobis(MATRIX, ExponentialLinearWeight([1, 2, 3]))
    with pytest.raises(ValueError, match="rates must hold 2 numbers"):
        BregmanLoss(Square(), VectorIdentity(2), ExponentialLinearWeight([1.0]))


def test_a_weight_of_another_shape_or_sign_is_refused():
    with pytest.raises(
        ValueError, match=r"gives one number for each; for targets of shape \[4, 2\] this one gave \[4, 2\]"
    ):
        Mahalanobis(MATRIX, np.exp)(TARGETS, TARGETS)
    with pytest.raises(ValueError, match="at least 0 for every target"):
        Mahalanobis(MATRIX, lambda z: z[..., 0])(TARGETS, TARGETS)
    with pytest.raises(TypeError, match="a weight must be a function of the target"):
        Mahalanobis(MATRIX, 3.0)


def test_a_constant_weight_counts_for_each_target():
    np.testing.assert_allclose(
        Mahalanobis(MATRIX, lambda z: 2.0)(TARGETS, 0 * TARGETS), 2 * Mahalanobis(MATRIX)(TARGETS, 0 * TARGETS)
    )


@pytest.mark.parametrize(("z", "b", "who"), [(TARGETS[:, :1], TARGETS, "target"), (TARGETS, 0.0, "prediction")])
def test_other_shapes_are_refused(z, b, who):
    with pytest.raises(ValueError, match=rf"the {who} must be vectors of 2 numbers, shape \[..., 2\]; got"):
        Mahalanobis(MATRIX)(z, b)


def test_single_precision_stays_single(xp):
    z = xp.asarray(TARGETS.astype(np.float32))
    for loss in LOSSES.values():
        assert loss(z, z).dtype == xp.float32
        assert loss.statistics(z, z[:1, :]).dtype == xp.float32


def test_the_domain():
    assert Mahalanobis(MATRIX).domain == Vectors(2)
    assert VectorIdentity(3).domain == Vectors(3)


def test_a_potential_of_positive_numbers_is_refused():
    with pytest.raises(ValueError, match=r"the potential needs points in \(0, inf\)"):
        BregmanLoss(NegativeLog(), VectorIdentity(2))


def test_a_price_of_0_by_rounding_is_one():
    noisy = Mahalanobis([[-1e-17, 1e-17], [1e-17, 1.0]])
    np.testing.assert_allclose(noisy([3.0, 2.0], [0.0, 0.0]), 4.0)
    with pytest.raises(ValueError, match=r"positive semi-definite.*smallest eigenvalue is -1"):
        Mahalanobis([[0.0, 1.0], [1.0, 0.0]])
