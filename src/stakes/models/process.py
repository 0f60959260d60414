"""The paper's Gaussian process: a linear trend, a Matern residual, noise, and robust hyperparameters.

Sizes: n labels so far, m new ones, B rows, p features.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes.beliefs import GaussianBelief
from stakes.models.base import Request, register_model
from stakes.models.hyperparameters import Hyperparameters, most_likely, plug_in
from stakes.models.kernels import Numbers
from stakes.models.posterior import KernelPosterior
from stakes.models.posterior_belief import gaussian_belief

_JITTERS = 10.0 ** np.arange(-12, -3)  # of the mean of k(x, x)


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn regressor: f ~ GP(c, s_lin^2 <x, x'> + s_f^2 Matern_nu(|x - x'| / l)), y = f(x) + N(0, s_n^2).

    The prior mean c is the median of the labels. Features should be of one scale: put a StandardScaler before it.

    Args:
        hyperparameters: "plug-in" for the robust rules of the paper's appendix E.3, in closed form; "marginal
            likelihood" for the most likely ones; or `Hyperparameters` of your own.
        nu: smoothness of the Matern part: 0.5, 1.5, 2.5, inf, or any positive number (slower).
        rules: which plug-in rules: "text", as the paper has them, or "published", as the authors' code does (the scale
            of f is the plain standard deviation of residuals, and rows are standardised once more).

    Fitted, it has `hyperparameters_`, `kernel_` (of f, without noise), `X_`, `y_`, and `jitter_`: what was added to the
    diagonal because the covariance of labels was numerically singular, 0 mostly.
    """

    def __init__(
        self,
        hyperparameters: Literal["plug-in", "marginal likelihood"] | Hyperparameters = "plug-in",
        nu: float = 1.5,
        rules: Literal["text", "published"] = "text",
    ) -> None:
        self.hyperparameters = hyperparameters
        self.nu = nu
        self.rules = rules

    def fit(self, X: Any, y: Any) -> GaussianProcess:  # noqa: N803
        """Choose the hyperparameters, and condition on labels `y` [n] of rows `X` [n, p]."""
        rows, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        labels = np.asarray(labels, dtype=np.float64)
        chosen = self._chosen(rows, labels)
        self.hyperparameters_ = replace(chosen, mean=float(np.median(labels)) if chosen.mean is None else chosen.mean)
        self.kernel_ = self.hyperparameters_.kernel(self.nu)
        self._factorise(rows, labels)
        return self

    def _chosen(self, rows: Numbers, labels: Numbers) -> Hyperparameters:
        if not self.nu > 0:
            raise ValueError(f"nu must be a positive number, such as 1.5; got {self.nu!r}")
        if self.rules not in ("text", "published"):
            raise ValueError(f"rules must be 'text' or 'published'; got {self.rules!r}")
        if isinstance(self.hyperparameters, Hyperparameters):
            return self.hyperparameters
        if self.hyperparameters == "plug-in":
            return plug_in(rows, labels, self.nu, self.rules)
        if self.hyperparameters == "marginal likelihood":
            return most_likely(rows, labels, self.nu)
        raise ValueError(
            "hyperparameters must be 'plug-in', 'marginal likelihood' or Hyperparameters(linear=..., signal=..., "
            f"length=..., noise=...); got {self.hyperparameters!r}"
        )

    def _factorise(self, rows: Numbers, labels: Numbers) -> None:
        covariance = self.kernel_(rows) + self.hyperparameters_.noise**2 * np.eye(len(rows))  # [n, n]
        self.factor_, self.jitter_ = _factorised(covariance)
        self._set_labels(rows, labels)

    def _set_labels(self, rows: Numbers, labels: Numbers) -> None:
        self.X_, self.y_ = rows, labels
        self.weights_ = cho_solve((self.factor_, True), labels - np.asarray(self.hyperparameters_.mean))

    def condition(self, X: Any, y: Any) -> GaussianProcess:  # noqa: N803
        """The process that knows labels `y` [m] of rows `X` [m, p], too, with the hyperparameters it has: exact.

        The factor of the covariance of labels is extended by m rows, O(n^2 m), and this process is left as it is.
        """
        check_is_fitted(self)
        rows, labels = validate_data(self, X, y, reset=False, dtype=np.float64, y_numeric=True)
        new = copy.copy(self)
        everything = np.concatenate([self.X_, rows]), np.concatenate([self.y_, labels])
        if (factor := self._extended(rows)) is None:
            new._factorise(*everything)
        else:
            new.factor_ = factor
            new._set_labels(*everything)
        return new

    def _extended(self, rows: Numbers) -> Numbers | None:
        """[n + m, n + m]: the factor with m more rows; None where the new labels make it singular."""
        below = solve_triangular(self.factor_, self.kernel_(self.X_, rows), lower=True).T  # [m, n]
        own = self.kernel_(rows) + (self.hyperparameters_.noise**2 + self.jitter_) * np.eye(len(rows))
        corner = _cholesky(own - below @ below.T, float(np.max(np.diagonal(own))), len(self.X_) + len(rows))
        if corner is None:
            return None
        return np.block([[self.factor_, np.zeros(below.T.shape)], [below, corner]])

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: N803
        """[B]: the mean of f; with `return_std` also the standard deviation of a label, noise included, [B]."""
        check_is_fitted(self)
        rows, posterior = validate_data(self, X, reset=False, dtype=np.float64), self.posterior()
        if not return_std:
            return posterior.mean(rows)
        return posterior.mean(rows), np.sqrt(sum(posterior.variances(posterior.places(rows))))

    def belief(
        self, pool: Any, contexts: Any, *, target: Literal["label", "latent"] = "label", joint: bool = False
    ) -> GaussianBelief:
        """What it believes of the labels of `pool` and the targets at `contexts`, jointly."""
        return _belief(self, pool, contexts, Request(target=target, joint=joint))

    def posterior(self) -> KernelPosterior:
        """What it knows of f: means and covariances at any rows."""
        values = self.hyperparameters_
        return KernelPosterior(
            self.kernel_, self.X_, self.factor_, self.weights_, values.mean, 1.0, values.noise**2, white=False
        )


