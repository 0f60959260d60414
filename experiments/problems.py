"""Fifteen problems: a table, what being wrong costs there, and a model.

All were written down before any was run, but for the loss of the fourth and the last one, which asks why the first came
out as it did (see `docs/does_it_help.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import (
    BrierLoss,
    CostMatrix,
    ExponentialWeight,
    ItakuraSaito,
    Linex,
    LogLoss,
    Pinball,
    SquaredError,
    ThresholdDecision,
)
from stakes.models import Bootstrap, DefaultModel


@dataclass(frozen=True, eq=False)
class Model:
    """An estimator that is not fitted, and what it is called."""

    words: str
    estimator: Any


_REAL, _SCALER = DefaultModel(task="real"), StandardScaler()
_OF_ALL_ROWS = 1.9 * Matern(7.8, nu=2.5) + WhiteKernel(0.39)  # what DefaultModel finds for the whole diabetes table
_FIXED = GaussianProcessRegressor(_OF_ALL_ROWS, optimizer=None, normalize_y=True)

PROCESS = Model("Gaussian process", _REAL)
LOG_PROCESS = Model(
    "Gaussian process of the logarithm", TransformedTargetRegressor(_REAL, func=np.log, inverse_func=np.exp)
)
KNOWN_PROCESS = Model("Gaussian process, known hyperparameters", make_pipeline(_SCALER, _FIXED))
FOREST = Model("forest of 50 trees", RandomForestClassifier(50))
LOGISTIC = Model("10 logistic regressions", Bootstrap(make_pipeline(_SCALER, LogisticRegression()), members=10))


@dataclass(frozen=True, eq=False)
class Problem:
    """What labels are bought for."""

    table: str
    words: str
    """what being wrong costs"""
    loss: Any
    model: Model
    usual: str
    """a usual rule that knows no loss, by its name in `stakes.acquisition.baselines.BASELINES`"""
    heavy: Any = None
    """the class that counts most, where there is one"""
    budget: int = 25

    @property
    def name(self) -> str:
        """Unlike that of any other problem."""
        return f"{self.table}: {self.words}; {self.model.words}"


def missed(heavy: int, cost: float, count: int) -> CostMatrix:
    """An error costs 1; to take class number `heavy` of `count` for another costs `cost`."""
    costs = 1.0 - np.eye(count)
    costs[heavy] *= cost
    return CostMatrix(costs)


def read_low(cost: float, count: int) -> CostMatrix:
    """To read a digit as a higher one costs their distance, as a lower one `cost` times it."""
    distance = np.arange(count) - np.arange(count)[:, None]  # [truth, reading]
    return CostMatrix(np.where(distance < 0, -cost * distance, distance).astype(float))


HIGH = SquaredError(ExponentialWeight(1.0))
VARIANCE, ENTROPY = "predictive variance", "predictive entropy"
HIGH_WORDS = "squared error, weight e-fold for each sd"

PROBLEMS = (
    Problem("diabetes", HIGH_WORDS, HIGH, PROCESS, VARIANCE),
    Problem("diabetes", "Linex(1): overestimates hurt more", Linex(1.0), PROCESS, VARIANCE),
    Problem("yacht", HIGH_WORDS, HIGH, PROCESS, VARIANCE),
    Problem("yacht", "Itakura-Saito: relative errors", ItakuraSaito(), LOG_PROCESS, VARIANCE),
    Problem("estate", HIGH_WORDS, HIGH, PROCESS, VARIANCE),
    Problem("estate", "Pinball(0.9): a price few exceed", Pinball(0.9), PROCESS, VARIANCE),
    Problem("slump", "strong or not, a false yes costs 10", ThresholdDecision(5.0, 1.0, 10.0), PROCESS, VARIANCE),
    Problem("breast cancer", "a missed malignant tumour costs 20", missed(0, 20.0, 2), FOREST, ENTROPY, 0),
    Problem("breast cancer", "a missed malignant tumour costs 20", missed(0, 20.0, 2), LOGISTIC, ENTROPY, 0),
    Problem("wine", "log loss, the third cultivar weighs 20", LogLoss([1.0, 1.0, 20.0]), LOGISTIC, ENTROPY, 2),
    Problem("digits", "to read d too low costs 5 d, too high d", read_low(5.0, 10), FOREST, ENTROPY),
    Problem("vehicle", "Brier, a bus weighs 50", BrierLoss([50.0, 1.0, 1.0, 1.0]), FOREST, ENTROPY, "bus"),
    Problem("vowel", "Brier, the first vowel weighs 20", BrierLoss([20.0, *[1.0] * 10]), FOREST, ENTROPY, 0),
    Problem("landsat", "missed damp grey soil costs 20", missed(3, 20.0, 6), FOREST, ENTROPY, 4),
    Problem("diabetes", HIGH_WORDS, HIGH, KNOWN_PROCESS, VARIANCE),
)
