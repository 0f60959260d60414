"""Audits: unbiased over every possible draw, intervals that hold, and what a belief expects to lose."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from stakes import (
    CRPS,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    FiniteActions,
    GaussianBelief,
    GaussianProcess,
    LogLoss,
    LogScore,
    LogWarp,
    Mahalanobis,
    NormalEnsemble,
    Pinball,
    SquaredError,
    ThresholdDecision,
    VectorGaussianBelief,
    VoteEnsemble,
    WarpedGaussianBelief,
    Weight,
    ZeroOne,
    audit,
)
from stakes.beliefs import Distribution
from stakes.evaluation import AuditDraw, AuditedLoss
from stakes.evaluation.audit import _inclusions, _systematic, drawn_by
from stakes.exceptions import StakesError


def gaussian(mean, variance):
    return GaussianBelief(np.asarray(mean), np.asarray(variance), np.ones(1), np.zeros((1, len(mean))))


class Start:
    """A generator whose systematic draws start at `u`, and come in an order given by `permuted`."""

    def __init__(self, u, permuted=lambda rows: rows):
        self.u, self.permutation = u, permuted

    def random(self, size=None):
        return self.u if size is None else np.zeros(size)


def every_draw(inclusions):
    """All systematic draws of rows with these probabilities, each with its own."""
    ends = np.cumsum(inclusions)
    cuts = np.unique(np.concatenate([[0.0, 1.0], ends % 1.0]))
    for low, high in itertools.pairwise(cuts):
        if high - low > 1e-12:
            start = Start((low + high) / 2.0)
            yield tuple(_systematic(inclusions, np.arange(len(inclusions)), start).tolist()), high - low


def of_rows(rows, inclusions, expected, mean_least=0.0):
    """The draw of these rows."""
    size, share = len(inclusions), inclusions / len(rows)
    squares, second = np.sum(expected**2 / share) / size**2, np.sum(2 * expected**2 / share) / size**2
    return AuditDraw(
        tuple(rows), tuple(inclusions[list(rows)]), tuple(expected[list(rows)]), (0.0,) * len(rows), size,
        float(expected.mean()), mean_least, math.inf, float(squares), float(second),
    )  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("belief", ["right", "wrong", "none"])
def test_unbiased_over_every_draw_of_a_small_pool(rng, count, belief):
    losses, inclusions = rng.gamma(0.5, size=5), _inclusions(rng.dirichlet(np.ones(5)), count)
    expected = {"right": losses * 0.9, "wrong": rng.gamma(2.0, size=5), "none": np.zeros(5)}[belief]
    total = mean = 0.0
    for rows, probability in every_draw(inclusions):
        assert len(set(rows)) == count
        total += probability
        mean += probability * of_rows(rows, inclusions, expected).estimate(losses[list(rows)]).mean
    assert total == pytest.approx(1.0, abs=1e-10)
    assert mean == pytest.approx(losses.mean(), rel=1e-9)


def test_without_a_belief_it_is_the_estimator_of_horvitz_and_thompson(rng):
    losses, inclusions = rng.gamma(0.5, size=30), _inclusions(rng.dirichlet(np.ones(30)), 7)
    drawn = of_rows(rng.permutation(30)[:7].tolist(), inclusions, np.zeros(30))
    seen = losses[list(drawn.rows)]
    assert drawn.estimate(seen).mean == pytest.approx(np.sum(seen / drawn.inclusions) / 30, rel=1e-12)


def test_the_first_labels_alone_are_an_estimate_too(rng):
    """Labels come one by one: those of the first rows are a draw of their own."""
    losses, expected = rng.gamma(0.5, size=4), rng.gamma(1.0, size=4)
    inclusions, mean = _inclusions(rng.dirichlet(np.ones(4)), 3), 0.0
    for rows, probability in every_draw(inclusions):
        orders = list(itertools.permutations(rows))
        for order in orders:
            drawn = of_rows(order, inclusions, expected)
            mean += probability / len(orders) * drawn.estimate(losses[list(order[:2])]).mean
    assert mean == pytest.approx(losses.mean(), rel=1e-9)


def test_all_rows_leave_nothing_open(rng):
    losses = rng.gamma(0.5, size=12)
    drawn = of_rows(rng.permutation(12).tolist(), np.ones(12), rng.gamma(1.0, size=12))
    found = drawn.estimate(losses[list(drawn.rows)])
    assert found.low == found.mean == found.high == pytest.approx(losses.mean(), rel=1e-10)


def test_rows_are_drawn_with_the_probabilities_that_are_kept(rng):
    """Over many draws each row is among those drawn as often as its probability says, and as often in any place."""
    spread = np.array([0.0, 1.0, 2.0, 2.0, 2.0, 9.0])
    moments = (np.ones(6), 1.0 + spread**2, np.zeros(6), np.full(6, np.inf))
    draws = [drawn_by(*moments, n=3, random_state=rng) for _ in range(4000)]
    share = 0.75 * spread / 16.0 + 0.25 / 6
    wanted = np.append(2.0 * share[:5] / share[:5].sum(), 1.0)  # the last row would be drawn more often than always
    for row in range(6):
        held = [each for each in draws if row in each.rows]
        kept = {round(each.inclusions[each.rows.index(row)], 12) for each in held}
        assert kept == {round(wanted[row], 12)}
        assert abs(len(held) / 4000 - wanted[row]) <= 4 * math.sqrt(wanted[row] * (1 - wanted[row]) / 4000)
        first = np.mean([each.rows[0] == row for each in held])
        assert abs(first - 1 / 3) < 4 * math.sqrt(2 / 9 / len(held))


def test_losses_of_every_size_are_drawn_in_proportion(rng):
    """Of rows in the order of their spread each part is drawn as often as it should be, up to one row."""
    spread = rng.gamma(1.0, size=400)
    drawn = drawn_by(np.ones(400), 1.0 + spread**2, np.zeros(400), np.full(400, np.inf), n=40, random_state=rng)
    order = np.argsort(spread)
    share = 0.75 * spread / spread.sum() + 0.25 / 400
    for end in range(0, 400, 25):
        held = len(set(order[:end].tolist()) & set(drawn.rows))
        assert abs(held - 40 * share[order[:end]].sum()) < 1.0


def test_no_more_is_left_open_by_rows_that_are_drawn_for_certain(rng):
    """A pool in which all loss is in rows that are always drawn is known but for rows that the belief is sure of."""
    spread = np.append(np.zeros(50), np.full(5, 100.0))
    losses = np.append(np.zeros(50), rng.gamma(1.0, size=5))
    drawn = drawn_by(np.zeros(55), spread**2, np.zeros(55), np.full(55, np.inf), n=10, random_state=rng)
    assert sorted(drawn.rows)[-5:] == [50, 51, 52, 53, 54]
    assert drawn.estimate(losses[list(drawn.rows)]).mean == pytest.approx(losses.mean(), rel=1e-12)


BELIEFS = {
    "normal": gaussian([0.0, 1.0, 3.0], [1.0, 0.25, 4.0]),
    "ensemble": NormalEnsemble(np.zeros((1, 2)), 0.1, np.array([[0.0, 1.0], [2.0, 2.5], [1.0, 4.0]]), 0.5),
    "warped": WarpedGaussianBelief(gaussian([0.0, 0.5, 1.0], [0.1, 0.2, 0.3]), LogWarp()),
}


def sampled(name, rng, count):
    """[3, count]: targets under a belief."""
    z = rng.standard_normal((3, count))
    if name == "normal":
        return BELIEFS[name].mean[:, None] + np.sqrt(BELIEFS[name].variance)[:, None] * z
    if name == "ensemble":
        member = rng.integers(2, size=(3, count))
        return np.take_along_axis(BELIEFS[name].context_mean, member, axis=1) + 0.5 * z
    return np.exp(BELIEFS[name].latent.mean[:, None] + np.sqrt(BELIEFS[name].latent.variance)[:, None] * z)


@pytest.mark.parametrize("name", BELIEFS)
@pytest.mark.parametrize(
    "loss",
    [SquaredError(), SquaredError(ExponentialWeight(0.3)), Pinball(0.9), ThresholdDecision(1.5, 5.0, 1.0), CRPS()],
    ids=["squared", "weighted", "pinball", "threshold", "crps"],
)
def test_expected_losses_are_those_of_draws_from_the_belief(name, loss, rng):
    belief, targets = BELIEFS[name], sampled(name, rng, 5_000 if isinstance(loss, CRPS) else 400_000)
    if name == "warped" and getattr(loss, "weight", None) is not None:
        loss = SquaredError(Weight(lambda z: 1.0 / (1.0 + z)))  # E exp(z / 3) is infinite for a lognormal z
    found = audit(belief, loss, n=3)
    answers = (
        found.answers
        if isinstance(found.answers, Distribution)
        else np.asarray(found.answers)[:, None] * np.ones_like(targets)
    )
    losses = np.asarray(loss(targets, answers))
    error = 5 * losses.std(axis=1) / math.sqrt(targets.shape[1])
    expected = dict(zip(found.draw.rows, found.draw.expected, strict=True))
    for row in range(3):
        assert abs(expected[row] - losses[row].mean()) < error[row] + 1e-3 * losses[row].mean()
    assert found.draw.mean_least == 0.0


def test_classes_and_votes():
    probabilities = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    costs = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [9.0, 2.0, 0.0]])
    belief = CategoricalEnsemble(probabilities[:1, None], probabilities[:, None])
    found = audit(belief, CostMatrix(costs), n=2)
    expected = dict(zip(found.draw.rows, found.draw.expected, strict=True))
    for row in range(2):
        best = costs[:, int(np.asarray(found.answers)[row])]
        assert expected[row] == pytest.approx(probabilities[row] @ best, abs=2e-3 * 9)
    assert found.draw.mean_most == np.mean([costs[:, int(each)].max() for each in np.asarray(found.answers)])
    votes = VoteEnsemble(np.zeros((1, 4)), np.array([[0, 0, 0, 1], [1, 1, 1, 1]]), 2)
    drawn = audit(votes, ZeroOne(), n=2)
    assert sorted(drawn.draw.expected)[1] == pytest.approx(0.25, abs=1e-3)
    assert sorted(drawn.draw.expected)[0] > 0  # no class is ever impossible


def test_vectors():
    belief = VectorGaussianBelief(
        mean=np.array([[0.0, 1.0], [2.0, 3.0]]), variance=np.stack([np.eye(2), 4 * np.eye(2)]),
        candidate_variance=np.eye(2)[None], covariance=np.zeros((1, 2, 2, 2)),
    )  # fmt: skip
    found = audit(belief, Mahalanobis(np.eye(2)), n=2)
    assert dict(zip(found.draw.rows, found.draw.expected, strict=True)) == pytest.approx({0: 2.0, 1: 8.0}, rel=1e-6)
    assert found.estimate([[0.0, 1.0], [2.0, 3.0]][:: 1 if found.draw.rows == (0, 1) else -1]).mean == pytest.approx(0)


def test_the_scale_of_losses_is_the_unit_of_the_answer(rng):
    """The mean, the limits and what was expected follow the unit of the loss."""
    mean, targets = rng.standard_normal(50), rng.standard_normal(50)
    once = audit(gaussian(mean, np.ones(50)), SquaredError(), n=10)
    thousand = audit(gaussian(1000 * mean, 1e6 * np.ones(50)), SquaredError(), n=10)
    assert once.draw.rows == thousand.draw.rows
    found = [each.estimate(scale * targets[list(each.draw.rows)]) for each, scale in ((once, 1.0), (thousand, 1000.0))]
    for name in ("mean", "low", "high", "expected"):
        assert getattr(found[1], name) == pytest.approx(1e6 * getattr(found[0], name), rel=1e-6)


def coverage(losses, expected, second, count, replays, rng, most=math.inf):
    """The share of intervals that hold the mean loss of the pool, of those that saw none too, and the estimates."""
    size, found = len(losses), []
    for _ in range(replays):
        drawn = drawn_by(expected, second, np.zeros(size), np.full(size, most), n=count, random_state=rng)
        found.append((drawn.estimate(losses[list(drawn.rows)]), losses[list(drawn.rows)].sum() == 0))
    hit = np.array([each.low <= losses.mean() <= each.high for each, _ in found])
    return hit, np.array([none for _, none in found]), np.array([each.mean for each, _ in found])


@pytest.mark.parametrize(("count", "least"), [(20, 0.85), (50, 0.9)])
@pytest.mark.parametrize("truth", ["as believed", "three times as frequent", "a third", "unrelated"])
def test_intervals_hold_for_rare_errors(count, least, truth, rng):
    """Also where the sample saw no loss at all, and where the belief is wrong by a factor, or altogether."""
    share = rng.beta(0.3, 3.0, size=600)
    factor = {"as believed": 1.0, "three times as frequent": 3.0, "a third": 1 / 3, "unrelated": 0.0}[truth]
    real = np.full(600, 0.06) if truth == "unrelated" else np.minimum(1.0, factor * share)
    hits, none = [], []
    for _ in range(10):
        hit, zero, _ = coverage((rng.random(600) < real).astype(float), share, share, count, 40, rng, 1.0)
        hits.append(hit)
        none.append(zero)
    assert np.concatenate(hits).mean() >= least
    seen_none = np.concatenate(hits)[np.concatenate(none)]
    assert len(seen_none) < 30 or seen_none.mean() >= 0.85


@pytest.mark.parametrize("count", [20, 50])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_intervals_hold_for_squared_errors(count, scale, rng):
    variance = rng.gamma(2.0, size=500)
    losses = scale * variance * rng.chisquare(1, size=500)
    hit, _, means = coverage(losses, variance, 3 * variance**2, count, 400, rng)
    assert hit.mean() >= (0.85 if count == 20 else 0.9)
    assert abs(means.mean() - losses.mean()) < 4 * means.std() / 20


def test_no_loss_was_seen(rng):
    """Twenty labels without an error leave room for an error rate of a sixth, as of a share; and no more than all."""
    drawn = drawn_by(np.full(500, 0.01), np.full(500, 0.01), np.zeros(500), np.ones(500), n=20, random_state=rng)
    found = drawn.estimate(np.zeros(20))
    assert found.low == 0
    assert 0.1 < found.high < 0.2
    assert abs(found.high - stats.binomtest(0, 20).proportion_ci().high) < 0.05
    sure = drawn_by(np.zeros(500), np.zeros(500), np.zeros(500), np.full(500, 3.0), n=20, random_state=rng)
    assert 0.3 < sure.estimate(np.zeros(20)).high < 0.6  # the belief says nothing: what an error costs does
    unknown = drawn_by(np.zeros(500), np.zeros(500), np.zeros(500), np.full(500, np.inf), n=20, random_state=rng)
    assert unknown.estimate(np.zeros(20)).high == math.inf


def test_limits_stay_within_what_is_possible(rng):
    drawn = drawn_by(np.full(30, 0.5), np.full(30, 0.5), np.zeros(30), np.ones(30), n=10, random_state=rng)
    all_wrong, all_right = drawn.estimate(np.ones(10)), drawn.estimate(np.zeros(10))
    assert all_wrong.low >= 10 / 30
    assert all_wrong.high == 1.0
    assert (all_right.low, all_right.high <= 20 / 30) == (0.0, True)
    assert "audited with 10 labels" in str(all_right)


def test_gains_have_intervals_too(rng):
    """Costs below 0 are counted from the least that the decision can cost; a utility without limit by its spread."""
    costs = np.array([[-5.0, 0.0], [3.0, 0.0]])
    probabilities = rng.beta(1.0, 1.0, size=(300, 1)) * np.array([[1.0, -1.0]]) + np.array([[0.0, 1.0]])
    belief = CategoricalEnsemble(probabilities[:1, None], probabilities[:, None])
    labels = (rng.random(300) < probabilities[:, 1]).astype(int)
    hits = 0
    for seed in range(100):
        found = audit(belief, CostMatrix(costs), n=30, random_state=seed)
        truth = costs[labels, np.asarray(found.answers).astype(int)].mean()
        read = found.estimate(labels[list(found.draw.rows)])
        hits += read.low <= truth <= read.high
    assert hits >= 88
    profit = FiniteActions(lambda z: np.stack([-z, np.zeros_like(z)], axis=-1))
    target = rng.standard_normal(200)
    drawn = audit(gaussian(target, np.ones(200)), profit, n=20)
    assert drawn.draw.mean_least is None
    read = drawn.estimate(target[list(drawn.draw.rows)])
    assert read.low < read.mean < read.high < 0


def test_scores_may_be_negative(rng):
    belief = gaussian(np.zeros(40), np.full(40, 1e-4))
    drawn = audit(belief, LogScore(), n=20)
    read = drawn.estimate(0.01 * rng.standard_normal(20))
    assert read.low < read.mean < read.high < 0


def test_a_belief_that_expects_an_infinite_loss_draws_at_random(rng):
    """It says nothing of which rows to draw; labels still do."""
    belief = WarpedGaussianBelief(gaussian(rng.standard_normal(200), np.ones(200)), LogWarp())
    loss = SquaredError(ExponentialWeight(0.5))
    drawn = audit(belief, loss, n=20, predictions=np.ones(200))
    np.testing.assert_allclose(drawn.draw.inclusions, 0.1, rtol=1e-12)
    assert 0 < drawn.estimate(np.full(20, 2.0) + 0.1 * rng.standard_normal(20)).high < math.inf


def test_an_infinite_loss_is_infinite():
    belief = CategoricalEnsemble(np.array([[[1.0, 0.0]]]), np.array([[[1.0, 0.0]], [[0.5, 0.5]]]))
    drawn = audit(belief, LogLoss(), n=2)
    labels = np.where(np.asarray(drawn.draw.rows) == 0, 1, 0)
    assert drawn.estimate(labels) == AuditedLoss(math.inf, math.inf, math.inf, 2, 2, drawn.draw.mean_expected)


def test_a_model_its_pool_and_names_of_classes(rng):
    from sklearn.ensemble import RandomForestClassifier

    rows = rng.standard_normal((2500, 3))
    labels = np.where(rows[:, 0] > 0, "sick", "well")
    model = RandomForestClassifier(20, random_state=0).fit(rows[:30], labels[:30])
    drawn = audit(model, ZeroOne(), rows[30:], n=25)
    assert drawn.classes == ("sick", "well")
    assert len(set(drawn.draw.rows)) == 25
    assert drawn.draw.n_rows == 2470
    truth = np.mean(model.predict(rows[30:]) != labels[30:])
    read = drawn.estimate(labels[30:][list(drawn.draw.rows)])
    assert read.low <= truth <= read.high
    with pytest.raises(StakesError, match="among the classes"):
        drawn.estimate(["ill"] * 25)


def test_answers_of_ones_own(rng):
    """Not the best answers under the belief, but what is answered."""
    mean = rng.standard_normal(60)
    drawn = audit(gaussian(mean, np.ones(60)), SquaredError(), n=60, predictions=mean + 2.0)
    assert drawn.draw.mean_expected == pytest.approx(5.0, rel=1e-6)  # 1 + 2^2
    assert drawn.estimate(mean[list(drawn.draw.rows)]).mean == pytest.approx(4.0)
    with pytest.raises(StakesError, match="one answer for each of 60 rows"):
        audit(gaussian(mean, np.ones(60)), SquaredError(), predictions=mean[:5])


def test_a_pandas_index_comes_back():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": np.linspace(0.0, 1.0, 30)}, index=[f"r{row}" for row in range(30)])
    model = GaussianProcess().fit(frame[::5], frame["x"].to_numpy()[::5])
    drawn = audit(model, SquaredError(), frame, n=4)
    assert drawn.row_ids == tuple(f"r{row}" for row in drawn.draw.rows)


def test_a_draw_survives_json(rng):
    import json

    drawn = drawn_by(rng.gamma(1.0, size=9), 3.0 + rng.gamma(1.0, size=9), np.zeros(9), np.full(9, np.inf), n=4)
    assert AuditDraw.from_dict(json.loads(json.dumps(drawn.to_dict(), allow_nan=False))) == drawn


def test_other_libraries(rng, xp):
    mean, variance = rng.standard_normal(12), rng.gamma(1.0, size=12)
    arrays = (mean, variance, np.ones(1), np.zeros((1, 12)))
    belief = GaussianBelief(*(xp.asarray(each) for each in arrays))
    drawn = audit(belief, SquaredError(), n=5)
    assert drawn.draw.mean_expected == pytest.approx(variance.mean(), rel=1e-6)
    assert drawn.estimate(xp.asarray(mean[list(drawn.draw.rows)])).labels == 5


@pytest.mark.parametrize("given", [[], [0.0] * 6, [math.nan] * 2, [[0.0]]])
def test_refused_losses(given):
    drawn = drawn_by(np.ones(9), 2.0 * np.ones(9), np.zeros(9), np.ones(9), n=5)
    with pytest.raises(StakesError, match="losses must be numbers"):
        drawn.estimate(given)


def test_refused_arguments():
    belief = gaussian([0.0, 1.0], [1.0, 1.0])
    for n in (0, True, 2.5):
        with pytest.raises(StakesError, match="n must be a whole number"):
            audit(belief, SquaredError(), n=n)
    with pytest.raises(StakesError, match="a fitted model with a pool"):
        audit(belief, SquaredError(), np.zeros((2, 1)))
    with pytest.raises(StakesError, match="no rows"):
        audit(GaussianProcess().fit(np.eye(3), np.arange(3.0)), SquaredError(), np.zeros((0, 3)))
    with pytest.raises(StakesError, match="1 to 2 of them"):
        audit(belief, SquaredError(), n=2).estimate([1.0, 2.0, 3.0])


def test_rows_that_cannot_be_labelled_are_left_out(rng):
    """The draw is then one from the pool without them."""
    losses, shares, expected = rng.gamma(0.5, size=9), 1.0 + rng.random(9), rng.gamma(1.0, size=9)
    shares /= shares.sum()
    drawn = of_rows((4, 1, 3, 0), _inclusions(shares, 4), expected)
    left = drawn.without([1])  # row 1
    rest = [0, 2, 3, 4, 5, 6, 7, 8]
    fresh = of_rows((3, 2, 0), _inclusions(shares[rest] / shares[rest].sum(), 3), expected[rest])
    assert left.rows == (4, 3, 0)
    np.testing.assert_allclose(left.inclusions, fresh.inclusions, rtol=1e-12)
    assert left.mean_expected == pytest.approx(fresh.mean_expected)
    seen = losses[[4, 3, 0]]
    assert left.estimate(seen).mean == pytest.approx(fresh.estimate(seen).mean)
    assert drawn.without([]) is drawn
