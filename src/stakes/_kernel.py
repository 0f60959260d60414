"""Kernels for a GPU, by Triton: compiled when they are first called, once for each set of types and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton


def kernel(function: Callable[..., Any]) -> Any:
    """A kernel, or a part of one that kernels call."""
    return triton.jit(function)
