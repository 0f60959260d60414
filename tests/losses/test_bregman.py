import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stakes.losses import (
    BoxCox,
    BregmanLoss,
    ConvexFunction,
    Exponential,
    ExponentialWeight,
    Function,
    Identity,
    InterpolatedWeight,
    ItakuraSaito,
    Linex,
    Loss,
    NegativeEntropy,
    NegativeLog,
    PoissonDeviance,
    Power,
    Square,
    SquaredError,
    Weight,
)
from stakes.losses.domains import NONNEGATIVE, POSITIVE, REAL
from stakes.testing import check_loss


def kind(instance):
    return type(instance).__name__


def cube(z):
    return z**3


def cube_root(t):
    xp = array_namespace(t)
    return xp.sign(t) * xp.abs(t) ** (1 / 3)


def fourth(x):
    return array_namespace(x).sum(x**4 + x**2, axis=-1)


def fourth_gradient(x):
    return 4 * x**3 + 2 * x


def bump(z):
    return 1 + z**2


TILT = ExponentialWeight(0.3)
RAMP = InterpolatedWeight([-1.0, 0.5, 2.0], [0.5, 4.0, 1.0])

REAL_LOSSES = [
    SquaredError(),
    SquaredError(TILT),
    SquaredError(RAMP),
    SquaredError(bump),
    SquaredError(Weight(bump, log=lambda z: array_namespace(z).log1p(z**2), breakpoints=(0.0,))),
    Linex(0.7),
    Linex(-1.5),
    Linex(1.0, TILT),
    Linex(-0.5, RAMP),
    BregmanLoss(Square(), Function(cube, cube_root)),
    BregmanLoss(NegativeLog(), Exponential(0.4), TILT),
    BregmanLoss(NegativeEntropy(), Exponential(-0.4)),
    BregmanLoss(Square(), Exponential(0.4)),
    BregmanLoss(ConvexFunction(fourth, fourth_gradient), weight=RAMP),
]
POSITIVE_LOSSES = [
    *(BoxCox(lam) for lam in (-1, 0, 0.5, 1, 2)),
    BoxCox(0.5, TILT),
    BoxCox(-1, RAMP),
    ItakuraSaito(),
    ItakuraSaito(TILT),
    ItakuraSaito(bump),
    PoissonDeviance(),
    PoissonDeviance(RAMP),
    BregmanLoss(NegativeEntropy(), Identity(NONNEGATIVE)),
    BregmanLoss(NegativeLog(), Identity(POSITIVE), bump),
]
LOSSES = REAL_LOSSES + POSITIVE_LOSSES
REAL_TARGETS = np.asarray([-1.3, -0.2, 0.4, 0.9, 2.5])
POSITIVE_TARGETS = np.asarray([0.2, 0.7, 1.0, 2.5, 6.0])


def targets_of(loss):
    return REAL_TARGETS if loss.domain == REAL else POSITIVE_TARGETS


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_every_loss_keeps_the_laws(xp, loss):
    check_loss(loss, xp.asarray(targets_of(loss)))


@pytest.mark.parametrize("offset", [-1e6, 1e6])
@pytest.mark.parametrize("loss", [SquaredError(), SquaredError(InterpolatedWeight([-1e6, 1e6], [1, 3]))], ids=kind)
def test_squared_errors_keep_the_laws_far_from_the_origin(loss, offset):
    check_loss(loss, offset + REAL_TARGETS, rtol=1e-4 if loss.weight else 1e-8)


def test_a_potential_without_gradient_keeps_the_laws_to_six_digits(xp):
    check_loss(BregmanLoss(fourth), xp.asarray(POSITIVE_TARGETS), rtol=1e-6)


@pytest.mark.parametrize("loss", [PoissonDeviance(), PoissonDeviance(RAMP)], ids=kind)
def test_counts_with_zeros_keep_the_laws(xp, loss):
    check_loss(loss, xp.asarray(np.asarray([0.0, 0.0, 1.0, 3.0, 12.0])))


