"""Learning curves and acquired labels of a simulation, drawn with matplotlib, which is imported when it is needed.

Sizes: R runs, B labels acquired, T steps, C classes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stakes._utils.tables import Host
from stakes.exceptions import StakesError
from stakes.files.write import checked_output, output_file
from stakes.simulation.result import mean_of

if TYPE_CHECKING:
    from stakes.simulation.result import PromiseRecord, Simulation

PICTURES = (".png", ".svg", ".pdf")
_LACKING = "plots need matplotlib: pip install 'stakes[plot]'"


def plot_curves(simulation: Simulation, metric: str, ax: Any) -> Any:
    """Means over runs after 0 .. B labels, with 95% t intervals at each step."""
    ax = _axes(ax)
    for strategy in simulation.strategies:
        _band(ax, np.arange(simulation.n + 1), simulation.curves(strategy, metric), strategy)
    ax.set(xlabel="labels bought", ylabel=f"{metric}, mean on test rows")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend()
    return ax


def plot_acquired(simulation: Simulation, ax: Any) -> Any:
    """Shares of classes among all labels bought, or the mean target bought at each step; the pool for comparison."""
    ax = _axes(ax)
    if simulation.classes is None:
        for strategy, values in zip(simulation.strategies, simulation.bought, strict=True):
            _band(ax, np.arange(1, simulation.n + 1), values, strategy)
        ax.axhline(np.mean([each.mean() for each in _pools(simulation)]), color="grey", linestyle=":", label="the pool")
        ax.set(xlabel="labels bought", ylabel="target of the label bought")
    else:
        _bars(simulation, ax)
    ax.legend()
    return ax


def plot_calibration(record: PromiseRecord, ax: Any) -> Any:
    """Mean delivered over mean promised of fifths of all stretches, by promise, with 95% intervals."""
    ax = _axes(ax)
    promised, delivered = record.promised.ravel(), record.delivered.ravel()
    parts = np.array_split(np.argsort(promised, kind="stable"), min(5, len(promised)))
    means = [mean_of(delivered[part]) for part in parts]
    places = np.asarray([promised[part].mean() for part in parts])
    values = np.asarray([each.value for each in means])
    ends = np.asarray([[each.value - each.low, each.high - each.value] for each in means]).T
    ax.errorbar(places, values, np.where(np.isfinite(ends), ends, 0.0), fmt="o-", capsize=3, label=record.strategy)
    top = float(places.max())
    ax.plot([0.0, top], [0.0, top], color="grey", linestyle=":", label="as promised")
    ax.axhline(0.0, color="grey", linewidth=0.6)
    ax.set(xlabel="saving promised", ylabel=f"fall of the {record.metric} on test rows")
    ax.legend()
    return ax


def check_picture(
    path: str | os.PathLike[str], *, inputs: Iterable[str | os.PathLike[str]] = (), overwrite: bool = False
) -> None:
    """Refuse a file that no picture can be written to."""
    if (kind := Path(path).suffix.lower()) not in PICTURES:
        raise StakesError(f"a picture ends in {', '.join(PICTURES)}; {path} ends in {kind!r}")
    checked_output(path, inputs=inputs, overwrite=overwrite)


def save_plots(simulation: Simulation, path: str | os.PathLike[str], overwrite: bool) -> None:
    """Learning curves and what was bought, side by side in one file."""
    check_picture(path, overwrite=overwrite)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(_LACKING) from error
    figure = Figure(figsize=(11.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_curves(simulation, "loss", left)
    plot_acquired(simulation, right)
    with output_file(path, overwrite=overwrite) as file:
        figure.savefig(file, format=Path(path).suffix.lower()[1:], dpi=150, facecolor="white")


def acquired_shares(simulation: Simulation) -> dict[str, Host]:
    """[C] for the pool, and for each strategy: the share of each class, in the mean of runs."""
    count = len(simulation.classes or ())
    labels = {"the pool": _pools(simulation), **dict(zip(simulation.strategies, simulation.bought, strict=True))}
    return {
        name: np.mean([np.bincount(each, minlength=count) / each.size for each in values], axis=0)
        for name, values in labels.items()
    }


def _pools(simulation: Simulation) -> list[Host]:
    """R: the targets of rows that could be acquired."""
    return [targets[each.pool] for targets, each in zip(simulation.targets, simulation.trials, strict=True)]


def _bars(simulation: Simulation, ax: Any) -> None:
    shares = acquired_shares(simulation)
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
        raise ImportError(_LACKING) from error
    return pyplot.subplots()[1]
