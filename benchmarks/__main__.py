"""All benchmarks, or some of them: `python -m benchmarks [NAME ...]` in a checkout prints tables and saves them.

On one thread, in seconds of the processor; ratios, of jobs that took turns in one run, are what counts.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks import guard
from benchmarks.measure import Settings, printed, save

BENCHMARKS = {
    "ensembles": ("benchmarks.ensembles", "votes and soft members, beside the bare product and plain scorers"),
    "soft": ("benchmarks.soft", "ensembles of classes of small and middle size, beside a plain scorer"),
    "gaussian": ("benchmarks.gaussian", "a Gaussian process, beside its triangular solve and product"),
    "curved_losses": ("benchmarks.curved_losses", "losses without a closed form under a process, to squared error"),
    "mixtures": ("benchmarks.mixtures", "mixtures of Gaussian beliefs, beside one hypothesis after another"),
    "honest": ("benchmarks.honest", "worths with the truth left out, of one batch, beside the bare product"),
    "batches": ("benchmarks.batches", "labels chosen together under ensembles of classes, and `suggest`"),
    "normals": ("benchmarks.normals", "ensembles of normal distributions, and `rank` of a forest of numbers"),
    "small": ("benchmarks.small", "ten candidates and five contexts: what a call costs at least"),
    "startup": (
        "benchmarks.startup",
        "processes of their own: imports, the first ranking, commands, first compiled use",
    ),
    "gpu_gaussian": ("benchmarks.gpu_gaussian", "the same on a GPU"),
    "pools": ("benchmarks.pools", "pools larger than memory: seconds and memory of `stakes.rank`"),
    "cluster": ("benchmarks.cluster", "a Dask cluster that reads its own rows: processor time, bytes and memory"),
    "screening": ("benchmarks.screening", "of too many rows some are scored: what the rows chosen are worth"),
    "continuous": ("benchmarks.continuous", "`optimize_acqf` by one's own loss, beside BoTorch's integrated variance"),
    "peers": ("benchmarks.speed_of_peers", "other libraries on the same job; see --python"),
    "label": (
        "benchmarks.label",
        "the page of `stakes label`: key press to next card, in a browser, while a refit runs",
    ),
    "gpu": ("benchmarks.gpu", "losses of classes on a GPU: the fused kernel beside the bare products"),
}
"""The module of each benchmark, and what it measures."""


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    settings = Settings(given.quick, given.repeats, tuple(given.python))
    guarded, found = "guard" in given.names, {}
    for name in _guarded(given.names, given.store) if guarded else _asked_for(given.names):
        print(f"\n{name}\n")
        with threadpool_limits(1):
            rows = printed(import_module(BENCHMARKS[name][0]).rows(settings))
        found[name] = guard.ratios(rows)
        print("saved as", *save(rows, given.folder, name))
    if guarded:
        _judge(found, given.store)


def _guarded(names: Sequence[str], keep: bool) -> list[str]:
    """The benchmarks named beside the guard, or all that have stored ratios."""
    named = [name for name in dict.fromkeys(names) if name != "guard"]
    if not named and keep:
        raise SystemExit("--store wants the names of benchmarks: python -m benchmarks guard small --store")
    return named or list(guard.stored())


def _judge(found: dict[str, dict[str, float]], keep: bool) -> None:
    """Keep what was found, or name what has fallen behind and end with an error."""
    if keep:
        guard.store(found)
        print("\nstored:", *found)
        return
    before = guard.stored()
    lines = [line for name in found for line in guard.fallen(name, before.get(name, {}), found[name])]
    print("\n" + "\n".join(lines or [f"Nothing fell: {', '.join(found) or 'no benchmark has stored ratios'}."]))
    if lines:
        raise SystemExit(1)


def _asked_for(names: str | Sequence[str]) -> list[str]:
    """The benchmarks by name, each once, in the order given; all where one of the names is "all"."""
    return list(BENCHMARKS) if "all" in names else list(dict.fromkeys(names))


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:14s}{what}" for name, (_, what) in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"benchmarks:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        default="all",
        choices=[*BENCHMARKS, "all", "guard"],
        metavar="NAME",
        help="one or more of those below; guard compares ratios with stored ones, and names what fell",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that all runs, not how fast")
    parser.add_argument("--store", action="store_true", help="with guard: keep ratios, to compare with from now on")
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
