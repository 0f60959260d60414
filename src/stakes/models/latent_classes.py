"""Gaussian process classifiers through draws of their latent functions.

A draw k of the latent function f, from its Laplace posterior, is a member: it gives class probabilities at candidates
and contexts. Sizes: n training rows, N candidates, M contexts, R = N + M rows, A anchors, K draws, C classes.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes._utils.array import Array, slices
from stakes.beliefs import Belief
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, register_model
from stakes.models.ensembles import prepare_table

_DRAWS = 100  # draws show a squared correlation of 1 / K between rows that have nothing to do with each other
_ANCHORS = 1000  # rows whose draws are exact together: A^3 / 3 operations, a second at most
_BLOCK = 4096  # rows at a time, so that nothing of R^2 numbers is made


def prepare_draws(
    model: GaussianProcessClassifier,
    contexts: Any,
    *,
    random_state: np.random.Generator,
    draws: int = _DRAWS,
    anchors: int = _ANCHORS,
    target: Any = "label",
    classes: Any = None,
    **_: Any,
) -> RowsToBelief:
    """Probabilities of `draws` latent functions, at candidates and contexts together.

    Every part of a pool is drawn with the same random numbers: those of `random_state` as it is now.

    Two classes: their mean is `predict_proba` up to Monte Carlo error, and up to the approximation of the logistic
    function that scikit-learn makes there. More classes: every draw is normalised over its one-against-rest
    probabilities, where scikit-learn normalises their means, so that means differ a little. One-against-one models have
    no probabilities and are refused.
    """
    check_is_fitted(model)
    if model.n_classes_ > 2 and model.multi_class != "one_vs_rest":
        raise StakesError("a one-against-one classifier has no class probabilities: fit multi_class='one_vs_rest'")
    there, start = _checked_rows(model, contexts), copy.deepcopy(random_state)
    random_state.integers(2**63)  # so that a caller who goes on with it draws other functions
    one = model.n_classes_ == 2
    binary = [model.base_estimator_] if one else model.base_estimator_.estimators_

    def belief(pool: Any) -> Belief:
        here, same = _checked_rows(model, pool), copy.deepcopy(start)
        both = np.concatenate([here, there])  # [R, p]
        p = np.stack([expit(latent_draws(each, both, draws, anchors, same)) for each in binary], axis=2)
        table = np.concatenate([1.0 - p, p], axis=2) if one else _normalised(p)  # [R, K, C]
        known = model.classes_.tolist()
        return prepare_table(table[len(here) :], target=target, classes=classes, known=known)(table[: len(here)])

    return belief


register_model(GaussianProcessClassifier, prepare_draws)


def latent_draws(binary: Any, rows: Array, draws: int, anchors: int, rng: np.random.Generator) -> Array:
    """[R, K]: joint draws of the latent function at `rows`, under the Laplace posterior of a fitted binary classifier.

    Draws are exact together at up to `anchors` rows, all of them if there are no more. Where there are, others follow
    from A rows drawn among them: f = E[f | f_A] + what is left, independent from row to row. Each row then still has
    its exact mean and variance, and what two rows share beyond the anchors is left out.
    """
    chosen = rows if len(rows) <= anchors else rows[rng.choice(len(rows), size=anchors, replace=False)]
    factor = _factor(_posterior_covariance(binary, chosen, chosen))  # [A, A]
    common = rng.standard_normal((len(chosen), draws))  # [A, K]
    values = np.empty((len(rows), draws))
    for part in slices(len(rows), _BLOCK):
        mean, variance = binary.latent_mean_and_variance(rows[part])
        share = solve_triangular(factor, _posterior_covariance(binary, chosen, rows[part]), lower=True)  # [A, r]
        left = np.sqrt(np.maximum(variance - np.sum(share**2, axis=0), 0.0))  # [r]
        own = rng.standard_normal((len(mean), draws))
        values[part] = mean[:, None] + share.T @ common + left[:, None] * own
    return values


def _posterior_covariance(binary: Any, rows: Array, others: Array) -> Array:
    """[R, R']: k(x, x') - v(x)' v(x'), v = L^-1 W^1/2 k(X, x), without what a row has for itself (white noise)."""
    reach = [
        solve_triangular(binary.L_, binary.W_sr_[:, None] * binary.kernel_(binary.X_train_, each), lower=True)
        for each in (rows, others)
    ]
    return binary.kernel_(rows, others) - reach[0].T @ reach[1]


def _factor(covariance: Array) -> Array:
    """The Cholesky factor, with as little as is needed on the diagonal; rows keep their variance whatever it is."""
    scale = max(float(np.mean(np.diag(covariance))), np.finfo(float).tiny)
    for jitter in 10.0 ** np.arange(-12, 1):
        try:
            return cholesky(covariance + jitter * scale * np.eye(len(covariance)), lower=True)
        except LinAlgError:
            continue
    raise LinAlgError("the latent covariance of the classifier is not positive, whatever is added: check its kernel")


def _normalised(probabilities: Array) -> Array:
    """Shares of their sum over classes; alike where all are 0, as scikit-learn has it not to divide by 0."""
    total = np.sum(probabilities, axis=2, keepdims=True)
    return np.where(total > 0, probabilities / np.where(total > 0, total, 1.0), 1.0 / probabilities.shape[2])


def _checked_rows(model: GaussianProcessClassifier, rows: Any) -> Array:
    """Rows as the classifier's own `predict_proba` takes them."""
    if model.kernel is None or model.kernel.requires_vector_input:
        return validate_data(model, rows, ensure_2d=True, dtype="numeric", reset=False)
    return validate_data(model, rows, ensure_2d=False, dtype=None, reset=False)
