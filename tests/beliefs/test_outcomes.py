"""Rules for the outcomes of a label: which one runs, and that they agree as they converge."""

import numpy as np
import pytest

from stakes import Linex, NormalEnsemble, SquaredError, integration_error, score
from stakes.beliefs import Automatic, MemberNodes, MemberPanels, MixtureGrid


def ensemble(rng, spread, sd, n_members=6, **settings):
    means = spread * rng.standard_normal((7, n_members))
    sds = sd * np.ones((4, n_members)) if np.isscalar(sd) else np.exp(rng.uniform(*np.log(sd), (4, n_members)))
    return NormalEnsemble(means[:4], sds, means[4:] / max(spread, 1), 0.3, **settings)


def test_which_rule_is_automatic(rng):
    even, uneven = ensemble(rng, 1.0, 0.3), ensemble(rng, 1.0, (0.001, 1.0))
    assert Automatic().chosen(even.candidate_mean, even.candidate_sd) == MixtureGrid()
    assert Automatic().chosen(uneven.candidate_mean, uneven.candidate_sd) == MemberPanels()


@pytest.mark.parametrize("rule", [MixtureGrid(), MemberPanels(), MemberNodes.spaced(801)])
def test_deterministic_rules_agree(rng, rule):
    exact = ensemble(rng, 1.0, 0.5)
    other = NormalEnsemble(
        exact.candidate_mean, exact.candidate_sd, exact.context_mean, exact.context_sd, exact.member_weights, rule
    )
    np.testing.assert_allclose(score(Linex(1.0), other), score(Linex(1.0), exact), rtol=1e-4)
    assert np.all(integration_error(Linex(1.0), other) < 1e-4)


def test_random_nodes_converge_and_quasi_random_ones_faster(rng):
    exact = ensemble(rng, 1.0, 0.5)
    wanted = score(SquaredError(), exact)

    def error(rule):
        other = NormalEnsemble(
            exact.candidate_mean, exact.candidate_sd, exact.context_mean, exact.context_sd, rule=rule
        )
        return abs(score(SquaredError(), other) - wanted).max() / wanted.max()

    def mean_error(make, count):
        return np.mean([error(make(count, np.random.default_rng(seed))) for seed in range(8)])

    few, many = (mean_error(MemberNodes.monte_carlo, count) for count in (64, 4096))
    assert many < few / 3  # the square root of 64 is 8
    assert mean_error(MemberNodes.quasi_monte_carlo, 1024) < mean_error(MemberNodes.monte_carlo, 1024) / 3


def test_random_nodes_are_the_same_for_the_same_generator():
    for make in (MemberNodes.monte_carlo, MemberNodes.quasi_monte_carlo):
        first, second = (make(64, np.random.default_rng(5)) for _ in range(2))
        np.testing.assert_array_equal(first.nodes, second.nodes)
        assert len(first.refined().nodes) == 128
        assert first.refined().kind == first.kind


@pytest.mark.parametrize("rule", [MixtureGrid(), MemberPanels(), MemberNodes.spaced(), Automatic()])
def test_masses_are_a_probability_of_cells_and_members(rng, rule):
    mean, sd, members = rng.standard_normal((3, 4)), rng.uniform(0.3, 1, (3, 4)), rng.dirichlet(np.ones(4))
    masses = rule.masses(mean, sd, members)
    assert masses.shape == (3, rule.size(mean, sd), 4)
    assert np.all(masses >= 0)
    np.testing.assert_allclose(masses.sum((1, 2)), 1.0, rtol=1e-9)
    np.testing.assert_allclose(masses.sum(1), np.broadcast_to(members, (3, 4)), atol=1e-3)
