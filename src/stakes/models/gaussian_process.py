"""The paper's Gaussian process: a linear trend, a Matern residual, noise, and robust hyperparameters.

Hyperparameters come by plug-in rules or are the most likely values. A process may be followed at rows that stay the
same while labels come in: each label adds a row to what is solved.

Sizes: n labels so far, m new ones, N candidates, M contexts, B rows of any block, p features.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import pdist, squareform
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes._utils.array import slices
from stakes.beliefs import GaussianBelief
from stakes.exceptions import StakesError
from stakes.models.base import register_list, register_model
from stakes.models.gp_posterior import (
    Candidates,
    KernelPosterior,
    Place,
    belief_at,
    bounded,
    candidates_at,
    prepare_gaussian,
)
from stakes.models.sklearn_gaussian import Numbers, cross_covariance, kernel_posterior, prepare_hypotheses

_TO_SD = 1.4826  # the standard deviation of a normal over its median absolute deviation
_CORRELATION = 0.5  # wanted at the typical distance of neighbours
_RIDGE = 1e-6
_LEAST_SIGNAL = {"text": 1e-6, "published": 1e-8}  # the text floors the variance at 1e-12
_LEAST_NOISE = {"text": 0.0, "published": 1e-6}
_JITTERS = 10.0 ** np.arange(-12, -3)  # of the mean of k(x, x)
_ROWS = 256  # of candidates, whose covariances are brought up to date at a time


@dataclass(frozen=True)
class Hyperparameters:
    """The prior f ~ GP(mean, linear^2 <x, x'> + signal^2 Matern(|x - x'| / length)), and labels N(f, noise^2).

    Args:
        linear: Standard deviation of the slope along each feature.
        signal: Standard deviation of what is not linear.
        length: Distance, in the units of the features, over which f varies.
        noise: Standard deviation of a label about f.
        mean: Of f, everywhere; None: the median of the labels that the process is fitted to.

    Raises:
        StakesError: If a standard deviation is negative, the length is not positive, or `linear` and `signal` are 0.

    Examples:
        >>> Hyperparameters(linear=0.0, signal=1.0, length=0.5, noise=0.1).kernel(nu=2.5)
        0**2 * DotProduct(sigma_0=0) + 1**2 * Matern(length_scale=0.5, nu=2.5)
    """

    linear: float
    signal: float
    length: float
    noise: float
    mean: float | None = None

    def __post_init__(self) -> None:
        for name in ("linear", "signal", "noise"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise StakesError(f"{name} must be a standard deviation, 0 or more; got {getattr(self, name)!r}")
        if not 0.0 < self.length < math.inf:
            raise StakesError(f"length must be a positive number; got {self.length!r}")
        if self.linear == self.signal == 0.0:
            raise StakesError("linear and signal must not both be 0: there would be nothing to learn")

    def kernel(self, nu: float) -> Any:
        """The covariance function of f, without the noise.

        Args:
            nu: Smoothness of the Matern part.

        Returns:
            A kernel of scikit-learn.
        """
        linear = ConstantKernel(self.linear**2, "fixed") * DotProduct(0.0, "fixed")
        return linear + ConstantKernel(self.signal**2, "fixed") * Matern(self.length, "fixed", nu)


def plug_in(rows: Numbers, labels: Numbers, nu: float, rules: Literal["text", "published"]) -> Hyperparameters:
    """The robust rules of the paper's appendix E.3, with Z the rows (`text`) or the rows standardised (`published`).

    - noise: 1.4826 / sqrt 2 times the median |y_i - y_j(i)|, j(i) the nearest neighbour of i in Z.
    - linear: the standard deviation of the fit of a ridge of 1e-6 on Z.
    - signal, of its residuals r: `text` has sqrt((1.4826 median|r|)^2 - noise^2), at least 1e-6, which is what is left
      where the rows outnumber the labels or the noise explains all; `published` has their standard deviation.
    - length: the median distance of nearest neighbours in Z has correlation 1/2.

    Where the labels tell no scale (one label, or all alike), or no two rows differ, values are assumed, with a warning.
    """
    from sklearn.linear_model import Ridge

    mean = float(np.median(labels))
    if np.ptp(labels) == 0.0:
        return replace(_assumed(rows), mean=mean)
    z = StandardScaler().fit_transform(rows) if rules == "published" else rows
    distances = squareform(pdist(z)) + np.diag(np.full(len(z), np.inf))  # [n, n]
    noise = _TO_SD / math.sqrt(2.0) * float(np.median(abs(labels - labels[np.argmin(distances, axis=1)])))
    fit = Ridge(alpha=_RIDGE, solver="svd").fit(z, labels - mean).predict(z)
    signal = _signal(labels - mean - fit, noise, rules)
    length = neighbour_ratio(nu) * _spacing(distances)
    return Hyperparameters(float(np.std(fit)), signal, length, max(noise, _LEAST_NOISE[rules]), mean)


def _signal(residuals: Numbers, noise: float, rules: Literal["text", "published"]) -> float:
    robust = (_TO_SD * float(np.median(abs(residuals)))) ** 2 - noise**2
    return max(math.sqrt(max(robust, 0.0)) if rules == "text" else float(np.std(residuals)), _LEAST_SIGNAL[rules])


def neighbour_ratio(nu: float) -> float:
    """The length over the distance at which the Matern correlation is 1/2: 1.032 for nu = 3/2, 0.9596 for 5/2."""
    at = [[0.0]], [[1.0]]
    return float(brentq(lambda length: Matern(length, nu=nu)(*at)[0, 0] - _CORRELATION, 1e-3, 1e3, xtol=1e-15))


def _spacing(distances: Numbers) -> float:
    """The median distance of nearest neighbours; where that is 0, of those among rows that differ."""
    nearest = np.min(distances, axis=1)
    if (spacing := float(np.median(nearest))) > 0.0:
        return spacing
    apart = np.min(np.where(distances > 0.0, distances, np.inf), axis=1)
    spacing = float(np.median(apart)) if math.isfinite(apart[0]) else 1.0
    warnings.warn(
        f"half of the rows or more have a twin, so that the distance of neighbours is 0; {spacing:.4g} is taken, that "
        "of rows that differ (1 where none do). Give Hyperparameters to say otherwise.",
        UserWarning,
        stacklevel=5,
    )
    return spacing


def _assumed(rows: Numbers) -> Hyperparameters:
    """A unit of the label, a tenth of it as noise, and a length that suits standardised features."""
    assumed = Hyperparameters(linear=0.0, signal=1.0, length=math.sqrt(rows.shape[1]), noise=0.1)
    warnings.warn(
        f"the labels so far ({len(rows)}, all alike) tell no scale; assumed: {assumed}. What labels are worth is in "
        "arbitrary units until labels differ. Give Hyperparameters to say otherwise.",
        UserWarning,
        stacklevel=5,
    )
    return assumed


def most_likely(rows: Numbers, labels: Numbers, nu: float) -> Hyperparameters:
    """The values of largest marginal likelihood, from two starts, about the median of the labels.

    In units of the standard deviation of labels, linear and noise are sought in [0.001, 10], signal in [0.01, 10]; the
    length in [0.01, 100] times the median distance of rows. An end of these is a finding, not an error.
    """
    mean, unit = float(np.median(labels)), float(np.std(labels))
    if np.ptp(labels) == 0.0:
        return replace(_assumed(rows), mean=mean)
    distances = pdist(rows)
    reach = float(np.median(distances[distances > 0.0])) if distances.any() else 1.0
    process = GaussianProcessRegressor(_free_kernel(nu, reach), optimizer=None).fit(rows, (labels - mean) / unit)
    start = process.kernel_.theta
    starts = (start, start + np.log([0.01, 1.0, 0.3, 10.0]))  # mostly linear and smooth, or rough and noisy
    found = [_climb(process, each) for each in starts]
    best = min(found, key=lambda result: float(result.fun))
    if not best.success:
        warnings.warn(f"the likelihood was not maximised: {best.message}", ConvergenceWarning, stacklevel=4)
    linear, signal, length, noise = (float(each) for each in np.exp(best.x / [2.0, 2.0, 1.0, 2.0]))
    return Hyperparameters(unit * linear, unit * signal, length, unit * noise, mean)


def _free_kernel(nu: float, reach: float) -> Any:
    """Of labels in standard units, with bounds on variances and the length."""
    linear = ConstantKernel(0.25, (1e-6, 1e2)) * DotProduct(0.0, "fixed")
    smooth = ConstantKernel(0.5, (1e-4, 1e2)) * Matern(reach, (1e-2 * reach, 1e2 * reach), nu)
    return linear + smooth + WhiteKernel(0.01, (1e-6, 1e2))


def _climb(process: GaussianProcessRegressor, start: Numbers) -> Any:
    """L-BFGS on the logarithms."""

    def downhill(theta: Numbers) -> tuple[float, Numbers]:
        value, gradient = process.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)
        return -value, -gradient

    bounds = process.kernel_.bounds
    start = np.clip(start, *bounds.T)
    return minimize(downhill, start, jac=True, bounds=bounds, method="L-BFGS-B")


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn regressor: f ~ GP(c, s_lin^2 <x, x'> + s_f^2 Matern_nu(|x - x'| / l)), y = f(x) + N(0, s_n^2).

    The prior mean c is the median of the labels. Features should be of one scale: put a StandardScaler before it.
    Fitted, it has `hyperparameters_`, `kernel_` (of f, without noise), `X_`, `y_`, and `jitter_`: what was added to the
    diagonal because the covariance of labels was numerically singular, 0 mostly.

    Args:
        hyperparameters: "plug-in" for the robust rules of the paper's appendix E.3, in closed form; "marginal
            likelihood" for the most likely ones; or `Hyperparameters` of your own.
        nu: Smoothness of the Matern part: 0.5, 1.5, 2.5, inf, or any positive number (slower).
        rules: Which plug-in rules: "text", as the paper has them, or "published", as the authors' code does (the scale
            of f is the plain standard deviation of residuals, and rows are standardised once more).

    Examples:
        >>> import numpy as np
        >>> from stakes import GaussianProcess, SquaredError, rank
        >>> X = np.linspace(-2.0, 2.0, 41)[:, None]
        >>> model = GaussianProcess().fit(X[:10], np.sin(X[:10, 0]))
        >>> rank(model, SquaredError(), pool=X[10:], n=1).indices
        (28,)
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
        """Choose the hyperparameters, and condition on labels.

        Args:
            X: Rows [n, p].
            y: Labels [n].

        Returns:
            The process itself.

        Raises:
            StakesError: If hyperparameters, `nu` or `rules` are not what they may be.
        """
        rows, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        labels = np.asarray(labels, dtype=np.float64)
        chosen = self._chosen(rows, labels)
        self.hyperparameters_ = replace(chosen, mean=float(np.median(labels)) if chosen.mean is None else chosen.mean)
        self.kernel_ = self.hyperparameters_.kernel(self.nu)
        self._factorise(rows, labels)
        return self

    def _chosen(self, rows: Numbers, labels: Numbers) -> Hyperparameters:
        if not self.nu > 0:
            raise StakesError(f"nu must be a positive number, such as 1.5; got {self.nu!r}")
        if self.rules not in ("text", "published"):
            raise StakesError(f"rules must be 'text' or 'published'; got {self.rules!r}")
        if isinstance(self.hyperparameters, Hyperparameters):
            return self.hyperparameters
        if self.hyperparameters == "plug-in":
            return plug_in(rows, labels, self.nu, self.rules)
        if self.hyperparameters == "marginal likelihood":
            return most_likely(rows, labels, self.nu)
        raise StakesError(
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
        """The process that knows m more labels, with the hyperparameters it has: exact.

        The factor of the covariance of labels is extended by m rows, O(n^2 m), and this process is left as it is.

        Args:
            X: Rows [m, p].
            y: Labels [m].

        Returns:
            Another process.
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
        """Predict f.

        Args:
            X: Rows [B, p].
            return_std: Whether the standard deviation of a label is wanted, too, noise included.

        Returns:
            [B]: the mean of f; with `return_std` a pair, with [B] standard deviations.
        """
        check_is_fitted(self)
        rows, posterior = validate_data(self, X, reset=False, dtype=np.float64), self.posterior()
        mean = cross_covariance(self.kernel_, rows, self.X_) @ self.weights_ + self.hyperparameters_.mean
        return (mean, np.sqrt(sum(posterior.variances(posterior.place(rows))))) if return_std else mean

    def belief(
        self, pool: Any, contexts: Any, *, target: Literal["label", "latent"] = "label", joint: bool = False
    ) -> GaussianBelief:
        """What it believes of labels and targets, jointly.

        Args:
            pool: Candidates [N, p].
            contexts: Rows [M, p] at which answers will be needed.
            target: "label" if z is the label that will be realised at a context, noise included; "latent" for f.
            joint: Whether covariances between candidates are wanted, which joint batches need.

        Returns:
            The belief.
        """
        return _prepare(self, contexts, target=target, joint=joint)(pool)

    def posterior(self) -> KernelPosterior:
        """What it knows of f: means and covariances at any rows."""
        return kernel_posterior(**self._state())

    def _state(self) -> dict[str, Any]:
        """The arguments of `kernel_posterior`."""
        values, labels = self.hyperparameters_, self.y_ - np.asarray(self.hyperparameters_.mean)
        return {
            "kernel": self.kernel_,
            "noise": values.noise**2,
            "white": False,
            "train": self.X_,
            "factor": self.factor_,
            "solved": solve_triangular(self.factor_, labels, lower=True, check_finite=False),
            "offset": values.mean,
            "unit": 1.0,
        }


