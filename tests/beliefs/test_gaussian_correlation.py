"""Counting covariances that no pair of variables can have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes._utils.compute import has_jit
from stakes.beliefs.gaussian import count_impossible


@pytest.mark.parametrize(
    "jit", [pytest.param("1", marks=pytest.mark.skipif(not has_jit(), reason="numba is not installed")), "0"]
)
@given(seed=st.integers(0, 1000), n=st.integers(0, 30), m=st.integers(1, 30), dtype=st.sampled_from(["f4", "f8"]))
def test_all_are_counted_compiled_or_not(jit, seed, n, m, dtype):
    rng = np.random.default_rng(seed)
    sd, target_sd = rng.uniform(size=n).astype(dtype), rng.integers(0, 2, size=m).astype(dtype)
    covariance = (rng.normal(size=(n, m)) * rng.integers(0, 2, size=(n, m))).astype(dtype)
    wanted = sum(abs(covariance[i, j]) > sd[i] * target_sd[j] for i in range(n) for j in range(m))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAKES_JIT", jit)
        patch.setattr("stakes._utils.compute._WORTH_FETCHING", 0)
        assert count_impossible(covariance, sd, target_sd) == wanted


def test_in_every_array_library(xp):
    covariance = xp.asarray(np.array([[0.5, -2.0], [1.0, 0.0], [0.0, 1e-9]]))
    assert count_impossible(covariance, xp.asarray(np.array([1.0, 1.0, 0.0])), xp.asarray(np.array([1.0, 1.0]))) == 2
