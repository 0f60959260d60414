"""What a fitted model is and takes: whether it is fitted, its classes, columns, gaps, and trained weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from stakes._utils.tables import Table, check_names, column_names, n_columns
from stakes.exceptions import StakesError
from stakes.models.base import (
    BAYESIAN_LINEAR,
    LABELS_SEEN,
    TRANSFORMED_TARGET,
    LabelsLeftOut,
    adapter_of,
    is_marginal,
    is_one_of,
    last_step_counted,
    no_belief,
)
from stakes.models.bootstrap import Bootstrap, library_of
from stakes.models.encoding import TableEncoder
from stakes.models.ensembles import EnsembleOf, union_of
from stakes.models.on_device import OnDevice

_BAGGING = ("sklearn.ensemble.BaggingClassifier", "sklearn.ensemble.BaggingRegressor")
_VOTING = ("sklearn.ensemble.VotingClassifier", "sklearn.ensemble.VotingRegressor")
_OUT_OF_BAG = ("sklearn.ensemble.RandomForestRegressor", "sklearn.ensemble.ExtraTreesRegressor", _BAGGING[1])
_NAMES = ("class_weight", "scale_pos_weight")  # the second is that of gradient boosting libraries


def trained_weights(model: Any) -> str | None:
    """What to warn of where `model` was fitted with class weights, also inside pipelines and ensembles; else None.

    A loss trained into the model is not the loss in the acquisition: such a model expects labels that will not come,
    and a weight in the loss counts twice. Sample weights that were given to `fit` leave no trace and are not found.
    """
    found = next(_weights(model), None)
    if found is None:
        return None
    return (
        f"the model was fitted with {found}: a loss trained into the model is not the loss in the acquisition. The "
        "model then expects labels that will not come, and a weight in the loss counts twice. Fit it without weights, "
        "and give them to the loss."
    )


def _weights(model: Any) -> Iterator[str]:
    """Each weight that is set, as it would be written, in `model` and all that it is made of."""
    if isinstance(model, EnsembleOf):
        model = model.members
    for each in model if isinstance(model, list | tuple) else [model]:
        parameters = each.get_params(deep=True) if callable(getattr(each, "get_params", None)) else {}
        for name, value in parameters.items():
            if name.rpartition("__")[2] in _NAMES and _weighs(value):
                yield f"{name}={value!r}"
        for found in (each, *parameters.values()):
            if hasattr(found, "best_estimator_"):  # a search may have chosen weights
                yield from _weights(found.best_estimator_)


def _weighs(value: Any) -> bool:
    """Whether classes count differently."""
    if isinstance(value, Mapping):
        return len({*value.values(), 1}) > 1  # a class that is not named counts 1
    return value is not None and not (np.isscalar(value) and value == 1)


def taken_for_granted(model: Any) -> tuple[str, ...]:
    """What the belief of `model` estimates that the model does not know: sentences for the notes of a ranking."""
    if isinstance(model, BaseSearchCV):
        return taken_for_granted(getattr(model, "best_estimator_", model.estimator))
    last = last_step_counted(model) if isinstance(model, Pipeline) else model
    if last is not model and not is_one_of(last, *BAYESIAN_LINEAR):
        return taken_for_granted(last)
    if is_one_of(last, TRANSFORMED_TARGET):
        return taken_for_granted(getattr(last, "regressor_", last.regressor))
    if is_one_of(last, *BAYESIAN_LINEAR) and last.fit_intercept and not hasattr(last, LABELS_SEEN):
        return (_INTERCEPT.format(name=type(last).__name__, attribute=LABELS_SEEN),)
    if is_one_of(last, *_OUT_OF_BAG):
        return (_NOISE,)
    if isinstance(last, Bootstrap) and last.noise_sd is None and hasattr(last, "noise_sd_"):
        return (_NOISE,)
    return ()


_INTERCEPT = (
    "{name} keeps no count of its labels, which the uncertainty of its intercept needs: it is estimated, as if their "
    "rows were spread like the contexts. model.{attribute} = len(y), or a StandardScaler before it in a pipeline, "
    "tells it."
)
_NOISE = (
    "The noise of labels is estimated out of bag: what is left of the mean square of residuals at rows that members "
    "were not fitted on, less the spread of members as far as that is not the noise of single labels."
)


def known_classes(model: Any) -> Sequence[Any] | None:
    """The classes of the columns of a model's belief, in their order; None where there are none or no names."""
    if isinstance(model, EnsembleOf):
        return known_classes(model.members) if model.classes is None else model.classes
    if isinstance(model, list | tuple):
        return union_of([each.classes_ for each in model]) if all(hasattr(each, "classes_") for each in model) else None
    found = getattr(model, "classes_", None)
    several = isinstance(found, list) and len(found) > 0 and isinstance(found[0], np.ndarray)  # of outputs
    if not several:
        return found
    from stakes.models.forests import known_classes_of

    names: Sequence[Any] = known_classes_of(model)
    return names


