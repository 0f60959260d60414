"""Losses of a density or a quantile: closed forms, general route and direct integration from the definition."""

from functools import cache

import array_api_compat
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from stakes import (
    CRPS,
    AbsoluteError,
    AccuracyWarning,
    BrierLoss,
    CategoricalEnsemble,
    ExponentialWeight,
    FiniteActions,
    GaussianBelief,
    InterpolatedWeight,
    LogScore,
    LogWarp,
    NormalEnsemble,
    Pinball,
    SquaredError,
    WarpedGaussianBelief,
    Weight,
    effective_context_weights,
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    find_form,
    integration_error,
    score,
    select,
    uncertainty,
)
from stakes.beliefs import MemberPanels
from stakes.evaluation import bayes_prediction
from stakes.testing import check_belief
from tests.brute import ensemble_score_reduction, gaussian_pair, normal_expectation, score_reduction

PLAIN = [LogScore(), CRPS(), AbsoluteError(), Pinball(0.9), Pinball(0.2)]
RHO = np.array([1e-10, 1e-6, 0.01, 0.3, 0.9, 0.999, 1 - 1e-8])
SIGMOID = Weight(lambda z: 1 / (1 + np.exp(-3 * (z - 0.2))))
KINK = InterpolatedWeight([-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 5.0, 5.0])
JUMP = Weight(lambda z: np.where(z > 0.5, 1.0, 0.01), breakpoints=(0.5,))


def one(z):
    return np.ones_like(z)


def kind(loss):
    """What the brute force takes: the kind of loss, its level and its unit."""
    if isinstance(loss, LogScore | CRPS):
        return {LogScore: "log", CRPS: "crps"}[type(loss)], None, 1.0
    return ("pinball", 0.5, 2.0) if isinstance(loss, AbsoluteError) else ("pinball", loss.tau, 1.0)


def by_definition(loss, mean, variance, rho, **options):
    name, tau, unit = kind(loss)
    weight = loss.weight or one
    return unit * score_reduction(name, weight, mean, np.sqrt(variance), rho, tau=tau, **options)


def by_hand(loss, mean, variance, rho):
    """The table of the docs."""
    rate = 0.0 if loss.weight is None else loss.weight.rate
    wbar = np.exp(rate * mean + rate**2 * variance / 2)
    if isinstance(loss, LogScore):
        return -wbar * np.log1p(-rho) / 2
    k = {CRPS: 1 / np.sqrt(np.pi), AbsoluteError: np.sqrt(2 / np.pi)}.get(type(loss))
    k = norm.pdf(norm.ppf(loss.tau)) if k is None else k
    return wbar * k * np.sqrt(variance) * rho / (1 + np.sqrt(1 - rho))


def weighted(loss, weight):
    return Pinball(loss.tau, weight) if isinstance(loss, Pinball) else type(loss)(weight)


@pytest.mark.parametrize("weight", [None, ExponentialWeight(0.8)])
@pytest.mark.parametrize("loss", PLAIN, ids=repr)
def test_closed_form_is_the_formula_and_the_general_route(loss, weight):
    loss = weighted(loss, weight)
    belief = gaussian_pair([0.3, -2.0], [1.2, 0.4], RHO)
    assert find_form(loss, belief).name.startswith("closed form")
    wanted = by_hand(loss, belief.mean, belief.variance, belief.rho)
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-12)
    np.testing.assert_allclose(expected_regret(loss, belief), wanted, rtol=1e-9)


