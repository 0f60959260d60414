"""The paper's statements, each a test that names its equation (Huang, Bickford Smith and Rainforth, AISTATS 2026)."""

import numpy as np
import pytest

from stakes import (
    BoxCox,
    CategoricalEnsemble,
    ExponentialWeight,
    GaussianBelief,
    ItakuraSaito,
    Linex,
    LogLoss,
    NormalEnsemble,
    PoissonDeviance,
    SquaredError,
    Weight,
    effective_context_weights,
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    score,
    uncertainty,
)
from stakes.losses.domains import POSITIVE
from tests.brute import TableBelief, gaussian_pair, random_table, reduction_from_definition

VALUES = np.array([0.2, 0.9, 1.7, 3.1, 4.0])
WEIGHT = Weight(lambda z: 1.0 + z**2)
FAMILIES = [SquaredError, ItakuraSaito, PoissonDeviance]
FAMILIES += [lambda weight=None, alpha=alpha: Linex(alpha, weight) for alpha in (1.0, -0.6)]
FAMILIES += [lambda weight=None, lam=lam: BoxCox(lam, weight) for lam in (-1.0, 0.0, 0.5, 2.0)]
TRANSFORMED = [
    (SquaredError, lambda z: z, np.square),
    (lambda weight: Linex(0.8, weight), lambda z: np.exp(-0.8 * z), lambda t: -np.log(t)),
    (lambda weight: BoxCox(0.5, weight), lambda z: (z**0.5 - 1) / 0.5, np.square),
    (ItakuraSaito, lambda z: z, lambda t: -np.log(t)),
    (PoissonDeviance, lambda z: z, lambda t: t * np.log(t)),
]


@pytest.fixture
def table(rng):
    return random_table(rng, VALUES, domain=POSITIVE)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(("family", "transform", "potential"), TRANSFORMED)
def test_theorem_1_the_analytic_uncertainty(table, family, transform, potential, weight):
    """Eq. (analytic_uncertainty): h = wbar (E_w[phi(T)] - phi(E_w[T]))."""
    p = table.joint[0].sum(1)  # [M, Z]
    w = p * (np.ones_like(VALUES) if weight is None else weight(VALUES))
    wbar = w.sum(1)
    t = transform(VALUES)
    wanted = wbar * (w @ potential(t) / wbar - potential(w @ t / wbar))
    np.testing.assert_allclose(uncertainty(family(weight), table), wanted, rtol=1e-11)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("family", FAMILIES)
