"""The report of a campaign: gather, draw, and write one HTML page, whole or not at all."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import stakes
from stakes._utils.arguments import Progress, as_progress
from stakes._utils.markup import Content, Markup, tag, text
from stakes._utils.text import counted, if_a_member_is_right, number, plus_minus, short, utc_time
from stakes.campaign import Campaign
from stakes.campaign.states import checked_clock
from stakes.files.write import checked_output, output_file
from stakes.report.estimates import contexts, learning_curve
from stakes.report.evidence import Evidence, attempted, gather
from stakes.report.figures import (
    Picture,
    acquired_picture,
    check_canvas,
    contexts_picture,
    learning_picture,
    promises_picture,
    worth_picture,
)
from stakes.tabular.loss_specs import loss_sentences

_EVENTS = 50  # that are shown
_MOODS = {"Go on": "go", "Stop": "stop", "Done": "stop", "Too close": "unsure"}
_MARK = '<!doctype html>\n<html lang="en"><head><meta name="generator" content="stakes report">'
_CURVE = (0.2, 0.9)  # the share of time between which the learning curve is made


def html_table(head: Sequence[str], rows: Iterable[Sequence[Content]]) -> Markup:
    """A table that scrolls within itself where it is too wide."""
    top = tag("thead", tag("tr", [tag("th", name, scope="col") for name in head]))
    body = tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows])
    return tag("div", tag("table", [top, body]), class_="scroll", tabindex="0")


def bullets(sentences: Iterable[str]) -> Markup:
    """A list."""
    return tag("ul", [tag("li", sentence) for sentence in sentences])


def image(png: bytes, alt: str) -> Markup:
    """A picture within the page."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return Markup(f'<img src="{source}" alt="{text(alt)}">\n')


