"""Products of centred members in float32, compiled and in blocks, against the general route in double precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, ZeroOne, score
from stakes.acquisition import centred as soft
from stakes.acquisition import expected_reduction, expected_regret, find_form

NAMES = {
    True: "products of centred members in float32, compiled",
    False: "products of centred members in float32, in blocks",
}


def ways():
    try:
        import numba  # noqa: F401
    except ImportError:
        return [False]
    return [True, False]


def found(loss, belief, compiled, cells=2**17):
    """The reductions by this path, whatever the size of the problem."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soft, "LARGE", 0)
        patch.setattr(soft, "_PRODUCT", 4 * cells)
        patch.setattr(soft, "_CACHE", cells)
        patch.setenv("STAKES_JIT", "1" if compiled else "0")
        assert find_form(loss, belief).name == NAMES[compiled]
        if compiled:
            return expected_reduction(loss, belief)
        one_by_one = [np.exp(soft.block_sums(loss, belief, shares)(belief)) for shares in np.eye(belief.n_contexts)]
        return np.stack(one_by_one, axis=1)  # which the path has only sums of


def drawn(seed, candidates, contexts, members, classes, flat=1.0):
    """Members that move together: a common part at all rows, and a part of their own."""
    rng = np.random.default_rng(seed)
    shift = rng.normal(size=(members, classes)) / flat
    logits = rng.normal(size=(candidates + contexts, 1, classes)) * 2.0
    odds = np.exp(logits + shift + rng.normal(size=(candidates + contexts, members, classes)) / flat)
    table = odds / odds.sum(axis=2, keepdims=True)
    return CategoricalEnsemble(table[:candidates], table[candidates:])


