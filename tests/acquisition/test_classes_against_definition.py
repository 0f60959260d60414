"""Class losses against brute force over the definition h = min_a E[l], and against the paper's formulas."""

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.optimize import minimize

from stakes import (
    BregmanLoss,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    LogLoss,
    ScoringRule,
    SphericalLoss,
    VoteEnsemble,
    ZeroOne,
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    score,
    uncertainty,
)
from stakes.acquisition import best, centred
from stakes.losses import Classes, ConvexFunction, Indicator, NegativeEntropy
from tests.brute import reduction_from_definition

N, M, K, C = 5, 4, 9, 3
WEIGHTS = (1.0, 50.0, 0.3)
COSTS = np.array([[0.0, 2.0, 1.0, 4.0], [10.0, 0.0, 3.0, -1.0], [1.0, 1.0, 0.5, 2.0]])


def joint_of(candidates, contexts, members):
    return np.einsum("k,nky,mkz->nmyz", members, candidates, contexts)


@pytest.fixture
def ensemble(rng):
    return rng.dirichlet(np.ones(C), (N, K)), rng.dirichlet(np.ones(C), (M, K)), rng.dirichlet(np.ones(K))


def weighted(q, w):
    return np.asarray(w) * q / (np.asarray(w) @ q)


def rows(kind, w):
    """l(z, a) for all z, written out by hand."""
    w = np.asarray(w)
    return {
        "log": lambda a: -w * np.log(np.where(a > 0, a, 1)),
        "brier": lambda a: w * (((np.eye(len(w)) - a) ** 2).sum(1)),
        "spherical": lambda a: w * (1 - a / np.linalg.norm(a)),
    }[kind]


SCORES = [("log", LogLoss), ("brier", BrierLoss), ("spherical", SphericalLoss)]


@pytest.mark.parametrize("class_weights", [None, WEIGHTS, (0.0, 1.0, 2.0)])
@pytest.mark.parametrize(("kind", "loss"), SCORES)
def test_scores_equal_the_definition(ensemble, kind, loss, class_weights):
    belief = CategoricalEnsemble(*ensemble)
    w = np.ones(C) if class_weights is None else class_weights
    wanted = reduction_from_definition(joint_of(*ensemble), rows(kind, w), lambda q: weighted(q, w))
    np.testing.assert_allclose(expected_regret(loss(class_weights), belief), wanted, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize(("kind", "loss"), SCORES)
def test_the_act_is_where_the_expected_loss_is_least(ensemble, kind, loss):
    q = np.einsum("k,mkz->mz", ensemble[2], ensemble[1])[0]
    losses = rows(kind, WEIGHTS)

    def expected(logits):
        a = np.exp(logits - logits.max())
        return q @ losses(a / a.sum())

    found = minimize(
        expected, np.zeros(C), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 9999}
    )
    belief = CategoricalEnsemble(ensemble[0], ensemble[1][:1], ensemble[2])
    np.testing.assert_allclose(uncertainty(loss(WEIGHTS), belief)[0], found.fun, rtol=1e-8)


def test_log_loss_is_the_paper_s_weighted_epig(ensemble):
    """Appendix D.1: E_c sum_zy w(z) p(z,y|c,x) log [w(z) p(z,y|c,x) / (p_w(z|c) sum_z w(z) p(z,y|c,x))]."""
    joint = joint_of(*ensemble)
    w = np.array(WEIGHTS)
    p_w = np.einsum("nmyz,z->nmz", joint, w)
    p_w = p_w / p_w.sum(-1, keepdims=True)
    weighted_joint = w * joint
    log_ratio = np.log(weighted_joint / (p_w[:, :, None, :] * weighted_joint.sum(-1, keepdims=True)))
    wanted = (weighted_joint * log_ratio).sum((2, 3))
    np.testing.assert_allclose(expected_reduction(LogLoss(WEIGHTS), CategoricalEnsemble(*ensemble)), wanted, rtol=1e-10)


def test_unit_weights_give_epig_the_mutual_information_of_y_and_z(ensemble):
    joint = joint_of(*ensemble)
    independent = joint.sum(-1, keepdims=True) * joint.sum(-2, keepdims=True)
    wanted = (joint * np.log(joint / independent)).sum((2, 3))
    belief = CategoricalEnsemble(*ensemble)
    np.testing.assert_allclose(expected_reduction(LogLoss(), belief), wanted, rtol=1e-10)
    np.testing.assert_allclose(expected_reduction(LogLoss([1.0] * C), belief), wanted, rtol=1e-10)


