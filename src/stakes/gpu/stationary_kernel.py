"""Covariances that depend on distances, on a GPU in one pass by Triton: differences, distance and decay.

Torch alone would read and write all pairs some ten times. Differences are taken feature by feature, which loses no
digits. Sizes: B rows, n others, p features.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

from stakes._utils.compute import kernel

_ROWS, _COLUMNS = 32, 64  # of a tile
_SMOOTHNESS = {0.5: 0, 1.5: 1, 2.5: 2, math.inf: 3}


def added(nu: float, rows: Any, others: Any, factor: float, whole: Any) -> Any:
    """[B, n]: `whole`, written over, with `factor` times the Matern kernel of rows [B, p] and others [n, p] added."""
    result = rows.new_empty((len(rows), len(others))) if whole is None else whole
    numbers = rows.new_tensor([factor, 0.0 if nu == math.inf else math.sqrt(2.0 * nu)])
    grid = triton.cdiv(len(rows), _ROWS), triton.cdiv(len(others), _COLUMNS)
    sizes = (*result.shape, result.stride(0), rows.shape[1], _SMOOTHNESS[nu], whole is None, _ROWS, _COLUMNS)
    with torch.cuda.device_of(result):
        _added[grid](rows.contiguous(), others.contiguous(), numbers, result, *sizes)
    return result


@kernel
def _added(
    rows: tl.tensor,
    others: tl.tensor,
    numbers: tl.tensor,
    result: tl.tensor,
    n_rows: tl.tensor,
    n_others: tl.tensor,
    stride: tl.tensor,
    n_features: tl.constexpr,
    smoothness: tl.constexpr,
    alone: tl.constexpr,
    tile_rows: tl.constexpr,
    tile_columns: tl.constexpr,
) -> None:
    here = tl.program_id(0) * tile_rows + tl.arange(0, tile_rows)
    there = tl.program_id(1) * tile_columns + tl.arange(0, tile_columns)
    square = tl.zeros([tile_rows, tile_columns], dtype=rows.dtype.element_ty)
    for k in range(n_features):
        one = tl.load(rows + here.to(tl.int64) * n_features + k, mask=here < n_rows, other=0.0)
        other = tl.load(others + there * n_features + k, mask=there < n_others, other=0.0)
        gap = one[:, None] - other[None, :]
        square += gap * gap
    value = tl.load(numbers) * _decay(square, tl.load(numbers + 1), smoothness)
    inside = (here < n_rows)[:, None] & (there < n_others)[None, :]
    places = result + here.to(tl.int64)[:, None] * stride + there[None, :]
    if not alone:
        value += tl.load(places, mask=inside, other=0.0)
    tl.store(places, value, mask=inside)


@kernel
def _decay(square: tl.tensor, root: tl.tensor, smoothness: tl.constexpr) -> tl.tensor:
    if smoothness == 3:
        return tl.exp(-0.5 * square)
    distance = root * tl.sqrt(square)
    decay = tl.exp(-distance)
    if smoothness == 2:
        decay *= 1.0 + distance + distance * distance / 3.0
    elif smoothness == 1:
        decay *= 1.0 + distance
    return decay
