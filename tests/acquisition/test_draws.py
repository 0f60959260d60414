"""Appendix D.3: worth by importance weights over joint draws agrees with exact answers within the error it states."""

import numpy as np
import pytest

from stakes import (
    CRPS,
    AbsoluteError,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    Linex,
    LogLoss,
    LogScore,
    PerContext,
    Pinball,
    SquaredError,
    ThresholdDecision,
    expected_reduction,
    expected_regret,
    find_form,
    sampling_error,
    score,
    uncertainty,
)
from stakes.beliefs import DrawsBelief
from stakes.evaluation import bayes_prediction
from stakes.exceptions import StakesError
from stakes.losses import Classes

N, M, NOISE = 4, 3, 0.6
SETUP = np.random.default_rng(5)
ROOT = SETUP.normal(size=(N + M, N + M)) / 2
COVARIANCE, MEAN = ROOT @ ROOT.T + 0.02 * np.eye(N + M), SETUP.normal(size=N + M) / 2
GAUSSIAN = GaussianBelief(
    MEAN[N:], np.diag(COVARIANCE)[N:] + 0.1, np.diag(COVARIANCE)[:N] + NOISE**2, COVARIANCE[:N, N:]
)
HYPOTHESES = 5
CANDIDATES = SETUP.dirichlet(np.full(3, 0.7), size=(N, HYPOTHESES))
CONTEXTS = SETUP.dirichlet(np.full(3, 2.0), size=(M, HYPOTHESES))
CATEGORICAL = CategoricalEnsemble(CANDIDATES, CONTEXTS)


def gaussian_draws(count, seed):
    rng = np.random.default_rng(seed)
    f = MEAN[:, None] + np.linalg.cholesky(COVARIANCE) @ rng.normal(size=(N + M, count))
    y, z = f[:N] + NOISE * rng.normal(size=(N, count)), f[N:] + np.sqrt(0.1) * rng.normal(size=(M, count))
    return DrawsBelief(y, z, lambda y, rows: -0.5 * ((y[:, :, None] - f[rows][:, None, :]) / NOISE) ** 2)


