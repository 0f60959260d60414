"""A model for those who have none, and the encoding of columns it stands on."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import stakes
from stakes.models import DefaultModel, TableEncoder, belief_of, default
from tests.table_kinds import KINDS, ArrowLike, FrameLike, PolarsLike, as_columns


@pytest.fixture
def rows(rng):
    return rng.standard_normal((30, 3))


@pytest.fixture
def amounts(rows):
    return np.sin(rows[:, 0]) + rows[:, 1]


def test_numbers_are_standardised(rows):
    features = TableEncoder().fit(rows).transform(rows)
    np.testing.assert_allclose(features, (rows - rows.mean(0)) / rows.std(0), atol=1e-12)


def test_columns_far_from_zero_and_huge_ones_lose_nothing(rows):
    encoded = TableEncoder().fit(rows).transform(rows)
    far = TableEncoder().fit(1e6 + rows).transform(1e6 + rows)
    np.testing.assert_allclose(far, encoded, atol=1e-8)
    huge = TableEncoder().fit(1e300 * rows).transform(1e300 * rows)
    np.testing.assert_allclose(huge, encoded, atol=1e-12)


@pytest.mark.parametrize("kind", [FrameLike, PolarsLike, ArrowLike])
def test_columns_of_every_sort(kind):
    table = kind(
        {
            "age": [1.0, np.nan, 3.0, 5.0],
            "town": np.array(["a", "b", "a", None], dtype=object),
            "flag": [True, False, True, True],
            "same": [2, 2, 2, 2],
            "empty": [np.nan] * 4,
            "text": ["x", "x", "x", "x"],
        }
    )
    encoder = TableEncoder().fit(table)
    features = encoder.transform(table)
    assert features.shape == (4, 2 + 3 + 2)
    assert features[1, :2].tolist() == [0.0, 1.0]  # the gap: at the median, which is the mean here, and marked
    np.testing.assert_array_equal(features[:, 2:5].sum(1), 1.0)
    report = " ".join(encoder.report_)
    assert "gaps filled by the median and marked: age." in report
    assert "Columns of categories are one indicator for each value: town, flag." in report
    assert "Constant columns are left out: same, text." in report
    assert "Columns without a value are left out: empty." in report
    new = kind({**{name: table._columns[name][:1] for name in table._columns}, "town": np.array(["new"])})
    assert encoder.transform(new)[0, 2:5].tolist() == [0.0, 0.0, 0.0]


def test_rare_categories_share_an_indicator():
    names = np.array([f"n{i}" for i in range(80)] * 2 + ["often"] * 9, dtype=object)[:, None]
    features = TableEncoder().fit(names).transform(names)
    assert features.shape[1] == 50
    np.testing.assert_array_equal(features.sum(1), 1.0)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (np.array([["2026-01-01"], ["2026-01-02"]], dtype="datetime64[D]"), TypeError, "column '0' holds dates"),
        (["some", "texts"], TypeError, "vectoriser"),
        (np.array([[np.inf], [1.0]]), ValueError, "inf at row 0, column 0"),
    ],
)
def test_what_cannot_be_encoded(table, error, message):
    with pytest.raises(error, match=message):
        TableEncoder().fit(table)


def test_other_columns_than_in_fit_are_refused(rows):
    encoder = TableEncoder().fit(FrameLike(as_columns(rows)))
    with pytest.raises(ValueError, match="3 columns of fit; got 2"):
        encoder.transform(rows[:, :2])
    with pytest.raises(ValueError, match="column 0 is 'b', 'a' was expected"):
        encoder.transform(FrameLike(dict(zip("bac", rows.T, strict=True))))
    with pytest.raises(TypeError, match="column 'a' held numbers in fit"):
        encoder.transform(FrameLike({"a": ["x"], "b": [1.0], "c": [1.0]}))
    with pytest.raises(TypeError, match="sparse in transform"):
        TableEncoder().fit(sparse.csr_array(rows)).transform(rows)
    with pytest.raises(NotFittedError):
        TableEncoder().transform(rows)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b", "a"], "classes"),
        ([True, False, True], "classes"),
        ([0, 1, 2], "classes"),
        ([1200, 1500, 1300], "real"),
        ([100, 200] * 3, "classes"),
        ([0.0, 1.0, 1.0], "real"),
        (list(range(20)), "real"),
        ([3], "classes"),
        ([3.5], "real"),
        (["a", 1, "a"], "classes"),
    ],
)
def test_labels_say_what_the_target_is(rng, y, task):
    model = default(rng.standard_normal((len(y), 2)), y)
    assert model.task_ == task
    assert ("is real" if task == "real" else "is a class") in model.report[0]
    assert (is_regressor if task == "real" else is_classifier)(model)


def test_the_task_can_be_given(rows):
    y = np.arange(30) % 3
    assert default(rows, y, task="real").task_ == "real"
    assert default(rows, y.astype(float), task="classes").task_ == "classes"
    assert default(rows, y.astype(float), classes=[0, 1, 2, 3]).task_ == "classes"


def test_a_real_target_gets_a_gaussian_process(rows, amounts):
    model = default(rows, amounts)
    assert "Gaussian process" in " ".join(model.report)
    assert any(sentence.startswith("16 draws of the hyperparameters") for sentence in model.report)
    assert np.corrcoef(model.predict(rows), amounts)[0, 1] > 0.9
    with pytest.raises(AttributeError, match="target is real"):
        model.predict_proba(rows)


def test_hyperparameters_of_many_labels_come_from_some_of_them(rng):
    rows = rng.uniform(-2, 2, size=(400, 1))
    y = np.sin(2 * rows[:, 0]) + 0.1 * rng.standard_normal(400)
    model = default(rows, y)
    assert "Hyperparameters were drawn with 200 of 400 labels." in model.report
    assert model.pipeline_[-1].train_.shape == (400, 1)
    assert np.mean((model.predict(rows) - np.sin(2 * rows[:, 0])) ** 2) < 0.002


def test_many_labels_get_a_forest(rows, amounts):
    model = default(rows, amounts, max_gp_labels=20)
    assert "more than 20 labels: a random forest of 100 trees" in " ".join(model.report)
    assert np.corrcoef(model.predict(rows), amounts)[0, 1] > 0.5


def test_classes_get_a_forest_and_keep_their_columns(rows):
    y = np.where(rows[:, 0] > 0, "high", "low")
    model = default(rows, y, classes=["low", "middle", "high"])
    probabilities = model.predict_proba(rows)
    assert probabilities.shape == (30, 3)
    assert (probabilities[:, 1] > 0).all()  # no tree rules out what may come
    assert (probabilities[:, 1] < 0.002).all()
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    assert (model.predict(rows) == y).all()
    assert "No label so far: 'middle'." in " ".join(model.report)
    assert default(rows, y).classes_.tolist() == ["high", "low"]


def test_labels_that_are_not_alike_stay_apart(rng):
    model = default(rng.standard_normal((4, 2)), ["1", 1, "1", 1], classes=[1, "1"])
    assert model.classes_.tolist() == [1, "1"]
    assert set(model.predict(rng.standard_normal((9, 2))).tolist()) <= {1, "1"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_model(kind, rows, amounts):
    y = amounts > 0
    table = KINDS[kind](rows)
    wanted, got = default(rows, y).predict_proba(rows), default(table, y).predict_proba(table)
    assert got.shape == wanted.shape
    if kind not in ("float32", "csr", "csc"):
        np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_labels_of_every_kind(rows, amounts, xp):
    wanted = default(rows, amounts).predict(rows)
    np.testing.assert_allclose(default(rows, xp.asarray(amounts)).predict(rows), wanted, rtol=1e-9)
    np.testing.assert_allclose(default(rows, amounts[:, None]).predict(rows), wanted, rtol=1e-9)
    np.testing.assert_allclose(default(rows, amounts.tolist()).predict(rows), wanted, rtol=1e-9)


def test_gaps_constant_columns_and_duplicates(rows, amounts):
    table = np.column_stack([rows, np.ones(30)])
    table[:3, 0], table[5] = np.nan, table[6]
    for y in (amounts, amounts > 0):
        model = default(table, y)
        report = " ".join(model.report)
        assert "marked: 0." in report
        assert "Constant columns are left out: 3." in report
        assert "1 rows have the same features as another; all are kept." in report
        assert np.isfinite(np.asarray(model.predict(table), dtype=float)).all()


@pytest.mark.parametrize("y", [[2.5], [2.5, 2.5], ["a"], [2.5, 3.5]])
def test_one_label_is_enough(rows, y):
    for pool in (None, rows):
        model = default(rows[: len(y)], y, pool=pool)
        assert len(model.predict(rows)) == 30
        assert ("One row tells no scale" in " ".join(model.report)) == (len(y) == 1 and pool is None)
    belief_of(model, rows, rows)
    loss = stakes.LogLoss() if y == ["a"] else stakes.SquaredError()
    assert len(stakes.rank(model, loss, rows, n=5)) == 5


def test_columns_are_encoded_by_the_pool_too(rows):
    town = np.array(["a"] * 2 + ["b"] * 28)
    table = FrameLike({"x": rows[:, 0], "town": town, "code": np.array([1, 2] + ["z"] * 28, dtype=object)})
    model = default(table.iloc[:2], [1.0, 2.0], pool=table)
    assert model.pipeline_[0].transform(table).shape == (30, 1 + 2 + 3)
    assert "the 30 rows of the pool" in " ".join(model.report)
    assert "Constant columns are left out: town." in " ".join(default(table.iloc[:2], [1.0, 2.0]).report)
    with pytest.raises(ValueError, match="pool must have the 3 columns of X; got 2"):
        default(table.iloc[:2], [1.0, 2.0], pool=rows[:, :2])


def test_one_class_so_far_is_reported(rows):
    model = default(rows, ["a"] * 30, classes=["a", "b"])
    assert "All labels are of one class" in " ".join(model.report)
    rare = model.prior_share_ / 32  # one of 30 + 2 counts
    np.testing.assert_allclose(model.predict_proba(rows[:2]), [[1.0 - rare, rare]] * 2)


class Warns(LinearRegression):
    """A model whose fit has something to say."""

    def fit(self, X, y):
        warnings.warn("columns are nearly alike", UserWarning, stacklevel=2)
        return super().fit(X, y)


def test_warnings_of_a_fit_are_reported(rows, amounts, monkeypatch):
    monkeypatch.setattr(DefaultModel, "_choice", lambda *_: (Warns(), "A line."))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = default(rows, amounts)
    assert "While fitting: columns are nearly alike" in model.report


BAD = [
    ({"y": [1.0]}, ValueError, "a label for each of the 30 rows"),
    ({"y": np.full(30, np.nan)}, ValueError, r"no gaps.*rows 0, 1, 2, 3, 4 and 25 more"),
    ({"y": ["a"] * 29 + [None]}, ValueError, "rows 29 do"),
    ({"y": ["a"] * 29 + ["c"], "classes": ["a", "b"]}, ValueError, "rows 29 are not, the first is 'c'"),
    ({"classes": ["a", "a"]}, ValueError, "each class once"),
    ({"task": "sort"}, ValueError, "task must be"),
    ({"task": "real", "classes": [0, 1]}, ValueError, "a real target has no classes"),
    ({"task": "real", "y": ["a"] * 30}, TypeError, "a real target must be numbers"),
    ({"X": np.zeros((0, 3)), "y": []}, ValueError, r"y must hold a label; without any, stakes.cold_start"),
    ({"X": np.ones((30, 3))}, ValueError, "a column that tells rows apart"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), BAD)
def test_bad_input_is_refused_by_default(rows, amounts, wrong, error, message):
    arguments = {"X": rows, "y": amounts, **wrong}
    with pytest.raises(error, match=message):
        default(**arguments)


def test_it_is_an_estimator(rows, amounts):
    model = DefaultModel(max_gp_labels=5, random_state=3)
    twin = clone(model)
    given = {"max_gp_labels": 5, "random_state": 3}
    assert twin.get_params() == {"task": None, "classes": None, "ordinal": False, "labels": None, **given}
    with pytest.raises(NotFittedError):
        twin.predict(rows)
    with pytest.raises(NotFittedError):
        stakes.rank(twin, stakes.SquaredError(), rows)
    np.testing.assert_array_equal(model.fit(rows, amounts).predict(rows), twin.fit(rows, amounts).predict(rows))


def test_it_can_be_fitted_again(rows, amounts):
    model = default(rows, amounts > 0)
    assert model.fit(rows, amounts).task_ == "real"
    assert not hasattr(model, "classes_")


def test_sparse_features(rows, amounts):
    table = sparse.csr_array(rows * (rows > 0))
    model = default(table, amounts)
    assert "sparse features: a random forest" in " ".join(model.report)
    assert model.predict(table).shape == (30,)
    with pytest.raises(ValueError, match="needs 2 labels"):
        default(table[:1], amounts[:1])


def test_rank_takes_a_real_default(rows, amounts):
    table = FrameLike({"a": rows[:, 0], "b": rows[:, 1], "sort": np.where(rows[:, 2] > 0, "x", "y")})
    model = default(table, amounts)
    belief = belief_of(model, table, table)
    np.testing.assert_allclose(belief.mean, model.predict(table), rtol=1e-6, atol=1e-9)
    ranking = stakes.rank(model, stakes.SquaredError(), table, n=4)
    assert len(set(ranking.indices)) == 4
    forest = default(table, amounts, max_gp_labels=3)
    assert len(stakes.rank(forest, stakes.SquaredError(), table, n=4)) == 4


def test_rank_takes_a_default_of_classes(rows):
    names = np.where(rows[:, 0] + 0.3 * rows[:, 1] > 0, "high", "low")
    model = default(rows[:15], names[:15], classes=["low", "high", "never"])
    belief_of(model, rows, rows)
    ranking = stakes.rank(model, stakes.LogLoss([1.0, 5.0, 1.0]), rows[15:], n=4)
    helped = ranking.reasons[0].contexts[0]
    assert len(helped.prediction) == 3
    assert "class 'low'" in helped.answer or "class 'high'" in helped.answer
    names = ["high", "never", "low", "new"]
    swapped = stakes.rank(model, stakes.LogLoss([5.0, 1.0, 1.0, 1.0]), rows[15:], n=4, classes=names)
    with pytest.raises(ValueError, match=r"classes must hold all those of the model.*\['never'\] are not there"):
        stakes.rank(model, stakes.LogLoss(), rows[15:], classes=["low", "high"])
    assert swapped.indices == ranking.indices


def test_trees_are_calibrated_by_labels_left_out():
    """Labels by a coin, two of each row: what a tree saw of a row says nothing about its next label."""
    generator = np.random.default_rng(0)
    X, coin = np.repeat(generator.normal(size=(60, 2)), 2, axis=0), generator.random(120) < 0.4
    noisy = default(X, coin.astype(int), task="classes")
    assert noisy.prior_share_ >= 0.4
    assert f"{noisy.prior_share_:.0%} of it given to class frequencies." in " ".join(noisy.report)
    clear = default(X, (X[:, 0] > 0).astype(int), task="classes")
    assert clear.prior_share_ <= 0.05
    assert clear.power_ > 1.3  # trees that agree are right more often than they say
    rows = np.unique(X, axis=0)
    for model in (noisy, clear):
        belief = belief_of(model, rows, rows)
        assert np.allclose(belief.contexts.mean(axis=1), model.predict_proba(rows), atol=1e-6)


def test_labels_that_are_alone_in_their_class_tell_nothing_of_calibration():
    model = default(np.arange(6.0)[:, None], np.arange(6), task="classes")
    assert (model.power_, model.prior_share_) == pytest.approx((np.exp(0.2), 0.2), abs=0.06)


def test_many_labels_of_classes_are_grown_on_some_of_them_each():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(9000, 16))
    model = default(X, (X[:, 0] + generator.normal(size=9000) > 0).astype(int), task="classes")
    assert "of the 9000 labels, drawn anew" in " ".join(model.report)
    assert model.prior_share_ < 0.1  # a mean over many trees is not too sure
