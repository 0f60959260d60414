"""The beliefs of the yardstick by name: the frozen references, and the product's default as it is.

The references are written out here and never changed, so that the yardstick stays where it is while the product moves:
a Gaussian process with the most probable isotropic hyperparameters for numbers, a forest of 200 trees that vote for
classes. They are what `stakes.default` did when the yardstick was made (with 100 trees).

Sizes: n labels, N rows of the pool, d columns, t hyperparameters, as logarithms.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._criterion import Gini
from sklearn.tree._splitter import BestSplitter
from sklearn.tree._tree import DepthFirstTreeBuilder, Tree

from experiments.labels_saved.tables import Host, Table
from stakes.exceptions import StakesError
from stakes.models import DefaultModel
from stakes.models.base import RowsToBelief, adapts, prepare_belief
from stakes.simulation import Trial

REFERENCE, DEFAULT = "reference", "default"
TREES = 200
_SPREADS = (3.0, 1.0, 1.5)  # of the logarithms of variance, length and noise under their priors


def model_of(belief: str, table: Table, trial: Trial) -> Any:
    """An estimator, not fitted, whose belief is the one called `belief`, for one run on a table."""
    if belief not in BELIEFS:
        raise StakesError(f"belief must be one of {', '.join(BELIEFS)}; got {belief!r}")
    return BELIEFS[belief](table, trial)


class ReferenceProcess(BaseEstimator):  # type: ignore[misc]
    """A Gaussian process, Matern 5/2 with one length for all columns, at its most probable hyperparameters.

    Columns come standardised, labels are standardised here. Log-normal priors: variance 1 within a factor of 20, length
    1.5 median distances between labelled rows within a factor of 3, noise 0.1 (but at least 0.01) within a factor of 5.
    """

    def fit(self, X: Any, y: Any) -> ReferenceProcess:  # noqa: N803 (scikit-learn's names)
        """Find the hyperparameters for labels y [n] of rows X [n, d], from one start."""
        distances = pdist(X)
        length = float(np.median(distances)) if len(distances) else 0.0
        length = length if length > 0 else float(np.sqrt(2.0 * X.shape[1]))
        shape = Matern(length, (0.1 * length, 100.0 * length), nu=2.5)
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * shape + WhiteKernel(0.1, (1e-2, 1e1))
        centres = (0.0, float(np.log(1.5 * length)), float(np.log(0.1)))
        search = partial(_most_probable, centres=np.asarray(centres), spreads=np.asarray(_SPREADS))
        self.process_ = GaussianProcessRegressor(kernel, optimizer=search, normalize_y=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # that a hyperparameter is at its bound
            self.process_.fit(X, y)
        return self


def _most_probable(
    objective: Callable[[Host], tuple[float, Host]], initial_theta: Host, bounds: Host, *, centres: Host, spreads: Host
) -> tuple[Host, float]:
    """scikit-learn's optimiser: minus log likelihood plus half of each squared distance [t] from the prior's centre."""

    def penalised(theta: Host) -> tuple[float, Host]:
        value, gradient = objective(theta)
        distance = (theta - centres) / spreads
        return value + 0.5 * float(distance @ distance), gradient + distance / spreads

    found: Any = minimize(penalised, initial_theta, jac=True, bounds=bounds, method="L-BFGS-B")
    return np.asarray(found.x), float(found.fun)


class ReferenceForest(BaseEstimator):  # type: ignore[misc]
    """scikit-learn's `RandomForestClassifier(200)`, tree for tree, in a quarter of its time.

    A tree of fifty labels grows in a fraction of the time that its checks take, so that trees are grown here by what is
    beneath: a bootstrap, sqrt(d) columns tried at each node, leaves that are pure.

    Args:
        random_state: A whole number.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ReferenceForest:  # noqa: N803
        """Grow the trees for labels y [n] of rows X [n, d]."""
        rows = np.ascontiguousarray(X, dtype=np.float32)
        classes, codes = np.unique(y, return_inverse=True)
        targets = np.ascontiguousarray(codes[:, None], dtype=np.float64)
        drawn = np.random.RandomState(self.random_state)
        seeds = [drawn.randint(np.iinfo(np.int32).max) for _ in range(TREES)]
        self.forest_ = RandomForestClassifier(TREES, random_state=self.random_state)
        self.forest_.estimators_ = [_tree(rows, targets, classes, seed) for seed in seeds]
        _set_fitted(self.forest_, rows.shape[1], classes)
        return self


def _tree(rows: Host, targets: Host, classes: Host, seed: int) -> DecisionTreeClassifier:
    """One tree, grown on a bootstrap of rows [n, d], as the forest of scikit-learn grows it with this seed."""
    times = np.bincount(np.random.RandomState(seed).randint(0, len(rows), len(rows)), minlength=len(rows))
    count, columns = np.asarray([len(classes)], dtype=np.intp), rows.shape[1]
    splitter = BestSplitter(Gini(1, count), max(1, int(np.sqrt(columns))), 1, 0.0, np.random.RandomState(seed), None)
    tree = Tree(columns, count, 1)
    unlimited = np.iinfo(np.int32).max
    DepthFirstTreeBuilder(splitter, 2, 1, 0.0, unlimited, 0.0).build(tree, rows, targets, times.astype(float), None)
    grown = DecisionTreeClassifier(random_state=seed)
    grown.tree_ = tree
    _set_fitted(grown, columns, np.arange(len(classes)))
    return grown


def _set_fitted(model: Any, columns: int, classes: Host) -> None:
    """What scikit-learn sets when it fits a classifier."""
    model.n_features_in_, model.n_outputs_ = columns, 1
    model.classes_, model.n_classes_ = classes, len(classes)


class WithPool(BaseEstimator):  # type: ignore[misc]
    """A model of the product that sees the rows without labels too, as in `stakes suggest`.

    Args:
        model: An estimator whose `fit` takes X, y and pool.
        pool: [N, d]: the rows that can be bought.
        random_state: Given to the model.
    """

    def __init__(self, model: Any, pool: Any, random_state: int = 0) -> None:
        self.model = model
        self.pool = pool
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> WithPool:  # noqa: N803
        """Fit the model to labels y [n] of rows X [n, d]."""
        self.model.set_params(random_state=self.random_state)
        self.model_ = self.model.fit(X, y, pool=self.pool)
        return self


@adapts(ReferenceProcess)
def _of_reference(model: ReferenceProcess, contexts: Any, **options: Any) -> RowsToBelief:
    return prepare_belief(model.process_, contexts, **options)


@adapts(ReferenceForest)
def _of_forest(model: ReferenceForest, contexts: Any, **options: Any) -> RowsToBelief:
    return prepare_belief(model.forest_, contexts, **options)


@adapts(WithPool)
def _of_pool(model: WithPool, contexts: Any, **options: Any) -> RowsToBelief:
    return prepare_belief(model.model_, contexts, **options)


def _reference(table: Table, trial: Trial) -> Any:  # noqa: ARG001 (all have one signature)
    return ReferenceProcess() if table.task == "numbers" else ReferenceForest()


def _default(table: Table, trial: Trial) -> Any:
    classes: Sequence[int] | None = None if table.task == "numbers" else range(len(table.classes))
    model = DefaultModel("real" if table.task == "numbers" else "classes", classes)
    return WithPool(model, trial.X[np.concatenate([trial.initial, trial.pool])])


BELIEFS: dict[str, Callable[[Table, Trial], Any]] = {REFERENCE: _reference, DEFAULT: _default}
"""Functions (table, trial) -> estimator; add one here to put another belief on the yardstick."""
