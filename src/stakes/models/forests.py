"""From the root to the leaf, for all rows and all trees: a loop that is compiled where numba is installed.

Sizes: n rows, p features, K trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes._utils.array import Array
from stakes._utils.jit import has_jit, loop
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, register_model
from stakes.models.members import Members, noise_of_trees, prepare_members

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


# ----------------------------------------------------------------------
# All trees of a forest laid end to end, so that rows are walked through all of them at once.
#
# Sizes: n rows, p features, K trees, C classes, d outputs, V nodes of all trees.

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
        walk(checked, table, table.view(np.float32), values, self.roots, self.depths, found)
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


# ----------------------------------------------------------------------
# Members of forests and of bagging.
#
# Sizes: n rows, K members, C classes, c classes of one member, d outputs.


@singledispatch
def members_of(model: Any) -> Members:
    """The members of a fitted ensemble, in its own order."""
    raise TypeError(
        f"a {type(model).__name__} has no members that are known here: give a forest, bagging, voting, Bootstrap, a "
        "list of fitted estimators, or a function of the rows"
    )


def ensemble(model: Any, contexts: Any, *, target: Any, classes: Any, **_: Any) -> RowsToBelief:
    """The belief of the members of `model`."""
    return prepare_members(members_of(model), contexts, target=target, classes=classes)


@members_of.register(RandomForestClassifier)
@members_of.register(ExtraTreesClassifier)
def _forest_of_classifiers(model: Any) -> Members:
    """Trees know all classes of the forest; their leaves hold the probabilities."""
    check_is_fitted(model)
    if model.n_outputs_ > 1:
        raise StakesError(f"a forest of {model.n_outputs_} class outputs has no belief here: fit one output at a time")
    trees = Trees.of(model)
    tables = np.split(trees.values[:, 0, :], trees.roots[1:])  # each [nodes, C]
    return Members(
        predict=_leaf_values(tables),
        classes=(model.classes_,) * len(tables),
        known=model.classes_,
        votes=trees.votes if trees.pure else None,
        prepare=model.apply,
    )


@members_of.register(RandomForestRegressor)
@members_of.register(ExtraTreesRegressor)
def _forest_of_regressors(model: Any) -> Members:
    """The means in the leaves."""
    check_is_fitted(model)
    trees = Trees.of(model)
    tables = np.split(trees.values[:, :, 0], trees.roots[1:])  # each [nodes, d]
    return Members(
        predict=_leaf_values([table[:, 0] for table in tables] if model.n_outputs_ == 1 else tables),
        means=trees.means if model.n_outputs_ == 1 else None,
        prepare=model.apply,
        samples=(lambda: model.estimators_samples_) if model.bootstrap else None,
        noise=partial(noise_of_trees, model),
    )


@members_of.register(BaggingClassifier)
def _bagged_classifiers(model: BaggingClassifier) -> Members:
    """Members were fitted on positions in `classes_`, each on its own features, perhaps not on every class."""
    check_is_fitted(model)
    return Members(
        predict=_on_features(model, [probabilities(member) for member in model.estimators_]),
        classes=tuple(model.classes_[np.asarray(member.classes_, dtype=int)] for member in model.estimators_),
        known=model.classes_,
        pure=all(map(is_pure, model.estimators_)),
        prepare=partial(_checked_rows, model),
    )


@members_of.register(BaggingRegressor)
def _bagged_regressors(model: BaggingRegressor) -> Members:
    """Each member on its own features."""
    check_is_fitted(model)
    return Members(
        predict=_on_features(model, [member.predict for member in model.estimators_]),
        prepare=partial(_checked_rows, model),
        samples=lambda: model.estimators_samples_,
        noise=partial(noise_of_trees, model),
    )


def probabilities(classifier: Any) -> Callable[[Any], Array]:
    """Its `predict_proba`, or all mass on its answer where it has none."""
    return classifier.predict_proba if hasattr(classifier, "predict_proba") else answers(classifier)


def answers(classifier: Any) -> Callable[[Any], Array]:
    """[n, c]: all mass on the answer."""
    return lambda rows: (np.asarray(classifier.predict(rows))[:, None] == np.asarray(classifier.classes_)).astype(float)


def is_pure(classifier: Any) -> bool:
    """Whether it puts all mass on one class whatever the row: a tree with pure leaves, or answers only."""
    if not hasattr(classifier, "predict_proba"):
        return True
    if not hasattr(classifier, "tree_"):
        return False
    leaves = classifier.tree_.value[classifier.tree_.children_left < 0]  # [leaves, 1, C]
    return bool(np.all(np.count_nonzero(leaves, axis=-1) == 1))


def _leaf_values(tables: list[Array]) -> tuple[Callable[[Any], Array], ...]:
    """Member k looks up the leaf that a row falls into, column k of what `apply` gives."""
    return tuple(lambda leaves, k=k, table=table: table[leaves[:, k]] for k, table in enumerate(tables))


def _on_features(model: Any, predict: list[Callable[[Any], Array]]) -> tuple[Callable[[Any], Array], ...]:
    return tuple(
        lambda rows, each=each, features=features: each(rows[:, features])
        for each, features in zip(predict, model.estimators_features_, strict=True)
    )


def _checked_rows(model: Any, rows: Any) -> Any:
    """Rows as bagging gives them to its members: an array or a sparse matrix, names of features checked."""
    return validate_data(model, rows, accept_sparse=["csr", "csc"], dtype=None, ensure_all_finite=False, reset=False)


for _kind in (
    RandomForestClassifier,
    ExtraTreesClassifier,
    RandomForestRegressor,
    ExtraTreesRegressor,
    BaggingClassifier,
    BaggingRegressor,
):
    register_model(_kind, ensemble)
