"""A Gaussian process that looks at its hyperparameters now and then.

Sizes: n labels so far, p features, N candidates, M contexts.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, RegressorMixin, clone

from stakes import GaussianBelief
from stakes.models import GaussianProcess


class Refreshed(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """`process` with the hyperparameters of its first labels, chosen anew after every few more.

    Rows come in the order in which they were labelled, so no state is kept: of n labels the hyperparameters are those
    of the first `first` + k `every`, k as large as it can be, and the process is conditioned on the rest.
    """

    def __init__(self, process: GaussianProcess, first: int, every: int) -> None:
        self.process = process
        self.first = first
        self.every = every

    def fit(self, X: Any, y: Any) -> Refreshed:  # noqa: N803 (as everyone writes it)
        """Choose the hyperparameters, and condition on labels `y` [n] of rows `X` [n, p]."""
        known = self.first + (len(y) - self.first) // self.every * self.every
        self.process_ = clone(self.process).fit(X[:known], y[:known])
        if known < len(y):
            self.process_ = self.process_.condition(X[known:], y[known:])
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The mean of the function at each row."""
        return self.process_.predict(X)

    def belief(self, pool: Any, contexts: Any) -> GaussianBelief:
        """What is believed of labels of `pool` [N, p] and at `contexts` [M, p], jointly."""
        return self.process_.belief(pool, contexts)
