"""Gaussian beliefs: what is refused, the edges of correlation, blocks, and moments that are known."""

import numpy as np
import pytest

from stakes import ExponentialWeight, GaussianBelief, InterpolatedWeight, Linex, SquaredError, Weight
from stakes.testing import check_belief
from tests.brute import gaussian_pair

GOOD = {
    "mean": [0.0, 1.0],
    "variance": [1.0, 2.0],
    "candidate_variance": [1.0, 1.0, 1.0],
    "covariance": np.zeros((3, 2)),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": [[0.0, 1.0]]}, r"mean must have shape \[M\]; got \[1, 2\]"),
        ({"mean": []}, "at least one context"),
        ({"mean": [0.0, np.nan]}, "mean must be finite; 1 of 2 values"),
        ({"variance": [1.0]}, r"variance must have shape \[2\]; got \[1\]"),
        ({"variance": [1.0, -1e-9]}, "variance must be at least 0"),
        ({"variance": [1.0, np.inf]}, "variance must be finite"),
        ({"candidate_variance": [1.0, -1.0, 1.0]}, "candidate_variance must be at least 0"),
        ({"covariance": np.zeros((2, 3))}, r"covariance must have shape \[3, 2\]; got \[2, 3\]"),
        ({"covariance": np.full((3, 2), 1.1)}, "must not exceed.*3 of 6 pairs.*includes the noise"),
        ({"candidate_variance": [0.0, 1.0, 1.0], "covariance": [[0.1, 0], [0, 0], [0, 0]]}, "must not exceed.*1 of 6"),
        ({"candidate_covariance": np.eye(2)}, r"candidate_covariance must have shape \[3, 3\]"),
        ({"candidate_covariance": 2 * np.eye(3)}, "diagonal of candidate_covariance must equal candidate_variance"),
        ({"candidate_covariance": np.eye(3) + np.eye(3, k=1)}, "candidate_covariance must be symmetric"),
        ({"noise_variance": [0.1, 0.1]}, r"noise_variance must have shape \[3\]"),
        ({"noise_variance": -0.1}, "noise_variance must be at least 0"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        GaussianBelief(**{**GOOD, **change})


@pytest.mark.parametrize("change", [{"mean": ["a", "b"]}, {"mean": None}, {"variance": [1.0 + 1j, 1.0]}])
def test_what_are_no_numbers_is_refused(change):
    with pytest.raises(TypeError, match=r"must (be|hold)"):
        GaussianBelief(**{**GOOD, **change})


def test_rounding_above_full_correlation_is_forgiven_and_more_is_not():
    belief = GaussianBelief([0.0], [1.0], [1.0], [[np.sqrt(1 + 5e-10)]])
    assert belief.rho[0, 0] == 1.0
    with pytest.raises(ValueError, match="must not exceed"):
        GaussianBelief([0.0], [1.0], [1.0], [[np.sqrt(1 + 5e-9)]])
    single = GaussianBelief(np.float32([0.3]), np.float32([0.7]), np.float32([0.9]), np.float32([[np.sqrt(0.63)]]))
    assert single.rho[0, 0] == pytest.approx(1.0, abs=1e-6)


def test_rho_where_nothing_varies_and_where_squares_would_leave_the_range():
    np.testing.assert_array_equal(GaussianBelief([0.0], [0.0], [0.0, 1.0], [[0.0], [0.0]]).rho, 0.0)
    for unit in (1e-160, 1e160):
        np.testing.assert_allclose(GaussianBelief([0.0], [unit], [unit], [[0.5 * unit]]).rho, 0.25, rtol=1e-12)


def test_blocks_carry_all_that_belongs_to_their_candidates(rng):
    mixing = rng.standard_normal((7, 4))
    rows = mixing @ mixing.T
    belief = GaussianBelief(
        np.zeros(2), np.diag(rows)[5:], np.diag(rows)[:5], rows[:5, 5:], rows[:5, :5], np.arange(5) / 10
    )
    block = belief.take(slice(1, 4), slice(1, 2))
    np.testing.assert_array_equal(block.candidate_covariance, rows[1:4, 1:4])
    np.testing.assert_array_equal(block.noise_variance, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(block.covariance, rows[1:4, 6:7])
    lazy = GaussianBelief(
        np.zeros(2), np.diag(rows)[5:], np.diag(rows)[:5], rows[:5, 5:], lambda i: rows[i, :5], noise_variance=0.1
    )
    block = lazy.take(slice(1, 4), slice(None)).take(slice(1, 3), slice(None))
    np.testing.assert_array_equal(block.candidate_covariance(0), rows[2, 2:4])
    assert block.noise_variance == 0.1


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_moments_of_known_statistics(shift):
    """About the reference: E[w], E[w (z - reference)] for w = exp(a z) and for none."""
    belief = gaussian_pair([0.4 + shift, -1.0 + shift], [2.0, 0.5], [0.3])
    plain = belief.reference(SquaredError())
    np.testing.assert_allclose(plain.point, belief.mean, rtol=1e-15)
    np.testing.assert_allclose(belief.moments(SquaredError(), plain), [[1, 0], [1, 0]], atol=1e-9)
    loss = SquaredError(ExponentialWeight(0.7))
    tilted = belief.reference(loss)
    np.testing.assert_allclose(tilted.point - belief.mean, 0.7 * belief.variance, rtol=1e-8)
    log_mean_weight = 0.7 * belief.mean + 0.245 * belief.variance
    moments = belief.moments(loss, tilted)
    np.testing.assert_allclose(np.log(moments[:, 0]) + tilted.log_scale, log_mean_weight, rtol=1e-12)
    np.testing.assert_allclose(moments[:, 1], 0.0, atol=1e-8)


@pytest.mark.parametrize(
    "loss",
    [
        SquaredError(),
        SquaredError(ExponentialWeight(2.0)),
        Linex(1.5),
        SquaredError(InterpolatedWeight([-1, 0, 2], [0.0, 1.0, 3.0])),
        SquaredError(Weight(lambda z: np.cosh(2 * z))),
    ],
)
def test_laws(rng, loss):
    mixing = rng.standard_normal((9, 4))
    covariance = mixing @ mixing.T / 4
    belief = GaussianBelief(
        rng.standard_normal(4), np.diag(covariance)[5:], np.diag(covariance)[:5] + 0.1, covariance[:5, 5:]
    )
    check_belief(belief, loss)


def test_no_input_is_changed(rng):
    given = [rng.standard_normal(3), rng.uniform(1, 2, 3), rng.uniform(1, 2, 4), 0.1 * rng.standard_normal((4, 3))]
    copies = [array.copy() for array in given]
    check_belief(GaussianBelief(*given))
    for array, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
