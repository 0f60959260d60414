"""Beliefs of BoTorch's models, as `model.posterior(rows)` has them, as tensors on their device.

Sizes: S hypotheses, N candidates, M contexts, B rows of any block, p features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.input import InputStandardize, Normalize
from botorch.models.transforms.outcome import ChainedOutcomeTransform, Log, Standardize
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from botorch.posteriors.gpytorch import GPyTorchPosterior

from stakes._utils.array import namespace, slices
from stakes.beliefs import GaussianMixtureBelief, LogWarp, WarpedGaussianBelief
from stakes.models.base import RowsToBelief, Target, adapts
from stakes.models.gpytorch import (
    Tensor,
    asking,
    check_train_data,
    outputs_together,
    prepare_exact,
    prepare_joint,
    rows_beside,
)

_FEWEST = 256  # rows whose posterior is asked for at once


@adapts(Model)
def prepare_botorch(model: Any, contexts: Any, *, target: Target, joint: bool, **_: Any) -> RowsToBelief:
    """Gaussian, or log-normal where logarithms are modelled; of a vector where outputs are several and independent.

    A model whose posterior is a mixture, such as SaasFullyBayesianSingleTaskGP, has a hypothesis for each of its parts.
    A SingleTaskGP is computed from its kernel, in blocks, through its transforms of inputs and outcomes. Any other
    model with a Gaussian posterior is asked for that of some candidates and all contexts at a time.
    """
    if isinstance(model, SingleTaskGP) and model.num_outputs > 1:
        each = [model.subset_output([k]) for k in range(model.num_outputs)]
        parts = [prepare_botorch(one, contexts, target=target, joint=joint) for one in each]
        return lambda rows: outputs_together([of_rows(rows) for of_rows in parts])
    like, outcome, width = next(model.parameters()), scaling(model), width_of(model)
    with asking(model):
        there = rows_beside(like, contexts, width)
        if not is_plain(model) and isinstance(model.posterior(there[:1]), GaussianMixturePosterior):
            mixture = _prepare_mixture(model, there, target=target, joint=joint)
            return lambda rows: mixture(rows_beside(like, rows, width))
        if outcome is None or not is_plain(model):
            prepared = prepare_joint(_joint(model), _noise(model), there, target=target, joint=joint)
            return lambda rows: prepared(rows_beside(like, rows, width))
        check_train_data(model)
        there = _transformed(model, there)
        offset, unit, exponential = outcome
        exact = prepare_exact(model, there, offset, unit, target=target, joint=joint)

    def belief(rows: Any) -> Any:
        with asking(model):
            found = exact(_transformed(model, rows_beside(like, rows, width)))
        return WarpedGaussianBelief(found, LogWarp()) if exponential else found

    return belief


def _prepare_mixture(
    model: Any, contexts: Tensor, *, target: Target, joint: bool
) -> Callable[[Tensor], GaussianMixtureBelief]:
    """From a pool [N, p] to the mixture of what hypotheses say of its labels and the targets at `contexts` [M, p]."""

    def ask(rows: Tensor, noisy: bool = False) -> tuple[Tensor, Tensor]:
        with asking(model):
            found = model.posterior(rows, observation_noise=noisy).distribution
            return found.mean, found.covariance_matrix  # [S, B], [S, B, B]

    def noise(rows: Tensor) -> Tensor:
        label, latent = (ask(rows, noisy)[1].diagonal(dim1=1, dim2=2) for noisy in (True, False))
        return (label - latent).clamp(min=0.0)  # [S, B]

    mean, covariance = ask(contexts)
    xp = namespace(mean)
    known = covariance.diagonal(dim1=1, dim2=2).clamp(min=0.0)  # [S, M]
    variance = known + noise(contexts) if target == "label" else known

    def belief(pool: Tensor) -> GaussianMixtureBelief:
        means, own, blocks = [], [], []
        for part in slices(len(pool), max(_FEWEST, len(contexts))):
            count = len(pool[part])
            both_mean, both = ask(xp.concat([pool[part], contexts], axis=0))
            means.append(both_mean[:, :count])
            own.append(both.diagonal(dim1=1, dim2=2)[:, :count].clamp(min=0.0))
            most = own[-1].sqrt()[..., None] * known.sqrt()[:, None, :]
            blocks.append(xp.minimum(xp.maximum(both[:, :count, count:], -most), most))
        label_noise = xp.concat([noise(pool[part]) for part in slices(len(pool), _FEWEST)], axis=1)
        label_variance = xp.concat(own, axis=1) + label_noise

        def row(i: int) -> Tensor:
            """[S, N]: covariances of the label of candidate i with those of all, itself included."""
            both = [xp.concat([pool[i : i + 1], pool[part]], axis=0) for part in slices(len(pool), _FEWEST)]
            found = xp.concat([ask(rows)[1][:, 0, 1:] for rows in both], axis=1)
            found[:, i] = label_variance[:, i]
            return found

        arrays = mean, variance, xp.concat(means, axis=1), label_variance, xp.concat(blocks, axis=1)
        return GaussianMixtureBelief(*arrays, None, row if joint else None, label_noise)

    return belief


def is_plain(model: Any) -> bool:
    """Whether its posterior is that of a process whose prior is what `forward` says."""
    same = ("forward", "posterior", "__call__")
    return isinstance(model, SingleTaskGP) and all(
        getattr(type(model), name) is getattr(SingleTaskGP, name) for name in same
    )


def width_of(model: Any) -> int | None:
    """How many a row has; None where a transform may change that, or rows say which output is asked for."""
    kept = type(getattr(model, "input_transform", None)) in (type(None), Normalize, InputStandardize)
    return int(model.train_inputs[0].shape[-1]) if kept and isinstance(model, SingleTaskGP) else None


def scaling(model: Any) -> tuple[float, float, bool] | None:
    """Offset, unit, and whether a label is exp(offset + unit f), not offset + unit f; None for any other transform.

    Transforms may be scalings, and a logarithm before all of them.
    """
    transform = getattr(model, "outcome_transform", None)
    steps = [*transform.values()] if isinstance(transform, ChainedOutcomeTransform) else [transform] * bool(transform)
    exponential = bool(steps) and type(steps[0]) is Log
    offset, unit = 0.0, 1.0
    for step in reversed(steps[exponential:]):
        if type(step) is not Standardize:
            return None
        mean, scale = float(step.means.reshape(-1)[0]), float(step.stdvs.reshape(-1)[0])
        offset, unit = mean + scale * offset, scale * unit
    return offset, unit, exponential


def _transformed(model: Any, rows: Tensor) -> Tensor:
    """As `forward` takes them."""
    inputs = model.transform_inputs(rows)
    if len(inputs) != len(rows):
        raise TypeError(
            f"an input transform that makes {len(inputs)} rows of {len(rows)} is not served: the label of a candidate "
            "would be several. Ask the model without it."
        )
    return inputs


def _joint(model: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """What the posterior says of rows, if it is Gaussian and of one output."""

    def joint(rows: Tensor) -> tuple[Tensor, Tensor]:
        with asking(model):
            found = _gaussian(model, model.posterior(rows))
            return found.mean, found.covariance_matrix

    return joint


def _noise(model: Any) -> Callable[[Tensor], Tensor]:
    """A function from rows [B, p] to the variance of observation noise there [B]."""

    def noise(rows: Tensor) -> Tensor:
        with asking(model):
            label, latent = (model.posterior(rows, observation_noise=noisy) for noisy in (True, False))
            return (label.variance - latent.variance)[:, 0].clamp(min=0.0)

    return noise


def _gaussian(model: Any, posterior: Any) -> Any:
    """The distribution [B] of a posterior; refused where it is none."""
    if type(posterior) is GPyTorchPosterior and posterior.distribution.mean.ndim == 1:
        return posterior.distribution
    raise TypeError(
        f"a {type(model).__name__} must have a Gaussian posterior of one output; it has a "
        f"{type(posterior).__name__} of {model.num_outputs}. Served are SingleTaskGP, also with several outputs, with "
        "outcomes as they are, scaled (Standardize), or logarithms (Log) that may be scaled; lists of such models; "
        "and whatever else has one Gaussian output. Or draw members and give EnsembleOf."
    )
