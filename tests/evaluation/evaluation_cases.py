"""Losses of every kind, and draws of targets and answers for them, shared by the tests of evaluation."""

import numpy as np
from hypothesis import strategies as st

from stakes import (
    BoxCox,
    BregmanLoss,
    BrierLoss,
    ExponentialWeight,
    InterpolatedWeight,
    ItakuraSaito,
    Linex,
    LogLoss,
    PoissonDeviance,
    ScoringRule,
    SphericalLoss,
    SquaredError,
)
from stakes.losses import Exponential, Function, NegativeEntropy, Norm, Square

WEIGHTS = [None, ExponentialWeight(0.7), ExponentialWeight(-0.4), InterpolatedWeight([1.0, 2.0, 4.0], [0.0, 3.0, 1.0])]
REAL_LOSSES = [
    make(weight)
    for weight in WEIGHTS
    for make in (
        SquaredError,
        ItakuraSaito,
        PoissonDeviance,
        lambda w: Linex(0.8, w),
        lambda w: Linex(-0.3, w),
        lambda w: BoxCox(0.0, w),
        lambda w: BoxCox(0.5, w),
        lambda w: BregmanLoss(Square(), Exponential(0.5), w),
        lambda w: BregmanLoss(NegativeEntropy(), Function(lambda z: z**2, lambda t: t**0.5), w),
    )
]
CLASS_WEIGHTS = [None, [1.0, 5.0, 0.5], [0.0, 1.0, 2.0]]
CLASS_LOSSES = [loss(weights) for weights in CLASS_WEIGHTS for loss in (LogLoss, BrierLoss)]
OTHER_LOSSES = [
    SphericalLoss(),
    ScoringRule(Norm(), [1.0, 2.0, 3.0]),
    BregmanLoss(lambda x: (x**4).sum(-1)),
    BregmanLoss(Square(), lambda z: np.stack([z, z**2], axis=-1)),
]
SEEDS = st.integers(0, 2**32 - 1)


def mean_and_weights(loss, targets):
    """E[w] along the last axis, straight from the weight."""
    if loss.weight is None:
        return np.ones(targets.shape[:-1])
    return loss.weight(np.eye(3)[targets.astype(int)] if hasattr(loss, "class_weights") else targets).mean(-1)


def draws(loss, rng, *shape):
    """Targets and as many answers."""
    if hasattr(loss, "class_weights"):
        return rng.integers(1, 3, shape) * 1.0, rng.dirichlet(np.ones(3), shape)
    return rng.uniform(1.1, 4.0, shape), rng.uniform(0.5, 5.0, shape)
