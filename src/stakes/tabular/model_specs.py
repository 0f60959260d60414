"""Models by name, or by "module:Name", with parameters: what JSON keeps, and the estimator that it stands for.

The catalogue `MODELS` names the models without importing them, so that it is there at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from stakes._utils.arguments import as_seed
from stakes.exceptions import StakesError
from stakes.tabular.loss_specs import as_fields, as_json, class_with, constructed, is_path, refuse_unknown

Task: TypeAlias = Literal["classes", "real"]
"""What `stakes.models.default` calls them."""
Recipe: TypeAlias = tuple[str, Mapping[str, Any]]
"""A class by "module:Name", and the parameters that it is made with.

A parameter may be another model, {"model": "module:Name", "parameters": {...}}, or a function of NumPy,
{"function": "numpy:log"}.
"""

_ESTIMATOR = ("fit", "get_params", "set_params")
_PART = ("get_params", "set_params")  # of what is within an estimator: another one, or the kernel of a process
_OURS = {"task", "classes", "random_state"}  # parameters of the default model that the table and the options give


@dataclass(frozen=True)
class ModelEntry:
    """A model of the catalogue.

    Args:
        name: As the command line takes it.
        purpose: What it is good for.
        recipes: For each kind of target that it serves, a class by "module:Name" and its parameters.

    Examples:
        >>> sorted(MODELS["random-forest"].recipes)
        ['classes', 'real']
    """

    name: str
    purpose: str
    recipes: Mapping[Task, Recipe]


_SKLEARN = "sklearn.ensemble"
_FOREST = {"n_estimators": 100}
_LEAVES = {**_FOREST, "min_samples_leaf": 5, "bootstrap": True, "oob_score": True}  # the noise of labels is out of bag
_DEFAULT: Recipe = ("stakes.models:DefaultModel", {})

_ENTRIES = (
    ModelEntry(
        "default",
        "A Bayesian process for numbers, extremely randomised trees for classes; says what it did to every column.",
        {"real": _DEFAULT, "classes": _DEFAULT},
    ),
    ModelEntry(
        "gaussian-process",
        "Smooth curves with honest error bars, at its best below a thousand labels.",
        {
            "real": ("stakes.models:GaussianProcess", {}),
            "classes": ("sklearn.gaussian_process:GaussianProcessClassifier", {}),
        },
    ),
    ModelEntry(
        "bayesian-process",
        "A Gaussian process averaged over its hyperparameters, with a length for each column: the default for numbers.",
        {"real": ("stakes.models:BayesianProcess", {})},
    ),
    ModelEntry(
        "log-gaussian-process",
        "A Gaussian process of the logarithm: for positive numbers such as prices, and losses for positive targets.",
        {
            "real": (
                "sklearn.compose:TransformedTargetRegressor",
                {
                    "regressor": {"model": "stakes.models:GaussianProcess"},
                    "func": {"function": "numpy:log"},
                    "inverse_func": {"function": "numpy:exp"},
                },
            )
        },
    ),
    ModelEntry(
        "count-process",
        "Counts, and amounts that may be 0: Poisson labels about a rate that bends as a process does, or vary more.",
        {"real": ("stakes.models:CountProcess", {})},
    ),
    ModelEntry(
        "random-forest",
        "Trees that vote: little to tune, copes with many columns, jumps and categories.",
        {
            "real": (f"{_SKLEARN}:RandomForestRegressor", _LEAVES),
            "classes": (f"{_SKLEARN}:RandomForestClassifier", _FOREST),
        },
    ),
    ModelEntry(
        "extra-trees",
        "Like a random forest, with more random splits: smoother, and quicker to fit.",
        {
            "real": (f"{_SKLEARN}:ExtraTreesRegressor", _LEAVES),
            "classes": (f"{_SKLEARN}:ExtraTreesClassifier", _FOREST),
        },
    ),
    ModelEntry(
        "bayesian-ridge",
        "A straight line in every column: quick, and hard to beat with few labels and simple effects.",
        {"real": ("sklearn.linear_model:BayesianRidge", {})},
    ),
    ModelEntry(
        "bootstrap",
        "Copies of any model, each fitted on rows drawn anew: where they differ, labels are worth most.",
        {
            "real": ("stakes.models:Bootstrap", {"estimator": {"model": "sklearn.linear_model:Ridge"}}),
            "classes": (
                "stakes.models:Bootstrap",
                {"estimator": {"model": "sklearn.linear_model:LogisticRegression", "parameters": {"max_iter": 1000}}},
            ),
        },
    ),
)

MODELS: dict[str, ModelEntry] = {entry.name: entry for entry in _ENTRIES}
"""The models by name."""


@dataclass(frozen=True)
class ModelSpec:
    """A model by name, as JSON keeps it.

    Args:
        name: One of `MODELS`, or a scikit-learn estimator by "module:Name". Building that imports the module, which
            runs it: build what comes from people you trust.
        parameters: Of the estimator. One may be an estimator itself, {"model": "module:Name", "parameters": {...}}, or
            a function of NumPy, {"function": "numpy:log"}.

    Raises:
        StakesError: If there is no such model, or JSON cannot keep a parameter.

    Examples:
        >>> spec = ModelSpec("random-forest", {"n_estimators": 300})
        >>> ModelSpec.from_dict(spec.to_dict()) == spec
        True
    """

    name: str = "default"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", as_json(f"parameters of {self.name!r}", self.parameters))
        if not is_path(self.name):
            refuse_unknown("model", [self.name], MODELS, ", or module:Name for any estimator")

    def to_dict(self) -> dict[str, Any]:
        """All fields, as JSON keeps them."""
        return {"name": self.name, "parameters": dict(self.parameters)}

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> ModelSpec:
        """From JSON.

        Args:
            kept: What `to_dict` gave.

        Returns:
            The spec.

        Raises:
            StakesError: If it is something else.
        """
        return ModelSpec(**as_fields("a model", kept, ("name", "parameters")))


def build_model(
    spec: ModelSpec, task: Task, classes: Sequence[str] | None = None, *, random_state: int | np.random.Generator = 0
) -> Any:
    """Build the estimator of a spec, not fitted yet.

    The default model gets the task and all classes; any other gets a `TableEncoder` before it, unless it chooses its
    columns by name, as a `ColumnTransformer` does.

    Args:
        spec: The model by name.
        task: "real" or "classes": what the target is.
        classes: All classes in their order.
        random_state: For every parameter `random_state` that is left open: a whole number or a generator.

    Returns:
        An estimator that takes a `stakes.files.Frame`.

    Raises:
        StakesError: If it cannot be built, or serves no such target.

    Examples:
        >>> build_model(ModelSpec("bayesian-ridge"), "real").steps[1][0]
        'model'
    """
    from sklearn.pipeline import Pipeline

    from stakes.models import DefaultModel, TableEncoder
    from stakes.models.encoding import NamedColumns

    if task not in ("classes", "real"):
        raise StakesError(f"task must be 'classes' or 'real'; got {task!r}")
    path, parameters = _recipe(spec, task)
    kind, seed = class_with(path, _ESTIMATOR, "estimator"), as_seed(random_state)
    if issubclass(kind, DefaultModel):
        if theirs := sorted(_OURS & set(parameters)):
            raise StakesError(f"the default model is told {theirs[0]} by the table and the loss; leave it out")
        known = {"task": task, "classes": None if classes is None else list(classes), "random_state": seed}
        return constructed(spec.name, kind, {**parameters, **known})
    estimator = _seeded(_made(path, parameters), seed)
    _check_task(spec, estimator, task)
    columns = NamedColumns() if _names_columns(estimator) else TableEncoder()
    return Pipeline([("columns", columns), ("model", _with_belief(spec, estimator, seed))])


def _recipe(spec: ModelSpec, task: Task) -> Recipe:
    if is_path(spec.name):
        return spec.name, spec.parameters
    recipes = MODELS[spec.name].recipes
    if task not in recipes:
        able = ", ".join(entry.name for entry in MODELS.values() if task in entry.recipes)
        raise StakesError(f"{spec.name} has no model of {_targets(task)}; those that have are {able}")
    path, usual = recipes[task]
    return path, {**usual, **spec.parameters}


def _made(path: str, parameters: Mapping[str, Any], methods: tuple[str, ...] = _ESTIMATOR) -> Any:
    """The estimator, its parameters made before it; those of parts, "part__name", set after."""
    if not is_path(path):
        raise StakesError(f"a model within a model goes by module:Name; got {path!r}")
    kind = class_with(path, methods, "estimator")
    values = {name: _value(value) for name, value in parameters.items()}
    estimator = constructed(path, kind, {name: value for name, value in values.items() if "__" not in name})
    try:
        return estimator.set_params(**{name: value for name, value in values.items() if "__" in name})
    except ValueError as error:
        raise StakesError(f"{path}: {error}") from error


def _value(value: Any) -> Any:
    if isinstance(value, dict) and "model" in value:
        refuse_unknown("field of a model", value, ("model", "parameters"))
        return _made(value["model"], as_json("parameters", value.get("parameters", {})), _PART)
    if isinstance(value, dict) and set(value) == {"function"}:
        return _function(value["function"])
    if isinstance(value, list):
        parts = [_value(each) for each in value]
        named = parts and isinstance(parts[0], str) and any(hasattr(each, "get_params") for each in parts)
        return tuple(parts) if named else parts  # a step of a pipeline, (name, estimator)
    return value


def _function(path: str) -> Any:
    """A function of NumPy on numbers, and no other: a file must not name what is then called."""
    module, _, name = str(path).partition(":")
    function = getattr(np, name, None) if module == "numpy" else None
    if not isinstance(function, np.ufunc):
        raise StakesError(f"a function must be one of NumPy on numbers, such as numpy:log; got {path!r}")
    return function


def _seeded(estimator: Any, seed: int) -> Any:
    parameters = estimator.get_params(deep=True)
    left_open = [name for name, value in parameters.items() if name.split("__")[-1] == "random_state" and value is None]
    return estimator.set_params(**dict.fromkeys(left_open, seed))


def _names_columns(estimator: Any) -> bool:
    """Whether an estimator, or a part of it, chooses columns by name."""
    from sklearn.compose import ColumnTransformer

    parts = estimator.get_params(deep=True)
    named = [parts.get(name) for name in ("cat_features", "categorical_features")]
    if any(isinstance(each, list | tuple) and any(isinstance(one, str) for one in each) for each in named):
        return True
    return any(isinstance(each, ColumnTransformer) for each in (estimator, *parts.values()))


def _check_task(spec: ModelSpec, estimator: Any, task: Task) -> None:
    """Refuse an estimator for the other kind of target."""
    from sklearn.base import is_classifier, is_regressor

    name = type(estimator).__name__
    if (is_regressor if task == "classes" else is_classifier)(estimator):
        other: Task = "real" if task == "classes" else "classes"
        raise StakesError(f"{spec.name}: {name} is a model of {_targets(other)}, and the target is {_targets(task)}")


def _with_belief(spec: ModelSpec, estimator: Any, seed: int) -> Any:
    """The estimator as one that a belief can be had of: copies of it where it says nothing of how sure it is."""
    from stakes.models.labelled import ready_to_fit

    try:
        return ready_to_fit(estimator, seed % 2**32)
    except TypeError as error:
        raise StakesError(f"{spec.name}: {error}") from error


def _targets(task: Task) -> str:
    return "classes" if task == "classes" else "numbers"
