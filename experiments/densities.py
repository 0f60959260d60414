"""How probable test labels were under the defaults: for numbers under draws and the Gaussian in their place.

    python -m experiments densities

`BayesianProcess` averages over draws of hyperparameters: what it says of a row is a mixture. Rows are ranked by one
Gaussian belief with the means and covariances of that mixture, which is quick for every loss. Here both are compared
with the reference of the yardstick, on its tables and splits, with labels chosen at random, fitted by the product
itself. The default for classes is compared with the one before the yardstick, a forest of 100 trees that vote.

Sizes: T test rows, R runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from experiments.labels_saved.beliefs import ReferenceProcess
from experiments.labels_saved.densities import log_densities
from experiments.labels_saved.rivals import random_order
from experiments.labels_saved.splits import LABELS, split
from experiments.labels_saved.tables import CLASSES, NUMBERS, Host, Table, Task, load
from experiments.markdown import table
from stakes import default
from stakes.models import BayesianProcess

RESULTS = Path("experiments/results/densities")
RUNS = 20
FIRST_COUNT = 20  # labels bought; and as many as the yardstick buys
GAUSSIANS = {"one Gaussian": "gaussian", "draws": "mixture"}
"""What the page calls them, and what `BayesianProcess` does."""
DEFAULT, REFERENCE = "default", "reference"
BELIEFS: dict[Task, tuple[str, ...]] = {"numbers": tuple(GAUSSIANS), "classes": (DEFAULT,)}
_BESIDE: dict[Task, str] = {
    "numbers": "that of the reference with the same labels",
    "classes": "that of a forest of 100 trees that vote, with the same labels (1% of all probabilities spread evenly)",
}


def counts_of(task: Task) -> tuple[int, int]:
    """Labels bought when densities are taken."""
    return FIRST_COUNT, LABELS[task]


def carry_out(data: Table, run: int, counts: Sequence[int] = ()) -> dict[str, dict[str, list[float]]]:
    """For each count of labels and each belief: the mean log density of test rows, single ones and pairs."""
    counts = counts or counts_of(data.task)
    trial, found = split(data, run, max(counts)), {}
    order = random_order(trial, max(counts), run)
    for count in counts:
        labelled = np.concatenate([trial.initial, order[:count]])
        of_task = _of_numbers if data.task == "numbers" else _of_classes
        found[str(count)] = of_task(data, labelled, np.concatenate([trial.initial, trial.pool]), trial.test, run)
    return found


def _of_numbers(data: Table, labelled: Host, known: Host, test: Host, run: int) -> dict[str, list[float]]:
    features, rows, targets = data.standardised, data.standardised[test], data.y[test]
    X, y = features[labelled], data.y[labelled]  # noqa: N806
    model = BayesianProcess(random_state=run).fit(X, y, pool=features[known])
    reported = {REFERENCE: list(log_densities(ReferenceProcess().fit(X, y), rows, targets))}
    for name, belief in GAUSSIANS.items():
        reported[name] = list(log_densities(model.set_params(belief=belief), rows, targets))
    return reported


def _of_classes(data: Table, labelled: Host, known: Host, test: Host, run: int) -> dict[str, list[float]]:
    features, rows, targets = data.standardised, data.standardised[test], data.y[test]
    X, y, classes = features[labelled], data.y[labelled], list(range(len(data.classes)))  # noqa: N806
    models = {
        REFERENCE: RandomForestClassifier(100, random_state=run).fit(X, y),
        DEFAULT: default(X, y, pool=features[known], classes=classes, random_state=run),
    }
    return {name: list(log_densities(model, rows, targets, classes)) for name, model in models.items()}


def gains(runs: Sequence[Mapping[str, Any]], count: int, belief: str) -> Host:
    """[R, 2]: by how much the log density is above the reference's, single and pairs."""
    reported, base = (np.asarray([run[str(count)][name] for run in runs]) for name in (belief, REFERENCE))
    return np.asarray(reported - base)


def report(kept: Mapping[str, Sequence[Mapping[str, Any]]], task: Task) -> str:
    """Shares of tables in which each belief is better, and the gain on each table."""
    lines, every, counts = [], [], counts_of(task)
    for belief in BELIEFS[task]:
        for count in counts:
            means = np.asarray([gains(runs, count, belief).mean(axis=0) for runs in kept.values()])  # [tables, 2]
            better = [f"{int(each)} of {len(means)}" for each in (means > 0).sum(axis=0)]
            average = [f"{each:+.3f}" for each in means.mean(axis=0)]
            lines.append([belief, count, better[0], average[0], better[1], average[1]])
    for name, runs in kept.items():
        cells: list[object] = [name, len(runs)]
        for count in counts:
            for belief in BELIEFS[task]:
                found = gains(runs, count, belief)[:, 0]
                error = found.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else float("nan")
                cells.append(f"{found.mean():+.3f} ± {error:.3f}")
        every.append(cells)
    head = ["belief", "labels bought", "single: better in", "mean gain", "pairs: better in", "mean gain"]
    heads = ["table", "runs", *(f"{belief}, {count} labels" for count in counts for belief in BELIEFS[task])]
    text = f"Log density of test labels, less {_BESIDE[task]}; ± is one standard error over runs"
    return f"{text}.\n\n{table(head, lines)}\n\n{table(heads, every)}\n"


def whole_report(kept: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Of numbers and of classes, as far as there are runs."""
    parts = [("numbers", NUMBERS), ("classes", CLASSES)]
    found = [(task, {name: kept[name] for name in names if name in kept}) for task, names in parts]
    return "\n".join(report(runs, task) for task, runs in found if runs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out what is not there yet, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m experiments densities", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each table")
    parser.add_argument("--tables", nargs="+", default=[*NUMBERS, *CLASSES])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="only show what was kept")
    given = parser.parse_args(arguments)
    file = given.results / "runs.json"
    kept: dict[str, list[dict[str, Any]]] = json.loads(file.read_text()) if file.exists() else {}
    for name in [] if given.report else given.tables:
        data, runs = load(name), kept.setdefault(name, [])
        while len(runs) < given.runs:
            runs.append(carry_out(data, len(runs)))
            given.results.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(kept) + "\n")
            print(name, len(runs), flush=True)
    (given.results / "report.md").write_text(whole_report(kept))
    print(whole_report(kept))
