"""The candidates with the largest scores: without scoring those that cannot be among them, or as blocks stream by.

Log loss on an ensemble is bounded from above by a quadratic form that costs the same for any number of contexts: as
(1 + r) log(1 + r) - r <= r^2, with J[y, z] = p_y p_z (1 + r),

    EUR(x; c) <= sum_yz w_z p_y p_z r^2 = sum_y cov_y' diag(w / p) cov_y / p_y.

Candidates are scored in the order of their bounds until no bound is left above the worst of the best.
Sizes: N candidates, n of a block, M contexts, K members, C classes, k candidates asked for.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from array_api_compat import device, is_array_api_obj, is_numpy_array, is_torch_array

from stakes._utils.arguments import Progress, as_progress
from stakes._utils.array import (
    Array,
    constant,
    detached,
    double,
    log_of,
    namespace,
    on_accelerator,
    on_host,
    replaced,
    slices,
)
from stakes._utils.top_k import TopK
from stakes.acquisition.centred import covariance_matrix, quadratic_form
from stakes.acquisition.forms import Form
from stakes.acquisition.scores import (
    checked_context_weights,
    checked_costs,
    chosen_form,
    log_scorer,
    numbers_within,
    score,
    unscaled,
)
from stakes.beliefs import Belief, CategoricalEnsemble, VoteEnsemble
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, LogLoss
from stakes.losses.weights import relative_weights

_FIRST = 64  # candidates scored at first, twice as many after that
_ROUNDING = 1e-5  # by which a score in float32 may be above its bound


@dataclass(frozen=True, eq=False)
class Best:
    """Candidates with the largest scores, the largest first; of equal ones the first.

    Attributes:
        positions: [k], where they are among the candidates.
        scores: [k], what their labels are worth (per cost, where costs were given).
        n_scored: How many candidates were scored; the others could not be among the best.

    Examples:
        >>> from stakes import GaussianBelief, SquaredError
        >>> from stakes.acquisition import best
        >>> belief = GaussianBelief([0.0], [1.0], candidate_variance=[1.0, 1.0], covariance=[[0.1], [0.6]])
        >>> found = best(SquaredError(), belief, n=1)
        >>> print(found.positions, found.scores.round(6))
        [1] [0.36]
    """

    positions: Array
    scores: Array
    n_scored: int


def best(
    loss: AnyLoss,
    belief: Belief,
    *,
    n: int = 1,
    context_weights: Any = None,
    costs: Any = None,
    memory_limit: int | None = None,
) -> Best:
    """The candidates with the largest scores, as `score` gives them.

    Under log loss on a large ensemble, candidates whose score cannot be among the largest are not scored.

    Args:
        loss: What being wrong costs.
        belief: What is believed of the labels of N candidates and the targets of M contexts.
        n: How many candidates; all of them where there are fewer.
        context_weights: [M], how often each context comes up (normalised); alike without them.
        costs: [N], what each label costs; then the value per cost decides.
        memory_limit: Bytes that temporaries may take; None for 256 MB, or 4 GB on a GPU.

    Returns:
        Their positions and scores, the largest first.

    Raises:
        StakesError: If `n` is not a whole number, 1 or more, or weights or costs have a wrong shape or sign.

    Examples:
        >>> from stakes import GaussianBelief, SquaredError
        >>> from stakes.acquisition import best
        >>> belief = GaussianBelief(
        ...     mean=[0.0], variance=[1.0], candidate_variance=[1.0, 1.0, 1.0], covariance=[[0.1], [0.7], [0.5]]
        ... )
        >>> best(SquaredError(), belief, n=2).positions
        array([1, 2])
    """
    _check_count(n)
    settings = {"context_weights": context_weights, "memory_limit": memory_limit}
    top = TopK(n, None)
    if not (isinstance(loss, LogLoss) and isinstance(belief, CategoricalEnsemble) and _pays(belief)):
        top.add(0, _log_scores(loss, belief, costs=costs, **settings))
        return _best(top, n, belief, belief.n_candidates)
    bounds = _log_bounds(loss, belief, checked_context_weights(context_weights, belief), memory_limit)
    prices = None if costs is None else checked_costs(costs, belief)
    bounds = bounds if prices is None else bounds - namespace(bounds).log(prices)
    return _searched(loss, belief, top, n, bounds, prices, settings)


def _check_count(n: Any) -> None:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise StakesError(f"n must be a whole number, 1 or more: how many candidates are wanted; got {n!r}")


def _best(top: TopK, n: int, belief: Belief, n_scored: int) -> Best:
    """The first n by the log scores in `top`, beside the belief, in its precision if that holds them."""
    found = list(islice(top.ordered(), n))
    rows, logs = np.asarray([row for row, _, _ in found], dtype=np.int64), np.asarray([each for _, each, _ in found])
    largest = float(logs[0]) if logs.size and logs[0] > -math.inf else 0.0
    xp, place = namespace(belief.like), device(belief.like)
    scores = unscaled(xp.asarray(np.exp(logs - largest), device=place), largest, belief)
    return Best(xp.asarray(rows, device=place), scores, n_scored)


def _log_scores(loss: AnyLoss, belief: Belief, **settings: Any) -> np.ndarray[Any, Any]:
    """[n]: logs of scores, on the host."""
    relative, log_scale = score(loss, belief, return_log_scale=True, **settings)
    return np.asarray(log_of(on_host(relative).astype(float)) + log_scale)


def _searched(
    loss: LogLoss,
    belief: CategoricalEnsemble,
    top: TopK,
    n: int,
    bounds: Array,
    prices: Array | None,
    settings: dict[str, Any],
) -> Best:
    """Score in the order of log `bounds`, a growing number at a time, until the rest cannot be among the best."""
    xp = namespace(bounds)
    order, done = xp.argsort(-bounds, stable=True), 0
    while done < belief.n_candidates:
        some = order[done : done + max(_FIRST, n, done)]
        prices_here = None if prices is None else xp.take(prices, some)
        block = replaced(belief, candidates=xp.take(belief.candidates, some, axis=0))
        top.add(on_host(some), _log_scores(loss, block, costs=prices_here, **settings))
        done += some.shape[0]
        most = float(bounds[int(order[done])]) if done < belief.n_candidates else -math.inf  # of the rest
        if done >= n and top.worst() > most + _ROUNDING:
            break
    return _best(top, n, belief, done)


def _log_bounds(loss: LogLoss, belief: CategoricalEnsemble, shares: Array, memory_limit: int | None) -> Array:
    """[N]: the log of what no score is above."""
    xp, (class_weights, log_scale) = namespace(belief.contexts), relative_weights(loss)
    weights = constant(class_weights or (1.0,) * belief.n_classes, double(belief.like))

    def values(block: CategoricalEnsemble) -> Array:
        contexts = double(block.contexts)
        mean = xp.sum(double(block.member_weights)[:, None] * contexts, axis=1, keepdims=True)  # [m, 1, C]
        return contexts * xp.sqrt(weights / xp.where(mean > 0, mean, xp.ones_like(mean)))

    matrix = covariance_matrix(belief, shares, values)
    step = max(1, numbers_within(memory_limit, belief) // (4 * belief.n_classes * belief.member_weights.shape[0]))
    parts = slices(belief.n_candidates, step)
    return log_of(xp.concat([quadratic_form(belief.take(part, slice(None)), matrix) for part in parts])) + log_scale


def _pays(belief: CategoricalEnsemble) -> bool:
    """Whether bounds cost a small part of what scores do."""
    return belief.n_candidates > _FIRST and 4 * belief.member_weights.shape[0] < belief.n_contexts * belief.n_classes


_BLOCK = 2**29  # bytes of candidates that are on their way at once


def best_streamed(
    loss: AnyLoss,
    belief: CategoricalEnsemble | VoteEnsemble,
    candidates: Any,
    *,
    n: int = 1,
    context_weights: Any = None,
    costs: Any = None,
    form: Form | None = None,
    block: int | None = None,
    progress: bool | Progress = False,
) -> Best:
    """The best of more candidates than a device has room for: they come from the host in blocks and are forgotten.

    To a GPU they are copied through pinned memory while the block before is scored.

    Args:
        loss: What being wrong costs.
        belief: The contexts, wherever they are; candidates that it holds itself are not looked at.
        candidates: What the belief would hold, [N, K, C] probabilities or [N, K] votes, in host memory: a NumPy array
            (a memory map, too) or a tensor, best in the precision in which they are to travel.
        n: How many candidates; all of them where there are fewer.
        context_weights: [M], how often each context comes up (normalised); alike without them.
        costs: [N], what each label costs; then the value per cost decides.
        form: Another form than that of `find_form`, made for such a pair.
        block: How many candidates travel at a time; None for 512 MB of them.
        progress: Whether to show progress, or a function of what is done and the share that is.

    Returns:
        Their positions and scores, the largest first.

    Raises:
        TypeError: If the belief is no ensemble of classes.
        StakesError: If a shape, a number of candidates or a cost is wrong.

    Examples:
        >>> import numpy as np
        >>> from stakes import CategoricalEnsemble, LogLoss
        >>> from stakes.acquisition import best_streamed
        >>> members = np.random.default_rng(0).dirichlet([1.0, 1.0], size=(1000, 5))  # [N, K, C]
        >>> belief = CategoricalEnsemble(candidates=members[:1], contexts=members[:20])
        >>> best_streamed(LogLoss(), belief, members, n=3, block=100).n_scored
        1000
    """
    _check_count(n)
    _check(belief, candidates)
    candidates, shown = detached(candidates), as_progress(progress)
    total = candidates.shape[0]
    if costs is not None and (shape := np.shape(costs)) != (total,):
        raise StakesError(f"costs must have one number for each of the {total} candidates; got {list(shape)}")
    step = _rows(candidates) if block is None else _checked(block)
    top, start, scored = TopK(n, None), 0, None
    with closing(_blocks(candidates, belief, step)) as arriving:
        for rows in arriving:
            part = replace(belief, candidates=rows)
            here = slice(start, start + part.n_candidates)
            scored = scored or log_scorer(chosen_form(form, loss, part), loss, part, context_weights)
            found = scored(part)
            if costs is not None:
                found = found - namespace(found).log(checked_costs(_beside(costs[here], belief.like), part))
            top.add(start, on_host(found))
            start = here.stop
            shown("scoring candidates", start / total)
    return _best(top, n, belief, total)


def _blocks(candidates: Any, belief: Any, step: int) -> Generator[Array]:
    """Blocks of candidates beside the belief, one after the other."""
    if is_torch_array(belief.contexts) and on_accelerator(belief.contexts):
        from stakes.gpu.pinned import travelling

        return travelling(candidates, belief.contexts.device, step)
    xp, place = namespace(belief.contexts), device(belief.contexts)
    own = is_numpy_array(candidates) and not is_numpy_array(belief.contexts)
    parts = (candidates[part, ...] for part in slices(candidates.shape[0], step))
    return (xp.asarray(_native(each) if own else each, device=place) for each in parts)


def _native(rows: Any) -> Any:
    """A copy: other libraries take no memory that is read-only, backwards or in a foreign order of bytes."""
    return np.array(rows, dtype=rows.dtype.newbyteorder("="), order="C")


def _checked(block: Any) -> int:
    if isinstance(block, int) and not isinstance(block, bool) and block >= 1:
        return block
    raise StakesError(f"block must be a whole number of candidates, 1 or more; got {block!r}")


def _rows(candidates: Any) -> int:
    """How many make a block of 512 MB."""
    return int(max(1, _BLOCK // (candidates.dtype.itemsize * math.prod(candidates.shape[1:]))))


def _check(belief: Any, candidates: Any) -> None:
    if not isinstance(belief, CategoricalEnsemble | VoteEnsemble):
        raise TypeError(
            f"candidates are streamed to a CategoricalEnsemble or a VoteEnsemble; got {type(belief).__name__}. "
            "stakes.rank reads rows of a pool in chunks for any model."
        )
    wanted = ["N", *belief.contexts.shape[1:]]
    if not is_array_api_obj(candidates) or list(candidates.shape[1:]) != wanted[1:] or candidates.shape[0] == 0:
        got = list(candidates.shape) if hasattr(candidates, "shape") else type(candidates).__name__
        raise StakesError(f"candidates must be an array {wanted} as the contexts are, with a row at least; got {got}")


def _beside(costs: Any, like: Array) -> Array:
    """Costs of a block where its scores are."""
    return constant(costs, like) if not is_array_api_obj(costs) or is_numpy_array(costs) else costs
