"""Answers as text or as JSON."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import click

from stakes._words import number

WIDTH = 100


def as_json_or(as_json: bool, plain: Any, lines: Iterable[str]) -> None:
    """Print one of both."""
    text = json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False) if as_json else "\n".join(lines)
    try:
        click.echo(text)
    except BrokenPipeError:  # of `stakes losses | head`: click would take it for a failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def ranked_lines(ids: Sequence[str], scores: Sequence[float | None], name: str, whys: Sequence[str]) -> list[str]:
    """A line for each row, why below it."""
    cells = ["" if score is None else number(score) for score in scores]
    width = max([len("row"), *(len(row) for row in ids)])
    lines = [f"   {'row'.ljust(width)}  {name}"]
    for place, (row, cell, why) in enumerate(zip(ids, cells, whys, strict=True), 1):
        lines.append(f"{place:2d} {row.ljust(width)}  {cell}".rstrip())
        lines += wrapped(why, "   " + " " * width + "  ")
    return lines


def score_name(ranked_by: str, per_cost: bool) -> str:
    """What the scores of rows are, in words."""
    what = {"gain": "worth on top of the rows above, a decision", "worth": "worth alone, a decision"}
    name = what.get(ranked_by, ranked_by)
    return f"{name} and unit of cost" if per_cost else name


def wrapped(text: str, indent: str = "", first: str | None = None) -> list[str]:
    """Lines of a width that can be read."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent if first is None else first, subsequent_indent=indent, break_on_hyphens=False
    )


def assumed(sentences: Sequence[str]) -> list[str]:
    """What was assumed, as a list."""
    if not sentences:
        return []
    return ["", "Assumed:", *(line for each in sentences for line in wrapped(each, "  ", "- "))]


def local_time(seconds: float) -> str:
    """A moment by the clock on the wall."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M %Z").strip()
