"""Ensembles of vectors: what is refused, members far apart, and reductions against a dense grid over outcomes."""

import numpy as np
import pytest

from stakes import (
    ExponentialLinearWeight,
    Mahalanobis,
    NormalEnsemble,
    SquaredError,
    VectorNormalEnsemble,
    expected_reduction,
    integration_error,
)
from stakes.beliefs import MixtureGrid, SymmetricNodes
from stakes.testing import check_belief
from tests.brute import normal_grid

pytestmark = pytest.mark.filterwarnings("ignore::stakes.AccuracyWarning")  # rules of few nodes are tried on purpose

N, M, K = 3, 2, 4
MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])
WEIGHTS = {
    "none": lambda z: np.ones(z.shape[:-1]),
    "exponential": ExponentialLinearWeight([0.6, -0.8]),
    "sigmoid": lambda z: 1 / (1 + np.exp(-2 * z[..., 0])),
}


def ensemble(rng, size, d=2, **more):
    return VectorNormalEnsemble(
        rng.standard_normal((N, K, size)), 0.5, rng.standard_normal((M, K, d)), 0.3, rng.uniform(1, 2, K), **more
    )


def dense_reduction(matrix, weight, belief):
    """[N, M]: sum over a dense grid of y of E[w | y] p(y) (a_y - a)' A (a_y - a), moments on a dense grid of z."""
    u, mass = normal_grid(belief.context_mean.shape[2], 61)
    z = belief.context_mean[:, :, None] + belief.context_sd[:, :, None] * u  # [M, K, P, d]
    w = mass * weight(z)
    moments = np.concatenate([w.sum(-1)[..., None], (w[..., None] * z).sum(2)], axis=-1)  # [M, K, 1 + d]
    result = np.zeros((belief.n_candidates, belief.n_contexts))
    for n in range(belief.n_candidates):
        mean, sd = belief.candidate_mean[n], belief.candidate_sd[n]  # [K, L]
        axes = [np.arange(lo, hi, 0.1) for lo, hi in zip((mean - 8 * sd).min(0), (mean + 8 * sd).max(0), strict=True)]
        y = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 1, mean.shape[1])
        density = np.exp(-0.5 * (((y - mean) / sd) ** 2).sum(-1)) / (np.sqrt(2 * np.pi) * sd).prod(-1)
        cells = 0.1 ** mean.shape[1] * density * belief.member_weights @ moments  # [M, J, 1 + d]
        act = cells.sum(1, keepdims=True)
        step = cells[..., 1:] / cells[..., :1] - act[..., 1:] / act[..., :1]
        result[n] = (cells[..., 0] * ((step @ matrix) * step).sum(-1)).sum(1)
    return result


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize(
    ("size", "outer", "grid", "tolerance"),
    [(1, 128, 2**14, 1e-6), (2, 128, 2**14, 1e-6), (2, 128, 0, 0.01), (2, 1024, 0, 1e-4)],
)
def test_reductions_against_a_dense_grid(rng, name, size, outer, grid, tolerance):
    """Labels of two numbers to 1e-6 by a grid; by nodes of members to 1% with 128 of them, 1e-4 with 1024."""
    belief = ensemble(rng, size, rule=SymmetricNodes(outer, 1024, grid=grid))
    reductions = expected_reduction(Mahalanobis(MATRIX, None if name == "none" else WEIGHTS[name]), belief)
    wanted = dense_reduction(MATRIX, WEIGHTS[name], belief)
    np.testing.assert_allclose(reductions, wanted, rtol=tolerance, atol=tolerance * wanted.max())


def test_a_narrow_member_is_seen_beside_a_wide_one(rng):
    """By 128 nodes of each member it was off by a quarter."""
    sd = np.array([[[1.0, 0.5], [0.5, 1.5], [1.5, 1.0], [0.4, 0.4]]])
    belief = VectorNormalEnsemble(0.1 * rng.standard_normal((1, K, 2)), sd, rng.standard_normal((M, K, 2)), 0.3)
    wanted = dense_reduction(MATRIX, WEIGHTS["none"], belief)
    np.testing.assert_allclose(expected_reduction(Mahalanobis(MATRIX), belief), wanted, rtol=1e-6)


def test_a_candidate_that_no_grid_resolves_leaves_the_others_as_they_are(rng):
    mean, sd = rng.standard_normal((2, K, 2)), np.full((2, K, 2), 0.5)
    mean[1] *= 1e5  # members far apart
    both = VectorNormalEnsemble(mean, sd, rng.standard_normal((M, K, 2)), 0.3)
    alone = [both.take(slice(n, n + 1), slice(None)) for n in range(2)]
    assert alone[0].masses().shape[1] != alone[1].masses().shape[1] == K * 121
    np.testing.assert_allclose(both.masses().sum(1), [[0.25] * K] * 2, rtol=1e-12)
    each = np.concatenate([expected_reduction(Mahalanobis(MATRIX), one) for one in alone])
    np.testing.assert_allclose(expected_reduction(Mahalanobis(MATRIX), both), each, rtol=1e-9)


