"""Gaussian beliefs about vectors: several outputs of a model, correlated with each other and with the labels.

With eta the label of a candidate made white, z | y = m + B eta + e: B B' is the covariance of z that it explains,
and e ~ N(0, V - B B'). Statistics are integrated over eta and e by the nodes of a rule.

Below the belief are the checks of covariances that no vector of labels and targets can have, and functions of positive
semi-definite matrices [..., d, d]. These are brought to unit diagonal first, so that what counts as rounding does not
depend on the units of any row; they are decomposed, never inverted, so that a singular one is as good as any.
Sizes: N candidates, M contexts, P pairs, L numbers of a label, d numbers of a target, J nodes of eta, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from stakes._utils.array import Array, asarrays, check_all, check_shape, constant, double, namespace, ratio, replaced
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.beliefs.vector_integration import (
    SymmetricNodes,
    matvec,
    split_vector_moments,
    squared_norm,
    vector_moments,
    weighted_mode,
)
from stakes.exceptions import StakesError
from stakes.losses.domains import Vectors

_SINGULAR = 1e-12  # of the variance of a standardised label: a direction with less has none
_SLACK = 1e-8  # of a variance: by how much a matrix may fail to be positive semi-definite


@dataclass(frozen=True, eq=False)
class VectorGaussianBelief:
    """Jointly Gaussian labels of N candidates, L numbers each, and targets of M contexts, d numbers each.

    A label may hold all outputs (L = d), some, or one number (L = 1).

    Args:
        mean: [M, d], of the targets.
        variance: [M, d, d], of the target: with noise if it is the label that will be realised, without if it is the
            latent function.
        candidate_variance: [N, L, L], of the label, noise included; it may be singular.
        covariance: [N, M, L, d], between label and target.
        candidate_covariance: [N, L, N, L], between labels, or a function from the position of a candidate to the
            covariances [L, N, L] of its label with all labels; needed for joint batches only.
        noise_variance: [N, L, L], of the noise of the label; needed for BALD only.
        rule: The nodes that integrate losses for which no closed form is known.

    Raises:
        StakesError: If shapes disagree, a matrix is no covariance, or a label explains more of a target than there is.

    Examples:
        One candidate, one context with two outputs; the label tells of the first output alone:

        >>> import numpy as np
        >>> from stakes import Mahalanobis, VectorGaussianBelief, score
        >>> belief = VectorGaussianBelief(
        ...     mean=[[0.0, 0.0]],
        ...     variance=[np.eye(2)],
        ...     candidate_variance=[[[1.0]]],
        ...     covariance=[[[[0.6, 0.0]]]],
        ... )
        >>> print(score(Mahalanobis(np.eye(2)), belief).round(6))  # 0.6^2 of the first variance
        [0.36]
    """

    mean: Array
    variance: Array
    candidate_variance: Array
    covariance: Array
    candidate_covariance: Array | Callable[[int], Array] | None = None
    noise_variance: Array = None
    rule: SymmetricNodes = field(default_factory=SymmetricNodes)

    def __post_init__(self) -> None:
        rows = self.candidate_covariance if not callable(self.candidate_covariance) else None
        mean, variance, candidate_variance, covariance, rows, noise = asarrays(
            mean=self.mean,
            variance=self.variance,
            candidate_variance=self.candidate_variance,
            covariance=self.covariance,
            candidate_covariance=rows,
            noise_variance=self.noise_variance,
        )
        check_shape("mean", mean, ("M", "d"))
        n_contexts, d = mean.shape
        if 0 in mean.shape:
            raise StakesError(f"mean must hold at least one context and one number for each; got shape {[*mean.shape]}")
        check_shape("variance", variance, (n_contexts, d, d))
        check_shape("candidate_variance", candidate_variance, ("N", "L", "L"))
        count, size = candidate_variance.shape[0], max(1, candidate_variance.shape[1])
        check_shape("candidate_variance", candidate_variance, (count, size, size))
        check_shape("covariance", covariance, (count, n_contexts, size, d))
        if not isinstance(self.rule, SymmetricNodes):
            raise TypeError(f"rule must be a SymmetricNodes(outer=..., inner=...); got {self.rule!r}")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", check_psd("variance", variance))
        object.__setattr__(self, "candidate_variance", check_psd("candidate_variance", candidate_variance))
        object.__setattr__(self, "covariance", covariance)
        check_constant_labels(self.variance, self.candidate_variance, covariance)
        check_pairs(self.variance, covariance, self.factor)
        if rows is not None:
            check_candidate_covariance(rows, self.candidate_variance)
            object.__setattr__(self, "candidate_covariance", rows)
        if noise is not None:
            check_shape("noise_variance", noise, (count, size, size))
            object.__setattr__(self, "noise_variance", check_psd("noise_variance", noise))

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return int(self.covariance.shape[0])

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return int(self.covariance.shape[1])

    @property
    def domain(self) -> Vectors:
        """Vectors of d numbers."""
        return Vectors(int(self.mean.shape[1]))

    @property
    def like(self) -> Array:
        """The mean, of whose library, dtype and device results are."""
        return self.mean

    @property
    def factor(self) -> Array:
        """[N, M, d, L]: B, the covariance of z with the label made white, in double precision."""
        xp = namespace(self.mean)
        white = whitener(double(self.candidate_variance), singular_threshold(self.candidate_variance))  # [N, L, L]
        return xp.matmul(xp.matrix_transpose(double(self.covariance)), white[:, None, :, :])

    def n_cells(self, integrand: Integrand) -> int:
        """J, the nodes of a label."""
        return len(self.rule.outcomes(self.candidate_variance.shape[1])[0])

    def reference(self, integrand: Integrand) -> Reference:
        """Where w(z) p(z | c) is largest, and how large it is there."""
        mean, spread = double(self.mean), matrix_root(double(self.variance))
        u = weighted_mode(integrand, mean, spread, self.rule.targets(mean.shape[1]))
        point = mean + matvec(spread, u)
        return Reference(point, log_weight(point, integrand) - 0.5 * squared_norm(u))

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: E[S(z) | c]."""
        mean, spread = double(self.mean)[:, None, :], matrix_root(double(self.variance))[:, None, :, :]
        centre = matvec(namespace(spread).matrix_transpose(spread), self._tilt(reference)[:, None, :])
        nodes = self.rule.targets(mean.shape[2])
        return vector_moments(integrand, mean, spread, centre, reference, nodes)[:, 0, :]

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: E[S(z) | eta_j] times the mass of node j."""
        xp, factor, variance = namespace(self.mean), self.factor, double(self.variance)
        left = variance - xp.matmul(factor, xp.matrix_transpose(factor))  # [N, M, d, d]
        rest = matrix_root(left, standard_deviations(variance))
        size, d = self.candidate_variance.shape[1], self.mean.shape[1]
        nodes = self.rule.outcomes(size), self.rule.targets(d)
        return split_vector_moments(integrand, factor, rest, self._tilt(reference), reference, *nodes)

    def take(self, candidates: slice, contexts: slice) -> VectorGaussianBelief:
        """A block of candidates and contexts."""
        rows, noise = self.candidate_covariance, self.noise_variance
        if callable(rows):
            rows = _rows_of_block(rows, range(self.n_candidates)[candidates], candidates)
        elif rows is not None:
            rows = rows[candidates, ...][:, :, candidates, :]
        return replaced(
            self,
            mean=self.mean[contexts, :],
            variance=self.variance[contexts, ...],
            candidate_variance=self.candidate_variance[candidates, ...],
            covariance=self.covariance[candidates, contexts, ...],
            candidate_covariance=rows,
            noise_variance=None if noise is None else noise[candidates, ...],
        )

    def refined(self) -> VectorGaussianBelief:
        """The same belief with a rule of twice the effort."""
        return replaced(self, rule=self.rule.refined())

    def _tilt(self, reference: Reference) -> Array:
        """[M, d]: V^+ (point - mean)."""
        xp, variance = namespace(self.mean), double(self.variance)
        white = whitener(variance, singular_threshold(self.variance))
        assert reference.point is not None
        return matvec(white, matvec(xp.matrix_transpose(white), reference.point - double(self.mean)))


def _rows_of_block(rows: Callable[[int], Array], positions: range, candidates: slice) -> Callable[[int], Array]:
    """The function from a position within the block to its covariances within the block."""
    return lambda i: rows(positions[i])[:, candidates, :]


def check_constant_labels(variance: Array, candidate_variance: Array, covariance: Array) -> None:
    """A direction of a label without variance must not covary with any target."""
    xp, eps = namespace(covariance), float(namespace(covariance).finfo(covariance.dtype).eps)
    constants = constant_directions(double(candidate_variance), singular_threshold(candidate_variance))  # [N, L, L]
    along = xp.matmul(xp.matrix_transpose(constants)[:, None, :, :], double(covariance))  # [N, M, L, d]
    bad = abs(along) > math.sqrt(eps) * standard_deviations(double(variance))[:, None, :]
    constant_label = (xp.linalg.diagonal(candidate_variance) == 0)[:, None, :, None] & (covariance != 0)
    if count := int(xp.count_nonzero(xp.any(bad | constant_label, axis=(1, 2, 3)))):
        raise StakesError(
            f"candidate_variance is singular for {count} of {covariance.shape[0]} candidates along a direction that "
            "covaries with a target, which cannot be: what does not vary tells nothing. Add the noise of the label to "
            "candidate_variance, and take it and covariance from one posterior."
        )


def check_pairs(variance: Array, covariance: Array, factor: Array) -> None:
    """V - B B' must be positive semi-definite, so (V + slack)^-1/2 B must have no singular value above 1."""
    xp, spread = namespace(covariance), standard_deviations(double(variance))
    lift = psd_tolerance(variance) * spread[..., None] ** 2 * constant(np.eye(variance.shape[-1]), spread)
    white = xp.matmul(xp.matrix_transpose(whitener(double(variance) + lift, 0.0))[None, ...], factor)  # [N, M, d, L]
    total = xp.sum(white**2, axis=(2, 3))  # [N, M]: bounds the largest squared_norm singular value, so few need more
    doubtful = xp.nonzero(xp.reshape(total > 1.0, (-1,)))[0]
    rows = xp.take(xp.reshape(white, (-1, *white.shape[2:])), doubtful, axis=0)  # [P, d, L]
    excess = xp.linalg.eigvalsh(xp.matmul(rows, xp.matrix_transpose(rows))) > 1.0
    constant_target = (spread == 0)[:, None, :] & (covariance != 0)
    count = int(xp.count_nonzero(xp.any(excess, axis=1))) + int(xp.count_nonzero(xp.any(constant_target, axis=(2, 3))))
    if count:
        raise StakesError(
            f"a label must not explain more of a target than there is, but for {count} of {math.prod(total.shape)} "
            "pairs variance[m] - C' candidate_variance[n]^-1 C with C = covariance[n, m] has a negative eigenvalue. "
            "Check that covariance is [candidates, contexts, L, d], that all come from one posterior, and that "
            "candidate_variance includes the noise."
        )


