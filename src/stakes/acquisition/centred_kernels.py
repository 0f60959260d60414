"""Sums over products of centred members in one pass on a GPU: a tile of the joint lives in registers and nowhere else.

A program takes a tile of candidates and one of contexts, and for every label y of the first and every term z of the
second makes their product over members, what the loss makes of it, and the sum. All arrays are padded to whole tiles,
so that nothing is masked: padding has no mass, no height and members of 0.
Sizes: n candidates, M contexts, K members, C classes, T terms.
"""
# Names in capitals are constants that a kernel is compiled for.
# ruff: noqa: N803

from __future__ import annotations

import triton.language as tl

from stakes._kernel import kernel
from stakes.acquisition.centred import EMPTY, NOTHING

_EMPTY = tl.constexpr(EMPTY)
_LEAST = tl.constexpr(NOTHING)
_LN2 = tl.constexpr(0.6931471805599453)
_SMALL = tl.constexpr(0.25)
# Chebyshev's interpolation of ((1 + q) log(1 + q) - q) / q^2 for |q| < 1/4, to 3e-6; beyond, a logarithm that is off by
# 2^-22 costs no more.
_A = tl.constexpr(0.500000146)
_B = tl.constexpr(-0.166636047)
_C = tl.constexpr(0.0832915945)
_D = tl.constexpr(-0.0519343718)
_E = tl.constexpr(0.0350870335)


@kernel
def _log2(x: tl.tensor, FAST: tl.constexpr) -> tl.tensor:
    """By the unit for special functions, which Triton's interpreter has none of."""
    if FAST:
        logs = tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
    else:
        logs = tl.log2(x)
    return logs


@kernel
def _excess(q: tl.tensor, LOG: tl.constexpr, FAST: tl.constexpr) -> tl.tensor:
    """(1 + q) log(1 + q) - q, or q^2."""
    square = q * q
    if not LOG:
        return square
    x = tl.maximum(1.0 + q, _LEAST)
    far = x * _log2(x, FAST) * _LN2 - q
    near = square * (_A + q * (_B + q * (_C + q * (_D + q * _E))))
    return tl.where(tl.abs(q) < _SMALL, near, far)


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
    means: tl.tensor,
    shares: tl.tensor,
    result: tl.tensor,
    n_rows: tl.tensor,
    n_contexts: tl.tensor,
    n_members: tl.tensor,
    CLASSES: tl.constexpr,
    WIDTH: tl.constexpr,
    LOG: tl.constexpr,
    WEIGHTED: tl.constexpr,
    COUNTS: tl.constexpr,
    FAST: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEEP: tl.constexpr,
) -> None:
    """Add up, in `result` [tiles of contexts, n], p_y (1 + rbar) h f(q) over labels, classes and contexts.

    `left` [C n, WIDTH] and `right` [C M or (C + 1) M, WIDTH] are centred members, the last of the latter for rbar. With
    COUNTS both are votes, 0 or 1, and r comes from whole numbers: from `mass` [C, n] and `means` [C, M], p_y and p_z,
    and rbar from `shares` [C, M] by a product more. `heights` are [C, M].
    """
    tiles = n_contexts // COLUMNS
    tile = tl.program_id(0) % tiles
    row, column = tl.program_id(0) // tiles * ROWS, tile * COLUMNS
    rows, columns = row + tl.arange(0, ROWS), column + tl.arange(0, COLUMNS)
    total, scale = tl.zeros((ROWS,), dtype=tl.float32), 1.0 / n_members
    for y in range(CLASSES):
        own = tl.load(mass + y * n_rows + rows)
        first = left.load([row, 0]) if WIDTH == DEEP or COUNTS else None
        if COUNTS:
            votes = own * n_members
            per_vote = tl.where(own > 0.0, 1.0 / tl.maximum(votes, 1.0), 0.0)
        if WEIGHTED:
            if COUNTS:
                mean = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
                for z in range(CLASSES):
                    count = _product(
                        left, row, first, right, column + z * n_contexts, ROWS, COLUMNS, WIDTH, DEEP, COUNTS, PRECISION
                    )
                    theirs = tl.load(means + z * n_contexts + columns) * n_members
                    r = _of_counts(count, votes, per_vote, theirs, n_members)
                    mean += tl.load(shares + z * n_contexts + columns)[None, :] * r
            else:
                mean = _product(
                    left,
                    row,
                    first,
                    right,
                    column + CLASSES * n_contexts,
                    ROWS,
                    COLUMNS,
                    WIDTH,
                    DEEP,
                    COUNTS,
                    PRECISION,
                )
                mean *= scale
            inverse = tl.where(1.0 + mean > _EMPTY, 1.0 / tl.maximum(1.0 + mean, _EMPTY), 0.0)
            shift = mean * inverse
            inverse *= 1.0 if COUNTS else scale
        inner = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for z in range(CLASSES):
            product = _product(
                left, row, first, right, column + z * n_contexts, ROWS, COLUMNS, WIDTH, DEEP, COUNTS, PRECISION
            )
            if COUNTS:
                theirs = tl.load(means + z * n_contexts + columns) * n_members
                product = _of_counts(product, votes, per_vote, theirs, n_members)
            q = product * inverse - shift if WEIGHTED else product if COUNTS else product * scale
            inner += tl.load(heights + z * n_contexts + columns)[None, :] * _excess(q, LOG, FAST)
        if WEIGHTED:
            inner *= tl.where(inverse > 0.0, (1.0 if COUNTS else scale) / tl.maximum(inverse, _LEAST), 0.0)
        total += own * tl.sum(inner, axis=1)
        row += n_rows
    tl.store(result + tile * n_rows + rows, total)


