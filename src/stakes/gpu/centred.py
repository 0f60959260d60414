"""Sums over products of centred members in one pass on a GPU: a tile of the joint lives in registers and nowhere else.

A program takes a tile of candidates and one of contexts, and for every label y of the first and every term z of the
second makes their product over members, what the loss makes of it, and the sum. All arrays are padded to whole tiles,
so that nothing is masked: padding has no mass, no height and members of 0.
Sizes: n candidates, M contexts, K members, C classes, T terms.
"""

# Names in capitals are constants that a kernel is compiled for.
# ruff: noqa: N803

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton import knobs
from triton.tools.tensor_descriptor import TensorDescriptor

from stakes._utils.array import SINGLE_EMPTY, SINGLE_NOTHING, Array
from stakes._utils.compute import kernel

_EMPTY = tl.constexpr(SINGLE_EMPTY)
_LEAST = tl.constexpr(SINGLE_NOTHING)
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
        votes = own * n_members
        per_vote = tl.where(own > 0.0, 1.0 / tl.maximum(votes, 1.0), 0.0)
        if WEIGHTED:
            if COUNTS:
                sides = left, row, first, right, column, means, shares
                mean = _mean_of_counts(
                    *sides, votes, per_vote, n_contexts, n_members, CLASSES, WIDTH, ROWS, COLUMNS, DEEP
                )
            else:
                last = column + CLASSES * n_contexts
                mean = scale * _product(left, row, first, right, last, ROWS, COLUMNS, WIDTH, DEEP, COUNTS, PRECISION)
            inverse = tl.where(1.0 + mean > _EMPTY, 1.0 / tl.maximum(1.0 + mean, _EMPTY), 0.0)
            shift = mean * inverse
            inverse *= 1.0 if COUNTS else scale
        inner = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for z in range(CLASSES):
            at = z * n_contexts + columns
            here = column + z * n_contexts
            product = _product(left, row, first, right, here, ROWS, COLUMNS, WIDTH, DEEP, COUNTS, PRECISION)
            if COUNTS:
                product = _of_counts(product, votes, per_vote, means + at, n_members)
            q = product * inverse - shift if WEIGHTED else product if COUNTS else product * scale
            inner += tl.load(heights + at)[None, :] * _excess(q, LOG, FAST)
        if WEIGHTED:
            inner *= tl.where(inverse > 0.0, (1.0 if COUNTS else scale) / tl.maximum(inverse, _LEAST), 0.0)
        total += own * tl.sum(inner, axis=1)
        row += n_rows
    tl.store(result + tile * n_rows + rows, total)


@kernel
def _mean_of_counts(
    left: tl.tensor_descriptor,
    row: tl.tensor,
    first: tl.tensor,
    right: tl.tensor_descriptor,
    column: tl.tensor,
    means: tl.tensor,
    shares: tl.tensor,
    votes: tl.tensor,
    per_vote: tl.tensor,
    n_contexts: tl.tensor,
    n_members: tl.tensor,
    CLASSES: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEEP: tl.constexpr,
) -> tl.tensor:
    """The mean over z of r, with `shares`, of a tile of candidates and one of contexts."""
    columns = column + tl.arange(0, COLUMNS)
    mean = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for z in range(CLASSES):
        at = z * n_contexts + columns
        here = column + z * n_contexts
        count = _product(left, row, first, right, here, ROWS, COLUMNS, WIDTH, DEEP, True, "ieee")
        mean += tl.load(shares + at)[None, :] * _of_counts(count, votes, per_vote, means + at, n_members)
    return mean


@kernel
def _of_counts(
    count: tl.tensor, votes: tl.tensor, per_vote: tl.tensor, means: tl.tensor, n_members: tl.tensor
) -> tl.tensor:
    """K c / (n_y n_z) - 1 from whole numbers, the difference first: 0 where no member votes so."""
    theirs = tl.load(means) * n_members
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


# What the kernels are given and how they are launched.

