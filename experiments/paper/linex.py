"""Linex on Estate: the true objective, the one that was published under its name, and a model where it matters.

Sizes: N candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.compose import TransformedTargetRegressor

from experiments.datasets import load
from experiments.paper.refreshed import Refreshed
from experiments.paper.regression import Splits, Unit
from experiments.paper.strategies import clipped_scores, variance_scores, warped_scores
from experiments.paper.study import Place, Preset
from stakes import GaussianBelief, Linex, SquaredError, WarpedGaussianBelief, score
from stakes.beliefs import Belief
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.losses import AnyLoss
from stakes.models import GaussianProcess
from stakes.simulation import Simulation, StrategyLike, simulate_trials


@dataclass(frozen=True)
class LinexRule:
    """The reduction of the expected Linex loss."""

    alpha: float

    def __call__(self, belief: Belief, loss: AnyLoss, random_state: np.random.Generator) -> Any:
        """[N], in logarithms under a log-normal, where E[exp(-alpha z) | y] may be too small a number."""
        if isinstance(belief, WarpedGaussianBelief):
            return warped_scores(self.alpha, belief)
        return score(Linex(self.alpha), belief)


@dataclass(frozen=True)
class LinexMetric:
    """The mean Linex loss of the answers that are best for it."""

    alpha: float

    def __call__(self, belief: Belief, targets: Any) -> float:
        """Under a normal the answer is m - alpha v / 2, where integration at a price's own scale would overflow."""
        loss = Linex(self.alpha)
        if isinstance(belief, GaussianBelief):
            answers = belief.mean - 0.5 * self.alpha * belief.variance
        else:
            answers = bayes_prediction(loss, belief)
        return realised_loss(loss, answers, targets).mean


@dataclass(frozen=True)
class LinexStudy:
    """50 labels are bought, and measured by Linex and the squared error."""

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
    runs: int = 100
    seed: int = 0

    study: ClassVar[str] = "linex"
    called: ClassVar[Mapping[str, str]] = {"random": "Random", "loss": "EVR"}
    own: ClassVar[str] = "SEL"

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

    @property
    def strategies(self) -> list[StrategyLike]:
        """EVR has a closed form under a log-normal, too; the published score under an exact process only."""
        linex = ("Linex", LinexRule(self.alpha))
        if self.model == "exact":
            return ["random", "loss", linex, ("Itakura-Saito", clipped_scores)]
        return ["random", ("EVR", variance_scores), linex]

    def simulate(self, runs: int, place: Place) -> Simulation:
        """Random, EVR, Linex, and under an exact process the published score."""
        data = load("estate", folder=place.data)
        splits = Splits(data.features, data.target, self.n_initial, self.n_test, self.own_contexts, self.unit)
        return simulate_trials(
            self.estimator(),
            SquaredError(),
            splits.draw,
            strategies=self.strategies,
            n=self.budget,
            runs=runs,
            random_state=self.seed,
            metrics={"Linex": LinexMetric(self.alpha)},
            **place.settings(self.name),
        )

    def shortened(self) -> LinexStudy:
        """2 labels."""
        return replace(self, budget=2)


PUBLISHED = LinexStudy("published", "exact", unit="native", n_initial=5, own_contexts=False, every=3, rules="published")
TEXT = LinexStudy("text", "exact", unit="native", n_initial=10, own_contexts=True, every=3, rules="text")
STUDIES = (
    PUBLISHED,
    TEXT,
    # in standard deviations, as alpha = 1 at a price's own scale is about the lowest price alone
    *(replace(each, model="log-warped", unit="over sd") for each in (PUBLISHED, TEXT)),
)
