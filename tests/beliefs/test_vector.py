"""Gaussian beliefs about vectors: what is refused, singular labels, blocks, and moments that are known."""

import numpy as np
import pytest

from stakes import ExponentialLinearWeight, Mahalanobis, VectorGaussianBelief, Weight, expected_regret
from stakes.beliefs import SymmetricNodes
from stakes.losses.domains import Vectors
from stakes.testing import check_belief
from tests.brute import normal_grid, stacked_vectors

pytestmark = pytest.mark.filterwarnings("ignore::stakes.AccuracyWarning")  # rules of few nodes are tried on purpose

EYE, SMALL = np.eye(2), SymmetricNodes(64, 64)
GOOD = {
    "mean": np.zeros((2, 2)),
    "variance": np.stack([EYE, 2 * EYE]),
    "candidate_variance": np.stack([EYE] * 3),
    "covariance": np.zeros((3, 2, 2, 2)),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": [0.0, 1.0]}, r"mean must have shape \[M, d\]; got \[2\]"),
        ({"mean": np.zeros((0, 2))}, "at least one context"),
        ({"mean": [[0.0, np.nan]] * 2}, "mean must be finite; 2 of 4 values"),
        ({"variance": EYE}, r"variance must have shape \[2, 2, 2\]; got \[2, 2\]"),
        ({"variance": np.stack([EYE, -EYE])}, "variance must have no negative variance"),
        ({"variance": np.stack([EYE, EYE + np.eye(2, k=1)])}, "variance must hold symmetric"),
        ({"variance": np.stack([EYE, 2 - EYE])}, "variance must hold covariances, positive semi-definite"),
        ({"candidate_variance": np.ones((3, 2))}, r"candidate_variance must have shape \[N, L, L\]"),
        ({"candidate_variance": np.ones((3, 2, 1))}, r"candidate_variance must have shape \[3, 2, 2\]"),
        ({"candidate_variance": np.stack([2 - EYE] * 3)}, "candidate_variance must hold covariances"),
        ({"covariance": np.zeros((2, 3, 2, 2))}, r"covariance must have shape \[3, 2, 2, 2\]; got \[2, 3, 2, 2\]"),
        ({"covariance": np.zeros((3, 2, 2, 2)) + 0.8 * EYE[0] * 2}, "explain more of a target.*of 6 pairs.*the noise"),
        ({"covariance": np.zeros((3, 2, 2, 2)) + 1.1 * EYE}, "explain more of a target than there is.*3 of 6 pairs"),
        ({"candidate_covariance": np.eye(6)}, r"candidate_covariance must have shape \[3, 2, 3, 2\]"),
        ({"candidate_covariance": 2 * np.eye(6).reshape(3, 2, 3, 2)}, "must equal candidate_variance"),
        ({"candidate_covariance": (np.eye(6) + 0.1 * np.eye(6, k=2)).reshape(3, 2, 3, 2)}, "must be symmetric"),
        ({"noise_variance": np.ones((3, 2))}, r"noise_variance must have shape \[3, 2, 2\]"),
        ({"noise_variance": np.stack([-EYE] * 3)}, "noise_variance must have no negative variance"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        VectorGaussianBelief(**{**GOOD, **change})


def test_a_rule_of_another_kind_is_refused():
    with pytest.raises(TypeError, match=r"rule must be a SymmetricNodes"):
        VectorGaussianBelief(**GOOD, rule=64)


def test_each_covariance_may_be_possible_and_all_together_not():
    """Every number of the label explains 60% of the one target: each may be, both together not."""
    pair = {"mean": [[0.0]], "variance": [[[1.0]]], "candidate_variance": [EYE]}
    VectorGaussianBelief(**pair, covariance=[[[[np.sqrt(0.6)], [0.0]]]])
    with pytest.raises(ValueError, match="explain more of a target than there is"):
        VectorGaussianBelief(**pair, covariance=[[[[np.sqrt(0.6)], [np.sqrt(0.6)]]]])
    VectorGaussianBelief(**pair, covariance=[[[[np.sqrt(0.5)], [np.sqrt(0.5)]]]])  # tells all, to rounding


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_label_that_tells_all_is_accepted(rng, dtype):
    mixing = rng.standard_normal((1, 3, 3)).astype(dtype)
    variance = mixing @ np.swapaxes(mixing, 1, 2)
    belief = VectorGaussianBelief(np.zeros((1, 3), dtype), variance, variance, variance[None])
    explained = belief.factor[0, 0] @ belief.factor[0, 0].T
    np.testing.assert_allclose(explained, variance[0], rtol=1e-3 if dtype is np.float32 else 1e-9)


def duplicated(given, order):
    """The same belief whose labels hold numbers `order` of those they held."""
    return {
        **given,
        "candidate_variance": given["candidate_variance"][:, order][:, :, order],
        "covariance": given["covariance"][:, :, order],
        "candidate_covariance": given["candidate_covariance"][:, order][:, :, :, order],
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weight", [None, ExponentialLinearWeight([0.5, -0.2])])
def test_a_number_given_twice_tells_nothing_more(xp, host, rng, weight, dtype):
    given = stacked_vectors(rng, 3, 2, 2, 2)
    loss = Mahalanobis([[2.0, 1.0], [1.0, 3.0]], weight)
    once, twice = (
        VectorGaussianBelief(**{name: xp.asarray(array.astype(dtype)) for name, array in each.items()}, rule=SMALL)
        for each in (given, duplicated(given, [0, 1, 0]))
    )
    tolerance = 1e-9 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(host(expected_regret(loss, twice)), host(expected_regret(loss, once)), rtol=tolerance)


def test_a_singular_label_that_covaries_where_it_does_not_vary_is_refused(rng):
    given = duplicated(stacked_vectors(rng, 3, 2, 2, 2), [0, 1, 0])
    given["covariance"] = given["covariance"].copy()
    given["covariance"][1, 0, 2] += 1e-4
    with pytest.raises(ValueError, match=r"singular for 1 of 3 candidates along a direction that covaries"):
        VectorGaussianBelief(**given)
    known = {**GOOD, "candidate_variance": np.stack([np.diag([1.0, 0.0])] * 3)}
    VectorGaussianBelief(**known)
    with pytest.raises(ValueError, match=r"singular for 3 of 3 candidates"):
        VectorGaussianBelief(**{**known, "covariance": np.zeros((3, 2, 2, 2)) + np.array([[0.0, 0.0], [0.1, 0.0]])})


def test_a_target_that_is_known_must_not_covary():
    known = {**GOOD, "variance": np.stack([np.diag([1.0, 0.0]), EYE])}
    check_belief(VectorGaussianBelief(**known))
    with pytest.raises(ValueError, match="explain more of a target than there is"):
        VectorGaussianBelief(**{**known, "covariance": np.zeros((3, 2, 2, 2)) + np.array([[0.0, 0.1], [0.0, 0.0]])})


def test_units_do_not_matter(rng):
    """Outputs in units 1e8 apart: what each label explains changes by the units alone."""
    given, units = stacked_vectors(rng, 2, 2, 2, 2), np.array([1e-4, 1e4])
    across = units[:, None] * units
    scaled = VectorGaussianBelief(
        given["mean"] * units,
        given["variance"] * across,
        given["candidate_variance"] * across,
        given["covariance"] * across,
    )
    np.testing.assert_allclose(
        scaled.factor @ np.swapaxes(scaled.factor, 2, 3) / across,
        VectorGaussianBelief(**given).factor @ np.swapaxes(VectorGaussianBelief(**given).factor, 2, 3),
        rtol=1e-9,
    )


def test_blocks_carry_all_that_belongs_to_their_candidates(rng):
    given = stacked_vectors(rng, 5, 3, 2, 2)
    rows, noise = given["candidate_covariance"], np.stack([0.1 * k * EYE for k in range(5)])
    block = VectorGaussianBelief(**given, noise_variance=noise).take(slice(1, 4), slice(1, 2))
    np.testing.assert_array_equal(block.candidate_covariance, rows[1:4, :, 1:4])
    np.testing.assert_array_equal(block.noise_variance, noise[1:4])
    np.testing.assert_array_equal(block.covariance, given["covariance"][1:4, 1:2])
    lazy = VectorGaussianBelief(**{**given, "candidate_covariance": lambda i: rows[i]})
    block = lazy.take(slice(1, 4), slice(None)).take(slice(1, 3), slice(None))
    np.testing.assert_array_equal(block.candidate_covariance(0), rows[2, :, 2:4])
    assert block.domain == Vectors(2)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_moments_of_known_statistics(rng, shift):
    """About the reference: E[w], E[w (z - reference)] for w = exp(b . z) and for none."""
    given = stacked_vectors(rng, 2, 3, 2, 3)
    belief = VectorGaussianBelief(**{**given, "mean": given["mean"] + shift})
    plain, rates = Mahalanobis(np.eye(3)), np.array([0.7, -0.3, 1.1])
    reference = belief.reference(plain)
    np.testing.assert_allclose(reference.point, belief.mean, rtol=1e-15)
    np.testing.assert_allclose(belief.moments(plain, reference), [[1, 0, 0, 0]] * 3, atol=1e-9)
    loss = Mahalanobis(np.eye(3), ExponentialLinearWeight(rates))
    tilted = belief.reference(loss)
    np.testing.assert_allclose(tilted.point - belief.mean, belief.variance @ rates, rtol=1e-7)
    log_mean_weight = belief.mean @ rates + np.einsum("i,mij,j->m", rates, belief.variance, rates) / 2
    moments = belief.moments(loss, tilted)
    np.testing.assert_allclose(np.log(moments[:, 0]) + tilted.log_scale, log_mean_weight, rtol=1e-12)
    np.testing.assert_allclose(moments[:, 1:], 0.0, atol=1e-8)
    split = belief.split_moments(loss, tilted).sum(2)
    np.testing.assert_allclose(split, moments + np.zeros_like(split), rtol=1e-8, atol=1e-8)


def test_moments_of_a_smooth_weight_against_a_dense_grid(rng):
    belief = VectorGaussianBelief(**stacked_vectors(rng, 1, 2, 2, 2))
    weight = Weight(lambda z: 1 / (1 + np.exp(-2 * z[..., 0] + z[..., 1])))
    loss = Mahalanobis(EYE, weight)
    reference = belief.reference(loss)
    u, mass = normal_grid(2, 61)
    for m in range(2):
        z = belief.mean[m] + u @ np.linalg.cholesky(belief.variance[m]).T
        wanted = (mass * weight.function(z)) @ np.c_[np.ones(len(z)), z - reference.point[m]]
        moments = belief.moments(loss, reference)[m] * np.exp(reference.log_scale[m])
        np.testing.assert_allclose(moments, wanted, rtol=1e-4, atol=1e-5)


def test_a_weight_that_vanishes_at_the_mean_is_found_elsewhere(rng):
    belief = VectorGaussianBelief(**{**stacked_vectors(rng, 2, 2, 2, 2), "mean": np.zeros((2, 2))})
    loss = Mahalanobis(EYE, lambda z: np.clip(z[..., 0], 0.0, None) ** 4)
    point = belief.reference(loss).point
    sd = np.sqrt(belief.variance[:, 0, 0])
    np.testing.assert_allclose(point[:, 0], 2 * sd, rtol=0.05)  # z^4 exp(-z^2 / 2v) is largest at 2 sd
    check_belief(belief, loss, rtol=1e-3)


def test_a_weight_too_steep_to_integrate_is_refused(rng):
    belief = VectorGaussianBelief(**stacked_vectors(rng, 2, 2, 2, 2))
    with pytest.raises(FloatingPointError, match=r"so steep.*standard deviations from the mean.*Mahalanobis"):
        belief.reference(Mahalanobis(EYE, ExponentialLinearWeight([1000.0, 0.0])))
    with pytest.raises(FloatingPointError, match="infinite"):
        belief.reference(Mahalanobis(EYE, Weight(np.exp, lambda z: 1e3 * z[..., 0] + 9.0 * z[..., 0] ** 2)))


@pytest.mark.parametrize("weight", [None, ExponentialLinearWeight([1.0, -2.0]), lambda z: 1 + np.tanh(z[..., 0])])
def test_laws(rng, weight):
    """On the grid of two outputs split moments sum to the moments within 1e-5, and to rounding where w = exp(b . z)."""
    exact = weight is None or isinstance(weight, ExponentialLinearWeight)
    belief = VectorGaussianBelief(**stacked_vectors(rng, 3, 2, 1, 2))
    check_belief(belief, Mahalanobis([[2.0, 1.0], [1.0, 3.0]], weight), rtol=1e-9 if exact else 1e-5)


def test_more_outputs_and_no_candidates(rng):
    belief = VectorGaussianBelief(**stacked_vectors(rng, 2, 2, 4, 5), rule=SymmetricNodes(32, 32))
    check_belief(belief)
    none = belief.take(slice(0, 0), slice(None))
    assert expected_regret(Mahalanobis(np.eye(5)), none).shape == (0, 2)


def test_no_input_is_changed(rng):
    given = stacked_vectors(rng, 2, 2, 2, 2)
    copies = {name: array.copy() for name, array in given.items()}
    check_belief(VectorGaussianBelief(**given))
    for name, array in given.items():
        np.testing.assert_array_equal(array, copies[name])
