import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import given
from hypothesis import strategies as st

from stakes.exceptions import StakesError
from stakes.losses import CostMatrix, FiniteActions, Loss, ThresholdDecision, ZeroOne
from stakes.losses.domains import REAL, Classes
from stakes.testing import check_loss

# two classes (healthy, ill), three actions (wait, test, treat); treating the ill is a gain
CLINIC = CostMatrix([[0.0, 1.0, 4.0], [10.0, 2.0, -3.0]])
LOSSES = [
    (CLINIC, 2),
    (CostMatrix([[0, 1], [5, 0], [2, 2]]), 3),
    (CostMatrix([[3.0], [4.0]]), 2),
    (ZeroOne(), 2),
    (ZeroOne(), 4),
]


@pytest.mark.parametrize(("loss", "count"), LOSSES)
def test_every_loss_keeps_the_laws(xp, loss, count):
    check_loss(loss, xp.asarray(np.arange(count)), n_classes=count)


@pytest.mark.parametrize(("loss", "count"), LOSSES)
def test_every_loss_is_a_loss_on_classes_without_breakpoints(loss, count):
    assert isinstance(loss, Loss)
    assert loss.domain == Classes(None if loss == ZeroOne() else count)
    assert loss.breakpoints == ()


def test_the_loss_is_the_entry_of_the_matrix(xp, host):
    z, a = xp.asarray(np.asarray([[0], [1]])), xp.asarray(np.asarray([0, 1, 2]))
    np.testing.assert_array_equal(host(CLINIC(z, a)), [[0.0, 1.0, 4.0], [10.0, 2.0, -3.0]])


def test_zero_one_by_hand(xp, host):
    z, a = xp.asarray(np.asarray([0, 1, 7])), xp.asarray(np.asarray([0, 2, 7]))
    np.testing.assert_array_equal(host(ZeroOne()(z, a)), [0.0, 1.0, 0.0])


