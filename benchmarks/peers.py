"""Peers on the same job: expected errors by refitting, with costs and without, beside `stakes.rank` with a CostMatrix.

Same forest, splits, random states and number of labels, on one thread, in seconds of the processor:
`python -m benchmarks.peers`. Needs scikit-activeml, which stakes itself does not. modAL 0.4.2.1 wants numpy before
1.24, which stakes does not allow: `--modal` names the interpreter of an environment that has it.
Sizes: R runs, S strategies, C classes, N rows of the pool.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from benchmarks.speed_of_peers import asked
from stakes import CostMatrix, rank
from stakes.baselines import expected_future_error

try:
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import MonteCarloEER, ValueOfInformationEER
except ImportError:
    raise SystemExit("This compares with scikit-activeml, which is not here: pip install scikit-activeml") from None

TABLES = {"breast cancer": load_breast_cancer, "wine": load_wine}
MISSED = 20.0  # what the first class costs when it is taken for another; other errors cost 1


@dataclass(frozen=True, eq=False)
class Scene:
    """All that a strategy may see before it buys a label."""

    forest: RandomForestClassifier
    """not fitted; its random_state is a number"""
    features: Any
    labels: Any
    pool: Any
    contexts: Any
    costs: Any
    """[C, C]: of the truth and the answer"""


def main() -> None:
    given = _parser().parse_args()
    features, labels = TABLES[given.table](return_X_y=True)
    costs = missed_first(len(np.unique(labels)))
    strategies = STRATEGIES if given.modal is None else {**STRATEGIES, **of_modal(given.modal)}
    strategies = {name: choose for name, choose in strategies.items() if name in (given.only or strategies)}
    outcomes = []
    with threadpool_limits(1):
        for run in range(given.runs):
            outcomes.append([_loop(choose, features, labels, costs, given, run) for choose in strategies.values()])
            print(f"run {run + 1} of {given.runs}", flush=True)
            if run or given.runs == 1:  # the table so far, so that a run that is stopped was not in vain
                results = np.asarray(outcomes)  # [R, S, 2]
                print(markdown(list(strategies), results[:, :, 0], results[:, :, 1]), flush=True)


def missed_first(count: int) -> Any:
    """[C, C]: 1 for an error, MISSED where the truth is the first class."""
    costs = 1.0 - np.eye(count)
    costs[0] *= MISSED
    return costs


Strategy: TypeAlias = Callable[[Scene], tuple[int, float]]
"""A position in the pool, and the seconds of the processor that it took to choose it."""


def at_random(scene: Scene) -> int:
    return int(np.random.default_rng(scene.forest.random_state).integers(len(scene.pool)))


def by_stakes(scene: Scene) -> int:
    model = scene.forest.fit(scene.features, scene.labels)
    return int(rank(model, CostMatrix(scene.costs), scene.pool, contexts=scene.contexts, n=1, batch=False).indices[0])


def by_refitting(scene: Scene) -> int:
    loss = CostMatrix(scene.costs)
    scores = expected_future_error(
        scene.forest, loss, scene.features, scene.labels, scene.pool, contexts=scene.contexts
    )
    return int(np.argmax(scores))


def by_monte_carlo(scene: Scene) -> int:
    strategy = MonteCarloEER("misclassification_loss", cost_matrix=scene.costs, random_state=0)
    return _queried(strategy, scene, X_eval=scene.contexts)


def by_value_of_information(scene: Scene) -> int:
    """On the pool and the labelled rows, as theirs has no contexts."""
    return _queried(ValueOfInformationEER(cost_matrix=scene.costs, random_state=0), scene)


def _queried(strategy: Any, scene: Scene, **more: Any) -> int:
    labelled = len(scene.features)
    rows = np.concatenate([scene.features, scene.pool])
    labels = np.concatenate([scene.labels.astype(float), np.full(len(scene.pool), np.nan)])
    model = SklearnClassifier(scene.forest, classes=list(range(len(scene.costs))), random_state=0)
    return int(strategy.query(rows, labels, model, **more)[0]) - labelled


def timed(choose: Callable[[Scene], int], scene: Scene) -> tuple[int, float]:
    start = time.process_time()
    chosen = choose(scene)
    return chosen, time.process_time() - start


def by_modal(job: str, python: str, scene: Scene) -> tuple[int, float]:
    """In its own environment: imports and the start of a process are not counted, the fit of the forest is."""
    size = {"trees": scene.forest.n_estimators, "random_state": scene.forest.random_state}
    found, note = asked(python, job, {"rows": scene.features, "labels": scene.labels, "candidates": scene.pool, **size})
    if found is None:
        raise SystemExit(f"{job} by {python}: {note}")
    return int(np.argmax(found["scores"])), float(found["seconds"])


MODAL = ("modAL expected error", "modAL uncertainty")
"""They know no costs."""
STRATEGIES: dict[str, Strategy] = {
    "stakes.rank": partial(timed, by_stakes),
    "random": partial(timed, at_random),
    "stakes.baselines": partial(timed, by_refitting),
    "MonteCarloEER": partial(timed, by_monte_carlo),
    "ValueOfInformationEER": partial(timed, by_value_of_information),
}


def of_modal(python: str) -> dict[str, Strategy]:
    """Those of modAL, by an interpreter that has it."""
    return {job: partial(by_modal, job, python) for job in MODAL}


def _loop(choose: Strategy, features: Any, labels: Any, costs: Any, given: Any, run: int) -> tuple[float, float]:
    """The mean cost on test rows after each label, averaged over labels, and the median seconds to choose one."""
    known, pool, contexts, test = _split(labels, given, run)
    realised, seconds = [], []
    for step in range(given.labels):
        forest = RandomForestClassifier(given.trees, random_state=1000 * run + step)
        scene = Scene(forest, features[known], labels[known], features[pool], features[contexts], costs)
        chosen, taken = choose(scene)
        seconds.append(taken)
        known, pool = np.append(known, pool[chosen]), np.delete(pool, chosen)
        probabilities = forest.fit(features[known], labels[known]).predict_proba(features[test])  # [T, C]
        realised.append(costs[labels[test], np.argmin(probabilities @ costs, axis=1)].mean())
    return float(np.mean(realised)), float(np.median(seconds))


def _split(labels: Any, given: Any, run: int) -> tuple[Any, Any, Any, Any]:
    """Positions: known at the start, with each class among them, the pool, the contexts, and the rest to test on."""
    order = np.random.default_rng(run).permutation(len(labels))
    firsts = np.sort(np.unique(labels[order], return_index=True)[1])
    order = np.concatenate([order[firsts], np.delete(order, firsts)])
    known, pool, contexts, test = np.split(order, np.cumsum([given.initial, given.pool, given.contexts]))
    return known, pool, contexts, test


def markdown(names: Sequence[str], realised: Any, seconds: Any) -> str:
    """From [R, S] each: mean costs, paired differences from the first strategy, seconds and their ratio within runs."""
    lines = [
        "| strategy | cost | cost - cost of stakes.rank | seconds for a label | times stakes.rank |",
        "| --- " * 5 + "|",
    ]
    for place, name in enumerate(names):
        ratio = np.median(seconds[:, place] / seconds[:, 0])
        gap = _interval(realised[:, place] - realised[:, 0]) if place else ""
        lines.append(
            f"| {name} | {realised[:, place].mean():.3f} | {gap} | {np.median(seconds[:, place]):.3g} | {ratio:.3g} |"
        )
    return "\n".join(lines)


def _interval(gaps: Any) -> str:
    half = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return f"{gaps.mean():.3f} ({gaps.mean() - half:.3f} to {gaps.mean() + half:.3f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", choices=TABLES, default="breast cancer")
    sizes = {"runs": 10, "labels": 8, "initial": 10, "pool": 60, "contexts": 60, "trees": 50}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--modal", metavar="PYTHON", help="the interpreter of an environment with modAL")
    parser.add_argument("--only", nargs="+", choices=[*STRATEGIES, *MODAL], help="some of the strategies")
    return parser


if __name__ == "__main__":
    main()
