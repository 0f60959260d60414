"""Summaries on disk: small CSV files, and a JSON file on what was run."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from experiments.paper.summary import Pair, Point, Share, Summary

Row = TypeVar("Row", Point, Pair, Share)


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
