"""Several labels at once: the batch whose labels together lower the expected loss most, chosen one by one.

Greedy on the marginal gain of the *joint* reduction, E_c[EUR(batch; c)]; or drawn by single scores (Kirsch et al.,
"Stochastic Batch Acquisition"). Scores change as labels come in, and a batch of the top n holds n of much the same:
drawing spreads it out at the price of one scoring, without joint worth.

With a finite set of actions one label may be too weak to change any decision while ten are worth much. Where no single
label is worth anything, candidates are ranked by the joint worth of growing numbers of labels like theirs, and by
variance reduction where even that is nothing. Sizes: N candidates, M contexts, K members, n picks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from stakes._utils.arguments import affords, as_generator, check_budget, is_true_or_false, left_to_spend
from stakes._utils.array import Array, constant, double, filled, log_of, namespace
from stakes.acquisition.batch_states import Batch, has_batches, obstacle, start_batch
from stakes.acquisition.class_batches import MAX_CONFIGURATIONS
from stakes.acquisition.ensemble_batches import variance_of
from stakes.acquisition.forms import by_logarithms, check_pair, simplest
from stakes.acquisition.honest import HonestReduction, honest_prefixes
from stakes.acquisition.scores import (
    checked_context_weights,
    checked_costs,
    log_worth,
    regret_of_members,
    score,
    unscaled,
)
from stakes.beliefs import (
    BatchBelief,
    Belief,
    CategoricalEnsemble,
    GaussianBelief,
    NormalEnsemble,
    VectorGaussianBelief,
    VectorNormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, PerContext

Stochastic = Literal["power", "softmax"]
VARIANCE = "variance reduction"
"""What candidates are ranked by where no number of labels like theirs is worth anything."""
_FLOOR = 1e-12  # of the most that labels can be worth

Pick: TypeAlias = tuple[int, float, float, Array | None, str]
"""A candidate; the log of the joint reduction up to it, and its relative standard error; the log [M] of what each
context adds to that; and what the candidate was the best in."""


class Selection(NamedTuple):
    """A batch, in the order it was chosen.

    Attributes:
        indices: Positions of the candidates.
        joint_reduction: [n], what the labels of the first 1, 2, ... n are worth together, for one decision, where the
            truth is one of the members of an ensemble; None where that is not known (a batch drawn under a belief of
            your own, or a Gaussian one without `candidate_covariance`).
        sampling_error: [n], the standard error of each joint reduction; 0 where nothing was sampled.
        context_error: [n], its standard error over contexts, where those are draws of the contexts to come.
        method: "exact", "enumerated", "sampled" or "stochastic".
        ranked_by: [n], what each pick was the best in: "gain" in joint reduction; where no candidate had any, "worth of
            8 such labels" (2, 4, ... 1024) or "variance reduction"; "power of score" or "softmax of score" for one that
            was drawn.
        known: The loss, the belief, weights of contexts and pending candidates, of which `honest` is made when it is
            first asked for.

    Examples:
        >>> from stakes import CategoricalEnsemble, LogLoss, select
        >>> belief = CategoricalEnsemble(
        ...     candidates=[[[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.3, 0.7]]], contexts=[[[0.9, 0.1], [0.2, 0.8]]]
        ... )
        >>> selection = select(LogLoss(), belief, n=2)
        >>> selection.indices, selection.method, selection.ranked_by
        ((0, 1), 'enumerated', ('gain', 'gain'))
        >>> selection.joint_reduction.round(3)  # labels tell which of the two members is right,
        array([0.169, 0.183])
        >>> selection.honest_reduction  # but if neither is, each is alone with the other's labels
        array([0., 0.])
    """

    indices: tuple[int, ...]
    joint_reduction: Array | None
    sampling_error: Array | None
    context_error: Array | None
    method: str
    ranked_by: tuple[str, ...]
    known: dict[str, Any]

    @property
    def honest_reduction(self) -> Array | None:
        """[n]: what the first 1, 2, ... n are worth where no member of the ensemble, or hypothesis, is the truth.

        It may be below 0. Under a Gaussian belief, of which the truth is a draw, it is the joint reduction; None where
        it is not known (one member only, or a belief of your own).
        """
        if self.honest is not None:
            return self.honest.reduction
        return self.joint_reduction if self._exact else None

    @property
    def honest_error(self) -> Array | None:
        """[n]: its standard error, over members and contexts, sampling of labels included."""
        if self.honest is not None:
            return self.honest.error
        return self.context_error if self._exact else None

    @property
    def honest(self) -> HonestReduction | None:
        """All that is known of `honest_reduction`, computed when it is first asked for."""
        if "honest" not in self.known:
            given = {name: self.known[name] for name in ("loss", "belief", "pending", "context_weights")}
            self.known["honest"] = honest_prefixes(batch=self.indices, **given) if self.indices else None
        found: HonestReduction | None = self.known["honest"]
        return found

    @property
    def _exact(self) -> bool:
        """Whether the truth is a draw of the belief, and nothing was sampled."""
        belief = simplest(self.known["belief"])
        latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
        return isinstance(latent, GaussianBelief | VectorGaussianBelief)


def select(
    loss: AnyLoss,
    belief: Belief,
    *,
    n: int,
    costs: Any = None,
    budget: float | None = None,
    context_weights: Any = None,
    random_state: int | np.random.Generator | None = None,
    max_configurations: int = MAX_CONFIGURATIONS,
    pending: Sequence[int] = (),
    stochastic: Stochastic | None = None,
    coldness: float = 1.0,
) -> Selection:
    """Choose candidates to label together, for what their labels are worth jointly; none twice.

    Each is the one with the largest gain (for its cost) on top of those before it. Under Gaussian beliefs the joint
    reduction is exact; of an ensemble's labels, configurations are enumerated or sampled. Where no candidate gains
    anything (for a finite set of actions: above 1e-12 of the most that labels can be worth) the pick is by the worth of
    2, 4, 8, ... labels like it, then by variance reduction (see `fallback_scores`).

    Args:
        loss: What being wrong costs.
        belief: What is believed of the labels of N candidates and the targets of M contexts. A Gaussian one has
            `candidate_covariance`; one of your own has `start_batch`.
        n: How many labels; fewer are chosen if the budget does not reach.
        costs: [N], what each label costs; then the gain per cost decides.
        budget: What may be spent, in the unit of the costs (1 for each label without costs). A candidate that is too
            expensive is passed over, and does not end the batch.
        context_weights: [M], how often each context comes up (normalised); alike without them.
        random_state: An int or a `numpy.random.Generator`, for what is sampled or drawn.
        max_configurations: Of the labels of a batch under an ensemble; beyond, they are sampled. Fewer where each takes
            long (256 at least); votes have no more of them than there are trees, and are never sampled.
        pending: Positions of candidates whose labels are on their way: they are not chosen, and joint reductions come
            on top of them.
        stochastic: "power" or "softmax" to draw candidates instead, under any belief, each in proportion to its
            score^coldness or to exp(coldness score / largest score); scores are those of single labels, per cost. Under
            "power" a score of 0 is drawn only when no other is left.
        coldness: The larger, the nearer a draw is to the top n.

    Returns:
        The batch, with what its labels are worth: where the truth is one of the members (`joint_reduction`), and where
        none is (`honest_reduction`, computed when it is asked for).

    Raises:
        TypeError: If the loss is not defined wherever the target can fall, or the belief has no joint batches.
        StakesError: If a number is out of range, or a Gaussian belief has no covariances between candidates.

    Examples:
        Two candidates are copies of each other: their labels together tell little more than one of them.

        >>> import numpy as np
        >>> from stakes import GaussianBelief, SquaredError, select
        >>> labels = np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> belief = GaussianBelief(
        ...     mean=[0.0, 0.0],
        ...     variance=[1.0, 1.0],
        ...     candidate_variance=[1.0, 1.0, 1.0],
        ...     covariance=[[0.8, 0.0], [0.8, 0.0], [0.0, 0.5]],
        ...     candidate_covariance=labels,
        ... )
        >>> selection = select(SquaredError(), belief, n=2)
        >>> selection.indices
        (0, 2)
        >>> selection.joint_reduction
        array([0.32 , 0.445])
        >>> select(SquaredError(), belief, n=3, costs=[0.1, 5.0, 0.1], budget=0.3).indices
        (0, 2)
    """
    check_pair(loss, belief)
    _check_sizes(belief, n, budget, max_configurations)
    waiting = _checked_pending(belief, n, pending)
    known = {"loss": loss, "belief": belief, "pending": waiting, "context_weights": context_weights}
    prices = checked_prices(costs, belief)
    if stochastic is not None:
        draws = _checked_draws(stochastic, coldness, random_state)
        scores, _ = score(loss, belief, context_weights=context_weights, costs=costs, return_log_scale=True)
        batch = None if obstacle(belief) else start_batch(loss, belief, context_weights, draws, max_configurations)
        before = _started(batch, waiting)
        order = drawn_order(scores, stochastic, coldness, draws)
        picks = _drawn(batch, order, f"{stochastic} of score", prices, budget, waiting)
        return _selection(known, picks, n, batch, before, "stochastic")
    if error := obstacle(belief):
        raise error
    batch = start_batch(loss, belief, context_weights, as_generator(random_state), max_configurations)
    before = _started(batch, waiting)
    picks = _greedy(batch, log_floor(loss, belief, batch), prices, budget, waiting)
    return _selection(known, picks, n, batch, before, None)


def _check_sizes(belief: Belief, n: int, budget: float | None, max_configurations: int) -> None:
    if is_true_or_false(n) or not isinstance(n, Integral) or not 0 < n <= belief.n_candidates:
        raise StakesError(f"n must be a whole number from 1 to {belief.n_candidates}, the candidates; got {n!r}")
    check_budget(budget)
    if not isinstance(max_configurations, int) or max_configurations < 1:
        raise StakesError(f"max_configurations must be a whole number, 1 or more; got {max_configurations!r}")


def _checked_pending(belief: Belief, n: int, pending: Sequence[int]) -> tuple[int, ...]:
    """The candidates on their way, each once; there are n others."""
    waiting = tuple(dict.fromkeys(pending))
    if bad := [each for each in waiting if not isinstance(each, Integral) or not 0 <= each < belief.n_candidates]:
        raise StakesError(f"pending must hold positions from 0 to {belief.n_candidates - 1}; got {bad[0]!r}")
    if n > (free := belief.n_candidates - len(waiting)):
        raise StakesError(f"n must be at most {free}, the candidates that are not pending; got {n}")
    return tuple(int(each) for each in waiting)


def _checked_draws(stochastic: str, coldness: float, random_state: Any) -> np.random.Generator:
    """The generator, or an error that says which setting is wrong."""
    if stochastic not in ("power", "softmax"):
        raise StakesError(f'stochastic must be "power", "softmax" or None; got {stochastic!r}')
    if not (isinstance(coldness, Real) and math.isfinite(coldness) and coldness > 0):
        raise StakesError(f"coldness must be a positive number: the larger, the nearer to the top n; got {coldness!r}")
    if random_state is None:
        raise StakesError(f"stochastic={stochastic!r} draws the batch: give random_state, such as 1")
    return as_generator(random_state)


def drawn_order(scores: Array, stochastic: Stochastic, coldness: float, draws: np.random.Generator) -> Array:
    """[N]: all candidates in the order they are drawn, without replacement, each in proportion to a weight.

    The weight is score^coldness ("power") or exp(coldness score / largest score) ("softmax": relative to the largest,
    so that units do not matter). By Gumbel noise on its log, sorted once. Under "power" scores of 0 come last, in any
    order.
    """
    xp, scores = namespace(scores), double(scores)
    noise = constant(draws.gumbel(size=scores.shape[0]), scores)
    largest = float(xp.max(scores))
    if stochastic == "softmax":
        return _descending(noise + coldness * scores / (largest if largest > 0 else 1.0))
    positive = scores > 0
    keys = noise + coldness * log_of(scores / (largest if largest > 0 else 1.0))
    lowest = float(xp.min(xp.where(positive, keys, xp.zeros_like(keys))))
    return _descending(xp.where(positive, keys, noise + (lowest - float(xp.max(noise)) - 1.0)))


def _descending(keys: Array) -> Array:
    return namespace(keys).argsort(keys, descending=True, stable=True)


def _started(batch: Batch | None, pending: tuple[int, ...]) -> Array | None:
    """[M]: `log_contexts` of a batch once it holds the pending candidates; None without any."""
    if batch is None or not pending:
        return None
    for candidate in pending:
        batch.add(candidate)
    return batch.log_contexts()


def _greedy(batch: Batch, floor: float, prices: Array, budget: float | None, taken: Sequence[int]) -> Iterator[Pick]:
    """Candidates one by one, each with the largest gain for its price on top of those before."""
    xp, positions = namespace(prices), constant(range(prices.shape[0]), prices)
    free, spent = prices > 0, 0.0
    for candidate in taken:
        free = free & (positions != candidate)
    while bool(xp.any(allowed := free & (prices <= left_to_spend(budget, spent)))):
        asked = xp.where(allowed, prices, xp.full_like(prices, xp.inf))
        logs = batch.log_reductions(prices=asked)  # [N]: of the batch with each candidate added
        gains, ranked_by = gains_of(batch, logs, allowed, floor)
        best = int(xp.argmax(xp.where(allowed, gains / prices, xp.full_like(gains, -xp.inf))))
        spent += float(prices[best])
        free = free & (positions != best)
        yield best, float(logs[best]), batch.add(best), batch.log_contexts(), ranked_by


def _drawn(
    batch: Batch | None, order: Array, ranked_by: str, prices: Array, budget: float | None, taken: Sequence[int]
) -> Iterator[Pick]:
    """Candidates in the order of the draw, passing over what is not affordable."""
    spent = 0.0
    for place in range(order.shape[0]):
        candidate = int(order[place])
        price = float(prices[candidate])
        if candidate in taken or not affords(budget, spent, price):
            continue
        spent += price
        if batch is None:
            yield candidate, -math.inf, 0.0, None, ranked_by
        else:
            log_reduction, error = batch.log_reduction(candidate), batch.add(candidate)
            yield candidate, log_reduction, error, batch.log_contexts(), ranked_by


def _selection(
    known: dict[str, Any],
    picks: Iterator[Pick],
    n: int,
    batch: Batch | None,
    before: Array | None,
    method: str | None,
) -> Selection:
    """The first n of the picks, on top of what the pending ones tell of each context, `before` [M]."""
    start = -math.inf if batch is None else batch.log_joint()  # the picks are made below
    chosen = list(islice(picks, n))
    indices, logs, errors, contexts, ranked_by = zip(*chosen, strict=True) if chosen else ((), (), (), (), ())
    loss, belief = known["loss"], known["belief"]
    if batch is None:
        return Selection(indices, None, None, None, method or "", ranked_by, known)
    joint, total = (_plain(loss, belief, logs, each) for each in (start, -math.inf))
    error = total * constant(errors, joint)  # no less than that of what comes on top
    spread = joint * constant([_context_error(batch, each, before) for each in contexts], joint)
    sampled = any(each > 0 for each in errors)  # not what the batch would go on with, but what is reported here
    kind = "enumerated" if batch.method == "sampled" and not sampled else batch.method
    return Selection(indices, joint, error, spread, method or kind, ranked_by, known)


def _plain(loss: AnyLoss, belief: Belief, logs: Sequence[float], start: float) -> Array:
    """[n]: exp(logs) - exp(start); for finite actions 0 where that is smaller than results can hold."""
    lowest = log_smallest(belief) if loss.finite_actions else -math.inf
    top = max((each for each in logs if each >= lowest and math.isfinite(each)), default=0.0)
    before = math.exp(start - top) if start >= lowest else 0.0
    relative = [max(0.0, math.exp(each - top) - before) if each >= lowest else 0.0 for each in logs]
    return unscaled(constant(relative, filled(1, 0.0, belief.like)), top, belief)


def _context_error(batch: Batch, logs: Array, before: Array | None) -> float:
    """The standard error of sum_c p(c) EUR_c over its size: sqrt(sum_c p(c)^2 (EUR_c - mean)^2) / mean."""
    xp, top = namespace(logs), float(namespace(logs).max(logs))
    if not math.isfinite(top):
        return 0.0
    each = xp.exp(logs - top) - (0.0 if before is None else xp.exp(before - top))  # [M]: p(c) EUR_c
    mean = float(xp.sum(each))
    return float(xp.sqrt(xp.sum((each - mean * xp.exp(batch.log_weights)) ** 2))) / mean if mean > 0 else 0.0


def fallback_scores(
    loss: AnyLoss, belief: Belief, *, context_weights: Any = None, costs: Any = None
) -> tuple[Array, int | None]:
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
        [N], and of how many labels like a candidate's they are the worth: 2, 4, ... 1024, or None where those are worth
        nothing either and the numbers are variance reductions.

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
        >>> scores, n_labels = fallback_scores(ThresholdDecision(6.0), belief)
        >>> n_labels
        64
        >>> bool(scores[1] > scores[0] > 0)
        True
    """
    check_pair(loss, belief)
    prices = checked_prices(costs, belief)
    if not has_batches(belief):
        return score(variance_of(belief), belief, context_weights=context_weights, costs=costs), None
    batch = start_batch(loss, belief, context_weights, np.random.default_rng(0), MAX_CONFIGURATIONS)
    gains, top, n_labels = _fallback(batch, prices > 0, log_floor(loss, belief, batch))
    return unscaled(gains / prices, top, belief), n_labels


