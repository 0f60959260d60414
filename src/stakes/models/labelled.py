"""Beliefs for estimators that say nothing of how sure they are: from the rows and labels that they were fitted to.

Copies of the estimator are fitted to the labelled rows, drawn anew for each (`Bootstrap`), and what they differ on is
what it is not sure of. Steps of a pipeline before the last are fitted once: what a scaler or an encoder learns is not
in question, and a copy that has never seen a category could not predict for it. What was done is said in notes.

Sizes: n labelled rows, p features, d outputs.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_seed
from stakes._utils.array import on_host
from stakes._utils.tables import Host, check_table, column_at, column_names, is_gap, is_number, n_rows
from stakes._utils.text import counted, listed
from stakes.exceptions import StakesError
from stakes.models.base import BAYESIAN_LINEAR, LABELS_SEEN, best_of, has_belief, is_marginal, is_one_of, no_belief
from stakes.models.bootstrap import Bootstrap, library_of
from stakes.models.ensembles import EnsembleOf, out_of_bag_noise

_BAGGING = "sklearn.ensemble.BaggingRegressor"
_TREES = ("sklearn.ensemble.RandomForestRegressor", "sklearn.ensemble.ExtraTreesRegressor", _BAGGING)
_BY_VARIANCE = ("squared_error", "friedman_mse")  # splits whose impurity is the variance of labels


def with_belief(
    model: Any, labelled: tuple[Any, Any], *, random_state: RandomState = 0, n_jobs: int | None = None
) -> tuple[Any, tuple[str, ...]]:
    """A model that a belief can be had of, made of any estimator and the rows and labels that it was fitted to.

    A model that has a belief of its own is left as it is; it is fitted, if it was not.

    Args:
        model: Any classifier or regressor with scikit-learn's methods, fitted or not.
        labelled: Rows [n, p] and labels [n].
        random_state: A whole number or a generator, for the rows that are drawn.
        n_jobs: Workers that fit copies, as in scikit-learn.

    Returns:
        The model, and sentences on what was made of it.

    Raises:
        StakesError: If `labelled` is no pair of rows and labels.
        TypeError: If the model is neither a classifier nor a regressor.
    """
    rows, labels = _checked(labelled)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, notes = _served(model, rows, labels, as_seed(random_state) % 2**32, n_jobs)
    return found, (*notes, *dict.fromkeys(f"While fitting: {each.message}" for each in caught))


def ready_to_fit(estimator: Any, random_state: int) -> Any:
    """An estimator, not fitted yet, as one that a belief can be had of once it is fitted."""
    if library_of(estimator) == "catboost":
        from stakes.models.virtual_ensembles import VirtualEnsemble

        return VirtualEnsemble(estimator, random_state=random_state)
    if isinstance(estimator, Pipeline) and not has_belief(estimator):
        *before, (name, last) = estimator.steps
        return Pipeline([*before, (name, ready_to_fit(last, random_state))])
    if is_one_of(estimator, *_TREES) and _lacks_noise(estimator) and _splits_by_variance(estimator):
        return clone(estimator).set_params(bootstrap=True, oob_score=True)
    if has_belief(estimator) and not _lacks_noise(estimator):
        return estimator
    return Bootstrap(_checked_kind(estimator), random_state=random_state)


def _checked(labelled: Any) -> tuple[Any, Host]:
    """Rows and labels, as many of one as of the other, and none missing."""
    if not isinstance(labelled, tuple | list) or len(labelled) != 2:
        raise StakesError(
            f"labelled must be a pair (X, y): the rows that the model was fitted to, and their labels; got "
            f"{type(labelled).__name__}"
        )
    rows, labels = check_table("labelled rows", labelled[0], True, any_shape=True), on_host(labelled[1])
    if labels.ndim == 0 or len(labels) != n_rows(rows):
        raise StakesError(
            f"labelled=(X, y) must hold a label for each row; got {n_rows(rows)} rows and labels of shape "
            f"{list(labels.shape)}"
        )
    if labels.ndim == 1 and (gaps := np.flatnonzero(is_gap(labels))).size:
        raise StakesError(
            f"labelled=(X, y) must hold no row without a label; y is missing in {counted(gaps.size, 'row')}, the first "
            f"at {gaps[0]}. rank(model, loss, X, y=y) takes y with gaps."
        )
    return rows, labels


def _served(model: Any, rows: Any, labels: Host, seed: int, n_jobs: int | None) -> tuple[Any, tuple[str, ...]]:
    if isinstance(model, BaseSearchCV):
        searched, notes = _fitted(model, rows, labels, seed)
        found, more = _served(best_of(searched), rows, labels, seed, n_jobs)
        return (searched if found is best_of(searched) else found), (*notes, *more)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        return _served_at_the_end(model, rows, labels, seed, n_jobs)
    if library_of(model) == "catboost":
        return _virtual(model, rows, labels, seed)
    if has_belief(model) and not _lacks_noise(model):
        found, notes = _fitted(model, rows, labels, seed)
        return _counted(found, len(labels)), notes
    if is_one_of(model, *_TREES):
        return _with_noise(model, rows, labels, seed)
    ensemble = Bootstrap(_checked_kind(model), random_state=seed, n_jobs=n_jobs)
    try:
        ensemble.fit(rows, labels)
    except ValueError as error:
        raise StakesError(
            f"copies of {type(model).__name__} could not be fitted to the {len(labels)} labelled rows drawn anew: "
            f"{error}{_text_columns(rows)}"
        ) from error
    return ensemble, (f"{type(model).__name__} gives no uncertainty.", *ensemble.report_)


def _text_columns(rows: Any) -> str:
    """What to do with columns of text, where there are any."""
    names = column_names(rows)
    texts = [name for place, name in enumerate(names or ()) if not is_number(column_at(rows, place))]
    if not texts:
        return ""
    return (
        f". Columns of text must be encoded ({listed(texts)}): make_pipeline(make_column_transformer((OneHotEncoder("
        f'handle_unknown="ignore"), {texts}), remainder="passthrough"), model)'
    )


def _served_at_the_end(
    model: Pipeline, rows: Any, labels: Host, seed: int, n_jobs: int | None
) -> tuple[Any, tuple[str, ...]]:
    """The last step made one that has a belief, on what the steps before make of the rows."""
    fitted, notes = _fitted(model, rows, labels, seed)
    *before, (name, last) = fitted.steps
    found, more = _served(last, fitted[:-1].transform(rows), labels, seed, n_jobs)
    if isinstance(found, EnsembleOf):  # no estimator, which alone may stand at the end of a pipeline
        return EnsembleOf(fitted, noise_sd=found.noise_sd), (*notes, *more)
    return (fitted if found is last else Pipeline([*before, (name, found)])), (*notes, *more)


def _fitted(model: Any, rows: Any, labels: Host, seed: int) -> tuple[Any, tuple[str, ...]]:
    """The model, fitted if it was not, and a note then."""
    if not isinstance(model, BaseEstimator) or _is_fitted(model):
        return model, ()
    text = f"{type(model).__name__} was not fitted: it was fitted to the {counted(len(labels), 'labelled row')}."
    return _seeded(clone(model), seed).fit(rows, labels), (text,)


def _is_fitted(model: Any) -> bool:
    """Whether `fit` was called; a process that predicts without has nothing that ends in an underscore either."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return bool(get_tags(model).requires_fit) or any(name.endswith("_") and name[0] != "_" for name in vars(model))


