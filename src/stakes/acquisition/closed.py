"""Closed forms under a Gaussian belief: EUR_c(rho) in terms of the mean m and variance v of z and rho.

| loss                               | EUR_c                                            |
|------------------------------------|--------------------------------------------------|
| squared error                      | rho v                                            |
| squared error, w = exp(a z)        | wbar rho v,  wbar = exp(a m + a^2 v / 2)         |
| Linex(alpha)                       | alpha^2 rho v / 2                                |
| Linex(alpha), w = exp(a z)         | wbar alpha^2 rho v / 2                           |

Derived in docs/theory.md. The exponential weight turns N(m, v) into N(m + a v, v) and leaves rho as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stakes._array import Array, namespace, ratio
from stakes.acquisition.curve_totals import with_totals
from stakes.acquisition.curves import Curves
from stakes.acquisition.forms import Form, Reduction, register
from stakes.beliefs import GaussianBelief
from stakes.losses import ExponentialWeight, Linex, SquaredError


def _variance_reduction(block: GaussianBelief) -> Array:
    """[n, M]: rho v = cov(z, y)^2 / var(y)."""
    xp = namespace(block.mean)
    share = ratio(xp.ones_like(block.candidate_variance), xp.sqrt(block.candidate_variance))  # [n]
    reduction = share[:, None] * block.covariance
    reduction *= reduction  # in place: one pass less over the memory of all pairs
    return reduction


def log_mean_weight(weight: ExponentialWeight, belief: GaussianBelief) -> Array:
    """[M]: log E[exp(a z)] = a m + a^2 v / 2."""
    return weight.rate * belief.mean + weight.rate**2 * belief.variance / 2.0


def _squared_error(loss: SquaredError, belief: GaussianBelief) -> Reduction:  # noqa: ARG001 (nothing to set)
    return Reduction(_variance_reduction, namespace(belief.mean).zeros_like(belief.mean))


def _weighted_squared_error(loss: SquaredError, belief: GaussianBelief) -> Reduction:
    assert isinstance(loss.weight, ExponentialWeight)
    return Reduction(_variance_reduction, log_mean_weight(loss.weight, belief))


def _linex(loss: Linex, belief: GaussianBelief) -> Reduction:
    half = loss.alpha**2 / 2.0
    return Reduction(lambda block: half * _variance_reduction(block), namespace(belief.mean).zeros_like(belief.mean))


def _weighted_linex(loss: Linex, belief: GaussianBelief) -> Reduction:
    assert isinstance(loss.weight, ExponentialWeight)
    return Reduction(_linex(loss, belief).of, log_mean_weight(loss.weight, belief))


def _flat(loss: SquaredError | Linex, belief: GaussianBelief) -> tuple[Curves, Array]:
    """EUR_c / rho, which does not depend on rho here."""
    xp, half = namespace(belief.mean), loss.alpha**2 / 2.0 if isinstance(loss, Linex) else 1.0
    weight, level = loss.weight, half * belief.variance
    scale = log_mean_weight(weight, belief) if isinstance(weight, ExponentialWeight) else xp.zeros_like(level)
    return Curves(xp.stack([level, xp.zeros_like(level)], axis=0)), scale


def _form(name: str, prepare: Callable[[Any, Any], Reduction]) -> Form:
    return with_totals(Form(f"closed form: {name}", prepare), _flat)


register(SquaredError, None, GaussianBelief, _form("rho v", _squared_error))
register(SquaredError, ExponentialWeight, GaussianBelief, _form("E[w] rho v", _weighted_squared_error))
register(Linex, None, GaussianBelief, _form("alpha^2 rho v / 2", _linex))
register(Linex, ExponentialWeight, GaussianBelief, _form("E[w] alpha^2 rho v / 2", _weighted_linex))
