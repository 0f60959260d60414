"""A line on the error stream while something takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_QUIET = 1.0  # seconds before anything is shown
_TICK = 0.2
_WIDTH = 20


@contextmanager
def waiting(first: str) -> Iterator[Callable[[str, float | None], None]]:
    """Show what is being done, from what the function that it gives is told; nothing where no terminal looks on."""
    if not sys.stderr.isatty():
        yield lambda what, share: None
        return
    now: list[tuple[str, float | None]] = [(first, None)]
    over = threading.Event()
    ticker = threading.Thread(target=_tick, args=(now, over), daemon=True)
    ticker.start()
    try:
        yield lambda what, share: now.__setitem__(0, (what, share))
    finally:
        over.set()
        ticker.join()


@contextmanager
def how_far(first: str, show: Callable[[str, float | None], None]) -> Iterator[Callable[[str, float | None], None]]:
    """Pass on what is being done, and say it, with how much of it was done, where it is interrupted."""
    now: list[tuple[str, float | None]] = [(first, None)]

    def tell(what: str, share: float | None) -> None:
        now[0] = (what, share)
        show(what, share)

    try:
        yield tell
    except KeyboardInterrupt:
        what, share = now[0]
        done = "" if share is None else f", {share:.1%} of it done"
        raise KeyboardInterrupt(f"interrupted while {what}{done}; nothing was changed") from None


def _tick(now: list[tuple[str, float | None]], over: threading.Event) -> None:
    start, length = time.monotonic(), 0
    while not over.wait(_TICK):
        passed = time.monotonic() - start
        if passed > _QUIET:
            line = _line(*now[0], passed)
            sys.stderr.write("\r" + line.ljust(length))
            sys.stderr.flush()
            length = len(line)
    if length:
        sys.stderr.write("\r" + " " * length + "\r")
        sys.stderr.flush()


def _line(what: str, share: float | None, passed: float) -> str:
    """[#####...............]  25% scoring rows, 3 s."""
    if share is None:
        place = int(passed / _TICK) % _WIDTH
        return f"[{'.' * place}#{'.' * (_WIDTH - 1 - place)}]      {what}, {passed:.0f} s"
    return f"[{('#' * round(share * _WIDTH)).ljust(_WIDTH, '.')}] {share:4.0%} {what}, {passed:.0f} s"
