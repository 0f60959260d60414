"""Real tables: those that scikit-learn ships, and CSV files of the UCI repository from a folder of the user's.

Sizes: n rows, p features.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

_SEED = 0  # of the rows that are drawn where a table is larger than a study needs


class MissingTableError(Exception):
    """A table that is not at hand, with what to do."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and what is to be predicted of them."""

    features: Any
    """[n, p]"""
    target: Any
    """[n]: reals in units of their standard deviation, or classes"""

    @property
    def n_rows(self) -> int:
        """The number n of rows."""
        return len(self.target)


def load(name: str, folder: Path | None) -> Table:
    """The table called `name`; `folder` is only for those that scikit-learn does not ship."""
    return _SHIPPED[name]() if name in _SHIPPED else _FILES[name](_rows(name, folder))


def is_shipped(name: str) -> bool:
    """Whether scikit-learn has the table."""
    return name in _SHIPPED


def _shipped(loader: Callable[..., Any], rows: int | None = None) -> Callable[[], Table]:
    def made() -> Table:
        features, target = loader(return_X_y=True)
        return _drawn(Table(features, target), rows)

    return made


def _diabetes() -> Table:
    features, target = load_diabetes(return_X_y=True)
    return Table(features, target / target.std())


def _real(target: str, left_out: tuple[str, ...] = ()) -> Callable[[list[dict[str, str]]], Table]:
    def made(rows: list[dict[str, str]]) -> Table:
        values = np.asarray([float(row[target]) for row in rows])
        return Table(_features(rows, {target, *left_out}), values / values.std())

    return made


def _classes(rows_used: int, left_out: tuple[str, ...] = ()) -> Callable[[list[dict[str, str]]], Table]:
    def made(rows: list[dict[str, str]]) -> Table:
        labels = np.asarray([int(row["class"]) if row["class"].isdigit() else row["class"] for row in rows])
        return _drawn(Table(_features(rows, {"class", *left_out}), labels), rows_used)

    return made


def _features(rows: list[dict[str, str]], left_out: set[str]) -> Any:
    """[n, p]: every column but those left out."""
    return np.asarray([[float(value) for name, value in row.items() if name not in left_out] for row in rows])


def _drawn(table: Table, rows: int | None) -> Table:
    """That many rows of the table, drawn with a seed that never changes; all where it has no more."""
    if rows is None or rows >= table.n_rows:
        return table
    chosen = np.sort(np.random.default_rng(_SEED).choice(table.n_rows, rows, replace=False))
    return Table(table.features[chosen], table.target[chosen])


def _rows(name: str, folder: Path | None) -> list[dict[str, str]]:
    if folder is None:
        raise MissingTableError(f"{name} needs a folder with {name}.csv: give --data FOLDER, or set STAKES_DATA")
    path = folder / f"{name}.csv"
    if not path.is_file():
        raise MissingTableError(f"{name} needs {name}.csv; there is none in the folder that --data or STAKES_DATA says")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


_SHIPPED: dict[str, Callable[[], Table]] = {
    "breast cancer": _shipped(load_breast_cancer),
    "diabetes": _diabetes,
    "digits": _shipped(load_digits, 600),
    "wine": _shipped(load_wine),
}
_FILES: dict[str, Callable[[list[dict[str, str]]], Table]] = {
    "estate": _real("house_price_unit_area"),
    "landsat": _classes(600, left_out=("split",)),
    "slump": _real("compressive_strength_28d_mpa", left_out=("slump_cm", "flow_cm")),
    "vehicle": _classes(600),
    "yacht": _real("residuary_resistance"),
}
