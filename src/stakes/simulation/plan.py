"""What is to be run: the data of a run, and all that runs share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stakes.losses import AnyLoss
from stakes.simulation.metrics import MetricLike
from stakes.simulation.problem import Problem
from stakes.simulation.strategies import Strategy
from stakes.simulation.trial import Trial


@dataclass(frozen=True, eq=False)
class Case:
    """The data of one run, and what its rows are for."""

    problem: Problem
    parts: Trial


@dataclass(frozen=True, eq=False)
class Plan:
    """All that runs share."""

    loss: AnyLoss
    metrics: Mapping[str, MetricLike]
    model: Any
    strategies: tuple[Strategy, ...]
    budget: int
    seed: int
    reseed: bool
