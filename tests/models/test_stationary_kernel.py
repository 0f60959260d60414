"""Covariances by distance in one kernel: by Triton's interpreter and compiler anywhere, on a GPU where there is one.

The interpreter must be chosen before Triton is imported, so it runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")

SMOOTHNESS = [0.5, 1.5, 2.5, np.inf]


def check(device):
    """Alone and added to what is there, against scikit-learn."""
    from stakes.models.stationary_kernel import added

    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(37, 3)), rng.normal(size=(70, 3))
    others[:5] = rows[:5]  # at a distance of 0, too
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        given = [torch.as_tensor(each, dtype=dtype, device=device) for each in (rows, others)]
        for nu in SMOOTHNESS:
            wanted, before = Matern(1.0, nu=nu)(rows, others), torch.ones((37, 70), dtype=dtype, device=device)
            alone, more = added(nu, *given, 0.7, None), added(nu, *given, 0.7, before)
            assert more is before
            assert alone.dtype == dtype
            np.testing.assert_allclose(alone.cpu(), 0.7 * wanted, atol=tolerance)
            np.testing.assert_allclose(more.cpu(), 1.0 + 0.7 * wanted, atol=tolerance)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_on_a_gpu():
    check("cuda")


def in_a_process(code, **environment):
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_in_tritons_interpreter():
    code = "import test_stationary_kernel; test_stationary_kernel.check('cpu'); print('checked')"
    assert in_a_process(code, TRITON_INTERPRET="1") == ["checked"]


COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from stakes.models.stationary_kernel import _added

for smoothness, kind in ((0, "fp64"), (1, "fp64"), (2, "fp32"), (3, "fp64")):
    known = {"n_features": 8, "smoothness": smoothness, "alone": False, "tile_rows": 32, "tile_columns": 64}
    own = {**dict.fromkeys(("n_rows", "n_others", "stride"), "i32"), **dict.fromkeys(known, "constexpr")}
    signature = {name: own.get(name, "*" + kind) for name in _added.arg_names}
    made = triton.compile(ASTSource(_added, signature, known), target=GPUTarget("cuda", 90, 32))
    print(len(made.asm["ptx"]) > 1000)
"""


def test_it_compiles_without_a_gpu():
    assert in_a_process(COMPILED) == ["True"] * 4
