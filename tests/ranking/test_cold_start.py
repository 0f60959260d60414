"""Rows without a model: spread over the pool, within a budget."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from stakes import cold_start
from stakes.exceptions import StakesError

POOL = np.asarray([[0.0], [10.0], [5.0], [2.0], [7.0]])


def test_three_labels_at_a_tenth_fit_into_three_tenths():
    assert len(cold_start(POOL, n=5, known=POOL[:1], costs=0.1, budget=0.3)) == 3


def test_a_label_costs_one_where_no_costs_are_given():
    found = cold_start(POOL, n=5, budget=2.0)
    assert len(found) == 2
    assert "The budget of 2 covers 2 of 5 rows." in map(str, found.notes)


def test_an_expensive_row_is_passed_over_and_does_not_end_the_list():
    costs = np.asarray([1.0, 9.0, 1.0, 1.0, 1.0])
    free = cold_start(POOL, n=3, known=POOL[:1]).indices
    assert free[0] == 1
    found = cold_start(POOL, n=3, known=POOL[:1], costs=costs, budget=3.0).indices
    assert len(found) == 3
    assert 1 not in found
    assert found[0] == 4  # the furthest of those that the budget pays for


@pytest.mark.parametrize("wrong", [{"budget": 0.0}, {"budget": -1.0}, {"costs": -1.0}, {"costs": [1.0, 2.0]}])
def test_budgets_and_costs_are_checked(wrong):
    with pytest.raises(StakesError):
        cold_start(POOL, **wrong)


def test_costs_without_a_budget_change_nothing():
    assert cold_start(POOL, n=3, costs=[3.0, 1.0, 4.0, 1.0, 5.0]) == cold_start(POOL, n=3)


# groups


def groups(spread=1.0):
    """Three groups of five rows around a middle, and one row far out."""
    corners = np.asarray([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    offsets = spread * np.asarray([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    return (corners[:, None] + offsets).reshape(-1, 2)


def test_rows_in_the_middle_of_groups_stand_for_them():
    for seed in range(5):
        assert sorted(cold_start(groups(), n=3, random_state=seed).indices) == [0, 5, 10]


def test_a_group_that_is_known_needs_no_other_row():
    found = cold_start(groups(), n=2, known=groups()[:1])
    assert sorted(found.indices) == [5, 10]
    assert all(np.isfinite(found.scores))


def test_the_largest_group_comes_first_and_then_the_furthest():
    rows = np.concatenate([groups(), [[0.5, 0.5]]])
    found = cold_start(rows, n=3)
    assert found.indices[0] in (0, 15)
    assert found.scores[0] == np.inf
    assert found.scores[1] >= found.scores[2]


def test_rows_that_are_equal_are_chosen_once_each():
    for n in (2, 4, 6):
        found = cold_start(np.asarray([[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]]), n=n)
        assert len(set(found.indices)) == n


def test_a_middle_that_costs_more_does_not_take_the_place_of_one_within_the_budget():
    costs = np.ones(15)
    costs[[0, 5, 10]] = 5.0
    found = cold_start(groups(), n=3, costs=costs, budget=3.0)
    assert len(found) == 3
    assert not {0, 5, 10} & set(found.indices)
    assert sorted(cold_start(groups(), n=3, costs=costs).indices) != sorted(found.indices)


def test_sparse_features_are_grouped_as_dense_ones_are():
    dense = groups()
    alike = dense / dense.std(axis=0)  # a sparse matrix is taken as it is
    assert sorted(cold_start(csr_matrix(alike), n=3).indices) == sorted(cold_start(alike, n=3).indices)
