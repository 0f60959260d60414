"""`python -m experiments stream`: rows that come one by one against a pool from which the best can be taken.

Both begin with the same labels and the default model, and buy the same number of labels of the same rows: the pool by
`rank`, one label at a time, all rows that are left being at hand; the stream by `Stream`, which sees each row once, in
an order that is drawn for the run. Random choice stands beside them. What counts is the loss on test rows when all
labels are bought. Tables, losses and rows are those of the yardstick (`labels_saved`); the runs are others. A run that
is finished is kept, and not carried out again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.labels_saved.problems import Problem, problems
from experiments.labels_saved.splits import split
from experiments.labels_saved.tables import Host, Table, load
from experiments.markdown import number, table
from stakes import Stream, default, rank
from stakes.models import belief_of
from stakes.simulation import Trial

CASES = {
    "real estate": "squared error",
    "skillcraft1": "exponential weight",
    "wankara": "pinball",
    "phoneme": "cost of a miss",
    "vehicle": "cost of a miss",
    "wdbc": "cost of a miss",
}
"""The loss that labels are bought for, and that is measured, by table."""
RUNS, LABELS = 10, 30
FIRST_RUN = 200  # those before are the yardstick's and those of `choices`
STRATEGIES = ("pool", "stream", "random")
RESULTS = Path(__file__).parent / "results" / "stream"
LIMIT = 1.15
"""What the stream may lose, over the pool: median of tables."""


def carry_out(data: Table, problem: Problem, run: int, bought: int = LABELS) -> dict[str, Any]:
    """The loss on test rows once all labels are bought, of each strategy, and how many were."""
    trial = split(data, run, bought)
    chosen = {
        "pool": from_pool(data, problem, trial, run, bought),
        "stream": from_stream(data, problem, trial, run, bought),
        "random": _order(trial, run)[:bought].tolist(),
    }
    return {
        "start": final_loss(data, problem, trial, [], run),
        **{name: final_loss(data, problem, trial, rows, run) for name, rows in chosen.items()},
        "bought": {name: len(rows) for name, rows in chosen.items()},
    }


def _order(trial: Trial, run: int) -> Host:
    """The rows of the pool as they come."""
    return np.random.default_rng(run).permutation(trial.pool)


def _fitted(data: Table, trial: Trial, acquired: Sequence[int], run: int, others: Host) -> Any:
    rows = [*trial.initial, *acquired]
    of_classes = data.task == "classes"
    return default(
        trial.X[rows],
        data.y[rows],
        pool=trial.X[others],
        task="classes" if of_classes else "real",
        classes=list(range(len(data.classes))) if of_classes else None,
        random_state=run,
    )


def from_pool(data: Table, problem: Problem, trial: Trial, run: int, bought: int) -> list[int]:
    """Rows by `rank`, one at a time, the pool standing for the future."""
    acquired: list[int] = []
    for _ in range(bought):
        model = _fitted(data, trial, acquired, run, trial.pool)
        left = np.setdiff1d(trial.pool, acquired)
        asked = {"contexts": trial.X[trial.pool], "n": 1, "batch": False, "random_state": run}
        (place,) = rank(model, problem.loss, trial.X[left], **asked).indices
        acquired.append(int(left[place]))
    return acquired


def from_stream(data: Table, problem: Problem, trial: Trial, run: int, bought: int) -> list[int]:
    """Rows that were bought as they came."""
    order = _order(trial, run)
    classes = list(range(len(data.classes))) if data.task == "classes" else None
    stream = Stream(
        None,
        problem.loss,
        labels=bought,
        rows=len(order),
        labelled=(trial.X[trial.initial], data.y[trial.initial].tolist()),
        classes=classes,
        random_state=run,
    )
    acquired = []
    for row in order.tolist():
        decision = stream.offer(trial.X[row])
        if decision.buy:
            stream.tell(decision.number, data.y[row].item())
            acquired.append(row)
    return acquired


def final_loss(data: Table, problem: Problem, trial: Trial, acquired: Sequence[int], run: int) -> float:
    """The mean loss on test rows with these labels."""
    model, test = _fitted(data, trial, acquired, run, trial.pool), trial.X[trial.test]
    return problem(belief_of(model, test[:1], test), data.y[trial.test])


def summarised(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """By table: mean losses over runs, and what the stream and random choice lose over the pool; and medians."""
    found: dict[str, Any] = {}
    for name, loss in CASES.items():
        mine = [each for key, each in runs.items() if key.rpartition(" ")[0] == name]
        if not mine:
            continue
        means = {each: float(np.mean([run[each] for run in mine])) for each in ("start", *STRATEGIES)}
        ratios = {f"{each} over pool": means[each] / means["pool"] for each in STRATEGIES[1:]}
        found[name] = {"loss": loss, "runs": len(mine), **means, **ratios}
    medians = {
        key: float(np.median([each[key] for each in found.values()]))
        for key in ("stream over pool", "random over pool")
    }
    return {"labels": LABELS, "tables": found, "medians": medians}


def report(summary: dict[str, Any]) -> str:
    """Markdown."""
    head = ["table", "loss", "runs", "start", "pool", "stream", "random", "stream over pool", "random over pool"]
    rows = [
        [name, each["loss"], str(each["runs"]), *(number(each[key]) for key in head[3:])]
        for name, each in summary["tables"].items()
    ]
    medians = [number(summary["medians"][key]) for key in head[7:]]
    rows.append(["median", "", "", "", "", "", "", *medians])
    return "\n".join(
        [
            f"Loss on test rows after {summary['labels']} labels, means over runs.",
            "",
            table(head, rows),
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out what is not there yet, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m experiments stream", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each table")
    parser.add_argument("--report", action="store_true", help="only show what was kept")
    given = parser.parse_args(arguments)
    kept = RESULTS / "runs.json"
    runs: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else {}
    for run in range(FIRST_RUN, FIRST_RUN + (0 if given.report else given.runs)):
        for name, loss in CASES.items():
            if (key := f"{name} {run}") in runs:
                continue
            data, start = load(name), time.process_time()
            runs[key] = carry_out(data, problems(data)[loss], run)
            runs[key]["seconds"] = round(time.process_time() - start, 1)
            RESULTS.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(runs, indent=1) + "\n")
            print(key, runs[key], flush=True)
    summary = summarised(runs)
    (RESULTS / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (RESULTS / "report.md").write_text(report(summary))
    print(report(summary))
