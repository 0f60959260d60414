"""The documentation is true: its scripts run, its blocks are those scripts or run by themselves."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.in_process import run_script

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(  # tests/test_architecture.py tries the blocks of that page on a copy of the source
    page
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "concepts").glob("*.md")]
    if page.name != "architecture.md"
)
INTEGRATIONS = sorted((ROOT / "docs" / "integrations").glob("*.md"))  # run by the tests of their packages
OWN = ("readme.py", "one_call.py", "gallery.py", "digits.py")  # have tests of what they print
NEEDED = {"torch_processes.md": ("torch", "gpytorch", "botorch")}  # libraries, for the blocks of a page
SCRIPTS = sorted(path for path in (ROOT / "docs" / "examples").glob("*.py") if path.name not in OWN)
BLOCK = re.compile(r"(?:^<!-- (?P<script>\S+\.py) -->\n)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(shown: bool):
    """A parameter for each Python block: those that show a script, or those that stand alone."""
    return [
        pytest.param(page, match, id=f"{page.name}:{page.read_text()[: match.start('code')].count(chr(10)) + 1}")
        for page in PAGES
        for match in BLOCK.finditer(page.read_text())
        if (match["script"] is not None) == shown
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


@pytest.mark.parametrize("page", [*PAGES, *INTEGRATIONS], ids=lambda path: path.name)
def test_links_lead_to_pages(page):
    for link in re.findall(r"\]\(([^)#]+\.md)\)", page.read_text()):
        assert (page.parent / link).is_file(), f"{page.name} links to {link}"


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
