"""Ensembles of normals against dense integration, with every rule."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from stakes import (
    AccuracyWarning,
    ExponentialWeight,
    Linex,
    NormalEnsemble,
    Pinball,
    SquaredError,
    Weight,
    expected_reduction,
    expected_regret,
    score,
    uncertainty,
)
from stakes.beliefs import Automatic, MemberNodes, MemberPanels, MixtureGrid
from stakes.testing import check_belief


def dense(belief, member_moments, regret):
    """EUR [N, M] with members' moments [M, K, D] known, the label on a grid so fine that nothing is left to it."""
    mean, sd, q = belief.candidate_mean, belief.candidate_sd, belief.member_weights
    result = np.zeros((belief.n_candidates, belief.n_contexts))
    for n in range(belief.n_candidates):
        edges = np.unique(np.concatenate([mean[n] + k * sd[n] for k in np.linspace(-10, 10, 81)]))
        nodes, weights = np.polynomial.legendre.leggauss(16)
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        y = (middle[:, None] + half[:, None] * nodes).ravel()
        mass = (half[:, None] * weights).ravel()
        likelihood = q * np.exp(-0.5 * ((y[:, None] - mean[n]) / sd[n]) ** 2) / (sd[n] * np.sqrt(2 * np.pi))
        for m in range(belief.n_contexts):
            split = (mass[:, None] * likelihood) @ member_moments[m]  # [J, D]
            result[n, m] = regret(split[split[:, 0] > 0], split.sum(0)).sum()
    return result


def squared(split, total):
    act = total[1] / total[0]
    return (split[:, 1] - act * split[:, 0]) ** 2 / split[:, 0]


def linex(split, total):
    ratio = split[:, 1] / split[:, 0] / (total[1] / total[0])
    return split[:, 0] * (ratio - np.log(ratio) - 1)


def exponential_moments(mean, sd, rate, statistic_rate=None):
    """E[exp(rate z) (1, z or exp(statistic_rate z))] of each member."""
    weight = np.exp(rate * mean + rate**2 * sd**2 / 2)
    if statistic_rate is None:
        return np.stack([weight, weight * (mean + rate * sd**2)], axis=-1)
    both = rate + statistic_rate
    return np.stack([weight, np.exp(both * mean + both**2 * sd**2 / 2)], axis=-1)


CASES = {
    "squared": (SquaredError(), squared, lambda m, s: exponential_moments(m, s, 0.0)),
    "weighted": (SquaredError(ExponentialWeight(0.8)), squared, lambda m, s: exponential_moments(m, s, 0.8)),
    "linex": (Linex(1.2), linex, lambda m, s: exponential_moments(m, s, 0.0, -1.2)),
    "weighted linex": (Linex(-0.7, ExponentialWeight(0.5)), linex, lambda m, s: exponential_moments(m, s, 0.5, 0.7)),
}


def ensemble(rng, spread, sd, n_members=6, **settings):
    means = spread * rng.standard_normal((7, n_members))
    sds = sd * np.ones((4, n_members)) if np.isscalar(sd) else np.exp(rng.uniform(*np.log(sd), (4, n_members)))
    return NormalEnsemble(means[:4], sds, means[4:] / max(spread, 1), 0.3, **settings)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("spread", "sd", "n_members"),
    [
        (1.0, 0.3, 6),
        (1.0, 2.0, 2),
        (10.0, 0.05, 6),  # far apart
        (0.01, 1.0, 20),  # all but equal: tiny reductions
        (1.0, (0.05, 1.0), 6),
        (1.0, (0.002, 1.0), 6),  # widths of 1 to 500: panels, not a grid
        (1.0, 0.5, 50),
    ],
)
def test_the_default_rule_to_1e_5_of_dense_integration(rng, case, spread, sd, n_members):
    loss, regret, moments = CASES[case]
    belief = ensemble(rng, spread, sd, n_members)
    wanted = dense(belief, moments(belief.context_mean, belief.context_sd), regret)
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-5, atol=1e-7 * wanted.max())


def test_a_member_without_weight_is_no_member(rng):
    whole = ensemble(rng, 1.0, 0.5)
    for rule in (Automatic(), MemberNodes.spaced(101)):
        with_it = NormalEnsemble(
            np.c_[whole.candidate_mean, np.full(4, 900.0)],
            0.5,
            np.c_[whole.context_mean, np.full(3, 7.0)],
            0.3,
            [1] * 6 + [0],
            rule,
        )
        without = NormalEnsemble(whole.candidate_mean, 0.5, whole.context_mean, 0.3, rule=rule)
        np.testing.assert_allclose(score(SquaredError(), with_it), score(SquaredError(), without), rtol=1e-6)


def test_uncertainty_is_the_variance_of_the_mixture(rng):
    belief = ensemble(rng, 1.0, 0.5)
    wanted = belief.context_mean.var(axis=1) + 0.3**2
    np.testing.assert_allclose(uncertainty(SquaredError(), belief), wanted, rtol=1e-12)