_WIDTH = 64  # members are padded to a multiple of this
_AT_ONCE = 1024  # numbers of a candidate that are centred at a time


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


class Numbers(NamedTuple):
    """In what numbers products are made."""

    dtype: Any
    product: str
    """Triton's name for how float32 numbers are multiplied"""
    few: Tiles
    """for up to 128 members"""
    many: Tiles

    def tiles(self, width: int) -> Tiles:
        """Those for so many members, padded."""
        tiles = self.few if width <= 128 else self.many
        return tiles._replace(deep=min(tiles.deep, width))


NUMBERS = {
    "float16": Numbers(torch.float16, "ieee", Tiles(64, 64, 128, 4, 3), Tiles(128, 128, 64, 8, 4)),
    "bfloat16": Numbers(torch.bfloat16, "ieee", Tiles(64, 64, 128, 4, 3), Tiles(128, 128, 64, 8, 4)),
    "tf32": Numbers(torch.float32, "tf32", Tiles(64, 64, 64, 4, 3), Tiles(128, 128, 32, 8, 3)),
    "float32": Numbers(torch.float32, "tf32x3", Tiles(64, 64, 32, 4, 2), Tiles(64, 64, 32, 4, 2)),
}
VOTES = Numbers(torch.int8, "ieee", Tiles(128, 64, 128, 8, 3), Tiles(128, 64, 128, 8, 3))


