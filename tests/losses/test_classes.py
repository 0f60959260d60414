import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import given, settings
from hypothesis import strategies as st

from stakes.losses import (
    BrierLoss,
    ConvexFunction,
    LogLoss,
    Loss,
    NegativeEntropy,
    Norm,
    ScoringRule,
    SphericalLoss,
    Square,
)
from stakes.losses.domains import Classes
from stakes.testing import check_loss


def kind(instance):
    return type(instance).__name__


def square_sum(q):
    return array_namespace(q).sum(q**2, axis=-1)


def cube_sum(q):
    return array_namespace(q).sum(q**3, axis=-1)


SQUARES = ConvexFunction(square_sum, lambda q: 2 * q)
CUBES = ConvexFunction(cube_sum, lambda q: 3 * q**2)
UNWEIGHTED = [LogLoss(), BrierLoss(), SphericalLoss(), ScoringRule(Square()), ScoringRule(SQUARES), ScoringRule(CUBES)]
WEIGHTED = [
    LogLoss([1, 2, 5]),
    BrierLoss([1, 2, 5]),
    SphericalLoss([1, 2, 5]),
    LogLoss([1, 0, 3]),
    BrierLoss([0, 1, 0]),
    ScoringRule(NegativeEntropy(), [1, 2, 5]),
    ScoringRule(CUBES, [1, 2, 5]),
]
LOSSES = UNWEIGHTED + WEIGHTED


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_every_loss_keeps_the_laws(xp, loss):
    check_loss(loss, xp.asarray(np.asarray([0, 1, 2, 1])), n_classes=3)


@pytest.mark.parametrize("class_weights", [None, [1, 2, 5]])
def test_a_potential_without_gradient_keeps_the_laws_to_six_digits(xp, class_weights):
    check_loss(ScoringRule(cube_sum, class_weights), xp.asarray(np.asarray([0, 1, 2])), n_classes=3, rtol=1e-6)


@pytest.mark.parametrize("loss", UNWEIGHTED, ids=kind)
def test_two_classes_keep_the_laws(xp, loss):
    check_loss(loss, xp.asarray(np.asarray([0, 1])))


Q = [0.2, 0.3, 0.5]
LENGTH = np.sqrt(0.38)
BY_HAND = [
    (LogLoss(), [-np.log(0.2), -np.log(0.3), -np.log(0.5)]),
    (LogLoss([1, 2, 0]), [-np.log(0.2), -2 * np.log(0.3), 0.0]),
    (BrierLoss(), [0.98, 0.78, 0.38]),  # 0.64 + 0.09 + 0.25 and so on
    (BrierLoss([1, 10, 0]), [0.98, 7.8, 0.0]),
    (SphericalLoss(), [1 - 0.2 / LENGTH, 1 - 0.3 / LENGTH, 1 - 0.5 / LENGTH]),
    (SphericalLoss([2, 1, 0]), [2 - 0.4 / LENGTH, 1 - 0.3 / LENGTH, 0.0]),
    (ScoringRule(SQUARES), [0.98, 0.78, 0.38]),
    (ScoringRule(SQUARES, [1, 10, 0]), [0.98, 7.8, 0.0]),
    # cubes: 1 - sum q^3 - 3 (q_z^2 - sum q^3) = 1 + 2 sum q^3 - 3 q_z^2 with sum q^3 = 0.008 + 0.027 + 0.125 = 0.16
    (ScoringRule(CUBES), [1.2, 1.05, 0.57]),
]


@pytest.mark.parametrize(("loss", "wanted"), BY_HAND)
def test_losses_by_hand(xp, host, loss, wanted):
    got = loss(xp.asarray(np.asarray([0, 1, 2])), xp.asarray(np.asarray(Q)))
    np.testing.assert_allclose(host(got), wanted, rtol=1e-12)


def test_a_plain_convex_function_is_enough_for_a_scoring_rule():
    np.testing.assert_allclose(ScoringRule(square_sum)([0, 1, 2], Q), [0.98, 0.78, 0.38], rtol=1e-9)


ALIKE = [
    (ScoringRule(NegativeEntropy(), [1, 2, 5]), LogLoss([1, 2, 5])),
    (ScoringRule(Square(), [1, 2, 5]), BrierLoss([1, 2, 5])),
    (ScoringRule(Norm(), [1, 2, 5]), SphericalLoss([1, 2, 5])),
    (ScoringRule(SQUARES), BrierLoss()),
]
PROBABILITIES = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3).map(lambda p: np.asarray(p) / np.sum(p))


