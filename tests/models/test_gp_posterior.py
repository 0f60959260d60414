"""Covariances within what variances allow, compiled or not, and beliefs that do not depend on blocks."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes._utils.compute import has_jit
from stakes.models import GaussianProcess
from stakes.models import gp_posterior as posterior_belief
from stakes.models.gp_posterior import bounded
from tests.models.regression_cases import data

JIT = [pytest.param("1", marks=pytest.mark.skipif(not has_jit(), reason="numba is not installed")), "0"]


@pytest.mark.parametrize("jit", JIT)
@given(seed=st.integers(0, 1000), n=st.integers(1, 20), m=st.integers(1, 40))
def test_covariances_are_kept_to_what_variances_allow(jit, seed, n, m):
    rng = np.random.default_rng(seed)
    covariance, variance, known = rng.normal(size=(n, m)), rng.uniform(size=n), rng.integers(0, 2, size=m) * 1.0
    most = np.sqrt(variance)[:, None] * np.sqrt(known)
    wanted, out = np.clip(covariance, -most, most), np.empty((n, m))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAKES_JIT", jit)
        patch.setattr("stakes._utils.compute._WORTH_FETCHING", 0)
        bounded(covariance, variance, known, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-15)


def test_a_belief_can_be_sent_to_another_process(rng):
    rows, labels, pool, contexts = data(rng)
    belief = GaussianProcess().fit(rows, labels).belief(pool, contexts, joint=True)
    sent = pickle.loads(pickle.dumps(belief))
    np.testing.assert_array_equal(sent.candidate_covariance(4), belief.candidate_covariance(4))


@pytest.mark.parametrize(("block", "pairs"), [(1, 1), (4, 11), (3, 2**17)])
def test_blocks_do_not_show(block, pairs, rng, monkeypatch):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcess().fit(rows, labels)
    whole = process.belief(pool, contexts, joint=True)
    monkeypatch.setattr(posterior_belief, "_ROWS", block)
    monkeypatch.setattr(posterior_belief, "_PAIRS", pairs)
    parts = process.belief(pool, contexts, joint=True)
    for name in ("variance", "candidate_variance", "covariance", "noise_variance"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(parts.candidate_covariance(4), whole.candidate_covariance(4), rtol=1e-12, atol=1e-14)
