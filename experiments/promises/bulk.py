"""Campaigns of the study on tables of numbers, all runs and losses of a table at once, on any device of torch.

Fits of a round are made together (`stakes.models.processes_on_device`), each from the start, as the product does when
labels come; so are those to batches that are bought aside. What each fit says then goes through `stakes.outlook`, one
by one. Splits, contexts, rounds and what is kept are those of `experiments.promises.rounds`; hyperparameters are other
draws from the same posterior.

Sizes: R runs, G fits, Q rows of a table (pool and contexts), T test rows, m labels.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from experiments.labels_saved.problems import Problem
from experiments.labels_saved.tables import Host, Table
from experiments.promises.rounds import (
    AHEAD,
    ASIDE,
    BATCHES,
    CONTEXTS,
    ROUNDS,
    SHORTLIST,
    SIZES,
    Campaign,
    Round,
    as_the_model_says,
    kept,
    left_out_of,
    mean_of,
)
from experiments.promises.rounds import start as start_of
from stakes import GaussianBelief
from stakes.beliefs import Belief
from stakes.evaluation import realised_loss
from stakes.models import BayesianProcess, register_model
from stakes.models.base import LabelsLeftOut
from stakes.models.processes_on_device import Fits, ProcessesOnDevice

_Set: TypeAlias = tuple[int, tuple[int, ...]]
"""A data set: the place of its run, and its labelled rows in the order in which they came."""
_CELLS = {"cuda": 60_000_000, "cpu": 4_000_000}  # of covariances of labels, over all chains of a part


@dataclass(frozen=True, eq=False)
class KnownRows:
    """What a fit says of some rows of its table, jointly: a model whose pool is their positions [N, 1]."""

    positions: Host
    """[Q], rising"""
    mean: Host
    """[Q]"""
    variance: Host
    """[Q]: of labels"""
    noise: Host
    """[Q]: its part of `variance`"""
    covariance: Host
    """[Q, Q]: of a label with another label, also of the same row"""
    labels_: Host
    """[m]"""
    alone: LabelsLeftOut
    """of m labels"""

    def left_out(self) -> LabelsLeftOut:
        """What the fit says of its labels, each left out."""
        return self.alone

    def places(self, rows: Any) -> Host:
        """[N]: where rows, given as positions [N, 1], are."""
        return np.searchsorted(self.positions, np.asarray(rows)[:, 0].astype(np.intp))


def _prepare(model: KnownRows, contexts: Any, *, target: Any, **_: Any) -> Callable[[Any], Belief]:
    there = model.places(contexts)
    spread = model.variance[there] - (model.noise[there] if target == "latent" else 0.0)

    def belief(rows: Any) -> Belief:
        here = model.places(rows)
        between = model.covariance[np.ix_(here, here)]
        np.fill_diagonal(between, model.variance[here])
        beside = np.sqrt(model.variance[here][:, None] * spread)
        covariance = np.clip(model.covariance[np.ix_(here, there)], -beside, beside)
        return GaussianBelief(model.mean[there], spread, model.variance[here], covariance, between, model.noise[here])

    return belief


register_model(KnownRows, _prepare)


def campaigns_in_bulk(
    table: Table, problems: Mapping[str, Problem], runs: Sequence[int], device: str, at: Sequence[int] = ROUNDS
) -> list[Campaign]:
    """A campaign of every loss and run, with rounds at some numbers of labels, the first 20."""
    together = _Together(table, runs, device)
    rows = {(name, place): together.first[place] for name in problems for place in range(len(runs))}
    rounds: dict[tuple[str, int], list[Round]] = {key: [] for key in rows}
    for labels, following in zip(at, [*at[1:], at[-1]], strict=True):
        began = time.process_time()
        ahead = max(*(BATCHES if labels in ASIDE else (AHEAD,)), following - labels)
        fits = together.fitted({(place, rows[name, place]) for name, place in rows}, joint=True)
        found = {
            (name, place): together.outlook(
                problems[name], fits[place, rows[name, place]].known, (place, rows[name, place]), ahead
            )
            for name, place in rows
        }
        losses = {
            (name, place): together.losses(problems[name], fits[place, rows[name, place]], place)
            for name, place in rows
        }
        after: dict[tuple[str, int], dict[int, tuple[float, float]]] = {key: {} for key in rows}
        for size in BATCHES if labels in ASIDE else ():
            more = {key: (*rows[key], *ranked[:size]) for key, (ranked, _) in found.items()}
            beside = together.fitted({(place, more[name, place]) for name, place in rows}, joint=False)
            for name, place in rows:
                saved = losses[name, place] - together.losses(problems[name], beside[place, more[name, place]], place)
                after[name, place][size] = mean_of(saved)
        seconds = round((time.process_time() - began) / len(rows), 2)
        for key, (ranked, ahead_of) in found.items():
            unit = problems[key[0]].unit
            offers = [kept(each, unit) for each in ahead_of.offers if each.size in SIZES]
            today, most = ((each.value / unit, each.error / unit) for each in (ahead_of.today, ahead_of.most))
            rounds[key].append(
                Round(
                    labels,
                    list(rows[key]),
                    ranked,
                    offers,
                    today,
                    most,
                    *mean_of(losses[key]),
                    after[key],
                    seconds,
                    left_out=left_out_of(ahead_of),
                )
            )
            rows[key] = (*rows[key], *ranked[: following - labels])
    return [Campaign(table.name, name, runs[place], rounds[name, place]) for name, place in rounds]


class _Fit(NamedTuple):
    """What is kept of a fit."""

    mean: Host
    """[T]: of labels at test rows"""
    variance: Host
    known: Any
    """KnownRows, where asked for"""


class _Together:
    """The runs of a table."""

    def __init__(self, table: Table, runs: Sequence[int], device: str) -> None:
        self.runs, self.device = runs, device
        started = [start_of(table, run) for run in runs]
        self.trials = [trial for trial, _ in started]
        self.first = [tuple(first.tolist()) for _, first in started]
        self.pools = [np.sort(np.concatenate([trial.initial, trial.pool])) for trial in self.trials]  # contexts, too
        process = BayesianProcess()
        tables = []
        for trial in self.trials:
            fresh = clone(process)
            fresh.fit_columns(trial.X[trial.initial], trial.X[trial.pool])
            tables.append(np.asarray(fresh.standard_rows(trial.X)))
        self.processes = ProcessesOnDevice(tables, process.n_draws, 0, device, process.warp)

    def fitted(self, sets: set[_Set], joint: bool) -> dict[_Set, _Fit]:
        """Fits to data sets of as many labels each; `joint` with what they say of all rows of the pool."""
        ordered = sorted(sets)
        size = len(ordered[0][1])
        found: dict[_Set, _Fit] = {}
        for part in self._parts(ordered, size**2):
            which = np.asarray([place for place, _ in part])
            rows = np.asarray([rows for _, rows in part], dtype=np.intp)  # [G, m]
            labels = np.stack([np.asarray(self.trials[place].y, dtype=float)[list(rows)] for place, rows in part])
            fits = self.processes.fitted(which, rows, labels)
            asked = len(self.pools[0]) ** 2 if joint else size * len(self.trials[0].test)
            for places in self._parts(range(len(part)), asked):
                made = self._asked(fits.take(np.asarray(places)), which[places], labels[places], joint)
                found |= dict(zip([part[place] for place in places], made, strict=True))
        return found

    def _parts(self, of: Sequence[Any], cells: int) -> list[Any]:
        """In which so many covariances for each draw of each data set fit into memory."""
        most = max(1, _CELLS["cpu" if self.device == "cpu" else "cuda"] // (self.processes.n_draws * cells))
        return [list(of[begin : begin + most]) for begin in range(0, len(of), most)]

    def _asked(self, fits: Fits, which: Host, labels: Host, joint: bool) -> list[_Fit]:
        test = np.stack([self.trials[place].test for place in which])
        mean, variance = (each.cpu().numpy() for each in fits.predicted(test))
        known = self._known(fits, which, labels) if joint else [None] * len(which)
        return [_Fit(*each) for each in zip(mean, variance, known, strict=True)]

    def _known(self, fits: Fits, which: Host, labels: Host) -> list[KnownRows]:
        rows = np.stack([self.pools[place] for place in which])  # [G, Q]
        moments = [each.cpu().numpy() for each in fits.moments(rows, rows)]
        mean, variance, _, covariance, noise = moments
        alone = [each.cpu().numpy() for each in fits.left_out()]
        return [
            KnownRows(
                rows[g],
                mean[g],
                variance[g],
                noise[g],
                (covariance[g] + covariance[g].T) / 2.0,
                labels[g],
                LabelsLeftOut(alone[0][g], alone[1][g], labels[g]),
            )
            for g in range(len(which))
        ]

    def outlook(self, problem: Problem, known: KnownRows, of: _Set, ahead: int) -> tuple[list[int], Any]:
        """Positions in the table of the rows that `outlook` ranks, and the outlook."""
        place, labelled = of
        pool, trial = np.setdiff1d(self.pools[place], labelled), self.trials[place]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = as_the_model_says(
                known,
                problem.loss,
                pool[:, None].astype(float),
                contexts=trial.contexts[:CONTEXTS, None].astype(float),
                n=ahead,
                shortlist=SHORTLIST,
                random_state=self.runs[place],
            )
        return pool[list(found.ranking.indices)].tolist(), found

    def losses(self, problem: Problem, fit: _Fit, place: int) -> Host:
        """[T]: of the answers on test rows, in units."""
        belief = GaussianBelief(fit.mean, fit.variance, np.ones(1), np.zeros((1, len(fit.mean))))
        answers, trial = problem.answers(belief), self.trials[place]
        return np.asarray(realised_loss(problem.loss, answers, trial.y[trial.test]).each) / problem.unit
