"""What all benchmarks share: a line of a table, seconds that take turns, memory of a job, and how a table is saved."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stakes._utils.compute import has_jit

HEAD = ("job", "sizes", "seconds", "ratio", "error", "peak MB")


@dataclass(frozen=True)
class Settings:
    """What is asked of a benchmark."""

    quick: bool = False
    """small sizes: to see that all runs, not how fast"""
    repeats: int = 5
    """of a job, of which the least seconds count"""
    pythons: tuple[str, ...] = ()
    """interpreters of other environments, where peers are installed"""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    job: str
    sizes: str
    seconds: float | None
    """of the processor; None where the job could not be done, as `job` says"""
    ratio: float | None = None
    """to the reference, or as `job` says"""
    error: float | None = None
    """of scores, relative to the best"""
    peak_megabytes: float | None = None
    """on top of imports and input"""


def race(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[Any, float]]:
    """What each job gives, and its least seconds: they take turns, so that all meet the same load.

    There are two turns at least, so that one that compiles is never the least.
    """
    results, best = {}, dict.fromkeys(jobs, np.inf)
    for _ in range(max(2, repeats)):
        for name, job in jobs.items():
            results[name], seconds = timed(job)
            best[name] = min(best[name], seconds)
    return {name: (results[name], best[name]) for name in jobs}


def timed(job: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the seconds of the processor that it takes, which others disturb less than the clock."""
    start = time.process_time()
    result = job()
    return result, time.process_time() - start


def both_ways(job: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    """The job with compiled loops, where numba is installed, and without."""
    ways = {"compiled": job} if has_jit() else {}
    return {**ways, "not compiled": lambda: without_jit(job)}


def without_jit(job: Callable[[], Any]) -> Any:
    with _environment("STAKES_JIT", "0"):
        return job()


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})


def process_seconds(arguments: Sequence[str], more: dict[str, str] | None = None) -> float:
    """Of the processor, for one run of this interpreter with these arguments, on one thread.

    Refused where it fails. `more` goes into its environment; bytecode may be kept, as it is for users.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), os.getcwd()]))
    environment = {**os.environ, **threads, "PYTHONPATH": paths, **(more or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)[:200]} failed:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_child(job: Callable[..., Any], *arguments: Any) -> Any:
    """In a process of its own, whose peak memory is that of the job."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_on_one_thread, job, *arguments).result()


def _on_one_thread(job: Callable[..., Any], *arguments: Any) -> Any:
    with threadpool_limits(1):
        return job(*arguments)


def peak_megabytes(job: Callable[[], Any]) -> float:
    """Megabytes that the job holds at most on top of what was there before; compilation counts if it compiles."""
    before = _restarted()
    job()
    return _held("VmHWM") - before


def _restarted() -> float:
    """Give back what is free, forget the peak so far, and tell what is held now; the peak where that cannot be."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)  # else a job would find free memory that counts as held
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _held("VmHWM")
    return _held("VmRSS")


def _held(field: str) -> float:
    """Megabytes, as the system counts; one without /proc knows the peak alone."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return float(line.split()[1]) / 1024.0


def printed(rows: Iterable[Row]) -> list[Row]:
    """All rows, each printed as it comes."""
    print(_line(HEAD) + "\n" + _line(("---",) * len(HEAD)), flush=True)
    kept = []
    for row in rows:
        kept.append(row)
        print(_line(_cells(row)), flush=True)
    return kept


def save(rows: list[Row], folder: Path, name: str) -> tuple[Path, Path]:
    """As JSON, and as a table in Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers, table = folder / f"{name}.json", folder / f"{name}.md"
    numbers.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    table.write_text("".join(_line(cells) + "\n" for cells in (HEAD, ("---",) * len(HEAD), *map(_cells, rows))))
    return numbers, table


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (row.seconds, row.ratio, row.error, row.peak_megabytes)
    return (row.job, row.sizes, *("" if each is None else f"{each:.3g}" for each in numbers))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
