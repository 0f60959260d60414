"""The paper's figures in its layout: which points are bought and why, losses as labels come, shares of classes.

Needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper import table2
from experiments.paper.study import Place
from experiments.paper.summary import Summary
from experiments.paper.table2 import Table2
from stakes import SquaredError, score
from stakes.models import belief_of
from stakes.simulation import Simulation

ITERATIONS = (0, 1, 3, 6, 10, 15)
_COLOURS = {"EVR": "#30638e", "EPIG": "#30638e", "EVR_w": "#d1495b", "EPIG_w": "#d1495b", "Random": "0.5"}


def draw(summaries: Sequence[Summary], folder: Path) -> list[Path]:
    """PNG files: both acquisition figures, the losses of each summary, and shares of classes where there are any."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [acquisition(replace(table2.PUBLISHED, rate=rate), folder) for rate in (1.0, -1.0)]
    made += [losses(each, folder) for each in summaries]
    return made + [shares(each, folder) for each in summaries if each.shares]


def acquisition(study: Table2, folder: Path, iterations: Sequence[int] = ITERATIONS) -> Path:
    """4 rows by iterations: prediction and data under EVR, both scores there; the same under EVR_w."""
    from matplotlib import pyplot

    found = replace(study, budget=max(iterations) + 1, draws=1).simulate(1, Place(None, None))
    figure, axes = pyplot.subplots(
        4, len(iterations), figsize=(14, 8), sharex=True, layout="constrained", squeeze=False
    )
    for row, strategy in ((0, "plain"), (2, "loss")):
        for column, bought in enumerate(iterations):
            _column(axes[row, column], axes[row + 1, column], study, found, strategy, bought)
            axes[0, column].set_title(f"iteration {bought}")
    for row, label in enumerate(("data by EVR", "scores", "data by EVR_w", "scores")):
        axes[row, 0].set_ylabel(label)
    return _saved(figure, folder / f"{study.name}-acquisition.png")


def _column(above: Any, below: Any, study: Table2, found: Simulation, strategy: str, bought: int) -> None:
    """What is believed after some labels, and what the next would be worth by either objective."""
    trial, acquired = found.trials[0], found.acquired[found.strategies.index(strategy), 0]
    known = np.concatenate([trial.initial, acquired[:bought]])
    model = study.model.fit(trial.X[known], trial.y[known])
    mean, sd = model.predict(trial.X[trial.test], return_std=True)
    tests, pool = trial.X[trial.test, 0], np.setdiff1d(trial.pool, known)
    above.plot(tests, trial.y[trial.test], color="0.6", lw=1)
    above.plot(tests, mean, color="black", lw=1)
    above.fill_between(tests, mean - 2 * sd, mean + 2 * sd, color="0.85")
    above.plot(trial.X[known, 0], trial.y[known], ".", color="black")
    belief = belief_of(model, trial.X[pool], trial.X[trial.contexts])
    for name, loss in (("EVR", SquaredError()), ("EVR_w", study.loss)):
        worth = np.asarray(score(loss, belief))
        below.plot(trial.X[pool, 0], worth / worth.max(), color=_COLOURS[name], lw=1, label=name)
    below.axvline(float(trial.X[acquired[bought], 0]), color="0.6", lw=0.8, ls=":")


def losses(summary: Summary, folder: Path) -> Path:
    """Mean log10 losses with their standard errors, a panel for each metric."""
    from matplotlib import pyplot

    metrics = list(dict.fromkeys(point.metric for point in summary.points))
    figure, axes = pyplot.subplots(
        1, len(metrics), figsize=(4 * len(metrics), 3.2), layout="constrained", squeeze=False
    )
    for axis, metric in zip(axes[0], metrics, strict=True):
        for strategy in dict.fromkeys(point.strategy for point in summary.points):
            own = [each for each in summary.points if (each.strategy, each.metric) == (strategy, metric)]
            _band(axis, [(each.labels, each.log10_mean, each.log10_sem) for each in own], strategy)
        axis.set(title=metric, xlabel="labels bought", ylabel="mean of log10")
    axes[0, 0].legend()
    return _saved(figure, folder / f"{summary.name}-losses.png")


def shares(summary: Summary, folder: Path) -> Path:
    """The share of each class among all labels so far, a panel for each class."""
    from matplotlib import pyplot

    names = list(dict.fromkeys(each.name for each in summary.shares))
    figure, axes = pyplot.subplots(1, len(names), figsize=(2.2 * len(names), 2.6), sharey=True, layout="constrained")
    for axis, name in zip(np.atleast_1d(axes), names, strict=True):
        for strategy in dict.fromkeys(each.strategy for each in summary.shares):
            own = [each for each in summary.shares if (each.strategy, each.name) == (strategy, name)]
            _band(axis, [(each.labels, each.mean, each.sem) for each in own], strategy)
        axis.set(title=name, xlabel="labels bought")
    return _saved(figure, folder / f"{summary.name}-shares.png")


def _band(axis: Any, points: Sequence[tuple[int, float, float]], strategy: str) -> None:
    labels, mean, sem = np.asarray(points, dtype=float).T
    colour = _COLOURS.get(strategy, "#66a182")
    axis.plot(labels, mean, color=colour, lw=1.2, label=strategy)
    axis.fill_between(labels, mean - sem, mean + sem, color=colour, alpha=0.25, lw=0)


def _saved(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.savefig(path, dpi=80)
    pyplot.close(figure)
    return path
