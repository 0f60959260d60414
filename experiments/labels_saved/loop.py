"""The runs of the yardstick on the processor: strategies side by side by `stakes.simulation`, runs in parallel.

All strategies of a run share its split and its random numbers, and a fit wherever they have the same labels. What does
not depend on a loss (random, the rivals) is run once and measured by all losses of the table.

Sizes: R runs, B labels bought.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import joblib
import numpy as np
from joblib import Parallel, delayed

from experiments.labels_saved.beliefs import model_of
from experiments.labels_saved.densities import log_densities
from experiments.labels_saved.problems import DRIVERS, UNWEIGHTED, Problem, problems
from experiments.labels_saved.rivals import (
    ERROR_REDUCTION,
    K_CENTRE,
    InOrder,
    NotFinishedError,
    expected_error_reduction,
    k_centre,
)
from experiments.labels_saved.splits import sizes, split
from experiments.labels_saved.store import Key, Record, Store
from experiments.labels_saved.tables import Table, Task
from stakes.simulation import Simulation, Trial, simulate_trials
from stakes.simulation.problem import FIT, random_stream
from stakes.simulation.runner import refitted
from stakes.simulation.strategies import ExpectedReduction

RANDOM, LOSS = "random", "loss"
RIVALS: dict[Task, tuple[str, ...]] = {
    "numbers": ("predictive variance", K_CENTRE),
    "classes": ("margin", "predictive entropy", "bald", "predictive variance", K_CENTRE, ERROR_REDUCTION),
}
"""For numbers entropy and BALD choose as predictive variance does: the noise is the same everywhere."""
DENSITIES_AT = 20
"""Labels bought, after which densities are taken; they are taken at the end, too."""
SECONDS = 600.0  # that a rival may take for the choices of one run
_VERSION = 1  # of what is measured: runs of another are not mixed with these


def keys_of(table: Table, belief: str) -> list[Key]:
    """All strategies under a belief: random, by each loss and the unweighted one, and the rivals."""
    drivers = dict.fromkeys((UNWEIGHTED[table.task], *DRIVERS[table.task]))
    return [
        Key(table.name, belief, RANDOM),
        *(Key(table.name, belief, LOSS, driver) for driver in drivers),
        *(Key(table.name, belief, rival) for rival in RIVALS[table.task]),
    ]


def settings_of(table: Table, bought: int) -> dict[str, Any]:
    """What decides the numbers of a run, apart from the code."""
    return {
        "yardstick": _VERSION,
        "data": joblib.hash((table.X, table.y)),
        "sizes": asdict(sizes(table, bought)),
        "counted": list(counted(bought)),
    }


def counted(bought: int) -> tuple[int, int]:
    """After how many labels bought densities are taken."""
    return min(DENSITIES_AT, bought), bought


def carry_out(
    table: Table,
    belief: str,
    store: Store,
    *,
    runs: int,
    bought: int,
    jobs: int = 1,
    strategies: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """Do all runs of a belief on a table that the store has not; what was left out, and why.

    `strategies` are names such as "random" and "loss"; None: all.
    """
    settings = settings_of(table, bought)
    keys = [key for key in keys_of(table, belief) if strategies is None or key.strategy in strategies]
    wanted = missing_runs(store, keys, settings, runs)
    tasks = [delayed(one_run)(table, run, which, bought) for run, which in wanted.items()]
    left_out: dict[str, str] = {}
    for count, outcome in enumerate(Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks), 1):
        for key, record in outcome.records.items():
            store.add(key, record, settings)
        left_out |= outcome.left_out
        progress(f"{table.name}, {belief}: {count} of {len(tasks)} runs")
    return left_out


def missing_runs(store: Store, keys: Sequence[Key], settings: Mapping[str, Any], runs: int) -> dict[int, list[Key]]:
    """What the store has not of runs 0 to `runs` - 1: by run, the keys to be done."""
    there = {key: store.load(key, settings) for key in keys}
    done = {key: set() if kept is None else set(kept.runs.tolist()) for key, kept in there.items()}
    wanted = {run: [key for key in keys if run not in done[key]] for run in range(runs)}
    return {run: which for run, which in wanted.items() if which}


@dataclass(frozen=True, eq=False)
class Outcome:
    """One run: a record of each strategy, and why some have none."""

    records: dict[Key, Record] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def one_run(table: Table, run: int, keys: Sequence[Key], bought: int) -> Outcome:
    """Run number `run` for some strategies of one belief."""
    outcome, losses = Outcome(), problems(table)
    trial = split(table, run, bought)
    rules: dict[str, Any] = {}
    for key in keys:
        try:
            rules[str(key)] = _rule(key, table, trial, losses, bought, run)
        except NotFinishedError as reason:
            outcome.left_out[f"{key.strategy} on {table.name}"] = str(reason)
    if not rules:
        return outcome
    start, model = time.perf_counter(), model_of(keys[0].belief, table, trial)
    classes = list(range(len(table.classes))) or None
    found = simulate_trials(
        model,
        losses[UNWEIGHTED[table.task]].loss,
        lambda random_state: trial,
        strategies=[name if rule is None else (name, rule) for name, rule in rules.items()],
        n=bought,
        runs=1,
        metrics=losses,
        classes=classes,
        random_state=run,
    )
    densities = _Densities(model, table, trial, run)
    seconds = (time.perf_counter() - start) / len(rules)
    for key in keys:
        if str(key) in rules:
            unit = losses[key.driver].unit if key.strategy == LOSS else 1.0
            outcome.records[key] = _record(found, str(key), unit, densities, run, seconds)
    return outcome


def _rule(key: Key, table: Table, trial: Trial, losses: Mapping[str, Problem], bought: int, run: int) -> Any:
    """What `simulate` takes for a strategy beside its name; None where the name says it."""
    if key.strategy == LOSS:
        return ExpectedReduction(losses[key.driver].loss)
    if key.strategy == K_CENTRE:
        return InOrder(trial.pool, k_centre(trial, bought))
    if key.strategy == ERROR_REDUCTION:
        return InOrder(trial.pool, expected_error_reduction(trial, len(table.classes), bought, SECONDS, run))
    return None


@dataclass(frozen=True, eq=False)
class _Densities:
    """Log densities on test rows after some labels of a run; strategies with the same labels share them."""

    model: Any
    table: Table
    trial: Trial
    run: int
    known: dict[tuple[int, ...], tuple[float, float]] = field(default_factory=dict)

    def after(self, acquired: Sequence[int]) -> tuple[float, float]:
        """Single and joint, of the model as `simulate` fitted it after these labels."""
        bought = tuple(int(each) for each in acquired)
        if bought not in self.known:
            rows = np.concatenate([self.trial.initial, np.asarray(bought, dtype=np.intp)])
            generator = random_stream(self.run, 0, len(bought), FIT)  # as `simulate` draws for its first run
            fitted = refitted(self.model, self.trial.X[rows], self.trial.y[rows], generator)
            classes = list(range(len(self.table.classes))) or None
            test = self.trial.test
            self.known[bought] = log_densities(fitted, self.trial.X[test], self.trial.y[test], classes, self.run)
        return self.known[bought]


def _record(found: Simulation, name: str, unit: float, densities: _Densities, run: int, seconds: float) -> Record:
    """Of one strategy in one run, whose loss is counted in units; arrays with a first axis of 1."""
    place = found.strategies.index(name)
    acquired = found.acquired[place]  # [1, B]
    at = counted(found.n)
    values = np.asarray([densities.after(acquired[0, :count]) for count in at])  # [2, 2]
    return Record(
        runs=np.asarray([run]),
        losses={metric: found.curves(name, metric) for metric in found.losses if metric != "loss"},
        acquired=acquired,
        counted=np.asarray(at),
        log_density=values[None, :, 0],
        joint_log_density=values[None, :, 1],
        promised=found.promised[place] / unit,
        seconds=np.asarray([seconds]),
    )
