"""The real command, interrupted at random times: it stops with the code of the signal, or had ended, nothing half done.

A case is one signal to one command. The moment is a share of how long a command of its kind takes undisturbed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from stakes.campaign import Campaign, Journal
from stakes.files import read_table, write_csv
from stakes.tabular import ModelSpec
from stakes.tabular.suggestions import suggest  # noqa: F401 (to make campaigns quickly)
from tests.torture.harness import Area

_ROWS, _KNOWN = 30, 10
_ON_TABLE = "--target y --id id --loss squared-error --model bayesian-ridge"
_COMMANDS = {
    "init": f"init new.stakes t.csv {_ON_TABLE}",
    "ask": "ask c.stakes -n 2",
    "ask into a file": "ask c.stakes -n 2 -o asked.csv",
    "tell": "tell c.stakes r20 1.5",
    "audit": "audit c.stakes -n 3",
    "audit into a file": "audit c.stakes -n 3 -o drawn.csv",
    "set": "set c.stakes --decisions 500 --budget 30",
    "import": "import c.stakes filled.csv",
    "skip": "skip c.stakes r21 r22",
    "release": "release c.stakes r29",
    "withdraw": "withdraw c.stakes r1 r2",
    "status": "status c.stakes",
    "suggest": f"suggest t.csv {_ON_TABLE} -o suggested.csv",
    "export": "export c.stakes -o exported.csv",
    "report": "report c.stakes -o report.html",
    "losses": "losses",
    "doctor": "doctor c.stakes",
}
_SIGNALS = (signal.SIGINT,) * 6 + (signal.SIGTERM, signal.SIGHUP)
_HERE = {"t.csv", "c.stakes", "filled.csv"}
_MADE = {"new.stakes", "asked.csv", "drawn.csv", "suggested.csv", "exported.csv", "report.html"}


def _command(arguments: str) -> list[str]:
    script = Path(sys.executable).with_name("stakes")
    return [*([str(script)] if script.exists() else [sys.executable, "-m", "stakes"]), *arguments.split()]


def _prepare(folder: Path) -> None:
    rows = [(f"r{row}", row, row * 0.5 if row < _KNOWN else None) for row in range(_ROWS)]
    write_csv(folder / "t.csv", ["id", "x", "y"], rows)
    write_csv(folder / "filled.csv", ["id", "x", "y"], [(f"r{row}", row, row * 0.5) for row in range(23, 27)])
    model = ModelSpec("bayesian-ridge")
    made = Campaign.create(folder / "c.stakes", folder / "t.csv", "y", "squared-error", id_column="id", model=model)
    with made as campaign:
        campaign.skip(["r29"])


_FITTING = {"init", "ask", "ask into a file", "audit", "audit into a file", "status", "suggest", "report"}
"""Commands that import scikit-learn and fit a model, which takes most of their time."""


@cache
def _seconds(name: str) -> float:
    """How long that command takes when nothing disturbs it, here and today."""
    with tempfile.TemporaryDirectory() as folder:
        _prepare(Path(folder))
        begin = time.monotonic()
        subprocess.run(_command(_COMMANDS[name]), cwd=folder, check=True, capture_output=True)
        return time.monotonic() - begin


def _check_files(folder: Path, name: str, code: int) -> None:
    """Whole or not there: what was recorded, and what was written."""
    left = {each.name for each in folder.iterdir()}
    for campaign in sorted(left & {"c.stakes", "new.stakes"}):
        with Journal.open(folder / campaign) as journal:
            journal.check()
            states = {row: state.status for row, state in journal.states().items()}
        assert len(states) == _ROWS
        if campaign == "c.stakes":
            for rows, became, by in (
                (("r20",), "labelled", "tell"),
                (("r23", "r24", "r25", "r26"), "labelled", "import"),
                (("r21", "r22"), "skipped", "skip"),
                (("r1", "r2"), "open", "withdraw"),
            ):
                done = {states[row] == became for row in rows}
                assert len(done) == 1, f"{by} is half done: {states}"
                assert done == {True} or by != name or code != 0, f"{by} ended with 0, and is not there"
                assert done == {False} or by == name, f"{by} from nowhere"
            drawn = sum(status == "testing" for status in states.values())
            assert drawn in (0, 3), f"an audit is half drawn: {states}"
            assert drawn == 0 or name.startswith("audit"), "an audit from nowhere"
            assert drawn == 3 or not name.startswith("audit") or code != 0, "audit ended with 0, and is not there"
    left = {each.name for each in folder.iterdir()}  # opening plays an unfinished write back
    assert left <= _HERE | _MADE, left
    for file in sorted(left & {"asked.csv", "drawn.csv", "suggested.csv", "exported.csv"}):
        count = {"asked.csv": 2, "drawn.csv": 3, "suggested.csv": 5}.get(file, _ROWS)
        assert len(read_table(folder / file).texts("id")) == count
    if "report.html" in left:
        assert (folder / "report.html").read_text("utf-8").rstrip().endswith("</html>")


_PYTHON_STARTS = 0.1  # seconds before a line of the command runs, on a busy machine: nobody can catch a signal there


def case(number: int, folder: Path) -> None:
    """One signal to one command."""
    rng = random.Random(number)
    name, how = list(_COMMANDS)[number % len(_COMMANDS)], rng.choice(_SIGNALS)
    after = rng.random() * _seconds("ask" if name in _FITTING else "tell")
    _prepare(folder)
    before = (folder / "c.stakes").read_bytes()
    process = subprocess.Popen(
        _command(_COMMANDS[name]), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(after)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    code = process.returncode
    if code == -how or (how == signal.SIGINT and _python_was_not_ready(code, err)):
        assert (folder / "c.stakes").read_bytes() == before
        assert {each.name for each in folder.iterdir()} == _HERE
    else:
        assert code in (0, 128 + how), f"{name}, {how.name} after {after:.2f} s: code {code}\n{err}"
        swallowed = code == 0 and err.startswith("Exception ignored in") and after < _PYTHON_STARTS  # by Python itself
        assert swallowed or "Traceback" not in err, f"{name}, {how.name} after {after:.2f} s: code {code}\n{err}"
        assert code == 0 or "interrupted" in err.splitlines()[-1], err
    _check_files(folder, name, code)
    if (where := os.environ.get("SIGNALS_TALLY")) is not None:
        with open(where, "a", encoding="utf-8") as tally:
            tally.write(f"{name}\t{how.name}\t{code}\t{'early' if code in (-how, 1) else ''}\n")


def _python_was_not_ready(code: int, err: str) -> bool:
    """Whether Python itself was stopped, before it ran a line of the command: it then says so in its own way."""
    ours = "stakes/cli/commands" in err or "main()" in err
    return code in (1, -signal.SIGINT) and "KeyboardInterrupt" in err and not ours


AREA = Area(name="signals", case=case, quick=17, seconds=120.0)
