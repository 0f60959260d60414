"""Losses, estimators and data frames are kept by name and parameters and come back; others are refused."""

import dataclasses
import json
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import stakes
from stakes.exceptions import StakesError
from stakes.files.read import read_table
from stakes.losses import Square
from stakes.models import Bootstrap, DefaultModel
from stakes.tabular import Brief, LossSpec, ModelSpec, build_loss, build_model
from stakes.tabular.objects import path_of, spec_of_loss, spec_of_model, write_frame

COSTS = pd.DataFrame([[0.0, 1.0], [5.0, 0.0]], index=["good", "bad"], columns=["good", "bad"])
LOSSES = (
    stakes.SquaredError(),
    stakes.AbsoluteError(stakes.ExponentialWeight(-0.5)),
    stakes.Linex(0.3, weight=stakes.InterpolatedWeight([0.0, 1.0], [1.0, 2.0])),
    stakes.Pinball(0.2),
    stakes.CRPS(),
    stakes.LogScore(),
    stakes.ThresholdDecision(2.0, miss=5.0),
    stakes.PoissonDeviance(),
    stakes.ItakuraSaito(),
    stakes.BoxCox(0.5),
    stakes.LogLoss(),
    stakes.ZeroOne(),
)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_loss_comes_back_as_it_was(loss):
    kept = json.loads(json.dumps(spec_of_loss(loss).to_dict()))
    assert build_loss(LossSpec.from_dict(kept), ["good", "bad"]) == loss


def test_classes_go_by_name():
    spec = spec_of_loss(stakes.CostMatrix(COSTS))
    assert spec.cost_matrix == {"good": {"good": 0.0, "bad": 1.0}, "bad": {"good": 5.0, "bad": 0.0}}
    np.testing.assert_array_equal(build_loss(spec, ["bad", "good"]).costs, [[0.0, 5.0], [1.0, 0.0]])
    weights = spec_of_loss(stakes.BrierLoss({"good": 1, "bad": 5}))
    assert build_loss(weights, ["bad", "good"]) == stakes.BrierLoss([5.0, 1.0])
    square = stakes.CostMatrix(COSTS.to_numpy(), classes=["good", "bad"])
    assert spec_of_loss(square) == spec


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (stakes.CostMatrix([[0, 1], [5, 0]]), "CostMatrix has no names"),
        (stakes.LogLoss([1.0, 5.0]), "class weights of this LogLoss have no names"),
        (stakes.SquaredError(stakes.Weight(np.exp)), "the weight of this SquaredError is a Weight"),
        (stakes.FiniteActions(lambda z: z[..., None]), "costs of FiniteActions is <function"),
        (stakes.ScoringRule(Square()), "potential of ScoringRule is Square"),
        (3.0, "the loss of a table is a name"),
        (stakes.SquaredError, "the loss of a table is a name"),
    ],
)
def test_a_loss_that_cannot_be_kept_is_refused_by_name(loss, message):
    with pytest.raises(StakesError, match=message):
        Brief("y", loss)


