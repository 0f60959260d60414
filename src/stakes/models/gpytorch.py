"""Several models of torch, one for each output: their beliefs as one, about vectors whose numbers are independent.

Sizes: N candidates, M contexts, d outputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import gpytorch
import numpy as np
import torch
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.models.exact_prediction_strategies import DefaultPredictionStrategy, prediction_strategy
from linear_operator.utils.cholesky import psd_safe_cholesky

from stakes.beliefs import Belief, GaussianBelief, VectorGaussianBelief
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, Target, adapts, prepare_belief
from stakes.models.gp_device import DevicePosterior, Tensor, prepare_joint


def together(beliefs: Sequence[Any]) -> Belief:
    """The belief about labels and targets that hold a number of each of `beliefs`; of one, that one."""
    if len(beliefs) == 1:
        return cast(Belief, beliefs[0])
    if odd := [type(each).__name__ for each in beliefs if not isinstance(each, GaussianBelief)]:
        raise TypeError(
            "outputs are served together where each is one number with a Gaussian belief; one of these is a "
            f"{odd[0]}. Ask that model by itself."
        )
    return VectorGaussianBelief(
        torch.stack([each.mean for each in beliefs], dim=-1),
        _diagonal(beliefs, "variance"),
        _diagonal(beliefs, "candidate_variance"),
        _diagonal(beliefs, "covariance"),
        _rows(beliefs),
        _diagonal(beliefs, "noise_variance"),
    )


def _diagonal(beliefs: Sequence[Any], name: str) -> Any:
    """[..., d, d]: nothing between outputs."""
    return torch.diag_embed(torch.stack([getattr(each, name) for each in beliefs], dim=-1))


def _rows(beliefs: Sequence[Any]) -> Any:
    """I -> [d, N, d], where covariances between candidates were asked for."""
    rows = [each.candidate_covariance for each in beliefs]
    if rows[0] is None:
        return None
    return lambda i: torch.diag_embed(torch.stack([row(i) for row in rows], dim=-1)).permute(1, 0, 2)


# ----------------------------------------------------------------------
# How a model of GPyTorch or BoTorch is asked: with rows beside it, in the mode for predictions, and left as it was.
#
# Sizes: B rows of any block, n labels so far, p features.


def check_labels(model: Any) -> None:
    """Refuse a model without labels, with several inputs, or of several models at once."""
    inputs = model.train_inputs
    if inputs is None or model.train_targets is None or len(inputs) != 1:
        count = 0 if inputs is None else len(inputs)
        raise StakesError(
            f"a {type(model).__name__} needs labels and one tensor of rows [n, p], as given to set_train_data; got "
            f"{count} tensors of rows"
        )
    if inputs[0].ndim != 2 or model.train_targets.ndim != 1:
        raise StakesError(
            f"one model at a time is asked: rows [n, p] and labels [n]; this {type(model).__name__} is a batch, with "
            f"rows {list(inputs[0].shape)} and labels {list(model.train_targets.shape)}. Give one of the batch."
        )


@contextmanager
def asking(model: Any) -> Iterator[None]:
    """The model in the mode for predictions, without gradients; then all its parts in the modes that they were in."""
    modes = [(part, part.training) for part in model.modules()]
    try:
        with torch.no_grad():
            model.eval()
            yield
    finally:
        if modes[0][1]:
            model.train()
        for part, training in modes:
            part.training = training


def rows_beside(like: Tensor, rows: Any, width: int | None = None) -> Tensor:
    """[B, p]: rows as a finite tensor beside `like`, of as many columns as are wanted."""
    values = rows if isinstance(rows, torch.Tensor) else np.asarray(rows, dtype=np.float64)
    tensor = torch.as_tensor(values, dtype=like.dtype, device=like.device)
    if tensor.ndim != 2 or width not in (None, tensor.shape[1]):
        raise StakesError(f"rows must be [B, {width or 'p'}], as the model has them; got {list(tensor.shape)}")
    if not bool(tensor.isfinite().all()):
        raise StakesError("rows must be finite; some are NaN or infinite")
    return tensor


# ----------------------------------------------------------------------
# Beliefs of GPyTorch's exact Gaussian processes, as tensors on the device of the model.
#
# Sizes: N candidates, M contexts, B rows of any block, n labels so far, p features.


@adapts(gpytorch.models.ExactGP)
def _exact(model: Any, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """The exact joint posterior, as `model(rows)` has it; one of BoTorch as `model.posterior(rows)` has it.

    Noise is that of a Gaussian likelihood. Noise that is fixed for each label so far says nothing of labels to come:
    its mean is taken, with a warning where it differs.
    """
    if hasattr(model, "posterior"):
        from stakes.models.botorch import prepare_botorch

        return prepare_botorch(model, contexts, target=target, joint=joint)
    check_labels(model)
    train = model.train_inputs[0]
    with asking(model):
        there = rows_beside(train, contexts, train.shape[1])
        prepared = prepare_exact(model, there, target=target, joint=joint)
    return lambda rows: prepared(rows_beside(train, rows, train.shape[1]))


@adapts(gpytorch.models.IndependentModelList)
def _list(model: Any, contexts: Any, **options: Any) -> RowsToBelief:
    """A number of the label for each model of the list."""
    prepared = [prepare_belief(each, contexts, **options) for each in model.models]
    return lambda rows: together([of_rows(rows) for of_rows in prepared])


def prepare_exact(
    model: Any, contexts: Tensor, offset: float = 0.0, unit: float = 1.0, *, target: Target, joint: bool
) -> Callable[[Tensor], GaussianBelief]:
    """Of offset + unit f, for rows as `model.forward` takes them, of a model that is in the mode for asking."""
    noise, train = noise_to_come(model.likelihood), model.train_inputs[0]
    if model.forward(train[:1]).mean.ndim != 1:
        raise TypeError(
            f"a {type(model).__name__} has several outputs that are correlated, which is not served. Give a model for "
            "each: BoTorch's ModelListGP of single outputs, or one of them alone."
        )
    known = _solved(model)
    if known is None:
        return prepare_joint(*_told(model, noise, offset, unit), contexts, target=target, joint=joint)
    posterior = DevicePosterior(ModulePrior(model, noise), train, *known, offset, unit)
    targets = posterior.targets(contexts)

    def belief(pool: Tensor) -> GaussianBelief:
        with asking(model):
            return posterior.belief(pool, targets, target=target, joint=joint)

    return belief


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
