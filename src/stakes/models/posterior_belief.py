"""The belief about labels and targets that a Gaussian posterior of a function implies.

Sizes: N candidates, M contexts, B rows of a block, d outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._array import slices
from stakes.beliefs import GaussianBelief, VectorGaussianBelief
from stakes.models.base import Request
from stakes.models.posterior import Numbers, Places, Posterior

_BLOCK = 1024  # rows whose covariances with the labels so far are held at once


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
    blocks = [_candidates(posterior, pool[part], there, known) for part in slices(len(pool), _BLOCK)]
    variance, noise, covariance = (np.concatenate(each) for each in zip(*blocks, strict=True))
    moments = {
        "variance": known + target_noise if request.target == "label" else known,
        "candidate_variance": variance + noise,
        "covariance": covariance,
        "noise_variance": noise,
    }
    rows = LabelCovariances(posterior, posterior.places(pool), variance + noise) if request.joint else None
    if (scale := posterior.scale) is None:
        return GaussianBelief(posterior.mean(contexts), **moments, candidate_covariance=rows)
    moments = {name: _outputs(each, scale) for name, each in moments.items()}
    return VectorGaussianBelief(posterior.mean(contexts), **moments, candidate_covariance=rows)


def _candidates(posterior: Posterior, rows: Any, there: Places, known: Numbers) -> Sequence[Numbers]:
    """Of a block of candidates: the variance of f [B], the noise [B], covariances with f at contexts [B, M]."""
    here = posterior.places(rows)
    variance, noise = posterior.variances(here)
    most = np.sqrt(variance)[:, None] * np.sqrt(known)  # exceeded by rounding only
    return variance, noise, np.clip(posterior.covariance(here, there), -most, most)


def _outputs(covariance: Numbers, scale: Numbers) -> Numbers:
    """[..., d, d]: the covariance of independent outputs, each with its scale."""
    return np.asarray(covariance[..., None, None] * np.diag(scale**2))
