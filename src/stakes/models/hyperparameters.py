"""Hyperparameters of `GaussianProcess`: robust plug-in rules, and the most likely values.

Sizes: n labels so far, p features.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import pdist, squareform
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from stakes.models.kernels import Numbers

_TO_SD = 1.4826  # the standard deviation of a normal over its median absolute deviation
_CORRELATION = 0.5  # wanted at the typical distance of neighbours
_RIDGE = 1e-6
_LEAST_SIGNAL = {"text": 1e-6, "published": 1e-8}  # the text floors the variance at 1e-12
_LEAST_NOISE = {"text": 0.0, "published": 1e-6}


@dataclass(frozen=True)
class Hyperparameters:
    """The prior f ~ GP(mean, linear^2 <x, x'> + signal^2 Matern(|x - x'| / length)), and labels N(f, noise^2)."""

    linear: float
    """Standard deviation of the slope along each feature."""
    signal: float
    """Standard deviation of what is not linear."""
    length: float
    """Distance, in the units of the features, over which f varies."""
    noise: float
    """Standard deviation of a label about f."""
    mean: float | None = None
    """Of f, everywhere; None: the median of the labels that the process is fitted to."""

    def __post_init__(self) -> None:
        for name in ("linear", "signal", "noise"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a standard deviation, 0 or more; got {getattr(self, name)!r}")
        if not 0.0 < self.length < math.inf:
            raise ValueError(f"length must be a positive number; got {self.length!r}")
        if self.linear == self.signal == 0.0:
            raise ValueError("linear and signal must not both be 0: there would be nothing to learn")

    def kernel(self, nu: float) -> Any:
        """The covariance function of f, without the noise."""
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
