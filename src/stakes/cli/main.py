"""Where the command `stakes` begins: signals are seen to before anything else is loaded.

A signal ends the command with 128 and its number: 130 for an interrupt (Ctrl-C), 143 for a termination, 129 where the
terminal is gone. It is raised as a KeyboardInterrupt, so that what is not recorded yet is rolled back and half-written
files are removed. Libraries swallow one now and then: while they are imported, in what is called by C, by catching
everything. So the process is left at once where a signal comes during an import, where its exception was dropped, and
at a second signal; and after a moment where the command goes on nevertheless. A campaign takes no harm from that: it
outlives a loss of power.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False  # that of `typing`, which takes longer to import than all that is here
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import NoReturn

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not known everywhere
_GRACE = 3.0  # seconds for what is half done to be undone
_KEPT = "interrupted; what was recorded is kept"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Args:
        arguments: Those after the name of the command; of the process where none are given.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    stop = _Stop(given)
    stop.listen()
    try:
        from stakes.cli.commands import run

        code = run(given)
    except KeyboardInterrupt:  # while another error was being explained
        stop.leave()
    sys.exit(stop.finished(code))


class _Stop:
    """What signals do to the command that runs in this process."""

    def __init__(self, arguments: list[str]) -> None:
        self.as_json = "--json" in arguments
        self.number = 0  # of the signal that came
        self.code: int | None = None  # of the command, once it has ended

    def listen(self) -> None:
        """From now on; signals that the process was started to ignore, as by nohup, stay ignored."""
        for name in _SIGNALS:
            if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
                signal.signal(getattr(signal, name), self.heard)
                atexit.register(signal.signal, getattr(signal, name), signal.SIG_IGN)  # Python lets go of `heard`
        before = sys.unraisablehook

        def dropped(unraisable: sys.UnraisableHookArgs) -> None:
            if self.number and issubclass(unraisable.exc_type, KeyboardInterrupt):
                self.leave()
            before(unraisable)

        sys.unraisablehook = dropped

    def heard(self, number: int, frame: FrameType | None) -> None:
        """Leave by an exception where that can be relied on, else at once."""
        if self.code is not None:
            os._exit(self.code)  # all is done and said
        first, self.number = not self.number, number
        if not first or _imports(frame):
            self.leave()
        import _thread  # a thread of `threading` would be waited for

        _thread.start_new_thread(self._leave_later, ())
        raise KeyboardInterrupt

    def leave(self) -> NoReturn:
        """End the process now, with a line that says so."""
        message = f'{{"error": "{_KEPT}"}}\n' if self.as_json else f"stakes: {_KEPT}\n"
        try:
            os.write(2, message.encode())
        except OSError:  # nobody reads it
            pass
        finally:
            os._exit(128 + self.number)

    def finished(self, code: int) -> int:
        """The code of a command that has ended, whatever comes from now on; that of the signal where one came."""
        self.code = 128 + self.number if self.number else code
        return self.code

    def _leave_later(self) -> None:
        import time

        time.sleep(_GRACE)
        if self.code is None:
            self.leave()


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported, whose code may catch everything."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