def test_theorem_1_the_objective_from_the_definition(table, family, weight):
    """Eq. (data_objective_explicit_min): EUR = h[p(z)] - E_y h[p(z|y)], every act found by minimising."""
    loss = family(weight)
    grid = np.linspace(VALUES[0], VALUES[-1], 400_001)

    def act(q):  # the minimiser of the expected loss over a fine grid of answers
        coarse = np.argmin(q @ loss(VALUES[:, None], grid[None, ::1000]))
        near = grid[max(0, (coarse - 1) * 1000) : (coarse + 1) * 1000 + 1]
        return near[np.argmin(q @ loss(VALUES[:, None], near[None, :]))]

    first = TableBelief(table.values, table.joint[:1, :2], table.domain)
    wanted = reduction_from_definition(first.joint, lambda a: loss(VALUES, a), act)
    np.testing.assert_allclose(expected_regret(loss, first), wanted, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_remark_the_bayes_act_is_the_mean_of_t(table, family):
    loss = family()
    reference = table.reference(loss)
    answer = loss.prediction(loss.action(table.moments(loss, reference)), reference.point)
    p = table.joint[0].sum(1)
    for m, best in enumerate(answer):
        for other in best * np.array([0.97, 0.999, 1.001, 1.03]):
            assert p[m] @ loss(VALUES, best) < p[m] @ loss(VALUES, other)


@pytest.mark.parametrize("family", FAMILIES)
def test_corollary_1_weighting_is_a_reweighted_prior(table, family):
    """EUR_w(x; c) = wbar(c) EUR(x; c) under p_w(z|c) p(y|x,z,c), and EPU likewise."""
    w = WEIGHT(VALUES)
    wbar = (table.joint[0].sum(1) * w).sum(-1)  # [M]
    reweighted = TableBelief(VALUES, table.joint * w / wbar[:, None, None], POSITIVE)
    for function in (expected_reduction, expected_posterior_uncertainty):
        np.testing.assert_allclose(function(family(WEIGHT), table), wbar * function(family(), reweighted), rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_corollary_1_weights_change_which_contexts_matter(table, family):
    """Eq. (reweighted_prior_1): the average over p(c) is wbar times that over p_w(c) = wbar(c) p(c) / wbar."""
    prior = np.array([0.1, 0.4, 0.2, 0.3])
    w = WEIGHT(VALUES)
    wbar = (table.joint[0].sum(1) * w).sum(-1)
    p_w = effective_context_weights(family(WEIGHT), table, context_weights=prior)
    np.testing.assert_allclose(p_w, prior * wbar / (prior @ wbar), rtol=1e-12)
    reweighted = TableBelief(VALUES, table.joint * w / wbar[:, None, None], POSITIVE)
    np.testing.assert_allclose(
        score(family(WEIGHT), table, context_weights=prior),
        (prior @ wbar) * score(family(), reweighted, context_weights=p_w),
        rtol=1e-9,
    )


def test_effective_context_weights_of_classes_and_of_no_weight(rng):
    contexts = rng.dirichlet(np.ones(3), (4, 5))
    belief = CategoricalEnsemble(contexts, contexts)
    wbar = contexts.mean(1) @ np.array([1.0, 50.0, 2.0])
    np.testing.assert_allclose(effective_context_weights(LogLoss([1, 50, 2]), belief), wbar / wbar.sum(), rtol=1e-13)
    np.testing.assert_allclose(effective_context_weights(LogLoss(), belief), 0.25)


def test_evr_closed_form(rng):
    """Eq. (evr-closed-form): EVR(x) = mean_j v(c_j, x)^2 / (v(x) + sigma^2), the reduction of latent variances."""
    mixing = rng.standard_normal((12, 6))
    prior, noise = mixing @ mixing.T, 0.3
    belief = GaussianBelief(np.zeros(4), np.diag(prior)[8:], np.diag(prior)[:8] + noise, prior[:8, 8:])
    wanted = (prior[:8, 8:] ** 2 / (np.diag(prior)[:8] + noise)[:, None]).mean(1)
    np.testing.assert_allclose(score(SquaredError(), belief), wanted, rtol=1e-13)


def test_evr_is_the_trace_criterion_of_transductive_learning(rng):
    """Appendix D.2: EVR is tr Var[f_A] - tr Var[f_A | y_x], over the number of contexts."""
    mixing = rng.standard_normal((12, 6))
    prior, noise = mixing @ mixing.T, 0.3
    belief = GaussianBelief(np.zeros(4), np.diag(prior)[8:], np.diag(prior)[:8] + noise, prior[:8, 8:])
    scores = score(SquaredError(), belief)
    for x in range(8):
        gain = prior[8:, [x]] / (prior[x, x] + noise)
        posterior = prior[8:, 8:] - gain @ prior[[x], 8:]
        np.testing.assert_allclose(4 * scores[x], np.trace(prior[8:, 8:]) - np.trace(posterior), rtol=1e-10)


def test_weighted_evr_pre_update_term():
    """Appendix D.2, remark: U_w = wbar v for w = exp(alpha z)."""
    belief = gaussian_pair([0.4, -1.0], [0.7, 2.0], [0.5])
    loss = SquaredError(ExponentialWeight(-0.8))
    wanted = np.exp(-0.8 * belief.mean + 0.32 * belief.variance) * belief.variance
    np.testing.assert_allclose(uncertainty(loss, belief), wanted, rtol=1e-12)


def test_evr_of_an_ensemble_as_in_appendix_d_3(rng):
    """EVR = const + E_y[(E[z | y])^2]: the posterior mean weighs members by their likelihood."""
    candidate, context, sd = rng.normal(size=(1, 5)), rng.normal(size=(1, 5)), 0.4
    y = np.linspace(-8, 8, 40_001)
    likelihood = np.exp(-0.5 * ((y[:, None] - candidate[0]) / sd) ** 2) / (sd * np.sqrt(2 * np.pi)) / 5
    density = likelihood.sum(1)
    seen = density > 0
    posterior_mean = (likelihood[seen] @ context[0]) / density[seen]
    wanted = (density[seen] * posterior_mean**2).sum() * (y[1] - y[0]) - context.mean() ** 2
    belief = NormalEnsemble(candidate, sd, context, 0.2)
    np.testing.assert_allclose(expected_reduction(SquaredError(), belief)[0, 0], wanted, rtol=1e-8)


@pytest.mark.parametrize("factor", [1e-3, 7.0])
def test_ranking_does_not_depend_on_the_unit_of_the_loss(table, factor):
    scaled = Weight(lambda z: factor * WEIGHT(z))
    np.testing.assert_allclose(
        score(SquaredError(scaled), table), factor * score(SquaredError(WEIGHT), table), rtol=1e-12
    )
