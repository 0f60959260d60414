"""Closed forms under a Gaussian belief about vectors, and what its labels tell of themselves.

| loss                                  | EUR_c                                                        |
|---------------------------------------|--------------------------------------------------------------|
| Mahalanobis(A)                        | tr(A B B') = tr(A C' S^+ C), S = Var[y], C = Cov[y, z]       |
| Mahalanobis(A), w = exp(b . z)        | wbar tr(A B B'),  wbar = exp(b . m + b' V b / 2)             |

The weight turns N(m, V) into N(m + V b, V) and leaves B, the covariance of z with the label made white, as it is.
Sizes: N candidates, n of a block, M contexts, L numbers of a label, d numbers of a target.
"""

from __future__ import annotations

import math

from stakes._array import Array, check_all, constant, double, filled, namespace
from stakes.acquisition.forms import Form, Reduction, register
from stakes.beliefs import VectorGaussianBelief
from stakes.beliefs.psd import log_determinant, singular, whitener
from stakes.losses import ExponentialLinearWeight, Mahalanobis, Quadratic

_ROUNDING = 1e-6  # relative, by which the variance of a label may fall below that of its noise


def _trace_reduction(loss: Mahalanobis, block: VectorGaussianBelief) -> Array:
    """[n, M]: tr(A B B') as the sum of squares of R B, A = R' R."""
    assert isinstance(loss.potential, Quadratic)
    xp, factor = namespace(block.mean), block.factor  # [n, M, d, L]
    priced = xp.matmul(constant(loss.potential.root, factor), factor)
    return xp.astype(xp.sum(priced**2, axis=(2, 3)), block.mean.dtype)


def _mahalanobis(loss: Mahalanobis, belief: VectorGaussianBelief) -> Reduction:
    return Reduction(lambda block: _trace_reduction(loss, block), filled(belief.n_contexts, 0.0, belief.mean))


def _weighted_mahalanobis(loss: Mahalanobis, belief: VectorGaussianBelief) -> Reduction:
    assert isinstance(loss.weight, ExponentialLinearWeight)
    xp, mean, variance = namespace(belief.mean), double(belief.mean), double(belief.variance)
    rates = constant(loss.weight.rates, mean)
    log_mean_weight = xp.matmul(mean, rates) + xp.matmul(xp.matmul(variance, rates), rates) / 2.0  # [M]
    return Reduction(lambda block: _trace_reduction(loss, block), log_mean_weight)


def _numbers(loss: Mahalanobis, belief: VectorGaussianBelief) -> int:  # noqa: ARG001 (any such loss)
    return 8 * int(math.prod(belief.covariance.shape[2:]))


register(Mahalanobis, None, VectorGaussianBelief, Form("closed form: tr(A B B')", _mahalanobis, _numbers))
register(
    Mahalanobis,
    ExponentialLinearWeight,
    VectorGaussianBelief,
    Form("closed form: E[w] tr(A B B')", _weighted_mahalanobis, _numbers),
)


def label_entropy(belief: VectorGaussianBelief) -> Array:
    """[N]: log det(2 pi e Var[y]) / 2; -inf for a label of which some direction is known."""
    variance = double(belief.candidate_variance)
    return (variance.shape[-1] * math.log(2.0 * math.pi * math.e) + log_determinant(variance)) / 2.0


def label_information(belief: VectorGaussianBelief) -> Array:
    """[N]: log(det Var[y] / det noise) / 2, by the eigenvalues of Var[y] - noise with the noise made white."""
    if belief.noise_variance is None:
        raise ValueError("bald needs the noise_variance of the VectorGaussianBelief; got None. Give it, [N, L, L].")
    xp, noise = namespace(belief.mean), double(belief.noise_variance)
    check_all(
        xp.isfinite(log_determinant(noise)),
        "bald needs noise_variance without a direction of no noise; there a label tells infinitely much",
    )
    white = whitener(noise, singular(belief.noise_variance))
    excess = xp.matmul(xp.matmul(xp.matrix_transpose(white), double(belief.candidate_variance) - noise), white)
    values = xp.linalg.eigvalsh((excess + xp.matrix_transpose(excess)) / 2.0)  # [N, L]
    check_all(
        values >= -_ROUNDING,
        "candidate_variance must include noise_variance, but is smaller for some candidates: add the noise to it",
    )
    return xp.sum(xp.log1p(xp.clip(values, 0.0, None)), axis=1) / 2.0


def label_spread(belief: VectorGaussianBelief) -> Array:
    """[N]: tr Var[y]."""
    xp = namespace(belief.mean)
    return xp.sum(xp.linalg.diagonal(belief.candidate_variance), axis=-1)
