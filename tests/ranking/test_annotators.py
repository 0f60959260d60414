"""Whom to ask about which row."""

from dataclasses import replace

import numpy as np
import pytest

from stakes import LogLoss, SquaredError, ZeroOne, score
from stakes.beliefs import noisy_labels
from stakes.exceptions import StakesError
from stakes.models import GaussianProcess, LabelDraws
from stakes.ranking import OpinionOffer, fit_to_opinions, rank_opinions
from stakes.ranking.annotators import _drawn_confusions, _labels_by_class, annotator_noise, opinion_belief

CLASSES = ["no", "yes"]
MODEL = LabelDraws(copies=40, rounds=3)


def crowd(seed=0, rows=120, right=(("student", 0.8), ("expert", 0.97))):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], rows // 2)
    X = rng.normal(size=(rows, 2)) + 2.0 * truth[:, None]
    labels = {name: np.where(rng.random(rows) < share, truth, 1 - truth) for name, share in right}
    return X, truth, labels


def opinions_of(labels, rows):
    return [(int(row), name, CLASSES[each[row]]) for row in rows for name, each in labels.items()]


@pytest.fixture(scope="module")
def fitted():
    X, truth, labels = crowd()
    known = {row: CLASSES[truth[row]] for row in range(0, 120, 12)}
    opinions = opinions_of(labels, [*known, *range(1, 120, 4)])
    return fit_to_opinions(X, opinions, known=known, classes=CLASSES, model=MODEL)


def test_annotators_are_distinguished(fitted):
    student, expert = fitted.annotators["student"], fitted.annotators["expert"]
    assert expert.accuracy > student.accuracy
    assert abs(student.accuracy - 0.8) < 0.15
    assert student.opinions == 40


def test_drawn_matrices_vary_as_so_many_labels_leave_them_open():
    """Rows are from Dirichlet distributions: mean what it was, variance that of a share of n + 1 labels."""
    confusion, labels = np.array([[0.9, 0.1], [0.35, 0.65]]), np.array([40.0, 9.0])
    drawn = _drawn_confusions(confusion, labels, 20_000, np.random.default_rng(0))
    assert drawn.sum(axis=2) == pytest.approx(np.ones((20_000, 2)))
    assert drawn.mean(axis=0) == pytest.approx(confusion, abs=0.01)
    wanted = np.sqrt(confusion * (1.0 - confusion) / (labels + 1.0)[:, None])
    assert drawn.std(axis=0) == pytest.approx(wanted, rel=0.05)


def test_labels_count_by_the_class_that_rows_are_believed_to_have(fitted):
    counts = _labels_by_class(fitted.annotators, fitted.opinions)
    assert {name: each.sum() for name, each in counts.items()} == pytest.approx({"student": 40.0, "expert": 40.0})
    assert counts["student"] == pytest.approx(counts["expert"])  # both labelled the same rows
    place = {row: at for at, row in enumerate(fitted.annotators.rows)}
    one = fitted.opinions[0]
    truth = fitted.annotators.truth[place[one[0]]]
    assert _labels_by_class(fitted.annotators, [one])[one[1]] == pytest.approx(truth)


def test_a_model_does_not_raise_the_accuracy_of_a_student():
    """Nobody else labels: copies take the student for nearly as reliable as he is (earlier versions: 0.14 too much)."""
    excess = []
    for seed in range(4):
        X, truth, labels = crowd(seed, rows=240, right=(("student", 0.8),))
        known = {row: CLASSES[truth[row]] for row in range(0, 240, 24)}
        fit = fit_to_opinions(X, opinions_of(labels, range(240)), known=known, classes=CLASSES, model=MODEL)
        right = np.mean(labels["student"] == truth)
        in_doubt = [at for at, row in enumerate(fit.rows.tolist()) if row not in known]
        excess.append(fit.model.likelihoods_.mean(axis=0).max(axis=1)[in_doubt].mean() - right)
        assert fit.believed["student"].accuracy == pytest.approx(right + excess[-1], abs=0.05)
    assert abs(np.mean(excess)) < 0.09


def test_reported_annotators_are_recalibrated_and_rankings_go_by_those_of_the_model(fitted):
    reported, believed = fitted.annotators["student"], fitted.believed["student"]
    assert reported is fitted.annotators["student"]  # estimated once
    assert not np.allclose(reported.confusion, believed.confusion, atol=1e-3)
    assert reported.accuracy_error > believed.accuracy_error  # neither power nor shift is known
    assert np.array_equal(annotator_noise(fitted, "student"), believed.confusion)


