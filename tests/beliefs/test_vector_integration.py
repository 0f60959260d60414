"""Nodes for a standard normal vector: their first moments are exact, the rest is as good as stated."""

import numpy as np
import pytest

from stakes.beliefs import SymmetricNodes

SIZES = [(64, 1), (256, 1), (256, 2), (512, 3), (256, 3), (512, 5), (100, 7)]


@pytest.mark.parametrize(("count", "dimension"), SIZES)
def test_symmetric_and_of_unit_covariance(count, dimension):
    for points, masses in (
        SymmetricNodes(count, count).outcomes(dimension),
        SymmetricNodes(count, count).targets(dimension),
    ):
        assert points.shape == (len(masses), dimension)
        assert count / 2 < len(masses) <= count
        assert masses.sum() == pytest.approx(1.0, abs=1e-14)
        np.testing.assert_allclose(masses @ points, 0.0, atol=1e-15)
        np.testing.assert_allclose(points.T @ (masses[:, None] * points), np.eye(dimension), atol=1e-13)
        np.testing.assert_allclose(sorted(points[:, 0]), sorted(-points[:, 0]), atol=1e-12)


@pytest.mark.parametrize(
    ("count", "dimension", "tolerance"), [(64, 1, 1e-9), (256, 2, 1e-6), (512, 3, 1e-2), (512, 5, 3e-2)]
)
def test_the_mean_of_an_exponential(count, dimension, tolerance):
    """E[exp(u_1)] = exp(1/2)."""
    points, masses = SymmetricNodes(inner=count).targets(dimension)
    assert masses @ np.exp(points[:, 0]) == pytest.approx(np.exp(0.5), rel=tolerance)


def test_nodes_depend_on_nothing_but_the_rule():
    first = SymmetricNodes(64, 64, random_state=3).outcomes(5)[0].copy()
    np.random.default_rng(0).random()
    np.testing.assert_array_equal(first, SymmetricNodes(64, 128, random_state=3).outcomes(5)[0])
    assert not np.allclose(first, SymmetricNodes(64, 64, random_state=4).outcomes(5)[0])
    assert not np.allclose(
        first, SymmetricNodes(64, 64, random_state=3).targets(5)[0]
    )  # labels and targets share no sequence
    SymmetricNodes(64, 64, random_state=3).outcomes(5)[0][:] = 0.0
    np.testing.assert_array_equal(first, SymmetricNodes(64, 64, random_state=3).outcomes(5)[0])


def test_refined_doubles_all():
    assert SymmetricNodes(8, 16, 5, 32).refined() == SymmetricNodes(16, 32, 5, 64)


@pytest.mark.parametrize("change", [{"outer": 4}, {"inner": 7}, {"outer": 64.0}])
def test_bad_rules_are_refused(change):
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be a whole number, 8 or more; got"):
        SymmetricNodes(**change)


def test_a_bad_grid_is_refused():
    with pytest.raises(ValueError, match="grid must be a whole number, 0 or more; got -1"):
        SymmetricNodes(grid=-1)


def test_random_states_are_numbers_or_generators():
    first, again = (SymmetricNodes(random_state=np.random.default_rng(3)) for _ in range(2))
    assert first == again
    assert SymmetricNodes(random_state=None) == SymmetricNodes()
    with pytest.raises(ValueError, match="random_state must be 0 or more; got -1"):
        SymmetricNodes(random_state=-1)
    with pytest.raises(TypeError, match=r"random_state must be a whole number or a numpy\.random\.Generator"):
        SymmetricNodes(random_state="one")


def test_too_few_nodes_for_the_dimension_are_refused():
    with pytest.raises(ValueError, match="8 nodes are too few for 3 numbers, which need 12"):
        SymmetricNodes(8, 8).outcomes(3)
