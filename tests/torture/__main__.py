"""Tries to break the product: `python -m tests.torture` (a minute), `--hours 1` (as long as that)."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.torture.harness import Tally, areas, load, run, run_case


def main() -> int:
    """Run what was asked for, print a table and every failure; 1 if there is one."""
    options = _options()
    known = {module.rpartition(".")[2]: module for module in areas()}
    if unknown := set(options.area) - set(known):
        sys.exit(f"no area {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    modules = [known[name] for name in options.area or known]
    if options.case is not None:
        if len(modules) != 1:
            sys.exit("--case needs one --area")
        run_case(load(modules[0]), options.case)
        return 0
    began = time.monotonic()

    def wanted(module: str, planned: Tally) -> bool:
        if options.hours is not None and time.monotonic() - began > 3600.0 * options.hours:
            return False
        if options.cases is not None:
            return planned.cases < options.cases
        return options.hours is not None or planned.cases < load(module).quick

    tallies = run(modules, wanted, first=options.first, jobs=options.jobs)
    for tally in tallies.values():
        for failure in tally.failures:
            print(failure, end="\n\n")
    print(_table(tallies))
    print(f"{time.monotonic() - began:.0f} s")
    return int(any(tally.failures for tally in tallies.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--area", action="append", default=[], help="only this one (may be repeated)")
    parser.add_argument("--cases", type=int, help="of each area; without it and --hours as many as the tests run")
    parser.add_argument("--hours", type=float, help="stop after this long; areas share the time")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--case", type=int, help="this case alone, in this process")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="how many at once")
    return parser.parse_args()


def _table(tallies: dict[str, Tally]) -> str:
    rows = [("area", "cases", "wrong", "hangs", "crashes", "seconds")]
    for module, tally in tallies.items():
        counts = (tally.cases, *(tally.count(kind) for kind in ("wrong", "hang", "crash")), round(tally.seconds))
        rows.append((module.rpartition(".")[2], *map(str, counts)))
    totals = [str(sum(int(row[i]) for row in rows[1:])) for i in range(1, 6)]
    rows.append(("all", *totals))
    return "\n".join(f"{row[0]:<12}" + "".join(f"{cell:>10}" for cell in row[1:]) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
