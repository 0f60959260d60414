"""Pools larger than memory: what `stakes.rank` needs of it, and how long it takes, as they grow and with more workers.

`python benchmarks/pools.py` makes an array in a file, ranks its first rows in a process of their own for each line of
the table, prints the table and saves it. Time that others use on the machine counts against whoever runs then.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from stakes import LogLoss, SquaredError, rank
from stakes.models import GaussianProcess

LABELS, COLUMNS, TREES = 500, 20, 100
MODELS = ("forest", "process")
HEAD = ("model", "rows", "workers", "seconds", "microseconds a row", "peak memory, MB", "times one worker")


def main() -> None:
    given = _parser().parse_args()
    if given.one is not None:
        print(json.dumps(ranked(*given.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = saved_pool(Path(folder) / "pool.npy", max(given.rows))
        lines = [line for model in MODELS for rows in given.rows for line in compared(model, rows, path, given)]
    table = markdown(lines)
    print(table)
    given.save.write_text(table + "\n")


def compared(model: str, rows: int, path: Path, given: Any) -> list[tuple[str, ...]]:
    """A line for each number of workers, side by side in one run."""
    told = []
    for jobs in given.jobs:
        one = ("--one", model, rows, path, given.contexts, jobs)
        command = [sys.executable, __file__, *map(str, one)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told.append(json.loads(done.stdout))
        print(model, rows, "rows,", jobs, "workers:", done.stdout.strip(), flush=True)
    first = told[0]["seconds"]
    return [
        (
            model,
            f"{rows:,}",
            str(jobs),
            f"{each['seconds']:.1f}",
            f"{1e6 * each['seconds'] / rows:.1f}",
            f"{each['megabytes']:.0f}",
            f"{first / each['seconds']:.2f}",
        )
        for jobs, each in zip(given.jobs, told, strict=True)
    ]


def ranked(model: str, rows: str, path: str, contexts: str, jobs: str) -> dict[str, Any]:
    """Seconds that `rank` takes, and the most memory that this process, and those it started, had at once."""
    fitted, loss = fitted_model(model)
    pool = np.load(path, mmap_mode="r")[: int(rows)]
    rank(fitted, loss, np.zeros((8, COLUMNS)), n=2)  # what is compiled is compiled now
    start = time.perf_counter()
    ranking = rank(fitted, loss, pool, max_contexts=int(contexts), n_jobs=int(jobs))
    seconds = time.perf_counter() - start
    kilobytes = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"seconds": seconds, "megabytes": kilobytes / 1024, "best": ranking.indices[:3]}


def fitted_model(name: str) -> tuple[Any, Any]:
    """A forest of classes, or a Gaussian process, that has seen 500 labels."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((LABELS, COLUMNS))
    labels = rows[:, 0] * rows[:, 1] + rows[:, 2] + 0.3 * rng.standard_normal(LABELS)
    if name == "forest":
        classes = np.digitize(labels, [-1.0, 0.0, 1.0])
        return RandomForestClassifier(TREES, random_state=0).fit(rows, classes), LogLoss()
    return GaussianProcess().fit(rows, labels), SquaredError()


def saved_pool(path: Path, rows: int) -> Path:
    """Numbers in a file, written a part at a time."""
    rng, part = np.random.default_rng(1), 100_000
    array = np.lib.format.open_memmap(path, "w+", np.float32, (rows, COLUMNS))
    for start in range(0, rows, part):
        here = array[start : start + part]
        here[:] = rng.standard_normal(here.shape, dtype=np.float32)
    array.flush()
    return path


def markdown(lines: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (HEAD, ("---",) * len(HEAD), *lines))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--contexts", type=int, default=200)
    parser.add_argument("--save", type=Path, default=Path("pools.md"))
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
