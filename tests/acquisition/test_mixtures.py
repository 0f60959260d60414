"""Forms of mixtures of Gaussian beliefs, each against the general route."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from stakes import (
    ExponentialWeight,
    GaussianMixtureBelief,
    Linex,
    SquaredError,
    ThresholdDecision,
    expected_reduction,
    expected_regret,
    find_form,
    score,
)
from stakes._utils.compute import has_jit
from stakes.acquisition import mixture_decisions
from tests.beliefs.test_mixture import mixture

SMOOTH = [
    SquaredError(),
    SquaredError(ExponentialWeight(0.8)),
    SquaredError(ExponentialWeight(-2.5)),
    Linex(1.2),
    Linex(-0.7, ExponentialWeight(0.5)),
    Linex(0.5, ExponentialWeight(0.5)),  # the second statistic is 1
]
DECISIONS = [ThresholdDecision(0.5, 5.0, 1.0), ThresholdDecision(2.5, 50.0, 1.0), ThresholdDecision(-1.0, 1.0, 3.0)]
ALL = [*SMOOTH, *DECISIONS]
compiled = pytest.mark.skipif(not has_jit(), reason="loops are not compiled")


def name(loss):
    return f"{type(loss).__name__}-{getattr(loss, 'weight', None)}"


@pytest.mark.parametrize("loss", ALL, ids=name)
@pytest.mark.parametrize(
    ("n_hypotheses", "spread", "largest"),
    [(2, 1.0, 0.9), (4, 3.0, 0.5), (8, 0.1, 0.8), (16, 1.0, 0.95), (3, 6.0, 0.99)],
)
def test_forms_agree_with_the_general_route(loss, n_hypotheses, spread, largest):
    belief = mixture(np.random.default_rng(n_hypotheses), n_hypotheses, 5, 4, largest, spread)
    assert not has_jit() or find_form(loss, belief).name in (
        "quadratic form over hypotheses",
        "exponentials along even labels",
        "normal probabilities along even labels",
    )
    wanted = expected_regret(loss, belief)
    assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-6, atol=1e-12 * wanted.max())


@pytest.mark.parametrize("loss", ALL, ids=name)
def test_a_little_that_labels_tell_keeps_its_digits(rng, loss):
    belief = mixture(rng, 3, 4, 3, largest=1e-3)
    close = GaussianMixtureBelief(
        belief.mean[0] + 1e-3 * belief.mean,
        belief.variance[0] * np.ones((3, 1)),
        belief.candidate_mean[0] + 1e-3 * belief.candidate_mean,
        belief.candidate_variance[0] * np.ones((3, 1)),
        belief.covariance * np.sqrt(0.25 / np.maximum(belief.variance, 1.0))[:, None, :],
    )
    wanted = expected_regret(loss, close)
    assert_allclose(expected_reduction(loss, close), wanted, rtol=1e-6, atol=1e-13 * loss.finite_actions)


@pytest.mark.parametrize("loss", ALL, ids=name)
def test_candidates_that_even_labels_do_not_serve_go_by_the_general_route(rng, loss):
    belief = mixture(rng, 2, 3, 2)
    variance = belief.candidate_variance.copy()
    variance[0, 1] = 1e-8  # labels of very different widths
    covariance = belief.covariance * np.sqrt(variance / belief.candidate_variance)[..., None]
    covariance[1, 2, 0] = np.sqrt(variance[1, 2] * belief.variance[1, 0])  # a label that tells the target
    odd = GaussianMixtureBelief(belief.mean, belief.variance, belief.candidate_mean, variance, covariance)
    wanted = expected_regret(loss, odd)
    assert_allclose(expected_reduction(loss, odd), wanted, rtol=1e-6, atol=1e-12 * wanted.max())


@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_without_compiled_loops_it_is_the_same(rng, monkeypatch, loss):
    belief = mixture(rng, 4)
    looped = expected_reduction(loss, belief)
    monkeypatch.setenv("STAKES_JIT", "0")
    assert_allclose(expected_reduction(loss, belief), looped, rtol=1e-11)
    assert find_form(ThresholdDecision(0.5), belief).name == "expected regret over split moments"


@pytest.mark.parametrize(
    "loss", [SquaredError(ExponentialWeight(30.0)), Linex(30.0), ThresholdDecision(0.5, 1e6, 1.0)], ids=name
)
def test_what_is_too_steep_or_extreme_goes_by_the_general_route(rng, loss):
    assert find_form(loss, mixture(rng)).name == "expected regret over split moments"


@pytest.mark.parametrize("jit", ["1", "0"])  # 0: as on a device of its own
@pytest.mark.parametrize("loss", ALL, ids=name)
def test_torch(rng, monkeypatch, loss, jit):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("STAKES_JIT", jit)
    belief = mixture(rng, 3)
    names = ("mean", "variance", "candidate_mean", "candidate_variance", "covariance", "weights")
    tensors = GaussianMixtureBelief(**{each: torch.asarray(getattr(belief, each)) for each in names})
    found = score(loss, tensors, context_weights=[1.0, 2.0], costs=[1.0, 2.0, 3.0])
    assert isinstance(found, torch.Tensor)
    assert_allclose(found.numpy(), score(loss, belief, context_weights=[1.0, 2.0], costs=[1.0, 2.0, 3.0]), rtol=1e-6)


@pytest.mark.parametrize("loss", ALL, ids=name)
def test_single_precision_comes_back_as_it_was(rng, loss):
    belief = mixture(rng, 3)
    names = ("mean", "variance", "candidate_mean", "candidate_variance", "covariance")
    single = GaussianMixtureBelief(**{each: getattr(belief, each).astype(np.float32) for each in names})
    found = score(loss, single)
    assert found.dtype == np.float32
    again = {each: getattr(single, each).astype(float) for each in names}
    assert_allclose(found, score(loss, GaussianMixtureBelief(**again)), rtol=1e-5)


@pytest.mark.parametrize("jit", ["1", "0"])
def test_statistics_that_lie_far_apart_stay_within_the_range_of_numbers(monkeypatch, jit):
    """Labels of very different widths and steep slopes: masses of 1e-320, and ratios beyond."""
    monkeypatch.setenv("STAKES_JIT", jit)
    belief = GaussianMixtureBelief(
        mean=[[0.0], [1.0]],
        variance=[[14.0], [0.4]],
        candidate_mean=[[0.5], [-1.0]],
        candidate_variance=[[7.0], [0.33]],
        covariance=[[[-9.0]], [[0.3]]],
    )
    for loss in (Linex(1.0, ExponentialWeight(-0.7)), Linex(-1.0), Linex(1.7), SquaredError(ExponentialWeight(-1.5))):
        wanted = expected_regret(loss, belief)
        assert np.all(np.isfinite(wanted))
        assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-6)


def test_a_weight_far_from_the_origin_costs_no_digits(rng):
    belief, loss = mixture(rng, 3), SquaredError(ExponentialWeight(0.8))
    moved = GaussianMixtureBelief(
        belief.mean + 1e4,
        belief.variance,
        belief.candidate_mean - 1e4,
        belief.candidate_variance,
        belief.covariance,
        belief.weights,
    )
    near, far = (score(loss, each, return_log_scale=True) for each in (belief, moved))
    assert_allclose(far[0], near[0], rtol=1e-9)
    assert_allclose(far[1] - near[1], 8e3, rtol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    n_hypotheses=st.integers(2, 5),
    spread=st.sampled_from([0.01, 1.0, 4.0]),
    largest=st.sampled_from([0.1, 0.7, 0.97]),
    index=st.integers(0, len(ALL) - 1),
)
def test_no_reduction_is_negative_and_all_agree(seed, n_hypotheses, spread, largest, index):
    belief = mixture(np.random.default_rng(seed), n_hypotheses, 2, 2, largest, spread)
    found, wanted = (of(ALL[index], belief) for of in (expected_reduction, expected_regret))
    assert np.all(found >= 0)
    assert_allclose(found, wanted, rtol=1e-6, atol=max(1e-11 * wanted.max(), 1e-13 * ALL[index].finite_actions))


@compiled
def test_the_positive_part_of_a_function_that_changes_its_sign_twice_between_nodes():
    u = np.linspace(-8.0, 8.0, 65)
    density = np.exp(-0.5 * u**2)
    for shift in (0.0, 0.1, 0.125):  # width 0.2 of a bump, nodes 0.25 apart
        values = density * (0.01 - (u - shift) ** 2)
        dense = np.linspace(-8.0, 8.0, 2_000_001)
        exact = np.exp(-0.5 * dense**2) * (0.01 - (dense - shift) ** 2)
        wanted = np.maximum(exact, 0).sum() * (dense[1] - dense[0]) / (u[1] - u[0])
        assert_allclose(mixture_decisions.positive_part(values, density, 1.0), wanted, rtol=0, atol=3e-6)
