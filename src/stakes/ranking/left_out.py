"""How much more a model loses than it expects, by its own labels, each left out.

A Gaussian process that is wrong about noise, or of outcomes of which a few carry the loss, expects to lose less than it
does; and what labels save is in proportion. What a process says of each label given all others has a closed form, so no
fit is needed. With n labels, of which it lost x on average where it expected e, expected losses and worths are taken

    ((n x + 10 e) / ((n + 10) e))^0.7

times as large: ten labels as expected are added, and the power is what fits 14 tables of numbers (docs/promises.md).

Sizes: n labels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stakes._utils.array import on_host
from stakes.acquisition import uncertainty
from stakes.acquisition.scores import bayes_prediction
from stakes.beliefs import Distribution, GaussianBelief
from stakes.losses import PerContext
from stakes.models.inspection import labels_left_out
from stakes.ranking.query import Query

AS_EXPECTED = 10.0
"""Labels that are taken to have lost what was expected, beside those that there are."""
LEFT_OUT_POWER = 0.7
FURTHEST = 4.0
"""No factor is larger, nor smaller than one over it."""


class LeftOut(NamedTuple):
    """Mean losses on labels that were left out."""

    lost: float
    expected: float
    labels: int

    @property
    def ratio(self) -> float:
        """How many times as much was lost as expected, with AS_EXPECTED labels beside."""
        return (self.labels * self.lost / self.expected + AS_EXPECTED) / (self.labels + AS_EXPECTED)

    @property
    def factor(self) -> float:
        """By which expected losses and worths are multiplied."""
        return float(min(max(self.ratio**LEFT_OUT_POWER, 1.0 / FURTHEST), FURTHEST))


def left_out(query: Query) -> LeftOut | None:
    """What the model of a query lost on labels left out, and expected to lose, under its loss.

    None where the model does not know, where the loss is another one in each row, a score of distributions, or not
    counted from 0, and where what is asked for is not a label.
    """
    if "labels left out" not in query.prepared:
        query.prepared["labels left out"] = _left_out(query)
    found: LeftOut | None = query.prepared["labels left out"]
    return found


def left_out_factor(query: Query) -> float:
    """Its factor; 1 where nothing is known."""
    found = left_out(query)
    return 1.0 if found is None else found.factor


def _left_out(query: Query) -> LeftOut | None:
    if query.target != "label" or isinstance(query.loss, PerContext):
        return None
    if (known := labels_left_out(query.model)) is None:
        return None
    mean, variance, labels = (np.asarray(each, dtype=float) for each in known)
    belief = GaussianBelief(mean, np.maximum(variance, np.finfo(float).tiny), np.ones(1), np.zeros((1, len(mean))))
    try:
        answers = bayes_prediction(query.loss, belief)
        if isinstance(answers, Distribution):
            return None
        expected = on_host(uncertainty(query.loss, belief)).astype(float)
        lost = np.asarray(on_host(query.loss(labels, on_host(answers))), dtype=float)
    except FloatingPointError:  # an expected loss is infinite
        return None
    if not (np.isfinite(expected).all() and np.isfinite(lost).all() and min(lost.min(), expected.min()) >= 0.0):
        return None
    found = float(lost.mean()), float(expected.mean())
    return LeftOut(*found, len(labels)) if found[1] > 0.0 and math.isfinite(found[0] / found[1]) else None
