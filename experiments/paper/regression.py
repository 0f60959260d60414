"""Slump, Yacht and Estate: squared errors, plain and with weight exp(-z), under a process with plug-in rules.

Sizes: n rows, p features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from experiments.datasets import load
from experiments.paper.metrics import Answer, Carrying, Charged, weighted_error
from experiments.paper.refreshed import Refreshed
from experiments.paper.strategies import ScoreOf
from experiments.paper.study import Place, Preset
from stakes import ExponentialWeight, SquaredError
from stakes.models import GaussianProcess
from stakes.simulation import Simulation, Trial, simulate_trials

Unit = Literal["native", "standard", "over sd"]
"""As in the file; minus the mean of the initial labels and over their standard deviation; over that only."""


@dataclass(frozen=True, eq=False)
class Splits:
    """Random parts of a table, inputs standardised on what is known of at the start, targets in a unit."""

    features: Any
    """[n, p]"""
    target: Any
    """[n]"""
    n_initial: int
    n_test: int
    own_contexts: bool
    """whether contexts are as many rows again, or the test rows themselves"""
    unit: Unit

    def draw(self, random_state: np.random.Generator) -> Trial:
        """The parts of one run; rows are identified by position, as some repeat the inputs of others."""
        ends = np.cumsum([self.n_initial, self.n_test, self.n_test * self.own_contexts])
        initial, test, contexts, pool = np.split(random_state.permutation(len(self.target)), ends)
        known = self.features[np.concatenate([initial, pool])]
        features = (self.features - known.mean(axis=0)) / known.std(axis=0)
        target = scaled(self.target, self.target[initial], self.unit)
        return Trial(features, target, initial, np.sort(pool), contexts if self.own_contexts else test, test)


def scaled(target: Any, initial: Any, unit: Unit) -> Any:
    """[n]: targets in the unit that the initial labels say."""
    if unit == "native":
        return target
    return (target - (initial.mean() if unit == "standard" else 0.0)) / initial.std()


@dataclass(frozen=True)
class Regression:
    """20 labels are bought after 10; hyperparameters are chosen at the start and every few labels."""

    preset: Preset
    dataset: str
    n_test: int
    own_contexts: bool
    unit: Unit
    nu: float
    """smoothness of the Matern part"""
    every: int
    """labels between choices of hyperparameters"""
    rules: Preset
    """plug-in rules: `stakes.models.GaussianProcess`"""
    answer: Answer
    """what SEL_w charges"""
    divided: bool
    """whether SEL_w is over the mean weight"""
    rate: float = -1.0
    """w(z) = exp(rate z)"""
    n_initial: int = 10
    budget: int = 20
    runs: int = 100
    seed: int = 0

    study: ClassVar[str] = "regression"
    called: ClassVar[Mapping[str, str]] = {"random": "Random"}
    rivals: ClassVar[tuple[tuple[str, str], ...]] = (("EVR_w", "EVR"), ("EVR_w", "Random"), ("EVR", "Random"))

    @property
    def own(self) -> str | None:
        """See `simulate`."""
        return None if self.unit == "native" else "SEL_w, exact answer"

    @property
    def name(self) -> str:
        """The table and the preset."""
        return f"regression-{self.dataset}-{self.preset}"

    def simulate(self, runs: int, place: Place) -> Simulation:
        """Random, EVR and EVR_w, exact.

        At a target's own scale exp(-z) may span more than numbers do. Scores and divided metrics bear it, the exact
        weighted answer does not, so the loss of the simulation is the plain one there.
        """
        data, plain = load(self.dataset, folder=place.data), SquaredError()
        weighted = SquaredError(weight=ExponentialWeight(self.rate))
        splits = Splits(data.features, data.target, self.n_initial, self.n_test, self.own_contexts, self.unit)
        return simulate_trials(
            Refreshed(GaussianProcess(nu=self.nu, rules=self.rules), self.n_initial, self.every),
            plain if self.unit == "native" else weighted,
            splits.draw,
            strategies=["random", ("EVR", ScoreOf(plain)), ("EVR_w", ScoreOf(weighted))],
            n=self.budget,
            runs=runs,
            random_state=self.seed,
            metrics={
                "SEL": plain,
                "SEL_w": weighted_error(self.rate, self.answer, self.divided),
                "rows that carry SEL_w": Carrying(
                    Charged(weighted, plain if self.answer == "mean" else weighted, self.divided)
                ),
            },
            **place.settings(self.name),
        )

    def shortened(self) -> Regression:
        """2 labels."""
        return replace(self, budget=2)


_TESTS = {"slump": 20, "yacht": 60, "estate": 80}


def _published(dataset: str) -> Regression:
    return Regression(
        "published",
        dataset,
        _TESTS[dataset],
        own_contexts=False,
        unit="standard",
        nu=1.5,
        every=5,
        rules="published",
        answer="drawn",
        divided=False,
    )


def _text(dataset: str) -> Regression:
    return Regression(
        "text",
        dataset,
        _TESTS[dataset],
        own_contexts=True,
        unit="native",
        nu=2.5 if dataset == "yacht" else 1.5,
        every=3,
        rules="text",
        answer="mean",
        divided=True,
    )


STUDIES = tuple(preset(dataset) for preset in (_published, _text) for dataset in _TESTS)
