"""Other ways to choose and to believe beside the default, in small paired studies of classes.

    python -m experiments choices

What is tried: how many contexts stand for the pool; a softer minimum in place of the least expected cost, and the log
loss wherever single worths are small (both since a label that changes no decision by itself is worth nothing); members
of several models weighed by stacking; and which rows to label first. Each is compared with the default on the same
splits, with the same random numbers. Tables and losses are those of the yardstick; the runs are others.

Sizes: n labels, R rows, K members, C classes, N candidates, M contexts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from experiments.labels_saved.beliefs import DEFAULT
from experiments.labels_saved.compiled import Fit, Process, realised
from experiments.labels_saved.measures import geometric_mean
from experiments.labels_saved.problems import DRIVERS, Problem, problems
from experiments.labels_saved.rivals import random_order
from experiments.labels_saved.splits import split
from experiments.labels_saved.tables import Host, Table, load
from experiments.labels_saved.trees import grown
from experiments.markdown import number, table
from stakes import CategoricalEnsemble, CostMatrix, cold_start
from stakes._utils.compute import loop
from stakes.models import TableEncoder
from stakes.simulation import Trial
from stakes.simulation.strategies import reductions

TABLES = ("ionosphere", "phoneme", "spambase", "vehicle", "wdbc", "wine", "magic", "saheart")
RUNS, LABELS = 6, 20
FIRST_RUN = 100  # those before are the yardstick's
FOLDER = Path("experiments/results/choices")
STEEPNESS = 20.0  # of the softer minimum, over the largest cost
_FOLDS, _MEMBERS = 5, {"extra trees": 100, "forest": 60, "logistic": 40}
_FLOOR = 0.03  # of each member's mass that goes to class frequencies, beside extra trees, which have their own


@dataclass(frozen=True)
class Variant:
    """Another way than the default's."""

    name: str
    choose: Callable[[Process, Fit, Problem], int]
    """the row to buy"""
    believe: Callable[[Process, Fit], Host] | None = None
    """[T, C]: what is said of test rows; None: what the default says"""
    trial: Callable[[Trial], Trial] = lambda trial: trial
    losses: tuple[str, ...] = DRIVERS["classes"]
    beside: str = "the default"
    """the name of what it is compared with"""


def curve(variant: Variant, data: Table, run: int, problem: Problem, bought: int = LABELS) -> Host:
    """[B + 1]: the loss on test rows after each label, of one variant driven by one loss."""
    process = Process(data, variant.trial(split(data, run, bought)), run, problems(data), bought)
    acquired: list[int] = []
    found = []
    for step in range(bought + 1):
        fit = process.fitted(tuple(acquired), DEFAULT)
        predicted = fit.averaged_on_test() if variant.believe is None else variant.believe(process, fit)
        found.append(realised(problem, predicted, data.y[process.trial.test]))
        if step < bought:
            acquired.append(variant.choose(process, fit, problem))
    return np.asarray(found)


def _best(scores: Host, fit: Fit) -> int:
    return int(fit.pool[int(np.argmax(scores))])


def by_reduction(process: Process, fit: Fit, problem: Problem) -> int:  # noqa: ARG001 (all have one signature)
    """As the default does."""
    return _best(fit.reductions(problem)[0], fit)


def at_random(process: Process, fit: Fit, problem: Problem) -> int:  # noqa: ARG001
    """As random choice does."""
    return int(random_order(process.trial, process.bought, process.run)[len(fit.acquired)])


def by_softer_minimum(process: Process, fit: Fit, problem: Problem) -> int:
    """The least expected cost is replaced by a smooth one, so that every label that moves a belief is worth something.

    As soft mean objective cost does for errors (Zhao et al., 2021): log-sum-exp in place of the maximum.
    """
    if not isinstance(problem.loss, CostMatrix):
        return by_reduction(process, fit, problem)
    costs = np.asarray(problem.loss.costs)
    return _best(soft_reductions(fit.belief, costs, STEEPNESS / costs.max()), fit)


def soft_reductions(belief: CategoricalEnsemble, costs: Host, steepness: float) -> Host:
    """[N]: by how much a label lowers the soft minimum of expected costs [z, a], averaged over contexts."""
    today = soft_minimum(belief.contexts.mean(axis=1) @ costs, steepness)  # [M]
    expected = (belief.contexts @ costs) / belief.contexts.shape[1]  # [M, K, A]
    found = np.empty(len(belief.candidates))
    for n, members in enumerate(belief.candidates):  # [K, C]
        label = members.mean(axis=0)
        after = soft_minimum(np.einsum("ky,mka->mya", members, expected) / label[:, None], steepness)  # [M, C]
        found[n] = np.mean(today - after @ label)
    return found


