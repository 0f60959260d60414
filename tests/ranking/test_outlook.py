"""What labels would save: against the scores, by hand, and at the edges."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge

import stakes
from stakes._utils.text import number
from stakes.models import EnsembleOf, belief_of
from stakes.ranking.outlook import GAUSSIAN_SHARE, SURE_SHARE, _with_free_disposal, class_rate, curve


@pytest.fixture
def features(rng):
    return rng.standard_normal((60, 2))


@pytest.fixture
def process(features, rng):
    y = np.sin(features[:, 0]) + 0.1 * rng.standard_normal(60)
    return GaussianProcessRegressor(RBF() + WhiteKernel(0.04), optimizer=None).fit(features[:10], y[:10])


@pytest.fixture
def forest(features):
    y = (features[:, 0] > 0).astype(int) + (features[:, 1] > 0.7)
    return RandomForestClassifier(20, random_state=0).fit(features[:15], y[:15])


@pytest.mark.parametrize("loss", [stakes.SquaredError(), stakes.Linex(1.0), stakes.ThresholdDecision(0.3, 5.0)])
def test_offers_are_what_batches_are_worth(loss, process, features):
    found = stakes.outlook(process, loss, features[10:], n=4)
    belief = belief_of(process, features[10:], features[10:], joint=True)
    chosen = stakes.select(loss, belief, n=4)
    assert found.ranking.indices == chosen.indices
    worths = [offer.worth / GAUSSIAN_SHARE for offer in found.offers]
    assert worths == pytest.approx(list(chosen.joint_reduction), rel=1e-9)
    assert worths[0] == pytest.approx(stakes.score(loss, belief).max(), rel=1e-6)
    assert found.today.value == pytest.approx(float(np.mean(stakes.uncertainty(loss, belief))), rel=1e-12)
    assert found.today.value > found.most.value > found.offers[-1].worth > 0


def test_the_most_is_all_but_the_noise(process, features):
    found = stakes.outlook(process, stakes.SquaredError(), features[10:], n=1)
    assert found.today.value - found.most.value == pytest.approx(0.04, rel=1e-9)
    latent = stakes.outlook(process, stakes.SquaredError(), features[10:], n=1, target="latent")
    assert latent.most.value == pytest.approx(latent.today.value, rel=1e-9)
    assert latent.most.value == pytest.approx(found.most.value, rel=1e-9)


@pytest.mark.parametrize("loss", [stakes.Linex(2.0), stakes.ThresholdDecision(0.1, 3.0), stakes.AbsoluteError()])
def test_many_labels_come_near_the_most(loss, features):
    model = BayesianRidge().fit(features[:20], features[:20] @ [1.0, -2.0] + 0.5 * np.cos(7 * features[:20, 0]))
    few, many = (np.tile(features[20:28], (copies, 1)) for copies in (1, 20))
    found = stakes.outlook(model, loss, few, n=1)
    labels = stakes.outlook(model, loss, many, contexts=few, n=150)
    assert labels.most.value == pytest.approx(found.most.value, rel=1e-9)
    assert labels.offers[-1].worth == found.most.value  # what the belief says, and a fifth more, but no more than that
    joint = stakes.select(loss, belief_of(model, many, few, joint=True), n=150).joint_reduction[-1]
    assert 0.9 * found.most.value < joint < found.most.value


def test_the_most_of_an_ensemble_is_knowing_the_member(forest, features):
    pool = features[15:]
    found = stakes.outlook(forest, stakes.LogLoss(), pool, n=2)
    shares = forest.predict_proba(pool)
    entropy = -np.sum(shares * np.log(np.where(shares > 0, shares, 1.0)), axis=1)
    members = np.stack([tree.predict_proba(pool) for tree in forest.estimators_])
    rest = -np.sum(members * np.log(np.where(members > 0, members, 1.0)), axis=2).mean(axis=0)
    assert found.most.value == pytest.approx(float((entropy - rest).mean()), rel=1e-9)
    assert found.most.error == pytest.approx(float((entropy - rest).std()) / np.sqrt(len(pool)), rel=1e-6)
    assert any("20 members" in sentence for sentence in map(str, found.ranking.notes))


def test_offers_of_members_leave_the_truth_out(forest, features):
    """Worths and errors are made of those with the truth left out; the joint ones are beside them, and called so."""
    loss, pool = stakes.CostMatrix([[0.0, 1.0, 1.0], [5.0, 0.0, 1.0], [5.0, 1.0, 0.0]]), features[20:]
    found = stakes.outlook(forest, loss, pool, n=5, costs=0.01, decisions=100)
    belief = belief_of(forest, pool, pool, joint=True)
    chosen = stakes.select(loss, belief, n=5, max_configurations=256)
    assert found.ranking.indices == chosen.indices
    assert [offer.joint for offer in found.offers] == pytest.approx(list(chosen.joint_reduction), rel=0.1)
    honest = [stakes.honest_reduction(loss, belief, chosen.indices[:size]) for size in (1, 2, 4, 5)]
    worths = [found.offers[size - 1].worth for size in (1, 2, 4, 5)]
    best = np.maximum.accumulate(np.maximum([each.reduction for each in honest], 0.0))
    beside = curve(class_rate(3), found.today.value, 15, 5)[[0, 1, 3, 4]]
    assert worths == pytest.approx(SURE_SHARE * best + beside, abs=0.01)
    assert worths[-1] < 0.5 * found.offers[-1].joint
    assert found.offers[0].error >= 0.8 * SURE_SHARE * honest[0].member_error
    assert found.ranking.ranked_by == "together"
    total = [offer.worth / offer.cost for offer in found.offers]
    assert found.ranking.scores == pytest.approx(total)
    assert all(reason.worth is None for reason in found.ranking.reasons)  # what one adds to others is not its own
    kinds = [note.kind for note in found.ranking.notes]
    assert "learning curve" in kinds
    assert "joint worth of members" not in kinds
    ranked = stakes.rank(forest, loss, pool, n=5, batch=True)
    assert any("if one of the 20 members of the model is right" in str(note) for note in ranked.notes)
    assert "if one of the members of the model is right" in str(found)
    assert f"{number(found.offers[-1].joint)}" in str(found.ranking.notes[kinds.index("learning curve")])


def test_labels_of_members_that_have_nothing_in_common():
    """Members that are sure at random: the labels of one say nothing of another, and make its answers worse."""
    rows, model = np.arange(80.0)[:, None], EnsembleOf(lambda rows: np.stack([_noise(rows, k) for k in range(30)]))
    found = stakes.outlook(model, stakes.BrierLoss(), rows[:40], contexts=rows[40:], n=8, costs=1.0, decisions=10)
    assert found.offers[-1].joint > 0.05
    assert found.offers[-1].worth < 0.02 * found.offers[-1].joint
    assert found.advice == "stop"
    belief = belief_of(model, rows[:40], rows[40:], joint=True)
    assert stakes.honest_reduction(stakes.BrierLoss(), belief, found.ranking.indices).reduction < -0.05


def _noise(rows, k):
    """[n, 2]: sure of a class, at random for each row and member."""
    sure = np.where(np.random.default_rng(k).permutation(80)[rows[:, 0].astype(int)] % 2, 0.9, 0.1)
    return np.stack([1.0 - sure, sure], axis=1)


@pytest.mark.parametrize(
    ("worths", "joint", "expected"),
    [
        ([0.1, 0.3, 0.2], [0.2, 0.4, 0.6, 0.8], [0.1, 0.3, 0.3, 0.3]),  # of three labels nothing is computed
        ([-0.1, -0.2, 0.1], [0.2, 0.4, 0.6, 0.8], [0.0, 0.0, 0.0, 0.1]),
        ([0.5, 0.6, 0.9], [0.2, 0.4, 0.6, 0.8], [0.2, 0.4, 0.4, 0.8]),  # no more than the joint one
    ],
)
def test_labels_need_not_be_used(worths, joint, expected):
    found, errors = _with_free_disposal([1, 2, 4], np.array(worths), np.array([0.01, 0.02, 0.03]), np.array(joint))
    assert found == pytest.approx(expected)
    assert set(errors) <= {0.01, 0.02, 0.03}


def test_labels_on_their_way_count_as_bought(process, features):
    first = stakes.outlook(process, stakes.SquaredError(), features[10:], n=3)
    rest = stakes.outlook(process, stakes.SquaredError(), features[10:], n=2, pending=first.ranking.indices[:1])
    assert rest.ranking.indices == first.ranking.indices[1:]
    assert rest.offers[1].worth == pytest.approx(first.offers[2].worth - first.offers[0].worth, rel=1e-9)


def test_a_shortlist_holds_the_best_single_rows(process, features):
    whole = stakes.rank(process, stakes.SquaredError(), features[10:], n=5)
    found = stakes.rank(process, stakes.SquaredError(), features[10:], n=3, batch=True, shortlist=5)
    assert set(found.indices) <= set(whole.indices)
    assert any("the 5 of 50 rows" in sentence for sentence in map(str, found.notes))
    left = stakes.rank(process, stakes.SquaredError(), features[10:], n=5, pending=whole.indices[:2])
    assert left.indices[:3] == whole.indices[2:]


def test_costs_choose_by_worth_for_each_unit(process, features):
    costs = np.where(np.arange(50) % 2, 1.0, 1000.0)
    found = stakes.outlook(process, stakes.SquaredError(), features[10:], n=4, costs=costs, budget=3.5, decisions=10)
    assert all(row % 2 for row in found.ranking.indices)
    assert [offer.cost for offer in found.offers] == [1.0, 2.0, 3.0]
    first = found.offers[0]
    assert first.net == pytest.approx(10 * first.worth - 1.0)
    assert first.break_even == pytest.approx(1.0 / first.worth)


def test_a_forest_of_numbers_makes_one_offer(features, rng):
    y = features[:, 0] + 0.1 * rng.standard_normal(60)
    model = RandomForestRegressor(10, random_state=0, oob_score=True, min_samples_leaf=3).fit(features[:40], y[:40])
    found = stakes.outlook(model, stakes.SquaredError(), features[40:], n=3)
    assert len(found.ranking) == 3
    assert [offer.size for offer in found.offers] == [1]
    assert found.offers[0].joint == pytest.approx(found.ranking.scores[0])  # if one of the trees were right
    belief = belief_of(model, features[40:], features[40:])
    honest = stakes.honest_reduction(stakes.SquaredError(), belief, found.ranking.indices[:1])
    assert found.offers[0].worth == pytest.approx(min(honest.reduction, found.offers[0].joint), abs=3 * honest.error)
    assert found.today.value > found.most.value > found.offers[0].worth


@pytest.mark.parametrize(
    ("decisions", "cost", "advice"), [(1e5, 1.0, "go on"), (1.0, 100.0, "stop"), (None, 1.0, None), (10, None, None)]
)
def test_advice(decisions, cost, advice, process, features):
    found = stakes.outlook(process, stakes.SquaredError(), features[10:], decisions=decisions, costs=cost)
    assert found.advice == advice
    assert bool(found.sentences) == (advice is not None)
    assert str(found).startswith("Expected loss of a decision today")
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["advice"] == advice


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"decisions": 0}, "decisions must be a positive number"),
        ({"decisions": float("nan")}, "decisions must be a positive number"),
        ({"costs": -1.0}, "costs must be positive"),
        ({"costs": [1.0, 2.0]}, "costs"),
        ({"budget": 0.0}, "budget must be positive"),
        ({"pending": [50]}, "positions of rows, 0 to 49; got 50"),
        ({"pending": range(50)}, "all 50 rows of the pool are pending"),
        ({"n": 0}, "n must be 1 or more"),
    ],
)
def test_bad_input_is_refused(wrong, message, process, features):
    with pytest.raises(ValueError, match=message):
        stakes.outlook(process, stakes.SquaredError(), features[10:], **wrong)


@pytest.fixture
def hypotheses(features, rng):
    """Three processes that differ in their length, of which nobody knows which is right."""
    y = np.sin(features[:, 0]) + 0.1 * rng.standard_normal(60)
    kernels = (RBF(length) + WhiteKernel(0.04) for length in (0.5, 1.0, 2.0))
    return [GaussianProcessRegressor(kernel, optimizer=None).fit(features[:10], y[:10]) for kernel in kernels]


@pytest.mark.parametrize("loss", [stakes.SquaredError(), stakes.ThresholdDecision(0.3, 5.0)])
def test_hypotheses_are_ranked_and_bought_together(loss, hypotheses, features):
    pool = features[10:22]
    belief = belief_of(hypotheses, pool, pool, joint=True)
    assert isinstance(belief, stakes.GaussianMixtureBelief)
    ranking = stakes.rank(hypotheses, loss, pool, n=3, batch=False)
    assert ranking.indices[0] == int(np.argmax(stakes.score(loss, belief)))
    found = stakes.outlook(hypotheses, loss, pool, n=2)
    chosen = stakes.select(loss, belief, n=2)
    assert found.ranking.indices == chosen.indices
    assert [offer.joint for offer in found.offers] == pytest.approx(list(chosen.joint_reduction), rel=1e-6)
    honest = np.maximum.accumulate(np.minimum(chosen.honest_reduction, chosen.joint_reduction))
    worths = [offer.worth / GAUSSIAN_SHARE for offer in found.offers]
    assert worths == pytest.approx(honest, abs=0.1 * chosen.joint_reduction[-1])
    assert found.today.value >= found.most.value > found.offers[-1].worth > 0


def test_the_most_of_a_mixture_is_knowing_hypothesis_and_function(hypotheses, features):
    pool = features[10:22]
    found = stakes.outlook(hypotheses, stakes.SquaredError(), pool, n=1)
    assert found.today.value - found.most.value == pytest.approx(0.04, rel=1e-6)


@pytest.mark.parametrize("asked", [{}, {"costs": 0.1}, {"costs": 0.1, "decisions": 50}])
def test_a_notebook_shows_what_print_says(asked, process, features):
    found = stakes.outlook(process, stakes.SquaredError(), features, n=3, **asked)
    shown = found._repr_html_()
    ElementTree.fromstring(shown)
    for each in (str(found.today), str(found.most), *found.sentences, number(found.offers[1].worth)):
        assert each in shown
        assert each in str(found)
    assert ("net over 50 decisions" in shown) == ("decisions" in asked)
    assert ("pays from" in shown) == (asked == {"costs": 0.1})
    assert (">cost<" in shown) == ("costs" in asked)
    assert ("what they cost" in shown) == ("decisions" in asked)


def test_the_offer_that_pays_most_is_shown_and_plus_minus_is_explained(process, features):
    found = stakes.outlook(process, stakes.SquaredError(), features, n=8, costs=0.01, decisions=10)
    pays = [replace(offer, worth=1.0 if offer.size == 6 else 0.0) for offer in found.offers]
    shown = str(replace(found, offers=tuple(pays)))
    assert re.findall(r"^(\d) labels? saves? ", shown, re.M) == ["1", "2", "4", "6", "8"]
    assert shown.count("± is two standard errors") == 1
    assert shown.splitlines()[0].endswith("± is two standard errors")