@pytest.mark.parametrize("costs", [COSTS, COSTS + 1e6, 1.0 - np.eye(C)])
def test_cost_matrix_is_the_value_of_information_by_enumeration(ensemble, costs):
    joint = joint_of(*ensemble)
    expected_costs = joint @ costs  # [N, M, y, a]
    wanted = expected_costs.sum(2).min(-1) - expected_costs.min(-1).sum(2)
    belief = CategoricalEnsemble(*ensemble)
    # The enumeration itself loses digits to the offset; ours must not lose more.
    np.testing.assert_allclose(
        expected_regret(CostMatrix(costs), belief), wanted, rtol=1e-10, atol=1e-15 * abs(costs).max()
    )
    np.testing.assert_allclose(uncertainty(CostMatrix(costs), belief), expected_costs[0].sum(1).min(-1), rtol=1e-12)


def test_zero_one_is_the_cost_matrix_of_ones_off_the_diagonal(ensemble):
    belief = CategoricalEnsemble(*ensemble)
    np.testing.assert_allclose(
        expected_regret(ZeroOne(), belief), expected_regret(CostMatrix(1 - np.eye(C)), belief), atol=1e-15
    )


@pytest.mark.parametrize("class_weights", [None, WEIGHTS])
def test_a_scoring_rule_is_its_potential(ensemble, class_weights):
    belief = CategoricalEnsemble(*ensemble)
    wanted = expected_regret(BrierLoss(class_weights), belief)
    values_only = ScoringRule(lambda x: (x**2).sum(-1), class_weights)
    with_gradient = ScoringRule(ConvexFunction(lambda x: (x**2).sum(-1), lambda x: 2 * x), class_weights)
    np.testing.assert_allclose(expected_regret(values_only, belief), wanted, rtol=1e-5)
    np.testing.assert_allclose(expected_regret(with_gradient, belief), wanted, rtol=1e-10)


def test_reduction_and_posterior_uncertainty_add_up(ensemble):
    belief = CategoricalEnsemble(*ensemble)
    for loss in (LogLoss(WEIGHTS), BrierLoss(), SphericalLoss(), CostMatrix(COSTS), ZeroOne()):
        total = expected_reduction(loss, belief) + expected_posterior_uncertainty(loss, belief)
        np.testing.assert_allclose(total, np.broadcast_to(uncertainty(loss, belief), total.shape), rtol=1e-14)


def test_votes_equal_the_probabilities_they_stand_for(rng):
    candidates, contexts = rng.integers(C, size=(N, 31)), rng.integers(C, size=(M, 31))
    members = rng.dirichlet(np.ones(31))
    votes = VoteEnsemble(candidates, contexts, C, members)
    soft = CategoricalEnsemble(np.eye(C)[candidates], np.eye(C)[contexts], members)
    for loss in (LogLoss(), LogLoss(WEIGHTS), BrierLoss(), SphericalLoss(WEIGHTS), CostMatrix(COSTS), ZeroOne()):
        np.testing.assert_allclose(expected_reduction(loss, votes), expected_reduction(loss, soft), rtol=1e-13)
        np.testing.assert_allclose(uncertainty(loss, votes), uncertainty(loss, soft), rtol=1e-14)
    np.testing.assert_array_equal(soft.as_votes().candidates, candidates)


def test_impossible_outcomes_are_harmless():
    """A class that no member predicts, for candidates and for contexts."""
    sure = np.zeros((2, 2, 3))
    sure[:, 0, 0] = sure[:, 1, 1] = 1.0
    belief = CategoricalEnsemble(sure, sure)
    np.testing.assert_allclose(expected_reduction(LogLoss(), belief), np.log(2), rtol=1e-15)
    np.testing.assert_allclose(expected_reduction(LogLoss([0, 1, 1]), belief), 0.0, atol=1e-16)
    np.testing.assert_allclose(expected_reduction(BrierLoss(), belief), 0.5, rtol=1e-15)


@pytest.mark.parametrize("loss", [LogLoss(), BrierLoss(), SphericalLoss(), ZeroOne()])
def test_what_cannot_inform_is_worth_nothing(loss):
    one_member = CategoricalEnsemble(np.full((3, 1, 2), 0.5), np.full((2, 1, 2), 0.5))
    one_class = CategoricalEnsemble(np.ones((3, 4, 1)), np.ones((2, 4, 1)))
    for belief in (one_member, one_class):
        np.testing.assert_allclose(expected_reduction(loss, belief), 0.0, atol=1e-16)


SCALES = [1e-300, 1e-154, 1e-19, 1e19, 1e300]


