"""A command that is run in this process, as the areas of tables and arguments run it."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from stakes.cli.commands import run

_MOST = 600  # MB by which one case may raise the peak of memory
MODEL = ["--model", "bayesian-ridge"]
NUMBERS = ["--target", "y", "--id", "id", "--loss", "squared-error", *MODEL]


def stakes(folder: Path, *argv: str) -> tuple[int, str]:
    """The exit code of a command in that folder, and what it wrote to both streams; refuses what is a bug."""
    out, err = _stream("strict"), _stream("backslashreplace")  # as Python opens them
    here = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder), "STAKES_DEBUG": "1"}
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, here),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("ignore")
        code = run(list(argv))
    output = _text(out) + _text(err)
    assert code in (0, 1, 2), f"exit code {code} of {argv!r}:\n{output[-4000:]}"
    assert "bug in stakes" not in output, f"{argv!r}:\n{output[-4000:]}"
    return code, output


def _stream(errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """A block that must not take much memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown < _MOST, f"the case took {grown} MB"


def write_numbers(path: Path, labelled: int = 6) -> None:
    """A small table of numbers."""
    rows = [f"r{i},{i / 2},{i * 7 % 5},{'abc'[i % 3]},{i / 2 + i % 3 if i < labelled else ''}" for i in range(14)]
    path.write_text("\n".join(["id,x,z,kind,y", *rows, ""]))
