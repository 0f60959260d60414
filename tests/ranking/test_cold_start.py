"""Rows without a model: spread over the pool, within a budget."""

import numpy as np
import pytest

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
