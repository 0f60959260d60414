"""What the fused kernels are given and how they are launched: torch's side of `stakes.acquisition.fused`.

Sizes: n candidates of a block, M contexts, K members, C classes, T terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
from triton import knobs
from triton.tools.tensor_descriptor import TensorDescriptor

from stakes._array import Array, double
from stakes.acquisition import centred_kernels as kernels
from stakes.acquisition.centred import Kind, class_shares, kind_of, terms_of
from stakes.acquisition.vote_counts import margins
from stakes.beliefs import CategoricalEnsemble, VoteEnsemble

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

    kind: Kind
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
                kernels.action_sums[grid](*sides, result, *sizes, ACTIONS=self.right.shape[0], **settings)
            else:
                kernels.class_sums[grid](
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


def member_sums(loss: Any, belief: CategoricalEnsemble, shares: Array, precision: str) -> Callable[[Any], Array]:
    """A function from blocks of candidates to their scores [n], for contexts with `shares` [M]."""
    job, weights = member_job(loss, belief, shares, precision), belief.member_weights.to(torch.float32).contiguous()
    return lambda block: job.sums(*centred_members(block.candidates, weights, job))[: block.n_candidates]


def member_job(loss: Any, belief: CategoricalEnsemble, shares: Array, precision: str) -> Job:
    """What the contexts of an ensemble bring."""
    terms, sizes = terms_of(loss, belief, shares), (belief.n_classes, belief.member_weights.shape[0])
    arrays = (terms.members, terms.heights, terms.offsets, terms.heights[:0])
    return _job(terms.kind, terms.weighted, terms.scale, NUMBERS[precision], *sizes, *arrays)


def vote_sums(loss: Any, belief: VoteEnsemble, shares: Array) -> Callable[[Any], Array]:
    """The same of votes, whose products are counts."""
    job = vote_job(loss, belief, shares)
    return lambda block: job.sums(*voted(block, job))[: block.n_candidates]


def vote_job(loss: Any, belief: VoteEnsemble, shares: Array) -> Job:
    """What the contexts of votes bring."""
    sizes = (belief.n_classes, belief.contexts.shape[1])
    means = double(margins(belief.contexts, belief.n_classes)) / sizes[1]  # [M, C]
    classes = class_shares(loss, means, shares)
    scale = float(classes.heights.max()) or 1.0
    there = _indicators(belief.contexts, belief.n_classes)
    arrays = (there, classes.heights.T / scale, means.T, classes.shares.T)
    return _job(kind_of(loss), loss.class_weights is not None, scale, VOTES, *sizes, *arrays)


def _job(
    kind: Kind,
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
        kernels.centre[(rows,)](
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


def voted(block: VoteEnsemble, job: Job) -> tuple[Any, Any]:
    """[C, n, K], [C, n]: votes as 0 and 1, and the share of members that vote so, padded."""
    rows = job.rows(block.n_candidates)
    votes = _indicators(block.candidates, job.classes)
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
