"""All notebooks of the docs in a kernel: by make integrations, as that takes minutes."""

import os

import pytest

pytest.importorskip("nbclient", reason="nbclient is not installed; make integrations has it")
pytest.importorskip("torch", reason="torch is not installed, and some notebooks need it; make integrations has it")

from tests.test_notebooks import FOLDER
from tools.notebooks import executed

pytestmark = pytest.mark.skipif(
    os.environ.get("STAKES_INTEGRATION") != "notebooks",
    reason="takes minutes: make integration-notebooks runs them",
)


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.ipynb")) if path.stem != "gpu"])
def test_a_notebook_runs_in_a_kernel(name, tmp_path):
    cells = executed(FOLDER / f"{name}.ipynb", tmp_path).cells
    assert all(cell.outputs is not None for cell in cells if cell.cell_type == "code")


def test_the_one_for_a_gpu(tmp_path):
    import torch

    fewer = () if torch.cuda.is_available() else (('"cuda"', '"cpu"'), ("2_000_000", "20_000"))
    cells = executed(FOLDER / "gpu.ipynb", tmp_path, fewer).cells
    assert any("the same rows: True" in output.get("text", "") for cell in cells for output in cell.get("outputs", ()))
