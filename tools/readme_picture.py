"""The picture of the README and the site: loss against labels bought, by stakes and at random, from stored results.

Run: python tools/readme_picture.py. It writes docs/labels_saved.svg from experiments/results/labels_saved.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from experiments.labels_saved.measures import median_over
from experiments.labels_saved.summary import Case, Summary, read

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results" / "labels_saved"
PICTURE = ROOT / "docs" / "labels_saved.svg"
PANELS = {  # the loss, and how a person would say it
    "threshold": "A number, and a decision at a threshold",
    "cost of a miss": "Classes, and a missed rare class costs 10",
}
OURS, RANDOM = ("default", "loss"), ("reference", "random")
_COLOURS = {OURS: "#30638e", RANDOM: "#8a8a8a"}


def case_of(summary: Summary, loss: str, pair: tuple[str, str]) -> Case:
    """What one pair of belief and strategy did on a table, by a loss."""
    (found,) = (
        case
        for case in summary.cases
        if (case.belief, case.strategy) == pair and case.loss == loss and not case.unweighted
    )
    return found


def counted(loss: str, summaries: list[Summary]) -> list[Summary]:
    """The tables whose medians count: random labels lower the loss there."""
    return [each for each in summaries if each.counts.get(loss)]


def curves(loss: str, summaries: list[Summary]) -> dict[tuple[str, str], np.ndarray]:
    """The loss after each label over that of random choice at the start, geometric means over tables."""
    found = {}
    for pair in (RANDOM, OURS):
        logs = [
            np.log(np.asarray(case_of(each, loss, pair).curve) / case_of(each, loss, RANDOM).curve[0])
            for each in counted(loss, summaries)
        ]
        found[pair] = np.exp(np.mean(logs, axis=0))
    return found


def needed(loss: str, summaries: list[Summary]) -> float:
    """The median over tables of the share of random's labels that stakes needs."""
    return float(median_over([case_of(each, loss, OURS).share.value for each in counted(loss, summaries)]).value)


def draw(path: Path) -> None:
    """Write the picture."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    summaries = read(RESULTS)
    settings: dict[str, Any] = {"svg.fonttype": "none", "svg.hashsalt": "stakes", "font.size": 11}
    with plt.rc_context(settings):
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", facecolor="white")
        for axis, (loss, title) in zip(axes, PANELS.items(), strict=True):
            lines = curves(loss, summaries)
            last = len(lines[RANDOM]) - 1
            for pair, line in lines.items():
                axis.plot(100 * line, color=_COLOURS[pair], lw=2.5, label="stakes" if pair == OURS else "random")
            share = needed(loss, summaries)
            assert math.isfinite(share)
            tables = len(counted(loss, summaries))
            axis.set(xlim=(0, last), ylim=(0, 105), xlabel="labels bought")
            axis.set_title(f"{title}\n{share:.0%} of random's labels do, median of {tables} tables", fontsize=11)
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("loss, % of that at the start")
        axes[0].legend(frameon=False, loc="lower left")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    draw(PICTURE)
    print(f"wrote {PICTURE.relative_to(ROOT)}")
