"""`simulate` and `simulate_trials`: repeated active-learning loops on labelled data, several strategies side by side.

A run starts from a few labels. Each strategy then repeats: fit the model, measure the metrics on test rows, choose a
row of the pool, learn its label. Strategies of a run go in step and share the data and all random numbers of the run,
so those that have acquired the same rows share a fit. Runs are independent: each may be done by another process, and
is kept in a `Store` once it is finished.

Sizes: n rows, p features, N candidates, S strategies, R runs, B labels acquired, Q metrics.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from stakes._utils.arguments import Progress, RandomState, as_progress, as_seed
from stakes._utils.compute import warn_of_lost_worker
from stakes._utils.tables import Host, take_rows
from stakes.beliefs import Belief
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, Loss, align_classes
from stakes.losses.domains import Classes
from stakes.models import belief_of
from stakes.models.labelled import ready_to_fit
from stakes.ranking.rank import warn_of_trained_weights
from stakes.simulation.metrics import MetricLike, checked_metrics, measured
from stakes.simulation.problem import (
    BELIEF,
    FIT,
    SCORE,
    SPLIT,
    TEST,
    TIES,
    Problem,
    check_model,
    check_pool,
    check_whole,
    checked_problem,
    classes_in_order,
    random_stream,
    split,
    split_sizes,
)
from stakes.simulation.result import Simulation
from stakes.simulation.store import TRACE_FIELDS, Store, Trace, data_hash, description, open_store, versions
from stakes.simulation.strategies import (
    ExpectedReduction,
    Rule,
    StrategyLike,
    best_candidate,
    checked_strategies,
    reductions,
)
from stakes.simulation.trial import Trial, TrialFunction, draw_trial

RunData: TypeAlias = tuple[Problem, Trial]
"""The checked data of a run, and which of its rows are used for what."""


def simulate(
    model: Any,
    loss: AnyLoss,
    X: Any,  # noqa: N803 (scikit-learn's name)
    y: Any,
    *,
    strategies: Sequence[StrategyLike] = ("random", "plain", "loss"),
    n: int = 30,
    runs: int = 10,
    n_initial: int | None = None,
    n_contexts: int | None = None,
    n_test: int | None = None,
    metrics: Mapping[str, MetricLike] | None = None,
    classes: Sequence[Any] | None = None,
    random_state: RandomState = 0,
    reseed: bool = True,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
    device: str | None = None,
) -> Simulation:
    """Compare strategies of active learning on data whose labels are known, in repeated runs.

    Each run splits the rows anew into initial labels, contexts (that stand for the future), test rows and the pool:
    at random for reals, stratified for classes, with one initial label of each class where there are enough. A loop
    fits a clone of `model` to the labels so far, predicts the test rows as is best for each metric, and acquires the
    label that the strategy scores highest, `n` times. Rows reach `fit` in the order in which they were labelled: the
    initial ones, then those acquired.

    All strategies of a run share its split and its random numbers (every `random_state` of the model, the draws of
    beliefs, the order of ties), so that differences between them are paired. Scores within 1e-9 of the best tie.
    Results are the same to the last bit however many processes there are.

    Args:
        model: An estimator that can be cloned and fitted again; it is not fitted itself. Of one that gives no
            uncertainty, such as LightGBM's, twenty copies are fitted to rows drawn anew (`stakes.models.Bootstrap`).
        loss: The loss that is to fall.
        X: Rows [n, p]: an array, a sparse matrix or a data frame.
        y: Their labels [n].
        strategies: Names, or pairs of a name and a function (belief, loss, random_state) -> scores [N], of which the
            largest is acquired; `random_state` is a NumPy generator. Known names are "random", "plain" (by the
            unweighted loss: SquaredError for reals, LogLoss for classes), "loss" (by `loss`), and those of
            `stakes.baselines.BASELINES`. Where no label reduces the loss, "plain" and "loss" go by
            `stakes.acquisition.fallback_scores`.
        n: The number of labels to acquire in a run.
        runs: The number of runs.
        n_initial: Labels at the start; by default 10, or 2 for each class if that is more.
        n_contexts: Contexts; by default a fifth of the rows, but at most 200.
        n_test: Test rows; by default three tenths of the rows, but at most 1000.
        metrics: What to measure beside `loss` itself, which is called "loss", by name: losses, of the predictions that
            are best for each, or functions (belief about the test rows, their targets [T]) -> number. By default the
            unweighted loss, called "plain".
        classes: All classes in the order of the loss; by default those of `y`, rising.
        random_state: A whole number, or a NumPy generator, that decides the splits and all other random numbers.
        reseed: Whether every `random_state` of the model is drawn anew for each fit, or for the first fit of a run and
            kept in all its fits.
        store: A folder in which finished runs are kept: the same call continues where it was killed, and with more
            `runs` adds to them; other settings, data or versions of libraries are refused.
        n_jobs: Processes, each on one thread (None: one, or what `joblib.parallel_config` says; -1: all cores).
            Adapters and forms registered by hand are known there only if the model's module registers them.
        progress: Whether to show the share done and the time left on the error stream, or a function (what, share)
            that is called after each run.
        device: A device of torch, such as "cuda" or "cpu", on which all runs and strategies of a `BayesianProcess`, or
            of the default model of a real target, advance together: many times faster where there are many. Its draws
            of hyperparameters are others from the same posterior; columns are encoded by the initial rows and the pool.
            None: one fit after the other, as for any model.

    Returns:
        The losses of each strategy in each run, with comparisons, a verdict and plots.

    Raises:
        TypeError: If the loss, the model, a strategy or a metric is not of the right kind.
        StakesError: If labels are missing, there are too few rows, or a number is out of range; or if the store belongs
            to another simulation.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import ExponentialWeight, SquaredError, simulate
        >>> generator = np.random.default_rng(0)
        >>> X = generator.normal(size=(60, 2))
        >>> y = X @ [1.0, -0.5] + 0.3 * generator.normal(size=60)
        >>> loss = SquaredError(weight=ExponentialWeight(1.0))  # large targets count more
        >>> found = simulate(BayesianRidge(), loss, X, y, n=3, runs=2)
        >>> found.strategies
        ('random', 'plain', 'loss')
        >>> found.curves("loss").shape  # runs, and 0 .. 3 labels
        (2, 4)
    """
    _check_call(model, loss, runs)
    problem = checked_problem(model, loss, X, y, classes_in_order(loss, classes))
    loss, metrics = _aligned(loss, metrics, problem.classes)
    warn_of_trained_weights(model, loss)
    sizes = split_sizes(problem, n, n_initial, n_contexts, n_test)
    plan = _plan(ready_to_fit(model, 0), loss, strategies, n, metrics, random_state, reseed, device)
    data = [(problem, split(problem, sizes, plan.seed, run)) for run in range(runs)]
    return _run_all(plan, data, None, store, n_jobs, as_progress(progress))


def simulate_trials(
    model: Any,
    loss: AnyLoss,
    trial: TrialFunction,
    *,
    strategies: Sequence[StrategyLike] = ("random", "plain", "loss"),
    n: int = 30,
    runs: int = 10,
    metrics: Mapping[str, MetricLike] | None = None,
    classes: Sequence[Any] | None = None,
    random_state: RandomState = 0,
    reseed: bool = True,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
    device: str | None = None,
) -> Simulation:
    """`simulate` with data of your own for each run, which a function draws.

    The function is called once for each run, before the first fit, and all strategies of the run share what it drew:
    splits, labels with noise, inputs and targets scaled by what is known at the start. All trials are in memory at
    once, so share X between them where it does not change. Rows acquired are positions in X of the run's trial;
    candidates reach a strategy in rising order of position.

    Args:
        model: An estimator that can be cloned and fitted again; it is not fitted itself.
        loss: The loss that is to fall.
        trial: A function (random_state) -> `Trial` that gets the NumPy generator of the run, and gives the same for the
            same random numbers.
        strategies: As in `simulate`.
        n: The number of labels to acquire in a run.
        runs: The number of runs.
        metrics: As in `simulate`.
        classes: All classes in the order of the loss; by default those of the labels of the first trial.
        random_state: A whole number, or a NumPy generator, that decides the trials and all other random numbers.
        reseed: As in `simulate`.
        store: A folder in which finished runs are kept, as in `simulate`. It knows the function by its code and what it
            closes over, and by the data that the first run drew.
        n_jobs: As in `simulate`.
        progress: As in `simulate`.
        device: As in `simulate`.

    Returns:
        The losses of each strategy in each run, with comparisons, a verdict and plots.

    Raises:
        TypeError: If the loss, the model, a strategy or a metric is not of the right kind, or the function returns no
            `Trial`.
        StakesError: If labels are missing, a pool is smaller than `n`, or a number is out of range; or if the store
            belongs to another simulation.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import SquaredError
        >>> from stakes.simulation import Trial, simulate_trials
        >>> def noisy_line(random_state):
        ...     x = np.linspace(-1.0, 1.0, 21)
        ...     y = 2.0 * x + 0.1 * random_state.normal(size=21)
        ...     return Trial(x[:, None], y, [8, 10, 12], [0, 2, 4, 16, 18, 20], contexts=range(1, 20, 2), test=[5, 15])
        >>> found = simulate_trials(BayesianRidge(), SquaredError(), noisy_line, n=2, runs=4)
        >>> found.acquired.shape  # strategies, runs, labels
        (3, 4, 2)
    """
    _check_call(model, loss, runs)
    classes = classes_in_order(loss, classes)
    loss, metrics = _aligned(loss, metrics, classes)
    warn_of_trained_weights(model, loss)
    check_whole("n", n)
    plan = _plan(ready_to_fit(model, 0), loss, strategies, n, metrics, random_state, reseed, device)
    data: list[RunData] = []
    for run in range(runs):
        data.append(_drawn_data(trial, plan, run, classes))
        classes = data[0][0].classes
    return _run_all(plan, data, description(trial), store, n_jobs, as_progress(progress))


def _check_call(model: Any, loss: AnyLoss, runs: int) -> None:
    if isinstance(loss, type) or not isinstance(loss, Loss | DistributionLoss):
        raise TypeError(f"loss must be a loss such as SquaredError(); got {loss!r}")
    check_model(model)
    check_whole("runs", runs)


def _aligned(
    loss: AnyLoss, metrics: Mapping[str, MetricLike] | None, classes: Sequence[Any] | None
) -> tuple[AnyLoss, Mapping[str, MetricLike] | None]:
    """The loss, and the metrics that are losses, with the classes in one order."""
    if metrics is None:
        return align_classes(loss, classes), None
    losses = (Loss, DistributionLoss)
    named = {name: align_classes(each, classes) if isinstance(each, losses) else each for name, each in metrics.items()}
    return align_classes(loss, classes), named


@dataclass(frozen=True, eq=False)
class Plan:
    """All that the runs of a simulation share."""

    model: Any
    loss: AnyLoss
    strategies: Mapping[str, Rule | None]
    n: int
    """labels to acquire, B"""
    metrics: Mapping[str, MetricLike]
    seed: int
    reseed: bool
    device: str | None
    """of torch, on which all runs advance together; None: one fit after the other"""


def _plan(
    model: Any,
    loss: AnyLoss,
    strategies: Sequence[StrategyLike],
    n: int,
    metrics: Mapping[str, MetricLike] | None,
    random_state: RandomState,
    reseed: bool,
    device: str | None,
) -> Plan:
    if not isinstance(reseed, bool):
        raise TypeError(f"reseed must be True (a new random_state for each fit) or False (one a run); got {reseed!r}")
    rules, measures = checked_strategies(strategies), checked_metrics(loss, metrics)
    return Plan(model, loss, rules, int(n), measures, as_seed(random_state), reseed, device)


def _drawn_data(trial: TrialFunction, plan: Plan, run: int, classes: Sequence[Any] | None) -> RunData:
    """The trial of a run, checked; drawn on one thread, for the reason that loops are."""
    try:
        with threadpool_limits(1):
            drawn = draw_trial(trial, random_stream(plan.seed, run, SPLIT))
        check_pool(len(drawn.pool), plan.n)
        return checked_problem(plan.model, plan.loss, drawn.X, drawn.y, classes, drawn.labelled), drawn
    except Exception as error:
        error.add_note(f"This was in the trial of run {run}.")
        raise


def _run_all(
    plan: Plan,
    data: Sequence[RunData],
    trial: str | None,
    store: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: Progress,
) -> Simulation:
    """The runs of `data` [R]; `trial` describes the function that drew them, None for splits of one table."""
    settings = _settings(plan, data[0], trial)
    kept = None if store is None else open_store(store, {**settings, "versions": versions()})
    if kept is not None:
        for run, (_, parts) in enumerate(data):
            kept.save_split(parts, run)
    traces = _traces(plan, data, kept, n_jobs, progress)

    def stacked(field: str) -> Host:
        rows = [[getattr(traces[s, run], field) for run in range(len(data))] for s in range(len(plan.strategies))]
        return np.asarray(rows)

    losses = stacked("losses")  # [S, R, Q, B + 1]
    return Simulation(
        strategies=tuple(plan.strategies),
        losses={name: losses[:, :, position] for position, name in enumerate(plan.metrics)},
        acquired=stacked("acquired"),
        trials=tuple(parts for _, parts in data),
        targets=tuple(problem.targets for problem, _ in data),
        classes=data[0][0].classes,
        fit_seconds=stacked("fit_seconds"),
        score_seconds=stacked("score_seconds"),
        promised=stacked("promised"),
        settings={**settings, "runs": len(data)},
        versions=versions(),
    )


def _settings(plan: Plan, first: RunData, trial: str | None) -> dict[str, Any]:
    """All that decides the numbers, as descriptions and hashes that can be compared and kept; data are of run 0."""
    problem, parts = first
    return {
        "model": description(plan.model),
        "metrics": {name: description(each) for name, each in plan.metrics.items()},
        "strategies": {name: description(rule) for name, rule in plan.strategies.items()},
        "n": plan.n,
        "n_initial": len(parts.initial),
        "n_contexts": len(parts.contexts),
        "n_test": len(parts.test),
        "n_rows": problem.size,
        "random_state": plan.seed,
        "reseed": plan.reseed,
        "in bulk": None if plan.device is None else True,  # a store of before has no such setting
        "classes": None if problem.classes is None else [str(each) for each in problem.classes],
        "trial": trial,
        "X": data_hash(problem.features),
        "y": data_hash(problem.labels),
        "parts": data_hash([parts.initial, parts.pool, parts.contexts, parts.test]),
    }


def _traces(
    plan: Plan, data: Sequence[RunData], kept: Store | None, n_jobs: int | None, progress: Progress
) -> dict[tuple[int, int], Trace]:
    """By strategy and run: those in the store, and those that were still to do."""
    tasks = [(strategy, run) for run in range(len(data)) for strategy in range(len(plan.strategies))]
    found = {} if kept is None else {task: trace for task in tasks if (trace := kept.load(*task)) is not None}
    rest = {run: [s for s, r in tasks if r == run and (s, r) not in found] for run in range(len(data))}
    if plan.device is not None:
        return found | _traces_in_bulk(plan, data, rest, kept, progress)
    jobs = [delayed(_run)(plan, data[run], run, which, kept) for run, which in rest.items() if which]
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
    try:
        for done, each in enumerate(results, 1):
            progress("simulate", done / len(jobs))
            found |= each
    except BrokenExecutor as error:
        warn_of_lost_worker(error)
        for run, which in rest.items():
            if lost := [strategy for strategy in which if (strategy, run) not in found]:
                found |= _run(plan, data[run], run, lost, kept)
    return found


def _traces_in_bulk(
    plan: Plan, data: Sequence[RunData], rest: Mapping[int, Sequence[int]], kept: Store | None, progress: Progress
) -> dict[tuple[int, int], Trace]:
    """By strategy and run: all that are still to do, those with the same strategies together."""
    from stakes.simulation.bulk import traces_in_bulk

    names, found = list(plan.strategies), {}
    for which in sorted({tuple(each) for each in rest.values() if each}):
        runs = [run for run, each in rest.items() if tuple(each) == which]
        made = traces_in_bulk(
            plan.model,
            plan.loss,
            {names[each]: plan.strategies[names[each]] for each in which},
            plan.metrics,
            {run: data[run] for run in runs},
            n=plan.n,
            seed=plan.seed,
            device=str(plan.device),
            progress=progress,
        )
        for (name, run), trace in made.items():
            found[names.index(name), run] = trace
            if kept is not None:
                kept.save(trace, names.index(name), run)
    return found


def _run(plan: Plan, data: RunData, run: int, which: Sequence[int], kept: Store | None) -> dict[tuple[int, int], Trace]:
    """Some strategies of a run, on one thread: sums in another order, on more of them, would differ in the last bit."""
    names = list(plan.strategies)
    with threadpool_limits(1):
        made = _run_in_step(plan, [names[each] for each in which], run, data)
    if kept is not None:
        for each, trace in zip(which, made, strict=True):
            kept.save(trace, each, run)
    return {(each, run): trace for each, trace in zip(which, made, strict=True)}


def _run_in_step(plan: Plan, strategies: Sequence[str], run: int, data: RunData) -> list[Trace]:
    """[S]: some strategies of a run, label by label, so that those that have acquired the same rows share a fit."""
    histories: list[dict[str, list[Any]]] = [{name: [] for name in TRACE_FIELDS} for _ in strategies]
    for _ in range(plan.n + 1):
        alike: dict[tuple[int, ...], list[int]] = {}
        for place, history in enumerate(histories):
            alike.setdefault(tuple(history["acquired"]), []).append(place)
        for acquired, places in alike.items():
            step = Step(plan, *data, run, acquired)
            for place in places:
                _advance(step, strategies[place], histories[place])
    return [_trace(each) for each in histories]


def _advance(step: Step, strategy: str, history: dict[str, list[Any]]) -> None:
    """Measure the metrics, and acquire one more label if there is one to come."""
    history["fit_seconds"].append(step.fitted[1])
    history["losses"].append(step.losses(strategy))
    if len(step.acquired) < step.plan.n:
        position, seconds, promised = step.choose(strategy)
        history["acquired"].append(position)
        history["score_seconds"].append(seconds)
        history["promised"].append(promised)


def _trace(history: dict[str, list[Any]]) -> Trace:
    arrays = {name: np.asarray(values) for name, values in history.items()}
    return Trace(**{**arrays, "losses": arrays["losses"].T})


@dataclass(frozen=True, eq=False)
class Step:
    """A run after the rows at `acquired`: one fit and what follows from it, each made once and only if it is needed.

    It is the same for every strategy that has acquired these rows in this order.
    """

    plan: Plan
    problem: Problem
    trial: Trial
    run: int
    acquired: tuple[int, ...]

    @cached_property
    def fitted(self) -> tuple[Any, float]:
        """A clone fitted to the initial rows, then those acquired; and its seconds."""
        start = time.perf_counter()
        rows = np.concatenate([self.trial.initial, np.asarray(self.acquired, dtype=np.intp)])
        generator = random_stream(self.plan.seed, self.run, len(self.acquired) if self.plan.reseed else 0, FIT)
        features, labels = take_rows(self.problem.features, rows), self.problem.labels[rows]
        return refitted(self.plan.model, features, labels, generator), time.perf_counter() - start

    def losses(self, strategy: str) -> list[float]:
        """[Q]: the metrics on test rows; by the belief that the strategy chooses with, if that is about these rows."""
        return self._losses_by_choice if self._shares_belief(strategy) else self._losses_apart

    def choose(self, strategy: str) -> tuple[int, float, float]:
        """The position of the row to acquire, the seconds that took, and what its label is expected to save.

        Seconds are those of the belief about the pool, if used, and of scores; the saving is NaN without a loss.
        """
        rule = self.plan.strategies[strategy]
        before = 0.0 if rule is None else self._pool_belief[2]
        start, promised = time.perf_counter(), math.nan
        if isinstance(rule, ExpectedReduction):
            scores, log_factor = reductions(rule.of(self.plan.loss), self._pool_belief[0])
            promised = float(scores.max()) * math.exp(log_factor)
            rule = lambda belief, loss, random_state: scores  # noqa: E731
        ties = self._generator(TIES).random(self.problem.size)[self._pool]  # a row's own, whatever the pool
        best = best_candidate(
            strategy, rule, lambda: self._pool_belief[0], self.plan.loss, self._generator(SCORE), tie_breakers=ties
        )
        return int(self._pool[best]), before + time.perf_counter() - start, promised

    @cached_property
    def _pool(self) -> Host:
        """[N]: positions of what can still be acquired."""
        return np.setdiff1d(self.trial.pool, np.asarray(self.acquired, dtype=np.intp))

    @cached_property
    def _pool_belief(self) -> tuple[Belief, bool, float]:
        """The belief about the pool and the contexts, whether it used random numbers, and its seconds."""
        start, generator = time.perf_counter(), self._generator(BELIEF)
        belief = self._belief(self._pool, self.trial.contexts, generator)
        was_random = generator.bit_generator.state != self._generator(BELIEF).bit_generator.state
        return belief, was_random, time.perf_counter() - start

    def _shares_belief(self, strategy: str) -> bool:
        """Random numbers that measure are not those that choose; the random strategy needs no belief about the pool."""
        if self.plan.strategies[strategy] is None or len(self.acquired) == self.plan.n:
            return False
        return np.array_equal(self.trial.contexts, self.trial.test) and not self._pool_belief[1]

    @cached_property
    def _losses_by_choice(self) -> list[float]:
        return self._measured(self._pool_belief[0])

    @cached_property
    def _losses_apart(self) -> list[float]:
        """A belief needs a candidate too: the first context, which is there whatever the strategy."""
        return self._measured(self._belief(self.trial.contexts[:1], self.trial.test, self._generator(TEST)))

    def _measured(self, belief: Belief) -> list[float]:
        return measured(self.plan.metrics, belief, self.problem.targets[self.trial.test])

    def _belief(self, candidates: Host, contexts: Host, generator: np.random.Generator) -> Belief:
        """The model's belief about some rows, with a column for each class."""
        model, classes = self.fitted[0], self.problem.classes
        rows = (take_rows(self.problem.features, each) for each in (candidates, contexts))
        belief = belief_of(model, *rows, classes=classes, random_state=generator)
        if classes is not None and belief.domain != Classes(len(classes)):
            raise StakesError(
                f"the belief of {type(model).__name__} must have a column for each of the {len(classes)} classes "
                f"{classes}; it is about {belief.domain}. A model of your own must keep classes that no label has had."
            )
        return belief

    def _generator(self, purpose: int) -> np.random.Generator:
        return random_stream(self.plan.seed, self.run, len(self.acquired), purpose)


def refitted(model: Any, features: Any, labels: Any, generator: np.random.Generator) -> Any:
    """A clone of `model` fitted to `features` [n, p] and `labels` [n].

    Every parameter `random_state`, at any depth that `get_params` reaches, is drawn from the generator in the order of
    names: models that share a generator's state share their random numbers.
    """
    fresh = clone(model)
    names = sorted(name for name in fresh.get_params(deep=True) if name.split("__")[-1] == "random_state")
    if names:
        fresh.set_params(**{name: int(generator.integers(2**31 - 1)) for name in names})
    fresh.fit(features, labels)
    return fresh
