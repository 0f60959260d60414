"""One run of one strategy: fit, judge, choose, learn the label, again.

Sizes: B labels bought, Q metrics.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes.beliefs import Belief
from stakes.domains import Classes
from stakes.losses import AnyLoss
from stakes.models import belief_of
from stakes.models.refit import refitted
from stakes.models.tables import Host, take_rows
from stakes.simulation.metrics import MetricLike, judged
from stakes.simulation.problem import Problem
from stakes.simulation.splits import BELIEF, FIT, LUCK, SCORE, TEST, generator
from stakes.simulation.strategies import Strategy, choose
from stakes.simulation.trial import Trial


@dataclass(frozen=True, eq=False)
class Trace:
    """What one run of one strategy came to."""

    losses: Host
    """[Q, B + 1]: the mean loss on test rows after 0 .. B labels"""
    acquired: Host
    """[B]: positions of rows, in the order in which they were bought"""
    fit_seconds: Host
    """[B + 1]"""
    score_seconds: Host
    """[B]: of the belief about the pool, and the scores"""


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

    def trace(self, strategy: Strategy, run: int, case: Case) -> Trace:
        """Run number `run` of a strategy: the data and all chance are those of the run, whatever the strategy."""
        losses, fit_seconds, score_seconds = [], [], []
        acquired: list[int] = []
        for step in range(self.budget + 1):
            start = time.perf_counter()
            model = self._fit(case, acquired, run, step)
            fit_seconds.append(time.perf_counter() - start)
            losses.append(self._judge(model, case, run, step))
            if step < self.budget:
                start = time.perf_counter()
                acquired.append(self._choose(strategy, model, case, acquired, run, step))
                score_seconds.append(time.perf_counter() - start)
        return Trace(np.asarray(losses).T, np.asarray(acquired), np.asarray(fit_seconds), np.asarray(score_seconds))

    def _fit(self, case: Case, acquired: list[int], run: int, step: int) -> Any:
        """A clone fitted to the initial rows and then those bought, in this order, which `simulate_trials` promises."""
        rows = np.concatenate([case.parts.initial, np.asarray(acquired, dtype=np.intp)])
        chance = generator(self.seed, run, step if self.reseed else 0, FIT)
        return refitted(self.model, take_rows(case.problem.features, rows), case.problem.labels[rows], chance)

    def _judge(self, model: Any, case: Case, run: int, step: int) -> list[float]:
        """[Q]: the metrics on test rows.

        A belief is about candidates too; a context stands in for them, as the same is at hand for every strategy.
        """
        chance = generator(self.seed, run, step, TEST)
        belief = _belief(model, case.problem, case.parts.contexts[:1], case.parts.test, chance)
        return judged(self.metrics, belief, case.problem.targets[case.parts.test])

    def _choose(self, strategy: Strategy, model: Any, case: Case, acquired: list[int], run: int, step: int) -> int:
        """The position of the row to buy."""
        pool = np.setdiff1d(case.parts.pool, acquired)

        def belief() -> Belief:
            return _belief(model, case.problem, pool, case.parts.contexts, generator(self.seed, run, step, BELIEF))

        luck = generator(self.seed, run, step, LUCK).random(case.problem.size)[pool]  # a row's own, whatever the pool
        return int(pool[choose(strategy, belief, self.loss, generator(self.seed, run, step, SCORE), luck)])


def _belief(model: Any, data: Problem, candidates: Host, contexts: Host, rng: np.random.Generator) -> Belief:
    """What the model says of some rows, with a column for each class."""
    rows = (take_rows(data.features, each) for each in (candidates, contexts))
    belief = belief_of(model, *rows, classes=data.classes, rng=rng)
    if data.classes is not None and belief.domain != Classes(len(data.classes)):
        raise ValueError(
            f"the belief of {type(model).__name__} must have a column for each of the {len(data.classes)} classes "
            f"{data.classes}; it is about {belief.domain}. A model of your own must keep classes that no label has had."
        )
    return belief
