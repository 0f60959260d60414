"""What a Gaussian belief about vectors is refused for: covariances that no vector of labels and targets can have.

Sizes: N candidates, M contexts, P pairs, L numbers of a label, d numbers of a target.
"""

from __future__ import annotations

import math

import numpy as np

from stakes._array import Array, check_all, check_shape, constant, double, namespace
from stakes.beliefs.psd import deviations, singular, slack, still_directions, whitener


def check_still_labels(variance: Array, candidate_variance: Array, covariance: Array) -> None:
    """A direction of a label without variance must not covary with any target."""
    xp, eps = namespace(covariance), float(namespace(covariance).finfo(covariance.dtype).eps)
    still = still_directions(double(candidate_variance), singular(candidate_variance))  # [N, L, L]
    along = xp.matmul(xp.matrix_transpose(still)[:, None, :, :], double(covariance))  # [N, M, L, d]
    bad = abs(along) > math.sqrt(eps) * deviations(double(variance))[:, None, :]
    constant_label = (xp.linalg.diagonal(candidate_variance) == 0)[:, None, :, None] & (covariance != 0)
    if count := int(xp.count_nonzero(xp.any(bad | constant_label, axis=(1, 2, 3)))):
        raise ValueError(
            f"candidate_variance is singular for {count} of {covariance.shape[0]} candidates along a direction that "
            "covaries with a target, which cannot be: what does not vary tells nothing. Add the noise of the label to "
            "candidate_variance, and take it and covariance from one posterior."
        )


def check_pairs(variance: Array, covariance: Array, factor: Array) -> None:
    """V - B B' must be positive semi-definite, so (V + slack)^-1/2 B must have no singular value above 1."""
    xp, spread = namespace(covariance), deviations(double(variance))
    lift = slack(variance) * spread[..., None] ** 2 * constant(np.eye(variance.shape[-1]), spread)
    white = xp.matmul(xp.matrix_transpose(whitener(double(variance) + lift, 0.0))[None, ...], factor)  # [N, M, d, L]
    total = xp.sum(white**2, axis=(2, 3))  # [N, M]: bounds the largest squared singular value, so few need more
    doubtful = xp.nonzero(xp.reshape(total > 1.0, (-1,)))[0]
    rows = xp.take(xp.reshape(white, (-1, *white.shape[2:])), doubtful, axis=0)  # [P, d, L]
    excess = xp.linalg.eigvalsh(xp.matmul(rows, xp.matrix_transpose(rows))) > 1.0
    constant_target = (spread == 0)[:, None, :] & (covariance != 0)
    count = int(xp.count_nonzero(xp.any(excess, axis=1))) + int(xp.count_nonzero(xp.any(constant_target, axis=(2, 3))))
    if count:
        raise ValueError(
            f"a label must not explain more of a target than there is, but for {count} of {math.prod(total.shape)} "
            "pairs variance[m] - C' candidate_variance[n]^-1 C with C = covariance[n, m] has a negative eigenvalue. "
            "Check that covariance is [candidates, contexts, L, d], that all come from one posterior, and that "
            "candidate_variance includes the noise."
        )


def check_candidates(rows: Array, candidate_variance: Array) -> None:
    """Covariances between labels [N, L, N, L]: symmetric, with the variances of labels along the diagonal."""
    count, size = candidate_variance.shape[:2]
    check_shape("candidate_covariance", rows, (count, size, count, size))
    xp, scale = namespace(rows), deviations(candidate_variance)  # [N, L]
    own = xp.permute_dims(xp.linalg.diagonal(xp.permute_dims(rows, (1, 3, 0, 2))), (2, 0, 1))  # [N, L, L]
    check_all(
        abs(own - candidate_variance) <= 1e-6 * scale[..., None] * scale[:, None, :],
        "candidate_covariance[n, :, n, :] must equal candidate_variance[n] (both with the noise)",
    )
    flipped = xp.permute_dims(rows, (2, 3, 0, 1))
    check_all(
        abs(rows - flipped) <= 1e-6 * scale[..., None, None] * scale,
        "candidate_covariance must be symmetric: the entry [n, i, m, j] equal to [m, j, n, i]",
    )
