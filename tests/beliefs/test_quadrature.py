"""Integration under normals: rules against known integrals, and windows that find the mass."""

import numpy as np
import pytest

from stakes import ExponentialWeight, Linex, NormalEnsemble, SquaredError, ThresholdDecision, Weight
from stakes.beliefs.quadrature import density, modes_and_window, panels, trapezoid, windows


def test_the_trapezoid_rule_integrates_gaussians():
    u, weights = trapezoid(np.array([-9.0]), np.array([9.0]), 0.5)
    for power, moment in enumerate([1, 0, 1, 0, 3, 0, 15]):
        assert (weights * density(u) * u**power).sum() == pytest.approx(moment, abs=1e-12)


def test_panels_integrate_what_breaks_at_their_cuts():
    cuts = np.array([[-0.3, 1.1, 50.0, -50.0]])
    u, weights = panels(np.array([-9.0]), np.array([9.0]), cuts)
    assert np.all(np.diff(u[0]) >= 0)
    inside = (u > -0.3) & (u < 1.1)
    assert (weights * inside).sum() == pytest.approx(1.4, abs=1e-14)
    assert (weights * density(u) * np.abs(u + 0.3)).sum() == pytest.approx(0.8335225, abs=1e-6)


@pytest.mark.parametrize("rate", [0.0, 1.0, -3.0, 40.0])
def test_the_mass_of_an_exponential_weight_is_found_however_steep(rate):
    loss = SquaredError(ExponentialWeight(rate))
    places, low, high = modes_and_window(loss, np.array([5.0, -1e6]), np.array([1.0, 1.0]))
    np.testing.assert_allclose(places[:, 0], rate, atol=1e-5)
    assert np.all(low <= rate - 9 + 1e-5)
    assert np.all(high >= rate + 9 - 1e-5)


def test_a_weight_too_steep_to_integrate_is_refused():
    with pytest.raises(FloatingPointError, match="100 standard deviations from the mean, too far to integrate"):
        modes_and_window(SquaredError(ExponentialWeight(10.0)), np.array([0.0]), np.array([10.0]))


def test_windows_hold_both_modes_of_a_weight_and_all_statistics():
    two_sided = SquaredError(Weight(lambda z: np.cosh(4.0 * z)))
    low, high = windows(two_sided, np.array([0.0]), np.array([1.0]))
    assert low[0] <= -12.5
    assert high[0] >= 12.5
    low, high = windows(Linex(6.0), np.array([0.0]), np.array([1.0]))  # w at 0 and w T = exp(-6 z) at -6
    assert low[0] <= -14.9
    assert high[0] >= 9.0


def test_a_weight_that_is_zero_everywhere_it_looks_is_no_trouble():
    nowhere = SquaredError(Weight(lambda z: np.zeros_like(z)))
    places, low, high = modes_and_window(nowhere, np.array([0.0]), np.array([1.0]))
    assert np.all(np.isfinite(places))
    assert low[0] <= -9 < 9 <= high[0]


class OwnSquare(SquaredError):  # noqa: N818
    """The same loss, of which nothing is known in closed form."""


class OwnThreshold(ThresholdDecision):
    """The same."""


@pytest.mark.parametrize(
    ("loss", "other"),
    [
        (SquaredError(), OwnSquare()),
        (SquaredError(ExponentialWeight(0.7)), OwnSquare(ExponentialWeight(0.7))),
        (SquaredError(ExponentialWeight(-3.0)), OwnSquare(ExponentialWeight(-3.0))),
        (ThresholdDecision(0.4, 5.0, 2.0), OwnThreshold(0.4, 5.0, 2.0)),
        (ThresholdDecision(-6.0), OwnThreshold(-6.0)),
    ],
)
def test_closed_moments_are_those_of_the_rule(loss, other, xp):
    rng = np.random.default_rng(0)
    mean, sd = 1e3 + rng.standard_normal((3, 4)), rng.uniform(0.1, 2.0, (3, 4))
    mean = mean - 1e3 if loss.finite_actions else mean
    belief, same = (
        NormalEnsemble(*(xp.asarray(np.array(each)) for each in (mean[:1], sd[:1], mean, sd))) for _ in range(2)
    )
    reference, wanted = belief.reference(loss), same.reference(other)
    np.testing.assert_allclose(np.asarray(reference.point), np.asarray(wanted.point), rtol=1e-6)
    closed = np.asarray(belief.member_moments(loss, wanted))
    np.testing.assert_allclose(closed, np.asarray(same.member_moments(other, wanted)), rtol=1e-9, atol=1e-12)


def test_closed_moments_of_targets_without_spread():
    belief = NormalEnsemble([[0.0, 0.0]], 1.0, [[1.0, -1.0]], 0.0)
    loss = ThresholdDecision(0.0, 5.0, 2.0)
    moments = belief.member_moments(loss, belief.reference(loss))
    np.testing.assert_allclose(moments, [[[5.0, 0.0], [0.0, 2.0]]])
    plain = belief.member_moments(SquaredError(), belief.reference(SquaredError()))
    np.testing.assert_allclose(plain[0, :, 1] + belief.reference(SquaredError()).point[0], [1.0, -1.0])
