"""Promised and delivered: the share that is kept, and the weights of labels that judge."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from stakes import SquaredError, outlook
from stakes.ranking import Amount, PromisedRound
from stakes.ranking.promises import Past, change, judged_enough, nearest_share, share_kept, shrunk, with_past


def rounds(count, share=0.4, error=0.001, judged=30, raw=0.1):
    delivered = Amount(share * raw, error)
    return [PromisedRound(20 + 4 * r, 4, Amount(raw, 0.02), raw, delivered, judged, False) for r in range(count)]


@pytest.fixture(scope="module")
def ahead():
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    model = BayesianRidge().fit(X[:10], np.sin(9 * X[:10, 0]))
    return outlook(model, SquaredError(), X[10:], n=4, costs=0.001, decisions=10.0)


def test_without_a_record_nothing_changes(ahead):
    assert share_kept([]) is None
    assert share_kept(rounds(2)) is None
    assert share_kept(rounds(9, judged=7)) is None
    assert share_kept(rounds(9, raw=0.0)) is None
    assert shrunk(ahead.offers, None) is ahead.offers
    assert with_past(ahead, Past(), np.full(30, 0.001)) == ahead


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_much_record_is_believed(share):
    found = share_kept(rounds(1000, share))
    assert found.value == pytest.approx(share, abs=0.005)
    assert found.error < 0.02


def test_rounds_that_few_labels_judge_do_not_count():
    some = [*rounds(4, 0.2), *rounds(9, 5.0, judged=7), *rounds(9, 5.0, raw=0.0)]
    assert judged_enough(some) == rounds(4, 0.2)
    assert share_kept(some) == share_kept(rounds(4, 0.2))


def test_the_share_is_between_none_and_all():
    assert share_kept(rounds(50, 3.0)).value == 1.0
    assert share_kept(rounds(50, -2.0)).value == 0.0


def test_more_record_and_surer_record_count_more():
    shares = [share_kept(rounds(count, 0.2)).value for count in (3, 6, 12, 48)]
    assert shares == sorted(shares, reverse=True)
    assert share_kept(rounds(5, 0.2, error=0.5)).value > 0.9  # what was delivered is hardly known
    assert share_kept(rounds(5, 0.2, error=0.5)).error > share_kept(rounds(5, 0.2)).error


def test_the_posterior_is_that_of_a_normal_prior():
    """By a fine grid over the share."""
    some = [*rounds(2, 0.1, 0.03), *rounds(2, 0.7, 0.2), *rounds(1, -0.3, 0.05)]
    grid = np.linspace(-3.0, 3.0, 60_001)
    log = -0.5 * ((grid - 1.0) / 0.5) ** 2
    for each in some:
        log -= 0.5 * (each.delivered.value - grid * each.raw) ** 2 / (each.delivered.error**2 + (0.5 * each.raw) ** 2)
    weights = np.exp(log - log.max())
    mean = float(weights @ grid / weights.sum())
    found = share_kept(some)
    assert found.value == pytest.approx(mean, abs=1e-4)
    assert found.error == pytest.approx(np.sqrt(weights @ (grid - mean) ** 2 / weights.sum()), abs=1e-4)


def test_an_outlook_is_shrunk_and_says_so(ahead):
    past = Past(Amount(0.25, 0.1), rounds=5)
    found = with_past(ahead, past, np.full(30, 0.001))
    assert [each.worth for each in found.offers] == pytest.approx([0.25 * each.worth for each in ahead.offers])
    for new, old in zip(found.offers, ahead.offers, strict=True):
        assert new.error == pytest.approx(min(np.hypot(0.25 * old.error, 0.1 * old.worth), old.error))
        assert new.cost == old.cost
    assert found.ranking.row_ids == ahead.ranking.row_ids
    assert found.ranking.scores == pytest.approx([0.25 * score for score in ahead.ranking.scores])
    assert "25% (± 20%) of what the model says" in str(found.ranking.notes[-1])
    assert found.sentences[-1] == "Savings are 25% of what the model says: so much came of it so far."
    assert (found.today, found.most) == (ahead.today, ahead.most)


def test_a_share_of_nothing_stops(ahead):
    assert ahead.advice == "go on"
    found = with_past(ahead, Past(Amount(0.0, 1e-6), rounds=30), np.full(30, 0.001))
    assert found.advice == "stop"


def test_an_outlook_without_costs_has_no_advice(ahead):
    found = with_past(ahead, Past(Amount(0.5, 0.1), 4, ("stop",)), None)
    assert found.advice == ahead.advice  # as costs are not known here
    assert found.offers[0].worth == pytest.approx(0.5 * ahead.offers[0].worth)


def test_change_is_a_weighted_mean_with_its_error():
    generator = np.random.default_rng(0)
    before, after = generator.exponential(1.0, 4000), generator.exponential(0.8, 4000)
    weights = generator.uniform(0.5, 2.0, 4000)
    found = change(before, after, weights)
    assert found.value == pytest.approx(np.average(before - after, weights=weights))
    draws = [
        change(before[rows], after[rows], weights[rows]).value for rows in generator.integers(4000, size=(400, 4000))
    ]
    assert found.error == pytest.approx(np.std(draws), rel=0.15)


def test_the_share_that_came_counts_for_all_rows():
    """Labels where much is expected: the mean there is too high, the share of what is expected is not."""
    generator = np.random.default_rng(0)
    expected = generator.exponential(1.0, 2000)
    saved = 0.3 * expected + generator.normal(0.0, 0.2, 2000)
    rows = np.argsort(-expected)[:300]
    losses = (3.0 + saved[rows], np.full(300, 3.0))
    plain, share = (change(*losses, np.ones(300), each) for each in (None, (expected[rows], float(expected.mean()))))
    assert plain.value > 2.0 * saved.mean()
    assert share.value == pytest.approx(saved.mean(), abs=2.0 * share.error)
    assert share.value == pytest.approx(0.3, abs=0.03)
    nothing = change(*losses, np.ones(300), (np.zeros(300), 1.0))
    assert nothing == plain  # no label is where anything is expected


def test_no_change_seen_is_not_no_change():
    same = change(np.ones(10), np.ones(10), np.ones(10))
    assert same.value == 0.0
    assert same.error == pytest.approx(1.0 / 11.0)


def test_rows_stand_for_those_that_are_nearest():
    judged = np.asarray([[0.0, 0.0], [10.0, 0.0]])
    others = np.asarray([[1.0, 5.0], [2.0, -3.0], [4.9, 0.0], [5.1, 0.0]])
    assert nearest_share(judged, others).tolist() == [4.0, 2.0]
    assert nearest_share(judged, np.zeros((0, 2))).tolist() == [1.0, 1.0]


def test_weights_put_a_biased_choice_right():
    """A loss that is 1 on the left half and 0 on the right, of which three times as many labels are on the left."""
    generator = np.random.default_rng(0)
    pool = generator.uniform(-1.0, 1.0, (2000, 1))
    left, right = np.flatnonzero(pool[:, 0] < 0)[:60], np.flatnonzero(pool[:, 0] >= 0)[:20]
    rows = np.concatenate([left, right])
    losses = (pool[rows, 0] < 0).astype(float)
    weights = nearest_share(pool[rows], np.delete(pool, rows, axis=0))
    assert losses.mean() == 0.75
    assert change(losses, np.zeros(80), weights).value == pytest.approx(0.5, abs=0.03)
