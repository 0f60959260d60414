"""CatBoost's virtual ensembles: many members for the price of one, from the last half of its iterations.

A model that was fitted with `posterior_sampling=True` is a walk through the posterior, and each part of the walk is a
member (Malinin, Prokhorenkova and Ustimenko, 2021). Members of one walk are more alike than members of a bootstrap, so
that what labels are worth comes out lower; which rows are worth most differs less. Needs catboost.

Sizes: n rows, p features, K members, C classes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import catboost
import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from stakes._utils.array import Array, on_host
from stakes._utils.tables import n_rows
from stakes.beliefs import NormalEnsemble
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts, register_model
from stakes.models.bootstrap import as_member
from stakes.models.ensembles import Members, checked_noise, noise_left, prepare_members

_MEMBERS = 20
_FOLDS = 3
_LOGISTIC, _SOFTMAX, _NORMAL = ("Logloss", "CrossEntropy"), ("MultiClass",), "RMSEWithUncertainty"


class VirtualEnsemble(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model of CatBoost, fitted with `posterior_sampling=True`, whose virtual ensembles are its belief.

    The noise of a real target is what `loss_function="RMSEWithUncertainty"` says of each row; else one number, from
    the residuals of three-fold cross-validation.

    Args:
        estimator: A `CatBoostClassifier` or `CatBoostRegressor`.
        members: The number K of virtual ensembles; half as many as there are trees, where these are fewer.
        random_state: The seed of the fit and of the folds.

    Examples:
        >>> from catboost import CatBoostClassifier  # doctest: +SKIP
        >>> model = VirtualEnsemble(CatBoostClassifier()).fit(X, y)  # doctest: +SKIP
        >>> rank(model, LogLoss(), pool)  # doctest: +SKIP
    """

    def __init__(self, estimator: Any, members: int = _MEMBERS, random_state: int = 0) -> None:
        self.estimator = estimator
        self.members = members
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> VirtualEnsemble:  # noqa: N803 (scikit-learn's names)
        """Fit the model, and estimate the noise of labels.

        Args:
            X: Rows [n, p].
            y: Labels [n].

        Returns:
            The ensemble itself.
        """
        labels = on_host(y)
        self.model_ = self._sampling().fit(X, labels)
        self.members_ = _members(self.model_, self.members)
        if is_classifier(self.model_):
            self.classes_ = np.asarray(self.model_.classes_)
        elif _loss(self.model_) != _NORMAL:
            self.noise_sd_ = self._noise(X, labels.astype(float))
        return self

    def _sampling(self) -> Any:
        model = as_member(type(self.estimator)(**self.estimator.get_params()))  # a copy of a fitted one takes none
        known = model.get_params()
        seed = {} if {"random_seed", "random_state"} & set(known) else {"random_seed": self.random_state % 2**31}
        return model.set_params(posterior_sampling=True, **seed)

    def _noise(self, rows: Any, targets: Array) -> Array:
        """What is left of the mean square of residuals at rows held out, less the spread of members there."""
        if n_rows(rows) < _FOLDS:
            return np.asarray(np.nan)
        squares, spreads = [], []
        for inside, outside in KFold(_FOLDS, shuffle=True, random_state=self.random_state).split(
            np.arange(len(targets))
        ):
            model = self._sampling().fit(_safe_indexing(rows, inside), targets[inside])
            means = _raw(model, self.members_, _safe_indexing(rows, outside))[:, :, 0]
            squares.append((targets[outside] - means.mean(axis=1)) ** 2)
            spreads.append(means.var(axis=1, ddof=1) * (1.0 + 1.0 / self.members_))
        return noise_left(np.mean(np.concatenate(squares)), np.mean(np.concatenate(spreads)), 0.0)

    @property
    def report_(self) -> tuple[str, ...]:
        """A sentence on what the members are."""
        check_is_fitted(self)
        name = type(self.estimator).__name__
        noise = " The noise of labels is from residuals of three-fold cross-validation." * hasattr(self, "noise_sd_")
        return (
            f"{name} was fitted to the labelled rows with posterior_sampling=True; {self.members_} virtual ensembles "
            f"of it are its belief: quicker than {self.members_} fits, and more alike.{noise}",
        )

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Predict by the model.

        Args:
            X: Rows [n, p].

        Returns:
            [n].
        """
        found = np.asarray(self.model_.predict(X))
        if is_classifier(self.model_):
            return found.reshape(len(found))
        return found[:, 0] if found.ndim == 2 else found

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Class probabilities of the model.

        Args:
            X: Rows [n, p].

        Returns:
            [n, C].
        """
        return np.asarray(self.model_.predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = BaseEstimator.__sklearn_tags__(self)
        tags.estimator_type = "classifier" if is_classifier(self.estimator) else "regressor"
        tags.input_tags.allow_nan = True
        return tags


def samples_posterior(model: Any) -> bool:
    """Whether a model of CatBoost is fitted, and was so by sampling from its posterior."""
    return bool(model.is_fitted() and model.get_all_params().get("posterior_sampling"))


def _members(model: Any, wanted: int) -> int:
    """How many virtual ensembles there can be: each needs a tree of its own in the second half."""
    if model.tree_count_ < 4:
        raise StakesError(
            f"virtual ensembles are parts of the second half of the trees, and this {type(model).__name__} has "
            f"{model.tree_count_}: raise `iterations`, or give Bootstrap(model).fit(X, y)"
        )
    return int(min(wanted, model.tree_count_ // 2))


def _loss(model: Any) -> str:
    return str(model.get_all_params()["loss_function"]).partition(":")[0]


def _raw(model: Any, members: int, rows: Any) -> Array:
    """[n, K, .]: what each virtual ensemble says, before it is made probabilities."""
    found = model.virtual_ensembles_predict(
        rows, prediction_type="VirtEnsembles", virtual_ensembles_count=members, thread_count=1
    )
    return np.asarray(found, dtype=float).reshape(n_rows(rows), members, -1)


def _probabilities(values: Array) -> Array:
    """[n, K, C]: of logits, one alone being that of the second of two classes."""
    if values.shape[2] == 1:
        values = np.concatenate([np.zeros_like(values), values], axis=2)
    odds = np.exp(values - values.max(axis=2, keepdims=True))
    return odds / odds.sum(axis=2, keepdims=True)


def _prepare(model: Any, contexts: Any, members: int, noise: Any, *, target: Any, classes: Any) -> RowsToBelief:
    if is_regressor(model):
        return _prepare_numbers(model, contexts, members, noise, target)
    if _loss(model) not in (*_LOGISTIC, *_SOFTMAX):
        raise TypeError(f"virtual ensembles give class probabilities for Logloss and MultiClass; got {_loss(model)}")
    known = np.asarray(model.classes_).tolist()
    table = partial(_table, model, members)
    each = tuple(lambda values, k=k: values[:, k] for k in range(members))
    found = Members(predict=each, classes=(known,) * members, known=known, prepare=table)
    return prepare_members(found, contexts, target=target, classes=classes)


def _table(model: Any, members: int, rows: Any) -> Array:
    return _probabilities(_raw(model, members, rows))


def _prepare_numbers(model: Any, contexts: Any, members: int, noise: Any, target: str) -> RowsToBelief:
    if noise is None and _loss(model) != _NORMAL:
        raise StakesError(
            "virtual ensembles say what is not known of the mean, and not the noise of labels: fit with "
            f'loss_function="{_NORMAL}", or give rank(model, loss, pool, labelled=(X, y))'
        )

    def normal(rows: Any, with_noise: bool = True) -> tuple[Array, Any]:
        values = _raw(model, members, rows)
        if not with_noise:
            return values[:, :, 0], 0.0
        return values[:, :, 0], np.sqrt(values[:, :, 1]) if noise is None else checked_noise(noise)

    there, there_sd = normal(contexts, target == "label")

    def belief(rows: Any) -> NormalEnsemble:
        here, here_sd = normal(rows)
        return NormalEnsemble(here, here_sd, there, there_sd)

    return belief


@adapts(catboost.CatBoost)
def _catboost(model: Any, contexts: Any, *, target: Any, classes: Any, **_: Any) -> RowsToBelief:
    """Its virtual ensembles, where it was fitted for them."""
    if not samples_posterior(model):
        raise TypeError(
            f"a {type(model).__name__} says how sure it is if it is fitted with posterior_sampling=True. Or give the "
            "rows and labels that it was fitted to: rank(model, loss, pool, labelled=(X, y))."
        )
    return _prepare(model, contexts, _members(model, _MEMBERS), None, target=target, classes=classes)


def _of_ensemble(model: VirtualEnsemble, contexts: Any, *, target: Any, classes: Any, **_: Any) -> RowsToBelief:
    check_is_fitted(model)
    noise = getattr(model, "noise_sd_", None)
    return _prepare(model.model_, contexts, model.members_, noise, target=target, classes=classes)


register_model(VirtualEnsemble, _of_ensemble)