@dataclass(frozen=True, eq=False)
class Job:
    """What the contexts bring to a kernel, padded to whole tiles."""

    kind: str
    """"log", "square" or "actions": what the loss makes of a product"""
    weighted: bool
    scale: float
    classes: int
    members: int
    numbers: Numbers
    tiles: Tiles
    right: Any
    """[T, M, K]"""
    heights: Any
    """[T, M]"""
    offsets: Any
    """[A, M] for actions; for votes the means p_z [C, M]"""
    shares: Any
    """[C, M]: s_z, for votes"""

    @property
    def width(self) -> int:
        """Of members, padded."""
        return int(self.right.shape[2])

    def sums(self, left: Any, mass: Any) -> Array:
        """[n]: scores of candidates with centred members `left` [C, n, K] and means `mass` [C, n], both padded."""
        rows, contexts, tiles = left.shape[1], self.right.shape[1], self.tiles
        result = torch.empty((contexts // tiles.columns, rows), dtype=torch.float32, device=left.device)
        grid = (result.shape[0] * (rows // tiles.rows),)
        sizes = (rows, contexts, float(self.members))
        settings = {
            "CLASSES": self.classes,
            "WIDTH": self.width,
            "PRECISION": self.numbers.product,
            "ROWS": tiles.rows,
            "COLUMNS": tiles.columns,
            "DEEP": tiles.deep,
            "num_warps": tiles.warps,
            "num_stages": tiles.stages,
        }
        sides = (
            _described(left, (tiles.rows, tiles.deep)),
            _described(self.right, (tiles.columns, tiles.deep)),
            mass,
            self.heights,
            self.offsets,
        )
        with _on(left.device):
            if self.kind == "actions":
                action_sums[grid](*sides, result, *sizes, ACTIONS=self.right.shape[0], **settings)
            else:
                class_sums[grid](
                    *sides,
                    self.shares,
                    result,
                    *sizes,
                    LOG=self.kind == "log",
                    WEIGHTED=self.weighted,
                    COUNTS=self.numbers is VOTES,
                    FAST=not knobs.runtime.interpret,
                    **settings,
                )
        return self.scale * torch.sum(result, dim=0, dtype=torch.float64)

    def rows(self, count: int) -> int:
        """Of candidates, padded to one tile at least."""
        return int(max(1, triton.cdiv(count, self.tiles.rows)) * self.tiles.rows)


def member_sums(terms: Any, classes: int, weights: Any, precision: str) -> Callable[[Any], Array]:
    """A function from blocks of candidates to their scores [n], for the terms of contexts and weights [K] of members.

    The terms are those of `stakes.acquisition.centred`.
    """
    job, weights = member_job(terms, classes, precision), weights.to(torch.float32).contiguous()
    return lambda block: job.sums(*centred_members(block.candidates, weights, job))[: block.n_candidates]


def member_job(terms: Any, classes: int, precision: str) -> Job:
    """What the contexts of an ensemble bring."""
    arrays = (terms.members, terms.heights, terms.offsets, terms.heights[:0])
    sizes = (classes, terms.members.shape[2])
    return _job(terms.kind, terms.weighted, terms.scale, NUMBERS[precision], *sizes, *arrays)


def vote_sums(*terms: Any) -> Callable[[Any], Array]:
    """The same of votes, whose products are counts, for what the contexts bring to `vote_job`."""
    job = vote_job(*terms)
    return lambda block: job.sums(*voted(block.candidates, job))[: block.n_candidates]


def vote_job(kind: str, weighted: bool, contexts: Any, means: Any, shares: Any, heights: Any) -> Job:
    """What the contexts of votes [M, K] bring, with means, shares and heights [M, C] each."""
    sizes = (means.shape[1], contexts.shape[1])
    scale = float(heights.max()) or 1.0
    arrays = (_indicators(contexts, means.shape[1]), heights.T / scale, means.T, shares.T)
    return _job(kind, weighted, scale, VOTES, *sizes, *arrays)


def _job(
    kind: str,
    weighted: bool,
    scale: float,
    numbers: Numbers,
    classes: int,
    members: int,
    right: Any,
    heights: Any,
    offsets: Any,
    shares: Any,
) -> Job:
    """Padded, in the numbers wanted."""
    width = triton.cdiv(members, _WIDTH) * _WIDTH
    tiles = numbers.tiles(width)
    contexts = triton.cdiv(right.shape[1], tiles.columns) * tiles.columns
    there = _padded(right, (right.shape[0], contexts, width), numbers.dtype)
    if numbers.product == "tf32":
        there = ((there.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)  # to the nearest
    heights, offsets, shares = (
        _padded(each, (each.shape[0], contexts), torch.float32) for each in (heights, offsets, shares)
    )
    return Job(kind, weighted, scale, classes, members, numbers, tiles, there, heights, offsets, shares)


def centred_members(probabilities: Any, weights: Any, job: Job) -> tuple[Any, Any]:
    """[C, n, K], [C, n]: p / mean - 1 and means of a block of candidates [n, K, C], padded."""
    count, members, classes = probabilities.shape
    rows = job.rows(count)
    left = torch.empty((classes, rows, job.width), dtype=job.numbers.dtype, device=probabilities.device)
    mass = torch.empty((classes, rows), dtype=torch.float32, device=probabilities.device)
    every = triton.next_power_of_2(classes)
    some = max(16, min(triton.next_power_of_2(job.width), _AT_ONCE // every))
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
    rows = job.rows(candidates.shape[0])
    votes = _indicators(candidates, job.classes)
    mass = votes.sum(dim=2, dtype=torch.float32) / job.members
    return _padded(votes, (job.classes, rows, job.width), torch.int8), _padded(mass, (job.classes, rows), torch.float32)


def _indicators(votes: Any, classes: int) -> Any:
    """[C, n, K]: 1 for the class voted for."""
    return (votes[None, ...] == torch.arange(classes, device=votes.device)[:, None, None]).to(torch.int8)


def _padded(values: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """`values` in the corner of zeros."""
    padded = torch.zeros(shape, dtype=dtype, device=values.device)
    padded[tuple(slice(0, length) for length in values.shape)] = values.to(dtype)
    return padded


def _described(members: Any, block: tuple[int, int]) -> TensorDescriptor:
    """Members [T, n, K] as a kernel loads them, in blocks of rows and columns of [T n, K]."""
    return TensorDescriptor.from_tensor(members.flatten(0, 1), list(block))


def _on(device: Any) -> Any:
    """Kernels go to the current device, which may be another one than that of their arguments."""
    return torch.cuda.device(device) if device.type == "cuda" else torch.no_grad()
