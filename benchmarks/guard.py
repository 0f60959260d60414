"""A guard against getting slower: ratios of benchmarks beside those that are stored.

`python -m benchmarks guard` runs the benchmarks that have stored ratios, or those named, and names every job whose
ratio has grown by more than half: ratios are of jobs that took turns in one run, so that the machine matters little.
`--store` keeps what was found as what is to be compared with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from benchmarks.measure import Row

STORED = Path(__file__).with_name("ratios.json")
SLACK = 1.5
"""By how much a ratio may grow: the same run twice differs by a quarter at times."""


def ratios(rows: Iterable[Row]) -> dict[str, float]:
    """The ratio of each job, by its name and sizes."""
    return {f"{row.job}, {row.sizes}": round(row.ratio, 4) for row in rows if row.ratio is not None}


def stored(path: Path = STORED) -> dict[str, dict[str, float]]:
    """By benchmark, the ratios that were kept; none where there are none."""
    return json.loads(path.read_text()) if path.exists() else {}


def store(found: dict[str, dict[str, float]], path: Path = STORED) -> None:
    """Keep the ratios of some benchmarks, and those of others as they were."""
    path.write_text(json.dumps({**stored(path), **found}, indent=1, sort_keys=True) + "\n")


def fallen(name: str, before: dict[str, float], found: dict[str, float], slack: float = SLACK) -> list[str]:
    """A line for each job whose ratio has grown by more than the slack, and for each that is gone."""
    lines = []
    for job, ratio in before.items():
        if job not in found:
            lines.append(f"{name}: {job}: is gone")
        elif found[job] > slack * ratio:
            lines.append(f"{name}: {job}: {found[job]:.3g} times its reference, was {ratio:.3g}")
    return lines