@pytest.mark.parametrize(("one", "other"), ALIKE)
@settings(max_examples=20)
@given(q=PROBABILITIES)
def test_losses_that_are_one_by_two_names(one, other, q):
    np.testing.assert_allclose(one([0, 1, 2], q), other([0, 1, 2], q), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
@settings(max_examples=20)
@given(p=PROBABILITIES, q=PROBABILITIES)
def test_no_other_answer_has_a_smaller_mean_loss(loss, p, q):
    best = loss.action(p @ loss.statistics(np.eye(3)))
    assert p @ loss([0, 1, 2], best) <= p @ loss([0, 1, 2], q) + 1e-9


@pytest.mark.parametrize("loss", UNWEIGHTED, ids=kind)
def test_the_answer_is_ones_own_belief(xp, host, loss):
    p = xp.asarray(np.asarray(Q))
    moments = xp.matmul(p, loss.statistics(xp.asarray(np.eye(3))))
    np.testing.assert_allclose(host(loss.prediction(loss.action(moments))), Q, rtol=1e-15)


@pytest.mark.parametrize("make", [LogLoss, BrierLoss, SphericalLoss])
def test_the_answer_under_class_weights_is_the_re_weighted_belief(xp, host, make):
    loss = make([5, 0, 2])
    moments = xp.matmul(xp.asarray(np.asarray(Q)), loss.statistics(xp.asarray(np.eye(3))))
    np.testing.assert_allclose(host(moments), [2.0, 1.0, 0.0, 1.0], rtol=1e-15)
    np.testing.assert_allclose(host(loss.prediction(loss.action(moments))), [0.5, 0.0, 0.5], rtol=1e-15)


def test_log_loss_is_infinite_for_what_was_thought_impossible(xp, host):
    got = LogLoss()(xp.asarray(np.asarray([0, 1])), xp.asarray(np.asarray([0.0, 1.0])))
    np.testing.assert_array_equal(host(got), [np.inf, 0.0])


def test_a_class_of_no_weight_costs_nothing_however_impossible():
    np.testing.assert_array_equal(LogLoss([0, 1])([0, 1], [0.0, 1.0]), [0.0, 0.0])


@pytest.mark.parametrize(
    ("q", "rtol"), [(np.float64(1e-300), 1e-12), (np.float64(1e-310), 1e-3), (np.float32(1e-39), 1e-3)]
)
def test_log_loss_of_a_tiny_probability(q, rtol):
    got = LogLoss()(0, np.asarray([q, 1.0], dtype=q.dtype))
    np.testing.assert_allclose(got, -np.log(np.float64(q)), rtol=rtol)


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_log_magnitudes_are_one_number_a_target(loss):
    assert loss.log_magnitudes(np.eye(3)).shape == (3, 1)


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_single_precision_in_gives_single_precision_out(xp, loss):
    got = loss(xp.asarray(np.asarray([0, 1, 2])), xp.asarray(np.float32(Q)))
    assert got.dtype == xp.float32


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_labels_and_probabilities_broadcast(xp, loss):
    z, q = xp.asarray(np.asarray([[0], [1]])), xp.asarray(np.asarray([Q, Q[::-1], [1.0, 0.0, 0.0]]))
    assert loss(z, q).shape == (2, 3)


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_every_loss_is_a_loss_on_classes_without_breakpoints(loss):
    assert isinstance(loss, Loss)
    assert loss.domain == Classes(None if loss.class_weights is None else 3)
    assert loss.breakpoints == ()


def test_losses_compare_by_value():
    assert LogLoss([1, 2]) == LogLoss((1.0, 2.0))
    assert LogLoss([1, 2]) != LogLoss([2, 1])
    assert ScoringRule(square_sum) == ScoringRule(square_sum)


@pytest.mark.parametrize("make", [LogLoss, BrierLoss, SphericalLoss])
@pytest.mark.parametrize("bad", [[1, -1], [1, np.nan], [1, np.inf], [0, 0], []])
def test_class_weights_that_are_none_are_refused(make, bad):
    with pytest.raises(ValueError, match="class weights must be finite, at least 0 and not all 0, one per class"):
        make(bad)
    with pytest.raises(ValueError, match="class weights must be finite, at least 0 and not all 0, one per class"):
        ScoringRule(Square(), bad)


@pytest.mark.parametrize("bad", [3.0, None, "brier"])
def test_what_is_no_potential_is_refused(bad):
    with pytest.raises(TypeError, match="potential must be a Potential such as"):
        ScoringRule(bad)


@pytest.mark.parametrize("loss", [LogLoss(), BrierLoss([1, 2, 3]), SphericalLoss(), ScoringRule(SQUARES)], ids=kind)
@pytest.mark.parametrize(
    ("z", "q", "message"),
    [
        (3, Q, "the target must be a position, a whole number from 0 to 2; got values from 3 to 3"),
        (-1, Q, "the target must be a position, a whole number from 0 to 2"),
        (0.5, Q, "the target must be a position, a whole number from 0 to 2"),
        (np.nan, Q, "labels must be finite"),
        (0, [0.5, 0.5, np.nan], "probabilities must be finite"),
        (0, [0.5, 0.5, 0.5], "the prediction must hold probabilities that sum to one"),
        (0, [1.5, -0.5, 0.0], "the prediction must hold probabilities, none negative"),
        (0, 0.5, "the prediction must end in one probability for each of the"),
    ],
)
def test_labels_and_probabilities_are_checked(loss, z, q, message):
    with pytest.raises(ValueError, match=message):
        loss(z, q)


@pytest.mark.parametrize("loss", WEIGHTED, ids=kind)
def test_as_many_probabilities_as_class_weights_are_wanted(loss):
    with pytest.raises(ValueError, match="one probability for each of the 3 classes; got 2"):
        loss(0, [0.5, 0.5])
