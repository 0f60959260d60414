"""Does choosing labels by the loss help on real tables? Runs `stakes.simulate` on each problem, prints the tables.

In a checkout: `python -m experiments.does_it_help --data FOLDER`. FOLDER (or the variable STAKES_DATA) has the CSV
files of `experiments.tables`; without it, only the tables that scikit-learn ships are run. A run that was stopped goes
on where it was, from its store.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.markdown import report
from experiments.problems import PROBLEMS, Problem
from experiments.tables import MissingTableError, is_shipped, load
from stakes import simulate
from stakes.simulation import Simulation

_RANDOM_STATE = 0
_CONTEXTS, _TESTS = 60, 200  # at most; a fifth and three tenths of the rows where there are fewer


@dataclass(frozen=True)
class Preset:
    """How much is run: of a problem's own runs and labels, at most so many."""

    most_runs: int
    most_labels: int
    problems: tuple[Problem, ...]


FULL = Preset(most_runs=1000, most_labels=1000, problems=PROBLEMS)
QUICK = Preset(most_runs=2, most_labels=2, problems=tuple(each for each in PROBLEMS if is_shipped(each.table)))


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    preset = QUICK if given.quick else FULL
    outcomes: dict[Problem, Simulation] = {}
    for problem in preset.problems:
        try:
            outcomes[problem] = run(problem, preset, given.data, given.store, given.jobs)
        except MissingTableError as absent:
            print(f"left out: {absent}", file=sys.stderr)
    print(report(outcomes))
    if given.picture:
        from experiments.picture import draw

        draw(outcomes, given.picture)


def run(problem: Problem, preset: Preset, data: Path | None, store: Path, jobs: int) -> Simulation:
    """The simulation of one problem, from its store as far as it is there."""
    table = load(problem.table, data)
    print(f"{problem.name} ({table.n_rows} rows)", file=sys.stderr)
    return simulate(
        problem.model.estimator,
        problem.loss,
        table.features,
        table.target,
        strategies=("random", "plain", "loss", problem.usual),
        n=min(problem.n, preset.most_labels),
        runs=min(problem.runs, preset.most_runs),
        random_state=_RANDOM_STATE,
        n_contexts=min(_CONTEXTS, table.n_rows // 5),
        n_test=min(_TESTS, 3 * table.n_rows // 10),
        store=store / re.sub(r"[^a-z0-9]+", "-", f"{problem.name} {preset.most_labels}".lower()),
        n_jobs=jobs,
        progress=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.does_it_help", description=__doc__)
    folder = os.environ.get("STAKES_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None, help="folder of the CSV files")
    parser.add_argument("--store", type=Path, default=Path("build/does_it_help"), help="folder of finished runs")
    parser.add_argument("--quick", action="store_true", help="2 runs of 2 labels, on scikit-learn's tables")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--picture", type=Path, help="a PNG of the paired differences, which needs matplotlib")
    return parser


if __name__ == "__main__":
    main()
