"""Covariances by distance in one kernel, on a GPU or interpreted, as tests/test_triton_kernels.py does."""

from __future__ import annotations

import os
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

torch = pytest.importorskip("torch", reason="torch is not installed")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
pytestmark = [
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),  # which is not imported yet
    pytest.mark.skipif(
        not INTERPRETED and not torch.cuda.is_available(), reason="no GPU, and Triton's interpreter is not chosen"
    ),
]


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_alone_and_added_to_what_is_there(nu, dtype, tolerance, rng):
    from stakes.gpu.stationary_kernel import added

    rows, others = rng.normal(size=(37, 3)), rng.normal(size=(70, 3))
    others[:5] = rows[:5]  # at a distance of 0, too
    given = [torch.as_tensor(each, dtype=dtype, device=DEVICE) for each in (rows, others)]
    wanted, before = Matern(1.0, nu=nu)(rows, others), torch.ones((37, 70), dtype=dtype, device=DEVICE)
    alone, more = added(nu, *given, 0.7, None), added(nu, *given, 0.7, before)
    assert more is before
    assert alone.dtype == dtype
    np.testing.assert_allclose(alone.cpu(), 0.7 * wanted, atol=tolerance)
    np.testing.assert_allclose(more.cpu(), 1.0 + 0.7 * wanted, atol=tolerance)
