"""What was bought, drawn, where every run has labels of its own."""

import numpy as np
import pytest

from stakes.simulation.plots import acquired_shares
from tests.simulation.simulation_cases import COSTS, Committee
from tests.simulation.trial_cases import per_class, trials


def test_plots_of_trials_whose_labels_differ_by_run():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    found = trials(runs=3)
    bought = found.plot_acquired(ax=figure.subplots())
    *means, pool = (each.get_ydata() for each in bought.get_lines())
    for strategy, heights in enumerate(means):
        wanted = [
            np.mean([trial.y[found.acquired[strategy, run, step]] for run, trial in enumerate(found.trials)])
            for step in range(3)
        ]
        assert heights == pytest.approx(wanted)
    assert pool[0] == pytest.approx(np.mean([trial.y[trial.pool].mean() for trial in found.trials]))


def test_shares_of_classes_are_means_over_runs():
    found = trials(per_class, loss=COSTS, model=Committee(classes=("a", "b", "c")), runs=3)
    shares = acquired_shares(found)
    bought = [np.mean(trial.y[found.acquired[2, run]] == "b") for run, trial in enumerate(found.trials)]
    assert shares["loss"][1] == pytest.approx(np.mean(bought))
    assert shares["the pool"][1] == pytest.approx(np.mean([np.mean(each.y[each.pool] == "b") for each in found.trials]))
