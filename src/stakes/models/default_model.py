"""A model for those who have none: what serves for the labels at hand, and a report of everything that was done.

Labels come as they are, real numbers or classes; errors name the rows. Hyperparameters of a Gaussian process are
drawn, since a few labels do not tell them. Trees of classes are calibrated by labels left out of them
(`stakes.models.calibration`), so that none of them is sure.

Sizes: n labels, p columns, N rows, C classes, t hyperparameters, as logarithms.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_seed
from stakes._utils.tables import Host, check_table, is_number, n_columns, n_rows, take_rows
from stakes._utils.text import counted
from stakes.beliefs import VoteEnsemble
from stakes.exceptions import StakesError
from stakes.losses.multi_label import label_set_names, label_sets
from stakes.models.base import RowsToBelief, adapts, is_one_of, prepare_belief
from stakes.models.bayesian_process import BayesianProcess
from stakes.models.calibration import FOLD_TREES, calibrated_mean, found_calibration
from stakes.models.encoding import TableEncoder, as_label_sets, as_labels, check_classes, positions_of
from stakes.models.ensembles import calibrated
from stakes.models.ordered_probit import OrderedProbit

Task: TypeAlias = Literal["classes", "real"]

_FEW = 10  # distinct whole numbers that may be classes
_TREES = 100  # of a forest for a real target
_VOTERS = 200  # trees of a forest for classes
_MOST_ORDERED = 300  # labels of an ordered probit process: within seconds
_LEAF = 5  # rows in a leaf: smaller ones follow the noise of single labels, and the noise is then put too low
_TREE_CELLS = 30_000  # labels times columns that a split may look at: a hundred trees on them take three seconds
_FEW_COLUMNS = 10


class DefaultModel(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator for tables of any columns: a Bayesian process for real targets, a forest for classes.

    Columns are encoded by `TableEncoder`. Beyond `max_gp_labels` labels, and for sparse features, real targets get a
    random forest too. What was done is in `report`, what a fit warned of included.

    Args:
        task: "classes" or "real"; None: text, flags and whole numbers with few values are classes.
        classes: All classes in the order of columns, also those that no label has had; None: those of the labels.
        max_gp_labels: The most labels that a Gaussian process is fitted to: its time grows with their cube.
        random_state: A whole number or a generator, for the forest, and for the labels that hyperparameters are
            searched with where there are many.
        ordinal: Whether classes have an order, that of `classes`: then an `OrderedProbit` is fitted, up to 300 labels.
        labels: Names of labels of which a row may have several: labels are then sets of these, written as "a+c" (or
            "none"), or rows of 0 and 1; trees are grown for all of them at once.

    Examples:
        >>> import numpy as np
        >>> X = np.linspace(0.0, 1.0, 8)[:, None]
        >>> model = DefaultModel(task="real").fit(X, np.sin(X[:, 0]))
        >>> model.predict(X[:3]).shape
        (3,)
        >>> model.report[0]
        '8 labels, 1 column. The target is a number, as given.'
    """

    def __init__(
        self,
        task: Task | None = None,
        classes: Sequence[Any] | None = None,
        max_gp_labels: int = 1000,
        random_state: RandomState = 0,
        ordinal: bool = False,
        labels: Sequence[str] | None = None,
    ) -> None:
        self.task = task
        self.classes = classes
        self.max_gp_labels = max_gp_labels
        self.random_state = random_state
        self.ordinal = ordinal
        self.labels = labels

    def fit(self, X: Any, y: Any, pool: Any = None) -> DefaultModel:  # noqa: N803
        """Choose a model, and fit it.

        Args:
            X: A table [n, p] of any columns.
            y: Labels [n].
            pool: Rows [N, p] beside them by which columns are encoded, too; None: none.

        Returns:
            The model itself.

        Raises:
            StakesError: If there are no labels, some are missing, or no column tells rows apart.
            TypeError: If a real target is not made of numbers.
        """
        if y is None or np.size(y) == 0:
            raise StakesError(
                "y must hold a label; without any, stakes.cold_start(pool) says which rows to label first"
            )
        X = check_table("X", X, allow_nan=True)  # noqa: N806
        task, classes = self._checked_kind()
        labels = as_labels(y if self.labels is None else as_label_sets(y, self.labels), n_rows(X))
        self.task_, why = infer_task(labels, task, classes)
        sizes = f"{counted(len(labels), 'label')}, {counted(n_columns(X), 'column')}"
        notes = [f"{sizes}. {why}", _rows_sentence(pool)]
        self.__dict__.pop("classes_", None)  # of an earlier fit
        if self.task_ == "classes":
            self.classes_ = check_classes(labels, classes)
            notes += _class_sentences(labels, self.classes_)
            counts = np.bincount(positions_of(labels, self.classes_), minlength=len(self.classes_)) + 1.0
            self.prior_ = counts / counts.sum()  # [C]
        encoder, self.n_features_in_ = TableEncoder().fit(X, pool=pool), n_columns(X)
        features = encoder.transform(X)
        if features.shape[1] == 0:
            raise StakesError("X must have a column that tells rows apart; all are constant or empty")
        targets = positions_of(labels, self.classes_) if self.task_ == "classes" else labels.astype(float)
        seed = as_seed(self.random_state) % 2**32  # scikit-learn's most
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model, choice = self._choice(features, targets, seed)
            if isinstance(model, BayesianProcess | OrderedProbit) and pool is not None:
                model.fit(features, targets, pool=encoder.transform(pool))
            else:
                model.fit(features, targets if self.labels is None else label_sets(len(self.labels))[targets])
        if self.task_ == "classes":
            self.prior_, self.power_, self.prior_share_ = self._calibration_of(model, features, targets, seed)
            if self.prior_share_:
                choice += (
                    f" By labels left out, their mean is raised to the power {self.power_:.2g} and "
                    f"{self.prior_share_:.0%} of it given to class frequencies."
                )
        self.pipeline_ = Pipeline([("columns", encoder), ("model", model)])
        self.report_ = (*notes, *encoder.report_, *_duplicates(features), choice, *_fit_sentences(model, caught))
        return self

    @property
    def report(self) -> tuple[str, ...]:
        """Sentences on everything that was done by the last `fit`."""
        check_is_fitted(self)
        return self.report_

    def predict(self, X: Any) -> Host:  # noqa: N803
        """Predict labels.

        Args:
            X: A table [N, p] with the columns of `fit`.

        Returns:
            [N]: the mean of a real target, or the most probable class.
        """
        check_is_fitted(self)
        if self.task_ == "classes":
            return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
        return np.asarray(self.pipeline_.predict(X))

    def predict_proba(self, X: Any) -> Host:  # noqa: N803
        """Class probabilities.

        Args:
            X: A table [N, p] with the columns of `fit`.

        Returns:
            [N, C]: in the order of `classes_`.

        Raises:
            AttributeError: If the target is real.
        """
        check_is_fitted(self)
        if self.task_ != "classes":
            raise AttributeError("the target is real: predict gives its mean")
        if self.labels is not None:
            belief: Any = prepare_belief(self, X)(take_rows(X, slice(0, 1)))
            return np.asarray(belief.contexts.mean(axis=1, dtype=float))  # members are in single precision
        probabilities = np.zeros((n_rows(X), len(self.classes_)))
        probabilities[:, self.pipeline_[-1].classes_] = self.pipeline_.predict_proba(X)
        return calibrated_mean(probabilities, self.prior_, self.power_, self.prior_share_)

    def _checked_kind(self) -> tuple[Task | None, Sequence[Any] | None]:
        """The task and the classes, as far as they are given; of several labels all sets of them."""
        if not self.ordinal and self.labels is None:
            return self.task, self.classes
        if self.task == "real" or (self.ordinal and self.labels is not None):
            raise StakesError("an order is one of classes, and labels are classes of their own: give one of them")
        if self.labels is None:
            return "classes", self.classes
        names = label_set_names(self.labels)
        if self.classes is not None and list(self.classes) != list(names):
            raise StakesError(f"the classes of several labels are their sets, {list(names)}; got {list(self.classes)}")
        return "classes", names

    def _calibration_of(self, model: Any, features: Any, targets: Host, seed: int) -> tuple[Host, float, float]:
        """[C]: class frequencies; the power of the mean of members, and the share that goes to frequencies."""
        if isinstance(model, OrderedProbit):
            return self.prior_, 1.0, 0.0  # which is calibrated by itself
        prior, labels = self.prior_, targets
        if self.labels is not None:
            sets = label_sets(len(self.labels))
            there = (sets[targets].sum(axis=0) + 1.0) / (len(targets) + 2.0)  # [L]
            prior, labels = np.prod(np.where(sets == 1, there, 1.0 - there), axis=1), sets[targets]
        few = clone(model).set_params(n_estimators=FOLD_TREES, oob_score=False)

        def predict(seen: Host, asked: Host) -> Host:
            if model.max_samples is not None:
                few.set_params(max_samples=min(model.max_samples, len(seen)))  # no more than a fold leaves
            return _mean_of(few.fit(features[seen], labels[seen]), features[asked], len(prior))

        return prior, *found_calibration(predict, targets, len(prior), np.random.default_rng(seed))

    def _choice(self, features: Any, targets: Host, seed: int) -> tuple[Any, str]:
        """The model to fit, and a sentence that says which and why."""
        if self.ordinal and isinstance(features, np.ndarray) and len(targets) <= min(_MOST_ORDERED, self.max_gp_labels):
            what = "Classes with an order: an ordered probit process, averaged over its hyperparameters."
            return OrderedProbit(range(len(self.classes_)), random_state=seed), what
        if self.task_ == "classes":
            from sklearn.ensemble import ExtraTreesClassifier

            forest = ExtraTreesClassifier(_VOTERS, random_state=seed)
            return _within_seconds(forest, features, f"Classes: {_VOTERS} extremely randomised trees.")
        if isinstance(features, np.ndarray) and len(targets) <= self.max_gp_labels:
            what = "A real target: a Gaussian process (Matern 5/2, a length for each column, noise)"
            return BayesianProcess(random_state=seed), f"{what}, averaged over its hyperparameters."
        if len(targets) < 2:
            raise StakesError("a forest on sparse features needs 2 labels at least; one came. Give dense features")
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(_TREES, min_samples_leaf=_LEAF, oob_score=True, random_state=seed)
        why = f"more than {self.max_gp_labels} labels" if isinstance(features, np.ndarray) else "sparse features"
        what = f"A real target and {why}: a random forest of {_TREES} trees with {_LEAF} labels to a leaf."
        return _within_seconds(forest, features, what)

    def __sklearn_tags__(self) -> Any:
        """Gaps, text and sparse matrices may come in; a classifier or a regressor, as far as that is known."""
        tags = BaseEstimator.__sklearn_tags__(self)
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.sparse = True
        task = getattr(self, "task_", self.task)
        if task == "classes":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif task == "real":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


