"""Kernels of Triton without a GPU: their tests in Triton's interpreter, and its compiler, which takes less than that.

Which of both it is must be said before Triton is imported, so each runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

FOLDER = Path(__file__).parent
FILES = ("acquisition/test_curve_kernel.py", "models/test_stationary_kernel.py")
FEWEST = 15  # tests that are in them

COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from stakes.acquisition import curve_kernel
from stakes.models import stationary_kernel


def size(kernel, kind, known, **own):
    own = {**own, **dict.fromkeys(known, "constexpr")}
    signature = {name: own.get(name, "*" + kind) for name in kernel.arg_names}
    made = triton.compile(ASTSource(kernel, signature, known), target=GPUTarget("cuda", 90, 32))
    return len(made.asm["ptx"])


sizes = dict.fromkeys(("n_labels", "n_contexts", "stride"), "i32")
tile = {"count": 9, "n_rows": 16, "n_columns": 64}
for kind in ("fp64", "fp32"):
    print(size(curve_kernel._sums, kind, {**tile, "n_tiles": 2}, total="*fp64", **sizes))
    print(size(curve_kernel._each, kind, tile, **sizes))
sizes = dict.fromkeys(("n_rows", "n_others", "stride"), "i32")
for smoothness in range(4):
    known = {"n_features": 8, "smoothness": smoothness, "alone": False, "tile_rows": 32, "tile_columns": 64}
    print(size(stationary_kernel._added, "fp64", known, **sizes))
"""


def run(*command, **environment):
    """What a process of Python prints."""
    environment = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernels_are_right_in_the_interpreter():
    files = [str(FOLDER / file) for file in FILES]
    said = run("-m", "pytest", "-p", "no:cacheprovider", *files, TRITON_INTERPRET="1")
    assert int(said.split(" passed")[0].split()[-1]) >= FEWEST, said


def test_kernels_compile_for_a_gpu_that_is_not_there():
    """Of compute capability 9.0."""
    sizes = [int(each) for each in run("-c", COMPILED, TRITON_INTERPRET="0").split()]
    assert len(sizes) == 8
    assert min(sizes) > 1000
