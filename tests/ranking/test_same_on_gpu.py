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
Dropout = pytest.importorskip("stakes.models.networks").Dropout
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROUNDS, LABELS = 5, 4
TOLERANCE = {"classes": 1e-3, "reals": 1e-9}  # relative: products in float16, and all in float64


def trained(rows, labels):
    """A few layers, trained on the CPU whoever asks."""
    layers = torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(32, 10)
    network = torch.nn.Sequential(*layers)
    steps = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(40):
        steps.zero_grad()
        torch.nn.functional.cross_entropy(network(rows), labels).backward()
        steps.step()
    return network


def several(rows, labels):
    """Six networks: a kernel in float32, as members are few."""
    return [trained(rows, labels) for _ in range(6)]


def masked(rows, labels):
    """One under forty masks: a kernel in float16."""
    return Dropout(trained(rows, labels), draws=40)


def placed(model, place):
    """The same model on a device."""
    if isinstance(model, list):
        return [deepcopy(each).to(place) for each in model]
    return Dropout(deepcopy(model.module).to(place), draws=40)


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
@pytest.mark.parametrize("made", [several, masked])
def test_classes(loss, made):
    images, digits = load_digits(return_X_y=True)
    images, digits = torch.asarray(images / 16.0, dtype=torch.float32), torch.asarray(digits)
    known, pool = list(range(20)), np.arange(20, 420)
    for step in range(ROUNDS):
        torch.manual_seed(step)
        model, contexts = made(images[known], digits[known]), images[500:620]
        answers = [
            rank(placed(model, place), loss, images[pool], contexts=contexts, n=len(pool)) for place in ("cpu", DEVICE)
        ]
        assert DEVICE == "cpu" or "fused kernel" in str(answers[1])
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
        answers = [rank(model, loss, rows[pool], contexts=rows[250:], n=len(pool)) for model in models]
        check_same(*answers, LABELS, TOLERANCE["reals"])
        bought = pool[list(answers[0].indices)[:LABELS]]
        known, pool = [*known, *bought.tolist()], np.setdiff1d(pool, bought)
    assert len(known) == 10 + ROUNDS * LABELS
