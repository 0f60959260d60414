"""Peers on the same job, on the same arrays, in environments of their own: `python -m benchmarks peers --python PATH`.

Those that take long score some of the candidates, and their seconds are those of all: they take as long for each.
Their `error` is from our scores, relative to the best; peers that are not installed are left out with a note.
Sizes: n labels so far, N candidates, M contexts, p features, K members, C classes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks import members, peer_jobs
from benchmarks.measure import Row, Settings, both_ways, in_child, peak_megabytes, race
from benchmarks.members import Shape
from stakes import CategoricalEnsemble, LogLoss, SquaredError, score
from stakes.models import GaussianProcess, belief_of

PROCESS, QUICK_PROCESS = (200, 5000, 1000, 8), (20, 60, 30, 2)  # n, N, M, p
CLASSES, QUICK_CLASSES = Shape(5000, 500, 100, 10), Shape(60, 30, 20, 4)
SOME = 250  # candidates for those that take long


@dataclass(frozen=True, eq=False)
class Task:
    """What all are asked, and how we answer."""

    name: str
    sizes: str
    arrays: dict[str, Any]
    """`candidates` among them"""
    ours: Callable[[], Any]
    """[N]: our scores"""


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    process = QUICK_PROCESS if given.quick else PROCESS
    yield from _compared(variance, process, ("botorch", "emukit", "scikit-activeml"), given, SOME)
    classes = QUICK_CLASSES if given.quick else CLASSES
    yield from _compared(epig, classes, ("baal",), given, classes.candidates)


def variance(n: int, n_candidates: int, n_contexts: int, p: int) -> Task:
    """How much one label takes from the variance of a Gaussian process, with the same hyperparameters for all.

    The kernel is a Matern alone: BoTorch takes seven times as long for a sum with a linear trend.
    """
    rng = np.random.default_rng(0)
    known, pool, contexts = (rng.standard_normal((count, p)) for count in (n, n_candidates, n_contexts))
    labels = np.sin(2.0 * known[:, 0]) + known.sum(axis=1) / p + 0.1 * rng.standard_normal(n)
    chosen = replace(GaussianProcess().fit(known, labels).hyperparameters_, linear=0.0, mean=0.0)
    process = GaussianProcess(chosen).fit(known, labels)
    values = {name: getattr(chosen, name) for name in ("signal", "length", "noise")}
    arrays = {"rows": known, "labels": labels, "candidates": pool, "contexts": contexts, **values}
    sizes = f"n={n} N={n_candidates} M={n_contexts}"
    return Task("variance", sizes, arrays, lambda: score(SquaredError(), belief_of(process, pool, contexts)))


def epig(*shape: int) -> Task:
    """Mutual information of the label and the target, of an ensemble of classifiers."""
    candidates, contexts = (members.probabilities(n, *shape[2:], seed=i) for i, n in enumerate(shape[:2]))
    arrays = {"candidates": candidates, "contexts": contexts}
    ours = lambda: score(LogLoss(), CategoricalEnsemble(candidates, contexts))  # noqa: E731
    return Task("EPIG", str(Shape(*shape)), arrays, ours)


def _compared(
    make: Callable[..., Task], size: tuple[int, ...], peers: tuple[str, ...], given: Settings, some: int
) -> Iterator[Row]:
    """Ours, and each peer's, whose ratio is to our seconds."""
    task = make(*size)
    found = race(both_ways(task.ours), given.repeats)
    scores, seconds = next(iter(found.values()))
    for way, (_, each) in found.items():
        yield Row(f"{task.name}: stakes, {way}", task.sizes, each, each / seconds)
    yield Row(f"{task.name}: memory of stakes", task.sizes, None, peak_megabytes=in_child(our_memory, make, size))
    for peer in peers:
        yield _by_peer(peer, task, scores, seconds, given.pythons, some)


def our_memory(make: Callable[..., Task], size: tuple[int, ...]) -> float:
    """Once loops are compiled, as peers are measured."""
    task = make(*size)
    task.ours()
    return peak_megabytes(task.ours)


def _by_peer(peer: str, task: Task, scores: Any, ours: float, pythons: tuple[str, ...], some: int) -> Row:
    """The first environment that has it does it."""
    candidates = task.arrays["candidates"][:some]
    notes = []
    for python in pythons:
        found, note = asked(python, peer, {**task.arrays, "candidates": candidates})
        if found is not None:
            return _row(peer, task, scores[: len(candidates)], ours, found)
        notes.append(note)
    return Row(f"{task.name}: {peer} left out: {'; '.join(notes) or 'no --python'}", task.sizes, None)


def _row(peer: str, task: Task, wanted: Any, ours: float, found: dict[str, Any]) -> Row:
    everyone = len(task.arrays["candidates"])
    seconds = float(found["seconds"]) * everyone / len(wanted)
    alike = spearmanr(wanted, found["scores"]).statistic
    job = f"{task.name}: {peer} {found['version']}, Spearman {alike:.6f}"
    note = "" if len(wanted) == everyone else f", from {len(wanted)} candidates"
    error = float(np.max(abs(found["scores"] - wanted)) / np.max(wanted))
    return Row(job + note, task.sizes, seconds, seconds / ours, error, float(found["megabytes"]))


def asked(python: str, peer: str, arrays: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """What it found, or the last line of its error."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "task.npz"), Path(folder, "found.npz")
        np.savez(given, **arrays)
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        command = [python, "-I", peer_jobs.__file__, peer, str(given), str(out)]
        done = subprocess.run(command, env={**os.environ, **one}, capture_output=True, text=True, check=False)
        if done.returncode:
            return None, (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        with np.load(out) as found:
            return dict(found), ""
