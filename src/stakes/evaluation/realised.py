"""The mean loss of any answers on labelled data.

Sizes: n labelled rows, M contexts, S targets drawn at a context, C classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from array_api_compat import is_array_api_obj

from stakes._utils.array import Array, asarrays, check_all, check_shape, double, namespace, replaced
from stakes.beliefs import Distribution
from stakes.exceptions import StakesError
from stakes.losses import (
    AnyLoss,
    DistributionLoss,
    Loss,
    WeightedBregman,
)
from stakes.losses.domains import Classes, Vectors, indicators


@dataclass(frozen=True, eq=False)
class RealisedLoss:
    """The mean loss of labelled rows, and how far to trust it.

    Attributes:
        mean: The mean loss.
        each: [n]: the loss of each row (over the mean weight if normalised).
        standard_error: Of the mean (the ratio of means if normalised) for independent rows; infinite for one row.
        effective_rows: (sum |l|)^2 / sum l^2: how many rows carry the mean; 0 where none costs anything.

    Examples:
        >>> from stakes import SquaredError
        >>> from stakes.evaluation import realised_loss
        >>> found = realised_loss(SquaredError(), predictions=[1.0, 2.0], targets=[1.0, 4.0])
        >>> print(found.mean, found.each)
        2.0 [0. 4.]
    """

    mean: float
    each: Array
    standard_error: float
    effective_rows: float


def realised_loss(loss: AnyLoss, predictions: Any, targets: Any, normalise: bool = False) -> RealisedLoss:
    """The mean of loss(z, prediction) over labelled rows.

    Args:
        loss: Any loss.
        predictions: [n]; [n, C] for class probabilities, [n, d] for vectors; for LogScore and CRPS the `Distribution`
            of n contexts.
        targets: [n]; [n, d] for vectors.
        normalise: Whether to divide by the mean weight of the targets: sum w D / sum w, the paper's SEL_w and NLL_w.

    Returns:
        The mean, the loss of each row, and how far to trust the mean.

    Raises:
        StakesError: If shapes do not agree, or there are no rows.
        FloatingPointError: If a weight is beyond the range of its numbers.

    Examples:
        >>> from stakes import SquaredError
        >>> found = realised_loss(SquaredError(), predictions=[1.0, 2.0, 3.0], targets=[1.0, 2.0, 5.0])
        >>> found.mean, found.each
        (1.3333333333333333, array([0., 0., 4.]))
        >>> found.effective_rows  # a single row decides
        1.0
    """
    if isinstance(loss, DistributionLoss):
        return _realised_score(loss, predictions, targets, normalise)
    predictions, targets = asarrays(predictions=predictions, targets=targets)
    numbers = (loss.domain.count,) if isinstance(loss.domain, Vectors) else ()
    check_shape("targets", targets, ("n", *numbers))
    answer = ("C",) if isinstance(loss.domain, Classes) else numbers
    check_shape("predictions", predictions, (targets.shape[0], *(answer if isinstance(loss, WeightedBregman) else ())))
    if 0 in targets.shape:
        raise StakesError("targets must hold at least one row to average over; got none")
    if getattr(loss, "weight", None) is None:
        return _summary(loss(targets, predictions), 1.0)
    if not normalise:
        if isinstance(loss, WeightedBregman):
            check_range(loss.log_magnitudes(split_weight(loss, predictions, targets)[1])[..., 0])
        return _summary(loss(targets, predictions), 1.0)
    plain, z = split_weight(loss, predictions, targets)
    shares, each = weight_shares(loss, z)[0], plain(targets, predictions)  # [n]
    return _summary(shares * namespace(each).where(shares > 0, each, namespace(each).zeros_like(each)), shares)


def _realised_score(loss: DistributionLoss, predictions: Any, targets: Any, normalise: bool) -> RealisedLoss:
    """The realised loss of a distribution, whose weight is a factor as well."""
    like = predictions.origin if isinstance(predictions, Distribution) else predictions
    targets = asarrays(targets=targets)[0] if is_array_api_obj(targets) else asarrays(like=like, targets=targets)[1]
    check_shape("targets", targets, ("n",))
    if 0 in targets.shape:
        raise StakesError("targets must hold at least one row to average over; got none")
    if not normalise or getattr(loss, "weight", None) is None:
        return _summary(loss(targets, predictions), 1.0)
    shares, each = weight_shares(loss, targets)[0], replaced(loss, weight=None)(targets, predictions)  # [n]
    return _summary(shares * namespace(each).where(shares > 0, each, namespace(each).zeros_like(each)), shares)


def _summary(each: Array, shares: Array | float) -> RealisedLoss:
    """The mean of rows [n] whose weights, over their mean, are `shares`: residuals from the ratio l - mean w."""
    xp, count, losses = namespace(each), each.shape[0], double(each)
    if infinite := int(xp.count_nonzero(xp.isinf(losses))):
        return RealisedLoss(math.inf, each, math.inf, float(infinite))
    mean, unit = float(xp.mean(losses)), float(xp.max(abs(losses))) or 1.0  # so that no square overflows
    squares = (float(xp.sum((values / unit) ** 2)) for values in (losses - mean * shares, losses))
    spread, size = (unit * math.sqrt(square) for square in squares)
    error = spread / math.sqrt(count * (count - 1)) if count > 1 else math.inf
    return RealisedLoss(mean, each, error, (float(xp.sum(abs(losses))) / size) ** 2 if size else 0.0)


def split_weight(loss: Loss, predictions: Array, targets: Array) -> tuple[WeightedBregman, Array]:
    """A weighted Bregman loss without its weight, and the targets as `statistics` takes them; all checked."""
    if not isinstance(loss, WeightedBregman):
        raise TypeError(
            f"this needs a weighted Bregman loss w(z) D(T(z), a), such as SquaredError or LogLoss; "
            f"{type(loss).__name__} does not split into weight and divergence. realised_loss gives its mean."
        )
    plain = replaced(loss, weight=None)
    if isinstance(loss.domain, Classes):
        return plain, indicators(loss.domain, targets, predictions)[0]
    loss.domain.check("the target", targets)
    loss.domain.check("the prediction", predictions)
    return plain, targets


def weight_shares(loss: AnyLoss, z: Array) -> tuple[Array, Array]:
    """[..., S], [...]: w(z) over its mean along S, and the logarithm of that mean; through log w, so none overflows."""
    xp, log_weight = namespace(z), loss.log_magnitudes(z)[..., 0]
    top = xp.max(log_weight, axis=-1, keepdims=True)
    check_all(xp.isfinite(top), "the targets weigh nothing, or a weight overflows: then give Weight(w, log=...)")
    relative = xp.exp(log_weight - top)
    mean = xp.mean(relative, axis=-1, keepdims=True)
    return relative / mean, (top + xp.log(mean))[..., 0]


def check_range(log_weight: Array) -> Array:
    """`log_weight`, or an error where a weight is beyond the range of its dtype."""
    xp, dtype = namespace(log_weight), log_weight.dtype
    if (largest := float(xp.max(log_weight))) > math.log(xp.finfo(dtype).max):
        raise FloatingPointError(f"weights reach exp({largest:.1f}), beyond {dtype}: ask for normalise=True")
    return log_weight
