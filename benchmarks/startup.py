"""What a call costs in a process of its own: imports, the first ranking, commands, and loops that are compiled first.

Each job is a fresh process on one thread, with Python's bytecode on the disk; its seconds are those of the processor,
the least of the repeats. The ratio is to importing and fitting scikit-learn's Gaussian process alone, which a ranking
under one cannot do without. Compiled loops are kept in a folder that is empty for each first use.

Sizes: n labels, N candidates, M contexts, K members, C classes.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, Settings, process_seconds
from benchmarks.suggest import written

_FITTED = """
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
X = np.linspace(0.0, 1.0, 60)[:, None]
model = GaussianProcessRegressor(RBF(0.3) + WhiteKernel(0.01), optimizer=None).fit(X[:10], np.sin(6.0 * X[:10, 0]))
"""
_RANKED = f"{_FITTED}import stakes\nstakes.rank(model, stakes.SquaredError(), X[10:])\n"
_VOTES = """
from benchmarks.members import votes
from stakes import LogLoss, VoteEnsemble, score
score(LogLoss(), VoteEnsemble(votes(500, 200, 4, 1), votes(200, 200, 4, 2), 4))
"""
_SOFT = """
from benchmarks.members import probabilities
from stakes import CategoricalEnsemble, LogLoss, score
score(LogLoss(), CategoricalEnsemble(probabilities(700, 30, 6, 1), probabilities(150, 30, 6, 2)))
"""
_PROCESS = "n=10 N=50 M=50"
_LOOPS = {"votes": (_VOTES, "N=500 M=200 K=200 C=4"), "soft members": (_SOFT, "N=700 M=150 K=30 C=6")}
_TABLE = 50  # rows without a label


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = _jobs(Path(folder))
        turns = [
            {job: process_seconds(command) for job, (command, _) in jobs.items()} for _ in range(max(2, given.repeats))
        ]
        least = {job: min(turn[job] for turn in turns) for job in jobs}
        for job, (_, sizes) in jobs.items():
            yield Row(job, sizes, least[job], least[job] / least["scikit-learn's process alone"])
        if importlib.util.find_spec("numba") is not None:
            yield from _loops(Path(folder), least["scikit-learn's process alone"], given)


def _jobs(folder: Path) -> dict[str, tuple[Sequence[str], str]]:
    """The command of each job, and its sizes."""
    table = written(folder, "y", open_rows=_TABLE)
    stakes = ("-m", "stakes")
    return {
        "scikit-learn's process alone": (("-c", _FITTED), "n=10"),
        "import stakes": (("-c", "import stakes"), ""),
        "import stakes; rank": (("-c", _RANKED), _PROCESS),
        "stakes --version": ((*stakes, "--version"), ""),
        "stakes suggest": (
            (*stakes, "suggest", str(table), "--target", "y", "--loss", "squared-error"),
            f"N={_TABLE} n=50",
        ),
    }


def _loops(folder: Path, reference: float, given: Settings) -> Iterator[Row]:
    """The first use of loops, with nothing on the disk, and that of the next process."""
    for name, (code, sizes) in _LOOPS.items():
        best = {"compiled": np.inf, "kept on the disk": np.inf}
        for turn in range(1 if given.quick else min(3, given.repeats)):
            kept = {"NUMBA_CACHE_DIR": str(folder / f"{name} {turn}")}
            for how in best:
                best[how] = min(best[how], process_seconds(("-c", code), kept))
        for how, found in best.items():
            yield Row(f"first score of {name}, {how}", sizes, found, found / reference)
