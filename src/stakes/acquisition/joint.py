"""Batches that grow by one label at a time: what they can say, and which beliefs have them.

Sizes: N candidates, M contexts.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from stakes._array import Array, log_of
from stakes.acquisition.ensemble_batches import EnsembleBatch
from stakes.acquisition.gaussian_batches import GaussianBatch
from stakes.acquisition.scores import checked_context_weights
from stakes.acquisition.vector_batches import VectorGaussianBatch
from stakes.beliefs import (
    Belief,
    CategoricalEnsemble,
    GaussianBelief,
    NormalEnsemble,
    VectorGaussianBelief,
    VectorNormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.beliefs.switching import has_switches
from stakes.losses import AnyLoss


class Batch(Protocol):
    """Labels chosen so far, and what they would be worth with more."""

    @property
    def method(self) -> str:
        """How the joint reduction is computed."""

    @property
    def repeats(self) -> tuple[int, ...]:
        """The numbers of labels, each as informative as one candidate's, whose joint worth can be told."""

    @property
    def log_weights(self) -> Array:
        """[M]: the log of how often each context comes up."""

    def log_joint(self) -> float:
        """The log of the joint reduction of the labels so far."""

    def log_contexts(self) -> Array:
        """[M]: the log of what each context adds to the joint reduction of the labels so far."""

    def log_most(self) -> Array:
        """[M]: the log of what each context adds to the most that labels can be worth, however many."""

    def log_reduction(self, candidate: int) -> float:
        """The log of the joint reduction with one candidate added."""

    def log_reductions(self, count: int = 1) -> Array:
        """[N]: the log of the joint reduction with each candidate added, `count` labels like it."""

    def variance_gains(self) -> Array:
        """[N]: by how much each candidate would lower the variance that is left, averaged over contexts."""

    def add(self, candidate: int) -> float:
        """Add a candidate; returns the relative standard error of the joint reduction that it was chosen by."""


def start_batch(
    loss: AnyLoss, belief: Belief, context_weights: Any, rng: np.random.Generator, max_configurations: int
) -> Batch:
    """A batch of no labels yet."""
    log_weights = log_of(checked_context_weights(context_weights, belief))  # [M]
    if isinstance(belief, GaussianBelief | WarpedGaussianBelief):
        return GaussianBatch(loss, belief, log_weights)
    if isinstance(belief, VectorGaussianBelief):
        return VectorGaussianBatch(loss, belief, log_weights)
    if isinstance(belief, VoteEnsemble):
        belief = belief.as_probabilities()
    assert isinstance(belief, CategoricalEnsemble | NormalEnsemble | VectorNormalEnsemble)
    if isinstance(belief, NormalEnsemble) and has_switches(loss):
        belief = belief.refined().refined()  # a batch has cells of its rule, which do not split where an act switches
    return EnsembleBatch(loss, belief, log_weights, rng, max_configurations)


def has_batches(belief: Belief) -> bool:
    """Whether `start_batch` knows the belief."""
    gaussian = GaussianBelief | WarpedGaussianBelief | VectorGaussianBelief
    return isinstance(belief, gaussian | VoteEnsemble | CategoricalEnsemble | NormalEnsemble | VectorNormalEnsemble)


def obstacle(belief: Belief) -> Exception | None:
    """Why batches of this belief cannot grow, as the error to raise; None where they can."""
    if not has_batches(belief):
        return TypeError(
            f"joint batches are known for Gaussian and warped beliefs and for ensembles; got {type(belief).__name__}. "
            'score ranks single labels under any belief, and select(..., stochastic="power") draws from them.'
        )
    latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
    if isinstance(latent, GaussianBelief | VectorGaussianBelief) and latent.candidate_covariance is None:
        shape = "[N, N]" if isinstance(latent, GaussianBelief) else "[N, L, N, L]"
        return ValueError(
            f"a joint batch needs the covariances between candidates: give candidate_covariance, {shape} with the "
            'noise on its diagonal, or a function from a position to its row; select(..., stochastic="power") needs '
            "none"
        )
    return None
