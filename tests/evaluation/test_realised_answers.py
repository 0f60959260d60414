"""Closed Bayes answers against the general route, and where that cannot go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import (
    CRPS,
    AbsoluteError,
    ExponentialWeight,
    GaussianBelief,
    Linex,
    LogWarp,
    Pinball,
    SquaredError,
    ThresholdDecision,
    WarpedGaussianBelief,
    Weight,
)
from stakes.acquisition.scores import closed_answer, integrated_answer
from stakes.evaluation import bayes_prediction

RATE = ExponentialWeight(-0.7)
LOSSES = [
    SquaredError(),
    SquaredError(RATE),
    Linex(0.8),
    Linex(-1.5, RATE),
    AbsoluteError(),
    AbsoluteError(RATE),
    Pinball(0.9),
    Pinball(0.2, RATE),
    ThresholdDecision(0.7, 5.0),
    ThresholdDecision(-1.0, 1.0, 30.0),
]


def belief(mean, sd):
    mean, sd = np.atleast_1d(np.asarray(mean, float)), np.atleast_1d(np.asarray(sd, float))
    return GaussianBelief(mean, sd**2, np.ones(1), np.zeros((1, len(mean))))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.01, 4)), min_size=1, max_size=4))
def test_closed_answers_are_those_of_the_general_route(loss, rows):
    here = belief(*zip(*rows, strict=True))
    closed = closed_answer(loss, here)
    scale = np.sqrt(here.variance) + np.abs(closed)
    assert np.max(np.abs(closed - integrated_answer(loss, here)) / scale) < 1e-7
    assert bayes_prediction(loss, here) == pytest.approx(closed, rel=0, abs=0)


def test_by_hand():
    here = belief([2.0], [3.0])
    assert bayes_prediction(SquaredError(ExponentialWeight(-1.0)), here) == pytest.approx([2.0 - 9.0])
    assert bayes_prediction(Linex(2.0), here) == pytest.approx([2.0 - 9.0])
    assert bayes_prediction(Pinball(0.975), here) == pytest.approx([2.0 + 3.0 * 1.959964], rel=1e-7)
    assert bayes_prediction(AbsoluteError(ExponentialWeight(0.5)), here) == pytest.approx([2.0 + 4.5])


def test_weights_whose_mass_is_far_away():
    here = belief([10.0, -5.0], [500.0, 80.0])
    loss = Linex(1.0, ExponentialWeight(1.0))
    assert bayes_prediction(loss, here) == pytest.approx([10.0 + 125000.0, -5.0 + 3200.0])
    with pytest.raises((FloatingPointError, ValueError)):
        integrated_answer(loss, here)


@pytest.mark.parametrize(
    ("loss", "given"),
    [
        (SquaredError(Weight(lambda z: 1 / (1 + np.exp(-z)))), belief([0.0], [1.0])),
        (CRPS(), belief([0.0], [1.0])),
        (SquaredError(), WarpedGaussianBelief(belief([0.0], [1.0]), LogWarp())),
    ],
    ids=["another weight", "a distribution", "a warp"],
)
def test_elsewhere_there_is_none(loss, given):
    assert closed_answer(loss, given) is None


def test_single_precision_stays_single():
    here = GaussianBelief(*(np.ones(shape, np.float32) for shape in (2, 2, 1)), np.zeros((1, 2), np.float32))
    numbers = [loss for loss in LOSSES if not loss.finite_actions]
    assert {bayes_prediction(loss, here).dtype for loss in numbers} == {np.dtype(np.float32)}
