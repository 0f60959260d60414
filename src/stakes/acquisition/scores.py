"""What a loss makes of a belief: expected reductions, scores (their mean over contexts), today's best answers and loss.

Reductions and scores run in blocks of candidates and contexts, so that temporaries keep to a limit of memory, and with
the scale of each context taken out, so that weights of any size stay within the range of numbers.
Sizes: N candidates, n of a block, M contexts, m of a block, K members, d coordinates of an action, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, TypeAlias, overload

from array_api_compat import is_array_api_obj
from scipy.special import ndtri

from stakes._utils.array import (
    Array,
    asarrays,
    check_all,
    check_shape,
    constant,
    double,
    filled,
    log_of,
    namespace,
    on_accelerator,
    ratio,
    shares,
    slices,
)
from stakes._utils.compute import in_parts
from stakes.acquisition.forms import (
    Cost,
    Form,
    by_logarithms,
    check_in_range,
    check_pair,
    find_form,
    general_form,
    is_meant_for,
    of_action,
    prices_log,
    regret_of_target,
    resolve,
    simplest,
    today,
)
from stakes.beliefs import Belief, GaussianBelief, VectorGaussianBelief
from stakes.exceptions import StakesError
from stakes.losses import (
    CRPS,
    AbsoluteError,
    AnyLoss,
    DistributionLoss,
    ExponentialLinearWeight,
    ExponentialWeight,
    Linex,
    LogScore,
    Loss,
    Mahalanobis,
    PerContext,
    Pinball,
    SquaredError,
    ThresholdDecision,
)

_ROUNDING = 1e-6  # of the largest reduction, by which one may be below 0
SHARE_RANGE = 600.0
"""Of log shares, within which one product loses nothing."""
MEMORY_LIMIT = 2**28
"""Bytes that temporaries may take beyond inputs and results, unless the caller says otherwise."""
_ON_DEVICE = 2**32  # the same in the memory of a device, where small blocks would leave most of it idle
AT_ONCE = 8
"""Blocks that may be in work at once: each keeps to its share of the limit, so that blocks are the same for one worker
and for many."""
Block: TypeAlias = Callable[[], Array]
"""A block of candidates that is still to be computed: reductions [n, m]."""
_NOT_FINITE = (
    "the expected loss is not finite: the weight or the transform grows too fast for this belief. Give the logarithm "
    "of a weight that overflows, Weight(function, log=...); give targets and costs in units in which they are not "
    "beyond 1e100."
)
_PAIRS = 2**17  # of candidates and contexts, beyond which what is made of them leaves the cache
_CONTEXTS = 256  # contexts integrated at a time where there are no candidates


def expected_reduction(loss: AnyLoss, belief: Belief, *, memory_limit: int | None = None) -> Array:
    """EUR(x; c): by how much the label of x is expected to lower the expected loss of acting well at c.

    By the registered form if there is one (`find_form` tells), by `expected_regret` otherwise.

    Args:
        loss: What being wrong costs.
        belief: What is believed of the labels of N candidates and the targets of M contexts.
        memory_limit: Bytes that temporaries may take; None for 256 MB, or 4 GB on a GPU.

    Returns:
        [N, M], in units of the loss.

    Raises:
        TypeError: If the loss is not defined wherever the target can fall.
        FloatingPointError: If a reduction is out of the range of numbers.

    Examples:
        >>> from stakes import GaussianBelief, SquaredError, expected_reduction
        >>> belief = GaussianBelief(
        ...     mean=[0.0, 0.0], variance=[1.0, 4.0], candidate_variance=[1.0], covariance=[[0.5, 1.0]]
        ... )
        >>> expected_reduction(SquaredError(), belief)  # the variance that the label removes, rho v
        array([[0.25, 1.  ]])
    """
    return _matrix(find_form(loss, belief), loss, belief, memory_limit)


def expected_regret(loss: AnyLoss, belief: Belief, *, memory_limit: int | None = None) -> Array:
    """EUR(x; c) by the general route, sum_y P(y) E[w | y] D(a_y, a): right for every pair, and never a shortcut.

    Args:
        loss: What being wrong costs.
        belief: What is believed of the labels of N candidates and the targets of M contexts.
        memory_limit: Bytes that temporaries may take; None for 256 MB, or 4 GB on a GPU.

    Returns:
        [N, M], in units of the loss.

    Raises:
        TypeError: If the loss is not defined wherever the target can fall.
        FloatingPointError: If a reduction is out of the range of numbers.

    Examples:
        >>> from stakes import CategoricalEnsemble, ZeroOne, expected_regret
        >>> belief = CategoricalEnsemble(
        ...     candidates=[[[0.9, 0.1], [0.1, 0.9]]],  # two members that disagree about one candidate,
        ...     contexts=[[[0.8, 0.2], [0.3, 0.7]]],  # and about one context
        ... )
        >>> expected_regret(ZeroOne(), belief).round(3)
        array([[0.15]])
    """
    check_pair(loss, belief)
    return _matrix(general_form(loss), loss, belief, memory_limit)


@overload
def uncertainty(loss: AnyLoss, belief: Belief, *, return_log_scale: Literal[False] = False) -> Array: ...


@overload
def uncertainty(loss: AnyLoss, belief: Belief, *, return_log_scale: Literal[True]) -> tuple[Array, float]: ...


def uncertainty(loss: AnyLoss, belief: Belief, *, return_log_scale: bool = False) -> Array | tuple[Array, float]:
    """The generalised entropy h = min_a E[l(z, a)] at each context: the expected loss of acting well today.

    Args:
        loss: What being wrong costs.
        belief: What is believed of the targets of M contexts.
        return_log_scale: Whether to return losses relative to the largest, and the log of their scale: the expected
            loss is `values * exp(log_scale)`, however large or small.

    Returns:
        [M], in units of the loss; with `return_log_scale`, also the log of the scale.

    Raises:
        TypeError: If the loss is not defined wherever the target can fall.
        FloatingPointError: If an expected loss is out of the range of numbers.

    Examples:
        >>> from stakes import GaussianBelief, SquaredError, ThresholdDecision, uncertainty
        >>> belief = GaussianBelief(mean=[0.0], variance=[4.0], candidate_variance=[1.0], covariance=[[1.0]])
        >>> uncertainty(SquaredError(), belief)
        array([4.])
        >>> uncertainty(ThresholdDecision(0.0), belief)  # wrong half of the time
        array([0.5])
        >>> from stakes import ExponentialWeight
        >>> heavy = SquaredError(ExponentialWeight(100.0))  # E[w] is exp(20000)
        >>> uncertainty(heavy, belief, return_log_scale=True)
        (array([1.]), 20001.38629436112)
    """
    check_pair(loss, belief)
    values, scales, xp = [], [], namespace(belief.like)
    for one, block, log_price in _loss_blocks(loss, belief):
        value, log_scale = _uncertainty(one, block)
        values.append(double(value))
        scales.append(double(log_scale) + log_price)
    value, log_scale = check_finite(xp.concat(values)), xp.concat(scales)
    if not return_log_scale:
        return unscaled(value, log_scale, belief)
    relative, sign = _relative(log_of(abs(value)) + log_scale), xp.sign(value)
    return xp.astype(sign * relative[0], belief.like.dtype), relative[1]


def _uncertainty(loss: AnyLoss, block: Belief) -> tuple[Array, Array]:
    """[m] each: h, and the log of a scale that was taken out."""
    if (closed := _closed_uncertainty(loss, block)) is not None:
        return closed
    if isinstance(loss, DistributionLoss):
        reference, distribution, marks = today(loss, block)
        return loss.uncertainty(distribution, marks), reference.log_scale
    action, reference = _action_today(loss, block), block.reference(loss)
    cost_of_action = of_action(loss, _rough_as(loss, block), action, cost_of(loss, block))
    return block.moments(cost_of_action, reference)[:, 0], reference.log_scale


def _closed_uncertainty(loss: AnyLoss, belief: Belief) -> tuple[Array, Array] | None:
    """[M] each: h = EUR_c(1) and its log scale, where that has a closed form, which no weight takes out of range."""
    weight, kind, belief = getattr(loss, "weight", None), type(loss), simplest(belief)
    if weight is not None and not isinstance(weight, ExponentialWeight | ExponentialLinearWeight):
        return None
    if type(belief) is GaussianBelief and kind in (SquaredError, Linex, AbsoluteError, Pinball, CRPS):
        xp, variance = namespace(belief.like), double(belief.variance)
        one = filled(1, 1.0, belief.like)
        known = GaussianBelief(double(belief.mean), variance, one, xp.sqrt(variance)[None, :])
        of, log_scale = find_form(loss, known).prepare(loss, known)
        return of(known)[0, :], log_scale
    if type(belief) is GaussianBelief and kind is LogScore:  # the entropy, of the weighted density
        variance = double(belief.variance)
        return log_of(2.0 * math.pi * math.e * variance) / 2.0, log_mean_weight(weight, belief)
    if type(belief) is VectorGaussianBelief and kind is Mahalanobis:
        xp, variance = namespace(belief.like), double(belief.variance)
        priced = xp.matmul(constant(loss.matrix, variance), variance)  # type: ignore[union-attr]
        return xp.sum(xp.linalg.diagonal(priced), axis=-1), log_mean_weight(weight, belief)
    return None


def log_mean_weight(weight: Any, belief: Any) -> Array:
    """[M]: log E[w], for w = exp(a z) a m + a^2 v / 2, for vectors b . m + b' V b / 2; 0 without a weight."""
    xp, mean, variance = namespace(belief.mean), double(belief.mean), double(belief.variance)
    if weight is None:
        return filled(belief.n_contexts, 0.0, belief.mean)
    if isinstance(weight, ExponentialLinearWeight):
        rates = constant(weight.rates, mean)
        return xp.matmul(mean, rates) + xp.matmul(xp.matmul(variance, rates), rates) / 2.0
    return weight.rate * mean + weight.rate**2 * variance / 2.0


