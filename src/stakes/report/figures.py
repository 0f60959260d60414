"""The pictures of a report: each with a title that says what it shows, and the same as text for who cannot see it.

This is the one file here that names matplotlib. Sizes: M contexts.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._utils.tables import Host
from stakes._utils.text import counted, number, plus_minus, short
from stakes.ranking import PromisedRound
from stakes.ranking.promises import FEWEST_LABELS, FEWEST_ROUNDS, share_kept
from stakes.report.estimates import Contexts, LearningCurve
from stakes.report.evidence import Evidence, Point

# Okabe and Ito's colours, which people who are colour-blind can distinguish; the last is for whatever is left over.
BLUE, ORANGE, GREEN, PURPLE, SKY, RED, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#8A8A8A",
)
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
_SIZE = (5.4, 3.6)  # inches: small, so that letters are still large where the picture is scaled down to a phone
_LONG = 28  # letters of a name in a picture
_ROW = 72  # letters that fit beside each other in a legend
_WIDE = 52  # letters of a title in one line
_OTHERS = "others"
_EVEN = 1.5  # times its share of rows: less than that is no difference to speak of
_STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "text.parse_math": False,  # a name with two dollar signs is a name
}


def check_canvas() -> None:
    """Refuse before any work is done, where there is nothing to draw with."""
    _figure_class()


def picture(draw: Callable[[Any], None]) -> bytes:
    """The PNG of what `draw` draws on a figure."""
    figure_class = _figure_class()
    from matplotlib import rc_context

    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks are drawn as boxes
        figure = figure_class(figsize=_SIZE, layout="constrained")
        draw(figure)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    return drawn.getvalue()


def legend(axes: Any, **more: Any) -> Any:
    """The legend below the picture, where it covers nothing."""
    figure = axes.figure
    handles, names = axes.get_legend_handles_labels()
    shown = [clipped(name) for name in names]
    columns = max(1, min(3, _ROW // max(len(name) + 5 for name in shown)))
    return figure.legend(handles, shown, loc="outside lower center", ncols=columns, columnspacing=1.2, **more)


def clipped(name: str) -> str:
    """A name that leaves room for others."""
    plain = " ".join(name.split())
    return plain if len(plain) <= _LONG else f"{plain[: _LONG - 1]}…"


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("a report has pictures, which need matplotlib: pip install 'stakes[plot]'") from error
    return Figure


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture, or why there is none."""

    heading: str
    png: bytes | None
    alt: str
    notes: tuple[str, ...]
    """How to read it, and what is left out."""


def one_axes(heading: str, title: str, notes: tuple[str, ...], draw: Callable[[Any], None]) -> Picture:
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
        return Picture(heading, None, "", curve.notes or ("There is no label to learn from yet.",))
    notes = (
        "Expected: what the model of that time expects to lose on a decision about a row that is open today. Realised: "
        "what it lost on labels that were hidden from it in turn (five folds). Bars are ± 2 standard errors.",
        "The expected loss is the model's own estimate: it rises when labels show that the model was too sure. Labels "
        "bought on purpose may be harder than the average row, and the realised loss is that of such rows.",
        *curve.notes,
    )

    def draw(axes: Any) -> None:
        _line(axes, curve.expected, BLUE, "o-", "expected on open rows")
        _line(axes, curve.realised, ORANGE, "s--", "realised on hidden labels")
        mark_start(axes, evidence)
        axes.set(xlabel="labels", ylabel="loss of one decision")
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        legend(axes)

    return one_axes(heading, _learning_title(curve), notes, draw)


def worth_picture(evidence: Evidence) -> Picture:
    """What the next labels save together, beside their cost where it is known."""
    heading, outlook = "What the next labels are worth", evidence.status.outlook
    if outlook is None or not outlook["offers"] or not evidence.open_ids:
        why = "What labels are worth is not known yet." if evidence.open_ids else "No row is open."
        return Picture(heading, None, "", (why,))
    offers, notes = outlook["offers"], ["Bars are ± 2 standard errors, and allow for a model that is wrong."]
    ids = () if evidence.ranking is None else evidence.ranking.row_ids
    asked = sum(row not in evidence.open_ids for row in ids[: len(offers)])
    notes += [f"{asked} of these rows are asked for already, or have been labelled since."] if asked else []
    if any(each.get("joint") is not None for each in offers):
        notes += ["The model is known by members, none of which is taken for the truth."]
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

    return one_axes(heading, _worth_title(outlook), tuple(notes), draw)


