"""The two calls: repeated loops on a labelled table, or on trials drawn anew for each run; and what came of them.

Sizes: n rows, p features, N candidates, R runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stakes.losses import AnyLoss, DistributionLoss, Loss
from stakes.ranking.choose import warn_of_trained_weights
from stakes.simulation.carry_out import carried_out
from stakes.simulation.describe import described
from stakes.simulation.metrics import MetricLike, checked_metrics
from stakes.simulation.plan import Case, Plan
from stakes.simulation.problem import check_model, problem
from stakes.simulation.result import Simulation
from stakes.simulation.splits import SPLIT, check_count, check_pool, generator, sizes, split
from stakes.simulation.strategies import StrategyLike, checked_strategies
from stakes.simulation.trial import TrialFunction, drawn


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
    metrics: Mapping[str, MetricLike] | None = None,
    classes: Sequence[Any] | None = None,
    reseed: bool = True,
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
    best it can for each metric, and buys the label that the strategy scores highest, `budget` times. Rows reach
    `fit` in the order in which they were labelled: the initial ones, then those bought. Strategies of a run that have
    bought the same rows share a fit, as all do at the start.

    Strategies are "random", "plain" (the objective of the unweighted loss: SquaredError for reals, LogLoss for
    classes), "loss" (that of `loss`), the names in `stakes.acquisition.baselines.BASELINES`, or pairs of a name and a
    function (belief, loss, rng) -> scores [N]. Where no label is worth anything, "plain" and "loss" go by
    `stakes.acquisition.fallback_scores`. Scores within 1e-9 of the best tie. `metrics` are by name, beside `loss`
    itself, which is called "loss": losses, of the answers that are best for each, or functions (belief about the test
    rows, their targets [T]) -> number for answers of another kind; by default the plain loss, called "plain".

    Every `random_state` of the model is drawn anew for each fit; without `reseed`, for the first fit of a run, and kept
    in all its fits.

    `classes` are all classes in the order of the loss; by default those of y, rising. A `store` is a folder in which
    finished runs are kept: the same call goes on where it was killed, and with more `runs` adds to them; other
    settings, data or versions of libraries are refused. With `n_jobs` joblib has runs done by other processes, each on
    one thread, so that results are the same to the last bit however many there are; adapters and forms registered by
    hand are known there only if the model's module registers them.
    """
    _check_call(loss, model, runs, seed)
    data = problem(X, y, loss, model, classes)
    warn_of_trained_weights(model, loss)
    parts = sizes(data, budget, n_initial, n_contexts, n_test)
    plan = _plan(loss, metrics, model, strategies, budget, seed, reseed)
    cases = [Case(data, split(data, parts, plan.seed, run)) for run in range(runs)]
    return carried_out(plan, cases, None, store, n_jobs, progress)


def simulate_trials(
    trial: TrialFunction,
    loss: AnyLoss,
    model: Any,
    *,
    strategies: Sequence[StrategyLike] = ("random", "plain", "loss"),
    budget: int = 30,
    runs: int = 10,
    seed: int = 0,
    metrics: Mapping[str, MetricLike] | None = None,
    classes: Sequence[Any] | None = None,
    reseed: bool = True,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    progress: bool = True,
) -> Simulation:
    """`simulate` with data of your own for each run: `trial` is a function of the run's random numbers.

    It is called once for each run, before the first fit, and all strategies of the run share what it drew: splits,
    labels with noise, inputs and targets scaled by what is known at the start. It must give the same for the same
    numbers. All trials are in memory at once, so share X between them where it does not change.

    Rows bought are positions in X of the run's trial; candidates reach a strategy in rising order of position.
    `classes` are by default those of the labels of the first trial. A `store` knows the function by its code and what
    it closes over, and the data that the first run drew. All else is as in `simulate`.
    """
    _check_call(loss, model, runs, seed)
    warn_of_trained_weights(model, loss)
    check_count("budget", budget)
    plan = _plan(loss, metrics, model, strategies, budget, seed, reseed)
    cases: list[Case] = []
    for run in range(runs):
        cases.append(_case(trial, plan, run, classes))
        classes = cases[0].problem.classes
    return carried_out(plan, cases, described(trial), store, n_jobs, progress)


def _check_call(loss: AnyLoss, model: Any, runs: int, seed: int) -> None:
    if isinstance(loss, type) or not isinstance(loss, Loss | DistributionLoss):
        raise TypeError(f"loss must be a loss such as SquaredError(); got {loss!r}")
    check_model(model)
    check_count("runs", runs)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number, 0 or more; got {seed!r}")


def _plan(
    loss: AnyLoss,
    metrics: Mapping[str, MetricLike] | None,
    model: Any,
    strategies: Sequence[StrategyLike],
    budget: int,
    seed: int,
    reseed: bool,
) -> Plan:
    if not isinstance(reseed, bool):
        raise TypeError(f"reseed must be True (a new random_state for each fit) or False (one a run); got {reseed!r}")
    chosen = checked_strategies(strategies)
    return Plan(loss, checked_metrics(loss, metrics), model, chosen, int(budget), int(seed), reseed)


def _case(trial: TrialFunction, plan: Plan, run: int, classes: Sequence[Any] | None) -> Case:
    """The trial of a run, checked; drawn on one thread, for the reason that loops are."""
    try:
        with threadpool_limits(1):
            parts = drawn(trial, generator(plan.seed, run, SPLIT))
        check_pool(len(parts.pool), plan.budget)
        data = problem(parts.X, parts.y, plan.loss, plan.model, classes, parts.labelled)
    except Exception as error:
        error.add_note(f"This was in the trial of run {run}.")
        raise
    return Case(data, parts)
