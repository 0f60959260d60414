"""Drawn batches: the right probabilities, reproducible, within the budget, under any belief."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from stakes import (
    BrierLoss,
    CategoricalEnsemble,
    GaussianBelief,
    LogLoss,
    LogWarp,
    NormalEnsemble,
    SquaredError,
    WarpedGaussianBelief,
    score,
    select,
)
from stakes.acquisition.batch_states import start_batch
from stakes.acquisition.batches import drawn_order
from tests.brute import random_table

N, M = 7, 4


def gaussian(rng, rows=True, xp=np):
    mixing = rng.standard_normal((N + M, 5)) / 2
    latent = mixing @ mixing.T
    labels = latent[:N, :N] + 0.2 * np.eye(N)
    arrays = [np.zeros(M), np.diag(latent)[N:], np.diag(labels), latent[:N, N:], *([labels] if rows else [])]
    return GaussianBelief(*(xp.asarray(np.array(each)) for each in arrays))


@pytest.mark.parametrize(
    ("stochastic", "coldness"), [("power", 1.0), ("power", 2.5), ("softmax", 1.0), ("softmax", 4.0)]
)
def test_candidates_are_drawn_in_proportion(rng, stochastic, coldness):
    scores, draws = np.array([0.1, 0.4, 0.2, 0.8]), 6000
    weight = scores**coldness if stochastic == "power" else np.exp(coldness * scores / 0.8)
    share = weight / weight.sum()
    orders = np.array([drawn_order(1e-5 * scores, stochastic, coldness, rng) for _ in range(draws)])
    assert chisquare(np.bincount(orders[:, 0], minlength=4), draws * share).pvalue > 1e-3
    pairs = np.bincount(4 * orders[:, 0] + orders[:, 1], minlength=16).reshape(4, 4)
    wanted = share[:, None] * share / (1 - share[:, None])  # without replacement
    off = ~np.eye(4, dtype=bool)
    assert np.all(pairs[~off] == 0)
    assert chisquare(pairs[off], draws * wanted[off]).pvalue > 1e-3


def test_scores_of_zero_come_last_and_alike(rng):
    scores, draws = np.array([0.0, 1e-200, 0.0, 2.0, 0.0]), 3000
    orders = np.array([drawn_order(scores, "power", 2.0, rng) for _ in range(draws)])
    assert np.all(np.sort(orders[:, :2], axis=1) == [1, 3])
    assert chisquare(np.bincount(orders[:, 2], minlength=5)[[0, 2, 4]]).pvalue > 1e-3
    nothing = np.array([drawn_order(np.zeros(3), "power", 1.0, rng) for _ in range(draws)])
    assert chisquare(np.bincount(nothing[:, 0])).pvalue > 1e-3
    alike = np.array([drawn_order(np.zeros(3), "softmax", 1.0, rng) for _ in range(draws)])
    assert chisquare(np.bincount(alike[:, 0])).pvalue > 1e-3


@pytest.mark.parametrize("stochastic", ["power", "softmax"])
def test_selections_are_draws_by_score(rng, stochastic):
    belief, weights, costs = gaussian(rng), [1.0, 2.0, 3.0, 4.0], rng.uniform(1, 2, N)
    settings = {"context_weights": weights, "costs": costs}
    chosen = select(
        SquaredError(), belief, n=4, stochastic=stochastic, random_state=np.random.default_rng(3), **settings
    )
    scores = score(SquaredError(), belief, **settings)
    assert chosen.indices == tuple(drawn_order(scores, stochastic, 1.0, np.random.default_rng(3))[:4])
    assert chosen.method == "stochastic"
    assert chosen.ranked_by == (f"{stochastic} of score",) * 4
    again = select(
        SquaredError(), belief, n=4, stochastic=stochastic, random_state=np.random.default_rng(3), **settings
    )
    assert again.indices == chosen.indices
    others = {
        select(SquaredError(), belief, n=4, stochastic=stochastic, random_state=np.random.default_rng(seed)).indices
        for seed in range(20)
    }
    assert len(others) > 5
    cold = select(SquaredError(), belief, n=4, stochastic=stochastic, coldness=1e6, random_state=rng, **settings)
    assert cold.indices == tuple(np.argsort(-scores)[:4])


def joint_by_steps(loss, belief, indices):
    """The joint reduction of a batch in its order, by the columns that the greedy choice looks at."""
    batch, worth = start_batch(loss, belief, None, np.random.default_rng(0), 4096), []
    for i in indices:
        worth.append(float(np.exp(batch.log_reductions()[i])))
        batch.add(i)
    return worth


def test_what_a_drawn_batch_is_worth_is_reported_where_it_is_known(rng):
    soft = rng.dirichlet(np.ones(2), (9, 4))
    for loss, belief in [
        (SquaredError(), gaussian(rng)),
        (SquaredError(), WarpedGaussianBelief(gaussian(rng), LogWarp())),
        (BrierLoss(), CategoricalEnsemble(soft[:6], soft[6:])),
        (SquaredError(), NormalEnsemble(rng.standard_normal((4, 3)), 1.0, rng.standard_normal((2, 3)), 0.1)),
    ]:
        n = 2 if isinstance(belief, NormalEnsemble) else 4
        chosen = select(loss, belief, n=n, stochastic="power", random_state=rng)
        np.testing.assert_allclose(chosen.joint_reduction, joint_by_steps(loss, belief, chosen.indices), rtol=1e-9)
        np.testing.assert_array_equal(chosen.sampling_error, 0)
    for belief in (gaussian(rng, rows=False), random_table(rng, [0.0, 1.0, 3.0])):
        chosen = select(SquaredError(), belief, n=3, stochastic="power", random_state=rng)
        assert len(set(chosen.indices)) == 3
        assert chosen.joint_reduction is None
        assert chosen.sampling_error is None


def test_sampled_configurations_of_a_drawn_batch_have_an_error(rng):
    soft = rng.dirichlet(np.ones(3), (9, 5))
    belief = CategoricalEnsemble(soft[:6], soft[6:])
    chosen = select(LogLoss(), belief, n=5, stochastic="power", random_state=rng, max_configurations=30)
    assert chosen.sampling_error[4] > 0
    exact = joint_by_steps(LogLoss(), belief, chosen.indices)
    assert np.all(abs(chosen.joint_reduction - exact) <= 4 * chosen.sampling_error + 1e-9)


@given(seed=st.integers(0, 2**32 - 1), budget=st.floats(0.5, 12.0), n=st.integers(1, N), cold=st.floats(0.1, 20.0))
def test_never_a_row_twice_and_never_over_budget(seed, budget, n, cold):
    rng = np.random.default_rng(seed)
    belief, costs = gaussian(rng), rng.uniform(0.5, 3, N)
    chosen = select(
        SquaredError(), belief, n=n, costs=costs, budget=budget, stochastic="power", coldness=cold, random_state=rng
    )
    spent = costs[list(chosen.indices)].sum()
    assert len(set(chosen.indices)) == len(chosen.indices) <= n
    assert spent <= budget * (1 + 1e-9)
    left = [cost for i, cost in enumerate(costs) if i not in chosen.indices]
    assert len(chosen.indices) == n or all(spent + cost > budget for cost in left)


def test_all_libraries_draw_the_same(xp):
    for stochastic in ("power", "softmax"):
        ours, wanted = (
            select(
                SquaredError(),
                gaussian(np.random.default_rng(1), xp=each),
                n=4,
                stochastic=stochastic,
                random_state=rng,
            )
            for each, rng in ((xp, np.random.default_rng(2)), (np, np.random.default_rng(2)))
        )
        assert ours.indices == wanted.indices
        assert [float(each) for each in ours.joint_reduction] == pytest.approx(list(wanted.joint_reduction))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"random_state": None}, "stochastic='power' draws the batch: give random_state, such as 1"),
        ({"stochastic": "top"}, 'stochastic must be "power", "softmax" or None; got \'top\''),
        ({"coldness": 0.0}, "coldness must be a positive number"),
        ({"coldness": float("inf")}, "coldness must be a positive number"),
        ({"coldness": "cold"}, "coldness must be a positive number"),
        ({"costs": [1.0]}, r"costs must have shape \[7\]"),
        ({"n": 8}, "n must be a whole number from 1 to 7"),
        ({"context_weights": [-1.0] * M}, "context_weights must be at least 0"),
        ({"max_configurations": 0}, "max_configurations must be a whole number, 1 or more"),
    ],
)
def test_bad_settings_are_refused_and_nothing_is_drawn(rng, settings, message):
    draws = np.random.default_rng(5)
    with pytest.raises(ValueError, match=message):
        select(SquaredError(), gaussian(rng), **{"n": 2, "stochastic": "power", "random_state": draws, **settings})
    assert draws.random() == np.random.default_rng(5).random()