@pytest.mark.parametrize("first", [0.0, 2.0])
def test_a_weight_that_vanishes_keeps_the_laws(xp, first):
    check_loss(SquaredError(InterpolatedWeight([0, 1], [0, 1])), xp.asarray(np.asarray([first, 0.2, 0.5, 3.0])))


BY_HAND = [
    (SquaredError(), 3.0, 1.0, 4.0),
    (SquaredError(ExponentialWeight(2.0)), 3.0, 1.0, 4.0 * np.exp(6.0)),
    (SquaredError(InterpolatedWeight([0, 4], [1, 5])), 3.0, 1.0, 16.0),
    (SquaredError(lambda z: z**2), 3.0, 1.0, 36.0),
    (BoxCox(-1), 2.0, 4.0, 0.0625),  # 1/2 against 3/4
    (BoxCox(0), 1.0, np.e, 1.0),
    (BoxCox(0.5), 4.0, 9.0, 4.0),  # 2 against 4
    (BoxCox(1), 4.0, 9.0, 25.0),
    (BoxCox(2), 1.0, 3.0, 16.0),  # 0 against 4
    (BoxCox(2, ExponentialWeight(-1.0)), 1.0, 3.0, 16.0 / np.e),
    (Linex(1.0), 0.0, 1.0, np.e - 2),
    (Linex(1.0), 1.0, 0.0, 1 / np.e),
    (Linex(-1.0), 0.0, 1.0, 1 / np.e),
    (Linex(-1.0), 1.0, 0.0, np.e - 2),
    (Linex(2.0), 1.0, 4.0, np.exp(6.0) - 7),
    (Linex(1.0, ExponentialWeight(3.0)), 1.0, 0.0, np.exp(2.0)),
    (ItakuraSaito(), 2.0, 1.0, 1 - np.log(2)),
    (ItakuraSaito(), 1.0, 2.0, np.log(2) - 0.5),
    (ItakuraSaito(lambda z: 3 * z), 2.0, 1.0, 6 - 6 * np.log(2)),
    (PoissonDeviance(), 2.0, 1.0, 2 * np.log(2) - 1),
    (PoissonDeviance(), 0.0, 1.7, 1.7),
    (PoissonDeviance(), 0.0, 0.0, 0.0),
    (PoissonDeviance(), 2.0, 0.0, np.inf),
    (PoissonDeviance(lambda z: z + 1), 2.0, 1.0, 6 * np.log(2) - 3),
    (BregmanLoss(Square(), Function(cube)), 2.0, 1.0, 49.0),
    (BregmanLoss(ConvexFunction(fourth, fourth_gradient)), 1.0, 2.0, 18.0),  # 2 - 20 - 36 (1 - 2)
    (BregmanLoss(ConvexFunction(fourth, fourth_gradient), weight=bump), 1.0, 2.0, 36.0),
]


@pytest.mark.parametrize(("loss", "z", "prediction", "wanted"), BY_HAND)
def test_losses_by_hand(xp, host, loss, z, prediction, wanted):
    z, prediction = xp.asarray(np.asarray([z, prediction])), xp.asarray(np.asarray([prediction, prediction]))
    np.testing.assert_allclose(host(loss(z, prediction)), [wanted, 0.0], rtol=1e-12)


def test_a_plain_convex_function_is_enough_for_a_loss():
    np.testing.assert_allclose(BregmanLoss(fourth)(1.0, 2.0), 18.0, rtol=1e-6)


HALVES = np.asarray([1.0, 3.0])  # each with probability 1/2

ANSWERS = [
    (SquaredError(), 2.0),
    (SquaredError(lambda z: z), 2.5),
    (SquaredError(ExponentialWeight(math.log(2))), 2.6),  # weights 2 and 8
    (SquaredError(InterpolatedWeight([1, 3], [0, 1])), 3.0),
    (BoxCox(-1), 1.5),  # harmonic mean
    (BoxCox(0), np.sqrt(3)),  # geometric mean
    (BoxCox(0.5), ((1 + np.sqrt(3)) / 2) ** 2),
    (BoxCox(1), 2.0),
    (BoxCox(2), np.sqrt(5)),
    (BoxCox(-1, lambda z: z), 2.0),
    (Linex(2.0), -np.log((np.exp(-2) + np.exp(-6)) / 2) / 2),
    (Linex(-1.0), np.log((np.exp(1) + np.exp(3)) / 2)),
    (Linex(1.0, ExponentialWeight(1.0)), -np.log(2 / (np.exp(1) + np.exp(3)))),
    (ItakuraSaito(), 2.0),
    (ItakuraSaito(lambda z: 1 / z), 1.5),
    (PoissonDeviance(), 2.0),
    (PoissonDeviance(lambda z: z), 2.5),
    (BregmanLoss(Square(), Function(cube, cube_root)), 14 ** (1 / 3)),
]


