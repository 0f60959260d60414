"""Curves looked up in one kernel, against NumPy: on a GPU, or interpreted, as tests/test_triton_kernels.py does."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stakes import ExponentialWeight, GaussianBelief, SquaredError, Weight, score
from stakes.acquisition.curves import Curves

torch = pytest.importorskip("torch", reason="torch is not installed")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
runs = pytest.mark.skipif(
    find_spec("triton") is None or not (INTERPRETED or torch.cuda.is_available()),  # it must not be imported yet
    reason="no Triton, or no GPU and Triton's interpreter is not chosen",
)


def tensors(belief, dtype):
    """The belief on the device of the kernel."""
    names = ("mean", "variance", "candidate_variance", "covariance")
    given = (torch.as_tensor(getattr(belief, name), dtype=dtype, device=DEVICE) for name in names)
    return GaussianBelief(*given)


def random_belief(rng, n_candidates, n_contexts):
    mixing = rng.standard_normal((n_candidates + n_contexts, 4))
    covariance = mixing @ mixing.T
    variance = np.diag(covariance).copy()
    cross = covariance[:n_candidates, n_candidates:].copy()
    if n_candidates > 1:
        cross[0], variance[0] = 0.0, 0.0  # a label that is known
    if n_contexts > 1:
        cross[:, 1], variance[n_candidates + 1] = 0.0, 0.0  # a target that is known
    return GaussianBelief(
        rng.standard_normal(n_contexts), variance[n_candidates:], variance[:n_candidates] * 1.2, cross
    )


@runs
@settings(max_examples=8)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(2, 9),
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 150)),
    low=st.sampled_from([0.0, 0.3]),
)
def test_the_kernel_is_what_numpy_computes(seed, count, sizes, low):
    from stakes.gpu import curve_kernel

    rng = np.random.default_rng(seed)
    belief, coefficients = random_belief(rng, *sizes), rng.standard_normal((count, sizes[1]))
    wanted, smallest = Curves(coefficients, low).reductions(belief)
    given, series = tensors(belief, torch.float64), torch.as_tensor(coefficients, device=DEVICE)
    found, sd = curve_kernel.each(given, series, low)
    totals, same = curve_kernel.sums(given, series, low)
    np.testing.assert_allclose(found.cpu(), wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(totals.cpu(), wanted.sum(axis=1), rtol=1e-10, atol=1e-11)
    assert sd == same == pytest.approx(smallest, abs=1e-7)


@runs
def test_single_precision_is_kept_and_sums_are_double(rng):
    from stakes.gpu import curve_kernel

    belief, coefficients = random_belief(rng, 20, 70), rng.uniform(0.5, 1.0, (5, 70))
    given, series = tensors(belief, torch.float32), torch.as_tensor(coefficients, dtype=torch.float32, device=DEVICE)
    found, _ = curve_kernel.each(given, series, 0.0)
    totals, _ = curve_kernel.sums(given, series, 0.0)
    wanted, _ = Curves(coefficients, 0.0).reductions(belief)
    assert (found.dtype, totals.dtype) == (torch.float32, torch.float64)
    np.testing.assert_allclose(found.cpu(), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(totals.cpu(), wanted.sum(axis=1), rtol=1e-4)


@runs
def test_parts_of_a_larger_matrix_are_read_where_they_are(rng):
    from stakes.gpu import curve_kernel

    whole, coefficients = random_belief(rng, 40, 90), rng.standard_normal((4, 90))
    part = tensors(whole, torch.float64).take(slice(3, 25), slice(10, 80))
    assert not part.covariance.is_contiguous()
    wanted, _ = Curves(coefficients[:, 10:80], 0.0).reductions(whole.take(slice(3, 25), slice(10, 80)))
    series = torch.as_tensor(coefficients, device=DEVICE)[:, 10:80]
    np.testing.assert_allclose(curve_kernel.each(part, series, 0.0)[0].cpu(), wanted, rtol=1e-10, atol=1e-12)


LOSSES = {
    "squared error": SquaredError(),
    "exponential weight": SquaredError(ExponentialWeight(0.5)),
    "huge weights": SquaredError(ExponentialWeight(900.0)),
    "sigmoid weight": SquaredError(Weight(lambda z: 1.0 / (1.0 + np.exp(-2.0 * z)))),
}


def sigmoid(z):
    return 1.0 / (1.0 + (torch if isinstance(z, torch.Tensor) else np).exp(-2.0 * z))


@runs
@pytest.mark.parametrize("name", LOSSES)
def test_scores_by_the_kernel_are_those_of_numpy(name, rng, monkeypatch):
    for module in ("curves",):
        monkeypatch.setattr(f"stakes.acquisition.{module}.has_kernel", lambda array: isinstance(array, torch.Tensor))
    loss = SquaredError(Weight(sigmoid)) if name == "sigmoid weight" else LOSSES[name]
    belief, shares = random_belief(rng, 30, 20), np.arange(1.0, 21.0)
    wanted, log_scale = score(loss, belief, context_weights=shares.tolist(), return_log_scale=True)
    found, found_scale = score(
        loss, tensors(belief, torch.float64), context_weights=shares.tolist(), return_log_scale=True
    )
    assert found_scale == pytest.approx(log_scale, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.cpu(), wanted, rtol=1e-9, atol=1e-12)


@runs
@pytest.mark.skipif(INTERPRETED, reason="the interpreter is slow")
def test_a_large_block_takes_one_pass(rng):
    """1e8 pairs take less than a second, whatever the card."""
    from stakes.gpu import curve_kernel

    belief = tensors(random_belief(rng, 100, 1000), torch.float64)
    large = GaussianBelief(
        belief.mean, belief.variance, belief.candidate_variance.repeat(1000), belief.covariance.repeat(1000, 1)
    )
    series = torch.ones((20, 1000), dtype=torch.float64, device=DEVICE)
    small, _ = curve_kernel.sums(belief, series, 0.0)
    torch.cuda.synchronize()
    start = time.perf_counter()
    found, _ = curve_kernel.sums(large, series, 0.0)
    assert time.perf_counter() - start < 1.0
    torch.testing.assert_close(found, small.repeat(1000))


@runs
def test_no_candidates_have_no_sums():
    from stakes.gpu import curve_kernel

    belief = tensors(random_belief(np.random.default_rng(0), 0, 3), torch.float64)
    coefficients = torch.ones((4, 3), dtype=torch.float64, device=DEVICE)
    for kernel, shape in ((curve_kernel.sums, (0,)), (curve_kernel.each, (0, 3))):
        found, smallest = kernel(belief, coefficients, 0.1)
        assert (tuple(found.shape), smallest) == (shape, 1.0)
