"""The integration behind split moments: every way it takes gives what the others give."""

import numpy as np
import pytest

from stakes import GaussianBelief, SquaredError, Weight
from stakes.beliefs import gaussian_integration as gaussian_split
from tests.brute import gaussian_pair, normal_expectation

SMOOTH = SquaredError(Weight(lambda z: 1 / (1 + np.exp(-3 * z))))
STEP = SquaredError(Weight(lambda z: np.where(z > 0.2, 1.0, 0.0), breakpoints=(0.2,)))


@pytest.mark.parametrize("loss", [SMOOTH, STEP])
@pytest.mark.parametrize("rho", [1e-9, 0.4, 0.93, 0.985, 0.999, 1 - 1e-9, 1.0])
def test_split_moments_sum_to_the_moments(loss, rho):
    belief = gaussian_pair([0.0, -1.0], [1.0, 0.6], rho)
    reference = belief.reference(loss)
    total = belief.split_moments(loss, reference).sum(2)[0]
    np.testing.assert_allclose(total, belief.moments(loss, reference), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("loss", "threshold"), [(SMOOTH, "_WIDE_SD"), (STEP, "WIDE_SD_AT_KINKS")])
@pytest.mark.parametrize("rho", [0.9, 0.97])
def test_shared_and_own_nodes_agree(monkeypatch, loss, threshold, rho):
    belief = gaussian_pair([0.0, -1.0], [1.0, 0.6], rho)
    reference = belief.reference(loss)
    regrets = []
    for value in (0.05, 0.9):
        monkeypatch.setattr(gaussian_split, threshold, value)
        split = belief.split_moments(loss, reference)
        action = loss.action(split.sum(2))
        regrets.append(loss.regret(split, action[:, :, None, :], reference.point[:, None]).sum(2))
    np.testing.assert_allclose(regrets[0], regrets[1], rtol=1e-6)


@pytest.mark.parametrize("loss", [SMOOTH, STEP])
def test_one_correlation_for_all_contexts_is_no_special_case(loss):
    """A candidate equally correlated with all contexts takes a shortcut; one that is not, does not."""
    same = gaussian_pair([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], 0.6)
    covariance = np.sqrt([[0.6, 0.6, 0.61]])
    other = GaussianBelief(same.mean, same.variance, same.candidate_variance, covariance)
    reference = same.reference(loss)
    for belief in (same, other):
        split = belief.split_moments(loss, reference)
        action = loss.action(split.sum(2))
        regret = loss.regret(split, action[:, :, None, :], reference.point[:, None]).sum(2)
        np.testing.assert_allclose(regret[0, 0], regret[0, 1], rtol=1e-12)
        if belief is same:
            first = regret[0, 0]
    np.testing.assert_allclose(regret[0, 0], first, rtol=1e-9)


def test_a_mixed_row_takes_each_pair_its_own_way():
    belief = GaussianBelief([0.0, 0.3], [1.0, 1.0], [1.0], np.sqrt([[0.5, 0.999]]))
    reference = belief.reference(SMOOTH)
    together = belief.split_moments(SMOOTH, reference)
    total = together.sum(2)[0]
    np.testing.assert_allclose(total, belief.moments(SMOOTH, reference), rtol=1e-10)


def test_conditional_moments_are_those_of_the_posterior():
    mean, variance, rho = 0.3, 2.0, 0.4
    belief = gaussian_pair(mean, variance, rho)
    split = gaussian_split.GaussianSplit(
        belief.resolved(SMOOTH), belief.mean, np.sqrt(belief.variance), belief.rho, belief.reference(SMOOTH)
    )
    eta, mass, _ = split.nodes
    node = eta.shape[-1] // 3
    conditional = split.moments()[0, 0, node] / mass[0, 0, node]
    centre, spread = mean + np.sqrt(rho * variance) * eta[0, 0, node], np.sqrt((1 - rho) * variance)
    reference = belief.reference(SMOOTH).point[0]
    wanted = normal_expectation(lambda z: SMOOTH.statistics(z, np.full_like(z, reference)).T, centre, spread)
    np.testing.assert_allclose(conditional[0] / conditional[1], wanted[0] / wanted[1], rtol=1e-9)


def test_many_breakpoints_are_met_where_the_posterior_is():
    """Sixty kinks of a smooth curve: a narrow posterior is split at the nearest, and the curve comes out."""
    values = np.linspace(-3, 3, 61)
    curve = Weight(
        lambda z: np.interp(z, values, 1 + values**2), breakpoints=tuple(values)
    )  # within 1e-3 of the smooth 1 + z^2
    smooth = Weight(lambda z: 1 + np.clip(z, -3, 3) ** 2, breakpoints=(-3.0, 3.0))
    belief = gaussian_pair(0.4, 0.5, [0.5, 0.995])
    from stakes import expected_regret

    np.testing.assert_allclose(
        expected_regret(SquaredError(curve), belief), expected_regret(SquaredError(smooth), belief), rtol=5e-3
    )
