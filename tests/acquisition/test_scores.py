"""Scores: averages over contexts, costs, blocks within a memory limit, and what is refused."""

import tracemalloc

import numpy as np
import pytest

from stakes import (
    CRPS,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    Linex,
    LogLoss,
    NormalEnsemble,
    SquaredError,
    ThresholdDecision,
    VoteEnsemble,
    Weight,
    effective_context_weights,
    expected_reduction,
    expected_regret,
    integration_error,
    score,
)
from stakes.acquisition import Form, scores
from stakes.beliefs import MemberNodes
from tests.brute import gaussian_pair, random_table


def gaussian(rng, n, m):
    mixing = rng.standard_normal((n + m, 5))
    variance = (mixing**2).sum(1)
    return GaussianBelief(rng.standard_normal(m), variance[n:], variance[:n] + 0.3, mixing[:n] @ mixing[n:].T)


def classes(rng, n, m):
    soft = rng.dirichlet(np.ones(4), (n + m, 20))
    return CategoricalEnsemble(soft[:n], soft[n:])


def votes(rng, n, m):
    return VoteEnsemble(rng.integers(4, size=(n, 20)), rng.integers(4, size=(m, 20)), 4)


def normals(rng, n, m):
    means = rng.standard_normal((n + m, 8))
    return NormalEnsemble(means[:n], 0.5, means[n:], 0.4)


SIGMOID = Weight(lambda z: 1 / (1 + np.exp(-2 * z)))
CASES = [
    (gaussian, SquaredError()),
    (gaussian, SquaredError(ExponentialWeight(0.5))),
    (gaussian, SquaredError(SIGMOID)),
    (classes, LogLoss([1, 50, 1, 2])),
    (classes, CostMatrix(np.arange(12).reshape(4, 3) % 5)),
    (votes, BrierLoss()),
    (normals, Linex(0.5)),
    (normals, SquaredError(SIGMOID)),
]


@pytest.mark.parametrize(("make", "loss"), CASES)
def test_a_score_is_the_mean_reduction_over_contexts_per_unit_of_cost(rng, make, loss):
    belief = make(rng, 9, 6)
    reduction = expected_reduction(loss, belief)
    weights, costs = rng.uniform(0, 3, 6), rng.uniform(0.5, 2, 9)
    np.testing.assert_allclose(score(loss, belief), reduction.mean(1), rtol=1e-12)
    np.testing.assert_allclose(
        score(loss, belief, context_weights=weights, costs=costs),
        reduction @ (weights / weights.sum()) / costs,
        rtol=1e-12,
    )
    relative, log_scale = score(loss, belief, context_weights=weights, costs=costs, return_log_scale=True)
    assert relative.max() == 1.0
    np.testing.assert_allclose(
        relative * np.exp(log_scale), score(loss, belief, context_weights=weights, costs=costs), rtol=1e-12
    )


@pytest.mark.parametrize(("make", "loss"), CASES)
def test_blocks_do_not_show(rng, make, loss):
    belief = make(rng, 9, 6)
    weights = rng.uniform(0, 1, 6)
    whole, blocked = (score(loss, belief, context_weights=weights, memory_limit=limit) for limit in (2**30, 1))
    # Nodes are laid out for a block as a whole: integrals agree to their accuracy, for a slope of 2 at an sd of 3.
    np.testing.assert_allclose(blocked, whole, rtol=1e-6)
    np.testing.assert_allclose(
        expected_regret(loss, belief, memory_limit=1000), expected_regret(loss, belief), rtol=1e-6
    )


def test_blocks_keep_one_scale_across_contexts():
    """Contexts scored one at a time, each with a scale of its own that no float could hold."""
    mean = [-2000.0, 0.0, 1500.0, 1499.0]
    belief = GaussianBelief(mean, np.ones(4), [1.0, 1.0], [[0.1, 0.9, 0.5, 0.2], [0.9, 0.2, 0.1, 0.8]])
    for loss in (SquaredError(ExponentialWeight(1.0)), SquaredError(Weight(np.exp, log=lambda z: z))):
        whole = score(loss, belief, return_log_scale=True)
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
            shuffled = GaussianBelief(
                belief.mean[order], belief.variance, belief.candidate_variance, belief.covariance[:, order]
            )
            scores, log_scale = score(loss, shuffled, return_log_scale=True, memory_limit=1)
            np.testing.assert_allclose(scores, whole[0], rtol=1e-9)
            assert log_scale == pytest.approx(whole[1], abs=1e-9)


