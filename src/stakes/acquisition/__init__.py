"""Which label to buy: expected uncertainty reduction for every pair of a loss and a belief."""

from stakes.acquisition import centred as _centred  # noqa: F401 (registers its forms)
from stakes.acquisition import closed_forms as _closed_forms  # noqa: F401 (registers its forms)
from stakes.acquisition import mixture_decisions as _mixture_decisions  # noqa: F401 (registers its forms)
from stakes.acquisition import mixtures as _mixtures  # noqa: F401 (registers its forms)
from stakes.acquisition import normals as _normals  # noqa: F401 (registers its forms)
from stakes.acquisition import profile as _profile  # noqa: F401 (registers its forms)
from stakes.acquisition import votes as _votes  # noqa: F401 (registers its forms)
from stakes.acquisition.batches import Selection, fallback_scores, select
from stakes.acquisition.centred import fused_form
from stakes.acquisition.draws import sampling_error
from stakes.acquisition.forms import ANY, Form, Reduction, Total, find_form, register
from stakes.acquisition.honest import HonestReduction, honest_reduction, honest_scores
from stakes.acquisition.scores import (
    effective_context_weights,
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    integration_error,
    score,
    uncertainty,
)
from stakes.acquisition.top_k import Best, best, best_streamed
from stakes.exceptions import AccuracyWarning

__all__ = [
    "ANY",
    "AccuracyWarning",
    "Best",
    "Form",
    "HonestReduction",
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
    "honest_reduction",
    "honest_scores",
    "integration_error",
    "register",
    "sampling_error",
    "score",
    "select",
    "uncertainty",
]
