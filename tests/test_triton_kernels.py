"""Kernels of Triton without a GPU: Triton's interpreter runs their tests, its compiler takes less than that.

Which of both it is must be said before Triton is imported: tests/conftest.py chooses the interpreter for all tests, and
the compiler runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

FILES = ("gpu/test_centred.py", "gpu/test_curve_kernel.py", "gpu/test_stationary_kernel.py")
FEWEST = 35  # tests that are in them

COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from stakes.gpu import centred as centred_kernels
from stakes.gpu import curve_kernel, stationary_kernel


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
sizes = {**dict.fromkeys(("n_rows", "n_contexts", "together"), "i32"), **dict.fromkeys(("n_members", "scale"), "fp32")}
of = (("fp16", "ieee", 128), ("bf16", "ieee", 1024), ("fp32", "tf32", 128), ("i8", "ieee", 64))
for kind, precision, width in of:
    tile = {"CLASSES": 3, "WIDTH": width, "PRECISION": precision, "ROWS": 64, "COLUMNS": 64, "DEEP": 64}
    sides = dict.fromkeys(("left", "right"), f"tensordesc<{kind}[64,64]>")
    for log, mean in ((True, False), (True, True), (False, True)):
        known = {"LABELS": 2, "TERMS": 3, "LOG": log, "MEAN": mean, "EACH": mean, "COUNTS": kind == "i8", "FAST": True}
        known["HALF"] = width == 128
        print(size(centred_kernels.class_sums, "fp32", {**tile, **known}, **sizes, **sides))
    if kind != "i8":
        print(size(centred_kernels.action_sums, "fp32", {**tile, "ACTIONS": 4, "LABELS": 2}, **sizes, **sides))
known = {"MEMBERS": 100, "CLASSES": 10, "WIDTH": 128, "SOME": 64, "ALL": 16, "TF32": False}
own = {"n_rows": "i32", "padded_rows": "i32", "weights": "*fp32", "mass": "*fp32"}
print(size(centred_kernels.centre_members, "fp16", known, **own))
known |= {"LOG": True, "WEIGHTED": True, "COLUMN": True}
weights = dict.fromkeys(("class_weights", "context_weights"), "*fp64")
own = {"n_contexts": "i32", "padded": "i32", "unit": "fp32", "right": "*fp16", **weights}
print(size(centred_kernels.context_terms, "fp32", known, **own))
known = {"MEMBERS": 100, "CLASSES": 10, "ACTIONS": 5, "WIDTH": 128, "SOME": 64, "ALL": 8, "TF32": False}
own = {"n_contexts": "i32", "padded": "i32", "table": "*fp64", "context_weights": "*fp64", "right": "*fp16"}
print(size(centred_kernels.action_terms, "fp32", known, **own))
known = {"MEMBERS": 100, "CLASSES": 10, "WIDTH": 128, "SOME": 128}
own = {"n_rows": "i32", "padded_rows": "i32", "votes": "*u8", "indicators": "*i8"}
print(size(centred_kernels.count_votes, "fp32", known, **own))
own = {"n_contexts": "i32", "padded": "i32", "unit": "fp32", "class_weights": "*fp64", "context_weights": "*fp64"}
known = {"CLASSES": 10, "LOG": True, "WEIGHTED": True, "SOME": 64}
print(size(centred_kernels.vote_terms, "fp32", known, **own))
"""


def run(*command, **environment):
    """What a process of Python prints."""
    environment = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernels_are_run_on_a_gpu_or_in_the_interpreter(request):
    of = [item for item in request.session.items if item.path.as_posix().endswith(FILES)]
    if len({item.path for item in of}) < len(FILES):
        pytest.skip("their tests are not in this run")
    left_out = [item for item in of if any(all(mark.args) for mark in item.iter_markers("skipif"))]
    assert len(of) - len(left_out) >= FEWEST


def test_kernels_compile_for_a_gpu_that_is_not_there():
    """Of compute capability 9.0."""
    sizes = [int(each) for each in run("-c", COMPILED, TRITON_INTERPRET="0").split()]
    assert len(sizes) == 28
    assert min(sizes) > 1000
