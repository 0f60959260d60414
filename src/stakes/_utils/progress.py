"""Progress of long calls: `progress` is a bool or a callable in every public function."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[str, float | None], None]
"""Called with what is being done, and the share that is done (None where that is not known)."""

_QUIET = 1.0  # seconds before anything is shown
_APART = 0.2  # seconds between two lines on a terminal
_APART_ELSEWHERE = 30.0  # seconds between two lines in a log


def no_progress(what: str, share: float | None) -> None:
    """No-op callback."""


def as_progress(progress: Any) -> Progress:
    """The callback of an argument `progress`.

    Args:
        progress: True shows the share done and the time left on the error stream, from the first second on; a callable
            is called with what is being done and the share that is done; False and None show nothing.

    Returns:
        A callable (what, share).

    Raises:
        TypeError: If `progress` is neither a bool nor a callable.
    """
    if progress is None or progress is False:
        return no_progress
    if progress is True:
        return _line_on_stderr()
    if callable(progress):
        return progress  # type: ignore[no-any-return]
    raise TypeError(f"progress must be True, False or a function (what, share); got {progress!r}")


def _line_on_stderr() -> Progress:
    """A callback that rewrites one line of a terminal, or now and then writes a line elsewhere."""
    start = shown = time.monotonic()
    terminal = sys.stderr.isatty()

    def show(what: str, share: float | None) -> None:
        nonlocal shown
        now = time.monotonic()
        finished = share is not None and share >= 1.0
        wait = _APART if terminal else _APART_ELSEWHERE
        if now - start < _QUIET or (now - shown < wait and not finished):
            return
        shown = now
        end = "\n" if finished or not terminal else ""
        begin = "\r" if terminal else ""
        sys.stderr.write(f"{begin}{what}{_state(share, now - start)}{end}")
        sys.stderr.flush()

    return show


def _state(share: float | None, passed: float) -> str:
    """The share done and the time left, where the share is known; else the seconds that have passed."""
    if not share:
        return f", {passed:.0f} s"
    left = math.ceil(passed / share * (1.0 - share))
    return f": {share:4.0%} done, {left // 60} min {left % 60:2d} s left"
