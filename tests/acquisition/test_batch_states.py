"""Batches under Gaussian beliefs, whose covariances are kept up to date pick by pick, against full solves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import GaussianBelief, LogWarp, SquaredError, WarpedGaussianBelief, Weight, score, select
from stakes.acquisition import batch_states as gaussian_batches
from stakes.acquisition.batch_states import GaussianBatch

N, M, NOISE = 40, 7, 0.2
SIGMOID = Weight(lambda z: 1 / (1 + np.exp(-2 * z)))


def covariances(seed):
    """Of f at N candidates and M contexts."""
    mixing = np.random.default_rng(seed).standard_normal((N + M, 12)) / 3
    return mixing @ mixing.T


def gaussian(latent, asarray=np.asarray):
    labels = latent[:N, :N] + NOISE * np.eye(N)
    parts = np.linspace(-1, 1, M), np.diag(latent)[N:], np.diag(labels), latent[:N, N:]
    return GaussianBelief(*(asarray(np.array(each)) for each in parts), lambda i: asarray(labels[i]))


def slow_picks(loss, latent, count):
    """Greedy by a full solve for every batch that is looked at."""
    labels, chosen = latent[:N, :N] + NOISE * np.eye(N), []
    for _ in range(count):
        batches = [[*chosen, i] for i in range(N)]
        removed = [
            np.zeros(M)
            if batch[-1] in chosen
            else (latent[batch, N:] * np.linalg.solve(labels[np.ix_(batch, batch)], latent[batch, N:])).sum(0)
            for batch in batches
        ]
        each = GaussianBelief(np.linspace(-1, 1, M), np.diag(latent)[N:], np.ones(N), np.sqrt(removed))
        chosen.append(int(np.argmax(score(loss, each))))
    return tuple(chosen)


@pytest.mark.parametrize("pairs", [1, 5 * M, 2**17])
@pytest.mark.parametrize("loss", [SquaredError(), SquaredError(SIGMOID)], ids=["plain", "sigmoid"])
def test_picks_are_those_of_full_solves_whatever_the_blocks(loss, pairs, monkeypatch):
    monkeypatch.setattr(gaussian_batches, "_PAIRS", pairs)
    latent = covariances(0)
    assert select(loss, gaussian(latent), n=12).indices == slow_picks(loss, latent, 12)


def test_every_array_library_picks_the_same(xp, monkeypatch):
    monkeypatch.setattr(gaussian_batches, "_PAIRS", 8 * M)
    latent = covariances(1)
    belief = gaussian(latent, xp.asarray)
    assert select(SquaredError(), belief, n=9).indices == slow_picks(SquaredError(), latent, 9)


def test_a_batch_leaves_the_belief_as_it_was():
    belief = gaussian(covariances(2))
    before = belief.covariance.copy()
    first, again = (select(SquaredError(), belief, n=10).indices for _ in range(2))
    np.testing.assert_array_equal(belief.covariance, before)
    assert first == again


@given(seed=st.integers(0, 50), adds=st.lists(st.integers(0, N - 1), max_size=6), asked=st.lists(st.booleans()))
def test_when_a_batch_is_asked_makes_no_difference(seed, adds, asked):
    belief = gaussian(covariances(seed))
    log_weights = np.full(M, -np.log(M))
    batch, later = (GaussianBatch(SquaredError(), belief, log_weights) for _ in range(2))
    for place, candidate in enumerate(adds):
        if place < len(asked) and asked[place]:
            batch.log_reductions()
        batch.add(candidate)
        later.add(candidate)
    np.testing.assert_allclose(batch.log_reductions(), later.log_reductions(), rtol=1e-10)
    np.testing.assert_allclose(batch.log_reductions()[3], later.log_reduction(3), rtol=1e-10)
    np.testing.assert_allclose(batch.variance_gains(), later.variance_gains(), rtol=1e-9, atol=1e-12)


def test_pending_labels_and_warps_go_by_the_same_covariances():
    latent = covariances(3)
    chosen = slow_picks(SquaredError(), latent, 6)
    assert select(SquaredError(), gaussian(latent), n=3, pending=chosen[:3]).indices == chosen[3:]
    warped = WarpedGaussianBelief(gaussian(latent), LogWarp())
    batch = GaussianBatch(SquaredError(), warped, np.full(M, -np.log(M)))
    batch.log_reductions()
    for candidate in chosen:
        batch.add(candidate)
    np.testing.assert_allclose(batch.log_reductions()[0], batch.log_reduction(0), rtol=1e-10)