def test_pairs_are_ranked_by_worth_for_their_price(fitted):
    prices = {"student": 1.0, "expert": 5.0}
    ranked = rank_opinions(fitted, LogLoss(), prices=prices, n=5, choice="best")
    assert all(isinstance(each, OpinionOffer) for each in ranked)
    value = [each.worth / each.price for each in ranked]
    assert value == sorted(value, reverse=True)
    assert len({each.row for each in ranked}) == 5
    assert not {each.row for each in ranked} & fitted.known
    best = ranked[0].row
    assert best not in {
        each.row for each in rank_opinions(fitted, LogLoss(), prices=prices, n=5, choice="best", excluded=[best])
    }
    belief = opinion_belief(fitted, np.array([ranked[0].row]), fitted.table)
    noise = annotator_noise(fitted, ranked[0].annotator)
    assert ranked[0].worth == pytest.approx(float(score(LogLoss(), noisy_labels(belief, noise))[0]))


def test_the_price_decides(fitted):
    cheap = rank_opinions(fitted, LogLoss(), prices={"student": 1.0, "expert": 1.0}, n=4, choice="best")
    expensive = rank_opinions(fitted, LogLoss(), prices={"student": 1.0, "expert": 500.0}, n=4, choice="best")
    assert {each.annotator for each in cheap} == {"expert"}  # better and no more expensive
    assert {each.annotator for each in expensive} == {"student"}


def test_asking_again_competes_with_asking_anew():
    """All rows have an opinion of the student: the expert is asked about those that are in doubt."""
    X, truth, labels = crowd(rows=60)
    opinions = [(row, "student", CLASSES[labels["student"][row]]) for row in range(60)]
    known = {row: CLASSES[truth[row]] for row in (0, 1, 2, 57, 58, 59)}
    fit = fit_to_opinions(X, opinions, known=known, classes=CLASSES, model=MODEL)
    ranked = rank_opinions(fit, LogLoss(), prices={"expert": 1.0, "student": 1.0}, n=10, choice="best")
    assert {each.annotator for each in ranked} == {"expert"}  # the student would say the same again
    assert all(each.before == 1 for each in ranked)
    place = {row: at for at, row in enumerate(fit.rows.tolist())}
    doubt = 1.0 - fit.model.posterior_.max(axis=1)
    assert np.mean([doubt[place[each.row]] for each in ranked]) > np.mean(doubt)
    again = rank_opinions(fit, LogLoss(), prices={"student": 1.0}, n=3, repeat=True)
    assert len(again) == 3
    with pytest.raises(StakesError, match="student labelled all rows"):
        rank_opinions(fit, LogLoss(), prices={"student": 1.0})


def test_a_settled_row_is_worth_less_than_a_doubtful_one():
    """Two opinions that agree leave little to ask, two that differ much."""
    X, truth, labels = crowd(rows=60, right=(("a", 0.8), ("b", 0.8)))
    known = {row: CLASSES[truth[row]] for row in range(0, 60, 3)}
    opinions = opinions_of(labels, [row for row in range(60) if row not in known])
    fit = fit_to_opinions(X, opinions, known=known, classes=CLASSES, model=MODEL)
    rows = np.array([row for row in range(60) if row not in known])
    worth = score(LogLoss(), opinion_belief(fit, rows, X))
    differ = labels["a"][rows] != labels["b"][rows]
    assert worth[differ].mean() > worth[~differ].mean()


@pytest.mark.parametrize("choice", ["together", "drawn", "best"])
def test_budgets(fitted, choice):
    ranked = rank_opinions(
        fitted, ZeroOne(), prices={"student": 1.0, "expert": 5.0}, n=20, budget=7.0, choice=choice, max_contexts=30
    )
    assert 0 < sum(each.price for each in ranked) <= 7.0


def test_known_noise_takes_the_place_of_estimates(fitted):
    blind = {"student": np.full((2, 2), 0.5)}
    ranked = rank_opinions(fitted, LogLoss(), prices={"student": 1.0, "expert": 50.0}, n=3, choice="best", noise=blind)
    assert {each.annotator for each in ranked} == {"expert"}


