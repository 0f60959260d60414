"""Loops over arrays, compiled where numba is installed (the extra `fast`); each has a NumPy path that gives the same.

A loop is compiled when it is first called, once for each set of types, and kept on disk where numba finds a place. It
lets go of the interpreter's lock, so that blocks of work run side by side in threads.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache, partial, wraps
from types import FunctionType
from typing import Any, TypeVar

from array_api_compat import is_torch_array

_Loop = TypeVar("_Loop", bound=Callable[..., Any])
_FAST_MATH = {"nsz", "contract", "reassoc", "arcp"}  # not "nnan" or "ninf": what is not finite must stay so


def has_jit() -> bool:
    """Whether loops are compiled: numba is installed, and the environment variable STAKES_JIT is not 0."""
    return os.environ.get("STAKES_JIT") != "0" and _installed()


@cache
def _installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def has_kernel(array: Any) -> bool:
    """Whether kernels of Triton run on this array: a tensor on a GPU, where that is installed."""
    return is_torch_array(array) and bool(array.is_cuda) and _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def loop(function: _Loop) -> _Loop:
    """A function over NumPy arrays and numbers that is compiled when it is first called; loops may call loops."""
    compiled = cache(partial(_compiled, function))

    @wraps(function)
    def run(*arguments: Any) -> Any:
        return compiled()(*arguments)

    run.compiled = compiled  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    import numba

    known = function.__globals__
    called = {
        name: known[name].compiled() for name in function.__code__.co_names if hasattr(known.get(name), "compiled")
    }
    bound = FunctionType(function.__code__, {**known, **called}, function.__name__)
    bound.__qualname__, bound.__module__ = function.__qualname__, function.__module__

    def made(keep: bool) -> Callable[..., Any]:  # a division that may raise would not be vectorised
        return numba.njit(bound, cache=keep, nogil=True, fastmath=_FAST_MATH, error_model="numpy")

    try:
        return made(keep=True)
    except RuntimeError:  # there is no folder to keep compiled code in
        return made(keep=False)


# ----------------------------------------------------------------------
# Kernels for a GPU, by Triton: compiled when they are first called, once for each set of types and constants.


def kernel(function: Callable[..., Any]) -> Any:
    """A kernel, or a part of one that kernels call."""
    import triton

    return triton.jit(function)
