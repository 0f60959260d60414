"""Processes that tell, import and ask on one campaign, killed at random moments: what was acknowledged is there.

A case forks three processes, three times, from one that has everything loaded; each kill comes at another moment of
another write. In every third case a real command, in a process of its own, is killed as well.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from stakes.campaign import Campaign, Journal
from stakes.cli import commands
from stakes.files import write_csv
from stakes.tabular import ModelSpec
from stakes.tabular.suggestions import suggest  # noqa: F401 (so that it is loaded before a fork)
from tests.torture.harness import Area

_ROWS, _KNOWN = 90, 6
_ROUNDS, _PROCESSES = 3, 3


def _label(row: str) -> str:
    """The only label that anybody tells of a row."""
    return f"{int(row[1:]) * 0.5}"


def _tells(path: Path, rows: list[str], say: Callable[[str], None]) -> None:
    with Campaign.open(path) as campaign:
        for row in rows:
            say(f"tries {row}")
            campaign.tell(row, _label(row))
            say(f"told {row}")


def _imports(path: Path, rows: list[str], say: Callable[[str], None]) -> None:
    with Campaign.open(path) as campaign:
        for start in range(0, len(rows), 4):
            some = rows[start : start + 4]
            file = path.with_name(f"labels of {some[0]}.csv")
            file.write_text("id,x,y\n" + "".join(f"{row},{row[1:]},{_label(row)}\n" for row in some))
            say(f"tries {' '.join(some)}")
            campaign.import_labels(file)
            say(f"told {' '.join(some)}")


def _asks(path: Path, rows: list[str], say: Callable[[str], None]) -> None:
    with Campaign.open(path) as campaign:
        for row in rows:
            say(f"asked {' '.join(campaign.ask(2, who=row).row_ids)} by {row}")


def _commands(path: Path, rows: list[str], say: Callable[[str], None]) -> None:
    for row in rows:
        say(f"tries {row}")
        if commands.run(["tell", str(path), row, _label(row)]) == 0:
            say(f"told {row}")


_WORK = (_tells, _tells, _imports, _imports, _commands, _asks)


def _start(work: Callable[[Path, list[str], Callable[[str], None]], None], path: Path, rows: list[str]) -> _Child:
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        try:
            work(path, rows, lambda line: os.write(theirs, f"{line}\n".encode()) and None)
        except BaseException as error:
            os.write(theirs, f"failed {type(error).__name__}: {error}\n".encode())
        os._exit(0)
    os.close(theirs)
    return _Child(pid, ours)


class _Child:
    """A process that writes what it did into a pipe."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid, self.pipe = pid, pipe

    def kill(self) -> list[str]:
        """Its whole lines."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        with os.fdopen(self.pipe, "rb") as pipe:
            lines = pipe.read().split(b"\n")[:-1]
        return [line.decode() for line in lines]


def _check(path: Path, tried: list[list[str]], recorded: Iterable[str], asked: Iterable[tuple[str, str]]) -> None:
    """Nothing that was acknowledged is lost, nothing that nobody tried is there, and no import is half done."""
    with Journal.open(path) as journal:
        journal.check()
        labels = {row: state.label for row, state in journal.states().items() if state.label is not None}
        asks = {(event.row, event.who) for event in journal.history() if event.kind == "ask"}
    assert all(float(label) == float(_label(row)) for row, label in labels.items()), labels
    assert set(recorded) <= labels.keys(), f"lost: {set(recorded) - labels.keys()}"
    known = {f"r{row}" for row in range(_KNOWN)}
    attempts = {row for rows in tried for row in rows}
    assert labels.keys() <= known | attempts, f"from nowhere: {labels.keys() - known - attempts}"
    for rows in tried:
        assert len(labels.keys() & set(rows)) in (0, len(rows)), f"half of {rows}"
    assert set(asked) <= asks, f"lost leases: {set(asked) - asks}"
    left = {each.name for each in path.parent.iterdir() if not each.name.startswith("labels of ")}
    assert left <= {"t.csv", "c.stakes", "c.stakes-journal"}, left  # of a write that had not begun: the next removes it


def case(number: int, folder: Path) -> None:
    """Nine kills, or ten."""
    rng = random.Random(number)
    path = folder / "c.stakes"
    write_csv(
        folder / "t.csv",
        ["id", "x", "y"],
        [(f"r{row}", row, _label(f"r{row}") if row < _KNOWN else None) for row in range(_ROWS)],
    )
    Campaign.create(
        path, folder / "t.csv", "y", "squared-error", id_column="id", model=ModelSpec("bayesian-ridge")
    ).close()
    tried, recorded, asked = list[list[str]](), list[str](), list[tuple[str, str]]()
    free = [f"r{row}" for row in range(_KNOWN, _ROWS)]
    rng.shuffle(free)
    for _ in range(_ROUNDS):
        shares = [[free.pop() for _ in range(8)] for _ in range(_PROCESSES)]
        children = [_start(rng.choice(_WORK), path, rows) for rows in shares]
        for child in children:
            time.sleep(rng.expovariate(1 / 0.02))
            for line in child.kill():
                kind, *arguments = line.split()
                assert kind != "failed", line
                if kind == "asked":
                    asked += [(row, arguments[-1]) for row in arguments[:-2]]
                else:
                    (tried.append if kind == "tries" else recorded.extend)(arguments)
        _check(path, tried, recorded, asked)
    if number % 3 == 0:
        row = free.pop()
        arguments = [["tell", str(path), row, _label(row)], ["ask", str(path)]][number % 2]
        process = subprocess.Popen([sys.executable, "-m", "stakes", *arguments], stdout=subprocess.PIPE, text=True)
        time.sleep(rng.uniform(0.0, 2.0))
        process.kill()
        out = process.communicate()[0]
        tried += [[row]] if arguments[0] == "tell" else []
        recorded += [row] if "1 recorded" in out else []
        _check(path, tried, recorded, asked)


AREA = Area(name="kills", case=case, quick=8, seconds=120.0)
