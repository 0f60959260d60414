"""Sums over centred members, in blocks and by the form that a GPU takes, against the general route in float64."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import (
    CategoricalEnsemble,
    CostMatrix,
    LogLoss,
    SphericalLoss,
    VoteEnsemble,
    ZeroOne,
    expected_regret,
    score,
)
from stakes._utils.compute import has_jit
from stakes.acquisition import find_form, fused_form
from stakes.acquisition.centred import block_numbers, block_sums

torch = pytest.importorskip("torch", reason="torch is an extra")
from tests.centred_cases import CUDA, DEVICE, LOSSES, close, ensemble, exact, rounded, shares_of  # noqa: E402

FUSED = "fused kernel over centred members"
needs_gpu = pytest.mark.skipif(not CUDA or find_spec("triton") is None, reason="there is no CUDA device, or no Triton")


def sums(loss, belief, shares):
    """Scores by blocks, whose logs they give."""
    return torch.exp(block_sums(loss, belief, shares)(belief))


@pytest.mark.parametrize("name", LOSSES)
@given(st.sampled_from([0.3, 3.0, 300.0]), st.integers(1, 9), st.integers(1, 7), st.integers(1, 6), st.integers(2, 5))
def test_blocks_give_what_the_general_route_gives(name, spread, n, m, k, c):
    loss, belief, shares = LOSSES[name](c), ensemble(n, m, k, c, spread, seed=n + 10 * m), shares_of(m)
    close(sums(loss, belief, shares), exact(loss, belief, shares), 2e-5)


def test_members_with_weights_of_their_own_count_by_them():
    weights = [0.5, 0.3, 0.1, 0.1]
    belief, shares = ensemble(6, 5, 4, 3, 1.0, weights=weights), shares_of(5)
    for name in LOSSES:
        close(sums(LOSSES[name](3), belief, shares), exact(LOSSES[name](3), belief, shares), 2e-5)


def test_large_ensembles_of_tensors_are_scored_in_blocks_and_small_ones_exactly():
    belief = ensemble(130, 330, 3, 10, 1.0)
    form = find_form(LogLoss(), belief)
    blocks = f"products of centred members in float32, in {'compiled ' if has_jit() else ''}blocks"
    assert (
        form.name == f"{FUSED} in float32" if CUDA else form.name.startswith("products of centred members in float32")
    )
    assert find_form(ZeroOne(), belief).name == (f"{FUSED} in float32" if CUDA else blocks)
    small = find_form(LogLoss(), ensemble(3, 4, 3, 10, 1.0)).name
    assert small == (
        "expected regret over split moments" if CUDA else "products of centred members in float64, in blocks"
    )
    wanted = exact(LogLoss(), belief, torch.full((330,), 1 / 330, dtype=torch.float64, device=DEVICE))
    close(score(LogLoss(), belief, memory_limit=2**24), wanted, 1e-3 if CUDA else 1e-5)
    assert block_numbers(LogLoss(), belief) >= 10 * 10 * 330  # the joint of a candidate


def test_weights_far_apart_are_left_to_the_general_route():
    assert "split moments" in find_form(LogLoss([1e7, *[1.0] * 9]), ensemble(130, 330, 3, 10, 1.0)).name


def test_half_precision_is_for_storage():
    belief = ensemble(4, 5, 6, 3, 1.0, dtype=torch.float32)
    half = CategoricalEnsemble(belief.candidates.double(), belief.contexts.double())
    stored = CategoricalEnsemble(*(rounded(each) for each in (belief.candidates, belief.contexts)))
    assert stored.like.dtype == torch.float32
    found = score(LogLoss(), stored)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.cpu(), score(LogLoss(), half).cpu(), rtol=0.02)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_large_ensembles_on_the_host_are_scored_in_single_precision(name, library):
    somewhere, loss = ensemble(60, 800, 5, 10, 0.5), LOSSES[name](10)
    sides = [each.cpu() for each in (somewhere.candidates, somewhere.contexts)]
    belief = CategoricalEnsemble(*(each.numpy() if library == "numpy" else each for each in sides))
    assert ("float32" in find_form(loss, belief).name) == (name not in ("Brier",))  # which has one matrix for all
    wanted = expected_regret(loss, belief).mean(1)
    found = score(loss, belief, memory_limit=2**24)
    assert found.dtype == belief.like.dtype
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), atol=3e-6 * float(wanted.max()), rtol=0)


@pytest.mark.parametrize("kinds", [(0, 0), (0, 1), (1, 0)])
def test_each_side_keeps_half_precision_of_its_own(kinds):
    whole = ensemble(6, 5, 4, 3, 1.0)
    sides = [rounded(each) for each in (whole.candidates, whole.contexts)]
    mixed = [each.double() if kind else each for each, kind in zip(sides, kinds, strict=True)]
    belief = CategoricalEnsemble(*mixed, [0.4, 0.3, 0.2, 0.1])
    assert [belief.candidates.dtype, belief.contexts.dtype] == [each.dtype for each in mixed]
    again = replace(belief, candidates=belief.candidates)  # the weights, which are wider, do not widen it
    assert again.candidates.dtype == mixed[0].dtype
    wide = CategoricalEnsemble(*(each.double() for each in sides), [0.4, 0.3, 0.2, 0.1])
    for loss in (LogLoss(), CostMatrix(1.0 - np.eye(3))):
        found = expected_regret(loss, belief).double()
        np.testing.assert_allclose(found.cpu(), expected_regret(loss, wide).cpu(), atol=1e-6)


def test_half_precision_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="contexts must be finite; 1 of 2"):
        CategoricalEnsemble(np.float16([[[0.5, 0.5]]]), np.float16([[[np.nan, 0.5]]]))


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


def test_a_form_for_another_loss_is_refused_though_it_takes_such_a_belief():
    belief = ensemble(130, 330, 3, 10, 1.0)
    form = find_form(LogLoss(), belief)
    with pytest.raises(ValueError, match="is not meant for SphericalLoss and this CategoricalEnsemble"):
        score(SphericalLoss(), belief, form=form)
    assert not fused_form().serves(SphericalLoss(), belief)


def test_an_action_that_is_never_worth_taking_may_cost_anything():
    belief, shares = ensemble(6, 5, 8, 3, 0.5), shares_of(5)
    plain, beside = [[0.0, 1.0], [5.0, 0.0], [2.0, 3.0]], [1e60, 1e60, 2e60]
    wanted = exact(CostMatrix(plain), belief, shares)
    loss = CostMatrix(np.column_stack([plain, beside]))
    close(sums(loss, belief, shares), wanted, 2e-6)


@needs_gpu
class TestOnAGpu:
    @pytest.mark.parametrize("name", LOSSES)
    @pytest.mark.parametrize("spread", [0.1, 300.0])
    def test_rankings_are_those_of_float64(self, name, spread):
        belief, loss = ensemble(2000, 90, 110, 6, spread), LOSSES[name](6)
        wanted, found = expected_regret(loss, belief).mean(1), score(loss, belief)
        if float(wanted.max()) > 1e-12:
            assert float(wanted[found.argmax()]) >= 0.999 * float(wanted.max())

    def test_the_form_says_which_kernel_runs(self):
        names = [find_form(LogLoss(), ensemble(900, 600, k, 3, 1.0)).name for k in (32, 33)]
        assert names == [f"fused kernel over centred members in {kind}" for kind in ("float32", "float16")]
        assert "split moments" in find_form(LogLoss(), ensemble(5, 4, 40, 3, 1.0)).name
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
        belief = ensemble(20, 15, 40, 128, 1.0)
        assert "float16" in find_form(LogLoss(), belief).name
        close(score(LogLoss(), belief).double(), expected_regret(LogLoss(), belief).mean(1), 2e-3)