def _prepare(
    model: GaussianProcess, contexts: Any, *, target: Literal["label", "latent"], joint: bool, **_: Any
) -> Callable[[Any], GaussianBelief]:
    """The exact joint posterior."""
    check_is_fitted(model)
    there = validate_data(model, contexts, reset=False, dtype=np.float64)
    prepared = prepare_gaussian(model.posterior(), there, target=target, joint=joint)
    return lambda rows: cast(GaussianBelief, prepared(validate_data(model, rows, reset=False, dtype=np.float64)))


register_model(GaussianProcess, _prepare)
register_list(GaussianProcess, prepare_hypotheses)


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


@dataclass(frozen=True, eq=False)
class FollowedProcess:
    """What a process believes of N candidates and M contexts, kept so that a label costs O(n^2 + n (N + M) + N M).

    Made by `follow`.

    Args:
        process: The process.
        here: What is kept of the candidates.
        there: What is kept of the contexts.

    Examples:
        >>> import numpy as np
        >>> from stakes.models import GaussianProcess, follow
        >>> X = np.linspace(0.0, 1.0, 20)[:, None]
        >>> followed = follow(GaussianProcess().fit(X[:5], X[:5, 0] ** 2), pool=X, contexts=X)
        >>> before, after = followed.belief(), followed.condition(X[[9]], X[[9], 0] ** 2).belief()
        >>> bool(np.all(after.variance <= before.variance))
        True
    """

    process: GaussianProcess
    here: Candidates
    there: Place

    def belief(self, *, target: Literal["label", "latent"] = "label", joint: bool = False) -> GaussianBelief:
        """The belief of the process about the rows it is followed at.

        Args:
            target: "label" if z is the label that will be realised at a context, noise included; "latent" for f.
            joint: Whether covariances between candidates are wanted, which joint batches need.

        Returns:
            The belief.
        """
        belief = belief_at(self.process.posterior(), self.here, self.there, target=target, joint=joint)
        return cast(GaussianBelief, belief)

    def condition(self, X: Any, y: Any) -> FollowedProcess:  # noqa: N803
        """The same with m more labels: exact, and this one is left as it is.

        A label is one row more of the factor and of what is solved, and a product of rank one off the covariances.

        Args:
            X: Rows [m, p].
            y: Labels [m].

        Returns:
            Another `FollowedProcess`.
        """
        process = self.process.condition(X, y)
        place = self.here[0]
        assert place is not None
        if process.jitter_ != self.process.jitter_:  # another factor altogether
            return follow(process, place[0], self.there[0])
        here, there = (_extended(process, each) for each in (place, self.there))
        added = slice(place[1].shape[1], None)
        return FollowedProcess(process, _updated(process, self.here[3], here, there, added), there)


