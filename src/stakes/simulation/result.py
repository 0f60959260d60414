"""What came of a simulation, and what may be said of it.

Sizes: S strategies, R runs, B labels bought, n rows of a trial.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes.models.tables import Host
from stakes.simulation.intervals import Estimate, mean_of, median_of
from stakes.simulation.trial import Trial
from stakes.simulation.words import table, verdict


@dataclass(frozen=True)
class Comparison:
    """The loss under one strategy less that under another, run by run: below 0 where the first is better."""

    first: str
    second: str
    metric: str
    runs: int
    final: Estimate
    """After the last label."""
    area: Estimate
    """The mean over all steps after the start, which both share: the area between their curves, for each label."""


@dataclass(frozen=True)
class Reached:
    """How many labels a strategy bought until the loss was no more than `level` for the first time."""

    level: float
    labels: Estimate
    """The median over runs, infinite where most never got there; the interval is by order statistics."""
    share: float
    """Of runs that got there within the budget."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """Losses on test rows as labels were bought, for each strategy in each run.

    Intervals are over runs: over splits and seeds, for data such as these. Splits of one data set overlap, so they say
    little of other data.
    """

    strategies: tuple[str, ...]
    losses: Mapping[str, Host]
    """metric -> [S, R, B + 1]: the mean loss on test rows after 0 .. B labels"""
    acquired: Host
    """[S, R, B]: positions of rows in X of the trial, in the order in which they were bought"""
    trials: tuple[Trial, ...]
    """R: the data of each run, and the parts that its rows played"""
    targets: tuple[Host, ...]
    """R of [n]: labels of each trial, or their positions among the classes; NaN or -1 where none was needed"""
    classes: tuple[Any, ...] | None
    fit_seconds: Host
    """[S, R, B + 1]"""
    score_seconds: Host
    """[S, R, B]"""
    settings: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def runs(self) -> int:
        """R."""
        return int(self.acquired.shape[1])

    @property
    def budget(self) -> int:
        """B."""
        return int(self.acquired.shape[2])

    @property
    def bought(self) -> Host:
        """[S, R, B]: the targets of the rows that were bought."""
        return np.stack([self.targets[run][self.acquired[:, run]] for run in range(self.runs)], axis=1)

    def curves(self, strategy: str, metric: str = "loss") -> Host:
        """[R, B + 1]: the losses of one strategy."""
        if metric not in self.losses:
            raise ValueError(f"metric must be one of {list(self.losses)}; got {metric!r}")
        if strategy not in self.strategies:
            raise ValueError(f"strategy must be one of {list(self.strategies)}; got {strategy!r}")
        return np.asarray(self.losses[metric][self.strategies.index(strategy)])

    def paired(self, first: str, second: str, metric: str = "loss") -> Comparison:
        """Mean differences over runs with 95% t intervals: a pair shares the split and the chance of a run."""
        a, b = self.curves(first, metric), self.curves(second, metric)
        with np.errstate(invalid="ignore"):  # both may be infinite
            gaps = a[:, 1:] - b[:, 1:]
            return Comparison(first, second, metric, self.runs, mean_of(gaps[:, -1]), mean_of(gaps.mean(axis=1)))

    def labels_to_reach(
        self, level: float | None = None, metric: str = "loss", *, fraction: float = 0.9
    ) -> dict[str, Reached]:
        """For each strategy, the labels bought until the loss first was at most `level`.

        Without a level it is `fraction` of the way from the mean loss at the start to the least final mean loss of any
        strategy. A curve that touches the level by luck has reached it.
        """
        if level is None:
            if not 0 < fraction <= 1:
                raise ValueError(f"fraction must be above 0 and at most 1; got {fraction!r}")
            start, *_, best = np.stack([self.curves(each, metric).mean(axis=0) for each in self.strategies]).min(axis=0)
            level = float(start - fraction * (start - best)) if math.isfinite(start) else float(best)
        if not math.isfinite(level):
            raise ValueError(f"level must be a finite loss; got {level!r}. Give one: all strategies end infinite.")
        return {each: _reached(self.curves(each, metric), level) for each in self.strategies}

    def verdict(self) -> str:
        """One sentence: whether the loss-driven choice ended with less loss than the plain and the random one."""
        return verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it but the data as lists, numbers and text."""
        return {
            "strategies": list(self.strategies),
            "losses": {name: values.tolist() for name, values in self.losses.items()},
            "acquired": self.acquired.tolist(),
            "bought": self.bought.tolist(),
            "initial": [each.initial.tolist() for each in self.trials],
            "initial_targets": [
                targets[each.initial].tolist() for targets, each in zip(self.targets, self.trials, strict=True)
            ],
            "classes": None if self.classes is None else list(self.classes),
            "fit_seconds": self.fit_seconds.tolist(),
            "score_seconds": self.score_seconds.tolist(),
            "settings": dict(self.settings),
            "versions": dict(self.versions),
        }

    def plot(self, metric: str = "loss", ax: Any = None) -> Any:
        """Learning curves: means over runs with 95% t intervals at each step. Needs matplotlib; returns the axes."""
        from stakes.simulation.plots import plot_curves

        return plot_curves(self, metric, ax)

    def plot_acquired(self, ax: Any = None) -> Any:
        """What was bought: shares of classes beside those of the pool, or mean targets over steps; returns the axes."""
        from stakes.simulation.plots import plot_acquired

        return plot_acquired(self, ax)

    def save_plots(self, path: str | os.PathLike[str]) -> None:
        """Write both pictures into one file (PNG, SVG or PDF). Needs matplotlib."""
        from stakes.simulation.plots import save_both

        save_both(self, path)

    def __str__(self) -> str:
        return table(self)


def _reached(curves: Host, level: float) -> Reached:
    """Of curves [R, B + 1]: the first step at or below the level, infinite where there is none."""
    below = curves <= level
    arrived = below.any(axis=1)
    labels = np.where(arrived, np.argmax(below, axis=1), math.inf)
    return Reached(level, median_of(labels), float(arrived.mean()))
