"""What being wrong costs on a table: the losses that drive choices and the numbers by which all choices are measured.

Numbers: squared error; squared error with weight exp(z / sd); act above the 80% quantile, a miss costs 5 and a false
alarm 1; pinball at 0.9. Classes: an error costs 1, but 10 where the rarest class is missed; log loss in which that
class weighs 20. "Unweighted" is squared error or log loss.

Sizes: n rows, T test rows, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.labels_saved.tables import Host, Table, Task
from stakes import CostMatrix, ExponentialWeight, LogLoss, Pinball, SquaredError, ThresholdDecision
from stakes.evaluation import bayes_prediction, realised_loss

QUANTILE, MISS, FALSE_ALARM = 0.8, 5.0, 1.0
TAIL = 0.9
RARE_COST, RARE_WEIGHT = 10.0, 20.0
LEAST = 0.01
"""The share of every answer in probabilities that is spread over all classes. A forest gives exact zeros, one of which
makes a log loss infinite; all beliefs are measured alike."""

UNWEIGHTED: dict[Task, str] = {"numbers": "squared error", "classes": "log loss"}
DRIVERS: dict[Task, tuple[str, ...]] = {
    "numbers": ("squared error", "exponential weight", "threshold", "pinball"),
    "classes": ("cost of a miss", "weighted log loss"),
}
"""The losses that labels are bought for. The unweighted one is measured for all, and buys labels for all."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss on one table."""

    name: str
    loss: Any
    unit: float = 1.0
    """by which losses are divided: the mean weight of the table's targets"""

    def __call__(self, belief: Any, targets: Any) -> float:
        """The mean loss on T test rows of what is best to answer under the belief, in units."""
        return float(realised_loss(self.loss, self.answers(belief), targets).mean) / self.unit

    def answers(self, belief: Any) -> Any:
        """[T, ..]: what is best to answer under the belief; probabilities that none of them is 0."""
        answers = bayes_prediction(self.loss, belief)
        return with_floor(answers) if isinstance(self.loss, LogLoss) else answers


def with_floor(probabilities: Host) -> Host:
    """[..., C]: the same with LEAST of it spread evenly, so that none is 0."""
    return np.asarray((1.0 - LEAST) * probabilities + LEAST / probabilities.shape[-1])


def problems(table: Table) -> dict[str, Problem]:
    """All losses that are measured on a table, by name; the unweighted one is among them."""
    made = _of_numbers(table.y) if table.task == "numbers" else _of_classes(table)
    return {each.name: each for each in made}


def rarest(table: Table) -> int:
    """The position of the class with the fewest rows, the first of those that tie."""
    return int(np.argmin(table.shares))


def _of_numbers(targets: Host) -> list[Problem]:
    slope = 1.0 / float(targets.std())
    return [
        Problem("squared error", SquaredError()),
        Problem("exponential weight", SquaredError(ExponentialWeight(slope)), float(np.exp(slope * targets).mean())),
        Problem("threshold", ThresholdDecision(float(np.quantile(targets, QUANTILE)), MISS, FALSE_ALARM)),
        Problem("pinball", Pinball(TAIL)),
    ]


def _of_classes(table: Table) -> list[Problem]:
    count, rare = len(table.classes), rarest(table)
    costs = 1.0 - np.eye(count)
    costs[rare] *= RARE_COST
    weights = np.ones(count)
    weights[rare] = RARE_WEIGHT
    return [
        Problem("cost of a miss", CostMatrix(costs)),
        Problem("weighted log loss", LogLoss(weights.tolist()), float(weights @ table.shares)),
        Problem("log loss", LogLoss()),
    ]
