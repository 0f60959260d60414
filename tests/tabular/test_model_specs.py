"""Models in words: every name builds an estimator that is fitted to a frame and ranks its rows."""

import json

import numpy as np
import pytest

import stakes
from stakes.exceptions import StakesError
from stakes.files import Frame, write_csv
from stakes.models import DefaultModel
from stakes.tabular import (
    MODELS,
    Brief,
    LossSpec,
    ModelSpec,
    build_loss,
    build_model,
    read_worksheet,
    suggest,
)

N = 24
SMALL = {
    "random-forest": {"n_estimators": 12},
    "extra-trees": {"n_estimators": 12},
    "bootstrap": {"members": 4},
    "default": {},
}
PAIRS = [(name, task) for name, entry in MODELS.items() for task in entry.recipes]


@pytest.fixture
def frame(rng):
    heat = rng.normal(size=N)
    heat[3] = np.nan
    return Frame(("heat", "kind"), (heat, np.asarray(["acid", "base", None] * 8, dtype=object)), N)


def labels(frame, task):
    heat = np.nan_to_num(frame.column(0))
    return (
        np.exp(heat + 0.1 * np.arange(N) % 0.3) if task == "real" else np.where(heat > 0, "hot", "cold").astype(object)
    )


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_every_name_ranks_a_frame(frame, name, task):
    loss = build_loss(LossSpec("squared-error" if task == "real" else "log-loss"))
    classes = None if task == "real" else ["cold", "hot"]
    orders = []
    for _ in range(2):  # the seed decides all
        model = build_model(ModelSpec(name, SMALL.get(name, {})), task, classes, random_state=3)
        model.fit(frame.take(range(16)), labels(frame, task)[:16])
        orders.append(stakes.rank(model, loss, frame, n=3, classes=classes, max_contexts=8))
    assert len(set(orders[0].indices)) == 3
    assert list(orders[0].indices) == list(orders[1].indices)
    assert orders[0].scores == pytest.approx(orders[1].scores, rel=0, abs=0)
    assert MODELS[name].purpose.endswith(".")


def test_losses_for_positive_targets_have_a_model(frame):
    for named in ("log-gaussian-process", "count-process"):
        model = build_model(ModelSpec(named), "real").fit(frame, labels(frame, "real"))
        for name in ("itakura-saito", "poisson-deviance"):
            assert len(stakes.rank(model, build_loss(LossSpec(name)), frame, n=2).indices) == 2


def test_the_default_model_is_given_the_classes(frame):
    model = build_model(ModelSpec("default", {"max_gp_labels": 5}), "classes", ["cold", "hot", "wet"], random_state=7)
    assert isinstance(model, DefaultModel)
    assert (model.random_state, model.max_gp_labels) == (7, 5)
    assert model.fit(frame, labels(frame, "classes")).predict_proba(frame).shape == (N, 3)


def test_random_states_are_the_seed_unless_given():
    path = "sklearn.ensemble:RandomForestClassifier"
    assert build_model(ModelSpec(path), "classes", random_state=5)[-1].random_state == 5
    assert build_model(ModelSpec(path, {"random_state": 1}), "classes", random_state=5)[-1].random_state == 1
    tree = {"estimator": {"model": "sklearn.tree:DecisionTreeClassifier", "parameters": {"max_depth": 2}}}
    nested = build_model(ModelSpec("bootstrap", tree), "classes", random_state=5)[-1]
    assert (nested.estimator.random_state, nested.random_state, nested.estimator.max_depth) == (5, 5, 2)
    assert build_model(ModelSpec("bootstrap", {"estimator__alpha": 3.0}), "real")[-1].estimator.alpha == 3.0


