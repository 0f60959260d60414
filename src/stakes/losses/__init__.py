"""What being wrong costs: losses, and the potentials, transforms and weights they are made of."""

from stakes.losses.actions import CostMatrix, FiniteActions, FiniteChoice, ThresholdDecision, ZeroOne
from stakes.losses.base import Loss
from stakes.losses.bregman import (
    BoxCox,
    BregmanLoss,
    ItakuraSaito,
    Linex,
    PoissonDeviance,
    SquaredError,
    WeightedBregman,
)
from stakes.losses.classes import BrierLoss, LogLoss, ScoringRule, SphericalLoss
from stakes.losses.potentials import ConvexFunction, NegativeEntropy, NegativeLog, Norm, Potential, Quadratic, Square
from stakes.losses.transforms import (
    Chart,
    Exponential,
    Function,
    Identity,
    Indicator,
    Power,
    Transform,
    VectorIdentity,
)
from stakes.losses.vector_weights import ExponentialLinearWeight
from stakes.losses.vectors import Mahalanobis
from stakes.losses.weights import ClassWeights, ExponentialWeight, InterpolatedWeight, Weight, WeightFunction

__all__ = [
    "BoxCox",
    "BregmanLoss",
    "BrierLoss",
    "Chart",
    "ClassWeights",
    "ConvexFunction",
    "CostMatrix",
    "Exponential",
    "ExponentialLinearWeight",
    "ExponentialWeight",
    "FiniteActions",
    "FiniteChoice",
    "Function",
    "Identity",
    "Indicator",
    "InterpolatedWeight",
    "ItakuraSaito",
    "Linex",
    "LogLoss",
    "Loss",
    "Mahalanobis",
    "NegativeEntropy",
    "NegativeLog",
    "Norm",
    "PoissonDeviance",
    "Potential",
    "Power",
    "Quadratic",
    "ScoringRule",
    "SphericalLoss",
    "Square",
    "SquaredError",
    "ThresholdDecision",
    "Transform",
    "VectorIdentity",
    "Weight",
    "WeightFunction",
    "WeightedBregman",
    "ZeroOne",
]
