"""The synthetic problem in both readings, against their formulas written out."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import norm

from experiments.datasets import DatasetError, synthetic

POINTS = arrays(float, array_shapes(max_dims=3, max_side=4), elements=st.floats(-8, 8))


def published(x):
    return 2 * np.sin(2 * x) + 10 * np.exp(-((x - 2.5) ** 2) / 0.5) - 8 * np.exp(-((x + 4.5) ** 2) / 0.5)


def text(x):
    bumps = 8 * norm.pdf(x, 2.5, 0.5) + 10 * norm.pdf(x, 7.5, 0.25) - 6 * norm.pdf(x, -4.5, 0.5)
    return 2 * np.sin(2 * x) + bumps


@given(x=POINTS)
def test_f_is_the_formula_at_points_of_any_shape(x):
    for reading, formula in (("published", published), ("text", text)):
        values = synthetic(reading).f(x)
        assert values.shape == x.shape
        np.testing.assert_allclose(values, formula(x), rtol=1e-12, atol=1e-12)


def test_values_by_hand():
    assert synthetic().f(2.5) == pytest.approx(2 * np.sin(5.0) + 10.0, abs=1e-12)
    assert synthetic().f(-4.5) == pytest.approx(2 * np.sin(-9.0) - 8.0, abs=1e-12)
    assert synthetic().f(7.5) == pytest.approx(2 * np.sin(15.0), abs=1e-9)  # no bump there
    assert synthetic("text").f(7.5) == pytest.approx(2 * np.sin(15.0) + 40 / np.sqrt(2 * np.pi), abs=1e-9)


@pytest.mark.parametrize("reading", ["published", "text"])
def test_points_are_evenly_spaced_with_both_ends(reading):
    problem = synthetic(reading)
    for points, count in ((problem.candidates, 65), (problem.contexts, 49), (problem.tests, 97)):
        assert points.shape == (count,)
        assert (points[0], points[-1]) == (-8.0, 8.0)
        np.testing.assert_allclose(np.diff(points), 16 / (count - 1), rtol=1e-12)


@pytest.mark.parametrize(("reading", "sd", "starts"), [("published", 0.1, 2), ("text", 0.2, 3)])
def test_noise_and_start(reading, sd, starts, rng):
    problem = synthetic(reading)
    x = np.linspace(-8, 8, 40_000)
    residuals = problem.labels(x, rng) - problem.f(x)
    assert abs(residuals.mean()) < 4 * sd / 200
    assert residuals.std() == pytest.approx(sd, rel=0.02)  # 0.35% is its standard error
    assert problem.gp_noise_variance == 0.04
    first = problem.start(rng)
    assert first.shape == (starts,) == (problem.n_start,)
    assert len(set(first.tolist())) == starts
    assert set(first.tolist()) <= set(problem.candidates.tolist())


def test_the_random_state_is_an_argument():
    for reading in ("published", "text"):
        problem = synthetic(reading)
        once, again = (problem.labels(problem.start(rng), rng) for rng in map(np.random.default_rng, (3, 3)))
        assert np.array_equal(once, again)
    drawn = [synthetic("text").start(np.random.default_rng(seed)) for seed in (0, 1)]
    assert not np.array_equal(*drawn)
    assert synthetic().start(np.random.default_rng(0)).tolist() == [-1.0, 1.0]


def test_another_reading_is_refused():
    with pytest.raises(DatasetError, match="reading must be one of published, text; got 'paper'"):
        synthetic("paper")
