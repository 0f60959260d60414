"""Summaries as a report: our numbers, the printed ones, how far apart they are, and which pictures go with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.paper.blocks import Block, Heading, Paragraph, Strong, Table, markdown
from experiments.paper.figures import pictures_of
from experiments.paper.summary import Pair, Point, Summary

PRINTED: Mapping[tuple[str, str], tuple[float, float]] = {
    ("Random", "SEL"): (0.9238, 0.0940),
    ("EVR", "SEL"): (0.3449, 0.0025),
    ("EVR_w", "SEL"): (1.5872, 0.1158),
    ("EVR_w by Monte Carlo", "SEL"): (1.5872, 0.1158),
    ("Random", "SEL_w"): (343.4, 109.5),
    ("EVR", "SEL_w"): (107.1, 1.971),
    ("EVR_w", "SEL_w"): (72.06, 1.508),
    ("EVR_w by Monte Carlo", "SEL_w"): (72.06, 1.508),
}
"""Table 2 by strategy and metric, mean and standard error. All else is printed as curves, without numbers."""

_HOW_TO_READ = (
    "A - B is a metric under one strategy minus that under another in the same run, after the last label, with its 95% "
    "interval; it is set in bold where A and B differ significantly (95%). Where the paper prints a number, the "
    "distance from it is in standard errors of the difference, of both means."
)
_HEADINGS = {
    "table2": "Table 2: the problem with one input",
    "regression": "Regression: Slump, Yacht and Estate",
    "linex": "Linex on Estate",
    "classification": "Classification: Vehicle, Landsat and Vowel",
}


def report(summaries: Sequence[Summary]) -> str:
    """The report in Markdown, which has no pictures."""
    return markdown(content(summaries))


def content(summaries: Sequence[Summary]) -> list[Block]:
    """A part for each study that was run, and a line for each that was not."""
    blocks: list[Block] = [Heading(1, "The paper's experiments, run again"), Paragraph(_HOW_TO_READ)]
    for study, heading in _HEADINGS.items():
        own = [each for each in summaries if each.about["study"] == study]
        blocks.append(Heading(2, heading))
        blocks += list(pictures_of(own)) if own else [Paragraph("Not run.")]
        for each in own:
            blocks += _part(each)
    return blocks


def _part(summary: Summary) -> list[Block]:
    about = summary.about
    size = f"{about['runs']} runs of {about['labels']} labels, {_times(about)}"
    return [
        Heading(3, summary.name),
        Paragraph(size, about["command"]),
        _finals(summary),
        _pairs(summary.pairs),
        Paragraph("Settings", about["settings"]),
    ]


def _finals(summary: Summary) -> Table:
    """Metrics before the first label and after the last, beside what was printed."""
    compared = summary.about["study"] == "table2" and summary.about["preset"] == "published"
    last = max(point.labels for point in summary.points)
    head = ["metric", "strategy", "start", "final ± SEM", "median", "log10 ± SEM"]
    rows = []
    for point in (each for each in summary.points if each.labels == last):
        start = summary.point(point.strategy, point.metric, 0)
        row = [point.metric, point.strategy, number(start.mean), f"{number(point.mean)} ± {number(point.sem)}"]
        row += [number(point.median), f"{point.log10_mean:.3f} ± {point.log10_sem:.3f}"]
        rows.append([*row, *_printed(point)] if compared else row)
    return Table([*head, *(["printed", "apart, in standard errors"] if compared else [])], rows)


def _printed(point: Point) -> list[str]:
    """The printed number, and the difference over the standard error of the difference."""
    if (found := PRINTED.get((point.strategy, point.metric))) is None:
        return ["", ""]
    mean, sem = found
    return [f"{mean:g} ± {sem:g}", f"{(point.mean - mean) / math.hypot(sem, point.sem):+.1f}"]


def _pairs(pairs: Iterable[Pair]) -> Table:
    """Differences run by run after the last label; in bold where they are significant (95%)."""
    head = ["metric", "A", "B", "A - B (95% interval)", "log10 A - log10 B (95% interval)", "A lower in"]
    final = [each for each in pairs if each.moment == "final"]
    rows = []
    for loss, log in zip(final[::2], final[1::2], strict=True):
        cells = [loss.metric, loss.first, loss.second, _interval(loss), _interval(log)]
        rows.append([*cells, f"{loss.better} of {loss.runs} runs"])
    return Table(head, rows)


def _interval(pair: Pair) -> str:
    if not math.isfinite(pair.low):
        return f"{number(pair.value)} (no interval)"
    text = f"{number(pair.value)} ({number(pair.low)} to {number(pair.high)})"
    return Strong(text) if pair.low > 0 or pair.high < 0 else text


def number(value: float) -> str:
    """Four digits, with a power of ten only where the number is very large or small."""
    return f"{value:.4g}"


def _times(about: Mapping[str, Any]) -> str:
    """What fits and scores of all runs took, where that is known; else the command, without runs that were stored."""
    if "fit_seconds" in about:
        return f"{_time(about['fit_seconds'])} of fits and {_time(about['score_seconds'])} of scores"
    processes = f" in {about['jobs']} processes" if about.get("jobs", 1) > 1 else ""
    return f"{_time(about['seconds'])}{processes}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