def n_labels(model: Any) -> int | None:
    """How many labels a model was fitted to, where it keeps that, or a step or a part of it does; None elsewhere."""
    found = (_n_labels(each) for each in _members(model))
    return next((each for each in found if each is not None), None)


def _n_labels(model: Any) -> int | None:
    if isinstance(model, Pipeline):
        return n_labels([step for _, step in model.steps])
    if (seen := getattr(model, LABELS_SEEN, None)) is not None:
        return int(np.max(seen))  # of a scaler by column, where there were gaps
    if hasattr(model, "tree_"):
        return round(float(model.tree_.weighted_n_node_samples[0]))  # a row counts as often as it was drawn
    if (isinstance(model, Bootstrap) or is_one_of(model, *_BAGGING)) and hasattr(model, "estimators_"):
        return len(model.estimators_samples_[0])
    for name in ("labels_", "X_train_", "X_"):  # of Gaussian processes
        if isinstance(rows := getattr(model, name, None), np.ndarray):
            return len(rows)
    inside = [getattr(model, name, None) for name in ("pipeline_", "model", "best_estimator_", "regressor_")]
    return n_labels([*(each for each in inside if each is not None), *list(getattr(model, "estimators_", ()))])


def labels_left_out(model: Any) -> LabelsLeftOut | None:
    """What a model says of its labels, each left out; None where it does not know without being fitted anew."""
    if isinstance(model, Pipeline):
        return labels_left_out(model[-1])
    for name in ("pipeline_", "best_estimator_", "model_"):
        if (inside := getattr(model, name, None)) is not None:
            return labels_left_out(inside)
    method = getattr(model, "left_out", None)
    found = method() if callable(method) else None
    return found if isinstance(found, LabelsLeftOut) else None


def check_fitted(model: Any) -> None:
    """Refuse a scikit-learn model, or a list with one, that has not been fitted."""
    for each in _members(model):
        if not isinstance(each, type) and is_marginal(each):
            raise no_belief(each)
        if isinstance(each, type):
            raise TypeError(f"a fitted model is needed; got the class {each.__name__} itself")
        if isinstance(each, BaseEstimator) and not callable(getattr(_last_step(each), "belief", None)):
            _check_fitted(each)


def _check_fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise NotFittedError(
            f"{type(model).__name__} is not fitted yet. Fit it, or give the rows and labels to fit it to: rank(model, "
            "loss, pool, labelled=(X, y)), or rank(model, loss, X, y=y) where y has gaps."
        ) from error


