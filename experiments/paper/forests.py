"""Who grows the trees of a forest. Sizes: n labels so far, p features, N candidates, M contexts."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier

from experiments.labels_saved.trees import Trees, grown
from stakes import CategoricalEnsemble, VoteEnsemble
from stakes._utils.compute import has_jit

Forest: TypeAlias = Literal["scikit-learn", "intelex", "compiled"]
"""The paper's; scikit-learn-intelex's, several times quicker, which predict a little worse; or our compiled loops',
some ten times quicker, with other random numbers and the same statistics."""

_GROWN = ("estimators_", "classes_", "n_classes_", "n_outputs_", "n_features_in_")


class IntelexForest(RandomForestClassifier):  # type: ignore[misc]
    """A forest whose trees scikit-learn-intelex grows, on one thread, as several runs may go on at once.

    The trees are scikit-learn's, and so is all that is done with them: `stakes` takes this for any other forest.
    """

    def fit(self, X: Any, y: Any) -> IntelexForest:  # noqa: N803 (as everyone writes it)
        """Grow trees on labels `y` [n] of rows `X` [n, p]."""
        grown = _intelex()(**{**self.get_params(), "n_jobs": 1}).fit(X, y)
        for name in _GROWN:
            setattr(self, name, getattr(grown, name))
        return self


class CompiledForest(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Trees grown as `RandomForestClassifier` grows them by default, in the loops of `labels_saved.trees`."""

    def __init__(self, n_estimators: int = 100, random_state: int = 0) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> CompiledForest:  # noqa: N803
        """Grow trees on labels `y` [n] of rows `X` [n, p]."""
        self.classes_, targets = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        self.trees_: Trees = grown(X, targets, count, self.n_estimators, self.random_state, extremely=False)
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """[N, C]: the mean over trees of the class shares in their leaves."""
        return self.trees_.mean_shares(self.trees_.leaves(X))

    def belief(self, pool: Any, contexts: Any) -> VoteEnsemble | CategoricalEnsemble:
        """What the trees say of `pool` [N, p] and `contexts` [M, p]: votes where every leaf has one class."""
        leaves = self.trees_.leaves(pool), self.trees_.leaves(contexts)
        if self.trees_.pure:
            return VoteEnsemble(*map(self.trees_.votes, leaves), n_classes=len(self.classes_))
        return CategoricalEnsemble(*map(self.trees_.shares, leaves))


def forest(kind: Forest, trees: int) -> Any:
    """A forest of so many trees, all else by default; refused where the library that grows them is absent."""
    if kind == "scikit-learn":
        return RandomForestClassifier(trees)
    if kind == "compiled":
        if not has_jit():
            raise ImportError("compiled forests need numba: pip install 'stakes[fast]', or leave --forest out")
        return CompiledForest(trees)
    _intelex()
    return IntelexForest(trees)


def extra_versions(kind: Forest) -> dict[str, str]:
    """Of the libraries that numbers come from besides those of any simulation."""
    grower = {"intelex": "scikit-learn-intelex", "compiled": "numba"}
    return {grower[kind]: metadata.version(grower[kind])} if kind in grower else {}


def _intelex() -> Any:
    try:
        from sklearnex.ensemble import RandomForestClassifier as Grower
    except ImportError as error:
        raise ImportError(
            "forests by intelex need scikit-learn-intelex: pip install 'stakes[fast]', or leave --forest out"
        ) from error
    return Grower
