from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from stakes._utils.array import (
    asarrays,
    check_all,
    check_shape,
    column,
    constant,
    density,
    double,
    log_excess,
    log_shortfall,
    namespace,
    normal_between,
    normal_tail,
    ratio,
    replaced,
    slices,
)

TINY = np.finfo(float).smallest_normal


def exact_excess(r):
    with localcontext(prec=700):  # enough for r = 1e-300, where 1 + r needs 300 digits and the answer 600
        r = Decimal(r)
        return (1 + r) * (1 + r).ln() - r


def exact_shortfall(r):
    with localcontext(prec=700):
        r = Decimal(r)
        return r - (1 + r).ln()


def relative_error(actual, wanted):
    """Of floats against decimals; both below the normal numbers count as equal."""
    with localcontext(prec=50):
        if wanted < Decimal(TINY):
            return 0.0 if actual <= TINY else np.inf
        return float(abs(Decimal(float(actual)) - wanted) / wanted)


LOG_FUNCTIONS = [(log_excess, exact_excess), (log_shortfall, exact_shortfall)]
EDGES = [-1 + 1e-12, -0.5, -0.1, np.nextafter(-0.1, 0), -1e-9, 1e-9, np.nextafter(0.1, 0), 0.1, 0.5, 1.0, 1e3, 1e6]


@pytest.mark.parametrize(("function", "exact"), LOG_FUNCTIONS)
@pytest.mark.parametrize("r", EDGES)
def test_log_functions_keep_13_digits_at_the_edges(function, exact, r):
    assert relative_error(function(np.asarray(r)), exact(r)) < 1e-13


@pytest.mark.parametrize(("function", "exact"), LOG_FUNCTIONS)
@given(size=st.floats(-12, np.log10(0.999)), sign=st.sampled_from([-1.0, 1.0]))
def test_log_functions_keep_13_digits_near_zero(function, exact, size, sign):
    r = sign * 10.0**size
    assert relative_error(function(np.asarray(r)), exact(r)) < 1e-13


@pytest.mark.parametrize(("function", "exact"), LOG_FUNCTIONS)
@given(size=st.floats(-12, 6))
def test_log_functions_keep_13_digits_from_minus_one_upwards(function, exact, size):
    r = -1.0 + 10.0**size
    assert relative_error(function(np.asarray(r)), exact(r)) < 1e-13


@pytest.mark.parametrize(("function", "exact"), LOG_FUNCTIONS)
@pytest.mark.parametrize("r", [1e-300, -1e-300, 1e-160, -1e-150, 1e-100, -1e-100])
def test_log_functions_of_tiny_numbers_are_their_square_halved_or_underflow_to_zero(function, exact, r):
    assert relative_error(function(np.asarray(r)), exact(r)) < 1e-13
    assert function(np.asarray(r)) == pytest.approx(r * r / 2, rel=1e-13, abs=TINY)


def test_log_functions_by_hand(xp, host):
    excess = log_excess(xp.asarray(np.asarray([-1.0, 0.0, 1.0, np.e - 1])))
    np.testing.assert_allclose(host(excess), [1.0, 0.0, 2 * np.log(2) - 1, 1.0], rtol=1e-14)
    shortfall = log_shortfall(xp.asarray(np.asarray([-0.5, 0.0, 1.0, np.e - 1])))
    np.testing.assert_allclose(host(shortfall), [np.log(2) - 0.5, 0.0, 1 - np.log(2), np.e - 2], rtol=1e-14)


def test_log_functions_keep_the_dtype(xp):
    r = xp.asarray(np.float32([-0.5, 1e-4, 3.0]))
    assert log_excess(r).dtype == xp.float32
    assert log_shortfall(r).dtype == xp.float32


def test_log_functions_in_single_precision_keep_its_digits():
    r = np.geomspace(1e-6, 1e3, 200).astype(np.float32)
    for function in (log_excess, log_shortfall):
        np.testing.assert_allclose(function(r), function(r.astype(float)), rtol=2e-5)


def test_ratio_of_nothing_is_zero(xp, host):
    got = ratio(xp.asarray([[1.0, 2.0], [3.0, 0.0]]), xp.asarray([[2.0], [0.0]]))
    np.testing.assert_array_equal(host(got), [[0.5, 1.0], [0.0, 0.0]])


def test_namespace_looks_past_numbers_and_none(xp):
    assert namespace(None, 2.0, xp.asarray([1.0])) is xp


def test_asarrays_joins_lists_and_numbers_to_the_array_beside_them(xp, host):
    array, listed, number, absent = asarrays(a=xp.asarray(np.float32([1, 2])), b=[3, 4], c=5, d=None)
    assert array.dtype == listed.dtype == number.dtype == xp.float32
    assert namespace(listed, number) is xp
    np.testing.assert_array_equal(host(listed), [3, 4])
    assert number.shape == ()
    assert absent is None


def test_asarrays_makes_numpy_doubles_of_lists_and_numbers():
    listed, number = asarrays(a=[1, 2], b=3)
    assert isinstance(listed, np.ndarray)
    assert listed.dtype == number.dtype == np.float64


def test_asarrays_makes_doubles_of_whole_numbers(xp):
    (got,) = asarrays(a=xp.asarray([1, 2, 3]))
    assert got.dtype == xp.float64


