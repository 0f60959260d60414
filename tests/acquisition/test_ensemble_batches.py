"""Batches under any ensemble, by regrets in configurations of labels, against the definition."""

from itertools import product

import numpy as np
import pytest

from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, NormalEnsemble, SquaredError
from stakes.acquisition.ensemble_batches import EnsembleBatch, repeated, variance_of


def definition(loss, belief, batch):
    """The regret of today's action over all labels of a batch, averaged over contexts."""
    expected = belief.contexts @ loss.statistics(np.eye(3))  # [M, K, D]
    action = loss.action(np.einsum("k,mkd->md", belief.member_weights, expected))
    total = 0.0
    for labels in product(range(3), repeat=len(batch)):
        each = [belief.candidates[i, :, y] for i, y in zip(batch, labels, strict=True)]
        mass = belief.member_weights * np.prod(each, axis=0)
        total += loss.regret(np.einsum("k,mkd->md", mass, expected), action).mean()
    return total


@pytest.mark.parametrize("loss", [LogLoss([1, 5, 2]), BrierLoss(), CostMatrix([[0, 2, 9], [1, 0, 9], [5, 5, 0]])])
def test_labels_of_classes_are_enumerated(rng, loss):
    soft = rng.dirichlet(np.full(3, 0.5), (9, 7))
    belief = CategoricalEnsemble(soft[:4], soft[4:], rng.uniform(1, 2, 7))
    batch = EnsembleBatch(loss, belief, np.full(5, -np.log(5.0)), rng, 4096)
    for taken in ((), (2,), (2, 0)):
        wanted = [definition(loss, belief, (*taken, i)) for i in range(4)]
        np.testing.assert_allclose(np.exp(batch.log_reductions()), wanted, rtol=1e-9)
        batch.add((2, 0, 1)[len(taken)])
    assert batch.method == "enumerated"


def test_cells_of_numbers_are_sampled_when_they_are_many(rng):
    belief = NormalEnsemble(rng.standard_normal((4, 3)), 1.0, rng.standard_normal((2, 3)), 0.1)
    batch = EnsembleBatch(SquaredError(), belief, np.full(2, -np.log(2.0)), rng, 20)
    assert batch.add(0) == 0.0
    assert batch.method == "sampled"
    assert batch.add(1) > 0.0
    assert batch.configurations.shape[0] == 20
    assert batch.repeats == ()


def test_repeats_of_a_label_are_counts(rng):
    outcomes = np.swapaxes(rng.dirichlet(np.ones(2), (3, 4)), 1, 2)  # [n, J, K]
    twice = repeated(outcomes, 2)  # both the last, one of each, both the first
    np.testing.assert_allclose(twice.sum(axis=1), 1.0)
    both = {tuple(np.round(row, 12)) for row in twice[0]}
    wanted = (outcomes[0, 0] ** 2, 2 * outcomes[0, 0] * outcomes[0, 1], outcomes[0, 1] ** 2)
    assert both == {tuple(np.round(row, 12)) for row in wanted}


def test_the_loss_of_the_variance(rng):
    soft = rng.dirichlet(np.ones(3), (2, 4))
    assert variance_of(CategoricalEnsemble(soft, soft)) == BrierLoss()
    assert variance_of(NormalEnsemble([[0.0, 1.0]], 1.0, [[0.0, 1.0]], 1.0)) == SquaredError()
