"""A model fitted anew, with chance in the caller's hands."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from stakes._utils.tables import Host, take_rows
from stakes.beliefs import Belief
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, Loss
from stakes.losses.domains import Classes
from stakes.models import belief_of
from stakes.ranking.rank import warn_of_trained_weights
from stakes.simulation.metrics import MetricLike, checked_metrics, data_hash, described, judged, versions
from stakes.simulation.problem import (
    BELIEF,
    FIT,
    LUCK,
    SCORE,
    SPLIT,
    TEST,
    Problem,
    check_count,
    check_model,
    check_pool,
    generator,
    problem,
    sizes,
    split,
)
from stakes.simulation.result import Simulation
from stakes.simulation.strategies import Strategy, StrategyLike, checked_strategies, choose
from stakes.simulation.trial import PARTS, Trial, TrialFunction, drawn


def refitted(model: Any, features: Any, labels: Any, rng: np.random.Generator) -> Any:
    """A clone of `model` fitted to `features` [n, p] and `labels` [n].

    Every parameter `random_state`, at any depth that `get_params` reaches, is drawn from `rng` in the order of names:
    models that share a generator's state share their chance.
    """
    fresh = clone(model)
    names = sorted(name for name in fresh.get_params(deep=True) if name.split("__")[-1] == "random_state")
    if names:
        fresh.set_params(**{name: int(rng.integers(2**31 - 1)) for name in names})
    fresh.fit(features, labels)
    return fresh


# ----------------------------------------------------------------------
# What is to be run: the data of a run, and all that runs share.


@dataclass(frozen=True, eq=False)
class Case:
    """The data of one run, and what its rows are for."""

    problem: Problem
    parts: Trial


@dataclass(frozen=True, eq=False)
class Plan:
    """All that runs share."""

    loss: AnyLoss
    metrics: Mapping[str, MetricLike]
    model: Any
    strategies: tuple[Strategy, ...]
    budget: int
    seed: int
    reseed: bool


# ----------------------------------------------------------------------
# What a run knows after some labels: one fit, and what follows from it, each made once and only if it is asked for.
#
# Sizes: Q metrics, N candidates.


class Outlook(NamedTuple):
    """What is believed of the pool and the contexts."""

    belief: Belief
    by_chance: bool
    """whether random numbers had a part in it"""
    seconds: float


@dataclass(frozen=True, eq=False)
class Stage:
    """Run number `run` after the rows at `acquired`: the same for every strategy that bought them in this order."""

    plan: Plan
    case: Case
    run: int
    acquired: tuple[int, ...]

    @property
    def step(self) -> int:
        """How many labels were bought."""
        return len(self.acquired)

    @cached_property
    def fitted(self) -> tuple[Any, float]:
        """A clone fitted to the initial rows, then those bought, as `simulate_trials` promises; and its seconds."""
        start = time.perf_counter()
        rows, data = np.concatenate([self.case.parts.initial, self._bought]), self.case.problem
        chance = generator(self.plan.seed, self.run, self.step if self.plan.reseed else 0, FIT)
        model = refitted(self.plan.model, take_rows(data.features, rows), data.labels[rows], chance)
        return model, time.perf_counter() - start

    def losses(self, strategy: Strategy) -> list[float]:
        """[Q]: the metrics on test rows; by the belief that the strategy chooses with, if that is about these rows."""
        return self._judged_by_choice if self._shares_belief(strategy) else self._judged_apart

    def choose(self, strategy: Strategy) -> tuple[int, float]:
        """The position of the row to buy; and the seconds of the belief about the pool, if it is used, and scores."""
        before = 0.0 if strategy.rule is None else self._outlook.seconds
        start = time.perf_counter()
        luck = self._chance(LUCK).random(self.case.problem.size)[self._pool]  # a row's own, whatever the pool
        best = choose(strategy, lambda: self._outlook.belief, self.plan.loss, self._chance(SCORE), luck)
        return int(self._pool[best]), before + time.perf_counter() - start

    @cached_property
    def _bought(self) -> Host:
        return np.asarray(self.acquired, dtype=np.intp)

    @cached_property
    def _pool(self) -> Host:
        """[N]: positions of what can still be bought."""
        return np.setdiff1d(self.case.parts.pool, self._bought)

    @cached_property
    def _outlook(self) -> Outlook:
        start, chance = time.perf_counter(), self._chance(BELIEF)
        belief = self._belief(self._pool, self.case.parts.contexts, chance)
        by_chance = chance.bit_generator.state != self._chance(BELIEF).bit_generator.state
        return Outlook(belief, by_chance, time.perf_counter() - start)

    def _shares_belief(self, strategy: Strategy) -> bool:
        """Chance that judges is not the chance that chooses; and who needs no belief about the pool is given none."""
        if strategy.rule is None or self.step == self.plan.budget:
            return False
        parts = self.case.parts
        return np.array_equal(parts.contexts, parts.test) and not self._outlook.by_chance

    @cached_property
    def _judged_by_choice(self) -> list[float]:
        return self._judged(self._outlook.belief)

    @cached_property
    def _judged_apart(self) -> list[float]:
        """A belief is about candidates too; a context stands in for them, as the same is at hand for every strategy."""
        parts = self.case.parts
        return self._judged(self._belief(parts.contexts[:1], parts.test, self._chance(TEST)))

    def _judged(self, belief: Belief) -> list[float]:
        return judged(self.plan.metrics, belief, self.case.problem.targets[self.case.parts.test])

    def _belief(self, candidates: Host, contexts: Host, chance: np.random.Generator) -> Belief:
        return _belief(self.fitted[0], self.case.problem, candidates, contexts, chance)

    def _chance(self, purpose: int) -> np.random.Generator:
        return generator(self.plan.seed, self.run, self.step, purpose)


def _belief(model: Any, data: Problem, candidates: Host, contexts: Host, rng: np.random.Generator) -> Belief:
    """What the model says of some rows, with a column for each class."""
    rows = (take_rows(data.features, each) for each in (candidates, contexts))
    belief = belief_of(model, *rows, classes=data.classes, random_state=rng)
    if data.classes is not None and belief.domain != Classes(len(data.classes)):
        raise StakesError(
            f"the belief of {type(model).__name__} must have a column for each of the {len(data.classes)} classes "
            f"{data.classes}; it is about {belief.domain}. A model of your own must keep classes that no label has had."
        )
    return belief


# ----------------------------------------------------------------------
# One run of some strategies, step by step: fit, judge, choose, learn the label, again.
#
# Sizes: S strategies, B labels bought, Q metrics.


@dataclass(frozen=True, eq=False)
class Trace:
    """What one run of one strategy came to."""

    losses: Host
    """[Q, B + 1]: the mean loss on test rows after 0 .. B labels"""
    acquired: Host
    """[B]: positions of rows, in the order in which they were bought"""
    fit_seconds: Host
    """[B + 1]: of fits, also those that other strategies had a share in"""
    score_seconds: Host
    """[B]: of the belief about the pool, and the scores"""


@dataclass(frozen=True, eq=False)
class _Loop:
    """A strategy, and what it has come to so far."""

    strategy: Strategy
    losses: list[list[float]] = field(default_factory=list)
    acquired: list[int] = field(default_factory=list)
    fit_seconds: list[float] = field(default_factory=list)
    score_seconds: list[float] = field(default_factory=list)

    def go_on(self, stage: Stage) -> None:
        """Judge what is known, and buy a label if there is money left."""
        self.fit_seconds.append(stage.fitted[1])
        self.losses.append(stage.losses(self.strategy))
        if stage.step < stage.plan.budget:
            position, seconds = stage.choose(self.strategy)
            self.acquired.append(position)
            self.score_seconds.append(seconds)

    def trace(self) -> Trace:
        """All of it, as arrays."""
        return Trace(
            np.asarray(self.losses).T,
            np.asarray(self.acquired),
            np.asarray(self.fit_seconds),
            np.asarray(self.score_seconds),
        )


def traces(plan: Plan, strategies: Sequence[Strategy], run: int, case: Case) -> list[Trace]:
    """[S]: run number `run` of some strategies; the data and all chance are those of the run, whatever the strategy.

    They go in step, so that those that have bought the same rows share a fit: all at the start, and some for longer.
    """
    loops = [_Loop(each) for each in strategies]
    for _ in range(plan.budget + 1):
        for acquired, alike in _by_acquired(loops).items():
            stage = Stage(plan, case, run, acquired)
            for each in alike:
                each.go_on(stage)
    return [each.trace() for each in loops]


def _by_acquired(loops: Iterable[_Loop]) -> dict[tuple[int, ...], list[_Loop]]:
    """Loops by what they have bought, in that order."""
    groups: dict[tuple[int, ...], list[_Loop]] = {}
    for each in loops:
        groups.setdefault(tuple(each.acquired), []).append(each)
    return groups


# ----------------------------------------------------------------------
# How far a simulation is, on the error stream.


T = TypeVar("T")

_QUIET = 1.0  # seconds for which a stream that is no terminal (a file, a notebook) is told nothing
_APART = 10.0  # seconds between two lines there


def told(results: Iterable[T], total: int, progress: bool) -> Iterator[T]:
    """`results` as they come, with the share done and the time left: one line on a terminal, now and then elsewhere."""
    start, before = time.monotonic(), _QUIET - _APART
    for done, each in enumerate(results, 1):
        passed, terminal = time.monotonic() - start, sys.stderr.isatty()
        if progress and (terminal or passed - before > _APART or (done == total and passed > _QUIET)):
            end = "\r" if terminal and done < total else "\n"
            left = math.ceil(passed / done * (total - done))
            sys.stderr.write(f"simulate: {done / total:4.0%} done, {left // 60} min {left % 60:2d} s left{end}")
            sys.stderr.flush()
            before = passed
        yield each


# ----------------------------------------------------------------------
# Finished runs on disk, so that a simulation that was killed goes on where it stopped.
#
# A folder holds `settings.json`, one file for each run of each strategy, and in `splits` the rows of each run's
# parts. Every file is written whole under another name and then renamed, so none is ever half there.

_SETTINGS = "settings.json"


@dataclass(frozen=True)
class Store:
    """A folder of finished runs."""

    folder: Path

    def load(self, strategy: int, run: int) -> Trace | None:
        """A finished run, or None."""
        path = self._path(strategy, run)
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return Trace(**{field.name: arrays[field.name] for field in dataclasses.fields(Trace)})
        except (OSError, ValueError, KeyError) as error:
            raise StakesError(f"{path} is not a finished run ({error}). Delete it: it will be run again.") from error

    def save(self, trace: Trace, strategy: int, run: int) -> None:
        """Keep a finished run."""
        arrays = {field.name: getattr(trace, field.name) for field in dataclasses.fields(trace)}
        _write(self._path(strategy, run), lambda file: np.savez(file, **arrays))

    def keep_split(self, parts: Trial, run: int) -> None:
        """Write down, once, which rows a run starts from, may buy, has for contexts and is judged by."""
        path = self.folder / "splits" / f"run{run:05d}.json"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            rows = {name: getattr(parts, name).tolist() for name in PARTS}
            _write(path, lambda file: file.write(json.dumps(rows).encode()))

    def _path(self, strategy: int, run: int) -> Path:
        return self.folder / f"run{run:05d}-strategy{strategy:02d}.npz"


def open_store(folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> Store:
    """The store in `folder`, made if there is none; refused if it was made with other settings, data or versions."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    if not (path / _SETTINGS).exists():
        if stray := sorted(path.glob("run*.npz")):
            raise StakesError(f"{path} holds runs such as {stray[0].name} but no {_SETTINGS}; give another folder")
        _write(path / _SETTINGS, lambda file: file.write(json.dumps(dict(settings), indent=1).encode()))
    kept = json.loads((path / _SETTINGS).read_text())
    now = json.loads(json.dumps(dict(settings)))
    if differing := [name for name in {**kept, **now} if kept.get(name) != now.get(name)]:
        lines = "".join(f"\n  {name}: {kept.get(name)} in the store, {now.get(name)} now" for name in differing)
        raise StakesError(
            f"the store {path} belongs to another simulation; what differs:{lines}\nGive another folder, or the "
            "settings and data of the store."
        )
    return Store(path)


def _write(path: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Fill a file beside `path`, then put it in its place at once."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


# ----------------------------------------------------------------------
# All runs of all strategies: those kept in a store, and those still to do; and what came of them.
#
# Sizes: S strategies, R runs, Q metrics, B labels bought.


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


# ----------------------------------------------------------------------
# The two calls: repeated loops on a labelled table, or on trials drawn anew for each run; and what came of them.
#
# Sizes: n rows, p features, N candidates, R runs.


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
    classes), "loss" (that of `loss`), the names in `stakes.baselines.BASELINES`, or pairs of a name and a
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
        raise StakesError(f"seed must be a whole number, 0 or more; got {seed!r}")


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
