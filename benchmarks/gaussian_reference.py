"""A fitted Gaussian process where it is asked, and variance reduction in plain NumPy and SciPy to compare with.

Sizes: n labels so far, N candidates, M contexts, p features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from stakes.models import GaussianProcess


@dataclass(frozen=True, eq=False)
class Scene:
    """A fitted process, and where it is asked."""

    process: GaussianProcess
    pool: Any
    contexts: Any


def scene(n: int, n_candidates: int, n_contexts: int, p: int) -> Scene:
    """Random rows with a signal, and a process that is fitted to the first n."""
    rng = np.random.default_rng(0)
    rows, pool, contexts = (rng.standard_normal((count, p)) for count in (n, n_candidates, n_contexts))
    labels = np.sin(2.0 * rows[:, 0]) + rows.sum(axis=1) / p + 0.1 * rng.standard_normal(n)
    return Scene(GaussianProcess().fit(rows, labels), pool, contexts)


def reference(given: Scene, weights: Any = None) -> Any:
    """[N]: the mean over contexts of cov(z, y)^2 / var(y), each context times its weight [M]."""
    process, pool, contexts = given.process, given.pool, given.contexts
    here, there = (
        solve_triangular(process.factor_, kernel(process, rows, process.X_).T, lower=True) for rows in (pool, contexts)
    )
    covariance = kernel(process, pool, contexts)
    covariance -= here.T @ there
    variance = process.kernel_.diag(pool) - np.sum(here**2, axis=0) + process.hyperparameters_.noise**2
    weighted = covariance if weights is None else covariance * weights
    return np.einsum("nm,nm->n", weighted, covariance) / variance / len(contexts)


def kernel(process: GaussianProcess, rows: Any, others: Any) -> Any:
    values = process.hyperparameters_
    distance = cdist(rows, others)
    distance *= np.sqrt(3.0) / values.length
    decay = np.exp(-distance)
    distance += 1.0
    decay *= distance
    decay *= values.signal**2
    decay += values.linear**2 * (rows @ others.T)
    return decay


def theirs(given: Scene) -> Any:
    """The reference with scikit-learn's kernels as they are."""
    process, pool, contexts = given.process, given.pool, given.contexts
    here, there = (
        solve_triangular(process.factor_, process.kernel_(rows, process.X_).T, lower=True) for rows in (pool, contexts)
    )
    covariance = process.kernel_(pool, contexts) - here.T @ there
    variance = process.kernel_.diag(pool) - np.sum(here**2, axis=0) + process.hyperparameters_.noise**2
    return np.mean(covariance**2, axis=1) / variance
