"""One run of one strategy: fit, judge, choose, learn the label, again.

Sizes: B labels bought, Q metrics.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._array import constant
from stakes.beliefs import Belief
from stakes.domains import Classes
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.losses import AnyLoss
from stakes.models import belief_of
from stakes.models.refit import refitted
from stakes.models.tables import Host, take_rows
from stakes.simulation.problem import Problem
from stakes.simulation.splits import BELIEF, FIT, LUCK, SCORE, TEST, Sizes, Split, generator, split
from stakes.simulation.strategies import Strategy, choose


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
class Plan:
    """All that runs share."""

    problem: Problem
    loss: AnyLoss
    metrics: Mapping[str, AnyLoss]
    model: Any
    sizes: Sizes
    seed: int

    def trace(self, strategy: Strategy, run: int) -> Trace:
        """Run number `run` of a strategy: the split and all chance are those of the run, whatever the strategy."""
        parts = split(self.problem, self.sizes, self.seed, run)
        losses, fit_seconds, score_seconds = [], [], []
        acquired: list[int] = []
        for step in range(self.sizes.budget + 1):
            start = time.perf_counter()
            model = self._fit(np.concatenate([parts.initial, np.asarray(acquired, dtype=np.intp)]), run, step)
            fit_seconds.append(time.perf_counter() - start)
            losses.append(self._judge(model, parts, run, step))
            if step < self.sizes.budget:
                start = time.perf_counter()
                acquired.append(self._choose(strategy, model, parts, acquired, run, step))
                score_seconds.append(time.perf_counter() - start)
        return Trace(np.asarray(losses).T, np.asarray(acquired), np.asarray(fit_seconds), np.asarray(score_seconds))

    def _fit(self, rows: Host, run: int, step: int) -> Any:
        features, labels = take_rows(self.problem.features, rows), self.problem.labels[rows]
        return refitted(self.model, features, labels, generator(self.seed, run, step, FIT))

    def _judge(self, model: Any, parts: Split, run: int, step: int) -> list[float]:
        """[Q]: the realised losses of the Bayes answers on test rows.

        A belief is about candidates too; a context stands in for them, as the same is at hand for every strategy.
        """
        belief = self._belief(model, parts.contexts[:1], parts.test, generator(self.seed, run, step, TEST))
        targets = constant(self.problem.targets[parts.test], belief.like)
        return [realised_loss(each, bayes_prediction(each, belief), targets).mean for each in self.metrics.values()]

    def _choose(self, strategy: Strategy, model: Any, parts: Split, acquired: list[int], run: int, step: int) -> int:
        """The position of the row to buy."""
        pool = np.setdiff1d(parts.pool, acquired)
        belief = self._belief(model, pool, parts.contexts, generator(self.seed, run, step, BELIEF))
        luck = generator(self.seed, run, step, LUCK).random(self.problem.size)[pool]  # a row's own, whatever the pool
        return int(pool[choose(strategy, belief, self.loss, generator(self.seed, run, step, SCORE), luck)])

    def _belief(self, model: Any, candidates: Host, contexts: Host, rng: np.random.Generator) -> Belief:
        rows = (take_rows(self.problem.features, each) for each in (candidates, contexts))
        classes = self.problem.classes
        belief = belief_of(model, *rows, classes=classes, rng=rng)
        if classes is not None and belief.domain != Classes(len(classes)):
            raise ValueError(
                f"the belief of {type(model).__name__} must have a column for each of the {len(classes)} classes "
                f"{classes}; it is about {belief.domain}. A model of your own must keep classes that no label has had."
            )
        return belief
