"""Gaussian posteriors of a function, and the belief about labels and targets that one implies.

Sizes: N candidates, M contexts, B rows of any block, n labels so far, r columns of a thin factor, d outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular

from stakes._array import slices
from stakes.beliefs import GaussianBelief, VectorGaussianBelief
from stakes.models.base import Request

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

_BLOCK = 1024  # rows whose covariances with the labels so far are held at once
_DIAGONAL = 64  # rows whose kernel matrix is made for the sake of its diagonal
_ROUNDING = 1e-12  # of k(x, x): what two ways to compute it may differ by


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

    def variance(self, places: Places) -> Numbers:
        """[B]: of f, without noise."""

    def covariance(self, places: Places, others: Places) -> Numbers:
        """[B, B']: of f."""

    def noise(self, rows: Any) -> Numbers:
        """[B]: the variance that a label has beside f."""


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
        return Places(rows, solve_triangular(self.factor, self.kernel(rows, self.train).T, lower=True))

    def mean(self, rows: Any) -> Numbers:
        """The prior mean + k(x, X) weights."""
        return np.asarray(self.unit * (self.kernel(rows, self.train) @ self.weights) + self.offset)

    def variance(self, places: Places) -> Numbers:
        """As above; what is left of k(x, x) by rounding only is 0."""
        prior = signal_variance(self.kernel, places.rows) if self.white else self.kernel.diag(places.rows)
        left = prior - np.sum(places.projected**2, axis=0)
        rounding = np.finfo(float).eps * len(self.factor) * prior
        return np.asarray(self._square * np.where(left > rounding, left, 0.0))

    def covariance(self, places: Places, others: Places) -> Numbers:
        """As above."""
        return np.asarray(
            self._square * (self.kernel(places.rows, others.rows) - places.projected.T @ others.projected)
        )

    def noise(self, rows: Any) -> Numbers:
        """That of the kernel and the one added."""
        own = noise_variance(self.kernel, rows) if self.white else np.zeros(len(rows))
        return np.asarray(self._square * (own + self.added_noise))


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

    def variance(self, places: Places) -> Numbers:
        """As above."""
        return np.asarray(np.sum(places.projected**2, axis=0))

    def covariance(self, places: Places, others: Places) -> Numbers:
        """As above."""
        return places.projected.T @ others.projected

    def noise(self, rows: Any) -> Numbers:
        """The same everywhere."""
        return np.full(len(rows), self.noise_variance)


def noise_variance(kernel: Any, rows: Any) -> Numbers:
    """[B]: what k(x, x) holds that two evaluations at the same x do not share.

    Called with two sets of rows, a kernel of scikit-learn leaves out all that is a label's own, wherever it stands in
    sums, products and powers: c (k + white) has the noise c white(x), (k + white)^2 has 2 k white + white^2.
    """
    total = kernel.diag(rows)
    own = total - signal_variance(kernel, rows)
    return np.where(own > _ROUNDING * abs(total), own, 0.0)


def signal_variance(kernel: Any, rows: Any) -> Numbers:
    """[B]: the covariance of two evaluations at the same x, which is the variance of f there."""
    parts = (rows[part] for part in slices(len(rows), _DIAGONAL))
    return np.concatenate([np.diagonal(kernel(part, part)) for part in parts])


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


def gaussian_belief(
    posterior: Posterior, pool: Any, contexts: Any, request: Request
) -> GaussianBelief | VectorGaussianBelief:
    """The belief about labels at `pool` and targets at `contexts`, both as the posterior takes them.

    Covariances between candidates, where they are asked for, are computed a row at a time when a batch needs them.
    """
    there = posterior.places(contexts)
    known = posterior.variance(there)  # [M]
    blocks = [_candidates(posterior, pool[part], there, known) for part in slices(len(pool), _BLOCK)]
    variance, noise, covariance = (np.concatenate(each) for each in zip(*blocks, strict=True))
    target_noise = posterior.noise(contexts) if request.target == "label" else 0.0
    moments = {"variance": known + target_noise, "candidate_variance": variance + noise, "covariance": covariance}
    moments["noise_variance"] = noise
    rows = LabelCovariances(posterior, posterior.places(pool), variance + noise) if request.joint else None
    if (scale := posterior.scale) is None:
        return GaussianBelief(posterior.mean(contexts), **moments, candidate_covariance=rows)
    moments = {name: _outputs(each, scale) for name, each in moments.items()}
    return VectorGaussianBelief(posterior.mean(contexts), **moments, candidate_covariance=rows)


def _candidates(posterior: Posterior, rows: Any, there: Places, known: Numbers) -> Sequence[Numbers]:
    """Of a block of candidates: the variance of f [B], the noise [B], covariances with f at contexts [B, M]."""
    here = posterior.places(rows)
    variance = posterior.variance(here)
    most = np.sqrt(variance)[:, None] * np.sqrt(known)  # exceeded by rounding only
    return variance, posterior.noise(rows), np.clip(posterior.covariance(here, there), -most, most)


def _outputs(covariance: Numbers, scale: Numbers) -> Numbers:
    """[..., d, d]: the covariance of independent outputs, each with its scale."""
    return np.asarray(covariance[..., None, None] * np.diag(scale**2))