def soft_minimum(costs: Host, steepness: float) -> Host:
    """[...]: less the log-sum-exp of less the costs [..., A] times the steepness, over the steepness."""
    return np.asarray(-logsumexp(-steepness * costs, axis=-1) / steepness)


def by_log_loss_below(share: float) -> Callable[[Process, Fit, Problem], int]:
    """By the log loss wherever the best label is worth less than a share of the expected cost today."""

    def choose(process: Process, fit: Fit, problem: Problem) -> int:
        scores, worth = fit.reductions(problem)
        if isinstance(problem.loss, CostMatrix):
            predicted = fit.averaged_on_contexts()
            today = float((predicted @ np.asarray(problem.loss.costs)).min(axis=1).mean())
            if worth < share * today:
                scores, _ = fit.reductions(process.losses["log loss"])
        return _best(scores, fit)

    return choose


# several models, weighed by stacking


@dataclass(frozen=True, eq=False)
class Stack:
    """Members of several models in one ensemble."""

    parts: tuple[Callable[[Host], Host], ...]
    """from rows [R, d] to [R, K, C]"""
    weights: Host
    """[models]: what each counts"""

    def members(self, rows: Host) -> tuple[Host, Host]:
        """[R, K, C] and [K]: of all models, and what each member counts."""
        members = [part(rows) for part in self.parts]
        shares = [
            np.full(each.shape[1], weight / each.shape[1]) for each, weight in zip(members, self.weights, strict=True)
        ]
        return np.concatenate(members, axis=1), np.concatenate(shares)


