"""The paper's figures in its layout, from summaries: losses as labels come, and shares of classes.

A row for each data set, a column for each metric or class. Needs matplotlib, which is imported when something is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from experiments.paper.blocks import Picture
from experiments.paper.summary import METRICS, Summary

COLOURS = {
    "Random": "#8a8a8a",
    "EVR": "#0072b2",
    "EPIG": "#0072b2",
    "EVR_w": "#d1495b",
    "EPIG_w": "#d1495b",
    "Linex": "#d1495b",
    "Itakura-Saito": "#009e73",
    "EVR_w by Monte Carlo": "#e69f00",
}
MATH = {  # names as the paper sets them
    "SEL": r"$\mathrm{SEL}$",
    "SEL_w": r"$\mathrm{SEL}_w$",
    "NLL": r"$\mathrm{NLL}$",
    "NLL_w with q": r"$\mathrm{NLL}_w$ with $q$",
    "NLL_w with q_w": r"$\mathrm{NLL}_w$ with $q_w$",
    "EVR_w": r"$\mathrm{EVR}_w$",
    "EPIG_w": r"$\mathrm{EPIG}_w$",
    "EVR_w by Monte Carlo": r"$\mathrm{EVR}_w$ by Monte Carlo",
}
_STYLE = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "stakes"}
_IN_FULL = {  # parts of the names of studies, in words
    "-intelex": "",
    "-compiled": "",
    "-train": ", 528 rows",
    "-all": ", 990 rows",
    "-exact": ", prices",
    "-log-warped": ", log prices",
}
_ORDER = ("slump", "yacht", "estate", "vehicle", "landsat", "vowel")


def drawn(summaries: Sequence[Summary]) -> dict[str, bytes]:
    """PNG pictures by the names that `pictures_of` gives them."""
    from experiments.paper.acquisition import acquisition_pictures

    made = dict(acquisition_pictures()) if any(each.about["study"] == "table2" for each in summaries) else {}
    for (study, preset), rows in _by_study(summaries):
        made[f"losses-{study}-{preset}"] = png(losses_figure(rows))
    return made | {f"shares-{each.name}": png(shares_figure(each)) for each in summaries if each.shares}


def draw(summaries: Sequence[Summary], folder: Path) -> list[Path]:
    """The pictures as files, in vectors."""
    from experiments.paper.acquisition import acquisition_figures

    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, Any] = {}
    if any(each.about["study"] == "table2" for each in summaries):
        made |= dict(acquisition_figures())
    for (study, preset), rows in _by_study(summaries):
        made[f"losses-{study}-{preset}"] = losses_figure(rows)
    made |= {f"shares-{each.name}": shares_figure(each) for each in summaries if each.shares}
    for name, figure in made.items():
        svg(figure, folder / f"{name}.svg")
    return [folder / f"{name}.svg" for name in made]


def pictures_of(summaries: Sequence[Summary]) -> Iterator[Picture]:
    """The pictures of one study, with what they show."""
    for (study, preset), rows in _by_study(summaries):
        scale = "loss" if study == "classification" else "log10 of the loss"
        names = ", ".join(each.name for each in rows)
        yield Picture(f"losses-{study}-{preset}", f"Mean {scale} and its standard error over runs: {names}.")
    if any(each.about["study"] == "table2" for each in summaries):
        for rate, weight in ((1.0, "exp(z)"), (-1.0, "exp(-z)")):
            yield Picture(f"acquisition-rate{rate:g}", f"Which points are bought and why, w(z) = {weight}, one run.")
    for each in summaries:
        if each.shares:
            yield Picture(f"shares-{each.name}", f"Cumulative shares of classes, {each.name}: mean and standard error.")


def losses_figure(rows: Sequence[Summary]) -> Any:
    """A row for each summary of a study, a column for each metric of the paper."""
    study = rows[0].about["study"]
    figure, axes = _panels(len(rows), len(METRICS[study]), (4.2, 2.6))
    for line, summary in zip(axes, rows, strict=True):
        for axis, metric in zip(line, METRICS[study], strict=True):
            _curves(axis, (each for each in summary.points if each.metric == metric), _middle(study))
            axis.set_title(MATH.get(metric, metric) if summary is rows[0] else "")
        scale = "mean" if study == "classification" else r"mean of $\log_{10}$"
        line[0].set_ylabel(f"{_short(summary)}\n{scale}".strip())
    for axis in axes[-1]:
        axis.set_xlabel("labels bought")
    return _with_legend(figure, axes[0, 0])


def shares_figure(summary: Summary) -> Any:
    """A panel for each class, at most six beside each other."""
    names = list(dict.fromkeys(each.name for each in summary.shares))
    columns = min(len(names), 6 if len(names) != 11 else 4)
    figure, axes = _panels(-(-len(names) // columns), columns, (2.4, 2.1), sharey=True)
    for axis, name in zip(axes.flat, names, strict=False):
        _curves(axis, (each for each in summary.shares if each.name == name), lambda each: (each.mean, each.sem))
        axis.set_title(fill(name, 24), fontsize=9)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    for axis in axes.flat[len(names) - columns : len(names)]:  # the last panel of each column, in whichever row
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("labels bought")
    for line in axes:
        line[0].set_ylabel("share")
    return _with_legend(figure, axes[0, 0])


def svg(figure: Any, path: Path) -> None:
    """Write a figure in vectors: the same bytes each time."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        figure.savefig(path, format="svg", facecolor="white", metadata={"Date": None})


