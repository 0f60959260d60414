"""Losses that depend on the context: exact for every form, against brute force, and from rank."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from stakes import (
    AbsoluteError,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    GaussianProcess,
    LogLoss,
    NormalEnsemble,
    PerContext,
    SquaredError,
    ThresholdDecision,
    ZeroOne,
    expected_reduction,
    expected_regret,
    find_form,
    outlook,
    rank,
    score,
    select,
    uncertainty,
)
from stakes.evaluation import bayes_prediction
from stakes.exceptions import StakesError

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(7, 7))
JOINT = ROOT @ ROOT.T
LABELS = JOINT[:4, :4] + 0.3 * np.eye(4)
GAUSSIAN = GaussianBelief(RNG.normal(size=3), np.diag(JOINT)[4:] + 0.1, np.diag(LABELS), JOINT[:4, 4:], LABELS)
NORMALS = NormalEnsemble(RNG.normal(size=(4, 6)), 0.7, RNG.normal(size=(3, 6)), 0.5)
CLASSES = CategoricalEnsemble(RNG.dirichlet(np.ones(2), (4, 6)), RNG.dirichlet(np.ones(2), (3, 6)))
NUMBERS = [ThresholdDecision(0.1, 1, 4), SquaredError(ExponentialWeight(0.3)), AbsoluteError()]
PRICES = [1.0, 2.0, 5.0]
CASES = [
    pytest.param(NUMBERS, GAUSSIAN, id="gaussian"),
    pytest.param([*NUMBERS[:2], SquaredError()], NORMALS, id="normals"),
    pytest.param([LogLoss(), CostMatrix([[0, 1], [7, 0]]), ZeroOne()], CLASSES, id="classes"),
]


@pytest.mark.parametrize(("losses", "belief"), CASES)
def test_each_context_has_what_its_own_loss_gives(losses, belief):
    alone = [belief.take(slice(None), slice(place, place + 1)) for place in range(3)]
    wanted = np.stack(
        [price * expected_reduction(*pair)[:, 0] for price, *pair in zip(PRICES, losses, alone, strict=True)], axis=1
    )
    loss = PerContext(losses, prices=PRICES)
    np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-9)
    np.testing.assert_allclose(expected_regret(loss, belief), wanted, rtol=2e-6, atol=1e-9)
    np.testing.assert_allclose(score(loss, belief, context_weights=[1, 2, 1]), wanted @ [0.25, 0.5, 0.25], rtol=1e-9)
    np.testing.assert_allclose(score(loss, belief, memory_limit=4096), wanted.mean(axis=1), rtol=1e-9)  # many blocks
    today = [price * uncertainty(*pair)[0] for price, *pair in zip(PRICES, losses, alone, strict=True)]
    np.testing.assert_allclose(uncertainty(loss, belief), today, rtol=1e-9)
    assert find_form(loss, belief).name == "each context under its own loss"


def expected_cost(loss, mean, sd, eta, mass):
    """[..]: of the better action, by a sum over targets from the loss itself."""
    z = np.asarray(mean)[..., None] + sd * eta
    return np.min([(loss(z, np.full(z.shape, action)) * mass).sum(axis=-1) for action in (0, 1)], axis=0)


def test_thresholds_against_brute_force():
    """EUR from the definition: the expected cost of the better action before the label, less that after."""
    losses = [ThresholdDecision(limit, 1.0, 3.0) for limit in (-0.5, 0.3, 1.0)]
    found, eta = expected_reduction(PerContext(losses), GAUSSIAN), np.linspace(-6, 6, 601)
    mass = np.exp(-0.5 * eta**2) / np.exp(-0.5 * eta**2).sum()
    sd = np.sqrt(GAUSSIAN.variance)
    for n, m in np.ndindex(2, 3):
        rho = GAUSSIAN.covariance[n, m] ** 2 / GAUSSIAN.variance[m] / GAUSSIAN.candidate_variance[n]
        centres = GAUSSIAN.mean[m] + sd[m] * np.sqrt(rho) * eta
        after = mass @ expected_cost(losses[m], centres, sd[m] * np.sqrt(1 - rho), eta, mass)
        wanted = expected_cost(losses[m], GAUSSIAN.mean[m], sd[m], eta, mass) - after
        assert found[n, m] == pytest.approx(wanted, abs=6e-3)


def test_one_loss_for_all_and_a_price_for_each():
    found = expected_reduction(PerContext(SquaredError(), prices=PRICES), GAUSSIAN)
    np.testing.assert_allclose(found, expected_reduction(SquaredError(), GAUSSIAN) * PRICES, rtol=1e-12)


def test_labels_are_chosen_together_under_a_gaussian_belief():
    one = select(PerContext([SquaredError()] * 3), GAUSSIAN, n=3)
    other = select(SquaredError(), GAUSSIAN, n=3)
    assert one.indices == other.indices
    np.testing.assert_allclose(one.joint_reduction, other.joint_reduction, rtol=1e-9)
    mixed = select(PerContext(NUMBERS, PRICES), GAUSSIAN, n=2)
    assert mixed.joint_reduction[1] > mixed.joint_reduction[0] > 0
    with pytest.raises(TypeError, match="chosen together under a loss for each context where the belief is Gaussian"):
        select(PerContext([ZeroOne()] * 3), CLASSES, n=2)


def test_answers_and_realised_losses():
    loss = PerContext([SquaredError(), AbsoluteError()], prices=[1.0, 10.0])
    np.testing.assert_allclose(loss(np.array([1.0, 2.0]), np.array([3.0, 2.5])), [4.0, 5.0])
    answers = bayes_prediction(PerContext(NUMBERS), GAUSSIAN)
    assert answers[2] == pytest.approx(GAUSSIAN.mean[2])


def test_rank_with_a_threshold_and_a_price_in_each_row():
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"x": np.linspace(0, 1, 30), "limit": np.where(np.arange(30) < 15, 0.0, 50.0)})
    model = GaussianProcess().fit(rows[::3], np.sin(6 * rows["x"][::3]))
    pool = rows[1::3]
    loss = PerContext(lambda row: ThresholdDecision(row["limit"], 1.0, 2.0), prices=lambda row: 1.0 + row["x"])
    ranking = rank(model, loss, pool, n=2)
    listed = [ThresholdDecision(limit, 1.0, 2.0) for limit in pool["limit"]]
    same = rank(model, PerContext(listed, prices=1.0 + pool["x"]), pool, n=2)
    assert ranking.indices == same.indices
    assert ranking.scores == pytest.approx(same.scores, rel=1e-9)
    helped = {context.row_id for reason in ranking.reasons for context in reason.contexts}
    assert helped
    assert all(rows["limit"][row] == 0.0 for row in helped)  # 50 is out of the question


def test_rank_with_costs_of_each_row_under_a_forest():
    X = RNG.normal(size=(60, 2))
    model = RandomForestClassifier(20, random_state=0).fit(X[:20], X[:20, 0] > 0)
    loss = PerContext(lambda row: CostMatrix([[0, 1], [1.0 + abs(row[1]), 0]]))
    assert len(rank(model, loss, X[20:], n=3)) == 3
    with pytest.raises(TypeError, match="outlook takes one loss for all contexts"):
        outlook(model, loss, X[20:])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PerContext([]), StakesError, "got none"),
        (lambda: PerContext([3.0]), TypeError, "takes losses"),
        (lambda: PerContext([SquaredError()], prices=[0.0]), StakesError, "prices must be positive"),
        (lambda: score(PerContext([SquaredError()] * 2), GAUSSIAN), StakesError, "2 losses, and the belief is about 3"),
        (lambda: score(PerContext(lambda row: SquaredError()), GAUSSIAN), StakesError, "take a list of losses"),
        (lambda: score(PerContext([SquaredError(), SquaredError(), LogLoss()]), GAUSSIAN), TypeError, "is for class"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error, match=message):
        make()
