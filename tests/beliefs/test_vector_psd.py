"""Roots, whitening and determinants of covariances, singular ones among them, whatever their units."""

import numpy as np
import pytest

from stakes.beliefs.vector import (
    check_psd,
    correlation_eigh,
    log_determinant,
    matrix_root,
    singular_threshold,
    standard_deviations,
    whitener,
)

UNITS = np.array([1e-8, 1.0, 1e9])


def covariance(rng, rank=3):
    mixing = rng.standard_normal((4, 3, rank))
    return UNITS[:, None] * (mixing @ np.swapaxes(mixing, 1, 2)) * UNITS


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_root_squares_to_the_matrix(xp, host, rng, rank):
    matrix = covariance(rng, rank)
    spread = host(matrix_root(xp.asarray(matrix)))
    np.testing.assert_allclose(
        spread @ np.swapaxes(spread, 1, 2) / UNITS[:, None] / UNITS, matrix / UNITS[:, None] / UNITS, atol=1e-13
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_whitening_gives_unit_variance_in_as_many_directions_as_vary(xp, host, rng, rank):
    matrix = xp.asarray(covariance(rng, rank))
    white = host(whitener(matrix, singular_threshold(matrix)))
    variances = np.swapaxes(white, 1, 2) @ host(matrix) @ white
    np.testing.assert_allclose(variances, np.diag([0.0] * (3 - rank) + [1.0] * rank) + np.zeros((4, 3, 3)), atol=1e-9)


def test_a_coordinate_without_variance_is_left_out(xp, host):
    matrix = xp.asarray([[0.0, 0.0], [0.0, 4.0]])
    np.testing.assert_allclose(np.abs(host(whitener(matrix, 1e-12))), [[0.0, 0.0], [0.0, 0.5]])
    np.testing.assert_allclose(host(matrix_root(matrix)), [[0.0, 0.0], [0.0, 2.0]])
    assert host(log_determinant(matrix)) == -np.inf


def test_determinants(xp, host, rng):
    matrix = covariance(rng)
    wanted = np.linalg.slogdet(matrix / UNITS[:, None] / UNITS)[1] + 2 * np.log(UNITS).sum()
    np.testing.assert_allclose(host(log_determinant(xp.asarray(matrix))), wanted, rtol=1e-8)
    assert np.all(host(log_determinant(xp.asarray(covariance(rng, 2)))) == -np.inf)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.0], [0.0, -1.0]], "V must have no negative variance"),
        ([[1.0, 0.5], [0.0, 1.0]], "V must hold symmetric matrices"),
        ([[1.0, 2.0], [2.0, 1.0]], "V must hold covariances, positive semi-definite"),
        ([[0.0, 0.1], [0.1, 1.0]], "V must hold covariances, positive semi-definite"),
        ([[1.0, -0.9, -0.9], [-0.9, 1.0, -0.9], [-0.9, -0.9, 1.0]], "negative eigenvalue"),
    ],
)
def test_what_is_no_covariance_is_refused(xp, matrix, message):
    with pytest.raises(ValueError, match=message):
        check_psd("V", xp.asarray([matrix]))


def test_rounding_is_forgiven(xp, host):
    thin = np.outer([1.0, 1 / 3, 1 / 7], [1.0, 1 / 3, 1 / 7])
    for dtype in (np.float64, np.float32):
        given = thin.astype(dtype)
        given[0, 1] *= 1 + 2e-9
        checked = host(check_psd("V", xp.asarray(given)))
        np.testing.assert_array_equal(checked, checked.T)
    values, _ = correlation_eigh(xp.asarray(thin), standard_deviations(xp.asarray(thin)))
    np.testing.assert_allclose(host(values), [0, 0, 3], atol=1e-14)
