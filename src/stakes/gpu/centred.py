"""Sums over products of centred members in one pass on a GPU: a tile of the joint lives in registers and nowhere else.

A program takes a tile of candidates and one of contexts, and for every label y of the first and every term z of the
second makes their product over members, what the loss makes of it, and the sum. All arrays are padded to whole tiles,
so that nothing is masked: padding has no mass, no height and members of 0.
Sizes: n candidates, M contexts, K members, C classes, T terms.
"""

# Names in capitals are constants that a kernel is compiled for.
# ruff: noqa: N803

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.tools.tensor_descriptor import TensorDescriptor

from stakes._utils.array import AGREED, SINGLE_EMPTY, SINGLE_NOTHING, Array, slices
from stakes._utils.compute import kernel
from stakes.losses import BrierLoss
from stakes.losses.weights import relative_weights

_EMPTY = tl.constexpr(SINGLE_EMPTY)
_LEAST = tl.constexpr(SINGLE_NOTHING)
_AGREED = tl.constexpr(AGREED)
_PER_LN2 = tl.constexpr(1.0 / math.log(2.0))
_NEAR = tl.constexpr(0.125)
_NEARER = tl.constexpr(0.0625)
_MORE = tl.constexpr(2.0**-23)
# Chebyshev's interpolation of ((1 + q) log(1 + q) - q) / q^2 for |q| < 1/8, to 2e-6; beyond, a logarithm that is off by
# 2^-22 costs no more than ten times that, and either way.
_A = tl.constexpr(0.499998972)
_B = tl.constexpr(-0.166664827)
_C = tl.constexpr(0.0838582913)
_D = tl.constexpr(-0.0504695263)
# The same for |q| < 1/16, to 6e-6, for members in half precision.
_A2 = tl.constexpr(0.499999936)
_B2 = tl.constexpr(-0.166813379)
_C2 = tl.constexpr(0.0834637977)