def _seeded(model: Any, seed: int) -> Any:
    """The model with a seed wherever it leaves that open, so that one random state gives one ranking."""
    unsaid = [
        name
        for name, value in model.get_params(deep=True).items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    return model.set_params(**dict.fromkeys(unsaid, seed))


def _counted(model: Any, count: int) -> Any:
    """A Bayesian linear model with the number of its labels, of which it keeps no count."""
    if not is_one_of(model, *BAYESIAN_LINEAR) or hasattr(model, LABELS_SEEN):
        return model
    model = copy.copy(model)
    setattr(model, LABELS_SEEN, count)
    return model


def _lacks_noise(model: Any) -> bool:
    """Whether members predict means and the model does not know the noise of labels about them."""
    if is_one_of(model, *_TREES):
        return not (model.bootstrap and model.oob_score is True and _splits_by_variance(model))
    return is_one_of(model, "sklearn.ensemble.VotingRegressor")


def _splits_by_variance(model: Any) -> bool:
    """Whether the out-of-bag score tells the noise: of trees that are split by squared error."""
    if is_one_of(model, _BAGGING):
        return model.estimator is None or getattr(model.estimator, "criterion", None) in _BY_VARIANCE
    return model.criterion in _BY_VARIANCE


def _with_noise(model: Any, rows: Any, labels: Host, seed: int) -> tuple[Any, tuple[str, ...]]:
    """A forest or bagged regressors with the noise of labels, estimated out of bag; fitted anew where nothing is."""
    name, fitted = type(model).__name__, _is_fitted(model)
    if fitted and model.bootstrap and getattr(model, "_n_samples", None) == len(labels):
        notes = f"The noise of labels, which {name} does not know, is estimated out of bag from the labelled rows."
        return EnsembleOf(model, noise_sd=out_of_bag_noise(model, rows, labels)), (notes,)
    why = "it was fitted to other rows than those labelled" if model.bootstrap else "its members share all rows"
    model = _seeded(clone(model), seed).set_params(bootstrap=True).fit(rows, labels)
    notes = (
        f"A copy of {name} was fitted to the {counted(len(labels), 'labelled row')} with bootstrap=True: "
        f"{why if fitted else 'it was not fitted'}, and the noise of labels is estimated on rows that members were not "
        "fitted to."
    )
    return EnsembleOf(model, noise_sd=out_of_bag_noise(model, rows, labels)), (notes,)


def _virtual(model: Any, rows: Any, labels: Host, seed: int) -> tuple[Any, tuple[str, ...]]:
    """CatBoost's virtual ensembles: one fit takes as long as one member of a bootstrap."""
    from stakes.models.virtual_ensembles import VirtualEnsemble, samples_posterior

    if samples_posterior(model) and not is_regressor(model):
        return model, ()
    ensemble = VirtualEnsemble(model, random_state=seed).fit(rows, labels)
    return ensemble, ensemble.report_


def _checked_kind(model: Any) -> Any:
    """The model, refused where it is neither a classifier nor a regressor."""
    if not all(hasattr(model, method) for method in ("fit", "get_params", "set_params")):
        raise no_belief(model)
    real = is_regressor(model) or (is_marginal(model) and not hasattr(model, "predict_proba"))  # NGBoost's has no tag
    if not (is_classifier(model) or real):
        raise TypeError(
            f"{type(model).__name__} is neither a classifier nor a regressor: it predicts no label whose loss could "
            "be lowered. Give a model of the labels; it may be a step of a Pipeline before one."
        )
    return model
