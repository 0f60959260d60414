"""`python -m experiments promises`: campaigns that the store has not, one run of every table before the next run."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.datasets import DatasetError
from experiments.labels_saved.problems import problems
from experiments.labels_saved.tables import CLASSES, NUMBERS, Table, load
from experiments.promises.rounds import Bench, append, campaign, load_rounds

LOSSES = ("squared error", "threshold", "exponential weight", "pinball", "cost of a miss", "weighted log loss")
STORE = Path("build/promises")


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    run_all(given.tables, given.losses, range(given.first, given.runs), given.store)


def run_all(names: Sequence[str], losses: Sequence[str], runs: Sequence[int], store: Path) -> None:
    """All campaigns that are not there, run by run."""
    tables = loaded(names)
    done = {(each.table, each.loss, each.run) for each in load_rounds(store)}
    for run in runs:
        for table in tables:
            wanted = [each for each in losses if each in problems(table) and (table.name, each, run) not in done]
            began, bench = time.process_time(), Bench(table, run) if wanted else None
            for loss in wanted if bench is not None else ():
                append(store, campaign(bench, problems(table)[loss]))
            if wanted:
                print(f"{table.name}, run {run}: {time.process_time() - began:.1f} s", file=sys.stderr, flush=True)


def loaded(names: Sequence[str]) -> list[Table]:
    """The tables that can be had; others are named."""
    found = []
    for name in names:
        try:
            found.append(load(name))
        except DatasetError as absent:
            print(f"left out: {name}: {absent}", file=sys.stderr)
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments promises", description=__doc__)
    parser.add_argument("--tables", nargs="+", metavar="TABLE", default=[*NUMBERS, *CLASSES], help="by default all 32")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES), help="by default all")
    parser.add_argument("--runs", type=int, default=30, help="of each table and loss")
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--store", type=Path, default=STORE, help="folder of finished campaigns")
    return parser
