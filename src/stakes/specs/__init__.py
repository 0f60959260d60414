"""Losses and models in words: catalogues, specs that JSON keeps, and what they build.

Nothing heavy is imported until something is built.
"""

from stakes.specs.errors import SpecError
from stakes.specs.loss_catalogue import LOSSES, LossEntry, Option
from stakes.specs.losses import LossSpec, build_loss, decisions_of
from stakes.specs.model_catalogue import MODELS, ModelEntry
from stakes.specs.models import ModelSpec, build_model
from stakes.specs.words import parse_class_weights, parse_options, parse_weight, read_cost_matrix

__all__ = [
    "LOSSES",
    "MODELS",
    "LossEntry",
    "LossSpec",
    "ModelEntry",
    "ModelSpec",
    "Option",
    "SpecError",
    "build_loss",
    "build_model",
    "decisions_of",
    "parse_class_weights",
    "parse_options",
    "parse_weight",
    "read_cost_matrix",
]