def stacked(rows: Host, targets: Host, n_classes: int, seed: int, prior: Host, share: float) -> Stack:
    """Extra trees, a forest and logistic regressions, weighed by the joint log loss of pairs that were left out."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(rows))
    joint = []  # [pairs, models]
    for fold in range(_FOLDS):
        out = order[fold::_FOLDS]
        kept = np.setdiff1d(order, out)
        if len(out) < 2 or len(np.unique(targets[kept])) < 2:
            continue
        near = cdist(rows[out], rows[out])
        np.fill_diagonal(near, np.inf)
        partner = near.argmin(axis=1)
        members = [part(rows[out]) for part in _parts(rows[kept], targets[kept], n_classes, seed + fold, prior, share)]
        seen = [each[np.arange(len(out)), :, targets[out]] for each in members]  # [out, K]
        joint.append(np.stack([(each * each[partner]).mean(axis=1) for each in seen], axis=1))
    weights = _stacking(np.concatenate(joint)) if joint else np.full(len(_MEMBERS), 1.0 / len(_MEMBERS))
    return Stack(_parts(rows, targets, n_classes, seed, prior, share), weights)


def _stacking(joint: Host, steps: int = 50) -> Host:
    """[models]: the weights under which joint probabilities [pairs, models] are largest, by EM."""
    weights = np.full(joint.shape[1], 1.0 / joint.shape[1])
    for _ in range(steps):
        shares = joint * weights
        weights = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
    return np.asarray(weights)


def _parts(
    rows: Host, targets: Host, n_classes: int, seed: int, prior: Host, share: float
) -> tuple[Callable[[Host], Host], ...]:
    trees = grown(rows, targets, n_classes, _MEMBERS["extra trees"], seed)
    forest = grown(rows, targets, n_classes, _MEMBERS["forest"], seed, extremely=False)
    times = np.random.default_rng(seed).multinomial(
        len(rows), np.full(len(rows), 1.0 / len(rows)), _MEMBERS["logistic"]
    )
    own = rows @ rows.T + 1.0

    def logistic(asked: Host) -> Host:
        found = np.zeros((len(asked), len(times), n_classes))
        fit_logistic(own, asked @ rows.T + 1.0, targets, times.astype(float), found)
        return found / found.sum(axis=2, keepdims=True)

    def smoothed(part: Callable[[Host], Host], mass: float) -> Callable[[Host], Host]:
        return lambda asked: (1.0 - mass) * part(asked) + mass * prior

    return (
        smoothed(lambda asked: trees.shares(trees.leaves(asked)), share),
        smoothed(lambda asked: forest.shares(forest.leaves(asked)), _FLOOR),
        smoothed(logistic, _FLOOR),
    )


@loop
def fit_logistic(own: Any, cross: Any, targets: Any, times: Any, found: Any) -> None:
    """Fill `found` [R, K, C]: logistic regressions of each class against the others, a ridge of 1, by Newton's method.

    Inner products [n, n] of the labels and [R, n] of the rows asked with them; times [K, n] that each member has a row.
    """
    n = len(own)
    for k in range(len(times)):
        for c in range(found.shape[2]):
            values, dual = np.zeros(n), np.zeros(n)
            for _ in range(8):
                probability = 1.0 / (1.0 + np.exp(-values))
                curvature = times[k] * probability * (1.0 - probability) + 1e-9
                root = np.sqrt(curvature)
                target = curvature * values
                for i in range(n):
                    target[i] += times[k, i] * ((1.0 if targets[i] == c else 0.0) - probability[i])
                system = root.reshape(n, 1) * own * root.reshape(1, n) + np.eye(n)
                dual = target - root * np.linalg.solve(system, root * (own @ target))
                values = own @ dual
            found[:, k, c] = 1.0 / (1.0 + np.exp(-(cross @ dual))) + 1e-9


@lru_cache(maxsize=1)
def _stack_of(process: Process, fit: Fit) -> Stack:
    """The stack after the labels of a fit, made once."""
    rows = np.concatenate([process.trial.initial, np.asarray(fit.acquired, dtype=np.intp)])
    features, targets = np.asarray(process.trial.X)[rows], process.table.y[rows]
    return stacked(features, targets, len(process.table.classes), len(rows), fit.prior, fit.share)


def say_by_stack(process: Process, fit: Fit) -> Host:
    """[T, C]: what the stack says of test rows."""
    predicted, shares = _stack_of(process, fit).members(np.asarray(process.trial.X)[process.trial.test])
    return np.asarray(np.einsum("tkc,k->tc", predicted, shares))


def by_stack(process: Process, fit: Fit, problem: Problem) -> int:
    """The largest reduction under the stack."""
    rows, stack = np.asarray(process.trial.X), _stack_of(process, fit)
    pool, shares = stack.members(rows[fit.pool])
    contexts, _ = stack.members(rows[process.trial.contexts])
    return _best(reductions(problem.loss, CategoricalEnsemble(pool, contexts, shares))[0], fit)


# which rows to label first


def by_medoids(features: Host, count: int, seed: int) -> Host:
    """As `stakes.cold_start` does."""
    return np.asarray(cold_start(features, n=count, random_state=seed).indices)


def by_k_centre(features: Host, count: int, seed: int) -> Host:
    """Positions [count]: a row at random, then each time the one that is furthest from those before."""
    features = TableEncoder().fit(features).transform(features)
    chosen = [int(np.random.default_rng(seed).integers(len(features)))]
    while len(chosen) < count:
        chosen.append(int(cdist(features, features[chosen]).min(axis=1).argmax()))
    return np.asarray(chosen)


def drawn(features: Host, count: int, seed: int) -> Host:
    """Positions [count] at random."""
    return np.random.default_rng(seed).choice(len(features), count, replace=False)


STARTS: dict[str, Callable[[Host, int, int], Host]] = {
    "medoids (the default)": by_medoids,
    "k-centre": by_k_centre,
    "random": drawn,
}


def starts(data: Table, run: int, count: int) -> dict[str, dict[str, float]]:
    """The losses of the default after the first `count` labels, by the rule that chose them."""
    trial = split(data, run, LABELS)
    pool, features = np.concatenate([trial.initial, trial.pool]), np.asarray(trial.X)
    found = {}
    for name, rule in STARTS.items():
        rows = pool[rule(features[pool], count, run)]
        process = Process(data, replace(trial, initial=rows, pool=np.setdiff1d(pool, rows)), run, problems(data), 1)
        predicted = process.fitted((), DEFAULT).averaged_on_test()
        found[name] = {name: realised(each, predicted, data.y[trial.test]) for name, each in process.losses.items()}
    return found


# the study


def with_contexts(count: int | None) -> Callable[[Trial], Trial]:
    """So many contexts; None: all rows of the pool and those that have labels."""

    def changed(trial: Trial) -> Trial:
        rows = np.concatenate([trial.initial, trial.pool])
        order = np.concatenate([trial.contexts, np.setdiff1d(rows, trial.contexts)])
        return replace(trial, contexts=order[:count])

    return changed


BASES = (Variant("the default", by_reduction), Variant("the default, random choice", at_random))
VARIANTS = (
    Variant("60 contexts", by_reduction, trial=with_contexts(60)),
    Variant("all rows as contexts", by_reduction, trial=with_contexts(None)),
    Variant("softer minimum of costs", by_softer_minimum, losses=("cost of a miss",)),
    Variant("log loss where the best label saves below 1%", by_log_loss_below(0.01), losses=("cost of a miss",)),
    Variant("log loss where the best label saves below 3%", by_log_loss_below(0.03), losses=("cost of a miss",)),
    Variant("stacked models", by_stack, say_by_stack),
    Variant("stacked models, random choice", at_random, say_by_stack, beside=BASES[1].name),
)


def study(names: Sequence[str], runs: int, bought: int, folder: Path, variants: Sequence[str] | None = None) -> None:
    """Run what is missing, table by table; each curve is kept in a file of its table."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        data, path = load(name), folder / f"{name}.json"
        kept: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
        for variant in (*BASES, *VARIANTS):
            if variants is not None and variant.name not in (*variants, *(base.name for base in BASES)):
                continue
            for loss in variant.losses:
                curves = kept.setdefault(variant.name, {}).setdefault(loss, [])
                for run in range(len(curves), runs):
                    found = curve(variant, data, FIRST_RUN + run, problems(data)[loss], bought)
                    curves.append([float(f"{value:.4g}") for value in found])
        begun = kept.setdefault("starts", {})
        for run in range(runs):
            if str(run) not in begun:
                begun[str(run)] = starts(data, FIRST_RUN + run, max(10, len(data.classes)))
        path.write_text(json.dumps(kept) + "\n")
        print(name, flush=True)