def check_columns(model: Any, name: str, table: Table) -> None:
    """Refuse columns that are not those the model was fitted with, in that order, as the model itself would.

    A ColumnTransformer picks its own columns by name and is left to do so.
    """
    for first in map(_first_step, _members(model)):
        if _picks_columns(first) or len(getattr(table, "shape", ())) != 2:
            continue
        if (known := getattr(first, "feature_names_in_", None)) is not None:
            check_names(name, _strings(table), list(np.asarray(known)), "those the model was fitted with")
        wanted = getattr(first, "n_features_in_", None)
        if wanted is not None and wanted != n_columns(table):
            raise StakesError(
                f"{name} must have the {wanted} columns that {type(first).__name__} was fitted with; got "
                f"{n_columns(table)}"
            )


def accepts_shapes(model: Any) -> bool:
    """Whether rows may have any shape: scikit-learn's models want columns, all others see for themselves."""
    return not any(isinstance(_first_step(each), BaseEstimator) for each in _members(model))


def accepts_missing(model: Any) -> bool:
    """Whether NaN may be among the features: by scikit-learn's tags, through all steps up to an imputer.

    A ColumnTransformer decides for itself, column by column.
    """
    return all(_accepts_missing(each) for each in _members(model))


def served_by_own_belief(model: Any) -> bool:
    """Whether the belief comes from a method `belief(pool, contexts)`, which knows neither target nor classes."""
    return adapter_of(_last_step(model)) is None


def _accepts_missing(model: Any) -> bool:
    if isinstance(model, BaseSearchCV):
        return _accepts_missing(getattr(model, "best_estimator_", model.estimator))
    if inside := _inside(model):
        return all(map(_accepts_missing, inside))
    if not isinstance(model, Pipeline):
        return _picks_columns(model) or _tagged(model)
    for _, step in model.steps:
        if step is None or step == "passthrough":
            continue
        if not _accepts_missing(step):
            return False
        if isinstance(step, TableEncoder) or _picks_columns(step) or "impute" in type(step).__module__:
            return True  # gaps are filled, or whoever comes next says that they are not
    return True


def _picks_columns(step: Any) -> bool:
    """Whether each part of a step sees the columns that it asks for."""
    return isinstance(step, FeatureUnion) or is_one_of(step, "sklearn.compose.ColumnTransformer")


def _tagged(model: Any) -> bool:
    if not isinstance(model, BaseEstimator):
        return library_of(model) == "catboost"
    tags = get_tags(model)
    return bool(tags.input_tags.allow_nan or tags.no_validation)


def _inside(model: Any) -> list[Any]:
    """The estimators that `model` hands the features to as they came, where it does nothing else with them."""
    if isinstance(model, OnDevice):
        return [model.model]
    if is_one_of(model, TRANSFORMED_TARGET):
        return [] if model.regressor is None else [model.regressor]
    if isinstance(model, MultiOutputRegressor | Bootstrap) or is_one_of(model, *_BAGGING):
        return [] if model.estimator is None else [model.estimator]
    if is_one_of(model, *_VOTING):
        return [each for _, each in model.estimators if each != "drop"]
    return []


def _members(model: Any) -> list[Any]:
    model = model.members if isinstance(model, EnsembleOf) else model
    return list(model) if isinstance(model, list | tuple) else [model]


def _first_step(model: Any) -> Any:
    """Whoever sees the features first."""
    if isinstance(model, OnDevice):
        return _first_step(model.model)
    if isinstance(model, BaseSearchCV):
        return _first_step(getattr(model, "best_estimator_", model.estimator))
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step is not None and step != "passthrough"]
        return _first_step(steps[0]) if steps else model
    return model


def _last_step(model: Any) -> Any:
    """Whoever gives the belief; the search itself where it holds no estimator."""
    if isinstance(model, Pipeline):
        return _last_step(model.steps[-1][1])
    best = getattr(model, "best_estimator_", None) if isinstance(model, BaseSearchCV) else None
    return model if best is None else _last_step(best)


def _strings(table: Table) -> list[str] | None:
    """Names as scikit-learn counts them: only where all are text."""
    names = getattr(table, "columns", None)
    if names is not None and not all(isinstance(each, str) for each in names) and not hasattr(table, "column_names"):
        return None
    return column_names(table)
