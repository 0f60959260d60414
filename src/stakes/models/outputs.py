"""Several outputs, each with a regressor of its own.

Sizes: N candidates, M contexts, d outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils.validation import check_is_fitted

from stakes.beliefs import Belief, GaussianBelief, VectorGaussianBelief
from stakes.models.base import Request, adapt, adapts
from stakes.models.kernels import Numbers


@adapts(MultiOutputRegressor)
def _outputs(model: MultiOutputRegressor, pool: Any, contexts: Any, request: Request) -> Belief:
    """Outputs are independent of each other, as the model has them; each regressor must be a Gaussian one."""
    check_is_fitted(model)
    beliefs = []
    for each in model.estimators_:
        belief = adapt(each, pool, contexts, request)
        if not isinstance(belief, GaussianBelief) or belief.noise_variance is None:
            raise TypeError(
                f"MultiOutputRegressor is served where its regressors are Gaussian; a {type(each).__name__} gives a "
                f"{type(belief).__name__}. Use GaussianProcess() or BayesianRidge(), or one belief for each output."
            )
        beliefs.append(belief)
    return independent(beliefs)


def independent(beliefs: list[GaussianBelief]) -> VectorGaussianBelief:
    """The belief about vectors whose numbers are independent."""
    joint = all(belief.candidate_covariance is not None for belief in beliefs)
    return VectorGaussianBelief(
        mean=np.stack([belief.mean for belief in beliefs], axis=-1),
        variance=_diagonal([belief.variance for belief in beliefs]),
        candidate_variance=_diagonal([belief.candidate_variance for belief in beliefs]),
        covariance=_diagonal([belief.covariance for belief in beliefs]),
        candidate_covariance=IndependentRows(beliefs) if joint else None,
        noise_variance=_diagonal([belief.noise_variance + np.zeros(belief.n_candidates) for belief in beliefs]),
    )


def _diagonal(parts: list[Numbers]) -> Numbers:
    """[..., d, d]: with `parts` along the diagonal."""
    return np.asarray(np.stack(parts, axis=-1)[..., None] * np.eye(len(parts)))


@dataclass(frozen=True, eq=False)
class IndependentRows:
    """i -> [d, N, d]: covariances of the label of candidate i with those of all."""

    beliefs: list[GaussianBelief]

    def __call__(self, i: int) -> Numbers:
        """The rows of candidate i."""
        rows = (belief.candidate_covariance for belief in self.beliefs)
        return np.moveaxis(_diagonal([each(i) if callable(each) else np.asarray(each)[i] for each in rows]), 1, 0)
