"""Scores of tensors by curves, summed over contexts, are those of NumPy; chunks of a pool share their curves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stakes import AccuracyWarning, ExponentialWeight, GaussianBelief, Linex, SquaredError, Weight, find_form, score
from stakes._utils.array import at_once, replaced
from stakes.acquisition import curves as curve_totals
from stakes.acquisition import profile
from stakes.acquisition.scores import prepare_score
from stakes.losses import ThresholdDecision

torch = pytest.importorskip("torch", reason="torch is not installed")


def sigmoid(z):
    return 1.0 / (1.0 + (torch if isinstance(z, torch.Tensor) else np).exp(-2.0 * z))


LOSSES = {
    "squared": SquaredError(),
    "exponential": SquaredError(ExponentialWeight(0.7)),
    "linex": Linex(0.4),
    "linex, exponential": Linex(-0.4, ExponentialWeight(0.2)),
    "sigmoid": SquaredError(Weight(sigmoid)),
    "shares that are far apart": SquaredError(ExponentialWeight(700.0)),
}


def beliefs(rng, n_candidates=12, n_contexts=7):
    """The same in NumPy and in torch."""
    mixing = rng.standard_normal((n_candidates + n_contexts, 4))
    covariance = mixing @ mixing.T
    variance = np.diag(covariance)
    given = rng.standard_normal(n_contexts), variance[n_candidates:], variance[:n_candidates] + 0.5
    given = *given, covariance[:n_candidates, n_candidates:]
    return GaussianBelief(*given), GaussianBelief(*(torch.as_tensor(each.copy()) for each in given))


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=8)
@given(seed=st.integers(0, 1000), sizes=st.tuples(st.integers(0, 15), st.integers(1, 9)))
def test_scores_are_those_of_numpy(name, seed, sizes):
    rng, loss = np.random.default_rng(seed), LOSSES[name]
    host, tensors = beliefs(rng, *sizes)
    weights = rng.uniform(0.0, 1.0, sizes[1]) * (np.arange(sizes[1]) != 1) + 1e-300
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curve_totals, "_WRITTEN", 8)
        found, scale = score(loss, tensors, context_weights=weights.tolist(), return_log_scale=True)
    wanted, log_scale = score(loss, host, context_weights=weights.tolist(), return_log_scale=True)
    assert scale == pytest.approx(log_scale, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-12)


def test_only_tensors_are_summed_so():
    host, tensors = beliefs(np.random.default_rng(0))
    for loss in LOSSES.values():
        assert find_form(loss, host).total is None
        assert find_form(loss, tensors).total is not None
        assert find_form(loss, host).name == find_form(loss, tensors).name
    switching = ThresholdDecision(0.0, 1.0, 2.0)
    assert find_form(switching, tensors).total is None


@pytest.fixture
def tabulated(monkeypatch):
    """Posterior sds at which curves were tabulated, in order."""
    seen, interpolated = [], profile.interpolated

    def noted(values, enough, low, *more):
        seen.append(low)
        return interpolated(values, enough, low, *more)

    monkeypatch.setattr(profile, "interpolated", noted)
    return seen


def test_chunks_of_a_pool_share_their_curves(tabulated):
    rng, loss = np.random.default_rng(1), SquaredError(Weight(sigmoid))
    host, tensors = beliefs(rng, 40, 6)
    parts = [tensors.take(slice(start, start + 10), slice(None)) for start in range(0, 40, 10)]
    scored = prepare_score(loss)
    found = torch.cat([torch.exp(torch.log(scores) + scale) for scores, scale in map(scored, parts)])
    assert len(tabulated) == len(set(tabulated))  # each start once
    np.testing.assert_allclose(found.numpy(), score(loss, host), rtol=1e-6)
    tabulated.clear()
    again = torch.cat([torch.exp(torch.log(scores) + scale) for scores, scale in map(scored, parts)])
    assert tabulated == []
    assert torch.equal(again, found)


def test_a_chunk_that_reaches_further_has_its_own_curves(tabulated):
    loss, (host, tensors) = SquaredError(Weight(sigmoid)), beliefs(np.random.default_rng(1), 40, 6)
    nearly = np.sqrt(host.variance * 0.9999)[None, :]  # labels that all but tell the targets
    scored = prepare_score(loss, context_weights=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    scored(replaced(tensors, covariance=0.05 * tensors.covariance))
    far = replace(host, candidate_variance=np.ones(1), covariance=nearly)
    on_torch = GaussianBelief(*(torch.as_tensor(each.copy()) for each in (far.mean, far.variance, np.ones(1), nearly)))
    scores, scale = scored(on_torch)
    assert tabulated == [0.9, 0.0]
    wanted = score(loss, far, context_weights=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    np.testing.assert_allclose(np.exp(scale) * scores.numpy(), wanted, rtol=1e-6)


def test_what_has_changed_is_tabulated_anew(tabulated):
    slope = [1.0]
    loss = SquaredError(Weight(lambda z: 1.0 / (1.0 + torch.exp(-slope[0] * z))))
    _, tensors = beliefs(np.random.default_rng(2))
    first = score(loss, tensors)
    slope[0] = 3.0  # a weight may look at what it likes
    second = score(loss, tensors)
    tensors.mean.add_(1.0)
    third = score(loss, tensors)
    assert len(tabulated) == 3
    assert not torch.equal(first, second)
    assert not torch.equal(second, third)
    other = SquaredError(Weight(sigmoid))
    score(other, tensors)
    assert len(tabulated) == 4


def test_doubts_are_reported_each_time():
    jump = SquaredError(Weight(lambda z: 1.0 + 0.9 * torch.sin(1e6 * z)))
    _, tensors = beliefs(np.random.default_rng(3))
    for _ in range(2):
        with pytest.warns(AccuracyWarning, match="declare where"):
            score(jump, tensors)


class Other:
    """An array elsewhere, as far as blocks are concerned."""

    class device:  # noqa: N801 (as array libraries have it)
        type = "cuda"


def test_blocks_are_larger_on_a_device(monkeypatch):
    assert at_once(np.zeros(1), 100) == at_once(torch.zeros(1), 100) == 100
    monkeypatch.setattr("stakes._utils.array.device", lambda array: array.device)
    assert at_once(Other(), 100) == 2**24


def test_a_loss_that_is_worth_less_than_nothing_is_refused():
    _, tensors = beliefs(np.random.default_rng(4))
    flat = curve_totals.Curves(-torch.ones((2, 7), dtype=torch.float64))
    shares = torch.full((7,), math.log(1.0 / 7.0), dtype=torch.float64)
    with pytest.raises(FloatingPointError, match="none can be negative"):
        curve_totals._log_worths(flat, shares, tensors)
