"""Beliefs of GPyTorch's Gaussian processes, as tensors on the device of the model.

An exact process is computed from its prior and its likelihood, in blocks. A model that tells no more than the joint
Gaussian of any rows is asked for some candidates and all contexts at a time. A model is asked in the mode for
predictions, without gradients, and left as it was.

Sizes: N candidates, M contexts, B rows of any block, n labels so far, p features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, cast

import gpytorch
import numpy as np
import torch
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.models.exact_prediction_strategies import DefaultPredictionStrategy, prediction_strategy
from linear_operator.utils.cholesky import psd_safe_cholesky

from stakes._utils.array import slices
from stakes.beliefs import Belief, GaussianBelief
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, Target, adapts, prepare_belief
from stakes.models.gp_posterior import KernelPosterior, bounded, independent, prepare_gaussian

Tensor: TypeAlias = Any
"""One of torch."""
Joint: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From rows [B, p] to the mean [B] and the covariance [B, B] of f there."""
Noise: TypeAlias = Callable[[Tensor], Tensor]
"""From rows [B, p] to the variance [B] that a label has beside f."""

_FEWEST = 64  # candidates of a block, however few the contexts are


def outputs_together(beliefs: Sequence[Any]) -> Belief:
    """The belief about labels and targets that hold a number of each of `beliefs`; of one, that one."""
    if len(beliefs) == 1:
        return cast(Belief, beliefs[0])
    if odd := [type(each).__name__ for each in beliefs if not isinstance(each, GaussianBelief)]:
        raise TypeError(
            "outputs are served together where each is one number with a Gaussian belief; one of these is a "
            f"{odd[0]}. Ask that model by itself."
        )
    return independent(beliefs)


def check_train_data(model: Any) -> None:
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


