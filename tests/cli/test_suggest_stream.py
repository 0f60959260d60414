"""`stakes suggest` of a table that stays in its file, and one that is interrupted."""

import subprocess
import sys

import numpy as np
import pytest

from stakes.files import read_table
from stakes.tabular import streamed
from tests.cli.cli_cases import run

arrow = pytest.importorskip("pyarrow", reason="files of Parquet and Arrow need pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
OPTIONS = "--target y --id id --loss squared-error --model gaussian-process"


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 1400))
    y = [float(value) if row < 20 else None for row, value in enumerate(x * z)]
    parquet.write_table(arrow.table({"id": np.arange(1000, 2400), "x": x, "z": z, "y": y}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_it_says_the_same_of_a_table_that_stays_in_its_file(table, monkeypatch):
    whole = run(f"suggest {table} {OPTIONS} --json")
    monkeypatch.setattr(streamed, "LARGE", 100)
    apart = run(f"suggest {table} {OPTIONS} --json --jobs 2")
    assert (whole.code, apart.code) == (0, 0)
    assert [row["row_id"] for row in apart.json["rows"]] == [row["row_id"] for row in whole.json["rows"]]
    assert [row["score"] for row in apart.json["rows"]] == pytest.approx([row["score"] for row in whole.json["rows"]])
    assert run(f"suggest {table.parent} {OPTIONS} --json --jobs 1").out == apart.out


def test_rows_to_fill_in_are_written(table, monkeypatch):
    monkeypatch.setattr(streamed, "LARGE", 100)
    out = table.parent / "rows.csv"
    found = run(f"suggest {table} {OPTIONS} --json -n 3 -o {out}").json["rows"]
    written = read_table(out)
    assert written.names == ("id", "x", "z", "y", "what sets it apart")
    assert written.texts("id") == [row["row_id"] for row in found]
    assert written.texts("y") == [None] * 3


def test_where_every_row_has_a_label(tmp_path):
    parquet.write_table(arrow.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "t.parquet")
    assert "Every row has a label" in run(f"suggest {tmp_path} --target y --loss squared-error").out


def test_an_interrupt_says_how_far_it_came(table):
    code = (
        "import os, signal\n"
        "from stakes.tabular import streamed\n"
        "streamed.LARGE = 100\n"
        "from importlib import import_module\n"
        "ranking = import_module('stakes.ranking.rank')\n"
        "plain, seen = ranking._worths, []\n"
        "def slow(*rest):\n"
        "    seen.append(rest)\n"
        "    if len(seen) == 3: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return plain(*rest)\n"
        "ranking._worths = slow\n"
        "from stakes.ranking import outlook\n"
        "outlook.__kwdefaults__['chunk'] = 345\n"
        "from stakes.cli.main import main\n"
        f"main(['suggest', {str(table)!r}, *{OPTIONS.split()!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert done.stderr.strip() == "stakes: interrupted while scoring rows, 48.6% of it done; nothing was changed"
    assert done.stdout == ""
