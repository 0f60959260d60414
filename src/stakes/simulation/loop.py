"""One run of some strategies, step by step: fit, judge, choose, learn the label, again.

Sizes: S strategies, B labels bought, Q metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stakes.models.tables import Host
from stakes.simulation.plan import Case, Plan
from stakes.simulation.stage import Stage
from stakes.simulation.strategies import Strategy


@dataclass(frozen=True, eq=False)
class Trace:
    """What one run of one strategy came to."""

    losses: Host
    """[Q, B + 1]: the mean loss on test rows after 0 .. B labels"""
    acquired: Host
    """[B]: positions of rows, in the order in which they were bought"""
    fit_seconds: Host
    """[B + 1]: of fits, also those that other strategies had a share in"""
    score_seconds: Host
    """[B]: of the belief about the pool, and the scores"""


@dataclass(frozen=True, eq=False)
class _Loop:
    """A strategy, and what it has come to so far."""

    strategy: Strategy
    losses: list[list[float]] = field(default_factory=list)
    acquired: list[int] = field(default_factory=list)
    fit_seconds: list[float] = field(default_factory=list)
    score_seconds: list[float] = field(default_factory=list)

    def go_on(self, stage: Stage) -> None:
        """Judge what is known, and buy a label if there is money left."""
        self.fit_seconds.append(stage.fitted[1])
        self.losses.append(stage.losses(self.strategy))
        if stage.step < stage.plan.budget:
            position, seconds = stage.choose(self.strategy)
            self.acquired.append(position)
            self.score_seconds.append(seconds)

    def trace(self) -> Trace:
        """All of it, as arrays."""
        return Trace(
            np.asarray(self.losses).T,
            np.asarray(self.acquired),
            np.asarray(self.fit_seconds),
            np.asarray(self.score_seconds),
        )


def traces(plan: Plan, strategies: Sequence[Strategy], run: int, case: Case) -> list[Trace]:
    """[S]: run number `run` of some strategies; the data and all chance are those of the run, whatever the strategy.

    They go in step, so that those that have bought the same rows share a fit: all at the start, and some for longer.
    """
    loops = [_Loop(each) for each in strategies]
    for _ in range(plan.budget + 1):
        for acquired, alike in _by_acquired(loops).items():
            stage = Stage(plan, case, run, acquired)
            for each in alike:
                each.go_on(stage)
    return [each.trace() for each in loops]


def _by_acquired(loops: Iterable[_Loop]) -> dict[tuple[int, ...], list[_Loop]]:
    """Loops by what they have bought, in that order."""
    groups: dict[tuple[int, ...], list[_Loop]] = {}
    for each in loops:
        groups.setdefault(tuple(each.acquired), []).append(each)
    return groups