def test_drawn_rows_spend_money_in_proportion_to_the_square_of_worth_for_the_price():
    """Half of the rows are left to somebody twice as expensive and no better: an eighth as many, at equal worth."""
    X, truth, labels = crowd(rows=400, right=(("student", 0.8),))
    known = {row: CLASSES[truth[row]] for row in range(0, 400, 40)}
    fit = fit_to_opinions(X, opinions_of(labels, known), known=known, classes=CLASSES, model=MODEL)
    more = tuple((row, "student", "no") for row in range(1, 400, 2))
    fit = replace(fit, opinions=(*fit.opinions, *more))
    rows, there, noise = np.setdiff1d(np.arange(400), list(known)), X[:60], {"student": np.eye(2), "expert": np.eye(2)}
    worth = np.asarray(score(LogLoss(), noisy_labels(opinion_belief(fit, rows, there), np.eye(2))))
    left = rows % 2 == 1
    weights = np.where(left, (worth / 2.0) ** 2 / 2.0, worth**2)
    wanted = weights[left].sum() / weights.sum()
    given = {"prices": {"student": 1.0, "expert": 2.0}, "contexts": there, "n": 1, "choice": "drawn", "noise": noise}
    drawn = [rank_opinions(fit, LogLoss(), **given, random_state=seed)[0].annotator for seed in range(400)]
    assert abs(np.mean([name == "expert" for name in drawn]) - wanted) < 3 * np.sqrt(wanted * (1.0 - wanted) / 400)


def test_numbers():
    rng = np.random.default_rng(0)
    X = np.linspace(0.0, 3.0, 40)[:, None]
    truth = np.sin(2 * X[:, 0])
    opinions = [
        (row, name, float(truth[row] + bias + sd * rng.normal()))
        for row in range(0, 40, 2)
        for name, bias, sd in (("ann", 0.2, 0.05), ("amy", 0.0, 0.05), ("bob", -0.2, 0.5))
    ]
    fit = fit_to_opinions(X, opinions, model=GaussianProcess())
    assert fit.annotators["bob"].sd > 3 * fit.annotators["ann"].sd
    ranked = rank_opinions(fit, SquaredError(), prices={"ann": 1.0, "bob": 1.0}, n=4)
    assert {each.annotator for each in ranked} == {"ann"}
    sds = [each.sd for each in fit.annotators.by_name.values()]
    assert annotator_noise(fit, "carl") == pytest.approx(np.median(sds) ** 2)


def test_numbers_without_second_opinions():
    X = np.linspace(0.0, 3.0, 10)[:, None]
    fit = fit_to_opinions(X, [(0, "ann", 1.0), (5, "bob", 2.0)], known={9: 0.5}, model=GaussianProcess())
    assert fit.annotators is None
    assert len(rank_opinions(fit, SquaredError(), prices={"ann": 1.0}, n=2)) == 2


def test_labels_that_are_known_and_no_opinions():
    X, truth, _ = crowd()
    known = {row: CLASSES[truth[row]] for row in range(0, 120, 12)}
    fit = fit_to_opinions(X, [], known=known, classes=CLASSES, model=MODEL)
    assert fit.annotators is None
    assert np.diagonal(annotator_noise(fit, "new")) == pytest.approx([0.8, 0.8])
    assert str(rank_opinions(fit, LogLoss(), prices={"new": 2.0}, n=1)[0]).startswith("row ")


def test_refusals(fitted):
    X, _, _ = crowd()
    with pytest.raises(StakesError, match="there is no label to fit a model to"):
        fit_to_opinions(X, [], classes=CLASSES)
    with pytest.raises(StakesError, match="must be on rows 0 to 119"):
        fit_to_opinions(X, [(120, "a", "no")], classes=CLASSES)
    with pytest.raises(StakesError, match="labels must be among the classes"):
        fit_to_opinions(X, [(0, "a", "maybe")], classes=CLASSES)
    with pytest.raises(StakesError, match="prices must hold a number above 0"):
        rank_opinions(fitted, LogLoss(), prices={"student": 0.0})
    with pytest.raises(StakesError, match="choice must be"):
        rank_opinions(fitted, LogLoss(), prices={"student": 1.0}, choice="worst")
    X = np.array([[0.0], [1.0]])
    sure = fit_to_opinions(X, [], known={0: "no", 1: "yes"}, classes=CLASSES)
    with pytest.raises(StakesError, match="beyond doubt, or are left out"):
        rank_opinions(sure, LogLoss(), prices={"a": 1.0})
