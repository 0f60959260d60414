"""One page from the summaries: medians, own loss beside the unweighted one, every table, what was left out, densities.

Sizes: P problems (a table and a loss), B labels bought.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.labels_saved.beliefs import REFERENCE
from experiments.labels_saved.loop import LOSS, RANDOM
from experiments.labels_saved.measures import ALPHA, LEAST_FALL, geometric_mean, holm, median_over, smoothed
from experiments.labels_saved.problems import DRIVERS, UNWEIGHTED
from experiments.labels_saved.summary import Case, Summary
from experiments.labels_saved.tables import Task
from experiments.markdown import number, table
from stakes._utils.text import counted
from stakes.simulation import Estimate

_NOT_REACHED = 1.2  # where a picture has what was never reached
_TICKS = (0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10)
_TASKS: dict[Task, str] = {"numbers": "Numbers", "classes": "Classes"}
_ABOUT = """# Labels saved

How many labels does a belief with a strategy need to reach what **random choice under the reference belief** has after
its last label? A share of 40% means that 40 labels do what 100 random ones do; "not reached" counts as above 100%.
Level and passage are read from the mean curve over runs after isotonic smoothing; intervals are 95% percentiles of a
bootstrap, over runs for one table, over tables for medians. The reference is a Gaussian process at its most probable
isotropic hyperparameters for numbers, a forest of 200 trees for classes, frozen in
`experiments/labels_saved/beliefs.py`. A problem is a table and a loss; one where (reference, random) does not fall
significantly and by 10% is shown in brackets, but left out of medians and ratios. "Worse" is Wilcoxon's signed-rank
test on the final losses of paired runs, one-sided at 5%, with Holm's correction over all problems, also those left out
of medians. Ratios are of final mean losses, combined by their geometric mean. Log losses are of probabilities of which
1% is spread evenly over the classes, as a forest gives exact zeros.
"""


def page(summaries: Sequence[Summary], pictures: Sequence[str] = ()) -> str:
    """The page in Markdown; pictures are names of files beside it."""
    parts = [_ABOUT, *(f"![{Path(name).stem.replace('_', ' of ')}]({name})\n" for name in pictures)]
    for task, heading in _TASKS.items():
        if of_task := [each for each in summaries if each.task == task]:
            parts.append(f"## {heading}\n\n{_run(of_task)}\n")
            parts += [f"### {title}\n\n{text}\n" for title, text in _sections(task, of_task)]
    return "\n".join(parts)


def _sections(task: Task, summaries: Sequence[Summary]) -> Iterator[tuple[str, str]]:
    for loss in DRIVERS[task]:
        yield f"{loss.capitalize()}: over all tables", medians(summaries, loss)
        yield f"{loss.capitalize()}: labels needed, of those bought", shares(summaries, loss)
    yield "Own loss beside the unweighted one, under the same belief", own_and_unweighted(task, summaries)
    yield "Left out of medians", left_out(task, summaries)
    yield "Log density of test rows, labels chosen at random", densities(summaries)
    yield "Promised and delivered", promises(task, summaries)


def medians(summaries: Sequence[Summary], loss: str) -> str:
    """For each pair the median share, the geometric mean of final ratios, and in how many problems it is worse."""
    corrected = worse_cases(summaries, "p_worse")
    lines = []
    for pair in _pairs(summaries, loss):
        everything = list(_cases(summaries, loss, pair))
        found = [(each, case) for each, case in everything if each.counts[loss]]
        if not found:
            continue
        reached = sum(math.isfinite(case.share.value) for _, case in found)
        count = sum(corrected[_name(each, case)] < ALPHA for each, case in everything)
        share = median_over([case.share.value for _, case in found])
        ratio = geometric_mean([case.ratio.value for _, case in found])
        lines.append([pair, len(found), _percent(share), f"{reached} of {len(found)}", _ratio(ratio), count])
    head = [
        "belief, strategy",
        "tables",
        "median of labels needed",
        "reached",
        "final loss, ratio",
        "worse than random",
    ]
    return table(head, lines) if lines else "No table counts."


def shares(summaries: Sequence[Summary], loss: str) -> str:
    """Each table in a line, each pair in a column."""
    pairs = _pairs(summaries, loss)
    lines = []
    for each in summaries:
        found = {case.pair: case for case in each.cases if case.loss == loss}
        cells = [_percent(found[pair].share) if pair in found else "" for pair in pairs]
        lines.append([each.table if each.counts[loss] else f"({each.table})", each.runs, *cells])
    return table(["table", "runs", *pairs], lines)


def own_and_unweighted(task: Task, summaries: Sequence[Summary]) -> str:
    """For each loss and belief: labels and final loss of the own loss over those of the unweighted objective."""
    corrected = worse_cases(summaries, "p_worse_against")
    lines = []
    for loss in DRIVERS[task]:
        for belief in dict.fromkeys(case.belief for each in summaries for case in each.cases):
            everything = [
                (each, case)
                for each in summaries
                for case in each.cases
                if case.belief == belief and case.loss == loss and case.ratio_against is not None
            ]
            found = [(each, case) for each, case in everything if each.counts[loss]]
            if not found:
                continue
            labels = [case.against.value for _, case in found if case.against and not math.isnan(case.against.value)]
            ratios = [case.ratio_against.value for _, case in found if case.ratio_against is not None]
            lower = float(np.mean([value < 1.0 for value in ratios]))
            count = sum(corrected[_name(each, case)] < ALPHA for each, case in everything)
            needed = _percent(median_over(labels)) if labels else "neither reached"
            lines.append([loss, belief, len(found), needed, _ratio(geometric_mean(ratios)), f"{lower:.0%}", count])
    head = ["loss", "belief", "tables", "median of labels", "final loss, ratio", "lower in", "worse"]
    return table(head, lines) if lines else "No table counts."


def left_out(task: Task, summaries: Sequence[Summary]) -> str:
    """Problems that do not count, and rivals that did not finish."""
    wanted = f"a significant fall of {LEAST_FALL:.0%} at least"
    lines = [
        f"- {each.table}, {loss}: (reference, random) fell by {each.falls[loss]:.0%}; {wanted} is needed"
        for each in summaries
        for loss in DRIVERS[task]
        if not each.counts[loss]
    ]
    lines += [f"- {what}: {why}" for each in summaries for what, why in each.left_out.items()]
    return "\n".join(lines) or "Nothing."


def densities(summaries: Sequence[Summary]) -> str:
    """For each belief: in how many tables it is better than the reference, singly and in pairs."""
    beliefs = dict.fromkeys(each.belief for summary in summaries for each in summary.densities)
    lines = []
    for belief in (each for each in beliefs if each != REFERENCE):
        for place in (0, 1):
            gaps = [_gap(summary, belief, place) for summary in summaries]
            known = np.asarray([gap for gap in gaps if gap is not None])
            if len(known):
                better = [f"{value:.0%}" for value in (known > 0).mean(axis=0)]
                means = [f"{value:+.3f}" for value in known.mean(axis=0)]
                at = "first" if place == 0 else "last"
                lines.append([belief, f"{at} count", len(known), better[0], means[0], better[1], means[1]])
    head = ["belief", "labels", "tables", "single: better in", "mean gain", "pairs: better in", "mean gain"]
    counts = sorted({tuple(each.counted) for summary in summaries for each in summary.densities})
    listed = "; ".join(" and ".join(map(str, each)) for each in counts)
    text = f"After {listed} labels bought, against the reference belief with the same labels."
    return f"{text}\n\n{table(head, lines)}" if lines else f"{text} No other belief was run."


def _gap(summary: Summary, belief: str, place: int) -> tuple[float, float] | None:
    found = {each.belief: each for each in summary.densities if each.strategy == RANDOM}
    if belief not in found or REFERENCE not in found:
        return None
    ours, base = found[belief], found[REFERENCE]
    return (
        ours.log_density[place] - base.log_density[place],
        ours.joint_log_density[place] - base.joint_log_density[place],
    )


def promises(task: Task, summaries: Sequence[Summary]) -> str:
    """For each loss and belief: the median over tables of what was delivered of what was promised."""
    lines = []
    for loss in dict.fromkeys((*DRIVERS[task], UNWEIGHTED[task])):
        for belief in dict.fromkeys(each.belief for summary in summaries for each in summary.promises):
            found = [
                each for summary in summaries for each in summary.promises if (each.belief, each.loss) == (belief, loss)
            ]
            kept = [each.delivered.value / each.promised for each in found if each.promised > 0]
            if kept:
                lines.append([loss, belief, len(kept), _percent(median_over(kept))])
    text = "The fall of the loss over a run, of the sum of the reductions that its labels were bought for."
    return f"{text}\n\n{table(['loss', 'belief', 'tables', 'delivered of promised, median'], lines)}"


def worse_cases(summaries: Sequence[Summary], field: str) -> dict[str, float]:
    """Adjusted p-values by case; Holm's correction is over all tables and losses of a pair of belief and strategy."""
    adjusted: dict[str, float] = {}
    pairs = dict.fromkeys(_group(case) for each in summaries for case in each.cases)
    for pair in pairs:
        found = {
            _name(each, case): getattr(case, field)
            for each in summaries
            for case in each.cases
            if _group(case) == pair and getattr(case, field) is not None and case.loss in DRIVERS[each.task]
        }
        adjusted |= holm(found)
    return adjusted


