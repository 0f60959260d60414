"""Switching points against hand-computed ones, and split moments of decisions against dense integration."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import AccuracyWarning, FiniteActions, GaussianBelief, NormalEnsemble, ThresholdDecision, expected_regret
from stakes.beliefs import MemberNodes, MemberPanels, MixtureGrid
from stakes.beliefs.switching import switching_points
from stakes.losses import SquaredError, ZeroOne
from tests.brute import gaussian_pair, normal_expectation


def normal_density(u):
    return np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)


def test_only_finite_actions_switch():
    assert ThresholdDecision(0.0).finite_actions
    assert ZeroOne().finite_actions
    assert not SquaredError().finite_actions


def test_switching_points_of_lines_by_hand(xp, host):
    # Costs 0 + e, 1 - y + e and 3 - 2 y + e with e = 5: the first is cheapest below 1, the second to 2, then the third.
    def costs(y):
        return xp.stack([5.0 + 0.0 * y, 6.0 - y, 8.0 - 2.0 * y], axis=-1)

    nodes = xp.reshape(xp.asarray(np.linspace(-3.0, 2.4, 10)), (1, 10))
    assert host(switching_points(costs, nodes)) == pytest.approx(np.array([[1.0, 2.0]]), abs=1e-4)


def test_an_action_that_is_best_only_between_two_nodes_is_found():
    points = switching_points(
        lambda y: np.stack([1.0 + y, 0.9 + 0.0 * y, 1.05 - y], axis=-1), np.linspace(-1.5, 1.5, 4)[None, :]
    )
    assert points[0] == pytest.approx([-0.1, 0.15], abs=1e-3)


def test_an_action_that_is_best_for_a_moment_is_worth_what_it_is():
    """Between two switches 0.05 apart, an error of 1e-5 in each would be 1e-6 of what lies between them."""

    def costs(y):
        return np.stack([np.exp(0.7 * y), 1.0 + 0.003 * np.cos(3.0 * y) - 0.0025 + 0.5 * y, 2.0 - np.exp(-0.8 * y)], -1)

    points = switching_points(costs, np.linspace(-1.5, 1.5, 13)[None, :])[0]
    for place in points:
        row = np.sort(costs(np.array(place)))
        assert row[1] - row[0] < 1e-9


def test_pairs_with_fewer_switches_repeat_the_last_node():
    shift, nodes = np.array([[0.0], [50.0]]), np.tile(np.linspace(-4.0, 5.0, 10), (2, 1))
    points = switching_points(lambda y: np.stack([0.0 * y + 9.0, 9.0 + shift - y], axis=-1), nodes)
    assert points.shape == (2, 1)
    assert points[0] == pytest.approx([0.0], abs=1e-6)
    assert points[1] == pytest.approx([5.0])


def test_no_switch_and_no_pairs():
    assert switching_points(lambda y: np.stack([y + 9.0, y + 10.0], axis=-1), np.zeros((2, 4))).shape == (2, 0)
    assert switching_points(lambda y: np.stack([y, y], axis=-1), np.zeros((0, 4))).shape[0] == 0


def brute_ensemble(loss, belief, points=200_001):
    """EUR [N, M] by a dense grid of labels, each member's expected costs by dense panels."""
    members = zip(belief.context_mean.ravel(), belief.context_sd.ravel(), strict=True)
    costs = [normal_expectation(lambda z: loss.cost_rows(z).T, mean, sd, loss.breakpoints) for mean, sd in members]
    expected = np.reshape(costs, (*belief.context_mean.shape, -1))  # [M, K, A]
    result = np.zeros((belief.n_candidates, belief.n_contexts))
    for n in range(belief.n_candidates):
        mean, sd = belief.candidate_mean[n], belief.candidate_sd[n]
        y = np.linspace((mean - 9 * sd).min(), (mean + 9 * sd).max(), points)
        likelihood = belief.member_weights * normal_density((y[:, None] - mean) / sd) / sd
        for m in range(belief.n_contexts):
            costs = likelihood @ expected[m]  # [points, A]
            today = np.argmin(belief.member_weights @ expected[m])
            result[n, m] = (costs[:, today] - costs.min(1)).sum() * (y[1] - y[0])
    return result


