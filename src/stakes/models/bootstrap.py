"""An ensemble of any classifier or regressor, each member fitted on rows drawn with replacement.

An estimator that takes weights of rows is given how often each was drawn; others are given the rows drawn.

Sizes: n rows, K members, C classes, d outputs.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, has_fit_parameter, validate_data
from threadpoolctl import threadpool_limits

from stakes._utils.arguments import as_seed
from stakes._utils.array import Array
from stakes._utils.compute import all_parts
from stakes.exceptions import StakesError
from stakes.models.base import is_one_of, register_model
from stakes.models.ensembles import (
    Members,
    is_pure,
    label_share_of,
    means_of,
    members_of,
    moment_noise,
    prepare_ensemble,
    probabilities,
    probabilities_of,
)

_USUAL: dict[str, dict[str, Any]] = {  # members are many and small: one core for each, and nothing printed
    "lightgbm": {"n_jobs": 1, "verbosity": -1},
    "xgboost": {"n_jobs": 1, "verbosity": 0},
    "catboost": {"thread_count": 1, "verbose": False, "allow_writing_files": False},
}
_SMALL = 100_000  # cells of a table: copies are fitted to it on one thread, as many would wait for one another
_ALSO = {"verbosity": ("verbose",), "verbose": ("silent", "logging_level", "verbose_eval")}  # other names of a setting


class Bootstrap(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An ensemble of clones of any estimator, each fitted on as many rows as there are, drawn with replacement.

    Every class keeps at least one row in every member: where a draw misses a class, one of its rows takes the place of
    a row whose class is there twice. So members agree more than a plain bootstrap's on classes that have few rows. As
    long as there is one class only, members say that class (most classifiers refuse to be fitted to one). An estimator
    whose `fit` takes `sample_weight`, all of its parts too, is given all rows, weighted by how often each was drawn: so
    that its own cross-validation finds rows of every class. Members of LightGBM, XGBoost and CatBoost run on one core
    each (`n_jobs` fits several at once), and XGBoost's are given classes as the numbers that it wants.

    Regressors have `noise_sd_`, the noise of labels estimated out of bag (its bias: `stakes.models.ensembles`), or what
    `noise_sd` says; NaN where no row was left out, as with a single label. A prediction is the members' mean.

    Args:
        estimator: A classifier or a regressor of scikit-learn, or one with its methods.
        members: The number K of clones.
        noise_sd: The sd of labels about a member's mean, a number or one for each output; None: estimated.
        random_state: A whole number or a generator; None: other draws at each fit, as in scikit-learn. Every
            `random_state` of a clone is drawn from it.
        n_jobs: Workers that fit clones, as in scikit-learn.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> from stakes import SquaredError, rank
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = Bootstrap(Ridge(), members=10, random_state=0).fit(X[:50], y[:50])
        >>> len(rank(model, SquaredError(), pool=X[50:], n=3).indices)
        3
    """

    def __init__(
        self,
        estimator: Any,
        members: int = 20,
        *,
        noise_sd: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.members = members
        self.noise_sd = noise_sd
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Bootstrap:  # noqa: N803 (scikit-learn's names)
        """Fit the members.

        Args:
            X: Rows [n, p], which go to members as they came, so that names and types of columns are kept.
            y: Labels [n], or [n, d] for a regressor of several outputs.

        Returns:
            The ensemble itself, with `estimators_`, `estimators_samples_` and, of a regressor, `noise_sd_`.

        Raises:
            StakesError: If `members` is no whole number of 1 or more, or there are no labels.
        """
        if not isinstance(self.members, int | np.integer) or self.members < 1:
            raise StakesError(f"members must be a whole number, 1 or more; got {self.members!r}")
        rows, targets = self._checked(X, y)
        given = self.random_state
        if isinstance(given, np.random.Generator):
            given = as_seed(given) % 2**32  # scikit-learn knows no generators, and no larger numbers
        random_state = check_random_state(given)
        codes = (
            np.unique(targets, return_inverse=True)[1] if is_classifier(self.estimator) else np.zeros(len(targets), int)
        )
        self.estimators_samples_ = [resampled(codes, random_state) for _ in range(self.members)]
        copies = [_seeded(as_member(clone(self.estimator)), random_state) for _ in range(self.members)]
        pairs = list(zip(copies, self.estimators_samples_, strict=True))
        given = codes if is_classifier(self.estimator) and wants_codes(self.estimator) else targets
        with threadpool_limits(1) if math.prod(np.shape(rows)) <= _SMALL else nullcontext():  # else threads wait
            self.estimators_ = all_parts(
                _fitted, lambda: ((copy, rows, given, each) for copy, each in pairs), self.n_jobs
            )
        if not is_classifier(self.estimator):
            self.noise_sd_ = self._noise(rows, targets)
        return self

    def _checked(self, X: Any, y: Any) -> tuple[Any, Array]:  # noqa: N803
        """Rows that can be indexed, and targets [n] or [n, d]; sets what scikit-learn wants to know of them."""
        if y is None:
            raise StakesError("requires y to be passed, but the target y is None")
        validate_data(self, X, reset=True, skip_check_array=True)
        rows, y = indexable(X, y)
        if is_classifier(self.estimator):
            check_classification_targets(y)
            targets = column_or_1d(y, warn=True)
            self.classes_ = np.unique(targets)
        else:
            targets = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
        return rows, targets

    def _noise(self, rows: Any, targets: Array) -> Array:
        if self.noise_sd is not None:
            return np.asarray(self.noise_sd, dtype=float)
        members = members_of(self)
        return moment_noise(targets, means_of(members, rows), self.estimators_samples_, members.label_share)

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Predict by all members together.

        Args:
            X: Rows [n, p].

        Returns:
            [n]: the class of the largest mean probability; or the members' mean, [n] or [n, d].
        """
        check_is_fitted(self)
        if is_classifier(self.estimator):
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return np.mean(means_of(members_of(self), X), axis=1)

    @property
    def report_(self) -> tuple[str, ...]:
        """A sentence on what the members are."""
        check_is_fitted(self)
        name, count = type(self.estimator).__name__, len(self.estimators_samples_[0])
        drawn = "weighted as often as they were drawn" if takes_weights(self.estimator) else "drawn"
        votes = (
            ""
            if not is_classifier(self.estimator) or hasattr(self.estimators_[0], "predict_proba")
            else (" It has no predict_proba: each member votes for one class.")
        )
        return (
            f"The belief is what {len(self.estimators_)} copies of {name} say, each fitted to {count} labelled rows, "
            f"{drawn} with replacement.{votes}",
        )

    @available_if(lambda self: is_classifier(self.estimator))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Class probabilities.

        Args:
            X: Rows [n, p].

        Returns:
            [n, C]: the members' mean, in the order of `classes_`.
        """
        members = members_of(self)
        return np.mean(probabilities_of(members, X, self.classes_.tolist()), axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Accuracy of a classifier, R^2 of a regressor.

        Args:
            X: Rows [n, p].
            y: Their labels.
            sample_weight: [n], or None for equal ones.

        Returns:
            The score.
        """
        measure = accuracy_score if is_classifier(self.estimator) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags, own = BaseEstimator.__sklearn_tags__(self), get_tags(self.estimator)
        tags.estimator_type, tags.input_tags, tags.target_tags = own.estimator_type, own.input_tags, own.target_tags
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = tags.target_tags.multi_output = False
        return tags


def resampled(codes: Array, random_state: np.random.RandomState) -> Array:
    """[n]: positions drawn with replacement, with every class (numbers [n]) among them."""
    sample = random_state.randint(len(codes), size=len(codes))
    counts = np.bincount(codes[sample], minlength=codes.max() + 1)  # [C]
    for missing in np.flatnonzero(counts == 0):
        place = random_state.choice(
            np.flatnonzero(counts[codes[sample]] > 1)
        )  # there is one: a class misses no row for itself
        counts[codes[sample[place]]] -= 1
        sample[place] = random_state.choice(np.flatnonzero(codes == missing))
        counts[missing] = 1
    return sample


def _seeded(estimator: Any, random_state: np.random.RandomState) -> Any:
    """The estimator with its own seed wherever it takes one."""
    names = [name for name in sorted(estimator.get_params()) if name.rpartition("__")[2] == "random_state"]
    return estimator.set_params(**{name: random_state.randint(np.iinfo(np.int32).max) for name in names})


def _fitted(estimator: Any, rows: Any, targets: Array, sample: Array) -> Any:
    chosen = targets[sample]
    if is_classifier(estimator) and np.all(chosen == chosen[0]):
        estimator = DummyClassifier(strategy="most_frequent")
    elif takes_weights(estimator):
        counts = np.bincount(sample, minlength=len(targets)).astype(float)
        return estimator.fit(rows, targets, sample_weight=counts)
    return estimator.fit(_safe_indexing(rows, sample), chosen)


def takes_weights(estimator: Any) -> bool:
    """Whether `fit` takes weights of rows, and so does every estimator that it fits in turn.

    RANSAC fits to a few rows at a time, which may all have no weight.
    """
    few_at_a_time = is_one_of(estimator, "sklearn.linear_model.RANSACRegressor")
    if few_at_a_time or not has_fit_parameter(estimator, "sample_weight"):
        return False
    inside = estimator.get_params(deep=False).values()
    return all(takes_weights(each) for each in inside if hasattr(each, "fit") and hasattr(each, "predict"))


def as_member(estimator: Any) -> Any:
    """The estimator on one core and quiet, where it is of a library that is neither by itself and nothing was said."""
    known = estimator.get_params()
    usual = _USUAL.get(library_of(estimator), {})
    names = {name: (name, *_ALSO.get(name, ())) for name in usual}
    unsaid = {name: value for name, value in usual.items() if all(known.get(each) is None for each in names[name])}
    return estimator.set_params(**unsaid) if unsaid else estimator


def wants_codes(estimator: Any) -> bool:
    """Whether a classifier wants its classes as 0 .. C - 1, as those of XGBoost do."""
    return library_of(estimator) == "xgboost"


def library_of(estimator: Any) -> str:
    """The package that the class, or one that it inherits from, comes from: that of boosting if it is one."""
    packages = [kind.__module__.partition(".")[0] for kind in type(estimator).__mro__]
    return next((each for each in packages if each in _USUAL), packages[0])


def _checked_rows(model: Bootstrap, rows: Any) -> Any:
    """Rows with the features that the model was fitted on, as they came."""
    if getattr(rows, "ndim", 2) != 2:
        raise StakesError(f"rows must be [n, p]; got {list(rows.shape)}. Reshape your data: rows[None, :] for one row.")
    validate_data(model, rows, reset=False, skip_check_array=True)
    return indexable(rows)[0]


@members_of.register(Bootstrap)
def _resampled_members(model: Bootstrap) -> Members:
    check_is_fitted(model)

    if not is_classifier(model.estimator):
        return Members(
            predict=tuple(member.predict for member in model.estimators_),
            prepare=partial(_checked_rows, model),
            samples=lambda: model.estimators_samples_,
            noise=lambda means: model.noise_sd_,
            label_share=label_share_of(model.estimators_, model.estimators_samples_),
        )
    return Members(
        predict=tuple(probabilities(member) for member in model.estimators_),
        classes=tuple(_own_classes(model, member) for member in model.estimators_),
        known=model.classes_.tolist(),
        pure=all(map(is_pure, model.estimators_)),
        prepare=partial(_checked_rows, model),
    )


def _own_classes(model: Bootstrap, member: Any) -> Array:
    """[c]: those of the columns of a member, by name."""
    return model.classes_[np.asarray(member.classes_, dtype=int)] if wants_codes(model.estimator) else member.classes_


register_model(Bootstrap, prepare_ensemble)