@given(
    seed=st.integers(0, 10**6),
    candidates=st.integers(0, 5),
    contexts=st.integers(1, 6),
    members=st.sampled_from([1, 2, 17, 64]),
    classes=st.integers(1, 5),
    flat=st.sampled_from([0.3, 1.0, 30.0]),
    weighted=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_products_give_what_the_general_route_gives(seed, candidates, contexts, members, classes, flat, weighted):
    belief = drawn(seed, candidates, contexts, members, classes, flat)
    loss = LogLoss(np.linspace(1.0, 50.0, classes)) if weighted else LogLoss()
    slow = expected_regret(loss, belief)
    for compiled in ways():
        fast = found(loss, belief, compiled, cells=16)
        np.testing.assert_allclose(fast, slow, rtol=2e-4, atol=2e-6 * slow.max(initial=0.0) + 1e-20)


@pytest.mark.parametrize("compiled", ways())
@pytest.mark.parametrize("flat", [0.5, 10.0, 1000.0])
def test_scores_keep_their_order_where_members_hardly_differ(flat, compiled):
    belief, loss = drawn(3, 60, 40, 100, 6, flat), LogLoss([1.0, 1.0, 50.0, 1.0, 50.0, 1.0])
    slow, fast = (table.mean(axis=1) for table in (expected_regret(loss, belief), found(loss, belief, compiled)))
    np.testing.assert_allclose(fast, slow, atol=1e-6 * slow.max())
    assert spearmanr(slow, fast).statistic > 0.9999


@pytest.mark.parametrize("compiled", ways())
def test_members_weights_and_classes_that_cannot_be(compiled):
    belief = drawn(4, 7, 5, 12, 4)
    tables = [np.array(each) for each in (belief.candidates, belief.contexts)]
    for table in tables:
        table[0, :, 3] = 0.0  # no member gives it any mass
        table[1] = [0.0, 1.0, 0.0, 0.0]  # all are certain
        table[2, ::2], table[2, 1::2] = [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]  # certain, and at odds
        table[0] /= table[0].sum(axis=1, keepdims=True)
    belief = CategoricalEnsemble(*tables, np.arange(1.0, 13.0))
    for weights in (None, [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 1.0]):
        slow, fast = expected_regret(LogLoss(weights), belief), found(LogLoss(weights), belief, compiled)
        np.testing.assert_allclose(fast, slow, rtol=1e-4, atol=1e-6 * slow.max())
        assert np.all(fast[1] == 0)
        assert np.all(fast[:, 1] == 0)


IN_DOUBLE = "products of centred members in float64, in blocks"


@pytest.mark.parametrize(
    "loss",
    [
        LogLoss(),
        LogLoss([1.0, 2.0, 1e5]),
        LogLoss([0.0, 1.0, 3.0]),
        BrierLoss([1.0, 20.0, 0.5]),
        ZeroOne(),
        CostMatrix([[0.0, 1.0], [5.0, 0.0], [2.0, 2.5]]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("flat", [0.3, 30.0, 1e6])
def test_small_problems_are_scored_in_double_precision(loss, flat):
    belief = drawn(0, 30, 12, 9, 3, flat)
    assert find_form(loss, belief).name == IN_DOUBLE
    slow, shares = expected_regret(loss, belief), np.random.default_rng(1).dirichlet(np.ones(12))
    fast = score(loss, belief, context_weights=shares)
    np.testing.assert_allclose(fast, slow @ shares, rtol=1e-9, atol=1e-13 * slow.max())


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(
    "loss", [LogLoss(), BrierLoss([1.0, 20.0, 0.5]), ZeroOne(), CostMatrix([[0.0, 1.0], [5.0, 0.0], [2.0, 2.5]])]
)
def test_problems_of_middle_size_are_compiled(loss, library, monkeypatch):
    if not ways()[0]:
        pytest.skip("numba is not installed")
    monkeypatch.setenv("STAKES_JIT", "1")
    belief = drawn(1, 120, 60, 500, 3)
    sides = [belief.candidates, belief.contexts]
    if library == "torch":
        sides = [pytest.importorskip("torch").asarray(side) for side in sides]
    form = find_form(loss, CategoricalEnsemble(*sides))
    assert form.name.startswith("products of centred members in float32")
    assert "compiled" in form.name
    found = np.asarray(score(loss, CategoricalEnsemble(*sides)))
    slow = expected_regret(loss, belief).mean(axis=1)
    np.testing.assert_allclose(found, slow, atol=3e-6 * slow.max(), rtol=0)


@pytest.mark.parametrize("compiled", ways())
def test_a_large_problem_takes_products_without_an_option(compiled, monkeypatch):
    monkeypatch.setenv("STAKES_JIT", "1" if compiled else "0")
    rng = np.random.default_rng(5)
    candidates, contexts = rng.dirichlet(np.ones(6), size=(700, 8)), rng.dirichlet(np.ones(6), size=(170, 8))
    belief, loss = CategoricalEnsemble(candidates, contexts), LogLoss()
    assert find_form(loss, belief).name == NAMES[compiled]
    best = expected_regret(loss, CategoricalEnsemble(candidates[:50], contexts)).mean(axis=1)
    np.testing.assert_allclose(score(loss, belief)[:50], best, atol=1e-6 * best.max())


def certain(seed=0):
    """Members that are certain, of which one candidate tells all."""
    rng = np.random.default_rng(seed)
    opinions = np.repeat([0, 1], 10)
    votes = np.where(rng.random((8, 20)) < 0.3, 1 - opinions, opinions)
    votes[3] = opinions
    return CategoricalEnsemble(np.eye(2)[votes], np.eye(2)[np.tile(opinions, (5, 1))])


@pytest.mark.parametrize("compiled", ways())
def test_weights_of_a_hundred_keep_their_digits_where_members_are_certain(compiled):
    loss = LogLoss([1.0, 100.0])
    slow, fast = expected_regret(loss, certain()), found(loss, certain(), compiled)
    np.testing.assert_allclose(fast, slow, atol=1e-4 * slow.max())


@pytest.mark.parametrize(
    ("loss", "belief"),
    [
        (LogLoss([1.0, 1e7]), certain()),
        (LogLoss(), CategoricalEnsemble([[[1.0, 1e-300], [0.2, 0.8]]], [[[1.0, 1e-300], [0.2, 0.8]]], [1.0, 0.0])),
    ],
    ids=["weights far apart", "a member without weight"],
)
def test_what_products_cannot_hold_takes_the_general_route(loss, belief, monkeypatch):
    monkeypatch.setattr(soft, "LARGE", 0)
    assert find_form(loss, belief).name == "expected regret over split moments"


def test_what_float32_cannot_hold_is_in_float64(monkeypatch):
    monkeypatch.setattr(soft, "LARGE", 0)
    loss = LogLoss([1.0, 1e3])
    assert find_form(loss, certain()).name == IN_DOUBLE
    np.testing.assert_allclose(score(loss, certain()), expected_regret(loss, certain()).mean(axis=1), rtol=1e-9)


@pytest.mark.parametrize("compiled", ways())
def test_probabilities_that_are_all_but_nothing_are_nothing(compiled):
    table = np.array([[[1.0, 1e-310], [1.0, 2e-310]]])
    assert found(LogLoss(), CategoricalEnsemble(table, table), compiled) == 0.0
