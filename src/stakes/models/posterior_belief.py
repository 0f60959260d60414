"""The belief about labels and targets that a Gaussian posterior of a function implies.

Sizes: N candidates, M contexts, B rows of a block, r columns of a thin factor, d outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stakes._array import slices
from stakes._jit import has_jit, loop
from stakes.beliefs import GaussianBelief, VectorGaussianBelief
from stakes.models.base import Request
from stakes.models.kernels import Numbers
from stakes.models.posterior import Places, Posterior

_PAIRS = 2**17  # covariances of a block: 1 MiB, so that the passes over it stay within the cache
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


def gaussian_belief(
    posterior: Posterior, pool: Any, contexts: Any, request: Request
) -> GaussianBelief | VectorGaussianBelief:
    """The belief about labels at `pool` and targets at `contexts`, both as the posterior takes them.

    Covariances between candidates, where they are asked for, are computed a row at a time when a batch needs them.
    """
    there = request.kept("places", lambda: posterior.places(contexts))
    return belief_at(posterior, candidates_at(posterior, pool, there, keep=request.joint), there, request)


def belief_at(
    posterior: Posterior, here: Candidates, there: Places, request: Request
) -> GaussianBelief | VectorGaussianBelief:
    """The belief about labels `here` and targets `there`."""
    known, noise = posterior.variances(there)  # [M], [M]
    variance = here.variance + here.noise  # [N]
    moments: dict[str, Any] = {
        "variance": known + noise if request.target == "label" else known,
        "candidate_variance": variance,
        "covariance": here.covariance,
        "noise_variance": here.noise,
    }
    rows = LabelCovariances(posterior, here.places, variance) if request.joint and here.places is not None else None
    if (scale := posterior.scale) is None:
        return GaussianBelief(posterior.mean(there.rows), **moments, candidate_covariance=rows)
    moments = {name: _outputs(each, scale) for name, each in moments.items()}
    return VectorGaussianBelief(posterior.mean(there.rows), **moments, candidate_covariance=rows)


def candidates_at(posterior: Posterior, pool: Any, there: Places, keep: bool) -> Candidates:
    """All of `pool`, in blocks that stay within the cache; with their places if `keep`."""
    (n_columns, n_contexts), (known, _) = there.projected.shape, posterior.variances(there)
    variance, noise, covariance = np.empty(len(pool)), np.empty(len(pool)), np.empty((len(pool), n_contexts))
    projected = np.empty((len(pool), n_columns if keep else 0)).T  # [r, N], a candidate's together in memory
    for part in slices(len(pool), _BLOCK):
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
