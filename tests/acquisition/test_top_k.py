"""Candidates that come in blocks are ranked as if they were all there."""

from __future__ import annotations

import numpy as np
import pytest

from stakes import BrierLoss, CategoricalEnsemble, GaussianBelief, LogLoss, SquaredError, VoteEnsemble, ZeroOne, score
from stakes.acquisition import best_streamed


def probabilities(n, seed, k=6, c=3):
    return np.random.default_rng(seed).dirichlet(np.ones(c), (n, k))


def beside(values, like):
    return values if isinstance(like, np.ndarray) else type(like).new_tensor(like, values)


@pytest.fixture(params=["numpy", "torch", "cuda"])
def contexts(request):
    table = probabilities(7, seed=0)
    if request.param == "numpy":
        return table
    torch = pytest.importorskip("torch", reason="torch is an extra")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    return torch.asarray(table, device="cpu" if request.param == "torch" else "cuda")


def on_host(array):
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


@pytest.mark.parametrize("block", [None, 1, 7, 100])
@pytest.mark.parametrize("loss", [LogLoss(), LogLoss([5.0, 1.0, 1.0]), BrierLoss()])
def test_the_best_are_those_of_all(contexts, loss, block):
    rows = probabilities(41, seed=1)
    belief = CategoricalEnsemble(contexts[:1, ...], contexts)
    found = best_streamed(loss, belief, rows, n=5, block=block)
    scores = score(loss, CategoricalEnsemble(rows, on_host(contexts)))
    tolerance = 1e-3 if "cuda" in str(getattr(contexts, "device", "")) else 1e-12
    assert found.n_scored == 41
    np.testing.assert_array_equal(on_host(found.positions), np.argsort(-scores, kind="stable")[:5])
    np.testing.assert_allclose(on_host(found.scores), np.sort(scores)[::-1][:5], rtol=tolerance)


def test_candidates_in_half_precision_are_scored_in_single(contexts):
    rows = np.round(probabilities(20, seed=1, c=3) * 64) / 64
    rows[..., 0] += 1.0 - rows.sum(axis=-1)
    rows = np.maximum(rows, 0.0)
    rows[..., 1] += 1.0 - rows.sum(axis=-1)
    exactly = score(LogLoss(), CategoricalEnsemble(rows, on_host(contexts)))
    belief = CategoricalEnsemble(contexts[:0, ...], contexts)
    found = best_streamed(LogLoss(), belief, rows.astype(np.float16), n=20, block=6)
    np.testing.assert_allclose(on_host(found.scores), np.sort(exactly)[::-1], rtol=2e-3, atol=2e-6)


def test_votes_travel_too(contexts):
    votes = np.random.default_rng(3).integers(0, 3, (30, 6)).astype(np.uint8)
    there = on_host(contexts).argmax(axis=2)
    belief = VoteEnsemble(beside(there[:1], contexts[..., 0]), beside(there, contexts[..., 0]), 3)
    found = best_streamed(LogLoss(), belief, votes, n=3, block=8)
    scores = score(LogLoss(), VoteEnsemble(votes, there.astype(np.uint8), 3))
    np.testing.assert_array_equal(on_host(found.positions), np.argsort(-scores, kind="stable")[:3])


def test_costs_and_weights_of_contexts_count(contexts):
    rows, costs = probabilities(25, seed=4), np.random.default_rng(5).random(25) + 0.5
    weights = np.arange(1.0, 8.0)
    belief = CategoricalEnsemble(contexts[:0, ...], contexts)
    given = weights if isinstance(contexts, np.ndarray) else beside(weights, contexts)
    found = best_streamed(LogLoss(), belief, rows, n=4, context_weights=given, costs=costs, block=9)
    scores = score(LogLoss(), CategoricalEnsemble(rows, on_host(contexts)), context_weights=weights, costs=costs)
    np.testing.assert_array_equal(on_host(found.positions), np.argsort(-scores, kind="stable")[:4])