def _action_today(loss: Loss, block: Any) -> Array:
    """[m, d]: the best action, as `cost_of` takes it: its logarithm where plain numbers do not hold it."""
    logs, reference = by_logarithms(loss, block), block.reference(loss)
    if logs is not None:
        return logs.action(block.log_moments(logs, reference))
    moments = block.moments(loss, reference)  # [m, D]
    check_in_range(loss, block, moments[:, None, :])
    return loss.action(moments)


def _rough_as(loss: Any, block: Belief) -> Any:
    """The loss with the places where its costs are rough: by logarithms, those of its weight alone."""
    return resolve(loss if by_logarithms(loss, block) is None else SquaredError(loss.weight), block)


def cost_of(loss: Loss, block: Belief) -> Cost:
    """What an action costs for each target, of `_action_today`."""
    logs = by_logarithms(loss, block)
    return loss.pointwise if logs is None else logs.pointwise


def best_of_knowing(loss: AnyLoss, belief: Belief) -> Array:
    """[M]: the reduction by a label that tells the target itself, the most that labels can be worth.

    For a loss of a distribution no more is known than all of the loss.
    """
    if isinstance(loss, DistributionLoss):
        return uncertainty(loss, belief)
    if isinstance(loss, PerContext):
        parts = loss.runs(belief.n_contexts)
        found = [
            best_of_knowing(one, belief.take(slice(None), part)) * (1.0 if by is None else constant(by, belief.like))
            for part, one, by in parts
        ]
        return namespace(belief.like).concat(found)
    values, scales = [], []
    for block in context_blocks(belief):
        logs, reference = by_logarithms(loss, block), block.reference(loss)
        cost: Cost = partial(regret_of_target, loss) if logs is None else logs.pointwise
        cost_of_action = of_action(loss, _rough_as(loss, block), _action_today(loss, block), cost)
        values.append(block.moments(cost_of_action, reference)[:, 0])
        scales.append(reference.log_scale)
    xp = namespace(belief.like)
    return unscaled(xp.concat(values), xp.concat(scales), belief)