@pytest.mark.parametrize(("loss", "wanted"), ANSWERS)
@pytest.mark.parametrize("reference", [None, 1.0, 2.3])
def test_answers_by_hand(xp, host, loss, wanted, reference):
    z = xp.asarray(HALVES)
    reference = None if reference is None else xp.asarray(np.asarray([reference]))
    moments = xp.mean(loss.statistics(z, reference), axis=0)
    np.testing.assert_allclose(host(loss.prediction(loss.action(moments), reference)), wanted, rtol=1e-13)


def test_the_statistics_are_the_weight_and_the_weighted_transform(xp, host):
    loss = BregmanLoss(Square(), Function(cube), lambda z: z + 1)
    got = host(loss.statistics(xp.asarray(np.asarray([1.0, 2.0]))))
    np.testing.assert_allclose(got, [[2.0, 2.0], [3.0, 24.0]])


def test_the_statistics_about_a_reference_by_hand(xp, host):
    loss = SquaredError(ExponentialWeight(math.log(2)))
    got = host(loss.statistics(xp.asarray(np.asarray([1.0, 4.0])), xp.asarray(np.asarray([2.0]))))
    np.testing.assert_allclose(got, [[0.5, -0.5], [4.0, 8.0]])


def test_the_regret_is_the_weighted_divergence_of_the_acts(xp, host):
    moments = xp.asarray(np.asarray([[0.5, 1.5], [0.0, 0.0]]))  # mass 1/2 about 3; nothing
    action = xp.asarray(np.asarray([[1.0], [1.0]]))
    np.testing.assert_allclose(host(SquaredError().regret(moments, action)), [2.0, 0.0])
    np.testing.assert_allclose(host(PoissonDeviance().regret(moments, 0 * action)), [np.inf, 0.0])


def test_log_magnitudes_by_hand(xp, host):
    z = xp.asarray(np.asarray([1.0, 3.0]))
    size = 2 * np.log([2.0, 4.0])  # (1 + |T|)^2
    np.testing.assert_allclose(host(SquaredError().log_magnitudes(z)), np.stack([[0.0, 0.0], size], axis=1))
    tilt = np.asarray([0.3, 0.9])
    np.testing.assert_allclose(host(SquaredError(TILT).log_magnitudes(z)), np.stack([tilt, tilt + size], axis=1))
    np.testing.assert_allclose(host(Linex(2.0, TILT).log_magnitudes(z)), [[0.3, -1.7], [0.9, -5.1]])


ALIKE = [
    (BregmanLoss(Square()), SquaredError(), 1.0),
    (BregmanLoss(Square(), weight=TILT), SquaredError(TILT), 1.0),
    (BregmanLoss(Square(), Power(0.5)), BoxCox(0.5), 1.0),
    (BregmanLoss(NegativeLog(), Exponential(-0.7)), Linex(0.7), 1.0),
    (BregmanLoss(NegativeLog(), Identity(POSITIVE)), ItakuraSaito(), 1.0),
    (BregmanLoss(NegativeEntropy(), Identity(NONNEGATIVE)), PoissonDeviance(), 1.0),
    (BoxCox(1), SquaredError(), 1.0),
    (Linex(1e-4), SquaredError(), 5e-9),
]


@pytest.mark.parametrize(("one", "other", "factor"), ALIKE)
def test_losses_that_are_one_by_two_names(one, other, factor):
    z, b = POSITIVE_TARGETS[:, None], POSITIVE_TARGETS + 0.1
    np.testing.assert_allclose(one(z, b), factor * other(z, b), rtol=1e-12 if factor == 1 else 1e-3)