def relative_scores(loss, belief, **settings):
    """Scores over the largest, and the log of that."""
    relative, log_scale = score(loss, belief, return_log_scale=True, **settings)
    return np.asarray(relative, dtype=float), log_scale


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["probabilities", "votes", "large"])
def test_weights_and_costs_of_any_scale_rank_alike(scale, dtype, kind, rng, monkeypatch):
    if kind == "large":
        monkeypatch.setattr(centred, "LARGE", 0)
    if kind == "votes":
        belief = VoteEnsemble(rng.integers(C, size=(N, 9)), rng.integers(C, size=(M, 9)), C)
    else:
        sides = (rng.dirichlet(np.ones(C), size=(count, 9)).astype(dtype) for count in (N, M))
        belief = CategoricalEnsemble(*sides)
    some = np.array([*WEIGHTS[:-1], 0.0])  # a class that does not matter
    for make, table in ((LogLoss, some), (BrierLoss, some), (SphericalLoss, some), (CostMatrix, np.asarray(COSTS))):
        plain, before = relative_scores(make(table), belief)
        found, log_scale = relative_scores(make(scale * table), belief)
        np.testing.assert_allclose(found, plain, rtol=1e-6 if dtype is np.float32 else 1e-12)
        assert log_scale == pytest.approx(before + np.log(scale), abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_in_plain_numbers_are_right_or_refused(dtype, rng):
    belief = CategoricalEnsemble(*(rng.dirichlet(np.ones(C), size=(count, 9)).astype(dtype) for count in (N, M)))
    weights = np.asarray(WEIGHTS)
    for function in (expected_regret, expected_reduction, uncertainty, score):
        plain = function(LogLoss(weights), belief)
        for scale in (1e-290, 1e290):
            scaled = function(LogLoss(scale * weights), belief)
            np.testing.assert_allclose(scaled / scale, plain, rtol=1e-6)
        with pytest.raises(FloatingPointError, match="return_log_scale"):
            function(LogLoss(1e-308 * weights / weights.max()), belief)
    np.testing.assert_allclose(LogLoss(1e-300 * weights)(1, np.full(C, 1 / C)) / 1e-300, weights[1] * np.log(C))


def test_contexts_and_labels_of_any_weight_and_price(rng):
    belief = CategoricalEnsemble(*(rng.dirichlet(np.ones(C), size=(count, 9)).astype(np.float32) for count in (N, M)))
    contexts, prices = rng.uniform(0.1, 1.0, size=M), rng.uniform(0.1, 1.0, size=N)
    plain, _ = relative_scores(LogLoss(), belief, context_weights=contexts, costs=prices)
    for scale in SCALES:
        some = {"context_weights": (scale * contexts).tolist(), "costs": (scale * prices).tolist()}
        np.testing.assert_allclose(relative_scores(LogLoss(), belief, **some)[0], plain, rtol=1e-6)


def test_the_best_are_the_same_for_weights_of_any_scale(rng):
    sides = [rng.dirichlet(np.ones(C) * alpha, size=(n, 3)) for alpha, n in ((1.0, 20), (300.0, 280), (1.0, 40))]
    belief = CategoricalEnsemble(np.concatenate(sides[:2]), sides[2])
    plain = best(LogLoss(WEIGHTS), belief, n=5)
    assert plain.n_scored < 300
    for scale in (1e-290, 1e-154, 1e290):
        found = best(LogLoss(scale * np.asarray(WEIGHTS)), belief, n=5)
        np.testing.assert_array_equal(found.positions, plain.positions)
        np.testing.assert_allclose(found.scores / scale, plain.scores, rtol=1e-9)


def nearly(rng, n, gap, dtype, members=300):
    """Softmax of logits that differ by `gap` between members, in double precision and rounded."""
    logits = rng.normal(size=(n, 1, C)) + gap * (rng.normal(size=(1, members, C)) + rng.normal(size=(n, members, C)))
    table = np.exp(logits)
    return (table / table.sum(axis=2, keepdims=True)).astype(dtype)


def normalised(side):
    """In double precision, where rows sum to one again."""
    return side.astype(float) / side.astype(float).sum(axis=2, keepdims=True)


def in_blocks(loss, belief):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centred, "LARGE", 0)
        return score(loss, belief)


