"""Decisions over a grid of answers: many switches, some of which come and go; against the general route."""

import numpy as np
import pytest

from stakes import FiniteActions, GaussianBelief, expected_reduction, expected_regret
from stakes.acquisition.forms import resolve
from stakes.beliefs.switching import find_switches

ANSWERS = np.linspace(-3.0, 3.0, 7)


def expensive_above(z):
    """Squared error, four times that from 0.5 on, and 0.1 for answers that raise a false alarm."""
    error = (z[..., None] - ANSWERS) ** 2
    costs = np.where(z[..., None] >= 0.5, 4.0 * error, error)
    return costs + 0.1 * ((ANSWERS >= 0.5) & (z[..., None] < 0.0))


LOSS = FiniteActions(expensive_above, breakpoints=(0.0, 0.5))


def belief_of(shares):
    means, sds = np.array([-1.3, 0.2, 0.6, 1.9]), np.array([0.8, 0.5, 1.0, 0.7])
    return GaussianBelief(means, sds**2, np.ones(len(shares)), np.sqrt(shares)[:, None] * sds)


def test_worths_by_switches_are_those_of_the_general_route():
    belief = belief_of(np.array([0.02, 0.4, 0.95]))
    found = find_switches(resolve(LOSS, belief), belief.mean, belief.variance)
    assert found is not None
    assert len(found.panels) < 64
    wanted = expected_regret(LOSS, belief)
    np.testing.assert_allclose(found.reductions(belief.mean, belief.variance, belief.rho), wanted, rtol=2e-6)


@pytest.mark.parametrize("n_candidates", [65, 100])
def test_tables_are_those_of_the_general_route(n_candidates):
    belief = belief_of(np.linspace(0.01, 0.98, n_candidates))
    few = belief.take(slice(0, None, 40), slice(None))
    np.testing.assert_allclose(expected_reduction(LOSS, belief)[::40], expected_regret(LOSS, few), rtol=2e-6)
