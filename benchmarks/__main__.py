"""All benchmarks, or one of them: `python -m benchmarks` in a checkout prints tables and saves them.

On one thread, in seconds of the processor; ratios, of jobs that took turns in one run, are what counts.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.measure import Settings, printed, save

PARTS = {
    "ensembles": "benchmarks.ensembles",
    "gaussian": "benchmarks.gaussian",
    "gpu_gaussian": "benchmarks.gpu_gaussian",
    "pools": "benchmarks.pools",
    "peers": "benchmarks.speed_of_peers",
    "gpu": "benchmarks.gpu",
}


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    settings = Settings(given.quick, given.repeats, tuple(given.python))
    for name in PARTS if given.what == "all" else (given.what,):
        print(f"\n{name}\n")
        with threadpool_limits(1):
            rows = printed(import_module(PARTS[name]).rows(settings))
        print("saved as", *save(rows, given.folder, name))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="all", choices=[*PARTS, "all"], help="by default all")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that all runs, not how fast")
    parser.add_argument("--repeats", type=int, default=5, help="of a job, of which the least seconds count")
    parser.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where to save JSON and Markdown")
    parser.add_argument(
        "--python",
        nargs="+",
        type=_interpreter,
        default=[],
        metavar="PATH",
        help="interpreters of environments with peers installed",
    )
    return parser


def _interpreter(path: str) -> str:
    """Refused where there is none."""
    found = shutil.which(path)
    if found is None:
        raise argparse.ArgumentTypeError(f"wants an interpreter, such as peers/bin/python; there is none at {path!r}")
    return found


if __name__ == "__main__":
    main()
