"""Members of forests and of bagging.

Sizes: n rows, K members, C classes, c classes of one member, d outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any

import numpy as np
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes._array import Array
from stakes.beliefs import Belief
from stakes.models.base import Request, register_model
from stakes.models.members import Members, ensemble_belief
from stakes.models.noise import noise_of_trees
from stakes.models.trees import Trees


@singledispatch
def members_of(model: Any) -> Members:
    """The members of a fitted ensemble, in its own order."""
    raise TypeError(
        f"a {type(model).__name__} has no members that are known here: give a forest, bagging, voting, Bootstrap, a "
        "list of fitted estimators, or a function of the rows"
    )


def ensemble(model: Any, pool: Any, contexts: Any, request: Request) -> Belief:
    """The belief of the members of `model`."""
    return ensemble_belief(members_of(model), pool, contexts, request)


@members_of.register(RandomForestClassifier)
@members_of.register(ExtraTreesClassifier)
def _forest_of_classifiers(model: Any) -> Members:
    """Trees know all classes of the forest; their leaves hold the probabilities."""
    check_is_fitted(model)
    if model.n_outputs_ > 1:
        raise ValueError(f"a forest of {model.n_outputs_} class outputs has no belief here: fit one output at a time")
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