def expected_posterior_uncertainty(loss: AnyLoss, belief: Belief, *, memory_limit: int | None = None) -> Array:
    """EPU(x; c) = h - EUR, the expected loss of acting well at c once the label of x is known.

    Args:
        loss: What being wrong costs.
        belief: What is believed of the labels of N candidates and the targets of M contexts.
        memory_limit: Bytes that temporaries may take; None for 256 MB, or 4 GB on a GPU.

    Returns:
        [N, M], in units of the loss.

    Raises:
        TypeError: If the loss is not defined wherever the target can fall.

    Examples:
        >>> from stakes import GaussianBelief, SquaredError, expected_posterior_uncertainty
        >>> belief = GaussianBelief(mean=[0.0], variance=[4.0], candidate_variance=[1.0], covariance=[[1.0]])
        >>> expected_posterior_uncertainty(SquaredError(), belief)
        array([[3.]])
    """
    before, reduction = uncertainty(loss, belief), expected_reduction(loss, belief, memory_limit=memory_limit)
    xp, left = namespace(before), before - reduction
    if isinstance(loss, LogScore):  # whose uncertainty may be below 0
        return left
    return xp.where(left > 0, left, xp.zeros_like(left))  # below by rounding only, where a label tells nearly all


def blocks(
    form: Form, loss: AnyLoss, belief: Belief, memory_limit: int | None
) -> Iterator[tuple[slice, Array, Iterator[Block]]]:
    """Contexts in blocks: which, their log scales [m], and the blocks of candidates in order."""
    numbers = numbers_within(memory_limit, belief)
    pairs = max(1, min(_PAIRS, numbers // form.numbers(loss, belief)))  # candidates x contexts that fit
    for contexts in slices(belief.n_contexts, max(1, min(pairs, numbers // form.context_numbers))):
        here = belief.take(slice(None), contexts)
        of, log_scale = form.prepare(_losses_at(loss, contexts, belief.n_contexts), here)
        parts = slices(here.n_candidates, max(1, pairs // here.n_contexts))
        yield contexts, log_scale, (partial(of, here.take(part, slice(None))) for part in parts)


def numbers_within(memory_limit: int | None, belief: Belief) -> int:
    """How many numbers each of the blocks that are in work at once may hold; None: of 256 MB, or of 4 GB on a GPU."""
    if memory_limit is None:
        memory_limit = _ON_DEVICE if on_accelerator(belief.like) else MEMORY_LIMIT
    if not isinstance(memory_limit, int) or memory_limit <= 0:
        raise StakesError(f"memory_limit must be a positive number of bytes; got {memory_limit!r}")
    return memory_limit // (8 * AT_ONCE)


def context_blocks(belief: Belief) -> Iterator[Belief]:
    """The belief in blocks of contexts, for what is integrated over contexts alone."""
    return (belief.take(slice(None), part) for part in slices(belief.n_contexts, _CONTEXTS))


def _loss_blocks(loss: AnyLoss, belief: Belief) -> Iterator[tuple[AnyLoss, Belief, Any]]:
    """Blocks of contexts with one loss: that, the block, and the logs of its prices."""
    if not isinstance(loss, PerContext):
        yield from ((loss, block, 0.0) for block in context_blocks(belief))
        return
    for part, one, prices in loss.runs(belief.n_contexts):
        here = belief.take(slice(None), part)
        for inner in slices(here.n_contexts, _CONTEXTS):
            log_price = 0.0 if prices is None else constant(prices_log(prices[inner]), belief.like)
            yield one, here.take(slice(None), inner), log_price


def _losses_at(loss: Any, contexts: slice, count: int) -> Any:
    """The loss for a block of all `count` contexts."""
    return loss.take(contexts, count) if isinstance(loss, PerContext) else loss


def unscaled(values: Array, log_scale: Array | float, belief: Belief) -> Array:
    """`values * exp(log_scale)` in the dtype of the belief, or in double precision where the scale leaves its range.

    An error where it leaves that, too.
    """
    xp, dtype = namespace(values), belief.like.dtype
    values = check_finite(double(values))
    if isinstance(log_scale, float):
        return _times_exp(values, log_scale, dtype)
    something = values != 0
    log_scale = xp.where(something, log_scale + xp.zeros_like(values), xp.zeros_like(values))
    if bool(xp.any(something)) and (dtype != xp.float64 or bool(xp.any(log_scale != 0))):
        log_values = log_scale + xp.log(xp.where(something, abs(values), xp.ones_like(values)))
        largest = float(xp.max(xp.where(something, log_values, xp.full_like(values, -xp.inf))))
        dtype = _holding(largest, dtype, xp)
    half = xp.exp(log_scale / 2.0)  # applied twice: the scale alone may be out of range
    return xp.astype(values * half * half, dtype)


def _times_exp(values: Array, log_scale: float, dtype: Any) -> Array:
    """The same with one scale for all values."""
    xp = namespace(values)
    most = float(xp.max(abs(values))) if 0 not in values.shape else 0.0
    if most == 0.0:
        return xp.astype(values, dtype)
    if dtype != xp.float64 or log_scale != 0.0:
        dtype = _holding(log_scale + math.log(most), dtype, xp)
    half = math.exp(log_scale / 2.0)
    return xp.astype(values * half * half, dtype)


def _holding(log_value: float, dtype: Any, xp: Any) -> Any:
    """The dtype, or double precision where that alone holds exp(log_value); an error where nothing does."""
    dtype = dtype if _holds(xp.finfo(dtype), log_value) else xp.float64
    if not _holds(xp.finfo(dtype), log_value):
        raise FloatingPointError(
            f"the largest result is exp({log_value:.1f}), beyond the range of {dtype}: ask for results relative to a "
            "common scale, score(..., return_log_scale=True) or uncertainty(..., return_log_scale=True)"
        )
    return dtype


def _holds(info: Any, log_value: float) -> bool:
    return bool(math.log(info.smallest_normal) <= log_value <= math.log(info.max))


def check_finite(values: Array) -> Array:
    """`values`, or an error where they are not finite."""
    if not bool(namespace(values).all(namespace(values).isfinite(values))):
        raise FloatingPointError(_NOT_FINITE)
    return values


def check_logs(logs: Array) -> Array:
    """`logs` of numbers at least 0, or an error where those are not finite."""
    _top(logs)
    return logs


def _matrix(form: Form, loss: AnyLoss, belief: Belief, memory_limit: int | None) -> Array:
    """[N, M]: the reductions of all blocks in plain numbers."""
    xp = namespace(belief.like)
    columns, scales = [], []
    for _, log_scale, parts in blocks(form, loss, belief, memory_limit):
        columns.append(xp.concat([part() for part in parts], axis=0))
        scales.append(log_scale)
    return unscaled(xp.concat(columns, axis=1), xp.concat(scales), belief)


@overload
def score(
    loss: AnyLoss,
    belief: Belief,
    *,
    context_weights: Any = None,
    costs: Any = None,
    return_log_scale: Literal[False] = False,
    form: Form | None = None,
    memory_limit: int | None = None,
    n_jobs: int | None = None,
) -> Array: ...


@overload
def score(
    loss: AnyLoss,
    belief: Belief,
    *,
    context_weights: Any = None,
    costs: Any = None,
    return_log_scale: Literal[True],
    form: Form | None = None,
    memory_limit: int | None = None,
    n_jobs: int | None = None,
) -> tuple[Array, float]: ...


def score(
    loss: AnyLoss,
    belief: Belief,
    *,
    context_weights: Any = None,
    costs: Any = None,
    return_log_scale: bool = False,
    form: Form | None = None,
    memory_limit: int | None = None,
    n_jobs: int | None = None,
) -> Array | tuple[Array, float]:
    """What the label of each candidate is worth for one decision, in units of the loss: E_c[EUR(x; c)].

    Args:
        loss: What being wrong costs.
        belief: What is believed of the labels of N candidates and the targets of M contexts.
        context_weights: [M], how often each context comes up (normalised); alike without them.
        costs: [N], what each label costs; scores are then the value per cost.
        return_log_scale: Whether to return scores relative to the largest, and the log of their scale: what labels are
            worth is `scores * exp(log_scale)`, however large or small.
        form: Another form than that of `find_form`, made for such a pair.
        memory_limit: Bytes that temporaries of all workers together may take, if one pair of a candidate and a context
            fits; None for 256 MB, or 4 GB on a GPU.
        n_jobs: How many workers share blocks of candidates, 8 of them at most at once; None for one, or for what
            `joblib.parallel_config` says; -1 for all cores. Scores are the same for any number of them.

    Returns:
        [N], in the library, dtype and device of the belief; with `return_log_scale`, also the log of the scale.

    Raises:
        TypeError: If the loss is not defined wherever the target can fall.
        StakesError: If weights or costs have a wrong shape or sign, or the form is not meant for the pair.
        FloatingPointError: If a score is out of the range of numbers.

    Examples:
        >>> from stakes import GaussianBelief, SquaredError, score
        >>> belief = GaussianBelief(
        ...     mean=[0.0, 2.0],
        ...     variance=[1.0, 1.0],
        ...     candidate_variance=[1.0, 1.0],
        ...     covariance=[[0.8, 0.1], [0.1, 0.6]],  # the first candidate tells of the first context
        ... )
        >>> score(SquaredError(), belief)
        array([0.325, 0.185])
        >>> score(SquaredError(), belief, context_weights=[0, 1], costs=[1, 2])  # only the second context comes up
        array([0.01, 0.18])
    """
    form = chosen_form(form, loss, belief)
    weights = checked_context_weights(context_weights, belief)  # [M]
    if form.total is None:
        log_scores = _one_by_one(form, loss, belief, weights, memory_limit, n_jobs)
    else:
        worth = form.total.prepare(loss, belief, weights)
        log_scores = _in_blocks(form, worth, loss, belief, memory_limit, n_jobs)
    if costs is not None:
        log_scores = log_scores - namespace(belief.like).log(checked_costs(costs, belief))
    xp, dtype = namespace(belief.like), belief.like.dtype
    if return_log_scale:
        relative, top = _relative(log_scores)
        return xp.astype(relative, dtype), top
    if (top := _top(log_scores)) > -math.inf:
        dtype = _holding(top, dtype, xp)
    return xp.astype(xp.exp(log_scores), dtype)


def _relative(log_scores: Array) -> tuple[Array, float]:
    """[N]: scores over the largest, and the log of that."""
    top = _top(log_scores)
    top = top if math.isfinite(top) else 0.0
    return namespace(log_scores).exp(log_scores - top), top


def _top(log_scores: Array) -> float:
    """The largest, -inf where there is none, or an error where they are not of finite numbers."""
    top = float(namespace(log_scores).max(log_scores)) if log_scores.shape[0] else -math.inf
    if not top < math.inf:  # which is no number where one of them is not
        raise FloatingPointError(_NOT_FINITE)
    return top


def prepare_score(loss: AnyLoss, *, context_weights: Any = None) -> Callable[[Belief], tuple[Array, float]]:
    """A function from beliefs, all with the same contexts, to their scores [N] over exp(log scale), and that log scale.

    As `score(..., return_log_scale=True)` has them; what a form needs to know of the contexts is computed once, for
    pools that come in parts.
    """
    prepared: dict[Form, Callable[[Belief], Array]] = {}

    def scores(belief: Belief) -> tuple[Array, float]:
        form = find_form(loss, belief)
        if form not in prepared:
            prepared[form] = log_scorer(form, loss, belief, context_weights)
        relative, top = _relative(prepared[form](belief))
        return namespace(relative).astype(relative, belief.like.dtype), top

    return scores


def chosen_form(form: Form | None, loss: AnyLoss, belief: Belief) -> Form:
    """The form of the caller's choice, refused where it is not meant for the pair; None: that of `find_form`."""
    chosen = find_form(loss, belief)
    if form is None:
        return chosen
    if not isinstance(form, Form):
        raise TypeError(f"form must be a Form, such as find_form and fused_form give; got {type(form).__name__}")
    if not is_meant_for(form, loss, belief):
        raise StakesError(
            f"the form {form.name!r} is not meant for {type(loss).__name__} and this {type(belief).__name__}: leave it "
            f"out, and {chosen.name!r} runs"
        )
    return form


def _one_by_one(
    form: Form, loss: AnyLoss, belief: Belief, weights: Array, memory_limit: int | None, n_jobs: int | None
) -> Array:
    """[N]: log scores, from the reductions of each context."""
    xp = namespace(belief.like)
    log_scores = None  # [N]
    for contexts, log_scale, parts in blocks(form, loss, belief, memory_limit):
        log_share = double(log_scale) + log_of(weights[contexts])  # [m]
        worths = in_parts(_block_worths, ((part, log_share) for part in parts), n_jobs, most=AT_ONCE)
        found = _joined(list(worths), xp)
        log_scores = found if log_scores is None else _log_sum(log_scores, found)
    return log_scores


def _joined(parts: list[Array], xp: Any) -> Array:
    """All parts, end to end."""
    return parts[0] if len(parts) == 1 else xp.concat(parts)


def _block_worths(block: Block, log_share: Array) -> Array:
    """[n]: `log_worth` of a block that is computed now."""
    return log_worth(double(block()), log_share)


def log_scorer(form: Form, loss: AnyLoss, belief: Belief, context_weights: Any) -> Callable[[Belief], Array]:
    """A function from other candidates of the same contexts to their log scores [n]; contexts are prepared once."""
    weights = checked_context_weights(context_weights, belief)
    if form.total is None:
        return lambda block: _one_by_one(form, loss, block, weights, None, None)
    worth = form.total.prepare(loss, belief, weights)
    return lambda block: check_logs(_in_blocks(form, worth, loss, block, None, None))


def _in_blocks(
    form: Form,
    worth: Callable[[Any], Array],
    loss: AnyLoss,
    belief: Belief,
    memory_limit: int | None,
    n_jobs: int | None,
) -> Array:
    """[N]: log scores, of as many candidates at a time as the limit has room for."""
    assert form.total is not None
    step = max(1, numbers_within(memory_limit, belief) // form.total.numbers(loss, belief))
    if belief.n_candidates <= step:
        return _block_totals(worth, form.total.in_logs, belief)
    parts = ((worth, form.total.in_logs, belief.take(part, slice(None))) for part in slices(belief.n_candidates, step))
    return _joined(list(in_parts(_block_totals, parts, n_jobs, most=AT_ONCE)), namespace(belief.like))


def _block_totals(worth: Callable[[Any], Array], in_logs: bool, block: Belief) -> Array:
    """[n]: the log of what a block is worth."""
    return worth(block) if in_logs else log_of(check_finite(worth(block)))


def log_worth(part: Array, log_share: Array) -> Array:
    """[n]: log of sum_m part[n, m] exp(log_share[m]); -inf where that is nothing.

    By a product where all shares are in range of each other; else by logarithms, so that a context with a huge weight
    and nothing to learn does not drown the others.
    """
    xp = namespace(part)
    check_sign(check_finite(part))
    largest, least = float(xp.max(log_share)), float(xp.min(log_share))
    if least == -math.inf:  # of those that come up at all
        least = float(xp.min(xp.where(log_share > -xp.inf, log_share, xp.full_like(log_share, largest))))
    if least > largest - SHARE_RANGE or largest == -math.inf:
        largest = largest if math.isfinite(largest) else 0.0
        return log_of(xp.matmul(part, xp.exp(log_share - largest))) + largest
    logs = log_of(part) + log_share
    top = xp.max(logs, axis=1, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return log_of(xp.sum(xp.exp(logs - top), axis=1)) + top[:, 0]


def regret_of_members(loss: Any, member_weights: Array, expected: Array, action: Array, point: Array | None) -> Array:
    """[M]: the regret of an action [M, d] once the member of an ensemble is known, which expects moments [M, K, D]."""
    known = double(member_weights)[:, None] * expected  # [M, K, D]
    regrets = loss.regret(known, action[:, None, :], point)  # [M, K]
    return namespace(regrets).sum(regrets, axis=1)


def check_sign(part: Array) -> None:
    """Refuse reductions that are negative by more than rounding: no label is worth less than nothing."""
    xp = namespace(part)
    least = float(xp.min(part)) if 0 not in part.shape else 0.0
    if least < 0.0 and least < -_ROUNDING * float(xp.max(abs(part))):
        raise FloatingPointError(
            f"an expected reduction of {least:.3g} beside one of {float(xp.max(part)):.3g}: none can be "
            "negative, so the loss, the belief or the form that ran is wrong. Compare it with expected_regret, and run "
            "stakes.testing.check_loss and check_belief."
        )


def _log_sum(a: Array, b: Array) -> Array:
    """log(exp(a) + exp(b)), -inf standing for 0."""
    xp = namespace(a)
    top = xp.maximum(a, b)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    return log_of(xp.exp(a - top) + xp.exp(b - top)) + top


def effective_context_weights(loss: AnyLoss, belief: Belief, *, context_weights: Any = None) -> Array:
    """Where the loss looks: p_w(c), proportional to p(c) E[w(z) | c] (the paper's Corollary 1).

    Args:
        loss: What being wrong costs. One without a weight looks where the contexts are.
        belief: What is believed of the targets.
        context_weights: [M], p(c): how often each context comes up (normalised); alike without them.

    Returns:
        [M], which sum to one.

    Raises:
        StakesError: If the loss puts no weight on any target that the belief thinks possible.

    Examples:
        >>> from stakes import ExponentialWeight, GaussianBelief, SquaredError, effective_context_weights
        >>> belief = GaussianBelief(
        ...     mean=[0.0, 1.0], variance=[1.0, 1.0], candidate_variance=[1.0], covariance=[[0.5, 0.5]]
        ... )
        >>> effective_context_weights(SquaredError(ExponentialWeight(1.0)), belief).round(3)  # 1 : e
        array([0.269, 0.731])
    """
    check_pair(loss, belief)
    xp = namespace(belief.like)
    weights = checked_context_weights(context_weights, belief)
    if getattr(loss, "weight", None) is None:
        return xp.astype(weights, belief.like.dtype)
    log_weights = log_of(weights) + xp.concat([_log_mean_weight(loss, block) for block in context_blocks(belief)])
    top = xp.max(log_weights)
    check_all(xp.isfinite(top), "the loss puts no weight on any target that the belief thinks possible")
    return xp.astype(shares("the weights of contexts", xp.exp(log_weights - top)), belief.like.dtype)


def _log_mean_weight(loss: Any, block: Any) -> Array:
    """[m]: log E[w | c], in closed form where there is one."""
    kinds, block = {GaussianBelief: ExponentialWeight, VectorGaussianBelief: ExponentialLinearWeight}, simplest(block)
    if kinds.get(type(block)) is type(loss.weight):
        return log_mean_weight(loss.weight, block)
    logs, reference = by_logarithms(loss, block), block.reference(loss)
    if logs is not None:
        log_mean = block.log_moments(logs, reference)[:, 0]
    else:
        log_mean = log_of(double(block.moments(loss, reference)[:, 0]))
    return log_mean + double(reference.log_scale)


def integration_error(loss: AnyLoss, belief: Any, *, context_weights: Any = None) -> Array:
    """How far each score moves when the belief's rule of integration is refined: where it is small, it has converged.

    Args:
        loss: What being wrong costs.
        belief: One that integrates outcomes by a rule of choice, such as `NormalEnsemble`.
        context_weights: [M], how often each context comes up (normalised); alike without them.

    Returns:
        [N], as a fraction of the largest score.

    Raises:
        TypeError: If the belief has no rule to refine.

    Examples:
        >>> import numpy as np
        >>> from stakes import NormalEnsemble, SquaredError, integration_error
        >>> belief = NormalEnsemble([[0.0, 1.0]], 0.5, [[0.0, 2.0]], 0.5)  # two members
        >>> bool(integration_error(SquaredError(), belief)[0] < 1e-6)
        True
    """
    if not hasattr(belief, "refined"):
        raise TypeError(f"{type(belief).__name__} has no rule to refine: its outcomes are exact or to 1e-9")
    now, finer = (score(loss, each, context_weights=context_weights) for each in (belief, belief.refined()))
    largest = namespace(now).max(finer) if belief.n_candidates else now
    return ratio(abs(finer - now), largest + namespace(now).zeros_like(now))


def checked_context_weights(context_weights: Any, belief: Belief) -> Array:
    """[M]: checked, normalised, in double precision."""
    count = belief.n_contexts
    if context_weights is None:
        return filled(count, 1.0 / count, belief.like)
    _, weights = asarrays(like=double(belief.like), context_weights=context_weights)  # of any scale
    check_shape("context_weights", weights, (count,))
    return shares("context_weights", weights)


def checked_costs(costs: Any, belief: Belief) -> Array:
    """[N]: checked, in double precision."""
    _, costs = asarrays(like=double(belief.like), costs=costs)  # of any scale
    check_shape("costs", costs, (belief.n_candidates,))
    check_all(costs > 0, "costs must be positive: what it takes to label each candidate")
    return costs


def bayes_prediction(loss: AnyLoss, belief: Belief) -> Any:
    """The Bayes answer at each context: the one with the least expected loss, in target units.

    Args:
        loss: Any loss.
        belief: A belief about targets of the kind that the loss is about.

    Returns:
        [M]; [M, C] for class probabilities, [M, d] for vectors; for LogScore and CRPS the `Distribution` of the target
        at all M contexts, re-weighted by their weight; a list of one for each where losses per context differ.

    Raises:
        TypeError: If the loss and the belief are about targets of different kinds.

    Examples:
        >>> from stakes import ExponentialWeight, GaussianBelief, SquaredError
        >>> belief = GaussianBelief([0.0, 1.0], [1.0, 4.0], candidate_variance=[1.0], covariance=[[0.5, 0.5]])
        >>> bayes_prediction(SquaredError(), belief)
        array([0., 1.])
        >>> bayes_prediction(SquaredError(weight=ExponentialWeight(0.5)), belief)  # large targets count more
        array([0.5, 3. ])
    """
    check_pair(loss, belief)
    if isinstance(loss, PerContext):
        parts = [(part, one) for part, one, _ in loss.runs(belief.n_contexts)]
        found = [bayes_prediction(one, belief.take(slice(None), part)) for part, one in parts]
        if all(is_array_api_obj(each) for each in found):
            return namespace(belief.like).concat(found)
        places = [(m, one) for part, one in parts for m in range(part.start, part.stop)]
        each = (bayes_prediction(one, belief.take(slice(None), slice(m, m + 1))) for m, one in places)
        return found[0] if len(found) == 1 else list(each)
    closed = closed_answer(loss, belief)
    return integrated_answer(loss, belief) if closed is None else closed


def closed_answer(loss: AnyLoss, belief: Belief) -> Array | None:
    """[M]: the answer with the least expected loss; None where no closed form is known.

    Under a Gaussian belief some answers have a closed form, where nothing is integrated and nothing can overflow:

    | loss                    | answer, for w = exp(a z) or a = 0 |
    |-------------------------|-----------------------------------|
    | squared error           | m + a v                           |
    | Linex(alpha)            | m + a v - alpha v / 2             |
    | pinball(tau), absolute  | m + a v + sqrt(v) Phi^-1(tau)     |
    | threshold decision      | 1 (act) where P(z > t) is enough  |

    The weight turns N(m, v) into N(m + a v, v).
    """
    weight, belief = getattr(loss, "weight", None), simplest(belief)
    if type(belief) is not GaussianBelief or not (weight is None or isinstance(weight, ExponentialWeight)):
        return None
    mean, variance = belief.mean, belief.variance
    centre = mean if weight is None else mean + weight.rate * variance
    if type(loss) is SquaredError:
        return centre
    if type(loss) is Linex:
        return centre - float(loss.alpha) / 2.0 * variance
    if type(loss) is AbsoluteError or type(loss) is Pinball:
        level = 0.5 if isinstance(loss, AbsoluteError) else float(loss.tau)
        return centre + float(ndtri(level)) * namespace(variance).sqrt(variance)
    if type(loss) is ThresholdDecision:
        xp, enough = namespace(mean), normal_quantile(loss.false_alarm, loss.miss)
        return xp.astype(mean - loss.threshold > -enough * xp.sqrt(variance), xp.int64)
    return None


def normal_quantile(upper: float, lower: float) -> float:
    """The u with P(U > u) : P(U < u) = upper : lower, from the smaller of the two."""
    share = min(upper, lower) / (upper + lower)
    return float(ndtri(share)) * (1.0 if lower < upper else -1.0)


def integrated_answer(loss: AnyLoss, belief: Belief) -> Any:
    """The Bayes answer by the general route, for any loss and belief."""
    xp, answers = namespace(belief.like), []
    if isinstance(loss, DistributionLoss):
        no_marks = filled((belief.n_contexts, 0), 0.0, belief.like)
        given: Any = belief
        answer = loss.prediction(given.distribution(loss, given.reference(loss), no_marks))
        return xp.astype(answer, belief.like.dtype) if is_array_api_obj(answer) else answer
    for block in context_blocks(belief):
        logs, reference = by_logarithms(loss, block), block.reference(loss)
        action = check_finite(_action_today(loss, block))  # [m, d]
        answers.append((loss if logs is None else logs).prediction(action, reference.point))
    answer = xp.concat(answers)
    return xp.astype(answer, belief.like.dtype) if xp.isdtype(answer.dtype, "real floating") else answer
