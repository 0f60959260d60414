"""What masses of classes leave uncertain, beside the expected loss of the general route."""

import numpy as np
import pytest

from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, SphericalLoss, ZeroOne, expected_reduction
from stakes.acquisition import class_batches
from stakes.acquisition.class_batches import is_known, quadratic_gain_of, uncertainty_of
from stakes.acquisition.forms import MemberTable

COSTS = CostMatrix([[0, 2, 9], [1, 0, 9], [5, 5, 0]])
LOSSES = [LogLoss(), LogLoss([1, 50, 2]), BrierLoss(), BrierLoss([1, 5, 2]), COSTS, ZeroOne()]
WEIGHTS = np.arange(1.0, 6.0) / 15.0


@pytest.fixture
def belief(rng):
    soft = rng.dirichlet(np.full(3, 0.4), (13, 9))
    return CategoricalEnsemble(soft[:8], soft[8:], rng.uniform(1, 2, 9))


def measured(loss, belief):
    """The uncertainty of all contexts, in units of the loss."""
    table = MemberTable.of(loss, belief)
    places, share = np.arange(belief.n_contexts), WEIGHTS * np.exp(table.log_scale)
    return uncertainty_of(loss, table, places, share, table.today(belief)), quadratic_gain_of(
        loss, table, places, share
    )


def outcomes(belief):
    return np.ascontiguousarray(np.swapaxes(belief.candidates, 1, 2))


@pytest.mark.parametrize("cells", [1, 100, 2**17])
@pytest.mark.parametrize("loss", LOSSES)
def test_gains_are_expected_reductions(loss, belief, cells, monkeypatch):
    monkeypatch.setattr(class_batches, "_CELLS", cells)
    found, square = measured(loss, belief)
    wanted = expected_reduction(loss, belief)  # [N, M]
    rows = belief.member_weights[None, :]
    np.testing.assert_allclose(found.gains(outcomes(belief), rows), wanted @ WEIGHTS, rtol=1e-10, atol=1e-15)
    by_context = found.by_context(outcomes(belief)[2], rows)
    np.testing.assert_allclose(by_context[0], wanted[2] * WEIGHTS, rtol=1e-9, atol=1e-15)
    assert (square is None) == (loss != BrierLoss())
    if square is not None:
        np.testing.assert_allclose(square.gains(outcomes(belief), rows), wanted @ WEIGHTS, rtol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_configurations_add_up_and_members_without_weight_do_not_count(loss, belief, monkeypatch):
    monkeypatch.setattr(class_batches, "_CELLS", 16)  # one configuration at a time
    rows = np.zeros((4, 9))
    rows[0, :2], rows[1, 2:5], rows[2, 5], rows[3, 6:] = 0.3, 0.1, 0.05, 0.02
    found, square = measured(loss, belief)
    each = sum(found.gains(outcomes(belief), row[None, :]) for row in rows)
    np.testing.assert_allclose(found.gains(outcomes(belief), rows), each, rtol=1e-9, atol=1e-14)
    assert np.all(found.gains(outcomes(belief), rows[2:3]) < 1e-14)  # one member, of whom labels tell nothing
    if square is not None:
        np.testing.assert_allclose(square.gains(outcomes(belief), rows), each, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_is_near(loss, belief):
    found, square = measured(loss, belief)
    rows = belief.member_weights[None, :]
    for each in (found, square):
        if each is not None:
            exact = each.gains(outcomes(belief), rows)
            np.testing.assert_allclose(each.in_single().gains(outcomes(belief), rows), exact, atol=1e-5 * exact.max())


def test_some_contexts_with_scales(belief):
    found, _ = measured(LogLoss(), belief)
    some = found.of_some(np.array([1, 3]), np.array([2.0, 0.5]))
    rows = belief.member_weights[None, :]
    wanted = expected_reduction(LogLoss(), belief)[:, [1, 3]] @ (WEIGHTS[[1, 3]] * [2.0, 0.5])
    np.testing.assert_allclose(some.gains(outcomes(belief), rows), wanted, rtol=1e-9)


def test_losses_that_are_not_known_here(belief):
    assert not is_known(SphericalLoss())
    assert measured(SphericalLoss(), belief) == (None, None)