def _mean_of(forest: Any, rows: Any, n_classes: int) -> Host:
    """[n, C]: the mean of trees of classes 0, 1, .., or of sets of labels."""
    if forest.n_outputs_ > 1:
        belief: Any = prepare_belief(forest, rows)(take_rows(rows, slice(0, 1)))
        likely = belief.as_probabilities() if isinstance(belief, VoteEnsemble) else belief
        return np.asarray(likely.contexts.mean(axis=1), dtype=float)
    probabilities = np.zeros((n_rows(rows), n_classes))
    probabilities[:, forest.classes_] = forest.predict_proba(rows)
    return probabilities


def _within_seconds(forest: Any, features: Any, what: str) -> tuple[Any, str]:
    """A forest that is grown within seconds: trees see fewer columns at a split, and fewer labels each, if need be."""
    n, columns = features.shape
    seen = columns if is_one_of(forest, "sklearn.ensemble.RandomForestRegressor") else int(np.sqrt(columns))
    if n * seen > _TREE_CELLS and seen > _FEW_COLUMNS:
        seen = max(_FEW_COLUMNS, seen // 3)
        forest.set_params(max_features=seen)
        what += f" Each split looks at {seen} of {columns} columns."
    if n * seen > _TREE_CELLS:
        drawn = max(1000, _TREE_CELLS // seen)
        forest.set_params(max_samples=drawn, bootstrap=True, oob_score=True)
        what += f" Each tree is grown on {drawn} of the {n} labels, drawn anew."
    return forest, what


def default(
    X: Any,  # noqa: N803
    y: Any,
    *,
    pool: Any = None,
    task: Literal["classes", "real"] | None = None,
    classes: Sequence[Any] | None = None,
    max_gp_labels: int = 1000,
    random_state: RandomState = 0,
    ordinal: bool = False,
    labels: Sequence[str] | None = None,
) -> DefaultModel:
    """Fit a model that `stakes.rank` takes to a table of any columns; its `report` says what was done.

    One label is enough; without any, `stakes.cold_start` says which rows to label first.

    Args:
        X: A table [n, p]: an array, a data frame, a sparse matrix.
        y: Labels [n].
        pool: Rows [N, p] that have no label. Give them where there are few labels: scales, categories and constant
            columns are then those of all rows.
        task: "classes" or "real"; None: text, flags and whole numbers with few values are classes.
        classes: All classes in the order of columns, also those that no label has had yet; None: those of the labels.
        max_gp_labels: The most labels of a real target that a Gaussian process is fitted to; beyond, a random forest.
        random_state: A whole number or a generator.
        ordinal: Whether classes have an order, from the lowest to the highest (docs/ordinal.md).
        labels: Names of labels of which a row may have several; `y` is then [n, L] of 0 and 1 (docs/multi_label.md).

    Returns:
        The fitted model.

    Raises:
        StakesError: If there are no labels, some are missing, or no column tells rows apart.
        TypeError: If a real target is not made of numbers.

    Examples:
        >>> import numpy as np
        >>> from stakes import Linex, default, rank
        >>> X = np.linspace(0.0, 3.0, 40)[:, None]
        >>> model = default(X[:12], np.sin(X[:12, 0]), pool=X[12:])
        >>> len(rank(model, Linex(1.0), pool=X[12:], n=2).indices)
        2
    """
    return DefaultModel(task, classes, max_gp_labels, random_state, ordinal, labels).fit(X, y, pool)


@adapts(DefaultModel)
def _default(model: DefaultModel, contexts: Any, *, classes: Sequence[Any] | None, **options: Any) -> RowsToBelief:
    """The belief of what was chosen, with all classes."""
    check_is_fitted(model)
    if model.task_ == "real":
        return prepare_belief(model.pipeline_, contexts, classes=classes, **options)
    if model.labels is not None:
        if classes is not None and list(classes) != model.classes_.tolist():
            raise StakesError(f"the classes of several labels are their sets, {model.classes_.tolist()}, in this order")
        of_sets = prepare_belief(model.pipeline_, contexts, classes=None, **options)
        return lambda rows: calibrated(of_sets(rows), model.prior_, model.power_, model.prior_share_)
    wanted = model.classes_.tolist() if classes is None else list(classes)
    if lost := [name for name in model.classes_.tolist() if name not in wanted]:
        raise StakesError(f"classes must hold all those of the model, {model.classes_.tolist()}; {lost} are not there")
    places = _places(model.classes_, wanted)
    prior = np.append(model.prior_, np.full(len(wanted) - len(model.prior_), model.prior_.min()))[places]
    prepared = prepare_belief(model.pipeline_, contexts, classes=places, **options)
    return lambda rows: calibrated(prepared(rows), prior / prior.sum(), model.power_, model.prior_share_)


def _places(known: Host, wanted: list[Any]) -> list[int]:
    """[C]: the number inside of each class that is wanted; those that the model does not know get new numbers."""
    numbers = {name: place for place, name in enumerate(known.tolist())}
    for name in wanted:
        numbers.setdefault(name, len(numbers))
    return [numbers[name] for name in wanted]


def _fit_sentences(model: Any, caught: list[Any]) -> list[str]:
    """What was found, and what was warned of, each once."""
    found = model.report_ if isinstance(model, BayesianProcess) else ()
    return [*found, *dict.fromkeys(f"While fitting: {each.message}" for each in caught)]


def _rows_sentence(pool: Any) -> str:
    if pool is None:
        return "Columns are encoded by the rows that have labels."
    return f"Columns are encoded by the rows that have labels and the {n_rows(pool)} rows of the pool."


def _class_sentences(labels: Host, classes: Host) -> list[str]:
    seen = set(labels.tolist())
    found = [f"Classes, in the order of columns: {', '.join(map(repr, classes.tolist()))}."]
    if missing := [name for name in classes.tolist() if name not in seen]:
        found.append(f"No label so far: {', '.join(map(repr, missing))}. They keep their columns, near 0.")
    if len(seen) == 1:
        found.append("All labels are of one class, so the model is certain of it and cannot tell which row to label.")
    return found


def _duplicates(features: Any) -> list[str]:
    if not isinstance(features, np.ndarray):
        return []
    count = len(features) - len(np.unique(features, axis=0))
    return [f"{count} rows have the same features as another; all are kept."] if count else []


def infer_task(labels: Host, task: Task | None, classes: Sequence[Any] | None) -> tuple[Task, str]:
    """Whether labels are classes or real numbers, and a sentence that says why."""
    if task not in (None, "classes", "real"):
        raise StakesError(f"task must be 'classes', 'real' or None, to go by the labels; got {task!r}")
    if task == "real":
        if classes is not None:
            raise StakesError("a real target has no classes: leave out task='real' or classes")
        if not is_number(labels) and labels.dtype.kind != "b":
            raise TypeError(f"a real target must be numbers; y holds {labels.dtype}")
        return "real", "The target is a number, as given."
    if task == "classes" or classes is not None:
        return "classes", "The target is a class, as given."
    if not is_number(labels):
        return "classes", "The target is a class: y holds no numbers."
    if labels.dtype.kind == "f":
        return "real", "The target is real: y holds floating numbers (task='classes' if they are classes)."
    return _task_of_integers(labels)


def _task_of_integers(labels: Host) -> tuple[Task, str]:
    """Classes where values are few and either small, as codes are, or repeated."""
    values = np.unique(labels)
    codes = values[0] >= 0 and values[-1] < _FEW
    if len(values) <= _FEW and (codes or 2 * len(values) <= len(labels)):
        return (
            "classes",
            f"The target is a class: y holds {len(values)} whole numbers (task='real' if they are amounts).",
        )
    return "real", "The target is real: y holds whole numbers with many values (task='classes' if they are classes)."
