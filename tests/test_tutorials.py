"""Every command of the tutorials runs, in the order of the page, and prints what the page shows up to its digits."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(bash|bash fails|python|text)\n(.*?)^```$", re.S | re.M)


def masked(text):
    """Numbers and spaces aside."""
    return re.sub(r"-?\d+(\.\d+)?(e[-+]\d+)?", "#", " ".join(text.split()))


def run(kind, code, folder):
    """What a block prints, both streams together."""
    command = [sys.executable, "-c", code] if kind == "python" else ["bash", "-e", "-c", code]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert (done.returncode == 0) == (kind != "bash fails"), f"{code}\n{done.stdout}"
    return done.stdout


def test_there_are_three():
    assert [page.stem for page in PAGES] == ["prices", "progression", "tumours"]


def follow(text, folder):
    """Run the blocks of a page; returns how many lines of what is printed it shows."""
    printed, shown = "", 0
    for kind, code in BLOCK.findall(text):
        if kind == "text":
            for line in code.splitlines():
                assert masked(line) in masked(printed), f"{line!r} is not what was printed:\n{printed}"
                shown += 1
        else:
            printed = run(kind, code, folder)
    return shown


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_tutorial(page, tmp_path):
    assert follow(page.read_text(), tmp_path) >= 5
    assert "http" not in "".join(path.read_text() for path in tmp_path.glob("*.html")).replace("http://www.w3.org", "")


def test_the_spreadsheet_of_the_readme(tmp_path):
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## From a spreadsheet") : text.index("## An example in Python")]
    assert follow(section, tmp_path) == 4
