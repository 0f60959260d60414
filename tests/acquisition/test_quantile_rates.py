"""Curves of quantiles with rough weights against the general route, and expected rates against means of rates."""

import numpy as np
import pytest
from scipy.stats import norm

from stakes import (
    InterpolatedWeight,
    LogWarp,
    Pinball,
    WarpedGaussianBelief,
    Weight,
    expected_reduction,
    expected_regret,
)
from stakes.acquisition import rates
from stakes.acquisition.curves import PanelCurves
from stakes.acquisition.forms import resolve
from stakes.acquisition.loss_rates import panels_of, quantile_rate
from stakes.acquisition.profile import smooth_curves
from stakes.acquisition.quantile_rates import QuantileRates
from tests.brute import gaussian_pair

VALUES = np.linspace(-2.0, 2.0, 8)
EIGHT = InterpolatedWeight(VALUES.tolist(), (1.0 + VALUES**2).tolist())
NOTHING_BELOW = InterpolatedWeight([-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 5.0, 5.0])
KINKED = Weight(lambda z: 1.0 + np.maximum(z - 0.5, 0.0), breakpoints=(0.5,))
JUMPING = Weight(lambda z: np.where(z > 0.3, 5.0, 1.0), breakpoints=(0.3,))


@pytest.fixture(autouse=True)
def tables_for_few_contexts(monkeypatch):
    """Which take the general route otherwise."""
    monkeypatch.setattr(rates, "_FEW_CONTEXTS", 0)


def by_rates(loss, belief):
    """The rates, for contexts of a belief."""
    mean, sd = (belief.latent if isinstance(belief, WarpedGaussianBelief) else belief)._mean_and_sd()
    return rates.rates_of(loss, belief, resolve(loss, belief), mean, sd)


ROUGH = {
    "eight points": EIGHT,
    "kink": KINKED,
    "jump": JUMPING,
    "undeclared jump": Weight(lambda z: np.where(z > 0.3, 1.0, 0.2)),
    "steep": Weight(lambda z: 0.1 + 1.0 / (1.0 + np.exp(-np.clip(60.0 * z, -700.0, 700.0)))),
    "rather steep": Weight(lambda z: 0.1 + 1.0 / (1.0 + np.exp(-8.0 * z))),
}


@pytest.mark.parametrize(("name", "tau"), [*((name, 0.7) for name in ROUGH), ("jump", 0.03), ("eight points", 0.97)])
def test_quantiles_with_rough_weights(name, tau):
    loss, rho = Pinball(tau, ROUGH[name]), np.array([1e-10, 1e-8, 0.3, 0.9])
    belief = gaussian_pair([0.0, -1.5], [0.3, 0.7], rho)
    assert isinstance(by_rates(loss, belief), QuantileRates)
    found = expected_reduction(loss, belief)
    np.testing.assert_allclose(found[2:], expected_regret(loss, gaussian_pair([0.0, -1.5], [0.3, 0.7], rho[2:])), 2e-7)
    np.testing.assert_allclose(100.0 * found[0], found[1], rtol=1e-2)


@pytest.mark.parametrize(("weight", "warp", "rho"), [(JUMPING, None, 0.9999), (KINKED, LogWarp(), 0.99)])
def test_labels_that_tell_nearly_all(weight, warp, rho):
    loss = Pinball(0.8, weight)
    latent = gaussian_pair([0.1, -1.2], [0.3, 0.7], [rho])
    belief = latent if warp is None else WarpedGaussianBelief(latent, warp)
    assert isinstance(by_rates(loss, belief), QuantileRates)
    np.testing.assert_allclose(expected_reduction(loss, belief), expected_regret(loss, belief), rtol=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_the_expected_rate_is_the_mean_of_the_rate(seed):
    rng = np.random.default_rng(seed)
    values = np.cumsum(10.0 ** rng.uniform(-2.0, 0.3, 4))
    weight = InterpolatedWeight(values.tolist(), (10.0 ** rng.uniform(-1.0, 1.0, 4)).tolist())
    mean, sd = np.mean(values) + rng.uniform(-1.0, 1.0, 2), rng.uniform(0.3, 1.0, 2)
    loss, belief = Pinball(rng.uniform(0.02, 0.98), weight), gaussian_pair(mean, sd**2, [0.5])
    tilts = 0.0 * mean, 0.0 * mean
    panels = panels_of(loss, belief, resolve(loss, belief), mean, sd, tilts, few=False)
    found = QuantileRates(loss, panels, mean, sd, tilts, jumps=False)
    assert found.settled(0.5)
    x, eta = np.array([0.5, 0.99999]), np.linspace(-7.0, 7.0, 16001)
    wanted = np.empty((len(x), 2))
    for i, each in enumerate(x):
        moved = mean[:, None] + np.sqrt(1.0 - each**2) * sd[:, None] * eta
        logs = quantile_rate(loss, panels)(moved, each * sd[:, None] + 0.0 * eta)
        wanted[i] = 2.0 * sd**2 * each * np.sum(np.exp(logs) * norm.pdf(eta), axis=1) * (eta[1] - eta[0])
    np.testing.assert_allclose(np.exp(found.at(x)), wanted, rtol=2e-5)  # even nodes step over kinks


def test_quantiles_whose_weight_is_next_to_nothing_somewhere_take_the_general_route():
    for weight in (NOTHING_BELOW, Weight(lambda z: np.where(z > 0.3, 1.0, 0.0), breakpoints=(0.3,))):
        assert by_rates(Pinball(0.7, weight), gaussian_pair(0.0, 1.0, [0.5])) is None


def test_pieces_are_looked_up_the_same_with_and_without_compiled_loops(monkeypatch):
    belief = gaussian_pair([0.0, -1.5], [0.3, 0.7], [0.0, 1e-14, 1e-5, 0.3, 0.49, 0.51, 0.9])
    extend, _ = smooth_curves(Pinball(0.7, KINKED), belief)
    curves = extend(0.3)
    assert isinstance(curves, PanelCurves)
    found, smallest = curves.reductions(belief)
    monkeypatch.setenv("STAKES_JIT", "0")
    other, same = curves.reductions(belief)
    np.testing.assert_allclose(found, other, rtol=1e-13)
    assert abs(smallest - same) < 1e-14


@pytest.mark.parametrize("low", [0.0, 0.1, 0.6, 0.75, 0.9])
def test_pieces_reach_as_far_as_they_say(low):
    extend, _ = smooth_curves(Pinball(0.7, KINKED), gaussian_pair([0.0], [0.3], [0.1]))
    assert abs(extend(low).low - low) < 1e-12
