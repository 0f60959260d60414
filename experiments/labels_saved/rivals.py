"""Rivals whose choices do not depend on the belief: rows in an order that is known before the model is fitted.

Sizes: N rows of the pool, B labels bought, C classes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from experiments.labels_saved.tables import Host
from stakes.simulation import Trial
from stakes.simulation.problem import SCORE, random_stream

K_CENTRE, ERROR_REDUCTION = "k-centre", "expected error reduction"


class NotFinishedError(Exception):
    """A rival that could not be run, and why."""


@dataclass(frozen=True, eq=False)
class InOrder:
    """A strategy of `stakes.simulate` that buys rows in a fixed order."""

    pool: Host
    """[N]: positions, rising"""
    order: Host
    """[B]: positions, first the first"""

    def __call__(self, belief: Any, loss: Any, random_state: np.random.Generator) -> Host:
        """[candidates left]: 1 for the next row."""
        bought = len(self.pool) - belief.n_candidates
        return np.asarray(np.setdiff1d(self.pool, self.order[:bought]) == self.order[bought], dtype=float)


def random_order(trial: Trial, count: int, run: int) -> Host:
    """[B]: the rows that random choice buys in run number `run` on the processor."""
    left, order = trial.pool, []
    for bought in range(count):
        scores = random_stream(run, 0, bought, SCORE).random(len(left))
        order.append(left[np.argmax(scores)])
        left = np.delete(left, np.argmax(scores))
    return np.asarray(order, dtype=np.intp)


def k_centre(trial: Trial, count: int) -> Host:
    """[B]: each time the row of the pool that is farthest from all rows labelled so far (Sener and Savarese, 2018)."""
    rows, labelled = np.asarray(trial.X), trial.initial
    distance = cdist(rows[trial.pool], rows[labelled]).min(axis=1)  # [N]
    order = []
    for _ in range(count):
        place = int(np.argmax(distance))
        order.append(trial.pool[place])
        distance = np.minimum(distance, cdist(rows[trial.pool], rows[trial.pool[[place]]])[:, 0])
        distance[np.isin(trial.pool, order)] = -1.0
    return np.asarray(order, dtype=np.intp)


def expected_error_reduction(trial: Trial, n_classes: int, count: int, seconds: float, random_state: int) -> Host:
    """[B]: by scikit-activeml's `MonteCarloEER` with its `ParzenWindowClassifier`, which can be refitted N C times.

    Raises:
        NotFinishedError: If scikit-activeml is not installed, or a run takes more than `seconds` of a processor.
    """
    try:
        from skactiveml.classifier import ParzenWindowClassifier
        from skactiveml.pool import MonteCarloEER
    except ImportError:
        raise NotFinishedError("scikit-activeml is not installed: pip install scikit-activeml") from None
    rows = np.concatenate([trial.initial, trial.pool])
    features, truth = np.asarray(trial.X)[rows], np.asarray(trial.y, dtype=float)[rows]
    labels = np.where(np.arange(len(rows)) < len(trial.initial), truth, np.nan)
    query = MonteCarloEER(method="misclassification_loss", random_state=random_state)
    classifier = ParzenWindowClassifier(classes=list(range(n_classes)), random_state=random_state)
    start, order = time.process_time(), []
    for bought in range(count):
        place = int(query.query(features, labels, classifier)[0])
        labels[place] = truth[place]
        order.append(rows[place])
        took = (time.process_time() - start) / (bought + 1) * count
        if took > seconds:
            raise NotFinishedError(f"a run would take about {took:.0f} s, more than {seconds:.0f}")
    return np.asarray(order, dtype=np.intp)
