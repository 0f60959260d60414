"""Strategies of the paper's studies that stakes does not have by name: one loss, Monte Carlo, and Linex in logarithms.

The general way is slow for the last, or leaves the range of numbers. For potentials -log the uncertainty is
log E[T] - E[log T], and the second term is on average the same after a label as before. So a label is worth
log E[T] - E_y[log E[T | y]].

Sizes: N candidates, M contexts, S draws, Q nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from stakes import BregmanLoss, GaussianBelief, SquaredError, WarpedGaussianBelief, score
from stakes.beliefs import Belief
from stakes.losses import AnyLoss, Function, NegativeLog

_TINY = float(np.finfo(float).tiny)
_NODES = np.linspace(-7.0, 7.0, 29)  # of a standard normal; an even grid converges faster than any power
_LOG_MASS = -0.5 * _NODES**2 - np.log(np.sum(np.exp(-0.5 * _NODES**2)))  # [Q]
_CURVE = 24  # nodes in rho: 1e-7 of the best score for log variances up to 0.5
_FAR = -20.0  # standard deviations below 0, where two terms cancel to the sixth digit


@dataclass(frozen=True)
class ScoreOf:
    """The expected reduction of one loss."""

    own: AnyLoss

    def __call__(self, belief: Belief, loss: AnyLoss, random_state: np.random.Generator) -> Any:
        """[N]: relative to a scale that all share, as absolute ones may be beyond the range of numbers."""
        return score(self.own, belief, return_log_scale=True)[0]


@dataclass(frozen=True)
class NestedMonteCarlo:
    """E_w[z^2] - E_w[z]^2, times E[w], minus its mean after `draws` labels of a candidate, from `draws` targets each.

    For w = exp(rate z) only: there w(m + s e) = w(m) w(s e), so that the double sum over labels and targets is a
    product of two sums. It is the number that the double loop gives, to rounding, in a thousandth of the time.
    """

    draws: int

    def __call__(self, belief: GaussianBelief, loss: SquaredError, random_state: np.random.Generator) -> Any:
        """[N]: scores up to a factor that all share."""
        rate, mean = loss.weight.rate, np.asarray(belief.mean)
        labels = random_state.standard_normal((belief.n_candidates, self.draws))  # eta [N, S]
        targets = random_state.standard_normal((belief.n_contexts, self.draws))  # epsilon [M, S]
        level = np.exp(rate * mean - np.max(rate * mean))  # [M]
        now = level * spread(rate, np.sqrt(belief.variance), targets)
        reach = belief.covariance / np.sqrt(belief.candidate_variance)[:, None]  # [N, M]: sd of the mean after y
        return np.asarray(
            [
                np.mean(now - level * _after(rate, each, np.asarray(belief.variance), eta, targets))
                for each, eta in zip(reach, labels, strict=True)
            ]
        )


def spread(rate: float, sd: Any, normals: Any) -> Any:
    """[M]: the mean of w z^2 minus (mean of w z)^2 / (mean of w) over z = sd e, e the `normals` [M, S]."""
    z = sd[:, None] * normals
    w = np.exp(rate * z)
    return np.mean(w * z * z, axis=1) - np.mean(w * z, axis=1) ** 2 / np.mean(w, axis=1)


def _after(rate: float, reach: Any, variance: Any, eta: Any, targets: Any) -> Any:
    """[M]: the mean over labels of E[w] Var_w once a candidate is labelled, in units of w at the mean."""
    moved = np.mean(np.exp(rate * reach[:, None] * eta), axis=1)
    return moved * spread(rate, np.sqrt(np.maximum(variance - reach**2, 0.0)), targets)


def clipped(z: Any) -> Any:
    """T(z) = max(z, the smallest positive number), which the published code takes the logarithm of."""
    return np.maximum(z, _TINY)


CLIPPED = BregmanLoss(NegativeLog(), Function(clipped))
"""The loss behind the published score E[log T] - log E[T]: Itakura and Saito's of z; Linex has T = exp(-alpha z)."""


def clipped_scores(belief: GaussianBelief, _loss: AnyLoss, _random_state: np.random.Generator) -> Any:
    """[N]: what labels are worth for CLIPPED, which is what the published code calls Linex."""
    return _worth(belief, _log_positive_part)


