"""Every command of the tutorials runs, in the order of the page, and prints what the page shows, numbers included."""

import json
import re
import shlex
import subprocess
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from stakes import Linex
from stakes.cli.commands import cli
from tests.in_process import run_code, run_command
from tools.record import steps

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(bash|bash fails|python|text|console)\n(.*?)^```$", re.S | re.M)


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?")


def shows(line, printed):
    """Whether a line is in what was printed, spaces aside; numbers are those to 1%, as libraries round differently."""
    line, printed = (" ".join(text.split()) for text in (line, printed))
    if line in printed:
        return True
    parts = [re.escape(part) for part in NUMBER.split(line)]
    wanted = [float(each) for each in NUMBER.findall(line)]
    for found in re.finditer("(-?\\d+(?:\\.\\d+)?(?:e[-+]\\d+)?)".join(parts), printed) if wanted else ():
        if [float(each) for each in found.groups()] == pytest.approx(wanted, rel=0.01):
            return True
    return False


def test_a_line_with_another_number_is_not_what_was_printed():
    assert shows("saves 12.61 (± 0.2)", "it  saves 12.63\n(± 0.2) a decision")
    assert not shows("saves 12.61 (± 0.2)", "saves 12.61 (± 0.3)")
    assert not shows("saves 12", "costs 12")


def run(kind, code, folder):
    """What a block prints, both streams together; a command `stakes` is run here, all else by a shell."""
    if kind == "python":
        return run_code(code, folder)
    printed, codes = "", []
    for line in re.findall(r"^stakes .*\n|(?:^(?!stakes ).*\n)+", code, re.M):
        if line.startswith("stakes "):
            code, output = run_command(shlex.split(line)[1:], folder)
        else:
            done = subprocess.run(
                ["bash", "-e", "-c", line], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            code, output = done.returncode, done.stdout
        printed, codes = printed + output, [*codes, code]
    assert any(codes) == (kind == "bash fails"), f"{codes}\n{printed}"
    return printed


def typed(block, folder):
    """What the commands of a recorded terminal print when they are typed anew, with their answers; all but pip's."""
    commands = []
    for prompt, line in steps(block):
        if prompt == "$ ":
            commands.append((line, []))
        else:
            commands[-1][1].append(line)
    printed = ""
    for command, answers in commands:
        if command.startswith("stakes "):
            with chdir(folder), patch("stakes.cli.questions.at_terminal", lambda: True):
                done = CliRunner().invoke(cli, shlex.split(command)[1:], input="".join(f"{each}\n" for each in answers))
            assert done.exit_code == 0, done.output
            printed += done.output
    return printed


def test_there_are_five():
    assert [page.stem for page in PAGES] == ["labelling", "prices", "progression", "spreadsheet", "tumours"]


def follow(text, folder):
    """Run the blocks of a page; returns how many lines of what is printed it shows."""
    printed, shown = "", 0
    for kind, code in BLOCK.findall(text):
        if kind in ("text", "console"):
            printed = printed if kind == "text" else typed(code, folder)
            for line in (each for each in code.splitlines() if not each.startswith("$ ")):
                assert shows(line, printed), f"{line!r} is not what was printed:\n{printed}"
                shown += 1
        else:
            printed = run(kind, code, folder)
    return shown


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_tutorial(page, tmp_path):
    assert follow(page.read_text(), tmp_path) >= 5
    reports = "".join(path.read_text() for path in tmp_path.glob("*.html")).replace("http://www.w3.org", "")
    assert re.findall("https?:", reports) == []  # with the colon: pictures in letters may spell http by chance


@pytest.mark.parametrize(("page", "lines"), [("audit", 10), ("threshold", 3)])
def test_a_page_that_shows_what_is_printed(page, lines, tmp_path):
    assert follow((ROOT / f"docs/{page}.md").read_text(), tmp_path) >= lines


def test_the_spreadsheet_of_the_readme(tmp_path):
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## Three commands") : text.index("## Set up")]
    assert follow(section, tmp_path) == 4


def test_from_installation_to_five_rows_in_three_commands():
    """The recording of a person with a spreadsheet: nothing but what is asked has to be known."""
    (block,) = re.findall(r"^```console\n(.*?)^```$", (ROOT / "docs/tutorials/spreadsheet.md").read_text(), re.S | re.M)
    commands = [line for prompt, line in steps(block) if prompt == "$ "]
    assert commands == ["pip install stakes", "stakes suggest trials.xlsx"]
    assert len(re.findall(r"^ [1-5] T-\d{3}  ", block, re.M)) == 5
    answer = block[block.index("Label these rows next") :].splitlines()
    assert sum(-(-len(line) // 80) or 1 for line in answer) <= 23  # a screen, with the prompt


def prose(page):
    return " ".join(re.sub(r"^```.*?^```$", "", page, flags=re.S | re.M).split())


def test_what_the_tutorial_of_tumours_says_of_members(tmp_path):
    """What eight labels save if a tree is the truth, and what they are promised to save."""
    page = (ROOT / "docs/tutorials/tumours.md").read_text()
    sample, command = (next(code for kind, code in BLOCK.findall(page) if part in code) for part in ("sample", "-n 3"))
    run("bash", sample, tmp_path)
    offer = json.loads(run("bash", command.replace("-n 3", "-n 8 --json"), tmp_path))["outlook"]["offers"][7]
    (joint,) = re.findall(r"eight labels would save ([\d.]+) a decision", prose(page))
    assert float(joint) == pytest.approx(offer["joint"], rel=0.02)
    assert "It comes to a quarter of that" in prose(page)
    assert 0.2 < offer["worth"] / offer["joint"] < 0.3


def test_what_the_tutorial_of_prices_says_beside_its_outputs():
    page = (ROOT / "docs/tutorials/prices.md").read_text()
    (labels, saved, cost) = re.findall(r"the next (\d) labels save ([\d.]+) .* and cost (\d)", page)[0]
    assert labels == "8"
    assert f"Eight visits cost {cost} thousand and are expected to save about {float(saved):.0f} thousand" in prose(
        page
    )
    loss = Linex(0.02)
    high, low, small = (float(loss(0.0, error)) for error in (100.0, -100.0, 10.0))
    high, low = max(high, low), min(high, low)
    assert f"100 thousand too high costs {high:.1f}, one that is 100 thousand too low costs {low:.1f}" in prose(page)
    assert f"an error of 10 thousand in either direction costs {small:.2f}" in prose(page)