def _group(case: Case) -> tuple[str, str, bool]:
    return case.belief, case.strategy, case.unweighted


def _name(summary: Summary, case: Case) -> str:
    return f"{summary.table}: {case.loss}: {case.pair}"


def _pairs(summaries: Sequence[Summary], loss: str) -> list[str]:
    """Belief by belief, each with its strategies in their order."""
    found = dict.fromkeys(case.pair for each in summaries for case in each.cases if case.loss == loss)
    order = list(dict.fromkeys(case.belief for each in summaries for case in each.cases))
    return sorted(found, key=lambda pair: order.index(pair.split(", ")[0]))


def _cases(summaries: Sequence[Summary], loss: str, pair: str) -> Iterator[tuple[Summary, Case]]:
    for each in summaries:
        yield from ((each, case) for case in each.cases if case.loss == loss and case.pair == pair)


def _run(summaries: Sequence[Summary]) -> str:
    runs, bought = ({getattr(each, name) for each in summaries} for name in ("runs", "bought"))
    spans = [f"{min(each)}" if len(each) == 1 else f"{min(each)} to {max(each)}" for each in (runs, bought)]
    return f"{counted(len(summaries), 'table')}, {spans[0]} runs of {spans[1]} labels bought."


def _percent(estimate: Estimate) -> str:
    return f"{_share(estimate.value)} ({_share(estimate.low)} to {_share(estimate.high)})"


