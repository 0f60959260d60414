"""The sections of a report, from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import stakes
from stakes._words import counted, number, plus_minus, short, time
from stakes.reports.evidence import Evidence
from stakes.reports.markup import Content, Markup, bullets, image, table, tag
from stakes.reports.pictures import Picture
from stakes.specs import LOSSES, LossSpec
from stakes.specs.words import exponential_rate

_EVENTS = 50  # that are shown
_MOODS = {"Go on": "go", "Stop": "stop", "Done": "stop", "Too close": "unsure"}


def heading(evidence: Evidence) -> Content:
    """What the campaign is about."""
    brief, source = evidence.setup.brief, evidence.sheet.source
    title = tag("h1", f"{brief.target} of {source.path.name}")
    matrix = brief.loss.cost_matrix
    costs = [] if matrix is None else [tag("details", [tag("summary", "What each decision costs"), _costs(matrix)])]
    return [title, tag("p", loss_in_words(brief.loss), class_="faint"), *costs]


def loss_in_words(loss: LossSpec) -> str:
    """Its name, its options, what it is for, and what counts more."""
    options = ", ".join(
        f"{name} {short(value)}" for name, value in loss.options.items() if isinstance(value, int | float)
    )
    name = f"{loss.name} ({options})" if options else loss.name
    purpose = f" {LOSSES[loss.name].purpose}" if loss.name in LOSSES else ""
    return f"The loss is {name}.{purpose}{_counts_more(loss)}"


def _counts_more(loss: LossSpec) -> str:
    """Which errors count more, in words; nothing where none do."""
    if loss.class_weights:
        times = ", ".join(f"{short(weight)} times for {name}" for name, weight in loss.class_weights.items())
        return f" Errors count {times}."
    if isinstance(loss.weight, str):
        return f" Errors count exp({exponential_rate(loss.weight):g} y) times, where y is the true value."
    return " Errors count more or less by the true value." if loss.weight else ""


def advice(evidence: Evidence) -> Content:
    """Whether to go on, and how sure that is."""
    status, told = evidence.status, evidence.status.advice
    mood = next((name for words, name in _MOODS.items() if told.startswith(words)), "ask")
    lines = [tag("p", told), *(tag("p", sentence, class_="faint") for sentence in _outlook(evidence))]
    lines += [tag("p", status.stale)] if status.stale else []
    lines += [tag("p", f"The rows could not be ranked: {evidence.failure}")] if evidence.failure else []
    return tag("section", lines, class_=f"advice {mood}", aria_label="advice")


def counts(evidence: Evidence) -> Content:
    """Rows by where they stand, and money."""
    status = evidence.status
    cells = {name: f"{getattr(status, name):,}" for name in ("labelled", "asked", "skipped", "open")}
    cells["spent"] = short(status.spent)
    if status.budget_left is not None:
        cells["budget left"] = f"{short(status.budget_left)} of {short(status.budget or 0.0)}"
    return tag(
        "dl", [tag("div", [tag("dt", name), tag("dd", value)]) for name, value in cells.items()], class_="counts"
    )


def next_rows(evidence: Evidence) -> Content:
    """Which rows to label, what for, and why."""
    rows, ranking = evidence.next_rows(), evidence.ranking
    if not rows or ranking is None:
        return [tag("h2", "Next rows"), tag("p", "None is ranked at the moment; ask for rows to rank them anew.")]
    head = ("row", ranking["ranked_by"] + (" per cost" if evidence.sheet.costs is not None else ""), "why")
    cells = [(row, "" if score is None else f"{score:.4g}", why) for row, score, why in rows]
    known = f"Ranked with {counted(ranking['labels'], 'label')}, best first."
    return [tag("h2", "Next rows"), tag("p", known, class_="faint"), table(head, cells)]


def pictures(drawn: Sequence[Picture]) -> Content:
    """All pictures, or why there is none."""
    return [tag("h2", "Pictures"), tag("div", [_figure(each) for each in drawn], class_="pictures")]


def assumptions(sentences: Sequence[str]) -> Content:
    """What was taken for granted."""
    return [tag("h2", "What was assumed"), bullets(sentences) if sentences else tag("p", "Nothing yet.")]


def history(evidence: Evidence) -> Content:
    """The last events, latest first."""
    last = evidence.history[-_EVENTS:][::-1]
    some = f"The last {len(last)} of {counted(len(evidence.history), 'event')}, latest first."
    rows = [(time(event.at), event.kind, event.row, event.label or "", event.who or "") for event in last]
    shown = table(("when", "what", "row", "label", "who"), rows) if rows else Markup("")
    return [tag("h2", "History"), tag("p", some if rows else "Nothing has happened yet.", class_="faint"), shown]


def origin(evidence: Evidence, now: float) -> Content:
    """How the report was made."""
    brief = evidence.setup.brief
    table_of = f"{evidence.sheet.source.path.name} ({counted(evidence.status.rows, 'row')})"
    made = f"Written by stakes {stakes.__version__} on {time(now)} from {evidence.name} and {table_of}"
    said = f"{made}, with the model {brief.model.name!r} and seed {brief.seed}."
    return [tag("h2", "How this was made"), tag("p", said)]


def _outlook(evidence: Evidence) -> list[str]:
    """The loss today, and what labels can save of it."""
    outlook: dict[str, Any] | None = evidence.status.outlook
    if outlook is None:
        return []
    today, most = (plus_minus(**outlook[name]) for name in ("today", "most"))
    said = [f"With {counted(evidence.status.outlook_labels or 0, 'label')} a decision is expected to lose {today}."]
    said += [f"The most that labels can save of it is {most}."]
    if outlook["offers"] and outlook["offers"][-1]["net"] is None:
        last = outlook["offers"][-1]
        said.append(f"The next {counted(last['size'], 'label')} would save {plus_minus(last['worth'], last['error'])}.")
    return [" ".join(said)]


def _costs(matrix: Any) -> Markup:
    decisions = list(next(iter(matrix.values())))
    rows = [[truth, *(number(costs[name]) for name in decisions)] for truth, costs in matrix.items()]
    return table(["truth \\ decision", *decisions], rows)


def _figure(drawn: Picture) -> Markup:
    shown = [] if drawn.png is None else [image(drawn.png, drawn.alt)]
    notes = [tag("p", note) for note in drawn.notes]
    return tag("figure", [tag("h3", drawn.heading), *shown, tag("figcaption", notes)])
