"""Bayesian additive regression trees (`stochtree`): each sampled forest is a member, with the noise of its draw."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stochtree import BARTModel

from stakes.beliefs import CategoricalEnsemble, NormalEnsemble
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts

Host = NDArray[Any]


@adapts(BARTModel)
def prepare_bart(model: BARTModel, contexts: Any, *, target: str, **_: Any) -> RowsToBelief:
    """The posterior sample of forests: normal labels about each forest's mean, or probabilities of a probit model."""
    if not model.is_sampled():
        raise StakesError("this BARTModel was not sampled: call its sample(X_train=.., y_train=..) first")
    if getattr(model, "num_basis", 0) or getattr(model, "num_rfx_basis", 0) or getattr(model, "has_rfx", False):
        raise StakesError(
            "a BARTModel with a leaf basis or random effects needs more than rows to predict: give "
            "EnsembleOf(a function from rows to the draws of its mean)"
        )
    outcome = str(getattr(getattr(model, "outcome_model", None), "outcome", "continuous"))
    if outcome not in ("continuous", "binary"):
        raise StakesError(
            f"a BARTModel of numbers or of two classes is wanted; this one has the outcome {outcome!r}. Give "
            "EnsembleOf(a function from rows to the class probabilities [n, K, C] of its draws)"
        )
    if outcome == "binary":
        there = _classes(model, contexts)
        return lambda rows: CategoricalEnsemble(_classes(model, rows), there)
    mean, sd = _normals(model, contexts)
    there_sd = sd if target == "label" else np.zeros_like(sd)

    def belief(rows: Any) -> NormalEnsemble:
        here, here_sd = _normals(model, rows)
        return NormalEnsemble(here, here_sd, mean, there_sd)

    return belief


def _normals(model: Any, rows: Any) -> tuple[Host, Host]:
    """[n, K] each: means and standard deviations of labels under every sampled forest."""
    mean = np.asarray(model.predict(X=rows, terms="y_hat"))
    if getattr(model, "include_variance_forest", False):
        variance = np.asarray(model.predict(X=rows, terms="variance_forest"))
    else:
        own = model.global_var_samples if model.sample_sigma2_global else model.sigma2_init * model.y_std**2
        variance = np.broadcast_to(np.asarray(own), mean.shape)
    return mean, np.sqrt(variance)


def _classes(model: Any, rows: Any) -> Host:
    """[n, K, 2]: probabilities of the two classes under every sampled forest."""
    one = np.asarray(model.predict(X=rows, terms="y_hat", scale="probability"))
    return np.stack([1.0 - one, one], axis=-1)