def check_candidate_covariance(rows: Array, candidate_variance: Array) -> None:
    """Covariances between labels [N, L, N, L]: symmetric, with the variances of labels along the diagonal."""
    count, size = candidate_variance.shape[:2]
    check_shape("candidate_covariance", rows, (count, size, count, size))
    xp, scale = namespace(rows), standard_deviations(candidate_variance)  # [N, L]
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


def check_psd(name: str, matrix: Array) -> Array:
    """`matrix` [..., d, d], made exactly symmetric; refused where it is not a covariance within rounding."""
    xp = namespace(matrix)
    check_all(xp.linalg.diagonal(matrix) >= 0, f"{name} must have no negative variance on its diagonal")
    scale, flipped = standard_deviations(matrix), xp.matrix_transpose(matrix)
    across = scale[..., :, None] * scale[..., None, :]
    check_all(abs(matrix - flipped) <= 1e-6 * across, f"{name} must hold symmetric matrices: give (V + V') / 2")
    symmetric = (matrix + flipped) / 2.0
    values, _ = correlation_eigh(double(symmetric), double(scale))
    message = f"{name} must hold covariances, positive semi-definite matrices; some have a negative eigenvalue"
    check_all(abs(symmetric) <= (1.0 + 1e-6) * across, message)
    check_all(values >= -psd_tolerance(matrix), message)
    return symmetric


