"""y with gaps in place: positions are those of the whole table, and a data frame comes back with its index."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge

from stakes import LogLoss, SquaredError, cold_start, outlook, rank
from stakes.exceptions import StakesError

ROWS = np.random.default_rng(0).normal(size=(60, 3))
NUMBERS = ROWS[:, 0] + 0.1 * np.random.default_rng(1).normal(size=60)
LABELS = np.where(NUMBERS > 0, "good", "bad")
OPEN = np.random.default_rng(2).permutation(60)[:35]
FREE = np.sort(OPEN)
HELD = np.setdiff1d(np.arange(60), OPEN)
GAPS = np.isin(np.arange(60), OPEN)


def _with(gap, labels=LABELS):
    return [gap if missing else label for label, missing in zip(labels.tolist(), GAPS, strict=True)]


TEXTS = {
    "none": _with(None),
    "empty": _with(""),
    "blank": _with("  "),
    "nan": np.asarray(_with(np.nan), dtype=object),
    "array of text": np.asarray(_with("")),
    "series": pd.Series(_with(None)),
    "strings": pd.Series(_with(pd.NA), dtype="string"),
    "categories": pd.Series(_with(None), dtype="category"),
}


@pytest.mark.parametrize("y", TEXTS.values(), ids=TEXTS)
def test_any_gap_in_classes(y):
    found = rank(RandomForestClassifier(20, random_state=0), LogLoss(), ROWS, y=y, n=4)
    model = RandomForestClassifier(20, random_state=0).fit(ROWS[HELD], LABELS[HELD])
    wanted = rank(model, LogLoss(), ROWS[FREE], n=4)
    assert found.scores == wanted.scores
    assert found.indices == tuple(FREE[list(wanted.indices)])
    assert found.row_ids == found.indices
    places = [context.index for reason in found.reasons for context in reason.contexts]
    assert places == [FREE[context.index] for reason in wanted.reasons for context in reason.contexts]
    assert set(places) <= set(FREE)


NUMERIC = {
    "nan": np.where(GAPS, np.nan, NUMBERS),
    "none": _with(None, NUMBERS),
    "nullable": pd.Series(_with(None, NUMBERS), dtype="Float64"),
    "masked": np.ma.masked_array(NUMBERS, GAPS),
}


@pytest.mark.parametrize("y", NUMERIC.values(), ids=NUMERIC)
def test_any_gap_in_numbers(y):
    found = rank(BayesianRidge(), SquaredError(), ROWS, y=y, n=4)
    model = BayesianRidge().fit(ROWS[HELD], NUMBERS[HELD])
    model.n_samples_seen_ = len(HELD)
    wanted = rank(model, SquaredError(), ROWS[FREE], n=4)
    assert found.scores == wanted.scores
    assert found.indices == tuple(FREE[list(wanted.indices)])


def test_numbers_that_are_classes_stay_whole():
    y = np.where(GAPS, np.nan, (NUMBERS > 0).astype(float))
    found = rank(LogisticRegression(), LogLoss({0: 1, 1: 5}), ROWS, y=y, n=2)
    answers = [context.answer for reason in found.reasons for context in reason.contexts]
    assert answers
    assert all(answer.startswith(("class 0 at", "class 1 at")) for answer in answers)


def test_a_data_frame_in_and_out():
    table = pd.DataFrame(ROWS, columns=list("abc"), index=pd.Index([f"r{i}" for i in range(60)], name="sample"))
    y = pd.Series(_with(None), index=table.index)
    found = rank(LogisticRegression(), LogLoss(), table, y=y, n=3)
    assert found.row_ids == tuple(f"r{i}" for i in found.indices)
    assert set(found.indices) <= set(OPEN)
    frame = found.to_frame(table)
    assert list(frame.index) == list(found.row_ids)
    assert frame.index.name == "sample"
    assert list(frame.columns) == [*"abc", "row", "score", "ranked_by", "why"]
    np.testing.assert_array_equal(frame[list("abc")], table.iloc[list(found.indices)])
    np.testing.assert_array_equal(frame["score"], found.scores)
    plain = found.to_frame()
    assert list(plain.index) == list(found.row_ids)
    named = found.to_frame(table.rename(columns={"a": "score"}))
    assert "stakes score" in named


def test_a_frame_of_other_rows_is_refused():
    table = pd.DataFrame(ROWS, index=[f"r{i}" for i in range(60)])
    found = rank(BayesianRidge().fit(table[:9], NUMBERS[:9]), SquaredError(), table[9:], n=3)
    with pytest.raises(StakesError, match="not the table that was ranked"):
        found.to_frame(table)
    with pytest.raises(TypeError, match="data frame of pandas"):
        found.to_frame(ROWS)


def test_costs_and_rows_on_their_way_count_in_the_whole_table():
    costs, y = np.linspace(1.0, 3.0, 60), np.where(GAPS, np.nan, NUMBERS)
    waiting = int(FREE[3])
    found = rank(BayesianRidge(), SquaredError(), ROWS, y=y, n=5, costs=costs, pending=[waiting], batch=False)
    model = BayesianRidge().fit(ROWS[HELD], NUMBERS[HELD])
    model.n_samples_seen_ = len(HELD)
    wanted = rank(model, SquaredError(), ROWS[FREE], n=5, costs=costs[FREE], pending=[3], batch=False)
    assert found.indices == tuple(FREE[list(wanted.indices)])
    assert found.scores == wanted.scores
    weights = np.arange(60.0)
    found = rank(BayesianRidge(), SquaredError(), ROWS, y=y, n=5, context_weights=weights)
    assert found.scores == rank(model, SquaredError(), ROWS[FREE], n=5, context_weights=weights[FREE]).scores
    with pytest.raises(StakesError, match="that have no label"):
        rank(BayesianRidge(), SquaredError(), ROWS, y=y, pending=[int(HELD[0])])
    with pytest.raises(StakesError, match="each of the 60 rows"):
        rank(BayesianRidge(), SquaredError(), ROWS, y=y, costs=costs[:5])


def test_contexts_that_are_given_keep_their_numbers():
    y = np.where(GAPS, np.nan, NUMBERS)
    found = rank(BayesianRidge(), SquaredError(), ROWS, y=y, n=2, contexts=ROWS[:7])
    assert {context.index for reason in found.reasons for context in reason.contexts} <= set(range(7))


def test_outlook_and_a_cold_start():
    y = np.where(GAPS, np.nan, NUMBERS)
    ahead = outlook(Ridge(), SquaredError(), ROWS, y=y, n=2)
    assert set(ahead.ranking.indices) <= set(OPEN)
    found = rank(None, SquaredError(), ROWS, y=y, n=3)
    wanted = cold_start(ROWS[FREE], n=3, known=ROWS[HELD])
    assert found.indices == tuple(FREE[list(wanted.indices)])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (NUMBERS, "all 60 rows have a label"),
        (np.full(60, np.nan), "cold_start"),
        (NUMBERS[:5], "each of the 60 rows"),
        (0.0, "each of the 60 rows"),
    ],
)
def test_what_is_no_y_with_gaps_is_refused(y, message):
    with pytest.raises(StakesError, match=message):
        rank(Ridge(), SquaredError(), ROWS, y=y)


def test_rows_are_not_mixed_up():
    table, y = pd.DataFrame(ROWS), pd.Series(np.where(GAPS, np.nan, NUMBERS))
    with pytest.raises(StakesError, match=r"y\.reindex\(X\.index\)"):
        rank(Ridge(), SquaredError(), table, y=y[::-1])
    with pytest.raises(StakesError, match="not both"):
        rank(Ridge(), SquaredError(), table, y=y, labelled=(ROWS, NUMBERS))
    with pytest.raises(StakesError, match="table in memory"):
        rank(Ridge(), SquaredError(), "pool.npy", y=y)
