"""Calibrated class probabilities, against their definition."""

import numpy as np
import pytest

from stakes.models.calibration import (
    calibrated_mean,
    calibrated_members,
    calibrated_votes,
    found_calibration,
    normalised,
    sharpened,
)

PRIOR = np.array([0.5, 0.3, 0.2])


def folds_seen(predict_mean, targets, n_classes=2, seed=0):
    """What `found_calibration` gives where members say `predict_mean` [n, C] of the labels that are left out."""
    return found_calibration(lambda seen, asked: predict_mean[asked], targets, n_classes, np.random.default_rng(seed))


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7, 6.0])
def test_members_have_the_mean_that_was_wanted_and_stay_probabilities(rng, power):
    members = rng.dirichlet([0.3, 0.3, 0.3], size=(5, 7))
    found = calibrated_members(members, PRIOR, power, 0.1)
    np.testing.assert_allclose(found.mean(axis=1), calibrated_mean(members.mean(axis=1), PRIOR, power, 0.1), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=2), 1.0, atol=1e-12)
    assert found.min() > 0


def test_members_are_moved_no_more_than_their_mean():
    """A class that gains takes nothing from any member, so the mass that moves is that of the mean."""
    members = np.eye(3)[[[0, 0, 0, 1]]]  # one row, four members
    found = sharpened(members, 2.0)
    mean = members.mean(axis=1)
    assert (found[..., 0] >= members[..., 0]).all()
    moved = 0.5 * np.abs(found - members).sum(axis=2).mean()
    assert moved == pytest.approx(0.5 * np.abs(normalised(mean**2) - mean).sum())
    np.testing.assert_array_equal(sharpened(members, 1.0), members)


@pytest.mark.parametrize("power", [0.7, 1.0, 2.5])
def test_votes_are_members_that_give_all_to_one_class(rng, power):
    votes = rng.integers(3, size=(6, 9))
    votes[0] = 2  # all agree
    found = calibrated_votes(votes, PRIOR, power, 0.2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, calibrated_members(np.eye(3)[votes], PRIOR, power, 0.2), atol=1e-6)


def test_a_power_above_one_where_the_mean_is_right_more_often_than_it_says():
    targets = np.arange(60) % 2
    power, share = folds_seen(np.where(np.eye(2)[targets] == 1, 0.8, 0.2), targets)  # always right
    assert power > 2.5
    assert share < 0.05


def test_class_frequencies_where_the_mean_is_no_better_than_they_are(rng):
    targets = rng.integers(2, size=80)
    power, share = folds_seen(np.eye(2)[rng.integers(2, size=80)], targets)  # sure, and right half of the time
    assert share > 0.7
    assert power < 2.0


def test_power_and_share_are_found_again(rng):
    """Labels drawn from a known power and share of what members say."""
    mean = rng.dirichlet([1.0, 1.0], size=1500)
    drawn = calibrated_mean(mean, np.array([0.5, 0.5]), 2.0, 0.2)
    targets = (rng.random(1500) > drawn[:, 0]).astype(int)
    power, share = folds_seen(mean, targets)
    assert power == pytest.approx(2.0, rel=0.25)
    assert share == pytest.approx(0.2, abs=0.07)


def test_without_labels_that_tell_the_prior_is_taken():
    targets = np.arange(4)  # each alone in its class
    assert folds_seen(np.full((4, 4), 0.25), targets, 4) == pytest.approx((np.exp(0.2), 0.2), abs=0.06)


def test_each_label_is_left_out_once_and_each_class_of_every_fold():
    targets = np.repeat([0, 1], [20, 5])
    asked, kept = [], []

    def predict(seen, left_out):
        asked.extend(left_out)
        kept.append(np.bincount(targets[seen], minlength=2))
        assert not set(seen) & set(left_out)
        return np.full((len(left_out), 2), 0.5)

    found_calibration(predict, targets, 2, np.random.default_rng(3))
    assert sorted(asked) == list(range(25))
    np.testing.assert_array_equal(kept, [[16, 4]] * 5)


def test_two_thousand_labels_are_enough(rng):
    targets, folds = rng.integers(2, size=11_000), []

    def predict(seen, left_out):
        assert len(seen) + len(left_out) == 11_000
        folds.append(len(left_out))
        return np.full((len(left_out), 2), 0.5)

    found_calibration(predict, targets, 2, rng)
    assert folds == [2200]
