"""Answers as text or as JSON, rankings as both, and a line on the error stream while something takes long."""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from stakes._utils.text import number, printable, utc_time

if TYPE_CHECKING:
    from stakes.ranking import Ranking

WIDTH = 100
_QUIET = 1.0  # seconds before anything is shown
_TICK = 0.2
_BAR = 20  # characters of a bar


def as_json_or(as_json: bool, plain: Any, lines: Iterable[str]) -> None:
    """Print one of both, and nothing that a terminal would obey: ids and labels come from other people's files."""
    text = json_text(plain, indent=2) if as_json else "\n".join(map(printable, lines))
    try:
        click.echo(text)
    except BrokenPipeError:  # of `stakes losses | head`: click would take it for a failure
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def json_text(plain: Any, indent: int | None = None) -> str:
    """JSON in which everything that a terminal would obey is escaped; line ends in texts are escaped already."""
    text = json.dumps(plain, ensure_ascii=False, indent=indent, allow_nan=False)
    return "\n".join(map(printable, text.split("\n")))


def shell_word(text: str) -> str:
    """A word that a shell reads back as this text; what a terminal would obey in the form $'..' of bash and zsh."""
    if printable(text) == text:
        return quote(text)
    return "$'" + printable(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def ranking_lines(ranking: Ranking) -> list[str]:
    """A line for each row, why below it."""
    from stakes.tabular.suggestions import whys

    cells = [number(score) if math.isfinite(score) else "" for score in ranking.scores]
    width = max([len("row"), *(len(row) for row in ranking.row_ids)])
    lines = [f"   {'row'.ljust(width)}  {_score_name(ranking)}"]
    for place, (row, cell, why) in enumerate(zip(ranking.row_ids, cells, whys(ranking), strict=True), 1):
        lines.append(f"{place:2d} {row.ljust(width)}  {cell}".rstrip())
        lines += wrapped(why, "   " + " " * width + "  ")
    return lines


def ranking_json(ranking: Ranking, notes: Iterable[object]) -> dict[str, Any]:
    """The same for JSON: rows, what they are ranked by, and notes."""
    from stakes.tabular.suggestions import whys

    kept = ranking.to_dict()
    parts = zip(kept["row_ids"], kept["scores"], kept["reasons"], whys(ranking), strict=True)
    rows = [{"row_id": row, "score": score, "worth": reason["worth"], "why": why} for row, score, reason, why in parts]
    by = {"ranked_by": ranking.ranked_by, "per_cost": ranking.per_cost}
    return {"rows": rows, **by, "notes": [str(note) for note in notes]}


def _score_name(ranking: Ranking) -> str:
    """What the scores of rows are."""
    what = {"gain": "worth on top of the rows above, a decision", "worth": "worth alone, a decision"}
    what["together"] = "worth together with the rows above, a decision"
    name = what.get(ranking.ranked_by, ranking.ranked_by)
    return f"{name} and unit of cost" if ranking.per_cost else name


def wrapped(text: str, indent: str = "", first: str | None = None) -> list[str]:
    """Lines of a width that can be read."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent if first is None else first, subsequent_indent=indent, break_on_hyphens=False
    )


def note_lines(notes: Sequence[object]) -> list[str]:
    """What was assumed, as a list."""
    if not notes:
        return []
    return ["", "Assumed:", *(line for each in notes for line in wrapped(str(each), "  ", "- "))]


def local_time(seconds: float) -> str:
    """A moment in the local time zone; in UTC where that has no date for it, at the very end of the year 9999."""
    try:
        moment = datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return utc_time(seconds)
    return moment.strftime("%Y-%m-%d %H:%M %Z").strip()


@contextmanager
def waiting(first: str) -> Iterator[Callable[[str, float | None], None]]:
    """Show what is being done, as reported to the function that it gives; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        yield lambda what, share: None
        return
    now: list[tuple[str, float | None]] = [(first, None)]
    over = threading.Event()
    ticker = threading.Thread(target=_tick, args=(now, over), daemon=True)
    ticker.start()
    try:
        yield lambda what, share: now.__setitem__(0, (what, share))
    finally:
        over.set()
        ticker.join()


@contextmanager
def how_far(first: str, show: Callable[[str, float | None], None]) -> Iterator[Callable[[str, float | None], None]]:
    """Pass on what is being done, and say it, with how much of it was done, where it is interrupted."""
    now: list[tuple[str, float | None]] = [(first, None)]

    def report(what: str, share: float | None) -> None:
        now[0] = (what, share)
        show(what, share)

    try:
        yield report
    except KeyboardInterrupt:
        what, share = now[0]
        done = "" if share is None else f", {share:.1%} of it done"
        raise KeyboardInterrupt(f"interrupted while {what}{done}; nothing was changed") from None


def _tick(now: list[tuple[str, float | None]], over: threading.Event) -> None:
    start, length = time.monotonic(), 0
    while not over.wait(_TICK):
        passed = time.monotonic() - start
        if passed > _QUIET:
            line = _line(*now[0], passed)
            sys.stderr.write("\r" + line.ljust(length))
            sys.stderr.flush()
            length = len(line)
    if length:
        sys.stderr.write("\r" + " " * length + "\r")
        sys.stderr.flush()


def _line(what: str, share: float | None, passed: float) -> str:
    """[#####...............]  25% scoring rows, 3 s."""
    if share is None:
        place = int(passed / _TICK) % _BAR
        return f"[{'.' * place}#{'.' * (_BAR - 1 - place)}]      {what}, {passed:.0f} s"
    return f"[{('#' * round(share * _BAR)).ljust(_BAR, '.')}] {share:4.0%} {what}, {passed:.0f} s"
