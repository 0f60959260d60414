"""Beliefs of GPyTorch's exact Gaussian processes, as tensors on the device of the model.

Sizes: N candidates, M contexts, B rows of any block, n labels so far, p features.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import gpytorch
import torch
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.models.exact_prediction_strategies import DefaultPredictionStrategy, prediction_strategy
from linear_operator.utils.cholesky import psd_safe_cholesky

from stakes.beliefs import Belief, GaussianBelief
from stakes.models.base import Request, adapt, adapts
from stakes.models.device_posterior import DevicePosterior, Tensor
from stakes.models.joint_blocks import joint_belief
from stakes.models.torch_asking import asking, check_labels, rows_beside
from stakes.models.torch_kept import kept
from stakes.models.torch_outputs import together


@adapts(gpytorch.models.ExactGP)
def _exact(model: Any, pool: Any, contexts: Any, request: Request) -> Belief:
    """The exact joint posterior, as `model(rows)` has it; one of BoTorch as `model.posterior(rows)` has it.

    Noise is that of a Gaussian likelihood. Noise that is fixed for each label so far says nothing of labels to come:
    its mean is taken, with a warning where it differs.
    """
    if hasattr(model, "posterior"):
        from stakes.models.botorch_processes import botorch_belief

        return botorch_belief(model, pool, contexts, request)
    check_labels(model)
    with asking(model):
        train = model.train_inputs[0]
        here, there = (rows_beside(train, each, train.shape[1]) for each in (pool, contexts))
        return exact_belief(model, here, there, request)


@adapts(gpytorch.models.IndependentModelList)
def _list(model: Any, pool: Any, contexts: Any, request: Request) -> Belief:
    """A number of the label for each model of the list."""
    return together([adapt(each, pool, contexts, request) for each in model.models])


def exact_belief(
    model: Any, pool: Tensor, contexts: Tensor, request: Request, offset: float = 0.0, unit: float = 1.0
) -> GaussianBelief:
    """Of offset + unit f, for rows as `model.forward` takes them, of a model that is in the mode for asking."""
    noise, train = noise_to_come(model.likelihood), model.train_inputs[0]
    if model.forward(train[:1]).mean.ndim != 1:
        raise TypeError(
            f"a {type(model).__name__} has several outputs that are correlated, which is not served. Give a model for "
            "each: BoTorch's ModelListGP of single outputs, or one of them alone."
        )
    known = kept(model, _solved)
    if known.solved is None:
        return joint_belief(*_told(model, noise, offset, unit), pool, contexts, request)
    factor, solved = known.solved
    posterior = DevicePosterior(ModulePrior(model, noise), train, factor, solved, offset, unit)
    return posterior.belief(pool, known.targets_at(contexts, posterior), request)


def _solved(model: Any) -> tuple[Tensor, Tensor] | None:
    """[n, n], [n]: L, and L^-1 (y - prior mean); None where a sparse or structured kernel predicts in its own way."""
    prior = model.forward(model.train_inputs[0])
    strategy = prediction_strategy(model.train_inputs, prior, model.train_targets, model.likelihood)
    if type(strategy) is not DefaultPredictionStrategy:
        return None
    labels = model.likelihood(prior, model.train_inputs)
    factor = psd_safe_cholesky(labels.covariance_matrix)
    rest = (model.train_targets - labels.mean)[:, None]
    return factor, torch.linalg.solve_triangular(factor, rest, upper=False)[:, 0]


@dataclass(frozen=True, eq=False)
class ModulePrior:
    """What `model.forward` says of f before any label."""

    model: Any
    noise_variance: float

    def mean(self, rows: Tensor) -> Tensor:
        """[B]: of f."""
        return self.model.forward(rows).mean

    def variance(self, rows: Tensor) -> Tensor:
        """[B]: of f."""
        return self.model.forward(rows).lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2).clone()

    def noise(self, rows: Tensor) -> Tensor:
        """[B]: the same everywhere."""
        return rows.new_full((len(rows),), self.noise_variance)

    def covariance(self, rows: Tensor, others: Tensor) -> Tensor:
        """[B, B']: that block of the lazy covariance of all, which is all that is computed of it."""
        with asking(self.model) if self.model.training else nullcontext():  # a batch asks when the belief is long made
            both = self.model.forward(torch.cat([rows, others])).lazy_covariance_matrix
            return both[: len(rows), len(rows) :].to_dense().clone(memory_format=torch.contiguous_format)


def _told(model: Any, noise: float, offset: float, unit: float) -> tuple[Any, Any]:
    """What the model says jointly of rows, and the noise there."""

    def joint(rows: Tensor) -> tuple[Tensor, Tensor]:
        with asking(model):
            told = model(rows)
            return offset + unit * told.mean, unit**2 * told.covariance_matrix

    return joint, lambda rows: rows.new_full((len(rows),), unit**2 * noise)


def noise_to_come(likelihood: Any) -> float:
    """The noise variance of a label to come."""
    if type(likelihood) not in (GaussianLikelihood, FixedNoiseGaussianLikelihood):
        raise TypeError(
            "a Gaussian process needs a GaussianLikelihood or FixedNoiseGaussianLikelihood for its belief to be "
            f"Gaussian; got {type(likelihood).__name__}. For another, draw members from it and give EnsembleOf."
        )
    noise = likelihood.noise.detach()
    if float(noise.max()) > float(noise.min()):
        warnings.warn(
            f"the likelihood has a noise variance for each of the {noise.numel()} labels so far, and none for labels "
            f"to come: their mean, {float(noise.mean()):.4g}, is taken for those.",
            UserWarning,
            stacklevel=2,
        )
    return float(noise.mean())


if "botorch" in sys.modules:  # models that are not exact have adapters there
    from stakes.models import botorch_processes as _botorch_processes  # noqa: F401