def follow(process: GaussianProcess, pool: Any, contexts: Any) -> FollowedProcess:
    """Follow a fitted process at rows that stay the same while labels come in.

    Args:
        process: The process.
        pool: Candidates [N, p].
        contexts: Rows [M, p] at which answers will be needed.

    Returns:
        The process with what it needs of these rows, to which labels are added by `condition`.

    Examples:
        >>> import numpy as np
        >>> from stakes import SquaredError, score
        >>> X = np.linspace(0.0, 1.0, 20)[:, None]
        >>> followed = follow(GaussianProcess().fit(X[:5], X[:5, 0] ** 2), pool=X, contexts=X)
        >>> best = int(np.argmax(score(SquaredError(), followed.belief())))
        >>> followed = followed.condition(X[[best]], X[[best], 0] ** 2)
        >>> len(followed.process.y_)
        6
    """
    check_is_fitted(process)
    pool, contexts = (validate_data(process, each, reset=False, dtype=np.float64) for each in (pool, contexts))
    posterior = process.posterior()
    there = posterior.place(contexts)
    here = candidates_at(posterior, pool, there, posterior.variances(there)[0], keep=True)
    return FollowedProcess(process, here, there)


def _extended(process: GaussianProcess, place: Place) -> Place:
    """The place [B, n + m]: with corner^-1 (k(x_new, x) - below v(x)), `below` and `corner` the new rows of L."""
    rows, projected = place
    known = projected.shape[1]
    below, corner = process.factor_[known:, :known], process.factor_[known:, known:]  # [m, n], [m, m]
    new = cross_covariance(process.kernel_, rows, process.X_[known:])  # [B, m]
    new -= projected @ below.T
    solved = solve_triangular(corner, new.T, lower=True)  # [m, B]
    return rows, np.concatenate([projected, solved.T], axis=1)


def _updated(process: GaussianProcess, covariance: Numbers, here: Place, there: Place, new: slice) -> Candidates:
    """The candidates once the `new` columns of both places are known; `covariance` [N, M] is that before."""
    posterior = process.posterior()
    (variance, noise), (target_variance, _) = posterior.variances(here), posterior.variances(there)
    after = np.empty_like(covariance)
    for part in slices(len(covariance), _ROWS):
        less = covariance[part] - here[1][part, new] @ there[1][:, new].T
        bounded(less, variance[part], target_variance, after[part], pairs=covariance.size)
    return here, variance, noise, after
