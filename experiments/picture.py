"""Paired differences of every problem in one picture, in percent of the rival's loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.markdown import Outcomes
from stakes.simulation import Estimate, Simulation

_RIVALS = ("random", "plain")
_COLOURS = {-1: "#30638e", 0: "0.6", 1: "#d1495b"}  # helps, no significant difference, hurts


def draw(outcomes: Outcomes, path: Path) -> None:
    """A PNG: for each rival a panel, for each problem the difference after the last label and its 95% interval."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(_RIVALS), sharey=True, figsize=(9, 5), layout="constrained")
    for axis, rival in zip(axes, _RIVALS, strict=True):
        axis.axvline(0.0, color="0.3", lw=0.8)
        for place, simulation in enumerate(outcomes.values()):
            _bar(axis, place, simulation, rival)
        axis.set(title=f"loss against {rival}", xlabel=f"final loss, % more than {rival} (left: the loss helps)")
    axes[0].set_yticks(range(len(outcomes)), [f"{n} {each.table}" for n, each in enumerate(outcomes, 1)])
    axes[0].invert_yaxis()
    figure.savefig(path, dpi=90)


def _bar(axis: Any, place: int, simulation: Simulation, rival: str) -> None:
    """One interval as a line; a mark at the mean."""
    gap, unit = simulation.compare("loss", rival).final, simulation.curves(rival)[:, -1].mean() / 100.0
    colour = _COLOURS[_sign(gap)]
    axis.plot([gap.low / unit, gap.high / unit], [place, place], color=colour, lw=3, solid_capstyle="butt")
    axis.plot(gap.value / unit, place, "o", color=colour, ms=6)


def _sign(gap: Estimate) -> int:
    return (-1 if gap.value < 0 else 1) if gap.significant else 0
