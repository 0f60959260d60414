"""What is believed: labels of candidates and targets of contexts, jointly."""

from stakes.beliefs.base import (
    BatchBelief,
    Belief,
    DistributionBelief,
    Integrand,
    LogMomentBelief,
    Reference,
    reference_at,
)
from stakes.beliefs.categorical import CategoricalEnsemble, VoteEnsemble
from stakes.beliefs.draws import DrawsBelief
from stakes.beliefs.gaussian import GaussianBelief
from stakes.beliefs.mixture import GaussianMixtureBelief
from stakes.beliefs.noisy import noisy_labels
from stakes.beliefs.normal import NormalEnsemble
from stakes.beliefs.outcomes import Automatic, MemberNodes, MemberPanels, MixtureGrid, OutcomeRule
from stakes.beliefs.vector import VectorGaussianBelief
from stakes.beliefs.vector_ensemble import VectorNormalEnsemble
from stakes.beliefs.vector_integration import SymmetricNodes
from stakes.beliefs.warped import BoxCoxWarp, LogWarp, MonotoneWarp, SoftplusWarp, Warp, WarpedGaussianBelief
from stakes.losses.distributions import Distribution

__all__ = [
    "Automatic",
    "BatchBelief",
    "Belief",
    "BoxCoxWarp",
    "CategoricalEnsemble",
    "Distribution",
    "DistributionBelief",
    "DrawsBelief",
    "GaussianBelief",
    "GaussianMixtureBelief",
    "Integrand",
    "LogMomentBelief",
    "LogWarp",
    "MemberNodes",
    "MemberPanels",
    "MixtureGrid",
    "MonotoneWarp",
    "NormalEnsemble",
    "OutcomeRule",
    "Reference",
    "SoftplusWarp",
    "SymmetricNodes",
    "VectorGaussianBelief",
    "VectorNormalEnsemble",
    "VoteEnsemble",
    "Warp",
    "WarpedGaussianBelief",
    "noisy_labels",
    "reference_at",
]
