"""Bayes answers, realised losses and their parts for vector targets."""

import numpy as np
import pytest

from stakes import ExponentialLinearWeight, Mahalanobis, VectorGaussianBelief, VectorNormalEnsemble
from stakes.evaluation import bayes_prediction, bias_variance, calibration, decompose, realised_loss
from tests.brute import normal_grid, stacked_vectors

MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])
WEIGHT = ExponentialLinearWeight([0.7, -0.3])
PLAIN, WEIGHTED = Mahalanobis(MATRIX), Mahalanobis(MATRIX, WEIGHT)


def quadratic(step):
    return ((step @ MATRIX) * step).sum(-1)


def test_the_bayes_answer_is_the_weighted_mean(xp, host, rng):
    given = stacked_vectors(rng, 1, 3, 2, 2)
    belief = VectorGaussianBelief(**{name: xp.asarray(array) for name, array in given.items()})
    np.testing.assert_allclose(host(bayes_prediction(PLAIN, belief)), given["mean"], rtol=1e-13)
    tilted = given["mean"] + given["variance"] @ WEIGHT.rates
    np.testing.assert_allclose(host(bayes_prediction(WEIGHTED, belief)), tilted, rtol=1e-10)


def test_the_bayes_answer_of_another_weight_and_of_an_ensemble(rng):
    belief = VectorGaussianBelief(**stacked_vectors(rng, 1, 1, 2, 2))
    u, mass = normal_grid(2, 61)
    z = belief.mean[0] + u @ np.linalg.cholesky(belief.variance[0]).T
    weights = mass / (1 + np.exp(-z[:, 1]))
    loss = Mahalanobis(MATRIX, lambda z: 1 / (1 + np.exp(-z[..., 1])))
    np.testing.assert_allclose(bayes_prediction(loss, belief)[0], weights @ z / weights.sum(), atol=1e-5)
    members = VectorNormalEnsemble(np.zeros((1, 4, 2)), 1.0, rng.standard_normal((3, 4, 2)), 0.5)
    np.testing.assert_allclose(bayes_prediction(PLAIN, members), members.context_mean.mean(1), rtol=1e-12)


def test_realised_losses(xp, host, rng):
    targets, answers = rng.standard_normal((2, 7, 2))
    each, weights = quadratic(targets - answers), np.exp(targets @ WEIGHT.rates)
    given = xp.asarray(answers), xp.asarray(targets)
    assert realised_loss(PLAIN, *given).mean == pytest.approx(each.mean(), rel=1e-13)
    np.testing.assert_allclose(host(realised_loss(WEIGHTED, *given).each), weights * each, rtol=1e-12)
    shared = realised_loss(WEIGHTED, *given, normalise=True)
    assert shared.mean == pytest.approx((weights * each).sum() / weights.sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("answers", "targets", "message"),
    [
        (np.zeros((3, 2)), np.zeros(3), r"targets must have shape \[n, 2\]; got \[3\]"),
        (np.zeros((3, 3)), np.zeros((3, 3)), r"targets must have shape \[n, 2\]; got \[3, 3\]"),
        (np.zeros(3), np.zeros((3, 2)), r"predictions must have shape \[3, 2\]; got \[3\]"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "at least one row"),
    ],
)
def test_rows_of_other_shapes_are_refused(answers, targets, message):
    with pytest.raises(ValueError, match=message):
        realised_loss(PLAIN, answers, targets)


@pytest.mark.parametrize("normalise", [False, True])
def test_decomposition(xp, host, rng, normalise):
    targets, answers = rng.standard_normal((3, 9, 2)), rng.standard_normal((3, 2))
    weights = np.exp(targets @ WEIGHT.rates)
    unit = weights.mean(1) if normalise else 1.0
    parts = decompose(WEIGHTED, xp.asarray(answers), xp.asarray(targets), normalise)
    best = (weights[..., None] * targets).sum(1) / weights.sum(1)[:, None]
    np.testing.assert_allclose(
        host(parts.total), (weights * quadratic(targets - answers[:, None])).mean(1) / unit, rtol=1e-10
    )
    np.testing.assert_allclose(
        host(parts.dispersion), (weights * quadratic(targets - best[:, None])).mean(1) / unit, rtol=1e-10
    )
    np.testing.assert_allclose(
        host(parts.estimation_error), weights.mean(1) * quadratic(best - answers) / unit, rtol=1e-9
    )
    np.testing.assert_allclose(host(parts.total), host(parts.estimation_error + parts.dispersion), rtol=1e-12)


def test_bias_and_variance(rng):
    targets, answers = rng.standard_normal((9, 2)), rng.standard_normal((5, 2))
    parts = bias_variance(PLAIN, answers, targets)
    best, central = targets.mean(0), answers.mean(0)
    assert parts.bias == pytest.approx(quadratic(best - central), rel=1e-12)
    assert parts.variance == pytest.approx(quadratic(answers - central).mean(), rel=1e-12)
    assert parts.bayes_error == pytest.approx(quadratic(targets - best).mean(), rel=1e-12)
    assert parts.total == pytest.approx(parts.bias + parts.variance + parts.bayes_error, rel=1e-12)


@pytest.mark.parametrize(("answers", "targets"), [((3, 2), (9, 2)), ((2,), (2,)), ((2,), (0, 2)), ((4, 2), (3, 9, 2))])
def test_draws_of_other_shapes_are_refused(answers, targets):
    with pytest.raises(ValueError, match=r"predictions \[..., d\] and targets \[..., S, d\] must agree"):
        decompose(PLAIN, np.zeros(answers), np.zeros(targets))


def test_calibration_is_of_numbers_and_classes(rng):
    with pytest.raises(TypeError, match=r"calibration knows .* got VectorGaussianBelief"):
        calibration(VectorGaussianBelief(**stacked_vectors(rng, 1, 2, 2, 2)), np.zeros((2, 2)))
