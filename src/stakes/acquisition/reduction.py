"""Expected uncertainty reduction and what belongs to it, for every candidate and context.

Sizes: N candidates, M contexts, m contexts of a block, n candidates of a block, d coordinates of an action.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

from stakes._utils.array import Array, double, namespace, on_accelerator, slices
from stakes.acquisition.forms import Form, check_pair, find_form, general_form, today
from stakes.beliefs import Belief, Integrand, Reference
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, Loss
from stakes.losses.domains import target_axes

MEMORY_LIMIT = 2**28
"""Bytes that temporaries may take beyond inputs and results, unless the caller says otherwise."""
_ON_DEVICE = 2**32  # the same in the memory of a device, where small blocks would leave most of it idle
AT_ONCE = 8
"""Blocks that may be in work at once: each keeps to its share of the limit, so that blocks are the same for one worker
and for many."""
Block: TypeAlias = Callable[[], Array]
"""A block of candidates that is still to be computed: reductions [n, m]."""
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


def uncertainty(loss: AnyLoss, belief: Belief) -> Array:
    """The generalised entropy h = min_a E[l(z, a)] at each context: the expected loss of acting well today.

    Args:
        loss: What being wrong costs.
        belief: What is believed of the targets of M contexts.

    Returns:
        [M], in units of the loss.

    Raises:
        TypeError: If the loss is not defined wherever the target can fall.

    Examples:
        >>> from stakes import GaussianBelief, SquaredError, ThresholdDecision, uncertainty
        >>> belief = GaussianBelief(mean=[0.0], variance=[4.0], candidate_variance=[1.0], covariance=[[1.0]])
        >>> uncertainty(SquaredError(), belief)
        array([4.])
        >>> uncertainty(ThresholdDecision(0.0), belief)  # wrong half of the time
        array([0.5])
    """
    check_pair(loss, belief)
    values, scales = [], []
    for block in context_blocks(belief):
        reference, value = _uncertainty(loss, block)
        values.append(value)
        scales.append(reference.log_scale)
    xp = namespace(belief.like)
    return unscaled(xp.concat(values), xp.concat(scales), belief)


def _uncertainty(loss: AnyLoss, block: Belief) -> tuple[Reference, Array]:
    """[m]: h over the scale of the reference, and that."""
    if isinstance(loss, DistributionLoss):
        reference, distribution, marks = today(loss, block)
        return reference, loss.uncertainty(distribution, marks)
    reference = block.reference(loss)
    action = loss.action(block.moments(loss, reference))  # [m, d]
    return reference, block.moments(_of_action(loss, action, loss.pointwise), reference)[:, 0]


def best_of_knowing(loss: Loss, belief: Belief) -> Array:
    """[M]: the reduction by a label that tells the target itself, the most that labels can be worth."""
    values, scales = [], []
    for block in context_blocks(belief):
        reference = block.reference(loss)
        action = loss.action(block.moments(loss, reference))  # [m, d]
        values.append(block.moments(_of_action(loss, action, partial(_regret_of_target, loss)), reference)[:, 0])
        scales.append(reference.log_scale)
    xp = namespace(belief.like)
    return unscaled(xp.concat(values), xp.concat(scales), belief)


def _regret_of_target(loss: Loss, z: Array, action: Array, point: Array | None) -> Array:
    """[...]: what the action loses once the target is known to be z."""
    return loss.regret(loss.statistics(z, point), action, point)


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
    return uncertainty(loss, belief) - expected_reduction(loss, belief, memory_limit=memory_limit)


Cost: TypeAlias = Callable[[Array, Array, Array | None], Array]
"""Targets z, an action and the reference point to costs [...]."""


def _of_action(loss: Loss, action: Array, cost: Cost) -> Integrand:
    """What a fixed action [M, d] at each context costs, as the one statistic to take the moment of."""

    def statistics(z: Array, reference: Array | None = None) -> Array:
        between = (1,) * (1 if reference is None else reference.ndim - 1 - target_axes(loss.domain))
        here = namespace(z).reshape(action, (action.shape[0], *between, action.shape[1]))
        return cost(z, here, reference)[..., None]

    integrand: Any = SimpleNamespace(
        domain=loss.domain,
        breakpoints=loss.breakpoints,
        finite_actions=False,
        log_magnitudes=loss.log_magnitudes,
        statistics=statistics,
    )
    return integrand  # type: ignore[no-any-return]


def blocks(
    form: Form, loss: AnyLoss, belief: Belief, memory_limit: int | None
) -> Iterator[tuple[slice, Array, Iterator[Block]]]:
    """Contexts in blocks: which, their log scales [m], and the blocks of candidates in order."""
    numbers = numbers_within(memory_limit, belief)
    pairs = max(1, min(_PAIRS, numbers // form.numbers(loss, belief)))  # candidates x contexts that fit
    for contexts in slices(belief.n_contexts, max(1, min(pairs, numbers // form.context_numbers))):
        here = belief.take(slice(None), contexts)
        of, log_scale = form.prepare(loss, here)
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


def unscaled(values: Array, log_scale: Array | float, belief: Belief) -> Array:
    """`values * exp(log_scale)` in the dtype of the belief, or in double precision where the scale leaves its range.

    An error where it leaves that, too.
    """
    xp, dtype = namespace(values), belief.like.dtype
    values = check_finite(double(values))
    something = values != 0
    log_scale = xp.where(something, log_scale + xp.zeros_like(values), xp.zeros_like(values))
    if bool(xp.any(log_scale != 0)):
        log_values = log_scale + xp.log(xp.where(something, abs(values), xp.ones_like(values)))
        largest = float(xp.max(xp.where(something, log_values, xp.full_like(values, -xp.inf))))
        dtype = dtype if _holds(xp.finfo(dtype), largest) else xp.float64
        if not _holds(xp.finfo(dtype), largest):
            raise FloatingPointError(
                f"the largest result is exp({largest:.1f}), beyond the range of {dtype}: ask for scores "
                "relative to a common scale, score(..., return_log_scale=True)"
            )
    half = xp.exp(log_scale / 2.0)  # applied twice: the scale alone may be out of range
    return xp.astype(values * half * half, dtype)


def _holds(info: Any, log_value: float) -> bool:
    return bool(math.log(info.smallest_normal) <= log_value <= math.log(info.max))


def check_finite(values: Array) -> Array:
    """`values`, or an error where they are not finite."""
    if not bool(namespace(values).all(namespace(values).isfinite(values))):
        raise FloatingPointError(
            "the expected loss is not finite: the weight or the transform grows too fast for this belief. Give the "
            "logarithm of a weight that overflows; for Linex, scale alpha so that alpha times the spread of the belief "
            "stays below 700."
        )
    return values


def _matrix(form: Form, loss: AnyLoss, belief: Belief, memory_limit: int | None) -> Array:
    """[N, M]: the reductions of all blocks in plain numbers."""
    xp = namespace(belief.like)
    columns, scales = [], []
    for _, log_scale, parts in blocks(form, loss, belief, memory_limit):
        columns.append(xp.concat([part() for part in parts], axis=0))
        scales.append(log_scale)
    return unscaled(xp.concat(columns, axis=1), xp.concat(scales), belief)
