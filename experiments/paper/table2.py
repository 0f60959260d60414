"""Table 2: squared errors on the problem with one input, plain and with weight exp(z)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from experiments.datasets import Synthetic, synthetic
from experiments.paper.metrics import Answer, weighted_error
from experiments.paper.strategies import NestedMonteCarlo
from experiments.paper.study import Place, Preset
from stakes import ExponentialWeight, SquaredError
from stakes.models import GaussianProcess, Hyperparameters
from stakes.simulation import Simulation, Trial, simulate_trials


@dataclass(frozen=True)
class Table2:
    """Labels of 65 candidates are bought for 49 contexts, and tested on 97 points without noise."""

    preset: Preset
    reading: Preset
    """of the function, the noise and the start: `experiments.datasets.synthetic`"""
    answer: Answer
    """what SEL_w charges"""
    divided: bool
    """whether SEL_w is over the mean weight"""
    rate: float = 1.0
    """w(z) = exp(rate z)"""
    draws: int = 1000
    """labels of a candidate, and targets for each, in the Monte Carlo variant"""
    budget: int = 25
    runs: int = 25
    seed: int = 0

    study: ClassVar[str] = "table2"
    called: ClassVar[Mapping[str, str]] = {"random": "Random", "plain": "EVR", "loss": "EVR_w"}
    own: ClassVar[str] = "SEL_w, exact answer"
    rivals: ClassVar[tuple[tuple[str, str], ...]] = (
        ("EVR_w", "EVR"),
        ("EVR_w", "Random"),
        ("EVR_w", "EVR_w by Monte Carlo"),
    )

    @property
    def name(self) -> str:
        """With the rate where it is not the table's."""
        return f"table2-{self.preset}" + ("" if self.rate == 1.0 else f"-rate{self.rate:g}")

    @property
    def problem(self) -> Synthetic:
        """The function, its labels and its points."""
        return synthetic(self.reading)

    @property
    def loss(self) -> SquaredError:
        """exp(rate z) (z - a)^2."""
        return SquaredError(weight=ExponentialWeight(self.rate))

    @property
    def model(self) -> GaussianProcess:
        """The process that the paper fixes: unit scale and length, mean 0."""
        noise = float(np.sqrt(self.problem.gp_noise_variance))
        return GaussianProcess(Hyperparameters(linear=0.0, signal=1.0, length=1.0, noise=noise, mean=0.0), nu=np.inf)

    def trial(self, random_state: np.random.Generator) -> Trial:
        """Candidates with their labels, then contexts, which need none, then tests with the function itself."""
        problem = self.problem
        parts = problem.candidates, problem.contexts, problem.tests
        labels = problem.labels(parts[0], random_state), np.full(len(parts[1]), np.nan), problem.f(parts[2])
        initial = np.searchsorted(parts[0], problem.start(random_state))
        candidates, contexts, tests = np.split(np.arange(sum(map(len, parts))), np.cumsum([len(x) for x in parts[:2]]))
        pool = np.setdiff1d(candidates, initial)
        return Trial(np.concatenate(parts)[:, None], np.concatenate(labels), initial, pool, contexts, tests)

    def simulate(self, runs: int, place: Place) -> Simulation:
        """Random, EVR, EVR_w by its closed form and by Monte Carlo."""
        return simulate_trials(
            self.model,
            self.loss,
            self.trial,
            strategies=["random", "plain", "loss", ("EVR_w by Monte Carlo", NestedMonteCarlo(self.draws))],
            n=self.budget,
            runs=runs,
            random_state=self.seed,
            metrics={"SEL": SquaredError(), "SEL_w": weighted_error(self.rate, self.answer, self.divided)},
            **place.settings(self.name),
        )

    def shortened(self) -> Table2:
        """3 labels, 50 draws."""
        return replace(self, budget=3, draws=50)


PUBLISHED = Table2("published", reading="published", answer="drawn", divided=False)
TEXT = Table2("text", reading="text", answer="mean", divided=True)
STUDIES = (PUBLISHED, TEXT)