@adapts(gpytorch.models.ExactGP)
def _exact(model: Any, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """The exact joint posterior, as `model(rows)` has it; one of BoTorch as `model.posterior(rows)` has it.

    Noise is that of a Gaussian likelihood. Noise that is fixed for each label so far says nothing of labels to come:
    its mean is taken, with a warning where it differs.
    """
    if hasattr(model, "posterior"):
        from stakes.models.botorch import prepare_botorch

        return prepare_botorch(model, contexts, target=target, joint=joint)
    check_train_data(model)
    train = model.train_inputs[0]
    with asking(model):
        there = rows_beside(train, contexts, train.shape[1])
        prepared = prepare_exact(model, there, target=target, joint=joint)
    return lambda rows: prepared(rows_beside(train, rows, train.shape[1]))


@adapts(gpytorch.models.ApproximateGP)
def _variational(model: Any, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """The joint Gaussian of any rows under the variational posterior, as `model(rows)` has it.

    The model holds no likelihood of its own, and the noise of labels is the likelihood's: it is the attribute
    `likelihood` that the user sets.
    """
    likelihood = getattr(model, "likelihood", None)
    if likelihood is None:
        raise StakesError(
            f"a {type(model).__name__} does not hold the likelihood that it was fitted with, which knows the noise of "
            "labels: set model.likelihood = likelihood, and give the model again"
        )
    noise, like = noise_to_come(likelihood), next(model.parameters())
    with asking(model):
        there = rows_beside(like, contexts)
        found = model(there[:1])
        if isinstance(found, gpytorch.distributions.MultitaskMultivariateNormal) or found.mean.ndim != 1:
            raise TypeError(
                f"a {type(model).__name__} has several outputs, or is a batch of models, which is not served: give a "
                "model of one output, or draw members from it and give EnsembleOf"
            )
        prepared = prepare_joint(*_joint_moments(model, noise, 0.0, 1.0), there, target=target, joint=joint)
    return lambda rows: prepared(rows_beside(like, rows))


@adapts(gpytorch.models.GP)
def _other_process(model: Any, contexts: Any, **_: Any) -> RowsToBelief:  # noqa: ARG001 (as any adapter)
    """Others, such as deep processes, whose posterior is not Gaussian."""
    raise TypeError(
        f"a {type(model).__name__} has no Gaussian posterior that is known here. Draw functions from it, and give "
        "EnsembleOf(a function from rows [n, p] to what each of K draws says there, [K, n], noise_sd=...)."
    )


@adapts(gpytorch.models.IndependentModelList)
def _list(model: Any, contexts: Any, **options: Any) -> RowsToBelief:
    """A number of the label for each model of the list."""
    prepared = [prepare_belief(each, contexts, **options) for each in model.models]
    return lambda rows: outputs_together([of_rows(rows) for of_rows in prepared])


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
        return prepare_joint(*_joint_moments(model, noise, offset, unit), contexts, target=target, joint=joint)
    posterior = KernelPosterior(
        partial(_prior_covariance, model),
        partial(_prior_variances, model, noise),
        train,
        *known,
        offset,
        unit,
        lambda rows: model.forward(rows).mean,
    )
    prepared = prepare_gaussian(posterior, contexts, target=target, joint=joint)

    def belief(pool: Tensor) -> GaussianBelief:
        with asking(model):
            return cast(GaussianBelief, prepared(pool))

    return belief


def has_default_prediction(model: Any) -> bool:
    """Whether an exact process predicts by its kernel alone; a sparse or structured one has its own way."""
    inputs = model.train_inputs
    strategy = prediction_strategy(inputs, model.forward(inputs[0]), model.train_targets, model.likelihood)
    return type(strategy) is DefaultPredictionStrategy


def _solved(model: Any) -> tuple[Tensor, Tensor] | None:
    """[n, n], [n]: L, and L^-1 (y - prior mean); None where a sparse or structured kernel predicts in its own way."""
    if not has_default_prediction(model):
        return None
    prior = model.forward(model.train_inputs[0])
    labels = model.likelihood(prior, model.train_inputs)
    factor = psd_safe_cholesky(labels.covariance_matrix)
    rest = (model.train_targets - labels.mean)[:, None]
    return factor, torch.linalg.solve_triangular(factor, rest, upper=False)[:, 0]


def _prior_covariance(model: Any, rows: Tensor, others: Tensor) -> Tensor:
    """[B, B']: of f before any label: that block of the lazy covariance of all, which is all that is computed of it."""
    with asking(model) if model.training else torch.no_grad():  # a batch asks when the belief is long made
        both = model.forward(torch.cat([rows, others])).lazy_covariance_matrix
        return both[: len(rows), len(rows) :].to_dense().clone(memory_format=torch.contiguous_format)


def _prior_variances(model: Any, noise: float, rows: Tensor) -> tuple[Tensor, Tensor]:
    """[B], [B]: of f before any label, and of the noise of a label, the same everywhere."""
    diagonal = model.forward(rows).lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2)
    return diagonal.clone(), rows.new_full((len(rows),), noise)


def _joint_moments(model: Any, noise: float, offset: float, unit: float) -> tuple[Any, Any]:
    """What the model says jointly of rows, and the noise there."""

    def joint(rows: Tensor) -> tuple[Tensor, Tensor]:
        with asking(model):
            found = model(rows)
            return offset + unit * found.mean, unit**2 * found.covariance_matrix

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


def prepare_joint(
    moments: Joint, noise: Noise, contexts: Tensor, *, target: Target, joint: bool
) -> Callable[[Tensor], GaussianBelief]:
    """From a pool [N, p] to the belief about its labels and the targets at `contexts` [M, p].

    As many candidates as there are contexts are asked for at a time.

    All pairs of these are computed, four times as many as are needed: with fewer candidates at a time, pairs of
    contexts are computed more often; with more, pairs of candidates are more.
    """
    (mean, covariance), target_noise = moments(contexts), noise(contexts)
    known = covariance.diagonal().clone()
    target_variance = known + target_noise if target == "label" else known

    def belief(pool: Tensor) -> GaussianBelief:
        parts = slices(len(pool), max(_FEWEST, len(contexts)))
        own, blocks = zip(*(_block(moments, pool[part], contexts, known) for part in parts), strict=True)
        label_noise = noise(pool)
        variance = torch.cat(own) + label_noise
        rows = partial(_label_row, moments, pool, variance) if joint else None
        return GaussianBelief(mean, target_variance, variance, torch.cat(blocks), rows, label_noise)

    return belief


def _block(joint: Joint, pool: Tensor, contexts: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """[B], [B, M]: variances of f, and covariances with f at the contexts, of variance `known` [M]."""
    count = len(pool)
    _, both = joint(torch.cat([pool, contexts]))
    variance, covariance = both.diagonal()[:count].clamp(min=0.0), both[:count, count:].clone()
    bounded(covariance, variance, known, out=covariance)
    return variance, covariance


def _label_row(moments: Joint, pool: Tensor, variance: Tensor, i: int) -> Tensor:
    """[N]: covariances of the label of candidate i with those of all, of `variance` [N], itself included."""
    one, parts = pool[i : i + 1], slices(len(pool), _FEWEST)
    row = torch.cat([moments(torch.cat([one, pool[part]]))[1][0, 1:] for part in parts])
    row[i] = variance[i]
    return row
