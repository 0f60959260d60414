"""The stored results of continuous candidates, and their summary."""

import json
from statistics import median

import pytest

pytest.importorskip("botorch")

from experiments.continuous import METHODS, PROBLEMS, RESULTS, summary


def test_stored_results_are_of_the_problems_and_the_page_has_their_summary(request):
    found = json.loads(RESULTS.read_text())
    assert set(found) == set(PROBLEMS)
    assert all(set(methods) == set(METHODS) for methods in found.values())
    page = (request.config.rootpath / "docs" / "integrations" / "botorch.md").read_text()
    assert summary(found) in page
    assert len(PROBLEMS) == 3
    for name in PROBLEMS:
        *_, ratio, _ = (each.strip() for each in summary({name: found[name]}).splitlines()[-1].strip("| ").split("|"))
        ends = [[losses[-1] for losses in found[name][method].values()] for method in METHODS]
        assert [len(each) for each in ends] == [20, 20]
        assert float(ratio) < 1.0
        assert median(ends[0]) < median(ends[1])


def test_summary_is_of_runs_that_both_have():
    runs = {"own loss": {"0": [2.0, 1.0], "1": [2.0, 9.0]}, "integrated variance": {"0": [2.0, 2.0]}}
    assert summary({"a": runs}).splitlines()[-1] == "| a | 1 | 1 | 2 | 0.50 | 1 |"
