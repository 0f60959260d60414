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
from dataclasses import replace
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stakes._utils.text import counted, number, printable, utc_time
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes.ranking import Ranking
    from stakes.tabular.contrasts import Contrast

WIDTH = 80
T = TypeVar("T")
_WORTHS = {
    "gain": "Worth on top of the rows above, a decision",
    "worth": "Worth alone, a decision",
    "together": "Worth together with the rows above, a decision",
}
_LIKE = "like the others"
_CAUTIONS = {  # kinds of notes that are shown in any case
    *("table", "no model", "fewer rows", "nothing within the budget", "budget", "too few rows", "costs"),
    *("chosen copies", "fit warning", "trained weights", "out of range", "members agree", "fallback"),
    "promises kept",
}
_CAUTIOUS = 4  # lines of them
_QUIET = 1.0  # seconds before anything is shown
_TICK = 0.2
_FIRST_USE = " (compiling loops, once after the installation)"
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


def ranking_lines(
    ranking: Ranking,
    apart: Sequence[tuple[Contrast, ...]],
    among: str,
    *,
    verbose: bool,
    together: Sequence[float] | None = None,
) -> list[str]:
    """A line for each row with its score and what sets it apart; why it was chosen below it, where all is wanted.

    What a row is worth is shown for a decision, with costs too: for each unit of cost it is in JSON alone. Rows that
    are ranked together keep no worth of their own.

    Args:
        ranking: The rows.
        apart: For each, the columns in which it differs most.
        among: What rows it differs from.
        verbose: Whether to say why each was chosen.
        together: What the first 1, 2, .. rows are worth, of rows that are ranked together; None where not known.
    """
    from stakes.tabular.suggestions import whys

    ranking = _for_a_decision(ranking, together)
    scores = [number(score) if math.isfinite(score) else "" for score in ranking.scores]
    name = "worth" if ranking.ranked_by in _WORTHS else "score"
    width, wide = (max(map(len, each)) for each in (["row", *map(str, ranking.row_ids)], [name, *scores]))
    lines = [f"   {'row'.ljust(width)}  {name.ljust(wide)}  {APART}"]
    for place, (row, score, each, why) in enumerate(zip(ranking.row_ids, scores, apart, whys(ranking), strict=True), 1):
        first, indent = f"{place:2d} {row.ljust(width)}  {score.ljust(wide)}  ", " " * (7 + width + wide)
        if len(first) > WIDTH // 2:  # a long id has a line to itself
            lines.append(f"{place:2d} {row}")
            first, indent = f"     {score.ljust(wide)}  ", " " * (7 + wide)
        shown = wrapped(", ".join(map(str, each)) or _LIKE, indent, first)
        lines += [*shown, *wrapped(why, indent)] if verbose else [_one_line(first, each)]
    usual = [f"In brackets: the middle half of {among}, or how many have the same."] if any(apart) else []
    return [*lines, f"{_score_name(ranking)}.", *usual]


def _one_line(first: str, apart: Sequence[Contrast]) -> str:
    """As many of the columns that set a row apart as a line holds, and the first of them in any case."""
    line = first + (str(apart[0]) if apart else _LIKE)
    for each in apart[1:]:
        if len(line) + len(f", {each}") > WIDTH:
            break
        line = f"{line}, {each}"
    return line


def ranking_json(ranking: Ranking, apart: Sequence[tuple[Contrast, ...]], notes: Iterable[object]) -> dict[str, Any]:
    """The same for JSON: rows, what they are ranked by, and notes."""
    from stakes.tabular.suggestions import whys

    kept = ranking.to_dict()
    parts = zip(kept["row_ids"], kept["scores"], kept["reasons"], whys(ranking), apart, strict=True)
    rows = [
        {
            "row_id": row,
            "score": score,
            "worth": reason["worth"],
            "why": why,
            "apart": [contrast._asdict() for contrast in each],
        }
        for row, score, reason, why, each in parts
    ]
    by = {"ranked_by": ranking.ranked_by, "per_cost": ranking.per_cost}
    return {"rows": rows, **by, "notes": [str(note) for note in notes]}