@pytest.fixture
def ensemble(rng):
    shape = {"size": (3, 4)}
    return NormalEnsemble(
        rng.normal(**shape), rng.uniform(0.3, 1.0, **shape), rng.normal(size=(2, 4)), rng.uniform(0.2, 0.8, (2, 4)),
        rng.dirichlet(np.ones(4)),
    )  # fmt: skip


ORDERS = np.linspace(-2.0, 2.0, 25)
DECISIONS = [
    ThresholdDecision(0.2, miss=3.0),
    FiniteActions(lambda z: (z[..., None] - ORDERS) ** 2),
    FiniteActions(
        lambda z: np.maximum(2 * (z[..., None] - ORDERS[::4]), ORDERS[::4] - z[..., None]), tuple(ORDERS[::4])
    ),
]


@pytest.mark.parametrize("loss", DECISIONS, ids=["threshold", "squares", "newsvendor"])
def test_ensemble_against_dense_grids(loss, ensemble):
    wanted = brute_ensemble(loss, ensemble)
    assert expected_regret(loss, ensemble) == pytest.approx(wanted, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("rule", [MixtureGrid(6.0), MemberPanels(), MemberNodes.spaced(65)], ids=repr)
def test_rules_of_outcomes_agree_on_decisions(rule, ensemble):
    other = NormalEnsemble(
        ensemble.candidate_mean, ensemble.candidate_sd, ensemble.context_mean, ensemble.context_sd,
        ensemble.member_weights, rule,
    )  # fmt: skip
    for loss in DECISIONS:
        assert expected_regret(loss, other) == pytest.approx(expected_regret(loss, ensemble), rel=1e-7, abs=1e-9)


def newsvendor_reduction(mean, sd, rho, orders, under, over):
    """EUR from the definition, with E[(z - q)+] of a normal in closed form and a dense grid of labels."""
    from scipy.stats import norm

    def costs(centre, spread):
        u = (orders - centre[:, None]) / spread
        above = spread * norm.pdf(u) + (centre[:, None] - orders) * norm.sf(u)  # E[(z - q)+]
        return under * above + over * (above - centre[:, None] + orders)

    eta = np.linspace(-9.0, 9.0, 400_001)
    after = costs(mean + sd * np.sqrt(rho) * eta, sd * np.sqrt(1 - rho))
    today = costs(np.array([mean]), sd)[0].argmin()
    return np.sum((after[:, today] - after.min(1)) * normal_density(eta)) * (eta[1] - eta[0])


@pytest.mark.parametrize("rho", [0.02, 0.3, 0.9, 0.995])
def test_newsvendor_under_a_gaussian_belief(rho):
    orders = np.array([-1.0, 0.0, 0.5, 2.0, 3.0])
    loss = FiniteActions(
        lambda z: np.maximum(4.0 * (z[..., None] - orders), orders - z[..., None]), breakpoints=tuple(orders)
    )
    got = expected_regret(loss, gaussian_pair(0.4, 1.7, rho))[0, 0]
    assert got == pytest.approx(newsvendor_reduction(0.4, np.sqrt(1.7), rho, orders, 4.0, 1.0), rel=2e-7)


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=6, unique=True),
    st.floats(-2, 2),
    st.floats(0.05, 0.98),
)
def test_more_actions_never_lose_and_stay_below_squared_error_with_all(places, mean, rho):
    # min over a finite set of quadratic costs: the value of information is at least 0 and no more than knowing z.
    places = np.array(sorted(places))
    loss = FiniteActions(lambda z: (z[..., None] - places) ** 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # places 1e-9 apart: costs differ by little more than rounding
        got = expected_regret(loss, gaussian_pair(mean, 1.0, [rho, 0.999999]))[:, 0]
    assert -1e-12 <= got[0] <= got[1] * (1 + 1e-9) + 1e-12


def test_contexts_that_share_nodes_but_not_switches():
    loss = FiniteActions(lambda z: (z[..., None] - np.array([-1.0, 0.0, 2.0])) ** 2)
    together = GaussianBelief(np.array([0.1, 0.7, -2.0]), np.ones(3), np.ones(1), np.full((1, 3), 0.8))
    alone = [expected_regret(loss, together.take(slice(None), slice(m, m + 1)))[0, 0] for m in range(3)]
    assert expected_regret(loss, together)[0] == pytest.approx(alone, rel=1e-12)
