"""Members of scikit-learn's forests, of bagging and of voting: imported when the first such model comes.

All trees of a forest are laid end to end, so that rows are walked through all of them at once, from the root to the
leaf, by a loop that is compiled where numba is installed. Sizes: n rows, p features, K members, C classes, d outputs, V
nodes of all trees, L labels of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes._utils.array import Array
from stakes._utils.compute import has_jit, loop
from stakes._utils.tables import n_rows, plain_label
from stakes.exceptions import StakesError
from stakes.losses.multi_label import label_sets
from stakes.models.base import register_model
from stakes.models.ensembles import (
    Members,
    answers,
    is_pure,
    label_share_of,
    members_of,
    noise_left,
    prepare_ensemble,
    probabilities,
)

Trees: TypeAlias = tuple[Array, Array, Array, Array]
"""[V] nodes as scikit-learn's records; [K] where each tree begins; [K] its depth; [V, d, C] class probabilities, or
[V, d, 1] means."""

_ONE = np.uint32(1)
_ROWS = 256  # that stay near the processor while all trees are walked
_WORTH_COMPILING = 10**4  # rows times trees; below, scikit-learn's own walk is quicker than fetching a compiled one


@members_of.register(RandomForestClassifier)
@members_of.register(ExtraTreesClassifier)
def _forest_of_classifiers(model: Any) -> Members:
    """Trees know all classes of the forest; their leaves hold the probabilities."""
    check_is_fitted(model)
    trees = laid_out(model)
    nodes, roots, depths, values = trees
    known = known_classes_of(model)
    if model.n_outputs_ > 1:
        values = set_probabilities(values, model.classes_)
        trees = nodes, roots, depths, values
    tables = np.split(values[:, 0, :], roots[1:])  # each [nodes, C]
    pure = np.all(np.count_nonzero(values[nodes["left_child"] < 0], axis=-1) == 1)
    return Members(
        predict=_leaf_values(tables),
        classes=(known,) * len(tables),
        known=known,
        votes=tree_votes(model, trees) if pure else None,
        prepare=model.apply,
    )


def known_classes_of(model: Any) -> Any:
    """The classes of a forest; of one with several outputs of 0 and 1 all sets of these, such as "01"."""
    if not isinstance(model.classes_, list):
        return model.classes_
    names = [[plain_label(each) for each in np.asarray(own).tolist()] for own in model.classes_]
    if strange := [own for own in names if not set(own) <= {0, 1}]:
        raise StakesError(
            f"a forest of several outputs has a belief where each is 0 or 1, the labels of a row; one holds "
            f"{strange[0]}. Fit one output at a time"
        )
    return ["".join(map(str, each)) for each in label_sets(len(names)).tolist()]


def set_probabilities(values: Array, classes: Sequence[Any]) -> Array:
    """[V, 1, 2^L]: of all label sets, given those [V, L, 2] of labels, which are independent in a leaf."""
    sets = label_sets(len(classes))
    found = np.ones((len(values), len(sets)))
    for place, own in enumerate(classes):
        each = np.zeros((len(values), 2))
        each[:, np.asarray(own, dtype=np.intp)] = values[:, place, : len(own)]
        found *= each[:, sets[:, place]]
    return found[:, None, :]


@members_of.register(RandomForestRegressor)
@members_of.register(ExtraTreesRegressor)
def _forest_of_regressors(model: Any) -> Members:
    """The means in the leaves."""
    check_is_fitted(model)
    trees = laid_out(model)
    tables = np.split(trees[3][:, :, 0], trees[1][1:])  # each [nodes, d]
    return Members(
        predict=_leaf_values([table[:, 0] for table in tables] if model.n_outputs_ == 1 else tables),
        means=tree_means(model, trees) if model.n_outputs_ == 1 else None,
        prepare=model.apply,
        samples=(lambda: model.estimators_samples_) if model.bootstrap else None,
        noise=partial(noise_of_trees, model),
        label_share=label_share_of(model.estimators_, model.estimators_samples_),
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
        label_share=label_share_of(model.estimators_, model.estimators_samples_),
    )


@members_of.register(VotingClassifier)
def _voting_classifiers(model: VotingClassifier) -> Members:
    """Each named estimator is a member, with its weight: its answers in hard voting, its probabilities in soft."""
    check_is_fitted(model)
    hard = model.voting == "hard"
    return Members(
        predict=tuple(answers(member) if hard else probabilities(member) for member in model.estimators_),
        classes=tuple(model.classes_[np.asarray(member.classes_, dtype=int)] for member in model.estimators_),
        known=model.classes_,
        pure=hard or all(map(is_pure, model.estimators_)),
        weights=_kept_weights(model),
    )


@members_of.register(VotingRegressor)
def _voting_regressors(model: VotingRegressor) -> Members:
    """Each named estimator is a member, with its weight."""
    check_is_fitted(model)
    return Members(tuple(member.predict for member in model.estimators_), weights=_kept_weights(model))


def _kept_weights(model: Any) -> list[float] | None:
    """The weights of the estimators that were not dropped."""
    if model.weights is None:
        return None
    return [weight for weight, (_, each) in zip(model.weights, model.estimators, strict=True) if each != "drop"]


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


def laid_out(forest: Any) -> Trees:
    """The trees of a fitted forest, end to end."""
    states = [tree.tree_.__getstate__() for tree in forest.estimators_]
    sizes = np.array([state["node_count"] for state in states])
    return (
        np.concatenate([state["nodes"] for state in states]),
        (np.cumsum(sizes) - sizes).astype(np.uint32),
        np.array([state["max_depth"] for state in states]),
        np.concatenate([state["values"] for state in states]),
    )


def tree_votes(forest: Any, trees: Trees) -> Callable[[Any], Array]:
    """From rows to [n, K]: the position of the class in the leaf that each falls into, where leaves are pure."""
    values = trees[3]
    small = np.uint8 if values.shape[2] <= 256 else np.int32
    return _at_leaves(forest, trees, np.argmax(values[:, 0, :], axis=1).astype(small))


def tree_means(forest: Any, trees: Trees) -> Callable[[Any], Array]:
    """From rows to [n, K]: the mean in the leaf that each falls into, of the only output."""
    return _at_leaves(forest, trees, np.ascontiguousarray(trees[3][:, 0, 0]))


def _at_leaves(forest: Any, trees: Trees, values: Array) -> Callable[[Any], Array]:
    """From rows to [n, K]: `values` [V] of the leaves."""
    nodes, roots, depths, _ = trees
    table = cache(lambda: _walked_table(nodes, roots))  # made when it is first worth it

    def found(rows: Any) -> Array:
        few = len(roots) * n_rows(rows) < _WORTH_COMPILING and not table.cache_info().currsize
        if few or not has_jit() or issparse(rows):
            return values[forest.apply(rows) + roots]
        finite = "allow-nan" if get_tags(forest).input_tags.allow_nan else True
        checked = validate_data(forest, rows, dtype=np.float32, order="C", reset=False, ensure_all_finite=finite)
        result = np.empty((len(checked), len(roots)), dtype=values.dtype)
        walk(checked, table(), table().view(np.float32), values, roots, depths, result)
        return result

    return found


def _walked_table(nodes: Array, roots: Array) -> Array:
    """[V, 5]: children (a leaf is its own), feature, whether missing values go left, bits of the threshold."""
    leaf, own = nodes["left_child"] < 0, np.arange(len(nodes))
    first = np.repeat(roots, np.diff(roots, append=len(nodes)))
    columns = [np.where(leaf, own, nodes[side] + first) for side in ("left_child", "right_child")]
    columns += [np.where(leaf, 0, nodes["feature"]), nodes["missing_go_to_left"]]
    threshold = _rounded_down(np.where(leaf, np.inf, nodes["threshold"])).view(np.uint32)
    return np.stack([*columns, threshold], axis=1).astype(np.uint32)


def _rounded_down(threshold: Array) -> Array:
    """In float32, so that a feature in float32 is at most this exactly where it is at most `threshold`."""
    near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)


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


def noise_of_trees(model: Any, means: Array) -> Array:
    """The noise sd that a forest or bagged trees know from `oob_score=True`, given members' means [M, K] at contexts.

    The model keeps neither labels nor residuals, but R^2 = 1 - mean residual^2 / var(y) out of bag, and var(y) is the
    mean impurity of the roots (up to sampling error, of relative size sqrt(2 / (n K))). The members' spread is taken at
    the contexts, which are the same for every block of the pool: estimate it on the training rows with
    `out_of_bag_noise` where the contexts are few or unlike them.
    """
    _check_known(model, means)
    trees = [member.tree_ for member in model.estimators_]
    sizes = np.asarray([tree.weighted_n_node_samples[0] for tree in trees])  # [K]
    roots = np.asarray([tree.impurity[0] for tree in trees]) / np.maximum(1.0 - 1.0 / sizes, 1e-300)
    spread = np.mean(np.var(means, axis=1, ddof=min(1, len(trees) - 1)))
    return noise_left(
        (1.0 - model.oob_score_) * np.mean(roots),
        spread * np.mean(1.0 + 1.0 / _left_out(model)),
        label_share_of(model.estimators_, model.estimators_samples_),
    )


def _check_known(model: Any, means: Array) -> None:
    """Refuse a model whose out-of-bag score does not tell the noise, and say what does."""
    otherwise = (
        "Or give the rows that it was fitted to, rank(model, loss, pool, labelled=(X, y)), or EnsembleOf(model, "
        "noise_sd=...), where out_of_bag_noise(model, X, y) estimates it if it can."
    )
    name = type(model).__name__
    if not model.bootstrap:
        raise StakesError(
            "the noise of labels is estimated on rows that members were not fitted on, and "
            f"{name}(bootstrap=False) leaves none out. Fit with bootstrap=True, oob_score=True. {otherwise}"
        )
    if model.oob_score is not True or not hasattr(model, "oob_score_"):
        raise StakesError(f"the noise of labels is not known: fit {name}(bootstrap=True, oob_score=True). {otherwise}")
    by_variance = [getattr(each, "criterion", None) in ("squared_error", "friedman_mse") for each in model.estimators_]
    if means.ndim > 2 or not all(by_variance):
        raise StakesError(
            f"oob_score_ tells the noise only of one output and trees split by squared error. {otherwise}"
        )
    if np.min(_left_out(model)) == 0:
        raise StakesError(f"oob_score_ is wrong: some rows are in the sample of every member. Fit more. {otherwise}")


def _left_out(model: Any) -> Array:
    """[n]: how many members have not seen each row."""
    counts = np.zeros(len(model.oob_prediction_), dtype=int)
    for rows in model.estimators_samples_:
        counts += np.bincount(rows, minlength=len(counts)) == 0
    return counts


for _kind in (
    RandomForestClassifier,
    ExtraTreesClassifier,
    RandomForestRegressor,
    ExtraTreesRegressor,
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
    VotingRegressor,
):
    register_model(_kind, prepare_ensemble)
