"""Gaussian beliefs: Gaussian processes, Bayesian linear models, and whatever gives means and covariances.

For z jointly Gaussian with y, with m and v the mean and variance of z and rho = cov(z, y)^2 / (v var(y)):
z | y ~ N(m + sqrt(rho v) eta, (1 - rho) v) with eta ~ N(0, 1). Everything is integrated in standard units u = (z-m)/sqrt(v).
Sizes: N candidates, M contexts, P = N M pairs, J nodes of eta, Q nodes of z, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from stakes._array import Array, asarrays, check_all, check_shape, constant, double, namespace, ratio, replaced, slices
from stakes.beliefs.base import Integrand
from stakes.beliefs.quadrature import (
    CHUNK,
    COARSEST,
    PANEL,
    SPACING,
    TAIL,
    density,
    modes,
    normal_moments,
    panels,
    standard,
    standard_nodes,
    trapezoid,
)
from stakes.domains import REAL, Interval

_RESOLVED = 0.2  # posterior sd (of prior sd) from which nodes of z at SPACING resolve the posterior, to 1e-21
_KINKED = 0.1  # the same where breakpoints ask for panels, which are made as narrow as it takes
_PER_SD = 1.4  # trapezoid nodes to the sd of a bell that integrate it to 1e-16
_LAYER = (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0)  # cuts around a breakpoint of z as eta sees it, in posterior sds
_ROUNDING = 1e-9  # by which rho may exceed 1


@dataclass(frozen=True, eq=False)
class GaussianBelief:
    """Jointly Gaussian labels of N candidates and targets of M contexts.

    `variance` is that of the target z: with noise if z is the label that will be realised, without if it is the latent
    function. `candidate_variance` is that of the candidate's label y, noise included. `covariance` is between both.
    `candidate_covariance`, [N, N] with `candidate_variance` on its diagonal or a function from a candidate's position to
    its row [N], is needed for joint batches only; `noise_variance`, a number or [N], for BALD only.
    """

    mean: Array
    """[M]"""
    variance: Array
    """[M]"""
    candidate_variance: Array
    """[N]"""
    covariance: Array
    """[N, M]"""
    candidate_covariance: Array | Callable[[int], Array] | None = None
    """[N, N], or a function i -> [N]"""
    noise_variance: Array | float | None = None
    """[N] or a number"""

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
        check_shape("variance", variance, (mean.shape[0],))
        check_shape("candidate_variance", candidate_variance, ("N",))
        check_shape("covariance", covariance, (candidate_variance.shape[0], mean.shape[0]))
        check_all(variance >= 0, "variance must be at least 0")
        check_all(candidate_variance >= 0, "candidate_variance must be at least 0")
        fields = dict(mean=mean, variance=variance, candidate_variance=candidate_variance, covariance=covariance)
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self._check_correlation()
        self._check_candidates(rows, noise)

    def _check_correlation(self) -> None:
        xp = namespace(self.covariance)
        product = self.candidate_variance[:, None] * self.variance
        slack = max(_ROUNDING, 8.0 * float(xp.finfo(product.dtype).eps))
        excess = self.covariance**2 > product * (1.0 + slack)
        if count := int(xp.count_nonzero(excess)):
            raise ValueError(
                f"covariance[n, m]^2 must not exceed candidate_variance[n] * variance[m]; it does for {count} of "
                f"{math.prod(excess.shape)} pairs. Check that covariance is [candidates, contexts], that all come from "
                "one posterior, and that candidate_variance includes the noise."
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
            object.__setattr__(self, "candidate_covariance", rows)
        if noise is not None:
            if noise.ndim:
                check_shape("noise_variance", noise, (count,))
            check_all(noise >= 0, "noise_variance must be at least 0")
            object.__setattr__(self, "noise_variance", noise)

    @property
    def n_candidates(self) -> int:
        """N."""
        return int(self.covariance.shape[0])

    @property
    def n_contexts(self) -> int:
        """M."""
        return int(self.covariance.shape[1])

    def n_cells(self, integrand: Integrand) -> int:
        """J at most: that of a candidate which tells all."""
        certain = replaced(
            self,
            mean=self.mean[:1],
            variance=self.variance[:1],
            candidate_variance=self.variance[:1],
            covariance=self.variance[:1][None, :],
        )
        return int(certain.split_moments(integrand, certain.reference(integrand)).shape[2])

    @property
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    @property
    def like(self) -> Array:
        """The mean."""
        return self.mean

    @property
    def rho(self) -> Array:
        """[N, M]: the fraction of the variance of z that observing y removes; 0 where nothing varies."""
        explained = ratio(self.covariance**2, self.candidate_variance[:, None] * self.variance)
        return namespace(explained).clip(explained, 0.0, 1.0)  # beyond 1 by rounding only: checked at the door

    def reference(self, integrand: Integrand) -> Array:
        """[M]: where w(z) p(z | c) is largest."""
        mean, sd = self._standard()
        return mean + sd * modes(integrand, mean, sd)[:, 0]

    def moments(self, integrand: Integrand, reference: Array) -> Array:
        """[M, D]: E[S(z) | c]."""
        mean, sd = self._standard()
        return normal_moments(integrand, mean[:, None], sd[:, None], reference)[:, 0, :]

    def split_moments(self, integrand: Integrand, reference: Array) -> Array:
        """[N, M, J, D]: E[S(z) | eta_j] times the mass of node j."""
        return _Split(self, integrand, reference).all_pairs()

    def take(self, candidates: slice, contexts: slice) -> GaussianBelief:
        """A block of candidates and contexts."""
        rows, noise = self.candidate_covariance, self.noise_variance
        if callable(rows):
            positions = range(self.n_candidates)[candidates]
            whole = rows
            rows = lambda i: whole(positions[i])[candidates]  # noqa: E731
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

    def _standard(self) -> tuple[Array, Array]:
        """[M], [M]: mean and standard deviation of z in double precision."""
        variance = double(self.variance)
        return double(self.mean), namespace(variance).sqrt(variance)


class _Split:
    """The integration of split moments over all pairs of one belief.

    Where the posterior is wide, all nodes eta share one set of nodes of z and only the density changes: the split
    moments are then those of one discrete measure, and what distinguishes cells is exact however little they differ.
    Where it is narrow (posterior sd below _RESOLVED), each eta has nodes of its own.
    """

    def __init__(self, belief: GaussianBelief, integrand: Integrand, reference: Array) -> None:
        self.integrand, self.reference = integrand, reference
        self.mean, self.sd = belief._standard()
        self.rho = double(belief.rho)  # [N, M]
        xp = self.xp = namespace(self.rho)
        self.root = xp.clip(xp.sqrt(self.rho), 1e-150, 1.0)  # sqrt(rho)
        self.rest = xp.clip(xp.sqrt(1.0 - self.rho), 1e-150, 1.0)  # the posterior sd, in standard units
        self.resolved = _KINKED if integrand.breakpoints else _RESOLVED
        # A panel resolves a posterior of a quarter of its width.
        narrowest = self._smallest(self.rest[self.rest >= self.resolved], 1.0)
        width = min(PANEL, 4.0 * narrowest)
        self.u, weights, low, high = standard_nodes(integrand, self.mean, self.sd, width)  # [M, Q], [M, Q], [M], [M]
        z = self.mean[:, None] + self.sd[:, None] * self.u
        self.weighted = weights[..., None] * integrand.statistics(z, reference[:, None])  # [M, Q, D]
        self.tilt_low, self.tilt_high = low + TAIL, high - TAIL  # [M]: between them the weighted mass has its centre
        self.cuts = standard(integrand.breakpoints, self.mean, self.sd)  # [M, B]
        self.eta, self.mass = self._outer()  # [N, M, J]

    def all_pairs(self) -> Array:
        """[N, M, J, D]."""
        if 0 in self.rho.shape:
            return self.xp.zeros((*self.eta.shape, self.weighted.shape[-1]), dtype=self.rho.dtype)
        shared = not self.integrand.breakpoints and _same(self.tilt_low) and _same(self.tilt_high)
        conditional = [
            self._one_correlation(n) if shared and _same(self.rho[n, :]) else self._row(n)
            for n in range(self.rho.shape[0])
        ]
        return self.mass[..., None] * self.xp.stack(conditional, axis=0)

    def _outer(self) -> tuple[Array, Array]:
        """[N, M, J] each: nodes eta and their masses.

        E[S | eta] is S smoothed by the posterior, as wide as rest / root to eta: a breakpoint of z is a layer of that
        width, which an even grid resolves until it gets narrow, and panels around it from then on.
        """
        low, high = self.tilt_low * self.root - TAIL, self.tilt_high * self.root + TAIL
        steepest = 1.0 / self._smallest(1.0 / self.root, 1.0)
        if not self.integrand.breakpoints or self._smallest(self.rest, 1.0) >= self.resolved:
            smooth = self._smallest(self.rest / self.root, 1.0) if self.integrand.breakpoints else 1.0
            eta, weights = trapezoid(low, high, min(COARSEST, SPACING / steepest, smooth / _PER_SD))
        else:
            layer = self.rest[..., None, None] * constant(_LAYER, self.rho)  # [N, M, 1, L]
            cuts = (self.cuts[..., None] + layer) / self.root[..., None, None]  # [N, M, B, L]
            eta, weights = panels(low, high, self.xp.reshape(cuts, (*low.shape, cuts.shape[2] * cuts.shape[3])))
        return eta, weights * density(eta)

    def _smallest(self, values: Array, default: float) -> float:
        return float(self.xp.min(values)) if math.prod(values.shape) else default

    def _one_correlation(self, n: int) -> Array:
        """[M, J, D]: E[S | eta] for a candidate that is equally correlated with all contexts, which share their nodes."""
        if float(self.rest[n, 0]) < self.resolved:
            return self._row(n)
        kernel = self._kernel(self.root[n, :1], self.rest[n, :1], self.eta[n, :1, :], self.u[:1, :])[0, ...]  # [J, Q]
        return self.xp.permute_dims(self.xp.tensordot(self.weighted, kernel, axes=([1], [1])), (0, 2, 1))

    def _row(self, n: int) -> Array:
        """[M, J, D]: E[S | eta] for one candidate, in blocks of contexts."""
        block = max(1, CHUNK // (self.eta.shape[-1] * self.u.shape[-1]))
        return self.xp.concat([self._block(n, part) for part in slices(self.rho.shape[1], block)], axis=0)

    def _block(self, n: int, part: slice) -> Array:
        wide = self.rest[n, part] >= self.resolved  # [p]
        if bool(self.xp.all(wide)):
            return self._shared_nodes(n, part)
        if not bool(self.xp.any(wide)):
            return self._own_nodes(n, part)
        return self.xp.where(wide[:, None, None], self._shared_nodes(n, part), self._own_nodes(n, part))

    def _shared_nodes(self, n: int, part: slice) -> Array:
        """[p, J, D]: nodes of z that serve every eta."""
        kernel = self._kernel(self.root[n, part], self.rest[n, part], self.eta[n, part, :], self.u[part, :])
        return self.xp.matmul(kernel, self.weighted[part, ...])

    def _kernel(self, root: Array, rest: Array, eta: Array, u: Array) -> Array:
        """[p, J, Q]: the density of u given eta."""
        rest = rest[:, None, None]
        return density((u[:, None, :] - root[:, None, None] * eta[..., None]) / rest) / rest

    def _own_nodes(self, n: int, part: slice) -> Array:
        """[p, J, D]: nodes of z around the posterior mean of each eta."""
        xp = self.xp
        rest, centre = self.rest[n, part], self.root[n, part, None] * self.eta[n, part, :]  # [p], [p, J]
        low, high = self.tilt_low[part] * rest - TAIL, self.tilt_high[part] * rest + TAIL
        if not self.integrand.breakpoints:
            nodes, weights = trapezoid(low[:, None], high[:, None], COARSEST)  # [p, 1, Q]
        else:
            cuts = (self.cuts[part, None, :] - centre[..., None]) / rest[:, None, None]  # [p, J, B]
            nodes, weights = panels(low[:, None], high[:, None], cuts)  # [p, J, Q]
        u = centre[..., None] + rest[:, None, None] * nodes  # [p, J, Q]
        z = self.mean[part, None, None] + self.sd[part, None, None] * u
        statistics = self.integrand.statistics(z, self.reference[part, None, None])  # [p, J, Q, D]
        return xp.sum((weights * density(nodes))[..., None] * statistics, axis=2)


def _same(values: Array) -> bool:
    """Whether all are one number, up to rounding."""
    return bool(namespace(values).all(abs(values - values[0]) <= 1e-15))
