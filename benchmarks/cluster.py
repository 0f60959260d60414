"""A cluster that reads its own rows: a scheduler and two workers on this machine, and Parquet files made for them.

Processor time is that of client, scheduler and workers together, from the call of `stakes.rank` to its end, with all
imported and compiled before; bytes are
those that the client writes to its connections. Each line has a cluster of its own, so that memory is that of the line.

    python -m benchmarks cluster            # 1e6 and 3e7 rows
    python -m benchmarks.cluster 100000     # other numbers of rows
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.measure import Row, Settings, in_child, printed
from stakes import LogLoss, rank

LABELS, COLUMNS, TREES, CONTEXTS = 500, 10, 100, 200
SIZES, QUICK = (1_000_000, 30_000_000), (20_000,)
FILE, GROUP = 1_000_000, 250_000  # rows of a file, and of a row group
WORKERS, MEMORY = 2, "1GB"
FOLDER = "STAKES_CLUSTER_FILES"
"""The environment's name for a folder in which files are kept; without it they are made for each run."""


@dataclass(frozen=True)
class Run:
    """What one ranking took, and which rows it chose."""

    rows: tuple[int, ...]
    clock: float
    processor: float
    """Seconds of client, scheduler and workers."""
    sent: int
    """Bytes that the client sent."""
    client: float
    """Megabytes, at most, imports included."""
    workers: tuple[float, ...]


def rows(given: Settings) -> Iterator[Row]:
    """Lines for each size, and of a worker that is killed at the smallest."""
    return table(QUICK if given.quick else SIZES)


def table(sizes: Sequence[int]) -> Iterator[Row]:
    """For each size time, bytes and memory; then whether a worker that is killed in the middle changes the rows."""
    with _folder() as folder:
        first: Run | None = None
        for size in sizes:
            run = in_child(ranked, saved(folder, size), False)
            first = first or run
            yield from lines(run, size, run.processor / size / (first.processor / sizes[0]))
        assert first is not None
        killed = in_child(ranked, saved(folder, sizes[0]), True)
        same = float(killed.rows != first.rows)
        yield Row("a worker killed: 0 if rows are the same", f"N={sizes[0]}", killed.processor, error=same)


def lines(run: Run, size: int, growth: float) -> Iterator[Row]:
    """One run as lines of the table."""
    sizes = f"N={size} M={CONTEXTS}"
    yield Row("rank: times the first size, for each row", sizes, run.processor, growth)
    yield Row("rank: microseconds of a processor for each row", sizes, run.processor, 1e6 * run.processor / size)
    yield Row("rank: rows in a second of the clock", sizes, run.clock, size / run.clock)
    yield Row("client: bytes sent for each row", sizes, None, run.sent / size, peak_megabytes=run.client)
    yield Row("worker, the larger of two", sizes, None, peak_megabytes=max(run.workers))


def ranked(files: Path, kill: bool) -> Run:
    """Rank the rows of a folder on a cluster of its own; with `kill` a worker is ended in the middle."""
    model = fitted()
    with started() as (client, others), _bytes_sent() as sent:
        client.run(warm)
        warm()
        before, clock = _processor(client, others), time.perf_counter()
        killed: list[int] = []

        def watch(what: str, share: float | None) -> None:
            print(f"{what}: {share or 0.0:.1%} after {time.perf_counter() - clock:.0f} s", file=sys.stderr, flush=True)
            if kill and not killed and what == "scoring rows" and share:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        sent.clear()
        ranking = rank(model, LogLoss(), str(files), n=10, max_contexts=CONTEXTS, client=client, progress=watch)
        seconds, total = time.perf_counter() - clock, sum(sent)
        processor = _processor(client, others) - before
        peaks = client.run(_peak).values()
        return Run(ranking.indices, seconds, processor, total, _peak(), tuple(peaks))


def warm() -> None:
    """Import and compile what is needed."""
    rank(fitted(), LogLoss(), np.random.default_rng(2).standard_normal((500, COLUMNS)), n=2, max_contexts=50)


def fitted() -> RandomForestClassifier:
    """A forest of 100 trees that has seen 500 labels of four classes."""
    rng = np.random.default_rng(0)
    known = rng.standard_normal((LABELS, COLUMNS))
    target = known[:, 0] * known[:, 1] + known[:, 2] + 0.3 * rng.standard_normal(LABELS)
    return RandomForestClassifier(TREES, random_state=0).fit(known, np.digitize(target, [-1.0, 0.0, 1.0]))


def saved(folder: Path, size: int) -> Path:
    """A folder of Parquet files with so many rows in all; made, unless it is there."""
    import pyarrow
    from pyarrow import parquet

    place = folder / f"rows_{size}"
    place.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, size, FILE)):
        path = place / f"part-{number:05}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([1, number])
        columns = rng.standard_normal((COLUMNS, min(FILE, size - start)), dtype=np.float32)
        made = path.with_suffix(".made")
        names = {f"x{place}": values for place, values in enumerate(columns)}
        parquet.write_table(pyarrow.table(names), made, row_group_size=GROUP)
        made.rename(path)
    return place


@contextmanager
def started() -> Iterator[tuple[Any, list[int]]]:
    """A client, and the processes of a scheduler and the nannies of two workers of one thread each, on this machine."""
    from distributed import Client

    with tempfile.TemporaryDirectory() as folder:
        file, dask = str(Path(folder) / "scheduler.json"), [sys.executable, "-m", "dask"]
        here = ["--host", "127.0.0.1", "--no-dashboard"]
        commands = [[*dask, "scheduler", "--port", "0", "--scheduler-file", file, *here]]
        worker = [*dask, "worker", "--nthreads", "1", "--nworkers", "1", "--memory-limit", MEMORY, *here]
        commands += [[*worker, "--scheduler-file", file, "--local-directory", folder]] * WORKERS
        paths = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
        processes = [subprocess.Popen(command, **quiet) for command in commands]
        try:
            with Client(scheduler_file=file, timeout=60) as client:
                client.wait_for_workers(WORKERS, timeout=120)
                yield client, [process.pid for process in processes]
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait(30)


@contextmanager
def _bytes_sent() -> Iterator[list[int]]:
    """The bytes of each message that this process sends over a connection of Dask's."""
    from distributed.comm.tcp import TCP

    plain, sent = TCP.write, list[int]()

    async def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        count = await plain(self, *arguments, **options)
        sent.append(count)
        return count

    TCP.write = counted
    try:
        yield sent
    finally:
        TCP.write = plain


def _processor(client: Any, others: Sequence[int]) -> float:
    """Seconds of this process, the workers and the other processes of the cluster."""
    ticks = 0.0
    for process in others:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + sum(client.run(time.process_time).values()) + ticks


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


@contextmanager
def _folder() -> Iterator[Path]:
    if kept := os.environ.get(FOLDER):
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


if __name__ == "__main__":
    from benchmarks import cluster  # workers find its functions by this name, and not by that of a script

    printed(cluster.table([int(size) for size in sys.argv[1:]] or SIZES))
