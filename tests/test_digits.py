"""The worked example on digits runs, and the loss that drives it pays: below random on the same seeds."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.in_process import run_script

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^ *(\d+) +([\d.]+) \( *[\d.]+\) +([\d.]+) \( *[\d.]+\) +([\d.]+) \( *[\d.]+\)$", re.M)


def table(text):
    """[rounds, 4]: labels, and the cost under random choice, EPIG and the loss."""
    return np.array([[float(each) for each in row] for row in ROW.findall(text)])


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    torch = pytest.importorskip("torch", reason="torch is not installed, and the example has networks")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed, and the example draws a picture")
    folder = tmp_path_factory.mktemp("digits")
    threads = torch.get_num_threads()
    with torch.random.fork_rng():
        out, _ = run_script(ROOT / "docs" / "examples" / "digits.py", folder)
    torch.set_num_threads(threads)
    assert (folder / "digits.png").read_bytes().startswith(b"\x89PNG")
    return out


def test_the_loss_ends_below_random(printed):
    costs = table(printed)
    assert costs[:, 0].tolist() == [20, 28, 36, 44, 52, 60]
    assert len(set(costs[0, 1:])) == 1  # all begin with the same labels and the same networks
    last = costs[3:].mean(axis=0)
    assert last[3] < 0.93 * last[1]
    assert last[3] < 0.8 * costs[0, 3]


def test_the_page_shows_what_the_script_prints_of_more_seeds(printed):
    page = (ROOT / "docs" / "torch.md").read_text()
    shown = re.search(r"```text\n(Cost of 1000.*?)\n```", page, re.S)[1]
    assert [re.sub(r"[\d.]+", "#", line) for line in shown.splitlines()][:2] == [
        re.sub(r"[\d.]+", "#", line) for line in printed.splitlines()
    ][:2]
    costs = table(shown)
    assert costs.shape == (6, 4)
    assert costs[-1, 3] < costs[-1, 1]
    np.testing.assert_allclose(table(printed)[0, 1], costs[0, 1], rtol=0.35)


def test_the_page_says_of_its_table_what_is_in_it():
    """The sentences below it, of which one once denied what the table showed."""
    text = (ROOT / "docs" / "torch.md").read_text()
    page = " ".join(text.split())
    costs = table(re.search(r"```text\n(Cost of 1000.*?)\n```", text, re.S)[1])
    random, plain, own = costs[:, 1:].T
    assert f"leaves {1 - own[-1] / random[-1]:.0%} less cost than random choice" in page
    assert own[-2] < random[-1]  # 8 labels fewer
    assert (own[1:] < plain[1:]).all()  # ahead of EPIG from 28 labels on
    assert f"with 28 labels it is {random[1] - own[1]:.1f} below random choice" in page
    assert f"with 36 labels {own[2] - random[2]:.1f} above" in page
    for name in ("random", "EPIG"):
        saved, error = map(float, re.search(rf"saves ([\d.]+) \(± ([\d.]+)\) against {name}", text).groups())
        assert (saved > error) == (name == "random")  # two standard errors are in brackets