def promises_picture(evidence: Evidence) -> Picture:
    """What rounds of labels were said to save, beside what they saved on labels that came later."""
    heading, rounds = "Promised and delivered", evidence.promises
    if not rounds:
        why = "No round of labels can be judged yet: that takes two rounds, and labels that come after both."
        return Picture(heading, None, "", (why,))
    notes = [
        "Promised: what the next labels were said to save of the loss of a decision, when they were asked for. "
        "Delivered: the loss of the model before them less that of the model after them, on labels that neither knew. "
        "Bars are ± 2 standard errors; those of what was delivered are wide while few labels have come.",
        _judges(rounds),
    ]
    if (share := share_kept(rounds)) is None:
        notes.append(
            f"There is too little of it to change what is promised: that takes {FEWEST_ROUNDS} rounds, each judged by "
            f"{FEWEST_LABELS} labels."
        )
    else:
        notes.append(
            f"By this record {share.value:.0%} (± {2 * share.error:.0%}) of a promise comes, and new promises are cut "
            "down to that."
            if share.value < 1.0
            else "This record is no reason to promise less: new promises stay as the model has them."
        )

    def draw(axes: Any) -> None:
        ends = np.asarray([each.labels + each.bought for each in rounds], dtype=float)
        aside = 0.12 * max(1.0, float(np.min(np.diff(ends), initial=ends[0])))
        for amounts, colour, style, name, shift in (
            ([each.promised for each in rounds], BLUE, "o", "promised", -aside),
            ([each.delivered for each in rounds], ORANGE, "s", "delivered", aside),
        ):
            errors = [2.0 * each.error for each in amounts]
            axes.errorbar(
                ends + shift, [each.value for each in amounts], errors, fmt=style, color=colour, capsize=3, label=name
            )
        axes.axhline(0.0, color=GREY, linewidth=1.0)
        axes.set(xlabel="labels after the round", ylabel="saved of the loss of one decision")
        legend(axes)

    return one_axes(heading, _promises_title(rounds), tuple(notes), draw)


def _promises_title(rounds: tuple[PromisedRound, ...]) -> str:
    promised = sum(each.promised.value for each in rounds)
    delivered = sum(each.delivered.value for each in rounds)
    error = math.sqrt(sum(each.delivered.error**2 for each in rounds))
    return f"{counted(len(rounds), 'round')} promised {number(promised)} and saved {plus_minus(delivered, error)}"


def _judges(rounds: tuple[PromisedRound, ...]) -> str:
    """Which labels judge, and what is weak about them."""
    if all(each.audited for each in rounds):
        return "All rounds are judged by labels that an audit drew."
    some = "Rounds that no audit judges are" if any(each.audited for each in rounds) else "Rounds are"
    return (
        f"{some} judged by labels that were bought later: by which share of what the later model expects of them came. "
        "Regions that nothing was bought from are taken to gain in proportion; an audit (stakes audit) judges better."
    )


def mark_start(axes: Any, evidence: Evidence) -> None:
    """A line between labels that came with the table and labels that were bought."""
    if 0 < evidence.initial < len(evidence.known):
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


def acquired_picture(evidence: Evidence) -> Picture:
    """The labels in the order in which they came: those of the table, and those bought."""
    heading = "What was acquired"
    if not evidence.known:
        return Picture(heading, None, "", ("There is no label yet.",))
    return _classes(evidence, heading) if evidence.task == "classes" else _numbers(evidence, heading)


def contexts_picture(found: Contexts, evidence: Evidence) -> Picture:
    """Each row that is open by the answer of the model, and by what that answer may cost."""
    heading, target = "Where the model is unsure", clipped(evidence.brief.target)
    answer = f"mean belief of {target}" if found.means else f"answer for {target}"
    notes = [
        f"Each dot is a row without a label. The higher it is, the more the best answer for its {target} may cost."
    ]
    if found.next_row is not None and found.helped is not None:
        notes.append(f"The larger the dot, the more the next label (row {found.next_row}) would help there.")
    if found.weights is not None:
        notes.append(
            "The colour shows how much the loss weighs errors there: 1 is the average row, 2 counts twice as much."
        )

    def draw(axes: Any) -> None:
        sizes = _sizes(found.helped, len(found.losses))
        if found.likely:
            _by_class(axes, found, sizes, shown_classes([each.label for each in evidence.known]))
        else:
            _by_weight(axes, found, sizes)
        name = "probability of the most likely class" if found.likely else answer
        axes.set(xlabel=name, ylabel="expected loss of a decision")

    return one_axes(heading, _unsure_title(found.losses), tuple(notes), draw)


def shown_classes(names: list[str]) -> dict[str, str]:
    """Colours of classes, the most frequent first; from the seventh on they are "others"."""
    ranked = [name for name, _ in Counter(names).most_common()]
    return dict(zip(sorted(ranked[: len(COLOURS)]), COLOURS, strict=False))


