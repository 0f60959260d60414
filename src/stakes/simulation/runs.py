"""The one call: repeated loops on labelled data, and what came of them.

Sizes: n rows, p features, S strategies, R runs, B labels bought.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from stakes.losses import AnyLoss, DistributionLoss, Loss
from stakes.ranking.choose import warn_of_trained_weights
from stakes.simulation.describe import data_hash, described, versions
from stakes.simulation.loop import Plan, Trace
from stakes.simulation.problem import plain_loss, problem
from stakes.simulation.progress import told
from stakes.simulation.result import Simulation
from stakes.simulation.splits import sizes
from stakes.simulation.store import Store, open_store
from stakes.simulation.strategies import Strategy, StrategyLike, checked_strategies


def simulate(
    X: Any,  # noqa: N803 (as everyone writes it)
    y: Any,
    loss: AnyLoss,
    model: Any,
    *,
    strategies: Sequence[StrategyLike] = ("random", "plain", "loss"),
    budget: int = 30,
    runs: int = 10,
    seed: int = 0,
    n_initial: int | None = None,
    n_contexts: int | None = None,
    n_test: int | None = None,
    metrics: Mapping[str, AnyLoss] | None = None,
    classes: Sequence[Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    progress: bool = True,
) -> Simulation:
    """Whether choosing labels by `loss` helps on data whose labels [n] are known, told by `runs` repeated loops.

    Each run splits the rows anew into initial labels, contexts (that stand for the future), test rows and the pool:
    random for reals, stratified for classes, with one initial label of each class where there are enough. By default
    10 initial labels (2 a class if that is more), a fifth of the rows but at most 200 contexts, three tenths but at
    most 1000 test rows. All strategies of a run share its split and its chance (every `random_state` of the model, the
    draws of beliefs, the order of ties). A loop fits a clone of `model` to the labels so far, answers the test rows as
    best it can for each metric, and buys the label that the strategy scores highest, `budget` times.

    Strategies are "random", "plain" (the objective of the unweighted loss: SquaredError for reals, LogLoss for
    classes), "loss" (that of `loss`), the names in `stakes.acquisition.baselines.BASELINES`, or pairs of a name and a
    function (belief, loss, rng) -> scores [N]. Where no label is worth anything, "plain" and "loss" go by
    `stakes.acquisition.fallback_scores`. Scores within 1e-9 of the best tie. `metrics` are losses by name, beside
    `loss` itself, which is called "loss"; by default the plain one, called "plain".

    `classes` are all classes in the order of the loss; by default those of y, rising. A `store` is a folder in which
    finished loops are kept: the same call goes on where it was killed, and with more `runs` adds to them; other
    settings, data or versions of libraries are refused. With `n_jobs` joblib runs loops in other processes, each on one
    thread, so that results are the same to the last bit however many there are; adapters and forms registered by hand
    are known there only if the model's module registers them.
    """
    if isinstance(loss, type) or not isinstance(loss, Loss | DistributionLoss):
        raise TypeError(f"loss must be a loss such as SquaredError(); got {loss!r}")
    if not isinstance(runs, int | np.integer) or runs < 1:
        raise ValueError(f"runs must be a whole number, 1 or more; got {runs!r}")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number, 0 or more; got {seed!r}")
    data = problem(X, y, loss, model, classes)
    warn_of_trained_weights(model, loss)
    parts = sizes(data, budget, n_initial, n_contexts, n_test)
    plan = Plan(data, loss, _metrics(loss, metrics), model, parts, int(seed))
    chosen = checked_strategies(strategies)
    settings = _settings(plan, chosen)
    kept = None if store is None else open_store(store, {**settings, "versions": versions()})
    traces = _traces(plan, chosen, int(runs), kept, n_jobs, progress)
    return _gathered(plan, chosen, traces, {**settings, "runs": int(runs)})


def _metrics(loss: AnyLoss, given: Mapping[str, AnyLoss] | None) -> dict[str, AnyLoss]:
    """The loss first, then the others."""
    if given is None:
        plain = plain_loss(loss)
        given = {} if described(plain) == described(loss) else {"plain": plain}
    if "loss" in given:
        raise ValueError('the metric "loss" is the loss itself; give the others other names')
    for name, each in given.items():
        if not isinstance(each, Loss | DistributionLoss) or type(each.domain) is not type(loss.domain):
            raise TypeError(f"metric {name!r} must be a loss about the same kind of target as {loss!r}; got {each!r}")
    return {"loss": loss, **given}


def _settings(plan: Plan, chosen: tuple[Strategy, ...]) -> dict[str, Any]:
    """All that decides the numbers, in words and hashes that can be compared and kept."""
    data = plan.problem
    return {
        "model": described(plan.model),
        "metrics": {name: described(each) for name, each in plan.metrics.items()},
        "strategies": {each.name: described(each.rule) for each in chosen},
        "budget": plan.sizes.budget,
        "n_initial": plan.sizes.n_initial,
        "n_contexts": plan.sizes.n_contexts,
        "n_test": plan.sizes.n_test,
        "n_rows": data.size,
        "seed": plan.seed,
        "classes": None if data.classes is None else [str(each) for each in data.classes],
        "X": data_hash(data.features),
        "y": data_hash(data.labels),
    }


def _traces(
    plan: Plan, chosen: tuple[Strategy, ...], runs: int, kept: Store | None, n_jobs: int, progress: bool
) -> dict[tuple[int, int], Trace]:
    """All runs of all strategies: those kept, and those that were still to do."""
    tasks = [(strategy, run) for run in range(runs) for strategy in range(len(chosen))]
    found = {} if kept is None else {task: trace for task in tasks if (trace := kept.load(*task)) is not None}
    rest = [task for task in tasks if task not in found]
    jobs = (delayed(_run)(plan, chosen[task[0]], task, kept) for task in rest)
    results: Iterator[Any] = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
    return {**found, **dict(told(results, len(rest), progress))}


def _run(plan: Plan, strategy: Strategy, task: tuple[int, int], kept: Store | None) -> tuple[tuple[int, int], Trace]:
    """One thread: sums in another order, on more of them, would differ in the last bit."""
    with threadpool_limits(1):
        trace = plan.trace(strategy, task[1])
    if kept is not None:
        kept.save(trace, *task)
    return task, trace


def _gathered(
    plan: Plan, chosen: tuple[Strategy, ...], traces: dict[tuple[int, int], Trace], settings: dict[str, Any]
) -> Simulation:
    def stacked(field: str) -> Any:
        rows = [[getattr(traces[s, run], field) for run in range(settings["runs"])] for s in range(len(chosen))]
        return np.asarray(rows)

    losses = stacked("losses")  # [S, R, Q, B + 1]
    return Simulation(
        strategies=tuple(each.name for each in chosen),
        losses={name: losses[:, :, position] for position, name in enumerate(plan.metrics)},
        acquired=stacked("acquired"),
        targets=plan.problem.targets,
        classes=plan.problem.classes,
        fit_seconds=stacked("fit_seconds"),
        score_seconds=stacked("score_seconds"),
        settings=settings,
        versions=versions(),
    )
