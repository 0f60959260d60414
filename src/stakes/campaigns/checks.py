"""What is checked at the door of a campaign; inside, it is trusted."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from stakes.campaigns.errors import CampaignError

_YEAR_10000 = 253402300800.0


def checked_id(row: object) -> str:
    """An id of a row, if it can be one."""
    if not (text := checked_text(row, "the id of a row")):
        raise CampaignError("the id of a row is empty; give every row an id of its own")
    return text


def checked_text(text: object, name: str) -> str:
    """A text that every tool reads back as it was written: no NUL, no halves of characters."""
    if not isinstance(text, str):
        raise CampaignError(f"{name} must be a text, not {text!r} of type {type(text).__name__}; give it in quotes")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise CampaignError(f"{name} holds a NUL or half a character: {text!r}; remove it, or read the file as UTF-8")
    return text


def checked_number(number: Any, name: str) -> float:
    """A finite number above zero."""
    real = isinstance(number, Real) and not isinstance(number, bool)
    if not real or not 0 < number <= sys.float_info.max:
        raise CampaignError(f"{name} must be a positive finite number, not {number!r}")
    return float(number)


def checked_time(at: object, name: str) -> float:
    """A time that a calendar has a date for."""
    if (seconds := checked_number(at, name)) >= _YEAR_10000:
        raise CampaignError(f"{name} must lie before the year 10000, in seconds since 1970; {at!r} does not")
    return seconds


def checked_clock(now: object) -> float:
    """The time given, or else what the clock says."""
    return time.time() if now is None else checked_time(now, "the time")


def checked_who(who: object) -> str | None:
    """A name, or none."""
    return None if who is None else checked_text(who, "who it is")


def checked_rows(rows: Iterable[tuple[str, float | None]]) -> dict[str, float | None]:
    """The costs of rows by id, each id once."""
    costs: dict[str, float | None] = {}
    for row, cost in map(_pair, rows):
        if checked_id(row) in costs:
            raise CampaignError(f"two rows have the id {row!r}; give every row an id of its own")
        costs[row] = None if cost is None else checked_number(cost, f"the cost of row {row!r}")
    if not costs:
        raise CampaignError("a campaign needs at least one row; none was given")
    return costs


def checked_labels(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The labels of rows by id, each row with one."""
    labels: dict[str, str] = {}
    for row, label in map(_pair, pairs):
        told = labels.setdefault(checked_id(row), checked_text(label, f"the label of row {row!r}"))
        if told != label:
            raise CampaignError(f"row {row!r} is told twice, as {told!r} and as {label!r}; give it one label")
    return labels


def checked_ids(rows: Iterable[str]) -> tuple[str, ...]:
    """Ids of rows, each once, in the order given."""
    if isinstance(rows, str):
        raise CampaignError(f"a list of ids is wanted, not the text {rows!r}; put it in a list")
    return tuple(dict.fromkeys(map(checked_id, rows)))


def _pair(pair: Any) -> tuple[Any, Any]:
    """Two things: a text of two letters would pass for them."""
    if isinstance(pair, str) or len(pair) != 2:
        raise CampaignError(f"pairs are wanted, not {pair!r}; of a dictionary, give its items()")
    return pair[0], pair[1]


def checked_count(count: Any, name: str, least: int, most: int = sys.maxsize) -> int:
    """A whole number within bounds."""
    whole = isinstance(count, Integral) and not isinstance(count, bool)
    if not whole or not least <= count <= most:
        raise CampaignError(f"{name} must be a whole number from {least} to {most}, not {count!r}")
    return int(count)


def checked_json(value: Any, name: str) -> str:
    """A value as JSON, if it can be written so that any program reads it back."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CampaignError(f"{name} must be what JSON can hold: texts, finite numbers, lists ... ({error})") from error


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path of a file; old names that are not Unicode are names too."""
    if "\0" in str(path):
        raise CampaignError(f"the path holds a NUL: {str(path)!r}; remove it")
    return Path(path)
