"""Class losses against brute force over the definition h = min_a E[l], and against the paper's formulas."""

import numpy as np
import pytest
from scipy.optimize import minimize

from stakes import (
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
    uncertainty,
)
from stakes.losses import ConvexFunction
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
