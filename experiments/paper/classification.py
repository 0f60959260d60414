"""Vehicle, Landsat and Vowel: log losses under forests, two classes of each weighing 50.

Sizes: n rows, p features, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from experiments.datasets import Dataset, load
from experiments.paper.forests import Forest, forest
from experiments.paper.study import Place, Preset
from stakes import LogLoss
from stakes.beliefs import Belief
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.simulation import Simulation, Trial, simulate_trials


@dataclass(frozen=True)
class ClippedLogLoss:
    """The mean of `loss` over its mean weight, for the probabilities that are best for `answers`, kept from 0 and 1."""

    loss: LogLoss
    answers: LogLoss
    clip: float

    def __call__(self, belief: Belief, targets: Any) -> float:
        """The clipped probabilities are made to sum to 1 again."""
        q = np.clip(bayes_prediction(self.answers, belief), self.clip, 1.0 - self.clip)
        return realised_loss(self.loss, q / q.sum(axis=1, keepdims=True), targets, normalise=True).mean


@dataclass(frozen=True, eq=False)
class StratifiedSplits:
    """So many rows of each class for each part, and the rest for the pool; no row is in two parts."""

    features: Any
    """[n, p]"""
    target: Any
    """[n]: positions of classes"""
    sizes: tuple[int, int, int]
    """of each class: at the start, contexts, tests"""

    def draw(self, random_state: np.random.Generator) -> Trial:
        """The parts of one run."""
        ends = np.cumsum(self.sizes)
        each = [
            np.split(random_state.permutation(np.flatnonzero(self.target == place)), ends)
            for place in np.unique(self.target)
        ]
        initial, contexts, test, pool = (np.concatenate(part) for part in zip(*each, strict=True))
        return Trial(self.features, self.target, initial, np.sort(pool), contexts, test)


@dataclass(frozen=True)
class Classification:
    """100 labels are bought after 5 of each class."""

    preset: Preset
    dataset: str
    part: Literal["all", "train"]
    order: Literal["codes", "names"]
    """of the classes that the weights are for: the repository's, or their names sorted as text"""
    weights: tuple[float, ...]
    contexts: int
    """of each class"""
    tests: int
    """of each class"""
    runs: int
    count_initial: bool
    """whether shares of classes are of all labels, or of those bought"""
    initial: int = 5
    """of each class"""
    trees: int = 1000
    reseed: bool = False
    """whether each fit of a run has a seed of its own"""
    clip: float = 1e-6
    budget: int = 100
    seed: int = 0
    forest: Forest = "scikit-learn"

    study: ClassVar[str] = "classification"
    called: ClassVar[Mapping[str, str]] = {"random": "Random", "plain": "EPIG", "loss": "EPIG_w"}
    own: ClassVar[str] = "NLL_w with q_w, not clipped"
    rivals: ClassVar[tuple[tuple[str, str], ...]] = (("EPIG_w", "EPIG"), ("EPIG_w", "Random"), ("EPIG", "Random"))

    @property
    def name(self) -> str:
        """The table, its rows if there are two readings, the preset, and who grows the trees if not scikit-learn."""
        rows = f"-{self.part}" if self.dataset == "vowel" else ""
        grower = "" if self.forest == "scikit-learn" else f"-{self.forest}"
        return f"classification-{self.dataset}{rows}-{self.preset}{grower}"

    def data(self, place: Place) -> Dataset:
        """The table, with its classes in the order of the weights."""
        data = load(self.dataset, folder=place.data, part=self.part)
        return data if self.order == "codes" else data.with_classes(sorted(data.classes or ()))

    def simulate(self, runs: int, place: Place) -> Simulation:
        """Random, EPIG and EPIG_w, measured with q and with q_w."""
        data, weighted = self.data(place), LogLoss(self.weights)
        splits = StratifiedSplits(data.features, data.target, (self.initial, self.contexts, self.tests))
        found = simulate_trials(
            forest(self.forest, self.trees),
            weighted,
            splits.draw,
            n=self.budget,
            runs=runs,
            random_state=self.seed,
            metrics={
                "NLL": ClippedLogLoss(LogLoss(), LogLoss(), self.clip),
                "NLL_w with q": ClippedLogLoss(weighted, LogLoss(), self.clip),
                "NLL_w with q_w": ClippedLogLoss(weighted, weighted, self.clip),
            },
            reseed=self.reseed,
            **place.settings(self.name),
        )
        names = [f"{name} (w={weight:g})" for name, weight in zip(data.classes or (), self.weights, strict=True)]
        return replace(found, classes=tuple(names))

    def shortened(self) -> Classification:
        """2 labels, 10 trees, few contexts."""
        return replace(self, budget=2, trees=10, contexts=5)


_VEHICLE = (50.0, 1.0, 1.0, 50.0)
_LANDSAT = (1.0, 1.0, 1.0, 1.0, 50.0, 50.0)
_VOWEL = (1.0,) * 6 + (50.0, 50.0) + (1.0,) * 3
_PUBLISHED: dict[str, Any] = {"runs": 50, "count_initial": True}
_TEXT: dict[str, Any] = {"runs": 100, "count_initial": False}
STUDIES = (
    Classification("published", "vehicle", "all", "codes", _VEHICLE, contexts=45, tests=45, **_PUBLISHED),
    Classification("published", "landsat", "all", "codes", _LANDSAT, contexts=100, tests=200, **_PUBLISHED),
    Classification("published", "vowel", "all", "names", _VOWEL, contexts=15, tests=15, **_PUBLISHED),
    Classification("published", "vowel", "train", "names", _VOWEL, contexts=15, tests=15, **_PUBLISHED),
    Classification("text", "vehicle", "all", "codes", _VEHICLE, contexts=45, tests=45, **_TEXT),
    Classification("text", "landsat", "all", "codes", _LANDSAT, contexts=200, tests=200, **_TEXT),
    Classification("text", "vowel", "train", "codes", _VOWEL, contexts=15, tests=15, **_TEXT),
)
