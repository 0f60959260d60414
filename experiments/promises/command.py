"""`python -m experiments promises`: campaigns that the store has not, one run of every table before the next run.

`--rounds 20 40` has no other rounds than those at which batches are bought aside; `--rounds 20` takes a third of the
time. `--device` makes all runs of a table of numbers at once, and no others; `--compiled` grows the forests of classes
in compiled loops, and leaves out numbers. `--report` runs nothing: it summarises what the stores have, draws the
picture of docs/promises.md, and prints what must be shown.
`--write FOLDER` writes the two tables of docs/promises.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.datasets import DatasetError
from experiments.labels_saved.problems import problems
from experiments.labels_saved.tables import CLASSES, NUMBERS, Table, load
from experiments.promises import first_tables, summary
from experiments.promises.picture import draw
from experiments.promises.rounds import ROUNDS, Bench, append, campaign, load_rounds

LOSSES = ("squared error", "threshold", "exponential weight", "pinball", "cost of a miss", "weighted log loss")
STORE = Path("build/promises")


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    if given.write:
        print(*first_tables.write(given.write), sep="\n")
    elif given.report:
        _report(given.store, given.results)
    else:
        runs, store = range(given.first, given.runs), given.store[0]
        if given.device:
            numbers = [name for name in given.tables if name in NUMBERS]
            run_in_bulk(numbers, given.losses, runs, store, given.rounds, given.device)
        elif given.compiled:
            from experiments.promises.compiled import CompiledBench

            classes = [name for name in given.tables if name in CLASSES]
            run_all(classes, given.losses, runs, store, given.rounds, CompiledBench)
        else:
            run_all(given.tables, given.losses, runs, store, given.rounds)


def run_in_bulk(
    names: Sequence[str], losses: Sequence[str], runs: Sequence[int], store: Path, rounds: Sequence[int], device: str
) -> None:
    """All campaigns on tables of numbers that are not there, the runs of a table together."""
    from experiments.promises.bulk import campaigns_in_bulk

    done = {(each.table, each.loss, each.run) for each in load_rounds(store)}
    for table in loaded(names):
        wanted = {name: problem for name, problem in problems(table).items() if name in losses}
        missing = [run for run in runs if any((table.name, name, run) not in done for name in wanted)]
        if not missing:
            continue
        began = time.perf_counter()
        for each in campaigns_in_bulk(table, wanted, missing, device, rounds):
            if (each.table, each.loss, each.run) not in done:
                append(store, each)
        print(f"{table.name}, {len(missing)} runs: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)


def run_all(
    names: Sequence[str],
    losses: Sequence[str],
    runs: Sequence[int],
    store: Path,
    rounds: Sequence[int] = ROUNDS,
    bench_of: Callable[[Table, int], Bench] = Bench,
) -> None:
    """All campaigns that are not there, run by run."""
    tables = loaded(names)
    done = {(each.table, each.loss, each.run) for each in load_rounds(store)}
    for run in runs:
        for table in tables:
            wanted = [each for each in losses if each in problems(table) and (table.name, each, run) not in done]
            if not wanted:
                continue
            began, bench = time.process_time(), bench_of(table, run)
            for loss in wanted:
                append(store, campaign(bench, problems(table)[loss], rounds))
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


def _report(stores: Sequence[Path], results: Path) -> None:
    every = {(each.table, each.loss, each.run): each for store in stores for each in load_rounds(store)}
    campaigns = list(every.values())
    if not campaigns:
        sys.exit(f"there are no campaigns in {', '.join(map(str, stores))}: run some first")
    found = summary.promises_of(campaigns)
    cases = [*summary.summarised(found), *summary.pooled(found)]
    summary.write(cases, results)
    try:
        draw([case for case in cases if case.labels], results.with_suffix(".png"))
    except ImportError:
        print("there is no picture: it needs matplotlib, pip install 'stakes[plot]'", file=sys.stderr)
    print(summary.page_table(cases))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments promises", description=__doc__)
    parser.add_argument("--tables", nargs="+", metavar="TABLE", default=[*NUMBERS, *CLASSES], help="by default all 32")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES), help="by default all")
    parser.add_argument("--runs", type=int, default=30, help="of each table and loss")
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--device", help="of torch: all runs of a table of numbers at once; no tables of classes")
    parser.add_argument("--compiled", action="store_true", help="forests in compiled loops; no tables of numbers")
    parser.add_argument(
        "--rounds", type=int, nargs="+", default=list(ROUNDS), help="labels at which to stop and look, the first 20"
    )
    parser.add_argument(
        "--store", type=Path, nargs="+", default=[STORE], help="folder of campaigns; several to report on"
    )
    parser.add_argument("--report", action="store_true", help="summarise what there is, and run nothing")
    parser.add_argument("--results", type=Path, default=Path("build/promises.json"), help="the summary to write")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the two tables of docs/promises.md")
    return parser
