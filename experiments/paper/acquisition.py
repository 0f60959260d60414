"""The paper's acquisition figures: which points of the problem with one input are bought, and why.

4 rows by iterations: prediction and data under EVR, both scores there; the same under EVR_w. One run of Table 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.paper import table2
from experiments.paper.figures import COLOURS, MATH, png
from experiments.paper.study import Place
from experiments.paper.table2 import Table2
from stakes import SquaredError, score
from stakes.models import belief_of
from stakes.simulation import Simulation

ITERATIONS = (0, 1, 3, 6, 10, 15)
_LABELS = ("data by EVR", "scores (best = 1)", f"data by {MATH['EVR_w']}", "scores (best = 1)")


def acquisition_figures() -> Iterator[tuple[str, Any]]:
    """Both, by name: w = exp(z) and exp(-z)."""
    for rate in (1.0, -1.0):
        yield f"acquisition-rate{rate:g}", acquisition_figure(replace(table2.PUBLISHED, rate=rate), ITERATIONS)


def acquisition_pictures() -> Iterator[tuple[str, bytes]]:
    """The same as pictures."""
    for name, figure in acquisition_figures():
        yield name, png(figure)


def acquisition_figure(study: Table2, iterations: Sequence[int]) -> Any:
    """A column for each iteration."""
    from matplotlib.figure import Figure

    found = replace(study, budget=max(iterations) + 1, draws=1).simulate(1, Place(None, None))
    figure = Figure(figsize=(2.3 * len(iterations) + 0.6, 7.6), layout="constrained")
    axes = figure.subplots(4, len(iterations), sharex=True, sharey="row", squeeze=False)
    for row, strategy in ((0, "plain"), (2, "loss")):
        for column, bought in enumerate(iterations):
            _column(axes[row, column], axes[row + 1, column], study, found, strategy, bought)
            axes[0, column].set_title(f"iteration {bought}")
    for row, label in enumerate(_LABELS):
        axes[row, 0].set_ylabel(label)
    for axis in axes[-1]:
        axis.set_xlabel("x")
    above, below = (axes[row, 0].get_legend_handles_labels() for row in (0, 1))
    figure.legend(above[0] + below[0], above[1] + below[1], loc="outside lower center", ncols=6, frameon=False)
    return figure


def _column(above: Any, below: Any, study: Table2, found: Simulation, strategy: str, bought: int) -> None:
    """What is believed after some labels, and what the next would be worth by either objective."""
    trial, acquired = found.trials[0], found.acquired[found.strategies.index(strategy), 0]
    known = np.concatenate([trial.initial, acquired[:bought]])
    model = study.model.fit(trial.X[known], trial.y[known])
    _prediction(above, model, trial, known)
    pool = np.setdiff1d(trial.pool, known)
    belief = belief_of(model, trial.X[pool], trial.X[trial.contexts])
    for name, loss in (("EVR", SquaredError()), ("EVR_w", study.loss)):
        worth = np.asarray(score(loss, belief))
        below.plot(trial.X[pool, 0], worth / worth.max(), color=COLOURS[name], lw=1.2, label=MATH.get(name, name))
    below.axvline(float(trial.X[acquired[bought], 0]), color="0.4", lw=1, ls=":", label="labelled next")


def _prediction(axis: Any, model: Any, trial: Any, known: Any) -> None:
    """The function, the labels so far, and the prediction with two standard deviations."""
    mean, sd = model.predict(trial.X[trial.test], return_std=True)
    tests = trial.X[trial.test, 0]
    axis.fill_between(tests, mean - 2 * sd, mean + 2 * sd, color="0.88", lw=0)
    axis.plot(tests, trial.y[trial.test], color="#e69f00", lw=1.2, label="truth")
    axis.plot(tests, mean, color="black", lw=1.2, label="prediction ± 2 sd")
    axis.plot(trial.X[known, 0], trial.y[known], "o", ms=3.5, color="black", label="labels so far")
