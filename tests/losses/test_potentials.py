import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mp, mpf

from stakes.losses import NONNEGATIVE, ConvexFunction, Interval, NegativeEntropy, NegativeLog, Norm, Potential, Square
from stakes.losses.potentials import as_potential


def dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


# phi and its gradient in exact arithmetic: lists of decimals in, decimals out.
EXACT = {
    Square(): (lambda x: dot(x, x), lambda x: [2 * c for c in x]),
    NegativeLog(): (lambda x: -sum(c.ln() for c in x), lambda x: [-1 / c for c in x]),
    NegativeEntropy(): (lambda x: sum(c * c.ln() - c for c in x), lambda x: [c.ln() for c in x]),
    Norm(): (lambda x: dot(x, x).sqrt(), lambda x: [c / dot(x, x).sqrt() for c in x]),
}
SEPARABLE = [Square(), NegativeLog(), NegativeEntropy()]  # those that are used away from the origin


def exact_divergence(potential, x, y, origin=0.0):
    """phi(x) - phi(y) - <grad phi(y), x - y>, literally, with 200 digits."""
    phi, gradient = EXACT[potential]
    with localcontext(prec=200):
        x, y = ([Decimal(origin) + Decimal(float(c)) for c in point] for point in (x, y))
        return float(phi(x) - phi(y) - dot(gradient(y), [a - b for a, b in zip(x, y, strict=True)]))


def points(low=1e-3, high=1e3):
    """Pairs of points of one length, 1 to 4."""
    number = st.floats(np.log(low), np.log(high)).map(np.exp)
    return st.integers(1, 4).flatmap(
        lambda d: st.tuples(*2 * [st.lists(number, min_size=d, max_size=d).map(np.asarray)])
    )


def on_simplex(potential, *many):
    """As they are, or for a potential of probabilities as probabilities of one class more."""
    if potential != Norm():
        return many
    return tuple((p := np.append(point, 1.0)) / p.sum() for point in many)


@pytest.mark.parametrize("potential", EXACT)
def test_the_librarys_own_are_potentials(potential):
    assert isinstance(potential, Potential)
    assert as_potential(potential) is potential


@pytest.mark.parametrize(
    ("potential", "x", "y", "wanted"),
    [
        (Square(), [1.0, 5.0], [3.0, 2.0], 13.0),
        (NegativeLog(), [2.0], [1.0], 1 - np.log(2)),
        (NegativeLog(), [1.0, 3.0], [2.0, 3.0], np.log(2) - 0.5),
        (NegativeEntropy(), [2.0], [1.0], 2 * np.log(2) - 1),
        (NegativeEntropy(), [0.0, 1.0], [0.25, 0.75], np.log(4 / 3)),
        (NegativeEntropy(), [0.0, 1.0], [0.0, 1.0], 0.0),
        (Norm(), [1.0, 0.0], [0.6, 0.8], 0.4),
        (Norm(), [3.0, 4.0], [0.0, 2.0], 1.0),
    ],
)
def test_divergences_by_hand(xp, host, potential, x, y, wanted):
    got = host(potential.divergence(xp.asarray(np.asarray(x)), xp.asarray(np.asarray(y))))
    np.testing.assert_allclose(got, wanted, rtol=1e-14)


def test_what_was_thought_impossible_costs_infinitely_much_in_entropy(xp, host):
    x, y = xp.asarray(np.asarray([[0.5, 0.5], [0.0, 1.0]])), xp.asarray(np.asarray([0.0, 1.0]))
    np.testing.assert_array_equal(host(NegativeEntropy().divergence(x, y)), [np.inf, 0.0])


@pytest.mark.parametrize("potential", EXACT)
def test_a_divergence_broadcasts_and_sums_over_the_last_axis(xp, potential):
    x, y = xp.asarray(np.full((5, 1, 3), 0.2)), xp.asarray(np.full((4, 3), 0.3))
    assert potential.divergence(x, y).shape == (5, 4)


@pytest.mark.parametrize("potential", EXACT)
@given(pair=points())
def test_a_divergence_is_positive_and_zero_only_between_equals(potential, pair):
    x, y = on_simplex(potential, *pair)
    assert potential.divergence(x, x.copy()) == 0
    assume(np.max(abs(x - y) / y) > 1e-9)
    assert potential.divergence(x, y) > 0


