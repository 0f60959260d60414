"""What works with the base dependencies alone: `make test` runs this folder again with their lowest versions.

So nothing here may import an extra, or anything else of the folder `tests` that does.
"""

from __future__ import annotations

import importlib.util
import json
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge

import stakes

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
OVERVIEW = (ROOT / "docs" / "overview.md").read_text()
BOUND = re.compile(r"([\w.-]+)>=([\w.]+)")
COMMAND = [sys.executable, "-m", "stakes"]


def masked(text):
    """Numbers and spaces aside."""
    return re.sub(r"-?\d+(\.\d+)?(e[-+]\d+)?", "#", " ".join(text.split()))


def command(folder, *arguments, code=0):
    """What `stakes` prints, run in a folder."""
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def test_lowest_versions_are_the_bounds_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = dict(BOUND.fullmatch(each).groups() for each in project["dependencies"])
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert pinned == bounds


def test_every_public_name_is_there():
    assert stakes.__all__
    assert [name for name in stakes.__all__ if not hasattr(stakes, name)] == []


@pytest.mark.parametrize(
    ("loss", "model", "target"),
    [
        (stakes.SquaredError(stakes.ExponentialWeight(1.0)), BayesianRidge(), "number"),
        (stakes.Pinball(0.2), GaussianProcessRegressor(alpha=0.1), "number"),
        (stakes.SquaredError(), RandomForestRegressor(50, oob_score=True, random_state=0), "number"),
        (stakes.LogLoss([1.0, 50.0]), RandomForestClassifier(20, random_state=0), "class"),
        (stakes.CostMatrix([[0.0, 1.0], [20.0, 0.0]]), RandomForestClassifier(20, random_state=0), "class"),
    ],
    ids=["squared error", "pinball", "forest", "log loss", "costs"],
)
def test_rank_chooses_rows_that_are_worth_something(loss, model, target):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    truth = rows[:, 0] + 0.1 * rows[:, 1]
    model.fit(rows[:20], truth[:20] if target == "number" else (truth[:20] > 0).astype(int))
    ranking = stakes.rank(model, loss, pool=rows[20:], n=3)
    assert len(set(ranking.indices)) == 3
    assert all(0 <= row < 40 for row in ranking.indices)
    assert ranking.scores[0] > 0


def test_score_of_one_pair_by_hand():
    # Squared error: the label removes rho of the variance, 0.5^2 / (1 * 2) = 1/8 of 2.
    belief = stakes.GaussianBelief([0.0], [2.0], [1.0], [[0.5]])
    np.testing.assert_allclose(stakes.score(stakes.SquaredError(), belief), [0.25])


def test_a_campaign_from_the_command_line(tmp_path):
    command(tmp_path, "sample", "prices")
    command(tmp_path, *shlex.split("init c.stakes prices.csv --id flat --target price --loss linex --alpha 0.02"))
    asked = json.loads(command(tmp_path, *shlex.split("ask c.stakes -n 2 --json")))
    first, second = (row["row_id"] for row in asked["rows"])
    assert first != second
    command(tmp_path, "tell", "c.stakes", first, "310.5")
    assert "26 labelled, 1 asked for" in command(tmp_path, "status", "c.stakes")
    with stakes.Campaign.open(tmp_path / "c.stakes") as campaign:
        assert (campaign.status().labelled, campaign.status().asked) == (26, 1)
    assert "stakes: " in command(tmp_path, "tell", "c.stakes", second, "much", code=1)


def test_the_spreadsheet_of_the_readme(tmp_path):
    section = README[README.index("## Three commands") : README.index("## Set up")]
    lines, shown = (re.search(rf"```{kind}\n(.*?)```", section, re.S)[1].splitlines() for kind in ("bash", "text"))
    printed = "".join(command(tmp_path, *shlex.split(line)[1:]) for line in lines)
    assert [line for line in shown if masked(line) not in masked(printed)] == []


@pytest.mark.parametrize("script", ["readme.py", "one_call.py"])
def test_the_examples_of_the_overview_print_what_it_shows(script, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = re.search(rf"<!-- docs/examples/{script} -->.*?```text\n(.*?)```", OVERVIEW, re.S)[1]
    whole = script != "readme.py" or importlib.util.find_spec("matplotlib")  # the picture is an extra
    with nullcontext() if whole else pytest.raises(SystemExit, match=r"pip install 'stakes\[plot\]'"):
        runpy.run_path(str(ROOT / "docs" / "examples" / script), run_name="__main__")
    assert capsys.readouterr().out.startswith(shown)


@pytest.mark.parametrize(("module", "arguments"), [("pyarrow", "suggest t.parquet --target y --loss squared-error")])
def test_an_extra_that_is_not_there_is_named(module, arguments, tmp_path):
    if importlib.util.find_spec(module) is not None:
        pytest.skip(f"{module} is installed")
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    assert "pip install" in command(tmp_path, *arguments.split(), code=1)
