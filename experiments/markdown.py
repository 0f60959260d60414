"""Numbers and tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

_ROUNDING = 1e-12  # losses here are between a hundredth and a thousand


def number(value: float) -> str:
    """Three digits or all before the point, never a power of ten; what rounding leaves of 0 is 0."""
    if abs(value) < _ROUNDING or not math.isfinite(value):
        return "0" if abs(value) < _ROUNDING else f"{value}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return np.format_float_positional(value, precision=3, unique=False, fractional=False, trim="-")


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
