"""Losses of classes on an ensemble, from products of centred members: half and single precision are then enough.

With J[y, z] = p_y p_z (1 + r), r the mean over members of (p(y | x, k) / p_y - 1) (p(z | c, k) / p_z - 1), the scores
of log loss and Brier loss are

    sum_c W_c sum_y p_y (1 + rbar_y) sum_z h_z f(q),    q = (r - rbar_y) / (1 + rbar_y),

with W = E[w | c], shares s_z = w_z p_z / W, rbar_y = sum_z s_z r; for log loss h = s and f(q) = (1 + q) log(1 + q) - q,
for Brier loss h = s^2 and f(q) = q^2. Of a finite set of actions the one kept, a, loses

    sum_c sum_y p_y max_b (D_b + d_b),    D_b = E[l_a - l_b | c] <= 0,

to the best action b, d_b being the covariance of l_a - l_b with (p(y | x, k) / p_y - 1). Only r and d are rounded; what
means have to say is exact, so that float32 ranks like float64 even where members hardly differ. Products are in float32
where they are many, and of members that came so; else in float64.

Each backend has one way: `block_sums` in any array library, loops for log loss where numba is installed, and the kernel
of `stakes.gpu.centred` on a GPU, where products of members and what is made of them are one kernel.

Squared losses are simpler: all contexts together are one K x K matrix, however many they are. With u_jk = q_k P_k(y_j),
whose sum over members is P(y_j), and b_k = E[T(z) | c, k] - E[T(z) | c], by coordinates of T,

    sum_c s_c EUR(x; c) = sum_c s_c sum_j |sum_k u_jk b_k|^2 / P(y_j) = sum_j u_j' G u_j / P(y_j),  G = sum_c s_c b b'.

Sizes: n candidates of a block, M contexts, K members, C classes, A actions, T terms (C, C + 1 or A), J cells of y.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from array_api_compat import is_numpy_array, is_torch_array

from stakes._utils.array import (
    AGREED,
    SINGLE_EMPTY,
    SINGLE_NOTHING,
    Array,
    at_once,
    constant,
    double,
    filled,
    log_of,
    namespace,
    on_accelerator,
    ratio,
    slices,
)
from stakes._utils.compute import has_jit, loop
from stakes.acquisition.forms import (
    ANY,
    GENERAL,
    Form,
    Reduction,
    Total,
    register,
    resolve,
    settled_effort,
    with_effort,
)
from stakes.acquisition.scores import check_finite, context_blocks
from stakes.acquisition.votes import (
    fused_form_of_votes,
    has_fused_kernel,
    held_numbers,
    relative_statistics,
    weight_ratio,
)
from stakes.beliefs import CategoricalEnsemble, NormalEnsemble, VoteEnsemble
from stakes.beliefs.categorical import are_members_alike, member_shares, probability_rows
from stakes.exceptions import StakesError
from stakes.losses import BrierLoss, CostMatrix, LogLoss, Loss, SquaredError, ZeroOne
from stakes.losses.weights import ClassWeights, relative_weights

LARGE = 2**22
"""Cells, pairs of classes of pairs of rows, from which on single precision is worth its rounding."""
HALF_LIGHTEST = 2e-5
"""Of member weights: p / mean may be as large as its inverse, and half precision ends at 65504."""
_LIGHTEST = 1e-6  # the same in single precision
_LIGHTEST_IN_DOUBLE = 1e-12
_WEIGHTS_APART = 100.0  # 1 + rbar may then be 1 / 100, of which single precision keeps five digits
_WEIGHTS_APART_IN_DOUBLE = 1e6  # and double precision ten
_EMPTY_IN_DOUBLE = 1e-14  # of a mass: what is left of it is rounding
_ALL_BUT_GONE = -1.0 + float(np.finfo(float).eps)  # q where a probability is 0
_NEGLIGIBLE = 1e-300  # a probability whose inverse leaves the range of numbers
_NEAR = 1e-3  # where all q are below, the series of (1 + q) log(1 + q) - q is good to 1e-15
_WORTH_COMPILING = 3 * 10**7  # products of members: below, they take less time than to fetch compiled loops
_PRODUCT, _CACHE = 2**20, 2**17  # cells of one product, and of what is done with it at a time

Kind = Literal["log", "square", "actions"]


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
    log_scale: float
    """the log of what was taken out of weights or costs before that"""
    weighted: bool = False
    """whether the last of `members` is for rbar"""


def terms_of(loss: Any, belief: CategoricalEnsemble, shares: Array) -> Terms:
    """The terms for contexts that come up as often as `shares` [M] say."""
    return (_action_terms if loss.finite_actions else _class_terms)(loss, belief, shares)


def _shares_and_heights(loss: Any, means: Array, shares: Array) -> tuple[Array, Array]:
    """[M, C] each: s_z and W_c h_z, for contexts with means [M, C] that come up as often as `shares` [M] say.

    Weights are over the largest of them, which `relative_weights` knows.
    """
    xp = namespace(means)
    weights, _ = relative_weights(loss)
    heavy = means if weights is None else means * constant(weights, means)
    total = xp.sum(heavy, axis=1, keepdims=True)  # [M, 1]: W
    share = ratio(heavy, total + xp.zeros_like(heavy))
    if weights is not None and sum(weight > 0 for weight in weights) == 1:
        shares = 0.0 * shares  # one class alone counts, and no label moves its share: what is left is rounding
    return share, shares[:, None] * total * (share**2 if isinstance(loss, BrierLoss) else share)


def _class_terms(loss: Any, belief: CategoricalEnsemble, shares: Array) -> Terms:
    xp, weights = namespace(belief.contexts), member_shares(belief.member_weights)
    means, gaps = centred(belief.contexts, weights)  # [M, C], [M, C, K]
    (share, heights), gaps = _shares_and_heights(loss, means, shares), gaps * (weights * gaps.shape[2])
    if loss.class_weights is not None:
        mean = xp.sum(share[..., None] * gaps, axis=1, keepdims=True)  # [M, 1, K]
        gaps = xp.concat([gaps, mean], axis=1)
    kind: Kind = "square" if isinstance(loss, BrierLoss) else "log"
    return _scaled(kind, gaps, heights, heights[:, :0], relative_weights(loss)[1], loss.class_weights is not None)


def _action_terms(loss: Loss, belief: CategoricalEnsemble, shares: Array) -> Terms:
    xp, weights = namespace(belief.contexts), member_shares(belief.member_weights)
    table, log_scale = relative_statistics(loss, belief)  # [C, A]
    costs = xp.permute_dims(_product(probability_rows(belief.contexts), table), (0, 2, 1))  # [M, A, K]
    costs = _in_order(costs)
    kept = loss.action(_product(costs, weights))  # [M, 1]
    gains = _row_of(costs, kept) - costs  # [M, A, K]: l_a - l_b
    hopeless = xp.max(gains, axis=2, keepdims=True) <= 0  # no member prefers b, so no label can: it must set no scale
    gains = xp.where(hopeless, xp.zeros_like(gains), gains)
    offsets = _product(gains, weights)  # [M, A]: D
    gaps = gains - offsets[..., None]
    gaps *= weights * gains.shape[2]
    largest = xp.maximum(xp.max(gaps, axis=2), -xp.min(gaps, axis=2))  # [M, A]
    gaps *= ratio(xp.ones_like(largest), largest)[..., None]
    return _scaled("actions", gaps, shares[:, None] * largest, shares[:, None] * offsets, log_scale)


def _scaled(kind: Kind, gaps: Array, heights: Array, offsets: Array, log_scale: float, weighted: bool = False) -> Terms:
    """With contexts on the last axes but one, and numbers near one."""
    xp = namespace(gaps)
    largest = max((float(xp.max(abs(each))) for each in (heights, offsets) if 0 not in each.shape), default=0.0)
    scale = largest if largest > 0.0 else 1.0
    return Terms(
        kind,
        xp.permute_dims(gaps, (1, 0, 2)),
        _in_order(xp.permute_dims(heights, (1, 0))) / scale,
        _in_order(xp.permute_dims(offsets, (1, 0))) / scale,
        scale,
        log_scale,
        weighted,
    )


def _product(values: Array, others: Array) -> Array:
    """[..., D] or [...]: values [..., C] times [C, D] or [C], as one product and not one for each first index."""
    xp = namespace(values)
    found = xp.matmul(xp.reshape(values, (-1, values.shape[-1])), others)
    return xp.reshape(found, (*values.shape[:-1], *others.shape[1:]))


def _row_of(costs: Array, kept: Array) -> Array:
    """[M, 1, K]: of costs [M, A, K], those of the actions kept [M, 1]."""
    if is_numpy_array(costs):
        return costs[np.arange(len(costs)), np.asarray(kept[:, 0], dtype=np.intp)][:, None, :]
    xp = namespace(costs)
    chosen = xp.astype(kept == xp.arange(costs.shape[1], device=kept.device)[None, :], costs.dtype)  # [M, A]
    return xp.matmul(chosen[:, None, :], costs)


def _in_order(values: Array) -> Array:
    """The same values in the order of their axes in memory, where loops find neighbours."""
    if is_numpy_array(values):
        return np.ascontiguousarray(values)
    return namespace(values).reshape(namespace(values).reshape(values, (-1,)), values.shape)


def centred(members: Array, weights: Array) -> tuple[Array, Array]:
    """[n, C], [n, C, K]: the means of members [n, K, C], and p / mean - 1.

    0 for a class of which all say the same but for rounding, or whose mean is nothing. Rows sum to one in double
    precision, not in what they were rounded to.
    """
    xp = namespace(members)
    gaps = double(_in_order(xp.permute_dims(members, (0, 2, 1))))  # [n, C, K]
    gaps = gaps / xp.sum(gaps, axis=1, keepdims=True)
    means = _product(gaps, weights)
    possible = means > SINGLE_NOTHING
    if is_numpy_array(possible) and possible.all():
        inverse = 1.0 / means
    else:
        inverse = xp.where(possible, 1.0 / xp.where(possible, means, xp.ones_like(means)), xp.zeros_like(means))
    gaps -= means[..., None]
    gaps *= inverse[..., None]
    if 0 not in gaps.shape and _some_may_agree(gaps):
        agreed = xp.maximum(xp.max(gaps, axis=2), -xp.min(gaps, axis=2)) <= AGREED
        if bool(xp.any(agreed)):
            gaps = xp.where(agreed[..., None], xp.zeros_like(gaps), gaps)
    return means, gaps


def _some_may_agree(gaps: Array) -> bool:
    """Whether members [n, C, K] may agree about some class: by the sum of squares, which is quicker than both ends."""
    if not is_numpy_array(gaps):
        return True
    return bool((np.einsum("nck,nck->nc", gaps, gaps) <= gaps.shape[2] * AGREED**2).any())


def within_reach(
    loss: Any, belief: CategoricalEnsemble, lightest: float = _LIGHTEST, apart: float = _WEIGHTS_APART
) -> bool:
    """Whether r keeps its digits: no class outweighs another by far, and no member counts for next to nothing."""
    if weight_ratio(loss) > apart:
        return False
    if are_members_alike(belief):
        return bool(1.0 / belief.member_weights.shape[0] >= lightest)
    return float(namespace(belief.member_weights).min(belief.member_weights)) >= lightest


def is_large_ensemble(belief: CategoricalEnsemble) -> bool:
    """Whether the belief is NumPy's or torch's, and large enough for single precision to be worth its rounding."""
    size = belief.n_candidates * belief.n_contexts * belief.n_classes**2
    return size >= LARGE and (is_torch_array(belief.contexts) or is_numpy_array(belief.contexts))


def _is_rounded(belief: CategoricalEnsemble) -> bool:
    """Whether products are in single precision: where there are many, and on the host of members that came in it."""
    if is_large_ensemble(belief):
        return True
    in_single = belief.like.dtype == namespace(belief.like).float32
    return _is_on_host(belief) and (bool(in_single) or _are_many_products(belief))


def _are_many_products(belief: CategoricalEnsemble) -> bool:
    """Whether products of members are so many that compiled loops are worth fetching."""
    cells = belief.n_candidates * belief.n_contexts * belief.n_classes**2
    return cells * int(belief.member_weights.shape[0]) >= _WORTH_COMPILING


def _is_on_host(belief: CategoricalEnsemble) -> bool:
    contexts = belief.contexts
    return is_numpy_array(contexts) or (is_torch_array(contexts) and not on_accelerator(contexts))


# Sums over products, block by block in any array library.


def block_sums(loss: Any, belief: CategoricalEnsemble, shares: Array) -> Callable[[Any], Array]:
    """A function from blocks of candidates to logs of their scores [n], for contexts with `shares` [M].

    Products are in single precision, what is made of them in double precision.
    """
    return _block_sums(loss, belief, shares, namespace(belief.contexts).float32)


def block_sums_in_double(loss: Any, belief: CategoricalEnsemble, shares: Array) -> Callable[[Any], Array]:
    """The same, all in double precision."""
    return _block_sums(loss, belief, shares, namespace(belief.contexts).float64)


def block_sums_compiled(loss: Any, belief: CategoricalEnsemble, shares: Array) -> Callable[[Any], Array]:
    """The same in single precision, what is made of products by compiled loops; not for log loss."""
    of = _compiled_best_actions if loss.finite_actions else _compiled_squares
    return _block_sums(loss, belief, shares, namespace(belief.contexts).float32, of)


def _block_sums(
    loss: Any, belief: CategoricalEnsemble, shares: Array, dtype: Any, of: Any = None
) -> Callable[[Any], Array]:
    xp, weights = namespace(belief.contexts), member_shares(belief.member_weights)
    terms = terms_of(loss, belief, shares)
    count, contexts, members = terms.members.shape
    right = xp.permute_dims(xp.reshape(terms.members, (count * contexts, members)), (1, 0)) / members  # [K, T M]
    right = xp.astype(right, dtype, copy=False)
    of = of or (_best_actions if terms.kind == "actions" else _excesses)
    row = count * contexts  # numbers of one product
    empty = SINGLE_EMPTY if dtype == xp.float32 else _EMPTY_IN_DOUBLE

    def few(candidates: Array) -> Array:
        means, gaps = centred(candidates, weights)  # [n, C], [n, C, K]
        rows = xp.reshape(xp.astype(gaps, dtype, copy=False), (-1, members))  # [n C, K]
        parts = slices(rows.shape[0], max(1, at_once(right, _CACHE // 4) // row))  # with their temporaries in the cache
        products = (xp.reshape(xp.matmul(rows[part, :], right), (-1, count, contexts)) for part in parts)
        found = [of(r, terms, empty) for r in products]
        sums = found[0] if len(found) == 1 else xp.concat(found)
        return terms.scale * xp.sum(means * xp.reshape(sums, means.shape), axis=1)

    def sums(block: CategoricalEnsemble) -> Array:
        step = max(1, at_once(right, _PRODUCT) // (block.n_classes * max(row, members)))
        found = [few(block.candidates[part, ...]) for part in slices(block.n_candidates, step)]
        return log_of(check_finite(found[0] if len(found) == 1 else xp.concat(found))) + terms.log_scale

    return sums


def block_numbers(loss: Any, belief: CategoricalEnsemble) -> int:
    """The products of a candidate, and as many numbers for each of the few temporaries of what is made of them."""
    terms = loss.costs.shape[1] if isinstance(loss, CostMatrix) else belief.n_classes + 1
    return int(8 * belief.n_classes * terms * belief.n_contexts + 2 * belief.n_classes * belief.member_weights.shape[0])


def _excesses(r: Array, terms: Terms, empty: float) -> Array:
    """[n C]: sum_c (1 + rbar) sum_z h f(q), for r [n C, T, M]; masses below `empty` are nothing."""
    xp, of, r = namespace(r), _log_excess if terms.kind == "log" else _square, double(r)
    if not terms.weighted:
        return xp.matmul(xp.reshape(of(r), (r.shape[0], r.shape[1] * r.shape[2])), xp.reshape(terms.heights, (-1,)))
    mean = r[:, -1:, :]
    left_over = xp.where(1.0 + mean > empty, 1.0 + mean, xp.zeros_like(mean))
    q = r[:, :-1, :] - mean
    q *= ratio(xp.ones_like(mean), left_over)
    excess = of(q)
    excess *= terms.heights
    return xp.sum(xp.sum(excess, axis=1) * left_over[:, 0, :], axis=1)


def _log_excess(q: Array) -> Array:
    """(1 + q) log(1 + q) - q in double precision, to a relative error of 1e-16 / q.

    By a series where all q are small. Rounding may put q below -1, where no probability is.
    """
    xp = namespace(q)
    least, most = (float(xp.min(q)), float(xp.max(q))) if 0 not in q.shape else (0.0, 0.0)
    if max(most, -least) < _NEAR:
        return q * q * (1 / 2 + q * (-1 / 6 + q * (1 / 12 + q * (-1 / 20 + q / 30))))
    if least < _ALL_BUT_GONE:
        q = xp.clip(q, _ALL_BUT_GONE, None)
    logs = xp.log1p(q)
    logs *= q + 1.0
    logs -= q
    return logs


def _square(q: Array) -> Array:
    return q * q


def _best_actions(r: Array, terms: Terms, empty: float) -> Array:  # noqa: ARG001 (masses make no difference)
    """[n C]: sum_c max_b (D_b + d_b), for r [n C, A, M]."""
    xp, gains = namespace(r), r * terms.heights  # in double precision, as heights are
    gains += terms.offsets
    return xp.sum(xp.max(gains, axis=1), axis=1)


@loop
def add_best_actions(r: Any, heights: Any, offsets: Any, out: Any) -> None:
    """Fill `out` [n C] with sum_c max_b (D_b + d_b), for r [n C, A, M], heights and offsets [A, M]."""
    best = np.empty(r.shape[2])
    for i in range(r.shape[0]):
        best[:] = -np.inf
        for b in range(r.shape[1]):
            for m in range(r.shape[2]):
                best[m] = max(best[m], offsets[b, m] + heights[b, m] * r[i, b, m])
        total = 0.0
        for m in range(r.shape[2]):
            total += best[m]
        out[i] = total


@loop
def add_squares(r: Any, heights: Any, weighted: bool, empty: float, out: Any) -> None:
    """Fill `out` [n C] with sum_c sum_z h (r - rbar)^2 / (1 + rbar), for r [n C, T, M] and heights [C, M]."""
    squares, mean = np.empty(r.shape[2]), np.zeros(r.shape[2])
    for i in range(r.shape[0]):
        squares[:] = 0.0
        if weighted:
            for m in range(r.shape[2]):
                mean[m] = r[i, heights.shape[0], m]
        for z in range(heights.shape[0]):
            for m in range(r.shape[2]):
                gap = r[i, z, m] - mean[m]
                squares[m] += heights[z, m] * gap * gap
        total = 0.0
        for m in range(r.shape[2]):
            total += squares[m] / (1.0 + mean[m]) if 1.0 + mean[m] > empty else 0.0
        out[i] = total


def _compiled_best_actions(r: Array, terms: Terms, empty: float) -> Array:  # noqa: ARG001 (masses make no difference)
    out = np.empty(r.shape[0])
    add_best_actions(np.asarray(r), np.asarray(terms.heights), np.asarray(terms.offsets), out)
    return namespace(r).asarray(out)


def _compiled_squares(r: Array, terms: Terms, empty: float) -> Array:
    out = np.empty(r.shape[0])
    add_squares(np.asarray(r), np.asarray(terms.heights), terms.weighted, empty, out)
    return namespace(r).asarray(out)


IN_DOUBLE = Form(
    "products of centred members in float64, in blocks",
    GENERAL.prepare,
    GENERAL.numbers,
    GENERAL.context_numbers,
    total=Total(block_sums_in_double, block_numbers, in_logs=True),
    serves=lambda loss, belief: (
        _is_on_host(belief) and within_reach(loss, belief, _LIGHTEST_IN_DOUBLE, _WEIGHTS_APART_IN_DOUBLE)
    ),
)
"""For small ensembles on the host, and for weights of classes further apart than single precision can bear."""
BLOCKED = Form(
    "products of centred members in float32, in blocks",
    GENERAL.prepare,
    GENERAL.numbers,
    GENERAL.context_numbers,
    total=Total(block_sums, block_numbers, in_logs=True),
    serves=lambda loss, belief: _is_rounded(belief) and within_reach(loss, belief),
    otherwise=IN_DOUBLE,
)
"""Where products are many, and for members that came in single precision."""


# Log loss cell by cell, in loops that are compiled where numba is installed: in float32, contexts along the last axis,
# so that the machine takes many at a time.

_ZERO, _ONE, _LEAST, _EMPTY = (np.float32(value) for value in (0.0, 1.0, SINGLE_NOTHING, SINGLE_EMPTY))
_SMALL = np.float32(0.15)  # below, (1 + q) log(1 + q) - q is its series
_SERIES = tuple(np.float32(sign / (k * (k - 1))) for sign, k in zip((1, -1) * 4, range(2, 10), strict=True))
_SQUARE = _SMALL * _SMALL
_LIFT = np.float32(2.0**45)  # by whose square sums are multiplied: where members nearly agree, q^2 would underflow


@loop
def _centre(probabilities: Any, weights: Any, means: Any, centred: Any) -> None:
    """Fill `means` [n, C] with sum_k q_k p_k and `centred` [n, C, K] with p_k / mean - 1, 0 where that is nothing."""
    per_row = np.empty(probabilities.shape[1], np.float64)
    for n in range(probabilities.shape[0]):
        means[n] = 0.0
        for k in range(probabilities.shape[1]):
            total = 0.0
            for c in range(probabilities.shape[2]):
                total += probabilities[n, k, c]
            per_row[k] = 1.0 / total  # rounded, rows do not sum to one
            for c in range(probabilities.shape[2]):
                means[n, c] += weights[k] * per_row[k] * probabilities[n, k, c]
        for c in range(probabilities.shape[2]):
            scale = 1.0 / means[n, c] if means[n, c] > _NEGLIGIBLE else 0.0
            for k in range(probabilities.shape[1]):
                gap = (per_row[k] * probabilities[n, k, c] - means[n, c]) * scale
                centred[n, c, k] = gap if abs(gap) > AGREED else 0.0


@loop
def _ratios(r: Any, shares: Any, q: Any, x: Any, mean: Any) -> None:
    """Of r = J / (p_y p_z) - 1 [n C, C, M]: `mean` rbar [n C, M], q = (r - rbar) / (1 + rbar), and x = 1 + q.

    rbar is the mean of r over z with `shares` [C, M].
    """
    for i in range(r.shape[0]):
        mean[i] = _ZERO
        for z in range(r.shape[1]):
            for m in range(r.shape[2]):
                mean[i, m] += shares[z, m] * r[i, z, m]
        for z in range(r.shape[1]):
            for m in range(r.shape[2]):
                mass = _ONE + mean[i, m]
                near = _ONE / mass if mass > _EMPTY else _ZERO
                q[i, z, m] = (r[i, z, m] - mean[i, m]) * near
                x[i, z, m] = max(_ONE + q[i, z, m], _LEAST)


@loop
def _add_excesses(q: Any, logs: Any, shares: Any, mean: Any, means: Any, out: Any) -> None:
    """Add to `out` [n, M] _LIFT^2 sum_y p_y (1 + rbar) sum_z share (x log x - q), for `logs` of x = 1 + q.

    By a series where q is small: there the two terms cancel.
    """
    a, b, c, d, e, f, g, h = _SERIES
    lift = _LIFT
    total = np.empty(q.shape[2], np.float32)
    for i in range(q.shape[0]):
        total[:] = _ZERO
        for z in range(q.shape[1]):
            for m in range(q.shape[2]):
                v = q[i, z, m]
                excess = lift * lift * ((_ONE + v) * logs[i, z, m] - v)
                if v * v < _SQUARE:
                    u = lift * v
                    excess = u * u * (a + v * (b + v * (c + v * (d + v * (e + v * (f + v * (g + v * h)))))))
                total[m] += shares[z, m] * excess
        n, y = divmod(i, q.shape[1])
        for m in range(q.shape[2]):
            out[n, m] += means[n, y] * max(_ONE + mean[i, m], _ZERO) * total[m]


def _sides(probabilities: Any, weights: Any) -> tuple[Any, Any]:
    """[n, C], [n, C, K]: what a block of rows [n, K, C] brings to the product, its means and centred members."""
    n, members, classes = probabilities.shape
    means, centred = np.empty((n, classes)), np.empty((n, classes, members), dtype=np.float32)
    _centre(probabilities, weights, means, centred)
    return means, centred


def _information(loss: LogLoss, belief: CategoricalEnsemble) -> Reduction:
    """EUR of log loss, a few candidates at a time."""
    xp, weights = namespace(belief.contexts), np.asarray(member_shares(belief.member_weights))
    context_means, context_members = _sides(np.asarray(belief.contexts), weights)
    class_weights, log_scale = relative_weights(loss)
    heavy = context_means * np.asarray(class_weights or 1.0)  # [M, C]
    total = np.sum(heavy, axis=1)  # [M]
    shares = np.ascontiguousarray((heavy / np.where(total > 0, total, 1.0)[:, None]).T, dtype=np.float32)  # [C, M]
    members = np.swapaxes(context_members, 0, 1).reshape(-1, len(weights)) * weights.astype(np.float32)  # [C M, K]
    step = max(1, _PRODUCT // (shares.size * belief.n_classes))

    def of(block: CategoricalEnsemble) -> Array:
        found = np.zeros((block.n_candidates, block.n_contexts), dtype=np.float32)
        product = np.empty((step * block.n_classes, shares.size), dtype=np.float32)
        for part in slices(block.n_candidates, step):
            means, rows = _sides(np.asarray(block.candidates[part, ...]), weights)
            rows = rows.reshape(-1, len(weights))  # [n C, K]
            r = np.matmul(rows, members.T, out=product[: len(rows)]).reshape(len(rows), *shares.shape)  # [n C, C, M]
            _add_information(r, shares, means, found[part])
        return xp.astype(xp.asarray(found * total), belief.like.dtype, copy=False)

    return of, filled(belief.n_contexts, log_scale - 2.0 * math.log(_LIFT), belief.like)


def _add_information(r: Any, shares: Any, means: Any, found: Any) -> None:
    """Add _LIFT^2 sum_y p_y (1 + rbar) sum_z share ((1 + q) log(1 + q) - q) to `found` [n, M], for r [n C, C, M]."""
    classes = len(shares)
    for part in slices(len(found), max(1, _CACHE // (shares.size * classes))):
        here = r[part.start * classes : part.stop * classes]
        q, x, mean = np.empty_like(here), np.empty_like(here), np.empty_like(here[:, 0])
        _ratios(here, shares, q, x, mean)
        _add_excesses(q, np.log(x, out=x), shares, mean, means[part].astype(np.float32), found[part])


def _is_readable(side: Array) -> bool:
    """Whether loops can read it: an array of NumPy's, or a tensor on the host that shares its memory with one."""
    if is_torch_array(side):
        side = None if on_accelerator(side) or side.requires_grad or side.dtype.itemsize < 4 else np.asarray(side[:0])
    return isinstance(side, np.ndarray) and side.dtype in (np.dtype(np.float32), np.dtype(np.float64))


