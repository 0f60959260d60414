"""The pictures of a report: each with a title that says what it shows, and the same in words for who cannot see it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._words import number, plus_minus, short
from stakes.reports.canvas import BLUE, GREY, ORANGE, legend, picture
from stakes.reports.evidence import Evidence
from stakes.reports.judging import Point
from stakes.reports.learning import LearningCurve

_WIDE = 52  # letters of a title in one line


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture, or why there is none."""

    heading: str
    png: bytes | None
    alt: str
    notes: tuple[str, ...]
    """How to read it, and what is left out."""


def drawn(heading: str, title: str, notes: tuple[str, ...], draw: Callable[[Any], None]) -> Picture:
    """A picture of one set of axes under a title, which is also its text for who cannot see it."""

    def on(figure: Any) -> None:
        axes = figure.subplots()
        axes.set_title(textwrap.fill(title, _WIDE))
        draw(axes)

    return Picture(heading, picture(on), f"{heading}: {title}", notes)


def learning_picture(curve: LearningCurve, evidence: Evidence) -> Picture:
    """The expected and the realised loss as labels came in."""
    heading = "Learning curve"
    if not curve.expected and not curve.realised:
        return Picture(heading, None, "", curve.said or ("There is no label to learn from yet.",))
    notes = (
        "Expected: what the model of that time expects to lose on a decision about a row that is open today. Realised: "
        "what it lost on labels that were hidden from it in turn (five folds). Bars are ± 2 standard errors.",
        "The expected loss is the model's own word: it rises when labels show that the model was too sure. Labels "
        "bought on purpose may be harder than the average row, and the realised loss is that of such rows.",
        *curve.said,
    )

    def draw(axes: Any) -> None:
        _line(axes, curve.expected, BLUE, "o-", "expected on open rows")
        _line(axes, curve.realised, ORANGE, "s--", "realised on hidden labels")
        mark_start(axes, evidence)
        axes.set(xlabel="labels", ylabel="loss of one decision")
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        legend(axes)

    return drawn(heading, _learning_title(curve), notes, draw)


def worth_picture(evidence: Evidence) -> Picture:
    """What the next labels save together, beside their cost where it is known."""
    heading, outlook = "What the next labels are worth", evidence.status.outlook
    if outlook is None or not outlook["offers"] or not evidence.open_ids:
        why = "What labels are worth is not known yet." if evidence.open_ids else "No row is open."
        return Picture(heading, None, "", (why,))
    offers, notes = outlook["offers"], ["Bars are ± 2 standard errors, for rows such as those that are open."]
    asked = sum(row not in evidence.open_ids for row in (evidence.ranking or {"ids": []})["ids"][: len(offers)])
    notes += [f"{asked} of these rows are asked for already, or have been labelled since."] if asked else []
    paid = offers[0]["net"] is not None
    times = offers[0]["decisions"] if paid else 1.0

    def draw(axes: Any) -> None:
        sizes, worths = [each["size"] for each in offers], np.asarray([each["worth"] for each in offers]) * times
        errors = 2.0 * times * np.asarray([each["error"] for each in offers])
        axes.errorbar(sizes, worths, errors, fmt="o-", color=BLUE, capsize=3, label="saved")
        if paid:
            axes.plot(sizes, [each["cost"] for each in offers], "s--", color=ORANGE, label="cost of the labels")
            legend(axes)
        whole = f"over {number(times)} decisions" if paid else "for one decision"
        axes.set(xlabel="labels bought together", ylabel=f"loss saved {whole}", xticks=sizes)
        axes.set_ylim(bottom=0.0)

    return drawn(heading, _worth_title(outlook), tuple(notes), draw)


def mark_start(axes: Any, evidence: Evidence) -> None:
    """A line between labels that came with the table and labels that were bought."""
    if 0 < evidence.initial < len(evidence.told):
        axes.axvline(evidence.initial + 0.5, color=GREY, linestyle=":", label="bought from here on")


def _line(axes: Any, points: tuple[Point, ...], colour: str, style: str, name: str) -> None:
    if points:
        counts, losses = [each.labels for each in points], [each.loss for each in points]
        errors = [2.0 * each.error for each in points]
        axes.errorbar(counts, losses, errors, fmt=style, color=colour, capsize=3, label=name)


def _learning_title(curve: LearningCurve) -> str:
    kind, points = ("expected", curve.expected) if curve.expected else ("realised", curve.realised)
    first, last = points[0], points[-1]
    if len(points) == 1:
        return f"The {kind} loss is {plus_minus(last.loss, last.error)} with {last.labels} labels"
    verb = "fell" if last.loss < first.loss else "rose" if last.loss > first.loss else "stayed"
    return (
        f"The {kind} loss {verb} from {number(first.loss)} ({first.labels} labels) to "
        f"{number(last.loss)} ({last.labels} labels)"
    )


def _worth_title(outlook: dict[str, Any]) -> str:
    last = outlook["offers"][-1]
    labels = "The next label saves" if last["size"] == 1 else f"The next {last['size']} labels save"
    if last["net"] is None:
        today = number(outlook["today"]["value"])
        return f"{labels} {plus_minus(last['worth'], last['error'])} of {today} expected today"
    times = last["decisions"]
    cost = f"and {'costs' if last['size'] == 1 else 'cost'} {short(last['cost'])}"
    return f"{labels} {plus_minus(times * last['worth'], times * last['error'])} {cost}"
