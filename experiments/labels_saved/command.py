"""`python -m experiments labels_saved`: run what is missing, summarise it, and write the page.

A study that was stopped goes on where it was, from its store; with more `--runs` it adds to them. Tables that cannot be
had are left out and named. Summaries and the page go to the folder of results; `--report` makes the page from the
summaries that are there, and runs nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.datasets import DatasetError
from experiments.labels_saved import summary
from experiments.labels_saved.beliefs import BELIEFS, DEFAULT
from experiments.labels_saved.loop import carry_out, settings_of
from experiments.labels_saved.page import draw, page
from experiments.labels_saved.splits import LABELS, RUNS
from experiments.labels_saved.store import Store
from experiments.labels_saved.tables import CHECKS, CLASSES, NUMBERS, Table, load

QUICK_TABLES, QUICK_RUNS, QUICK_LABELS = ("diabetes", "wine"), 2, 5


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    results = given.results or given.store / "results"
    names = given.tables or (QUICK_TABLES if given.quick else (*NUMBERS, *CLASSES))
    if names == ["checks"]:
        names = CHECKS
    if unknown := [name for name in names if name not in (*NUMBERS, *CLASSES, *CHECKS)]:
        sys.exit(f"there is no table {', '.join(unknown)}; there are {', '.join((*NUMBERS, *CLASSES, *CHECKS))}")
    if not given.report:
        for name in names:
            try:
                table = load(name)
            except DatasetError as absent:
                print(f"left out: {name}: {absent}", file=sys.stderr)
                continue
            print(table, flush=True)
            if not given.list:
                _carry_out(table, given, results)
    if not given.list:
        write_page(results)


def _carry_out(table: Table, given: argparse.Namespace, results: Path) -> None:
    """All beliefs on a table, and the summary of what the store has of it."""
    runs = given.runs or (QUICK_RUNS if given.quick else RUNS[table.task])
    bought = given.labels or (QUICK_LABELS if given.quick else LABELS[table.task])
    store = Store(given.store / f"{bought}_labels")
    left_out: dict[str, str] = {}
    for belief in given.beliefs:
        if given.device and belief == DEFAULT and table.task == "numbers":
            _carry_out_in_bulk(table, given, store, runs, bought)
            continue
        if given.compiled and table.task == "classes":
            left_out |= _carry_out_compiled(table, belief, given, store, runs, bought)
            continue
        left_out |= carry_out(
            table,
            belief,
            store,
            runs=runs,
            bought=bought,
            jobs=given.jobs,
            strategies=given.strategies,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    records = store.records(table.name, settings_of(table, bought))
    summary.write(summary.summarised(table, records, left_out), results)


def _carry_out_in_bulk(table: Table, given: argparse.Namespace, store: Store, runs: int, bought: int) -> None:
    from experiments.labels_saved.bulk import carry_out_in_bulk

    carry_out_in_bulk(
        table,
        store,
        runs=runs,
        bought=bought,
        device=given.device,
        strategies=given.strategies,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )


def _carry_out_compiled(
    table: Table, belief: str, given: argparse.Namespace, store: Store, runs: int, bought: int
) -> dict[str, str]:
    from experiments.labels_saved.compiled import carry_out_compiled

    return carry_out_compiled(
        table,
        belief,
        store,
        runs=runs,
        bought=bought,
        strategies=given.strategies,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )


def write_page(results: Path) -> None:
    """`report.md` and its pictures beside the summaries; without pictures where matplotlib is not installed."""
    found = summary.read(results)
    if not found:
        sys.exit(f"there is no summary of a table in {results}: run some tables, or name the folder with --results")
    try:
        pictures = draw(found, results)
    except ImportError:
        print("the page has no pictures: they need matplotlib, pip install 'stakes[plot]'", file=sys.stderr)
        pictures = []
    text = page(found, pictures)
    (results / "report.md").write_text(text)
    print(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments labels_saved", description=__doc__)
    parser.add_argument("--tables", nargs="+", metavar="TABLE", help="by default all 32; checks: ten others")
    parser.add_argument("--beliefs", nargs="+", choices=list(BELIEFS), default=list(BELIEFS), help="by default all")
    parser.add_argument("--strategies", nargs="+", help="random, loss, or rivals by name; by default all")
    parser.add_argument(
        "--runs", type=int, help=f"by default {RUNS['numbers']} for numbers, {RUNS['classes']} for classes"
    )
    parser.add_argument(
        "--labels",
        type=int,
        help=f"to buy; by default {LABELS['numbers']}, or {LABELS['classes']} for classes",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--device", help="of torch, on which all runs of the default for numbers advance together")
    parser.add_argument(
        "--compiled", action="store_true", help="forests of classes by compiled loops, twenty times as fast (numba)"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_RUNS} runs of {QUICK_LABELS} labels on two small tables"
    )
    parser.add_argument("--store", type=Path, default=Path("build/labels_saved"), help="folder of finished runs")
    parser.add_argument("--results", type=Path, help="folder of summaries and the page; by default in the store")
    parser.add_argument("--report", action="store_true", help="the page again, from the summaries that are there")
    parser.add_argument("--list", action="store_true", help="a line for each table, and no runs")
    return parser