def _compiled_serves(loss: Any, belief: CategoricalEnsemble) -> bool:
    """Whether loops are compiled, can read the members, and have enough to do."""
    enough = is_large_ensemble(belief) or _are_many_products(belief)
    readable = enough and all(map(_is_readable, (belief.candidates, belief.contexts)))
    return readable and within_reach(loss, belief) and has_jit()


register(
    LogLoss,
    ANY,
    CategoricalEnsemble,
    Form(
        "products of centred members in float32, compiled",
        _information,
        lambda loss, belief: 4,
        serves=_compiled_serves,
        otherwise=BLOCKED,
    ),
)


# Squared losses: one matrix over members for all contexts.


def quadratic_form(block: CategoricalEnsemble | NormalEnsemble, matrix: Array) -> Array:
    """[n]: sum_j u_j' G u_j / P(y_j), less the same of all cells together: 0, but for the rounding of a rule."""
    xp, weights = namespace(matrix), member_shares(block.member_weights)
    normals = block if isinstance(block, NormalEnsemble) else None
    masses = double(block.member_outcomes()) * weights if normals is None else normals.member_masses()  # [n, J, K]
    all_cells = xp.sum(masses, axis=1, keepdims=True)  # [n, 1, K]
    split, whole = (_over_mass(each, matrix, weights) for each in (masses, all_cells))
    return xp.clip(split - whole, 0.0, None)


