import dataclasses
import pickle

import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import assume, given
from hypothesis import strategies as st

from stakes.losses import ClassWeights, ExponentialWeight, InterpolatedWeight, SquaredError, Weight, WeightFunction
from stakes.losses.weights import as_weight


def kind(instance):
    return type(instance).__name__


def square(z):
    return z**2


def step(z):
    return z > 3


def whole(z):
    xp = array_namespace(z)
    return xp.where(z > 3, xp.asarray(2), xp.asarray(0))


WEIGHTS = [
    ExponentialWeight(0.5),
    ExponentialWeight(-2.0),
    InterpolatedWeight([0.0, 1.0, 3.0], [1.0, 3.0, 0.0]),
    InterpolatedWeight([2.0], [4.0]),
    Weight(square),
]


@pytest.mark.parametrize("weight", [*WEIGHTS, ClassWeights([1, 2])], ids=kind)
def test_the_librarys_own_are_weights(weight):
    assert isinstance(weight, WeightFunction)
    assert as_weight(weight) is weight


def test_no_weight_stays_none():
    assert as_weight(None) is None


@pytest.mark.parametrize("weight", WEIGHTS, ids=kind)
def test_the_logarithm_is_that_of_the_weight(xp, host, weight):
    z = xp.asarray(np.asarray([[-1.0, 0.0, 0.25], [1.0, 2.5, 9.0]]))
    got, log = host(weight(z)), host(weight.logarithm(z))
    assert got.shape == log.shape == (2, 3)
    np.testing.assert_allclose(np.exp(log), got, rtol=1e-14)


@pytest.mark.parametrize("weight", WEIGHTS, ids=kind)
def test_weights_keep_the_dtype(xp, weight):
    z = xp.asarray(np.float32([0.5, 1.5]))
    assert weight(z).dtype == weight.logarithm(z).dtype == xp.float32


def test_a_rate_may_be_a_numpy_number(xp, host):
    z = xp.asarray(np.float32([0.0, 2.0]))
    weight = ExponentialWeight(np.log(2.0))
    assert weight(z).dtype == weight.logarithm(z).dtype == xp.float32
    np.testing.assert_allclose(host(weight(z)), [1.0, 4.0], rtol=1e-6)


def test_an_exponential_weight_by_hand(xp, host):
    weight = ExponentialWeight(0.5)
    np.testing.assert_allclose(host(weight(xp.asarray(np.asarray([0.0, 2.0])))), [1.0, np.e], rtol=1e-15)
    assert weight.breakpoints == ()


def test_the_logarithm_of_an_exponential_weight_does_not_overflow():
    np.testing.assert_array_equal(ExponentialWeight(2.0).logarithm(np.asarray([1e6, -1e6])), [2e6, -2e6])


def test_an_interpolated_weight_is_linear_between_its_points_and_constant_beyond_them(xp, host):
    weight = InterpolatedWeight([0, 1, 3], [1, 3, 0])
    z = np.asarray([-100.0, 0.0, 0.25, 1.0, 2.0, 3.0, 100.0])
    np.testing.assert_allclose(host(weight(xp.asarray(z))), [1.0, 1.0, 1.5, 3.0, 1.5, 0.0, 0.0], rtol=1e-15)
    assert weight.breakpoints == (0.0, 1.0, 3.0)


def test_an_interpolated_weight_of_a_single_point_is_constant(xp, host):
    weight = InterpolatedWeight([2.0], [4.0])
    np.testing.assert_array_equal(host(weight(xp.asarray(np.asarray([[-1.0, 2.0, 3.0]])))), [[4.0, 4.0, 4.0]])


def test_an_interpolated_weight_of_a_single_number():
    assert InterpolatedWeight([0.0, 2.0], [1.0, 2.0])(np.asarray(1.0)) == 1.5


def test_an_interpolated_weight_of_points_too_close_for_single_precision_is_a_step():
    weight = InterpolatedWeight([1.0, 1.0 + 1e-9], [0.0, 5.0])
    got = weight(np.float32([0.0, 1.0, 2.0]))
    assert (got[0], got[2]) == (0.0, 5.0)
    assert 0.0 <= got[1] <= 5.0


@given(
    points=st.lists(
        st.tuples(st.floats(-1e3, 1e3), st.floats(0.0, 1e3)), min_size=1, max_size=6, unique_by=lambda p: p[0]
    ),
    z=st.lists(st.floats(-2e3, 2e3), min_size=1, max_size=5),
)
def test_an_interpolated_weight_is_that_of_numpy(points, z):
    values, weights = zip(*sorted(points), strict=True)
    assume(max(weights) > 0 and np.all(np.diff(values) > 1e-9))
    got = InterpolatedWeight(values, weights)(np.asarray(z))
    np.testing.assert_allclose(got, np.interp(z, values, weights), rtol=1e-12, atol=1e-12 * max(weights))


def test_class_weights_by_hand(xp, host):
    weight = ClassWeights([1, 0, 5])
    e = xp.asarray(np.eye(3))
    np.testing.assert_array_equal(host(weight(e)), [1.0, 0.0, 5.0])
    np.testing.assert_allclose(host(weight.logarithm(e)), [0.0, -np.inf, np.log(5)])
    assert weight.breakpoints == ()