@kernel
def _log2(x: tl.tensor, FAST: tl.constexpr) -> tl.tensor:
    """Of |x|, by the unit for special functions, which Triton's interpreter has none of."""
    if FAST:
        asm: tl.constexpr = "{ .reg .f32 size; abs.f32 size, $1; lg2.approx.ftz.f32 $0, size; }"
        logs = tl.inline_asm_elementwise(asm, "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        logs = tl.log2(tl.abs(x))
    return logs


@kernel
def _excess(u: tl.tensor, scale: tl.tensor, LOG: tl.constexpr, HALF: tl.constexpr, FAST: tl.constexpr) -> tl.tensor:
    """For x = 1 + scale u: x log2(x) - (x - 1) / log(2), or u^2.

    To x is added what keeps it from being 0, see `_scale`; as the least is at 1, that hardly changes anything.
    """
    square = u * u
    if not LOG:
        return square
    unit = scale * _PER_LN2
    x = u * scale + (1.0 + _MORE)
    far = x * _log2(x, FAST) - (u * unit + _MORE * _PER_LN2)
    if HALF:
        a, b, c = _A2 * unit * scale, _B2 * unit * scale * scale, _C2 * unit * scale * scale * scale
        near, limit = square * (a + u * (b + u * c)), _NEARER / scale
    else:
        a, b, c, d = _A * unit * scale, _B * unit * scale, _C * unit * scale, _D * unit * scale
        near = square * (a + u * (b * scale + u * (c * scale * scale + u * (d * scale * scale * scale))))
        limit = _NEAR / scale
    return tl.where(tl.abs(u) < limit, near, far)


@kernel
def _product(
    left: tl.tensor_descriptor,
    row: tl.tensor,
    first: tl.tensor,
    right: tl.tensor_descriptor,
    column: tl.tensor,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    DEEP: tl.constexpr,
    COUNTS: tl.constexpr,
    PRECISION: tl.constexpr,
) -> tl.tensor:
    """Of members in `left` from `row` on, of which `first` holds the first DEEP, and in `right` from `column` on."""
    if COUNTS:
        total = tl.dot(first, right.load([column, 0]).T, out_dtype=tl.int32)
        for k in range(DEEP, WIDTH, DEEP):
            total = tl.dot(left.load([row, k]), right.load([column, k]).T, total, out_dtype=tl.int32)
        total = total.to(tl.float32)
    elif WIDTH == DEEP:
        total = tl.dot(first, right.load([column, 0]).T, input_precision=PRECISION)
    else:
        total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for k in range(0, WIDTH, DEEP):
            total = tl.dot(left.load([row, k]), right.load([column, k]).T, total, input_precision=PRECISION)
    return total


@kernel
def class_sums(
    left: tl.tensor_descriptor,
    right: tl.tensor_descriptor,
    mass: tl.tensor,
    heights: tl.tensor,
    shares: tl.tensor,
    votes: tl.tensor,
    result: tl.tensor,
    n_rows: tl.tensor,
    n_contexts: tl.tensor,
    n_members: tl.tensor,
    scale: tl.tensor,
    together: tl.tensor,
    CLASSES: tl.constexpr,
    LABELS: tl.constexpr,
    TERMS: tl.constexpr,
    WIDTH: tl.constexpr,
    LOG: tl.constexpr,
    MEAN: tl.constexpr,
    EACH: tl.constexpr,
    HALF: tl.constexpr,
    COUNTS: tl.constexpr,
    FAST: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEEP: tl.constexpr,
) -> None:
    """Add up, in `result` [labels at a time, tiles of contexts, n], p_y times what terms make of r.

    `left` [C n, WIDTH] and `right` [T M, WIDTH] are centred members, u their product and r its mean over members. A
    term counts `heights` [T, M] times f(r). With MEAN there is one height more, for rbar, the mean of r with `shares`
    [C, M]: of f(rbar) for logarithms; else all is sum_z h_z (r_z - rbar)^2 / (1 + rbar), and the last height the sum of
    h. With COUNTS both sides are votes, 0 or 1, and r comes from whole numbers: from `mass` [C, n], p_y, and `votes`
    [2, C, M], those for z and their inverse. With EACH sums are kept for each pair of rows, else for each candidate.
    Programs go through all candidates with `together` tiles of contexts, then to the next: these stay in the cache.
    """
    tiles, start = n_contexts // COLUMNS, tl.program_id(1) * LABELS
    group = tl.program_id(0) // (n_rows // ROWS * together)
    of = tl.minimum(tiles - group * together, together)
    within = tl.program_id(0) - group * (n_rows // ROWS * together)
    tile, row = group * together + within % of, within // of * ROWS
    column = tile * COLUMNS
    rows, columns = row + tl.arange(0, ROWS), column + tl.arange(0, COLUMNS).to(tl.int64)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for y in range(start, tl.minimum(start + LABELS, CLASSES)):
        here = row + y * n_rows
        own = tl.load(mass + y * n_rows + rows)
        first = left.load([here, 0]) if WIDTH == DEEP or COUNTS else None
        theirs = own * n_members
        per_vote = tl.where(own > 0.0, 1.0 / tl.maximum(theirs, 1.0), 0.0)
        sums = tl.zeros((ROWS, COLUMNS if EACH else 1), dtype=tl.float32)
        if MEAN:
            mean = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
            line = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for z in range(TERMS):
            there = column + z * n_contexts
            u = _product(left, here, first, right, there, ROWS, COLUMNS, WIDTH, DEEP, COUNTS, PRECISION)
            if COUNTS:
                theirs_of = votes + z * n_contexts
                u = _of_counts(u, theirs, per_vote, theirs_of, columns, TERMS * n_contexts, n_members)
            height = tl.load(heights + z * n_contexts + columns)[None, :]
            found = height * _excess(u, scale, LOG, HALF, FAST)
            sums += found if EACH else tl.sum(found, axis=1, keep_dims=True)
            if MEAN:
                mean += tl.load(shares + z * n_contexts + columns)[None, :] * u
                line += height * u
        if MEAN:
            height = tl.load(heights + TERMS * n_contexts + columns)[None, :]
            if LOG:
                sums += height * _excess(mean, scale, LOG, HALF, FAST)
            else:
                kept = 1.0 + mean * scale
                gaps = tl.maximum(sums - mean * (2.0 * line - mean * height), 0.0)
                sums = tl.where(kept > _EMPTY, gaps / tl.maximum(kept, _EMPTY), 0.0)
        total += own * tl.sum(sums, axis=1)
    part = (tl.program_id(1) * tiles + tile) * n_rows
    tl.store(result + part + rows, total if LOG else total * scale * scale)


@kernel
def _of_counts(
    count: tl.tensor,
    theirs: tl.tensor,
    per_vote: tl.tensor,
    votes: tl.tensor,
    columns: tl.tensor,
    inverse: tl.tensor,
    n_members: tl.tensor,
) -> tl.tensor:
    """K c / (n_y n_z) - 1 from whole numbers, the difference first: 0 where no member votes so, and never below -1."""
    apart = count * n_members - theirs[:, None] * tl.load(votes + columns)[None, :]
    return tl.maximum(apart * (per_vote[:, None] * tl.load(votes + inverse + columns)[None, :]), -1.0)


@kernel
def action_sums(
    left: tl.tensor_descriptor,
    right: tl.tensor_descriptor,
    mass: tl.tensor,
    heights: tl.tensor,
    offsets: tl.tensor,
    result: tl.tensor,
    n_rows: tl.tensor,
    n_contexts: tl.tensor,
    n_members: tl.tensor,
    ACTIONS: tl.constexpr,
    CLASSES: tl.constexpr,
    LABELS: tl.constexpr,
    WIDTH: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEEP: tl.constexpr,
) -> None:
    """Add up, in `result` [labels at a time, tiles of contexts, n], p_y max_b (D_b + d_b), at least 0.

    `offsets` [A, M] are D, and `heights` [A, M] what the mean product over members is to be multiplied by.
    """
    tiles, start = n_contexts // COLUMNS, tl.program_id(1) * LABELS
    tile, row = tl.program_id(0) % tiles, tl.program_id(0) // tiles * ROWS
    column = tile * COLUMNS
    rows, columns = row + tl.arange(0, ROWS), column + tl.arange(0, COLUMNS).to(tl.int64)
    total, scale = tl.zeros((ROWS,), dtype=tl.float32), 1.0 / n_members
    for y in range(start, tl.minimum(start + LABELS, CLASSES)):
        here = row + y * n_rows
        first = left.load([here, 0]) if WIDTH == DEEP else None
        best = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)  # of the action kept itself
        for b in range(ACTIONS):
            there = column + b * n_contexts
            product = _product(left, here, first, right, there, ROWS, COLUMNS, WIDTH, DEEP, False, PRECISION)
            height, offset = tl.load(heights + b * n_contexts + columns), tl.load(offsets + b * n_contexts + columns)
            best = tl.maximum(best, offset[None, :] + (height * scale)[None, :] * product)
        total += tl.load(mass + y * n_rows + rows) * tl.sum(best, axis=1)
    part = (tl.program_id(1) * tiles + tile) * n_rows
    tl.store(result + part + rows, total)


@kernel
def centre_members(
    probabilities: tl.tensor,
    weights: tl.tensor,
    left: tl.tensor,
    mass: tl.tensor,
    n_rows: tl.tensor,
    padded_rows: tl.tensor,
    MEMBERS: tl.constexpr,
    CLASSES: tl.constexpr,
    WIDTH: tl.constexpr,
    SOME: tl.constexpr,
    ALL: tl.constexpr,
    TF32: tl.constexpr,
) -> None:
    """From `probabilities` [n, K, C] to means, `mass` [C, n], and p / mean - 1, `left` [C, n, WIDTH]; one candidate.

    Members are taken SOME at a time, classes ALL at once (a power of 2).
    """
    row = tl.program_id(0).to(tl.int64)
    some, classes = tl.arange(0, SOME), tl.arange(0, ALL)
    known, members = (classes < CLASSES)[None, :], tl.where(row < n_rows, MEMBERS, 0)  # padding has none
    mean = tl.zeros((ALL,), dtype=tl.float32)
    for k in range(0, WIDTH, SOME):
        k_here = k + some
        inside = known & (k_here < members)[:, None]
        at = probabilities + row * MEMBERS * CLASSES + k_here[:, None] * CLASSES + classes[None, :]
        share = tl.load(weights + k_here, mask=k_here < MEMBERS, other=0.0)
        mean += tl.sum(tl.load(at, mask=inside, other=0.0).to(tl.float32) * share[:, None], axis=0)
    tl.store(mass + classes * padded_rows + row, mean, mask=classes < CLASSES)
    inverse = tl.where(mean > _LEAST, 1.0 / tl.maximum(mean, _LEAST), 0.0)
    for k in range(0, WIDTH, SOME):
        k_here = k + some
        inside = known & (k_here < members)[:, None]
        at = probabilities + row * MEMBERS * CLASSES + k_here[:, None] * CLASSES + classes[None, :]
        gap = (tl.load(at, mask=inside, other=0.0).to(tl.float32) - mean[None, :]) * inverse[None, :]
        to = left + (classes[None, :].to(tl.int64) * padded_rows + row) * WIDTH + k_here[:, None]
        gap = _rounded(tl.where(inside, gap, 0.0), TF32)
        tl.store(to, gap.to(left.dtype.element_ty), mask=known & (k_here < WIDTH)[:, None])


@kernel
def context_terms(
    probabilities: tl.tensor,
    weights: tl.tensor,
    class_weights: tl.tensor,
    context_weights: tl.tensor,
    right: tl.tensor,
    heights: tl.tensor,
    shares: tl.tensor,
    n_contexts: tl.tensor,
    padded: tl.tensor,
    unit: tl.tensor,
    MEMBERS: tl.constexpr,
    CLASSES: tl.constexpr,
    WIDTH: tl.constexpr,
    LOG: tl.constexpr,
    WEIGHTED: tl.constexpr,
    COLUMN: tl.constexpr,
    SOME: tl.constexpr,
    ALL: tl.constexpr,
    TF32: tl.constexpr,
) -> None:
    """What one context, of `probabilities` [M, K, C], brings to `class_sums`, in double precision until it is kept.

    From `weights` [K] of members, `class_weights` [C] and `context_weights` [M]: `right` [T, M, WIDTH], which is
    p / mean - 1 times K q_k for each class and, with COLUMN, their mean with `shares` [C, M]; and `heights`
    [C + 1, M] for each class and for that mean, times `unit`.
    """
    row = tl.program_id(0).to(tl.int64)
    some, classes = tl.arange(0, SOME), tl.arange(0, ALL)
    known, members = classes < CLASSES, tl.where(row < n_contexts, MEMBERS, 0)  # padding has none
    place = row * MEMBERS * CLASSES + classes[None, :]
    mean, whole = _mean_of(probabilities + place, weights, members, known, MEMBERS, CLASSES, WIDTH, SOME, ALL)
    inverse = tl.where(mean > _LEAST, 1.0 / tl.maximum(mean, _LEAST), 0.0)
    widest = tl.zeros((ALL,), dtype=tl.float64)
    for k in range(0, WIDTH, SOME):
        p = _rows_of(probabilities + place, k + some, members, known, CLASSES)
        gap = tl.where((k + some < members)[:, None], tl.abs(p - mean[None, :]) * inverse[None, :], 0.0)
        widest = tl.maximum(widest, tl.max(gap, axis=0))
    inverse = tl.where(widest > _AGREED, inverse, 0.0)
    heavy = mean * tl.load(class_weights + classes, mask=known, other=0.0)
    total = tl.sum(heavy, axis=0)
    share_of = heavy / tl.where(total > 0.0, total, 1.0)
    height = (
        total
        * tl.load(context_weights + row, mask=row < n_contexts, other=0.0)
        * (share_of if LOG else share_of * share_of)
    )
    height *= unit
    tl.store(heights + classes * padded + row, height.to(tl.float32), mask=known)
    if WEIGHTED:
        tl.store(shares + classes * padded + row, share_of.to(tl.float32), mask=known)
        sum_of = tl.sum(height, axis=0)
        tl.store(heights + CLASSES * padded + row, (-sum_of if LOG else sum_of).to(tl.float32))
    for k in range(0, WIDTH, SOME):
        k_here = k + some
        inside = (k_here < members)[:, None] & known[None, :]
        share = tl.load(weights + k_here, mask=k_here < MEMBERS, other=0.0).to(tl.float64) * (MEMBERS / whole)
        p = _rows_of(probabilities + place, k_here, members, known, CLASSES)
        gap = tl.where(inside, (p - mean[None, :]) * inverse[None, :] * share[:, None], 0.0)
        to = right + (classes[None, :].to(tl.int64) * padded + row) * WIDTH + k_here[:, None]
        kept = (k_here < WIDTH)[:, None] & known[None, :]
        tl.store(to, _rounded(gap.to(tl.float32), TF32).to(right.dtype.element_ty), mask=kept)
        if COLUMN:
            mean_of = tl.sum(gap * share_of[None, :], axis=1)
            to = right + (CLASSES * padded + row) * WIDTH + k_here
            tl.store(to, _rounded(mean_of.to(tl.float32), TF32).to(right.dtype.element_ty), mask=k_here < WIDTH)


@kernel
def _mean_of(
    probabilities: tl.tensor,
    weights: tl.tensor,
    members: tl.tensor,
    known: tl.tensor,
    MEMBERS: tl.constexpr,
    CLASSES: tl.constexpr,
    WIDTH: tl.constexpr,
    SOME: tl.constexpr,
    ALL: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """[ALL]: the mean over members, and the sum of their weights, which rounding keeps from being 1."""
    mean, each = tl.zeros((ALL,), dtype=tl.float64), tl.zeros((SOME,), dtype=tl.float64)
    for k in range(0, WIDTH, SOME):
        k_here = k + tl.arange(0, SOME)
        share = tl.load(weights + k_here, mask=k_here < MEMBERS, other=0.0).to(tl.float64)
        mean += tl.sum(_rows_of(probabilities, k_here, members, known, CLASSES) * share[:, None], axis=0)
        each += share
    whole = tl.sum(each, axis=0)
    return mean / whole, whole


@kernel
def action_terms(
    probabilities: tl.tensor,
    weights: tl.tensor,
    table: tl.tensor,
    context_weights: tl.tensor,
    right: tl.tensor,
    heights: tl.tensor,
    offsets: tl.tensor,
    n_contexts: tl.tensor,
    padded: tl.tensor,
    MEMBERS: tl.constexpr,
    CLASSES: tl.constexpr,
    ACTIONS: tl.constexpr,
    WIDTH: tl.constexpr,
    SOME: tl.constexpr,
    ALL: tl.constexpr,
    TF32: tl.constexpr,
) -> None:
    """What one context, of `probabilities` [M, K, C], brings to `action_sums`, in double precision until it is kept.

    From `weights` [K] of members, a `table` [C, A] of costs and its `context_weights` [M]: `right` [A, M, WIDTH],
    which is l_a - l_b less its mean, times K q_k, over the largest; `heights` [A, M], that times its weight; and the
    mean, `offsets` [A, M].
    """
    row = tl.program_id(0).to(tl.int64)
    some, actions = tl.arange(0, SOME), tl.arange(0, ALL)
    known, members = actions < ACTIONS, tl.where(row < n_contexts, MEMBERS, 0)  # padding has none
    place = probabilities + row * MEMBERS * CLASSES
    mean, each = tl.zeros((ALL,), dtype=tl.float64), tl.zeros((SOME,), dtype=tl.float64)
    for k in range(0, WIDTH, SOME):
        share = tl.load(weights + k + some, mask=k + some < MEMBERS, other=0.0).to(tl.float64)
        costs = _costs_of(place, table + actions[None, :], k + some, members, known, CLASSES, ACTIONS)
        mean += tl.sum(costs * share[:, None], axis=0)
        each += share
    whole = tl.sum(each, axis=0)  # rounded, weights do not sum to one
    kept = tl.argmin(tl.where(known, mean, float("inf")), axis=0)
    offset, most = tl.zeros((ALL,), dtype=tl.float64), tl.zeros((ALL,), dtype=tl.float64)
    least = tl.zeros((ALL,), dtype=tl.float64)
    for k in range(0, WIDTH, SOME):
        share = tl.load(weights + k + some, mask=k + some < MEMBERS, other=0.0).to(tl.float64)
        costs = _costs_of(place, table + actions[None, :], k + some, members, known, CLASSES, ACTIONS)
        gains = _beyond(costs, actions, kept)
        offset += tl.sum(gains * share[:, None], axis=0) / whole
        most, least = tl.maximum(most, tl.max(gains, axis=0)), tl.minimum(least, tl.min(gains, axis=0))
    hopeless = most <= 0.0  # no member prefers it, so no label can
    offset = tl.where(hopeless, 0.0, offset)
    largest = tl.where(hopeless, 0.0, tl.maximum(most - offset, offset - least))
    inverse = tl.where(largest > 0.0, 1.0 / tl.where(largest > 0.0, largest, 1.0), 0.0)
    share_of = tl.load(context_weights + row, mask=row < n_contexts, other=0.0)
    tl.store(heights + actions * padded + row, (share_of * largest).to(tl.float32), mask=known)
    tl.store(offsets + actions * padded + row, (share_of * offset).to(tl.float32), mask=known)
    for k in range(0, WIDTH, SOME):
        k_here = k + some
        inside = (k_here < members)[:, None] & known[None, :]
        share = tl.load(weights + k_here, mask=k_here < MEMBERS, other=0.0).to(tl.float64) * (MEMBERS / whole)
        costs = _costs_of(place, table + actions[None, :], k_here, members, known, CLASSES, ACTIONS)
        gap = (_beyond(costs, actions, kept) - offset[None, :]) * inverse[None, :] * share[:, None]
        to = right + (actions[None, :].to(tl.int64) * padded + row) * WIDTH + k_here[:, None]
        gap = _rounded(tl.where(inside, gap, 0.0).to(tl.float32), TF32)
        tl.store(to, gap.to(right.dtype.element_ty), mask=(k_here < WIDTH)[:, None] & known[None, :])


@kernel
def _costs_of(
    probabilities: tl.tensor,
    table: tl.tensor,
    members: tl.tensor,
    count: tl.tensor,
    known: tl.tensor,
    CLASSES: tl.constexpr,
    ACTIONS: tl.constexpr,
) -> tl.tensor:
    """[SOME, ALL]: what members expect each action to cost; 0 outside."""
    inside = members < count
    total = tl.zeros(members.shape, dtype=tl.float64)
    costs = tl.zeros((members.shape[0], known.shape[0]), dtype=tl.float64)
    for c in range(CLASSES):
        p = tl.load(probabilities + members * CLASSES + c, mask=inside, other=0.0).to(tl.float64)
        total += p
        costs += p[:, None] * tl.load(table + c * ACTIONS, mask=known[None, :], other=0.0)
    return costs * (1.0 / tl.where(total > 0.0, total, 1.0))[:, None]


@kernel
def _beyond(costs: tl.tensor, actions: tl.tensor, kept: tl.tensor) -> tl.tensor:
    """[SOME, ALL]: by how much the action kept costs more than each."""
    own = tl.sum(tl.where((actions == kept)[None, :], costs, 0.0), axis=1)
    return own[:, None] - costs


@kernel
def _rows_of(
    probabilities: tl.tensor, members: tl.tensor, count: tl.tensor, known: tl.tensor, CLASSES: tl.constexpr
) -> tl.tensor:
    """[SOME, ALL]: probabilities of members, whose rows are made to sum to one; 0 outside."""
    inside = (members < count)[:, None] & known[None, :]
    p = tl.load(probabilities + members[:, None] * CLASSES, mask=inside, other=0.0).to(tl.float64)
    total = tl.sum(p, axis=1)
    return p * (1.0 / tl.where(total > 0.0, total, 1.0))[:, None]


@kernel
def _rounded(values: tl.tensor, TF32: tl.constexpr) -> tl.tensor:
    """With TF32, rounded to what tensor cores read of a float32: else they cut off the rest, always downwards."""
    if TF32:
        values = ((values.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return values


@kernel
def count_votes(
    votes: tl.tensor,
    indicators: tl.tensor,
    counts: tl.tensor,
    n_rows: tl.tensor,
    padded_rows: tl.tensor,
    MEMBERS: tl.constexpr,
    CLASSES: tl.constexpr,
    WIDTH: tl.constexpr,
    SOME: tl.constexpr,
) -> None:
    """From `votes` [n, K] of one row: `indicators` [C, n, WIDTH], 1 for the class voted for, and `counts` [C, n]."""
    row, some = tl.program_id(0).to(tl.int64), tl.arange(0, SOME)
    members = tl.where(row < n_rows, MEMBERS, 0)
    for c in range(CLASSES):
        count = tl.zeros((SOME,), dtype=tl.int32)
        for k in range(0, WIDTH, SOME):
            k_here = k + some
            vote = tl.load(votes + row * MEMBERS + k_here, mask=k_here < members, other=0)
            hit = (vote == c) & (k_here < members)
            count += hit.to(tl.int32)
            to = indicators + (c * padded_rows + row) * WIDTH + k_here
            tl.store(to, hit.to(tl.int8), mask=k_here < WIDTH)
        tl.store(counts + c * padded_rows + row, tl.sum(count, axis=0).to(tl.float32))


@kernel
def vote_terms(
    votes: tl.tensor,
    class_weights: tl.tensor,
    context_weights: tl.tensor,
    heights: tl.tensor,
    shares: tl.tensor,
    n_contexts: tl.tensor,
    padded: tl.tensor,
    unit: tl.tensor,
    CLASSES: tl.constexpr,
    LOG: tl.constexpr,
    WEIGHTED: tl.constexpr,
    SOME: tl.constexpr,
) -> None:
    """What SOME contexts bring to `class_sums` beside their votes: heights and shares as in `context_terms`.

    From `votes` [2, C, M], of which the second half is written: the inverse of the first.
    """
    rows = tl.program_id(0) * SOME + tl.arange(0, SOME)
    total, members = tl.zeros((SOME,), dtype=tl.float64), tl.zeros((SOME,), dtype=tl.float64)
    for c in range(CLASSES):
        count = tl.load(votes + c * padded + rows).to(tl.float64)
        total += count * tl.load(class_weights + c)
        members += count
    inverse = tl.where(total > 0.0, 1.0 / tl.where(total > 0.0, total, 1.0), 0.0)
    whole = total / tl.where(members > 0.0, members, 1.0) * unit
    whole *= tl.load(context_weights + rows, mask=rows < n_contexts, other=0.0)
    sum_of = tl.zeros((SOME,), dtype=tl.float64)
    for c in range(CLASSES):
        count = tl.load(votes + c * padded + rows)
        tl.store(votes + (CLASSES + c) * padded + rows, tl.where(count > 0.0, 1.0 / tl.maximum(count, 1.0), 0.0))
        share = count.to(tl.float64) * tl.load(class_weights + c) * inverse
        height = whole * (share if LOG else share * share)
        tl.store(heights + c * padded + rows, height.to(tl.float32))
        sum_of += height
        if WEIGHTED:
            tl.store(shares + c * padded + rows, share.to(tl.float32))
    if WEIGHTED:
        tl.store(heights + CLASSES * padded + rows, (-sum_of if LOG else sum_of).to(tl.float32))


# What the kernels are given and how they are launched.

_LN2 = math.log(2.0)  # kernels take logarithms to base 2
_WIDTH = 64  # members are padded to a multiple of this
_FEW = 128  # members, up to which they are one product deep
_FEW_CLASSES = 4  # of which rbar is made beside the products: theirs would be most of it, and rounded on its own
_AT_ONCE = 1024  # numbers of a row that are centred at a time
_BUSY = 1024  # programs that keep a GPU busy: labels are shared among them where rows are few
_EACH = 1024  # sums of a warp that are kept beside the product
_IN_CACHE = 2**24  # bytes of contexts that all candidates meet, before they go on to others
_HELD = 2**30  # bytes of contexts, centred, that are held at a time


class Tiles(NamedTuple):
    """How a kernel cuts its work: as measured, see benchmarks/gpu.py."""

    rows: int
    """candidates of a program"""
    columns: int
    """contexts of a program"""
    deep: int
    """members of one product"""
    warps: int
    stages: int
    registers: int | None = None
    """of a thread, at most: so that two programs share a multiprocessor, and one computes while the other waits"""


class Numbers(NamedTuple):
    """In what numbers products are made."""

    dtype: Any
    product: str
    """Triton's name for how float32 numbers are multiplied"""
    few: Tiles
    """for up to 128 members"""
    many: Tiles
    several: Tiles
    """for many, where sums are kept beside the product"""

    def tiles(self, width: int, several: bool, contexts: int) -> Tiles:
        """Those for so many members, padded, and contexts, of which wide tiles may leave much to padding."""
        if width <= _FEW:
            tiles = self.few
        else:
            padded, less = (_padded_to(contexts, each.columns) for each in (self.many, self.several))
            tiles = self.several if several or padded > 1.1 * less else self.many
        return tiles._replace(deep=min(tiles.deep, width))


_HALF = Tiles(64, 64, 128, 4, 2), Tiles(128, 256, 64, 8, 3), Tiles(128, 128, 64, 8, 3)
NUMBERS = {
    "float16": Numbers(torch.float16, "ieee", *_HALF),
    "bfloat16": Numbers(torch.bfloat16, "ieee", *_HALF),
    "tf32": Numbers(
        torch.float32, "tf32", Tiles(64, 64, 64, 4, 3), Tiles(128, 128, 32, 8, 3), Tiles(128, 128, 32, 8, 3)
    ),
    "float32": Numbers(torch.float32, "tf32x3", *3 * (Tiles(64, 64, 32, 4, 2),)),
}
VOTES = Numbers(torch.int8, "ieee", *3 * (Tiles(128, 64, 128, 8, 3, 128),))


@dataclass(frozen=True, eq=False)
class Job:
    """What the contexts bring to a kernel, padded to whole tiles."""

    kind: str
    """"log", "square" or "actions": what the loss makes of a product"""
    mean: bool
    """whether rbar is made of what is beside the products, not by one more"""
    classes: int
    members: int
    numbers: Numbers
    tiles: Tiles
    right: Any
    """[T, M, K]"""
    heights: Any
    """[T, M], one more with `mean`"""
    shares: Any
    """[C, M]: s_z, with `mean`; for actions the offsets [A, M]"""
    votes: Any
    """[2, C, M]: how many members vote z, and the inverse; of votes alone, else not read"""

    @property
    def width(self) -> int:
        """Of members, padded."""
        return int(self.right.shape[2])

    def sums(self, left: Any, mass: Any) -> Array:
        """[n]: scores of candidates with centred members `left` [C, n, K] and means `mass` [C, n], both padded."""
        rows, contexts, tiles = left.shape[1], self.right.shape[1], self.tiles
        programs = (contexts // tiles.columns) * (rows // tiles.rows)
        labels = triton.cdiv(self.classes, triton.cdiv(_BUSY, programs))
        parts = triton.cdiv(self.classes, labels) * (contexts // tiles.columns)
        result = torch.empty((parts, rows), dtype=torch.float32, device=left.device)
        grid = (programs, triton.cdiv(self.classes, labels))
        sizes = (rows, contexts, float(self.members))
        settings = {
            "CLASSES": self.classes,
            "LABELS": labels,
            "WIDTH": self.width,
            "PRECISION": self.numbers.product,
            "ROWS": tiles.rows,
            "COLUMNS": tiles.columns,
            "DEEP": tiles.deep,
            "num_warps": tiles.warps,
            "num_stages": tiles.stages,
            "maxnreg": tiles.registers,
            "enable_fp_fusion": True,
        }
        sides = (
            _described(left, (tiles.rows, tiles.deep)),
            _described(self.right, (tiles.columns, tiles.deep)),
            mass,
            self.heights,
            self.shares,
        )
        with _on(left.device):
            if self.kind == "actions":
                action_sums[grid](*sides, result, *sizes, ACTIONS=self.right.shape[0], **settings)
            else:
                class_sums[grid](
                    *sides,
                    self.votes,
                    result,
                    *sizes,
                    1.0 if self.numbers is VOTES else _scale(self.members),
                    max(1, _IN_CACHE // (tiles.columns * self.right.shape[0] * self.width * self.right.element_size())),
                    TERMS=self.right.shape[0],
                    LOG=self.kind == "log",
                    MEAN=self.mean,
                    EACH=self.mean or tiles.rows * tiles.columns <= _EACH * tiles.warps,
                    HALF=self.numbers.dtype.itemsize == 2,
                    COUNTS=self.numbers is VOTES,
                    FAST=not knobs.runtime.interpret,
                    **settings,
                )
        return torch.sum(result, dim=0, dtype=torch.float64)

    def rows(self, count: int) -> int:
        """Of candidates, padded to one tile at least."""
        return int(max(1, triton.cdiv(count, self.tiles.rows)) * self.tiles.rows)


def member_sums(loss: Any, belief: Any, shares: Any, precision: str) -> tuple[Callable[[Any], Array], float]:
    """A function from blocks of candidates to their scores [n] for contexts with `shares` [M], over exp(log scale).

    And that log scale: what was taken out of weights or costs.
    """
    weights = belief.member_weights.to(torch.float32).contiguous()
    held = belief.contexts.shape[1] * (belief.n_classes + 1) * NUMBERS[precision].dtype.itemsize
    most = max(1, _HELD // held)
    parts = slices(belief.n_contexts, most) if belief.n_contexts > most else ()
    jobs = [member_job(loss, belief.take(slice(None), part), shares[part], precision) for part in parts]
    jobs = jobs or [member_job(loss, belief, shares, precision)]
    log_scale = _costs(loss, belief.n_classes)[1] if loss.finite_actions else relative_weights(loss)[1]

    def sums(block: Any) -> Array:
        sides = centred_members(block.candidates, weights, jobs[0])
        found = [job.sums(*sides)[: block.n_candidates] for job in jobs]
        return found[0] if len(found) == 1 else torch.stack(found).sum(dim=0)

    return sums, log_scale


def member_job(loss: Any, belief: Any, context_weights: Any, precision: str) -> Job:
    """What the contexts of an ensemble bring, where they have weights `context_weights` [M]."""
    if loss.finite_actions:
        return _action_job(_costs(loss, belief.n_classes)[0], belief, context_weights, precision)
    return _class_job(loss, belief, context_weights, precision)


def _costs(loss: Any, classes: int) -> tuple[Any, float]:
    """[C, A]: what each action costs, over the largest, and the log of that."""
    table = np.ascontiguousarray(loss.statistics(np.eye(classes), None), dtype=float)
    largest = float(np.max(np.abs(table))) or 1.0
    return table / largest, math.log(largest)


def _class_job(loss: Any, belief: Any, context_weights: Any, precision: str) -> Job:
    """For log loss and Brier loss."""
    count, members, classes = belief.contexts.shape
    numbers, width, device = NUMBERS[precision], _padded_to(members, _WIDTH), belief.contexts.device
    weights, _ = relative_weights(loss)
    log, weighted = not isinstance(loss, BrierLoss), weights is not None
    column = log and weighted and classes > _FEW_CLASSES
    tiles = numbers.tiles(width, weighted and not column, count)
    contexts = _padded_to(max(count, 1), tiles.columns)
    right = torch.empty((classes + column, contexts, width), dtype=numbers.dtype, device=device)
    heights = torch.empty((classes + weighted, contexts), dtype=torch.float32, device=device)
    shares = torch.empty((classes if weighted else 0, contexts), dtype=torch.float32, device=device)
    every, some = _cut(classes, width)
    with _on(device):
        context_terms[(contexts,)](
            belief.contexts.contiguous(),
            belief.member_weights,
            _class_weights(weights, classes, device),
            _counting_weights(weights, context_weights),
            right,
            heights,
            shares,
            count,
            contexts,
            _LN2 if log else 1.0,
            MEMBERS=members,
            CLASSES=classes,
            WIDTH=width,
            LOG=log,
            WEIGHTED=weighted,
            COLUMN=column,
            SOME=some,
            ALL=every,
            TF32=numbers.product == "tf32",
        )
    kind = "log" if log else "square"
    return Job(kind, weighted and not column, classes, members, numbers, tiles, right, heights, shares, heights)


def _action_job(table: Any, belief: Any, context_weights: Any, precision: str) -> Job:
    """For a `table` [C, A] of costs."""
    count, members, classes = belief.contexts.shape
    numbers, width, device = NUMBERS[precision], _padded_to(members, _WIDTH), belief.contexts.device
    tiles, actions = numbers.tiles(width, True, count), table.shape[1]
    contexts = _padded_to(max(count, 1), tiles.columns)
    right = torch.empty((actions, contexts, width), dtype=numbers.dtype, device=device)
    heights, offsets = (torch.empty((actions, contexts), dtype=torch.float32, device=device) for _ in range(2))
    every, some = _cut(actions, width)
    with _on(device):
        action_terms[(contexts,)](
            belief.contexts.contiguous(),
            belief.member_weights,
            _constant(table.tobytes(), device),
            context_weights,
            right,
            heights,
            offsets,
            count,
            contexts,
            MEMBERS=members,
            CLASSES=classes,
            ACTIONS=actions,
            WIDTH=width,
            SOME=some,
            ALL=every,
            TF32=numbers.product == "tf32",
        )
    return Job("actions", False, classes, members, numbers, tiles, right, heights, offsets, heights)


def vote_sums(loss: Any, belief: Any, context_weights: Any) -> Callable[[Any], Array]:
    """The same of votes, whose products are counts."""
    job = vote_job(loss, belief, context_weights)
    return lambda block: job.sums(*voted(block.candidates, job))[: block.n_candidates]


def vote_job(loss: Any, belief: Any, context_weights: Any) -> Job:
    """What the contexts of votes bring to log loss or Brier loss, where they have weights `context_weights` [M]."""
    count, members = belief.contexts.shape
    width, classes = _padded_to(members, _WIDTH), belief.n_classes
    tiles, device = VOTES.tiles(width, True, count), belief.contexts.device
    contexts = _padded_to(max(count, 1), tiles.columns)
    weights, log = relative_weights(loss)[0], not isinstance(loss, BrierLoss)
    weighted = weights is not None
    votes = torch.empty((2, classes, contexts), dtype=torch.float32, device=device)
    right = _counted(belief.contexts, votes[0], width)
    heights = torch.empty((classes + weighted, contexts), dtype=torch.float32, device=device)
    shares = torch.empty((classes if weighted else 0, contexts), dtype=torch.float32, device=device)
    with _on(device):
        vote_terms[(contexts // tiles.columns,)](
            votes,
            _class_weights(weights, classes, device),
            _counting_weights(weights, context_weights),
            heights,
            shares,
            count,
            contexts,
            _LN2 if log else 1.0,
            CLASSES=classes,
            LOG=log,
            WEIGHTED=weighted,
            SOME=tiles.columns,
        )
    kind = "log" if log else "square"
    return Job(kind, weighted, classes, members, VOTES, tiles, right, heights, shares, votes)


def centred_members(probabilities: Any, weights: Any, job: Job) -> tuple[Any, Any]:
    """[C, n, K], [C, n]: p / mean - 1 and means of a block of candidates [n, K, C], padded."""
    count, members, classes = probabilities.shape
    rows = job.rows(count)
    left = torch.empty((classes, rows, job.width), dtype=job.numbers.dtype, device=probabilities.device)
    mass = torch.empty((classes, rows), dtype=torch.float32, device=probabilities.device)
    every, some = _cut(classes, job.width)
    with _on(left.device):
        centre_members[(rows,)](
            probabilities.contiguous(),
            weights,
            left,
            mass,
            count,
            rows,
            MEMBERS=members,
            CLASSES=classes,
            WIDTH=job.width,
            SOME=some,
            ALL=every,
            TF32=job.numbers.product == "tf32",
        )
    return left, mass


def voted(candidates: Any, job: Job) -> tuple[Any, Any]:
    """[C, n, K], [C, n]: votes [n, K] as 0 and 1, and the share of members that vote so, padded."""
    counts = torch.empty((job.classes, job.rows(candidates.shape[0])), dtype=torch.float32, device=candidates.device)
    left = _counted(candidates, counts, job.width)
    return left, counts.div_(job.members)


def _counted(votes: Any, counts: Any, width: int) -> Any:
    """[C, n, K]: votes [n, K] as 0 and 1, padded; and how many members vote so, in `counts` [C, n]."""
    classes, rows = counts.shape
    indicators = torch.empty((classes, rows, width), dtype=torch.int8, device=votes.device)
    sizes = {"MEMBERS": votes.shape[1], "CLASSES": classes, "WIDTH": width}
    some = min(triton.next_power_of_2(width), _AT_ONCE)
    with _on(votes.device):
        count_votes[(rows,)](votes.contiguous(), indicators, counts, votes.shape[0], rows, SOME=some, **sizes)
    return indicators


def _class_weights(weights: tuple[float, ...] | None, classes: int, device: Any) -> Any:
    """[C]: class weights, on the device."""
    return _constant(np.asarray(weights or (1.0,) * classes).tobytes(), device)


def _counting_weights(weights: tuple[float, ...] | None, context_weights: Any) -> Any:
    """[M]: weights of contexts, or 0 where one class alone has a weight, as no label moves its share."""
    return (
        0.0 * context_weights if weights is not None and sum(weight > 0 for weight in weights) == 1 else context_weights
    )


@lru_cache
def _constant(numbers: bytes, device: Any) -> Any:
    """Weights or costs of a loss, in double precision, on the device, where they are asked for with every ranking."""
    return torch.tensor(np.frombuffer(numbers), device=device)


def _scale(members: int) -> float:
    """1 / K, such that no number u of single precision has u / K = -(1 + 2^-23), where the kernel takes a logarithm.

    2^23 + 1 is 3 times a prime. The numerator of 1 / K, as it is rounded, has other factors, unless K is a power of 2:
    then the number next to it is taken.
    """
    scale = np.float32(1.0 / members)
    return float(np.nextafter(scale, np.float32(0.0)) if members & (members - 1) == 0 else scale)


def _cut(classes: int, width: int) -> tuple[int, int]:
    """How many classes and members of a row are centred at a time."""
    every = triton.next_power_of_2(classes)
    return every, max(16, min(triton.next_power_of_2(width), _AT_ONCE // every))


def _padded_to(count: int, multiple: int) -> int:
    return int(triton.cdiv(count, multiple) * multiple)


def _described(members: Any, block: tuple[int, int]) -> TensorDescriptor:
    """Members [T, n, K] as a kernel loads them, in blocks of rows and columns of [T n, K]."""
    return TensorDescriptor.from_tensor(members.flatten(0, 1), list(block))


def _on(device: Any) -> Any:
    """Kernels go to the current device, which may be another one than that of their arguments."""
    return torch.cuda.device(device) if device.type == "cuda" else torch.no_grad()
