"""Mixtures of Gaussian beliefs: the general route against the definition, and the cases that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from stakes import (
    CRPS,
    AbsoluteError,
    BoxCox,
    BoxCoxWarp,
    ExponentialWeight,
    FiniteActions,
    GaussianBelief,
    GaussianMixtureBelief,
    InterpolatedWeight,
    ItakuraSaito,
    Linex,
    LogScore,
    LogWarp,
    NormalEnsemble,
    Pinball,
    SquaredError,
    ThresholdDecision,
    WarpedGaussianBelief,
    Weight,
    effective_context_weights,
    expected_reduction,
    expected_regret,
    find_form,
    integration_error,
    score,
    select,
    uncertainty,
)
from stakes.acquisition import best
from stakes.evaluation import bayes_prediction
from stakes.testing import check_belief
from tests.brute import Grid, score_uncertainty

CLOSED = [
    SquaredError(),
    SquaredError(ExponentialWeight(0.8)),
    Linex(1.2),
    Linex(-0.7, ExponentialWeight(0.5)),
]
OTHERS = [
    SquaredError(Weight(lambda z: 1.0 / (1.0 + np.exp(-4.0 * z)))),
    SquaredError(InterpolatedWeight([-1.0, 0.0, 1.0], [1.0, 3.0, 0.2])),
    ThresholdDecision(0.5, miss=5.0, false_alarm=1.0),
    FiniteActions(lambda z: np.abs(z[..., None] - np.array([-1.0, 0.2, 1.5])), breakpoints=(-1.0, 0.2, 1.5)),
]
DISTRIBUTIONAL = {"crps": CRPS(), "log": LogScore(), "quantile": AbsoluteError(), "high": Pinball(0.9)}


def mixture(rng, n_hypotheses=3, n_candidates=3, n_contexts=2, largest=0.9, spread=1.0, **settings):
    """A mixture of hypotheses that differ in all they say."""
    shape = n_hypotheses, n_candidates, n_contexts
    variance, label_variance = rng.uniform(0.5, 2.0, shape[::2]), rng.uniform(0.5, 2.0, shape[:2])
    correlation = largest * rng.uniform(-1.0, 1.0, shape)
    return GaussianMixtureBelief(
        mean=spread * rng.standard_normal(shape[::2]),
        variance=variance,
        candidate_mean=spread * rng.standard_normal(shape[:2]),
        candidate_variance=label_variance,
        covariance=correlation * np.sqrt(variance[:, None, :] * label_variance[:, :, None]),
        **{"weights": rng.uniform(0.2, 1.0, n_hypotheses), **settings},
    )


def joint_tables(belief, y, z, n, m):
    """[J, Z]: sum_s pi_s p_s(y) p_s(z | y) dy at even labels y [J] and targets z [Z]."""
    table = 0.0
    for s in range(belief.n_hypotheses):
        sd = np.sqrt(belief.candidate_variance[s, n])
        slope = belief.covariance[s, n, m] / sd**2
        rest = np.sqrt(belief.variance[s, m] - slope**2 * sd**2)
        centre = belief.mean[s, m] + slope * (y - belief.candidate_mean[s, n])
        heights = np.exp(-0.5 * ((y - belief.candidate_mean[s, n]) / sd) ** 2) / sd
        inside = np.exp(-0.5 * ((z - centre[:, None]) / rest) ** 2) / rest
        table = table + belief.weights[s] * (y[1] - y[0]) * heights[:, None] * inside / (2 * np.pi)
    return table


def reach(mean, variance):
    sd = np.sqrt(variance)
    return (mean - 11.0 * sd).min(), (mean + 11.0 * sd).max()


def from_definition(belief, loss, cuts=(), n_labels=501, n_targets=1001):
    """EUR [N, M] = h today less the expected h after the label, on dense grids of both."""
    found = np.zeros((belief.n_candidates, belief.n_contexts))
    for n, m in np.ndindex(found.shape):
        y = np.linspace(*reach(belief.candidate_mean[:, n], belief.candidate_variance[:, n]), n_labels)
        grid = Grid(*reach(belief.mean[:, m], belief.variance[:, m]), cuts, n_targets)
        joint = joint_tables(belief, y, grid.x, n, m)
        statistics = loss.statistics(grid.inside)  # [Z, D]
        split = np.stack([grid.cumulative(joint * each)[:, -1] for each in statistics.T], axis=-1)
        action = loss.action(split.sum(0))
        found[n, m] = loss.regret(split, action[None, :]).sum()
    return found


@pytest.mark.parametrize("n_hypotheses", [2, 3, 4])
@pytest.mark.parametrize("loss", CLOSED, ids=str)
def test_losses_with_closed_moments_to_1e_6_of_the_definition(rng, loss, n_hypotheses):
    belief = mixture(rng, n_hypotheses)
    assert_allclose(expected_regret(loss, belief), from_definition(belief, loss), rtol=1e-6)


@pytest.mark.parametrize("loss", OTHERS, ids=lambda loss: type(loss).__name__)
def test_other_losses_to_1e_4_of_the_definition(rng, loss):
    belief = mixture(rng, n_candidates=2, largest=0.8)
    wanted = from_definition(belief, loss, (*loss.breakpoints, -0.4, 0.85), 3001, 601)
    assert_allclose(expected_regret(loss, belief), wanted, rtol=1e-4, atol=1e-6 * wanted.max())


@pytest.mark.parametrize("kind", DISTRIBUTIONAL)
def test_losses_of_distributions_to_1e_4_of_the_definition(rng, kind):
    belief, loss = mixture(rng, n_candidates=2), DISTRIBUTIONAL[kind]
    measure, tau = ("pinball", loss.level) if kind in ("quantile", "high") else (kind, None)
    wanted = np.zeros((belief.n_candidates, belief.n_contexts))
    for n, m in np.ndindex(wanted.shape):
        y = np.linspace(*reach(belief.candidate_mean[:, n], belief.candidate_variance[:, n]), 401)
        grid = Grid(*reach(belief.mean[:, m], belief.variance[:, m]), (), 2001)
        joint = joint_tables(belief, y, grid.x, n, m)
        joint = joint[joint.sum(1) > 1e-30]
        today = score_uncertainty(measure, grid, joint.sum(0)[None, :], tau)[0]
        wanted[n, m] = getattr(loss, "unit", 1.0) * (today - score_uncertainty(measure, grid, joint, tau).sum())
    assert_allclose(expected_regret(loss, belief), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", [*CLOSED, *OTHERS, *DISTRIBUTIONAL.values()], ids=lambda loss: type(loss).__name__)
def test_one_hypothesis_is_a_gaussian_belief_to_the_last_digit(rng, loss):
    belief = mixture(rng, 1)
    belief = GaussianMixtureBelief(
        belief.mean, belief.variance, belief.candidate_mean, np.ones((1, 3)), 0.3 * belief.covariance, None, [np.eye(3)]
    )
    one = belief.hypothesis(0)
    assert isinstance(one, GaussianBelief)
    assert find_form(loss, belief).name == find_form(loss, one).name
    for of in (expected_reduction, expected_regret, score, uncertainty):
        np.testing.assert_array_equal(of(loss, belief), of(loss, one))
    np.testing.assert_array_equal(best(loss, belief, n=2).scores, best(loss, one, n=2).scores)
    chosen, wanted = (select(loss, each, n=2) for each in (belief, one))
    assert chosen.indices == wanted.indices
    np.testing.assert_array_equal(chosen.joint_reduction, wanted.joint_reduction)
    if loss.finite_actions or getattr(loss, "weight", None) is None:
        return
    for of in (effective_context_weights, bayes_prediction):
        np.testing.assert_array_equal(of(loss, belief), of(loss, one))


@pytest.mark.parametrize("loss", [*CLOSED, *OTHERS, AbsoluteError()], ids=lambda loss: type(loss).__name__)
def test_hypotheses_that_agree_are_one(rng, loss):
    belief = mixture(rng, 1)
    arrays = belief.mean, belief.variance, belief.candidate_mean, belief.candidate_variance, belief.covariance
    same = GaussianMixtureBelief(*(np.repeat(each, 3, axis=0) for each in arrays), weights=[1.0, 2.0, 3.0])
    assert_allclose(expected_regret(loss, same), expected_reduction(loss, belief), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("loss", [*CLOSED, *OTHERS, CRPS()], ids=lambda loss: type(loss).__name__)
def test_the_order_of_hypotheses_does_not_matter(rng, loss):
    belief, order = mixture(rng), [2, 0, 1]
    arrays = belief.mean, belief.variance, belief.candidate_mean, belief.candidate_variance, belief.covariance
    other = GaussianMixtureBelief(*(each[order] for each in arrays), weights=belief.weights[order])
    assert_allclose(expected_regret(loss, other), expected_regret(loss, belief), rtol=1e-9, atol=1e-15)


def test_without_covariance_it_is_an_ensemble_of_normals(rng):
    belief = mixture(rng, 4, largest=0.0)
    sd, label_sd = np.sqrt(belief.variance), np.sqrt(belief.candidate_variance)
    normals = NormalEnsemble(belief.candidate_mean.T, label_sd.T, belief.mean.T, sd.T, belief.weights)
    for loss in [*CLOSED, *OTHERS]:
        wanted = expected_reduction(loss, normals)
        assert_allclose(expected_regret(loss, belief), wanted, rtol=2e-6, atol=1e-12 * wanted.max())


@pytest.mark.parametrize("largest", [0.9, 0.999999, 1.0])
@pytest.mark.parametrize("loss", [*CLOSED, *OTHERS], ids=lambda loss: type(loss).__name__)
def test_laws(rng, loss, largest):
    check_belief(mixture(rng, 2, largest=largest), loss, rtol=1e-5)


@given(
    seed=st.integers(0, 10**6),
    n_hypotheses=st.integers(1, 4),
    largest=st.sampled_from([0.01, 0.5, 0.95]),
    spread=st.sampled_from([1e-6, 0.3, 3.0]),
)
def test_no_label_is_worth_less_than_nothing(seed, n_hypotheses, largest, spread):
    belief = mixture(np.random.default_rng(seed), n_hypotheses, 2, 2, largest, spread)
    for loss in (SquaredError(), Linex(0.7), ThresholdDecision(0.5)):
        reductions = expected_regret(loss, belief)
        assert np.all(reductions >= -1e-12 * reductions.max())
        assert np.all(reductions <= uncertainty(loss, belief) * (1 + 1e-9))


def test_hypotheses_of_very_different_widths():
    belief = GaussianMixtureBelief(
        mean=[[0.0], [1.0]],
        variance=[[1.0], [2.0]],
        candidate_mean=[[0.5], [0.0]],
        candidate_variance=[[1e-14], [1.0]],
        covariance=[[[0.5e-7]], [[0.7]]],
        weights=[0.3, 0.7],
    )
    # In the limit the first hypothesis is known to be right or wrong, and its label tells 0.25 of its variance of 1.
    between = 0.3 * 0.7 * 1.0
    assert_allclose(expected_regret(SquaredError(), belief), between + 0.3 * 0.25 + 0.7 * 0.49, rtol=1e-5)


def test_a_steep_exponential_weight_moves_where_labels_matter(rng):
    belief = mixture(rng, 2)
    loss = SquaredError(ExponentialWeight(4.0))
    wanted = np.zeros((3, 2))
    rate = 4.0
    for n, m in np.ndindex(wanted.shape):  # by the weighted normals that each hypothesis turns into, in closed form
        mean, variance, slope = belief.mean[:, m], belief.variance[:, m], belief.covariance[:, n, m]
        label_sd = np.sqrt(belief.candidate_variance[:, n])
        mass = belief.weights * np.exp(rate * mean + rate**2 * variance / 2)
        centre = belief.candidate_mean[:, n] + rate * slope
        y = np.linspace((centre - 10 * label_sd).min(), (centre + 10 * label_sd).max(), 40001)[:, None]
        heights = mass * np.exp(-0.5 * ((y - centre) / label_sd) ** 2) / label_sd / np.sqrt(2 * np.pi)
        answers = mean + rate * variance + slope / label_sd**2 * (y - centre)
        act = mass @ (mean + rate * variance) / mass.sum()
        weights = heights.sum(1)
        regrets = ((heights * (answers - act)).sum(1)) ** 2 / np.where(weights > 0, weights, 1.0)
        wanted[n, m] = regrets.sum() * (y[1, 0] - y[0, 0])
    assert_allclose(expected_regret(loss, belief), wanted, rtol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 40.0])
def test_linex_by_logarithms_goes_on_from_where_plain_numbers_end(rng, alpha):
    """EUR = log E[T] - E_y log E[T | y] for T = exp(-alpha z), by closed moments and logarithms throughout."""
    belief = mixture(rng, 2)
    wanted, shares = np.zeros((3, 2)), np.log(belief.weights)
    for n, m in np.ndindex(wanted.shape):
        mean, variance, slope = belief.mean[:, m], belief.variance[:, m], belief.covariance[:, n, m]
        label_mean, label_sd = belief.candidate_mean[:, n], np.sqrt(belief.candidate_variance[:, n])
        y = np.linspace(*reach(label_mean, label_sd**2), 200001)[:, None]
        t = (y - label_mean) / label_sd
        logs = shares - 0.5 * t**2 - np.log(label_sd * np.sqrt(2 * np.pi))
        rest = variance - slope**2 / label_sd**2
        given_label = -alpha * (mean + slope / label_sd * t) + alpha**2 * rest / 2
        after = logsumexp(logs + given_label, axis=1) - logsumexp(logs, axis=1)
        today = logsumexp(shares - alpha * mean + alpha**2 * variance / 2)
        wanted[n, m] = (np.exp(logsumexp(logs, axis=1)) * (today - after)).sum() * (y[1, 0] - y[0, 0])
    assert_allclose(expected_regret(Linex(alpha), belief), wanted, rtol=1e-6)


def test_the_rule_of_labels_has_converged(rng):
    belief = mixture(rng, 4, spread=3.0)
    assert np.all(integration_error(SquaredError(), belief) < 1e-7)


def test_from_beliefs(rng):
    belief = mixture(rng, noise_variance=[0.1, 0.2, 0.3])
    ones = [belief.hypothesis(s) for s in range(3)]
    stacked = GaussianMixtureBelief.from_beliefs(ones, belief.candidate_mean, belief.weights)
    assert_allclose(score(SquaredError(), stacked), score(SquaredError(), belief), rtol=0)
    assert_allclose(stacked.noise_variance, np.repeat([[0.1], [0.2], [0.3]], 3, axis=1))
    with pytest.raises(ValueError, match="the same candidates and contexts"):
        GaussianMixtureBelief.from_beliefs([ones[0], ones[1].take(slice(0, 1), slice(None))], belief.candidate_mean)
    with pytest.raises(ValueError, match="one for each hypothesis"):
        GaussianMixtureBelief.from_beliefs([], [])


def test_take_keeps_covariances_between_candidates():
    rows = np.stack([np.eye(3) + 0.1, np.eye(3) + 0.2])
    variance = np.stack([np.diag(each) for each in rows])
    arrays = np.zeros((2, 2)), np.ones((2, 2)), np.zeros((2, 3)), variance, np.full((2, 3, 2), 0.2)
    for given_rows in (rows, lambda i: rows[:, i]):
        block = GaussianMixtureBelief(*arrays, None, given_rows).take(slice(1, 3), slice(None))
        found = block.candidate_covariance
        found = np.stack([found(i) for i in range(2)], axis=1) if callable(found) else found
        assert_allclose(found, rows[:, 1:, 1:])
        one = block.hypothesis(1).candidate_covariance
        assert_allclose(one(1) if callable(one) else one[1], rows[1, 2, 1:])


WARPED = [
    BoxCox(0.0),
    SquaredError(),
    SquaredError(ExponentialWeight(-0.5)),
    ItakuraSaito(),
    ThresholdDecision(1.5, 3.0, 1.0),
    CRPS(),
    LogScore(),
    Pinball(0.8),
]


def warped(rng, n_hypotheses=2):
    latent = mixture(rng, n_hypotheses, 2, 2, spread=0.3)
    return WarpedGaussianBelief(
        GaussianMixtureBelief(
            latent.mean,
            0.2 * latent.variance,
            latent.candidate_mean,
            latent.candidate_variance,
            np.sqrt(0.2) * latent.covariance,
            latent.weights,
        ),
        LogWarp(),
    )


@pytest.mark.parametrize("loss", WARPED, ids=lambda loss: type(loss).__name__)
def test_a_warped_mixture_against_the_definition(rng, loss):
    """Dense grids of the label and of f, with targets exp(f)."""
    belief = warped(rng)
    latent, wanted = belief.latent, np.zeros((2, 2))
    for n, m in np.ndindex(wanted.shape):
        y = np.linspace(*reach(latent.candidate_mean[:, n], latent.candidate_variance[:, n]), 2001)
        cuts = (np.log(1.5),) if isinstance(loss, ThresholdDecision) else ()
        grid = Grid(*reach(latent.mean[:, m], latent.variance[:, m]), cuts, 801)
        joint = joint_tables(latent, y, grid.x, n, m)
        if isinstance(loss, CRPS | LogScore | Pinball):
            kind = {CRPS: "crps", LogScore: "log", Pinball: "pinball"}[type(loss)]
            joint = joint[joint.sum(1) > 1e-30]
            settings = {"tau": getattr(loss, "tau", None), "forward": np.exp, "slope": np.exp}
            today = score_uncertainty(kind, grid, joint.sum(0)[None, :], **settings)[0]
            wanted[n, m] = today - score_uncertainty(kind, grid, joint, **settings).sum()
        else:
            statistics = loss.statistics(np.exp(grid.inside))
            split = np.stack([grid.cumulative(joint * each)[:, -1] for each in statistics.T], axis=-1)
            wanted[n, m] = loss.regret(split, loss.action(split.sum(0))[None, :]).sum()
    found = expected_reduction(loss, belief)
    assert_allclose(found, wanted, rtol=1e-4, atol=1e-6 * wanted.max())
    assert_allclose(expected_regret(loss, belief), found, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("loss", WARPED, ids=lambda loss: type(loss).__name__)
def test_a_warped_mixture_of_one_is_a_warped_gaussian_belief(rng, loss):
    belief = warped(rng, 1)
    assert isinstance(belief.latent, GaussianBelief)
    one = WarpedGaussianBelief(belief.latent, LogWarp())
    np.testing.assert_array_equal(score(loss, belief), score(loss, one))


def test_a_warp_is_refused_where_a_hypothesis_leaves_it(rng):
    latent = mixture(rng, 2, 2, 2)
    with pytest.raises(ValueError, match=r"puts .* of its mass outside at context"):
        WarpedGaussianBelief(latent, BoxCoxWarp(0.9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": [0.0]}, r"mean must have shape \[S, M\]"),
        ({"mean": np.zeros((0, 1)), "candidate_mean": np.zeros((0, 1))}, "at least one hypothesis"),
        ({"variance": [[1.0]]}, r"variance must have shape \[2, 1\]"),
        ({"candidate_mean": [[0.0]]}, r"candidate_mean must have shape \[2, N\]"),
        ({"candidate_variance": [[1.0], [0.0]]}, "candidate_variance must be positive"),
        ({"covariance": [[[0.1]], [[1.1]]]}, r"hypothesis 1: covariance\[n, m\]\^2 must not exceed"),
        ({"weights": [1.0]}, r"weights must have shape \[2\]"),
        ({"weights": [1.0, -1.0]}, "weights must be at least 0"),
        ({"candidate_covariance": [[1.0]]}, r"candidate_covariance must have shape \[2, 1, 1\]"),
        ({"noise_variance": [1.0, 2.0, 3.0]}, r"noise_variance must have shape \[2, N\]"),
        ({"mean": [[np.nan], [0.0]]}, "mean must be finite"),
    ],
)
def test_bad_input_is_refused(change, message):
    good = {
        "mean": [[0.0], [1.0]],
        "variance": [[1.0], [1.0]],
        "candidate_mean": [[0.0], [0.0]],
        "candidate_variance": [[1.0], [1.0]],
        "covariance": [[[0.5]], [[0.5]]],
    }
    with pytest.raises(ValueError, match=message):
        GaussianMixtureBelief(**{**good, **change})