def _over_mass(masses: Array, matrix: Array, weights: Array) -> Array:
    """[n]: sum_j u_j' G u_j / P(y_j), of masses u [n, J, K].

    From u - P q, which makes no difference, as G q = 0, and is nothing where all members agree.
    """
    xp = namespace(matrix)
    mass = xp.sum(masses, axis=2, keepdims=True)  # [n, J, 1]
    gaps = masses - mass * weights
    values = xp.sum(xp.matmul(gaps, matrix) * gaps, axis=2)  # [n, J]
    return xp.sum(ratio(values, mass[..., 0]), axis=1)


def covariance_matrix(belief: Any, shares: Array, values: Callable[[Any], Array]) -> Array:
    """[K, K]: G, from what each member expects of T at each context, `values` [m, K, d] of a block."""
    xp, start, total = namespace(shares), 0, 0.0
    for block in context_blocks(belief):
        expected, part = double(values(block)), slice(start, start + block.n_contexts)
        mean = xp.sum(member_shares(belief.member_weights)[:, None] * expected, axis=1, keepdims=True)
        gaps = expected - mean  # [m, K, d]
        total = total + xp.tensordot(shares[part, None, None] * gaps, gaps, axes=([0, 2], [0, 2]))
        start = part.stop
    return total


def _over_classes(loss: BrierLoss, belief: CategoricalEnsemble, shares: Array) -> Callable[[Any], Array]:  # noqa: ARG001 (nothing to set)
    matrix = covariance_matrix(belief, shares, lambda block: probability_rows(block.contexts))
    return lambda block: quadratic_form(block, matrix)