def test_one_number_is_the_scalar_ensemble(rng):
    belief = ensemble(rng, 1, 1)
    scalar = NormalEnsemble(
        belief.candidate_mean[..., 0], 0.5, belief.context_mean[..., 0], 0.3, belief.member_weights, MixtureGrid(6.0)
    )
    np.testing.assert_allclose(
        expected_reduction(Mahalanobis([[1.0]]), belief), expected_reduction(SquaredError(), scalar), rtol=1e-6
    )


@pytest.mark.parametrize("weight", [None, WEIGHTS["exponential"], WEIGHTS["sigmoid"]])
@pytest.mark.parametrize("size", [1, 3])
def test_laws(rng, weight, size):
    check_belief(ensemble(rng, size), Mahalanobis(MATRIX, weight))


def test_known_moments_of_members(rng):
    """E[w] = exp(b . m + |b sd|^2 / 2) and E_w[z] = m + b sd^2 under each member, for w = exp(b . z)."""
    belief, rates = ensemble(rng, 2), np.array([0.6, -0.8])
    loss = Mahalanobis(MATRIX, ExponentialLinearWeight(rates))
    reference = belief.reference(loss)
    moments = belief.member_moments(loss, reference)  # [M, K, 3]
    log_mean = belief.context_mean @ rates + 0.5 * (0.3**2 * rates**2).sum()
    np.testing.assert_allclose(np.log(moments[..., 0]) + reference.log_scale[:, None], log_mean, rtol=1e-12)
    tilted = belief.context_mean + 0.3**2 * rates - reference.point[:, None]
    np.testing.assert_allclose(moments[..., 1:] / moments[..., :1], tilted, atol=1e-12)


def test_members_far_apart_tell_which_is_right(rng):
    """No cell is 0 / 0, and the label is worth all that members disagree about."""
    belief = VectorNormalEnsemble(
        1e5 * rng.standard_normal((1, K, 2)), 1e-3, rng.standard_normal((M, K, 2)), 0.0, [1.0, 1.0, 2.0, 0.0]
    )
    masses = belief.masses()
    assert np.all(np.isfinite(masses))
    np.testing.assert_allclose(masses.sum(1), belief.member_weights[None], rtol=1e-12)
    np.testing.assert_allclose(belief.member_outcomes().sum(1), [[1, 1, 1, 0]], rtol=1e-12)
    centred = belief.context_mean - (belief.member_weights @ belief.context_mean)[:, None]
    spread = (belief.member_weights * (centred**2).sum(-1)).sum(1)
    np.testing.assert_allclose(expected_reduction(Mahalanobis(np.eye(2)), belief), spread[None], rtol=1e-9)


def test_members_that_agree_tell_nothing(rng):
    belief = VectorNormalEnsemble(np.zeros((2, K, 2)), 1.0, rng.standard_normal((M, K, 2)), 0.5)
    np.testing.assert_allclose(expected_reduction(Mahalanobis(np.eye(2)), belief), 0.0, atol=1e-25)


def test_convergence_is_reported(rng):
    loss = Mahalanobis(MATRIX, WEIGHTS["sigmoid"])
    belief = ensemble(rng, 2, rule=SymmetricNodes(128, grid=0))
    error = integration_error(loss, belief)
    assert 0 < error.max() < 0.02
    assert integration_error(loss, belief.refined().refined().refined()).max() < 0.2 * error.max()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"candidate_mean": np.zeros((N, K))}, ValueError, r"candidate_mean must have shape \[N, K, L\]"),
        ({"context_mean": np.zeros((M, K + 1, 2))}, ValueError, r"context_mean must have shape \[M, 4, d\]"),
        ({"context_mean": np.zeros((0, K, 2))}, ValueError, "needs at least one context and one number"),
        ({"candidate_mean": np.zeros((N, K, 0))}, ValueError, "needs at least one context and one number"),
        ({"candidate_sd": 0.0}, ValueError, "candidate_sd must be positive"),
        ({"candidate_sd": np.ones((N, 3, 2))}, ValueError, r"candidate_sd must be a number or broadcast"),
        ({"context_sd": -0.1}, ValueError, "context_sd must be at least 0"),
        ({"member_weights": np.ones(3)}, ValueError, r"member_weights must have shape \[4\]"),
        ({"rule": MixtureGrid()}, TypeError, "rule must be a SymmetricNodes"),
    ],
)
def test_bad_input_is_refused(change, error, message):
    good = {"candidate_mean": np.zeros((N, K, 2)), "candidate_sd": 1.0, "context_mean": np.zeros((M, K, 2))}
    with pytest.raises(error, match=message):
        VectorNormalEnsemble(**{**good, "context_sd": 1.0, **change})
