"""Rows that are the same in every column: a batch does not consist of copies of one."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import BayesianRidge

import stakes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
DISTINCT = RNG.normal(size=(12, 3))
POOL = np.repeat(DISTINCT, 25, axis=0)[RNG.permutation(300)]
KIND = {tuple(row): place for place, row in enumerate(DISTINCT.tolist())}
CLASSES = (X[:, 0] + 0.3 * RNG.normal(size=30) > 0).astype(int)
NUMBERS = 2.0 * X[:, 0] + 0.5 * RNG.normal(size=30)
MODELS = {
    "votes": (RandomForestClassifier(50, random_state=0).fit(X, CLASSES), stakes.LogLoss()),
    "trees": (RandomForestRegressor(50, oob_score=True, random_state=0).fit(X, NUMBERS), stakes.SquaredError()),
    "a line": (BayesianRidge().fit(X, NUMBERS), stakes.SquaredError()),
}


def kinds(ranking, pool=POOL):
    return [KIND[tuple(pool[row].tolist())] for row in ranking.indices]


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_are_ranked_alone_are_no_copies(name):
    model, loss = MODELS[name]
    ranking = stakes.rank(model, loss, POOL, n=5, batch=False)
    assert len(set(kinds(ranking))) == 5
    plain = stakes.rank(model, loss, DISTINCT, n=5, batch=False, contexts=POOL)
    assert kinds(ranking) == kinds(plain, DISTINCT)
    assert ranking.scores == pytest.approx(plain.scores)
    assert "288 of the 300 rows of the pool are copies" in " ".join(map(str, ranking.notes))
    assert ranking.reasons[0].as_good >= 24


@pytest.mark.parametrize("name", MODELS)
def test_copies_come_after_all_others(name):
    model, loss = MODELS[name]
    ranking = stakes.rank(model, loss, POOL, n=30, batch=False)
    assert len(set(ranking.indices)) == 30
    found = kinds(ranking)
    assert sorted(found[:12]) == sorted(found[12:24]) == list(range(12))
    assert "18 of the rows chosen are copies of others chosen" in " ".join(map(str, ranking.notes))


def test_a_shortlist_is_not_filled_with_copies():
    """With 100 copies of each the 100 rows that are worth most alone were copies of one."""
    model, loss = MODELS["votes"]
    many = np.repeat(DISTINCT, 100, axis=0)
    together = stakes.rank(model, loss, many, n=5, batch=True, contexts=DISTINCT, shortlist=100)
    each_once = stakes.rank(model, loss, DISTINCT, n=5, batch=True, contexts=DISTINCT)
    assert sum(together.scores) >= 0.98 * sum(each_once.scores)
    assert len(set(kinds(together, many))) > 1


def test_the_cheapest_copy_is_chosen_and_the_budget_goes_on_to_others():
    model, loss = MODELS["a line"]
    costs = 1.0 + np.arange(300) / 100.0
    ranking = stakes.rank(model, loss, POOL, n=5, batch=False, costs=costs)
    for row in ranking.indices:
        same = [other for other in range(300) if (POOL[other] == POOL[row]).all()]
        assert costs[row] == min(costs[same])
    few = stakes.rank(model, loss, np.repeat(DISTINCT[:2], 5, axis=0), n=9, batch=False, costs=np.ones(10), budget=7)
    assert len(few) == 7


def test_a_copy_of_a_row_whose_label_is_on_its_way_comes_later():
    model, loss = MODELS["trees"]
    first = stakes.rank(model, loss, POOL, n=1, batch=False)
    after = stakes.rank(model, loss, POOL, n=11, batch=False, pending=first.indices)
    assert kinds(first)[0] not in kinds(after)
    assert kinds(first)[0] in kinds(stakes.rank(model, loss, POOL, n=12, batch=False, pending=first.indices))


def test_noisy_labels_may_ask_for_a_row_twice_and_a_note_says_so():
    model, loss = BayesianRidge().fit(X[:5, :1], NUMBERS[:5]), stakes.SquaredError()
    pool = np.repeat([[-9.0], [0.1], [0.2], [9.0]], 3, axis=0)
    ranking = stakes.rank(model, loss, pool, n=4, batch=True)
    assert sorted(abs(pool[list(ranking.indices), 0])) == [9.0] * 4  # the best four of a straight line
    assert "2 of the rows chosen are copies of others chosen" in " ".join(map(str, ranking.notes))


def test_a_pool_without_copies_says_nothing_of_them():
    model, loss = MODELS["trees"]
    notes = stakes.rank(model, loss, DISTINCT, n=5).notes
    assert not any("cop" in note.kind for note in notes)


def test_a_sparse_pool():
    ranking = stakes.rank(MODELS["trees"][0], stakes.SquaredError(), csr_array(POOL), n=5, batch=False)
    assert len(set(kinds(ranking))) == 5
