"""The notebooks of the docs run, and show what is stored in them.

Light ones are run here cell by cell, in this process. `make integrations` runs all of them in a kernel of their own;
the one for a GPU on it, where there is one, and on a CPU with fewer rows.
"""

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
LIGHT = ("campaign", "quick_start")
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]\d+)?")


def cells(name):
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text())
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def words_and_numbers(text):
    """A text in which numbers are replaced, and the numbers; pictures and times are left out."""
    text = re.sub(r"<svg.*?</svg>|style=\"[^\"]*\"|\d{4}-\d\d-\d\dT[\d:+]+", "", text, flags=re.DOTALL)
    return NUMBER.sub("#", text), [float(each.replace(",", "")) for each in NUMBER.findall(text)]


def stored(cell):
    """What the outputs of a cell say."""
    texts = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        text = output.get("text") or data.get("text/html") or data.get("text/plain") or ""
        texts.append("".join(text))
    return texts


def shown(cell, names):
    """What a cell says when it is run."""
    tree, out = ast.parse("".join(cell["source"])), io.StringIO()
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "a cell", "exec"), names)
        value = None if last is None else eval(compile(last, "a cell", "eval"), names)
    html = getattr(value, "_repr_html_", lambda: repr(value))
    return [each for each in (out.getvalue(), "" if value is None else html()) if each]


@pytest.mark.parametrize("name", LIGHT)
def test_a_notebook_shows_what_is_stored(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for cell in cells(name):
        found, kept = shown(cell, names), stored(cell)
        assert len(found) == len(kept)
        for one, other in zip(found, kept, strict=True):
            (words, numbers), (wanted, values) = words_and_numbers(one), words_and_numbers(other)
            assert words == wanted
            assert numbers == pytest.approx(values, rel=0.02, abs=1e-6)


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.ipynb"))])
def test_outputs_are_those_of_the_cells_in_order(name):
    ran = [cell["execution_count"] for cell in cells(name)]
    assert ran == ([None] * len(ran) if name == "gpu" else list(range(1, len(ran) + 1)))
    assert not any(output["output_type"] == "error" for cell in cells(name) for output in cell["outputs"])
