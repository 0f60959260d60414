"""Worths of labels from the places where the best action changes, against the general route, closed and brute force."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from stakes import (
    FiniteActions,
    GaussianBelief,
    LogWarp,
    ThresholdDecision,
    WarpedGaussianBelief,
    expected_reduction,
    expected_regret,
)
from stakes.acquisition.forms import resolve
from stakes.beliefs.switching import find_switches

SHARES = np.array([1e-4, 0.01, 0.1, 0.35, 0.6, 0.9, 0.99, 0.9999])
MEANS = np.array([-1.6, -0.4, 0.0, 0.3, 1.1, 2.5])
SDS = np.array([0.4, 1.0, 0.7, 1.3, 0.25, 0.9])
STOCK = np.array([-1.0, 0.0, 1.0])


def shortfall(z):
    short = z[..., None] - STOCK
    return np.maximum(-short, 3.0 * short)


def window(z):
    """Acting pays within a window alone; the sure thing costs 0.3."""
    return np.stack([np.full_like(z, 0.3), 1.0 * (abs(z - 0.2) > 0.5)], axis=-1)


def three_bumps(z):
    return np.stack([np.sin(3.0 * z), 0.2 * z**2 - 0.5, np.tanh(4.0 * z)], axis=-1)


def nested(z):
    """The middle of three doses is right in a window that closes once a posterior is wide."""
    return np.stack([4.0 * (z > -0.2), 1.5 * (z <= -0.2) + 2.0 * (z > 0.3), 5.0 * (z <= 0.3)], axis=-1)


LOSSES = {
    "stock": FiniteActions(shortfall, (-1.0, 0.0, 1.0)),
    "undeclared kinks": FiniteActions(shortfall),
    "window": FiniteActions(window, (-0.3, 0.7)),
    "bumps": FiniteActions(three_bumps),
    "nested": FiniteActions(nested, (-0.2, 0.3)),
    "far apart in size": FiniteActions(lambda z: np.stack([1e7 * (z > 1.0), 1.0 * (z <= 1.0)], axis=-1), (1.0,)),
}


def belief_of(shares=SHARES, means=MEANS, sds=SDS):
    return GaussianBelief(means, sds**2, np.ones(len(shares)), np.sqrt(shares)[:, None] * sds)


def by_switches(loss, belief):
    found = find_switches(resolve(loss, belief), belief.mean, belief.variance)
    return found.reductions(belief.mean, belief.variance, belief.rho)


@pytest.mark.parametrize("name", LOSSES)
def test_worths_are_those_of_the_general_route(name):
    belief = belief_of()
    found, wanted = by_switches(LOSSES[name], belief), expected_regret(LOSSES[name], belief)
    np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=1e-12)
    assert np.any(wanted > 1e-3)


def test_two_actions_are_a_threshold_decision():
    belief = belief_of()
    costs = FiniteActions(lambda z: np.stack([5.0 * (z > 0.5), 2.0 * (z <= 0.5)], axis=-1), (0.5,))
    wanted = expected_reduction(ThresholdDecision(0.5, 5.0, 2.0), belief)
    np.testing.assert_allclose(by_switches(costs, belief), wanted, rtol=1e-8, atol=1e-40)


def test_a_window_by_brute_force():
    """EUR = h(m, v) - E[h], h the least of 0.3 and what lies outside of the window."""
    mean, sd, share = 0.1, 0.8, 0.8
    root, rest = np.sqrt(share), np.sqrt(1.0 - share)

    def least(m, s):
        return min(0.3, 1.0 - (ndtr((0.7 - m) / s) - ndtr((-0.3 - m) / s)))

    def saved(eta):
        m = mean + root * sd * eta
        return (least(mean, sd) - least(m, rest * sd)) * np.exp(-0.5 * eta**2) / np.sqrt(2.0 * np.pi)

    wanted = sum(quad(saved, low, low + 0.25, epsabs=1e-13)[0] for low in np.arange(-9.0, 9.0, 0.25))
    belief = belief_of(np.array([share]), np.array([mean]), np.array([sd]))
    np.testing.assert_allclose(by_switches(LOSSES["window"], belief)[0, 0], wanted, rtol=1e-8)


@pytest.mark.parametrize("warped", [False, True])
@pytest.mark.parametrize("name", ["stock", "window", "nested"])
def test_tables_of_many_candidates_are_those_of_the_general_route(name, warped):
    shares = np.concatenate([np.linspace(0.001, 0.99, 70), SHARES])
    belief = belief_of(shares)
    belief = WarpedGaussianBelief(belief, LogWarp()) if warped else belief
    loss = FiniteActions(lambda z: LOSSES[name].costs(z - 1.0)) if warped else LOSSES[name]
    few = belief.take(slice(0, None, 11), slice(None))
    found = expected_reduction(loss, belief)[::11]
    np.testing.assert_allclose(found, expected_regret(loss, few), rtol=1e-6, atol=1e-12)


def test_one_action_and_equal_actions_have_nothing_to_decide():
    belief = belief_of()
    for loss in (FiniteActions(lambda z: z[..., None] ** 2), FiniteActions(lambda z: np.stack([z, z], axis=-1))):
        assert np.all(by_switches(loss, belief) == 0.0)