@kernel
def _of_counts(
    count: tl.tensor, votes: tl.tensor, per_vote: tl.tensor, theirs: tl.tensor, n_members: tl.tensor
) -> tl.tensor:
    """K c / (n_y n_z) - 1 from whole numbers, the difference first: 0 where no member votes so."""
    inverse = tl.where(theirs > 0.0, 1.0 / tl.maximum(theirs, 1.0), 0.0)
    return (count * n_members - votes[:, None] * theirs[None, :]) * per_vote[:, None] * inverse[None, :]


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
    WIDTH: tl.constexpr,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEEP: tl.constexpr,
) -> None:
    """Add up, in `result` [tiles of contexts, n], p_y max_b (D_b + d_b) over labels and contexts, at least 0.

    `offsets` [A, M] are D, and `heights` [A, M] what the mean product over members is to be multiplied by.
    """
    tiles = n_contexts // COLUMNS
    tile = tl.program_id(0) % tiles
    row, column = tl.program_id(0) // tiles * ROWS, tile * COLUMNS
    rows, columns = row + tl.arange(0, ROWS), column + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for y in range(CLASSES):
        first = left.load([row, 0]) if WIDTH == DEEP else None
        best = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)  # of the action kept itself
        for b in range(ACTIONS):
            product = _product(
                left, row, first, right, column + b * n_contexts, ROWS, COLUMNS, WIDTH, DEEP, False, PRECISION
            )
            height, offset = tl.load(heights + b * n_contexts + columns), tl.load(offsets + b * n_contexts + columns)
            best = tl.maximum(best, offset[None, :] + height[None, :] * (product / n_members))
        total += tl.load(mass + y * n_rows + rows) * tl.sum(best, axis=1)
        row += n_rows
    tl.store(result + tile * n_rows + rows, total)


@kernel
def centre(
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

    Members are taken SOME at a time, classes ALL at once (a power of 2). With TF32 numbers are rounded to what tensor
    cores read of a float32, which else cut off the rest: all errors would have one sign.
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
        if TF32:
            gap = ((gap.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
        tl.store(to, tl.where(inside, gap, 0.0).to(left.dtype.element_ty), mask=known & (k_here < WIDTH)[:, None])
