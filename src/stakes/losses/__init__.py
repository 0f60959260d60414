"""What being wrong costs: losses, and the potentials, transforms and weights they are made of."""

from stakes.losses.actions import CostMatrix, FiniteActions, FiniteChoice, ThresholdDecision, ZeroOne
from stakes.losses.base import AnyLoss, DistributionLoss, Loss
from stakes.losses.bregman import (
    BoxCox,
    BregmanLoss,
    ItakuraSaito,
    Linex,
    Mahalanobis,
    PoissonDeviance,
    SquaredError,
    WeightedBregman,
)
from stakes.losses.classes import BrierLoss, LogLoss, ScoringRule, SphericalLoss, align_classes
from stakes.losses.distributional import CRPS, AbsoluteError, LogScore, Pinball
from stakes.losses.domains import NONNEGATIVE, POSITIVE, REAL, Classes, Domain, Interval, Vectors
from stakes.losses.elicitation import Elicited, ElicitedLoss, Question, elicit
from stakes.losses.multi_label import MultiLabelScore, label_set_names, label_sets, multi_label
from stakes.losses.ordinal import ordinal_costs
from stakes.losses.per_context import PerContext
from stakes.losses.potentials import ConvexFunction, NegativeEntropy, NegativeLog, Norm, Potential, Quadratic, Square
from stakes.losses.transforms import Chart, Exponential, Function, Identity, Indicator, Power, Transform, VectorIdentity
from stakes.losses.weights import (
    ClassWeights,
    ExponentialLinearWeight,
    ExponentialWeight,
    InterpolatedWeight,
    Weight,
    WeightFunction,
)

__all__ = [
    "CRPS",
    "NONNEGATIVE",
    "POSITIVE",
    "REAL",
    "AbsoluteError",
    "AnyLoss",
    "BoxCox",
    "BregmanLoss",
    "BrierLoss",
    "Chart",
    "ClassWeights",
    "Classes",
    "ConvexFunction",
    "CostMatrix",
    "DistributionLoss",
    "Domain",
    "Elicited",
    "ElicitedLoss",
    "Exponential",
    "ExponentialLinearWeight",
    "ExponentialWeight",
    "FiniteActions",
    "FiniteChoice",
    "Function",
    "Identity",
    "Indicator",
    "InterpolatedWeight",
    "Interval",
    "ItakuraSaito",
    "Linex",
    "LogLoss",
    "LogScore",
    "Loss",
    "Mahalanobis",
    "MultiLabelScore",
    "NegativeEntropy",
    "NegativeLog",
    "Norm",
    "PerContext",
    "Pinball",
    "PoissonDeviance",
    "Potential",
    "Power",
    "Quadratic",
    "Question",
    "ScoringRule",
    "SphericalLoss",
    "Square",
    "SquaredError",
    "ThresholdDecision",
    "Transform",
    "VectorIdentity",
    "Vectors",
    "Weight",
    "WeightFunction",
    "WeightedBregman",
    "ZeroOne",
    "align_classes",
    "elicit",
    "label_set_names",
    "label_sets",
    "multi_label",
    "ordinal_costs",
]
