"""The fused kernels and their blocks against the general route in float64: on the CPU by Triton's interpreter."""

from __future__ import annotations

import os
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, VoteEnsemble, ZeroOne, expected_regret, score
from stakes.acquisition import find_form, fused_form
from stakes.acquisition.centred_blocks import block_numbers, block_sums
from stakes.beliefs import Belief

torch = pytest.importorskip("torch", reason="torch is an extra")
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
if not CUDA:
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: kernels then run line by line on the CPU
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
needs_gpu = pytest.mark.skipif(not CUDA, reason="there is no CUDA device")

LOSSES = {
    "log loss": lambda c: LogLoss(),
    "weighted log loss": lambda c: LogLoss([50.0, *[1.0 + i for i in range(c - 1)]]),
    "class of no weight": lambda c: LogLoss([0.0, *[1.0] * (c - 1)]),
    "Brier": lambda c: BrierLoss(),
    "weighted Brier": lambda c: BrierLoss([1.0] * (c - 1) + [20.0]),
    "costs": lambda c: CostMatrix(np.arange(c)[:, None] * np.array([0.0, 0.5, 1.5]) + np.array([1.0, 0.7, 0.0])),
    "zero-one": lambda c: ZeroOne(),
}
SOME = ("weighted log loss", "costs")
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "tf32": 2e-3, "float32": 2e-5}


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


@pytest.mark.parametrize("name", LOSSES)
@given(st.sampled_from([0.3, 3.0, 300.0]), st.integers(1, 9), st.integers(1, 7), st.integers(1, 6), st.integers(2, 5))
def test_blocks_give_what_the_general_route_gives(name, spread, n, m, k, c):
    loss, belief, shares = LOSSES[name](c), ensemble(n, m, k, c, spread, seed=n + 10 * m), shares_of(m)
    close(block_sums(loss, belief, shares)(belief), exact(loss, belief, shares), 2e-5)


def test_members_with_weights_of_their_own_count_by_them():
    weights = [0.5, 0.3, 0.1, 0.1]
    belief, shares = ensemble(6, 5, 4, 3, 1.0, weights=weights), shares_of(5)
    for name in LOSSES:
        close(block_sums(LOSSES[name](3), belief, shares)(belief), exact(LOSSES[name](3), belief, shares), 2e-5)


def test_large_ensembles_of_tensors_are_scored_in_blocks_and_small_ones_exactly():
    belief = ensemble(130, 330, 3, 10, 1.0)
    form = find_form(LogLoss(), belief)
    if not CUDA:
        assert form.name == "products of centred members in float32, in blocks"
        assert "split moments" in find_form(LogLoss(), ensemble(3, 4, 3, 10, 1.0)).name
    wanted = exact(LogLoss(), belief, torch.full((330,), 1 / 330, dtype=torch.float64, device=DEVICE))
    close(score(LogLoss(), belief, memory_limit=2**24), wanted, 1e-3 if CUDA else 1e-5)
    assert block_numbers(LogLoss(), belief) >= 10 * 10 * 330  # the joint of a candidate


def test_weights_far_apart_are_left_to_the_general_route():
    assert "split moments" in find_form(LogLoss([1e4, *[1.0] * 9]), ensemble(130, 330, 3, 10, 1.0)).name


def test_half_precision_is_for_storage():
    belief = ensemble(4, 5, 6, 3, 1.0, dtype=torch.float32)
    half = CategoricalEnsemble(belief.candidates.double(), belief.contexts.double())
    stored = CategoricalEnsemble(*(_rounded(each) for each in (belief.candidates, belief.contexts)))
    assert stored.like.dtype == torch.float32
    found = score(LogLoss(), stored)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.cpu(), score(LogLoss(), half).cpu(), rtol=0.02)


def _rounded(probabilities):
    """In float16, made of eighths so that they still sum to one."""
    eighths = torch.floor(probabilities * 1024) / 1024
    eighths[..., 0] += 1 - eighths.sum(-1)
    return eighths.to(torch.float16)


