"""Summaries on disk: small CSV files, runs compressed, and a JSON file on what was run."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from experiments.paper.summary import Curve, Pair, Point, Share, Summary

Row = TypeVar("Row", Point, Pair, Share)


def write(summary: Summary, folder: Path) -> None:
    """One JSON file on what was run, a CSV file for each kind of row that there is, and a compressed one of runs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{summary.name}.json").write_text(json.dumps(dict(summary.about), indent=1) + "\n")
    for kind in ("points", "pairs", "shares"):
        if rows := getattr(summary, kind):
            _write(folder / f"{summary.name}.{kind}.csv", rows)
    if summary.curves:
        (folder / f"{summary.name}.runs.csv.gz").write_bytes(_packed(summary.curves))


def read(folder: Path) -> list[Summary]:
    """The summaries in a folder, in the order of their names."""
    return [_read(path.with_suffix(""), json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def _read(stem: Path, about: dict[str, Any]) -> Summary:
    def rows(kind: type[Row]) -> list[Row]:
        path = stem.with_name(f"{stem.name}.{kind.__name__.lower()}s.csv")
        return _rows(path, kind) if path.is_file() else []

    runs = stem.with_name(f"{stem.name}.runs.csv.gz")
    curves = _unpacked(runs.read_bytes()) if runs.is_file() else []
    return Summary(stem.name, about, rows(Point), rows(Pair), rows(Share), curves)


def _packed(curves: Sequence[Curve]) -> bytes:
    """A line for each run: strategy, metric, run, and the losses after 0 .. B labels in four digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["strategy", "metric", "run", *range(len(curves[0].losses))])
    writer.writerows(
        [each.strategy, each.metric, each.run, *(f"{loss:.4g}" for loss in each.losses)] for each in curves
    )
    return gzip.compress(text.getvalue().encode(), mtime=0)  # the same bytes for the same runs


def _unpacked(content: bytes) -> list[Curve]:
    lines = csv.reader(io.StringIO(gzip.decompress(content).decode()))
    next(lines)
    return [Curve(strategy, metric, int(run), tuple(map(float, losses))) for strategy, metric, run, *losses in lines]


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
