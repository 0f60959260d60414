"""Draws of hyperparameters: the density they are drawn from, and that they are drawn from it."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern

from stakes.models.process_hyperparameters import (
    CONSTANT,
    LogPosterior,
    ProcessDraws,
    chains_of,
    covariance_of,
    median_distance,
    most_probable_point,
    predicted,
    r_hat,
    solved_for,
)


def made(rng, count=15, columns=3):
    rows = rng.standard_normal((count, columns))
    return rows, np.sin(rows[:, 0]) + 0.3 * rng.standard_normal(count)


def kernel_of(draws, s):
    """The same covariance by scikit-learn."""
    line = ConstantKernel(draws.slope[s] / draws.lengths.shape[1]) * DotProduct(0.0)
    return ConstantKernel(draws.variance[s]) * Matern(draws.lengths[s], nu=2.5) + ConstantKernel(CONSTANT) + line


def test_covariances_are_those_of_scikit_learn(rng):
    rows, labels = made(rng)
    posterior = LogPosterior.of(rows, labels, 2.0)
    draws = posterior.draws(rng.standard_normal((4, posterior.size)))
    for s in range(4):
        np.testing.assert_allclose(
            covariance_of(draws, s, rows, rows[:5]), kernel_of(draws, s)(rows, rows[:5]), rtol=1e-6
        )


@pytest.mark.parametrize("columns", [1, 3, 70])
def test_the_log_density_is_likelihood_times_prior(rng, columns):
    rows, labels = made(rng, columns=columns)
    posterior = LogPosterior.of(rows, labels, 2.0)
    points = rng.standard_normal((5, posterior.size))
    draws, values, wanted = posterior.draws(points), [], []
    for s, u in enumerate(points):
        matrix = kernel_of(draws, s)(rows) + (draws.noise[s] + 1e-8) * np.eye(len(rows))
        wanted.append(multivariate_normal(cov=matrix).logpdf(labels) - 0.5 * u @ u)
        values.append(posterior(u)[0])
    np.testing.assert_allclose(np.diff(values), np.diff(wanted), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("columns", [1, 3, 70])
def test_the_gradient_is_that_of_the_value(rng, columns):
    posterior = LogPosterior.of(*made(rng, columns=columns), 2.0)
    u, step = rng.standard_normal(posterior.size), 1e-6
    differences = [
        (posterior(u + step * each)[0] - posterior(u - step * each)[0]) / (2 * step) for each in np.eye(posterior.size)
    ]
    np.testing.assert_allclose(posterior(u)[1], differences, rtol=1e-4, atol=1e-4)


def test_of_many_columns_those_that_go_with_the_labels_have_their_own_lengths(rng):
    rows = rng.standard_normal((50, 90))
    posterior = LogPosterior.of(rows, rows[:, 87] + 0.1 * rng.standard_normal(50), 2.0)
    assert len(posterior.own) == 60
    assert 87 in posterior.own
    lengths = posterior.draws(rng.standard_normal((1, posterior.size))).lengths[0]
    rest = np.setdiff1d(np.arange(90), posterior.own)
    assert len(set(lengths[rest])) == 1
    assert len(set(lengths[posterior.own])) == 60


def test_the_most_probable_point_is_one(rng):
    posterior = LogPosterior.of(*made(rng), 2.0)
    best = most_probable_point(posterior)
    assert np.abs(posterior(best)[1]).max() < 0.05
    assert all(posterior(best + 0.3 * each)[0] < posterior(best)[0] for each in rng.standard_normal((20, len(best))))


def test_without_labels_to_speak_of_draws_are_those_of_the_prior():
    """One label tells next to nothing: means, sds and correlations of standard normals come back."""
    posterior = LogPosterior.of(np.zeros((1, 2)), np.zeros(1), 1.0)
    chains = chains_of(posterior, None, 50, np.random.default_rng(1))(2000)
    free = chains.reshape(-1, posterior.size)[:, [0, 1, 5, 6]]  # what one row says nothing of
    np.testing.assert_allclose(free.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(np.cov(free.T), np.eye(4), atol=0.15)


def test_draws_have_the_moments_of_the_posterior(rng):
    """Against importance sampling from the prior, which needs no chain."""
    rows, labels = made(rng, count=6, columns=1)
    posterior = LogPosterior.of(rows, labels, 1.0)
    chains = chains_of(posterior, None, 50, np.random.default_rng(2))(1500)
    drawn = chains.reshape(-1, posterior.size)
    prior = np.random.default_rng(3).standard_normal((40_000, posterior.size))
    logs = np.asarray([posterior(u)[0] + 0.5 * u @ u for u in prior])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    assert 1.0 / np.sum(weights**2) > 1000  # else this test shows nothing
    mean = weights @ prior
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.12)
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(weights @ (prior - mean) ** 2), atol=0.12)


def test_predictions_are_those_of_conditioning(rng):
    rows, labels = made(rng)
    draws = ProcessDraws(np.full((1, 3), 1.5), np.array([0.7]), np.array([0.2]), np.array([0.3]))
    others = rng.standard_normal((4, 3))
    mean, variance = predicted(draws, 0, solved_for(draws, 0, rows, labels), rows, others)
    kernel = kernel_of(draws, 0)
    inverse = np.linalg.inv(kernel(rows) + 0.2 * np.eye(len(rows)))
    np.testing.assert_allclose(mean, kernel(others, rows) @ inverse @ labels, rtol=1e-6)
    left = np.diag(kernel(others) - kernel(others, rows) @ inverse @ kernel(rows, others)) + 0.2
    np.testing.assert_allclose(variance, left, rtol=1e-6)


def test_r_hat_tells_chains_that_agree_from_those_that_do_not(rng):
    values, even = rng.standard_normal((4, 500, 2)), np.full((4, 500), 1 / 2000)
    assert np.all(r_hat(values, even) < 1.02)
    values[0, :, 1] += 3.0
    found = r_hat(values, even)
    assert found[0] < 1.02
    assert found[1] > 1.3


def test_median_distances():
    rows = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    assert median_distance(rows) == 5.0
    assert median_distance(rows[:1]) == 2.0  # sqrt(2 p)
    assert median_distance(np.zeros((4, 2))) == 2.0
