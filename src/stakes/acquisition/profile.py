"""The profile curve: under a Gaussian belief EUR depends on rho alone, one curve EUR_c(rho) for each context.

Whatever the loss, tabulate the curve by the general route at a few rho and interpolate for all candidates. What is
interpolated is EUR / rho, which tends to a constant as rho -> 0 (so small reductions keep their relative accuracy), as
a polynomial in the posterior sd s = sqrt(1 - rho), in which it is smooth up to rho = 1. Sizes: M contexts, R nodes.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from stakes._array import Array, constant, double, namespace
from stakes.acquisition.forms import ANY, GENERAL, Form, Reduction, register
from stakes.beliefs import GaussianBelief
from stakes.losses import Loss

_SIZES = (24, 48, 96)
_SMOOTH, _KINKED, _TOLERABLE = 2e-7, 1e-5, 1e-4  # relative errors: aimed at, and told of


class AccuracyWarning(UserWarning):
    """A result is less accurate than it should be; the message says by how much and what to do."""


def profile_curve(loss: Loss, belief: GaussianBelief) -> Reduction:
    """Tabulate the curve of each context with as many nodes as it needs; interpolate for any block of candidates."""
    for size in _SIZES:
        coefficients, log_scale = _chebyshev(loss, belief, size)  # [R, M]
        error = _relative_tail(coefficients)
        if error < (_KINKED if loss.breakpoints else _SMOOTH):
            break
    if error > _TOLERABLE:
        warnings.warn(
            f"the profile curve of {type(loss).__name__} is accurate to about {error:.0e} only. If its weight jumps or "
            "kinks, declare where: Weight(function, breakpoints=(...)). expected_regret does not interpolate.",
            AccuracyWarning,
            stacklevel=2,
        )

    def of(block: GaussianBelief) -> Array:
        return block.rho * _clenshaw(coefficients, 2.0 * namespace(block.rho).sqrt(1.0 - block.rho) - 1.0)

    coefficients = namespace(coefficients).astype(coefficients, belief.mean.dtype)
    return Reduction(of, log_scale)


def _chebyshev(loss: Loss, belief: GaussianBelief, size: int) -> tuple[Array, Array]:
    """[R, M], [M]: Chebyshev coefficients of EUR_c / rho in 2 s - 1, and the scale taken out of each context."""
    xp = namespace(belief.mean)
    angles = np.pi * (np.arange(size) + 0.5) / size
    rho = 1.0 - ((1.0 + np.cos(angles)) / 2.0) ** 2
    mean, variance = double(belief.mean), double(belief.variance)
    ones = xp.ones(size, dtype=mean.dtype)
    covariance = xp.sqrt(
        constant(rho, mean)[:, None] * variance
    )  # [R, M]: R candidates that remove rho of each variance
    table = replace(
        belief,
        mean=mean,
        variance=variance,
        candidate_variance=ones,
        covariance=covariance,
        candidate_covariance=None,
        noise_variance=None,
    )
    reduction = GENERAL.prepare(loss, table)
    rows = [reduction.of(table.take(slice(r, r + 1), slice(None))) / float(rho[r]) for r in range(size)]
    values = xp.concat(rows, axis=0)  # [R, M]
    transform = 2.0 / size * np.cos(np.outer(np.arange(size), angles))
    transform[0] /= 2.0
    return xp.matmul(constant(transform, mean), values), reduction.log_scale


def _relative_tail(coefficients: Array) -> float:
    """The last coefficients against the smallest end of the curve, over contexts: what interpolation loses."""
    xp = namespace(coefficients)
    tail = xp.max(xp.abs(coefficients[-4:, :]), axis=0)
    ends = [_clenshaw(coefficients, xp.full_like(coefficients[:1, :], end))[0, ...] for end in (-1.0, 1.0)]
    smallest = xp.min(xp.abs(xp.stack(ends)), axis=0)
    relative = xp.where(tail > 0, tail / xp.where(smallest > 0, smallest, xp.ones_like(tail)), xp.zeros_like(tail))
    return float(xp.max(relative))


def _clenshaw(coefficients: Array, x: Array) -> Array:
    """[n, M]: the Chebyshev series [R, M] at x [n, M]."""
    xp = namespace(coefficients)
    ahead, further = xp.zeros_like(x), xp.zeros_like(x)
    for r in range(coefficients.shape[0] - 1, 0, -1):
        ahead, further = coefficients[r, :] + 2.0 * x * ahead - further, ahead
    return coefficients[0, :] + x * ahead - further


register(ANY, ANY, GaussianBelief, Form("profile curve EUR_c(rho)", profile_curve, lambda loss, belief: 10))  # noqa: ARG005
