import numpy as np
import pytest

from stakes.losses.domains import (
    NONNEGATIVE,
    POSITIVE,
    REAL,
    Classes,
    Interval,
    Vectors,
    check_labels,
    check_probabilities,
    indicators,
    labels_to_indicators,
    target_axes,
)

CONTAINED = [
    (REAL, REAL, True),
    (REAL, POSITIVE, True),
    (REAL, NONNEGATIVE, True),
    (NONNEGATIVE, POSITIVE, True),
    (NONNEGATIVE, NONNEGATIVE, True),
    (POSITIVE, POSITIVE, True),
    (POSITIVE, NONNEGATIVE, False),
    (POSITIVE, REAL, False),
    (Interval(0, 2), Interval(1, 2), True),
    (Interval(0, 2), Interval(1, 3), False),
    (Interval(0, 2), Interval(-1, 1), False),
    (Classes(), Classes(3), True),
    (Classes(), Classes(), True),
    (Classes(3), Classes(3), True),
    (Classes(3), Classes(2), False),
    (Classes(3), Classes(), False),
    (REAL, Classes(3), False),
    (Classes(), REAL, False),
    (Vectors(2), Vectors(2), True),
    (Vectors(2), Vectors(3), False),
    (Vectors(1), REAL, False),
    (REAL, Vectors(1), False),
    (Classes(2), Vectors(2), False),
]


@pytest.mark.parametrize(("outer", "inner", "contained"), CONTAINED, ids=lambda value: str(value))
def test_a_domain_contains_another_when_every_point_of_it_lies_there(outer, inner, contained):
    assert (inner in outer) is contained


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (REAL, "(-inf, inf)"),
        (POSITIVE, "(0, inf)"),
        (NONNEGATIVE, "[0, inf)"),
        (Classes(), "classes"),
        (Classes(3), "3 classes"),
        (Vectors(3), "vectors of 3 numbers"),
    ],
)
def test_domains_are_written_as_people_write_them(domain, text):
    assert str(domain) == text


@pytest.mark.parametrize(
    ("domain", "values"), [(REAL, [-3.0, 0.0]), (NONNEGATIVE, [0.0, 1.0]), (POSITIVE, [1e-300]), (POSITIVE, [])]
)
def test_an_interval_accepts_its_points(xp, domain, values):
    domain.check("the price", xp.asarray(np.asarray(values, dtype=float)))


@pytest.mark.parametrize(
    ("domain", "values", "message"),
    [
        (POSITIVE, [3.0, 0.0], r"the price must lie in \(0, inf\); got values from 0 to 3"),
        (NONNEGATIVE, [3.0, -1.0], r"the price must lie in \[0, inf\); got values from -1 to 3"),
        (Interval(0, 2), [1.0, 2.0], r"the price must lie in \(0, 2\); got values from 1 to 2"),
        (REAL, [np.nan], r"the price must lie in \(-inf, inf\)"),
    ],
)
def test_an_interval_refuses_other_points_and_says_which_came(xp, domain, values, message):
    with pytest.raises(ValueError, match=message):
        domain.check("the price", xp.asarray(values))


def test_labels_become_indicators(xp, host):
    got = labels_to_indicators(xp.asarray([[0.0, 2.0]]), 3)
    np.testing.assert_array_equal(host(got), [[[1, 0, 0], [0, 0, 1]]])


@pytest.mark.parametrize("bad", [-1.0, 3.0, 1.5, np.nan])
def test_labels_must_be_positions(xp, bad):
    with pytest.raises(ValueError, match="label must be a position, a whole number from 0 to 2; got values from"):
        check_labels("label", xp.asarray([0.0, bad]), 3)


def test_labels_of_any_number_of_classes_must_still_be_whole(xp):
    check_labels("label", xp.asarray([0.0, 1e6]), None)
    with pytest.raises(ValueError, match="label must be a position, a whole number from 0; got"):
        check_labels("label", xp.asarray([0.5]), None)


def test_no_labels_are_fine(xp):
    check_labels("label", xp.asarray(np.zeros(0)), 3)


def test_probabilities_may_carry_the_rounding_of_single_precision(xp):
    check_probabilities("p", xp.asarray([[0.5, 0.5 + 9e-6]]))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[0.5, 0.6]], r"p must hold probabilities that sum to one over the last axis; got values from 1.1 to 1.1"),
        ([[0.0, 0.0]], "divide by the sum if that is what you mean"),
        ([[1.5, -0.5]], r"p must hold probabilities, none negative; got values from -0.5 to 1.5"),
        ([[np.nan, 1.0]], "p must be finite; 1 of 2 values are NaN"),
    ],
)
def test_probabilities_are_refused_rather_than_renormalised(xp, bad, message):
    with pytest.raises(ValueError, match=message):
        check_probabilities("p", xp.asarray(bad))


def test_indicators_of_labels_beside_probabilities(xp, host):
    z, q = indicators(Classes(), xp.asarray([1, 0]), xp.asarray(np.float32([[0.25, 0.75], [0.5, 0.5]])))
    assert z.dtype == q.dtype == xp.float32
    np.testing.assert_array_equal(host(z), [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("classes", "prediction", "message"),
    [
        (Classes(3), [0.5, 0.5], "one probability for each of the 3 classes; got 2"),
        (Classes(), 0.5, "one probability for each of the classes; got 0"),
        (Classes(), np.zeros((2, 0)), "one probability for each of the classes; got 0"),
    ],
)
def test_a_prediction_has_one_probability_for_each_class(classes, prediction, message):
    with pytest.raises(ValueError, match=message):
        indicators(classes, 0, prediction)


def test_vectors_are_checked_by_their_last_axis(xp):
    Vectors(2).check("the target", xp.zeros((3, 2)))
    for shape in [(2, 3), ()]:
        with pytest.raises(ValueError, match=r"the target must be vectors of 2 numbers, shape \[..., 2\]; got"):
            Vectors(2).check("the target", xp.zeros(shape))
    for count in (0, 2.0, None):
        with pytest.raises(ValueError, match="count must be a whole number, 1 or more"):
            Vectors(count)


def test_how_many_axes_belong_to_a_target():
    assert [target_axes(domain) for domain in (REAL, POSITIVE, Classes(), Classes(3), Vectors(2))] == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_probabilities_may_carry_the_rounding_of_half_precision(kind):
    torch = pytest.importorskip("torch", reason="bfloat16 needs torch")
    dtype = getattr(torch, kind)
    rows = torch.as_tensor(np.random.default_rng(0).dirichlet(np.full(100, 0.3), size=500))
    assert float((rows.to(dtype).double().sum(1) - 1).abs().max()) > 5e-5  # more than single precision may carry
    check_probabilities("p", rows.to(dtype))
    for off in (1.0 - 3 * torch.finfo(dtype).eps, 1.0 + 3 * torch.finfo(dtype).eps):
        with pytest.raises(ValueError, match="sum to one"):
            check_probabilities("p", (off * rows).to(dtype))
    with pytest.raises(ValueError, match="sum to one"):  # but nobody else may
        check_probabilities("p", rows.to(dtype).float())
