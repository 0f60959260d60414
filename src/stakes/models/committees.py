"""Members of voting ensembles and of lists, and those at the end of pipelines and searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from stakes.models.base import best_of, register_model
from stakes.models.forests import answers, ensemble, is_pure, members_of, probabilities
from stakes.models.members import Members


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


@members_of.register(list)
@members_of.register(tuple)
def _listed(models: Sequence[Any]) -> Members:
    """Fitted estimators of one kind, classifiers (not necessarily of the same classes) or regressors."""
    for model in models:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
        if not hasattr(model, "predict"):
            raise TypeError(
                f"a list of models must hold fitted estimators with predict; got {type(model).__name__}. Networks of "
                "torch with a noise level or weights go into stakes.models.networks.NetworkEnsemble."
            )
        if isinstance(getattr(model, "classes_", None), list):
            raise ValueError(f"{type(model).__name__} has several class outputs: give one output at a time")
    kinds = {hasattr(model, "classes_") for model in models}
    if len(kinds) > 1:
        raise TypeError(
            f"members must all be classifiers or all regressors; got {[type(each).__name__ for each in models]}"
        )
    if kinds != {True}:
        return Members(tuple(model.predict for model in models))
    return Members(
        predict=tuple(probabilities(model) for model in models),
        classes=tuple(model.classes_ for model in models),
        pure=all(map(is_pure, models)),
    )


@members_of.register(Pipeline)
def _at_the_end(model: Pipeline) -> Members:
    """Those of the last step, on what the steps before make of the rows."""
    last, before = members_of(model.steps[-1][1]), model[:-1]
    if len(model.steps) == 1:
        return last
    return last.after(before.transform)


@members_of.register(BaseSearchCV)
def _found(model: BaseSearchCV) -> Members:
    """Those of the best estimator."""
    return members_of(best_of(model))


def _kept_weights(model: Any) -> list[float] | None:
    """The weights of the estimators that were not dropped."""
    if model.weights is None:
        return None
    return [weight for weight, (_, each) in zip(model.weights, model.estimators, strict=True) if each != "drop"]


for _kind in (VotingClassifier, VotingRegressor, list, tuple):
    register_model(_kind, ensemble)
