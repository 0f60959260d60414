"""Runs and strategies of a Bayesian process that advance together, on any device of torch.

All fits of a round are one: their chains take each step together. So are the scores, by one trick: the pairs of
candidates and contexts of G data sets are pairs of N candidates, each with labels of variance 1, and G M contexts.
Random choices, ties and metrics are those of `simulate`; the draws of hyperparameters are others from the same
posterior. It is imported when a simulation is given a device.

Sizes: R runs, S strategies, G = R S data sets in the order of runs, N candidates, M contexts, T test rows, B labels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from sklearn.base import clone

from stakes._utils.arguments import Progress
from stakes._utils.tables import Host, take_rows
from stakes.acquisition import expected_reduction
from stakes.beliefs import GaussianBelief
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, Loss
from stakes.models.bayesian_process import BayesianProcess
from stakes.models.default_model import DefaultModel
from stakes.simulation.metrics import MetricLike, measured
from stakes.simulation.problem import SCORE, TIES, Problem, random_stream
from stakes.simulation.store import TRACE_FIELDS, Trace
from stakes.simulation.strategies import ExpectedReduction, Rule, best_candidate, reductions
from stakes.simulation.trial import Trial

if TYPE_CHECKING:
    from stakes.models.processes_on_device import Fits, LabelMoments, ProcessesOnDevice

GivenRule: TypeAlias = Rule | Mapping[int, Host] | None
"""Of a strategy: a rule, the rows [B] to acquire in each run, or None for random choice."""
Observe: TypeAlias = "Callable[[int, Fits, Host], None]"
"""A function (labels bought, fits of G data sets, rows bought [G, .]) that is called before each choice, and at the
end."""

_CELLS = {"cuda": 60_000_000, "cpu": 4_000_000}  # of covariances of labels, over all chains
_PAIRS = {"cuda": 150_000_000, "cpu": 10_000_000}  # of candidates, contexts and draws
_NEAR_NOTHING = 1e-6  # of the most that labels can be worth: below it may be rounding, which `reductions` knows


def process_of(model: Any) -> BayesianProcess:
    """The process that a model is, whose fits can be made in bulk; refused for other models."""
    if isinstance(model, DefaultModel) and model.task in (None, "real"):
        return BayesianProcess()
    if isinstance(model, BayesianProcess) and model.belief == "gaussian":
        return model
    what = "BayesianProcess(belief='mixture')" if isinstance(model, BayesianProcess) else type(model).__name__
    raise StakesError(
        f"device= advances runs of a BayesianProcess, or of the default model of a real target, together; got {what}. "
        "Leave device out, and give n_jobs for several processes."
    )


def traces_in_bulk(
    model: Any,
    loss: AnyLoss,
    strategies: Mapping[str, GivenRule],
    metrics: Mapping[str, MetricLike],
    data: Mapping[int, tuple[Problem, Trial]],
    *,
    n: int,
    seed: int,
    device: str,
    progress: Progress,
    observe: Observe | None = None,
) -> dict[tuple[str, int], Trace]:
    """By strategy and run, for the runs of `data`: what `simulate` finds of a process, many at once."""
    from stakes.models.processes_on_device import ProcessesOnDevice

    process = process_of(model)
    found: dict[tuple[str, int], Trace] = {}
    check_device(device)
    alike: dict[Any, list[int]] = {}
    tables = {run: _standard_rows(process, problem, trial) for run, (problem, trial) in data.items()}
    for run, (_, trial) in data.items():
        parts = (trial.initial, trial.pool, trial.contexts, trial.test)
        alike.setdefault((tables[run].shape, *map(len, parts)), []).append(run)
    done = 0
    for runs in alike.values():
        labels = len(data[runs[0]][1].initial) + n
        most = max(1, _CELLS[_kind(device)] // (labels**2 * process.n_draws * len(strategies)))
        for start in range(0, len(runs), most):
            few = runs[start : start + most]
            share = (done, len(few))

            def report(part: float, share: tuple[int, int] = share) -> None:
                progress("simulate", (share[0] + part * share[1]) / len(data))

            processes = ProcessesOnDevice([tables[run] for run in few], process.n_draws, seed, device, process.warp)
            together = _Together(processes, loss, strategies, metrics, few, [data[run] for run in few], n, seed)
            found |= together.traces(report, observe)
            done += len(few)
    return found


def check_device(device: str) -> None:
    """Refuse a device that torch has not."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        wanted = "device must be one that torch has, such as 'cpu' or 'cuda'"
        raise StakesError(f"{wanted}; got {device!r}: {error}") from error