def report(folder: Path) -> str:
    """Ratios to the default: after the last label, and of means over all labels; geometric means over tables."""
    kept = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    lines = []
    for variant in VARIANTS:
        for loss in variant.losses:
            pairs = [
                (np.asarray(each[variant.name][loss]), np.asarray(each[variant.beside][loss]))
                for each in kept
                if variant.name in each
            ]
            if pairs:
                lines.append([variant.name, loss, *_compared(pairs)])
    for start in (name for name in STARTS if name != next(iter(STARTS))):
        for loss in DRIVERS["classes"]:
            pairs = [
                tuple(
                    np.asarray([[run[name][loss]] for run in each["starts"].values()])
                    for name in (start, next(iter(STARTS)))
                )
                for each in kept
            ]
            lines.append([f"first labels: {start}", loss, *_compared(pairs)])
    return table(["tried", "loss", "tables", "last loss, ratio", "mean loss, ratio", "lower in", "p"], lines)


def _compared(pairs: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Ratios of curves [R, B + 1] of the same runs, and Wilcoxon's test that means of curves differ, over all runs."""
    last = [float(ours[:, -1].mean() / base[:, -1].mean()) for ours, base in pairs]
    mean = [
        float(ours[:, 1:].mean() / base[:, 1:].mean()) if ours.shape[1] > 1 else one
        for one, (ours, base) in zip(last, pairs, strict=True)
    ]
    gaps = np.concatenate([(ours.mean(axis=1) - base.mean(axis=1)) / base.mean() for ours, base in pairs])
    p_value = float(stats.wilcoxon(gaps).pvalue) if np.any(gaps != 0) else 1.0
    ratios = [geometric_mean(each) for each in (last, mean)]
    spans = [f"{number(each.value)} ({number(each.low)} to {number(each.high)})" for each in ratios]
    return [len(pairs), *spans, f"{np.mean([each < 1.0 for each in mean]):.0%}", f"{p_value:.2g}"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments choices", description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--labels", type=int, default=LABELS)
    parser.add_argument("--variants", nargs="+", choices=[each.name for each in VARIANTS], help="by default all")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--report", action="store_true", help="the table again, from what is there")
    given = parser.parse_args(arguments)
    if not given.report:
        study(given.tables, given.runs, given.labels, given.results, given.variants)
    print(report(given.results))


if __name__ == "__main__":
    main()
