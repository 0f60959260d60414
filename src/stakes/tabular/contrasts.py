"""What sets a row apart from those that have a label: the few columns in which it differs most.

A number differs by how far it is from the median of the rows with a label, in units of their usual deviation (the
middle half of a normal distribution is 1.35 of these wide). A category, a gap, and a number in a column that holds the
same nearly everywhere, differ by how rare they are, at the same scale: what a share p of the rows have is as far off as
the two tails of a normal distribution that hold p. Without labels, rows are compared with all rows.

Sizes: n rows that are looked at, m rows with a label.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from stakes._utils.tables import Host
from stakes._utils.text import number
from stakes.tabular.worksheet import Worksheet

_DAYS = " (days)"  # how the first of the features ends that a column of dates becomes
_NAMED = 3  # columns for each row
_LEAST = 1.0  # usual deviations, below which a row is like the others
_MIDDLE = 1.349  # widths of the middle half of a normal distribution, in standard deviations
_LONG = 24  # letters of a cell that are shown
_GAP = "empty"


class Contrast(NamedTuple):
    """A column in which a row differs from those that have a label.

    Attributes:
        column: Its name.
        value: The cell of the row, as it is in the table.
        usual: The middle half of the others, or how many of them have the same.
    """

    column: str
    value: str
    usual: str

    def __str__(self) -> str:
        return f"{self.column} {self.value} ({self.usual})"


def contrasts(sheet: Worksheet, rows: Sequence[int], known: Collection[int]) -> list[tuple[Contrast, ...]]:
    """For each row the columns that set it apart most, the strongest first; none where it is like the others.

    Args:
        sheet: The table.
        rows: [n]: positions in the table.
        known: [m]: positions of rows with a label, in what the worksheet holds.

    Returns:
        [n]: up to three columns each.
    """
    if not rows:
        return []
    shown, places = (sheet, list(rows)) if sheet.stream is None else (sheet.stream.worksheet(rows), range(len(rows)))
    others = sorted(known) or list(range(len(sheet.ids)))
    found: list[list[tuple[float, Contrast]]] = [[] for _ in rows]
    for place, name in enumerate(sheet.features.names):
        values, usual = shown.features.arrays[place][places], sheet.features.arrays[place][others]
        if usual.dtype.kind == "O" and len({*sheet.features.arrays[place].tolist()}) > max(2, len(sheet.ids) // 2):
            continue  # nearly all differ, as names and remarks do: that sets no row apart
        column, cells = _written(shown, name, place)
        for each, at, (strength, said) in zip(found, places, _compared(values, usual, name), strict=True):
            each.append((strength, Contrast(column, _shown(cells[at]), said)))
    return [_strongest(each) for each in found]


def _written(shown: Worksheet, name: str, place: int) -> tuple[str, Sequence[str | None]]:
    """The column that a feature is of, and its cells as they are written; parts of dates as numbers."""
    column = name.removesuffix(_DAYS)
    if column in shown.source.names:
        return column, shown.source.texts(column)
    return name, [None if value != value else number(value, 4) for value in shown.features.arrays[place].tolist()]


def _strongest(found: list[tuple[float, Contrast]]) -> tuple[Contrast, ...]:
    by_strength = sorted(found, key=lambda each: -each[0])
    return tuple(contrast for strength, contrast in by_strength[:_NAMED] if strength >= _LEAST)


def _compared(values: Host, usual: Host, name: str) -> list[tuple[float, str]]:
    """[n]: how far each value is from the usual ones, and what those are."""
    if usual.dtype.kind == "O" or values.dtype.kind == "O":
        return [_by_rarity(value, usual.tolist()) for value in values.tolist()]
    there = usual[np.isfinite(usual)]
    low, middle, high = np.quantile(there, [0.25, 0.5, 0.75]) if len(there) else (0.0, 0.0, 0.0)
    if not high > low:
        return [_by_rarity(value, usual.tolist()) for value in values.tolist()]
    said = f"{_edge(float(low), name)} to {_edge(float(high), name)}"
    far = np.abs(values - middle) / (high - low) * _MIDDLE  # [n]
    return [
        (distance, said) if np.isfinite(distance) else _by_rarity(value, usual.tolist())
        for distance, value in zip(far.tolist(), values.tolist(), strict=True)
    ]


def _edge(value: float, name: str) -> str:
    """An end of the usual range; days since 1970 as a date."""
    return number(value, 3) if not name.endswith(_DAYS) else str(date(1970, 1, 1) + timedelta(days=round(value)))


def _by_rarity(value: object, usual: list[object]) -> tuple[float, str]:
    same = sum(each == value or (each != each and value != value) for each in usual)  # gaps are NaN, or None
    share = min((same + 0.5) / (len(usual) + 1.0), 1.0)
    return -NormalDist().inv_cdf(share / 2.0), f"{same} of {len(usual)}"


def _shown(cell: str | None) -> str:
    if cell is None or not cell.strip():
        return _GAP
    return cell if len(cell) <= _LONG else f"{cell[: _LONG - 1]}…"
