"""One matrix over members for all contexts, and the best candidates by bounds, against scoring one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stakes import BrierLoss, CategoricalEnsemble, LogLoss, NormalEnsemble, SquaredError, score
from stakes.acquisition import best, expected_regret, find_form

NAME = "one matrix over members for all contexts"


def classes(seed, candidates=9, contexts=12, members=7, count=3, weights=None):
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.full(count, 0.7), size=(rows, members)) for rows in (candidates, contexts)]
    return CategoricalEnsemble(*tables, weights)


def normals(seed, candidates=6, contexts=15, members=5, weights=None):
    rng = np.random.default_rng(seed)
    means = [rng.normal(size=(rows, members)) for rows in (candidates, contexts)]
    return NormalEnsemble(means[0], 0.5, means[1], 0.3, weights)


@given(seed=st.integers(0, 10**6), weighted=st.booleans(), uneven=st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_matrix_gives_the_scores_of_single_contexts(seed, weighted, uneven):
    rng = np.random.default_rng(seed)
    for loss, make, members, contexts in ((BrierLoss(), classes, 7, 12), (SquaredError(), normals, 5, 15)):
        belief = make(seed, weights=rng.random(members) if weighted else None)
        shares = rng.dirichlet(np.ones(contexts)) if uneven else np.full(contexts, 1.0 / contexts)
        assert find_form(loss, belief).name == NAME
        for limit in (2**28, 64):  # the rule that integrates labels looks at the block
            slow = expected_regret(loss, belief, memory_limit=limit) @ shares
            np.testing.assert_allclose(
                score(loss, belief, context_weights=shares, memory_limit=limit), slow, rtol=4e-7, atol=1e-14
            )


def test_two_members_by_hand():
    belief = CategoricalEnsemble([[[1.0, 0.0], [0.0, 1.0]]], [[[1.0, 0.0], [0.0, 1.0]]] * 3)
    assert find_form(BrierLoss(), belief).name == NAME
    # The label tells the member: |e_z - (1/2, 1/2)|^2 = 1/2 is what is saved.
    np.testing.assert_allclose(score(BrierLoss(), belief), [0.5])


def test_it_serves_where_members_are_fewer_than_contexts():
    assert find_form(BrierLoss(), classes(0, contexts=3, members=7)).name != NAME
    assert find_form(SquaredError(), normals(0, contexts=5, members=5)).name != NAME
    assert find_form(BrierLoss([1.0, 2.0, 3.0]), classes(0)).name != NAME


@given(seed=st.integers(0, 10**6), count=st.integers(1, 12), weighted=st.booleans(), priced=st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_best_are_those_of_all_scores(seed, count, weighted, priced):
    rng = np.random.default_rng(seed)
    spread = rng.gamma(1.0, size=(300, 1, 1))  # most candidates tell little
    logits = rng.normal(size=(300, 1, 4)) + spread * rng.normal(size=(300, 10, 4))
    odds = np.exp(logits - logits.max(axis=2, keepdims=True))
    table = odds / odds.sum(axis=2, keepdims=True)
    belief, shares = CategoricalEnsemble(table[:260], table[260:]), rng.dirichlet(np.ones(40))
    loss = LogLoss([1.0, 1.0, 50.0, 3.0]) if weighted else LogLoss()
    costs = rng.uniform(1.0, 3.0, size=260) if priced else None
    scores = score(loss, belief, context_weights=shares, costs=costs)
    found = best(loss, belief, n=count, context_weights=shares, costs=costs)
    np.testing.assert_array_equal(found.positions, np.argsort(-scores, stable=True)[:count])
    np.testing.assert_allclose(found.scores, scores[found.positions], rtol=1e-9)
    assert found.n_scored <= 260


def test_candidates_that_cannot_be_among_the_best_are_not_scored():
    rng = np.random.default_rng(1)
    table = rng.dirichlet([50.0, 50.0, 50.0], size=(400, 8))  # all but one member agree on little
    table[123] = np.eye(3)[rng.integers(3, size=8)]
    belief = CategoricalEnsemble(table[:370], table[370:])
    found = best(LogLoss(), belief)
    assert found.positions[0] == 123
    assert found.n_scored < 370


def test_equal_scores_keep_the_order_of_candidates():
    table = np.tile(classes(2, candidates=1, contexts=1, members=4).candidates, (130, 1, 1))
    found = best(LogLoss(), CategoricalEnsemble(table[:100], table[100:]), n=5)
    np.testing.assert_array_equal(found.positions, [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    ("loss", "belief"), [(SquaredError(), normals(3)), (BrierLoss(), classes(3)), (LogLoss(), classes(4))]
)
def test_other_pairs_are_scored_whole(loss, belief):
    scores = score(loss, belief)
    found = best(loss, belief, n=100)
    np.testing.assert_array_equal(found.positions, np.argsort(-scores, stable=True))
    assert found.n_scored == belief.n_candidates


def test_a_count_that_is_none_is_refused():
    with pytest.raises(ValueError, match="n must be a whole number, 1 or more"):
        best(LogLoss(), classes(0), n=0)


def test_nothing_is_learned_where_members_agree():
    belief = classes(5)
    agreed = np.repeat(belief.candidates[:, :1], belief.candidates.shape[1], axis=1)
    assert np.all(score(BrierLoss(), CategoricalEnsemble(agreed, belief.contexts)) < 1e-30)


@pytest.mark.parametrize("limit", [0, -5, 1e6])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(ValueError, match="memory_limit must be a positive number of bytes"):
        score(BrierLoss(), classes(6), memory_limit=limit)
