"""What is refused before the first fit, and the messages."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from stakes import CostMatrix, ItakuraSaito, LogLoss, Mahalanobis, SquaredError, ZeroOne
from stakes.simulation import simulate
from tests.simulation.simulation_cases import BayesianLine, Committee, class_data, line_data, lines


def small(X, y, loss=None, model=None, **arguments):
    given = {"n": 2, "runs": 1, "n_initial": 2, **arguments}
    return simulate(model or BayesianLine(), loss or SquaredError(), X, y, **given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 28}, "pool must hold n = 28 labels; of 60 rows, 3 are labelled at the start, 12 are"),
        ({"n": 0}, "n must be a whole number, 1 or more; got 0"),
        ({"n_test": 1}, "n_test must be a whole number, 2 or more; got 1"),
        ({"n_contexts": 1.5}, "n_contexts must be a whole number, 1 or more; got 1.5"),
        ({"runs": 0}, "runs must be a whole number, 1 or more; got 0"),
        ({"random_state": -1}, "random_state must be 0 or more; got -1"),
        ({"strategies": ["loss", "loss"]}, "names of their own"),
        ({"strategies": ["lost"]}, "no strategy is called 'lost'; there are .*'bald'.*'loss'.*'plain'.*'random'"),
        ({"strategies": []}, "a list of names, one or more"),
        ({"strategies": "loss"}, "a list of names, one or more; got 'loss'"),
        ({"metrics": {"loss": SquaredError()}}, 'the metric "loss" is the loss itself'),
        ({"classes": [0, 1]}, "classes are for losses about classes"),
    ],
)
def test_bad_values(arguments, message):
    with pytest.raises(ValueError, match=message):
        lines(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "squared"}, "loss must be a loss such as SquaredError"),
        ({"model": object()}, "model must be an estimator that can be cloned and fitted again"),
        ({"metrics": {"error": ZeroOne()}}, "metric 'error' must be a loss about the same kind of target"),
        ({"strategies": [("mine", 3)]}, "a strategy must be a name, or"),
        ({"loss": Mahalanobis(np.eye(2))}, "simulate takes real targets and classes"),
        ({"random_state": "0"}, "random_state must be a whole number or a numpy.random.Generator; got '0'"),
        ({"progress": "yes"}, "progress must be True, False or a function"),
    ],
)
def test_bad_types(arguments, message):
    with pytest.raises(TypeError, match=message):
        lines(**arguments)


def test_too_few_rows():
    X, y = line_data(n=12)
    with pytest.raises(ValueError, match=r"which leaves 0\. Give more rows"):
        simulate(BayesianLine(), SquaredError(), X, y)


def test_rows_that_are_not_numbers_are_named():
    X, y = line_data()
    gaps = y.copy()
    gaps[[3, 7]] = np.nan
    with pytest.raises(ValueError, match=r"y must be known for every row; it is missing in rows 3, 7\. Drop"):
        small(X, gaps)
    with pytest.raises(ValueError, match="y must be finite; it is not in row 5"):
        small(X, np.where(np.arange(60) == 5, np.inf, y))
    holes = X.copy()
    holes[4, 1] = np.nan
    with pytest.raises(ValueError, match="X must hold finite numbers; the first that is not is nan at row 4, column 1"):
        small(holes, y)


def test_gaps_are_left_to_a_model_that_fills_them():
    X, y = line_data()
    X[4, 1] = np.nan
    assert np.isfinite(small(X, y, model=make_pipeline(SimpleImputer(), BayesianLine())).losses["loss"]).all()


def test_sparse_features_are_left_sparse():
    X, y = line_data()
    dense = make_pipeline(FunctionTransformer(lambda rows: rows.toarray(), accept_sparse=True), BayesianLine())
    found = small(csr_matrix(X), y, model=dense, strategies=["loss"])
    assert found.curves("loss").tolist() == small(X, y, strategies=["loss"]).curves("loss").tolist()


class Frame:
    """As much of a data frame as is asked for."""

    def __init__(self, values):
        self.values, self.shape, self.columns = values, values.shape, ["u", "v", "w"]
        self.index = np.arange(len(values)) % 2  # labels that tell no rows apart

    @property
    def iloc(self):
        class Rows:
            def __getitem__(_, where):  # noqa: N805
                return Frame(self.values[where]) if not isinstance(where, tuple) else self.values[where]

        return Rows()


class FrameLine(BayesianLine):
    def fit(self, X, y):
        assert isinstance(X, Frame)
        return BayesianLine.fit(self, X.values, y)

    def belief(self, pool, contexts):
        return BayesianLine.belief(self, pool.values, contexts.values)


def test_frames_reach_the_model_as_frames():
    X, y = line_data()
    found = small(Frame(X), y, model=FrameLine(), strategies=["loss"])
    assert found.curves("loss").tolist() == small(X, y, strategies=["loss"]).curves("loss").tolist()


def test_labels():
    X, y = class_data()
    model = Committee(classes=("a", "b", "c"))
    with pytest.raises(
        ValueError, match=r"y must be among the classes \('a', 'b'\); 'c' is not, in rows 5, 9, 26, 27, 38 and 5 more"
    ):
        small(X, y, LogLoss(), model, classes=["a", "b"])
    with pytest.raises(ValueError, match="the loss is about 2 classes, but there are 3"):
        small(X, y, CostMatrix([[0, 1], [1, 0]]), model)
    with pytest.raises(ValueError, match="classes must differ from each other"):
        small(X, y, LogLoss(), model, classes=["a", "b", "b"])
    with pytest.raises(TypeError, match="y must hold numbers"):
        small(X, y)
    with pytest.raises(ValueError, match=r"one label for each of the 80 rows of X; got \[79\]"):
        small(X, y[1:], LogLoss(), model)
    with pytest.raises(ValueError, match=r"y must lie in \(0, inf\)"):
        small(X, np.linspace(-1, 1, 80), ItakuraSaito())


def test_classes_given_may_be_more_than_there_are():
    X, y = class_data()
    found = small(X, y, LogLoss(), Committee(classes=("d", "c", "b", "a")), classes=["d", "c", "b", "a"])
    assert found.classes == ("d", "c", "b", "a")
    assert found.targets[0][0] == found.classes.index(y[0])
