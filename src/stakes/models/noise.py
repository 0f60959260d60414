"""The noise of labels about members' means, by the method of moments, from rows that members were not fitted on.

For such a row, residual = noise + how far the members' mean is off. The second part is believed to be as large as the
members' spread: the truth is taken for one more member. With k members that have not seen the row, of variance s^2
about their mean, E[residual^2] = noise^2 + s^2 (1 + 1 / k), and what is left of the mean square is the noise.

Bias: spread and noise together are right for labels that members have not seen, but their parts may not be. Members
that are all wrong in the same way (too smooth, too few labels) spread too little, and their common error is counted as
noise. Members that follow the noise of single labels (fully grown trees) or split at random (extra trees) spread by
that as well, and what is left is too small: leaves of five rows or more serve better. At least a tenth of the mean
square is kept, as a label without noise would be believed blindly. One noise level for all rows is estimated.
Sizes: n training rows, K members, d outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stakes._array import Array

_LEAST = 0.1  # of the mean square of residuals that is noise at the least


def moment_noise(targets: Any, means: Array, samples: Sequence[Array]) -> Array:
    """The noise sd (one for each output): targets [n(, d)], members' means [n, K(, d)], the rows of each member.

    NaN where no row was left out by any member.
    """
    outside = np.ones(means.shape[:2], dtype=bool)  # [n, K]: members that have not seen the row
    for k, rows in enumerate(samples):
        outside[rows, k] = False
    counts = np.sum(outside, axis=1)  # [n]
    kept = counts >= min(2, counts.max())  # one member alone shows no spread: used only where that is all there is
    if counts.max() == 0:
        return np.full(means.shape[2:], math.nan)
    seen, k = np.where(_like(outside, means), means, 0.0)[kept], _like(counts[kept], means[:, 0])  # [m, K(, d)], [m]
    centre = np.sum(seen, axis=1) / k
    squares = np.sum(np.where(_like(outside[kept], means), (means[kept] - centre[:, None]) ** 2, 0.0), axis=1)
    spread = np.mean(squares / np.maximum(k - 1, 1) * (1.0 + 1.0 / k), axis=0)
    return _what_is_left(np.mean((np.asarray(targets, dtype=float)[kept] - centre) ** 2, axis=0), spread)


def noise_of_trees(model: Any, means: Array) -> Array:
    """The noise sd that a forest or bagged trees know from `oob_score=True`, told members' means [M, K] at contexts.

    The model keeps neither labels nor residuals, but R^2 = 1 - mean residual^2 / var(y) out of bag, and var(y) is the
    mean impurity of the roots (up to sampling error, of relative size sqrt(2 / (n K))). The members' spread is taken at
    the contexts, which are the same for every block of the pool: estimate it on the training rows with
    `out_of_bag_noise` where the contexts are few or unlike them.
    """
    _check_known(model, means)
    trees = [member.tree_ for member in model.estimators_]
    sizes = np.asarray([tree.weighted_n_node_samples[0] for tree in trees])  # [K]
    roots = np.asarray([tree.impurity[0] for tree in trees]) / np.maximum(1.0 - 1.0 / sizes, 1e-300)
    spread = np.mean(np.var(means, axis=1, ddof=min(1, len(trees) - 1)))
    return _what_is_left((1.0 - model.oob_score_) * np.mean(roots), spread * np.mean(1.0 + 1.0 / _left_out(model)))


def _check_known(model: Any, means: Array) -> None:
    """Refuse a model whose out-of-bag score does not tell the noise, and say what does."""
    otherwise = "Or give EnsembleOf(model, noise_sd=...), where out_of_bag_noise(model, X, y) estimates it if it can."
    name = type(model).__name__
    if not model.bootstrap:
        raise ValueError(
            "the noise of labels is estimated on rows that members were not fitted on, and "
            f"{name}(bootstrap=False) leaves none out. Fit with bootstrap=True, oob_score=True. {otherwise}"
        )
    if model.oob_score is not True or not hasattr(model, "oob_score_"):
        raise ValueError(f"the noise of labels is not known: fit {name}(bootstrap=True, oob_score=True). {otherwise}")
    by_variance = [getattr(each, "criterion", None) in ("squared_error", "friedman_mse") for each in model.estimators_]
    if means.ndim > 2 or not all(by_variance):
        raise ValueError(f"oob_score_ tells the noise only of one output and trees split by squared error. {otherwise}")
    if np.min(_left_out(model)) == 0:
        raise ValueError(f"oob_score_ is wrong: some rows are in the sample of every member. Fit more. {otherwise}")


def _left_out(model: Any) -> Array:
    """[n]: how many members have not seen each row."""
    counts = np.zeros(len(model.oob_prediction_), dtype=int)
    for rows in model.estimators_samples_:
        counts += np.bincount(rows, minlength=len(counts)) == 0
    return counts


def _what_is_left(mean_square: Array, spread: Array) -> Array:
    return np.sqrt(np.maximum(mean_square - spread, _LEAST * mean_square))


def _like(flags: Array, means: Array) -> Array:
    """`flags` with the axis of outputs that `means` may have."""
    return flags[..., None] if means.ndim > flags.ndim else flags
