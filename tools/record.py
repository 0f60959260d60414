"""Record what a person sees who follows a page: its `console` blocks, played anew in a terminal of 80 x 24 (tmux).

Run: python tools/record.py docs/tutorials/spreadsheet.md. Lines that begin with "$ " are typed, and so is what stands
behind the prompt of a question ("Loss [zero-one]: 2"); the rest of each block is replaced by what the terminal shows.
Blocks of Python and bash before it are run first, in a new folder. Seconds are printed, for each command with its
questions. `stakes` must be on the PATH; `python tools/record.py PAGE --check` only says whether the page is up to date.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```(bash|python|console)\n(.*?)^```$", re.S | re.M)
PROMPT = re.compile(r"^(.*\[[^\]]*\]: ?)(.*)$")
_SHELL = "$ "
_PATIENCE = 120.0  # seconds until a prompt is there


def steps(block: str) -> Iterator[tuple[str, str]]:
    """What is typed in a block, each after the prompt that it answers."""
    for line in block.splitlines():
        if line.startswith(_SHELL):
            yield _SHELL, line.removeprefix(_SHELL)
        elif found := PROMPT.match(line):
            yield found[1].rstrip(), found[2]


class Terminal:
    """A shell in a window of tmux, on a server of its own."""

    def __init__(self, folder: Path) -> None:
        self.server = ["tmux", "-L", f"record-{time.time_ns()}", "-f", "/dev/null"]
        shell = f"cd {shlex.quote(str(folder))} && exec env PS1='{_SHELL}' bash --norc --noprofile"
        self._tmux("new-session", "-d", "-x", "80", "-y", "24", shell)

    def _tmux(self, *words: str) -> str:
        return subprocess.run([*self.server, *words], check=True, capture_output=True, text=True).stdout

    def shown(self) -> str:
        """All lines so far; one that is longer than the terminal is a line nevertheless."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p", "-J", "-S", "-").splitlines())

    def wait_for(self, prompt: str) -> None:
        """Until the last line is this prompt, or begins with it."""
        end = time.monotonic() + _PATIENCE
        while not self.shown().rstrip().rpartition("\n")[2].startswith(prompt.rstrip()):
            if time.monotonic() > end:
                raise SystemExit(f"{prompt!r} is not shown:\n{self.shown()}")
            time.sleep(0.1)
        time.sleep(0.2)

    def type(self, line: str) -> None:
        """A line, and Enter."""
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")
        time.sleep(0.3)

    def close(self) -> None:
        """End the server."""
        self._tmux("kill-server")


def played(block: str, folder: Path) -> str:
    """What a terminal shows when the block is typed anew."""
    terminal, begun = Terminal(folder), 0.0
    try:
        for prompt, line in steps(block):
            terminal.wait_for(prompt)
            if prompt == _SHELL:
                print(f"{time.monotonic() - begun:6.1f} s" if begun else "", line)
                begun = time.monotonic()
            terminal.type(line)
        terminal.wait_for(_SHELL)
        print(f"{time.monotonic() - begun:6.1f} s")
        return terminal.shown().rstrip().removesuffix(_SHELL.rstrip()).rstrip() + "\n"
    finally:
        terminal.close()


def replayed(page: str, folder: Path) -> str:
    """The page with its console blocks as the terminal shows them now."""
    parts, end = [], 0
    for found in BLOCK.finditer(page):
        kind, code = found.groups()
        if kind == "console":
            parts += [page[end : found.start(2)], played(code, folder)]
            end = found.end(2)
        else:
            command = [sys.executable, "-c", code] if kind == "python" else ["bash", "-e", "-c", code]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return "".join([*parts, page[end:]])


def main() -> None:
    """Record the page anew, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    before = given.page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        after = replayed(before, Path(folder))
    if given.check:
        sys.exit(before != after)
    given.page.write_text(after)


if __name__ == "__main__":
    main()
