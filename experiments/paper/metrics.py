"""Metrics of the paper: answers of one loss charged by another, over the mean weight or not.

Sizes: T test rows, S draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import stats

from stakes import ExponentialWeight, GaussianBelief, SquaredError
from stakes.beliefs import Belief
from stakes.evaluation import RealisedLoss, bayes_prediction, realised_loss
from stakes.losses import AnyLoss

Answer: TypeAlias = Literal["drawn", "weighted", "mean"]
"""E[wz] / E[w] estimated from draws, the same exactly, or E[z]."""

_DRAWS, _SEED, _NEGLIGIBLE = 1000, 0, 0.01  # of the published estimate


@dataclass(frozen=True)
class Charged:
    """The mean of `loss` on test rows, for the answers that are best for `answers`; over the mean weight or not."""

    loss: AnyLoss
    answers: AnyLoss
    divided: bool

    def __call__(self, belief: Belief, targets: Any) -> float:
        """The mean loss."""
        return self.realised(belief, targets).mean

    def realised(self, belief: Belief, targets: Any) -> RealisedLoss:
        """The loss of every row."""
        return realised_loss(self.loss, bayes_prediction(self.answers, belief), targets, normalise=self.divided)


@dataclass(frozen=True)
class Carrying:
    """How many test rows carry a metric: (sum l)^2 / sum l^2."""

    charged: Charged

    def __call__(self, belief: Belief, targets: Any) -> float:
        """From 1, where a single row decides, to T."""
        return self.charged.realised(belief, targets).effective_rows


@dataclass(frozen=True)
class Drawn:
    """The squared error with weight exp(rate z), answers estimated from draws of the label: the published SEL_w.

    The answer is sum w z / sum w over `draws` of N(m, v), made of the same standard normals for every row; it is m
    where w is `negligible` at both m and the target.
    """

    rate: float
    draws: int = _DRAWS
    seed: int = _SEED
    negligible: float = _NEGLIGIBLE

    def __call__(self, belief: GaussianBelief, targets: Any) -> float:
        """The mean of w (z - answer)^2, not divided by the mean weight."""
        normals = stats.norm.rvs(size=self.draws, random_state=self.seed)  # [S]
        offsets = np.sqrt(belief.variance)[:, None] * normals  # [T, S]
        shares = np.exp(self.rate * offsets)
        drawn = belief.mean + np.sum(shares * offsets, axis=1) / np.sum(shares, axis=1)
        heaviest = np.exp(np.maximum(self.rate * belief.mean, self.rate * targets))
        answers = np.where(heaviest <= self.negligible, belief.mean, drawn)
        return float(np.mean(np.exp(self.rate * targets) * (targets - answers) ** 2))


def weighted_error(rate: float, answer: Answer, divided: bool) -> Charged | Drawn:
    """SEL_w for w = exp(rate z), as an experiment says."""
    loss = SquaredError(weight=ExponentialWeight(rate))
    if answer == "drawn":
        return Drawn(rate)
    return Charged(loss, loss if answer == "weighted" else SquaredError(), divided)
