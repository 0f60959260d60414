"""The belief about labels and targets that a Gaussian posterior of a function implies.

Sizes: N candidates, M contexts, B rows of a block, r columns of a thin factor, d outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._array import slices
from stakes.beliefs import GaussianBelief, VectorGaussianBelief
from stakes.models.base import Request
from stakes.models.kernels import Numbers
from stakes.models.posterior import Places, Posterior

_PAIRS = 2**17  # covariances of a block: 1 MiB, so that the passes over it stay within the cache
_BLOCK = 1024  # rows at most, whose covariances with the labels so far are held at once


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
    known, target_noise = posterior.variances(there)  # [M], [M]
    found = _Candidates(posterior, pool, there, known, keep=request.joint)
    variance = found.variance + found.noise  # [N]
    moments: dict[str, Any] = {
        "variance": known + target_noise if request.target == "label" else known,
        "candidate_variance": variance,
        "covariance": found.covariance,
        "noise_variance": found.noise,
    }
    rows = None if found.projected is None else LabelCovariances(posterior, Places(pool, found.projected), variance)
    if (scale := posterior.scale) is None:
        return GaussianBelief(posterior.mean(contexts), **moments, candidate_covariance=rows)
    moments = {name: _outputs(each, scale) for name, each in moments.items()}
    return VectorGaussianBelief(posterior.mean(contexts), **moments, candidate_covariance=rows)


class _Candidates:
    """The variance of f and the noise at each candidate, and covariances with f at the contexts, in blocks."""

    def __init__(self, posterior: Posterior, pool: Any, there: Places, known: Numbers, keep: bool) -> None:
        self.posterior, self.there, self.sd = posterior, there, np.sqrt(known)
        n_columns, n_contexts = there.projected.shape
        self.variance, self.noise = np.empty(len(pool)), np.empty(len(pool))  # [N] each
        self.covariance = np.empty((len(pool), n_contexts))  # [N, M]
        self.projected = np.empty((len(pool), n_columns)).T if keep else None  # [r, N]: what rows are products of
        for part in slices(len(pool), max(1, min(_BLOCK, _PAIRS // n_contexts))):
            self._fill(part, posterior.places(pool[part]))

    def _fill(self, part: slice, here: Places) -> None:
        self.variance[part], self.noise[part] = self.posterior.variances(here)
        most = np.sqrt(self.variance[part])[:, None] * self.sd  # exceeded by rounding only
        covariance = self.posterior.covariance(here, self.there)
        np.minimum(covariance, most, out=covariance)
        np.maximum(covariance, np.negative(most, out=most), out=self.covariance[part])
        if self.projected is not None:
            self.projected[:, part] = here.projected


def _outputs(covariance: Numbers, scale: Numbers) -> Numbers:
    """[..., d, d]: the covariance of independent outputs, each with its scale."""
    return np.asarray(covariance[..., None, None] * np.diag(scale**2))
