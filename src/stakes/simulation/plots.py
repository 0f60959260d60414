"""Learning curves and what was bought, drawn with matplotlib, which only this file names.

Sizes: S strategies, R runs, B labels bought, C classes, n rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stakes.models.tables import Host
from stakes.simulation.intervals import mean_of

if TYPE_CHECKING:
    from stakes.simulation.result import Simulation


def plot_curves(simulation: Simulation, metric: str, ax: Any) -> Any:
    """Means over runs after 0 .. B labels, with 95% t intervals at each step."""
    ax = _axes(ax)
    for strategy in simulation.strategies:
        _band(ax, np.arange(simulation.budget + 1), simulation.curves(strategy, metric), strategy)
    ax.set(xlabel="labels bought", ylabel=f"{metric}, mean on test rows")
    ax.legend()
    return ax


def plot_acquired(simulation: Simulation, ax: Any) -> Any:
    """Shares of classes among all labels bought, or the mean target bought at each step; all rows for comparison."""
    ax = _axes(ax)
    if simulation.classes is None:
        for strategy, rows in zip(simulation.strategies, simulation.acquired, strict=True):
            _band(ax, np.arange(1, simulation.budget + 1), simulation.targets[rows], strategy)
        ax.axhline(simulation.targets.mean(), color="grey", linestyle=":", label="all rows")
        ax.set(xlabel="labels bought", ylabel="target of the label bought")
    else:
        _bars(simulation, ax)
    ax.legend()
    return ax


def class_shares(simulation: Simulation) -> dict[str, Host]:
    """[C] for each strategy, and for all rows: how the classes are shared out."""
    count = len(simulation.classes or ())
    bought = dict(zip(simulation.strategies, simulation.acquired, strict=True))
    labels = {"all rows": simulation.targets, **{name: simulation.targets[rows] for name, rows in bought.items()}}
    return {name: np.bincount(values.ravel(), minlength=count) / values.size for name, values in labels.items()}


def _bars(simulation: Simulation, ax: Any) -> None:
    shares = class_shares(simulation)
    width = 0.8 / len(shares)
    places = np.arange(len(simulation.classes or ()))
    for position, (name, heights) in enumerate(shares.items()):
        colour = {"color": "lightgrey"} if position == 0 else {}  # so that a strategy has one colour in all plots
        ax.bar(places + (position + 0.5) * width - 0.4, heights, width, label=name, **colour)
    ax.set(xticks=places, xticklabels=[str(each) for each in simulation.classes or ()], ylabel="share of labels bought")


def _band(ax: Any, steps: Host, values: Host, name: str) -> None:
    """The mean over runs of values [R, T], and its interval where it has ends."""
    estimates = [mean_of(column) for column in values.T]
    (line,) = ax.plot(steps, [each.value for each in estimates], label=name)
    low, high = (np.asarray([getattr(each, end) for each in estimates]) for end in ("low", "high"))
    shown = np.isfinite(low)
    ax.fill_between(steps, low, high, where=shown, color=line.get_color(), alpha=0.2, linewidth=0)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'stakes[plot]'") from error
    return pyplot.subplots()[1]