@pytest.mark.parametrize("potential", EXACT)
@given(pair=points())
def test_a_divergence_is_its_definition(potential, pair):
    x, y = on_simplex(potential, *pair)
    wanted = exact_divergence(potential, x, y)
    # Norm sees the angle between x and y; where x and y are rounded from one point that angle is rounding
    floor = 1e-30 if potential == Norm() else 0.0
    np.testing.assert_allclose(potential.divergence(x, y), wanted, rtol=1e-11, atol=floor)


@pytest.mark.parametrize("potential", SEPARABLE)
@given(pair=points(1e-30, 1e30))
def test_a_divergence_is_its_definition_over_many_orders_of_magnitude(potential, pair):
    np.testing.assert_allclose(potential.divergence(*pair), exact_divergence(potential, *pair), rtol=1e-12)


@pytest.mark.parametrize("potential", EXACT)
@given(pair=points(), signs=st.lists(st.sampled_from([-1.0, 1.0]), min_size=5, max_size=5))
def test_a_divergence_keeps_its_digits_between_neighbours(potential, pair, signs):
    y, _ = on_simplex(potential, *pair)
    x = y * (1.0 + 1e-9 * np.asarray(signs)[: y.size])
    if potential == Norm():
        assume(len(set(signs[: y.size])) == 2)  # otherwise x is a multiple of y
        x = x / x.sum()
    np.testing.assert_allclose(potential.divergence(x, y), exact_divergence(potential, x, y), rtol=1e-11)


@pytest.mark.parametrize("potential", SEPARABLE)
@given(
    pair=points(1e-3, 1e3), sign=st.sampled_from([-1.0, 1.0]), origin=st.floats(np.log(2e3), np.log(1e6)).map(np.exp)
)
def test_a_divergence_keeps_its_digits_far_from_the_origin(potential, pair, sign, origin):
    x, y = sign * pair[0], pair[1]
    wanted = exact_divergence(potential, x, y, origin)
    got = potential.divergence(x, y, np.asarray(origin))
    np.testing.assert_allclose(got, wanted, rtol=1e-11)
    near = y * (1.0 + 1e-9)
    wanted = exact_divergence(potential, near, y, origin)
    np.testing.assert_allclose(potential.divergence(near, y, np.asarray(origin)), wanted, rtol=1e-11)


@pytest.mark.parametrize("potential", EXACT)
@given(pair=points(1e-2, 1e2))
def test_scale_free_is_true_of_those_that_know_no_unit(potential, pair):
    x, y = on_simplex(potential, *pair)
    assume(np.max(abs(x - y) / y) > 1e-2)
    same = np.isclose(potential.divergence(1e3 * x, 1e3 * y), potential.divergence(x, y), rtol=1e-9, atol=0)
    assert same == potential.scale_free


def square_sum(x):
    return array_namespace(x).sum(x**2, axis=-1)


def xlogx(x):
    return array_namespace(x).sum(x * array_namespace(x).log(x) - x, axis=-1)


def minus_log(x):
    return -array_namespace(x).sum(array_namespace(x).log(x), axis=-1)


def exp_sum(x):
    return array_namespace(x).sum(array_namespace(x).exp(x), axis=-1)


def exp_divergence(x, y):
    h = x - y
    series = sum(h**k / math.factorial(k) for k in range(2, 12))
    return np.sum(np.exp(y) * np.where(abs(h) < 0.1, series, np.expm1(h) - h), axis=-1)


OWN = {  # phi, its gradient, the divergence
    "square": (square_sum, lambda x: 2 * x, Square().divergence),
    "entropy": (xlogx, lambda x: array_namespace(x).log(x), NegativeEntropy().divergence),
    "log": (minus_log, lambda x: -1 / x, NegativeLog().divergence),
    "exp": (exp_sum, lambda x: array_namespace(x).exp(x), exp_divergence),
}


