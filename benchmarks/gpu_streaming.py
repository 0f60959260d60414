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
    host = _host(shape.candidates, some, pinned=True)
    copying = _copying(host, some)
    yield Row("streamed: copies alone, from pinned memory", sizes, copying)
    took = _least(loss, belief, host)
    yield Row("streamed: best 10, pinned memory", sizes, took, max(copying, scoring) / took)
    del host
    took = _least(loss, belief, _host(shape.candidates, some, pinned=False))
    yield Row("streamed: best 10, pageable memory", sizes, took, max(copying, scoring) / took)


def _copying(host: Any, some: Any) -> float:
    """Seconds of all copies, one block after the other."""
    there = torch.empty_like(some)
    return min(clock(lambda: _copy(host, there)) for _ in range(2))


def _copy(host: Any, there: Any) -> None:
    """All of it to the device, one block after the other."""
    for part in host.split(len(there)):
        there[: len(part)].copy_(part, non_blocking=True)


def _host(candidates: int, some: Any, pinned: bool) -> Any:
    """[N, K, C]: some candidates again and again."""
    host = torch.empty((candidates, *some.shape[1:]), dtype=some.dtype, pin_memory=pinned)
    for part in host.split(len(some)):
        part.copy_(some[: len(part)])
    return host


def _least(loss: Any, belief: CategoricalEnsemble, host: Any) -> float:
    best_streamed(loss, belief, host[: 2 * STEP], n=10)  # so that kernels are compiled
    return min(clock(lambda: best_streamed(loss, belief, host, n=10)) for _ in range(2))
