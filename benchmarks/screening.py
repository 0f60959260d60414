"""Screening: of a pool of too many rows some are scored. What is chosen so is worth how much of the best?

A pool of 33,000 rows is stood in for by a smaller one with as much effort for each row, so that all of its rows can be
scored as well. The ratio is what the eight rows chosen are worth, each alone, over what the best eight are worth: the
median over cases, which are models of few labels and of many; the error is what is missing in the worst of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor

from benchmarks.measure import Row, Settings, timed
from stakes import (
    AbsoluteError,
    BrierLoss,
    CostMatrix,
    ExponentialWeight,
    Linex,
    LogLoss,
    SquaredError,
    ThresholdDecision,
    Weight,
    ZeroOne,
    default,
    rank,
)
from stakes.ranking import query

ROWS, CHOSEN, COLUMNS = 33_000, 8, 8
COSTS = CostMatrix([[0.0, 1.0, 5.0], [4.0, 0.0, 2.0], [20.0, 3.0, 0.0]])
LARGE = Weight(lambda z: 1.0 * (z > 2.0), breakpoints=(2.0,))  # only large targets count

Problem = tuple[Any, Any]
Fit = Callable[[Any, Any, Any], Any]


def votes(X: Any, y: Any, pool: Any) -> Any:  # noqa: ARG001, N803
    """Fully grown trees."""
    return RandomForestClassifier(100, random_state=0).fit(X, y)


def probabilities(X: Any, y: Any, pool: Any) -> Any:  # noqa: ARG001, N803
    """Trees whose leaves hold shares of classes."""
    return ExtraTreesClassifier(100, min_samples_leaf=3, random_state=0).fit(X, y)


def process(X: Any, y: Any, pool: Any) -> Any:  # noqa: N803
    """A Gaussian process."""
    return default(X, y, pool=pool, task="real")


def forest(X: Any, y: Any, pool: Any) -> Any:  # noqa: ARG001, N803
    """An ensemble of normal distributions."""
    return RandomForestRegressor(100, min_samples_leaf=5, oob_score=True, random_state=0).fit(X, y)


CLASS_LOSSES = {"zero-one": ZeroOne(), "costs": COSTS, "Brier": BrierLoss(), "log loss": LogLoss()}
PROCESS_LOSSES = {
    "threshold, often passed": ThresholdDecision(1.0, 5.0),
    "threshold, rarely passed": ThresholdDecision(3.0),
    "absolute error": AbsoluteError(),
    "squared error of large targets": SquaredError(LARGE),
}
FOREST_LOSSES = {
    "squared error": SquaredError(),
    "squared error, exponential weight": SquaredError(ExponentialWeight(0.5)),
    "Linex": Linex(1.0),
}
KINDS: dict[str, tuple[Fit, dict[str, Any], int, int]] = {
    "votes": (votes, CLASS_LOSSES, 5000, 250),
    "class probabilities": (probabilities, CLASS_LOSSES, 5000, 250),
    "Gaussian process": (process, PROCESS_LOSSES, 5000, 1000),
    "forest of numbers": (forest, FOREST_LOSSES, 4000, 250),
}
"""By kind of belief: what fits a model, losses, how many rows stand for 33,000, and contexts."""


def rows(given: Settings) -> Iterator[Row]:
    """For each kind of belief and loss a line for rows that are screened, and one for as many that are drawn."""
    cases = [(60, 0), (300, 1)] if given.quick else [(n, seed) for n in (60, 300, 1000) for seed in range(3)]
    for kind, (fit, losses, count, contexts) in KINDS.items():
        size = min(count, 1200) if given.quick else count
        for name, loss in losses.items():
            yield from _lines(f"{kind}, {name}", [_case(fit, loss, size, contexts, *case) for case in cases], size)


def _lines(job: str, cases: list[tuple[float, float, float] | None], size: int) -> Iterator[Row]:
    """None is for cases in which no label is worth anything, or all rows were scored."""
    found = [case for case in cases if case is not None]
    if not found:
        return
    screened, drawn, seconds = (np.asarray(each) for each in zip(*found, strict=True))
    sizes = f"N={size} cases={len(found)}"
    yield Row(f"{job}: screened", sizes, float(np.median(seconds)), float(np.median(screened)), 1.0 - screened.min())
    yield Row(f"{job}: drawn", sizes, None, float(np.median(drawn)), 1.0 - drawn.min())


def _case(fit: Fit, loss: Any, size: int, contexts: int, labels: int, seed: int) -> tuple[float, float, float] | None:
    """Shares of the best worth of rows that are screened and of rows that are drawn, and seconds of the former."""
    rng = np.random.default_rng(seed)
    table, targets = _problem(rng, labels + size, fit in (votes, probabilities))
    pool = table[labels:]
    model = fit(table[:labels], targets[:labels], pool)
    settings = {"contexts": pool[:contexts], "n": CHOSEN, "batch": False}
    best = rank(model, loss, pool, **settings, max_rows=size)
    with effort_for(size):
        found, seconds = timed(lambda: rank(model, loss, pool, **settings))
    scored = [note.values["count"] for note in found.notes if note.kind in ("screened by variance", "screened rows")]
    if not scored or best.ranked_by != "worth":
        return None
    drawn = rng.choice(size, max(CHOSEN, scored[0]), replace=False)
    at_random = rank(model, loss, pool[drawn], **settings, max_rows=size)
    random_worth = sum(at_random.scores) if at_random.ranked_by == "worth" else 0.0
    return sum(found.scores) / sum(best.scores), random_worth / sum(best.scores), seconds


def _problem(rng: np.random.Generator, count: int, classes: bool) -> Problem:
    """A wave, a product and a kink in eight columns, with noise; cut into three classes."""
    table = rng.standard_normal((count, COLUMNS))
    clean = np.sin(2.0 * table[:, 0]) + table[:, 1] * table[:, 2] + 0.5 * abs(table[:, 3])
    targets = clean + 0.3 * rng.standard_normal(count)
    return table, np.digitize(targets, np.quantile(targets, [0.4, 0.75])) if classes else targets


@contextmanager
def effort_for(size: int) -> Iterator[None]:
    """As much effort for each row of a pool of this size as there is for each of 33,000."""
    names = "_MAX_NUMBERS", "_FEW_PAIRS"
    before = {name: getattr(query, name) for name in names}
    try:
        for name in names:
            setattr(query, name, before[name] * size // ROWS)
        yield
    finally:
        for name, value in before.items():
            setattr(query, name, value)