@pytest.mark.parametrize("gap", [1e-3, 1e-5])
@pytest.mark.parametrize("route", [lambda *pair: expected_regret(*pair).mean(axis=1), score, in_blocks])
def test_float32_members_that_nearly_agree_have_their_digits(gap, route, rng):
    belief = CategoricalEnsemble(nearly(rng, N, gap, np.float32), nearly(rng, M, gap, np.float32))
    same = CategoricalEnsemble(normalised(belief.candidates), normalised(belief.contexts))
    losses = [
        LogLoss(),
        LogLoss(WEIGHTS),
        BrierLoss(),
        BrierLoss(WEIGHTS),
        SphericalLoss(),
        ScoringRule(lambda x: (x**4).sum(-1)),
        ScoringRule(ConvexFunction(lambda x: (x**4).sum(-1), lambda x: 4.0 * x**3), WEIGHTS),
        BregmanLoss(NegativeEntropy(), Indicator(Classes(C))),
    ]
    for loss in losses:
        wanted = by_differences(loss, same)
        np.testing.assert_allclose(route(loss, belief), wanted, rtol=1e-5)


def by_differences(loss, belief):
    """[N]: sum_y m_y D(a_y, a) to second order and beyond, in mpmath, from the joint of both sides."""
    q, worths = mpf(1) / belief.contexts.shape[1], []
    weights = [mpf(w) for w in getattr(loss, "class_weights", None) or [1.0] * C]
    with mp.workdps(60):
        there = [[[mpf(p) for p in row] for row in rows] for rows in belief.contexts]
        for rows in belief.candidates:
            here = [[mpf(p) for p in row] for row in rows]
            worth = mpf(0)
            for context in there:
                joint = [[q * mp.fdot([p[y] for p in here], [r[z] for r in context]) * weights[z] for z in range(C)]
                         for y in range(C)]  # fmt: skip
                total = [mp.fsum(row[z] for row in joint) for z in range(C)]
                worth += mp.fsum(_grown(loss, row) for row in joint) - _grown(loss, total)
            worths.append(float(worth / len(there)))
    return np.asarray(worths)


def _grown(loss, mass):
    """W phi(mass / W)."""
    whole = mp.fsum(mass)
    shares = [each / whole for each in mass]
    if isinstance(loss, LogLoss | BregmanLoss):
        return whole * mp.fsum(each * mp.log(each) for each in shares)
    if isinstance(loss, BrierLoss):
        return whole * mp.fsum(each**2 for each in shares)
    if isinstance(loss, SphericalLoss):
        return whole * mp.sqrt(mp.fsum(each**2 for each in shares))
    return whole * mp.fsum(each**4 for each in shares)


def test_costs_under_members_that_nearly_agree(rng):
    gap = 1e-4
    belief = CategoricalEnsemble(nearly(rng, N, gap, np.float32), nearly(rng, M, gap, np.float32))
    candidates, contexts = (normalised(side) for side in (belief.candidates, belief.contexts))
    tie = contexts.mean(axis=1)[0]  # two actions that cost the same at the first context, on average
    costs = np.stack([np.ones(C), np.eye(C)[0] / tie[0]], axis=1)
    belief = belief.take(slice(None), slice(0, 1))
    q, found = 1.0 / 300, expected_regret(CostMatrix(costs), belief)[:, 0]
    for n in range(N):
        joint = [
            [
                mp.fdot([mpf(float(p)) for p in candidates[n, :, y]], [mpf(float(p)) for p in contexts[0, :, z]]) * q
                for z in range(C)
            ]
            for y in range(C)
        ]
        price = [[mp.fsum(joint[y][z] * mpf(costs[z, a]) for z in range(C)) for a in (0, 1)] for y in range(C)]
        worth = min(mp.fsum(p[a] for p in price) for a in (0, 1)) - mp.fsum(min(p) for p in price)
        assert found[n] == pytest.approx(float(worth), rel=1e-5)
        assert found[n] > 0


@pytest.mark.parametrize("members", [1, 7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_where_members_agree_no_label_is_worth_anything(members, dtype, rng):
    alike = np.repeat(rng.dirichlet(np.ones(C), size=(N, 1)), members, axis=1).astype(dtype)
    other = rng.dirichlet(np.ones(C), size=(N, members)).astype(dtype)
    functions = [lambda x: (x**2).sum(-1), lambda x: np.sqrt((x**2).sum(-1)), lambda x: np.log(np.exp(3 * x).sum(-1))]
    rules = [ScoringRule(each, weights) for each in functions for weights in (None, WEIGHTS)]
    for rule in [*rules, LogLoss(), BrierLoss(WEIGHTS), SphericalLoss(), CostMatrix(COSTS)]:
        for sides in [(alike, alike), (other, alike)] + [(alike, other)] * (
            getattr(rule, "class_weights", None) is None
        ):
            assert not score(rule, CategoricalEnsemble(*sides)).any()