@pytest.mark.parametrize("name", OWN)
def test_ones_own_potential_has_the_divergence_of_its_definition(xp, host, name):
    function, gradient, divergence = OWN[name]
    x, y = np.asarray([[1.0, 2.0], [0.1, 4.0]]), np.asarray([2.0, 2.5])
    wanted = divergence(x, y)
    x, y = xp.asarray(x), xp.asarray(y)
    np.testing.assert_allclose(host(ConvexFunction(function, gradient).divergence(x, y)), wanted, rtol=1e-12)
    np.testing.assert_allclose(host(ConvexFunction(function).divergence(x, y)), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", OWN)
@given(pair=points(0.1, 10.0), distance=st.floats(-11, 0))
def test_with_the_gradient_an_error_is_rounding_over_the_distance(name, pair, distance):
    function, gradient, divergence = OWN[name]
    y, direction = pair
    distance = 10.0**distance
    x = y * (1.0 + distance * direction / np.max(direction))
    got = ConvexFunction(function, gradient).divergence(x, y)
    np.testing.assert_allclose(got, divergence(x, y), rtol=max(1e-9, 1e-13 / distance))


@pytest.mark.parametrize("name", OWN)
@given(pair=points(0.1, 10.0))
def test_without_the_gradient_the_error_stays_below_a_billionth_of_phi(name, pair):
    function, gradient, divergence = OWN[name]
    x, y = pair
    size = np.sum(abs(x) + abs(y)) + abs(function(x)) + abs(function(y)) + abs(np.sum(gradient(y) * (x - y)))
    assert abs(ConvexFunction(function).divergence(x, y) - divergence(x, y)) <= 1e-9 * size


def log_sums(matrix):
    """log sum exp(A x): its function, its gradient, and both in mpmath."""

    def rows(v):
        return [mp.exp(mp.fsum(mpf(a) * c for a, c in zip(row, v, strict=True))) for row in matrix]

    def exact_gradient(v):
        each = rows(v)
        return [mp.fsum(e * mpf(a) for e, a in zip(each, column, strict=True)) / sum(each) for column in matrix.T]

    def gradient(x):
        each = np.exp(x @ matrix.T)
        return each / each.sum(-1, keepdims=True) @ matrix

    return lambda x: np.log(np.exp(x @ matrix.T).sum(-1)), gradient, lambda v: mp.log(sum(rows(v))), exact_gradient


def lengths(matrix):
    """sqrt(1 + |A x|^2)."""

    def rows(v):
        return [mp.fsum(mpf(a) * c for a, c in zip(row, v, strict=True)) for row in matrix]

    def exact(v):
        return mp.sqrt(1 + mp.fsum(each**2 for each in rows(v)))

    def exact_gradient(v):
        return [mp.fsum(e * mpf(a) for e, a in zip(rows(v), column, strict=True)) / exact(v) for column in matrix.T]

    def function(x):
        return np.sqrt(1.0 + ((x @ matrix.T) ** 2).sum(-1))

    return function, lambda x: x @ matrix.T @ matrix / function(x)[..., None], exact, exact_gradient


def powers(exponent):
    """The sum of x^k."""

    def exact(v):
        return mp.fsum(c ** mpf(exponent) for c in v)

    def exact_gradient(v):
        return [mpf(exponent) * c ** (mpf(exponent) - 1) for c in v]

    return lambda x: (x**exponent).sum(-1), lambda x: exponent * x ** (exponent - 1), exact, exact_gradient


MADE = {
    "log-sum": lambda rng, d: log_sums(rng.normal(size=(3, d))),
    "length": lambda rng, d: lengths(rng.normal(size=(3, d))),
    "cubes": lambda rng, d: powers(3.0),
    "fourth powers": lambda rng, d: powers(4.0),
    "powers of 2.5": lambda rng, d: powers(2.5),
}


def probabilities(rng, d):
    """Of d classes, down to 1e-12."""
    point = 10.0 ** rng.uniform(-rng.choice([1.0, 12.0]), 0.0, size=d)
    return point / point.sum()


def neighbour(rng, y):
    """Another point: anywhere, near in each coordinate, or on the way to another, where small coordinates move most."""
    share = 10.0 ** rng.uniform(-8.0, 0.0)
    return [
        lambda: probabilities(rng, y.size),
        lambda: y * (1.0 + share * rng.uniform(-1.0, 1.0, size=y.size)),
        lambda: (1.0 - share) * y + share * probabilities(rng, y.size),
    ][rng.integers(3)]()


@pytest.mark.parametrize("with_gradient", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_ones_own_potential_against_mpmath_with_coordinates_down_to_a_trillionth(name, with_gradient):
    singular = name == "powers of 2.5" and not with_gradient  # at 0
    rng = np.random.default_rng(201258)
    for _ in range(300):
        d = int(rng.integers(2, 6))
        function, gradient, exact, exact_gradient = MADE[name](rng, d)
        potential = ConvexFunction(function, gradient if with_gradient else None, domain=NONNEGATIVE)
        y = probabilities(rng, d)
        x = neighbour(rng, y)
        with mp.workdps(80):
            top, base = ([mpf(float(c)) for c in point] for point in (x, y))
            step = [a - b for a, b in zip(top, base, strict=True)]
            wanted = exact(top) - exact(base) - dot(exact_gradient(base), step)
            wrong = abs(mpf(float(potential.divergence(x, y))) - wanted)
            size = 1 + abs(exact(top)) + abs(exact(base))
        assert wrong <= 1e-9 * wanted + (1e-8 if singular else 1e-14) * size, (x, y, float(wanted))


@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-5])
def test_rounding_that_is_large_beside_phi_is_not_taken_for_a_kink(size):
    """log(1 + size cosh x) is small and rounded as 1 is: a line that is shortened for that finds rounding only."""

    def exact(x):
        return mp.log(1 + mpf(size) * mp.cosh(x))

    with mp.workdps(50):
        x, y = mpf(1.3), mpf(0.05)
        wanted = float(exact(x) - exact(y) - mp.diff(exact, y) * (x - y))
    potential = ConvexFunction(lambda x: np.log(1.0 + size * np.cosh(x[..., 0])))
    got = potential.divergence(np.asarray([1.3]), np.asarray([0.05]))
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-14)


