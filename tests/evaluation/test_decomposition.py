"""Decompositions of the mean loss, as identities that hold for every draw."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from stakes import (
    BoxCox,
    BregmanLoss,
    CostMatrix,
    ExponentialWeight,
    ItakuraSaito,
    Linex,
    LogLoss,
    PoissonDeviance,
    SphericalLoss,
    SquaredError,
    Weight,
    ZeroOne,
)
from stakes.evaluation import bias_variance, decompose
from tests.evaluation.evaluation_cases import CLASS_LOSSES, OTHER_LOSSES, REAL_LOSSES, SEEDS, draws, mean_and_weights


@pytest.mark.parametrize("loss", REAL_LOSSES + CLASS_LOSSES + OTHER_LOSSES, ids=lambda loss: repr(loss)[:70])
@given(seed=SEEDS)
@settings(max_examples=10)
def test_the_mean_loss_is_estimation_error_and_dispersion(loss, seed):
    rng = np.random.default_rng(seed)
    (targets, _), (_, prediction) = draws(loss, rng, 4, 9), draws(loss, rng, 4)
    split = decompose(loss, prediction, targets)
    exact = 1e-9 if loss in OTHER_LOSSES else 1e-12
    direct = loss(targets, prediction[:, None, ...]).mean(-1)
    np.testing.assert_allclose(split.total, direct, rtol=exact)
    np.testing.assert_allclose(split.estimation_error + split.dispersion, split.total, rtol=exact)
    assert (split.estimation_error >= 0).all()
    normalised = decompose(loss, prediction, targets, normalise=True)
    weight = mean_and_weights(loss, targets)
    np.testing.assert_allclose(normalised.estimation_error * weight, split.estimation_error, rtol=1e-12)


def test_decompositions_by_hand(xp):
    split = decompose(SquaredError(), xp.asarray(1.0), xp.asarray([1.0, 3.0, 5.0]))
    assert [float(part) for part in (split.total, split.estimation_error, split.dispersion)] == pytest.approx(
        [20 / 3, 4, 8 / 3]
    )
    split = decompose(LogLoss(), xp.asarray([0.25, 0.75]), xp.asarray([0, 0, 1, 1]))
    cross = -(math.log(0.25) + math.log(0.75)) / 2
    assert [float(part) for part in (split.total, split.estimation_error, split.dispersion)] == pytest.approx(
        [cross, cross - math.log(2), math.log(2)]
    )


def test_offsets_cost_no_digits(rng):
    targets, predictions = rng.standard_normal(50), rng.standard_normal(6)
    for loss in (SquaredError(), Linex(0.8), SquaredError(ExponentialWeight(1e-5))):
        far, near = (bias_variance(loss, predictions + shift, targets + shift) for shift in (2.0**20, 0.0))
        unit = 1.0 if loss.weight is None else math.exp(2.0**20 * 1e-5)
        for part in ("total", "bayes_error", "bias", "variance"):
            np.testing.assert_allclose(getattr(far, part), getattr(near, part) * unit, rtol=1e-7)
        np.testing.assert_allclose(far.bayes_error + far.bias + far.variance, far.total, rtol=1e-12)


@pytest.mark.parametrize("loss", REAL_LOSSES + CLASS_LOSSES, ids=lambda loss: repr(loss)[:70])
@given(seed=SEEDS)
@settings(max_examples=10)
def test_the_mean_loss_of_random_answers_is_bayes_error_bias_and_variance(loss, seed):
    rng = np.random.default_rng(seed)
    (targets, _), (_, predictions) = draws(loss, rng, 3, 8), draws(loss, rng, 3, 5)
    parts = bias_variance(loss, predictions, targets)
    direct = loss(targets[:, None, :], predictions[:, :, None, ...]).mean((1, 2))
    np.testing.assert_allclose(parts.total, direct, rtol=1e-12)
    np.testing.assert_allclose(parts.bayes_error + parts.bias + parts.variance, parts.total, rtol=1e-12)
    np.testing.assert_allclose(parts.bayes_error, decompose(loss, predictions[:, 0], targets).dispersion, rtol=1e-12)
    assert (parts.variance >= 0).all()
    one = bias_variance(loss, predictions[:, :1], targets)
    np.testing.assert_allclose(one.variance, 0, atol=1e-13 * one.total.max())
    np.testing.assert_allclose(one.bias, decompose(loss, predictions[:, 0], targets).estimation_error, rtol=1e-9)


@pytest.mark.parametrize(
    ("loss", "central"),
    [
        (SquaredError(), 2.5),  # mean of 1 and 4
        (ItakuraSaito(), 1.6),  # harmonic
        (PoissonDeviance(), 2.0),  # geometric
        (BoxCox(0.0), 2.0),  # mean of logarithms
        (Linex(0.8), -math.log(2 / (math.exp(0.8) + math.exp(3.2))) / 0.8),  # harmonic in exp(-0.8 z)
    ],
)
def test_the_central_answer_by_hand(xp, loss, central):
    parts = bias_variance(loss, xp.asarray([1.0, 4.0]), xp.asarray([3.0]))
    assert float(parts.bayes_error) == pytest.approx(0, abs=1e-15)
    assert float(parts.bias) == pytest.approx(float(loss(3.0, central)))
    assert float(parts.variance) == pytest.approx(float(loss(central, 1.0) + loss(central, 4.0)) / 2)


def test_the_central_probabilities_are_a_renormalised_geometric_mean(xp):
    rows = np.array([[0.9, 0.1], [0.4, 0.6]])
    central = np.sqrt(rows[0] * rows[1])
    parts = bias_variance(LogLoss(), xp.asarray(rows), xp.asarray([1]))
    assert float(parts.bias) == pytest.approx(-math.log(central[1] / central.sum()))
    assert float(parts.variance) == pytest.approx(-math.log(central.sum()))
    impossible = bias_variance(LogLoss(), [[1.0, 0.0], [0.4, 0.6]], [1, 0])
    assert impossible.total == impossible.bias == math.inf


# What is refused


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: decompose(SquaredError(Weight(lambda z: 0 * z)), 1.0, [1.0, 2.0]),
            ValueError,
            "weigh nothing",
        ),
        (lambda: decompose(ZeroOne(), 0, [0, 1]), TypeError, "weighted Bregman loss .* ZeroOne"),
        (lambda: bias_variance(CostMatrix(np.eye(2)), [0, 1], [0, 1]), TypeError, "weighted Bregman loss"),
        (lambda: decompose(SquaredError(), [1.0], [1.0, 2.0]), ValueError, "must agree in their leading axes"),
        (lambda: decompose(SquaredError(), 1.0, 1.0), ValueError, "must agree in their leading axes"),
        (lambda: decompose(SquaredError(), 1.0, []), ValueError, "not be empty"),
        (lambda: decompose(LogLoss(), [[0.5, 0.5]], [0, 1]), ValueError, r"predictions \[..., C\] and targets"),
        (lambda: decompose(SquaredError(), 1.0, [math.nan]), ValueError, "targets must be finite"),
        (lambda: decompose(ItakuraSaito(), 1.0, [0.0]), ValueError, "the target must lie in"),
        (lambda: bias_variance(SquaredError(), 1.0, [1.0]), ValueError, r"predictions \[..., A\] and targets"),
        (lambda: bias_variance(SphericalLoss(), [[0.5, 0.5]], [0]), TypeError, "Square, NegativeLog .* Norm"),
        (lambda: bias_variance(BregmanLoss(np.cosh), [1.0], [0.0]), TypeError, "BregmanLoss has ConvexFunction"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
