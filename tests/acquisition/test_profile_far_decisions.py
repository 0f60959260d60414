"""Decisions that turn far out: what a label is worth is right there, too, however little that is."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from stakes import FiniteActions, GaussianBelief, LogWarp, ThresholdDecision, WarpedGaussianBelief, expected_reduction

SHARES = np.array([0.5, 0.9, 0.97, 0.999])


def belief_of(shares):
    return GaussianBelief([0.0], [1.0], np.ones(len(shares)), np.sqrt(shares)[:, None])


def worth_of_a_line(turn, share):
    """Of z / turn against 1: E[(root eta / turn - 1)+] = root (pdf(a) - a Q(a)) / turn with a = turn / root."""
    root = math.sqrt(share)
    a = turn / root
    # pdf(a) - a Q(a) = pdf(a) (1 - a m) with Mills' ratio m = Q(a) / pdf(a), by its continued fraction: no digits lost
    tail = a
    for k in range(400, 1, -1):
        tail = a + k / tail
    return root / turn * math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi) * (1.0 - a / (a + 1.0 / tail))


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("turn", [6.0, 9.0, 11.0, 13.0, 16.0, 20.0, 30.0])
def test_costs_that_cross_far_out(turn, many):
    shares = np.concatenate([SHARES, np.linspace(0.01, 0.99, 70)]) if many else SHARES
    loss = FiniteActions(lambda z: np.stack([z / turn, np.ones_like(z)], axis=-1))
    found = expected_reduction(loss, belief_of(shares))[:, 0]
    wanted = np.array([worth_of_a_line(turn, share) for share in shares])
    most = worth_of_a_line(turn, 1.0)
    assert np.all(abs(found - wanted) <= np.maximum(1e-6 * wanted, 1e-12 * most)), (found, wanted)


@pytest.mark.parametrize("warped", [False, True])
@pytest.mark.parametrize("place", [5.0, 7.0, 8.0, 10.0, 13.0, 20.0, 30.0])
def test_undeclared_steps_of_costs_far_out(place, warped):
    belief, step = belief_of(SHARES), math.exp(place) if warped else place
    loss = FiniteActions(lambda z: np.stack([3.0 * (z > step), 1.0 * (z <= step)], axis=-1))
    found = expected_reduction(loss, WarpedGaussianBelief(belief, LogWarp()) if warped else belief)[:, 0]
    wanted = expected_reduction(ThresholdDecision(place, 3.0, 1.0), belief)[:, 0]  # by its closed form
    most = 3.0 * math.exp(log_ndtr(-place))
    assert np.all(abs(found - wanted) <= np.maximum(1e-6 * wanted, 1e-12 * most)), (found, wanted)


def test_a_miss_of_1e80_beyond_the_usual_reach():
    """By mpmath, on intervals around the switch."""
    loss = FiniteActions(lambda z: np.stack([1e80 * (z > 20.0), 1.0 * (z <= 20.0)], axis=-1), breakpoints=(20.0,))
    assert expected_reduction(loss, belief_of(np.array([0.5])))[0, 0] == pytest.approx(2.75362411859e-9, rel=1e-6)
