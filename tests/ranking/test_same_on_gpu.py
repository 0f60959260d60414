"""A campaign on a GPU chooses the rows that one on the CPU does, where scores differ by more than they are rounded."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from stakes import CostMatrix, LogLoss, SquaredError, Weight, rank
from stakes.models import OnDevice

torch = pytest.importorskip("torch", reason="torch is an extra")
NetworkEnsemble = pytest.importorskip("stakes.models.networks").NetworkEnsemble
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROUNDS, LABELS = 5, 4
TOLERANCE = {"classes": 1e-3, "reals": 1e-9}  # relative: products in float16, and all in float64


def networks(rows, labels, seed=0):
    """A few layers for each of six members, trained on the CPU whoever asks."""
    torch.manual_seed(seed)
    members = []
    for _ in range(6):
        member = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10))
        steps = torch.optim.Adam(member.parameters(), lr=0.03)
        for _ in range(40):
            steps.zero_grad()
            torch.nn.functional.cross_entropy(member(rows), labels).backward()
            steps.step()
        members.append(member)
    return members


def chosen(ranking, count):
    """Rows and scores, best first."""
    return list(ranking.indices)[:count], np.array(ranking.scores)


def check_same(first, second, count, tolerance):
    """The same rows, but for those whose scores are as good as equal."""
    (rows, scores), (others, other_scores) = (chosen(each, count) for each in (first, second))
    np.testing.assert_allclose(other_scores[:count], scores[:count], rtol=tolerance)
    kth = scores[count - 1]
    known = dict(zip(first.indices, scores, strict=True))
    for row in set(rows) ^ set(others):
        assert known[row] == pytest.approx(kth, rel=2 * tolerance)


@pytest.mark.parametrize(
    "loss", [LogLoss([20.0] + [1.0] * 9), CostMatrix(1.0 - np.eye(10) + 4.0 * np.eye(10, k=1))], ids=["log", "costs"]
)
def test_classes(loss):
    images, digits = load_digits(return_X_y=True)
    images, digits = torch.asarray(images / 16.0, dtype=torch.float32), torch.asarray(digits)
    known, pool = list(range(20)), np.arange(20, 420)
    for step in range(ROUNDS):
        members, rows = networks(images[known], digits[known], seed=step), (images[pool], images[500:560])
        answers = [
            rank(NetworkEnsemble([deepcopy(each).to(place) for each in members]), loss, *rows, n=len(pool))
            for place in ("cpu", DEVICE)
        ]
        check_same(*answers, LABELS, TOLERANCE["classes"])
        bought = pool[list(answers[0].indices)[:LABELS]]
        known, pool = [*known, *bought.tolist()], np.setdiff1d(pool, bought)
    assert len(known) == 20 + ROUNDS * LABELS


@pytest.mark.parametrize("loss", [SquaredError(), SquaredError(Weight(lambda z: 1.0 + z**2))], ids=["plain", "weight"])
def test_reals(loss):
    rng = np.random.default_rng(0)
    rows = rng.random((300, 2))
    labels = np.sin(5 * rows[:, 0]) + rows[:, 1] ** 2
    known, pool = list(range(10)), np.arange(10, 250)
    kernel = ConstantKernel(1.0, "fixed") * RBF(0.4, "fixed") + WhiteKernel(0.01, "fixed")
    for _ in range(ROUNDS):
        process = GaussianProcessRegressor(kernel).fit(rows[known], labels[known])
        models = (process, OnDevice(process, device=DEVICE))
        answers = [rank(model, loss, rows[pool], rows[250:], n=len(pool)) for model in models]
        check_same(*answers, LABELS, TOLERANCE["reals"])
        bought = pool[list(answers[0].indices)[:LABELS]]
        known, pool = [*known, *bought.tolist()], np.setdiff1d(pool, bought)
    assert len(known) == 10 + ROUNDS * LABELS
