"""Quick forms of ensembles of normals against the general route, and against integration from the definition."""

import numpy as np
import pytest
from scipy.special import ndtr

from stakes import (
    CRPS,
    AbsoluteError,
    ExponentialWeight,
    NormalEnsemble,
    Pinball,
    ThresholdDecision,
    expected_reduction,
    expected_regret,
    find_form,
    integration_error,
    score,
)
from stakes._utils.compute import has_jit
from stakes.beliefs import MixtureGrid

needs_loops = pytest.mark.skipif(not has_jit(), reason="the form is a compiled loop")
DECIDES = "savings of members along even labels"
QUANTILES = "quantiles by series between those of members"


DECISIONS = [ThresholdDecision(0.3), ThresholdDecision(1.5, miss=40.0)]


def ensemble(seed, spread=1.0, sd=0.5, members=6, candidates=4, contexts=5, **settings):
    rng = np.random.default_rng(seed)
    sides = [
        rng.standard_normal((rows, 1)) + spread * rng.standard_normal((rows, members))
        for rows in (candidates, contexts)
    ]
    sds = [sd * np.exp(rng.uniform(-0.3, 0.3, side.shape)) for side in sides]
    return NormalEnsemble(sides[0], sds[0], sides[1], sds[1], **settings)


def labels(belief, n):
    """[J, K]: masses of each member on a grid of y so fine that nothing is left to it."""
    mean, sd = belief.candidate_mean[n], belief.candidate_sd[n]
    y = np.linspace((mean - 10 * sd).min(), (mean + 10 * sd).max(), 4001)
    return (
        belief.member_weights
        * np.exp(-0.5 * ((y[:, None] - mean) / sd) ** 2)
        / (sd * np.sqrt(2 * np.pi))
        * (y[1] - y[0])
    )


def by_definition(loss, belief):
    """EUR [N, M]: today's least expected loss, less that of every label, with answers on a fine grid of targets."""
    found = np.zeros((belief.n_candidates, belief.n_contexts))
    for n in range(belief.n_candidates):
        masses = labels(belief, n)
        for m in range(belief.n_contexts):
            mean, sd = belief.context_mean[m], belief.context_sd[m]
            t = np.linspace((mean - 9 * sd).min(), (mean + 9 * sd).max(), 4001)
            below = ndtr((t[:, None] - mean) / sd)  # [T, K]
            if isinstance(loss, ThresholdDecision):
                above = ndtr((mean - loss.threshold) / sd)
                costs = masses @ np.stack([loss.miss * above, loss.false_alarm * (1.0 - above)], axis=1)  # [J, 2]
                found[n, m] = costs.sum(axis=0).min() - costs.min(axis=1).sum()
            elif isinstance(loss, CRPS):
                share = masses / masses.sum(axis=1, keepdims=True)
                gaps = share @ below.T - belief.member_weights @ below.T
                found[n, m] = masses.sum(axis=1) @ (gaps**2).sum(axis=1) * (t[1] - t[0])
            else:  # at each target t, the quantile says whether z <= t: the lesser of two costs
                right, wrong = masses @ (1.0 - below.T) * loss.level, masses @ below.T * (1.0 - loss.level)
                least = np.minimum(right.sum(axis=0), wrong.sum(axis=0)) - np.minimum(right, wrong).sum(axis=0)
                found[n, m] = loss.unit * least.sum() * (t[1] - t[0])
    return found


@needs_loops
@pytest.mark.parametrize("loss", [ThresholdDecision(0.3, 2.0), CRPS(), Pinball(0.9), AbsoluteError()])
def test_forms_give_what_the_definition_gives(loss):
    belief = ensemble(0, members=4, candidates=2, contexts=2)
    wanted = by_definition(loss, belief)
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=3e-4, atol=1e-9)  # grids are coarse
    np.testing.assert_allclose(score(loss, belief), wanted.mean(axis=1), rtol=3e-4, atol=1e-9)