def _over_normals(loss: SquaredError, belief: NormalEnsemble, shares: Array) -> Callable[[Any], Array]:
    matrix = covariance_matrix(belief, shares, lambda block: block.context_mean[..., None])
    effort = settled_effort(loss, belief, resolve(loss, belief))
    return with_effort(lambda block: quadratic_form(block, matrix), effort)


def quadratic_numbers(loss: Any, belief: Any) -> int:
    """The masses of cells under members, their product with the matrix, and what made them."""
    return int(4 * belief.n_cells(loss) * belief.member_weights.shape[0])


def _quadratic_form(
    total: Callable[[Any, Any, Array], Callable[[Any], Array]], coordinates: Callable[[Any], int]
) -> Form:
    """The general route for single contexts, the matrix for all of them where there are more than members."""
    return Form(
        "one matrix over members for all contexts",
        GENERAL.prepare,
        GENERAL.numbers,
        GENERAL.context_numbers,
        total=Total(total, quadratic_numbers),
        serves=lambda loss, belief: belief.member_weights.shape[0] < belief.n_contexts * coordinates(belief),
    )


register(BrierLoss, None, CategoricalEnsemble, _quadratic_form(_over_classes, lambda belief: belief.n_classes - 1))
register(SquaredError, None, NormalEnsemble, _quadratic_form(_over_normals, lambda belief: 1))


