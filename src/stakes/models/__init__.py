"""Fitted models as beliefs: what a model you already have says of labels and targets, jointly."""

from stakes.models.base import Adapter, Request, belief_of, register_model
from stakes.models.default_model import DefaultModel, default
from stakes.models.encoding import TableEncoder

__all__ = ["Adapter", "DefaultModel", "Request", "TableEncoder", "belief_of", "default", "register_model"]
