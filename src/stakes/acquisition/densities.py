"""Closed forms for losses of a density or a quantile: EUR_c(rho) in terms of the mean m and variance v of z and rho.

| loss                               | EUR_c under a Gaussian belief                                    |
|------------------------------------|------------------------------------------------------------------|
| log score                          | -log(1 - rho) / 2, under a warp too                              |
| CRPS, absolute error, Pinball(tau) | k sqrt(v) (1 - sqrt(1 - rho)),                                   |
|                                    | k = 1 / sqrt(pi), sqrt(2 / pi), pdf(ppf(tau))                    |
| any of them, w = exp(a z)          | the same times wbar = exp(a m + a^2 v / 2)                       |
| log score, any w                   | -W log(1 - rho) / 2 + rho E[w (u^2 - 1)] / 2 - J(rho)            |

u is the standardised target, W = E[w], and J(rho) = E[W_eta log(W_eta / W)], with W_eta = E[w | eta], is by how much a
label is expected to raise x log x of x = E[w]: a profile curve, smooth up to rho = 1, where the log score is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from stakes._array import Array, check_all, double, namespace, ratio
from stakes._panels import beside
from stakes.acquisition.closed import log_mean_weight
from stakes.acquisition.forms import ANY, Form, Reduction, register
from stakes.acquisition.profile import profile_curve
from stakes.beliefs import GaussianBelief, Integrand, WarpedGaussianBelief
from stakes.domains import REAL, Interval
from stakes.losses import CRPS, AbsoluteError, ExponentialWeight, LogScore, NegativeEntropy, Pinball


def _information(block: GaussianBelief | WarpedGaussianBelief) -> Array:
    """[n, M]: -log(1 - rho) / 2, in nats."""
    check_all(
        block.rho < 1.0,
        "a label that tells a target exactly is worth infinitely much under LogScore: variance and candidate_variance "
        "must include the noise of labels, or use CRPS",
    )
    return -namespace(block.rho).log1p(-block.rho) / 2.0


def _spread_reduction(block: GaussianBelief) -> Array:
    """[n, M]: sqrt(v) (1 - sqrt(1 - rho)), written so that a small rho keeps its digits."""
    xp = namespace(block.rho)
    return xp.sqrt(block.variance) * block.rho / (1.0 + xp.sqrt(1.0 - block.rho))


def _factor(loss: CRPS | AbsoluteError | Pinball) -> float:
    """k: the uncertainty at v = 1."""
    if isinstance(loss, CRPS):
        return 1.0 / math.sqrt(math.pi)
    return loss.unit * math.exp(-0.5 * float(ndtri(loss.level)) ** 2) / math.sqrt(2.0 * math.pi)


def _log_score(loss: LogScore, belief: Any) -> Reduction:
    return Reduction(_information, _log_scale(loss, belief))


def _spread(loss: CRPS | AbsoluteError | Pinball, belief: GaussianBelief) -> Reduction:
    factor = _factor(loss)
    return Reduction(lambda block: factor * _spread_reduction(block), _log_scale(loss, belief))


def _log_scale(loss: Any, belief: Any) -> Array:
    """[M]: log wbar, 0 without a weight."""
    if loss.weight is None:
        return namespace(belief.like).zeros_like(belief.like)
    return log_mean_weight(loss.weight, belief)


def _weighted_log_score(loss: LogScore, belief: GaussianBelief) -> Reduction:
    return _in_parts(loss, belief)


def _warped_log_score(loss: LogScore, belief: WarpedGaussianBelief) -> Reduction:
    """That of the latent f with weight w(g(f)): no increasing map changes what densities tell."""
    reduction = _in_parts(belief.unwarped(loss), belief.latent)
    return Reduction(lambda block: reduction.of(block.latent), reduction.log_scale)


def _in_parts(integrand: Integrand, belief: GaussianBelief) -> Reduction:
    """-W log(1 - rho) / 2 + rho E[w (u^2 - 1)] / 2 - J(rho), whose integrand's statistics are w."""
    reference = belief.reference(integrand)
    mean, sd = double(belief.mean), namespace(belief.mean).sqrt(double(belief.variance))
    moments = belief.moments(_Bend(integrand, mean, sd), reference)  # [M, 2]
    dtype, xp = belief.mean.dtype, namespace(belief.mean)
    mass, bend = xp.astype(moments[:, 0], dtype), xp.astype(moments[:, 1], dtype)
    lost = profile_curve(_Concentration(integrand), belief)
    return Reduction(
        lambda block: mass * _information(block) + block.rho * bend / 2.0 - lost.of(block), reference.log_scale
    )


@dataclass(frozen=True, eq=False)
class _Bend:
    """w (1, u^2 - 1), u the standardised target."""

    weight: Integrand
    mean: Array
    sd: Array
    domain: Interval = REAL

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.weight.breakpoints

    def log_magnitudes(self, z: Array) -> Array:
        return self.weight.log_magnitudes(z)

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        xp, mean, sd = namespace(z), beside(self.mean, z), beside(self.sd, z)
        u = ratio(z - mean, sd + xp.zeros_like(z))
        return self.weight.statistics(z, reference) * xp.stack([xp.ones_like(z), u * u - 1.0], axis=-1)


@dataclass(frozen=True, eq=False)
class _Concentration:
    """As a loss: the Bregman loss with phi(x) = x log x of x = w(z), measured in units of w(reference).

    Its expected regret is E[W_eta log(W_eta / W)]. Of the magnitudes, log w is first as it is the scale; the other is
    that of the constant, since a label that makes w unlikely matters as well.
    """

    weight: Integrand
    domain: Interval = REAL

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.weight.breakpoints

    def log_magnitudes(self, z: Array) -> Array:
        log_weight = self.weight.log_magnitudes(z)[..., 0]
        return namespace(z).stack([log_weight, namespace(z).zeros_like(log_weight)], axis=-1)

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        weight = self.weight.statistics(z, reference)
        return namespace(z).concat([namespace(z).ones_like(weight), weight], axis=-1)

    def action(self, moments: Array) -> Array:
        return ratio(moments[..., 1:], moments[..., :1])

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        mass = moments[..., 0]
        return mass * NegativeEntropy().divergence(self.action(moments), action)


_PREPARE: Callable[[Any, Any], Reduction] = _spread
for _loss in (CRPS, AbsoluteError, Pinball):
    register(_loss, None, GaussianBelief, Form("closed form: k sqrt(v) (1 - sqrt(1 - rho))", _PREPARE))
    register(
        _loss, ExponentialWeight, GaussianBelief, Form("closed form: E[w] k sqrt(v) (1 - sqrt(1 - rho))", _PREPARE)
    )
register(LogScore, None, GaussianBelief, Form("closed form: -log(1 - rho) / 2", _log_score))
register(LogScore, None, WarpedGaussianBelief, Form("closed form: -log(1 - rho) / 2", _log_score))
register(LogScore, ExponentialWeight, GaussianBelief, Form("closed form: -E[w] log(1 - rho) / 2", _log_score))
register(LogScore, ANY, GaussianBelief, Form("-E[w] log(1 - rho) / 2 and a profile curve", _weighted_log_score))
register(LogScore, ANY, WarpedGaussianBelief, Form("-E[w] log(1 - rho) / 2 and a profile curve", _warped_log_score))
