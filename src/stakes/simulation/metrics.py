"""Metrics: what the predictions on test rows are measured by, losses of Bayes answers or functions of the belief.

Sizes: T test rows, Q metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from stakes._utils.array import Array, constant, namespace
from stakes._utils.tables import Host
from stakes.beliefs import Belief
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, Loss
from stakes.losses.domains import Classes
from stakes.simulation.problem import plain_loss
from stakes.simulation.store import description

Metric: TypeAlias = Callable[[Belief, Array], float]
"""A function (belief about the test rows, their targets [T]: numbers, or positions of classes) -> a number, smaller is
better."""
MetricLike: TypeAlias = AnyLoss | Metric
"""A metric as users give it: a loss, or a function of the belief."""


def checked_metrics(loss: AnyLoss, given: Mapping[str, MetricLike] | None) -> dict[str, MetricLike]:
    """The loss first, then the others; without them, the plain loss."""
    if given is None:
        plain = plain_loss(loss)
        given = {} if description(plain) == description(loss) else {"plain": plain}
    if "loss" in given:
        raise StakesError('the metric "loss" is the loss itself; give the others other names')
    for name, each in given.items():
        if not _suits(each, loss):
            raise TypeError(
                f"metric {name!r} must be a loss about the same kind of target as {loss!r}, or a function of "
                f"(belief, targets); got {each!r}"
            )
    return {"loss": loss, **given}


def measured(metrics: Mapping[str, MetricLike], belief: Belief, targets: Host) -> list[float]:
    """[Q]: the value of each metric for a belief about test rows and their targets [T]."""
    known = constant(targets, belief.like)
    return [_value(name, each, belief, known) for name, each in metrics.items()]


def _suits(metric: MetricLike, loss: AnyLoss) -> bool:
    if isinstance(metric, type):
        return False
    if isinstance(metric, Loss | DistributionLoss):
        return type(metric.domain) is type(loss.domain)
    return callable(metric)


def _value(name: str, metric: MetricLike, belief: Belief, targets: Array) -> float:
    """The realised loss of the Bayes answers, or the value of the function."""
    if isinstance(metric, Loss | DistributionLoss):
        return realised_loss(metric, bayes_prediction(metric, belief), targets).mean
    value = metric(belief, _positions(targets) if isinstance(belief.domain, Classes) else targets)
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"metric {name!r} must give one number for all test rows; it gave {value!r}") from error
    if math.isnan(number):
        raise StakesError(f"metric {name!r} must give a number; it gave NaN on {targets.shape[0]} test rows")
    return number


def _positions(targets: Array) -> Array:
    """[T]: whole numbers, so that they can be an index."""
    xp = namespace(targets)
    return xp.astype(targets, xp.int64)
