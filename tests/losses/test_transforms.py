from decimal import Decimal, localcontext

import numpy as np
import pytest
from array_api_compat import array_namespace
from hypothesis import given, settings
from hypothesis import strategies as st

from stakes.losses import Exponential, Function, Identity, Indicator, Power, Transform
from stakes.losses.domains import POSITIVE, REAL, Classes
from stakes.losses.transforms import as_transform


def kind(instance):
    return type(instance).__name__


LAMBDAS = [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]


def cube(z):
    return z**3


def cube_root(t):
    xp = array_namespace(t)
    return xp.sign(t) * xp.abs(t) ** (1 / 3)


def log(z):
    return array_namespace(z).log(z)


def exp(t):
    return array_namespace(t).exp(t)


TRANSFORMS = [
    Identity(),
    Identity(POSITIVE),
    *(Power(lam) for lam in LAMBDAS),
    Exponential(0.7),
    Exponential(-0.3),
    Function(cube, cube_root),
    Function(log, exp, POSITIVE),
]


@pytest.mark.parametrize("transform", [*TRANSFORMS, Indicator()], ids=kind)
def test_the_librarys_own_are_transforms(transform):
    assert isinstance(transform, Transform)
    assert as_transform(transform) is transform


@pytest.mark.parametrize(
    ("transform", "z", "wanted"),
    [
        (Identity(), 3.0, 3.0),
        (Power(-1), 4.0, 0.75),
        (Power(0), np.e, 1.0),
        (Power(0.5), 4.0, 2.0),
        (Power(1), 4.0, 3.0),
        (Power(2), 4.0, 7.5),
        (Exponential(-2.0), 0.5, np.exp(-1)),
        (Function(cube), 2.0, 8.0),
    ],
)
def test_transforms_by_hand(xp, host, transform, z, wanted):
    got = transform.chart(None, scale_free=False).coordinate(xp.asarray(np.asarray([[z]])))
    assert got.shape == (1, 1, 1)
    np.testing.assert_allclose(host(got), [[[wanted]]], rtol=1e-14)


def test_the_indicator_leaves_classes_as_they_are(xp, host):
    e = xp.asarray(np.eye(3))
    chart = Indicator(Classes(3)).chart(None, scale_free=False)
    np.testing.assert_array_equal(host(chart.coordinate(e)), np.eye(3))
    np.testing.assert_array_equal(host(chart.target(e)), np.eye(3))


@pytest.mark.parametrize("transform", TRANSFORMS, ids=kind)
@pytest.mark.parametrize("scale_free", [False, True])
@settings(max_examples=20)
@given(z=st.floats(0.1, 10.0), reference=st.one_of(st.none(), st.floats(0.1, 10.0).map(np.asarray)))
def test_a_chart_takes_coordinates_back_to_targets(transform, scale_free, z, reference):
    chart = transform.chart(reference, scale_free)
    coordinates = chart.coordinate(np.asarray([z]))
    assert coordinates.shape == (1, 1)
    np.testing.assert_allclose(chart.target(coordinates), [z], rtol=1e-9)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=kind)
