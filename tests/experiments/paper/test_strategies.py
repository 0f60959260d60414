"""The rules and metrics of the paper's studies against slower and more general ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from experiments.paper.linex import LinexMetric, LinexRule
from experiments.paper.metrics import Carrying, Charged, Drawn, weighted_error
from experiments.paper.strategies import (
    CLIPPED,
    NestedMonteCarlo,
    ScoreOf,
    clipped_scores,
    variance_scores,
    warped_scores,
)
from experiments.paper.strategies import _log_linex as log_linex
from experiments.paper.strategies import _worth as worth_of_each
from stakes import ExponentialWeight, Linex, LogWarp, SquaredError, WarpedGaussianBelief, expected_regret, score
from stakes.evaluation import bayes_prediction, realised_loss
from tests.experiments.paper.paper_cases import belief

HIGH = SquaredError(weight=ExponentialWeight(1.0))


def double_loop(rate, about, draws, seed):
    """EVR_w with every label and every target drawn, as it was published; up to a factor."""
    rng = np.random.default_rng(seed)
    eta, epsilon = (rng.standard_normal((n, draws)) for n in (about.n_candidates, about.n_contexts))

    def uncertainty(z):
        w = np.exp(rate * z)
        return np.mean(w * z**2, axis=-1) - np.mean(w * z, axis=-1) ** 2 / np.mean(w, axis=-1)

    now = uncertainty(about.mean[:, None] + np.sqrt(about.variance)[:, None] * epsilon)
    scores = []
    for n in range(about.n_candidates):
        reach = about.covariance[n] / np.sqrt(about.candidate_variance[n])
        moved = about.mean[:, None] + reach[:, None] * eta[n]
        z = moved[:, :, None] + np.sqrt(about.variance - reach**2)[:, None, None] * epsilon[:, None, :]
        scores.append(np.mean(now - uncertainty(z).mean(axis=1)))
    return np.asarray(scores) / np.exp(np.max(rate * about.mean))


@given(st.integers(0, 1000), st.sampled_from([1.0, -1.0, 0.3]))
def test_the_product_of_two_sums_is_the_published_double_loop(seed, rate):
    about = belief(seed=seed)
    found = NestedMonteCarlo(30)(about, SquaredError(weight=ExponentialWeight(rate)), np.random.default_rng(seed))
    np.testing.assert_allclose(found, double_loop(rate, about, 30, seed), rtol=1e-8, atol=1e-10)


def test_monte_carlo_comes_near_the_closed_form_with_many_draws():
    about, rng = belief(), np.random.default_rng(0)
    exact, rough = score(HIGH, about), NestedMonteCarlo(200_000)(about, HIGH, rng)
    np.testing.assert_allclose(rough / rough.max(), exact / exact.max(), atol=0.05)
    few = NestedMonteCarlo(100)(about, HIGH, rng)
    assert np.max(abs(few / few.max() - exact / exact.max())) > np.max(abs(rough / rough.max() - exact / exact.max()))


@pytest.mark.parametrize("level", [0.0, 3.0])
def test_the_published_score_against_the_general_way(level):
    about = belief(level=level)
    found = clipped_scores(about, HIGH, np.random.default_rng(0))
    np.testing.assert_allclose(found, np.mean(expected_regret(CLIPPED, about), axis=1), rtol=5e-3)


def test_far_above_0_the_published_score_is_that_of_a_small_relative_spread():
    """There -log m is nearly quadratic: the reduction is that of the variance over 2 m^2."""
    about = belief(level=1e4)
    found = clipped_scores(about, HIGH, np.random.default_rng(0))
    np.testing.assert_allclose(
        found / found.max(), score(SquaredError(), about) / score(SquaredError(), about).max(), rtol=1e-2
    )


def test_linex_under_a_log_normal_against_the_general_way():
    about = WarpedGaussianBelief(belief(scale=0.05), LogWarp())
    np.testing.assert_allclose(warped_scores(0.7, about), score(Linex(0.7), about), rtol=1e-5)
    assert LinexRule(0.7)(about, HIGH, None) == pytest.approx(warped_scores(0.7, about))


@given(st.integers(0, 1000), st.floats(0.01, 0.3), st.floats(-2.0, 2.0))
def test_the_curve_in_rho_is_every_candidate_computed_by_itself(seed, scale, level):
    about = WarpedGaussianBelief(belief(contexts=4, candidates=6, seed=seed, scale=scale, level=level), LogWarp())
    slow = worth_of_each(about.latent, lambda mean, sd: log_linex(1.0, mean, sd))
    np.testing.assert_allclose(warped_scores(1.0, about), slow, atol=1e-6 * slow.max())


@settings(max_examples=15)
@given(st.integers(0, 1000), st.floats(0.01, 1.0), st.floats(-3.0, 3.0))
def test_evr_under_a_log_normal_against_the_general_way(seed, scale, level):
    about = WarpedGaussianBelief(belief(seed=seed, scale=scale, level=level), LogWarp())
    found, general = variance_scores(about, HIGH, None), score(SquaredError(), about)
    np.testing.assert_allclose(found / found.max(), general / np.max(general), atol=1e-9)


def test_linex_under_a_log_normal_stays_finite_where_numbers_end():
    about = WarpedGaussianBelief(belief(scale=1.0, level=3.0), LogWarp())
    found = warped_scores(1.0, about)
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_linex_answers_in_closed_form_are_the_best_ones():
    about, targets = belief(), np.linspace(-1.0, 1.0, 5)
    answers = bayes_prediction(Linex(0.8), about)
    assert LinexMetric(0.8)(about, targets) == pytest.approx(realised_loss(Linex(0.8), answers, targets).mean)
    warped = WarpedGaussianBelief(belief(scale=0.05), LogWarp())
    answers = bayes_prediction(Linex(0.8), warped)
    positive = realised_loss(Linex(0.8), answers, targets + 2.0).mean
    assert LinexMetric(0.8)(warped, targets + 2.0) == pytest.approx(positive)


def test_drawn_answers_by_hand_and_near_the_exact_ones():
    about, targets = belief(), np.linspace(-1.0, 1.0, 5)
    z = about.mean[:, None] + np.sqrt(about.variance)[:, None] * stats.norm.rvs(size=1000, random_state=0)
    answers = np.mean(np.exp(z) * z, axis=1) / np.mean(np.exp(z), axis=1)
    assert Drawn(1.0)(about, targets) == pytest.approx(np.mean(np.exp(targets) * (targets - answers) ** 2))
    assert Drawn(1.0, draws=10**6)(about, targets) == pytest.approx(
        weighted_error(1.0, "weighted", False)(about, targets), rel=0.02
    )


def test_where_nothing_weighs_much_the_drawn_answer_is_the_mean():
    about, targets = belief(level=-20.0), np.full(5, -19.0)
    assert Drawn(1.0)(about, targets) == pytest.approx(np.mean(np.exp(targets) * (targets - about.mean) ** 2))
    assert Drawn(-1.0)(about, targets) != pytest.approx(np.mean(np.exp(-targets) * (targets - about.mean) ** 2))


def test_weighted_errors_by_hand():
    about, targets = belief(), np.linspace(-1.0, 1.0, 5)
    weights, errors = np.exp(targets), (targets - about.mean) ** 2
    assert weighted_error(1.0, "mean", True)(about, targets) == pytest.approx(
        np.sum(weights * errors) / np.sum(weights)
    )
    act = (targets - about.mean - about.variance) ** 2
    assert weighted_error(1.0, "weighted", False)(about, targets) == pytest.approx(np.mean(weights * act))


def test_rows_that_carry_a_metric():
    about = belief()
    targets = np.asarray(about.mean).copy()
    targets[0] += 1.0
    assert Carrying(Charged(SquaredError(), SquaredError(), False))(about, targets) == pytest.approx(1.0)


def test_scores_for_a_loss_of_their_own_bear_weights_beyond_the_range_of_numbers():
    about, rng = belief(level=900.0), np.random.default_rng(0)
    found, low = ScoreOf(HIGH)(about, SquaredError(), rng), ScoreOf(HIGH)(belief(), SquaredError(), rng)
    np.testing.assert_allclose(found / found.max(), low / low.max(), rtol=1e-9)
