"""L^-1 from the left by products alone, which NumPy runs beside other threads; SciPy's triangular solves hold them up.

Sizes: n rows of L, B right-hand sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

_BLOCK = 64  # rows of L whose diagonal block is inverted: below, products are short; above, inverses cost more


@dataclass(frozen=True, eq=False)
class Forward:
    """Forward substitution by blocks, each with the inverse of its diagonal block."""

    factor: Any
    """[n, n]: L, lower triangular"""
    inverses: tuple[Any, ...]
    """each [64, 64], or what is left"""

    @staticmethod
    def of(factor: Any) -> Forward:
        """With the inverses of its diagonal blocks."""
        blocks = (factor[at : at + _BLOCK, at : at + _BLOCK] for at in range(0, len(factor), _BLOCK))
        inverses = tuple(solve_triangular(block, np.eye(len(block)), lower=True) for block in blocks)
        return Forward(factor, inverses)

    def solve(self, rows: Any) -> Any:
        """[B, n]: L^-1 times each of `rows` [B, n], written over them."""
        for place, inverse in enumerate(self.inverses):
            start = place * _BLOCK
            here = slice(start, start + len(inverse))
            if start:
                rows[:, here] -= rows[:, :start] @ self.factor[here, :start].T
            rows[:, here] = rows[:, here] @ inverse.T
        return rows
