"""Linex on Estate: the true objective, the one that was published under its name, and a model where it matters.

Sizes: N candidates, M contexts, Q nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import log_ndtr
from sklearn.compose import TransformedTargetRegressor

from experiments.paper.refreshed import Refreshed
from experiments.paper.regression import Splits, Unit
from experiments.paper.study import Place, Preset
from stakes import BregmanLoss, GaussianBelief, Linex, SquaredError
from stakes.beliefs import Belief
from stakes.datasets import load
from stakes.losses import AnyLoss, Function, NegativeLog
from stakes.models import GaussianProcess
from stakes.simulation import Simulation, simulate_trials

_TINY = float(np.finfo(float).tiny)
_NODES = np.linspace(-8.0, 8.0, 65)  # of a standard normal; an even grid converges faster than any power here


def clipped(z: Any) -> Any:
    """T(z) = max(z, the smallest positive number), which the published code takes the logarithm of."""
    return np.maximum(z, _TINY)


CLIPPED = BregmanLoss(NegativeLog(), Function(clipped))
"""The loss behind the published score E[log T] - log E[T]: Itakura and Saito's of z, where Linex has T = exp(-alpha z)."""


def clipped_scores(belief: Belief, loss: AnyLoss, rng: np.random.Generator) -> Any:
    """[N]: the expected reduction for CLIPPED, log E[T] - E_y[log E[T | y]], at a hundredth of the general way's cost.

    E[log T] is the same on average before and after a label, so it drops out. E[T] has a closed form under a normal.
    """
    assert isinstance(belief, GaussianBelief)
    mean, variance = np.asarray(belief.mean), np.asarray(belief.variance)
    mass = np.exp(-0.5 * _NODES**2) / np.sum(np.exp(-0.5 * _NODES**2))  # [Q]
    now = log_positive_part(mean, np.sqrt(variance))  # [M]
    scores = []
    for covariance, label in zip(belief.covariance, belief.candidate_variance, strict=True):
        reach = covariance / np.sqrt(label)  # [M]
        sd = np.sqrt(np.maximum(variance - reach**2, 0.0))
        after = log_positive_part(mean[:, None] + reach[:, None] * _NODES, sd[:, None]) @ mass  # [M]
        scores.append(np.mean(now - after))
    return np.asarray(scores)


def log_positive_part(mean: Any, sd: Any) -> Any:
    """log E[max(z, tiny)] for z ~ N(mean, sd^2): log sd + log(t Phi(t) + phi(t)), t = mean / sd, no less than log tiny.

    Far below 0 the two terms cancel: there it is log phi(t) - 2 log |t|, up to 3 / t^2 of it.
    """
    sd = np.maximum(sd, _TINY**0.5)
    t = np.clip(mean / sd, -1e150, None)
    near = np.maximum(t, -20.0)
    log_phi = -0.5 * near**2 - 0.5 * np.log(2.0 * np.pi)
    ratio = near * np.exp(log_ndtr(near) - log_phi)  # t Phi(t) / phi(t), from -1 up
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        close = np.where(near < 20.0, log_phi + np.log1p(ratio), np.log(np.maximum(near, 1.0)))
        far = -0.5 * t**2 - 0.5 * np.log(2.0 * np.pi) - 2.0 * np.log(abs(t)) + np.log1p(-3.0 / t**2)
    return np.maximum(np.log(sd) + np.where(t < -20.0, far, close), np.log(_TINY))


@dataclass(frozen=True)
class LinexStudy:
    """50 labels are bought, and judged by Linex and the squared error."""

    preset: Preset
    model: Literal["exact", "log-warped"]
    """a Gaussian process on prices, or on their logarithms"""
    unit: Unit
    n_initial: int
    own_contexts: bool
    every: int
    rules: Preset
    n_test: int = 80
    nu: float = 1.5
    alpha: float = 1.0
    budget: int = 50
    runs: int = 50
    seed: int = 0

    study: ClassVar[str] = "linex"
    called: ClassVar[Mapping[str, str]] = {"random": "Random", "plain": "EVR", "loss": "Linex"}

    @property
    def name(self) -> str:
        """The preset and the model."""
        return f"linex-estate-{self.preset}-{self.model}"

    @property
    def rivals(self) -> tuple[tuple[str, str], ...]:
        """The published score has a closed form under an exact process only."""
        published = (("Itakura-Saito", "EVR"),) if self.model == "exact" else ()
        return (("Linex", "EVR"), *published, ("Linex", "Random"))

    def estimator(self) -> Any:
        """The process, of the label or of its logarithm."""
        process = Refreshed(GaussianProcess(nu=self.nu, rules=self.rules), self.n_initial, self.every)
        if self.model == "exact":
            return process
        return TransformedTargetRegressor(process, func=np.log, inverse_func=np.exp)

    def simulate(self, runs: int, place: Place) -> Simulation:
        """Random, EVR, Linex, and under an exact process the published score."""
        data = load("estate", folder=place.data)
        splits = Splits(data.features, data.target, self.n_initial, self.n_test, self.own_contexts, self.unit)
        published = [("Itakura-Saito", clipped_scores)] if self.model == "exact" else []
        return simulate_trials(
            splits.draw,
            Linex(self.alpha),
            self.estimator(),
            strategies=["random", "plain", "loss", *published],
            budget=self.budget,
            runs=runs,
            seed=self.seed,
            metrics={"SEL": SquaredError()},
            **place.settings(self.name),
        )

    def shortened(self) -> LinexStudy:
        """2 labels."""
        return replace(self, budget=2)


PUBLISHED = LinexStudy(
    "published", "exact", unit="native", n_initial=5, own_contexts=False, every=3, rules="published"
)
TEXT = LinexStudy("text", "exact", unit="native", n_initial=10, own_contexts=True, every=3, rules="text")
STUDIES = (
    PUBLISHED,
    TEXT,
    # in standard deviations: at a price's own scale exp(-alpha z) of a log-normal leaves the range of numbers
    *(replace(each, model="log-warped", unit="over sd") for each in (PUBLISHED, TEXT)),
)