def categorical_draws(count, seed):
    """Draws of a hypothesis, of labels and of classes at the contexts."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(HYPOTHESES, size=count)

    def classes(probabilities):  # [rows, H, C] -> [rows, K]
        return (rng.random((len(probabilities), count, 1)) > probabilities[:, drawn].cumsum(axis=2)).sum(axis=2)

    y, z = classes(CANDIDATES), classes(CONTEXTS)
    return DrawsBelief(y, z, lambda y, rows: np.log(CANDIDATES[rows[:, None, None], drawn, y[:, :, None]]), Classes(3))


CASES = [
    (SquaredError(), GAUSSIAN, gaussian_draws),
    (SquaredError(ExponentialWeight(0.4)), GAUSSIAN, gaussian_draws),
    (Linex(0.8), GAUSSIAN, gaussian_draws),
    (ThresholdDecision(0.0, 1.0, 1.5), GAUSSIAN, gaussian_draws),
    (AbsoluteError(), GAUSSIAN, gaussian_draws),
    (Pinball(0.8, ExponentialWeight(0.4)), GAUSSIAN, gaussian_draws),
    (CRPS(), GAUSSIAN, gaussian_draws),
    (CRPS(ExponentialWeight(0.4)), GAUSSIAN, gaussian_draws),
    (LogLoss(), CATEGORICAL, categorical_draws),
    (BrierLoss([1.0, 3.0, 2.0]), CATEGORICAL, categorical_draws),
    (CostMatrix([[0, 1, 1], [6, 0, 2], [4, 2, 0]]), CATEGORICAL, categorical_draws),
]


@pytest.mark.parametrize(("loss", "exact", "draws"), CASES, ids=lambda each: type(each).__name__)
def test_exact_answers_are_within_the_stated_error(loss, exact, draws):
    """Differences are of the size that the error says, and nearly all within two and a half of it."""
    wanted, away = score(loss, exact), []
    for seed in range(71_000, 71_004):
        belief = draws(160, seed)
        away.append((score(loss, belief) - wanted) / sampling_error(loss, belief))
    assert np.median(np.abs(away)) < 1.1
    assert np.sum(np.abs(away) < 2.5) >= 14  # of 16


FALLING = [each for each in CASES if type(each[0]) in (SquaredError, AbsoluteError, CRPS, LogLoss)]


@pytest.mark.parametrize(("loss", "exact", "draws"), FALLING, ids=lambda each: type(each).__name__)
def test_the_error_falls_with_the_root_of_the_number_of_draws(loss, exact, draws):
    """Of estimates, and as stated: 4 times the draws, half of the error, within a third."""
    wanted, off, stated = score(loss, exact), [], []
    for count, seeds in ((80, 20), (320, 10)):
        beliefs = [draws(count, 72_000 + seed) for seed in range(seeds)]
        off.append(np.sqrt(np.mean([(score(loss, each) - wanted) ** 2 for each in beliefs])))
        stated.append(np.sqrt(np.mean([sampling_error(loss, each) ** 2 for each in beliefs[:2]])))
    assert 0.33 < off[1] / off[0] < 0.67
    assert 0.33 < stated[1] / stated[0] < 0.67


def test_squared_error_is_the_two_replicates_of_the_paper():
    """The last line of EVR: p(y | theta') / E[p(y | theta'')] z z', less the square of the mean."""
    belief, estimate = gaussian_draws(50, 3), np.zeros((N, M))
    y, z = belief.labels, belief.targets
    for n in range(N):
        weights = np.exp(belief.log_likelihood(y[[n]], np.array([n]))[0])  # [J, K]
        np.fill_diagonal(weights, 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
        for m in range(M):
            others = (z[m].sum() - z[m]) / (z.shape[1] - 1)  # the mean of the draws but one
            estimate[n, m] = np.mean((z[m] - others) * (weights @ z[m] - others))
    np.testing.assert_allclose(score(SquaredError(), belief), np.maximum(estimate.mean(axis=1), 0.0), rtol=1e-9)
    np.testing.assert_allclose(expected_reduction(SquaredError(), belief), np.maximum(estimate, 0.0), atol=1e-12)


LOSSES = [AbsoluteError(), Pinball(0.2), Pinball(0.8, ExponentialWeight(0.4)), CRPS(), CRPS(ExponentialWeight(0.4))]


def answer_of(loss, z, masses):
    """A quantile, or the shares of draws, which are the distribution."""
    if isinstance(loss, CRPS):
        return masses / masses.sum()
    order = np.argsort(z)
    return z[order][np.searchsorted(np.cumsum(masses[order]), loss.level * masses.sum())]


def costs_of(loss, z, answer):
    """[K]: what the answer costs at each draw; for CRPS E|Z - z| - E|Z - Z'| / 2."""
    share = np.asarray(loss.statistics(z)[..., 0])
    if isinstance(loss, CRPS):
        apart = abs(z[:, None] - z)
        return share * (apart @ answer - answer @ apart @ answer / 2.0)
    return share * loss.step_cost(z - answer)


def by_hand(loss, z, weights):
    """Half of both estimates at one context, outcome by outcome, from the definitions."""
    share, savings = np.asarray(loss.statistics(z)[..., 0]), []
    for j in range(len(z)):
        others = np.arange(len(z)) != j
        both = answer_of(loss, z, share * others), answer_of(loss, z, share * weights[j])
        before, after = (costs_of(loss, z, each) for each in both)
        savings.append(0.5 * (weights[j] @ (before - after) + before[j] - after[j]))
    return np.mean(savings)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_quantiles_and_crps_against_sums_over_draws(loss):
    """From the definitions: an answer of the other draws, its cost under them, and at the target that came."""
    belief = gaussian_draws(41, 73_000).take(slice(0, 2), slice(0, 2))
    logs = belief.log_likelihood(belief.labels[:2], np.arange(2))  # [n, J, K]
    weights = np.exp(logs - logs.max(axis=2, keepdims=True))
    weights[:, np.arange(41), np.arange(41)] = 0.0
    weights /= weights.sum(axis=2, keepdims=True)
    wanted = [[by_hand(loss, belief.targets[m], weights[n]) for m in range(2)] for n in range(2)]
    np.testing.assert_allclose(expected_reduction(loss, belief), np.maximum(wanted, 0.0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_general_route_of_distributions_against_sums_over_draws(loss):
    """What the draws themselves say: those of each outcome, shared out, lose so much by today's answer."""
    belief = gaussian_draws(30, 73_001).take(slice(0, 2), slice(0, 2))
    logs = belief.log_weights()
    spread = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True) / 30.0  # [n, J, K]
    found = expected_regret(loss, belief)
    for n, m in np.ndindex(2, 2):
        z, wanted = belief.targets[m], 0.0
        share = np.asarray(loss.statistics(z)[..., 0])
        today = costs_of(loss, z, answer_of(loss, z, share))
        for masses in spread[n]:
            wanted += masses @ (today - costs_of(loss, z, answer_of(loss, z, share * masses)))
        assert found[n, m] == pytest.approx(wanted, rel=1e-8)


def test_answers_are_those_of_the_draws():
    belief = gaussian_draws(101, 73_002)
    np.testing.assert_allclose(bayes_prediction(AbsoluteError(), belief), np.median(belief.targets, axis=1), rtol=1e-12)
    spread = np.abs(belief.targets[:, :, None] - belief.targets[:, None, :]).mean(axis=(1, 2)) / 2.0
    np.testing.assert_allclose(uncertainty(CRPS(), belief), spread, rtol=1e-9)


def test_draws_that_are_equal_and_one_draw():
    """Counts have ties, and one draw tells nothing."""
    rng = np.random.default_rng(73_003)
    rates = rng.gamma(4.0, 2.0, size=(1, 60))
    counts = rng.poisson(rates)
    belief = DrawsBelief(counts, counts, lambda y, rows: y[:, :, None] * np.log(rates[rows])[:, None, :] - rates)
    for loss in (AbsoluteError(), CRPS(), Pinball(0.9)):
        assert np.isfinite(score(loss, belief)).all()
        one = DrawsBelief([[0.0]], [[1.0]], lambda y, rows: np.zeros((len(rows), 1, 1)))
        assert score(loss, one)[0] == 0.0
        assert uncertainty(loss, one)[0] == 0.0


def test_a_loss_for_each_context():
    belief, losses = gaussian_draws(60, 73_004), [SquaredError(), CRPS(), AbsoluteError()]
    alone = [belief.take(slice(None), slice(m, m + 1)) for m in range(M)]
    wanted = [sampling_error(one, each) for one, each in zip(losses, alone, strict=True)]
    found = sampling_error(PerContext(losses), belief, context_weights=[0, 0, 1])
    np.testing.assert_allclose(found, wanted[2], rtol=1e-9)
    assert np.all(sampling_error(PerContext(losses), belief) < sum(wanted))


def test_a_label_that_tells_nothing_is_worth_nothing_within_the_error():
    rng = np.random.default_rng(0)
    belief = DrawsBelief(
        rng.normal(size=(1, 100)), rng.normal(size=(2, 100)), lambda y, rows: np.zeros((len(rows), y.shape[1], 100))
    )
    assert score(SquaredError(), belief)[0] == 0.0
    assert sampling_error(SquaredError(), belief)[0] > 0.0


def test_context_weights_and_the_name_of_the_form():
    belief = gaussian_draws(60, 1)
    assert find_form(SquaredError(), belief).name == "importance weights over joint draws"
    alone = score(SquaredError(), belief.take(slice(None), slice(1, 2)))
    np.testing.assert_allclose(score(SquaredError(), belief, context_weights=[0, 1, 0]), alone, rtol=1e-9)


def test_refusals():
    with pytest.raises(TypeError, match="for beliefs of draws"):
        sampling_error(SquaredError(), GAUSSIAN)
    with pytest.raises(StakesError, match="40 draws or more; there are 39"):
        sampling_error(SquaredError(), gaussian_draws(39, 0))
    with pytest.raises(TypeError, match="is for class targets"):
        score(LogLoss(), gaussian_draws(40, 0))
    with pytest.raises(StakesError, match="draws \\(which have no density"):
        score(LogScore(), gaussian_draws(40, 0))
    with pytest.raises(TypeError, match="a density, which draws do not have"):
        sampling_error(LogScore(), gaussian_draws(40, 0))
