"""Trials that tests of simulations share; a module, so that other processes can import them."""

import numpy as np

from stakes import SquaredError
from stakes.simulation import Trial, simulate_trials
from tests.simulation.simulation_cases import BayesianLine, class_data

GRID = np.linspace(-1.0, 1.0, 9)


def noisy_line(rng):
    """y = 1 + 2 x with noise of the run; contexts and tests lie elsewhere, contexts without y, tests without noise."""
    contexts, tests = np.linspace(-2.0, 2.0, 5), np.linspace(-2.0, 2.0, 7)
    x = np.concatenate([GRID, contexts, tests])
    y = 1.0 + 2.0 * x
    y[:9] += 0.3 * rng.normal(size=9)
    y[9:14] = np.nan
    pool = np.setdiff1d(np.arange(9), [2, 5])
    return Trial(np.stack([np.ones(21), x], axis=1), y, [5, 2], pool, np.arange(9, 14), np.arange(14, 21))


def per_class(rng):
    """Two initial labels, three contexts and three tests of each class; the rest is the pool."""
    X, y = class_data()
    rows = {each: rng.permutation(np.flatnonzero(y == each)) for each in "abc"}
    initial, contexts, tests = (
        np.concatenate([each[start:stop] for each in rows.values()]) for start, stop in ((0, 2), (2, 5), (5, 8))
    )
    rest = np.setdiff1d(np.arange(len(y)), np.concatenate([initial, contexts, tests]))
    return Trial(X, y, initial, rest, contexts, tests)


def trials(trial=noisy_line, **arguments):
    given = {"n": 3, "runs": 2, **arguments}
    return simulate_trials(given.pop("model", BayesianLine()), given.pop("loss", SquaredError()), trial, **given)
