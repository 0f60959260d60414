"""Run the notebooks of the docs and keep what they show: python tools/notebooks.py [NAME ...].

The notebook on a GPU is run where there is one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"


def executed(path: Path, folder: Path, replace: tuple[tuple[str, str], ...] = ()) -> Any:
    """A notebook after a run in a folder; some texts in its code may be replaced by others first."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for old, new in replace:
            cell.source = cell.source.replace(old, new)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", record_timing=False, resources={"metadata": {"path": str(folder)}}
    )
    found = client.execute()
    for cell in found.cells:
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                output.data.pop("text/plain", None)  # a reader of notebooks shows the table, and a long text is no gain
    return found


def main() -> None:
    """Run those that are named, or all but the one on a GPU, in place."""
    names = sys.argv[1:] or [path.stem for path in sorted(FOLDER.glob("*.ipynb")) if path.stem != "gpu"]
    for name in names:
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(executed(path, FOLDER), path)
        print(f"ran {path.name}")


if __name__ == "__main__":
    main()
