"""From the root to the leaf, for all rows and all trees: a loop that is compiled where numba is installed.

Sizes: n rows, p features, K trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes._jit import loop

_ONE = np.uint32(1)
_ROWS = 256  # that stay near the processor while all trees are walked


@loop
def step(rows: Any, r: int, nodes: Any, thresholds: Any, node: Any) -> Any:
    """The child of `node` that row r goes to; a leaf is its own child. A missing value goes where the tree sends it."""
    value = rows[r, nodes[node, 2]]
    left = (value <= thresholds[node, 4]) | (
        (value != value) & (nodes[node, 3] == 1)
    )  # a branch would be guessed wrong
    return nodes[node, _ONE - np.uint32(left)]


@loop
def walk(rows: Any, nodes: Any, thresholds: Any, values: Any, roots: Any, depths: Any, out: Any) -> None:
    """Fill `out` [n, K] with the value of the leaf that each row of `rows` [n, p] falls into.

    `nodes` [.., 5] are left child, right child, feature, whether missing values go left, and the bits of the threshold,
    which `thresholds` reads as float32: all without a sign, as an index that may be below 0 takes a question more.
    Eight rows are walked at a time: each waits for memory, and they wait together.
    """
    for start in range(0, rows.shape[0], _ROWS):
        end = min(start + _ROWS, rows.shape[0])
        eights = start + (end - start) // 8 * 8
        for k in range(roots.shape[0]):
            for r in range(start, eights, 8):
                a = b = c = d = e = f = g = h = roots[k]
                for _ in range(depths[k]):
                    a = step(rows, r, nodes, thresholds, a)
                    b = step(rows, r + 1, nodes, thresholds, b)
                    c = step(rows, r + 2, nodes, thresholds, c)
                    d = step(rows, r + 3, nodes, thresholds, d)
                    e = step(rows, r + 4, nodes, thresholds, e)
                    f = step(rows, r + 5, nodes, thresholds, f)
                    g = step(rows, r + 6, nodes, thresholds, g)
                    h = step(rows, r + 7, nodes, thresholds, h)
                out[r, k], out[r + 1, k], out[r + 2, k], out[r + 3, k] = values[a], values[b], values[c], values[d]
                out[r + 4, k], out[r + 5, k], out[r + 6, k], out[r + 7, k] = values[e], values[f], values[g], values[h]
            for r in range(eights, end):
                a = roots[k]
                for _ in range(depths[k]):
                    a = step(rows, r, nodes, thresholds, a)
                out[r, k] = values[a]
