"""All trees of a forest laid end to end, so that rows are walked through all of them at once.

Sizes: n rows, p features, K trees, C classes, d outputs, V nodes of all trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from stakes._array import Array
from stakes._jit import has_jit
from stakes.models import tree_loops

_WORTH_COMPILING = 10**4  # rows times trees; below, scikit-learn's own walk is quicker than fetching a compiled one


@dataclass(frozen=True, eq=False)
class Trees:
    """What a fitted forest's trees hold, as arrays over the nodes of all of them."""

    forest: Any
    nodes: Any
    """[V]: scikit-learn's records"""
    roots: Any
    """[K]: where each tree begins"""
    depths: Any
    """[K]"""
    values: Any
    """[V, d, C] class probabilities, or [V, d, 1] means"""

    @staticmethod
    def of(forest: Any) -> Trees:
        """Those of a fitted forest."""
        states = [tree.tree_.__getstate__() for tree in forest.estimators_]
        sizes = np.array([state["node_count"] for state in states])
        return Trees(
            forest,
            np.concatenate([state["nodes"] for state in states]),
            (np.cumsum(sizes) - sizes).astype(np.uint32),
            np.array([state["max_depth"] for state in states]),
            np.concatenate([state["values"] for state in states]),
        )

    @property
    def pure(self) -> bool:
        """Whether every leaf puts all its mass on one class."""
        return bool(np.all(np.count_nonzero(self.values[self._is_leaf], axis=-1) == 1))

    def votes(self, rows: Any) -> Array:
        """[n, K]: the position of the class in the leaf that each row falls into, where leaves are pure."""
        small = np.uint8 if self.values.shape[2] <= 256 else np.int32
        return self._at_leaves(rows, np.argmax(self.values[:, 0, :], axis=1).astype(small))

    def means(self, rows: Any) -> Array:
        """[n, K]: the mean in the leaf that each row falls into, of the only output."""
        return self._at_leaves(rows, np.ascontiguousarray(self.values[:, 0, 0]))

    def _at_leaves(self, rows: Any, values: Array) -> Array:
        """[n, K]: `values` [V] of the leaves."""
        if not has_jit() or issparse(rows) or len(self.roots) * _length(rows) < _WORTH_COMPILING:
            return values[self.forest.apply(rows) + self.roots]
        checked = self._checked(rows)
        found = np.empty((len(checked), len(self.roots)), dtype=values.dtype)
        table = self._table()
        tree_loops.walk(checked, table, table.view(np.float32), values, self.roots, self.depths, found)
        return found

    def _checked(self, rows: Any) -> Array:
        """[n, p]: rows as scikit-learn gives them to trees."""
        finite = "allow-nan" if get_tags(self.forest).input_tags.allow_nan else True
        return validate_data(self.forest, rows, dtype=np.float32, order="C", reset=False, ensure_all_finite=finite)

    def _table(self) -> Array:
        """[V, 5]: children (a leaf is its own), feature, whether missing values go left, bits of the threshold."""
        leaf, own = self._is_leaf, np.arange(len(self.nodes))
        first = np.repeat(self.roots, np.diff(self.roots, append=len(self.nodes)))
        columns = [np.where(leaf, own, self.nodes[side] + first) for side in ("left_child", "right_child")]
        columns += [np.where(leaf, 0, self.nodes["feature"]), self.nodes["missing_go_to_left"]]
        threshold = _rounded_down(np.where(leaf, np.inf, self.nodes["threshold"])).view(np.uint32)
        return np.stack([*columns, threshold], axis=1).astype(np.uint32)

    @property
    def _is_leaf(self) -> Array:
        return self.nodes["left_child"] < 0


def _rounded_down(threshold: Array) -> Array:
    """In float32, so that a feature in float32 is at most this exactly where it is at most `threshold`."""
    near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)


def _length(rows: Any) -> int:
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
