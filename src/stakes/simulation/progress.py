"""How far a simulation is, on the error stream."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_QUIET = 1.0  # seconds for which a stream that is no terminal (a file, a notebook) is told nothing
_APART = 10.0  # seconds between two lines there


def told(results: Iterable[T], total: int, progress: bool) -> Iterator[T]:
    """`results` as they come, with the share done and the time left: one line on a terminal, now and then elsewhere."""
    start, before = time.monotonic(), _QUIET - _APART
    for done, each in enumerate(results, 1):
        passed, terminal = time.monotonic() - start, sys.stderr.isatty()
        if progress and (terminal or passed - before > _APART or (done == total and passed > _QUIET)):
            end = "\r" if terminal and done < total else "\n"
            left = math.ceil(passed / done * (total - done))
            sys.stderr.write(f"simulate: {done / total:4.0%} done, {left // 60} min {left % 60:2d} s left{end}")
            sys.stderr.flush()
            before = passed
        yield each
