"""Tables with a target: losses and models by name, labels, and which rows to label next.

scikit-learn is imported when something is fitted, not before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stakes.tabular.costs import read_cost_matrix
from stakes.tabular.loss_specs import (
    LOSSES,
    LossEntry,
    LossSpec,
    Option,
    build_loss,
    decisions_of,
    parse_class_weights,
    parse_options,
    parse_weight,
)
from stakes.tabular.model_specs import MODELS, ModelEntry, ModelSpec, build_model
from stakes.tabular.worksheet import Brief, Worksheet, read_worksheet

if TYPE_CHECKING:
    from stakes.tabular.suggestions import build_problem, suggest

__all__ = [
    "LOSSES",
    "MODELS",
    "Brief",
    "LossEntry",
    "LossSpec",
    "ModelEntry",
    "ModelSpec",
    "Option",
    "Worksheet",
    "build_loss",
    "build_model",
    "build_problem",
    "decisions_of",
    "parse_class_weights",
    "parse_options",
    "parse_weight",
    "read_cost_matrix",
    "read_worksheet",
    "suggest",
]


def __getattr__(name: str) -> Any:
    if name not in ("build_problem", "suggest"):
        raise AttributeError(f"module 'stakes.tabular' has no attribute {name!r}")
    return getattr(import_module("stakes.tabular.suggestions"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
