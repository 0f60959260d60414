"""All notebooks of the docs in a kernel, and that of marimo: by make integrations, as that takes minutes."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("nbclient", reason="nbclient is not installed; make integrations has it")
pytest.importorskip("torch", reason="torch is not installed, and some notebooks need it; make integrations has it")

from tests.test_notebooks import FOLDER, cells, stored, text_and_numbers
from tools.notebooks import executed

pytestmark = pytest.mark.skipif(
    os.environ.get("STAKES_INTEGRATION") != "notebooks",
    reason="takes minutes: make integration-notebooks runs them",
)


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.ipynb")) if path.stem != "gpu"])
def test_a_notebook_runs_in_a_kernel(name, tmp_path):
    """And shows what is stored, but for pictures, numbers, and whether loops were compiled."""
    found = [cell for cell in executed(FOLDER / f"{name}.ipynb", tmp_path).cells if cell.cell_type == "code"]
    for cell, kept in zip(found, cells(name), strict=True):
        texts = [[text_and_numbers(text)[0].replace(" compiled", "") for text in stored(each)] for each in (cell, kept)]
        assert texts[0] == texts[1]


def test_the_one_for_a_gpu(tmp_path):
    import torch

    fewer = () if torch.cuda.is_available() else (('"cuda"', '"cpu"'), ("2_000_000", "20_000"))
    found = executed(FOLDER / "gpu.ipynb", tmp_path, fewer).cells
    assert any("the same rows: True" in output.get("text", "") for cell in found for output in cell.get("outputs", ()))


def test_results_and_the_card_in_marimo(tmp_path):
    """As marimo shows them: what it stores in the page for each cell."""
    pytest.importorskip("marimo")
    shutil.copy(FOLDER / "in_marimo.py", tmp_path)
    command = [sys.executable, "-m", "marimo", "export", "html", "in_marimo.py", "-o", "page.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "marimo-error" not in page
    shown = [json.loads(each) for each in re.findall(r'"text/html": ("(?:[^"\\]|\\.)*")', page)]
    ranking, campaign, outlook, simulation, card = (each for each in shown if "<" in each)
    assert ranking.count("<tr") == 1 + 5
    assert "leaf " in ranking
    assert "8 labelled" in campaign
    assert "52 open" in campaign
    for each in (outlook, simulation):
        assert "<table" in each
        assert "<svg" in each
    assert "net over 100 decisions" in outlook
    assert "95% interval" in simulation
    assert "<marimo-anywidget" in card
    assert not any("object at 0x" in each for each in shown)
