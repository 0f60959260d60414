"""Losses that depend on the context: exact for every form, against brute force, and from rank."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from stakes import (
    CRPS,
    AbsoluteError,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    GaussianMixtureBelief,
    GaussianProcess,
    Linex,
    LogLoss,
    NormalEnsemble,
    PerContext,
    SquaredError,
    ThresholdDecision,
    VoteEnsemble,
    ZeroOne,
    expected_reduction,
    expected_regret,
    find_form,
    honest_reduction,
    outlook,
    rank,
    score,
    select,
    uncertainty,
)
from stakes.acquisition.batch_states import start_batch
from stakes.evaluation import bayes_prediction
from stakes.exceptions import StakesError
from stakes.models.base import belief_of

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


def test_answers_and_realised_losses():
    loss = PerContext([SquaredError(), AbsoluteError()], prices=[1.0, 10.0])
    np.testing.assert_allclose(loss(np.array([1.0, 2.0]), np.array([3.0, 2.5])), [4.0, 5.0])
    answers = bayes_prediction(PerContext(NUMBERS), GAUSSIAN)
    assert answers[2] == pytest.approx(GAUSSIAN.mean[2])


def test_answers_that_are_whole_distributions():
    one = bayes_prediction(PerContext(CRPS(), prices=[1.0, 2.0, 3.0]), GAUSSIAN)
    np.testing.assert_allclose(one.quantile(0.5), GAUSSIAN.mean)
    each = bayes_prediction(PerContext([CRPS(), SquaredError(), CRPS()]), GAUSSIAN)
    assert [float(each[m].quantile(0.5)[0]) for m in (0, 2)] == pytest.approx([GAUSSIAN.mean[0], GAUSSIAN.mean[2]])
    assert each[1] == pytest.approx(GAUSSIAN.mean[1])
    rows = np.linspace(0.0, 1.0, 12)[:, None]
    model = GaussianProcess().fit(rows[::3], np.sin(6 * rows[::3, 0]))
    ranking = rank(model, PerContext(CRPS(), prices=lambda row: 1.0 + row[0]), rows[1::3], n=2)
    (first, *_), prices = ranking.reasons[0].contexts, 1.0 + rows[1::3, 0]
    assert first.prediction is None
    assert first.answer == "a distribution"
    assert ranking.indices == rank(model, PerContext(CRPS(), prices=prices), rows[1::3], n=2).indices


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


VOTES = VoteEnsemble(RNG.integers(0, 2, (4, 6)), RNG.integers(0, 2, (3, 6)), n_classes=2)
MEANS = RNG.normal(size=(3, 7))
MIXTURE = GaussianMixtureBelief(
    MEANS[:, 4:],
    np.tile(np.diag(JOINT)[4:] + 0.1, (3, 1)),
    MEANS[:, :4],
    np.tile(np.diag(LABELS), (3, 1)),
    np.tile(JOINT[:4, 4:], (3, 1, 1)),
    [0.5, 0.3, 0.2],
    np.tile(LABELS, (3, 1, 1)),
)
OF_CLASSES = [LogLoss(), CostMatrix([[0, 1], [7, 0]]), ZeroOne()]
DECISIONS = [CostMatrix([[0, 1], [7, 0]]), ZeroOne(), CostMatrix([[0, 2, 1], [5, 0, 1]])]  # of two actions and of three
SMOOTH = [SquaredError(), SquaredError(ExponentialWeight(0.3)), SquaredError(ExponentialWeight(-0.2))]
TOGETHER = [
    pytest.param(NUMBERS, GAUSSIAN, 1e-9, id="gaussian"),
    pytest.param(OF_CLASSES, CLASSES, 1e-9, id="classes"),
    pytest.param(DECISIONS, CLASSES, 1e-9, id="decisions"),
    pytest.param([BrierLoss(), ZeroOne(), BrierLoss()], VOTES, 1e-9, id="votes"),
    pytest.param(DECISIONS, VOTES, 1e-9, id="decisions-votes"),
    pytest.param(SMOOTH, NORMALS, 1e-9, id="normals"),
    pytest.param([*SMOOTH[:2], ThresholdDecision(0.1, 1, 4)], NORMALS, 1e-4, id="normals-decision"),
    pytest.param([SquaredError(), Linex(0.5), CRPS()], NORMALS, 1e-9, id="normals-distributions"),
    pytest.param(SMOOTH, MIXTURE, 1e-9, id="mixture"),
    pytest.param([SquaredError(), AbsoluteError(), SquaredError()], MIXTURE, 1e-9, id="mixture-quantile"),
]
SHARES = np.array([0.25, 0.5, 0.25])


def each_alone(of, losses, belief):
    """Prices and shares of contexts times what a function of a loss and a belief about one context finds."""
    blocks = [belief.take(slice(None), slice(place, place + 1)) for place in range(3)]
    found = [of(one, block) for one, block in zip(losses, blocks, strict=True)]
    return sum(share * price * each for share, price, each in zip(SHARES, PRICES, found, strict=True))


def joint_worth(loss, belief, batch, weights=None):
    """[n]: of the first labels of a given batch."""
    state, found = start_batch(loss, belief, weights, np.random.default_rng(0), 2**20), []
    for place in batch:
        state.add(place)
        found.append(np.exp(float(state.log_joint())))
    return np.array(found)


@pytest.mark.parametrize(("losses", "belief", "rtol"), TOGETHER)
def test_labels_together_are_worth_the_sum_over_contexts(losses, belief, rtol):
    chosen = select(PerContext(losses, PRICES), belief, n=3, context_weights=SHARES)
    assert len(chosen.indices) == 3
    pair = chosen.indices[:2]  # whose labels are enumerated, but for those of mixtures, which are the same draws
    wanted = each_alone(lambda one, block: joint_worth(one, block, pair), losses, belief)
    found = joint_worth(PerContext(losses, PRICES), belief, pair, SHARES)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-12)
    apart = np.abs(np.asarray(chosen.joint_reduction[:2]) - wanted)
    assert np.all(apart <= 4.0 * np.asarray(chosen.sampling_error[:2]) + max(rtol, 1e-9) * wanted + 1e-12)


def least_cost(loss, law):
    """The expected loss of the best answer where classes have the probabilities `law` [C]."""
    if isinstance(loss, LogLoss):
        return -sum(share * np.log(share) for share in law if share > 0)
    if isinstance(loss, BrierLoss):
        return 1.0 - (law**2).sum()
    costs = 1.0 - np.eye(len(law)) if isinstance(loss, ZeroOne) else np.asarray(loss.costs)
    return (law @ costs).min()


def brute_worth(loss, candidates, contexts, batch):
    """EUR of a batch at one context, by a sum over its labels; members [N, K, C] and [K, C] count alike."""
    size = contexts.shape[0]
    after = 0.0
    for labels in np.ndindex(*[contexts.shape[1]] * len(batch)):
        joint = np.prod([candidates[i, :, y] for i, y in zip(batch, labels, strict=True)], axis=0) / size  # [K]
        if joint.sum() > 0:
            after += joint.sum() * least_cost(loss, joint @ contexts / joint.sum())
    return least_cost(loss, contexts.mean(axis=0)) - after


@pytest.mark.parametrize("losses", [OF_CLASSES, DECISIONS, [BrierLoss(), LogLoss(), DECISIONS[2]]])
@pytest.mark.parametrize("kind", ["classes", "votes"])
def test_joint_batches_of_classes_against_brute_force(losses, kind):
    belief = CLASSES if kind == "classes" else VOTES
    candidates, contexts = (
        np.asarray(table) if kind == "classes" else np.eye(2)[np.asarray(table)]
        for table in (belief.candidates, belief.contexts)
    )
    chosen = select(PerContext(losses, PRICES), belief, n=3, context_weights=SHARES)
    wanted = [
        sum(
            share * price * brute_worth(loss, candidates, contexts[m], chosen.indices[:count])
            for m, (loss, price, share) in enumerate(zip(losses, PRICES, SHARES, strict=True))
        )
        for count in (1, 2, 3)
    ]
    np.testing.assert_allclose(chosen.joint_reduction, wanted, rtol=1e-9, atol=1e-12)
    first = [
        sum(
            share * price * brute_worth(loss, candidates, contexts[m], [n])
            for m, (loss, price, share) in enumerate(zip(losses, PRICES, SHARES, strict=True))
        )
        for n in range(4)
    ]
    assert max(first) == pytest.approx(wanted[0], rel=1e-9)


@pytest.mark.parametrize(("losses", "belief", "rtol"), [case for case in TOGETHER if case.id != "gaussian"])
@pytest.mark.parametrize("batch", [(1,), (0, 2)])
def test_honest_worths_are_the_sum_over_contexts(losses, belief, rtol, batch):  # noqa: ARG001 (draws are the same)
    found = honest_reduction(PerContext(losses, PRICES), belief, batch, context_weights=SHARES, draws=16)
    alone = lambda one, block: honest_reduction(one, block, batch, draws=16)  # noqa: E731
    wanted = each_alone(lambda one, block: alone(one, block).reduction, losses, belief)
    assert found.reduction == pytest.approx(wanted, rel=1e-8, abs=1e-12)
    by_member = each_alone(lambda one, block: np.asarray(alone(one, block).by_member), losses, belief)
    np.testing.assert_allclose(found.by_member, by_member, rtol=1e-7, atol=1e-12)


def test_honest_worth_of_log_loss_under_votes_is_smoothed_where_it_is_log_loss():
    """Frequencies of classes are those of the contexts under log loss."""
    losses = [LogLoss(), ZeroOne(), LogLoss()]
    found = honest_reduction(PerContext(losses, PRICES), VOTES, (0, 2), context_weights=SHARES)
    assert found.smoothing == 0.03
    both = VOTES.take(slice(None), slice(0, 3, 2))
    logs = honest_reduction(PerContext(LogLoss(), [1.0, 5.0]), both, (0, 2), context_weights=[0.25, 0.25])
    middle = honest_reduction(ZeroOne(), VOTES.take(slice(None), slice(1, 2)), (0, 2))
    assert found.reduction == pytest.approx(0.5 * logs.reduction + 0.5 * 2.0 * middle.reduction, rel=1e-9)


def test_what_has_no_members_or_no_joint_belief_is_refused():
    with pytest.raises(TypeError, match="GaussianBelief has none"):
        honest_reduction(PerContext(NUMBERS), GAUSSIAN, (0,))
    with pytest.raises(StakesError, match="2 losses, and the belief is about 3"):
        honest_reduction(PerContext([ZeroOne()] * 2), CLASSES, (0,))
    with pytest.raises(StakesError, match="2 losses, and the belief is about 3"):
        select(PerContext([ZeroOne()] * 2), CLASSES, n=2)


def test_outlook_with_a_loss_for_each_row():
    """One loss in every row is that loss; prices multiply what is expected and saved."""
    X = np.random.default_rng(3).normal(size=(60, 2))
    forest = RandomForestClassifier(20, random_state=0).fit(X[:20], X[:20, 0] > 0)
    process = GaussianProcess().fit(X[:20], X[:20, 0])
    for model, loss in ((forest, CostMatrix([[0, 1], [3, 0]])), (process, ThresholdDecision(0.2, 1.0, 3.0))):
        one = outlook(model, loss, X[20:], n=4, costs=0.01, decisions=100)
        same = outlook(model, PerContext(lambda row: loss), X[20:], n=4, costs=0.01, decisions=100)  # noqa: B023
        expensive = outlook(model, PerContext(loss, lambda row: 3.0), X[20:], n=4, costs=0.03, decisions=100)
        for other, factor in ((same, 1.0), (expensive, 3.0)):
            assert other.ranking.indices == one.ranking.indices
            assert other.today.value == pytest.approx(factor * one.today.value, rel=1e-6)
            assert other.offers[-1].net == pytest.approx(factor * one.offers[-1].net, rel=1e-6)
    rows = PerContext(lambda row: CostMatrix([[0, 1], [1.0 + abs(row[1]), 0]]))
    found = outlook(forest, rows, X[20:], n=4)
    belief = belief_of(forest, X[20:], X[20:])
    alone = [belief.take(slice(0, 1), slice(place, place + 1)) for place in range(40)]
    answers = np.mean([uncertainty(rows.losses(row), each)[0] for row, each in zip(X[20:], alone, strict=True)])
    assert found.today.value == pytest.approx(answers, rel=1e-6)


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
