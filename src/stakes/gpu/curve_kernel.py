"""Curves looked up on a GPU in one pass over covariances, by Triton: rho, the series and the sum over contexts.

Torch alone would read and write all pairs three times for each coefficient. In the precision of the belief; sums over
contexts are in double precision. Sizes: n candidates, M contexts, R coefficients.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from stakes._utils.array import ratio
from stakes._utils.compute import kernel
from stakes.beliefs import GaussianBelief

_ROWS, _COLUMNS = 16, 64  # of a tile: what a thread carries in double precision stays in its registers


def sums(block: GaussianBelief, coefficients: Any, low: float) -> tuple[Any, float]:
    """[n]: rho times the series [R, M], summed over contexts, in double precision; and the smallest posterior sd."""
    count, n_tiles = block.n_candidates, triton.cdiv(block.n_contexts, _COLUMNS)
    total = block.covariance.new_empty(count, dtype=torch.float64)
    largest = block.covariance.new_empty(count)
    _launch(_sums, (triton.cdiv(count, _ROWS),), block, coefficients, low, total, largest, n_tiles)
    return total, _smallest_sd(largest)


def each(block: GaussianBelief, coefficients: Any, low: float) -> tuple[Any, float]:
    """[n, M]: rho times the series [R, M]; and the smallest posterior sd."""
    (count, n_contexts), like = block.covariance.shape, block.covariance
    result, n_tiles = like.new_empty((count, n_contexts)), triton.cdiv(n_contexts, _COLUMNS)
    largest = like.new_empty((n_tiles, count))
    _launch(_each, (triton.cdiv(count, _ROWS), n_tiles), block, coefficients, low, result, largest)
    return result, _smallest_sd(largest)


def _smallest_sd(rho: Any) -> float:
    return float(torch.sqrt(1.0 - rho.max())) if rho.numel() else 1.0


def _launch(
    compiled: Any, grid: Any, block: GaussianBelief, coefficients: Any, low: float, one: Any, other: Any, *loops: int
) -> None:
    """A kernel on the device of the belief, with two results, compiled once for each length of its loops.

    Numbers of double precision go by tensors, as arguments are rounded to single.
    """
    covariance = block.covariance if block.covariance.stride(1) == 1 else block.covariance.contiguous()
    shares = [ratio(torch.ones_like(each), torch.sqrt(each)) for each in (block.candidate_variance, block.variance)]
    line = covariance.new_tensor([(1.0 + low) / 2.0, 2.0 / (1.0 - low)])
    sizes = (*covariance.shape, covariance.stride(0), coefficients.shape[0], *loops, _ROWS, _COLUMNS)
    with torch.cuda.device_of(covariance):
        compiled[grid](covariance, *shares, coefficients.contiguous(), line, one, other, *sizes)


@kernel
def _sums(
    covariance: tl.tensor,
    shares: tl.tensor,
    target_shares: tl.tensor,
    coefficients: tl.tensor,
    line: tl.tensor,
    total: tl.tensor,
    largest: tl.tensor,
    n_labels: tl.tensor,
    n_contexts: tl.tensor,
    stride: tl.tensor,
    count: tl.constexpr,
    n_tiles: tl.constexpr,
    n_rows: tl.constexpr,
    n_columns: tl.constexpr,
) -> None:
    rows = tl.program_id(0) * n_rows + tl.arange(0, n_rows)
    added = tl.zeros([n_rows, n_columns], dtype=tl.float64)
    most = tl.zeros([n_rows, n_columns], dtype=covariance.dtype.element_ty)
    for tile in range(n_tiles):
        columns = tile * n_columns + tl.arange(0, n_columns)
        rho, value = _tile(
            covariance,
            shares,
            target_shares,
            coefficients,
            line,
            rows,
            columns,
            n_labels,
            n_contexts,
            stride,
            count,
        )
        added += value.to(tl.float64)
        most = tl.maximum(most, rho)
    tl.store(total + rows, tl.sum(added, axis=1), mask=rows < n_labels)
    tl.store(largest + rows, tl.max(most, axis=1), mask=rows < n_labels)


@kernel
def _each(
    covariance: tl.tensor,
    shares: tl.tensor,
    target_shares: tl.tensor,
    coefficients: tl.tensor,
    line: tl.tensor,
    result: tl.tensor,
    largest: tl.tensor,
    n_labels: tl.tensor,
    n_contexts: tl.tensor,
    stride: tl.tensor,
    count: tl.constexpr,
    n_rows: tl.constexpr,
    n_columns: tl.constexpr,
) -> None:
    rows = tl.program_id(0) * n_rows + tl.arange(0, n_rows)
    columns = tl.program_id(1) * n_columns + tl.arange(0, n_columns)
    rho, value = _tile(
        covariance, shares, target_shares, coefficients, line, rows, columns, n_labels, n_contexts, stride, count
    )
    inside = (rows < n_labels)[:, None] & (columns < n_contexts)[None, :]
    tl.store(result + rows.to(tl.int64)[:, None] * n_contexts + columns[None, :], value, mask=inside)
    tl.store(largest + tl.program_id(1) * n_labels + rows, tl.max(rho, axis=1), mask=rows < n_labels)


@kernel
def _tile(
    covariance: tl.tensor,
    shares: tl.tensor,
    target_shares: tl.tensor,
    coefficients: tl.tensor,
    line: tl.tensor,
    rows: tl.tensor,
    columns: tl.tensor,
    n_labels: tl.tensor,
    n_contexts: tl.tensor,
    stride: tl.tensor,
    count: tl.constexpr,
) -> tl.tensor:
    """Rho of a tile, and rho times the series there by Clenshaw's rule; both 0 outside."""
    known, here = columns < n_contexts, rows < n_labels
    own = tl.load(shares + rows, mask=here, other=0.0)
    target = tl.load(target_shares + columns, mask=known, other=0.0)
    places = covariance + rows.to(tl.int64)[:, None] * stride + columns[None, :]
    correlation = tl.load(places, mask=here[:, None] & known[None, :], other=0.0) * own[:, None] * target[None, :]
    rho = tl.minimum(correlation * correlation, 1.0)
    x = (tl.sqrt(1.0 - rho) - tl.load(line)) * tl.load(line + 1)
    ahead, further = tl.zeros_like(rho), tl.zeros_like(rho)
    for back in range(1, count):
        coefficient = tl.load(coefficients + (count - back) * n_contexts + columns, mask=known, other=0.0)
        now = 2.0 * x * ahead - further + coefficient[None, :]
        further = ahead
        ahead = now
    first = tl.load(coefficients + columns, mask=known, other=0.0)
    return rho, rho * (first[None, :] + x * ahead - further)
