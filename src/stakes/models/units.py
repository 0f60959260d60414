"""Beliefs in other units: of a + b z, when that of z is known.

Sizes: N candidates, M contexts, d outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stakes._array import Array
from stakes.beliefs import Belief, GaussianBelief, NormalEnsemble, VectorGaussianBelief


def rescaled(belief: Belief, a: Any, b: Any) -> Belief:
    """The belief about a + b z and a + b y: numbers, or one for each output."""
    if isinstance(belief, GaussianBelief):
        return rescaled_normal(belief, a, b)
    if isinstance(belief, VectorGaussianBelief):
        return _rescaled_vector(belief, a, b * np.ones(belief.mean.shape[1]))
    if isinstance(belief, NormalEnsemble):
        return replace(
            belief,
            candidate_mean=a + b * belief.candidate_mean,
            candidate_sd=b * belief.candidate_sd,
            context_mean=a + b * belief.context_mean,
            context_sd=b * belief.context_sd,
        )
    if np.all(np.equal(a, 0.0)) and np.all(np.equal(b, 1.0)):
        return belief
    raise TypeError(f"a {type(belief).__name__} cannot be brought to other units; transform the labels before fitting")


def rescaled_normal(belief: GaussianBelief, a: float, b: float) -> GaussianBelief:
    """That of one output."""
    return replace(
        belief,
        mean=a + b * belief.mean,
        variance=b**2 * belief.variance,
        candidate_variance=b**2 * belief.candidate_variance,
        covariance=b**2 * belief.covariance,
        candidate_covariance=_times(belief.candidate_covariance, b**2),
        noise_variance=_times(belief.noise_variance, b**2),
    )


def _rescaled_vector(belief: VectorGaussianBelief, a: Any, b: Any) -> VectorGaussianBelief:
    square = np.outer(b, b)
    between = belief.candidate_covariance
    return replace(
        belief,
        mean=a + b * belief.mean,
        variance=square * belief.variance,
        candidate_variance=square * belief.candidate_variance,
        covariance=square * belief.covariance,
        candidate_covariance=_times(between, square[:, None, :]),
        noise_variance=_times(belief.noise_variance, square),
    )


def _times(values: Any, factor: Any) -> Any:
    """`values` times the factor, also of a function's values; None stays None."""
    if callable(values):
        return Scaled(values, factor)
    return None if values is None else values * factor


@dataclass(frozen=True, eq=False)
class Scaled:
    """A function of the position of a candidate, times a factor."""

    function: Callable[[int], Array]
    factor: Any

    def __call__(self, i: int) -> Array:
        """The value of candidate i."""
        return self.function(i) * self.factor