def test_statistics_are_costs_beyond_the_cheapest_action(xp, host):
    e = xp.asarray(np.eye(2))
    np.testing.assert_array_equal(host(CLINIC.statistics(e)), [[0.0, 1.0, 4.0], [13.0, 5.0, 0.0]])
    np.testing.assert_array_equal(host(CLINIC.cost_rows(e)), [[0.0, 1.0, 4.0], [10.0, 2.0, -3.0]])
    np.testing.assert_array_equal(host(ZeroOne().statistics(e)), [[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("ill", "action", "regrets"),
    [
        (0.05, 0, [0.0, 0.55, 3.15]),  # costs 0.5, 1.05, 3.65
        (0.25, 1, [1.25, 0.0, 1.0]),  # costs 2.5, 1.25, 2.25
        (0.5, 2, [4.5, 1.0, 0.0]),  # costs 5, 1.5, 0.5
    ],
)
def test_the_act_and_its_regrets_by_hand(xp, host, ill, action, regrets):
    p = xp.asarray(np.asarray([1 - ill, ill]))
    moments = xp.matmul(p, CLINIC.statistics(xp.asarray(np.eye(2))))
    act = CLINIC.action(moments)
    assert act.shape == (1,)
    assert int(act[0]) == int(CLINIC.prediction(act)) == action
    actions = xp.asarray(np.asarray([[0], [1], [2]]))
    np.testing.assert_allclose(host(CLINIC.regret(moments, actions)), regrets, atol=1e-14)


def test_the_first_of_equals_is_taken(xp):
    moments = xp.asarray(np.asarray([[2.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    assert [int(act) for act in CLINIC.prediction(CLINIC.action(moments))] == [1, 0]


def test_the_act_of_zero_one_is_the_most_probable_class(xp):
    p = xp.asarray(np.asarray([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3]]))
    moments = xp.matmul(p, ZeroOne().statistics(xp.asarray(np.eye(3))))
    assert [int(act) for act in ZeroOne().prediction(ZeroOne().action(moments))] == [1, 0]


@given(
    costs=st.lists(st.lists(st.floats(-10, 10), min_size=4, max_size=4), min_size=3, max_size=3),
    p=st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3),
)
def test_no_other_action_has_a_smaller_mean_cost(costs, p):
    loss, p = CostMatrix(costs), np.asarray(p) / np.sum(p)
    best = loss.prediction(loss.action(p @ loss.statistics(np.eye(3))))
    means = p @ np.asarray(costs)
    assert means[int(best)] <= means.min() + 1e-13


def test_a_constant_added_to_all_costs_costs_no_digits():
    plain, moved = (CostMatrix(np.asarray([[0.0, 1e-3], [2e-3, 0.0]]) + constant) for constant in (0.0, 2.0**20))
    p = np.asarray([0.9, 0.1])
    regrets = [loss.regret(p @ loss.statistics(np.eye(2)), np.asarray([1])) for loss in (plain, moved)]
    np.testing.assert_allclose(regrets[1], regrets[0], rtol=1e-6)  # 1e-10 is what is left of a digit at 2^20


@pytest.mark.parametrize(("loss", "count"), LOSSES)
def test_log_magnitudes_are_one_number_a_target(loss, count):
    assert loss.log_magnitudes(np.eye(count)).shape == (count, 1)


@pytest.mark.parametrize(("loss", "count"), LOSSES)
def test_single_precision_in_gives_single_precision_out(xp, loss, count):
    labels = xp.asarray(np.arange(count, dtype=np.float32))
    assert loss(labels, 0).dtype == xp.float32


@pytest.mark.parametrize(("loss", "count"), LOSSES)
def test_whole_numbers_in_give_doubles_out(xp, loss, count):
    assert loss(xp.asarray(np.arange(count)), 0).dtype == xp.float64


def test_later_changes_of_the_callers_array_do_not_reach_the_loss():
    costs = np.asarray([[0.0, 1.0], [1.0, 0.0]])
    loss = CostMatrix(costs)
    costs[0, 1] = 99.0
    assert loss(0, 1) == 1.0


def test_costs_may_be_an_array_of_any_library(xp, host):
    loss = CostMatrix(xp.asarray(np.asarray([[0.0, 2.0], [1.0, 0.0]])))
    got = loss(xp.asarray(np.asarray([0, 1])), xp.asarray(np.asarray([1, 0])))
    assert array_namespace(got) is xp
    np.testing.assert_array_equal(host(got), [2.0, 1.0])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1.0, 2.0], r"costs must have shape \[C, A\]; got \[2\]"),
        (np.zeros((2, 2, 2)), r"costs must have shape \[C, A\]; got \[2, 2, 2\]"),
        (3.0, r"costs must have shape \[C, A\]; got \[\]"),
        (np.zeros((0, 2)), "costs must have a row for each class and a column for each action"),
        (np.zeros((2, 0)), "costs must have a row for each class and a column for each action"),
        ([[0.0, np.nan]], "costs must be finite; 1 of 2"),
        ([[0.0, np.inf]], "costs must be finite; 1 of 2"),
    ],
)
def test_costs_that_are_no_matrix_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        CostMatrix(bad)


@pytest.mark.parametrize("bad", [[["free", "expensive"]], [[0.0, 1.0], [2.0]]])
def test_costs_that_are_no_numbers_are_refused_by_name(bad):
    with pytest.raises((TypeError, ValueError), match="costs"):
        CostMatrix(bad)


@pytest.mark.parametrize(
    ("z", "a", "message"),
    [
        (2, 0, "the target must be a position, a whole number from 0 to 1; got values from 2 to 2"),
        (-1, 0, "the target must be a position, a whole number from 0 to 1"),
        (0.5, 0, "the target must be a position, a whole number from 0 to 1"),
        (0, 3, "the prediction must be a position, a whole number from 0 to 2; got values from 3 to 3"),
        (0, 0.5, "the prediction must be a position, a whole number from 0 to 2"),
        (np.nan, 0, "z must be finite"),
        (0, np.inf, "prediction must be finite"),
    ],
)
def test_labels_and_actions_of_a_cost_matrix_are_checked(z, a, message):
    with pytest.raises(ValueError, match=message):
        CLINIC(z, a)


@pytest.mark.parametrize(
    ("z", "a", "message"),
    [
        (-1, 0, "the target must be a position, a whole number from 0; got values from -1 to -1"),
        (0.5, 0, "the target must be a position, a whole number from 0"),
        (0, -1, "the prediction must be a position, a whole number from 0"),
        (0, [0.3, 0.7], "the prediction must be a position, a whole number from 0"),
        (np.nan, 0, "z must be finite"),
    ],
)
def test_labels_of_zero_one_are_checked(z, a, message):
    with pytest.raises(ValueError, match=message):
        ZeroOne()(z, a)


# Decisions on a real target.