# The losses as their docstrings define them, in decimals of 60 digits.
DEFINITIONS = [
    (SquaredError(), lambda z, b: (z - b) ** 2),
    (BoxCox(-1), lambda z, b: (1 / b - 1 / z) ** 2),
    (BoxCox(0), lambda z, b: (z / b).ln() ** 2),
    (BoxCox(0.5), lambda z, b: 4 * (z.sqrt() - b.sqrt()) ** 2),
    (BoxCox(2), lambda z, b: (z * z - b * b) ** 2 / 4),
    (Linex(1.0), lambda z, b: (b - z).exp() - (b - z) - 1),
    (Linex(-0.5), lambda z, b: ((z - b) / 2).exp() - (z - b) / 2 - 1),
    (ItakuraSaito(), lambda z, b: z / b - (z / b).ln() - 1),
    (PoissonDeviance(), lambda z, b: z * (z / b).ln() - z + b),
]


def defined(definition, z, b):
    with localcontext(prec=60):
        return float(definition(Decimal(float(z)), Decimal(float(b))))


@pytest.mark.parametrize(("loss", "definition"), DEFINITIONS)
@settings(max_examples=20)
@given(z=st.floats(0.05, 20.0), b=st.floats(0.05, 20.0))
def test_a_loss_is_its_definition(loss, definition, z, b):
    assume(abs(z - b) > 1e-3 * b)
    np.testing.assert_allclose(loss(z, b), defined(definition, z, b), rtol=1e-9)


@pytest.mark.parametrize(("loss", "definition"), DEFINITIONS)
@pytest.mark.parametrize("distance", [1e-9, -1e-6])
def test_the_loss_of_a_near_miss_keeps_its_digits(loss, definition, distance):
    z, b = 3.0 + distance, 3.0
    # the exponential of a difference of 1e-9 is 1 with a rounding of 1e-16: six digits stay
    np.testing.assert_allclose(loss(z, b), defined(definition, z, b), rtol=1e-6 if isinstance(loss, Linex) else 1e-12)


@pytest.mark.parametrize(("loss", "definition"), DEFINITIONS)
@pytest.mark.parametrize(("z", "b"), [(1e-20, 1.0), (1e-10, 1.0), (1e-8, 30.0), (30.0, 1e-8)])
def test_the_loss_of_a_far_miss_keeps_its_digits(loss, definition, z, b):
    np.testing.assert_allclose(loss(z, b), defined(definition, z, b), rtol=1e-12)


@pytest.mark.parametrize(
    ("alpha", "z", "b", "wanted"),
    [
        (1.0, 250_000.0, 200_000.0, 49_999.0),
        (1.0, 1000.0, 0.0, 999.0),
        (-1.0, 0.0, 1000.0, 999.0),
        (1.0, -600.0, 0.0, np.exp(600.0)),
    ],
)
def test_the_linex_loss_of_a_far_miss(alpha, z, b, wanted):
    np.testing.assert_allclose(Linex(alpha)(z, b), wanted, rtol=1e-12)


def test_the_linex_loss_of_a_far_miss_in_single_precision():
    np.testing.assert_allclose(Linex()(np.float32([100.0]), np.float32([0.0])), [99.0], rtol=1e-5)


def test_a_linex_loss_beyond_all_numbers_is_infinite():
    with np.errstate(over="ignore"):
        assert Linex()(-1000.0, 0.0) == np.inf


def test_no_weight_makes_even_an_infinite_loss_nothing():
    assert PoissonDeviance(lambda z: 0 * z)(1.0, 0.0) == 0.0


def beliefs(low, high):
    """Targets and their probabilities."""
    return st.lists(st.tuples(st.floats(low, high), st.floats(0.01, 1.0)), min_size=1, max_size=6).map(
        lambda pairs: (np.asarray([z for z, _ in pairs]), np.asarray([p for _, p in pairs]) / sum(p for _, p in pairs))
    )