def test_a_line_ends_where_the_domain_does():
    """|x - 1| + x^2 kinks where its domain ends, and is x^2 + x - 1 within it."""
    potential = ConvexFunction(lambda x: (abs(x - 1.0) + x**2).sum(-1), domain=Interval(1.0, np.inf, closed_low=True))
    for x, y in ((1.0, 1.001), (1.0 + 1e-9, 1.0 + 2e-9), (5.0, 1.0 + 1e-7)):
        np.testing.assert_allclose(
            potential.divergence(np.asarray([x]), np.asarray([y])), (x - y) ** 2, rtol=1e-9, atol=1e-14
        )


@pytest.mark.parametrize("y", [-50.0, 5.0, 20.0, 100.0])
def test_a_steep_potential_far_from_zero_needs_no_gradient(y):
    x, y = np.asarray([y + 0.1]), np.asarray([y])
    np.testing.assert_allclose(ConvexFunction(exp_sum).divergence(x, y), exp_divergence(x, y), rtol=1e-6)


@pytest.mark.parametrize("gradient", [None, lambda x: 2 * x])
def test_ones_own_divergence_of_equals_is_zero(gradient):
    x = np.asarray([[1.0, 2.0], [0.0, 3.0]])
    np.testing.assert_allclose(ConvexFunction(square_sum, gradient).divergence(x, x), 0.0, atol=1e-11)


@pytest.mark.parametrize("gradient", [None, lambda x: 2 * x])
def test_ones_own_potential_is_counted_from_the_origin(gradient):
    x, y, origin = np.asarray([1.0, 2.0]), np.asarray([3.0, 5.0]), np.asarray([10.0, 20.0])
    np.testing.assert_allclose(ConvexFunction(square_sum, gradient).divergence(x, y, origin), 13.0, rtol=1e-9)


def test_a_plain_function_is_a_potential():
    assert as_potential(square_sum) == ConvexFunction(square_sum)


@pytest.mark.parametrize("bad", [None, 3.0, "square", [1.0]])
def test_what_is_no_function_is_no_potential(bad):
    with pytest.raises(TypeError, match=r"potential must be a Potential such as Square\(\), or a convex function"):
        as_potential(bad)


@pytest.mark.parametrize("bad", [Square, NegativeLog, Norm])
def test_a_class_where_its_instance_was_meant_is_refused(bad):
    with pytest.raises(TypeError, match="potential must be a Potential"):
        as_potential(bad)
