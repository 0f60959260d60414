"""The README tells the truth: its code is the example's, and what it says is printed is what is printed."""

import re
from pathlib import Path

import pytest

from experiments.labels_saved.summary import read
from tests.in_process import run_code, run_script
from tools.readme_picture import PANELS, PICTURE, RESULTS, counted, needed

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
OVERVIEW = (ROOT / "docs" / "overview.md").read_text()
PRELUDE = """
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

X, y = load_breast_cancer(return_X_y=True)
model, pool = RandomForestClassifier(200, random_state=0).fit(X[:40], y[:40]), X[40:]
"""  # what the README supposes to be there
PEERS = ("BoTorch", "scikit-activeml", "baal")  # as the page of performance has them
SCRIPT = ROOT / "docs" / "examples" / "readme.py"


def test_the_code_is_the_example_s():
    shown = re.search(r"<!-- docs/examples/readme.py -->\n```python\n(.*?)\n```", OVERVIEW, re.S)[1]
    assert SCRIPT.read_text().split("\n# ---- the picture")[0].rstrip() == shown


def test_what_it_prints_is_what_is_printed(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed, and the example draws a picture")
    out, _ = run_script(SCRIPT, tmp_path)
    shown = re.search(r"It prints\n\n```text\n(.*?)\n```", OVERVIEW, re.S)[1]
    assert out.splitlines() == [*shown.splitlines(), "picture: readme.png"]
    assert (tmp_path / "readme.png").read_bytes().startswith(b"\x89PNG")


def test_the_one_call_is_its_example_s_and_prints_what_it_says(tmp_path):
    script = ROOT / "docs" / "examples" / "one_call.py"
    shown = re.search(r"<!-- docs/examples/one_call.py -->\n```python\n(.*?)\n```", OVERVIEW, re.S)[1]
    assert script.read_text().rstrip() == shown
    out, complained = run_script(script, tmp_path)
    assert "Warning" not in complained
    printed = re.search(r"^prints\n\n```text\n(.*?)\n```", OVERVIEW, re.S | re.M)[1]
    assert out.rstrip() == printed


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:)([^)]+)\)", README))
def test_links_lead_somewhere(target):
    page, _, heading = target.partition("#")
    assert (ROOT / page).exists()
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.M) if heading else []
    assert not heading or heading in [each.lower().replace(" ", "-") for each in headings]


def test_the_three_lines_choose_the_rows_that_are_shown(tmp_path):
    code, shown = re.search(r"## Three lines.*?```python\n(.*?)```\n\n```text\n(.*?)\n```", README, re.S).groups()
    assert len([line for line in code.splitlines() if line]) == 3
    assert run_code(PRELUDE + code, tmp_path).strip() == shown


def sentences(text):
    """The sentences of a page, code, tables and addresses aside; an item of a list is a sentence."""
    text = re.sub(r"^```.*?^```$|^(?: {4}|\||#)[^\n]*$", "\n\n", text, flags=re.S | re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    paragraphs = re.split(r"\n\s*\n|^\* ", text, flags=re.M)
    return [sentence for each in paragraphs for sentence in re.split(r"(?<=[.?!])\s+", " ".join(each.split()))]


def test_no_sentence_is_too_long():
    long = [sentence for sentence in sentences(README) if len(re.findall(r"[\w'`./+-]+", sentence)) > 30]
    assert long == []
    assert len(sentences(README)) > 30


def test_the_first_page_of_the_site_describes_the_picture_as_the_readme_does():
    caption = re.search(r"!\[(.*?)\]\(docs/labels_saved.svg\)", README)[1]
    assert f"![{caption}](labels_saved.svg)" in (ROOT / "docs" / "index.md").read_text()


def test_what_to_expect_is_what_was_measured():
    """The table of the README beside the stored results; the picture has the same numbers in its text."""
    losses = ("squared error", "exponential weight", "threshold", "cost of a miss", "weighted log loss")
    rows = re.findall(r"^\| (?:a number|classes), .*? \| (\d+)% \| (\d+) \|$", README, re.M)
    summaries = read(RESULTS)
    assert rows == [(f"{100 * needed(loss, summaries):.0f}", str(len(counted(loss, summaries)))) for loss in losses]
    drawn = PICTURE.read_text()
    for loss in PANELS:
        assert f"{needed(loss, summaries):.0%} of random's labels do" in drawn
        assert f"{needed(loss, summaries):.0%}" in re.search(r"!\[(.*?)\]", README)[1]


def test_speeds_of_others_are_those_of_the_pages():
    """Ratios are copied from the pages that say how they were measured."""
    performance, helped = ((ROOT / "docs" / name).read_text() for name in ("performance.md", "does_it_help.md"))
    times = {name: re.search(rf"^\| {name} .*?\| [\d.]+ \| ([\d.]+) \|", performance, re.M)[1] for name in PEERS}
    assert f"| integrated variance, time to ours | 1 | {times['scikit-activeml']} |" in README
    assert f"| {times['BoTorch']} |\n| EPIG, time to ours | 1 | - | - | {times['baal']} |" in README
    ratios = [
        re.search(rf"^\| {name} .* \| (\d+) \|$", helped, re.M)[1]
        for name in ("MonteCarloEER", "ValueOfInformationEER", "modAL expected error")
    ]
    assert f"time to ours | 1 | {ratios[0]} to {ratios[1]} | {ratios[2]}, without costs |" in README


def test_names_in_the_table_exist():
    import stakes

    table = OVERVIEW[OVERVIEW.index("## What there is") : OVERVIEW.index("Every pair of a loss")]
    names = re.findall(r"`([A-Za-z_]+)`", table)
    assert len(names) > 20
    assert [name for name in names if not hasattr(stakes, name)] == []