def psd_tolerance(matrix: Array) -> float:
    """By how much a standardised matrix of this dtype may fail to be positive semi-definite."""
    return max(_SLACK, 8.0 * _precision(matrix))


def singular_threshold(matrix: Array) -> float:
    """The variance below which a direction of a standardised vector has none, in this dtype."""
    return max(_SINGULAR, 8.0 * _precision(matrix))


def _precision(matrix: Array) -> float:
    return int(matrix.shape[-1]) * float(namespace(matrix).finfo(matrix.dtype).eps)


def standard_deviations(matrix: Array) -> Array:
    """[..., d]: the standard deviations."""
    xp = namespace(matrix)
    return xp.sqrt(xp.clip(xp.linalg.diagonal(matrix), 0.0, None))


def correlation_eigh(matrix: Array, scale: Array) -> tuple[Array, Array]:
    """Eigenvalues [..., d] and eigenvectors [..., d, d] of `matrix` in units of `scale` [..., d] (0: left out)."""
    inverse = ratio(namespace(scale).ones_like(scale), scale)
    values, vectors = namespace(matrix).linalg.eigh(matrix * inverse[..., :, None] * inverse[..., None, :])
    return values, vectors


def matrix_root(matrix: Array, scale: Array | None = None) -> Array:
    """[..., d, d]: R with R R' = matrix, the symmetric root in units of `scale`, which varies little as it does."""
    xp = namespace(matrix)
    scale = standard_deviations(matrix) if scale is None else scale
    values, vectors = correlation_eigh(matrix, scale)
    spread = vectors * xp.sqrt(xp.clip(values, 0.0, None))[..., None, :]
    return scale[..., :, None] * xp.matmul(spread, xp.matrix_transpose(vectors))


