"""The fused kernels against the general route in float64: on a GPU, or interpreted (tests/test_triton_kernels.py)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

from stakes import CategoricalEnsemble, LogLoss, VoteEnsemble, expected_regret
from stakes.losses.weights import relative_weights

torch = pytest.importorskip("torch", reason="torch is an extra")
from tests.centred_cases import CUDA, DEVICE, INTERPRETED, LOSSES, close, ensemble, exact, rounded, shares_of  # noqa: E402

SOME = ("weighted log loss", "costs")
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "tf32": 2e-3, "float32": 2e-5}
runs = pytest.mark.skipif(
    find_spec("triton") is None or not (CUDA or INTERPRETED),
    reason="no Triton, or no GPU and Triton's interpreter is not chosen",
)


def member_sums(loss, belief, shares, precision):
    """What launches kernels: imported late, as Triton must not be before its interpreter is chosen."""
    of, log_scale = import_module("stakes.gpu.centred").member_sums(loss, belief, shares, precision)
    return lambda block: of(block) * np.exp(log_scale)


@runs
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("sizes", "spread"), [((70, 40, 10, 3), 0.3), ((5, 70, 150, 4), 30.0)])
@pytest.mark.parametrize("precision", ["float16", "bfloat16", "tf32", "float32"])
def test_kernels_give_what_the_general_route_gives(name, sizes, spread, precision):
    if precision == "bfloat16" and not CUDA:
        pytest.skip("Triton's interpreter reads bfloat16 as whole numbers")
    if precision in ("tf32", "float32") and not CUDA and (sizes[2] > 100 or name not in SOME):
        pytest.skip("slow line by line, and the same kernel there as for float16")
    loss, belief, shares = LOSSES[name](sizes[3]), ensemble(*sizes, spread), shares_of(sizes[1])
    found = member_sums(loss, belief, shares, precision)(belief)
    close(found, exact(loss, belief, shares), TOLERANCE[precision])


@runs
@pytest.mark.parametrize("name", ["log loss", "weighted log loss", "weighted Brier", "class of no weight"])
def test_votes_are_counted_exactly(name):
    rng = np.random.default_rng(1)
    sides = [torch.asarray(rng.integers(0, 3, (n, 150)), device=DEVICE) for n in (40, 20)]  # class 3: no votes
    belief, shares, loss = VoteEnsemble(*sides, n_classes=4), shares_of(20), LOSSES[name](4)
    wanted = torch.matmul(expected_regret(loss, belief), shares)
    found = import_module("stakes.gpu.centred").vote_sums(loss, belief, shares)(belief)
    found = found * np.exp(relative_weights(loss)[1])
    np.testing.assert_allclose(found.cpu(), wanted.cpu(), rtol=1e-5)


@runs
def test_votes_that_never_meet_are_counted():
    """K c / (n_y n_z) - 1 is -1 there but for rounding, and its logarithm must not be that of 0."""
    rng = np.random.default_rng(0)
    sides = [torch.asarray(rng.integers(0, 30, (n, 100)), device=DEVICE) for n in (70, 50)]
    belief, shares = VoteEnsemble(*sides, n_classes=30), shares_of(50)
    found = import_module("stakes.gpu.centred").vote_sums(LogLoss(), belief, shares)(belief)
    wanted = torch.matmul(expected_regret(LogLoss(), belief), shares)
    np.testing.assert_allclose(found.cpu(), wanted.cpu(), rtol=1e-5)


@runs
@pytest.mark.parametrize("members", [1, 2, 3, 4, 7, 64, 100, 1000, 1024, 4096])
def test_one_over_the_members_never_gives_a_logarithm_of_nothing(members):
    """No u of single precision has u scale = -(1 + 2^-23): its odd part would divide 2^23 + 1 = 3 * 2796203."""
    scale = import_module("stakes.gpu.centred")._scale(members)
    assert abs(scale * members - 1.0) < 1.3e-7
    odd = int(np.ldexp(scale, 60 - int(np.floor(np.log2(scale)))))
    while odd % 2 == 0:
        odd //= 2
    assert odd not in (1, 3, 2796203, 2**23 + 1)


@runs
def test_members_in_half_precision_are_read_as_they_are():
    whole = ensemble(9, 8, 12, 3, 1.0)
    belief = CategoricalEnsemble(rounded(whole.candidates), rounded(whole.contexts))
    shares = shares_of(8)
    close(member_sums(LogLoss(), belief, shares, "float16")(belief), exact(LogLoss(), belief, shares), 2e-3)


@runs
def test_a_block_of_no_candidates_has_no_scores():
    belief = ensemble(3, 4, 5, 3, 1.0)
    of = member_sums(LogLoss(), belief, shares_of(4), "float16")
    assert of(belief.take(slice(0, 0), slice(None))).shape == (0,)
