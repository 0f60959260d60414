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

import numpy as np
import pytest
from scipy.stats import norm

from stakes.models import belief_of

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
LIGHT = ("campaign", "own_loss", "quick_start")
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]\d+)?")


def cells(name):
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text())
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def text_and_numbers(text):
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
            (texts, numbers), (wanted, values) = text_and_numbers(one), text_and_numbers(other)
            assert texts == wanted
            assert numbers == pytest.approx(values, rel=0.02, abs=1e-6)


def test_your_own_loss_says_which_orders_are_a_close_call():
    """The sentence below its result, which once named the wrong ones."""
    names = {"__name__": "__main__"}
    for cell in cells("own_loss"):
        shown(cell, names)
    text = "".join("".join(cell["source"]) for cell in json.loads((FOLDER / "own_loss.ipynb").read_text())["cells"])
    first, second = map(float, re.search(r"on which (\d+) and (\d+) loaves are a close call", text).groups())
    days, orders = names["days"], names["orders"]
    belief = belief_of(names["model"], days, days)
    expected = expected_costs(names["costs"], belief)  # [days, orders]
    for row in names["ours"].indices:
        one, other = np.sort(expected[row])[:2]
        assert set(orders[np.argsort(expected[row])[:2]]) == {first, second}
        assert other < 1.5 * one
    for row in names["plain"].indices:  # the hottest days: 30 loaves, by far
        one, other = np.sort(expected[row])[:2]
        assert orders[np.argmin(expected[row])] == 30
        assert other > 1.5 * one


def expected_costs(costs, belief):
    """[M, A]: of each action at each context, by 200 points of equal probability."""
    levels = norm.ppf((np.arange(200) + 0.5) / 200)
    targets = belief.mean[:, None] + np.sqrt(belief.variance)[:, None] * levels  # [M, 200]
    return costs(targets).mean(axis=1)


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.ipynb"))])
def test_outputs_are_those_of_the_cells_in_order(name):
    ran = [cell["execution_count"] for cell in cells(name)]
    assert ran == ([None] * len(ran) if name == "gpu" else list(range(1, len(ran) + 1)))
    assert not any(output["output_type"] == "error" for cell in cells(name) for output in cell["outputs"])
