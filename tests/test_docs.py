"""The documentation is true: its scripts run, its blocks are those scripts or run by themselves."""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest

import stakes
from stakes import Campaign
from stakes.cli.commands import cli
from stakes.tabular import build_loss
from tests.in_process import run_command, run_script

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(  # tests/test_architecture.py tries the blocks of that page on a copy of the source
    page
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "concepts").glob("*.md")]
    if page.name != "architecture.md"
)
EVERYWHERE = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "api" not in page.parts),
]
INTEGRATIONS = sorted((ROOT / "docs" / "integrations").glob("*.md"))  # run by the tests of their packages
OWN = ("readme.py", "one_call.py", "gallery.py", "digits.py")  # have tests of what they print
FOLLOWED = ("audit.md",)  # tests/test_tutorials.py runs all blocks of such a page in order, commands too
NEEDED = {"torch_processes.md": ("torch", "gpytorch", "botorch")}  # libraries, for the blocks of a page
SCRIPTS = sorted(path for path in (ROOT / "docs" / "examples").glob("*.py") if path.name not in OWN)
BLOCK = re.compile(r"(?:^<!-- (?P<script>\S+\.py) -->\n)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(shown: bool):
    """A parameter for each Python block: those that show a script, or those that stand alone."""
    return [
        pytest.param(page, match, id=f"{page.name}:{page.read_text()[: match.start('code')].count(chr(10)) + 1}")
        for page in PAGES
        for match in BLOCK.finditer(page.read_text())
        if (match["script"] is not None) == shown and page.name not in FOLLOWED
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_runs_without_warnings(script, tmp_path):
    _, complained = run_script(script, tmp_path)
    assert "Warning" not in complained


def test_the_gallery_prints_what_its_page_shows_and_draws_its_pictures(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed, and the gallery draws pictures")
    out, _ = run_script(ROOT / "docs" / "examples" / "gallery.py", tmp_path)
    page = (ROOT / "docs" / "gallery.md").read_text()
    *printed, last = out.splitlines()
    tables = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    assert printed == "\n\n".join(tables).splitlines()
    pictures = re.findall(r"gallery_\w+\.png", last)
    assert sorted(pictures) == sorted(re.findall(r"!\[.*?\]\((\S+)\)", page))
    for name in pictures:
        drawn, kept = (Path(folder, name).read_bytes() for folder in (tmp_path, ROOT / "docs"))
        assert drawn[:24] == kept[:24]  # PNG, and of the same size
        assert len(drawn) > 0.8 * len(kept)


def test_the_gallery_says_of_its_tables_what_is_in_them():
    """The sentences below the tables, which once said of three losses what the tables did not."""
    text = (ROOT / "docs" / "gallery.md").read_text()
    page, rows = " ".join(text.split()), [line for line in text.splitlines() if re.search(r"(?:\d+% +){3}\d+%$", line)]
    shares = {re.split(r" +\d+%", row)[0]: [int(each) for each in re.findall(r"(\d+)%", row)] for row in rows}
    places = {name: float(x) for name, x in re.findall(r"^(\S.*?) +buy x = +(-?[\d.]+),", text, re.M)}
    assert list(shares) == list(places)
    assert len(shares) == 12
    decision, weighted, plain = "act above 1, miss = 5", "squared error, weight exp(2 z)", "squared error"
    like = ("Linex(1)", "absolute error", "pinball(0.9)", "CRPS", "log score", plain)
    assert all(places[name] < -6 and shares[name][0] == 100 for name in (*like, weighted))
    gaps = {name: shares[name][2] for name in like}
    assert (max(gaps, key=gaps.get), min(gaps.values())) == ("log score", gaps[plain])
    assert f"the log score most ({gaps['log score']}% of the best), squared error least ({gaps[plain]}%)" in page
    assert f"`exp(2 z)` raises the gap from {gaps[plain]}% to {shares[weighted][2]}% and still buys on the left" in page
    for name in ("log score, weight logistic at 1", "squared error of exp(f)"):
        assert 2.2 < places[name] < 5
        assert shares[name][2] == 100
    left, among, _, right = shares[decision]
    assert f"knows nothing ({left}% and {right}%)" in page
    assert f"a label there is worth {among}% of the best or less" in page


def test_concepts_say_of_studies_what_their_pages_say():
    """How often a promise comes true, and how many problems ended worse."""
    concept = {
        name: " ".join((ROOT / f"docs/concepts/{name}.md").read_text().split())
        for name in ("when_to_stop", "what_it_cannot_do")
    }
    (good,) = re.findall(r"^\| 8 labels \|(?:[^|]*\|){2} (\d+)%", (ROOT / "docs/promises.md").read_text(), re.M)
    assert f"within a factor of two in {good}% of the cases" in concept["when_to_stop"]
    helped = " ".join((ROOT / "docs/does_it_help.md").read_text().split())
    (count,) = re.findall(r"Of all (\d+) problems none ended significantly worse than random choice", helped)
    assert f"none of {count} problems ended significantly worse than random choice" in concept["what_it_cannot_do"]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"None of {count} problems ended significantly worse than random choice." in readme


@pytest.mark.parametrize(("page", "block"), blocks(shown=True))
def test_shown_script_is_verbatim(page, block):
    """But for the part that draws, which prints nothing that the page shows."""
    script = (ROOT / block["script"]).read_text().partition("\n# ---- the picture")[0]
    assert block["code"] == script, f"{page.name} shows another {block['script']}"


@pytest.mark.parametrize(("page", "block"), blocks(shown=False))
def test_other_blocks_run(page, block, tmp_path, monkeypatch):
    for library in NEEDED.get(page.name, ()):
        pytest.importorskip(library, reason=f"{library} is not installed, and {page.name} is about it")
    monkeypatch.chdir(tmp_path)
    if "import torch" in block["code"]:
        pytest.importorskip("torch", reason="torch is not installed, and the block has networks")
    exec(compile(block["code"], f"{page.name}, {block.start()}", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_python_block_is_found(page):
    assert page.read_text().count("```python") == len(BLOCK.findall(page.read_text()))


@pytest.mark.parametrize("page", [*PAGES, *INTEGRATIONS], ids=lambda path: path.name)
def test_pages_stand_alone(page):
    assert "shared/" not in page.read_text()


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_pages_and_headings(page):
    for link, heading in re.findall(r"\]\((?!\w+:)([^)#]*\.md)?(?:#([^)]*))?\)", page.read_text()):
        target = page.parent / link if link else page
        assert target.is_file(), f"{page.name} links to {link}"
        assert not heading or heading in slugs(target), f"{page.name} links to {link}#{heading}"


def slugs(page: Path) -> list[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M), re.M)
    return [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]


@pytest.mark.parametrize("page", [*PAGES, *INTEGRATIONS], ids=lambda path: path.name)
def test_formulas_and_names_end_on_their_line(page):
    text = re.sub(r"^```.*?^```$|\$\$.*?\$\$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for line in text.splitlines():
        assert line.count("$") % 2 == line.count("`") % 2 == 0, line


@pytest.mark.parametrize("pattern", [r"^## (\d+)\. ", r"\\tag\{(\d+)\}"], ids=["sections", "equations"])
def test_theory_is_numbered_in_order(pattern):
    found = [int(number) for number in re.findall(pattern, (ROOT / "docs" / "theory.md").read_text(), re.MULTILINE)]
    assert found == list(range(1, len(found) + 1))
    assert found


@pytest.mark.parametrize("page", [*PAGES, *INTEGRATIONS, ROOT / "README.md"], ids=lambda page: page.name)
def test_names_of_the_package_on_a_page_are_there(page):
    named = sorted(set(re.findall(r"`(stakes(?:\.\w+)+)[`(]", page.read_text())))
    assert [name for name in named if not is_there(name)] == []


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one; what needs an absent library counts as there."""
    found = importlib.import_module("stakes")
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part, None) or importlib.import_module(f"{found.__name__}.{part}")
        except ImportError as error:  # of the module, or by it with what is to be installed
            absent = getattr(error.__cause__ or error, "name", None)
            return not (absent or "stakes").startswith("stakes")
        except AttributeError:
            return False
    return True


COMMANDS = {name: cli.get_command(click.Context(cli), name) for name in cli.list_commands(click.Context(cli))}


def options(command):
    """The options of a command and of those below it."""
    below = [command.get_command(click.Context(command), name) for name in getattr(command, "commands", ())]
    own = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    return own.union({"--help"}, *(options(each) for each in below))


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_options_on_a_page_are_there(page):
    """In blocks and in running text; a block that is split by a backslash counts as one line."""
    if page.name == "architecture.md":
        pytest.skip("adds a command of its own, which its test runs")
    text = page.read_text().replace("\\\n", " ")
    for name, rest in re.findall(r"(?:^|`)(?:\$ )?stakes ([a-z][a-z-]*)([^`\n]*)", text, re.M):
        assert name in COMMANDS, f"there is no stakes {name}"
        found = set(re.findall(r"(?<![\w-])(?:--[a-z][a-z-]*|-[a-z](?!\w))", rest))
        assert found <= options(COMMANDS[name]), f"stakes {name} {rest}"


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_extras_targets_and_modules_on_a_page_are_there(page):
    text = page.read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for names in re.findall(r"stakes\[([a-z0-9,]+)\]", text):
        assert set(names.split(",")) <= set(extras)
    makefile = (ROOT / "Makefile").read_text()
    (integrations,) = re.findall(r"^INTEGRATIONS := (.*)$", makefile, re.M)
    targets = {*re.findall(r"^([a-z-]+):", makefile, re.M), *(f"integration-{each}" for each in integrations.split())}
    assert set(re.findall(r"(?:`| {4})make ([a-z0-9-]+)", text)) <= targets
    for module in re.findall(r"python -m ((?:tests|experiments|benchmarks|tools)[\w.]*)", text):
        path = ROOT / module.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), module


TASKS = re.findall(
    r"^\| (an? [^|]*?) \|[^|]*\| `([^`]*)` or `([^`]*)` \|$", (ROOT / "docs/concepts/which_loss.md").read_text(), re.M
)


@pytest.mark.parametrize(("loss", "flags"), [each[1:] for each in TASKS], ids=[who for who, *_ in TASKS])
def test_a_loss_in_python_is_that_of_its_flags(loss, flags, tmp_path):
    labels = ["fine", "fraud"] if "fraud" in flags else ["100", "150.5"]
    lines = ["id,x,label", *(f"r{row},{row},{label}" for row, label in enumerate([*labels, *labels, "", ""]))]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    command = ["init", "c.stakes", "table.csv", "--id", "id", "--target", "label", *shlex.split(flags)]
    code, printed = run_command(command, tmp_path)
    assert code == 0, printed
    named = eval(loss, {name: getattr(stakes, name) for name in stakes.__all__})
    with Campaign.open(tmp_path / "c.stakes") as campaign:
        found = build_loss(campaign.brief.loss, labels if "fraud" in flags else None)
    truths, answers = (np.arange(2), np.arange(2)) if "fraud" in flags else (np.array([90.0, 150.0]),) * 2
    if "threshold" in flags:
        answers = np.arange(2)
    costs = [np.asarray(each(truths[:, None], answers)) for each in (named, found)]
    np.testing.assert_allclose(*costs, rtol=1e-12)
    assert costs[0].max() > 0


def test_every_task_of_the_page_on_losses_is_tried():
    assert len(TASKS) == 5


def test_the_page_of_networks_says_of_the_digits_what_they_cost():
    """Below the numbers that its example printed."""
    text = (ROOT / "docs" / "torch.md").read_text()
    prose = " ".join(text.split())
    rows = re.findall(r"^ +(\d\d) +([\d.]+) \([ \d.]+\) +([\d.]+) \([ \d.]+\) +([\d.]+) \([ \d.]+\)$", text, re.M)
    random, plain, own = ({int(row[0]): float(row[part]) for row in rows} for part in (1, 2, 3))
    assert list(own) == [20, 28, 36, 44, 52, 60]
    assert (
        f"after 60 labels, choosing by the costs leaves {1 - own[60] / random[60]:.0%} less cost than random" in prose
    )
    assert own[52] < random[60]
    assert all(own[labels] < plain[labels] for labels in own if labels >= 28)
    assert f"with 28 labels it is {random[28] - own[28]:.1f} below random choice" in prose
    assert f"with 36 labels {own[36] - random[36]:.1f} above" in prose


def test_signatures_and_fields_on_the_page_are_those_of_the_calls():
    page = " ".join((ROOT / "docs" / "overview.md").read_text().split())
    empty = inspect.Parameter.empty
    for name in ("rank", "outlook", "audit"):
        found = inspect.signature(getattr(stakes, name))
        plain = [each.replace(annotation=empty) for each in found.parameters.values()]
        assert f"{name}{found.replace(parameters=plain, return_annotation=empty)}" in page
    results = {"Ranking": stakes.ranking.Ranking, "Outlook": stakes.ranking.Outlook, "Audit": stakes.evaluation.Audit}
    for name, kind in results.items():
        (listed,) = re.findall(rf"an? `{name}` \(([^)]*)\)", page)
        known = {*vars(kind), *kind.__dataclass_fields__}
        assert set(re.findall(r"`(\w+)`", listed)) <= known


def test_defaults_on_pages_are_those_of_the_package():
    """In the table of streams, and where a call is written with its defaults."""
    stream = inspect.signature(stakes.Stream).parameters
    shown = re.findall(r"^\| .* \| `(\w+)` \| (\d+) \|$", (ROOT / "docs/streams.md").read_text(), re.M)
    assert len(shown) == 5
    assert {name: int(value) for name, value in shown} == {name: stream[name].default for name, _ in shown}
    networks = pytest.importorskip("stakes.models.networks", reason="torch is not installed", exc_type=ImportError)
    calls = re.findall(r"^\*\*\w+\.\*\* `(\w+)\(([^)`]*)\)`", (ROOT / "docs/torch.md").read_text(), re.M)
    assert [name for name, _ in calls] == ["Dropout", "last_layer_laplace"]
    for name, arguments in calls:
        found = inspect.signature(getattr(networks, name)).parameters
        for argument, value in re.findall(r"(\w+)=([\d.]+)", arguments):
            assert found[argument].default == float(value)