# On a GPU, by a kernel: torch tensors on a CUDA device, of up to 128 classes.

Precision = Literal["float16", "bfloat16", "tf32", "float32"]
_BYTES = {"float16": 2, "bfloat16": 2, "tf32": 4, "float32": 4}
_LOSSES = (LogLoss, BrierLoss, CostMatrix, ZeroOne)
_FEW = 32  # members, over which what float16 rounds does not average out


def fused_form(precision: Precision = "float16") -> Form:
    """The kernel for ensembles of classes on a GPU in a precision of choice, for `score(..., form=...)`.

    Only the covariance of members is rounded, and sums are in float32. `find_form` takes float16, or float32 for up to
    32 members, over which rounding does not average out, and for small ensembles that came in float32; small ones in
    float64 it leaves to the general route.

    Args:
        precision: "float16", which ranks as float64 does; "bfloat16", with a wider range and an eighth of its accuracy;
            "tf32", with the accuracy of float16 at half the speed; or "float32", which is nearly exact, and slow.

    Returns:
        The form. It serves log loss, Brier loss, cost matrices and zero-one loss of up to 128 classes.

    Raises:
        StakesError: If there is no such precision.

    Examples:
        >>> from stakes.acquisition import fused_form
        >>> fused_form("tf32").name
        'fused kernel over centred members in tf32'
    """
    if precision not in _BYTES:
        raise StakesError(f"precision must be one of {', '.join(_BYTES)}; got {precision!r}")

    def prepare(loss: Any, belief: CategoricalEnsemble, shares: Any) -> Any:
        return _member_sums(loss, belief, shares, precision)

    return Form(
        f"fused kernel over centred members in {precision}",
        GENERAL.prepare,
        GENERAL.numbers,
        GENERAL.context_numbers,
        total=Total(prepare, lambda loss, belief: held_numbers(belief, _BYTES[precision]), in_logs=True),
        serves=lambda loss, belief: (
            _is_served(loss, belief) and has_fused_kernel(belief) and within_reach(loss, belief, HALF_LIGHTEST)
        ),
    )


