"""Thirteen problems: a table, what being wrong costs there, and a model.

All were written down before any was run, but for the last one, which asks why the first came out as it did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import BrierLoss, CostMatrix, ExponentialWeight, Linex, LogLoss, Pinball, SquaredError, ThresholdDecision
from stakes.models import Bootstrap, DefaultModel


@dataclass(frozen=True, eq=False)
class Model:
    """An estimator that is not fitted, and what it is called."""

    description: str
    estimator: Any


_SCALER = StandardScaler()
_OF_ALL_ROWS = 1.9 * Matern(7.8, nu=2.5) + WhiteKernel(0.39)  # what DefaultModel finds for the whole diabetes table
_FIXED = GaussianProcessRegressor(_OF_ALL_ROWS, optimizer=None, normalize_y=True)

PROCESS = Model("Gaussian process", DefaultModel(task="real"))
KNOWN_PROCESS = Model("Gaussian process, known hyperparameters", make_pipeline(_SCALER, _FIXED))
FOREST = Model("forest of 50 trees", RandomForestClassifier(50))
LOGISTIC = Model("10 logistic regressions", Bootstrap(make_pipeline(_SCALER, LogisticRegression()), members=10))


@dataclass(frozen=True, eq=False)
class Problem:
    """What labels are bought for."""

    table: str
    description: str
    """what being wrong costs"""
    loss: Any
    model: Model
    usual: str
    """a usual rule that knows no loss, by its name in `stakes.baselines.BASELINES`"""
    runs: int
    heavy: Any = None
    """the class that counts most, where there is one"""
    n: int = 25
    """labels to acquire in a run"""

    @property
    def name(self) -> str:
        """Unlike that of any other problem."""
        return f"{self.table}: {self.description}; {self.model.description}"


def missed(heavy: int, cost: float, count: int) -> CostMatrix:
    """An error costs 1; to take class number `heavy` of `count` for another costs `cost`."""
    costs = 1.0 - np.eye(count)
    costs[heavy] *= cost
    return CostMatrix(costs)


def read_low(cost: float, count: int) -> CostMatrix:
    """To read a digit as a higher one costs their distance, as a lower one `cost` times it."""
    distance = np.arange(count) - np.arange(count)[:, None]  # [truth, reading]
    return CostMatrix(np.where(distance < 0, -cost * distance, distance).astype(float))


def _of_reals(table: str, description: str, loss: Any, model: Model) -> Problem:
    return Problem(table, description, loss, model, usual="predictive variance", runs=20)


def _of_classes(table: str, description: str, loss: Any, model: Model, heavy: Any) -> Problem:
    """Fewer runs: a forest takes longer to fit than a Gaussian process of few labels."""
    return Problem(table, description, loss, model, usual="predictive entropy", runs=12, heavy=heavy)


HIGH = SquaredError(ExponentialWeight(1.0))
HIGH_COSTS = "squared error, weight e-fold for each sd"

PROBLEMS = (
    _of_reals("diabetes", HIGH_COSTS, HIGH, PROCESS),
    _of_reals("diabetes", "Linex(1): overestimates hurt more", Linex(1.0), PROCESS),
    _of_reals("yacht", HIGH_COSTS, HIGH, PROCESS),
    _of_reals("estate", HIGH_COSTS, HIGH, PROCESS),
    _of_reals("estate", "Pinball(0.9): a price few exceed", Pinball(0.9), PROCESS),
    _of_reals("slump", "strong or not, a false yes costs 10", ThresholdDecision(5.0, 1.0, 10.0), PROCESS),
    _of_classes("breast cancer", "a missed malignant tumour costs 20", missed(0, 20.0, 2), FOREST, 0),
    _of_classes("breast cancer", "a missed malignant tumour costs 20", missed(0, 20.0, 2), LOGISTIC, 0),
    _of_classes("wine", "log loss, the third cultivar weighs 20", LogLoss([1.0, 1.0, 20.0]), LOGISTIC, 2),
    _of_classes("digits", "to read d too low costs 5 d, too high d", read_low(5.0, 10), FOREST, None),
    _of_classes("vehicle", "Brier, a bus weighs 50", BrierLoss([50.0, 1.0, 1.0, 1.0]), FOREST, "bus"),
    _of_classes("landsat", "missed damp grey soil costs 20", missed(3, 20.0, 6), FOREST, 4),
    _of_reals("diabetes", HIGH_COSTS, HIGH, KNOWN_PROCESS),
)
