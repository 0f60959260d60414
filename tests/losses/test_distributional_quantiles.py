"""Losses of a quantile: hand-computed values, and what they refuse."""

import numpy as np
import pytest
from scipy.stats import norm

from stakes import AbsoluteError, ExponentialWeight, NormalEnsemble, Pinball, Weight, expected_regret, uncertainty
from stakes.evaluation import bayes_prediction, realised_loss
from tests.brute import gaussian_pair


def test_values_by_hand():
    np.testing.assert_allclose(Pinball(0.9)([3.0, 1.0], [1.0, 3.0]), [1.8, 0.2])
    np.testing.assert_allclose(AbsoluteError()([3.0, 1.0, 2.0], 2.0), [1.0, 1.0, 0.0])
    np.testing.assert_allclose(Pinball(0.9, Weight(lambda z: z**2))(3.0, 1.0), 16.2)


def test_uncertainty_of_a_normal_by_hand():
    belief, sd = gaussian_pair([0.3, 1e6], [1.2, 2.5], [0.5]), np.sqrt([1.2, 2.5])
    np.testing.assert_allclose(uncertainty(AbsoluteError(), belief), sd * np.sqrt(2 / np.pi), rtol=1e-11)
    np.testing.assert_allclose(uncertainty(Pinball(0.9), belief), sd * norm.pdf(norm.ppf(0.9)), rtol=1e-11)


def test_answers_are_quantiles_of_the_reweighted_belief():
    belief = gaussian_pair([0.3, -2.0], [1.2, 0.4], [0.5])
    sd = np.sqrt(belief.variance)
    np.testing.assert_allclose(bayes_prediction(Pinball(0.9), belief), norm.ppf(0.9, belief.mean, sd), rtol=1e-12)
    tilted = norm.ppf(0.5, belief.mean - 0.6 * belief.variance, sd)
    np.testing.assert_allclose(bayes_prediction(AbsoluteError(ExponentialWeight(-0.6)), belief), tilted, rtol=1e-11)


def test_twice_the_pinball_loss_at_one_half_is_absolute_error():
    weight = Weight(lambda z: 1 / (1 + np.exp(-2 * z)))
    for belief in (
        gaussian_pair([0.3, -2.0], [1.2, 0.4], [0.1, 0.9]),
        NormalEnsemble([[0.0, 1.0]], 0.5, [[0.0, 1.0]], 0.2),
    ):
        half, whole = expected_regret(Pinball(0.5, weight), belief), expected_regret(AbsoluteError(weight), belief)
        np.testing.assert_allclose(2 * half, whole, rtol=1e-14)


def test_realised_losses():
    targets, answers = np.array([1.0, 2.0, 4.0]), np.array([1.5, 1.5, 1.5])
    assert realised_loss(AbsoluteError(), answers, targets).mean == pytest.approx(3.5 / 3)
    weighted = realised_loss(AbsoluteError(Weight(lambda z: z)), answers, targets, normalise=True)
    assert weighted.mean == pytest.approx((0.5 + 1.0 + 10.0) / 7)


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, 1.2, float("nan"), "half"])
def test_levels_that_are_none_are_refused(tau):
    with pytest.raises(ValueError, match="tau must be a number between 0 and 1"):
        Pinball(tau)
