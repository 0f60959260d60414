"""The examples of docs/architecture.md, applied to a copy of the source: a loss, a model and a command are added."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stakes

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
BLOCK = re.compile(r"<!-- (new|append|in): (\S+)(?: after: (.*?))? -->\n```python\n(.*?)```", re.DOTALL)
PUBLISHED = {
    "losses/__init__.py": "from stakes.losses.cosh import Cosh\n\n__all__ += ['Cosh']\n",
    "models/__init__.py": "from stakes.models import kernel_ridge as _kernel_ridge\n",
}
"""What the page says in words: the lines that publish what was added."""

LOSS = """
import numpy as np
from stakes import GaussianBelief, expected_reduction, expected_regret, find_form
from stakes.losses import Cosh
from stakes.testing import check_loss
loss = Cosh(0.7)
check_loss(loss, [-1.5, -0.2, 0.4, 1.1, 2.5])
rho, variance = np.random.default_rng(0).uniform(0.0, 0.99, (6, 3)), np.asarray([0.5, 1.0, 3.0])
belief = GaussianBelief([0.0, 3.0, -1e4], variance, np.ones(6), np.sqrt(rho * variance))
assert find_form(loss, belief).name.startswith("closed form: exp(alpha^2")
np.testing.assert_allclose(expected_reduction(loss, belief), expected_regret(loss, belief), rtol=1e-9)
"""
MODEL = """
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from stakes import SquaredError, rank, score
from stakes.models import belief_of
from stakes.testing import check_belief
rng = np.random.default_rng(0)
X, pool = rng.uniform(-3, 3, (12, 1)), rng.uniform(-3, 3, (20, 1))
y = np.sin(X[:, 0])
ridge = KernelRidge(alpha=0.05, kernel="rbf", gamma=0.5).fit(X, y)
process = GaussianProcessRegressor(RBF(1.0), alpha=0.05, optimizer=None).fit(X, y)
belief = belief_of(ridge, pool, pool, joint=True)
check_belief(belief)
ratio = score(SquaredError(), belief) / score(SquaredError(), belief_of(process, pool, pool))
np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)  # the same process, up to the variance of the function
assert len(rank(ridge, SquaredError(), pool, n=3)) == 3
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The source with all that the page adds."""
    folder = tmp_path_factory.mktemp("source")
    shutil.copytree(Path(stakes.__file__).parent, folder / "stakes")
    for how, name, after, code in BLOCK.findall(PAGE):
        path = folder / "stakes" / name
        if how == "new":
            assert not path.exists()
            path.write_text(code)
        elif how == "append":
            imports = "\nfrom stakes.losses import Cosh\n" if name == "acquisition/closed_forms.py" else ""
            path.write_text(path.read_text() + imports + "\n\n" + code)
        else:
            assert path.read_text().count(after) == 1
            path.write_text(path.read_text().replace(after, after + "\n" + code))
    for name, lines in PUBLISHED.items():
        path = folder / "stakes" / name
        path.write_text(path.read_text() + lines)
    return folder


def run(source, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_touches_few_files():
    files = [name for _, name, _, _ in BLOCK.findall(PAGE)]
    assert files == [
        "losses/cosh.py",
        "acquisition/closed_forms.py",  # with losses/__init__.py: three for a loss with a closed form
        "models/kernel_ridge.py",  # with models/__init__.py: two for a model
        "cli/count.py",
        "cli/commands.py",  # two for a command
    ]


@pytest.mark.parametrize("code", [LOSS, MODEL], ids=["loss", "model"])
def test_what_was_added_works(source, code):
    run(source, "-c", code)


def test_the_command_that_was_added_runs(source, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,\n")
    assert (
        run(source, "-m", "stakes", "count", str(tmp_path / "t.csv"), "--target", "y") == "1 of 2 rows have a label.\n"
    )
    assert "How many rows of a table have a label." in run(source, "-m", "stakes", "--help")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE))))
def test_files_that_the_page_names_are_there(name):
    homes = (ROOT / "src" / "stakes" / name, ROOT / name, ROOT / "src" / name)
    assert any(home.exists() for home in homes) or "stakes/__init__" in name