def whitener(matrix: Array, threshold: float, scale: Array | None = None) -> Array:
    """[..., d, d]: K whose columns are directions with K' matrix K = 1, or 0 for those without variance."""
    xp = namespace(matrix)
    scale = standard_deviations(matrix) if scale is None else scale
    values, vectors = correlation_eigh(matrix, scale)
    varies = values > threshold
    lengths = xp.where(varies, 1.0 / xp.sqrt(xp.where(varies, values, xp.ones_like(values))), xp.zeros_like(values))
    return ratio(xp.ones_like(scale), scale)[..., :, None] * vectors * lengths[..., None, :]


def constant_directions(matrix: Array, threshold: float) -> Array:
    """[..., d, d]: columns of unit length in standard units along which `matrix` has no variance; 0 for others."""
    xp = namespace(matrix)
    scale = standard_deviations(matrix)
    values, vectors = correlation_eigh(matrix, scale)
    constant = xp.astype(values <= threshold, values.dtype)
    return ratio(xp.ones_like(scale), scale)[..., :, None] * vectors * constant[..., None, :]


def log_determinant(matrix: Array) -> Array:
    """[...]: log det, -inf for a singular matrix."""
    xp = namespace(matrix)
    scale = standard_deviations(matrix)
    values, _ = correlation_eigh(matrix, scale)
    known = xp.any((values <= singular_threshold(matrix)) | (scale == 0), axis=-1)
    one = xp.ones_like(scale)
    logs = xp.sum(xp.log(xp.where(values > 0, values, one)) + 2.0 * xp.log(xp.where(scale > 0, scale, one)), axis=-1)
    return xp.where(known, -math.inf * xp.ones_like(logs), logs)