@pytest.mark.parametrize("weight", [InterpolatedWeight([0, 1], [0, 1]), Weight(abs)], ids=kind)
def test_the_logarithm_of_no_weight_is_minus_infinity(xp, host, weight):
    np.testing.assert_array_equal(host(weight.logarithm(xp.asarray(np.asarray([0.0, 1.0])))), [-np.inf, 0.0])


def test_ones_own_logarithm_is_used_as_it_is():
    weight = Weight(np.exp, log=lambda z: z)
    np.testing.assert_array_equal(weight.logarithm(np.asarray([1e6])), [1e6])


def test_breakpoints_are_sorted_numbers():
    assert Weight(square, breakpoints=(3, 1)).breakpoints == (1.0, 3.0)
    assert SquaredError(Weight(square, breakpoints=(3, 1))).breakpoints == (1.0, 3.0)
    assert SquaredError().breakpoints == ()


@pytest.mark.parametrize("weight", WEIGHTS, ids=kind)
def test_a_weight_survives_pickling(weight):
    z = np.asarray([0.5, 2.0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(weight)).logarithm(z), weight.logarithm(z))


def test_a_weight_with_its_function_replaced_has_the_logarithm_of_the_new_one():
    weight = dataclasses.replace(Weight(square), function=abs)
    np.testing.assert_allclose(weight.logarithm(np.asarray([3.0])), np.log([3.0]))


@pytest.mark.parametrize("function", [step, whole])
def test_a_weight_may_be_true_or_false_or_a_whole_number(xp, host, function):
    z = xp.asarray(np.asarray([1.0, 5.0]))
    weight = Weight(function)
    top = float(host(function(z))[1])
    np.testing.assert_array_equal(host(weight(z)), [0.0, top])
    assert weight(z).dtype == xp.float64
    np.testing.assert_allclose(host(weight.logarithm(z)), [-np.inf, np.log(top)])


@pytest.mark.parametrize("function", [step, whole])
def test_a_step_weight_gives_the_same_statistics_about_a_reference(function):
    loss, z, reference = SquaredError(function), np.asarray([1.0, 5.0]), np.asarray([5.0])
    np.testing.assert_allclose(loss.statistics(z, reference), [[0.0, 0.0], [1.0, 0.0]])


def test_a_weight_may_be_constant(xp, host):
    weight = Weight(lambda z: 2.0)
    z = xp.asarray(np.asarray([1.0, 5.0]))
    np.testing.assert_array_equal(host(weight(z)), [2.0, 2.0])
    np.testing.assert_allclose(host(weight.logarithm(z)), np.log([2.0, 2.0]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_rate_must_be_finite(bad):
    with pytest.raises(ValueError, match="rate must be a finite number, at most"):
        ExponentialWeight(bad)


@pytest.mark.parametrize(
    ("values", "weights", "message"),
    [
        ([0, 1], [1], "values and weights must be of one length, 1 or more; got 2 and 1"),
        ([], [], "values and weights must be of one length, 1 or more; got 0 and 0"),
        ([1, 0], [1, 1], "values must be finite and increasing; .* Sort the points, keep each value once"),
        ([1, 1], [1, 2], "values must be finite and increasing"),
        ([0, np.nan], [1, 1], "values must be finite and increasing"),
        ([0, np.inf], [1, 1], "values must be finite and increasing"),
        ([0, 1], [1, -1], "weights must be finite, at least 0 and not all 0"),
        ([0, 1], [0, 0], "weights must be finite, at least 0 and not all 0"),
        ([0, 1], [1, np.nan], "weights must be finite, at least 0 and not all 0"),
        ([0, 1], [1, np.inf], "weights must be finite, at least 0 and not all 0"),
    ],
)
def test_points_that_make_no_weight_are_refused(values, weights, message):
    with pytest.raises(ValueError, match=message):
        InterpolatedWeight(values, weights)


@pytest.mark.parametrize("bad", [[], [1, -1], [1, np.nan], [1, np.inf], [0, 0]])
def test_class_weights_that_are_none_are_refused(bad):
    with pytest.raises(ValueError, match="class weights must be finite, at least 0 and not all 0, one per class; got"):
        ClassWeights(bad)


@pytest.mark.parametrize("bad", [lambda z: -z, lambda z: z * np.nan])
def test_a_weight_that_turns_out_negative_or_nan_is_refused(xp, bad):
    z = xp.asarray(np.asarray([1.0, 2.0]))
    for use in (Weight(bad), Weight(bad).logarithm, SquaredError(bad).statistics, lambda z: SquaredError(bad)(z, 0.0)):
        with pytest.raises(ValueError, match="a weight must be at least 0 for every target; this one gave a negative"):
            use(z)


@pytest.mark.parametrize("bad", [3.0, "high", [1.0, 2.0]])
def test_what_is_no_function_is_no_weight(bad):
    with pytest.raises(TypeError, match="a weight must be a function of the target, or None; got"):
        as_weight(bad)


@pytest.mark.parametrize("bad", [ExponentialWeight, InterpolatedWeight, ClassWeights])
def test_a_class_where_its_instance_was_meant_is_refused(bad):
    with pytest.raises(TypeError, match="a weight must be a function of the target"):
        as_weight(bad)