CASES = {
    "usual": {},
    "all but equal": {"spread": 0.01},
    "far apart": {"spread": 6.0, "sd": 0.3},
    "many members": {"members": 90, "spread": 0.4},
    "uneven": {"member_weights": [1, 5, 0, 2, 2, 1]},
}


@needs_loops
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", DECISIONS)
def test_decisions(case, loss):
    belief = ensemble(1, **CASES[case])
    assert find_form(loss, belief).name == DECIDES
    wanted = expected_regret(loss, belief)
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-6, atol=1e-8 * wanted.max())


@needs_loops
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", [Pinball(0.9), Pinball(0.5, ExponentialWeight(0.8)), AbsoluteError()])
def test_quantiles(case, loss):
    sizes = (2, 1) if case == "far apart" else (3, 3)  # where the general route takes twenty times as long
    belief = ensemble(2, candidates=sizes[0], contexts=sizes[1], **CASES[case])
    assert find_form(loss, belief).name == QUANTILES
    wanted = expected_regret(loss, belief)
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=2e-6, atol=1e-8 * wanted.max())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", [CRPS(), CRPS(ExponentialWeight(0.8)), CRPS(lambda z: 1.0 / (1.0 + np.exp(-z)))])
def test_crps(case, loss):
    belief = ensemble(3, **{"candidates": 3, "contexts": 3, **CASES[case]})
    wanted = expected_regret(loss, belief)
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-6, atol=1e-9 * wanted.max())
    shares = np.array([0.5, 0.1, 0.4])
    scores = score(loss, belief, context_weights=shares)
    np.testing.assert_allclose(scores, wanted @ shares, rtol=1e-6, atol=1e-9 * wanted.max())


@needs_loops
def test_candidates_and_contexts_that_the_forms_do_not_serve_go_by_the_general_route():
    """One candidate with members a thousand times narrower than others, one context that is certain."""
    usual = ensemble(4, candidates=2, contexts=2)
    candidate_sd, context_sd = usual.candidate_sd.copy(), usual.context_sd.copy()
    candidate_sd[0, 0], context_sd[1] = 1e-3, 0.0
    belief = NormalEnsemble(usual.candidate_mean, candidate_sd, usual.context_mean, context_sd)
    for loss in (ThresholdDecision(0.3), Pinball(0.7), CRPS()):
        wanted = expected_regret(loss, belief)
        np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=2e-6, atol=1e-9)


@needs_loops
def test_a_rule_of_the_user_is_left_to_the_general_route():
    belief = ensemble(5, rule=MixtureGrid(per_sd=12.0))
    for loss in (ThresholdDecision(0.3), Pinball(0.7)):
        assert find_form(loss, belief).name not in (DECIDES, QUANTILES)


@needs_loops
@pytest.mark.parametrize("loss", [ThresholdDecision(0.3), Pinball(0.7), CRPS()])
def test_a_finer_rule_moves_scores_by_next_to_nothing(loss):
    assert integration_error(loss, ensemble(6)).max() < 1e-6


@pytest.mark.parametrize("loss", [ThresholdDecision(0.3), Pinball(0.7), CRPS()])
def test_single_precision_and_tensors(loss):
    torch = pytest.importorskip("torch")
    usual = ensemble(7, candidates=2, contexts=2)
    sides = (usual.candidate_mean, usual.candidate_sd, usual.context_mean, usual.context_sd)
    belief = NormalEnsemble(*(torch.asarray(each, dtype=torch.float32) for each in sides))
    found = score(loss, belief)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), score(loss, usual), rtol=1e-5)


def test_no_candidates():
    usual = ensemble(8)
    none = NormalEnsemble(usual.candidate_mean[:0], usual.candidate_sd[:0], usual.context_mean, usual.context_sd)
    for loss in (ThresholdDecision(0.3), Pinball(0.7), CRPS()):
        assert score(loss, none).shape == (0,)
