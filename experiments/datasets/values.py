"""From cells of text to numbers, and whether they are those that were published.

Sizes: N rows, q columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from experiments.datasets.errors import DatasetError
from experiments.datasets.facts import Facts
from experiments.datasets.parsing import Rows

Host: TypeAlias = np.ndarray[Any, Any]


def checksum(values: Host) -> str:
    """SHA-256 of the values as doubles, row by row, low byte first; -0 counts as 0."""
    return hashlib.sha256(np.ascontiguousarray(values + 0.0, dtype="<f8").tobytes()).hexdigest()


def verified(facts: Facts, rows: Rows, source: str) -> Host:
    """[N, q]: all columns as numbers, words as their codes; refused unless they are the published values."""
    if len(rows) != facts.rows:
        raise _other(facts, source, f"must have {facts.rows} rows; it has {len(rows)}")
    for place, row in enumerate(rows):
        if len(row) != len(facts.columns):
            wanted = f"must have {len(facts.columns)} columns; row {place + 1} has {len(row)}"
            raise _other(facts, source, wanted)
    columns = zip(facts.columns, zip(*rows, strict=True), strict=True)
    values = np.stack([_numbers(facts, source, name, cells) for name, cells in columns], axis=1)
    _check_counts(facts, source, values[:, -1])
    if checksum(values) != facts.sha256:
        raise _other(facts, source, "must hold the published values; rows and columns are right, some values are not")
    return values


def _numbers(facts: Facts, source: str, name: str, cells: tuple[str | None, ...]) -> Host:
    """[N]: a column."""
    codes = facts.codes(name)
    values = np.empty(len(cells))
    for place, cell in enumerate(cells):
        try:
            values[place] = _number(cell, codes)
        except (KeyError, TypeError, ValueError):
            wanted = "a number" if codes is None else f"one of {', '.join(codes)}"
            raise _other(facts, source, f"must hold {wanted} in column {name}, row {place + 1}; got {cell!r}") from None
    return values


def _number(cell: str | None, codes: Mapping[str, int] | None) -> float:
    if cell is None:
        raise TypeError
    return float(cell) if codes is None else codes[cell]


def _check_counts(facts: Facts, source: str, positions: Host) -> None:
    if facts.classes is None:
        return
    counts = tuple(np.bincount(positions.astype(np.intp), minlength=len(facts.classes)).tolist())
    if counts != facts.counts:
        wanted, got = (_named(facts.classes, each) for each in (facts.counts, counts))
        raise _other(facts, source, f"must have, of each class, {wanted} rows; it has {got}")


def _named(classes: Mapping[str, str], counts: tuple[int, ...]) -> str:
    return ", ".join(f"{name} {count}" for name, count in zip(classes.values(), counts, strict=True))


def _other(facts: Facts, source: str, wanted: str) -> DatasetError:
    return DatasetError(
        f"{facts.name} from {source} {wanted}. It is cut, damaged or another version: get it anew from "
        f"https://doi.org/{facts.doi}."
    )
