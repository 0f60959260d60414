"""Numbers as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def number(value: float) -> str:
    """Three digits that matter, and no exponent where the number is short enough without: 1,250 but 1.2e+09."""
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        return f"{value:.3g}"
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def short(value: float) -> str:
    """A number that someone gave, such as a cost: as it was given."""
    return f"{value:,.10g}"


def plus_minus(value: float, error: float) -> str:
    """A number with two standard errors, of which two digits matter."""
    return f"{number(value)} ± {number(float(f'{2.0 * error:.2g}'))}"


def time(seconds: float) -> str:
    """In UTC, to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def counted(count: int, noun: str) -> str:
    """1 label, 2 labels."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