def test_asarrays_takes_the_widest_of_the_floats(xp):
    single, widest = asarrays(a=xp.asarray(np.float32([1])), b=xp.asarray(np.float64([1])))
    assert single.dtype == widest.dtype == xp.float64


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_asarrays_refuses_what_is_not_finite_and_counts_it(xp, bad):
    with pytest.raises(ValueError, match=r"^prices must be finite; 1 of 3 values are NaN or infinite"):
        asarrays(prices=xp.asarray([1.0, bad, 2.0]))


@pytest.mark.parametrize("bad", ["three", [1, "three"], [[1, 2], [3]], object()])
def test_asarrays_refuses_what_is_not_numbers(bad):
    with pytest.raises(TypeError, match="prices must be an array of numbers; got"):
        asarrays(prices=bad)


def test_check_shape_lets_a_letter_stand_for_any_length(xp):
    check_shape("costs", xp.asarray(np.zeros((4, 2))), ("C", 2))
    with pytest.raises(ValueError, match=r"costs must have shape \[C, 3\]; got \[4, 2\]"):
        check_shape("costs", xp.asarray(np.zeros((4, 2))), ("C", 3))
    with pytest.raises(ValueError, match=r"costs must have shape \[C, A\]; got \[4\]"):
        check_shape("costs", xp.asarray(np.zeros(4)), ("C", "A"))


def test_check_all_raises_its_message_unless_all_hold(xp):
    check_all(xp.asarray([True, True]), "no")
    with pytest.raises(ValueError, match="not so"):
        check_all(xp.asarray([True, False]), "not so")


def test_constant_and_double(xp, host):
    beside = constant(range(3), xp.asarray(np.float32([0.5])))
    assert beside.dtype == xp.float32
    np.testing.assert_array_equal(host(beside), [0, 1, 2])
    assert double(beside).dtype == xp.float64


@dataclass(frozen=True)
class Checked:
    value: int

    def __post_init__(self):
        if self.value < 0:
            raise ValueError("negative")


def test_replaced_copies_without_checking_again():
    old = Checked(1)
    new = replaced(old, value=-1)
    assert (old.value, new.value) == (1, -1)
    assert type(new) is Checked


@pytest.mark.parametrize(("length", "block"), [(0, 3), (1, 3), (6, 3), (7, 3), (2, 5)])
def test_slices_cover_each_position_once(length, block):
    blocks = list(slices(length, block))
    assert [i for part in blocks for i in range(length)[part]] == list(range(length))
    assert all(part.stop - part.start <= block for part in blocks)
    assert len(blocks) == max(1, -(-length // block))


def test_normal_tail_keeps_its_digits_far_out(xp, host):
    u = np.concatenate([np.linspace(-38.0, 37.0, 2001), [0.0]])
    assert host(normal_tail(xp.asarray(u))) == pytest.approx(special.ndtr(-u), rel=5e-13)
    near = abs(u) < 9
    assert host(normal_tail(xp.asarray(u[near]))) == pytest.approx(special.ndtr(-u[near]), rel=5e-14)


def test_normal_tail_takes_a_boost(host, xp):
    u = np.array([-1.0, 0.5, 60.0])
    boost = np.array([0.3, -2.0, 1800.0])
    wanted = [
        special.ndtr(1.0) * np.exp(0.3),
        special.ndtr(-0.5) * np.exp(-2.0),
        np.exp(1800.0 + special.log_ndtr(-60.0)),
    ]
    assert host(normal_tail(xp.asarray(u), xp.asarray(boost))) == pytest.approx(wanted, rel=1e-12)


@given(st.floats(-30, 30), st.floats(0, 10))
def test_normal_between_is_relative_to_the_tail_it_is_in(low, width):
    got = float(normal_between(np.array(low), np.array(low + width)))
    far = min(low, -(low + width)) if low + width < 0 or low > 0 else 0.0
    wanted = special.ndtr(low + width) - special.ndtr(low) if far == 0 else abs(
        special.ndtr(-abs(low)) - special.ndtr(-abs(low + width))
    )  # fmt: skip
    assert got == pytest.approx(wanted, rel=1e-9, abs=1e-13 * special.ndtr(-min(abs(low), abs(low + width))))


def test_density_with_a_boost_in_range():
    assert float(density(np.array(50.0), 1250.0)) == pytest.approx(1 / np.sqrt(2 * np.pi))


def test_column_picks_by_position_and_broadcasts(xp, host):
    rows = xp.asarray(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    np.testing.assert_array_equal(host(column(rows, xp.asarray(np.array([[2], [0]])))), [3.0, 4.0])
    np.testing.assert_array_equal(host(column(rows, xp.asarray(np.array([1.0])))), [2.0, 5.0])


def test_numpy_arrays_join_the_array_that_they_are_to_be_like(xp, host):
    like, weights = asarrays(like=xp.asarray(np.float32([1.0])), weights=np.float64([1, 2])[::-1])
    assert type(weights) is type(like)
    assert weights.dtype == like.dtype
    np.testing.assert_array_equal(host(weights), [2, 1])


def test_arrays_of_several_libraries_are_refused_in_plain_english():
    torch = pytest.importorskip("torch", reason="torch is an extra")
    with pytest.raises(TypeError, match="a, b must be arrays of one library; got arrays of numpy and torch"):
        asarrays(a=np.zeros(2), b=torch.zeros(2))


def test_gradients_are_left_behind():
    torch = pytest.importorskip("torch", reason="torch is an extra")
    (array,) = asarrays(a=torch.ones(2, requires_grad=True))
    assert not array.requires_grad
