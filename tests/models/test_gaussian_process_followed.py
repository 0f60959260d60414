"""A process followed at fixed rows, against one that is fitted afresh with the same hyperparameters."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from stakes import SquaredError, score, select
from stakes.models import GaussianProcess, Hyperparameters, follow
from tests.models.regression_cases import data

VALUES = Hyperparameters(linear=0.5, signal=1.2, length=1.5, noise=0.3, mean=2.0)


def assert_same(belief, wanted, rtol=1e-9):
    scale = np.max(wanted.candidate_variance)
    np.testing.assert_allclose(belief.mean, wanted.mean, rtol=rtol, atol=1e-9)
    for name in ("variance", "candidate_variance", "covariance", "noise_variance"):
        np.testing.assert_allclose(getattr(belief, name), getattr(wanted, name), rtol=rtol, atol=1e-9 * scale)


def test_fifty_labels_in_a_row_are_a_fresh_fit(rng):
    rows, labels, pool, contexts = data(rng, n=70)
    followed = follow(GaussianProcess(VALUES).fit(rows[:20], labels[:20]), pool, contexts)
    for i in range(20, 70):
        followed = followed.condition(rows[i : i + 1], labels[i : i + 1])
    fresh = GaussianProcess(VALUES).fit(rows, labels)
    np.testing.assert_allclose(followed.process.factor_, fresh.factor_, atol=1e-10)
    for target in ("label", "latent"):
        belief, wanted = (each(target=target, joint=True) for each in (followed.belief, _of(fresh, pool, contexts)))
        assert_same(belief, wanted)
        np.testing.assert_allclose(belief.candidate_covariance(3), wanted.candidate_covariance(3), atol=1e-9)
        assert select(SquaredError(), belief, n=3).indices == select(SquaredError(), wanted, n=3).indices


def _of(process, pool, contexts):
    return lambda **asked: process.belief(pool, contexts, **asked)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), size=st.integers(1, 5), copies=st.integers(1, 3))
def test_repeated_rows_and_several_at_once(seed, size, copies):
    rng = np.random.default_rng(seed)
    rows, labels, pool, contexts = data(rng, n=12)
    more, values = np.repeat(pool[:size], copies, axis=0), rng.normal(size=size * copies)
    followed = follow(GaussianProcess(VALUES).fit(rows, labels), pool, contexts).condition(more, values)
    fresh = GaussianProcess(VALUES).fit(np.concatenate([rows, more]), np.concatenate([labels, values]))
    assert_same(followed.belief(), fresh.belief(pool, contexts))


def test_a_repeated_row_without_noise_starts_over(rng):
    rows, labels, pool, contexts = data(rng)
    exact = Hyperparameters(linear=0.0, signal=1.0, length=1.0, noise=0.0, mean=0.0)
    followed = follow(GaussianProcess(exact).fit(rows, labels), pool, contexts)
    with pytest.warns(UserWarning, match="numerically singular"):
        after = followed.condition(rows[:1], labels[:1])
    assert after.process.jitter_ > 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fresh = GaussianProcess(exact).fit(np.concatenate([rows, rows[:1]]), np.append(labels, labels[0]))
    assert_same(after.belief(), fresh.belief(pool, contexts), rtol=1e-6)


def test_what_was_followed_is_left_as_it_was(rng):
    rows, labels, pool, contexts = data(rng)
    followed = follow(GaussianProcess(VALUES).fit(rows, labels), pool, contexts)
    before = score(SquaredError(), followed.belief())
    after = score(SquaredError(), followed.condition(pool[:1], [3.0]).belief())
    np.testing.assert_array_equal(score(SquaredError(), followed.belief()), before)
    assert after[0] < 0.9 * before[0]
    with pytest.raises(ValueError, match="features"):
        followed.condition(pool[:1, :1], [3.0])
    np.testing.assert_array_equal(score(SquaredError(), followed.belief()), before)


def test_a_process_that_is_not_fitted_cannot_be_followed(rng):
    _, _, pool, contexts = data(rng)
    with pytest.raises(NotFittedError):
        follow(GaussianProcess(), pool, contexts)
