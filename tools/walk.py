"""How far one call walks through the code: files, functions and types of our own, and what the tree looks like.

    python tools/walk.py            # both tables
    python tools/walk.py --json     # the same as JSON

A *file* is visited if one of its functions is called, a *type* if an instance of it is made during the call; named
tuples, which only give names to what is returned, are counted by themselves. Work in other threads is counted; work in
other processes is not.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "stakes"
_LONG = 60  # lines of a function
ENTRY_POINTS = {"stakes.__main__", "stakes.cli.main"}
"""Modules that are run, not imported."""


@dataclass
class Walk:
    """What one call visited."""

    files: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    tuples: set[str] = field(default_factory=set)

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call, as `sys.setprofile` reports it."""
        if event != "call":
            return
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if code.co_filename.startswith(str(SOURCE)):
            self.files.add(str(Path(code.co_filename).relative_to(SOURCE)))
            self.functions.add(f"{module}.{code.co_qualname if hasattr(code, 'co_qualname') else code.co_name}")
        named_tuple = module.startswith("namedtuple_")
        if (code.co_name in ("__init__", "__new__", "__post_init__") or named_tuple) and code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])
            kind = first if isinstance(first, type) else type(first)
            if kind.__module__.partition(".")[0] == "stakes":
                (self.tuples if named_tuple else self.types).add(f"{kind.__module__}.{kind.__qualname__}")


def walked(call: Callable[[], Any]) -> Walk:
    """What a call visits when everything is imported and warm."""
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()
        for _ in range(3):  # seen once, on a busy machine: the interpreter reported calls of generated code alone
            if (walk := _seen(call)).files:
                break
    return walk


def _seen(call: Callable[[], Any]) -> Walk:
    """What a call visits."""
    walk = Walk()
    threading.setprofile(walk.see)
    sys.setprofile(walk.see)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return walk


def walks() -> Iterator[tuple[str, Walk]]:
    """Four calls that users make."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier

    from stakes import CostMatrix, rank, score, select
    from stakes.models import belief_of

    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(100, random_state=0).fit(X[:40], y[:40])
    loss = CostMatrix([[0.0, 20.0], [1.0, 0.0]])
    belief = belief_of(forest, X[40:80], X[40:80])
    yield "score", walked(lambda: score(loss, belief))
    yield "select", walked(lambda: select(loss, belief, n=2))
    yield "rank", walked(lambda: rank(forest, loss, X[40:], n=3))
    with tempfile.TemporaryDirectory() as folder:
        yield "stakes ask", walked(_ask(Path(folder)))


def _ask(folder: Path) -> Callable[[], None]:
    """`stakes ask` on a campaign of its own."""
    from stakes.cli.commands import cli

    def run(*arguments: str) -> None:
        cli.main(list(arguments), prog_name="stakes", standalone_mode=False)

    with redirect_stdout(StringIO()):
        run("sample", "prices", str(folder))
        table, campaign = str(folder / "prices.csv"), str(folder / "c.stakes")
        run("init", campaign, table, "--id", "flat", "--target", "price", "--loss", "pinball", "--tau", "0.2")
    return lambda: run("ask", campaign)


def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ["stakes", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def importers() -> dict[str, set[str]]:
    """Who imports each module, by name or through the package that publishes it; `__init__` files do not count."""
    paths = modules()
    trees = {name: ast.parse(path.read_text()) for name, path in paths.items()}
    published = {
        (name, alias.asname or alias.name): (node.module, alias.name)
        for name, path in paths.items()
        if path.name == "__init__.py"
        for node in ast.walk(trees[name])
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("stakes")
        for alias in node.names
    }
    found: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        if path.name == "__init__.py":
            continue
        for node in ast.walk(trees[name]):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "stakes":
                for alias in node.names:
                    home, what = node.module, alias.name
                    while (home, what) in published and f"{home}.{what}" not in paths:
                        home, what = published[home, what]
                    while (home, what) in published:
                        home, what = published[home, what]
                    found[f"{home}.{what}" if f"{home}.{what}" in paths else home].add(name)
    return found


def published_modules() -> set[str]:
    """Modules whose names a package or the module itself (by `__all__`) offers to users: those are entry points."""
    paths, found = modules(), set()
    for name, path in paths.items():
        if "\n__all__ = " in path.read_text():
            found.add(name)
        if path.name == "__init__.py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module in paths:
                    found.add(node.module)
                if isinstance(node, ast.ImportFrom):
                    found |= {f"{node.module}.{alias.name}" for alias in node.names} & set(paths)
    return found


def lazily_imported() -> set[str]:
    """Modules that are imported inside functions only, or by their name as a string: commands and backends."""
    paths = modules()
    top: set[str] = set()
    inside: set[str] = set()
    named: set[str] = set()
    for path in paths.values():
        whole = ast.parse(path.read_text())
        for node in ast.walk(whole):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
                (top if node in whole.body else inside).update(names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)
    commands = {name for name in paths if name.startswith("stakes.cli.")}
    return ((inside | commands) - top) | (named & set(paths))


def single_importers() -> dict[str, str]:
    """Modules with one importer that are neither an entry point nor a backend that is imported lazily.

    Entry points are what users import or run: the modules beside the rooms (`stakes.baselines`), those whose names a
    package publishes, and the command line.
    """
    beside = {name for name, path in modules().items() if path.parent == SOURCE}
    exempt = ENTRY_POINTS | beside | published_modules() | lazily_imported()
    return {name: next(iter(who)) for name, who in importers().items() if len(who) == 1 and name not in exempt}


def duplicate_names() -> dict[str, list[str]]:
    """Public names of modules that are defined in more than one place."""
    where = defaultdict(list)
    for name, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(name)
    return {name: found for name, found in where.items() if len(set(found)) > 1}  # overloads are in one place


def long_functions() -> dict[str, int]:
    """Functions of more than 60 lines, their docstring left out."""
    found = {}
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                docstring = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0  # type: ignore[operator]
                length = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring
                if length > _LONG:
                    found[f"{name}.{node.name}"] = length
    return found


def tree() -> dict[str, Any]:
    """What the source tree looks like."""
    return {
        "modules": len(modules()),
        "lines": sum(len(path.read_text().splitlines()) for path in modules().values()),
        "modules with a single importer": single_importers(),
        "public names in more than one module": duplicate_names(),
        "functions over 60 lines": long_functions(),
    }


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="as JSON, with all names")
    parser.add_argument("--names", action="store_true", help="with the names of files and types")
    given = parser.parse_args()
    calls, house = dict(walks()), tree()
    if given.json:
        plain = {name: {kind: sorted(found) for kind, found in vars(walk).items()} for name, walk in calls.items()}
        print(json.dumps({"calls": plain, "tree": house}, indent=2))
        return
    print(f"{'call':12s} {'files':>6s} {'functions':>10s} {'types':>6s} {'named tuples':>13s}")
    for name, walk in calls.items():
        print(f"{name:12s} {len(walk.files):6d} {len(walk.functions):10d} {len(walk.types):6d} {len(walk.tuples):13d}")
        if given.names:
            print("    " + "\n    ".join([*sorted(walk.files), *sorted(walk.types), *sorted(walk.tuples)]))
    for name, value in house.items():
        print(f"{name}: {value if isinstance(value, int) else len(value)}")
        if isinstance(value, dict) and value:
            print("    " + "\n    ".join(f"{key}: {each}" for key, each in value.items()))


if __name__ == "__main__":
    main()