@pytest.mark.parametrize("rho", [0.01, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("loss", PLAIN[:4], ids=repr)
def test_closed_form_equals_direct_integration(loss, rho):
    actual = expected_reduction(loss, gaussian_pair(0.3, 1.2, rho))[0, 0]
    np.testing.assert_allclose(actual, by_definition(loss, 0.3, 1.2, rho), rtol=1e-8)


def test_offsets_cost_no_digits():
    belief = gaussian_pair([1e6], [1.2], RHO)
    for loss in PLAIN:
        wanted = by_hand(loss, 0.0, belief.variance, belief.rho)
        np.testing.assert_allclose(expected_regret(loss, belief), wanted, rtol=1e-8)


def test_extreme_weights_are_reported_on_a_common_scale():
    """exp(800), far out of range, and a weight that moves the mass by twenty standard deviations."""
    for weight, belief in (
        (ExponentialWeight(1.0), gaussian_pair([800.0, 801.0], [1.0, 1.0], [0.3, 0.9])),
        (ExponentialWeight(20.0), gaussian_pair([0.0, 0.1], [1.0, 1.0], [0.3, 0.9])),
    ):
        plain = Weight(weight, log=weight.logarithm)
        for loss in PLAIN[:4]:
            closed, log_closed = score(weighted(loss, weight), belief, return_log_scale=True)
            if isinstance(loss, LogScore) and weight.rate > 1:
                continue
            curve, log_curve = score(weighted(loss, plain), belief, return_log_scale=True)
            np.testing.assert_allclose(curve, closed, rtol=1e-6)
            assert log_curve == pytest.approx(log_closed, abs=1e-6)


@pytest.mark.parametrize("rho", [0.1, 0.9])
@pytest.mark.parametrize("loss", PLAIN[:4], ids=repr)
def test_a_sigmoid_weight_against_direct_integration(loss, rho):
    loss = weighted(loss, SIGMOID)
    belief = gaussian_pair(0.3, 1.2, rho)
    wanted = by_definition(loss, 0.3, 1.2, rho)
    np.testing.assert_allclose(expected_regret(loss, belief)[0, 0], wanted, rtol=1e-8)
    np.testing.assert_allclose(expected_reduction(loss, belief)[0, 0], wanted, rtol=1e-7)


@pytest.mark.parametrize("rho", [1 - 1e-4, 1 - 1e-8, 1 - 1e-12])
def test_the_log_score_near_certainty_under_a_sigmoid_weight(rho):
    """-E[w] log(1 - rho) / 2 grows without bound; the rest tends to a limit, of which direct integration gives it."""
    belief = gaussian_pair(0.3, 1.2, rho)
    rho, rest = float(belief.rho[0, 0]), np.sqrt(1 - float(belief.rho[0, 0]))
    sd = np.sqrt(1.2)

    def split(u):  # W_eta, to second order in the posterior sd, at the posterior mean
        z, step = 0.3 + sd * u, 1e-3
        return SIGMOID(z) + (rest * sd) ** 2 / 2 * (SIGMOID(z + step) - 2 * SIGMOID(z) + SIGMOID(z - step)) / step**2

    root = np.sqrt(rho)
    mass, bend = normal_expectation(
        lambda u: np.stack([SIGMOID(0.3 + sd * u), SIGMOID(0.3 + sd * u) * (u**2 - 1)]), 0, 1
    )
    lost = normal_expectation(lambda eta: split(root * eta) * np.log(split(root * eta) / mass), 0, 1)
    wanted = -mass * np.log(rest) + rho * bend / 2 - lost
    np.testing.assert_allclose(expected_reduction(LogScore(SIGMOID), belief)[0, 0], wanted, rtol=1e-8)
    np.testing.assert_allclose(expected_regret(LogScore(SIGMOID), belief)[0, 0], wanted, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::stakes.AccuracyWarning")  # of 1e-6, for CRPS and a jump
@pytest.mark.parametrize("rho", [0.2, 0.85])
@pytest.mark.parametrize("weight", [KINK, JUMP], ids=["kink", "jump"])
@pytest.mark.parametrize("loss", PLAIN[:4], ids=repr)
def test_kinked_weights_against_direct_integration(loss, weight, rho):
    """To 1e-7 for densities; quantiles have kinks in what a label tells, which the brute force resolves to 1e-6."""
    loss = weighted(loss, weight)
    belief = gaussian_pair(0.3, 1.2, rho)
    smooth = isinstance(loss, LogScore | CRPS)
    wanted = by_definition(loss, 0.3, 1.2, rho, cuts=weight.breakpoints, nodes=10 if smooth else 40, count=2001)
    np.testing.assert_allclose(expected_regret(loss, belief)[0, 0], wanted, rtol=1e-7 if smooth else 2e-6)
    if rho > 0.5:
        np.testing.assert_allclose(expected_reduction(loss, belief)[0, 0], wanted, rtol=1e-5)


@pytest.mark.parametrize("weight", [SIGMOID, JUMP], ids=["sigmoid", "jump"])
def test_small_reductions_keep_their_digits(weight):
    """As rho -> 0, EUR / rho tends to what a small shift of the belief does to the answer."""
    mean, sd = 0.3, np.sqrt(1.2)
    belief = gaussian_pair(mean, 1.2, [1e-8, 1e-10])
    cuts = [(cut - mean) / sd for cut in weight.breakpoints]

    def expectation(function, *more):
        return normal_expectation(lambda u: weight(mean + sd * u) * function(u), 0.0, 1.0, [*cuts, *more])

    total, first, second = expectation(np.ones_like), expectation(lambda u: u), expectation(lambda u: u**2)
    log_limit = (second - first**2 / total) / 2
    np.testing.assert_allclose(expected_regret(LogScore(weight), belief)[:, 0] / belief.rho[:, 0], log_limit, rtol=1e-6)
    for loss, tau, unit in ((AbsoluteError(weight), 0.5, 2.0), (Pinball(0.9, weight), 0.9, 1.0)):
        a = (bayes_prediction(loss, belief)[0] - mean) / sd
        below = expectation(lambda u, a=a: u * (u < a), a)
        limit = unit * sd * (below - tau * first) ** 2 / (2 * weight(np.array([mean + sd * a]))[0] * norm.pdf(a))
        np.testing.assert_allclose(expected_regret(loss, belief)[:, 0] / belief.rho[:, 0], limit, rtol=1e-6)


@pytest.mark.parametrize("loss", [*PLAIN[:4], SquaredError()], ids=repr)
@pytest.mark.parametrize("weight", [None, Weight(lambda z: np.exp(-z), log=lambda z: -z)], ids=["plain", "weighted"])
def test_a_log_normal_target_against_direct_integration(loss, weight):
    loss = weighted(loss, weight)
    belief = WarpedGaussianBelief(gaussian_pair(0.3, 0.64, 0.5), LogWarp())
    if isinstance(loss, SquaredError):
        shares = weight or one
        m = {k: normal_expectation(lambda f, k=k: shares(np.exp(f)) * np.exp(k * f), 0.3, 0.8) for k in (0, 1)}

        def worth(eta):
            posterior = [
                normal_expectation(
                    lambda f: np.stack([shares(np.exp(f)), shares(np.exp(f)) * np.exp(f)]),
                    0.3 + 0.8 * np.sqrt(0.5) * e,
                    0.8 * np.sqrt(0.5),
                )
                for e in eta
            ]
            return np.array([p[0] * (p[1] / p[0] - m[1] / m[0]) ** 2 for p in posterior])

        wanted = normal_expectation(worth, 0.0, 1.0)
    else:
        wanted = by_definition(loss, 0.3, 0.64, 0.5, forward=np.exp, slope=np.exp)
    np.testing.assert_allclose(expected_regret(loss, belief)[0, 0], wanted, rtol=1e-8)
    np.testing.assert_allclose(expected_reduction(loss, belief)[0, 0], wanted, rtol=1e-6)


CANDIDATE = np.array([0.0, 1.0, 2.5]), np.array([0.5, 0.4, 0.6])
CONTEXT = np.array([-0.5, 0.6, 1.8]), np.array([0.4, 0.7, 0.3])
SHARES = np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize("weight", [None, SIGMOID, KINK, JUMP], ids=["plain", "sigmoid", "kink", "jump"])
@pytest.mark.parametrize("loss", PLAIN[:4], ids=repr)
def test_ensembles_against_direct_integration(loss, weight):
    """Members tell labels apart so sharply that quantiles jump as the label moves: the rule is refined for them."""
    loss = weighted(loss, weight)
    belief = NormalEnsemble(*(each[None, :] for each in (*CANDIDATE, *CONTEXT)), SHARES)
    name, tau, unit = kind(loss)
    cuts = () if weight is None else weight.breakpoints
    wanted = unit * ensemble_score_reduction(name, weight or one, CANDIDATE, CONTEXT, SHARES, cuts, tau)
    density = tau is None
    actual = expected_reduction(loss, belief if density else belief.refined().refined())[0, 0]
    np.testing.assert_allclose(actual, wanted, rtol=1e-8 if density else 1e-5)


def test_members_that_are_certain_of_a_target():
    """Three points: sums from the definition, and the limit of narrow normals for a mixed ensemble."""
    y = np.linspace(-4.0, 7.0, 2001)
    joint = SHARES * norm.pdf(y[:, None], *CANDIDATE) * (y[1] - y[0])  # [J, K]
    points = CONTEXT[0]

    def least(q, tau):
        cost = [q @ np.maximum(tau * (points - b), (tau - 1) * (points - b)) for b in points]
        return min(cost)

    def crps(q):
        share = np.cumsum(q)[:-1] / q.sum()
        return q.sum() * np.sum(share * (1 - share) * np.diff(points))

    belief = (
        NormalEnsemble(CANDIDATE[0][None], CANDIDATE[1][None], points[None], 0.0, SHARES).refined().refined().refined()
    )
    for loss, h in (
        (CRPS(), crps),
        (Pinball(0.4), lambda q: least(q, 0.4)),
        (AbsoluteError(), lambda q: 2 * least(q, 0.5)),
    ):
        np.testing.assert_allclose(uncertainty(loss, belief), h(SHARES), rtol=1e-13)
        wanted = h(SHARES) - sum(h(q) for q in joint if q.sum() > 1e-200)
        np.testing.assert_allclose(expected_regret(loss, belief)[0, 0], wanted, rtol=2e-4)
    mixed, narrow = (
        NormalEnsemble(CANDIDATE[0][None], CANDIDATE[1][None], points[None], np.array([[0.4, sd, 0.3]]), SHARES)
        for sd in (0.0, 1e-6)
    )
    for loss in PLAIN[1:]:
        np.testing.assert_allclose(expected_regret(loss, mixed), expected_regret(loss, narrow), rtol=1e-4)
        np.testing.assert_allclose(uncertainty(loss, mixed), uncertainty(loss, narrow), rtol=1e-5)


def test_crps_is_the_integral_of_brier_scores():
    """At each threshold t, "is z <= t?" is a question with two classes, under the same members."""
    belief = NormalEnsemble(*(each[None, :] for each in (*CANDIDATE, *CONTEXT)), SHARES)
    t = np.linspace(-5.0, 6.0, 221)
    below = norm.cdf(t[:, None], *CONTEXT)  # [T, K]
    cells = belief.rule.masses(belief.candidate_mean, belief.candidate_sd, np.ones(3))[0].T  # [K, J]
    cells = cells / cells.sum(1, keepdims=True)
    table = CategoricalEnsemble(
        cells[None], np.pad(np.stack([below, 1 - below], axis=-1), ((0, 0), (0, 0), (0, cells.shape[1] - 2))), SHARES
    )
    brier = expected_reduction(BrierLoss(), table)[0] / 2  # (F - 1)^2 + (1 - F)^2 counts both classes
    np.testing.assert_allclose(expected_reduction(CRPS(), belief)[0, 0], np.sum(brier) * (t[1] - t[0]), rtol=1e-7)


def test_pinball_is_the_integral_of_threshold_decisions():
    """At each t: say "z > t" and risk 1 - tau, or "z <= t" and risk tau; by Phi alone, under a Gaussian pair."""
    mean, sd, rho, tau = 0.3, 1.1, 0.6, 0.8
    t = np.linspace(mean - 8 * sd, mean + 8 * sd, 801)
    eta = np.linspace(-8.5, 8.5, 3401)
    mass = norm.pdf(eta) * (eta[1] - eta[0])
    below = norm.cdf((t[:, None] - mean - sd * np.sqrt(rho) * eta) / (sd * np.sqrt(1 - rho)))  # [T, J]
    after = np.minimum((1 - tau) * below, tau * (1 - below)) @ mass
    prior = norm.cdf(t, mean, sd)
    before = np.minimum((1 - tau) * prior, tau * (1 - prior))
    wanted = np.sum(before - after) * (t[1] - t[0])
    np.testing.assert_allclose(
        expected_reduction(Pinball(tau), gaussian_pair(mean, sd**2, rho))[0, 0], wanted, rtol=1e-4
    )


def test_knowing_the_target_is_worth_all_the_uncertainty():
    belief = gaussian_pair([0.3, -2.0], [1.2, 0.4], [1.0])
    for loss in PLAIN[1:]:
        np.testing.assert_allclose(expected_regret(loss, belief)[0], uncertainty(loss, belief), rtol=1e-9)
        np.testing.assert_allclose(expected_posterior_uncertainty(loss, belief), 0.0, atol=1e-9)


def test_memory_is_bounded_and_does_not_show(rng):
    belief = gaussian_pair(rng.normal(size=5), rng.uniform(0.5, 2, 5), [0.2, 0.7])
    for loss in (CRPS(SIGMOID), AbsoluteError(KINK)):
        np.testing.assert_allclose(
            expected_regret(loss, belief, memory_limit=1000), expected_regret(loss, belief), rtol=1e-7
        )
    ensemble = NormalEnsemble(rng.normal(size=(3, 4)), 0.5, rng.normal(size=(3, 4)), 0.3)
    np.testing.assert_allclose(score(CRPS(), ensemble, memory_limit=1000), score(CRPS(), ensemble), rtol=1e-10)
    assert np.all(integration_error(CRPS(), ensemble) < 1e-6)
    panels = NormalEnsemble(
        *(getattr(ensemble, name) for name in ("candidate_mean", "candidate_sd", "context_mean", "context_sd")),
        rule=MemberPanels(),
    )
    np.testing.assert_allclose(score(CRPS(), panels), score(CRPS(), ensemble), rtol=1e-6)


def joint_belief(rng):
    mixing = rng.standard_normal((9, 5))
    covariance = mixing @ mixing.T + 0.1 * np.eye(9)
    diagonal = np.diag(covariance)
    return covariance, GaussianBelief(np.zeros(3), diagonal[6:], diagonal[:6], covariance[:6, 6:], covariance[:6, :6])


@pytest.mark.parametrize(
    "loss", [LogScore(), CRPS(), LogScore(SIGMOID), CRPS(SIGMOID)], ids=["log", "crps", "log w", "crps w"]
)
def test_joint_batches_are_exact(rng, loss):
    """Two labels explain what a regression on both explains, and EUR depends on that alone."""
    covariance, belief = joint_belief(rng)
    chosen = select(loss, belief, n=2)
    assert chosen.method == "exact"
    pair = list(chosen.indices)
    with_targets = covariance[np.ix_(pair, range(6, 9))]
    explained = np.sum(with_targets * np.linalg.solve(covariance[np.ix_(pair, pair)], with_targets), axis=0)
    both = GaussianBelief(belief.mean, belief.variance, [1.0], np.sqrt(explained)[None, :])
    np.testing.assert_allclose(chosen.joint_reduction[1], score(loss, both)[0], rtol=1e-8)


def test_batches_of_an_ensemble_begin_with_the_best_label(rng):
    belief = NormalEnsemble(rng.normal(size=(4, 3)), 0.5, rng.normal(size=(2, 3)), 0.4)
    for loss in PLAIN[:4]:
        chosen, scores = select(loss, belief, n=2), score(loss, belief)
        assert chosen.indices[0] == int(np.argmax(scores))
        close = 1e-9 if isinstance(loss, LogScore | CRPS) else 1e-3  # a batch has coarser cells for quantiles
        np.testing.assert_allclose(chosen.joint_reduction[0], np.max(scores), rtol=close)
        assert np.max(scores) < chosen.joint_reduction[1] < np.mean(uncertainty(loss, belief)) + 10


def test_where_a_loss_looks_is_reported():
    belief = gaussian_pair([0.0, 1.0], [1.0, 1.0], [0.5])
    weights = effective_context_weights(CRPS(ExponentialWeight(1.0)), belief)
    np.testing.assert_allclose(weights[1] / weights[0], np.e, rtol=1e-10)
    np.testing.assert_allclose(effective_context_weights(CRPS(), belief), 0.5)


def logistic(z):
    return 1.0 / (1.0 + array_api_compat.array_namespace(z).exp(-z))


def beliefs(asarray):
    """A Gaussian, a warped and an ensemble belief of one candidate and two contexts, made by `asarray`."""
    mean, variance, covariance = asarray([0.3, 1.0]), asarray([1.0, 0.5]), asarray([[0.6, -0.5]])
    gaussian = GaussianBelief(mean, variance, asarray([1.0]), covariance)
    members = asarray([[0.0, 1.0]]), asarray(0.5), asarray([[0.0, 0.8], [2.0, 1.5]]), asarray(0.4)
    return gaussian, WarpedGaussianBelief(gaussian, LogWarp()), NormalEnsemble(*members)


LIBRARY_LOSSES = [LogScore(logistic), CRPS(logistic), Pinball(0.8, InterpolatedWeight([0.0, 1.0], [0.1, 2.0]))]
FUNCTIONS = [expected_regret, uncertainty, effective_context_weights, bayes_prediction]


@cache
def by_numpy(function, loss, which):
    """What it gives of one of the beliefs, computed once for all libraries."""
    return function(loss, beliefs(np.asarray)[which])


@pytest.mark.parametrize("loss", [*LIBRARY_LOSSES, AbsoluteError()], ids=lambda loss: type(loss).__name__)
def test_all_libraries_give_the_same_numbers(xp, host, loss):
    found = beliefs(lambda a: xp.asarray(np.asarray(a)))
    for which in (0, 1, 2) if isinstance(loss, CRPS) else (0, 2):
        for function in FUNCTIONS[: 4 if isinstance(loss, Pinball | AbsoluteError) else 3]:
            result = function(loss, found[which])
            assert array_api_compat.array_namespace(result) is xp
            np.testing.assert_allclose(host(result), by_numpy(function, loss, which), rtol=1e-9)


def test_forms_on_all_libraries(xp, host):
    gaussian, warped, _ = beliefs(lambda a: xp.asarray(np.asarray(a)))
    plain_gaussian, plain_warped, _ = beliefs(np.asarray)
    pairs = [(gaussian, plain_gaussian, loss) for loss in (LogScore(), CRPS(), LogScore(logistic))]
    for belief, wanted, loss in [*pairs, (warped, plain_warped, LogScore())]:
        result = expected_reduction(loss, belief)
        assert array_api_compat.array_namespace(result) is xp
        np.testing.assert_allclose(host(result), expected_reduction(loss, wanted), rtol=1e-9)


def test_single_precision_stays_single(xp, host):
    single, wanted = beliefs(lambda a: xp.asarray(np.asarray(a, dtype=np.float32))), beliefs(np.asarray)
    for i, loss in ((0, CRPS()), (2, AbsoluteError())):
        result = expected_regret(loss, single[i])
        assert result.dtype == xp.float32
        np.testing.assert_allclose(host(result), expected_regret(loss, wanted[i]), rtol=1e-4)
    gaussian = single[0]
    assert score(LogScore(logistic), gaussian).dtype == uncertainty(CRPS(), gaussian).dtype == xp.float32
    assert bayes_prediction(Pinball(0.8), gaussian).dtype == xp.float32


def test_results_stay_on_the_device_of_the_belief():
    array_api_strict = pytest.importorskip("array_api_strict", reason="not installed")
    device = array_api_strict.Device("device1")
    for belief in beliefs(lambda a: array_api_strict.asarray(np.asarray(a), device=device)):
        for loss in LIBRARY_LOSSES[1:]:
            assert expected_regret(loss, belief).device == uncertainty(loss, belief).device == device


def test_an_undeclared_jump_is_found_and_noise_is_reported():
    step, belief = Weight(lambda z: np.where(z > 0.037, 1.0, 0.0)), gaussian_pair(0.0, 1.0, 0.5)
    wanted = expected_reduction(CRPS(Weight(step.function, breakpoints=(0.037,))), belief)
    np.testing.assert_allclose(expected_reduction(CRPS(step), belief), wanted, rtol=1e-7)
    with pytest.warns(AccuracyWarning, match="breakpoints"):
        expected_reduction(CRPS(lambda z: 1.0 + 0.9 * np.sin(1e6 * z)), belief)


def test_laws_of_beliefs_hold_for_their_distributions(xp):
    for belief in beliefs(lambda a: xp.asarray(np.asarray(a))):
        check_belief(belief)


def test_contexts_without_variance_have_nothing_to_gain():
    belief = gaussian_pair([0.0, 1.0], [1.0, 0.0], [0.5, 0.9])
    for loss in (LogScore(), CRPS(), CRPS(SIGMOID), AbsoluteError(KINK)):
        for reduction in (expected_regret(loss, belief), expected_reduction(loss, belief)):
            assert np.all(reduction[:, 0] > 0)
            np.testing.assert_allclose(reduction[:, 1], 0.0, atol=1e-12)


def test_no_candidates_and_little_to_learn():
    assert score(CRPS(), gaussian_pair([0.0], [1.0], [])).shape == (0,)
    assert expected_regret(AbsoluteError(), gaussian_pair([0.0], [1.0], [])).shape == (0, 1)
    np.testing.assert_allclose(expected_regret(CRPS(SIGMOID), gaussian_pair([0.0], [1.0], [0.0])), 0.0, atol=1e-15)


@settings(max_examples=15)
@pytest.mark.filterwarnings("ignore::stakes.AccuracyWarning")  # of a jump under an ensemble
@given(
    arrays(float, (2, 3), elements=st.floats(-3, 3)),
    st.floats(0.1, 2.0),
    st.floats(0.05, 0.95),
    st.sampled_from([None, SIGMOID, JUMP]),
)
def test_a_label_is_worth_something_and_no_more_than_all(means, sd, tau, weight):
    belief = NormalEnsemble(means[:1], 0.5, means[1:], sd)
    for loss in (CRPS(weight), Pinball(tau, weight)):
        worth, most = expected_reduction(loss, belief)[0, 0], uncertainty(loss, belief)[0]
        assert 0 <= worth <= most * (1 + 1e-6)
    assert expected_reduction(LogScore(weight), belief)[0, 0] >= 0


@settings(max_examples=15)
@given(st.floats(-2, 2), st.floats(0.1, 3.0), st.floats(0.01, 0.99), st.floats(0.001, 0.99))
def test_scores_scale_with_the_unit_of_the_target(mean, sd, tau, rho):
    """CRPS and pinball loss are in units of the target; the information in a label has none."""
    one, other = (gaussian_pair(k * mean, (k * sd) ** 2, rho) for k in (1.0, 1000.0))
    for loss in (CRPS(), Pinball(tau)):
        np.testing.assert_allclose(1000 * expected_regret(loss, one), expected_regret(loss, other), rtol=1e-9)
    np.testing.assert_allclose(expected_regret(LogScore(), one), expected_regret(LogScore(), other), rtol=1e-9)


@pytest.mark.parametrize(("tau", "wanted"), [(0.5, 0.072490), (0.9, 0.00036867), (0.3, 0.033266)])
def test_quantiles_that_jump_from_one_certain_member_to_another(tau, wanted):
    """Two members that are certain of 0 and 1: a choice between two answers, whose worth was worked out densely."""
    belief = NormalEnsemble([[0.0, 0.5]], 0.5, [[0.0, 1.0]], 0.0, member_weights=[0.45, 0.55])
    costs = FiniteActions(lambda z: np.stack([np.maximum(tau * (z - b), (tau - 1) * (z - b)) for b in (0.0, 1.0)], -1))
    assert expected_regret(costs, belief)[0, 0] == pytest.approx(wanted, rel=2e-5)
    assert expected_reduction(Pinball(tau), belief)[0, 0] == pytest.approx(wanted, rel=1e-3)
