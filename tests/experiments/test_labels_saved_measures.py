"""Measures of learning curves, on curves whose answers are known."""

import math

import numpy as np
import pytest

from experiments.labels_saved import measures
from experiments.labels_saved.measures import (
    counts,
    final_ratio,
    geometric_mean,
    holm,
    labels_against,
    last_level,
    level_of,
    median_over,
    passage,
    passages,
    saving,
    share_needed,
    smoothed,
    worse,
)


def flat_runs(curve, runs=8):
    """[R, B + 1]: the same curve in every run."""
    return np.tile(np.asarray(curve, dtype=float), (runs, 1))


FALLING = [10.0, 8.0, 6.0, 4.0, 2.0]


def test_smoothing_pools_neighbours_that_rise():
    assert smoothed(np.asarray([5.0, 1.0, 3.0, 0.0])).tolist() == [5.0, 2.0, 2.0, 0.0]


def test_the_level_is_that_of_the_smoothed_curve_at_the_end():
    assert level_of(flat_runs(FALLING)) == 2.0
    assert level_of(flat_runs([9.0, 4.0, 6.0])) == 5.0  # the last two are pooled
    runs = np.asarray([[9.0, 1.0], [7.0, 3.0]])
    assert level_of(runs) == 2.0


def test_a_passage_is_the_first_count_from_which_on_the_curve_stays_there():
    assert passage(flat_runs(FALLING), 6.0) == 2
    assert passage(flat_runs(FALLING), 5.0) == 3
    assert passage(flat_runs(FALLING), 20.0) == 0
    assert passage(flat_runs(FALLING), 1.9) == math.inf
    touched = [10.0, 1.0, 9.0, 8.0, 2.0]  # below 5 once by accident, and again at the end
    assert passage(flat_runs(touched), 5.0) == 4
    assert passage(flat_runs(FALLING), 2.0 * (1 - 1e-15)) == 4  # rounding is no miss


def test_passages_and_levels_are_those_of_smoothed_curves():
    generator = np.random.default_rng(0)
    for _ in range(300):
        curves = np.exp(-generator.uniform(0.0, 0.2) * np.arange(21)) + 0.3 * generator.normal(size=(3, 21))
        level = float(generator.uniform(-0.2, 1.0))
        wanted = [smoothed(curve) for curve in curves]
        assert np.allclose(last_level(curves), [each[-1] for each in wanted], atol=1e-12)
        reached = [np.flatnonzero(each <= level) for each in wanted]
        first = [float(each[0]) if len(each) else math.inf for each in reached]
        assert passages(curves, np.full(3, level)).tolist() == first


def test_the_reference_needs_no_more_than_all_labels_for_its_own_level():
    generator = np.random.default_rng(1)
    for _ in range(50):
        runs = np.linspace(2.0, 1.0, 31) + 0.2 * generator.normal(size=(10, 31))
        assert passage(runs, level_of(runs)) <= 30


def test_a_share_is_of_the_labels_bought_and_its_interval_holds_it():
    reference = flat_runs(np.linspace(10.0, 4.0, 61), runs=50)
    ours = flat_runs(np.linspace(10.0, 1.0, 61), runs=50)
    assert share_needed(ours, reference).value == pytest.approx(40 / 60)
    assert share_needed(reference, ours).value == math.inf
    noisy = reference + np.random.default_rng(0).normal(size=reference.shape)
    found = share_needed(ours + np.random.default_rng(1).normal(size=ours.shape), noisy)
    assert found.low <= found.value <= found.high
    assert found.high - found.low > 0


def test_intervals_of_shares_cover_the_truth_about_as_often_as_they_say():
    generator, truth, hits = np.random.default_rng(3), 40 / 60, 0
    mean, rival = np.linspace(10.0, 4.0, 61), np.linspace(10.0, 1.0, 61)
    for _ in range(40):
        drawn = [each + generator.normal(size=(50, 1)) for each in (mean, rival)]
        found = share_needed(drawn[1], drawn[0], draws=200)
        hits += found.low <= truth <= found.high
    assert hits >= 34


def test_runs_are_paired_in_the_bootstrap():
    shift = 5.0 * np.random.default_rng(0).normal(size=(30, 1))  # what a split adds to both curves
    reference = np.linspace(10.0, 4.0, 61) + shift
    found = share_needed(np.linspace(10.0, 1.0, 61) + shift, reference)
    assert found.low == found.value == found.high


def test_labels_against_the_unweighted_objective():
    reference = flat_runs(np.linspace(10.0, 4.0, 61))
    quick, slow, never = (flat_runs(np.linspace(10.0, end, 61)) for end in (-2.0, 1.0, 9.0))
    assert labels_against(quick, slow, reference).value == pytest.approx(30 / 40)
    assert labels_against(quick, never, reference).value == pytest.approx(30 / 60)  # at most that
    assert labels_against(never, slow, reference).value == math.inf
    assert math.isnan(labels_against(never, never, reference).value)


def test_ratios_of_final_losses():
    assert final_ratio(flat_runs([4.0, 1.0]), flat_runs([4.0, 2.0])).value == pytest.approx(0.5, rel=1e-5)
    assert final_ratio(flat_runs([4.0, 0.0]), flat_runs([4.0, 0.0])).value == 1.0  # two losses of nothing are equal
    found = geometric_mean([0.5, 2.0, 1.0])
    assert found.value == pytest.approx(1.0)
    assert found.low < 1.0 < found.high


def test_worse_is_one_sided():
    rival = np.linspace(1.0, 2.0, 20)
    assert worse(rival + 0.1, rival) < 1e-4
    assert worse(rival - 0.1, rival) > 0.99
    assert worse(rival, rival) == 1.0


def test_holm_by_hand():
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.5})
    assert found == pytest.approx({"a": 0.04, "b": 0.09, "c": 0.09, "d": 0.5})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_a_problem_counts_if_random_choice_falls_significantly_and_by_a_tenth():
    noise = 0.01 * np.random.default_rng(0).normal(size=(20, 2))
    assert counts(np.asarray([1.0, 0.8]) + noise)
    assert not counts(np.asarray([1.0, 0.95]) + noise)  # surely, but too little
    assert not counts(np.asarray([1.0, 0.8]) + 100.0 * noise)  # much, but by chance
    assert not counts(np.asarray([[1.0, 0.5], [1.0, 0.6]]))  # two runs show nothing


def test_medians_take_what_was_never_reached():
    assert median_over([0.2, 0.4, math.inf]).value == 0.4
    assert median_over([0.2, math.inf, math.inf]).value == math.inf
    assert median_over([0.2, 0.4]).value == pytest.approx(0.3)
    found = median_over([0.2, 0.3, 0.4, 0.5, math.inf])
    assert found.low >= 0.2
    assert found.high == math.inf


def test_promised_beside_delivered():
    found = saving(np.full((5, 3), 0.5), flat_runs([4.0, 3.0, 3.5, 2.5], runs=5) + np.arange(5.0)[:, None])
    assert found.promised == pytest.approx(1.5)
    assert found.delivered.value == pytest.approx(1.5)
    assert found.delivered.low == pytest.approx(1.5)


def test_an_infinite_curve_is_refused():
    with pytest.raises(FloatingPointError, match="mean curves must be finite; 1 of their values are not"):
        level_of(np.asarray([[1.0, math.inf]]))


def test_draws_are_the_same_at_every_call():
    assert np.array_equal(measures._resampled(5, 7), measures._resampled(5, 7))