def _belief(model: GaussianProcess, pool: Any, contexts: Any, request: Request) -> GaussianBelief:
    """The exact joint posterior."""
    check_is_fitted(model)
    pool, contexts = (validate_data(model, each, reset=False, dtype=np.float64) for each in (pool, contexts))
    belief = gaussian_belief(request.kept("posterior", model.posterior), pool, contexts, request)
    assert isinstance(belief, GaussianBelief)
    return belief


register_model(GaussianProcess, _belief)


def _factorised(covariance: Numbers) -> tuple[Numbers, float]:
    """L with L L' = covariance + jitter, and the jitter: 0, or the least power of ten that makes it regular."""
    size, count = np.diagonal(covariance), len(covariance)
    for jitter in (0.0, *(_JITTERS * np.mean(size))):
        factor = _cholesky(covariance + jitter * np.eye(count), float(np.max(size)), count)
        if factor is not None:
            break
    else:
        raise np.linalg.LinAlgError("the covariance of the labels is not positive definite, whatever is added to it")
    if jitter > 0.0:
        warnings.warn(
            f"the covariance of the {count} labels is numerically singular: {jitter:.3g} was added to its diagonal "
            "(jitter_). Rows repeat, or nearly so, with next to no noise: give Hyperparameters with more of it.",
            UserWarning,
            stacklevel=4,
        )
    return factor, float(jitter)


def _cholesky(matrix: Numbers, size: float, count: int) -> Numbers | None:
    """The lower factor; None where a pivot is no more than rounding of `size` in a matrix of `count` rows."""
    try:
        factor = cholesky(matrix, lower=True)
    except np.linalg.LinAlgError:
        return None
    regular = np.min(np.diagonal(factor)) ** 2 > count * np.finfo(float).eps * size
    return np.asarray(factor) if regular else None
