"""Where statistics are steep, jump or kink is found, whatever the contexts and however the target is written."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

from stakes import (
    AccuracyWarning,
    FiniteActions,
    GaussianBelief,
    InterpolatedWeight,
    Linex,
    LogScore,
    LogWarp,
    NormalEnsemble,
    SquaredError,
    Weight,
    expected_reduction,
)
from stakes.beliefs import MixtureGrid
from stakes.beliefs.quadrature import SPACING, Reference, normal_moments
from stakes.beliefs.roughness import resolved, scanned
from stakes.beliefs.warped import Unwarped

ZERO, ONE = np.zeros(1), np.ones(1)


def sigmoid(slope, centre=0.3):
    return lambda z: 0.1 + 1.0 / (1.0 + np.exp(-np.clip(slope * (z - centre), -700.0, 700.0)))


def mean_weight(found, mean, sd):
    """E[w] by the rule that was found."""
    reference = Reference(np.zeros_like(mean), np.zeros_like(mean))
    return normal_moments(found, mean[:, None], sd[:, None], reference)[:, 0, 0]


def wanted_mean(weight, mean, sd, places):
    """The same on a hundred panels of thirty nodes between any two places."""
    nodes, lengths = np.polynomial.legendre.leggauss(30)
    ends = np.sort(np.concatenate([[-12.0, 12.0], (np.asarray(places) - mean) / sd]))
    edges = np.unique(np.concatenate([np.linspace(*pair, 101) for pair in pairwise(ends)]))
    half = np.diff(edges)[:, None] / 2.0
    u = edges[:-1, None] + half * (1.0 + nodes)
    return np.sum(half * lengths * weight(mean + sd * u) * np.exp(-0.5 * u * u)) / np.sqrt(2.0 * np.pi)


def test_what_is_smooth_needs_nothing():
    found = resolved(SquaredError(sigmoid(2.0)), ZERO, ONE)
    assert found.spacing == SPACING
    assert found.edges == ()
    assert found.error == 0.0


@pytest.mark.parametrize("place", [0.3, -2.123456789, 1e-7])
def test_a_jump_is_found_where_it_is(place):
    found = resolved(SquaredError(lambda z: np.where(z > place, 5.0, 1.0)), ZERO, ONE)
    assert found.spacing == 0.0
    nearest = min(found.edges, key=lambda edge: abs(edge - place))
    assert abs(nearest - place) < 1e-12
    assert found.scales[found.edges.index(nearest)] == 0.0


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (0.5, 0.5), (0.6, 0.4), (1.0, 2.0), (10.0, 2.5)])
def test_jumps_at_round_numbers_of_round_beliefs_are_found(mean, sd):
    for steps in np.arange(-3.0, 3.01, 0.25):
        place = mean + steps * sd
        for loss in (
            SquaredError(lambda z, place=place: np.where(z > place, 1.0, 0.01)),
            Linex(1.0 / sd, lambda z, place=place: np.where(z > place, 1.0, 0.01)),
        ):
            found = resolved(loss, np.array([mean]), np.array([sd]))
            assert found.spacing == 0.0, (steps, loss)
            assert min(abs(edge - place) for edge in found.edges) < 1e-12 * max(1.0, abs(place)), (steps, loss)


def test_a_kink_is_found_where_it_is():
    found = resolved(SquaredError(lambda z: 1.0 + np.maximum(z - 0.7, 0.0)), ZERO, ONE)
    assert min(abs(edge - 0.7) for edge in found.edges) < 1e-7


@pytest.mark.parametrize("slope", [1.0, 9.0, 20.0, 60.0, 200.0, 1000.0])
def test_steep_weights_are_integrated_to_six_digits(slope):
    weight = sigmoid(slope)
    found = resolved(LogScore(weight), ZERO, ONE)
    away = np.concatenate([[0.0], 2.0 ** np.arange(-2, 6) / slope])
    places = np.concatenate([0.3 + away, 0.3 - away])
    assert mean_weight(found, ZERO, ONE)[0] == pytest.approx(wanted_mean(weight, 0.0, 1.0, places), rel=1e-8)


@pytest.mark.parametrize("ratio", [1.0, 1.4, 1.9, 2.5, 8.0])
def test_what_is_smooth_to_the_narrowest_context_may_be_steep_to_the_widest(ratio):
    """The spacing counts standard deviations of each context, and what they look at is one weight."""
    mean, sd, weight = np.array([0.0, 0.1]), np.array([1.0, ratio]), sigmoid(8.0)
    found = resolved(LogScore(weight), mean, sd)
    away = np.concatenate([[0.0], 2.0 ** np.arange(-2, 6) / 8.0])
    wanted = [
        wanted_mean(weight, m, s, np.concatenate([0.3 + away, 0.3 - away])) for m, s in zip(mean, sd, strict=True)
    ]
    np.testing.assert_allclose(mean_weight(found, mean, sd), wanted, rtol=1e-7)


def test_members_of_other_widths_are_resolved_too():
    """Linex under an ensemble: 6e-5 off without a warning where the wider member had the spacing of the narrower."""
    weight = Weight(lambda z: 0.19 + 3.64 / (1.0 + np.exp(np.clip((z - 2.0225) / 0.1173, -700.0, 700.0))))
    means = [[-0.3487, 0.1903]], [[0.62, 0.3761]], [[-0.167, -0.2869]], [[1.1072, 1.9379]], [0.5643, 0.4357]
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        found = expected_reduction(Linex(0.286, weight), NormalEnsemble(*means))
    fine = Weight(weight.function, breakpoints=tuple(2.0225 + 0.1173 * np.linspace(-30.0, 30.0, 121)))
    wanted = expected_reduction(Linex(0.286, fine), NormalEnsemble(*means, rule=MixtureGrid(12.0)))
    np.testing.assert_allclose(found, wanted, rtol=1e-7)


def test_costs_that_cross_are_no_noise_where_targets_are_rounded():
    """Their difference is as small as one likes at the crossing; under a warp, rounding of z = exp(f) is not."""

    def costs(z):
        u = (np.log(z) - 0.0142) / 0.378
        return np.stack(
            [0.02 + 0.3 / (1.0 + np.exp(-np.clip((u + 0.0254) / 0.0039, -700.0, 700.0))), 0.1 + 0.0 * u], -1
        )

    loss = FiniteActions(costs)
    found = scanned(Unwarped(loss, LogWarp(), ZERO), np.array([0.0142]), np.array([0.378]))
    assert found.error == 0.0
    crossing = 0.0142 + 0.378 * (-0.0254 + 0.0039 * np.log(0.08 / 0.22))
    assert min(abs(edge - crossing) for edge in found.edges) < 1e-9


def test_noise_is_seen_and_stated():
    found = resolved(SquaredError(lambda z: 1.0 + 0.5 * np.sin(1e6 * z)), ZERO, ONE)
    assert found.error > 1e-3


def test_declared_places_of_our_own_weights_are_taken_at_their_word():
    found = resolved(SquaredError(InterpolatedWeight([0.0, 1.0], [1.0, 3.0])), ZERO, ONE)
    assert found.edges == (0.0, 1.0)
    assert found.spacing == 0.0


def test_constants_ask_for_nothing():
    found = resolved(SquaredError(sigmoid(100.0)), np.zeros(3), np.zeros(3))
    assert (found.spacing, found.edges, found.error) == (SPACING, (), 0.0)


def test_declared_and_found_places_are_those_of_one_axis():
    """A declared step and an undeclared one: both are edges."""
    weight = Weight(lambda z: 1.0 + (z > 0.5) + 2.0 * (z > -0.25), breakpoints=(0.5,))
    found = resolved(SquaredError(weight), ZERO, ONE)
    assert 0.5 in found.edges
    assert min(abs(edge + 0.25) for edge in found.edges) < 1e-12


@pytest.mark.parametrize("slope", [40.0, 400.0])
def test_contexts_of_any_scale_find_the_same_places(slope):
    """A weight of z, seen by contexts whose standard deviations differ by 1e4: each integrates it to six digits."""
    mean, sd = np.array([0.25, 0.3, 0.31]), np.array([1.0, 1e-2, 1e-4])
    found = resolved(LogScore(sigmoid(slope)), mean, sd)
    away = np.concatenate([[0.0], 2.0 ** np.arange(-2, 6) / slope])
    places = np.concatenate([0.3 + away, 0.3 - away])
    wanted = [
        wanted_mean(sigmoid(slope), m, s, np.clip(places, m - 11 * s, m + 11 * s))
        for m, s in zip(mean, sd, strict=True)
    ]
    np.testing.assert_allclose(mean_weight(found, mean, sd), wanted, rtol=1e-7)


def test_the_stated_error_of_reductions_is_no_smaller_than_the_error():
    weight = sigmoid(35.0, 0.1)
    belief = GaussianBelief([0.0], [1.0], [1.0, 1.0], [[0.3], [0.9]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        found = expected_reduction(SquaredError(weight), belief)
    fine = Weight(weight, breakpoints=tuple(0.1 + np.linspace(-30.0, 30.0, 121) / 35.0))
    np.testing.assert_allclose(found, expected_reduction(SquaredError(fine), belief), rtol=1e-7)
