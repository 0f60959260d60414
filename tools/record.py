"""Record what a person sees who follows a page: its `console` blocks, played anew in a terminal of 80 x 24 (tmux).

Run: python tools/record.py docs/tutorials/spreadsheet.md. Lines that begin with "$ " are typed, and so is what follows
the prompt of a question ("Loss [zero-one]: 2"); the rest of each block is replaced by what the terminal shows. Blocks
of Python and bash before it are run first, in a new folder. The terminal has a virtual environment with nothing in it,
and `pip install stakes` there installs this working tree. Seconds are printed, for each command with its questions.
"""

from __future__ import annotations

import argparse
import os
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
ROOT = Path(__file__).parents[1]
_SHELL = "$ "
_PATIENCE = 600.0  # seconds until a prompt is there


def steps(block: str) -> Iterator[tuple[str, str]]:
    """What is typed in a block, each after the prompt that it answers."""
    for line in block.splitlines():
        if line.startswith(_SHELL):
            yield _SHELL, line.removeprefix(_SHELL)
        elif found := PROMPT.match(line):
            yield found[1].rstrip(), found[2]


class Terminal:
    """A shell in a window of tmux, on a server of its own."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.server = ["tmux", "-L", f"record-{time.time_ns()}", "-f", "/dev/null"]
        known = {
            "PS1": _SHELL,
            "PATH": f"{tools / 'venv' / 'bin'}:{os.environ['PATH']}",
            "PIP_FIND_LINKS": str(tools / "wheels"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_QUIET": "2",
        }
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in known.items())
        shell = f"cd {shlex.quote(str(folder))} && exec env -u PYTHONPATH {settings} bash --norc --noprofile"
        self._tmux("new-session", "-d", "-x", "80", "-y", "24", shell)

    def _tmux(self, *arguments: str) -> str:
        return subprocess.run([*self.server, *arguments], check=True, capture_output=True, text=True).stdout

    def shown(self) -> str:
        """All lines so far; one that is longer than the terminal is a line nevertheless."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p", "-J", "-S", "-").splitlines())

    def wait_for(self, prompt: str) -> None:
        """Until the last line is this prompt, with nothing typed yet; what a question proposes may be another."""
        end, begin = time.monotonic() + _PATIENCE, prompt.partition("[")[0].rstrip()
        while not self._is_prompt(begin):
            if time.monotonic() > end:
                raise SystemExit(f"{prompt!r} is not shown:\n{self.shown()}")
            time.sleep(0.1)
        time.sleep(0.2)

    def _is_prompt(self, begin: str) -> bool:
        last = self.shown().rstrip().rpartition("\n")[2]
        return last == begin or (last.startswith(f"{begin} [") and last.endswith("]:"))

    def type(self, line: str) -> None:
        """A line, and Enter."""
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")
        time.sleep(0.3)

    def close(self) -> None:
        """End the server."""
        self._tmux("kill-server")


def prepared(tools: Path) -> None:
    """A virtual environment with nothing in it, and the wheel of this working tree beside it."""
    wheel = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tools / "wheels")]
    for arguments in ([*wheel, str(ROOT)], ["-m", "venv", str(tools / "venv")]):
        subprocess.run([sys.executable, *arguments], check=True)


def played(block: str, folder: Path, tools: Path) -> str:
    """What a terminal shows when the block is typed anew."""
    terminal, begun = Terminal(folder, tools), 0.0
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


def replayed(page: str, folder: Path, tools: Path) -> str:
    """The page with its console blocks as the terminal shows them now."""
    parts, end = [], 0
    for found in BLOCK.finditer(page):
        kind, code = found.groups()
        if kind == "console":
            parts += [page[end : found.start(2)], played(code, folder, tools)]
            end = found.end(2)
        else:
            command = [sys.executable, "-c", code] if kind == "python" else ["bash", "-e", "-c", code]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return "".join([*parts, page[end:]])


def main() -> None:
    """Record the page anew."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=Path)
    page = parser.parse_args().page
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as tools:
        prepared(Path(tools))
        page.write_text(replayed(page.read_text(), Path(folder), Path(tools)))


if __name__ == "__main__":
    main()