def fallback_name(n_labels: int | None) -> str:
    """What the numbers of `fallback_scores` are, as text: the worth of so many labels, or variance reduction."""
    return VARIANCE if n_labels is None else f"worth of {n_labels} such labels"


def gains_of(batch: Batch, logs: Array, allowed: Array, floor: float) -> tuple[Array, str]:
    """[N], up to a common factor, and what they are: the gains of `logs` [N], or else the fallback.

    Gains count if that of any `allowed` candidate is above exp(floor).
    """
    gains, top = _gains(logs, batch.log_joint())
    if _any_above(gains, top, allowed, floor):
        return gains, "gain"
    gains, _, n_labels = _fallback(batch, allowed, floor)
    return gains, fallback_name(n_labels)


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
    of_tables = isinstance(loss, PerContext) or not _is_ensemble(belief)
    if of_tables or isinstance(loss, DistributionLoss) or by_logarithms(loss, belief) is not None:
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


def _fallback(batch: Batch, allowed: Array, floor: float) -> tuple[Array, float, int | None]:
    """[N], the log of their unit, and of how many labels they are the worth; None for variance reductions."""
    if floor == math.inf:
        return 0.0 * batch.variance_gains(), 0.0, None
    before = batch.log_joint()
    for count in batch.repeats:
        gains, top = _gains(batch.log_reductions(count), before)
        if _any_above(gains, top, allowed, floor):
            return gains, top, count
    return batch.variance_gains(), 0.0, None


def _gains(logs: Array, before: float) -> tuple[Array, float]:
    """[N]: exp(logs) - exp(before), over the largest of exp(logs), whose log comes along."""
    xp = namespace(logs)
    top = float(xp.max(logs)) if logs.shape[0] else 0.0
    top = top if math.isfinite(top) else 0.0
    return xp.exp(logs - top) - math.exp(before - top), top


def _any_above(gains: Array, top: float, allowed: Array, floor: float) -> bool:
    return bool(namespace(gains).any(allowed & (log_of(gains) + top > floor)))
