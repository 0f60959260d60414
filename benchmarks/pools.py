"""Pools larger than memory: what `stakes.rank` needs of it, and how long it takes, as they grow and with more workers.

An array in a file is made, and its first rows are ranked in a process of their own for each line. Seconds are of the
clock, as workers share them: time that others use on the machine counts against whoever runs then.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.measure import Row, Settings, in_child
from stakes import LogLoss, SquaredError, rank
from stakes.models import GaussianProcess

LABELS, COLUMNS, TREES, CONTEXTS = 500, 20, 100, 200
MODELS = ("forest", "process")


def rows(given: Settings) -> Iterator[Row]:
    """A line for each model, size and number of workers; the ratio is of one worker's seconds to these."""
    counts = (2_000, 10_000) if given.quick else (10_000, 100_000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        path = saved_pool(Path(folder) / "pool.npy", max(counts))
        for model in MODELS:
            for count in counts:
                yield from _compared(model, count, path)


def _compared(model: str, count: int, path: Path) -> Iterator[Row]:
    """One worker and two, side by side."""
    first = None
    for workers in (1, 2):
        seconds, megabytes = in_child(ranked, model, count, path, workers)
        first = first or seconds
        job = f"{model}, {workers} worker{'s' if workers > 1 else ''}: times one worker"
        yield Row(job, f"N={count} M={CONTEXTS}", seconds, first / seconds, peak_megabytes=megabytes)


def ranked(model: str, count: int, path: Path, workers: int) -> tuple[float, float]:
    """Seconds of the clock that `rank` takes, and the most memory that this process had at once, imports included."""
    fitted, loss = fitted_model(model)
    pool = np.load(path, mmap_mode="r")[:count]
    rank(fitted, loss, pool[:256], max_contexts=64, batch=False)  # what is compiled is compiled now
    start = time.perf_counter()
    rank(fitted, loss, pool, max_contexts=CONTEXTS, batch=False, n_jobs=workers)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def fitted_model(name: str) -> tuple[Any, Any]:
    """A forest of classes, or a Gaussian process, that has seen 500 labels."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((LABELS, COLUMNS))
    labels = rows[:, 0] * rows[:, 1] + rows[:, 2] + 0.3 * rng.standard_normal(LABELS)
    if name == "forest":
        classes = np.digitize(labels, [-1.0, 0.0, 1.0])
        return RandomForestClassifier(TREES, random_state=0).fit(rows, classes), LogLoss()
    return GaussianProcess().fit(rows, labels), SquaredError()


def saved_pool(path: Path, count: int) -> Path:
    """Numbers in a file, written a part at a time."""
    rng, part = np.random.default_rng(1), 100_000
    array = np.lib.format.open_memmap(path, "w+", np.float32, (count, COLUMNS))
    for start in range(0, count, part):
        here = array[start : start + part]
        here[:] = rng.standard_normal(here.shape, dtype=np.float32)
    array.flush()
    return path
