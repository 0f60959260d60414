"""Candidates in float16 that stream from host memory to a GPU, beside the copy alone and the scores alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.gpu_plain import clock, members, seconds
from benchmarks.measure import Row
from benchmarks.members import Shape, weighted_epig
from stakes import CategoricalEnsemble, score
from stakes.acquisition import best_streamed

STEP = 131_072  # candidates that are made at a time


def rows(shape: Shape) -> Iterator[Row]:
    """The lines of the table: ratios are speeds, to that of the slower of copies and scores."""
    step, loss, sizes = min(shape.candidates, STEP), weighted_epig(shape.classes), str(shape)
    few = min(8192, step)
    some = torch.cat([members(few, shape, 1.0, torch.float16) for _ in range(-(-step // few))])[:step]
    belief = CategoricalEnsemble(some, members(shape.contexts, shape, 1.0, torch.float16))
    scoring = seconds(lambda: score(loss, belief)) * shape.candidates / step
    yield Row("streamed: scores alone", sizes, scoring)
    copying = _copying(some) * shape.candidates / step
    yield Row("streamed: copies alone", sizes, copying)
    for kind in ("pinned", "pageable"):
        host = _host(shape.candidates, some, kind == "pinned")
        best_streamed(loss, belief, host[: 2 * step], 10)  # so that kernels are compiled
        took = _least(loss, belief, host)
        yield Row(f"streamed: best 10, {kind} memory", sizes, took, max(copying, scoring) / took)
        del host


def _copying(some: Any) -> float:
    """Seconds of one block from pinned memory."""
    there, here = torch.empty_like(some), torch.empty(some.shape, dtype=some.dtype, pin_memory=True)
    here.copy_(some)
    return seconds(lambda: there.copy_(here, non_blocking=True))


def _host(candidates: int, some: Any, pinned: bool) -> Any:
    """[N, K, C]: some candidates again and again."""
    host = torch.empty((candidates, *some.shape[1:]), dtype=some.dtype, pin_memory=pinned)
    for part in host.split(len(some)):
        part.copy_(some[: len(part)])
    return host


def _least(loss: Any, belief: CategoricalEnsemble, host: Any) -> float:
    return min(clock(lambda: best_streamed(loss, belief, host, 10)) for _ in range(2))
