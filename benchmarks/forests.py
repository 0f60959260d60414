"""Forests: from rows to votes beside a loop over trees, and a whole acquisition step beside a straightforward one.

Rows are Landsat's where its folder is given ($STAKES_DATA), else made up with as many features and classes.
Sizes: n labels so far, N candidates, M contexts, K trees, C classes.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier

from benchmarks import members, plain
from benchmarks.measure import Row, Settings, both_ways, race
from benchmarks.members import error, weighted_epig
from experiments.datasets import load
from stakes import score
from stakes.models import belief_of
from stakes.models.forests import laid_out, tree_votes

LABELS = (30, 130)


@dataclass(frozen=True, eq=False)
class Scene:
    """A table, and what is known of it."""

    features: Any
    labels: Any
    n_labels: int
    n_candidates: int
    n_contexts: int
    n_trees: int

    @property
    def known(self) -> tuple[Any, Any]:
        """Rows and labels to fit."""
        return self.features[: self.n_labels], self.labels[: self.n_labels]

    @property
    def contexts(self) -> Any:
        """Rows after those that are known."""
        return self.features[self.n_labels : self.n_labels + self.n_contexts]

    @property
    def pool(self) -> Any:
        """The last rows."""
        return self.features[-self.n_candidates :]

    def __str__(self) -> str:
        return f"n={self.n_labels} N={self.n_candidates} M={self.n_contexts} K={self.n_trees} C=6"


def rows(given: Settings) -> Iterator[Row]:
    """For few labels and for many."""
    sizes = (1000, 60, 100) if given.quick else (4605, 600, 1000)
    features, labels = _table()
    for count in LABELS:
        scene = Scene(features, labels, count, *sizes)
        yield from _to_votes(scene, given.repeats)
        yield from _step(scene, given.repeats)


def _table() -> tuple[Any, Any]:
    """Landsat's 6,435 rows of 36 features in 6 classes, in random order, or as many that look like them."""
    if os.environ.get("STAKES_DATA"):
        table = load("landsat")
        order = np.random.default_rng(0).permutation(len(table.target))
        return table.features[order], table.target[order]
    return make_blobs(6435, n_features=36, centers=6, cluster_std=12.0, random_state=0)  # type: ignore[no-any-return]


def _to_votes(scene: Scene, repeats: int) -> Iterator[Row]:
    """The ratio is of the loop's seconds to these; the error is the fraction of votes that differ."""
    forest = RandomForestClassifier(scene.n_trees, random_state=0).fit(*scene.known)
    ways = both_ways(lambda: tree_votes(forest, laid_out(forest))(scene.pool))
    found = race({"loop over trees": lambda: _looped(forest, scene.pool), **ways}, repeats)
    wanted, loop = found["loop over trees"]
    for job, (votes, seconds) in found.items():
        wrong = None if job == "loop over trees" else float(np.mean(votes != np.argmax(wanted, axis=2)))
        yield Row(f"forest to votes: {job}; times quicker than the loop", str(scene), seconds, loop / seconds, wrong)


def _looped(forest: Any, rows: Any) -> Any:
    """[n, K, C]: what each tree says."""
    return np.stack([tree.predict_proba(rows) for tree in forest.estimators_], axis=1)


def _step(scene: Scene, repeats: int) -> Iterator[Row]:
    """Fit, votes and scores; the ratio is of the straightforward step's seconds to these."""
    jobs: dict[str, Callable[[], Any]] = {
        "straightforward": lambda: _straightforward(scene, np.float64),  # as trees give their probabilities
        "straightforward, in float32": lambda: _straightforward(scene, np.float32),
    }
    for library, forest in _libraries().items():
        ways = both_ways(lambda forest=forest: _ours(forest, scene))
        jobs |= {f"{library}, {way}": run for way, run in ways.items()}
    jobs["of which the fit by scikit-learn"] = lambda: _fitted(RandomForestClassifier, scene)
    found = race(jobs, repeats)
    slow = found["straightforward"][1]
    belief = belief_of(_fitted(RandomForestClassifier, scene), scene.pool, scene.contexts)
    for job, (scores, seconds) in found.items():
        known = job.startswith(("straightforward", "scikit-learn,"))  # another library grows other trees
        wrong = error(weighted_epig(belief.n_classes), belief, scores) if known else None
        yield Row(f"whole step: {job}; times quicker", str(scene), seconds, slow / seconds, wrong)


def _libraries() -> dict[str, Any]:
    """Forests of those that are installed."""
    known = {"scikit-learn": RandomForestClassifier}
    if importlib.util.find_spec("sklearnex") is not None:
        from sklearnex.ensemble import RandomForestClassifier as Quicker

        known["scikit-learn-intelex"] = Quicker
    return known


def _fitted(forest: Any, scene: Scene) -> Any:
    return forest(scene.n_trees, random_state=0, n_jobs=1).fit(*scene.known)


def _ours(forest: Any, scene: Scene) -> Any:
    belief = belief_of(_fitted(forest, scene), scene.pool, scene.contexts)
    return score(weighted_epig(belief.n_classes), belief)


def _straightforward(scene: Scene, precision: Any) -> Any:
    forest = _fitted(RandomForestClassifier, scene)
    here, there = (_looped(forest, each).astype(precision, copy=False) for each in (scene.pool, scene.contexts))
    return plain.weighted_epig(here, there, members.weights(here.shape[2]).astype(precision))
