"""Rows that come one by one: what is bought, what is kept, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, LogisticRegression

from stakes import CostMatrix, LogLoss, SquaredError, Stream, ThresholdDecision, ZeroOne, outlook
from stakes.exceptions import StakesError
from stakes.files.frame import Frame
from stakes.losses import multi_label

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X @ np.array([1.0, -2.0, 0.0]) + RNG.normal(size=300)
COSTS = CostMatrix([[0.0, 5.0], [1.0, 0.0]])


def run(stream, rows=X, labels=Y, late=0):
    """Offer all rows and tell labels so many rows late; the decisions."""
    decisions, waiting = [], []
    for row, label in zip(rows, labels, strict=True):
        decisions.append(decision := stream.offer(row))
        if decision.buy:
            waiting.append((decision.number, label))
        while waiting and waiting[0][0] + late <= decision.number:
            stream.tell(*waiting.pop(0))
    return decisions


def test_as_many_labels_are_bought_as_were_asked_for_spread_over_the_rows():
    stream = Stream(BayesianRidge(), SquaredError(), labels=40, rows=300, random_state=1)
    bought = [each.number for each in run(stream) if each.buy]
    assert len(bought) == stream.n_bought == stream.n_labels == 40
    assert stream.n_offered == 300
    later = np.asarray(bought[10:])  # the first ten are bought at sight
    assert 8 <= np.sum(later < 155) <= 22  # the half of thirty, of rows that are exchangeable


def test_rows_that_are_bought_are_worth_more_than_others():
    stream = Stream(BayesianRidge(), SquaredError(), labels=40, rows=300, random_state=1)
    decisions = [each for each in run(stream) if each.worth is not None]
    bought, passed = (np.mean([each.worth for each in decisions if each.buy is buy]) for buy in (True, False))
    assert bought > 1.2 * passed
    assert all(each.worth >= each.price * 0.5 for each in decisions if each.buy)


def test_the_rate_is_that_of_exchangeable_rows_whatever_ties():
    """Members that all agree: every row is worth nothing, and every row as much as any other."""
    calls = []
    for seed in range(40):
        stream = Stream(BayesianRidge(), SquaredError(), labels=30, rows=100, first=2, random_state=seed)
        stream._labels, stream._rows = [0.0, 1.0], [X[0], X[1]]
        stream._offered, stream._bought = 0, 0
        stream._standing = (np.zeros(20), "", None)
        stream._worths = lambda query, table: np.zeros(1)
        stream._asked = lambda row: type("Query", (), {"pool": None})()
        calls.append(stream.offer(X[2]).buy)
    assert 5 <= sum(calls) <= 20  # 12 of 40 at a rate of 0.3


def test_a_price_buys_what_outlook_promises_to_be_worth_more():
    labelled = (X[:30], Y[:30])
    stream = Stream(BayesianRidge(), SquaredError(), price=1.0, decisions=40.0, labelled=labelled, contexts=X[30:80])
    decision = stream.offer(X[100])
    ahead = outlook(
        BayesianRidge(),
        SquaredError(),
        X[100:101],
        labelled=labelled,
        contexts=X[30:80],
        n=1,
        costs=1.0,
        decisions=40.0,
    )
    assert decision.worth == pytest.approx(40.0 * ahead.offers[0].worth, rel=1e-9)
    assert decision.error == pytest.approx(40.0 * ahead.offers[0].error, rel=1e-9)
    assert decision.buy == (ahead.offers[0].net > 0)
    worth = decision.worth
    assert not stream.offer(X[100], price=1.01 * worth).buy
    assert stream.offer(X[100], price=0.9 * worth).buy


def test_a_price_stops_buying_once_labels_are_worth_less():
    stream = Stream(BayesianRidge(), SquaredError(), price=1.0, decisions=200.0, random_state=0)
    bought = [each.number for each in run(stream) if each.buy]
    assert 10 < len(bought) < 100
    assert np.sum(np.asarray(bought) < 150) > 2 * np.sum(np.asarray(bought) >= 150)


def test_rows_on_their_way_make_others_worth_less():
    stream = Stream(
        BayesianRidge(), SquaredError(), price=1e-9, decisions=1.0, labelled=(X[:5], Y[:5]), contexts=X[5:40], first=1
    )
    first = stream.offer(X[20])
    again = stream.offer(X[20])
    assert first.buy
    assert again.worth < 0.9 * first.worth
    by_rank = Stream(
        BayesianRidge(), SquaredError(), labels=2, rows=2, labelled=(X[:5], Y[:5]), contexts=X[5:40], first=1
    )
    worths = [by_rank.offer(X[20]).worth for _ in range(2)]  # both are bought: two labels for two rows
    assert worths[1] < 0.9 * worths[0]


@pytest.mark.parametrize("late", [0, 7])
def test_classes_with_any_estimator_and_labels_that_come_late(late):
    names = np.where(Y > 0, "good", "bad").tolist()
    loss = CostMatrix({"good": {"good": 0, "bad": 1}, "bad": {"good": 5, "bad": 0}})
    stream = Stream(LogisticRegression(), loss, labels=12, rows=30, classes=["good", "bad"])
    assert sum(each.buy for each in run(stream, X[:30], names[:30], late)) == 12


def test_no_more_rows_wait_than_may():
    stream = Stream(BayesianRidge(), SquaredError(), labels=40, rows=50, max_pending=3)
    decisions = [stream.offer(row) for row in X[:10]]
    assert [each.buy for each in decisions] == [True] * 3 + [False] * 7
    stream.drop(1)
    assert stream.pending == (0, 2)
    assert stream.n_bought == 2
    assert stream.offer(X[10]).buy


def test_what_is_kept_is_bounded_and_follows_the_stream():
    stream = Stream(
        BayesianRidge(), SquaredError(), labels=40, rows=600, memory=100, max_contexts=50, max_labels=25, refit_every=9
    )
    run(stream, np.concatenate([X, X + 100.0]), np.concatenate([Y, Y]))
    recent = np.asarray(stream._recent)
    assert len(recent) == len(stream._open) == 50
    assert np.mean(recent[:, 0] > 50.0) > 0.8  # e^-3 of the old rows are left
    assert stream.n_labels == 25
    assert len(pickle.dumps(stream)) < 200_000


def test_memory_longer_than_the_sample_keeps_rows_of_all_that_time():
    stream = Stream(BayesianRidge(), SquaredError(), labels=1, rows=20_000, memory=2000, max_contexts=200)
    for age in range(20_000):
        stream._keep(np.asarray([float(age)]), open_to_buy=True)
    ages = 20_000 - np.asarray(stream._recent)[:, 0]
    assert 1500 < ages.mean() < 2500


def test_where_single_labels_are_worth_nothing_rows_still_differ():
    loss = ThresholdDecision(threshold=100.0)  # far from all rows
    stream = Stream(BayesianRidge(), loss, labels=3, rows=12, labelled=(X[:20], Y[:20]), contexts=X[20:30])
    decisions = run(stream, X[100:112], Y[100:112])
    assert sum(each.buy for each in decisions) == 3
    assert any("many such labels" in each.why for each in decisions)


def test_rows_may_be_mappings():
    rows = [{"size": float(a), "colour": "red" if b > 0 else "blue"} for a, b, _ in X[:30]]
    labels = ["big" if row["size"] > 0 else "small" for row in rows]
    stream = Stream(None, LogLoss(), labels=12, rows=30, classes=["big", "small"])
    for row, label in zip(rows, labels, strict=True):
        if (decision := stream.offer(row)).buy:
            stream.tell(decision.number, label)
    assert stream.n_bought == 12
    asked = Frame(("size", "colour"), (np.asarray([2.0]), np.asarray(["red"], dtype=object)), 1)
    assert stream.model.predict(asked).tolist() == ["big"]


def test_rows_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "u", "v")})
    stream = Stream(None, SquaredError(), labels=2, rows=10, labelled=(table[:12], Y[:12]))
    for place in range(12, 22):
        if (decision := stream.offer(table.iloc[place])).buy:
            stream.tell(decision.number, Y[place])
    assert stream.n_bought == 2


def test_a_function_may_fit_the_model():
    def fit(rows, labels):
        return BayesianRidge().fit(rows, labels)

    stream = Stream(fit, SquaredError(), labels=15, rows=60)
    assert sum(each.buy for each in run(stream, X[:60], Y[:60])) == 15


def test_labels_of_one_class_tell_nothing_and_rows_are_drawn_at_random():
    stream = Stream(None, COSTS, labels=30, rows=100, classes=[0, 1])
    decisions = run(stream, X[:60], [0] * 60)
    assert all(each.worth is None for each in decisions)
    assert 15 <= sum(each.buy for each in decisions) <= 28
    with pytest.raises(StakesError, match="one class"):
        _ = stream.model


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "not both"),
        ({"price": 1.0, "labels": 3}, "not both"),
        ({"price": -1.0, "decisions": 5}, "price must be a positive number"),
        ({"price": 1.0}, "decisions must be a positive number"),
        ({"price": 1.0, "decisions": 2, "rows": 5}, "rows are for"),
        ({"labels": 5}, "needs rows"),
        ({"labels": 5, "rows": 4}, "no more than rows"),
        ({"labels": 5, "rows": 9, "decisions": 2}, "decisions are for"),
        ({"labels": 5, "rows": 9, "memory": 0}, "memory must be 1 or more"),
        ({"labels": 5, "rows": 9, "labelled": (X[:3], Y[:2])}, "a label for each"),
    ],
)
def test_terms_that_contradict_each_other_are_refused(given, message):
    with pytest.raises(StakesError, match=message):
        Stream(BayesianRidge(), SquaredError(), **given)


def test_bad_rows_and_labels_change_nothing():
    stream = Stream(BayesianRidge(), SquaredError(), labels=5, rows=50)
    decision = stream.offer(X[0])
    with pytest.raises(StakesError, match=r"shape \[3\]"):
        stream.offer(X[0, :2])
    with pytest.raises(StakesError, match="finite number"):
        stream.tell(decision.number, "much")
    with pytest.raises(StakesError, match="those that do are"):
        stream.tell(7, 1.0)
    with pytest.raises(StakesError, match="a stream that was given one"):
        stream.offer(X[0], price=2.0)
    assert (stream.n_offered, stream.pending, stream.n_labels) == (1, (0,), 0)
    stream.tell(decision.number, 1.0)
    with pytest.raises(StakesError, match="none does"):
        stream.drop(decision.number)
    with pytest.raises(TypeError, match="fits its model again"):
        Stream(object(), SquaredError(), labels=5, rows=50)
    with pytest.raises(StakesError, match="one of the classes"):
        Stream(None, COSTS, labels=2, rows=9, classes=[0, 1], labelled=(X[:1], [2]))
    with pytest.raises(TypeError, match="loss must be a loss such as"):
        Stream(None, "squared-error", labels=5, rows=50)


def test_a_row_with_a_gap_is_refused_before_it_is_among_the_recent_ones():
    """One broken reading, were it kept, would stop every later offer."""
    stream = Stream(BayesianRidge(), SquaredError(), labels=20, rows=50, first=5)
    run(stream, X[:10], Y[:10])
    with pytest.raises(StakesError, match="a row must hold finite numbers; the first that is not is nan at row 10"):
        stream.offer([np.nan, 1.0, 2.0])
    assert stream.n_offered == 10
    run(stream, X[10:20], Y[10:20])
    gaps = Stream(None, SquaredError(), labels=20, rows=50, first=5)
    run(gaps, np.where(np.arange(30).reshape(10, 3) == 16, np.nan, X[:10]), Y[:10])
    assert gaps.n_offered == 10


def test_rows_with_several_labels():
    loss = multi_label({"crack": ZeroOne(), "stain": ZeroOne()}, weights=[2.0, 1.0])
    stream = Stream(None, loss, labels=12, rows=25, first=8)
    run(stream, X[:25], np.stack([X[:25, 0] > 0, X[:25, 1] > 0], axis=1).astype(int).tolist())
    assert stream.n_bought == stream.n_labels == 12
    assert stream.model.classes_.tolist() == ["none", "stain", "crack", "crack+stain"]
