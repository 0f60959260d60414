"""A Gaussian process on a GPU beside one triangular solve and one product of its size, on the same card in one run.

Seconds are those between two events on the device, the least of several runs after a first one that compiles. A pool
goes through in blocks of rows that are on the device already; `rank` reads them from the host, in seconds of the clock.
Sizes: n labels so far, N candidates, M contexts, p features.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from benchmarks.gaussian_reference import Scene, scene
from benchmarks.measure import Row, Settings
from stakes import SquaredError, Weight, rank, score
from stakes.acquisition.forms import find_form
from stakes.models import OnDevice, belief_of, prepare_belief
from stakes.models.on_device import posterior_on_device

BLOCK = 2**15  # rows that are scored at a time
CHECKED = 500  # rows whose scores are compared with those of NumPy
LOSSES = {
    "squared error": SquaredError(),
    "sigmoid weight": SquaredError(Weight(lambda z: 1.0 / (1.0 + array_namespace(z).exp(-2.0 * z)))),
}


class Shape(NamedTuple):
    """Sizes of a problem."""

    n: int
    candidates: int
    contexts: int
    features: int

    def __str__(self) -> str:
        return f"n={self.n} N={self.candidates} M={self.contexts} p={self.features}"


def rows(given: Settings) -> Iterator[Row]:
    """All lines of the table, or one that says why there is none."""
    if find_spec("torch") is None:
        yield Row("nothing was timed: torch is not installed", "", None)
        return
    import torch

    if not torch.cuda.is_available():
        yield Row("nothing was timed: torch finds no GPU here", "", None)
        return
    yield Row(f"on a {torch.cuda.get_device_name(0)}, torch {torch.__version__}", "", None)
    shape = Shape(200, 50_000, 100, 8) if given.quick else Shape(2000, 1_000_000, 1000, 8)
    yield from table("cuda", shape, given.repeats)


def table(device: str, shape: Shape, repeats: int) -> Iterator[Row]:
    """Lines for one device: the bare arithmetic, its parts in this library, and whole scores."""
    import torch

    problem = scene(*shape)
    for dtype in ("float64", "float32"):
        given, pool = OnDevice(problem.process, device, dtype), _sent(problem.pool, device, dtype)
        contexts = _sent(problem.contexts, device, dtype)
        bare = _seconds(_bare(given, pool, contexts), device, repeats)
        yield Row(f"{dtype}: bare solve and product", str(shape), bare, 1.0)
        if dtype == "float64":
            for name, job in _parts(given, pool, contexts).items():
                yield _row(f"{dtype}: {name} alone", shape, _seconds(job, device, repeats), bare)
        for loss in LOSSES:
            job = _scores(given, loss, pool, contexts)
            error, peak = _error(problem, loss, job()), _peak(job, device)
            yield _row(f"{dtype}: scores, {loss}", shape, _seconds(job, device, repeats), bare, error, peak)
        del pool, contexts
        if device != "cpu":
            torch.cuda.empty_cache()
    for loss in LOSSES:
        yield _ranked(problem, device, shape, loss)


def _row(
    job: str, shape: Shape, seconds: float, bare: float, error: float | None = None, peak: float | None = None
) -> Row:
    return Row(f"{job}, to the bare solve and product", str(shape), seconds, seconds / bare, error, peak)


def _bare(given: OnDevice, pool: Any, contexts: Any) -> Callable[[], Any]:
    """One triangular solve and one product for each block, on numbers that are there already."""
    import torch

    factor, rows, there = _operands(given, pool, contexts)

    def job() -> Any:
        for start in range(0, len(pool), BLOCK):
            part = rows[: len(pool[start : start + BLOCK])]
            result = torch.linalg.solve_triangular(factor.mT, part, upper=True, left=False) @ there
        return result

    return job


def _operands(given: OnDevice, pool: Any, contexts: Any) -> tuple[Any, Any, Any]:
    """[n, n], [B, n], [n, M]: the factor, covariances of one block with the labels so far, and what contexts need."""
    posterior = posterior_on_device(given)
    there = posterior.place(contexts)[1].mT.contiguous()
    return posterior.factor, posterior.kernel(pool[:BLOCK], posterior.train), there


def _parts(given: OnDevice, pool: Any, contexts: Any) -> dict[str, Callable[[], Any]]:
    """The kernel matrices, the solves, the products, and curves looked up, each for all blocks."""
    import torch

    factor, rows, there = _operands(given, pool, contexts)
    posterior, prepared = posterior_on_device(given), prepare_belief(given, contexts)
    belief = prepared(pool[:BLOCK])

    def kernels(part: Any) -> Any:
        return posterior.kernel(part, posterior.train), posterior.kernel(part, contexts)

    jobs: dict[str, Callable[[Any], Any]] = {
        "kernels": kernels,
        "solves": lambda part: torch.linalg.solve_triangular(factor.mT, rows[: len(part)], upper=True, left=False),
        "products": lambda part: rows[: len(part)] @ there,
        "beliefs": prepared,
    }
    for name, loss in LOSSES.items():
        jobs[f"{name}: {find_form(loss, belief).name}"] = lambda part, loss=loss: score(
            loss, belief.take(slice(0, len(part)), slice(None))
        )
    return {name: _over_blocks(job, pool) for name, job in jobs.items()}


def _over_blocks(job: Callable[[Any], Any], pool: Any) -> Callable[[], Any]:
    def run() -> None:
        for start in range(0, len(pool), BLOCK):
            job(pool[start : start + BLOCK])

    return run


def _scores(given: OnDevice, loss: str, pool: Any, contexts: Any) -> Callable[[], Any]:
    """[N]: from rows to scores, block by block; nothing of all pairs is held."""
    import torch

    def job() -> Any:
        prepared = prepare_belief(given, contexts)
        parts = (pool[start : start + BLOCK] for start in range(0, len(pool), BLOCK))
        return torch.cat([score(LOSSES[loss], prepared(part)) for part in parts])

    return job


def _error(problem: Scene, loss: str, found: Any) -> float:
    """Of the first scores, against the same process in NumPy, relative to the best."""
    wanted = score(LOSSES[loss], belief_of(problem.process, problem.pool[:CHECKED], problem.contexts))
    return float(np.max(abs(found[:CHECKED].cpu().numpy() - wanted)) / np.max(wanted))


def _ranked(problem: Scene, device: str, shape: Shape, loss: str) -> Row:
    """The ten best rows of a pool on the host, in seconds of the clock; the first rows by NumPy must agree."""
    given = OnDevice(problem.process, device)
    few = rank(problem.process, LOSSES[loss], problem.pool[:CHECKED], contexts=problem.contexts, n=3, batch=False)
    same = rank(given, LOSSES[loss], problem.pool[:CHECKED], contexts=problem.contexts, n=3, batch=False)
    agreement = "as NumPy picks them" if same.indices == few.indices else "OTHERS THAN NUMPY PICKS"
    start = time.perf_counter()
    rank(given, LOSSES[loss], problem.pool, contexts=problem.contexts, n=10, batch=False, chunk=BLOCK)
    return Row(f"rank from the host, {loss}, {agreement}", str(shape), time.perf_counter() - start)


def _sent(values: Any, device: str, dtype: str) -> Any:
    import torch

    return torch.as_tensor(values, dtype=getattr(torch, dtype), device=device)


def _seconds(job: Callable[[], Any], device: str, repeats: int) -> float:
    """The least of several runs, after one that compiles and fills caches."""
    job()
    return min(_once(job, device) for _ in range(max(2, repeats)))


def _once(job: Callable[[], Any], device: str) -> float:
    import torch

    if device == "cpu":
        start = time.perf_counter()
        job()
        return time.perf_counter() - start
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    job()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000.0


def _peak(job: Callable[[], Any], device: str) -> float | None:
    """Megabytes on the device at most, beyond what was held before."""
    import torch

    if device == "cpu":
        return None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    job()
    torch.cuda.synchronize()
    return float(torch.cuda.max_memory_allocated() - before) / 2**20