def _share(value: float) -> str:
    if math.isnan(value):
        return "neither reached"
    return f"{value:.0%}" if math.isfinite(value) else "not reached"


def _ratio(estimate: Estimate) -> str:
    return f"{number(estimate.value)} ({number(estimate.low)} to {number(estimate.high)})"


def draw(summaries: Sequence[Summary], folder: Path) -> list[str]:
    """PNG files in a folder, by name: for each task the shares of all problems, and mean curves."""
    names = []
    for task in _TASKS:
        if of_task := [each for each in summaries if each.task == task]:
            for kind, drawer in (("shares", _draw_shares), ("curves", _draw_curves)):
                name = f"{kind}_{task}.png"
                _panels(task, of_task, folder / name, drawer)
                names.append(name)
    return names


def _panels(task: Task, summaries: Sequence[Summary], path: Path, drawer: Callable[..., None]) -> None:
    """One panel for each loss; a pair of belief and strategy has one colour and one place in all of them."""
    from matplotlib import pyplot

    losses = DRIVERS[task]
    pairs = max((_shown(summaries, loss) for loss in losses), key=len)
    colours = dict(zip(pairs, ("0.45", "#30638e", "#e09f3e", "#d1495b", "#6a994e", "#7b2cbf"), strict=False))
    size = (4.2 * len(losses), 4.4)
    figure, axes = pyplot.subplots(1, len(losses), figsize=size, layout="constrained", sharey=drawer is _draw_shares)
    for axis, loss in zip(np.atleast_1d(axes), losses, strict=True):
        drawer(axis, [each for each in summaries if each.counts[loss]], loss, colours)
        axis.set_title(loss)
    if drawer is _draw_curves:
        np.atleast_1d(axes)[0].set_ylabel("loss, of (reference, random) at the end")
        lines = {line.get_label(): line for axis in np.atleast_1d(axes) for line in axis.lines}
        known = [pair for pair in colours if pair in lines]
        figure.legend([lines[pair] for pair in known], known, loc="outside lower center", ncols=len(known), fontsize=10)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def _shown(summaries: Sequence[Summary], loss: str) -> list[str]:
    """Random, unweighted and own loss under each belief: rivals are in the tables."""
    wanted = {case.pair for each in summaries for case in each.cases if case.strategy in (RANDOM, LOSS)}
    return [pair for pair in _pairs(summaries, loss) if pair in wanted]


def _draw_shares(axis: Any, summaries: Sequence[Summary], loss: str, colours: Mapping[str, str]) -> None:
    """A dot for each table, a line at the median; what was never reached is beside 100%."""
    pairs = list(colours)
    for place, pair in enumerate(pairs):
        values = np.asarray([min(case.share.value, _NOT_REACHED) for _, case in _cases(summaries, loss, pair)])
        if len(values):
            axis.plot(values, np.full(len(values), place), "o", color=colours[pair], alpha=0.5, ms=6)
            axis.plot([np.median(values)] * 2, [place - 0.3, place + 0.3], color="0.1", lw=2)
    axis.axvline(1.0, color="0.3", lw=0.8)
    axis.set(yticks=range(len(pairs)), yticklabels=pairs, xlim=(-0.05, 1.3), xlabel="labels needed, of those bought")
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1.0, _NOT_REACHED], ["0", "25%", "50%", "75%", "100%", "never"])
    axis.set_ylim(len(pairs) - 0.5, -0.5)


def _draw_curves(axis: Any, summaries: Sequence[Summary], loss: str, colours: Mapping[str, str]) -> None:
    """The geometric mean over tables of smoothed curves, in units of what (reference, random) has at the end."""
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    for pair in _shown(summaries, loss):
        logs = []
        for each, case in _cases(summaries, loss, pair):
            base = next(c for c in each.cases if c.loss == loss and c.belief == REFERENCE and c.strategy == RANDOM)
            curve, end = smoothed(np.asarray(case.curve)), smoothed(np.asarray(base.curve))[-1]
            if curve[-1] > 0 and end > 0:
                logs.append(np.log(curve / end))
        lengths = {len(each) for each in logs}
        if len(lengths) == 1:
            axis.plot(np.exp(np.mean(logs, axis=0)), label=pair, color=colours[pair], lw=1.8)
    axis.axhline(1.0, color="0.3", lw=0.8)
    axis.set(xlabel="labels bought", yscale="log")
    low, high = axis.get_ylim()
    axis.set_yticks([value for value in _TICKS if low <= value <= high])
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.yaxis.set_minor_formatter(NullFormatter())