def _numbers(evidence: Evidence, heading: str) -> Picture:
    values = np.asarray([float(each.label) for each in evidence.known])
    start, order = evidence.initial, np.arange(1, len(values) + 1)

    def draw(figure: Any) -> None:
        axes, side = figure.subplots(1, 2, sharey=True, width_ratios=[4, 1])
        figure.suptitle(_numbers_title(values, start), x=0.02, ha="left", fontsize=11.5, fontweight="bold")
        axes.plot(order[:start], values[:start], "o", color=GREY, mfc="none", label="there from the start")
        axes.plot(order[start:], values[start:], "o", color=BLUE, label="bought")
        axes.set(xlabel="order in which labels came", ylabel=clipped(evidence.brief.target))
        legend(axes)
        parts = [(values[:start], GREY), (values[start:], BLUE)]
        given = [(each, colour) for each, colour in parts if len(each)]
        side.hist(
            [each for each, _ in given], bins=12, orientation="horizontal", stacked=True, color=[c for _, c in given]
        )
        side.set(xlabel="labels")

    alt = f"{heading}: {_numbers_title(values, start)}"
    return Picture(heading, picture(draw), alt, ("On the right, how many labels there are of each size.",))


def _numbers_title(values: Host, start: int) -> str:
    bought, first = values[start:], values[:start]
    if len(bought) == 0:
        return f"{counted(len(first), 'label')} from the start, none bought yet"
    ends = f"{counted(len(bought), 'bought label')}, from {number(bought.min())} to {number(bought.max())}"
    means = f"mean {number(bought.mean())}" + (f" (at the start {number(first.mean())})" if len(first) else "")
    return f"{ends}\n{means}"


def _classes(evidence: Evidence, heading: str) -> Picture:
    names = [each.label for each in evidence.known]
    colours, order = shown_classes(names), np.arange(len(names) + 1)

    def draw(axes: Any) -> None:
        rest = [name not in colours for name in names]
        for name, colour in colours.items():
            axes.step(order, _counts([each == name for each in names]), where="post", color=colour, label=name, lw=2)
        if any(rest):
            axes.step(order, _counts(rest), where="post", color=GREY, label=_OTHERS)
        mark_start(axes, evidence)
        axes.set(xlabel="order in which labels came", ylabel=f"labels of each {clipped(evidence.brief.target)}")
        legend(axes)

    return one_axes(heading, _classes_title(names, evidence.initial), (), draw)


def _counts(hits: list[bool]) -> Host:
    return np.concatenate([[0], np.cumsum(hits)])


def _classes_title(names: list[str], start: int) -> str:
    """The class whose share is larger among bought labels than at the start, by most."""
    bought, first = Counter(names[start:]), Counter(names[:start])
    if not bought:
        return f"{counted(start, 'label')} from the start, none bought yet"
    shares = {name: bought[name] / bought.total() - first[name] / max(start, 1) for name in bought}
    most = max(sorted(shares), key=lambda name: shares[name])
    before = f" ({first[most] / start:.0%} at the start)" if start else ""
    share = f"{clipped(most)}: {bought[most] / bought.total():.0%}{before}"
    return f"Of {counted(bought.total(), 'bought label')}, {bought[most]} are {share}"


def _unsure_title(losses: Host) -> str:
    count = max(1, round(len(losses) / 10))
    total = float(losses.sum())
    if not total > 0:
        return "The model expects to lose nothing on any row"
    share = float(np.sort(losses)[-count:].sum()) / total
    tenth = f"the {counted(count, 'row')} it is least sure of carry {share:.0%} of the expected loss"
    return (
        f"About as sure of all rows: {tenth}"
        if share < _EVEN * count / len(losses)
        else f"Of {len(losses)} rows {tenth}"
    )


def _sizes(helped: Host | None, count: int) -> Host:
    """[M]: areas of dots."""
    if helped is None:
        return np.full(count, 22.0)
    return np.asarray(12.0 + 150.0 * helped / helped.max())


def _by_class(axes: Any, found: Contexts, sizes: Host, colours: dict[str, str]) -> None:
    likely = np.asarray(found.likely, dtype=object)
    parts = {name: (likely == name, colour) for name, colour in colours.items()}
    rest = ~np.isin(likely, list(colours))
    parts |= {_OTHERS: (rest, GREY)} if rest.any() else {}
    for name, (rows, colour) in parts.items():
        axes.scatter(found.answers[rows], found.losses[rows], s=sizes[rows], color=colour, alpha=0.6, lw=0, label=name)
    for handle in legend(axes, title="most likely").legend_handles:
        handle.set_sizes([30.0])


def _by_weight(axes: Any, found: Contexts, sizes: Host) -> None:
    colour = {"color": BLUE} if found.weights is None else {"c": found.weights, "cmap": "cividis"}
    dots = axes.scatter(found.answers, found.losses, s=sizes, alpha=0.6, lw=0, **colour)
    if found.weights is not None:
        axes.figure.colorbar(dots, ax=axes, label="weight of errors in the loss")