def _is_served(loss: Any, belief: Any) -> bool:
    """Whether the sums are those of this very loss: a form of the caller's choice may meet any pair."""
    return type(loss) in _LOSSES and type(belief) is CategoricalEnsemble


def _member_sums(loss: Any, belief: CategoricalEnsemble, shares: Any, precision: str) -> Any:
    from stakes.gpu.centred import member_sums

    of, log_scale = member_sums(loss, belief, shares, precision)
    return lambda block: _logs(of(block), log_scale)


def _logs(sums: Array, log_scale: float) -> Array:
    """[n]: of what kernels add up, which is below 0 by rounding only; who reads it sees whether it is finite."""
    logs = sums.clamp_min(0.0).log()
    return logs + log_scale if log_scale else logs


def _where(form: Form, is_for: Callable[[CategoricalEnsemble], bool], otherwise: Form | None) -> Form:
    """The form for some of the ensembles that it serves."""

    def serves(loss: Any, belief: CategoricalEnsemble) -> bool:
        return is_for(belief) and form.serves(loss, belief)

    return replace(form, serves=serves, otherwise=otherwise)


def _is_nearly_exact(belief: CategoricalEnsemble) -> bool:
    """Whether products are in float32: of few members, or of few rows that came in it."""
    if is_large_ensemble(belief):
        return int(belief.member_weights.shape[0]) <= _FEW
    return bool(belief.like.dtype == namespace(belief.like).float32)