@pytest.mark.parametrize(
    ("make", "loss", "n", "m"),
    [
        (gaussian, SquaredError(), 3000, 300),
        (gaussian, SquaredError(SIGMOID), 3000, 300),
        (gaussian, ThresholdDecision(0.5, miss=3.0), 3000, 300),
        (gaussian, CRPS(), 3000, 300),
        (classes, LogLoss([1, 50, 1, 2]), 1500, 200),
        (votes, LogLoss(), 1500, 200),
        (normals, SquaredError(), 60, 50),
    ],
)
def test_temporaries_stay_below_the_limit(rng, make, loss, n, m):
    """Beyond its inputs, score holds a block: in all it takes far more than the limit, at once it does not."""
    belief, limit = make(rng, n, m), 2**24
    unblocked = 8 * n * m * (1 if make is gaussian else belief.n_cells(loss) * 3)
    score(loss, belief if make is votes else belief.take(slice(0, 2), slice(0, 2)))  # what is compiled is compiled now
    tracemalloc.start()
    score(loss, belief, memory_limit=limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * limit
    assert unblocked > limit / 3


def test_context_weights_of_zero_leave_contexts_out(rng):
    belief = gaussian(rng, 5, 3)
    only = belief.take(slice(None), slice(1, 2))
    np.testing.assert_allclose(
        score(SquaredError(), belief, context_weights=[0, 2, 0]), score(SquaredError(), only), rtol=1e-13
    )
    absurd = GaussianBelief([0.0, 5000.0], [1.0, 1.0], [1.0], [[0.5, 0.5]])
    np.testing.assert_allclose(
        score(SquaredError(ExponentialWeight(1.0)), absurd, context_weights=[1, 0]), 0.25 * np.exp(0.5)
    )


def test_effective_context_weights_beyond_any_float():
    belief = gaussian_pair([800.0, 801.0, -4000.0], [1.0, 1.0, 1.0], [0.5])
    weights = effective_context_weights(SquaredError(ExponentialWeight(1.0)), belief)
    np.testing.assert_allclose(weights, [1 / (1 + np.e), np.e / (1 + np.e), 0.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"context_weights": [1.0]}, r"context_weights must have shape \[3\]; got \[1\]"),
        ({"context_weights": [1.0, -1.0, 1.0]}, "at least 0"),
        ({"context_weights": [0.0, 0.0, 0.0]}, "not all be 0"),
        ({"context_weights": [1.0, np.nan, 1.0]}, "finite"),
        ({"costs": [1.0, 2.0]}, r"costs must have shape \[5\]; got \[2\]"),
        ({"costs": [1.0, 2.0, 0.0, 1.0, 1.0]}, "costs must be positive"),
        ({"costs": [1.0, 2.0, np.inf, 1.0, 1.0]}, "finite"),
        ({"memory_limit": 0}, "memory_limit must be a positive number of bytes"),
    ],
)
def test_bad_settings_are_refused(rng, settings, message):
    with pytest.raises(ValueError, match=message):
        score(SquaredError(), gaussian(rng, 5, 3), **settings)


def test_a_loss_that_is_infinite_in_expectation_is_reported():
    explosive = Weight(lambda z: np.exp(np.minimum(z**2, 700.0)), log=lambda z: z**2)
    with pytest.raises(FloatingPointError, match="too far to integrate"):
        score(SquaredError(explosive), gaussian_pair(0.0, 400.0, 0.5))
    assert np.all(np.isfinite(score(SquaredError(explosive), gaussian_pair(0.0, 0.1, 0.5))))
    members = NormalEnsemble([[0.0, 100.0]], 1.0, [[0.0, 1500.0]], 1.0)  # exp(-z) spans more than all floats
    np.testing.assert_allclose(score(Linex(1.0), members), 750.0 - np.log(2.0), rtol=1e-9)  # log 1/2 - E[log T]


def test_integration_error_tells_what_a_finer_rule_would_change(rng):
    means = rng.standard_normal((14, 6))
    exact = NormalEnsemble(means[:8], 0.3, means[8:], 0.2)
    assert np.all(integration_error(SquaredError(), exact) < 1e-7)
    rough = NormalEnsemble(means[:8], 0.3, means[8:], 0.2, rule=MemberNodes.monte_carlo(10, rng))
    wanted = abs(score(SquaredError(), rough) - score(SquaredError(), exact)).max() / score(SquaredError(), exact).max()
    assert 0.1 * wanted < integration_error(SquaredError(), rough).max() < 10 * wanted
    with pytest.raises(TypeError, match="no rule to refine"):
        integration_error(SquaredError(), gaussian(rng, 2, 2))


def test_a_belief_of_one_s_own_is_scored_like_any_other(rng):
    table = random_table(rng, [-1.0, 0.0, 2.0])
    np.testing.assert_allclose(
        score(SquaredError(), table, memory_limit=1), expected_regret(SquaredError(), table).mean(1), rtol=1e-12
    )


def test_a_form_that_gives_negative_reductions_is_caught(monkeypatch):
    belief = gaussian_pair([0.0, 1.0], [1.0, 2.0], [0.3, 0.6])
    wrong = Form("wrong", lambda loss, belief: (lambda block: block.rho - 0.5, belief.mean * 0))
    monkeypatch.setattr(scores, "find_form", lambda loss, belief: wrong)
    with pytest.raises(FloatingPointError, match="none can be negative"):
        score(SquaredError(), belief)


@pytest.mark.parametrize("log_scale", [0.0, -3.5, 40.0, -600.0, 700.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_one_scale_is_applied_as_a_scale_for_each_value(dtype, log_scale):
    belief = GaussianBelief(*(np.asarray(each, dtype) for each in ([0.0], [1.0], [1.0], [[0.5]])))
    for values in (np.array([1.0, 0.25, 0.0]), np.zeros(3), np.zeros(0)):
        each = scores.unscaled(values, np.full(len(values), log_scale), belief)
        one = scores.unscaled(values, log_scale, belief)
        np.testing.assert_allclose(one, each, rtol=1e-13 if one.dtype == np.float64 else 1e-6)
        assert one.dtype == each.dtype


def test_one_scale_beyond_all_numbers_is_refused():
    belief = GaussianBelief([0.0], [1.0], [1.0], [[0.5]])
    for scale in (800.0, -800.0):
        with pytest.raises(FloatingPointError, match="beyond the range of"):
            scores.unscaled(np.array([1.0, 0.0]), scale, belief)
        np.testing.assert_array_equal(scores.unscaled(np.zeros(2), scale, belief), 0.0)