@settings(max_examples=20)
@given(z=st.floats(0.1, 10.0), reference=st.floats(0.1, 10.0).map(np.asarray))
def test_a_chart_is_the_transform_counted_from_its_origin(transform, z, reference):
    z = np.asarray([z])
    plain, chart = (transform.chart(point, scale_free=False) for point in (None, reference))
    assert plain.origin == 0
    wanted = plain.coordinate(z)
    np.testing.assert_allclose(chart.origin + chart.coordinate(z), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rate", [0.7, -0.3])
def test_a_scale_free_exponential_is_counted_in_units_of_the_reference(rate):
    z, reference = np.asarray([800_000.0, 800_003.0]), np.asarray(800_001.0)
    chart = Exponential(rate).chart(reference, scale_free=True)
    assert chart.origin == 0
    np.testing.assert_allclose(chart.coordinate(z)[..., 0], np.exp([-rate, 2 * rate]), rtol=1e-13)
    np.testing.assert_allclose(chart.target(chart.coordinate(z)), z, rtol=1e-15)


def exact_power_difference(lam, z, reference):
    """(z^lam - reference^lam) / lam with 60 digits."""
    with localcontext(prec=60):
        z, reference, lam = Decimal(float(z)), Decimal(float(reference)), Decimal(lam)
        return float((z / reference).ln() if lam == 0 else (z**lam - reference**lam) / lam)


@pytest.mark.parametrize("lam", LAMBDAS)
@settings(max_examples=20)
@given(reference=st.floats(-6, 6), distance=st.floats(-9, -0.5), sign=st.sampled_from([-1.0, 1.0]))
def test_power_coordinates_keep_their_digits_near_the_reference(lam, reference, distance, sign):
    reference = np.asarray(10.0**reference)
    z = reference * (1.0 + sign * 10.0**distance)
    got = Power(lam).chart(reference, scale_free=False).coordinate(z)[..., 0]
    np.testing.assert_allclose(got, exact_power_difference(lam, z, reference), rtol=1e-13)


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("z", [1e-17, 1e-10, 1e-3, 1e3, 1e17])
def test_power_coordinates_keep_their_digits_far_from_the_reference(lam, z):
    got = Power(lam).chart(np.asarray(1.0), scale_free=False).coordinate(np.asarray(z))[..., 0]
    np.testing.assert_allclose(got, exact_power_difference(lam, z, 1.0), rtol=1e-13)


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("reference", [1e-6, 1.0, 1e6])
def test_power_targets_keep_their_digits_near_the_reference(lam, reference):
    chart = Power(lam).chart(np.asarray(reference), scale_free=False)
    z = reference * np.asarray([0.5, 1.0 - 1e-6, 1.0 + 1e-6, 2.0])
    np.testing.assert_allclose(chart.target(chart.coordinate(z)), z, rtol=1e-12)


def test_transforms_say_how_large_they_make_regrets():
    z = np.asarray([1.0, 1e5])
    np.testing.assert_array_equal(Exponential(-2.0).log_size(z), [-2.0, -2e5])
    for transform in TRANSFORMS:
        if not isinstance(transform, Exponential):
            t = transform.chart(None, scale_free=False).coordinate(z)
            np.testing.assert_allclose(transform.log_size(z), 2 * np.log1p(np.max(np.abs(t), axis=-1)), rtol=1e-12)
    assert Indicator().log_size(np.eye(3)) is None


def test_transforms_say_where_they_are_defined():
    assert Identity().domain == Exponential(1.0).domain == Function(cube).domain == REAL
    assert Power(0.5).domain == POSITIVE
    assert Indicator().domain == Classes()


def two_moments(z):
    return array_namespace(z).stack([z, z**2], axis=-1)


@pytest.mark.parametrize("reference", [None, np.asarray([1.0])])
def test_a_function_may_give_several_coordinates(xp, host, reference):
    reference = None if reference is None else xp.asarray(reference)
    chart = Function(two_moments, lambda t: t[..., 0]).chart(reference, scale_free=False)
    z = xp.asarray(np.asarray([2.0, 3.0]))
    wanted = np.asarray([[2.0, 4.0], [3.0, 9.0]]) - (0.0 if reference is None else 1.0)
    np.testing.assert_allclose(host(chart.coordinate(z)), wanted)
    np.testing.assert_allclose(host(chart.target(chart.coordinate(z))), [2.0, 3.0])


@pytest.mark.parametrize("reference", [None, np.asarray([1.0])])
def test_without_an_inverse_there_are_no_target_units(reference):
    chart = Function(cube).chart(reference, scale_free=False)
    with pytest.raises(TypeError, match=r"no inverse, so its act has no target units; give Function\(T, inverse=...\)"):
        chart.target(np.asarray([[8.0]]))


def test_a_plain_function_is_a_transform():
    assert as_transform(cube) == Function(cube)


@pytest.mark.parametrize("bad", [None, 3.0, "log", [1.0]])
def test_what_is_no_function_is_no_transform(bad):
    with pytest.raises(TypeError, match=r"transform must be a Transform such as Identity\(\), or a function"):
        as_transform(bad)


@pytest.mark.parametrize("bad", [Identity, Power, Exponential])
def test_a_class_where_its_instance_was_meant_is_refused(bad):
    with pytest.raises(TypeError, match="transform must be a Transform"):
        as_transform(bad)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_transforms_number_must_be_finite(bad):
    with pytest.raises(ValueError, match="lam must be a finite number"):
        Power(bad)
    with pytest.raises(ValueError, match="rate must be a finite number"):
        Exponential(bad)


def test_an_exponential_of_rate_zero_is_refused():
    with pytest.raises(ValueError, match="rate must not be 0"):
        Exponential(0.0)
