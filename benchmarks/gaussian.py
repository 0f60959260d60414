"""What a Gaussian process costs beyond its kernels, one triangular solve and one product, side by side in one run.

The reference is variance reduction in plain
NumPy and SciPy with kernels written in place, as lean as it gets; fits are not counted, tabulation of curves is. On
one thread, in seconds of the processor, which others on the machine disturb less than the clock.
Sizes: n labels so far, N candidates, M contexts, p features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.gaussian_reference import Scene, reference, scene, theirs
from benchmarks.measure import Row, Settings, both_ways, in_child, peak_megabytes, race, timed
from stakes import ExponentialWeight, SquaredError, Weight, expected_regret, score, select
from stakes.models import belief_of, follow

SHAPES = {  # n, N, M, p
    "large": (200, 5000, 1000, 8),
    "synthetic, first label": (3, 65, 49, 1),
    "synthetic, last label": (28, 65, 49, 1),
    "Yacht, first label": (10, 238, 60, 6),
    "Yacht, last label": (30, 238, 60, 6),
    "Estate, first label": (10, 324, 80, 6),
    "Estate, last label": (60, 324, 80, 6),
}
LOSSES = {
    "squared error": SquaredError(),
    "exponential weight": SquaredError(ExponentialWeight(0.5)),
    "sigmoid weight": SquaredError(Weight(lambda z: 1.0 / (1.0 + np.exp(-2.0 * z)))),
}
CHUNK = 10_000  # rows of a pool that are scored at a time


def rows(given: Settings) -> Iterator[Row]:
    """All lines of the table."""
    for name, shape in SHAPES.items():
        for loss in LOSSES:
            yield from _against_reference(name, scene(*shape), loss, given.repeats)
    yield _label_by_label(scene(200, 2000, 500, 8), 5 if given.quick else 20)
    for loss in ("squared error", "sigmoid weight"):
        counts = (10_000, 20_000) if given.quick else (10_000, 100_000, 1_000_000)
        yield from _growth(loss, counts, given.repeats)
    batches = (10_000, 10) if given.quick else (100_000, 50)
    for loss in ("squared error", "sigmoid weight"):
        yield in_child(_batch, loss, *batches)
        yield in_child(_memory, loss)


def ours(given: Scene, loss: str) -> Any:
    return score(LOSSES[loss], belief_of(given.process, given.pool, given.contexts))


def _against_reference(name: str, given: Scene, loss: str, repeats: int) -> Iterator[Row]:
    """With compiled loops, without, and against scikit-learn's kernels: the least seconds of runs that take turns."""
    sizes = f"n={len(given.process.y_)} N={len(given.pool)} M={len(given.contexts)}"
    error = _error(given, loss)
    plain = {"scikit-learn's kernels": lambda: theirs(given)} if loss == "squared error" else {}
    jobs: dict[str, Callable[[], Any]] = {"reference": lambda: reference(given), **plain}
    jobs |= both_ways(lambda: ours(given, loss))
    seconds = {job: took for job, (_, took) in race(jobs, repeats if name == "large" else 10 * repeats).items()}
    for job, took in seconds.items():
        of_ours = job in ("compiled", "not compiled")
        yield Row(f"{name}: {loss}, {job}", sizes, took, took / seconds["reference"], error if of_ours else None, None)


def _error(given: Scene, loss: str) -> float:
    """Of the best candidates' scores: against the reference, or against integration where that has no closed form."""
    found = ours(given, loss)
    if loss == "sigmoid weight":
        best = np.argsort(-found)[:3]
        belief = belief_of(given.process, given.pool[best], given.contexts)
        wanted, found = np.mean(expected_regret(LOSSES[loss], belief), axis=1), found[best]
    else:
        rate = 0.5 if loss == "exponential weight" else 0.0
        belief = belief_of(given.process, given.pool[:1], given.contexts)
        wanted = reference(given, np.exp(rate * belief.mean + rate**2 * belief.variance / 2.0))
    return float(np.max(abs(found - wanted)) / np.max(wanted))


def _label_by_label(given: Scene, count: int) -> Row:
    """Labels one at a time at rows that stay, against a belief made afresh for each."""
    labelled, labels = given.pool[:count], np.zeros(count)
    followed = follow(given.process, given.pool, given.contexts)
    found, kept = timed(lambda: _conditioned(followed, labelled, labels, lambda each: each.belief()))
    wanted, fresh = timed(
        lambda: _conditioned(given.process, labelled, labels, lambda each: each.belief(given.pool, given.contexts))
    )
    error = np.max(abs(found.covariance - wanted.covariance)) / np.max(wanted.candidate_variance)
    sizes = f"n={len(given.process.y_)} N={len(given.pool)} M={len(given.contexts)}"
    return Row("one label more: followed, to a belief afresh", sizes, kept / count, kept / fresh, float(error), None)


def _conditioned(state: Any, rows: Any, labels: Any, belief_of_state: Callable[[Any], Any]) -> Any:
    for i in range(len(rows)):
        state = state.condition(rows[i : i + 1], labels[i : i + 1])
        belief = belief_of_state(state)
    return belief


def _growth(loss: str, counts: tuple[int, ...], repeats: int) -> Iterator[Row]:
    """The median of runs over a pool in chunks; the ratio is of seconds for a row to those of the smallest pool."""
    given = scene(300, max(counts), 500, 8)
    ours(Scene(given.process, given.pool[:100], given.contexts), loss)
    first = None
    for count in counts:
        turns = 1 + 4 * repeats * counts[0] // count
        seconds = float(np.median([timed(lambda count=count: _chunks(given, loss, count))[1] for _ in range(turns)]))
        first = first or seconds / count
        yield Row(f"growth: {loss}", f"n=300 N={count} M=500", seconds, seconds / count / first, None, None)


def _chunks(given: Scene, loss: str, count: int) -> Any:
    """[N]: scores of the first rows, a chunk at a time."""
    starts = range(0, count, CHUNK)
    return np.concatenate(
        [ours(Scene(given.process, given.pool[start : start + CHUNK], given.contexts), loss) for start in starts]
    )


def _batch(loss: str, n_candidates: int, count: int) -> Row:
    """Belief and picks together."""
    given = scene(500, n_candidates, 500, 8)
    job = lambda: select(LOSSES[loss], belief_of(given.process, given.pool, given.contexts, joint=True), n=count)  # noqa: E731
    peak, seconds = timed(lambda: peak_megabytes(job))
    return Row(f"batch of {count}: {loss}", f"n=500 N={n_candidates} M=500", seconds, peak_megabytes=peak)


def _memory(loss: str) -> Row:
    given = scene(*SHAPES["large"])
    peak, seconds = timed(lambda: peak_megabytes(lambda: ours(given, loss)))
    return Row(f"memory, with compilation: {loss}", "n=200 N=5000 M=1000", seconds, peak_megabytes=peak)
