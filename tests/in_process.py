"""Scripts and commands that are run in the process of the tests: to start another and import all again takes seconds.

What belongs to processes (exit codes, signals, pipes, what an import loads) is tested in real ones, in
tests/cli/test_processes.py and others.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import warnings
from importlib.metadata import entry_points
from pathlib import Path
from unittest.mock import patch


@contextlib.contextmanager
def _script(folder: Path, arguments: list[str]):
    """In that folder, with those arguments, warnings as errors; pictures are closed afterwards."""
    with contextlib.chdir(folder), patch.object(sys, "argv", arguments), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            yield
        finally:
            if "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close("all")


@contextlib.contextmanager
def _forgotten(folder: Path):
    """What is imported from a folder, such as a script by its neighbour, is forgotten; libraries stay imported."""
    before = dict(sys.modules)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name not in before]:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
        sys.modules.update(before)


def run_script(script: Path, folder: Path) -> tuple[str, str]:
    """What `python -W error SCRIPT`, run in that folder, writes to its two streams."""
    out, err = io.StringIO(), io.StringIO()
    beside = patch.object(sys, "path", [str(script.parent), *sys.path])
    with (
        _script(folder, [str(script)]),
        beside,
        _forgotten(script.parent),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        runpy.run_path(str(script), run_name="__main__")
    return out.getvalue(), err.getvalue()


def run_module(name: str, folder: Path, *arguments: str) -> tuple[str, str]:
    """What `python -W error -m NAME ARGUMENTS`, run in that folder, writes to its two streams."""
    out, err = io.StringIO(), io.StringIO()
    with (
        _script(folder, [name, *arguments]),
        _forgotten(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        sys.modules.pop(name, None)  # it is run anew, whoever imported it
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    return out.getvalue(), err.getvalue()


def run_code(code: str, folder: Path) -> str:
    """What lines of Python, run in that folder, write to both streams."""
    both = io.StringIO()
    with _script(folder, ["-c"]), contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        exec(compile(code, "a block", "exec"), {"__name__": "__main__"})
    return both.getvalue()


def run_command(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit code of the installed command `stakes`, run in that folder, and what it writes to both streams."""
    (command,) = entry_points(group="console_scripts", name="stakes")
    both = io.StringIO()
    with (
        _script(folder, ["stakes", *arguments]),
        patch("signal.signal"),  # of the tests, and not of one command
        contextlib.redirect_stdout(both),
        contextlib.redirect_stderr(both),
    ):
        try:
            command.load()()
        except SystemExit as left:
            return int(left.code or 0), both.getvalue()
    return 0, both.getvalue()
