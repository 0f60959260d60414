"""Gaussian beliefs about vectors: several outputs of a model, correlated with each other and with the labels.

With eta the label of a candidate made white, z | y = m + B eta + e: B B' is the covariance of z that it explains, and
e ~ N(0, V - B B'). Statistics are integrated over eta and e by the nodes of a rule.
Sizes: N candidates, M contexts, L numbers of a label, d numbers of a target, J nodes of eta, D statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stakes._array import Array, asarrays, check_shape, double, namespace, replaced
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.beliefs.psd import check_psd, deviations, root, singular, whitener
from stakes.beliefs.vector_checks import check_candidates, check_pairs, check_still_labels
from stakes.beliefs.vector_nodes import SymmetricNodes
from stakes.beliefs.vector_quadrature import split_vector_moments, squared, tilted_centre, times, vector_moments
from stakes.domains import Vectors


@dataclass(frozen=True, eq=False)
class VectorGaussianBelief:
    """Jointly Gaussian labels of N candidates, L numbers each, and targets of M contexts, d numbers each.

    A label may hold all outputs (L = d), some, or one number (L = 1). `variance` is that of the target: with noise if
    it is the label that will be realised, without if it is the latent function. `candidate_variance` is that of the
    label, noise included; it may be singular. `candidate_covariance`, or a function from the position of a candidate
    to the covariances of its label with all labels, is needed for joint batches only; `noise_variance` for BALD only.
    The `rule` integrates losses for which no closed form is known.
    """

    mean: Array
    """[M, d]"""
    variance: Array
    """[M, d, d]"""
    candidate_variance: Array
    """[N, L, L]"""
    covariance: Array
    """[N, M, L, d]"""
    candidate_covariance: Array | Callable[[int], Array] | None = None
    """[N, L, N, L], or a function i -> [L, N, L]"""
    noise_variance: Array = None
    """[N, L, L]"""
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
            raise ValueError(f"mean must hold at least one context and one number for each; got shape {[*mean.shape]}")
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
        check_still_labels(self.variance, self.candidate_variance, covariance)
        check_pairs(self.variance, covariance, self.factor)
        if rows is not None:
            check_candidates(rows, self.candidate_variance)
            object.__setattr__(self, "candidate_covariance", rows)
        if noise is not None:
            check_shape("noise_variance", noise, (count, size, size))
            object.__setattr__(self, "noise_variance", check_psd("noise_variance", noise))

    @property
    def n_candidates(self) -> int:
        """N."""
        return int(self.covariance.shape[0])

    @property
    def n_contexts(self) -> int:
        """M."""
        return int(self.covariance.shape[1])

    @property
    def domain(self) -> Vectors:
        """Vectors of d numbers."""
        return Vectors(int(self.mean.shape[1]))

    @property
    def like(self) -> Array:
        """The mean."""
        return self.mean

    @property
    def factor(self) -> Array:
        """[N, M, d, L]: B, the covariance of z with the label made white, in double precision."""
        xp = namespace(self.mean)
        white = whitener(double(self.candidate_variance), singular(self.candidate_variance))  # [N, L, L]
        return xp.matmul(xp.matrix_transpose(double(self.covariance)), white[:, None, :, :])

    def n_cells(self, integrand: Integrand) -> int:
        """J."""
        return len(self.rule.outcomes(self.candidate_variance.shape[1])[0])

    def reference(self, integrand: Integrand) -> Reference:
        """Where w(z) p(z | c) is largest, and how large it is there."""
        mean, spread = double(self.mean), root(double(self.variance))
        u = tilted_centre(integrand, mean, spread, self.rule.targets(mean.shape[1]))
        point = mean + times(spread, u)
        return Reference(point, log_weight(point, integrand) - 0.5 * squared(u))

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: E[S(z) | c]."""
        mean, spread = double(self.mean)[:, None, :], root(double(self.variance))[:, None, :, :]
        centre = times(namespace(spread).matrix_transpose(spread), self._tilt(reference)[:, None, :])
        nodes = self.rule.targets(mean.shape[2])
        return vector_moments(integrand, mean, spread, centre, reference, nodes)[:, 0, :]

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: E[S(z) | eta_j] times the mass of node j."""
        xp, factor, variance = namespace(self.mean), self.factor, double(self.variance)
        left = variance - xp.matmul(factor, xp.matrix_transpose(factor))  # [N, M, d, d]
        rest = root(left, deviations(variance))
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
        white = whitener(variance, singular(self.variance))
        assert reference.point is not None
        return times(white, times(xp.matrix_transpose(white), reference.point - double(self.mean)))


def _rows_of_block(rows: Callable[[int], Array], positions: range, candidates: slice) -> Callable[[int], Array]:
    """The function from a position within the block to its covariances within the block."""
    return lambda i: rows(positions[i])[:, candidates, :]
