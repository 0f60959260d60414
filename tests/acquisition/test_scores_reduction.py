"""The general route: identities, numerics far from the origin, and what happens at the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import (
    BregmanLoss,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    InterpolatedWeight,
    ItakuraSaito,
    Linex,
    LogLoss,
    NormalEnsemble,
    PoissonDeviance,
    SphericalLoss,
    SquaredError,
    VoteEnsemble,
    Weight,
    ZeroOne,
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    score,
    uncertainty,
)
from stakes.losses import Square
from stakes.losses.domains import POSITIVE
from tests.brute import gaussian_pair, random_table

CLASS_LOSSES = [LogLoss(), LogLoss([1, 50, 0.1]), BrierLoss(), SphericalLoss([2, 1, 1]), ZeroOne()]
CLASS_LOSSES += [CostMatrix([[0, 3], [1, 0], [2, 2]])]
REAL_LOSSES = [SquaredError(), SquaredError(ExponentialWeight(0.7)), Linex(1.0), Linex(-0.5, ExponentialWeight(0.3))]
REAL_LOSSES += [SquaredError(InterpolatedWeight([0.0, 1.0], [0.1, 2.0]))]
LOSSES_ON_REALS = [*REAL_LOSSES, BregmanLoss(Square(), weight=ExponentialWeight(-0.4))]


def gaussian(rng, n_candidates=6, n_contexts=5, offset=0.0):
    mixing = rng.standard_normal((n_candidates + n_contexts, 4))
    covariance = mixing @ mixing.T
    variance = np.diag(covariance)
    return GaussianBelief(
        offset + rng.standard_normal(n_contexts),
        variance[n_candidates:],
        variance[:n_candidates] + 0.2,
        covariance[:n_candidates, n_candidates:],
    )


def normals(rng, n_candidates=6, n_contexts=5, offset=0.0):
    means = offset + rng.standard_normal((n_candidates + n_contexts, 7))
    return NormalEnsemble(means[:n_candidates], 0.4, means[n_candidates:], 0.3)


@pytest.mark.parametrize("loss", REAL_LOSSES, ids=repr)
@pytest.mark.parametrize("make", [gaussian, normals])
def test_posterior_uncertainty_is_what_is_left(rng, make, loss):
    belief = make(rng)
    reduction, before = expected_reduction(loss, belief), uncertainty(loss, belief)
    left = expected_posterior_uncertainty(loss, belief)
    np.testing.assert_allclose(left + reduction, np.broadcast_to(before, left.shape), rtol=1e-13)
    assert np.all(reduction > 0)
    assert np.all(left > 0)


@pytest.mark.parametrize("rho", [1e-12, 1e-4, 0.5, 0.99])
@pytest.mark.parametrize("shift", [1e6, -1e6])
def test_gaussian_targets_far_from_the_origin_keep_their_digits(shift, rho):
    near, far = gaussian_pair(0.0, 1.0, rho), gaussian_pair(shift, 1.0, rho)
    for loss in (SquaredError(), Linex(1.0), Linex(-2.0), BregmanLoss(Square())):
        np.testing.assert_allclose(expected_reduction(loss, far), expected_reduction(loss, near), rtol=1e-6)
        np.testing.assert_allclose(expected_regret(loss, far), expected_regret(loss, near), rtol=1e-6)
    bump = [Weight(lambda z, at=at: 1 / (1 + np.exp(-(z - at)))) for at in (0.0, shift)]
    np.testing.assert_allclose(
        expected_reduction(SquaredError(bump[1]), far), expected_reduction(SquaredError(bump[0]), near), rtol=1e-6
    )
    weighted = [score(SquaredError(ExponentialWeight(0.5)), belief, return_log_scale=True) for belief in (near, far)]
    assert weighted[1][1] - weighted[0][1] == pytest.approx(0.5 * shift)
    np.testing.assert_allclose(weighted[1][0], weighted[0][0], rtol=1e-9)


def test_ensembles_far_from_the_origin_keep_their_digits():
    near, far = (normals(np.random.default_rng(3), offset=offset) for offset in (0.0, 1e6))
    for loss in (SquaredError(), Linex(1.0), Linex(-2.0)):
        np.testing.assert_allclose(expected_reduction(loss, far), expected_reduction(loss, near), rtol=1e-6)


def test_positive_targets_far_from_the_origin_keep_their_digits(rng):
    """A joint of y and z that are all but independent, z = 1e6 + {0, 1, 2}: relative errors of 1e-6."""
    values = 1e6 + np.arange(3.0)
    table = random_table(rng, values, domain=POSITIVE)
    independent = table.joint.sum(2, keepdims=True) * table.joint.sum(3, keepdims=True)
    joint = independent + 1e-6 * (table.joint - independent)  # correlation 1e-6, so EUR of order 1e-12 of h
    belief = type(table)(values, joint, POSITIVE)
    squared = expected_regret(SquaredError(), belief)
    # Far from 0 both are squared error in units of the mean, up to 1e-6: z^2 / (2 m^2) and z^2 / (2 m).
    np.testing.assert_allclose(expected_regret(ItakuraSaito(), belief), squared / 2e12, rtol=1e-5)
    np.testing.assert_allclose(expected_regret(PoissonDeviance(), belief), squared / 2e6, rtol=1e-5)


def test_linex_at_house_prices():
    """Prices of 250,000 with an sd of 20,000, overestimates hurting from 10,000 on: exp(-alpha z) is exp(-25)."""
    belief = gaussian_pair([250_000.0, 240_000.0], [4e8, 1e8], [0.1, 0.6])
    for alpha in (1e-4, -1e-4, 1e-2, 1.0):
        wanted = alpha**2 / 2 * np.array([[0.1], [0.6]]) * belief.variance
        np.testing.assert_allclose(expected_reduction(Linex(alpha), belief), wanted, rtol=1e-12)
        np.testing.assert_allclose(uncertainty(Linex(1e-4), belief), 1e-8 / 2 * belief.variance, rtol=1e-9)
    for alpha in (1e-4, -3e-4):
        np.testing.assert_allclose(
            expected_regret(Linex(alpha), belief), expected_reduction(Linex(alpha), belief), rtol=1e-9
        )


@pytest.mark.parametrize("loss", [SquaredError, lambda w: BregmanLoss(Square(), weight=w), Linex])
def test_weights_beyond_any_float_rank_rightly(loss):
    """w = exp(800) at one context, exp(-900) at another: the first decides."""
    loss = loss(ExponentialWeight(1.0)) if loss is not Linex else Linex(1.0, ExponentialWeight(1.0))
    belief = GaussianBelief([800.0, -900.0], [1.0, 1.0], [1.0, 1.0, 1.0], [[0.1, 0.9], [0.5, 0.1], [0.3, 0.0]])
    scores, log_scale = score(loss, belief, return_log_scale=True)
    assert np.all(np.isfinite(scores))
    assert list(np.argsort(scores)) == [0, 2, 1]
    assert 700 < log_scale < 900
    with pytest.raises(FloatingPointError, match="return_log_scale"):
        score(loss, belief)


def test_weights_that_vanish_everywhere_but_at_one_context():
    """exp(-z) is 0 in floating point beyond 745; the one context within reach decides, also without a logarithm."""
    belief = GaussianBelief([900.0, 2.0, 1200.0], [1.0] * 3, [1.0, 1.0], [[0.9, 0.2, 0.9], [0.1, 0.6, 0.1]])
    for weight in (ExponentialWeight(-1.0), Weight(lambda z: np.exp(-z))):
        scores = score(SquaredError(weight), belief)
        assert np.all(np.isfinite(scores))
        np.testing.assert_allclose(scores[1] / scores[0], 9.0, rtol=1e-6)
    far = GaussianBelief([900.0], [1.0], [1.0, 1.0], [[0.9], [0.1]])
    with pytest.raises(FloatingPointError, match="return_log_scale"):
        score(SquaredError(ExponentialWeight(-1.0)), far)
    scores, log_scale = score(SquaredError(ExponentialWeight(-1.0)), far, return_log_scale=True)
    np.testing.assert_allclose(scores * np.exp(log_scale + 899.5), [0.81, 0.01])


@given(
    seed=st.integers(0, 10_000),
    sharpness=st.floats(0.01, 100.0),
    loss=st.sampled_from(CLASS_LOSSES),
    n_members=st.integers(1, 5),
)
def test_no_class_label_is_worth_less_than_nothing(seed, sharpness, loss, n_members):
    rng = np.random.default_rng(seed)
    soft = rng.dirichlet(np.full(3, sharpness), (7, n_members))
    soft = np.where(soft < 1e-8, 0.0, soft)
    belief = CategoricalEnsemble(soft[:4] / soft[:4].sum(-1, keepdims=True), soft[4:] / soft[4:].sum(-1, keepdims=True))
    reduction = expected_reduction(loss, belief)
    assert np.all(reduction >= -1e-12 * max(abs(reduction).max(), 1e-300))
    assert np.all(reduction <= uncertainty(loss, belief) * (1 + 1e-12) + 1e-15)


@pytest.mark.filterwarnings("ignore::stakes.AccuracyWarning")  # at an offset of 1e12 sds a target has few digits
@given(
    mean=st.floats(-1e6, 1e6),
    sd=st.floats(1e-6, 1e3),
    rho=st.floats(0, 1),
    loss=st.sampled_from(LOSSES_ON_REALS[:5]),
)
def test_no_real_label_is_worth_less_than_nothing(mean, sd, rho, loss):
    belief = gaussian_pair(mean, sd**2, rho)
    scores, _ = score(loss, belief, return_log_scale=True)
    assert scores[0] >= 0


@pytest.mark.parametrize("loss", LOSSES_ON_REALS, ids=repr)
def test_edges_of_gaussian_beliefs(loss):
    nothing_varies = GaussianBelief([1.0, 2.0], [0.0, 1.0], [0.0, 1.0, 1.0], [[0, 0], [0, 0], [0, 1.0]])
    reduction = expected_reduction(loss, nothing_varies)
    np.testing.assert_array_equal(reduction[:2], 0.0)
    assert reduction[2, 0] == 0 < reduction[2, 1]
    np.testing.assert_allclose(reduction[2, 1], uncertainty(loss, nothing_varies)[1], rtol=1e-6)
    nobody = GaussianBelief([1.0, 2.0], [1.0, 1.0], np.zeros(0), np.zeros((0, 2)))
    for function in (expected_reduction, expected_regret):
        assert function(loss, nobody).shape == (0, 2)
    assert score(loss, nobody).shape == (0,)


@pytest.mark.parametrize("loss", CLASS_LOSSES, ids=repr)
def test_edges_of_class_beliefs(loss):
    candidates, contexts = np.full((0, 2, 3), 1 / 3), np.full((1, 2, 3), 1 / 3)
    for belief in (CategoricalEnsemble(candidates, contexts), VoteEnsemble(np.zeros((0, 2)), np.zeros((1, 2)), 3)):
        assert score(loss, belief).shape == (0,)
        assert expected_reduction(loss, belief).shape == (0, 1)
        assert uncertainty(loss, belief).shape == (1,)


def test_edges_of_normal_ensembles():
    nobody = NormalEnsemble(np.zeros((0, 3)), 1.0, np.zeros((2, 3)), 1.0)
    one_member = NormalEnsemble([[0.0], [5.0]], 1.0, [[2.0]], 0.5)
    for loss in REAL_LOSSES:
        assert score(loss, nobody).shape == (0,)
        np.testing.assert_allclose(expected_reduction(loss, one_member), 0.0, atol=1e-15)
    latent = NormalEnsemble([[0.0, 1.0]], 0.1, [[0.0, 1.0]], 0.0)  # contexts without noise: y tells z
    np.testing.assert_allclose(expected_reduction(SquaredError(), latent), 0.25, rtol=1e-5)


def test_single_precision_in_single_precision_out(rng):
    soft = rng.dirichlet(np.full(4, 30.0), (60, 200))  # nearly flat: small differences
    for dtype, rtol in ((np.float32, 2e-3), (np.float64, 1e-12)):
        belief = CategoricalEnsemble(soft[:40].astype(dtype), soft[40:].astype(dtype))
        for loss in (LogLoss([1, 50, 1, 1]), BrierLoss(), SphericalLoss()):
            scores = score(loss, belief)
            assert scores.dtype == dtype
            np.testing.assert_allclose(scores, score(loss, CategoricalEnsemble(soft[:40], soft[40:])), rtol=rtol)
    exact, single = gaussian(rng), None
    single = GaussianBelief(
        *(np.float32(each) for each in (exact.mean, exact.variance, exact.candidate_variance, exact.covariance))
    )
    for loss in REAL_LOSSES:
        assert expected_reduction(loss, single).dtype == np.float32
        np.testing.assert_allclose(expected_reduction(loss, single), expected_reduction(loss, exact), rtol=1e-4)
        np.testing.assert_allclose(expected_regret(loss, single), expected_reduction(loss, exact), rtol=1e-4)


def test_what_single_precision_cannot_hold_comes_in_double():
    members = np.tile(np.float32([[[0.3, 0.7]]]), (1, 3, 1))  # they agree: what is left is rounding
    scores = score(BrierLoss(), CategoricalEnsemble(np.repeat(members, 4, axis=0), members))
    assert np.all((scores >= 0) & (scores < 1e-12))
    far = [np.float32(each) for each in ([-100.0], [1.0], [2.0], [[1.0]])]  # w = exp(z) is e^-100 there
    found = score(SquaredError(ExponentialWeight(1.0)), GaussianBelief(*far))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, 0.5 * np.exp(-99.5), rtol=1e-5)
