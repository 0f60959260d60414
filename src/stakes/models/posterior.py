"""Gaussian posteriors of a function: means, variances and covariances at any rows, with noise told from signal.

Sizes: B rows of any block, n labels so far, p features, r columns of a thin factor, d outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from stakes.models.forward import Forward
from stakes.models.kernels import Numbers, cross_covariance, signal_and_noise


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
