"""The models by name, and what each is good for: a table without the models themselves, so that it is there at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Task: TypeAlias = Literal["classes", "real"]
"""What `stakes.models.default` calls them."""


@dataclass(frozen=True)
class Recipe:
    """A class by "module:Name", and the parameters that it is made with.

    A parameter may be another recipe, {"model": "module:Name", "parameters": {...}}, or a function of NumPy,
    {"function": "numpy:log"}.
    """

    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelEntry:
    """A model by name."""

    name: str
    purpose: str
    recipes: Mapping[Task, Recipe]
    """One for each kind of target that it serves."""


_SKLEARN = "sklearn.ensemble"
_FOREST = {"n_estimators": 100}
_LEAVES = {**_FOREST, "min_samples_leaf": 5, "bootstrap": True, "oob_score": True}  # the noise of labels is out of bag
_DEFAULT = Recipe("stakes.models:DefaultModel")

_ENTRIES = (
    ModelEntry(
        "default",
        "A Gaussian process for numbers, a random forest for classes; says what it did to every column.",
        {"real": _DEFAULT, "classes": _DEFAULT},
    ),
    ModelEntry(
        "gaussian-process",
        "Smooth curves with honest error bars, at its best below a thousand labels.",
        {
            "real": Recipe("stakes.models:GaussianProcess"),
            "classes": Recipe("sklearn.gaussian_process:GaussianProcessClassifier"),
        },
    ),
    ModelEntry(
        "log-gaussian-process",
        "A Gaussian process of the logarithm: for positive numbers such as prices, and losses for positive targets.",
        {
            "real": Recipe(
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
        "random-forest",
        "Trees that vote: little to tune, copes with many columns, jumps and categories.",
        {
            "real": Recipe(f"{_SKLEARN}:RandomForestRegressor", _LEAVES),
            "classes": Recipe(f"{_SKLEARN}:RandomForestClassifier", _FOREST),
        },
    ),
    ModelEntry(
        "extra-trees",
        "Like a random forest, with more random splits: smoother, and quicker to fit.",
        {
            "real": Recipe(f"{_SKLEARN}:ExtraTreesRegressor", _LEAVES),
            "classes": Recipe(f"{_SKLEARN}:ExtraTreesClassifier", _FOREST),
        },
    ),
    ModelEntry(
        "bayesian-ridge",
        "A straight line in every column: quick, and hard to beat with few labels and simple effects.",
        {"real": Recipe("sklearn.linear_model:BayesianRidge")},
    ),
    ModelEntry(
        "bootstrap",
        "Copies of any model, each fitted on rows drawn anew: where they differ, labels are worth most.",
        {
            "real": Recipe("stakes.models:Bootstrap", {"estimator": {"model": "sklearn.linear_model:Ridge"}}),
            "classes": Recipe(
                "stakes.models:Bootstrap",
                {"estimator": {"model": "sklearn.linear_model:LogisticRegression", "parameters": {"max_iter": 1000}}},
            ),
        },
    ),
)

MODELS: dict[str, ModelEntry] = {entry.name: entry for entry in _ENTRIES}
"""By the name that the command line takes."""