def _kind(device: str) -> str:
    return "cpu" if torch.device(device).type == "cpu" else "cuda"


def _standard_rows(process: BayesianProcess, problem: Problem, trial: Trial) -> Host:
    """[n, q]: all rows as the process takes them, with columns encoded by the initial rows and the pool."""
    fresh = clone(process)
    fresh.fit_columns(*(take_rows(problem.features, each) for each in (trial.initial, trial.pool)))
    return np.asarray(fresh.standard_rows(problem.features))


class _Together:
    """Runs of one shape, with all strategies, round by round."""

    def __init__(
        self,
        processes: ProcessesOnDevice,
        loss: AnyLoss,
        strategies: Mapping[str, GivenRule],
        metrics: Mapping[str, MetricLike],
        runs: Sequence[int],
        data: Sequence[tuple[Problem, Trial]],
        n: int,
        seed: int,
    ) -> None:
        self.processes, self.loss, self.strategies, self.metrics = processes, loss, strategies, metrics
        self.runs, self.data, self.n, self.seed = runs, data, n, seed
        self.which = np.repeat(np.arange(len(runs)), len(strategies))  # [G]
        self.names = list(strategies) * len(runs)  # [G]
        self.labels = np.stack([problem.targets for problem, _ in data]).astype(float)  # [R, n]
        self.contexts, self.test = (
            np.stack([getattr(trial, part) for _, trial in data])[self.which] for part in ("contexts", "test")
        )
        self.pools = np.stack([np.sort(trial.pool) for _, trial in data])[self.which]  # [G, N]
        self.labelled = np.stack([trial.initial for _, trial in data])[self.which]  # [G, m]
        self.device = processes.rows.device

    def traces(self, progress: Callable[[float], None], observe: Observe | None) -> dict[tuple[str, int], Trace]:
        """All rounds."""
        history: dict[str, list[Host]] = {name: [] for name in TRACE_FIELDS}
        fits, count = None, len(self.names)
        for step in range(self.n + 1):
            start = time.perf_counter()
            fits = self._fits(fits)
            history["fit_seconds"].append(np.full(count, (time.perf_counter() - start) / count))
            history["losses"].append(self._losses(fits))  # [G, Q]
            if observe is not None:
                observe(step, fits, self.labelled[:, -step:] if step else self.labelled[:, :0])
            if step < self.n:
                start = time.perf_counter()
                chosen, promised = self._choices(fits, step)
                history["acquired"].append(chosen)
                history["promised"].append(promised)
                history["score_seconds"].append(np.full(count, (time.perf_counter() - start) / count))
                self.labelled = np.column_stack([self.labelled, chosen])
                self.pools = self.pools[self.pools != chosen[:, None]].reshape(count, -1)
            progress((step + 1) / (self.n + 1))
        arrays = {name: np.stack(values, axis=-1) for name, values in history.items()}  # [G, .., B]
        places = ((name, self.runs[int(run)]) for name, run in zip(self.names, self.which, strict=True))
        return {place: Trace(**{name: values[g] for name, values in arrays.items()}) for g, place in enumerate(places)}

    def _fits(self, before: Fits | None) -> Fits:
        """Those of all data sets; at the start all strategies of a run share one."""
        if before is not None:
            return self.processes.fitted(
                self.which, self.labelled, self.labels[self.which[:, None], self.labelled], before
            )
        firsts, runs = self.labelled[:: len(self.strategies)], np.arange(len(self.runs))
        return self.processes.fitted(runs, firsts, self.labels[runs[:, None], firsts]).take(self.which)

    def _losses(self, fits: Fits) -> Host:
        """[G, Q]: the metrics on test rows."""
        parts = [self._losses_of(fits.take(part), part) for part in self._parts(self.test.shape[1])]
        return np.concatenate(parts)

    def _losses_of(self, fits: Fits, part: Host) -> Host:
        centre, spread = fits.predicted(self.test[part])  # [g, T]
        targets = self.labels[self.which[part][:, None], self.test[part]]  # [g, T]
        belief, truth = _about(centre.reshape(-1), spread.reshape(-1)), torch.as_tensor(targets, device=self.device)
        found = []
        for name, metric in self.metrics.items():
            if isinstance(metric, Loss | DistributionLoss):
                each = realised_loss(metric, bayes_prediction(metric, belief), truth.reshape(-1)).each
                found.append(each.reshape(targets.shape).mean(1).cpu().numpy())
            else:
                pairs = zip(centre.cpu().numpy(), spread.cpu().numpy(), targets, strict=True)
                found.append(np.asarray([measured({name: metric}, _about(m, v), y)[0] for m, v, y in pairs]))
        return np.stack(found, axis=1)

    def _choices(self, fits: Fits, step: int) -> tuple[Host, Host]:
        """[G], [G]: the rows to acquire, and what was promised of each; NaN where nothing was."""
        chosen, promised = np.empty(len(fits), dtype=np.intp), np.full(len(fits), np.nan)
        for name, given in self.strategies.items():
            groups = np.asarray([g for g, each in enumerate(self.names) if each == name])
            if isinstance(given, Mapping):
                chosen[groups] = [given[self.runs[self.which[g]]][step] for g in groups]
                continue
            for part in self._parts(self.pools.shape[1] * self.contexts.shape[1], groups):
                scores, worths = self._scores(given, fits, part)
                for place, g in enumerate(part):
                    path = (self.seed, self.runs[self.which[g]], step)
                    ties = np.asarray(random_stream(*path, TIES).random(self.labels.shape[1]))[self.pools[g]]
                    of = scores[place]
                    best = best_candidate(name, of, _no_belief, self.loss, random_stream(*path, SCORE), ties)
                    chosen[g], promised[g] = self.pools[g, best], worths[place]
        return chosen, promised

    def _scores(self, given: Rule | None, fits: Fits, part: Host) -> tuple[list[Rule | None], Host]:
        """[g] rules that need no belief any more, and the best worth of each."""
        nothing = np.full(len(part), np.nan)
        if given is None:
            return [None] * len(part), nothing
        moments = fits.take(part).moments(self.pools[part], self.contexts[part])
        if not isinstance(given, ExpectedReduction):
            return [_known(given, _one(moments, place)) for place in range(len(part))], nothing
        loss = given.of(self.loss)
        scores, most = (each.cpu().numpy() for each in _reductions(loss, moments))
        best = scores.max(axis=1)
        for place in np.flatnonzero(best <= _NEAR_NOTHING * most).tolist() if loss.finite_actions else ():
            scores[place], log_factor = reductions(loss, _one(moments, place))
            best[place] = scores[place].max() * np.exp(log_factor)
            scores[place] *= np.exp(log_factor) if np.isfinite(log_factor) else 1.0
        return [partial(_same, row) for row in scores], best

    def _parts(self, numbers: int, groups: Host | None = None) -> list[Host]:
        """Some data sets, or all, in parts that memory allows, each with so many numbers for each draw."""
        groups = np.arange(len(self.names)) if groups is None else groups
        most = max(1, _PAIRS[_kind(str(self.device))] // (numbers * self.processes.n_draws))
        return [groups[start : start + most] for start in range(0, len(groups), most)]


def _reductions(loss: AnyLoss, moments: LabelMoments) -> tuple[Any, Any]:
    """[g, N], [g]: the expected reduction of the mean loss by each label; and by one that would tell all targets."""
    groups, candidates, contexts = moments.covariance.shape
    scaled = moments.covariance / torch.sqrt(moments.label_variance)[..., None]
    pairs = scaled.permute(1, 0, 2).reshape(candidates, groups * contexts)
    variance = moments.variance.reshape(-1)
    pairs = torch.cat([pairs, torch.sqrt(variance)[None]])  # one more candidate, whose label tells all
    belief = GaussianBelief(moments.mean.reshape(-1), variance, variance.new_ones(candidates + 1), pairs)
    found = expected_reduction(loss, belief).reshape(candidates + 1, groups, contexts).mean(-1).T
    return found[:, :-1], found[:, -1]


def _no_belief() -> Any:
    return None


def _known(rule: Rule, belief: GaussianBelief) -> Rule:
    """A rule with its belief."""
    return lambda _, loss, random_state: rule(belief, loss, random_state)


def _same(scores: Host, belief: Any, loss: AnyLoss, random_state: np.random.Generator) -> Host:  # noqa: ARG001
    return scores


def _one(moments: LabelMoments, place: int) -> GaussianBelief:
    """The belief of one data set, on the host."""
    mean, variance, label_variance, covariance, noise = (each[place].cpu().numpy() for each in moments)
    return GaussianBelief(mean, variance, label_variance, covariance, None, noise)


def _about(mean: Any, variance: Any) -> GaussianBelief:
    """A belief about targets, with a label that tells nothing."""
    nothing = mean[:1] * 0.0
    return GaussianBelief(mean, variance, nothing + 1.0, (mean * 0.0)[None])
