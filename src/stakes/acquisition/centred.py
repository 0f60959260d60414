"""Losses of classes as sums over products of centred members, in whatever precision those are made.

With J[y, z] = p_y p_z (1 + r), r the mean over members of (p(y | x, k) / p_y - 1) (p(z | c, k) / p_z - 1), the scores
of log loss and Brier loss are

    sum_c W_c sum_y p_y (1 + rbar_y) sum_z h_z f(q),    q = (r - rbar_y) / (1 + rbar_y),

with W = E[w | c], shares s_z = w_z p_z / W, rbar_y = sum_z s_z r; for log loss h = s and f(q) = (1 + q) log(1 + q) - q,
for Brier loss h = s^2 and f(q) = q^2. Of a finite set of actions the one kept, a, loses

    sum_c sum_y p_y max_b (D_b + d_b),    D_b = E[l_a - l_b | c] <= 0,

to the best action b, d_b being the covariance of l_a - l_b with (p(y | x, k) / p_y - 1). Only r and d are rounded; what
means have to say is exact.
Sizes: n candidates, M contexts, K members, C classes, A actions, T terms (C, C + 1 or A).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from stakes._array import Array, constant, double, namespace, ratio, single
from stakes.beliefs import CategoricalEnsemble
from stakes.losses import BrierLoss, Loss
from stakes.losses.classes import weight_ratio

NOTHING = 1e-30
"""A probability whose inverse may leave the range of single precision: of no account."""
EMPTY = 1e-6
"""Of its mass: a label whose weighted mass has all but gone adds nothing."""
_WEIGHTS_APART = 100.0  # 1 + rbar may then be 1 / 100, of which single precision keeps five digits
_LIGHTEST = 2e-5  # of member weights: p / mean may be as large as its inverse, and half precision ends at 65504

Kind = Literal["log", "square", "actions"]


@dataclass(frozen=True, eq=False)
class ClassShares:
    """What the means of contexts say of each class."""

    means: Array
    """[M, C]: p_z"""
    shares: Array
    """[M, C]: s_z"""
    heights: Array
    """[M, C]: W_c h_z, times how often the context comes up"""


@dataclass(frozen=True, eq=False)
class Terms:
    """What the contexts bring to the sums: all that a candidate is multiplied with."""

    kind: Kind
    members: Array
    """[T, M, K]: p(z | c, k) / p_z - 1 for each class, times K q_k; last, with weights, their mean over z with shares.
    For actions: l_a - l_b less its mean, times K q_k, over the largest of these."""
    heights: Array
    """[C, M]: W_c h_z over `scale`; for actions [A, M], what the mean product is to be multiplied by, over `scale`"""
    offsets: Array
    """[A, M]: D_b over `scale`; nothing for classes"""
    scale: float
    """what was taken out of heights and offsets"""
    weighted: bool = False
    """whether the last of `members` is for rbar"""


def terms_of(loss: Any, belief: CategoricalEnsemble, shares: Array) -> Terms:
    """The terms for contexts that come up as often as `shares` [M] say."""
    of = _action_terms if kind_of(loss) == "actions" else _class_terms
    return of(loss, belief, shares)


def class_shares(loss: Any, means: Array, shares: Array) -> ClassShares:
    """For contexts with means [M, C] that come up as often as `shares` [M] say."""
    xp = namespace(means)
    heavy = means if loss.class_weights is None else means * constant(loss.class_weights, means)
    total = xp.sum(heavy, axis=1, keepdims=True)  # [M, 1]: W
    share = ratio(heavy, total + xp.zeros_like(heavy))
    return ClassShares(means, share, shares[:, None] * total * (share**2 if isinstance(loss, BrierLoss) else share))


def kind_of(loss: Any) -> Kind:
    """What the loss makes of a product."""
    if getattr(loss, "switches", False):
        return "actions"
    return "square" if isinstance(loss, BrierLoss) else "log"


def _class_terms(loss: Any, belief: CategoricalEnsemble, shares: Array) -> Terms:
    xp, weights = namespace(belief.contexts), double(belief.member_weights)
    means, gaps = centred(double(belief.contexts), weights)  # [M, C], [M, C, K]
    classes, gaps = class_shares(loss, means, shares), gaps * (weights * gaps.shape[2])
    if loss.class_weights is not None:
        mean = xp.sum(classes.shares[..., None] * gaps, axis=1, keepdims=True)  # [M, 1, K]
        gaps = xp.concat([gaps, mean], axis=1)
    heights, nothing = classes.heights, classes.heights[:, :0]
    return _scaled(kind_of(loss), gaps, heights, nothing, weighted=loss.class_weights is not None)


def _action_terms(loss: Loss, belief: CategoricalEnsemble, shares: Array) -> Terms:
    xp, weights = namespace(belief.contexts), double(belief.member_weights)
    table = loss.statistics(constant(np.eye(belief.n_classes), weights), None)  # [C, A]
    costs = xp.permute_dims(xp.matmul(double(belief.contexts), table), (0, 2, 1))  # [M, A, K]
    kept = loss.action(xp.sum(costs * weights, axis=2))  # [M, 1]
    chosen = xp.astype(kept == xp.arange(costs.shape[1], device=kept.device)[None, :], costs.dtype)  # [M, A]
    gains = xp.sum(costs * chosen[..., None], axis=1, keepdims=True) - costs  # [M, A, K]: l_a - l_b
    hopeless = xp.max(gains, axis=2, keepdims=True) <= 0  # no member prefers b, so no label can: it must set no scale
    gains = xp.where(hopeless, xp.zeros_like(gains), gains)
    offsets = xp.sum(gains * weights, axis=2)  # [M, A]: D
    gaps = (gains - offsets[..., None]) * (weights * gains.shape[2])
    largest = xp.max(abs(gaps), axis=2)  # [M, A]
    gaps = gaps * ratio(xp.ones_like(largest), largest)[..., None]
    return _scaled("actions", gaps, shares[:, None] * largest, shares[:, None] * offsets)


def _scaled(kind: Kind, gaps: Array, heights: Array, offsets: Array, weighted: bool = False) -> Terms:
    """With contexts on the last axes but one, and numbers near one."""
    xp = namespace(gaps)
    largest = max((float(xp.max(abs(each))) for each in (heights, offsets) if 0 not in each.shape), default=0.0)
    scale = largest if largest > 0.0 else 1.0
    return Terms(
        kind,
        xp.permute_dims(gaps, (1, 0, 2)),
        xp.permute_dims(heights, (1, 0)) / scale,
        xp.permute_dims(offsets, (1, 0)) / scale,
        scale,
        weighted,
    )


def centred(probabilities: Array, weights: Array) -> tuple[Array, Array]:
    """[n, C], [n, C, K]: the means of members, and p / mean - 1, 0 where the mean is nothing."""
    xp = namespace(probabilities)
    members = xp.permute_dims(single(probabilities), (0, 2, 1))  # [n, C, K]
    means = xp.sum(members * xp.astype(weights, members.dtype), axis=2)
    inverse = ratio(xp.ones_like(means), xp.where(means > NOTHING, means, xp.zeros_like(means)))
    return means, (members - means[..., None]) * inverse[..., None]


def within_reach(loss: Any, belief: CategoricalEnsemble, least: float = _LIGHTEST) -> bool:
    """Whether r keeps its digits: no class outweighs another by far, and no member counts for next to nothing."""
    lightest = namespace(belief.member_weights).min(belief.member_weights)
    return weight_ratio(loss) <= _WEIGHTS_APART and float(lightest) >= least