@needs_triton
class TestKernels:
    """Launched directly: on the CPU no form would choose them."""

    @pytest.mark.parametrize("name", LOSSES)
    @pytest.mark.parametrize(("sizes", "spread"), [((70, 40, 10, 3), 0.3), ((5, 70, 150, 4), 30.0)])
    @pytest.mark.parametrize("precision", ["float16", "bfloat16", "tf32", "float32"])
    def test_kernels_give_what_the_general_route_gives(self, name, sizes, spread, precision):
        if precision == "bfloat16" and not CUDA:
            pytest.skip("Triton's interpreter reads bfloat16 as whole numbers")
        if precision in ("tf32", "float32") and not CUDA and (sizes[2] > 100 or name not in SOME):
            pytest.skip("slow line by line, and the same kernel there as for float16")
        from stakes.acquisition.fused_torch import member_sums

        loss, belief, shares = LOSSES[name](sizes[3]), ensemble(*sizes, spread), shares_of(sizes[1])
        found = member_sums(loss, belief, shares, precision)(belief)
        close(found, exact(loss, belief, shares), TOLERANCE[precision])

    @pytest.mark.parametrize("name", ["log loss", "weighted log loss", "weighted Brier", "class of no weight"])
    def test_votes_are_counted_exactly(self, name):
        from stakes.acquisition.fused_torch import vote_sums

        rng = np.random.default_rng(1)
        sides = [torch.asarray(rng.integers(0, 3, (n, 150)), device=DEVICE) for n in (40, 20)]  # class 3: no votes
        belief, shares, loss = VoteEnsemble(*sides, n_classes=4), shares_of(20), LOSSES[name](4)
        wanted = torch.matmul(expected_regret(loss, belief), shares)
        np.testing.assert_allclose(vote_sums(loss, belief, shares)(belief).cpu(), wanted.cpu(), rtol=3e-6)

    def test_members_in_half_precision_are_read_as_they_are(self):
        from stakes.acquisition.fused_torch import member_sums

        whole = ensemble(9, 8, 12, 3, 1.0)
        belief = CategoricalEnsemble(_rounded(whole.candidates), _rounded(whole.contexts))
        shares = shares_of(8)
        close(member_sums(LogLoss(), belief, shares, "float16")(belief), exact(LogLoss(), belief, shares), 2e-3)

    def test_a_block_of_no_candidates_has_no_scores(self):
        from stakes.acquisition.fused_torch import member_sums

        belief = ensemble(3, 4, 5, 3, 1.0)
        of = member_sums(LogLoss(), belief, shares_of(4), "float16")
        assert of(belief.take(slice(0, 0), slice(None))).shape == (0,)


def test_a_precision_that_is_not_one_is_refused():
    with pytest.raises(ValueError, match="precision must be one of float16, bfloat16, tf32, float32; got 'double'"):
        fused_form("double")


def test_a_form_that_is_not_meant_for_a_belief_is_refused():
    belief = CategoricalEnsemble(np.full((2, 2, 2), 0.5), np.full((2, 2, 2), 0.5))
    with pytest.raises(ValueError, match="is not meant for LogLoss and this CategoricalEnsemble: leave it out"):
        score(LogLoss(), belief, form=fused_form("tf32"))


def test_the_form_that_would_run_anyway_may_be_given():
    belief = CategoricalEnsemble(np.array([[[0.9, 0.1], [0.1, 0.9]]]), np.array([[[0.8, 0.2], [0.3, 0.7]]]))
    form = find_form(LogLoss(), belief)
    np.testing.assert_array_equal(score(LogLoss(), belief, form=form), score(LogLoss(), belief))


@needs_gpu
@needs_triton
class TestOnAGpu:
    @pytest.mark.parametrize("name", LOSSES)
    @pytest.mark.parametrize("spread", [0.1, 300.0])
    def test_rankings_are_those_of_float64(self, name, spread):
        belief, shares = ensemble(500, 90, 110, 6, spread), None
        loss = LOSSES[name](6)
        wanted = expected_regret(loss, belief).mean(1)
        found = score(loss, belief, shares)
        if float(wanted.max()) > 1e-12:
            assert float(wanted[found.argmax()]) >= 0.999 * float(wanted.max())

    def test_the_form_says_which_kernel_runs(self):
        assert find_form(LogLoss(), ensemble(5, 4, 3, 3, 1.0)).name == "fused kernel over centred members in float16"
        votes = torch.zeros((4, 3), dtype=torch.int64, device="cuda")
        assert find_form(LogLoss(), VoteEnsemble(votes, votes, 3)).name == "fused kernel over counts of votes"
        assert "counts" in find_form(CostMatrix(np.eye(3)), VoteEnsemble(votes, votes, 3)).name

    def test_a_precision_can_be_chosen(self):
        belief = ensemble(40, 30, 20, 4, 1.0)
        exactly = score(LogLoss(), belief, form=fused_form("float32"))
        close(exactly.double(), expected_regret(LogLoss(), belief).mean(1), 2e-6)

    def test_costs_of_votes_are_nearly_exact(self):
        rng = np.random.default_rng(2)
        sides = [torch.asarray(rng.integers(0, 4, (n, 90)), device="cuda") for n in (50, 30)]
        belief, loss = VoteEnsemble(*sides, n_classes=4), LOSSES["costs"](4)
        close(score(loss, belief).double(), expected_regret(loss, belief).mean(1), 1e-5)

    def test_many_classes(self):
        belief = ensemble(20, 15, 30, 128, 1.0)
        close(score(LogLoss(), belief).double(), expected_regret(LogLoss(), belief).mean(1), 2e-3)
