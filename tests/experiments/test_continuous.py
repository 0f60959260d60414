"""The stored results of continuous candidates, and their summary."""

import json

import pytest

pytest.importorskip("botorch")

from experiments.continuous import METHODS, PROBLEMS, RESULTS, summary


def test_stored_results_are_of_the_problems_and_the_page_has_their_summary(request):
    found = json.loads(RESULTS.read_text())
    assert set(found) == set(PROBLEMS)
    assert all(set(methods) == set(METHODS) for methods in found.values())
    page = (request.config.rootpath / "docs" / "integrations" / "botorch.md").read_text()
    assert summary(found) in page


def test_summary_is_of_runs_that_both_have():
    runs = {"own loss": {"0": [2.0, 1.0], "1": [2.0, 9.0]}, "integrated variance": {"0": [2.0, 2.0]}}
    assert summary({"a": runs}).splitlines()[-1] == "| a | 1 | 1 | 2 | 0.50 | 1 |"
