"""A Gaussian process over rows that stay the same while labels come in: each label adds a row to what is solved.

Sizes: n labels so far, m new ones, N candidates, M contexts, p features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes._array import slices
from stakes.beliefs import GaussianBelief
from stakes.models.base import Request
from stakes.models.kernels import cross_covariance
from stakes.models.posterior import Places
from stakes.models.posterior_belief import Candidates, belief_at, bounded, candidates_at
from stakes.models.process import GaussianProcess

_ROWS = 256  # of candidates, whose covariances are brought up to date at a time


@dataclass(frozen=True, eq=False)
class FollowedProcess:
    """What a process believes of N candidates and M contexts, kept so that a label costs O(n^2 + n (N + M) + N M)."""

    process: GaussianProcess
    here: Candidates
    there: Places

    def belief(self, *, target: Literal["label", "latent"] = "label", joint: bool = False) -> GaussianBelief:
        """That of the process about the rows it is followed at."""
        request = Request(target=target, joint=joint)
        belief = belief_at(self.process.posterior(), self.here, self.there, request)
        assert isinstance(belief, GaussianBelief)
        return belief

    def condition(self, X: Any, y: Any) -> FollowedProcess:  # noqa: N803
        """With labels `y` [m] of rows `X` [m, p], too: exact, and this one is left as it is.

        A label is one row more of the factor and of what is solved, and a product of rank one off the covariances.
        """
        process = self.process.condition(X, y)
        assert self.here.places is not None
        if process.jitter_ != self.process.jitter_:  # another factor altogether
            return follow(process, self.here.places.rows, self.there.rows)
        here, there = (_extended(process, places) for places in (self.here.places, self.there))
        return FollowedProcess(process, _updated(process, self.here, here, there), there)


def follow(process: GaussianProcess, pool: Any, contexts: Any) -> FollowedProcess:
    """A fitted process at rows that stay: candidates `pool` [N, p] and `contexts` [M, p]."""
    check_is_fitted(process)
    pool, contexts = (validate_data(process, each, reset=False, dtype=np.float64) for each in (pool, contexts))
    there = process.posterior().places(contexts)
    return FollowedProcess(process, candidates_at(process.posterior(), pool, there, keep=True), there)


def _extended(process: GaussianProcess, places: Places) -> Places:
    """The places [n + m, B]: with corner^-1 (k(x_new, x) - below v(x)), `below` and `corner` the new rows of L."""
    known = len(places.projected)
    below, corner = process.factor_[known:, :known], process.factor_[known:, known:]  # [m, n], [m, m]
    new = cross_covariance(process.kernel_, places.rows, process.X_[known:])  # [B, m]
    new -= places.projected.T @ below.T
    solved = solve_triangular(corner, new.T, lower=True)  # [m, B]
    return Places(places.rows, np.concatenate([places.projected.T, solved.T], axis=1).T)


def _updated(process: GaussianProcess, before: Candidates, here: Places, there: Places) -> Candidates:
    """The candidates once the last rows of both places are known."""
    assert before.places is not None
    known, posterior = len(before.places.projected), process.posterior()
    (variance, noise), (target_variance, _) = posterior.variances(here), posterior.variances(there)
    covariance = np.empty_like(before.covariance)
    for part in slices(len(covariance), _ROWS):
        less = before.covariance[part] - here.projected[known:, part].T @ there.projected[known:]
        bounded(less, variance[part], target_variance, out=covariance[part])
    return Candidates(here, variance, noise, covariance)
