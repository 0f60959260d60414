"""What the benchmarks of a GPU share: seconds of the device, made up members, a plain scorer and the bare products.

Torch is imported by whoever calls: without it there is nothing to measure.
Sizes: N candidates, n rows, M contexts, K members, C classes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from triton.testing import do_bench

from benchmarks.members import Shape

CELLS = 2**27  # of the joint that a chunk of the plain scorer holds


def seconds(job: Callable[[], Any]) -> float:
    """Of the device, the median."""
    return float(do_bench(job, warmup=25, rep=100, return_mode="median")) / 1e3


def members(n: int, shape: Shape, spread: float, dtype: Any = None) -> Any:
    """[n, K, C]: members whose probabilities are from a Dirichlet distribution."""
    size = (n, shape.members, shape.classes)
    draws = torch._standard_gamma(torch.full(size, spread, device="cuda")) + 1e-30
    return (draws / draws.sum(dim=2, keepdim=True)).to(dtype or torch.float32)


def rates() -> tuple[float, float]:
    """Operations in a second of a large product, and logarithms: 16 for each multiprocessor and cycle."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    rate = 2 * 8192**3 / seconds(lambda: a @ b)
    properties = torch.cuda.get_device_properties(0)
    clock = float(getattr(properties, "clock_rate", 1_980_000)) * 1e3  # kHz
    return rate, properties.multi_processor_count * 16 * clock


def products(here: Any, there: Any) -> Iterator[tuple[str, float]]:
    """[N C, K] x [K, M C] in chunks into one output, in several precisions."""
    left, right = (each.permute(0, 2, 1).flatten(0, 1).contiguous() for each in (here, there))
    step = min(len(left), max(1, CELLS // len(right)))
    for name, dtype, tf32 in (
        ("float32", torch.float32, False),
        ("TF32", torch.float32, True),
        ("bfloat16", torch.bfloat16, False),
        ("float16", torch.float16, False),
    ):
        a, b = left.to(dtype), right.to(dtype).T
        out = torch.empty((step, b.shape[1]), dtype=dtype, device="cuda")
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        yield name, seconds(lambda a=a, b=b, out=out: _in_chunks(a, b, out))
        torch.backends.cuda.matmul.allow_tf32 = before


def _in_chunks(a: Any, b: Any, out: Any) -> None:
    for start in range(0, len(a), len(out)):
        part = a[start : start + len(out)]
        torch.matmul(part, b, out=out[: len(part)])


def plain(here: Any, there: Any, class_weights: Any) -> Any:
    """[N]: weighted EPIG as one would write it, in float32: the joint in chunks, then logarithms."""
    w = torch.tensor(class_weights, device="cuda", dtype=torch.float32)
    (_, count, classes), contexts = here.shape, len(there)
    right = there.permute(1, 0, 2).flatten(1) / count  # [K, M C]
    step, scores = max(1, CELLS // (contexts * classes**2)), []
    for part in torch.split(here, step):
        joint = (part.permute(0, 2, 1).flatten(0, 1) @ right).view(len(part), classes, contexts, classes)
        heavy = joint * w
        given_y, today = heavy.sum(dim=3, keepdim=True), heavy.sum(dim=1, keepdim=True)
        total = given_y.sum(dim=1, keepdim=True)
        gain = heavy * torch.log((heavy * total).clamp_min(1e-30) / (given_y * today).clamp_min(1e-30))
        scores.append(gain.sum(dim=(1, 3)).mean(dim=1))
    return torch.cat(scores)


def clock(job: Callable[[], Any]) -> float:
    """Seconds until all that the job began is done."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    job()
    torch.cuda.synchronize()
    return time.perf_counter() - start