def answer(loss, z, p, reference=None):
    return loss.prediction(loss.action(p @ loss.statistics(z, reference)), reference)


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
@settings(max_examples=10)
@given(belief=beliefs(0.2, 4.0), change=st.floats(0.01, 1.0), sign=st.sampled_from([-1.0, 1.0]))
def test_no_other_answer_has_a_smaller_mean_loss(loss, belief, change, sign):
    z, p = belief
    best = answer(loss, z, p)
    assert z.min() * (1 - 1e-9) <= best <= z.max() * (1 + 1e-9)
    other = best * np.exp(sign * change)
    assert p @ loss(z, best) <= p @ loss(z, other)


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
@settings(max_examples=10)
@given(belief=beliefs(0.2, 4.0), reference=st.floats(0.2, 4.0))
def test_the_answer_does_not_depend_on_the_reference(loss, belief, reference):
    z, p = belief
    np.testing.assert_allclose(answer(loss, z, p, np.asarray([reference])), answer(loss, z, p), rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
@settings(max_examples=10)
@given(belief=beliefs(0.2, 4.0), reference=st.floats(0.2, 4.0), other=st.floats(0.2, 4.0))
def test_regrets_about_a_reference_are_counted_in_its_weight(loss, belief, reference, other):
    z, p = belief
    reference = np.asarray([reference])
    best, other = (np.asarray(point) for point in (answer(loss, z, p), other))
    unit = np.exp(loss.log_magnitudes(reference)[..., 0])
    action = loss.statistics(other[None], reference)
    got = loss.regret(p @ loss.statistics(z, reference), action[..., 1:] / action[..., :1], reference)
    wanted = p @ loss(z, other) - p @ loss(z, best)
    np.testing.assert_allclose(unit * got, wanted, rtol=1e-7, atol=1e-9 * (p @ loss(z, other)) + 1e-12)


@given(belief=beliefs(-1.0, 1.0), offset=st.floats(-1e6, 1e6))
def test_squared_error_far_from_the_origin_keeps_its_digits_about_a_reference(belief, offset):
    (z, p), reference = belief, np.asarray(offset)
    z = (z + offset) - offset  # what is left of them there
    moments = p @ SquaredError().statistics(z + offset, reference)
    got = SquaredError().regret(moments, np.asarray([0.25]), reference)
    np.testing.assert_allclose(got, (p @ z - 0.25) ** 2, rtol=1e-12, atol=1e-15)


def test_an_extreme_weight_stays_in_range_about_a_reference():
    loss, z, reference = SquaredError(ExponentialWeight(2.0)), np.asarray([1000.0, 1001.0]), np.asarray([1000.0])
    moments = np.mean(loss.statistics(z, reference), axis=0)
    share = np.exp(2.0) / (1.0 + np.exp(2.0))
    np.testing.assert_allclose(loss.prediction(loss.action(moments), reference), [1000.0 + share], rtol=1e-15)


def test_linex_stays_in_range_about_a_reference():
    z, reference = np.asarray([250_000.0, 250_001.0]), np.asarray([250_000.0])
    moments = np.mean(Linex().statistics(z, reference), axis=0)
    wanted = 250_000.0 - np.log((1.0 + np.exp(-1.0)) / 2.0)
    np.testing.assert_allclose(Linex().prediction(Linex().action(moments), reference), [wanted], rtol=1e-15)


def test_a_reference_of_no_weight_takes_nothing_out():
    loss = SquaredError(InterpolatedWeight([0, 1], [0, 1]))
    z = np.asarray([0.0, 0.5, 2.0])
    np.testing.assert_allclose(loss.statistics(z, np.asarray([0.0])), [[0.0, 0.0], [0.5, 0.25], [1.0, 2.0]])


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_single_precision_in_gives_single_precision_out(xp, loss):
    z = xp.asarray(targets_of(loss).astype(np.float32))
    assert loss(z, z[:1]).dtype == xp.float32
    assert loss(z, 1.0).dtype == xp.float32


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_targets_and_predictions_broadcast(xp, loss):
    z = xp.asarray(targets_of(loss))
    assert loss(z[:, None], z[None, :3]).shape == (5, 3)
    assert loss(z, 1.0).shape == (5,)


def test_lists_and_numbers_are_welcome():
    np.testing.assert_array_equal(SquaredError()([1, 2], 4), [9.0, 4.0])
    assert SquaredError()(1, 3) == 4.0


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
def test_every_loss_is_a_loss_that_compares_by_value(loss):
    assert isinstance(loss, Loss)
    assert loss == loss.__class__(**{name: getattr(loss, name) for name in loss.__match_args__})


def test_losses_say_where_they_are_defined():
    assert SquaredError().domain == Linex().domain == REAL
    assert BoxCox(1).domain == ItakuraSaito().domain == POSITIVE
    assert PoissonDeviance().domain == NONNEGATIVE


@pytest.mark.parametrize("loss", LOSSES, ids=kind)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_and_predictions_must_be_finite(xp, loss, bad):
    good, bad = xp.asarray(np.asarray([1.0, 2.0])), xp.asarray(np.asarray([1.0, bad]))
    with pytest.raises(ValueError, match="z must be finite; 1 of"):
        loss(bad, good)
    with pytest.raises(ValueError, match="prediction must be finite; 1 of"):
        loss(good, bad)


@pytest.mark.parametrize(
    ("loss", "bad", "domain"),
    [
        (BoxCox(0.5), 0.0, r"\(0, inf\)"),
        (BoxCox(1), -1.0, r"\(0, inf\)"),
        (ItakuraSaito(), 0.0, r"\(0, inf\)"),
        (ItakuraSaito(), -1.0, r"\(0, inf\)"),
        (PoissonDeviance(), -1.0, r"\[0, inf\)"),
        (BregmanLoss(Square(), Function(np.log, np.exp, POSITIVE)), 0.0, r"\(0, inf\)"),
    ],
)
def test_targets_and_predictions_must_lie_in_the_domain(loss, bad, domain):
    with pytest.raises(ValueError, match=f"the target must lie in {domain}; got values from"):
        loss([bad, 1.0], 2.0)
    with pytest.raises(ValueError, match=f"the prediction must lie in {domain}; got values from"):
        loss(2.0, [bad, 1.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_numbers_of_a_loss_must_be_finite(bad):
    with pytest.raises(ValueError, match="lam must be a finite number, at most"):
        BoxCox(bad)
    with pytest.raises(ValueError, match="alpha must be a finite number, at most"):
        Linex(bad)


def test_linex_without_slope_is_refused():
    with pytest.raises(ValueError, match=r"alpha must not be 0: .* SquaredError\(\); use that"):
        Linex(0.0)


@pytest.mark.parametrize("make", [SquaredError, Linex, ItakuraSaito, PoissonDeviance])
def test_a_weight_that_is_no_function_is_refused(make):
    with pytest.raises(TypeError, match="a weight must be a function of the target, or None; got 3"):
        make(weight=3.0)
    with pytest.raises(TypeError, match="a weight must be a function of the target, or None; got 3"):
        BoxCox(1, weight=3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3.0,), "potential must be a Potential such as"),
        ((None,), "potential must be a Potential such as"),
        ((Square(), 3.0), "transform must be a Transform such as"),
        ((Square(), None), "transform must be a Transform such as"),
        ((Square(), Identity(), 3.0), "a weight must be a function of the target"),
    ],
)
def test_parts_of_the_wrong_type_are_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        BregmanLoss(*arguments)


def test_a_loss_without_inverse_acts_but_makes_no_prediction():
    loss = BregmanLoss(Square(), cube)
    action = loss.action(np.mean(loss.statistics(HALVES), axis=0))
    np.testing.assert_allclose(action, [14.0])
    np.testing.assert_allclose(loss(HALVES, 2.0), [49.0, 361.0])
    with pytest.raises(TypeError, match="no inverse, so its act has no target units"):
        loss.prediction(action)


@pytest.mark.parametrize("bad", ["three", object()])
def test_what_is_not_a_number_is_refused(bad):
    with pytest.raises(TypeError, match="z must be an array of numbers; got"):
        SquaredError()(bad, 1.0)
