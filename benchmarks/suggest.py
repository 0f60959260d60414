"""`stakes suggest` as a user calls it, beside itself in another checkout: has a new default made it slower?

    python -m benchmarks.suggest --before ../old/src

Each command is a process of its own on one thread: imports, reading, fitting, ranking and looking ahead are all in its
seconds, which are those of the processor. Both checkouts take turns; of each the least of the repeats counts.

Sizes: 300 rows without a label, 50 with one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, printed, process_seconds

OPEN, LABELLED, COLUMNS = 300, 50, 8
JOBS: dict[str, tuple[str, ...]] = {
    "squared error": ("y", "--loss", "squared-error"),
    "pinball": ("y", "--loss", "pinball", "--tau", "0.9"),
    "log loss of 3 classes": ("kind", "--loss", "log-loss"),
}
"""The target and the options of each command."""


def written(folder: Path, target: str, open_rows: int = OPEN) -> Path:
    """A table with a number or a class to predict, labels first."""
    generator = np.random.default_rng(0)
    features = generator.normal(size=(LABELLED + open_rows, COLUMNS))
    values = features[:, 0] + np.sin(2.0 * features[:, 1]) + 0.2 * generator.normal(size=len(features))
    cells = [f"{value:.4f}" for value in values]
    if target == "kind":
        cells = [("low", "middle", "high")[place] for place in np.digitize(values, [-0.7, 0.7])]
    head = ",".join([*(f"x{place}" for place in range(COLUMNS)), target])
    lines = [
        ",".join([*(f"{value:.4f}" for value in row), cell if place < LABELLED else ""])
        for place, (row, cell) in enumerate(zip(features, cells, strict=True))
    ]
    path = folder / f"{target}.csv"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def seconds_of(table: Path, target: str, options: Sequence[str], source: str | None) -> float:
    """Of the processor, for one command of the package in the folder `source`; None: the one that is installed."""
    paths = {} if source is None else {"PYTHONPATH": source}
    return process_seconds(("-m", "stakes", "suggest", str(table), "--target", target, *options), paths)


def rows(before: str, now: str | None, repeats: int, open_rows: int = OPEN) -> list[Row]:
    """A line for each command; the ratio is to what the other checkout takes."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for job, (target, *options) in JOBS.items():
            table, least = written(Path(folder), target, open_rows), {before: np.inf, now: np.inf}
            for _ in range(repeats):
                for source in least:
                    least[source] = min(least[source], seconds_of(table, target, options, source))
            sizes = f"{open_rows} rows, {LABELLED} labels, {COLUMNS} columns"
            found.append(Row(f"stakes suggest, {job}: before", sizes, least[before], 1.0))
            found.append(Row(f"stakes suggest, {job}: now", sizes, least[now], least[now] / least[before]))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suggest", description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="the folder src of another checkout, such as a git worktree")
    parser.add_argument("--now", help="that of this one; by default what is installed")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    printed(rows(given.before, given.now, given.repeats))


if __name__ == "__main__":
    main()
