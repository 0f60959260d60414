"""What came of a study as small CSV files, from which reports and pictures are made without running it again.

Sizes: R runs, B labels bought.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from experiments.paper.study import Study
from stakes.simulation import Comparison, Estimate, Simulation

Row = TypeVar("Row", "Point", "Pair", "Share")


@dataclass(frozen=True)
class Point:
    """A metric of one strategy after some labels, over runs."""

    strategy: str
    metric: str
    labels: int
    runs: int
    mean: float
    sem: float
    median: float
    log10_mean: float
    log10_sem: float


@dataclass(frozen=True)
class Pair:
    """The metric under `first` less that under `second` in the same run, with its 95% interval."""

    first: str
    second: str
    metric: str
    scale: str
    """loss or log10"""
    moment: str
    """final, or area: the mean over all labels"""
    runs: int
    value: float
    low: float
    high: float
    better: int
    """runs that ended with less under `first`"""


@dataclass(frozen=True)
class Share:
    """The mean share of a class among the labels of a strategy, over runs."""

    strategy: str
    labels: int
    name: str
    runs: int
    mean: float
    sem: float


@dataclass(frozen=True, eq=False)
class Summary:
    """All that a report tells of one study."""

    name: str
    about: Mapping[str, Any]
    points: Sequence[Point]
    pairs: Sequence[Pair]
    shares: Sequence[Share]

    def point(self, strategy: str, metric: str, labels: int) -> Point:
        """One of the points."""
        return next(p for p in self.points if (p.strategy, p.metric, p.labels) == (strategy, metric, labels))


def summarised(study: Study, found: Simulation, about: Mapping[str, Any]) -> Summary:
    """The numbers of a simulation, its strategies by the names that the paper gives them."""
    named = replace(found, strategies=tuple(study.called.get(each, each) for each in found.strategies))
    pairs = [pair for first, second in study.rivals for metric in named.losses for pair in _pairs(named, first, second, metric)]
    shares = [] if named.classes is None else _shares(named)
    return Summary(study.name, {"study": study.study, "preset": study.preset, **about}, _points(named), pairs, shares)


def write(summary: Summary, folder: Path) -> None:
    """One JSON file on what was run, and a CSV file for each kind of row that there is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{summary.name}.json").write_text(json.dumps(dict(summary.about), indent=1) + "\n")
    for kind in ("points", "pairs", "shares"):
        if rows := getattr(summary, kind):
            _write(folder / f"{summary.name}.{kind}.csv", rows)


def read(folder: Path) -> list[Summary]:
    """The summaries in a folder, in the order of their names."""
    return [_read(path.with_suffix(""), json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def _read(stem: Path, about: dict[str, Any]) -> Summary:
    def rows(kind: type[Row]) -> list[Row]:
        path = stem.with_name(f"{stem.name}.{kind.__name__.lower()}s.csv")
        return _rows(path, kind) if path.is_file() else []

    return Summary(stem.name, about, rows(Point), rows(Pair), rows(Share))


def _points(found: Simulation) -> list[Point]:
    return [
        _point(strategy, metric, labels, found.curves(strategy, metric)[:, labels])
        for strategy in found.strategies
        for metric in found.losses
        for labels in range(found.budget + 1)
    ]


def _point(strategy: str, metric: str, labels: int, values: Any) -> Point:
    logs = np.log10(np.maximum(values, np.finfo(float).tiny))
    middle = float(values.mean()), _sem(values), float(np.median(values))
    return Point(strategy, metric, labels, len(values), *middle, float(logs.mean()), _sem(logs))


def _sem(values: Any) -> float:
    """Of the mean; none can be told from one value, or where one is infinite."""
    told = len(values) > 1 and np.isfinite(values).all()
    return float(values.std(ddof=1) / np.sqrt(len(values))) if told else float("nan")


def _pairs(found: Simulation, first: str, second: str, metric: str) -> Iterable[Pair]:
    better = int(np.sum(found.curves(first, metric)[:, -1] < found.curves(second, metric)[:, -1]))
    tiny = np.finfo(float).tiny
    logs = replace(found, losses={name: np.log10(np.maximum(values, tiny)) for name, values in found.losses.items()})
    for scale, each in (("loss", found), ("log10", logs)):
        compared: Comparison = each.paired(first, second, metric)
        for moment in ("final", "area"):
            gap: Estimate = getattr(compared, moment)
            yield Pair(first, second, metric, scale, moment, found.runs, gap.value, gap.low, gap.high, better)


def _shares(found: Simulation) -> list[Share]:
    """Cumulative shares, those labelled at the start counted, as published."""
    rows = []
    for place, strategy in enumerate(found.strategies):
        labels = np.stack([
            np.concatenate([found.targets[run][found.trials[run].initial], found.bought[place, run]])
            for run in range(found.runs)
        ])  # [R, n_initial + B]
        start = labels.shape[1] - found.budget
        for bought in range(found.budget + 1):
            known = labels[:, : start + bought]
            for position, name in enumerate(found.classes or ()):
                share = np.mean(known == position, axis=1)
                rows.append(Share(strategy, bought, str(name), found.runs, float(share.mean()), _sem(share)))
    return rows


def _write(path: Path, rows: Sequence[Any]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(rows[0])])
        writer.writerows([_cell(value) for value in asdict(row).values()] for row in rows)


def _cell(value: Any) -> Any:
    """Six digits are more than the runs can tell."""
    return f"{value:.6g}" if isinstance(value, float) else value


def _rows(path: Path, kind: type[Row]) -> list[Row]:
    types = {"int": int, "float": float, "str": str}
    with path.open(newline="") as file:
        return [
            kind(**{field.name: types[str(field.type)](line[field.name]) for field in fields(kind)})
            for line in csv.DictReader(file)
        ]
