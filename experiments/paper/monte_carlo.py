"""EVR_w by nested Monte Carlo, as the paper estimates it: a rule whose nodes are random.

Sizes: N candidates, M contexts, S draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes import GaussianBelief, SquaredError


@dataclass(frozen=True)
class NestedMonteCarlo:
    """E_w[z^2] - E_w[z]^2, times E[w], less its mean after `draws` labels of a candidate, from `draws` targets each.

    For w = exp(rate z) only: there w(m + s e) = w(m) w(s e), so that the double sum over labels and targets is a
    product of two sums. It is the number that the double loop gives, to rounding, in a thousandth of the time.
    """

    draws: int

    def __call__(self, belief: GaussianBelief, loss: SquaredError, rng: np.random.Generator) -> Any:
        """[N]: scores up to a factor that all share."""
        rate, mean = loss.weight.rate, np.asarray(belief.mean)
        labels = rng.standard_normal((belief.n_candidates, self.draws))  # eta [N, S]
        targets = rng.standard_normal((belief.n_contexts, self.draws))  # epsilon [M, S]
        level = np.exp(rate * mean - np.max(rate * mean))  # [M]
        now = level * spread(rate, np.sqrt(belief.variance), targets)
        reach = belief.covariance / np.sqrt(belief.candidate_variance)[:, None]  # [N, M]: sd of the mean after y
        return np.asarray(
            [
                np.mean(now - level * _after(rate, each, np.asarray(belief.variance), eta, targets))
                for each, eta in zip(reach, labels, strict=True)
            ]
        )


def spread(rate: float, sd: Any, normals: Any) -> Any:
    """[M]: the mean of w z^2 less (mean of w z)^2 / (mean of w) over z = sd e, e the `normals` [M, S]."""
    z = sd[:, None] * normals
    w = np.exp(rate * z)
    return np.mean(w * z * z, axis=1) - np.mean(w * z, axis=1) ** 2 / np.mean(w, axis=1)


def _after(rate: float, reach: Any, variance: Any, eta: Any, targets: Any) -> Any:
    """[M]: the mean over labels of E[w] Var_w once a candidate is labelled, in units of w at the mean."""
    moved = np.mean(np.exp(rate * reach[:, None] * eta), axis=1)
    return moved * spread(rate, np.sqrt(np.maximum(variance - reach**2, 0.0)), targets)