def variance_scores(belief: WarpedGaussianBelief, _loss: AnyLoss, _random_state: np.random.Generator) -> Any:
    """[N]: the variance that labels take from exp(f), f Gaussian: exp(2 m + v) (exp(rho v) - 1), over contexts."""
    latent = belief.latent
    removed = np.asarray(latent.covariance) ** 2 / np.asarray(latent.candidate_variance)[:, None]  # rho v, [N, M]
    log_square = 2.0 * np.asarray(latent.mean) + np.asarray(latent.variance)
    return np.expm1(removed) @ np.exp(log_square - np.max(log_square))


def warped_scores(alpha: float, belief: WarpedGaussianBelief) -> Any:
    """[N]: what labels are worth for Linex if the logarithm of the target is Gaussian.

    The worth for a context hangs on rho = cov^2 / (v var y) alone. So it is computed at Chebyshev nodes in
    s = sqrt(1 - rho), and its ratio to rho, which is smooth there, is interpolated for all candidates.
    """
    latent = belief.latent
    mean, sd = np.asarray(latent.mean), np.sqrt(np.asarray(latent.variance))
    s = 0.5 + 0.5 * np.cos(np.pi * (np.arange(_CURVE) + 0.5) / _CURVE)  # [J], none is 0 or 1
    reach, left = np.sqrt(1.0 - s**2) * sd[:, None], s * sd[:, None]  # [M, J]
    after = _log_linex(alpha, mean[:, None, None] + reach[..., None] * _NODES, left[..., None])  # [M, J, Q]
    worth = _log_linex(alpha, mean, sd)[:, None] - after @ np.exp(_LOG_MASS)
    curves = np.polynomial.chebyshev.chebfit(2.0 * s - 1.0, (worth / (1.0 - s**2)).T, _CURVE - 1)  # [J, M]
    rho = np.minimum(latent.covariance**2 / (latent.variance * latent.candidate_variance[:, None]), 1.0)  # [N, M]
    places = 2.0 * np.sqrt(1.0 - rho) - 1.0
    return np.mean(rho * np.polynomial.chebyshev.chebval(places, curves[:, None, :], tensor=False), axis=1)


def _log_linex(alpha: float, mean: Any, sd: Any) -> Any:
    """Log E[exp(-alpha exp(f))] for f ~ N(mean, sd^2)."""
    f = mean[..., None] + sd[..., None] * _NODES
    terms = _LOG_MASS - alpha * np.exp(np.minimum(f, 700.0))
    top = np.max(terms, axis=-1)
    return top + np.log(np.sum(np.exp(terms - top[..., None]), axis=-1))


def _worth(belief: GaussianBelief, log_moment: Callable[[Any, Any], Any]) -> Any:
    """[N]: log E[T] - E_y[log E[T | y]], averaged over contexts."""
    mean, variance = np.asarray(belief.mean), np.asarray(belief.variance)
    now, scores = log_moment(mean, np.sqrt(variance)), []
    for covariance, label in zip(belief.covariance, belief.candidate_variance, strict=True):
        reach = (covariance / np.sqrt(label))[:, None]  # [M, 1]
        sd = np.sqrt(np.maximum(variance[:, None] - reach**2, 0.0))
        after = log_moment(mean[:, None] + reach * _NODES, sd + np.zeros(len(_NODES)))  # [M, Q]
        scores.append(np.mean(now - after @ np.exp(_LOG_MASS)))
    return np.asarray(scores)


def _log_positive_part(mean: Any, sd: Any) -> Any:
    """Log E[max(z, tiny)] for z ~ N(mean, sd^2): log sd + log(t Phi(t) + phi(t)), t = mean / sd, at least log tiny.

    Far below 0 both terms cancel: there it is log phi(t) - 2 log |t|, up to 3 / t^2 of it.
    """
    sd = np.maximum(sd, 1e-100)
    t = mean / sd
    near = np.clip(t, _FAR, -_FAR)
    log_phi = -0.5 * near**2 - 0.5 * np.log(2.0 * np.pi)
    close = log_phi + np.log1p(near * np.exp(log_ndtr(near) - log_phi))
    away = np.minimum(t, _FAR)
    far = -0.5 * np.minimum(away**2, 1e4) - 0.5 * np.log(2.0 * np.pi) - 2.0 * np.log(-away)
    above = np.log(np.maximum(t, 1.0))
    parts = np.where(t < _FAR, far, np.where(t > -_FAR, above, close))
    return np.maximum(np.log(sd) + parts, np.log(_TINY))
