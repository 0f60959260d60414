"""Gaussian beliefs: Gaussian processes, Bayesian linear models, and whatever gives means and covariances.

For z jointly Gaussian with y, with m and v the mean and variance of z and rho = cov(z, y)^2 / (v var(y)): z | y ~
N(m + sqrt(rho v) eta, (1 - rho) v) with eta ~ N(0, 1). Integration (`stakes.beliefs.gaussian_integration`) is in
standard units u = (z - m) / sqrt(v).
Sizes: N candidates, M contexts, J nodes of eta, P panels and G nodes a panel of a distribution, D statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._utils.array import (
    Array,
    asarrays,
    at_once,
    check_all,
    check_shape,
    double,
    log_normal,
    namespace,
    ratio,
    replaced,
    slices,
)
from stakes._utils.compute import is_worth_compiling, loop
from stakes.beliefs.base import Integrand, Reference, Regret, log_weight
from stakes.beliefs.gaussian_integration import (
    WIDE_SD_AT_KINKS,
    GaussianCells,
    GaussianSplit,
    SharedSplit,
    distribution_today,
    shared_split,
)
from stakes.beliefs.log_moments import LogIntegrand, LogSplit, log_span, normal_log_moments
from stakes.beliefs.quadrature import Resolved, normal_moments, weight_modes
from stakes.beliefs.roughness import resolved
from stakes.exceptions import StakesError
from stakes.losses.distributions import Distribution, align_axes
from stakes.losses.domains import REAL, Interval

_ROUNDING = 1e-9  # by which rho may exceed 1
_PAIRS = 2**17  # of a block of correlations to check: 1 MiB, within the cache


@dataclass(frozen=True, eq=False)
class GaussianBelief:
    """Jointly Gaussian labels of N candidates and targets of M contexts.

    Args:
        mean: [M], of the target z.
        variance: [M], of the target: with noise if z is the label that will be realised, without if it is the latent
            function.
        candidate_variance: [N], of the candidate's label y, noise included.
        covariance: [N, M], between label and target.
        candidate_covariance: [N, N], between labels, with `candidate_variance` on its diagonal, or a function from the
            position of a candidate to its row [N]; needed for joint batches only.
        noise_variance: A number or [N], of the noise of the label; needed for BALD only.

    Raises:
        StakesError: If shapes disagree, a variance is negative or a correlation is beyond 1.

    Examples:
        A label that removes 0.6^2 = 36% of the variance of the first target, and tells nothing of the second:

        >>> from stakes import GaussianBelief, SquaredError, expected_reduction, score
        >>> belief = GaussianBelief(
        ...     mean=[0.0, 5.0], variance=[1.0, 1.0], candidate_variance=[1.0], covariance=[[0.6, 0.0]]
        ... )
        >>> print(belief.rho)
        [[0.36 0.  ]]
        >>> print(expected_reduction(SquaredError(), belief), score(SquaredError(), belief))
        [[0.36 0.  ]] [0.18]
    """

    mean: Array
    variance: Array
    candidate_variance: Array
    covariance: Array
    candidate_covariance: Array | Callable[[int], Array] | None = None
    noise_variance: Array = None

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
        check_shape("mean", mean, ("M",))
        if mean.shape[0] == 0:
            raise StakesError("mean must hold at least one context: the loss is averaged over them; got none")
        check_shape("variance", variance, (mean.shape[0],))
        check_shape("candidate_variance", candidate_variance, ("N",))
        check_shape("covariance", covariance, (candidate_variance.shape[0], mean.shape[0]))
        check_all(variance >= 0, "variance must be at least 0")
        check_all(candidate_variance >= 0, "candidate_variance must be at least 0")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", variance)
        object.__setattr__(self, "candidate_variance", candidate_variance)
        object.__setattr__(self, "covariance", covariance)
        self._check_correlation()
        self._check_candidates(rows, noise)

    def _check_correlation(self) -> None:
        xp = namespace(self.covariance)
        slack = max(_ROUNDING, 8.0 * float(xp.finfo(self.covariance.dtype).eps))
        sd, target_sd = xp.sqrt(self.candidate_variance), xp.sqrt((1.0 + slack) * self.variance)  # [N], [M]
        if count := count_impossible(self.covariance, sd, target_sd):
            raise StakesError(
                f"covariance[n, m]^2 must not exceed candidate_variance[n] * variance[m]; it does for {count} of "
                f"{self.n_candidates * self.n_contexts} pairs. Check that covariance is [candidates, contexts], that "
                "all come from one posterior, and that candidate_variance includes the noise."
            )

    def _check_candidates(self, rows: Array | None, noise: Array | None) -> None:
        count = self.n_candidates
        if rows is not None:
            check_shape("candidate_covariance", rows, (count, count))
            xp = namespace(rows)
            gap = abs(xp.linalg.diagonal(rows) - self.candidate_variance)
            check_all(
                gap <= 1e-6 * self.candidate_variance,
                "the diagonal of candidate_covariance must equal candidate_variance (both with the noise)",
            )
            scale = xp.max(self.candidate_variance) if count else 0.0
            check_all(abs(rows - rows.T) <= 1e-6 * scale, "candidate_covariance must be symmetric")
            object.__setattr__(self, "candidate_covariance", rows)
        if noise is not None:
            if noise.ndim:
                check_shape("noise_variance", noise, (count,))
            check_all(noise >= 0, "noise_variance must be at least 0")
            object.__setattr__(self, "noise_variance", noise)

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return int(self.covariance.shape[0])

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return int(self.covariance.shape[1])

    def n_cells(self, integrand: Integrand) -> int:
        """J at most: that of a candidate which tells all, or all but as little as an even grid can resolve."""
        mean, sd = self._mean_and_sd()
        integrand, reference = self.resolved(integrand), self.reference(integrand)
        rho = namespace(mean).ones_like(mean)[None, :]
        shares = (1.0, 1.0 - WIDE_SD_AT_KINKS**2)
        splits = (GaussianSplit(integrand, mean, sd, rho * share, reference) for share in shares)
        return max(int(split.nodes[0].shape[2]) for split in splits)

    @property
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    @property
    def like(self) -> Array:
        """The mean, of whose library, dtype and device results are."""
        return self.mean

    @property
    def rho(self) -> Array:
        """[N, M]: the fraction of the variance of z that observing y removes; 0 where nothing varies."""
        squared = self._squared_correlation()  # beyond 1 by rounding only: checked in the constructor
        return namespace(self.mean).clip(squared, 0.0, 1.0)

    def reference(self, integrand: Integrand) -> Reference:
        """Where w(z) p(z | c) is largest, and how large it is there."""
        mean, sd = self._mean_and_sd()
        u = weight_modes(integrand, mean, sd)
        return Reference(mean + sd * u, log_weight(mean + sd * u, integrand) - 0.5 * u * u)

    def resolved(self, integrand: Integrand) -> Resolved:
        """The same integrand, with what it takes to integrate it; all methods take it in place of the loss.

        Args:
            integrand: The loss.

        Returns:
            The integrand, and where it is steep, jumps or kinks.
        """
        return resolved(integrand, *self._mean_and_sd())

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: E[S(z) | c]."""
        mean, sd = self._mean_and_sd()
        return normal_moments(self.resolved(integrand), mean[:, None], sd[:, None], reference)[:, 0, :]

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: E[S(z) | eta_j] times the mass of node j."""
        mean, sd = self._mean_and_sd()
        return GaussianSplit(self.resolved(integrand), mean, sd, double(self.rho), reference).moments()

    def log_span(self, integrand: LogIntegrand) -> float:
        """Over how many units log T ranges where the loss may look."""
        mean, sd = self._mean_and_sd()
        return log_span(integrand, mean[:, None], sd[:, None])

    def log_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """[M, 2]: log E[S(z) | c]."""
        mean, sd = self._mean_and_sd()
        return normal_log_moments(integrand, mean[:, None], sd[:, None], reference)[:, 0, :]

    def log_split_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """[N, M, J, 2]: log E[S(z) 1{y in cell j} | c]."""
        mean, sd = self._mean_and_sd()
        return LogSplit(integrand, mean, sd, double(self.rho), reference).moments()

    def shared_split(self, integrand: Integrand) -> SharedSplit | None:
        """Split moments of labels that tell the same share of every context.

        Args:
            integrand: The loss.

        Returns:
            The moments as a function of that share; None where contexts share no nodes.
        """
        return shared_split(self.resolved(integrand), *self._mean_and_sd())

    def distribution(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """[M]: w(z) p(z | c)."""
        mean, sd = self._mean_and_sd()

        def log_weighted_density(z: Array) -> Array:
            centre, spread, scale = (align_axes(each, z) for each in (mean, sd, reference.log_scale))
            return log_normal(z, centre, spread) + integrand.log_magnitudes(z)[..., 0] - scale

        today = distribution_today(self.resolved(integrand), mean, sd, reference, marks)
        return replaced(today, log_weighted_density=log_weighted_density)

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Array) -> Array:
        """[N, M]: regrets in the cells of eta, summed."""
        cells = GaussianCells(self.resolved(integrand), *self._mean_and_sd(), reference, marks)
        return cells.over_cells(double(self.rho), regret)

    def n_nodes(self, integrand: Integrand) -> int:
        """A bound on J P G, of a label that is integrated in panels."""
        reference = self.reference(integrand)
        marks = namespace(self.mean).zeros_like(double(self.mean))[:, None]
        return GaussianCells(self.resolved(integrand), *self._mean_and_sd(), reference, marks).most_nodes()

    def take(self, candidates: slice, contexts: slice) -> GaussianBelief:
        """A block of candidates and contexts."""
        rows, noise = self.candidate_covariance, self.noise_variance
        if callable(rows):
            rows = _rows_of_block(rows, range(self.n_candidates)[candidates], candidates)
        elif rows is not None:
            rows = rows[candidates, :][:, candidates]
        return replaced(
            self,
            mean=self.mean[contexts],
            variance=self.variance[contexts],
            candidate_variance=self.candidate_variance[candidates],
            covariance=self.covariance[candidates, contexts],
            candidate_covariance=rows,
            noise_variance=noise if noise is None or not getattr(noise, "ndim", 0) else noise[candidates],
        )

    def _squared_correlation(self) -> Array:
        """[N, M]: the squared correlation, without squares that leave the range of numbers."""
        xp = namespace(self.mean)
        return ratio(ratio(self.covariance, xp.sqrt(self.candidate_variance)[:, None]), xp.sqrt(self.variance)) ** 2

    def _mean_and_sd(self) -> tuple[Array, Array]:
        """[M], [M]: mean and standard deviation of z in double precision."""
        variance = double(self.variance)
        return double(self.mean), namespace(variance).sqrt(variance)


def _rows_of_block(rows: Callable[[int], Array], positions: range, candidates: slice) -> Callable[[int], Array]:
    """The function from a position within the block to its row of covariances within the block."""
    return lambda i: rows(positions[i])[candidates]


def count_impossible(covariance: Array, sd: Array, target_sd: Array) -> int:
    """How many covariances [N, M] are beyond the product of standard deviations [N] and [M]."""
    if isinstance(covariance, np.ndarray) and is_worth_compiling(covariance.size):
        return int(_count_loop(covariance, sd, target_sd))
    xp, count = namespace(covariance), 0
    for part in slices(covariance.shape[0], max(1, at_once(covariance, _PAIRS) // covariance.shape[1])):
        count += int(xp.count_nonzero(xp.abs(covariance[part, :]) > sd[part, None] * target_sd))
    return count


@loop
def _count_loop(covariance: Any, sd: Any, target_sd: Any) -> int:
    count = 0
    for n in range(covariance.shape[0]):
        row, own = covariance[n], sd[n]
        for m in range(covariance.shape[1]):
            count += abs(row[m]) > own * target_sd[m]
    return count