def _kernel_or(otherwise: Form | None) -> Form:
    """The kernel where there is a GPU."""
    return _where(fused_form("float32"), _is_nearly_exact, _where(fused_form("float16"), is_large_ensemble, otherwise))


def _vote_sums(loss: Any, belief: VoteEnsemble, shares: Any) -> Any:
    from stakes.gpu.centred import vote_sums

    of, log_scale = vote_sums(loss, belief, shares), relative_weights(loss)[1]
    return lambda block: _logs(of(block), log_scale)


def _vote_costs(loss: Any, belief: VoteEnsemble, shares: Any) -> Any:
    """Costs are real numbers, so that their sums over votes are not counts: as probabilities 0 and 1, in float32."""
    of = _member_sums(loss, belief.as_probabilities(), shares, "float32")
    return lambda block: of(block.as_probabilities())


_FUSED = _kernel_or(
    Form(
        "products of centred members in float32, in compiled blocks",
        GENERAL.prepare,
        GENERAL.numbers,
        GENERAL.context_numbers,
        total=Total(block_sums_compiled, block_numbers, in_logs=True),
        serves=_compiled_serves,
        otherwise=BLOCKED,
    )
)
for _weight in (None, ClassWeights):  # before those on the host, which are registered for any weight
    register(LogLoss, _weight, CategoricalEnsemble, _kernel_or(None))
    register(LogLoss, _weight, VoteEnsemble, fused_form_of_votes(_vote_sums, 3))
register(BrierLoss, ANY, CategoricalEnsemble, _FUSED)  # without weights, after one matrix over members
register(BrierLoss, ANY, VoteEnsemble, fused_form_of_votes(_vote_sums, 3))
for _loss in (CostMatrix, ZeroOne):
    register(_loss, None, CategoricalEnsemble, _FUSED)
    register(_loss, None, VoteEnsemble, fused_form_of_votes(_vote_costs, 12))
