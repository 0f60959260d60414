"""Numbers, counts, times and lists as text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice

_COMPARED = 3000  # words, which takes a tenth of a second
_LONG = 100  # letters of a word that are looked at


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


def plus_minus_explained(value: float, error: float) -> str:
    """The same where ± is printed for the first time: with what it is."""
    return f"{plus_minus(value, error)}; ± is two standard errors"


def sizes_shown(sizes: Sequence[int], nets: Sequence[float | None]) -> set[int]:
    """Of these sizes of batches 1, 2, 4, .., the last, and the one with the largest net saving where it is known."""
    known = [(net, size) for size, net in zip(sizes, nets, strict=True) if net is not None]
    best = {max(known, key=lambda each: each[0])[1]} if known else set()
    return best.union(size for size in sizes if size == max(sizes) or size & (size - 1) == 0)


def counted(count: int, noun: str) -> str:
    """1 label, 2 labels."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def utc_time(seconds: float) -> str:
    """In UTC, to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence with the known word nearest to `word`; nothing where none is near.

    Of very many words the first few thousand are looked at of those that are not too long or short to be near.
    """
    word = word[:_LONG]
    close = (each for each in known if 2 * min(len(each), len(word)) >= 0.6 * (len(each) + len(word)))
    by_small_letters = {each.casefold(): each for each in islice(close, _COMPARED)}
    near = get_close_matches(word.casefold(), by_small_letters, n=1)
    return f" Did you mean {by_small_letters[near[0]]!r}?" if near else ""


# What a terminal obeys, or reads backwards, instead of showing it: control characters (all but the tab), line ends of
# Unicode, marks of direction, and halves of characters, which cannot be written at all.
_UNPRINTABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """One line that a terminal shows as it is: what would colour or move things is shown by its number."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def listed(names: Iterable[str], most: int = 8) -> str:
    """The first few names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def if_a_member_is_right(joint_worths: Iterable[float | None]) -> str:
    """What the most that labels can save rests on, where a model is known by members: offers then have joint worths."""
    return ", if one of the members of the model is right" if any(each is not None for each in joint_worths) else ""
