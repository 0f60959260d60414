"""Curves as Chebyshev series: nodes that are kept, coefficients that are left out, and looking up, compiled or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.chebyshev import chebval

from stakes import GaussianBelief, SquaredError, Weight, score
from stakes._utils.compute import has_jit
from stakes.acquisition import curves
from stakes.acquisition.curves import Curves, PanelCurves, clenshaw, interpolated, smallest_sd
from tests.brute import gaussian_pair

needs_jit = pytest.mark.skipif(not has_jit(), reason="numba is not installed")


def random_belief(rng, n_candidates, n_contexts, dtype=np.float64):
    mixing = rng.standard_normal((n_candidates + n_contexts, 4))
    covariance = mixing @ mixing.T
    variance = np.diag(covariance).copy()
    cross = covariance[:n_candidates, n_candidates:]
    if n_candidates > 1:
        cross[0], variance[0] = 0.0, 0.0  # a label that is known
    if n_contexts > 1:
        cross[:, 1], variance[n_candidates + 1] = 0.0, 0.0  # a target that is known
    mean = rng.standard_normal(n_contexts)
    parts = mean, variance[n_candidates:], variance[:n_candidates], cross
    return GaussianBelief(*(each.astype(dtype) for each in parts))


def direct(coefficients, rho, low):
    """By NumPy's own evaluation, a context at a time."""
    x = 2.0 * (np.sqrt(1.0 - rho) - low) / (1.0 - low) - 1.0
    return rho * np.stack([chebval(x[:, m], coefficients[:, m]) for m in range(rho.shape[1])], axis=1)


@pytest.mark.parametrize("jit", [pytest.param("1", marks=needs_jit), "0"])
@given(
    seed=st.integers(0, 1000),
    count=st.integers(2, 9),
    sizes=st.tuples(st.integers(1, 20), st.integers(1, 90)),
    low=st.sampled_from([0.0, 0.3]),
)
def test_looking_up_is_evaluating_the_series(jit, seed, count, sizes, low):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAKES_JIT", jit)
        patch.setattr(curves, "_PAIRS", 64)
        rng = np.random.default_rng(seed)
        belief, coefficients = random_belief(rng, *sizes), rng.standard_normal((count, sizes[1]))
        found, smallest = Curves(coefficients, low).reductions(belief)
    np.testing.assert_allclose(found, direct(coefficients, belief.rho, low), rtol=1e-10, atol=1e-10)
    assert smallest == pytest.approx(np.sqrt(1.0 - belief.rho.max()), abs=1e-7)
    assert smallest_sd(belief) == pytest.approx(smallest, abs=1e-7)


@needs_jit
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_are_the_same_with_and_without_compiled_loops(dtype, rng, monkeypatch):
    loss, belief = SquaredError(Weight(lambda z: 1 / (1 + np.exp(-2 * z)))), random_belief(rng, 60, 9, dtype)
    compiled = score(loss, belief)
    monkeypatch.setenv("STAKES_JIT", "0")
    plain = score(loss, belief)
    assert compiled.dtype == plain.dtype == dtype
    np.testing.assert_allclose(compiled, plain, rtol=1e-12 if dtype is np.float64 else 2e-6)


def test_series_at_points_in_every_array_library(xp, host, rng):
    coefficients, x = rng.standard_normal((7, 3)), rng.uniform(-1, 1, (4, 3))
    wanted = np.stack([chebval(x[:, m], coefficients[:, m]) for m in range(3)], axis=1)
    np.testing.assert_allclose(host(clenshaw(xp.asarray(coefficients), xp.asarray(x))), wanted, atol=1e-13)


@pytest.mark.parametrize(("slope", "most"), [(0.2, 9), (2.0, 27)])
def test_nodes_are_added_until_it_is_enough_and_none_is_computed_twice(slope, most):
    seen = []

    def values(rho):
        seen.extend(rho.tolist())
        sd = np.sqrt(1.0 - rho)
        return np.stack([1.0 / (1.0 + (slope * (sd - 0.5)) ** 2), 2.0 + sd], axis=1)

    found, error = interpolated(values, 1e-6, 0.0)
    assert len(seen) == len(set(np.round(seen, 12))) == most
    assert found.coefficients.shape[0] <= most
    rho = np.linspace(0.0, 1.0, 101)
    sd = np.sqrt(1.0 - rho)
    got = clenshaw(found.coefficients, np.stack([2.0 * sd - 1.0] * 2, axis=1))
    off = np.abs(got / values(rho) - 1.0)
    assert off.max() <= 20 * max(error, 1e-8)
    assert off[:, 1].max() <= 1e-8