@pytest.mark.parametrize("loss", [SquaredError(), Linex(1.0), SquaredError(Weight(lambda z: 1 / (1 + np.exp(-z))))])
def test_laws(rng, loss):
    check_belief(ensemble(rng, 1.0, 0.5), loss)
    check_belief(ensemble(rng, 1.0, (0.01, 1.0)), loss)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"candidate_mean": [0.0]}, ValueError, r"candidate_mean must have shape \[N, K\]"),
        ({"context_mean": [[0.0]]}, ValueError, r"context_mean must have shape \[M, 2\]"),
        ({"context_mean": np.zeros((0, 2))}, ValueError, "at least one context"),
        ({"candidate_sd": 0.0}, ValueError, "candidate_sd must be positive: it includes the noise"),
        ({"context_sd": -1.0}, ValueError, "context_sd must be at least 0"),
        (
            {"candidate_sd": [1.0, 1.0, 1.0]},
            ValueError,
            r"candidate_sd must be a number or broadcast.*\[1, 2\]; got \[3\]",
        ),
        ({"candidate_mean": [[0.0, np.inf]]}, ValueError, "candidate_mean must be finite"),
        ({"member_weights": [1.0]}, ValueError, r"member_weights must have shape \[2\]"),
        ({"rule": 3}, TypeError, "rule must be a rule of stakes.beliefs"),
    ],
)
def test_bad_input_is_refused(change, error, message):
    good = {"candidate_mean": [[0.0, 1.0]], "candidate_sd": 1.0, "context_mean": [[0.0, 1.0]], "context_sd": 1.0}
    with pytest.raises(error, match=message):
        NormalEnsemble(**{**good, **change})


def brute_quantile_worth(tau, shares, labels, spread, targets, points=400_001):
    """EUR of pinball for one pair and members that are certain, by regrets on a dense grid of labels."""
    z = np.sort(targets)
    below = np.cumsum((z == targets[:, None]) * 1.0, axis=1)  # [K, t]
    y = np.linspace(labels.min() - 9 * spread, labels.max() + 9 * spread, points)
    total, today = 0.0, (shares @ below)
    first = today < tau * today[-1]
    for part in np.array_split(y, 200):
        densities = shares * np.exp(-0.5 * ((part[:, None] - labels) / spread) ** 2) / (spread * np.sqrt(2.0 * np.pi))
        after = densities @ below  # [y, t]
        gap = after - tau * after[:, -1:]
        wrong = (gap < 0) != first
        total += float((abs(gap) * wrong)[:, :-1].sum(0) @ np.diff(z)) * (y[1] - y[0])
    return total


@pytest.mark.parametrize("n_members", [2, 3, 12])
def test_quantiles_of_members_that_are_certain(n_members):
    """The answer jumps from member to member as y varies: 3e-4 off, without a warning, on even cells of y."""
    rng = np.random.default_rng(n_members)
    labels, targets = rng.normal(0.0, 1.5, n_members), rng.normal(size=n_members)
    shares = np.full(n_members, 1.0 / n_members)
    belief = NormalEnsemble(labels[None], 0.5, targets[None], 0.0)
    wanted = brute_quantile_worth(0.3, shares, labels, 0.5, targets)
    assert expected_reduction(Pinball(0.3), belief)[0, 0] == pytest.approx(wanted, rel=2e-6)


def test_quantiles_that_pass_a_step_of_the_weight():
    """Regrets bend where the answer passes it, as y varies; cells of y split there."""
    labels, targets, sds = np.array([-3.14, -1.02]), np.array([0.19, 0.97]), np.array([1.56, 1.1])
    belief = NormalEnsemble(labels[None], 0.7, targets[None], sds[None], [0.7, 0.3])
    loss = Pinball(0.2, lambda z: np.where(z > -0.45, 3.0, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        found = expected_reduction(loss, belief)
    finer = replace(belief, rule=Automatic(2**20, MixtureGrid(24.0), MemberPanels(40)))
    np.testing.assert_allclose(found, expected_reduction(loss, finer), rtol=1e-9)
    grid = replace(belief, rule=MixtureGrid(1000.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        np.testing.assert_allclose(found, expected_reduction(loss, grid), rtol=3e-7)


def test_rules_of_labels_are_refined_until_two_agree():
    """Three points an sd leave 5e-6 where two members six sds apart weigh the same; nothing said so."""
    belief = NormalEnsemble([[-3.0, 3.0]], 0.97, [[-1.0, 1.3]], 0.7)
    loss = Linex(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        found = expected_regret(loss, belief)
    wanted = expected_regret(loss, replace(belief, rule=MixtureGrid(48.0)))
    np.testing.assert_allclose(found, wanted, rtol=2e-7)
