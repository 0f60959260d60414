"""What sets a row apart from those that have a label: the few columns in which it differs most.

A number outside the middle half of the rows with a label differs by how far it is from their median, in units of their
usual deviation (the middle half of a normal distribution is 1.35 of these wide). A category, a gap, and a number in a
column that holds one or two values nearly everywhere, differ by how rare they are, at the same scale: what a share p of
the rows have is as far off as the two tails of a normal distribution that hold p. Without labels, rows are compared
with all rows. Cells, and the ends of the middle half, are shown as they are written in the table.

Sizes: n rows that are looked at, m rows with a label.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from stakes._utils.tables import Host
from stakes._utils.text import number
from stakes.files.frame import cell_kind
from stakes.tabular.worksheet import Worksheet

_DAYS, _HOURS = " (days)", " (hours)"  # how the features end that a column of dates, or of times, is compared by
_NAMED = 3  # columns for each row
_LEAST = 1.0  # usual deviations, below which a row is like the others
_MIDDLE = 1.349  # widths of the middle half of a normal distribution, in standard deviations
_FEW = 2  # values that a column holds, up to which they are compared by how rare they are
_LONG, _SHORT = 24, 12  # letters of a cell that are shown: its own, and an end of the middle half
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
        column = name.removesuffix(_DAYS).removesuffix(_HOURS)
        if column not in sheet.source.names:
            continue  # a part of a date, which its day tells
        values, usual = shown.features.arrays[place][places], sheet.features.arrays[place][others]
        if usual.dtype.kind == "O" and len({*sheet.features.arrays[place].tolist()}) > max(2, len(sheet.ids) // 2):
            continue  # nearly all differ, as names and remarks do: that sets no row apart
        cells, written = shown.source.texts(column), sheet.source.texts(column)
        compared = _compared(values, usual, [written[row] for row in others])
        for each, at, (strength, beside) in zip(found, places, compared, strict=True):
            each.append((strength, Contrast(column, _shown(cells[at], _LONG), beside)))
    return [_strongest(each) for each in found]


def _strongest(found: list[tuple[float, Contrast]]) -> tuple[Contrast, ...]:
    by_strength = sorted(found, key=lambda each: -each[0])
    return tuple(contrast for strength, contrast in by_strength[:_NAMED] if strength >= _LEAST)


def _compared(values: Host, usual: Host, written: Sequence[str | None]) -> list[tuple[float, str]]:
    """[n]: how far each value is from the usual ones [m], and what those are, as they are `written`."""
    if usual.dtype.kind == "O" or values.dtype.kind == "O":
        return [_by_rarity(value, usual.tolist()) for value in values.tolist()]
    there = np.flatnonzero(np.isfinite(usual))
    if len(np.unique(usual[there])) <= _FEW:
        return [_by_rarity(value, usual.tolist()) for value in values.tolist()]
    order = there[np.argsort(usual[there], kind="stable")]
    low, high = (int(order[round(share * (len(order) - 1))]) for share in (0.25, 0.75))
    width = usual[high] - usual[low]
    if not width > 0:
        return [_by_rarity(value, usual.tolist()) for value in values.tolist()]
    beside = f"{_shown(written[low], _SHORT)} to {_shown(written[high], _SHORT)}"
    outside = (values < usual[low]) | (values > usual[high])
    far = np.where(outside, np.abs(values - np.median(usual[there])) / width * _MIDDLE, 0.0)  # [n]
    return [
        (distance, beside) if np.isfinite(value) else _by_rarity(value, usual.tolist())
        for distance, value in zip(far.tolist(), values.tolist(), strict=True)
    ]


def _by_rarity(value: object, usual: list[object]) -> tuple[float, str]:
    same = sum(each == value or (each != each and value != value) for each in usual)  # gaps are NaN, or None
    share = min((same + 0.5) / (len(usual) + 1.0), 1.0)
    return -NormalDist().inv_cdf(share / 2.0), f"{same} of {len(usual)}"


def _shown(cell: str | None, most: int) -> str:
    """A cell as it is written; a number of many digits with four."""
    text = (cell or "").strip()
    if not text:
        return _GAP
    if len(text) > most and cell_kind(text) == "number":
        return number(float(text), 4)
    return text if len(text) <= most else f"{text[: most - 1]}…"
