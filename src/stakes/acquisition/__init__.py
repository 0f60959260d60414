"""Which label to buy: expected uncertainty reduction for every pair of a loss and a belief."""

from stakes.acquisition import closed as _closed  # noqa: F401 (registers its forms)
from stakes.acquisition import decisions as _decisions  # noqa: F401 (registers its forms)
from stakes.acquisition import densities as _densities  # noqa: F401 (registers its forms)
from stakes.acquisition import fused as _fused  # noqa: F401 (registers its forms)
from stakes.acquisition import profile_totals as _profile_totals  # noqa: F401 (registers its forms)
from stakes.acquisition import quadratic as _quadratic  # noqa: F401 (registers its forms)
from stakes.acquisition import soft as _soft  # noqa: F401 (registers its forms)
from stakes.acquisition import vector as _vector  # noqa: F401 (registers its forms)
from stakes.acquisition import votes as _votes  # noqa: F401 (registers its forms)
from stakes.acquisition.batches import Selection, select
from stakes.acquisition.bounds import Best, best
from stakes.acquisition.fallback import fallback_scores
from stakes.acquisition.forms import ANY, Form, Reduction, Total, find_form, register
from stakes.acquisition.fused import fused_form
from stakes.acquisition.profile import AccuracyWarning
from stakes.acquisition.reduction import (
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    uncertainty,
)
from stakes.acquisition.scores import effective_context_weights, integration_error, score
from stakes.acquisition.streaming import best_streamed

__all__ = [
    "ANY",
    "AccuracyWarning",
    "Best",
    "Form",
    "Reduction",
    "Selection",
    "Total",
    "best",
    "best_streamed",
    "effective_context_weights",
    "expected_posterior_uncertainty",
    "expected_reduction",
    "expected_regret",
    "fallback_scores",
    "find_form",
    "fused_form",
    "integration_error",
    "register",
    "score",
    "select",
    "uncertainty",
]
