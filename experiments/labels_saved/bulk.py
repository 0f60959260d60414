"""The runs of the yardstick for numbers on a device of torch: all runs and strategies of a table advance together.

Splits, rows that random choice buys, losses and densities are those of the runs on the processor; hyperparameters are
other draws from the same posterior.

Sizes: R runs, G data sets (runs by strategies), S draws, T test rows, B labels bought.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.labels_saved.beliefs import DEFAULT
from experiments.labels_saved.densities import gaussian_log_densities, nearest
from experiments.labels_saved.loop import LOSS, RANDOM, counted, keys_of, missing_runs, settings_of
from experiments.labels_saved.problems import Problem, problems
from experiments.labels_saved.rivals import K_CENTRE, k_centre, random_order
from experiments.labels_saved.splits import split
from experiments.labels_saved.store import Key, Record, Store
from experiments.labels_saved.tables import Host, Table
from stakes.models import BayesianProcess
from stakes.simulation import Trial
from stakes.simulation.bulk import traces_in_bulk
from stakes.simulation.problem import Problem as Data
from stakes.simulation.store import Trace
from stakes.simulation.strategies import ExpectedReduction, checked_strategies


def carry_out_in_bulk(
    table: Table,
    store: Store,
    *,
    runs: int,
    bought: int,
    device: str,
    strategies: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> None:
    """Do all runs of the default belief on a table of numbers that the store has not."""
    settings = settings_of(table, bought)
    keys = [key for key in keys_of(table, DEFAULT) if strategies is None or key.strategy in strategies]
    missing = {run: tuple(which) for run, which in missing_runs(store, keys, settings, runs).items()}
    for which in sorted(set(missing.values()), key=len):
        wanted = [run for run, each in missing.items() if each == which]
        for key, record in _records(table, which, wanted, bought, device).items():
            store.add(key, record, settings)
        progress(f"{table.name}, {DEFAULT} on {device}: {len(wanted)} runs of {len(which)} strategies")


def _records(table: Table, keys: Sequence[Key], runs: Sequence[int], bought: int, device: str) -> dict[Key, Record]:
    losses, trials, start = problems(table), {run: split(table, run, bought) for run in runs}, time.perf_counter()
    densities = _Densities(table, [trials[run] for run in runs], len(keys), counted(bought))
    found = traces_in_bulk(
        BayesianProcess(),
        losses["squared error"].loss,
        {str(key): _rule(key, losses, trials, bought) for key in keys},
        {name: problem.loss for name, problem in losses.items()},
        {run: (Data(trial.X, trial.y, trial.y, None), trial) for run, trial in trials.items()},
        n=bought,
        seed=0,
        device=device,
        progress=lambda what, share: None,
        observe=densities,
    )
    seconds = (time.perf_counter() - start) / (len(runs) * len(keys))
    made = {}
    for place, key in enumerate(keys):
        unit = losses[key.driver].unit if key.strategy == LOSS else 1.0
        made[key] = _record([found[str(key), run] for run in runs], runs, losses, unit, densities.of(place), seconds)
    return made


def _rule(key: Key, losses: Mapping[str, Problem], trials: Mapping[int, Trial], bought: int) -> Any:
    """What a simulation in bulk takes for a strategy: a rule, or the rows of each run."""
    if key.strategy == LOSS:
        return ExpectedReduction(losses[key.driver].loss)
    if key.strategy == RANDOM:
        return {run: random_order(trial, bought, run) for run, trial in trials.items()}
    if key.strategy == K_CENTRE:
        return {run: k_centre(trial, bought) for run, trial in trials.items()}
    return checked_strategies([key.strategy])[key.strategy]


def _record(
    traces: Sequence[Trace],
    runs: Sequence[int],
    losses: Mapping[str, Problem],
    unit: float,
    densities: tuple[Host, Host],
    seconds: float,
) -> Record:
    curves = np.stack([trace.losses for trace in traces])  # [R, Q, B + 1]
    promised = np.stack([trace.promised for trace in traces])
    return Record(
        runs=np.asarray(runs),
        losses={name: curves[:, place] / problem.unit for place, (name, problem) in enumerate(losses.items())},
        acquired=np.stack([trace.acquired for trace in traces]),
        counted=np.asarray(counted(promised.shape[1])),
        log_density=densities[0],
        joint_log_density=densities[1],
        promised=promised / unit,
        seconds=np.full(len(runs), seconds),
    )


class _Densities:
    """Takes log densities on test rows when labels are counted."""

    def __init__(self, table: Table, trials: Sequence[Trial], strategies: int, at: tuple[int, int]) -> None:
        self.table, self.trials, self.strategies, self.at = table, trials, strategies, at
        self.found: dict[int, list[tuple[Host, Host]]] = {count: [] for count in at}

    def __call__(self, step: int, fits: Any, acquired: Host) -> None:
        """Of all data sets, in the order of runs."""
        if step not in self.at:
            return
        before = len(self.found[step])
        for place in range(len(fits)):
            trial = self.trials[(before + place) // self.strategies]
            few, test = fits.take([place]), trial.test
            partners = nearest(np.asarray(trial.X)[test])
            mean, variance = (each[0].cpu().numpy() for each in few.predicted(test[None]))  # [T]
            covariance = few.pair_covariances(test[None], test[partners][None])[0].cpu().numpy()
            single, joint = gaussian_log_densities(mean, variance, covariance, self.table.y[test], partners)
            self.found[step].append((single.mean(), joint.mean()))

    def of(self, place: int) -> tuple[Host, Host]:
        """[R, 2], [R, 2]: single and joint ones of the strategy at a place."""
        values = np.asarray([self.found[count] for count in self.at])[:, place :: self.strategies]  # [2, R, 2]
        return values[..., 0].T, values[..., 1].T
