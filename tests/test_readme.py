"""The README tells the truth: its code is the example's, and what it says is printed is what is printed."""

import re
from pathlib import Path

import pytest

from tests.in_process import run_script

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SCRIPT = ROOT / "docs" / "examples" / "readme.py"


def test_the_code_is_the_example_s():
    shown = re.search(r"<!-- docs/examples/readme.py -->\n```python\n(.*?)\n```", README, re.S)[1]
    assert SCRIPT.read_text().split("\n# ---- the picture")[0].rstrip() == shown


def test_what_it_prints_is_what_is_printed(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed, and the example draws a picture")
    out, _ = run_script(SCRIPT, tmp_path)
    shown = re.search(r"It prints\n\n```text\n(.*?)\n```", README, re.S)[1]
    assert out.splitlines() == [*shown.splitlines(), "picture: readme.png"]
    assert (tmp_path / "readme.png").read_bytes().startswith(b"\x89PNG")


def test_the_one_call_is_its_example_s_and_prints_what_it_says(tmp_path):
    script = ROOT / "docs" / "examples" / "one_call.py"
    shown = re.search(r"<!-- docs/examples/one_call.py -->\n```python\n(.*?)\n```", README, re.S)[1]
    assert script.read_text().rstrip() == shown
    out, complained = run_script(script, tmp_path)
    assert "Warning" not in complained
    printed = re.search(r"^prints\n\n```text\n(.*?)\n```", README, re.S | re.M)[1]
    assert out.rstrip() == printed


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:)([^)]+)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


def test_names_in_the_table_exist():
    import stakes

    table = README[README.index("## What there is") : README.index("Every pair of a loss")]
    names = re.findall(r"`([A-Za-z_]+)`", table)
    assert len(names) > 20
    assert [name for name in names if not hasattr(stakes, name)] == []
