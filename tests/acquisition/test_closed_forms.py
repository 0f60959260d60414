"""Closed forms under a Gaussian belief against the general route and against direct integration."""

import numpy as np
import pytest

from stakes import (
    ExponentialWeight,
    GaussianBelief,
    Linex,
    SquaredError,
    expected_reduction,
    expected_regret,
    find_form,
    score,
    uncertainty,
)
from tests.brute import gaussian_pair, gaussian_reduction

PAIRS = [
    SquaredError(),
    SquaredError(ExponentialWeight(1.0)),
    SquaredError(ExponentialWeight(-1.3)),
    Linex(0.7),
    Linex(-2.0),
    Linex(1.5, ExponentialWeight(0.8)),
    Linex(-0.5, ExponentialWeight(-2.0)),
]
RHO = [1e-12, 1e-6, 0.01, 0.3, 0.7, 0.95, 0.99, 1 - 1e-6, 1 - 1e-12, 1.0]


def by_hand(loss, mean, variance, rho):
    """The table of the docs: E[w] rho v, and alpha^2 / 2 of that for Linex."""
    rate = 0.0 if loss.weight is None else loss.weight.rate
    wbar = np.exp(rate * mean + rate**2 * variance / 2)
    return wbar * rho * variance * (loss.alpha**2 / 2 if isinstance(loss, Linex) else 1.0)


@pytest.mark.parametrize("loss", PAIRS, ids=repr)
def test_closed_form_is_what_runs_and_is_the_formula(loss):
    mean, variance = np.array([0.3, -2.0]), np.array([1.2, 0.4])
    belief = gaussian_pair(mean, variance, RHO)
    assert find_form(loss, belief).name.startswith("closed form")
    wanted = by_hand(loss, mean, variance, np.array(RHO)[:, None])
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-12)


@pytest.mark.parametrize("loss", PAIRS, ids=repr)
def test_closed_form_equals_the_general_route(loss):
    belief = gaussian_pair([0.3, -2.0], [1.2, 0.4], RHO)
    np.testing.assert_allclose(expected_regret(loss, belief), expected_reduction(loss, belief), rtol=1e-9)


@pytest.mark.parametrize("rho", [0.2, 0.8])
@pytest.mark.parametrize("loss", PAIRS, ids=repr)
def test_closed_form_equals_direct_integration(loss, rho):
    mean, variance = 0.3, 1.2
    weight = (lambda z: np.ones_like(z)) if loss.weight is None else loss.weight
    if isinstance(loss, Linex):

        def statistic(z):
            return np.exp(-loss.alpha * z)

        def unweighted(z, a):
            return statistic(z) / a - np.log(statistic(z) / a) - 1
    else:

        def statistic(z):
            return z

        def unweighted(z, a):
            return (z - a) ** 2

    wanted = gaussian_reduction(unweighted, statistic, weight, mean, variance, rho)
    np.testing.assert_allclose(expected_reduction(loss, gaussian_pair(mean, variance, rho))[0, 0], wanted, rtol=1e-9)


@pytest.mark.parametrize("loss", PAIRS, ids=repr)
def test_knowing_the_target_is_worth_all_the_uncertainty(loss):
    belief = gaussian_pair([0.3, -2.0], [1.2, 0.4], [1.0])
    np.testing.assert_allclose(expected_reduction(loss, belief)[0], uncertainty(loss, belief), rtol=1e-10)


def test_linex_ranks_as_squared_error_does(rng):
    """The Linex objective of an exact GP is variance reduction times alpha^2 / 2: same ranking, another answer."""
    mixing = rng.standard_normal((30, 8))
    covariance = mixing @ mixing.T
    belief = GaussianBelief(
        rng.standard_normal(10), np.diag(covariance)[20:], np.diag(covariance)[:20] + 0.1, covariance[:20, 20:]
    )
    for alpha in (0.5, -2.0):
        np.testing.assert_allclose(
            score(Linex(alpha), belief), alpha**2 / 2 * score(SquaredError(), belief), rtol=1e-13
        )


def test_linex_answers_m_less_half_alpha_v():
    mean, variance = np.array([3.0, 250_000.0]), np.array([1.2, 400.0])
    belief = gaussian_pair(mean, variance, [0.5])
    for alpha in (0.7, -0.2):
        loss = Linex(alpha)
        reference = belief.reference(loss)
        answer = loss.prediction(loss.action(belief.moments(loss, reference)), reference.point)
        np.testing.assert_allclose(answer, mean - alpha * variance / 2, rtol=1e-13)
