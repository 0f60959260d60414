"""Counts of votes, packed and by a product, against the general route and against counting by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stakes import BrierLoss, CostMatrix, LogLoss, SphericalLoss, VoteEnsemble, ZeroOne, score
from stakes.acquisition import expected_reduction, expected_regret, find_form, votes
from stakes.acquisition.votes import _counter, _packed, margins

PACKED, PRODUCT, GENERAL = (
    "counts of packed votes",
    "counts of votes by a matrix product",
    "expected regret over split moments",
)


@pytest.fixture(params=[PACKED, PRODUCT])
def form(request, monkeypatch):
    """Both ways to count, whatever the size."""
    if request.param == PACKED:
        pytest.importorskip("numba", reason="loops are compiled by numba")
        monkeypatch.delenv("STAKES_JIT", raising=False)
        monkeypatch.setattr(votes, "_WORTH_COMPILING", 0)
    else:
        monkeypatch.setenv("STAKES_JIT", "0")
    return request.param


def losses(classes):
    weights = np.linspace(1.0, 50.0, classes)
    costs = np.random.default_rng(classes).random((classes, 3))
    plain = [LogLoss(), BrierLoss(), SphericalLoss(), ZeroOne(), CostMatrix(costs)]
    return [*plain, LogLoss(weights), BrierLoss(weights), LogLoss([0.0] * (classes - 1) + [1.0])]


def drawn(seed, candidates, contexts, members, classes):
    """Votes that hang together: a member is an opinion that each row reads with some noise."""
    rng = np.random.default_rng(seed)
    opinion, cuts = rng.random(members), np.sort(rng.random((candidates + contexts, classes - 1)), axis=1)
    read = 0.6 * opinion + 0.4 * rng.random((candidates + contexts, members))
    found = np.sum(read[:, :, None] > cuts[:, None, :], axis=2)
    return VoteEnsemble(found[:candidates], found[candidates:], classes)


@given(
    seed=st.integers(0, 10**6),
    candidates=st.integers(0, 6),
    contexts=st.integers(1, 5),
    members=st.sampled_from([1, 2, 63, 64, 65, 130]),
    classes=st.integers(1, 5),
)
@settings(max_examples=25, deadline=None)
def test_counts_give_what_the_general_route_gives(seed, candidates, contexts, members, classes):
    belief = drawn(seed, candidates, contexts, members, classes)
    for loss in losses(classes):
        slow = expected_regret(loss, belief)
        scale = max(1.0, *np.asarray(getattr(loss, "class_weights", None) or [1.0]))
        for prepare in _ways():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(votes, "_WORTH_COMPILING", 0 if prepare == PACKED else 10**30)
                patch.delenv("STAKES_JIT", raising=False)
                assert find_form(loss, belief).name == prepare
                np.testing.assert_allclose(expected_reduction(loss, belief), slow, rtol=1e-9, atol=2e-13 * scale)


def _ways():
    try:
        import numba  # noqa: F401
    except ImportError:
        return [PRODUCT]
    return [PACKED, PRODUCT]


@pytest.mark.usefixtures("form")
def test_a_forest_of_four_by_hand():
    belief = VoteEnsemble(np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]]), np.array([[0, 0, 1, 1]]), 2)
    np.testing.assert_allclose(expected_reduction(LogLoss(), belief)[:, 0], [np.log(2.0), 0.0, 0.0], atol=1e-15)
    # Weights 3, 1: h = sum_z w p log(W / (w p)) with W = 2 today; nothing is left once x_0 is known.
    before = 1.5 * np.log(2.0 / 1.5) + 0.5 * np.log(2.0 / 0.5)
    weighted = expected_reduction(LogLoss([3.0, 1.0]), belief)[:, 0]
    np.testing.assert_allclose(weighted, [before, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(expected_reduction(ZeroOne(), belief)[:, 0], [0.5, 0.0, 0.0], atol=1e-15)


@pytest.mark.usefixtures("form")
def test_nothing_is_learned_where_members_agree():
    belief = drawn(1, 8, 6, 300, 4)
    candidates = np.concatenate([belief.candidates, np.full((1, 300), 2, dtype=np.uint8)])
    contexts = np.concatenate([belief.contexts, np.full((1, 300), 3, dtype=np.uint8)])
    for loss in losses(4):
        found = expected_reduction(loss, VoteEnsemble(candidates, contexts, 4))
        assert np.all(found[-1] == 0)
        assert np.all(found[:, -1] == 0)
        assert np.all(found >= 0)


@pytest.mark.usefixtures("form")
def test_blocks_of_any_size_give_the_same(monkeypatch):
    belief = drawn(2, 40, 9, 100, 3)
    whole = score(LogLoss([1.0, 2.0, 3.0]), belief)
    monkeypatch.setattr(votes, "_CACHE", 1)
    monkeypatch.setattr(votes, "_PRODUCT", 1)
    np.testing.assert_allclose(score(LogLoss([1.0, 2.0, 3.0]), belief, memory_limit=4096), whole, rtol=1e-12)


def test_members_that_do_not_count_alike_take_the_general_route(form):
    belief = drawn(3, 4, 3, 20, 3)
    weighted = VoteEnsemble(belief.candidates, belief.contexts, 3, np.arange(1.0, 21.0))
    assert find_form(LogLoss(), weighted).name == GENERAL
    assert find_form(LogLoss(), belief).name == form
    assert find_form(BrierLoss(), belief).name == form


def test_small_problems_are_not_compiled():
    assert find_form(LogLoss(), drawn(3, 4, 3, 20, 3)).name == PRODUCT


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_libraries_count_by_a_product(library):
    xp = pytest.importorskip(library, reason="not installed")
    own = drawn(4, 5, 4, 70, 3)
    sides = (xp.asarray(np.array(side, dtype=np.int64)) for side in (own.candidates, own.contexts))
    belief = VoteEnsemble(*sides, 3)
    for loss in losses(3):
        assert find_form(loss, belief).name == PRODUCT
        found = np.asarray(expected_reduction(loss, belief))
        np.testing.assert_allclose(found, expected_regret(loss, own), rtol=1e-9, atol=1e-11)


def test_packed_bits_hold_the_votes():
    pytest.importorskip("numba", reason="loops are compiled by numba")
    own = drawn(5, 3, 1, 70, 3).candidates
    packed, counts = _packed(own, 3)
    bits = np.unpackbits(packed.view(np.uint8), axis=-1, bitorder="little")[..., :70]  # [n, C - 1, K]
    np.testing.assert_array_equal(bits, own[:, None, :] == np.arange(2)[:, None])
    np.testing.assert_array_equal(counts, margins(own, 3))


def test_counts_are_those_of_a_loop():
    belief = drawn(6, 3, 2, 11, 4)
    counts = np.stack(list(_counter(belief.contexts, 4)(belief.candidates)), axis=1)  # [n, y, z, M]
    for n, y, z, m in np.ndindex(counts.shape):
        assert counts[n, y, z, m] == np.sum((belief.candidates[n] == y) & (belief.contexts[m] == z))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("heavy", [1e5, 1e9, 1e12])
def test_weights_that_are_far_apart_keep_their_digits(heavy):
    belief, loss = drawn(7, 6, 5, 200, 3), LogLoss([1.0, 1.0, heavy])
    for each in (belief, VoteEnsemble(belief.candidates, belief.contexts % 2, 3)):
        slow = expected_regret(loss, each)
        np.testing.assert_allclose(expected_reduction(loss, each), slow, atol=1e-6 * slow.max())


def test_light_classes_keep_their_worth_where_no_heavy_one_is_voted_for(form):
    belief = drawn(8, 6, 5, 200, 3)
    light = VoteEnsemble(belief.candidates, belief.contexts % 2, 3)
    loss = LogLoss([1.0, 1.0, 1e6])
    assert find_form(loss, light).name == form
    np.testing.assert_allclose(expected_reduction(loss, light), expected_regret(loss, light), rtol=1e-7, atol=1e-13)
