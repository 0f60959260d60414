"""Beliefs of scikit-learn's Bayesian linear models: imported when the first such model comes.

Sizes: n labels so far, p features.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes.models.base import LABELS_SEEN, RowsToBelief, adapts, register_list
from stakes.models.gp_posterior import LinearPosterior, prepare_gaussian
from stakes.models.sklearn_gaussian import prepare_hypotheses


@adapts(BayesianRidge)
@adapts(ARDRegression)
def _linear(model: BayesianRidge | ARDRegression, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """F = intercept + x' b, under the prior of the model for b and a flat one for the intercept, which it leaves out.

    Rows and labels were centred, so that f at the mean of the rows is independent of b, with the variance of a mean of
    n labels: noise / n. Coefficients that automatic relevance determination has pruned are 0 for certain.
    """
    check_is_fitted(model)
    kept = (
        model.lambda_ < model.threshold_lambda if isinstance(model, ARDRegression) else np.ones(len(model.coef_), bool)
    )
    values, vectors = np.linalg.eigh(model.sigma_)
    root = np.zeros((len(model.coef_), len(values)))
    root[kept] = vectors * np.sqrt(np.clip(values, 0.0, None))
    offset, noise = np.broadcast_to(model.X_offset_, model.coef_.shape), 1.0 / float(model.alpha_)
    there = validate_data(model, contexts, reset=False, dtype=np.float64)
    count = math.inf
    if model.fit_intercept:
        known = getattr(model, LABELS_SEEN, None)
        count = _estimated_labels(model, kept, (there - offset)[:, kept]) if known is None else float(np.max(known))
    posterior = LinearPosterior(model.coef_, float(model.intercept_), offset, root, noise, noise / count)
    prepared = prepare_gaussian(posterior, there, target=target, joint=joint)
    return lambda rows: prepared(validate_data(model, rows, reset=False, dtype=np.float64))


def _estimated_labels(model: BayesianRidge | ARDRegression, kept: Any, rows: Any) -> float:
    """How many labels the model has seen, which it does not keep, if rows so far were spread as contexts are.

    Of n rows about their mean, the precision that labels gave a coefficient is (n - 1) times the variance of its
    feature, over the noise; the median over features counts, with variances at the contexts, `rows` about that mean.
    Infinite without features that vary: then nothing is known of the intercept's own uncertainty.
    """
    prior = model.lambda_[kept] if isinstance(model, ARDRegression) else float(model.lambda_)
    learned = np.diagonal(np.linalg.pinv(model.sigma_, hermitian=True)) - prior  # alpha times the sum of squares
    spread = np.mean(rows**2, axis=0)
    varied = spread > 0
    if not varied.any():
        return math.inf
    return 1.0 + max(1.0, float(np.median(learned[varied] / spread[varied]) / model.alpha_))


for _kind in (BayesianRidge, ARDRegression):
    register_list(_kind, prepare_hypotheses)
