"""Ensembles and losses that sums over centred members are tested on."""

from __future__ import annotations

import os

import numpy as np
import pytest

from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, ZeroOne, expected_regret
from stakes.beliefs import Belief

torch = pytest.importorskip("torch", reason="torch is an extra")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CUDA = torch.cuda.is_available() and not INTERPRETED
DEVICE = "cuda" if CUDA else "cpu"

LOSSES = {
    "log loss": lambda c: LogLoss(),
    "weighted log loss": lambda c: LogLoss([50.0, *[1.0 + i for i in range(c - 1)]]),
    "class of no weight": lambda c: LogLoss([0.0, *[1.0] * (c - 1)]),
    "Brier": lambda c: BrierLoss(),
    "weighted Brier": lambda c: BrierLoss([1.0] * (c - 1) + [20.0]),
    "costs": lambda c: CostMatrix(np.arange(c)[:, None] * np.array([0.0, 0.5, 1.5]) + np.array([1.0, 0.7, 0.0])),
    "zero-one": lambda c: ZeroOne(),
}


def ensemble(n, m, k, c, spread, seed=0, weights=None, dtype=None):
    rng = np.random.default_rng(seed)
    sides = [rng.dirichlet(np.full(c, spread), (size, k)) for size in (n, m)]
    return CategoricalEnsemble(
        *(torch.asarray(each, device=DEVICE).to(dtype or torch.float64) for each in sides), weights
    )


def exact(loss, belief: Belief, shares):
    """[N]: by the general route in float64."""
    wide = CategoricalEnsemble(belief.candidates.double(), belief.contexts.double(), belief.member_weights.double())
    return torch.matmul(expected_regret(loss, wide), shares)


def shares_of(count, seed=0):
    shares = torch.asarray(np.random.default_rng(seed).random(count) + 0.1, device=DEVICE)
    return shares / shares.sum()


def close(found, wanted, tolerance):
    np.testing.assert_allclose(found.cpu(), wanted.cpu(), atol=tolerance * float(wanted.max()) + 1e-14, rtol=0)


def rounded(probabilities):
    """In float16, in steps that it has, so that they still sum to one."""
    steps = torch.floor(probabilities * 1024) / 1024
    steps[..., 0] += 1 - steps.sum(-1)
    return steps.to(torch.float16)