@pytest.mark.parametrize("name", MODELS)
def test_json_gives_every_spec_back(name):
    spec = ModelSpec(name, {"a": [1, {"b": None}]})
    assert ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@pytest.mark.parametrize(
    ("name", "parameters", "task", "message"),
    [
        ("bayesian-ridge", {}, "classes", "bayesian-ridge has no model of classes; those that have are default, "),
        ("random-forest", {"n_trees": 5}, "real", r"no option of .*'n_trees'; there are .*n_estimators"),
        ("bootstrap", {"estimator__alhpa": 1}, "real", "Invalid parameter 'alhpa'"),
        ("default", {"random_state": 1}, "real", "told random_state by the table"),
        ("sklearn.linear_model:BayesianRidge", {}, "classes", "BayesianRidge is a model of numbers, and the target is"),
        ("sklearn.cluster:KMeans", {}, "classes", "KMeans is neither a classifier nor a regressor"),
        ("sklearn.linear_model:Ridg", {}, "real", r"has no 'Ridg'. Did you mean 'Ridge'\?"),
        ("sklearn.nothing:Ridge", {}, "real", "'sklearn.nothing' cannot"),
        ("subprocess:Popen", {"args": "true"}, "real", "is no estimator: a class with fit"),
        ("sklearn.base:clone", {}, "real", "is no estimator"),
        ("bootstrap", {"estimator": {"model": "os:system"}}, "real", "is no estimator"),
        ("bootstrap", {"estimator": {"model": "default"}}, "real", "goes by module:Name; got 'default'"),
        ("bootstrap", {"estimator": {"model": "a:b", "parameters": 1}}, "real", "that JSON can keep"),
        ("random-forest", {}, "regression", "task must be 'classes' or 'real'"),
        ("bootstrap", {"estimator": {"model": "a:b", "x": 1}}, "real", "no field of a model 'x'"),
        ("log-gaussian-process", {"func": {"function": "os:system"}}, "real", "such as numpy:log; got 'os:system'"),
    ],
)
def test_what_cannot_be_built(name, parameters, task, message):
    with pytest.raises(StakesError, match=message):
        build_model(ModelSpec(name, parameters), task)


def test_wrong_options_are_refused():
    with pytest.raises(StakesError, match=r"no model 'random_forest'; .*module:Name.* Did you mean 'random-forest'\?"):
        ModelSpec("random_forest")
    with pytest.raises(StakesError, match="that JSON can keep"):
        ModelSpec("default", {"a": object()})
    with pytest.raises(StakesError, match="no field of a model 'options'"):
        ModelSpec.from_dict({"name": "default", "options": {}})


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("sklearn.linear_model:LogisticRegression", "classes"),
        ("sklearn.svm:SVC", "classes"),
        ("sklearn.ensemble:HistGradientBoostingRegressor", "real"),
        ("sklearn.ensemble:RandomForestRegressor", "real"),
        ("sklearn.ensemble:ExtraTreesRegressor", "real"),
        ("lightgbm:LGBMClassifier", "classes"),
        ("lightgbm:LGBMRegressor", "real"),
        ("xgboost:XGBClassifier", "classes"),
        ("xgboost:XGBRegressor", "real"),
    ],
)
def test_any_estimator_by_its_path(name, task, tmp_path):
    """With classes by name, which XGBoost itself does not take; what was made of it is in the notes."""
    library = name.partition(".")[0].partition(":")[0]
    pytest.importorskip(library, reason=f"{library} is not installed")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    labels = np.where(x[:, 0] > 0, "good", "bad") if task == "classes" else x[:, 0].round(3).tolist()
    rows = [(*row, label if place < 25 else None) for place, (row, label) in enumerate(zip(x, labels, strict=True))]
    write_csv(tmp_path / "t.csv", ["a", "b", "y"], rows)
    brief = Brief("y", "log-loss" if task == "classes" else "squared-error", name)
    ranking, _ = suggest(read_worksheet(tmp_path / "t.csv", brief), 3)
    assert len(ranking) == 3
    notes = " ".join(map(str, ranking.notes))
    assert "copies of" in notes or "out of bag" in notes