APART = "what sets it apart"
"""The column of that in a file."""


def apart_cells(apart: Sequence[tuple[Contrast, ...]]) -> list[str]:
    """The same as cells of a file."""
    return [", ".join(map(str, each)) or _LIKE for each in apart]


def rows_compared(labels: int) -> str:
    """The rows that others are set apart from."""
    return "the labelled rows" if labels else "all rows"


def _for_a_decision(ranking: Ranking, together: Sequence[float] | None) -> Ranking:
    """The ranking with worths in place of worths for each unit of cost, where they are known."""
    alone = [reason.worth for reason in ranking.reasons]
    worths = [each for each in (together or () if ranking.ranked_by == "together" else alone) if each is not None]
    known = ranking.ranked_by in _WORTHS and all(reason.ranked_by == "worth" for reason in ranking.reasons)
    if not ranking.per_cost or not known or len(worths) < len(ranking):
        return ranking
    return replace(ranking, scores=tuple(worths[: len(ranking)]), per_cost=False)


def _score_name(ranking: Ranking) -> str:
    """What the scores of rows are."""
    name = _WORTHS.get(ranking.ranked_by, f"The score is {ranking.ranked_by}")
    return f"{name}, divided by what the labels cost" if ranking.per_cost else name


def wrapped(text: str, indent: str = "", first: str | None = None) -> list[str]:
    """Lines of a width that can be read."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent if first is None else first, subsequent_indent=indent, break_on_hyphens=False
    )


def note_lines(notes: Sequence[object], *, verbose: bool) -> list[str]:
    """What was assumed, as a list; where not all is wanted, what is good to know, and how many others there are."""
    if not notes:
        return []
    lines: list[str] = []
    count = 0
    for note in notes if verbose else [each for each in notes if getattr(each, "kind", "") in _CAUTIONS]:
        more = wrapped(str(note), "  ", "- ")
        if count and not verbose and len(lines) + len(more) > _CAUTIOUS:
            break
        lines, count = [*lines, *more], count + 1
    if verbose:
        return ["", "Assumed:", *lines]
    rest = len(notes) - count
    folded = f"{counted(rest, 'more note' if count else 'note')} on what was assumed: --verbose shows all."
    return ["", *lines, *([folded] if rest else [])]


def at_terminal() -> bool:
    """Whether somebody is there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def prompted(question: str, check: Callable[[str], T], default: str | None = None) -> T:
    """What somebody at the terminal answers, asked again until `check` takes it."""

    def checked(text: str) -> T:
        try:
            return check(text.strip())
        except StakesError as error:
            raise click.BadParameter(str(error)) from None

    try:
        answer: T = click.prompt(printable(question), default=default, value_proc=checked, err=True)
    except click.Abort as stopped:
        if isinstance(stopped.__context__, EOFError):
            raise StakesError("the input ended before all questions were answered; give the flags instead") from None
        raise
    return answer


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
            what, share = now[0]
            line = _line(f"{what}{_FIRST_USE if _compiles() else ''}", share, passed)
            sys.stderr.write("\r" + line.ljust(length))
            sys.stderr.flush()
            length = len(line)
    if length:
        sys.stderr.write("\r" + " " * length + "\r")
        sys.stderr.flush()


def _compiles() -> bool:
    """Whether loops are being compiled, as far as anything that has some was imported."""
    compute = sys.modules.get("stakes._utils.compute")
    return compute is not None and hasattr(compute, "is_compiling") and bool(compute.is_compiling())


def _line(what: str, share: float | None, passed: float) -> str:
    """[#####...............]  25% scoring rows, 3 s."""
    if share is None:
        place = int(passed / _TICK) % _BAR
        return f"[{'.' * place}#{'.' * (_BAR - 1 - place)}]      {what}, {passed:.0f} s"
    return f"[{('#' * round(share * _BAR)).ljust(_BAR, '.')}] {share:4.0%} {what}, {passed:.0f} s"
