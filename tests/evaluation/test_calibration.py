"""Calibration: of simulated beliefs that are right, and of those that are too sure."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from stakes import CategoricalEnsemble, GaussianBelief, LogWarp, NormalEnsemble, VoteEnsemble, WarpedGaussianBelief
from stakes.evaluation import calibration
from tests.beliefs.test_mixture import mixture
from tests.brute import random_table

LEVELS = (0.5, 0.8, 0.9, 0.95)


def gaussian(mean, sd):
    return GaussianBelief(mean, sd**2, np.ones(1), np.zeros((1, len(mean))))


def test_coverage_of_calibrated_and_overconfident_normals(rng):
    mean, sd = rng.standard_normal(20_000), rng.uniform(0.5, 2.0, 20_000)
    targets = mean + sd * rng.standard_normal(20_000)
    right, narrow = (calibration(gaussian(mean, sd * factor), targets) for factor in (1.0, 0.5))
    np.testing.assert_allclose(right.pit, norm.cdf(targets, mean, sd), atol=1e-14)
    np.testing.assert_allclose(right.coverage, LEVELS, atol=4 * 0.5 / math.sqrt(20_000))
    assert right.levels == LEVELS
    expected = 2 * norm.cdf(0.5 * norm.ppf(0.5 + np.array(LEVELS) / 2)) - 1
    np.testing.assert_allclose(narrow.coverage, expected, atol=4 * 0.5 / math.sqrt(20_000))


def test_coverage_of_mixtures(rng, xp, host):
    mean, sd, shares = rng.standard_normal((5000, 3)) * 2, rng.uniform(0.2, 1.0, (5000, 3)), np.array([0.2, 0.5, 0.3])
    member = rng.choice(3, p=shares, size=5000)
    rows = np.arange(5000)
    targets = mean[rows, member] + sd[rows, member] * rng.standard_normal(5000)
    belief = NormalEnsemble(*(xp.asarray(each) for each in (mean[:1], sd[:1], mean, sd, shares)))
    found = calibration(belief, xp.asarray(targets))
    np.testing.assert_allclose(host(found.pit), norm.cdf(targets[:, None], mean, sd) @ shares, atol=1e-14)
    np.testing.assert_allclose(host(found.coverage), LEVELS, atol=4 * 0.5 / math.sqrt(5000))


def test_a_warp_keeps_quantiles(rng):
    latent = gaussian(rng.standard_normal(200), np.full(200, 0.7))
    targets = latent.mean + 0.7 * rng.standard_normal(200)
    warped = calibration(WarpedGaussianBelief(latent, LogWarp()), np.exp(targets))
    np.testing.assert_allclose(warped.pit, calibration(latent, targets).pit, rtol=1e-12)
    with pytest.raises(ValueError, match="the target must lie in"):
        calibration(WarpedGaussianBelief(latent, LogWarp()), targets - 100)


def test_pits_far_out_and_of_certain_beliefs(xp, host):
    belief = GaussianBelief(xp.zeros(5), xp.asarray([1.0, 1.0, 0.0, 0.0, 0.0]), xp.ones(1), xp.zeros((1, 5)))
    found = calibration(belief, [1e6, -1e6, 1e-9, -1e-9, 0.0], levels=[0.99])
    np.testing.assert_allclose(host(found.pit), [1, 0, 1, 0, 0.5], atol=1e-14)
    assert float(found.coverage[0]) == pytest.approx(0.2)


def test_calibration_of_classes_by_hand(xp, host):
    rows = xp.asarray([[0.75, 0.25], [0.75, 0.25], [0.05, 0.95], [0.55, 0.45]])[:, None, :]
    found = calibration(CategoricalEnsemble(rows, rows), [0, 1, 1, 1])
    gaps = [abs(2 * 0.75 - 1), abs(0.95 - 1), abs(0.55 - 0)]  # in bins [.7, .8), [.9, 1], [.5, .6)
    assert found.expected_error == pytest.approx(sum(gaps) / 4)
    np.testing.assert_allclose(host(found.predicted), [2.1 / 4, 1.9 / 4])
    np.testing.assert_allclose(host(found.observed), [0.25, 0.75])
    one_bin = calibration(CategoricalEnsemble(rows, rows), [0, 1, 1, 1], bins=1)
    assert one_bin.expected_error == pytest.approx(abs(3.0 / 4 - 2 / 4))


def test_calibration_of_calibrated_and_overconfident_classes(rng):
    rows = rng.dirichlet(np.ones(3), 20_000)
    labels = (rng.random(20_000)[:, None] > np.cumsum(rows, axis=1)).sum(1)
    sharp = rows**3 / (rows**3).sum(1, keepdims=True)
    right, narrow = (calibration(CategoricalEnsemble(p[:1, None], p[:, None]), labels) for p in (rows, sharp))
    assert right.expected_error < 0.015
    assert narrow.expected_error > 0.1
    np.testing.assert_allclose(right.predicted, right.observed, atol=0.015)


def test_votes_are_classes():
    found = calibration(VoteEnsemble([[0, 1]], [[0, 0], [1, 1]], 2), [0, 0])
    assert found.expected_error == 0.5


# What is refused

BELIEF = GaussianBelief([0.0, 1.0], [1.0, 1.0], [1.0], [[0.0, 0.0]])
CLASSES = CategoricalEnsemble([[[0.5, 0.5]]], [[[0.5, 0.5]]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: calibration(BELIEF, [0.0]), ValueError, r"targets must have shape \[2\]"),
        (lambda: calibration(BELIEF, [0.0, math.nan]), ValueError, "targets must be finite"),
        (lambda: calibration(BELIEF, [0.0, 1.0], levels=(0.5, 1.0)), ValueError, "levels must lie between 0 and 1"),
        (lambda: calibration(BELIEF, [0.0, 1.0], levels=()), ValueError, "levels must lie between 0 and 1"),
        (lambda: calibration(CLASSES, [2]), ValueError, "the target must be a position"),
        (lambda: calibration(CLASSES, [0], bins=0), ValueError, "bins must be a whole number"),
        (lambda: calibration([0.5], [0]), TypeError, "got list"),
        (
            lambda: calibration(random_table(np.random.default_rng(0), [0.0, 1.0]), np.zeros(4)),
            TypeError,
            "calibration knows GaussianBelief, .* got TableBelief",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_mixture_of_gaussian_beliefs_is_its_normals(rng):
    belief = mixture(rng, 3, 1, 50, largest=0.5)
    targets = rng.standard_normal(50)
    wanted = norm.cdf(targets, belief.mean, np.sqrt(belief.variance)).T @ belief.weights
    np.testing.assert_allclose(calibration(belief, targets).pit, wanted, atol=1e-14)
    warped = WarpedGaussianBelief(belief, LogWarp())
    np.testing.assert_allclose(calibration(warped, np.exp(targets)).pit, wanted, atol=1e-12)
