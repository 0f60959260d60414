"""A command as an annotator: a program of yours, such as a language model behind a script, that labels rows.

It is started once and asked row after row: a line of JSON with the id and the cells of a row goes in,
{"row": "m001", "values": {"text": "..."}, "classes": ["routine", "urgent"]}, and a line of JSON comes out, {"label":
"urgent"}; with null, the command does not know. A command is named on the command line and never kept in a campaign.
"""

from __future__ import annotations

import contextlib
import json
import queue
import shlex
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stakes.exceptions import StakesError

_PATIENCE = 120.0  # seconds for an answer
_LONGEST = 100_000  # letters of a line


@dataclass
class CommandAnnotator:
    """A program that is asked for labels.

    Attributes:
        command: As a shell would take it; it is run without one.
        name: What its labels go by.
        most: How many rows it is asked for.
        patience: Seconds to wait for an answer.
    """

    command: str
    name: str = "command"
    most: int = 100
    patience: float = _PATIENCE
    _process: Any = field(default=None, repr=False)
    _lines: queue.Queue[str] = field(default_factory=queue.Queue, repr=False)

    def ask(self, row: str, values: Mapping[str, str], classes: Sequence[str]) -> str | None:
        """The label of a row, or None where the command does not know.

        Args:
            row: Its id.
            values: Its cells by column.
            classes: What a label can be; empty for numbers.

        Returns:
            What the command answered.

        Raises:
            StakesError: If it cannot be started, ends, takes too long, or says something else.
        """
        if self._process is None:
            self._start()
        try:
            line = json.dumps({"row": row, "values": dict(values), "classes": list(classes)})
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
            return _label(self._lines.get(timeout=self.patience))
        except queue.Empty:
            self.stop()
            raise StakesError(f"the annotator {self.name!r} did not answer within {self.patience:g} seconds") from None
        except (OSError, ValueError) as error:
            self.stop()
            raise StakesError(f"the annotator {self.name!r} failed on row {row!r:.100}: {error}") from error

    def stop(self) -> None:
        """End the command."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.stdout.close()
        self._process = None

    def _start(self) -> None:
        arguments = shlex.split(self.command)
        if not arguments:
            raise StakesError("--annotator-command is empty; give the command that labels rows")
        try:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, text=True, encoding="utf-8", bufsize=1)
        except OSError as error:
            raise StakesError(f"the annotator {self.command!r} cannot be started: {error}") from error
        self._lines = queue.Queue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()


def _read(output: Any, lines: queue.Queue[str]) -> None:
    """Put lines into a queue, and an empty one at the end."""
    with contextlib.suppress(ValueError):  # closed
        while line := output.readline(_LONGEST):
            lines.put(line)
    lines.put("")


def _label(line: str) -> str | None:
    """The label in a line of JSON."""
    if not line:
        raise ValueError("it ended")
    answer = json.loads(line)
    label = answer.get("label", "") if isinstance(answer, dict) else ""
    if label is not None and (not isinstance(label, str | int | float) or isinstance(label, bool) or label == ""):
        raise ValueError(f'a line such as {{"label": "urgent"}} was wanted, not {line.strip()!r:.200}')
    return None if label is None else str(label)
