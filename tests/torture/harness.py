"""Runs cases that try to break the product, each in a worker process, so that a hang or a crash is counted, not shared.

An area is a module of this folder with an `AREA`: a function from the number of a case and an empty folder that does
one thing to the product and raises where the answer is wrong. A case depends on its number alone, so a failure is run
again by that number.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

_HERE = Path(__file__).parent
_START_SECONDS = 120.0  # for a worker to load what it needs, on a busy machine


@dataclass(frozen=True)
class Area:
    """What is tried, and by which function.

    Args:
        name: Of the module that holds it.
        case: From the number of a case and an empty folder to nothing; it raises where the product fails.
        quick: How many cases run among the tests.
        seconds: After how long a case counts as hung.
    """

    name: str
    case: Callable[[int, Path], None]
    quick: int
    seconds: float = 60.0


@dataclass(frozen=True)
class Failure:
    """A case that went wrong: `kind` is wrong, hang or crash."""

    area: str
    number: int
    kind: str
    details: str

    def __str__(self) -> str:
        again = f"python -m tests.torture --area {self.area.rpartition('.')[2]} --case {self.number}"
        return f"{self.kind}: {again}\n{self.details}"


@dataclass
class Tally:
    """How many cases an area had, in how much time of its workers, and those that failed."""

    cases: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """How many failures are of a kind."""
        return Counter(failure.kind for failure in self.failures)[kind]


def areas() -> list[str]:
    """The modules of this folder that hold an area."""
    found = (path for path in sorted(_HERE.glob("*.py")) if not path.name.startswith("test_"))
    return [f"tests.torture.{path.stem}" for path in found if "\nAREA = " in path.read_text("utf-8")]


def load(module: str) -> Area:
    """The area of a module."""
    area = importlib.import_module(module).AREA
    assert isinstance(area, Area)
    return area


def run_case(area: Area, number: int) -> None:
    """One case, in this process."""
    with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as folder:
        area.case(number, Path(folder))


def run(
    modules: list[str], wanted: Callable[[str, Tally], bool], *, first: int = 0, jobs: int = 1, most_failures: int = 20
) -> dict[str, Tally]:
    """Cases of some areas until none is wanted any more; the area that has had least time comes next.

    An area that failed `most_failures` times is given up.
    """
    tallies = {module: Tally() for module in modules}
    ahead = dict.fromkeys(modules, 0.0)  # seconds given out, and what cases in hand are expected to take
    given = dict.fromkeys(modules, first)
    workers = [_Worker() for _ in range(jobs)]

    def next_area() -> str | None:
        for module in sorted(modules, key=lambda one: ahead[one]):
            planned = Tally(given[module] - first, tallies[module].seconds)
            if len(tallies[module].failures) < most_failures and wanted(module, planned):
                return module
        return None

    try:
        while True:
            for worker in workers:
                if worker.task is None and (module := next_area()) is not None:
                    worker.start(module, given[module])
                    given[module] += 1
                    ahead[module] += tallies[module].seconds / max(tallies[module].cases, 1)
            busy = [worker for worker in workers if worker.task is not None]
            if not busy:
                return tallies
            for module, seconds, failure in _finished(busy):
                tally = tallies[module]
                tally.cases += 1
                tally.seconds += seconds
                ahead[module] = max(ahead[module], tally.seconds)
                tally.failures += [failure] if failure else []
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that runs one case at a time, replaced where a case ends it."""

    def __init__(self) -> None:
        self.process: multiprocessing.process.BaseProcess | None = None
        self.pipe: Connection | None = None
        self.task: tuple[str, int] | None = None
        self.began = self.limit = 0.0

    def start(self, module: str, number: int) -> None:
        if self.process is None or self.pipe is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_serve, args=(theirs,))
            self.process.start()
            theirs.close()
            if not self.pipe.poll(_START_SECONDS):
                raise TimeoutError(f"a worker did not start within {_START_SECONDS:.0f} s")
            self.pipe.recv()
        self.task, self.began, self.limit = (module, number), time.monotonic(), _START_SECONDS
        self.pipe.send(self.task)

    def result(self) -> tuple[str, float, Failure | None] | None:
        """What became of the case, or None while it runs."""
        assert self.task is not None
        assert self.pipe is not None
        assert self.process is not None
        (module, number), seconds = self.task, time.monotonic() - self.began
        try:
            if self.pipe.poll():
                if (answer := self.pipe.recv()) is None:  # all is loaded: the case begins
                    self.began, self.limit = time.monotonic(), load(module).seconds
                    return None
                seconds, details = answer
                self.task = None
                return module, seconds, details and Failure(module, number, "wrong", details)
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode or 0
            reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            self.stop()
            return module, seconds, Failure(module, number, "crash", f"the worker ended: {reason}")
        if seconds > self.limit:
            self.stop()
            return module, seconds, Failure(module, number, "hang", f"no answer after {seconds:.0f} s")
        return None

    def stop(self) -> None:
        """End the process, and those that its cases started."""
        if self.process is not None and self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()
        self.process = self.pipe = self.task = None


def _finished(busy: list[_Worker]) -> Iterator[tuple[str, float, Failure | None]]:
    wait([worker.pipe for worker in busy if worker.pipe is not None], timeout=0.5)
    for worker in busy:
        if (result := worker.result()) is not None:
            yield result


def _serve(pipe: Connection) -> None:
    """In the worker: cases, one after the other, until the pipe is closed."""
    os.setsid()  # so that what a case starts can be ended with it
    pipe.send(None)
    while True:
        try:
            module, number = pipe.recv()
        except EOFError:
            return
        began, details = time.monotonic(), None
        try:
            area = load(module)
            pipe.send(None)
            began = time.monotonic()
            run_case(area, number)
        except BaseException:
            details = traceback.format_exc()
        pipe.send((time.monotonic() - began, details))
