"""The study of streams: what is stored is what the page says, and a small run of it."""

import json
from pathlib import Path

import numpy as np

from experiments import stream
from experiments.labels_saved.problems import Problem
from experiments.labels_saved.tables import Table
from stakes import SquaredError

ROOT = Path(__file__).parents[2]


def stored(name):
    return json.loads((stream.RESULTS / name).read_text())


def test_a_stream_loses_little_beside_a_pool_and_the_page_says_so():
    summary = stream.summarised(stored("runs.json"))
    assert summary == stored("summary.json")
    assert len(summary["tables"]) == 6
    assert summary["medians"]["stream over pool"] <= stream.LIMIT
    report = stream.report(summary)
    assert report == (stream.RESULTS / "report.md").read_text()
    assert report.partition("\n\n")[2].strip() in (ROOT / "docs" / "streams.md").read_text()


def test_all_buy_as_many():
    for run in stored("runs.json").values():
        assert set(run["bought"].values()) == {stream.LABELS}


def test_a_small_run(monkeypatch):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 2))
    data = Table("small", "numbers", features, features[:, 0] + 0.1 * rng.normal(size=60), np.zeros(2, dtype=bool))
    monkeypatch.setattr(stream, "from_pool", lambda *_: [])  # has tests of its own: it is `rank`
    found = stream.carry_out(data, Problem("squared error", SquaredError()), 0, bought=3)
    assert found["bought"] == {"pool": 0, "stream": 3, "random": 3}
    assert found["stream"] < found["start"] * 1.5
