"""Tables with a target: losses and models in words, labels, and which rows to label next.

scikit-learn is imported when something is fitted, not before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    read_cost_matrix,
)
from stakes.tabular.model_specs import MODELS, ModelEntry, ModelSpec, build_model
from stakes.tabular.worksheet import Brief, Worksheet, read_worksheet

if TYPE_CHECKING:
    from stakes.tabular.suggest import Appraisal, appraise

__all__ = [
    "LOSSES",
    "MODELS",
    "Appraisal",
    "Brief",
    "LossEntry",
    "LossSpec",
    "ModelEntry",
    "ModelSpec",
    "Option",
    "Worksheet",
    "appraise",
    "build_loss",
    "build_model",
    "decisions_of",
    "parse_class_weights",
    "parse_options",
    "parse_weight",
    "read_cost_matrix",
    "read_worksheet",
]

_NEEDS_SKLEARN = {"Appraisal": "suggest", "appraise": "suggest", "StakesError": "fitting"}


def __getattr__(name: str) -> Any:
    if name not in _NEEDS_SKLEARN:
        raise AttributeError(f"module 'stakes.tabular' has no attribute {name!r}")
    return getattr(import_module(f"stakes.tabular.{_NEEDS_SKLEARN[name]}"), name)
