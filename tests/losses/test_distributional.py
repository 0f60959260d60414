"""Losses of a whole density: laws, hand-computed values, and what they refuse."""

import numpy as np
import pytest
from scipy.stats import lognorm, norm

from stakes import (
    CRPS,
    AbsoluteError,
    CategoricalEnsemble,
    ExponentialWeight,
    InterpolatedWeight,
    LogScore,
    LogWarp,
    NormalEnsemble,
    Pinball,
    WarpedGaussianBelief,
    Weight,
    expected_regret,
    score,
    uncertainty,
)
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.losses import DistributionLoss, Loss
from stakes.testing import check_loss
from tests.brute import gaussian_pair, random_table

SIGMOID = Weight(lambda z: 1 / (1 + np.exp(-2 * z)))
WEIGHTS = [None, SIGMOID, ExponentialWeight(-0.7), InterpolatedWeight([-1.0, 1.0], [0.5, 3.0])]
KINDS = [LogScore, CRPS, AbsoluteError, lambda weight: Pinball(0.8, weight)]


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda w: type(w).__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_laws(kind, weight):
    loss = kind(weight)
    assert isinstance(loss, DistributionLoss)
    assert not isinstance(loss, Loss)
    check_loss(loss, [-1.0, 0.3, 0.9, 2.0])


def test_a_broken_loss_is_caught():
    class Doubled(CRPS):
        def regret(self, posterior, prior, marks):
            return 2 * CRPS.regret(self, posterior, prior, marks)

    class Wrong(CRPS):
        def uncertainty(self, distribution, marks):
            return 2 * CRPS.uncertainty(self, distribution, marks)

    with pytest.raises(AssertionError, match="regret: mean loss"):
        check_loss(Doubled(), [-1.0, 0.3, 2.0])
    with pytest.raises(AssertionError, match="uncertainty"):
        check_loss(Wrong(), [-1.0, 0.3, 2.0])


def test_uncertainty_of_a_normal_by_hand():
    belief = gaussian_pair([0.3, 1e6], [1.2, 2.5], [0.5])
    np.testing.assert_allclose(uncertainty(LogScore(), belief), norm.entropy(scale=np.sqrt([1.2, 2.5])), rtol=1e-12)
    np.testing.assert_allclose(uncertainty(CRPS(), belief), np.sqrt([1.2, 2.5]) / np.sqrt(np.pi), rtol=1e-11)


def test_uncertainty_of_a_log_normal_by_hand():
    mean, variance = np.array([0.3, 1.0]), np.array([0.5, 6.0])
    belief, sd = WarpedGaussianBelief(gaussian_pair(mean, variance, [0.5]), LogWarp()), np.sqrt(variance)
    np.testing.assert_allclose(uncertainty(LogScore(), belief), lognorm.entropy(sd, scale=np.exp(mean)), rtol=1e-11)
    # half the mean difference of two draws, whose logarithms differ by N(0, 2 v)
    gini = np.exp(mean + variance / 2) * (2 * norm.cdf(sd / np.sqrt(2)) - 1)
    np.testing.assert_allclose(uncertainty(CRPS(), belief), gini, rtol=1e-9)


def test_crps_of_a_normal_is_the_known_formula():
    belief = gaussian_pair([0.3, -2.0, 1e4], [1.2, 0.4, 2.5], [0.5])
    z, sd = np.array([0.1, -3.0, 1e4 + 40]), np.sqrt(belief.variance)
    u = (z - belief.mean) / sd
    wanted = sd * (u * (2 * norm.cdf(u) - 1) + 2 * norm.pdf(u) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(CRPS()(z, bayes_prediction(CRPS(), belief)), wanted, rtol=1e-12)
    weighted = CRPS(SIGMOID)(z[:2], bayes_prediction(CRPS(), gaussian_pair([0.3, -2.0], [1.2, 0.4], [0.5])))
    np.testing.assert_allclose(weighted, SIGMOID(z[:2]) * wanted[:2], rtol=1e-12)


def test_log_score_is_minus_the_log_density_however_far_out():
    belief = gaussian_pair([0.3, -2.0], [1.2, 0.4], [0.5])
    z = np.array([25.0, -40.0])
    wanted = -norm.logpdf(z, belief.mean, np.sqrt(belief.variance))
    np.testing.assert_allclose(LogScore()(z, bayes_prediction(LogScore(), belief)), wanted, rtol=1e-12)


def test_answers_are_those_of_the_reweighted_belief():
    """exp(a z) turns N(m, v) into N(m + a v, v)."""
    belief, weight = gaussian_pair([0.3, -2.0], [1.2, 0.4], [0.5]), ExponentialWeight(0.8)
    tilted = norm(belief.mean + 0.8 * belief.variance, np.sqrt(belief.variance))
    answer = bayes_prediction(LogScore(weight), belief)
    z = np.array([0.5, -1.0])
    np.testing.assert_allclose(answer.density(z), tilted.pdf(z), rtol=1e-11)
    np.testing.assert_allclose(answer.cdf(z), tilted.cdf(z), rtol=1e-11)
    np.testing.assert_allclose(answer.quantile(0.2), tilted.ppf(0.2), rtol=1e-11)


def test_realised_losses():
    belief = gaussian_pair([0.3, -2.0], [1.2, 0.4], [0.5])
    z = np.array([0.1, -1.0])
    for loss in (LogScore(), CRPS()):
        answer = bayes_prediction(loss, belief)
        assert realised_loss(loss, answer, z).mean == pytest.approx(float(np.mean(loss(z, answer))), rel=1e-13)
        weighted, plain = type(loss)(SIGMOID), loss(z, answer)
        wanted = np.sum(SIGMOID(z) * plain) / np.sum(SIGMOID(z))
        assert realised_loss(weighted, answer, z, normalise=True).mean == pytest.approx(float(wanted), rel=1e-12)
        assert realised_loss(weighted, answer, list(z)).mean == pytest.approx(float(np.mean(SIGMOID(z) * plain)))
    with pytest.raises(ValueError, match="at least one row"):
        realised_loss(CRPS(), bayes_prediction(CRPS(), belief), np.zeros(0))


def test_refusals(rng):
    with pytest.raises(TypeError, match="class"):
        score(LogScore(), CategoricalEnsemble(np.full((1, 2, 2), 0.5), np.full((1, 2, 2), 0.5)))
    with pytest.raises(TypeError, match="gives moments only"):
        score(CRPS(), random_table(rng, [0.0, 1.0, 2.0]))
    with pytest.raises(ValueError, match="context_sd > 0"):
        score(LogScore(), NormalEnsemble([[0.0, 1.0]], 0.5, [[0.0, 1.0]], 0.0))
    with pytest.raises(TypeError, match="Distribution"):
        CRPS()(0.3, 0.2)
    with pytest.raises(ValueError, match="tells a target exactly"):
        score(LogScore(), gaussian_pair([0.0], [1.0], [1.0]))
    with pytest.raises(FloatingPointError, match="not finite"):
        expected_regret(LogScore(), gaussian_pair([0.0], [1.0], [1.0]))
