"""What every study of the paper has: settings as fields, a name, and a simulation that can go on after a kill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from stakes.simulation import Simulation

Preset: TypeAlias = Literal["published", "text"]
"""What made the printed numbers, or what the paper says."""


@dataclass(frozen=True)
class Place:
    """Where a study finds its data and keeps its runs."""

    data: Path | None
    """a folder of data files; None: as `experiments.datasets.load` finds them"""
    store: Path | None
    """a folder of finished runs"""
    jobs: int = 1
    progress: bool = False

    def settings(self, name: str) -> dict[str, Any]:
        """The arguments of `simulate_trials` that follow from it."""
        store = None if self.store is None else self.store / name
        return {"store": store, "n_jobs": self.jobs, "progress": self.progress}


class Study(Protocol):
    """One simulation of the paper."""

    @property
    def study(self) -> str:
        """The part of the paper: table2, regression, linex or classification."""

    @property
    def preset(self) -> Preset:
        """Whose settings they are."""

    @property
    def name(self) -> str:
        """Unlike that of any other: the name of its files."""

    @property
    def runs(self) -> int:
        """As many as the paper has."""

    @property
    def called(self) -> Mapping[str, str]:
        """What the paper calls each strategy."""

    @property
    def own(self) -> str | None:
        """The name of the loss of the simulation itself; None where another metric says the same."""

    @property
    def rivals(self) -> tuple[tuple[str, str], ...]:
        """Pairs of strategies whose losses are compared run by run."""

    def simulate(self, runs: int, place: Place) -> Simulation:
        """The loops, from the store as far as they are there."""

    def shortened(self) -> Study:
        """The same with a few labels and small models, for a look."""
