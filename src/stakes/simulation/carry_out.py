"""All runs of all strategies: those kept in a store, and those still to do; and what came of them.

Sizes: S strategies, R runs, Q metrics, B labels bought.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from stakes.simulation.describe import data_hash, described, versions
from stakes.simulation.loop import Trace, traces
from stakes.simulation.plan import Case, Plan
from stakes.simulation.progress import told
from stakes.simulation.result import Simulation
from stakes.simulation.store import Store, open_store


def carried_out(
    plan: Plan,
    cases: Sequence[Case],
    trial: str | None,
    store: str | os.PathLike[str] | None,
    n_jobs: int,
    progress: bool,
) -> Simulation:
    """The runs of `cases` [R]; `trial` says in words how they were drawn, None for splits of one table."""
    settings = _settings(plan, cases[0], trial)
    kept = None if store is None else open_store(store, {**settings, "versions": versions()})
    if kept is not None:
        for run, case in enumerate(cases):
            kept.keep_split(case.parts, run)
    found = _found(plan, cases, kept, n_jobs, progress)
    return _gathered(plan, cases, found, {**settings, "runs": len(cases)})


def _settings(plan: Plan, first: Case, trial: str | None) -> dict[str, Any]:
    """All that decides the numbers, in words and hashes that can be compared and kept; data are those of run 0."""
    data, parts = first.problem, first.parts
    return {
        "model": described(plan.model),
        "metrics": {name: described(each) for name, each in plan.metrics.items()},
        "strategies": {each.name: described(each.rule) for each in plan.strategies},
        "budget": plan.budget,
        "n_initial": len(parts.initial),
        "n_contexts": len(parts.contexts),
        "n_test": len(parts.test),
        "n_rows": data.size,
        "seed": plan.seed,
        "reseed": plan.reseed,
        "classes": None if data.classes is None else [str(each) for each in data.classes],
        "trial": trial,
        "X": data_hash(data.features),
        "y": data_hash(data.labels),
        "parts": data_hash([parts.initial, parts.pool, parts.contexts, parts.test]),
    }


def _found(
    plan: Plan, cases: Sequence[Case], kept: Store | None, n_jobs: int, progress: bool
) -> dict[tuple[int, int], Trace]:
    """By strategy and run: those kept, and those that were still to do."""
    tasks = [(strategy, run) for run in range(len(cases)) for strategy in range(len(plan.strategies))]
    found = {} if kept is None else {task: trace for task in tasks if (trace := kept.load(*task)) is not None}
    rest = {run: [s for s, r in tasks if r == run and (s, r) not in found] for run in range(len(cases))}
    jobs = [delayed(_run)(plan, cases[run], run, which, kept) for run, which in rest.items() if which]
    results: Iterator[Any] = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
    for each in told(results, len(jobs), progress):
        found |= each
    return found


def _run(plan: Plan, case: Case, run: int, which: Sequence[int], kept: Store | None) -> dict[tuple[int, int], Trace]:
    """Some strategies of a run, on one thread: sums in another order, on more of them, would differ in the last bit."""
    with threadpool_limits(1):
        made = traces(plan, [plan.strategies[each] for each in which], run, case)
    if kept is not None:
        for each, trace in zip(which, made, strict=True):
            kept.save(trace, each, run)
    return {(each, run): trace for each, trace in zip(which, made, strict=True)}


def _gathered(
    plan: Plan, cases: Sequence[Case], found: dict[tuple[int, int], Trace], settings: dict[str, Any]
) -> Simulation:
    def stacked(field: str) -> Any:
        rows = [[getattr(found[s, run], field) for run in range(len(cases))] for s in range(len(plan.strategies))]
        return np.asarray(rows)

    losses = stacked("losses")  # [S, R, Q, B + 1]
    return Simulation(
        strategies=tuple(each.name for each in plan.strategies),
        losses={name: losses[:, :, position] for position, name in enumerate(plan.metrics)},
        acquired=stacked("acquired"),
        trials=tuple(each.parts for each in cases),
        targets=tuple(each.problem.targets for each in cases),
        classes=cases[0].problem.classes,
        fit_seconds=stacked("fit_seconds"),
        score_seconds=stacked("score_seconds"),
        settings=settings,
        versions=versions(),
    )
