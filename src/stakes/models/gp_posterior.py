"""L^-1 from the left by products alone, which NumPy runs beside other threads; SciPy's triangular solves hold them up.

Sizes: n rows of L, B right-hand sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from stakes._utils.array import slices
from stakes._utils.jit import has_jit, loop
from stakes.beliefs import GaussianBelief, VectorGaussianBelief
from stakes.models.base import Target
from stakes.models.kernels import Numbers, cross_covariance, signal_and_noise

_BLOCK = 64  # rows of L whose diagonal block is inverted: below, products are short; above, inverses cost more


@dataclass(frozen=True, eq=False)
class Forward:
    """Forward substitution by blocks, each with the inverse of its diagonal block."""

    factor: Any
    """[n, n]: L, lower triangular"""
    inverses: tuple[Any, ...]
    """each [64, 64], or what is left"""

    @staticmethod
    def of(factor: Any) -> Forward:
        """With the inverses of its diagonal blocks."""
        blocks = (factor[at : at + _BLOCK, at : at + _BLOCK] for at in range(0, len(factor), _BLOCK))
        inverses = tuple(solve_triangular(block, np.eye(len(block)), lower=True) for block in blocks)
        return Forward(factor, inverses)

    def solve(self, rows: Any) -> Any:
        """[B, n]: L^-1 times each of `rows` [B, n], written over them."""
        for place, inverse in enumerate(self.inverses):
            start = place * _BLOCK
            here = slice(start, start + len(inverse))
            if start:
                rows[:, here] -= rows[:, :start] @ self.factor[here, :start].T
            rows[:, here] = rows[:, here] @ inverse.T
        return rows


# ----------------------------------------------------------------------
# Gaussian posteriors of a function: means, variances and covariances at any rows, with noise told from signal.
#
# Sizes: B rows of any block, n labels so far, p features, r columns of a thin factor, d outputs.


class Places(NamedTuple):
    """Rows, and what the covariances of a posterior are products of."""

    rows: Any
    """[B, p]"""
    projected: Numbers
    """[r, B]"""

    def part(self, of: slice) -> Places:
        """Some of the rows."""
        return Places(self.rows[of], self.projected[:, of])


class Posterior(Protocol):
    """What is known of a function f, jointly Gaussian over all rows; several outputs are independent and alike."""

    @property
    def scale(self) -> Numbers | None:
        """[d]: the factor to each of several outputs, which `mean` includes, `covariance` not; None for one output."""

    def places(self, rows: Any) -> Places:
        """The rows, prepared for the methods below."""

    def mean(self, rows: Any) -> Numbers:
        """[B], or [B, d] for several outputs."""

    def variances(self, places: Places) -> tuple[Numbers, Numbers]:
        """[B], [B]: the variance of f, and what a label has beside it."""

    def covariance(self, places: Places, others: Places) -> Numbers:
        """[B, B']: of f."""


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """cov(f(x), f(x')) = unit^2 (k(x, x') - v(x)' v(x')) with v(x) = L^-1 k(X, x).

    L L' is the covariance of the labels so far, at rows X.
    """

    kernel: Any
    """Called with two sets of rows it gives their covariances; `diag` gives k(x, x), noise included if it has any."""
    train: Any
    """[n, p]"""
    factor: Numbers
    """[n, n]: L"""
    weights: Numbers
    """[n] or [n, d]: (L L')^-1 (y - mean)"""
    offset: Any
    """The prior mean, of each output"""
    unit: Any
    """The factor to each output"""
    added_noise: float
    """The noise variance that is not in the kernel, before the unit"""
    white: bool = True
    """Whether the kernel may hold noise of its own"""

    @property
    def scale(self) -> Numbers | None:
        """[d]: the unit of each of several outputs."""
        return np.broadcast_to(self.unit, self.weights.shape[1:]) if self.weights.ndim > 1 else None

    @property
    def _square(self) -> float:
        return float(np.squeeze(self.unit)) ** 2 if self.weights.ndim == 1 else 1.0

    def places(self, rows: Any) -> Places:
        """With v(x), a column for each row."""
        return Places(rows, self._forward.solve(cross_covariance(self.kernel, rows, self.train)).T)

    @cached_property
    def _forward(self) -> Forward:
        return Forward.of(self.factor)

    def mean(self, rows: Any) -> Numbers:
        """The prior mean + k(x, X) weights."""
        return np.asarray(self.unit * (cross_covariance(self.kernel, rows, self.train) @ self.weights) + self.offset)

    def variances(self, places: Places) -> tuple[Numbers, Numbers]:
        """As above, but 0 where rounding is all that is left; the noise is the kernel's and the one added."""
        prior, noise = self._prior(places.rows)
        left = prior - np.einsum("rb,rb->b", places.projected, places.projected)
        left = np.where(left > np.finfo(float).eps * len(self.factor) * prior, left, 0.0)
        return self._square * left, self._square * (noise + self.added_noise)

    def _prior(self, rows: Any) -> tuple[Numbers, Numbers]:
        return signal_and_noise(self.kernel, rows) if self.white else (self.kernel.diag(rows), np.zeros(len(rows)))

    def covariance(self, places: Places, others: Places) -> Numbers:
        """As above."""
        covariance = cross_covariance(self.kernel, places.rows, others.rows)
        covariance -= places.projected.T @ others.projected
        if self._square != 1.0:
            covariance *= self._square
        return covariance


@dataclass(frozen=True, eq=False)
class LinearPosterior:
    """The mean of f is intercept + x' coefficients, and cov(f(x), f(x')) = (x - centre)' R R' (x' - centre)."""

    coefficients: Numbers
    """[p]"""
    intercept: float
    centre: Numbers
    """[p]"""
    root: Numbers
    """[p, r]: R"""
    noise_variance: float
    scale: Numbers | None = None

    def places(self, rows: Any) -> Places:
        """With R' (x - centre)."""
        return Places(rows, self.root.T @ (rows - self.centre).T)

    def mean(self, rows: Any) -> Numbers:
        """Intercept + x' coefficients."""
        return np.asarray(rows @ self.coefficients + self.intercept)

    def variances(self, places: Places) -> tuple[Numbers, Numbers]:
        """As above; the noise is the same everywhere."""
        variance = np.asarray(np.sum(places.projected**2, axis=0))
        return variance, np.full_like(variance, self.noise_variance)

    def covariance(self, places: Places, others: Places) -> Numbers:
        """As above."""
        return places.projected.T @ others.projected


# ----------------------------------------------------------------------
# The belief about labels and targets that a Gaussian posterior of a function implies.
#
# Sizes: N candidates, M contexts, B rows of a block, r columns of a thin factor, d outputs.

_PAIRS = 2**17  # covariances of a block: 1 MiB, so that the passes over it stay within the cache
_POSTERIOR_BELIEF_BLOCK = 1024  # rows whose covariances with the labels so far are held at once


@dataclass(frozen=True, eq=False)
class LabelCovariances:
    """i -> [N], or [d, N, d]: covariances of the label of candidate i with those of all, itself included."""

    posterior: Posterior
    places: Places
    variance: Numbers
    """[N]: of labels, with their noise"""

    def __call__(self, i: int) -> Numbers:
        """The row of candidate i."""
        row = self.posterior.covariance(self.places.part(slice(i, i + 1)), self.places)[0]
        row[i] = self.variance[i]
        scale = self.posterior.scale
        return row if scale is None else np.moveaxis(_outputs(row, scale), 1, 0)


class Candidates(NamedTuple):
    """What a posterior says of candidates, each alone and with f at the contexts."""

    places: Places | None
    """None where covariances between candidates are not wanted"""
    variance: Numbers
    """[N]: of f"""
    noise: Numbers
    """[N]: the variance that a label has beside it"""
    covariance: Numbers
    """[N, M]: of f here and at the contexts"""


def prepare_gaussian(
    posterior: Posterior, contexts: Any, *, target: Target, joint: bool
) -> Callable[[Any], GaussianBelief | VectorGaussianBelief]:
    """From a pool to the belief about its labels and the targets at `contexts`, all rows as the posterior takes them.

    Covariances between candidates, where they are asked for, are computed a row at a time when a batch needs them.
    """
    there = posterior.places(contexts)
    return lambda pool: belief_at(
        posterior, candidates_at(posterior, pool, there, keep=joint), there, target=target, joint=joint
    )


def belief_at(
    posterior: Posterior, here: Candidates, there: Places, *, target: Target, joint: bool
) -> GaussianBelief | VectorGaussianBelief:
    """The belief about labels `here` and targets `there`."""
    known, noise = posterior.variances(there)  # [M], [M]
    variance = here.variance + here.noise  # [N]
    moments: dict[str, Any] = {
        "variance": known + noise if target == "label" else known,
        "candidate_variance": variance,
        "covariance": here.covariance,
        "noise_variance": here.noise,
    }
    rows = LabelCovariances(posterior, here.places, variance) if joint and here.places is not None else None
    if (scale := posterior.scale) is None:
        return GaussianBelief(posterior.mean(there.rows), **moments, candidate_covariance=rows)
    moments = {name: _outputs(each, scale) for name, each in moments.items()}
    return VectorGaussianBelief(posterior.mean(there.rows), **moments, candidate_covariance=rows)


def candidates_at(posterior: Posterior, pool: Any, there: Places, keep: bool) -> Candidates:
    """All of `pool`, in blocks that stay within the cache; with their places if `keep`."""
    (n_columns, n_contexts), (known, _) = there.projected.shape, posterior.variances(there)
    variance, noise, covariance = np.empty(len(pool)), np.empty(len(pool)), np.empty((len(pool), n_contexts))
    projected = np.empty((len(pool), n_columns if keep else 0)).T  # [r, N], a candidate's together in memory
    for part in slices(len(pool), _POSTERIOR_BELIEF_BLOCK):
        here = posterior.places(pool[part])
        variance[part], noise[part] = posterior.variances(here)
        for few in slices(len(here.rows), max(1, _PAIRS // n_contexts)):
            block = posterior.covariance(here.part(few), there)
            bounded(block, variance[part][few], known, out=covariance[part][few])
        if keep:
            projected[:, part] = here.projected
    return Candidates(Places(pool, projected) if keep else None, variance, noise, covariance)


def bounded(covariance: Numbers, variance: Numbers, known: Numbers, out: Numbers) -> None:
    """Covariances [B, M] kept to what variances [B] and [M] allow, which rounding alone exceeds, into `out`."""
    sd, target_sd = np.sqrt(variance), np.sqrt(known)
    if has_jit():
        return _bounded(covariance, sd, target_sd, out)
    most = sd[:, None] * target_sd
    np.minimum(covariance, most, out=covariance)
    np.maximum(covariance, np.negative(most, out=most), out=out)
    return None


@loop
def _bounded(covariance: Any, sd: Any, target_sd: Any, out: Any) -> None:
    for n in range(covariance.shape[0]):
        row, result, own = covariance[n], out[n], sd[n]
        for m in range(covariance.shape[1]):
            most = own * target_sd[m]
            result[m] = max(-most, min(row[m], most))


def _outputs(covariance: Numbers, scale: Numbers) -> Numbers:
    """[..., d, d]: the covariance of independent outputs, each with its scale."""
    return np.asarray(covariance[..., None, None] * np.diag(scale**2))
