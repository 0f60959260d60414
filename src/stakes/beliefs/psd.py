"""Symmetric positive semi-definite matrices [..., d, d]: roots and whitening, through correlations.

Matrices are brought to unit diagonal first, so that what counts as rounding does not depend on the units of any row;
they are decomposed, never inverted, so that a singular one is as good as any.
"""

from __future__ import annotations

import math

from stakes._array import Array, check_all, double, namespace, ratio

_SINGULAR = 1e-12  # of the variance of a standardised label: a direction with less has none
_SLACK = 1e-8  # of a variance: by how much a matrix may fail to be positive semi-definite


def check_psd(name: str, matrix: Array) -> Array:
    """`matrix` [..., d, d], made exactly symmetric; refused where it is not a covariance within rounding."""
    xp = namespace(matrix)
    check_all(xp.linalg.diagonal(matrix) >= 0, f"{name} must have no negative variance on its diagonal")
    scale, flipped = deviations(matrix), xp.matrix_transpose(matrix)
    across = scale[..., :, None] * scale[..., None, :]
    check_all(abs(matrix - flipped) <= 1e-6 * across, f"{name} must hold symmetric matrices: give (V + V') / 2")
    symmetric = (matrix + flipped) / 2.0
    values, _ = decomposed(double(symmetric), double(scale))
    message = f"{name} must hold covariances, positive semi-definite matrices; some have a negative eigenvalue"
    check_all(abs(symmetric) <= (1.0 + 1e-6) * across, message)
    check_all(values >= -slack(matrix), message)
    return symmetric


def slack(matrix: Array) -> float:
    """By how much a standardised matrix of this dtype may fail to be positive semi-definite."""
    return max(_SLACK, 8.0 * _precision(matrix))


def singular(matrix: Array) -> float:
    """The variance below which a direction of a standardised vector has none, in this dtype."""
    return max(_SINGULAR, 8.0 * _precision(matrix))


def _precision(matrix: Array) -> float:
    return int(matrix.shape[-1]) * float(namespace(matrix).finfo(matrix.dtype).eps)


def deviations(matrix: Array) -> Array:
    """[..., d]: the standard deviations."""
    xp = namespace(matrix)
    return xp.sqrt(xp.clip(xp.linalg.diagonal(matrix), 0.0, None))


def decomposed(matrix: Array, scale: Array) -> tuple[Array, Array]:
    """Eigenvalues [..., d] and eigenvectors [..., d, d] of `matrix` in units of `scale` [..., d] (0: left out)."""
    inverse = ratio(namespace(scale).ones_like(scale), scale)
    values, vectors = namespace(matrix).linalg.eigh(matrix * inverse[..., :, None] * inverse[..., None, :])
    return values, vectors


def root(matrix: Array, scale: Array | None = None) -> Array:
    """[..., d, d]: R with R R' = matrix, the symmetric root in units of `scale`, which varies little as it does."""
    xp = namespace(matrix)
    scale = deviations(matrix) if scale is None else scale
    values, vectors = decomposed(matrix, scale)
    spread = vectors * xp.sqrt(xp.clip(values, 0.0, None))[..., None, :]
    return scale[..., :, None] * xp.matmul(spread, xp.matrix_transpose(vectors))


def whitener(matrix: Array, threshold: float, scale: Array | None = None) -> Array:
    """[..., d, d]: K whose columns are directions with K' matrix K = 1, or 0 for those without variance."""
    xp = namespace(matrix)
    scale = deviations(matrix) if scale is None else scale
    values, vectors = decomposed(matrix, scale)
    varies = values > threshold
    lengths = xp.where(varies, 1.0 / xp.sqrt(xp.where(varies, values, xp.ones_like(values))), xp.zeros_like(values))
    return ratio(xp.ones_like(scale), scale)[..., :, None] * vectors * lengths[..., None, :]


def still_directions(matrix: Array, threshold: float) -> Array:
    """[..., d, d]: columns of unit length in standard units along which `matrix` has no variance; 0 for others."""
    xp = namespace(matrix)
    scale = deviations(matrix)
    values, vectors = decomposed(matrix, scale)
    still = xp.astype(values <= threshold, values.dtype)
    return ratio(xp.ones_like(scale), scale)[..., :, None] * vectors * still[..., None, :]


def log_determinant(matrix: Array) -> Array:
    """[...]: log det, -inf for a singular matrix."""
    xp = namespace(matrix)
    scale = deviations(matrix)
    values, _ = decomposed(matrix, scale)
    known = xp.any((values <= singular(matrix)) | (scale == 0), axis=-1)
    one = xp.ones_like(scale)
    logs = xp.sum(xp.log(xp.where(values > 0, values, one)) + 2.0 * xp.log(xp.where(scale > 0, scale, one)), axis=-1)
    return xp.where(known, -math.inf * xp.ones_like(logs), logs)
