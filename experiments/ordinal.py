"""`python -m experiments ordinal`: does a model that knows the order of classes save labels, at costs by distance?

Numbers of three tables of the yardstick (`labels_saved`) are cut at their quantiles into classes that have an order,
and a mistake costs the distance between the classes. Labels are bought one at a time by `rank`, or at random, for the
ordered probit process and for the default without the order, which are trees. What counts is the cost on test rows of
what each model answers after each label, and how many labels each needs to reach what the trees have after all labels
drawn at random. A run that is finished is kept, and not carried out again.

Sizes: R runs, B labels bought.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.labels_saved.measures import last_level, passages
from experiments.labels_saved.problems import Problem
from experiments.labels_saved.splits import split
from experiments.labels_saved.tables import Host, Table, load
from experiments.markdown import number, table
from stakes import default, rank
from stakes.losses import ordinal_costs
from stakes.models import belief_of
from stakes.simulation import Trial

TABLES = {"real estate": 5, "servo": 4, "wankara": 5}
"""In how many classes the target is cut."""
RUNS, LABELS = 10, 30
FIRST_RUN = 300  # those before are those of other studies
MODELS = {"ordered probit": True, "trees": False}
STRATEGIES = tuple(f"{model}, {choice}" for model in MODELS for choice in ("own costs", "random"))
REFERENCE = "trees, random"
RESULTS = Path(__file__).parent / "results" / "ordinal"


def graded(data: Table, count: int) -> Table:
    """The table with its target cut into `count` classes of about as many rows each."""
    cuts = np.quantile(data.y, np.arange(1, count) / count)
    classes, grades = np.unique(np.digitize(data.y, np.unique(cuts)), return_inverse=True)
    return replace(data, task="classes", y=grades, classes=tuple(str(each) for each in range(len(classes))))


def carry_out(data: Table, run: int, bought: int = LABELS) -> dict[str, list[float]]:
    """[B + 1] for each strategy: the mean cost on test rows after each label."""
    problem = Problem("distance", ordinal_costs(len(data.classes)))
    trial = split(data, run, bought)
    found = {}
    for strategy in STRATEGIES:
        model, _, choice = strategy.partition(", ")
        found[strategy] = _curve(data, problem, trial, run, bought, MODELS[model], choice == "random")
    return found


def _curve(
    data: Table, problem: Problem, trial: Trial, run: int, bought: int, ordinal: bool, at_random: bool
) -> list[float]:
    order = np.random.default_rng(run).permutation(trial.pool)[:bought].tolist()
    acquired: list[int] = []
    losses = []
    for step in range(bought + 1):
        model = _fitted(data, trial, acquired, run, ordinal)
        losses.append(problem(belief_of(model, trial.X[trial.test][:1], trial.X[trial.test]), data.y[trial.test]))
        if step < bought:
            acquired.append(order[step] if at_random else _best(model, problem, trial, acquired, run))
    return losses


def _fitted(data: Table, trial: Trial, acquired: Sequence[int], run: int, ordinal: bool) -> Any:
    rows = [*trial.initial, *acquired]
    classes = list(range(len(data.classes)))
    given = {"pool": trial.X[trial.pool], "classes": classes, "ordinal": ordinal, "random_state": run}
    return default(trial.X[rows], data.y[rows], **given)


def _best(model: Any, problem: Problem, trial: Trial, acquired: Sequence[int], run: int) -> int:
    left = np.setdiff1d(trial.pool, acquired)
    asked = {"contexts": trial.X[trial.contexts], "n": 1, "batch": False, "random_state": run}
    (place,) = rank(model, problem.loss, trial.X[left], **asked).indices
    return int(left[place])


def summarised(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """By table and strategy: mean costs at the start and the end, and the labels needed for the reference's level."""
    found: dict[str, Any] = {}
    for name, count in TABLES.items():
        mine = [each["costs"] for key, each in runs.items() if key.rpartition(" ")[0] == name]
        if mine:
            curves = {each: np.array([run[each] for run in mine]) for each in STRATEGIES}  # [R, B + 1]
            found[name] = {
                "classes": count,
                "runs": len(mine),
                **{each: _of_strategy(curves[each], curves[REFERENCE]) for each in STRATEGIES},
            }
    return {"labels": LABELS, "tables": found}


def _of_strategy(curves: Host, reference: Host) -> dict[str, Any]:
    means, level = curves.mean(axis=0), last_level(reference.mean(axis=0))
    needed = float(passages(means, level))
    better = (curves[:, -1] < reference[:, -1]) + 0.5 * (curves[:, -1] == reference[:, -1])
    return {
        "start": float(means[0]),
        "end": float(means[-1]),
        "labels": int(needed) if np.isfinite(needed) else None,
        "better": float(better.sum()),
    }


def report(summary: dict[str, Any]) -> str:
    """Markdown."""
    head = ["table", "model, labels bought", "cost at the start", f"after {summary['labels']}", "labels", "better"]
    rows = []
    for name, each in summary["tables"].items():
        shown = f"{name}, {each['classes']} classes, {each['runs']} runs"
        for strategy in STRATEGIES:
            mine = each[strategy]
            labels = f"over {summary['labels']}" if mine["labels"] is None else str(mine["labels"])
            better = "" if strategy == REFERENCE else f"{mine['better']:g}"
            rows.append([shown, strategy, number(mine["start"]), number(mine["end"]), labels, better])
            shown = ""
    return f"{table(head, rows)}\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out what is not there yet, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m experiments ordinal", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each table")
    parser.add_argument("--report", action="store_true", help="only show what was kept")
    given = parser.parse_args(arguments)
    kept = RESULTS / "runs.json"
    runs: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else {}
    for run in range(FIRST_RUN, FIRST_RUN + (0 if given.report else given.runs)):
        for name, count in TABLES.items():
            if (key := f"{name} {run}") in runs:
                continue
            data, start = graded(load(name), count), time.process_time()
            costs = {each: np.round(curve, 6).tolist() for each, curve in carry_out(data, run).items()}
            runs[key] = {"costs": costs, "seconds": round(time.process_time() - start, 1)}
            RESULTS.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(runs) + "\n")
            print(key, {each: (curve[0], curve[-1]) for each, curve in costs.items()}, runs[key]["seconds"], flush=True)
    summary = summarised(runs)
    (RESULTS / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (RESULTS / "report.md").write_text(report(summary))
    print(report(summary))
