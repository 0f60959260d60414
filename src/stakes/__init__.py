"""Loss-driven Bayesian active learning: which label to buy next so that your own loss falls fastest."""

from __future__ import annotations

TYPE_CHECKING = False  # that of `typing`; nothing is imported here, so that the command line hears Ctrl-C early
if TYPE_CHECKING:
    from typing import Any

    from stakes.acquisition import (
        AccuracyWarning,
        Selection,
        effective_context_weights,
        expected_posterior_uncertainty,
        expected_reduction,
        expected_regret,
        find_form,
        honest_reduction,
        honest_scores,
        integration_error,
        register,
        sampling_error,
        score,
        select,
        uncertainty,
    )
    from stakes.beliefs import (
        BoxCoxWarp,
        CategoricalEnsemble,
        DrawsBelief,
        GaussianBelief,
        GaussianMixtureBelief,
        LogWarp,
        NormalEnsemble,
        SoftplusWarp,
        VectorGaussianBelief,
        VectorNormalEnsemble,
        VoteEnsemble,
        WarpedGaussianBelief,
    )
    from stakes.campaign import Campaign
    from stakes.evaluation import audit
    from stakes.losses import (
        CRPS,
        AbsoluteError,
        BoxCox,
        BregmanLoss,
        BrierLoss,
        CostMatrix,
        ExponentialLinearWeight,
        ExponentialWeight,
        FiniteActions,
        InterpolatedWeight,
        ItakuraSaito,
        Linex,
        LogLoss,
        LogScore,
        Mahalanobis,
        PerContext,
        Pinball,
        PoissonDeviance,
        ScoringRule,
        SphericalLoss,
        SquaredError,
        ThresholdDecision,
        Weight,
        ZeroOne,
        elicit,
    )
    from stakes.models import BayesianProcess, Bootstrap, CountProcess, GaussianProcess, default
    from stakes.ranking import cold_start, outlook, rank
    from stakes.simulation import simulate
    from stakes.stream import Stream

__version__ = "0.1.0"

__all__ = [
    "CRPS",
    "AbsoluteError",
    "AccuracyWarning",
    "BayesianProcess",
    "Bootstrap",
    "BoxCox",
    "BoxCoxWarp",
    "BregmanLoss",
    "BrierLoss",
    "Campaign",
    "CategoricalEnsemble",
    "CostMatrix",
    "CountProcess",
    "DrawsBelief",
    "ExponentialLinearWeight",
    "ExponentialWeight",
    "FiniteActions",
    "GaussianBelief",
    "GaussianMixtureBelief",
    "GaussianProcess",
    "InterpolatedWeight",
    "ItakuraSaito",
    "Linex",
    "LogLoss",
    "LogScore",
    "LogWarp",
    "Mahalanobis",
    "NormalEnsemble",
    "PerContext",
    "Pinball",
    "PoissonDeviance",
    "ScoringRule",
    "Selection",
    "SoftplusWarp",
    "SphericalLoss",
    "SquaredError",
    "Stream",
    "ThresholdDecision",
    "VectorGaussianBelief",
    "VectorNormalEnsemble",
    "VoteEnsemble",
    "WarpedGaussianBelief",
    "Weight",
    "ZeroOne",
    "audit",
    "cold_start",
    "default",
    "effective_context_weights",
    "elicit",
    "expected_posterior_uncertainty",
    "expected_reduction",
    "expected_regret",
    "find_form",
    "honest_reduction",
    "honest_scores",
    "integration_error",
    "outlook",
    "rank",
    "register",
    "sampling_error",
    "score",
    "select",
    "simulate",
    "uncertainty",
]

# A name is imported when it is first used: the command line answers before scikit-learn would be there.
_HOMES = ("stakes.losses", "stakes.beliefs", "stakes.acquisition", "stakes.ranking", "stakes.simulation")
_ELSEWHERE = {
    "Campaign": "stakes.campaign",
    "audit": "stakes.evaluation",
    "Stream": "stakes.stream",
}  # the first needs none of those
_ELSEWHERE |= dict.fromkeys(
    ("BayesianProcess", "Bootstrap", "CountProcess", "GaussianProcess", "default"), "stakes.models"
)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'stakes' has no attribute {name!r}")
    from importlib import import_module

    homes = (_ELSEWHERE[name],) if name in _ELSEWHERE else _HOMES
    home = next(module for module in map(import_module, homes) if hasattr(module, name))
    globals()[name] = getattr(home, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
