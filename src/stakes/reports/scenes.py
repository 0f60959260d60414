"""Pictures of rows: which labels were acquired, and where the model is unsure. Sizes: M contexts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from stakes._words import counted, number
from stakes.models.tables import Host
from stakes.reports.canvas import BLUE, COLOURS, GREY, clipped, legend, picture
from stakes.reports.contexts import Contexts
from stakes.reports.evidence import Evidence
from stakes.reports.pictures import Picture, drawn, mark_start

_OTHERS = "others"
_EVEN = 1.5  # times its share of rows: less than that is no difference to speak of


def acquired_picture(evidence: Evidence) -> Picture:
    """The labels in the order told: those of the table, and those bought."""
    heading = "What was acquired"
    if not evidence.told:
        return Picture(heading, None, "", ("There is no label yet.",))
    return _classes(evidence, heading) if evidence.task == "classes" else _numbers(evidence, heading)


def contexts_picture(found: Contexts, evidence: Evidence) -> Picture:
    """Each row that is open by the answer of the model, and by what that answer may cost."""
    heading, target = "Where the model is unsure", clipped(evidence.setup.brief.target)
    answer = f"mean belief of {target}" if found.means else f"answer for {target}"
    notes = [
        f"Each dot is a row without a label. The higher it is, the more the best answer for its {target} may cost."
    ]
    if found.next_row is not None and found.helped is not None:
        notes.append(f"The larger the dot, the more the next label (row {found.next_row}) would help there.")
    if found.looks is not None:
        notes.append("The colour tells where the loss looks: 1 is the average row, 2 counts twice as much.")

    def draw(axes: Any) -> None:
        sizes = _sizes(found.helped, len(found.losses))
        if found.likely:
            _by_class(axes, found, sizes, shown_classes([each.label for each in evidence.told]))
        else:
            _by_weight(axes, found, sizes)
        name = "probability of the most likely class" if found.likely else answer
        axes.set(xlabel=name, ylabel="expected loss of a decision")

    return drawn(heading, _unsure_title(found.losses), tuple(notes), draw)


def shown_classes(names: list[str]) -> dict[str, str]:
    """Colours of classes, the most frequent first; from the seventh on they are "others"."""
    ranked = [name for name, _ in Counter(names).most_common()]
    return dict(zip(sorted(ranked[: len(COLOURS)]), COLOURS, strict=False))


def _numbers(evidence: Evidence, heading: str) -> Picture:
    values = np.asarray([float(each.label) for each in evidence.told])
    start, order = evidence.initial, np.arange(1, len(values) + 1)

    def draw(figure: Any) -> None:
        axes, side = figure.subplots(1, 2, sharey=True, width_ratios=[4, 1])
        figure.suptitle(_numbers_title(values, start), x=0.02, ha="left", fontsize=11.5, fontweight="bold")
        axes.plot(order[:start], values[:start], "o", color=GREY, mfc="none", label="there from the start")
        axes.plot(order[start:], values[start:], "o", color=BLUE, label="bought")
        axes.set(xlabel="order in which labels came", ylabel=clipped(evidence.setup.brief.target))
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
    names = [each.label for each in evidence.told]
    colours, order = shown_classes(names), np.arange(len(names) + 1)

    def draw(axes: Any) -> None:
        rest = [name not in colours for name in names]
        for name, colour in colours.items():
            axes.step(order, _counts([each == name for each in names]), where="post", color=colour, label=name, lw=2)
        if any(rest):
            axes.step(order, _counts(rest), where="post", color=GREY, label=_OTHERS)
        mark_start(axes, evidence)
        axes.set(xlabel="order in which labels came", ylabel=f"labels of each {clipped(evidence.setup.brief.target)}")
        legend(axes)

    return drawn(heading, _classes_title(names, evidence.initial), (), draw)


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
    colour = {"color": BLUE} if found.looks is None else {"c": found.looks, "cmap": "cividis"}
    dots = axes.scatter(found.answers, found.losses, s=sizes, alpha=0.6, lw=0, **colour)
    if found.looks is not None:
        axes.figure.colorbar(dots, ax=axes, label="how much the loss looks there")
