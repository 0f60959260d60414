"""How probable test labels were under the default for numbers: under its draws, and under the Gaussian in their place.

    python -m experiments densities

`BayesianProcess` averages over draws of hyperparameters: what it says of a row is a mixture. Rows are ranked by one
Gaussian belief with the means and covariances of that mixture, which is quick for every loss. Here both are compared
with the reference of the yardstick, on its tables and splits, with labels chosen at random, fitted by the product
itself.

Sizes: T test rows, R runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.labels_saved.beliefs import ReferenceProcess
from experiments.labels_saved.densities import log_densities
from experiments.labels_saved.rivals import random_order
from experiments.labels_saved.splits import LABELS, split
from experiments.labels_saved.tables import NUMBERS, Host, Table, load
from experiments.markdown import table
from stakes.models import BayesianProcess

RESULTS = Path("experiments/results/densities")
RUNS = 20
COUNTS = (20, LABELS["numbers"])  # labels bought
BELIEFS = {"one Gaussian": "gaussian", "draws": "mixture"}
"""What the page calls them, and what `BayesianProcess` does."""
REFERENCE = "reference"


def carry_out(data: Table, run: int, counts: Sequence[int] = COUNTS) -> dict[str, dict[str, list[float]]]:
    """For each count of labels and each belief: the mean log density of test rows, single ones and pairs."""
    trial, found = split(data, run, max(counts)), {}
    order = random_order(trial, max(counts), run)
    known = np.concatenate([trial.initial, trial.pool])
    rows, targets = trial.X[trial.test], data.y[trial.test]
    for count in counts:
        labelled = np.concatenate([trial.initial, order[:count]])
        X, y = trial.X[labelled], data.y[labelled]  # noqa: N806
        model = BayesianProcess(random_state=run).fit(X, y, pool=trial.X[known])
        reported = {REFERENCE: list(log_densities(ReferenceProcess().fit(X, y), rows, targets))}
        for name, belief in BELIEFS.items():
            reported[name] = list(log_densities(model.set_params(belief=belief), rows, targets))
        found[str(count)] = reported
    return found


def gains(runs: Sequence[Mapping[str, Any]], count: int, belief: str) -> Host:
    """[R, 2]: by how much the log density is above the reference's, single and pairs."""
    reported, base = (np.asarray([run[str(count)][name] for run in runs]) for name in (belief, REFERENCE))
    return np.asarray(reported - base)


def report(kept: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Shares of tables in which each belief is better, and the gain on each table."""
    lines, every = [], []
    for belief in BELIEFS:
        for count in COUNTS:
            means = np.asarray([gains(runs, count, belief).mean(axis=0) for runs in kept.values()])  # [tables, 2]
            better = [f"{int(each)} of {len(means)}" for each in (means > 0).sum(axis=0)]
            average = [f"{each:+.3f}" for each in means.mean(axis=0)]
            lines.append([belief, count, better[0], average[0], better[1], average[1]])
    for name, runs in kept.items():
        cells: list[object] = [name, len(runs)]
        for count in COUNTS:
            for belief in BELIEFS:
                found = gains(runs, count, belief)[:, 0]
                error = found.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else float("nan")
                cells.append(f"{found.mean():+.3f} ± {error:.3f}")
        every.append(cells)
    head = ["belief", "labels bought", "single: better in", "mean gain", "pairs: better in", "mean gain"]
    heads = ["table", "runs", *(f"{belief}, {count} labels" for count in COUNTS for belief in BELIEFS)]
    text = (
        "Log density of test labels, less that of the reference with the same labels; ± is one standard error over runs"
    )
    return f"{text}.\n\n{table(head, lines)}\n\n{table(heads, every)}\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out what is not there yet, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m experiments densities", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each table")
    parser.add_argument("--tables", nargs="+", default=list(NUMBERS))
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
    (given.results / "report.md").write_text(report(kept))
    print(report(kept))
