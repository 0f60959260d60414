"""The tree stays as it is meant to be: few files and types on the way of a call, one place for each name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def counted():
    """What tools/walk.py prints, as JSON."""
    command = [sys.executable, str(ROOT / "tools" / "walk.py"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(("call", "files", "types"), [("rank", 22, 9), ("stakes ask", 49, 21)])
def test_a_call_visits_few_files_and_makes_few_types(counted, call, files, types):
    visited = counted["calls"][call]
    assert len(visited["files"]) <= files, visited["files"]
    assert len(visited["types"]) <= types, visited["types"]


@pytest.mark.parametrize("call", ["score", "select"])
def test_every_call_is_counted(counted, call):
    assert counted["calls"][call]["files"]
    assert counted["calls"][call]["functions"]


def test_no_module_is_there_for_one_other_alone(counted):
    assert counted["tree"]["modules with a single importer"] == {}


def test_a_public_name_has_one_home(counted):
    """Trackers of experiments apart: who changes from one to the other changes the import alone."""
    trackers = ["stakes.integrations.mlflow", "stakes.integrations.wandb"]
    shared = counted["tree"]["public names in more than one module"]
    assert {name: where for name, where in shared.items() if where != trackers} == {}


def test_functions_fit_on_a_screen(counted):
    """The kernel of a GPU apart, which Triton compiles as one function."""
    assert set(counted["tree"]["functions over 60 lines"]) <= {"stakes.gpu.centred.class_sums"}