HARVEST = FiniteActions(lambda z: array_namespace(z).stack([0.0 * z, 1.0 - z, 3.0 - 2.0 * z], axis=-1))
DECISIONS = [ThresholdDecision(0.5, miss=50.0), ThresholdDecision(-1.0, 1.0, 7.0), HARVEST]


@pytest.mark.parametrize("loss", DECISIONS)
def test_every_decision_keeps_the_laws(xp, loss):
    check_loss(loss, xp.asarray(np.array([-2.0, -0.3, 0.5, 0.6, 3.0])))


@pytest.mark.parametrize("loss", DECISIONS)
def test_every_decision_is_a_loss_on_reals(loss):
    assert isinstance(loss, Loss)
    assert loss.domain == REAL


def test_threshold_decision_by_hand(xp, host):
    loss = ThresholdDecision(2.0, miss=50.0, false_alarm=1.0)
    z = xp.asarray(np.array([[1.0], [2.0], [2.5]]))  # at the threshold waiting is right
    np.testing.assert_array_equal(host(loss(z, xp.asarray(np.array([0.0, 1.0])))), [[0, 1], [0, 1], [50, 0]])
    assert loss.breakpoints == (2.0,)


@pytest.mark.parametrize(("above", "act"), [(0.019, 0), (0.021, 1)])
def test_acts_once_the_probability_pays(above, act):
    loss = ThresholdDecision(0.0, miss=49.0, false_alarm=1.0)  # breaks even at 1 / 50
    moments = (1 - above) * loss.statistics(np.array(-1.0)) + above * loss.statistics(np.array(1.0))
    assert loss.action(moments) == [act]
    other = loss.regret(moments, np.array([1 - act]))
    assert other == pytest.approx(abs(49 * above - (1 - above)))


def test_finite_actions_by_hand(xp, host):
    z = xp.asarray(np.array([0.0, 1.5, 4.0]))
    np.testing.assert_array_equal(host(HARVEST(z, xp.asarray(np.array([0, 1, 2])))), [0.0, -0.5, -5.0])


def test_breakpoints_are_sorted():
    assert FiniteActions(HARVEST.costs, [3, 1]).breakpoints == (1.0, 3.0)


@pytest.mark.parametrize("name", ["threshold", "miss", "false_alarm"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_threshold_decision_refuses_what_is_not_finite(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        ThresholdDecision(**{"threshold": 0.0, name: value})


@pytest.mark.parametrize("name", ["miss", "false_alarm"])
def test_threshold_decision_refuses_free_errors(name):
    with pytest.raises(ValueError, match="a positive cost"):
        ThresholdDecision(**{"threshold": 0.0, name: 0.0})


def test_finite_actions_refuse_bad_costs():
    with pytest.raises(TypeError, match="CostMatrix takes an array"):
        FiniteActions(np.eye(2))
    with pytest.raises(ValueError, match="breakpoints must be finite"):
        FiniteActions(HARVEST.costs, (np.nan,))
    with pytest.raises(ValueError, match=r"into costs \[3, 'A'\].*got \[2, 3\]"):
        FiniteActions(lambda z: np.stack([z, z]))(np.zeros(3), 0)


@pytest.mark.parametrize("action", [2, -1, 0.5])
def test_decisions_refuse_an_action_that_is_none(action):
    with pytest.raises(ValueError, match="from 0 to 1"):
        ThresholdDecision(0.0)(1.0, action)


def test_costs_whose_difference_no_number_holds_are_refused():
    with pytest.raises(StakesError, match="in a larger unit"):
        CostMatrix([[0.0, 1.5e308], [-1.5e308, 0.0]])
    assert CostMatrix([[0.0, 1.5e308], [1.0, 0.0]])(0, 1) == 1.5e308


def test_a_dict_may_leave_right_answers_out():
    loss = CostMatrix({"ill": {"well": 20, "retest": 2}, "well": {"ill": 1, "retest": 3}})
    assert loss.classes == ("ill", "well")
    assert loss.actions == ("ill", "well", "retest")
    np.testing.assert_array_equal(loss.costs, [[0, 20, 2], [1, 0, 3]])


def test_a_dict_that_lacks_another_answer_is_refused():
    with pytest.raises(StakesError, match="costs of 'well' lack the answers 'retest'"):
        CostMatrix({"ill": {"well": 20, "retest": 2}, "well": {"ill": 1}})
