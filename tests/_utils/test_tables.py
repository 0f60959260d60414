"""Rows and columns of every kind of table, and the errors that name them."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from stakes._utils.tables import (
    check_same_columns,
    check_table,
    column_at,
    column_names,
    n_columns,
    n_rows,
    row_keys,
    row_labels,
    take_rows,
)
from stakes.models import TableEncoder
from stakes.models.inspection import accepts_missing, check_columns, check_fitted, served_by_own_belief
from tests.table_kinds import KINDS, ArrowLike, FrameLike, PolarsLike, as_columns, dense

ROWS = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_taken_by_position(kind):
    table = check_table("pool", KINDS[kind](ROWS))
    assert (n_rows(table), n_columns(table)) == (4, 3)
    np.testing.assert_array_equal(dense(take_rows(table, [2, 0, 2])), ROWS[[2, 0, 2]])
    np.testing.assert_array_equal(dense(take_rows(table, slice(1, 3))), ROWS[1:3])
    np.testing.assert_array_equal(dense(take_rows(table, np.array([], dtype=int))).reshape(0, 3), ROWS[:0])
    assert row_labels(table) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("cs")])
def test_columns_come_to_the_host(kind):
    table = check_table("pool", KINDS[kind](ROWS))
    np.testing.assert_array_equal(column_at(table, 1), ROWS[:, 1])
    named = kind not in ("array", "float32", "list")
    assert column_names(table) == (["a", "b", "c"] if named else None)


def test_other_array_libraries(xp):
    table = check_table("pool", xp.asarray(ROWS))
    np.testing.assert_array_equal(np.asarray(take_rows(table, slice(1, 3))), ROWS[1:3])
    np.testing.assert_array_equal(np.asarray(take_rows(table, [2, 0])), ROWS[[2, 0]])
    np.testing.assert_array_equal(column_at(table, 2), ROWS[:, 2])


def test_a_list_of_texts_stays_what_it_is():
    texts = check_table("pool", ["one", "two", "three"])
    assert take_rows(texts, [2, 0]) == ["three", "one"]
    assert take_rows(texts, slice(0, 2)) == ["one", "two"]
    assert (n_rows(texts), row_labels(texts)) == (3, [0, 1, 2])
    texts = check_table("pool", np.array(["one", "two"]))
    assert list(take_rows(texts, [1])) == ["two"]


def test_mixed_lists_keep_numbers_as_numbers():
    table = check_table("pool", [[1.0, "a"], [None, "b"]], allow_nan=True)
    np.testing.assert_array_equal(column_at(table, 0), [1.0, np.nan])
    assert column_at(table, 1).tolist() == ["a", "b"]
    flags = check_table("pool", np.array([[True, 1], [False, 2]], dtype=object))
    assert column_at(flags, 0).tolist() == [True, False]


def test_labels_are_the_index():
    frame = FrameLike(as_columns(ROWS), index=["w", "x", "y", "z"])
    assert row_labels(take_rows(frame, [3, 1])) == ["z", "x"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "float32"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_number_that_is_not_finite_is_named(kind, value):
    rows = ROWS.copy()
    rows[2, 1] = rows[3, 0] = value
    where = "column 1" if kind in ("array", "list", "csr", "csc") else "column 'b'"
    with pytest.raises(ValueError, match=f"pool must hold finite numbers.*{value} at row 2, {where}"):
        check_table("pool", KINDS[kind](rows))


def test_the_label_of_a_bad_row_is_named():
    frame = FrameLike({"age": [1.0, np.nan]}, index=["ann", "bob"])
    with pytest.raises(ValueError, match=r"row 1 \(label 'bob'\), column 'age'.*imputer"):
        check_table("pool", frame)


def test_gaps_are_let_through_and_infinity_is_not():
    rows = np.array([[np.nan, 1.0], [2.0, np.inf]])
    check_table("pool", rows[:1], allow_nan=True)
    with pytest.raises(ValueError, match="inf at row 1, column 1"):
        check_table("pool", rows, allow_nan=True)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((0, 3)), "at least one row"),
        ([], "at least one row"),
        (np.zeros(3), r"got shape \[3\].*reshape"),
        (np.zeros((2, 2, 2)), "rows and columns"),
        (np.float64(1.0), "rows and columns"),
        (None, "rows and columns.*NoneType"),
        ([[1.0], [1.0, 2.0]], "rows of one length"),
    ],
)
def test_what_is_no_table_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        check_table("pool", data)


@pytest.mark.parametrize("kind", [FrameLike, PolarsLike, ArrowLike])
def test_contexts_must_have_the_columns_of_the_pool(kind):
    pool = kind({"a": [1.0], "b": [2.0]})
    check_same_columns(pool, kind({"a": [3.0], "b": [4.0]}))
    with pytest.raises(ValueError, match=r"column 0 is 'b', 'a' was expected.*same order"):
        check_same_columns(pool, kind({"b": [3.0], "a": [4.0]}))
    with pytest.raises(ValueError, match=r"missing \['b'\], not expected \['c'\]"):
        check_same_columns(pool, kind({"a": [3.0], "c": [4.0]}))
    with pytest.raises(ValueError, match="2 columns of the pool; got 1"):
        check_same_columns(pool, kind({"a": [3.0]}))


class Known(BaseEstimator):
    """A model that was fitted with the columns a, b."""

    feature_names_in_, n_features_in_ = np.array(["a", "b"], dtype=object), 2

    def transform(self, rows):
        return rows


def test_columns_must_be_those_of_fit():
    check_columns(Known(), "pool", FrameLike({"a": [1.0], "b": [2.0]}))
    check_columns(Known(), "pool", np.zeros((1, 2)))
    check_columns([Known()], "pool", np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"columns of pool must be those the model was fitted with.*same order"):
        check_columns(Known(), "pool", FrameLike({"b": [1.0], "a": [2.0]}))
    with pytest.raises(ValueError, match="2 columns that Known was fitted with; got 3"):
        check_columns(make_pipeline("passthrough", Known(), BayesianRidge()), "pool", np.zeros((1, 3)))


def test_a_column_transformer_picks_its_own_columns():
    encoder = ColumnTransformer([("all", "passthrough", [0, 1])]).fit(np.zeros((2, 2)))
    check_columns(make_pipeline(encoder, BayesianRidge()), "pool", np.zeros((1, 3)))


def test_unfitted_models_are_refused():
    check_fitted(BayesianRidge().fit(ROWS, ROWS[:, 0]))
    for model in (BayesianRidge(), make_pipeline(StandardScaler(), BayesianRidge()), [BayesianRidge()]):
        with pytest.raises(NotFittedError):
            check_fitted(model)


@pytest.mark.parametrize(
    ("model", "accepts"),
    [
        (BayesianRidge(), False),
        (RandomForestRegressor(), True),
        (make_pipeline(SimpleImputer(), BayesianRidge()), True),
        (make_pipeline(StandardScaler(), SimpleImputer(), GaussianProcessRegressor()), True),
        (make_pipeline(TableEncoder(), BayesianRidge()), True),
        (make_pipeline(StandardScaler(), BayesianRidge()), False),
        (make_pipeline(StandardScaler(), RandomForestRegressor()), True),
        (make_pipeline(ColumnTransformer([("all", SimpleImputer(), [0])]), BayesianRidge()), True),
        (make_pipeline(FunctionTransformer(), BayesianRidge()), False),
        (GridSearchCV(make_pipeline(SimpleImputer(), BayesianRidge()), {}), True),
        ([RandomForestRegressor(), BayesianRidge()], False),
        (object(), False),
    ],
)
def test_who_accepts_gaps(model, accepts):
    assert accepts_missing(model) is accepts


def test_whose_belief_it_is():
    class Own(BaseEstimator):
        def belief(self, pool, contexts):
            raise NotImplementedError

    assert served_by_own_belief(Own())
    assert served_by_own_belief(make_pipeline(StandardScaler(), Own()))


class Wide:
    """Arrow makes a list of all names whenever it is asked for them."""

    asked = 0
    shape = (1, 50)

    @property
    def column_names(self):
        self.asked += 1
        return [f"c{i}" for i in range(50)]

    def column(self, position):
        return np.asarray([float(position)])


def test_a_column_is_found_without_a_look_at_all_names():
    table = Wide()
    assert [column_at(table, place)[0] for place in range(50)] == list(range(50))
    assert table.asked == 0


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_the_same_have_the_same_key(kind):
    rows = np.asarray([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [-0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    keys = row_keys(check_table("pool", KINDS[kind](rows))).tolist()
    assert [keys.index(key) for key in keys] == [0, 0, 2, 3, 3]


def test_rows_of_any_shape_and_in_parts_have_keys():
    rows = np.asarray([[1.0, 2.0], [1.0, 2.0], [1.0, np.nan], [1.0, np.nan], [2.0, 1.0]])
    for table in (rows.reshape(5, 2, 1), {"a": rows[:, :1], "b": rows[:, 1:]}, rows.astype(np.float32)):
        keys = row_keys(table).tolist()
        assert [keys.index(key) for key in keys] == [0, 0, 2, 2, 4]


def test_cells_that_are_nearly_the_same_are_distinguished():
    objects = np.asarray([[each] for each in (-1, -2, "x", "1", 1, None, float("nan"), True)], dtype=object)
    assert len(set(row_keys(objects).tolist())) == 7  # both gaps are gaps
    assert len(set(row_keys(np.asarray([[2**53], [2**53 + 1]])).tolist())) == 2
    assert len(set(row_keys(["a", "b", "a"]).tolist())) == 2


def test_very_many_cells_are_not_compared(monkeypatch):
    monkeypatch.setattr("stakes._utils.tables._COMPARED", 5)
    assert row_keys(np.zeros((3, 2))) is None
    assert row_keys({"a": np.zeros((3, 2))}) is None
