"""What a run knows after some labels: one fit, and what follows from it, each made once and only if it is asked for.

Sizes: Q metrics, N candidates.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from stakes.beliefs import Belief
from stakes.domains import Classes
from stakes.models import belief_of
from stakes.models.refit import refitted
from stakes.models.tables import Host, take_rows
from stakes.simulation.metrics import judged
from stakes.simulation.plan import Case, Plan
from stakes.simulation.problem import Problem
from stakes.simulation.splits import BELIEF, FIT, LUCK, SCORE, TEST, generator
from stakes.simulation.strategies import Strategy, choose


class Outlook(NamedTuple):
    """What is believed of the pool and the contexts."""

    belief: Belief
    by_chance: bool
    """whether random numbers had a part in it"""
    seconds: float


@dataclass(frozen=True, eq=False)
class Stage:
    """Run number `run` after the rows at `acquired`: the same for every strategy that bought them in this order."""

    plan: Plan
    case: Case
    run: int
    acquired: tuple[int, ...]

    @property
    def step(self) -> int:
        """How many labels were bought."""
        return len(self.acquired)

    @cached_property
    def fitted(self) -> tuple[Any, float]:
        """A clone fitted to the initial rows, then those bought, as `simulate_trials` promises; and its seconds."""
        start = time.perf_counter()
        rows, data = np.concatenate([self.case.parts.initial, self._bought]), self.case.problem
        chance = generator(self.plan.seed, self.run, self.step if self.plan.reseed else 0, FIT)
        model = refitted(self.plan.model, take_rows(data.features, rows), data.labels[rows], chance)
        return model, time.perf_counter() - start

    def losses(self, strategy: Strategy) -> list[float]:
        """[Q]: the metrics on test rows; by the belief that the strategy chooses with, if that is about these rows."""
        return self._judged_by_choice if self._shares_belief(strategy) else self._judged_apart

    def choose(self, strategy: Strategy) -> tuple[int, float]:
        """The position of the row to buy; and the seconds of the belief about the pool, if it is used, and scores."""
        before = 0.0 if strategy.rule is None else self._outlook.seconds
        start = time.perf_counter()
        luck = self._chance(LUCK).random(self.case.problem.size)[self._pool]  # a row's own, whatever the pool
        best = choose(strategy, lambda: self._outlook.belief, self.plan.loss, self._chance(SCORE), luck)
        return int(self._pool[best]), before + time.perf_counter() - start

    @cached_property
    def _bought(self) -> Host:
        return np.asarray(self.acquired, dtype=np.intp)

    @cached_property
    def _pool(self) -> Host:
        """[N]: positions of what can still be bought."""
        return np.setdiff1d(self.case.parts.pool, self._bought)

    @cached_property
    def _outlook(self) -> Outlook:
        start, chance = time.perf_counter(), self._chance(BELIEF)
        belief = self._belief(self._pool, self.case.parts.contexts, chance)
        by_chance = chance.bit_generator.state != self._chance(BELIEF).bit_generator.state
        return Outlook(belief, by_chance, time.perf_counter() - start)

    def _shares_belief(self, strategy: Strategy) -> bool:
        """Chance that judges is not the chance that chooses; and who needs no belief about the pool is given none."""
        if strategy.rule is None or self.step == self.plan.budget:
            return False
        parts = self.case.parts
        return np.array_equal(parts.contexts, parts.test) and not self._outlook.by_chance

    @cached_property
    def _judged_by_choice(self) -> list[float]:
        return self._judged(self._outlook.belief)

    @cached_property
    def _judged_apart(self) -> list[float]:
        """A belief is about candidates too; a context stands in for them, as the same is at hand for every strategy."""
        parts = self.case.parts
        return self._judged(self._belief(parts.contexts[:1], parts.test, self._chance(TEST)))

    def _judged(self, belief: Belief) -> list[float]:
        return judged(self.plan.metrics, belief, self.case.problem.targets[self.case.parts.test])

    def _belief(self, candidates: Host, contexts: Host, chance: np.random.Generator) -> Belief:
        return _belief(self.fitted[0], self.case.problem, candidates, contexts, chance)

    def _chance(self, purpose: int) -> np.random.Generator:
        return generator(self.plan.seed, self.run, self.step, purpose)


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