def png(figure: Any) -> bytes:
    """The picture as bytes."""
    made = io.BytesIO()
    figure.savefig(made, format="png", dpi=110, facecolor="white", metadata={"Software": None})
    return made.getvalue()


def _by_study(summaries: Sequence[Summary]) -> list[tuple[tuple[str, str], list[Summary]]]:
    """Summaries of one study and preset, in the paper's order of data sets; compiled forests in place of intelex."""
    compiled = {each.name.removesuffix("-compiled") for each in summaries if each.name.endswith("-compiled")}
    summaries = [each for each in summaries if each.name.removesuffix("-intelex") not in compiled - {each.name}]

    def key(each: Summary) -> tuple[str, str]:
        return each.about["study"], each.about["preset"]

    def place(each: Summary) -> int:
        return next((i for i, name in enumerate(_ORDER) if name in each.name), 0)

    ordered = sorted(summaries, key=lambda each: (list(METRICS).index(key(each)[0]), key(each)[1], place(each)))
    return [(name, list(rows)) for name, rows in groupby(ordered, key)]


def _short(summary: Summary) -> str:
    """The name without the study and the preset."""
    own = summary.name.replace(summary.about["study"], "").replace(f"-{summary.about['preset']}", "")
    for part, full in _IN_FULL.items():
        own = own.replace(part, full)
    plain = summary.about["study"] == "classification" and not summary.name.endswith(("-intelex", "-compiled"))
    return own.strip("-").replace("-", ", ").capitalize() + (", scikit-learn" if plain else "")


def _middle(study: str) -> Callable[[Any], tuple[float, float]]:
    if study == "classification":
        return lambda each: (each.mean, each.sem)
    return lambda each: (each.log10_mean, each.log10_sem)


def _panels(rows: int, columns: int, size: tuple[float, float], **more: Any) -> tuple[Any, Any]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        return _made(Figure, rows, columns, size, **more)


def _made(kind: Any, rows: int, columns: int, size: tuple[float, float], **more: Any) -> tuple[Any, Any]:
    figure = kind(figsize=(size[0] * columns, size[1] * rows + 0.5), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharex=True, **more)


def _curves(axis: Any, rows: Iterable[Any], middle: Callable[[Any], tuple[float, float]]) -> None:
    """For each strategy the mean, in a band of its standard error."""
    found: dict[str, list[Any]] = {}
    for each in rows:
        found.setdefault(each.strategy, []).append(each)
    for strategy, own in found.items():
        labels, mean, sem = np.asarray([(each.labels, *middle(each)) for each in own], dtype=float).T
        style = "--" if strategy in ("Linex", "EVR_w by Monte Carlo") else "-"  # may lie upon another
        axis.plot(labels, mean, style, color=COLOURS[strategy], lw=1.4, label=MATH.get(strategy, strategy))
        axis.fill_between(labels, mean - sem, mean + sem, color=COLOURS[strategy], alpha=0.2, lw=0)
    axis.grid(color="#e4e4e4", lw=0.6)
    axis.xaxis.get_major_locator().set_params(integer=True)


def _with_legend(figure: Any, axis: Any) -> Any:
    """One legend for all panels, below them."""
    handles, names = axis.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure
