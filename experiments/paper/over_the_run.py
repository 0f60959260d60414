"""The whole run beside its end: differences over all labels, and labels needed to reach what random labels end with.

`table` is the part of docs/reproduction.md between its markers; tools/reproduction_page.py writes it anew, and the
pictures of the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.markdown import table as markdown_table
from experiments.paper.summary import Pair, Summary

BEGIN, END = "<!-- begin: over the run -->", "<!-- end: over the run -->"
METRICS = {"table2": ("SEL_w",), "regression": ("SEL_w",), "classification": ("NLL_w with q_w", "NLL_w with q")}
"""By study: what is weighted, and so the weighted objective is to lower."""
RIVALS = {"table2": ("EVR_w", "EVR"), "regression": ("EVR_w", "EVR"), "classification": ("EPIG_w", "EPIG")}


def scale_of(summary: Summary) -> str:
    """Losses of numbers are compared as log10, since a few runs rule their means; log losses as they are."""
    return "loss" if summary.about["study"] == "classification" else "log10"


def curve(summary: Summary, strategy: str, metric: str) -> np.ndarray:
    """[B + 1]: the mean over runs after each label, in the scale of the study."""
    points = sorted(
        (each for each in summary.points if (each.strategy, each.metric) == (strategy, metric)),
        key=lambda each: each.labels,
    )
    return np.asarray([each.mean if scale_of(summary) == "loss" else each.log10_mean for each in points])


def labels_needed(summary: Summary, strategy: str, metric: str) -> float:
    """Labels until the mean curve stays at or below what random labels end with; infinite where it does not."""
    above = np.flatnonzero(curve(summary, strategy, metric) > curve(summary, "Random", metric)[-1])
    first = int(above[-1]) + 1 if len(above) else 0
    return float(first) if first <= int(summary.about["labels"]) else math.inf


def pair(summary: Summary, metric: str, moment: str) -> Pair:
    """The weighted objective minus the plain one."""
    wanted = (*RIVALS[str(summary.about["study"])], metric, scale_of(summary), moment)
    return next(p for p in summary.pairs if (p.first, p.second, p.metric, p.scale, p.moment) == wanted)


def name_of(summary: Summary) -> str:
    """The data set as the paper calls it, and what is particular to the study."""
    if summary.about["study"] == "table2":
        return f"Table 2, {summary.about['preset']}"
    part = summary.name.split("-")[1].capitalize()
    rows = {"all": ", 990 rows", "train": ", 528 rows"}.get(summary.name.split("-")[2], "")
    own = {"intelex": "", "compiled": ", compiled forests"}.get(summary.name.split("-")[-1], ", scikit-learn's forests")
    return f"{part}{rows}, {summary.about['preset']}{own if summary.about['study'] == 'classification' else ''}"


def table(summaries: Sequence[Summary]) -> str:
    """The table in Markdown: a line for each study and weighted metric."""
    lines = []
    for study, metrics in METRICS.items():
        for summary in (each for each in summaries if each.about["study"] == study):
            for metric in metrics:
                first, second = (labels_needed(summary, each, metric) for each in RIVALS[study])
                lines.append(
                    [
                        name_of(summary),
                        metric,
                        summary.about["runs"],
                        _gap(pair(summary, metric, "final")),
                        _gap(pair(summary, metric, "area")),
                        f"{_count(first)} and {_count(second)} of {summary.about['labels']}",
                    ]
                )
    head = [
        "problem",
        "metric",
        "runs",
        "weighted - plain, at the end",
        "the same over the run",
        "labels to reach random's end",
    ]
    return markdown_table(head, lines)


def level_or_ahead(summaries: Sequence[Summary]) -> list[str]:
    """Studies in which random labels end at or below the weighted objective by the weighted metric."""
    return [
        f"{name_of(each)} ({metric})"
        for study, metrics in METRICS.items()
        for each in summaries
        if each.about["study"] == study
        for metric in metrics
        if curve(each, "Random", metric)[-1] <= curve(each, RIVALS[study][0], metric)[-1]
    ]


def put_in(page: Path, summaries: Sequence[Summary]) -> None:
    """Write the table between the markers of the page."""
    text = page.read_text(encoding="utf-8")
    made = f"{BEGIN}\n\n{table(summaries)}\n\n{END}"
    page.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: made, text, flags=re.S), encoding="utf-8")


def _gap(found: Pair) -> str:
    text = f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    return f"**{text}**" if found.low > 0 or found.high < 0 else text


def _count(labels: float) -> str:
    return f"{labels:.0f}" if math.isfinite(labels) else "not reached"
