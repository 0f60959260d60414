"""Beliefs of scikit-learn's Gaussian regressors: Gaussian processes and Bayesian linear models.

Sizes: N candidates, M contexts, n labels so far, p features.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes.beliefs import Belief, GaussianBelief, VectorGaussianBelief
from stakes.models.base import RowsToBelief, adapts, prepare_belief
from stakes.models.gp_posterior import KernelPosterior, LinearPosterior, prepare_gaussian
from stakes.models.kernels import Numbers

_JITTER = 1e-8  # of k(x, x): an alpha this small is there for the factorisation, not a belief about labels


@adapts(GaussianProcessRegressor)
def _process(model: GaussianProcessRegressor, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """The exact joint posterior; several outputs are independent and share the kernel, as the model has it.

    Noise is what the kernel's white parts and `alpha` add to a label. An `alpha` of at most 1e-8 times the mean of
    k(x, x) is jitter, not noise. An `alpha` for each label so far says nothing of labels to come: its mean is taken,
    with a warning.
    """
    posterior = posterior_of(model)
    prepared = prepare_gaussian(posterior, rows_of(model, contexts), target=target, joint=joint)
    return lambda rows: prepared(rows_of(model, rows))


def posterior_of(model: GaussianProcessRegressor) -> KernelPosterior:
    """What a fitted regressor knows of f."""
    check_is_fitted(model, "X_train_")
    weights = model.alpha_[:, 0] if model.alpha_.ndim == 2 and model.alpha_.shape[1] == 1 else model.alpha_
    return KernelPosterior(
        model.kernel_,
        model.X_train_,
        model.L_,
        weights,
        model._y_train_mean,
        model._y_train_std,
        _alpha(model),
    )


def rows_of(model: GaussianProcessRegressor, rows: Any) -> Any:
    """The rows as the kernel takes them: numbers in double precision, or any objects."""
    if model.kernel_.requires_vector_input:
        return np.asarray(validate_data(model, rows, reset=False, dtype="numeric"), dtype=np.float64)
    return validate_data(model, rows, reset=False, ensure_2d=False, dtype=None)


def _alpha(model: GaussianProcessRegressor) -> float:
    """The noise variance of a label to come that `alpha` says, in the units of the kernel."""
    alpha = np.asarray(model.alpha, dtype=float)
    if np.ptp(alpha) > 0:
        warnings.warn(
            f"alpha has a noise variance for each of the {alpha.size} labels so far, and none for labels to come: "
            f"their mean, {alpha.mean():.4g}, is taken for those. For other noise, put it into the kernel.",
            UserWarning,
            stacklevel=2,
        )
    jitter = _JITTER * float(np.mean(model.kernel_.diag(model.X_train_)))
    return float(alpha.mean()) if alpha.mean() > jitter else 0.0


@adapts(BayesianRidge)
@adapts(ARDRegression)
def _linear(model: BayesianRidge | ARDRegression, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """F = intercept + x' b, with the intercept taken as known at the mean of the rows, as the model has it.

    Coefficients that automatic relevance determination has pruned are 0 for certain.
    """
    check_is_fitted(model)
    kept = (
        model.lambda_ < model.threshold_lambda if isinstance(model, ARDRegression) else np.ones(len(model.coef_), bool)
    )
    values, vectors = np.linalg.eigh(model.sigma_)
    root = np.zeros((len(model.coef_), len(values)))
    root[kept] = vectors * np.sqrt(np.clip(values, 0.0, None))
    offset = np.broadcast_to(model.X_offset_, model.coef_.shape)
    posterior = LinearPosterior(model.coef_, float(model.intercept_), offset, root, 1.0 / float(model.alpha_))
    there = validate_data(model, contexts, reset=False, dtype=np.float64)
    prepared = prepare_gaussian(posterior, there, target=target, joint=joint)
    return lambda rows: prepared(validate_data(model, rows, reset=False, dtype=np.float64))


# ----------------------------------------------------------------------
# Several outputs, each with a regressor of its own.
#
# Sizes: N candidates, M contexts, d outputs.


@adapts(MultiOutputRegressor)
def _outputs(model: MultiOutputRegressor, contexts: Any, **options: Any) -> RowsToBelief:
    """Outputs are independent of each other, as the model has them; each regressor must be a Gaussian one."""
    check_is_fitted(model)
    prepared = [prepare_belief(each, contexts, **options) for each in model.estimators_]
    return lambda rows: independent([_gaussian(of_rows(rows), model) for of_rows in prepared])


def _gaussian(belief: Belief, model: MultiOutputRegressor) -> GaussianBelief:
    """The belief about one output; refused where it is not Gaussian."""
    if isinstance(belief, GaussianBelief) and belief.noise_variance is not None:
        return belief
    raise TypeError(
        "MultiOutputRegressor is served where its regressors are Gaussian; a "
        f"{type(model.estimators_[0]).__name__} gives a {type(belief).__name__}. Use GaussianProcess() or "
        "BayesianRidge(), or one belief for each output."
    )


def independent(beliefs: list[GaussianBelief]) -> VectorGaussianBelief:
    """The belief about vectors whose numbers are independent."""
    joint = all(belief.candidate_covariance is not None for belief in beliefs)
    return VectorGaussianBelief(
        mean=np.stack([belief.mean for belief in beliefs], axis=-1),
        variance=_diagonal([belief.variance for belief in beliefs]),
        candidate_variance=_diagonal([belief.candidate_variance for belief in beliefs]),
        covariance=_diagonal([belief.covariance for belief in beliefs]),
        candidate_covariance=IndependentRows(beliefs) if joint else None,
        noise_variance=_diagonal([belief.noise_variance + np.zeros(belief.n_candidates) for belief in beliefs]),
    )


def _diagonal(parts: list[Numbers]) -> Numbers:
    """[..., d, d]: with `parts` along the diagonal."""
    return np.asarray(np.stack(parts, axis=-1)[..., None] * np.eye(len(parts)))


@dataclass(frozen=True, eq=False)
class IndependentRows:
    """i -> [d, N, d]: covariances of the label of candidate i with those of all."""

    beliefs: list[GaussianBelief]

    def __call__(self, i: int) -> Numbers:
        """The rows of candidate i."""
        rows = (belief.candidate_covariance for belief in self.beliefs)
        return np.moveaxis(_diagonal([each(i) if callable(each) else np.asarray(each)[i] for each in rows]), 1, 0)
