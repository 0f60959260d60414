"""What to rank by where no single label is worth anything.

With a finite set of actions one label may be too weak to change any decision while ten are worth much. Then candidates
are ranked by the joint worth of growing numbers of labels like theirs, and by variance reduction where even that is
nothing. Sizes: N candidates, M contexts, K members.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stakes._utils.array import Array, double, filled, log_of, namespace
from stakes.acquisition.batch_states import MAX_CONFIGURATIONS, Batch, has_batches, start_batch, variance_of
from stakes.acquisition.forms import check_pair
from stakes.acquisition.reduction import unscaled
from stakes.acquisition.scores import (
    checked_context_weights,
    checked_costs,
    log_worth,
    regret_of_members,
    score,
)
from stakes.beliefs import (
    BatchBelief,
    Belief,
    CategoricalEnsemble,
    NormalEnsemble,
    VectorNormalEnsemble,
    VoteEnsemble,
)
from stakes.losses import AnyLoss, DistributionLoss

VARIANCE = "variance reduction"
_FLOOR = 1e-12  # of the most that labels can be worth


def fallback_scores(
    loss: AnyLoss, belief: Belief, *, context_weights: Any = None, costs: Any = None
) -> tuple[Array, str]:
    """What to rank candidates by when every `score` is zero.

    That is what growing numbers of labels like a candidate's are worth together: under a Gaussian belief each removes
    the same share rho of the variance that is left; under an ensemble of classes they are repeats of the label,
    independent given the member. Other beliefs go by variance reduction at once.

    Args:
        loss: What being wrong costs.
        belief: What is believed of the labels of N candidates and the targets of M contexts.
        context_weights: [M], how often each context comes up (normalised); alike without them.
        costs: [N], what each label costs; the numbers are then the value per cost.

    Returns:
        [N], and what they are: "worth of 8 such labels" (2, 4, ... 1024), or "variance reduction" where those are worth
        nothing either.

    Raises:
        TypeError: If the loss is not defined wherever the target can fall.

    Examples:
        Six standard deviations below the threshold no single label changes the decision to wait, but 64 might:

        >>> from stakes import GaussianBelief, ThresholdDecision, score
        >>> from stakes.acquisition import fallback_scores
        >>> belief = GaussianBelief(
        ...     mean=[0.0], variance=[1.0], candidate_variance=[1.0, 1.0], covariance=[[0.05], [0.1]]
        ... )
        >>> score(ThresholdDecision(6.0), belief)
        array([0., 0.])
        >>> scores, ranked_by = fallback_scores(ThresholdDecision(6.0), belief)
        >>> ranked_by
        'worth of 64 such labels'
        >>> bool(scores[1] > scores[0] > 0)
        True
    """
    check_pair(loss, belief)
    prices = checked_prices(costs, belief)
    if not has_batches(belief):
        return score(variance_of(belief), belief, context_weights=context_weights, costs=costs), VARIANCE
    batch = start_batch(loss, belief, context_weights, np.random.default_rng(0), MAX_CONFIGURATIONS)
    gains, top, ranked_by = _fallback(batch, prices > 0, log_floor(loss, belief, batch))
    return unscaled(gains / prices, top, belief), ranked_by


def gains_of(batch: Batch, logs: Array, allowed: Array, floor: float) -> tuple[Array, str]:
    """[N], up to a common factor, and what they are: the gains of `logs` [N], or else the fallback.

    Gains count if that of any `allowed` candidate is above exp(floor).
    """
    gains, top = _gains(logs, batch.log_joint())
    if _any_above(gains, top, allowed, floor):
        return gains, "gain"
    gains, _, ranked_by = _fallback(batch, allowed, floor)
    return gains, ranked_by


def log_floor(loss: AnyLoss, belief: Belief, batch: Batch) -> float:
    """The log of what is too small to be the worth of a label: -inf, or for finite actions 1e-12 of the most.

    There a gain may be smaller than results can hold, or rounding, and neither says which label to buy. Where members
    agree, all is rounding: inf.
    """
    if members_agree(belief):
        return math.inf
    return _floor(batch.log_most(), belief) if loss.finite_actions else -math.inf


def _floor(log_most: Array, belief: Belief) -> float:
    """The log of 1e-12 of the most that labels can be worth, of which contexts add exp(log_most) [M]."""
    most = log_worth(namespace(log_most).ones_like(log_most)[None, :], log_most)[0]
    return max(math.log(_FLOOR) + float(most), log_smallest(belief))


def worth_floor(loss: AnyLoss, belief: Belief, *, context_weights: Any = None) -> float:
    """`log_floor` for the worth of one label, from one candidate and all contexts; -inf for beliefs without batches."""
    if members_agree(belief):
        return math.inf
    if not loss.finite_actions or not (_is_ensemble(belief) or has_batches(belief)):
        return -math.inf
    return _floor(log_most(loss, belief.take(slice(0, 1), slice(None)), context_weights), belief)


def log_most(loss: AnyLoss, belief: Belief, context_weights: Any) -> Array:
    """[M]: the log of what each context adds to the most that labels can be worth, however many."""
    if not _is_ensemble(belief) or isinstance(loss, DistributionLoss):
        return start_batch(loss, belief, context_weights, np.random.default_rng(0), MAX_CONFIGURATIONS).log_most()
    ensemble: Any = belief
    reference = ensemble.reference(loss)
    point = None if reference.point is None else reference.point[:, None, ...]
    expected = double(ensemble.member_moments(loss, reference))  # [M, K, D]
    action = loss.action(double(ensemble.moments(loss, reference)))  # [M, d]
    known = regret_of_members(loss, ensemble.member_weights, expected, action, point)
    return log_of(known) + double(reference.log_scale) + log_of(checked_context_weights(context_weights, belief))


def _is_ensemble(belief: Belief) -> bool:
    """Whether it is one of our ensembles, of which labels can tell no more than which member is right."""
    kinds = VoteEnsemble | CategoricalEnsemble | NormalEnsemble | VectorNormalEnsemble
    return isinstance(belief, kinds) and not isinstance(belief, BatchBelief)


def members_agree(belief: Belief) -> bool:
    """Whether all members of an ensemble say the same of every context: there is nothing to learn then."""
    if isinstance(belief, CategoricalEnsemble | VoteEnsemble):
        return _alike(belief.contexts)
    if isinstance(belief, NormalEnsemble | VectorNormalEnsemble):
        return _alike(belief.context_mean) and _alike(belief.context_sd)
    return False


def _alike(table: Array) -> bool:
    """Whether [M, K, ...] has one value along K."""
    return bool(namespace(table).all(table == table[:, :1, ...]))


def log_smallest(belief: Belief) -> float:
    """The log of the smallest number that results hold in full."""
    return math.log(float(namespace(belief.like).finfo(belief.like.dtype).smallest_normal))


def checked_prices(costs: Any, belief: Belief) -> Array:
    """[N]: the costs, checked, or 1 each."""
    return filled(belief.n_candidates, 1.0, belief.like) if costs is None else checked_costs(costs, belief)


def _fallback(batch: Batch, allowed: Array, floor: float) -> tuple[Array, float, str]:
    """[N], the log of their unit, and what they are."""
    if floor == math.inf:
        return 0.0 * batch.variance_gains(), 0.0, VARIANCE
    before = batch.log_joint()
    for count in batch.repeats:
        gains, top = _gains(batch.log_reductions(count), before)
        if _any_above(gains, top, allowed, floor):
            return gains, top, f"worth of {count} such labels"
    return batch.variance_gains(), 0.0, VARIANCE


def _gains(logs: Array, before: float) -> tuple[Array, float]:
    """[N]: exp(logs) - exp(before), over the largest of exp(logs), whose log comes along."""
    xp = namespace(logs)
    top = float(xp.max(logs)) if logs.shape[0] else 0.0
    top = top if math.isfinite(top) else 0.0
    return xp.exp(logs - top) - math.exp(before - top), top


def _any_above(gains: Array, top: float, allowed: Array, floor: float) -> bool:
    return bool(namespace(gains).any(allowed & (log_of(gains) + top > floor)))