MODELS = {
    "line": (BayesianRidge(alpha_1=0.5), "real"),
    "forest": (RandomForestClassifier(7, max_features=None, class_weight={"a": 2}), "classes"),
    "pipeline": (make_pipeline(StandardScaler(), Ridge(alpha=3.0)), "real"),
    "process": (GaussianProcessRegressor(1.5 * RBF([1.0, 2.0]) + WhiteKernel(), alpha=0.1), "real"),
    "bootstrap": (Bootstrap(LogisticRegression(C=0.5), members=5), "classes"),
    "logarithm": (TransformedTargetRegressor(BayesianRidge(), func=np.log, inverse_func=np.exp), "real"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_an_estimator_comes_back_as_it_was(kind):
    model, task = MODELS[kind]
    spec = ModelSpec.from_dict(json.loads(json.dumps(spec_of_model(model).to_dict())))
    made = build_model(spec, task, random_state=3)[-1]
    if isinstance(made, Bootstrap) and not isinstance(model, Bootstrap):
        made = made.estimator
    if isinstance(model, Pipeline):  # its last step alone has a belief to be had by copies
        made = Pipeline([*made.steps[:-1], (made.steps[-1][0], made.steps[-1][1].estimator)])
    assert _plain(made) == _plain(model)


def _plain(model):
    """All parameters but seeds, which are filled in where they are left open."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else list(value) if isinstance(value, tuple) else value
        for name, value in model.get_params().items()
        if not name.endswith("random_state") and not hasattr(value, "get_params") and name != "steps"
    }


def test_the_shortest_public_path():
    assert path_of(LogisticRegression) == "sklearn.linear_model:LogisticRegression"
    assert spec_of_model(DefaultModel(max_gp_labels=50, task="real")) == ModelSpec("default", {"max_gp_labels": 50})
    assert spec_of_model(BayesianRidge().fit([[0.0], [1.0]], [0.0, 1.0])) == ModelSpec(
        "sklearn.linear_model:BayesianRidge"
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(FunctionTransformer(lambda rows: rows), Ridge()), "func of FunctionTransformer is <function"),
        (
            RandomForestClassifier(random_state=np.random.RandomState(0)),
            "random_state of RandomForestClassifier is Random",
        ),
        (Ridge, "the model of a table is a name"),
        (object(), "the model of a table is a name"),
    ],
)
def test_a_model_that_cannot_be_kept_is_refused_by_name(model, message):
    with pytest.raises(StakesError, match=message):
        Brief("y", "squared-error", model)


def test_classes_that_nobody_else_could_import():
    class Own(Ridge):
        pass

    with pytest.raises(StakesError, match="put it at the top of a module"):
        spec_of_model(Own())
    Own.__module__, Own.__qualname__ = "__main__", "Own"
    with pytest.raises(StakesError, match="defined in the session"):
        spec_of_model(Own())


@dataclasses.dataclass(frozen=True)
class OwnLoss(stakes.SquaredError):
    factor: float = 2.0


def test_a_loss_of_ones_own_is_kept_by_its_fields():
    spec = spec_of_loss(OwnLoss(factor=3.0))
    assert spec.name == f"{__name__}:OwnLoss"
    assert spec.options == {"weight": None, "factor": 3.0}


def test_a_data_frame_is_written_value_by_value(tmp_path):
    table = pd.DataFrame(
        {
            "number": [0.1, np.nan, 1e-300],
            "code": ["007", "12", ""],
            "name": ["=a,b", 'quoted "x"', None],
            "flag": [True, False, True],
            "day": [datetime(2024, 1, 5), pd.NaT, datetime(2024, 1, 6, 12, 30)],
            "y": [1.0, np.nan, 2.0],
        },
        index=pd.Index([10, 20, 30], name="sample"),
    )
    options = write_frame(tmp_path / "t.csv", table, "y", None, of_classes=True)
    assert options == {"text": ("code",), "id_column": "sample"}
    source = read_table(tmp_path / "t.csv", text=options["text"])
    assert source.texts("sample") == ["10", "20", "30"]
    assert source.texts("y") == ["1", None, "2"]
    assert source.texts("name") == ["=a,b", 'quoted "x"', None]
    assert source.texts("day") == ["2024-01-05", None, "2024-01-06T12:30:00"]
    number, code = source.features(["number", "code"]).arrays
    np.testing.assert_array_equal(number, table["number"])
    assert code.tolist() == ["007", "12", None]


def test_frames_of_other_libraries(tmp_path):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {"x": [1.5, None], "y": ["a", None]}
    for place, table in enumerate((polars.DataFrame(columns), pyarrow.table(columns))):
        made = write_frame(tmp_path / f"{place}.csv", table, "y", None, of_classes=True)
        assert made == {"text": (), "id_column": "row"}
        assert (tmp_path / f"{place}.csv").read_text().split() == ["row,x,y", "0,1.5,a", "1,,"]


def test_frames_whose_rows_or_columns_have_no_single_name(tmp_path):
    table = pd.DataFrame({"x": [1, 2], "y": [1, 2]})
    with pytest.raises(StakesError, match="several levels"):
        write_frame(tmp_path / "t.csv", table.set_index(["x", "y"], drop=False), "y", None, of_classes=False)
    with pytest.raises(StakesError, match="called 'x', as a column is"):
        write_frame(tmp_path / "t.csv", table.set_index("x", drop=False), "y", None, of_classes=False)
    with pytest.raises(StakesError, match="different names"):
        write_frame(tmp_path / "t.csv", table.set_axis(["y", "y"], axis=1), "y", None, of_classes=False)