@pytest.mark.parametrize("narrow", [0.05, 2e-3])
@pytest.mark.parametrize("towards", ["knowing all", "knowing nothing"])
def test_what_is_narrow_is_interpolated_in_pieces(narrow, towards):
    """A feature of the weight shows once the posterior is as narrow, or once the answer moves as far."""
    small = np.geomspace(1e-9, 0.9, 80)
    belief = gaussian_pair([0.0, 1.0], [1.0, 1.0], 1.0 - small if towards == "knowing all" else small)

    def values(rho):
        x = 1.0 - rho if towards == "knowing all" else rho
        return np.stack([1.0 / (1.0 + x / narrow**2), 2.0 + np.sqrt(1.0 - rho)], axis=1)

    found, error = interpolated(values, 1e-7, 0.0, 27)
    assert isinstance(found, PanelCurves)
    assert error < 1e-7
    rho = belief.rho[:, 0]
    wanted = rho[:, None] * values(rho)
    np.testing.assert_allclose(found.reductions(belief)[0], wanted, rtol=1e-6)
    np.testing.assert_allclose(found.totals(belief)[0], wanted.sum(1), rtol=1e-6)


def test_what_lies_between_the_nodes_is_found_by_probes():
    """A feature that 27 nodes step over; without probes it is missed."""

    def values(rho):
        return 1.0 + 0.01 * np.exp(-0.5 * (np.log(np.maximum(rho, 1e-300) / 1e-5)) ** 2)[:, None]

    rho = np.geomspace(1e-8, 1e-2, 50)
    belief = gaussian_pair([0.0], [1.0], rho)
    missed, error = interpolated(values, 2e-7, 0.0, 27)
    assert error < 2e-7
    assert np.max(abs(missed.reductions(belief)[0][:, 0] / (rho * values(rho)[:, 0]) - 1.0)) > 5e-3
    found, error = interpolated(values, 2e-7, 0.0, 27, probes=4.0 ** -np.arange(1.0, 13.0))
    assert error < 2e-7
    np.testing.assert_allclose(found.reductions(belief)[0], rho[:, None] * values(rho), rtol=1e-6)


def test_where_pieces_do_not_converge_the_error_is_stated():
    """|x|^1.3 about a place: coefficients fall slowly, and so many pieces there are not."""

    def values(rho):
        return 1.0 + 0.3 * sum(abs(np.sqrt(rho) - place) ** 1.3 for place in np.linspace(0.05, 0.95, 60))[:, None]

    rho = np.random.default_rng(0).uniform(0.0, 1.0, 400)
    found, error = interpolated(values, 1e-9, 0.0, 27)
    off = np.max(abs(found.reductions(gaussian_pair([0.0], [1.0], rho))[0][:, 0] / (rho * values(rho)[:, 0]) - 1.0))
    assert 1e-9 < off <= error


def test_coefficients_that_do_not_matter_are_left_out():
    coefficients = np.array([[1.0, 2.0], [0.1, 0.0], [1e-3, 1e-4], [1e-10, 0.0], [0.0, 1e-10]])
    kept = Curves(coefficients).truncated(1e-9).coefficients
    np.testing.assert_array_equal(kept, coefficients[:3])
    assert Curves(coefficients).truncated(1e-12).coefficients.shape == (5, 2)
    assert Curves(np.zeros((5, 2))).truncated(1e-9).coefficients.shape == (2, 2)


def test_a_short_curve_is_enough_for_labels_that_tell_little():
    """The same function from s = 0.9 on needs fewer nodes, and is no less accurate there."""

    def values(rho):
        return 1.0 / (1.0 + (4.0 * (np.sqrt(1.0 - rho) - 0.5)) ** 2)[:, None]

    found, error = interpolated(values, 1e-6, 0.9)
    assert found.coefficients.shape[0] <= 9
    sd = np.linspace(0.9, 1.0, 50)
    np.testing.assert_allclose(
        clenshaw(found.coefficients, 20.0 * (sd[:, None] - 0.95)), values(1.0 - sd**2), rtol=1e-7
    )
    assert error < 1e-6


def test_no_labels_leave_all_as_it_is():
    belief = GaussianBelief(np.zeros(2), np.ones(2), np.zeros(0), np.zeros((0, 2)))
    assert smallest_sd(belief) == 1.0
    reductions, smallest = Curves(np.ones((2, 2))).reductions(belief)
    assert reductions.shape == (0, 2)
    assert smallest == 1.0