def page(title: str, style: str, content: Content) -> Markup:
    """A whole page, which needs nothing else."""
    head = [
        Markup('<meta name="generator" content="stakes report">\n<meta charset="utf-8">\n'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
        Markup('<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'),
        tag("title", title),
        tag("style", Markup(style)),
    ]
    return Markup("<!doctype html>\n" + tag("html", [tag("head", head), tag("body", tag("main", content))], lang="en"))


# By day and by night, on a desk and on a phone.
STYLE = """
:root { --ink: #1d2430; --faint: #5b6675; --paper: #f6f7f9; --card: #ffffff; --line: #d9dee5; --accent: #0072b2;
  --go: #00795a; --stop: #b34700; --unsure: #8a6100; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf0; --faint: #a4afbd; --paper: #14181e; --card: #1e242c;
  --line: #37404c; --accent: #6fc0ee; --go: #4fd1a5; --stop: #ff9a5c; --unsure: #f0c04f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; }
main { max-width: 72rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
p { margin: .3rem 0; }
.faint { color: var(--faint); }
.advice { border-left: .4rem solid var(--accent); background: var(--card); border-radius: .4rem; padding: .8rem 1rem;
  margin: 1.2rem 0; }
.advice p:first-child { font-size: 1.15rem; font-weight: 600; }
.go { border-color: var(--go); } .stop { border-color: var(--stop); } .unsure { border-color: var(--unsure); }
.counts { display: grid; grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: .6rem; margin: 0; }
.counts div { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .75rem; }
.counts dt { color: var(--faint); font-size: .85rem; }
.counts dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .9rem; }
figure img { display: block; width: 100%; height: auto; background: #ffffff; border-radius: .3rem; }
figcaption { color: var(--faint); font-size: .9rem; margin-top: .5rem; }
.scroll { overflow-x: auto; overflow-wrap: normal; }
.scroll { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem; border-bottom: 1px solid var(--line); }
td { min-width: 4rem; } td:last-child { min-width: 9rem; }
tbody tr:last-child td { border-bottom: 0; }
th { font-weight: 600; color: var(--faint); white-space: nowrap; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--accent); }
@media print { body { background: #ffffff; } figure, tr { break-inside: avoid; } }
"""


def heading(evidence: Evidence) -> Content:
    """What the campaign is about."""
    brief, source = evidence.brief, evidence.sheet.source
    title = tag("h1", f"{brief.target} of {source.path.name}")
    matrix = brief.loss.cost_matrix
    costs = [] if matrix is None else [tag("details", [tag("summary", "What each decision costs"), _costs(matrix)])]
    return [title, tag("p", loss_sentences(brief.loss), class_="faint"), *costs]


def advice(evidence: Evidence) -> Content:
    """Whether to go on, and how sure that is."""
    status = evidence.status
    mood = next((name for start, name in _MOODS.items() if status.advice.startswith(start)), "ask")
    lines = [tag("p", status.advice), *(tag("p", sentence, class_="faint") for sentence in _outlook(evidence))]
    lines += [tag("p", status.audit["text"])] if status.audit else []
    lines += [tag("p", sentence, class_="faint") for sentence in status.annotators]
    lines += [tag("p", status.stale)] if status.stale else []
    lines += [tag("p", f"The rows could not be ranked: {evidence.failure}")] if evidence.failure else []
    return tag("section", lines, class_=f"advice {mood}", aria_label="advice")


def counts(evidence: Evidence) -> Content:
    """Rows by where they stand, and money."""
    status = evidence.status
    cells = {name: f"{getattr(status, name):,}" for name in ("labelled", "asked", "skipped", "open")}
    cells |= {name: f"{count:,}" for name, count in (("testing", status.testing), ("tested", status.tested)) if count}
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
    head = ("row", ranking.ranked_by + (" per cost" if ranking.per_cost else ""), "what sets it apart", "why")
    apart = evidence.apart([row for row, _, _ in rows])
    cells = [
        (row, f"{score:.4g}" if math.isfinite(score) else "", ", ".join(map(str, each)) or "like the others", why)
        for (row, score, why), each in zip(rows, apart, strict=True)
    ]
    among = "the labelled rows" if evidence.known else "all rows"
    known = (
        f"Ranked with {counted(evidence.status.outlook_labels or 0, 'label')}, best first. In brackets: the middle "
        f"half of {among}, or how many have the same."
    )
    return [tag("h2", "Next rows"), tag("p", known, class_="faint"), html_table(head, cells)]


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
    rows = [(utc_time(event.at), event.kind, event.row, event.label or "", event.who or "") for event in last]
    shown = html_table(("when", "what", "row", "label", "who"), rows) if rows else Markup("")
    return [tag("h2", "History"), tag("p", some if rows else "Nothing has happened yet.", class_="faint"), shown]


def origin(evidence: Evidence, now: float) -> Content:
    """How the report was made."""
    brief = evidence.brief
    table_of = f"{evidence.sheet.source.path.name} ({counted(evidence.status.rows, 'row')})"
    made = f"Written by stakes {stakes.__version__} on {utc_time(now)} from {evidence.name} and {table_of}"
    settings = f"with the model {brief.model.name!r} and random_state {brief.random_state}"
    return [tag("h2", "How this was made"), tag("p", f"{made}, {settings}.")]


def _outlook(evidence: Evidence) -> list[str]:
    """The loss today, and what labels can save of it."""
    outlook: dict[str, Any] | None = evidence.status.outlook
    if outlook is None:
        return []
    today, most = (plus_minus(**outlook[name]) for name in ("today", "most"))
    lines = [f"With {counted(evidence.status.outlook_labels or 0, 'label')} a decision is expected to lose {today}."]
    condition = if_a_member_is_right(offer.get("joint") for offer in outlook["offers"])
    lines += [f"The most that labels can save of it{condition}: {most}."]
    if outlook["offers"] and outlook["offers"][-1]["net"] is None:
        last = outlook["offers"][-1]
        worth = plus_minus(last["worth"], last["error"])
        lines.append(f"The next {counted(last['size'], 'label')} would save {worth}.")
    return [" ".join(lines)]


def _costs(matrix: Any) -> Markup:
    decisions = list(next(iter(matrix.values())))
    rows = [[truth, *(number(costs[name]) for name in decisions)] for truth, costs in matrix.items()]
    return html_table(["truth \\ decision", *decisions], rows)


def _figure(drawn: Picture) -> Markup:
    shown = [] if drawn.png is None else [image(drawn.png, drawn.alt)]
    notes = [tag("p", note) for note in drawn.notes]
    return tag("figure", [tag("h3", drawn.heading), *shown, tag("figcaption", notes)])


def write_report(
    campaign: Campaign, path: str | os.PathLike[str], *, overwrite: bool = False, progress: bool | Progress = False
) -> None:
    """Write the report of a campaign as one HTML file with pictures.

    Args:
        campaign: An open campaign.
        path: The file; a report that was written here before is replaced.
        overwrite: Whether any other file that is there is replaced; the campaign and its table never are.
        progress: True, or a function that is called with what is being done and the share that is done.

    Raises:
        StakesError: If the file is there or cannot be written, or the table of the campaign has changed.
        ImportError: If matplotlib is not installed.

    Examples:
        >>> import tempfile
        >>> from stakes.campaign import Campaign
        >>> from stakes.files import write_csv
        >>> from stakes.tabular import ModelSpec
        >>> rows = [(x, 2.0 * x if x < 4 else None) for x in range(9)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["x", "y"], rows)
        ...     files, model = (f"{folder}/c.stakes", f"{folder}/t.csv"), ModelSpec("bayesian-ridge")
        ...     with Campaign.create(*files, "y", "squared-error", model=model) as campaign:
        ...         write_report(campaign, f"{folder}/report.html")
        ...     Path(folder, "report.html").read_text(encoding="utf-8").count("<img ")
        4
    """
    inputs = [campaign.path, campaign.table]
    checked_output(path, inputs=inputs, overwrite=overwrite, ours=_is_report)
    check_canvas()
    show = as_progress(progress)
    show("ranking the next rows", 0.0)
    written = report(gather(campaign), show).encode()
    with output_file(path, inputs=inputs, overwrite=overwrite, ours=_is_report) as file:
        file.write(written)
    show("written", 1.0)


def report(evidence: Evidence, show: Progress) -> Markup:
    """The page."""
    drawn = _pictures(evidence, show)
    notes = evidence.sheet.notes if evidence.ranking is None else [str(note) for note in evidence.ranking.notes]
    content = [
        heading(evidence),
        advice(evidence),
        counts(evidence),
        next_rows(evidence),
        pictures(drawn),
        assumptions(notes),
        history(evidence),
        origin(evidence, checked_clock()),
    ]
    return page(f"{evidence.brief.target}: report of {evidence.name}", STYLE, content)


def _pictures(evidence: Evidence, show: Progress) -> list[Picture]:
    low, high = _CURVE

    def done(what: str, share: float) -> None:
        show(f"learning curve: {what}", low + (high - low) * share)

    curve = learning_curve(evidence, done)
    show("looking where the model is unsure", high)
    return [
        learning_picture(curve, evidence),
        acquired_picture(evidence),
        worth_picture(evidence),
        promises_picture(evidence),
        _unsure(evidence),
    ]


def _unsure(evidence: Evidence) -> Picture:
    heading = "Where the model is unsure"
    labels = set(evidence.labels().values())
    if not evidence.pool or not labels or (evidence.task == "classes" and len(labels) == 1):
        why = "No row is open." if not evidence.pool else "There are too few labels for a model."
        return Picture(heading, None, "", (why,))
    found, why_not = attempted(evidence.sheet, len(evidence.known), lambda: contexts(evidence))
    return (
        Picture(heading, None, "", (f"No picture: {why_not}.",)) if found is None else contexts_picture(found, evidence)
    )


def _is_report(path: Path) -> bool:
    """Whether a file is a report that was written here, by the mark at its beginning."""
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK.encode()
