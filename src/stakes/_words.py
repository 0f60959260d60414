"""Numbers as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime


def number(value: float, digits: int = 4) -> str:
    """The digits that matter, and no exponent where the number is short enough without: 46,979, 0.3776, 1.2e+09."""
    size = abs(value)
    if 10.0 ** (digits - 1) <= size < 1e9:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def short(value: float) -> str:
    """A number that someone gave, such as a cost: as it was given."""
    return f"{value:,.10g}"


def plus_minus(value: float, error: float) -> str:
    """A number with two standard errors, of which two digits matter."""
    twice = 2.0 * error
    return f"{number(value)} (± {number(float(f'{twice:.2g}')) if math.isfinite(twice) else twice})"


def counted(count: int, noun: str) -> str:
    """1 label, 2 labels."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def time(seconds: float) -> str:
    """In UTC, to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