def test_where_nothing_is_worth_anything_the_first_lead_with_nothing():
    rows = np.repeat(probabilities(8, seed=1, k=1), 3, axis=1)  # members agree
    belief = CategoricalEnsemble(rows[:1], np.repeat(probabilities(3, seed=2, k=1), 3, axis=1))
    found = best_streamed(ZeroOne(), belief, rows, n=2, block=3)
    assert (found.positions.tolist(), found.scores.tolist()) == ([0, 1], [0.0, 0.0])


def test_of_equal_candidates_the_first_lead():
    rows = np.repeat(probabilities(1, seed=1), 12, axis=0)
    belief = CategoricalEnsemble(rows[:1], probabilities(3, seed=2))
    assert on_host(best_streamed(LogLoss(), belief, rows, n=4, block=5).positions).tolist() == [0, 1, 2, 3]


def test_a_memory_map_is_read_block_by_block(tmp_path):
    rows = probabilities(50, seed=6)
    np.save(tmp_path / "rows.npy", rows)
    belief, shown = CategoricalEnsemble(rows[:1], probabilities(3, seed=2)), []
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    found = best_streamed(LogLoss(), belief, mapped, n=2, block=20, progress=lambda what, share: shown.append(share))
    np.testing.assert_allclose(found.scores, best_streamed(LogLoss(), belief, rows, n=2).scores, rtol=1e-13)
    assert shown == [0.4, 0.8, 1.0]


@pytest.mark.parametrize("kind", ["read-only", "backwards", "bytes in another order", "with gradients"])
def test_memory_of_any_kind_is_taken(contexts, kind):
    rows = probabilities(11, seed=6)
    belief = CategoricalEnsemble(contexts[:0, ...], contexts)
    wanted = on_host(best_streamed(LogLoss(), belief, rows, n=3, block=4).positions)
    if kind == "read-only":
        given = rows.copy()
        given.flags.writeable = False
    elif kind == "backwards":
        given = rows[::-1].copy()[::-1]
    elif kind == "with gradients":
        given = pytest.importorskip("torch", reason="torch is an extra").asarray(rows.copy()).requires_grad_()
    else:
        given = rows.astype(rows.dtype.newbyteorder())
        if "cuda" in str(getattr(contexts, "device", "")):
            pytest.skip("pinned memory has the order of the machine")
    np.testing.assert_array_equal(on_host(best_streamed(LogLoss(), belief, given, n=3, block=4).positions), wanted)


@pytest.mark.parametrize("block", [0, -1, 2.5, True])
def test_a_block_is_a_number_of_candidates(block):
    rows = probabilities(5, seed=1)
    with pytest.raises(ValueError, match="block must be a whole number of candidates, 1 or more; got"):
        best_streamed(LogLoss(), CategoricalEnsemble(rows[:1], rows), rows, block=block)


def test_what_cannot_be_streamed_is_refused():
    rows = probabilities(5, seed=1)
    belief = CategoricalEnsemble(rows[:1], rows)
    with pytest.raises(ValueError, match=r"candidates must be an array \['N', 6, 3\] as the contexts are"):
        best_streamed(LogLoss(), belief, rows[:, :2])
    with pytest.raises(ValueError, match="with a row at least; got list"):
        best_streamed(LogLoss(), belief, rows.tolist())
    with pytest.raises(ValueError, match=r"one number for each of the 5 candidates; got \[2\]"):
        best_streamed(LogLoss(), belief, rows, costs=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"one number for each of the 5 candidates; got \[\]"):
        best_streamed(LogLoss(), belief, rows, costs=2.0)
    with pytest.raises(ValueError, match="n must be a whole number, 1 or more"):
        best_streamed(LogLoss(), belief, rows, n=0)
    with pytest.raises(ValueError, match="candidates must hold probabilities that sum to one"):
        best_streamed(LogLoss(), belief, rows * 0.5)
    gaussian = GaussianBelief(np.zeros(1), np.ones(1), np.ones(1), np.zeros((1, 1)))
    with pytest.raises(TypeError, match="streamed to a CategoricalEnsemble or a VoteEnsemble; got GaussianBelief"):
        best_streamed(SquaredError(), gaussian, rows)
