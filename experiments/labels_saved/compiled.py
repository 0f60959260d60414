"""The runs of the yardstick for classes by compiled loops: tens of steps a second in place of one or two.

Splits, rows that random choice buys, ties, losses and densities are those of `loop`. Forests are the reference's and
that of `stakes.default`, with other random numbers (`trees`).

Sizes: R rows of a run, B labels bought, K trees, C classes, N candidates, M contexts, T test rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import entr

from experiments.labels_saved.beliefs import DEFAULT, REFERENCE, TREES
from experiments.labels_saved.densities import nearest, pair_log_densities
from experiments.labels_saved.loop import LOSS, RANDOM, SECONDS, counted, keys_of, missing_runs, settings_of
from experiments.labels_saved.problems import Problem, problems, with_floor
from experiments.labels_saved.rivals import (
    ERROR_REDUCTION,
    K_CENTRE,
    NotFinishedError,
    expected_error_reduction,
    k_centre,
    random_order,
)
from experiments.labels_saved.splits import split
from experiments.labels_saved.store import Key, Record, Store
from experiments.labels_saved.tables import Host, Table
from experiments.labels_saved.trees import Trees, grown
from stakes import CategoricalEnsemble, CostMatrix
from stakes.baselines import BASELINES
from stakes.models.calibration import DOUBT, FOLD_TREES, calibrated_mean, calibrated_members, found_calibration
from stakes.simulation import Trial
from stakes.simulation.problem import FIT, TIES, random_stream
from stakes.simulation.strategies import best_candidate, reductions

BALD = "bald"
_ALIKE = ("margin", "predictive entropy", "predictive variance")  # with two classes they choose the same rows


def carry_out_compiled(
    table: Table,
    belief: str,
    store: Store,
    *,
    runs: int,
    bought: int,
    strategies: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """Do all runs of a belief on a table of classes that the store has not; what was left out, and why.

    Under the reference only random choice is run, which is the yardstick.
    """
    settings, left_out = settings_of(table, bought), dict[str, str]()
    keys = [key for key in keys_of(table, belief) if strategies is None or key.strategy in strategies]
    if belief == REFERENCE:
        keys = [key for key in keys if key.strategy == RANDOM]
    for run, wanted in missing_runs(store, keys, settings, runs).items():
        process = Process(table, split(table, run, bought), run, problems(table), bought)
        made: dict[str, Record] = {}
        for key in wanted:
            if f"{key.strategy} on {table.name}" in left_out:
                continue
            alike = _ALIKE if len(table.classes) == 2 and key.strategy in _ALIKE else ()
            known = next((made[name] for name in alike if name in made), None)
            try:
                made[str(key)] = process.record(key) if known is None else known
                store.add(key, made[str(key)], settings)
            except NotFinishedError as reason:
                left_out[f"{key.strategy} on {table.name}"] = str(reason)
        progress(f"{table.name}, {belief}: run {run}")
    return left_out


def realised(problem: Problem, probabilities: Host, targets: Host) -> float:
    """The mean loss on T test rows of what is best to answer under probabilities [T, C], as `Problem` has it."""
    if isinstance(problem.loss, CostMatrix):
        costs = np.asarray(problem.loss.costs)
        return float(costs[targets, np.argmin(probabilities @ costs, axis=1)].mean())
    given = problem.loss.class_weights
    weights = np.ones(probabilities.shape[1]) if given is None else np.asarray(given)
    answers = with_floor(probabilities * weights / (probabilities @ weights)[:, None])
    return float(-(weights[targets] * np.log(answers[np.arange(len(targets)), targets])).mean() / problem.unit)


@dataclass(frozen=True, eq=False)
class Process:
    """One run: what is labelled at the start, what can be bought, what is tested."""

    table: Table
    trial: Trial
    run: int
    losses: Mapping[str, Problem]
    bought: int

    def record(self, key: Key) -> Record:
        """The curves of one strategy."""
        start, order = time.perf_counter(), self._order(key)
        acquired: list[int] = []
        curves: dict[str, list[float]] = {name: [] for name in self.losses}
        promised, densities = [], []
        unit = self.losses[key.driver].unit if key.strategy == LOSS else 1.0
        targets = self.table.y[self.trial.test]
        for step in range(self.bought + 1):
            fit = self.fitted(tuple(acquired), key.belief)
            probabilities = fit.averaged_on_test()  # answers depend on nothing else
            for name, problem in self.losses.items():
                curves[name].append(realised(problem, probabilities, targets))
            if step in counted(self.bought):
                densities += [self._log_densities(fit)] * counted(self.bought).count(step)
            if step < self.bought:
                row, worth = (order[step], np.nan) if order is not None else self._choice(fit, key)
                acquired.append(int(row))
                promised.append(worth / unit)
        single, joint = np.asarray(densities).T  # [2] each
        return Record(
            runs=np.asarray([self.run]),
            losses={name: np.asarray([curve]) for name, curve in curves.items()},
            acquired=np.asarray([acquired]),
            counted=np.asarray(counted(self.bought)),
            log_density=single[None],
            joint_log_density=joint[None],
            promised=np.asarray([promised]),
            seconds=np.asarray([time.perf_counter() - start]),
        )

    def _order(self, key: Key) -> Host | None:
        """[B]: the rows to buy, where they are known before any fit."""
        if key.strategy == RANDOM:
            return random_order(self.trial, self.bought, self.run)
        if key.strategy == K_CENTRE:
            return k_centre(self.trial, self.bought)
        if key.strategy == ERROR_REDUCTION:
            classes = len(self.table.classes)
            return expected_error_reduction(self.trial, classes, self.bought, SECONDS, self.run)
        return None

    def _log_densities(self, fit: Fit) -> tuple[float, float]:
        """Single and joint, of test rows."""
        test, members = self.trial.test, fit.on_test()
        partners = nearest(np.asarray(self.trial.X)[test])
        single, joint = pair_log_densities(CategoricalEnsemble(members[:1], members), self.table.y[test], partners)
        return float(single.mean()), float(joint.mean())

    def _choice(self, fit: Fit, key: Key) -> tuple[int, float]:
        """The row to buy next, and what its label is expected to save; NaN without a loss."""
        scores, worth = fit.reductions(self.losses[key.driver]) if key.strategy == LOSS else fit.scores(key.strategy)
        ties = random_stream(self.run, 0, len(fit.acquired), TIES).random(len(self.table.y))[fit.pool]
        best = best_candidate(str(key), lambda *_: scores, lambda: None, None, None, tie_breakers=ties)
        return int(fit.pool[best]), worth

    def fitted(self, acquired: tuple[int, ...], belief: str = DEFAULT) -> Fit:
        """The belief after the rows at `acquired`, as all strategies fit it that have bought as many."""
        rows = np.concatenate([self.trial.initial, np.asarray(acquired, dtype=np.intp)])
        features, targets = self.trial.X[rows], self.table.y[rows]
        classes, default = len(self.table.classes), belief == DEFAULT
        seed = int(random_stream(self.run, 0, len(acquired), FIT).integers(2**31 - 1))
        trees = grown(features, targets, classes, TREES, seed, extremely=default)
        frequencies = np.bincount(targets, minlength=classes) + 1.0
        power, share = 1.0, 0.0
        if default:

            def left_out(seen: Host, asked: Host) -> Host:
                few = grown(features[seen], targets[seen], classes, FOLD_TREES, seed + 1, extremely=True)
                return few.mean_shares(few.leaves(features[asked]))

            power, share = found_calibration(left_out, targets, classes, np.random.default_rng(seed))
        return Fit(self, acquired, trees, frequencies / frequencies.sum(), power, share)


@dataclass(frozen=True, eq=False)
class Fit:
    """A belief after some labels."""

    process: Process
    acquired: tuple[int, ...]
    trees: Trees
    prior: Host
    """[C]: class frequencies"""
    power: float
    """of the mean of trees; 1 under the reference"""
    share: float
    """of the mean that goes to class frequencies; none under the reference"""

    @cached_property
    def pool(self) -> Host:
        """[N]: positions of what can still be bought, rising."""
        return np.setdiff1d(self.process.trial.pool, np.asarray(self.acquired, dtype=np.intp))

    @cached_property
    def _leaves(self) -> tuple[Host, Host]:
        """[., K]: of the rows that are left in the pool, and of contexts."""
        rows = np.union1d(self.pool, self.process.trial.contexts)  # most contexts are rows of the pool
        found = self.trees.leaves(np.asarray(self.process.trial.X)[rows])
        pool, contexts = (found[np.searchsorted(rows, each)] for each in (self.pool, self.process.trial.contexts))
        return pool, contexts

    @cached_property
    def _test_leaves(self) -> Host:
        """[T, K]: of test rows."""
        return self.trees.leaves(np.asarray(self.process.trial.X)[self.process.trial.test])

    def _averaged(self, leaves: Host) -> Host:
        """[R, C]: what the mean of trees says of rows in leaves [R, K]."""
        return calibrated_mean(self.trees.mean_shares(leaves), self.prior, self.power, self.share)

    def _members(self, leaves: Host) -> Host:
        """[R, K, C]: what each tree says of them."""
        return calibrated_members(self.trees.shares(leaves), self.prior, self.power, self.share)

    def averaged_on_test(self) -> Host:
        """[T, C]: the mean over trees."""
        return self._averaged(self._test_leaves)

    def averaged_on_contexts(self) -> Host:
        """[M, C]: the same of contexts."""
        return self._averaged(self._leaves[1])

    def on_test(self) -> Host:
        """[T, K, C]: what each tree says of test rows."""
        return self._members(self._test_leaves)

    @property
    def belief(self) -> CategoricalEnsemble:
        """The same as the product's."""
        return self.belief_of(*self._leaves)

    def belief_of(self, rows: Host, contexts: Host) -> CategoricalEnsemble:
        """The same for rows in leaves [R, K] and contexts in leaves [M, K]."""
        return CategoricalEnsemble(self._labels(rows).astype(np.float32), self._members(contexts).astype(np.float32))

    def _labels(self, leaves: Host) -> Host:
        """[R, K, C]: what each tree says of labels that are to be bought."""
        return calibrated_members(self.trees.shares(leaves), self.prior, 1.0, DOUBT)

    def scores(self, rival: str) -> tuple[Host, float]:
        """[N]: of a rule that knows no loss, by its name."""
        if rival == BALD:  # entropies of averages less averages of entropies
            members = self._labels(self._leaves[0])
            return entr(members.mean(axis=1)).sum(axis=1) - entr(members).sum(axis=2).mean(axis=1), np.nan
        members = self._labels(self._leaves[0]).mean(axis=1, keepdims=True)  # the others look at averages only
        return np.asarray(BASELINES[rival](CategoricalEnsemble(members, members[:1]), np.random.default_rng(0))), np.nan

    def reductions(self, problem: Problem) -> tuple[Host, float]:
        """[N] and the largest: what each label is expected to save of a loss."""
        scores, log_factor = reductions(problem.loss, self.belief)
        return scores, float(scores.max() * np.exp(log_factor))
