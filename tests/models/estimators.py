"""Which estimators `rank` takes: the table of docs/estimators.md, made by trying each.

python -m tests.models.estimators writes it; tests/models/test_labelled_estimators.py compares it with what happens.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stakes import LogLoss, SquaredError, rank

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"
BEGIN, END = "<!-- table of estimators -->", "<!-- end of the table -->"
HEAD = ("estimator", "labels", "", "what its belief is, or why not")
DIRECTLY, LABELLED, REFUSED = "works directly", "works with `labelled`", "refused"
_GENERATOR = np.random.default_rng(0)
ROWS = _GENERATOR.normal(size=(80, 4))
_LATENT = ROWS[:, 0] - ROWS[:, 1] + 0.3 * _GENERATOR.normal(size=80)
NUMBERS = np.round(_LATENT, 3)
CLASSES = np.where(_LATENT > 0.5, "high", np.where(_LATENT > -0.5, "middle", "low"))
KNOWN = 50


class Case(NamedTuple):
    """An estimator by its path, and its arguments; an argument may be another, as (path, arguments)."""

    path: str
    labels: str
    arguments: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    shown: str | None = None
    prepare: Callable[[Any], Any] = lambda rows: rows

    @property
    def name(self) -> str:
        """As the table has it."""
        return self.shown or self.path.partition(":")[2]

    @property
    def library(self) -> str:
        """That must be installed."""
        return self.path.partition(":")[0].partition(".")[0]

    def made(self) -> Any:
        """The estimator, not fitted."""
        return _made(self.path, self.arguments)


def _made(path: str, arguments: dict[str, Any]) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)(**{key: _value(value) for key, value in arguments.items()})


def _value(value: Any) -> Any:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and ":" in value[0]:
        return _made(*value)
    return [(name, _value(each)) for name, each in value] if isinstance(value, list) and value else value


def _positive(rows: Any) -> Any:
    return np.abs(rows)


def _one_column(rows: Any) -> Any:
    return rows[:, :1]


_L, _E, _N, _S = "sklearn.linear_model:", "sklearn.ensemble:", "sklearn.neighbors:", "sklearn.svm:"
_SCALED = ("sklearn.preprocessing:StandardScaler", {})
_LOGISTIC, _RIDGE = (f"{_L}LogisticRegression", {}), (f"{_L}Ridge", {})
_FEW = {"iterations": 60}
CASES = (
    # classes
    Case(f"{_E}RandomForestClassifier", "classes", {"n_estimators": 30}),
    Case(f"{_E}ExtraTreesClassifier", "classes", {"n_estimators": 30}),
    Case(f"{_E}BaggingClassifier", "classes"),
    Case(
        f"{_E}VotingClassifier",
        "classes",
        {"estimators": [("a", _LOGISTIC), ("b", (f"{_E}RandomForestClassifier", {}))]},
    ),
    Case("sklearn.gaussian_process:GaussianProcessClassifier", "classes"),
    Case(f"{_L}LogisticRegression", "classes"),
    Case(f"{_L}LogisticRegressionCV", "classes", {"Cs": 3, "cv": 3, "l1_ratios": (0,), "use_legacy_attributes": False}),
    Case(f"{_L}SGDClassifier", "classes", {"loss": "log_loss"}, 'SGDClassifier(loss="log_loss")'),
    Case(f"{_L}RidgeClassifier", "classes"),
    Case(f"{_L}Perceptron", "classes"),
    Case(f"{_S}SVC", "classes"),
    Case(f"{_S}LinearSVC", "classes"),
    Case(
        "sklearn.calibration:CalibratedClassifierCV",
        "classes",
        {"estimator": (f"{_S}LinearSVC", {}), "cv": 3},
        "CalibratedClassifierCV(LinearSVC())",
    ),
    Case(f"{_N}KNeighborsClassifier", "classes"),
    Case(f"{_N}NearestCentroid", "classes"),
    Case("sklearn.naive_bayes:GaussianNB", "classes"),
    Case("sklearn.naive_bayes:MultinomialNB", "classes", prepare=_positive),
    Case("sklearn.naive_bayes:BernoulliNB", "classes"),
    Case("sklearn.discriminant_analysis:LinearDiscriminantAnalysis", "classes"),
    Case("sklearn.discriminant_analysis:QuadraticDiscriminantAnalysis", "classes"),
    Case("sklearn.tree:DecisionTreeClassifier", "classes"),
    Case(f"{_E}HistGradientBoostingClassifier", "classes", {"max_iter": 20}),
    Case(f"{_E}GradientBoostingClassifier", "classes", {"n_estimators": 20}),
    Case(f"{_E}AdaBoostClassifier", "classes", {"n_estimators": 10}),
    Case(
        f"{_E}StackingClassifier",
        "classes",
        {"estimators": [("a", _LOGISTIC), ("b", ("sklearn.naive_bayes:GaussianNB", {}))], "cv": 2},
    ),
    Case("sklearn.neural_network:MLPClassifier", "classes", {"hidden_layer_sizes": 5, "max_iter": 40}),
    Case(
        "sklearn.multiclass:OneVsRestClassifier",
        "classes",
        {"estimator": _LOGISTIC},
        "OneVsRestClassifier(LogisticRegression())",
    ),
    Case(
        "sklearn.pipeline:Pipeline",
        "classes",
        {"steps": [("scale", _SCALED), ("model", _LOGISTIC)]},
        "Pipeline of StandardScaler and LogisticRegression",
    ),
    Case(
        "sklearn.model_selection:GridSearchCV",
        "classes",
        {"estimator": _LOGISTIC, "param_grid": {"C": (0.1, 1.0)}, "cv": 3},
        "GridSearchCV(LogisticRegression())",
    ),
    Case("sklearn.dummy:DummyClassifier", "classes"),
    Case("lightgbm:LGBMClassifier", "classes", {"n_estimators": 20, "verbosity": -1}),
    Case("xgboost:XGBClassifier", "classes", {"n_estimators": 20}),
    Case("xgboost:XGBRFClassifier", "classes", {"n_estimators": 20}),
    Case("catboost:CatBoostClassifier", "classes", {**_FEW, "verbose": False, "allow_writing_files": False}),
    Case(
        "catboost:CatBoostClassifier",
        "classes",
        {**_FEW, "verbose": False, "allow_writing_files": False, "posterior_sampling": True},
        "CatBoostClassifier(posterior_sampling=True)",
    ),
    # numbers
    Case(f"{_E}RandomForestRegressor", "numbers", {"n_estimators": 60}),
    Case(
        f"{_E}RandomForestRegressor",
        "numbers",
        {"n_estimators": 60, "oob_score": True},
        "RandomForestRegressor(oob_score=True)",
    ),
    Case(f"{_E}ExtraTreesRegressor", "numbers", {"n_estimators": 60}),
    Case(f"{_E}BaggingRegressor", "numbers", {"n_estimators": 30}),
    Case(f"{_E}VotingRegressor", "numbers", {"estimators": [("a", _RIDGE), ("b", (f"{_L}Lasso", {}))]}),
    Case("sklearn.gaussian_process:GaussianProcessRegressor", "numbers", {"alpha": 0.1}),
    Case(f"{_L}BayesianRidge", "numbers"),
    Case(f"{_L}ARDRegression", "numbers"),
    Case(f"{_L}LinearRegression", "numbers"),
    Case(f"{_L}Ridge", "numbers"),
    Case(f"{_L}RidgeCV", "numbers"),
    Case(f"{_L}Lasso", "numbers", {"alpha": 0.01}),
    Case(f"{_L}LassoCV", "numbers", {"cv": 3}),
    Case(f"{_L}ElasticNet", "numbers", {"alpha": 0.01}),
    Case(f"{_L}HuberRegressor", "numbers"),
    Case(f"{_L}RANSACRegressor", "numbers"),
    Case(f"{_L}QuantileRegressor", "numbers", {"alpha": 0.01}),
    Case(f"{_S}SVR", "numbers"),
    Case(f"{_N}KNeighborsRegressor", "numbers"),
    Case("sklearn.kernel_ridge:KernelRidge", "numbers"),
    Case("sklearn.cross_decomposition:PLSRegression", "numbers"),
    Case("sklearn.isotonic:IsotonicRegression", "numbers", {"out_of_bounds": "clip"}, prepare=_one_column),
    Case("sklearn.tree:DecisionTreeRegressor", "numbers", {"min_samples_leaf": 3}),
    Case(f"{_E}HistGradientBoostingRegressor", "numbers", {"max_iter": 20}),
    Case(f"{_E}GradientBoostingRegressor", "numbers", {"n_estimators": 20}),
    Case("sklearn.neural_network:MLPRegressor", "numbers", {"hidden_layer_sizes": 5, "max_iter": 40}),
    Case(
        "sklearn.compose:TransformedTargetRegressor",
        "numbers",
        {"regressor": _RIDGE, "transformer": _SCALED},
        "TransformedTargetRegressor(Ridge())",
    ),
    Case(
        "sklearn.model_selection:GridSearchCV",
        "numbers",
        {"estimator": _RIDGE, "param_grid": {"alpha": (0.1, 1.0)}, "cv": 3},
        "GridSearchCV(Ridge())",
    ),
    Case(
        "sklearn.pipeline:Pipeline",
        "numbers",
        {"steps": [("scale", _SCALED), ("model", (f"{_E}RandomForestRegressor", {"n_estimators": 60}))]},
        "Pipeline of StandardScaler and RandomForestRegressor",
    ),
    Case("lightgbm:LGBMRegressor", "numbers", {"n_estimators": 20, "verbosity": -1}),
    Case("xgboost:XGBRegressor", "numbers", {"n_estimators": 20}),
    Case("catboost:CatBoostRegressor", "numbers", {**_FEW, "verbose": False, "allow_writing_files": False}),
    Case(
        "catboost:CatBoostRegressor",
        "numbers",
        {
            **_FEW,
            "verbose": False,
            "allow_writing_files": False,
            "posterior_sampling": True,
            "loss_function": "RMSEWithUncertainty",
        },
        'CatBoostRegressor(posterior_sampling=True, loss_function="RMSEWithUncertainty")',
    ),
    # neither
    Case("sklearn.cluster:KMeans", "numbers", {"n_clusters": 3}),
    Case(f"{_E}IsolationForest", "numbers", {"n_estimators": 20}),
    Case("sklearn.multioutput:MultiOutputClassifier", "classes", {"estimator": _LOGISTIC}),
    Case("sklearn.decomposition:PCA", "numbers"),
)


def tried(case: Case) -> tuple[str, ...]:
    """The line of the table for an estimator: what happens to the fitted model alone, else with the labelled rows."""
    labels = CLASSES if case.labels == "classes" else NUMBERS
    rows, loss = case.prepare(ROWS), LogLoss() if case.labels == "classes" else SquaredError()
    known, asked = (rows[:KNOWN], labels[:KNOWN]), {"n": 2, "batch": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = rank(_fitted(case, *known), loss, rows[KNOWN:], **asked)
            how = DIRECTLY, _kind(found)
        except (TypeError, ValueError) as first:
            if not isinstance(first, ValueError) and "labelled=(X, y)" not in str(first):
                raise AssertionError("the refusal gives no line to write") from first
            try:
                found = rank(case.made(), loss, rows[KNOWN:], labelled=known, **asked)
            except (TypeError, ValueError) as error:
                return case.name, case.labels, REFUSED, str(error).splitlines()[0].split(". ")[0].rstrip(".")
            how = LABELLED, _made_of([str(note) for note in found.notes if note.kind == "model"])
    assert len(found) == 2
    return case.name, case.labels, *how


def _fitted(case: Case, rows: Any, labels: Any) -> Any:
    """The model as a user has fitted it: XGBoost to numbers, as it takes no names."""
    by_number = case.library == "xgboost" and case.labels == "classes"
    return case.made().fit(rows, np.unique(labels, return_inverse=True)[1] if by_number else labels)


def _kind(ranking: Any) -> str:
    names = next(note.values["names"] for note in ranking.notes if note.kind == "forms")
    return f"`{names[0].rpartition(' ')[2]}`"


def _made_of(notes: list[str]) -> str:
    """What a belief was made of, in a few words."""
    text = " ".join(notes)
    if "virtual ensembles" in text:
        return "virtual ensembles"
    if "copies of" not in text:
        return "its own members, and the noise of labels from the labelled rows"
    drawn = "by weights" if "weighted as often" in text else "rows drawn anew"
    return f"20 copies, {drawn}{', which vote' if 'votes for one class' in text else ''}"


def lines(cases: Iterator[Case] | tuple[Case, ...] = CASES) -> Iterator[str]:
    """The table."""
    yield f"| {' | '.join(HEAD)} |"
    yield "|---" * len(HEAD) + "|"
    for case in cases:
        yield f"| {' | '.join(each.replace('|', '/') for each in (f'`{case.name}`', *tried(case)[1:]))} |"


def main() -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(lines())
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
