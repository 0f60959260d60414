"""`python -m experiments audits`: whether audits are unbiased, more precise than random test labels, and cover.

On each table of the yardstick the default model is fitted to 20, 40 or 60 labels drawn at random, ten times, and every
fit is audited 50 times with 20 and with 50 labels on all rows that are left. The truth is the mean loss on those rows.
Uniform test labels are not replayed: the mean squared error of their mean is known.

Sizes: N rows of the pool, M labels.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.datasets import DatasetError
from experiments.labels_saved.problems import Problem, problems, with_floor
from experiments.labels_saved.tables import CLASSES, NUMBERS, Host, Table, load
from stakes import LogLoss
from stakes.evaluation import bayes_prediction
from stakes.evaluation.audit import Moments, drawn_by, moments_of
from stakes.models import DefaultModel, belief_of
from stakes.simulation.problem import evenly_by_class

LABELS = (20, 50)
TRAINED = (20, 40, 60)
FITS, REPLAYS = 10, 50
RESULTS = Path(__file__).parent / "results" / "audits" / "audits.json"
_SEED = 18


@dataclass(frozen=True)
class Case:
    """What 500 audits of one loss on one table came to, with M labels each."""

    table: str
    loss: str
    labels: int
    replays: int
    bias: float
    """The mean error over its standard error."""
    squared_error: float
    """Mean squared error, over that of uniform test labels."""
    coverage: float
    """Of the 95% intervals."""
    width: float
    """Mean width of intervals, over 3.92 standard deviations of the estimate."""
    none_seen: int
    """Replays in which no label showed a loss."""
    none_covered: int
    """Of these, with an interval that holds the truth."""
    largest_share: float
    """Of the loss of the pool, that of the one row that loses most, on average over fits."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments audits", description=__doc__)
    parser.add_argument("--tables", nargs="+", metavar="TABLE", default=[*NUMBERS, *CLASSES], help="by default all 32")
    parser.add_argument("--fits", type=int, default=FITS, help="fits of the model on each table")
    parser.add_argument("--replays", type=int, default=REPLAYS, help="audits of each fit")
    parser.add_argument("--results", type=Path, default=Path("build/audits.json"), help="the file to write")
    given = parser.parse_args(arguments)
    cases: list[Case] = []
    for name in given.tables:
        try:
            cases += of_table(load(name), given.fits, given.replays)
        except DatasetError as absent:
            print(f"left out: {name}: {absent}")
            continue
        print(name, flush=True)
    given.results.parent.mkdir(parents=True, exist_ok=True)
    given.results.write_text("[\n" + ",\n".join(json.dumps(_short(asdict(each))) for each in cases) + "\n]\n")
    print(summary(cases))


def of_table(table: Table, fits: int = FITS, replays: int = REPLAYS) -> list[Case]:
    """All losses of a table, audited with 20 and with 50 labels."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for fit in range(fits):
        for name, losses, moments in fitted(table, fit):
            for labels in LABELS:
                if labels + 10 <= len(losses):
                    found[name, labels].append(_replayed(losses, moments, labels, replays, fit))
    return [_case(table.name, *key, parts) for key, parts in found.items()]


def fitted(table: Table, fit: int) -> Iterator[tuple[str, Host, Moments]]:
    """For each loss of a table: its name, the losses [N] of a model on the rows left, and what it expects of them."""
    generator = np.random.default_rng([_SEED, fit])
    order = generator.permutation(len(table.y))
    if table.task == "classes":
        order = order[evenly_by_class(table.y[order], generator)]
        firsts = np.sort(np.unique(table.y[order], return_index=True)[1])
        order = np.concatenate([order[firsts], np.delete(order, firsts)])
    count = min(TRAINED[fit % len(TRAINED)], len(order) - max(LABELS) - 10)
    trained, pool, rows = order[:count], order[count:], table.standardised
    classes = list(range(len(table.classes))) or None
    model = DefaultModel("real" if table.task == "numbers" else "classes", classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows[trained], table.y[trained], pool=rows[pool])
        belief = belief_of(model, rows[pool[:1]], rows[pool], classes=classes, random_state=fit)
        for problem in problems(table).values():
            yield problem.name, *_losses(problem, belief, table.y[pool])


def _losses(problem: Problem, belief: Any, targets: Host) -> tuple[Host, Moments]:
    answers = np.asarray(bayes_prediction(problem.loss, belief))
    if isinstance(problem.loss, LogLoss):
        answers = with_floor(answers)
    return np.asarray(problem.loss(targets.astype(float), answers)), moments_of(problem.loss, belief, answers)


def _replayed(losses: Host, moments: Moments, labels: int, replays: int, fit: int) -> dict[str, Any]:
    """The audits of one fit; errors in units of the error of uniform test labels."""
    size, truth = len(losses), float(losses.mean())
    unit = float(np.sqrt(losses.var() * (size - labels) / ((size - 1) * labels))) or 1.0
    generator = np.random.default_rng([_SEED, fit, labels])
    found, none = [], []
    for _ in range(replays):
        drawn = drawn_by(*moments, n=labels, random_state=generator)
        seen = losses[list(drawn.rows)]
        found.append(drawn.estimate(seen))
        none.append(not seen.any())
    return {
        "errors": [(each.mean - truth) / unit for each in found],
        "held": [each.low <= truth * (1 + 1e-12) and truth * (1 - 1e-12) <= each.high for each in found],
        "widths": [(each.high - each.low) / unit for each in found],
        "none": none,
        "largest": float(losses.max() / losses.sum()) if losses.sum() > 0 else 0.0,
    }


def _case(table: str, loss: str, labels: int, parts: list[dict[str, Any]]) -> Case:
    errors, held, widths, none = (
        np.concatenate([part[name] for part in parts]) for name in ("errors", "held", "widths", "none")
    )
    return Case(
        table,
        loss,
        labels,
        len(errors),
        bias=float(errors.mean() / (errors.std() / np.sqrt(len(errors)) or 1.0)),
        squared_error=float(np.mean(errors**2)),
        coverage=float(held.mean()),
        width=float(widths.mean() / (3.92 * errors.std() or 1.0)),
        none_seen=int(none.sum()),
        none_covered=int((none & held).sum()),
        largest_share=float(np.mean([part["largest"] for part in parts])),
    )


def read(path: Path = RESULTS) -> list[Case]:
    """The cases that a study has written."""
    return [Case(**each) for each in json.loads(path.read_text())]


def summary(cases: Sequence[Case]) -> str:
    """A table for each number of labels, a line for each loss."""
    lines = ["| loss | labels | tables | MSE over uniform | coverage | least | width | none seen | of them covered |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for labels in sorted({case.labels for case in cases}):
        for name in [*dict.fromkeys(case.loss for case in cases), None]:
            lines.append(_line(name, labels, [c for c in cases if c.labels == labels and name in (None, c.loss)]))
    return "\n".join(lines)


def _line(name: str | None, labels: int, cases: Sequence[Case]) -> str:
    none = sum(case.none_seen for case in cases)
    numbers = [
        f"{np.median([case.squared_error for case in cases]):.2f}",
        f"{np.mean([case.coverage for case in cases]):.1%}",
        f"{min(case.coverage for case in cases):.0%}",
        f"{np.median([case.width for case in cases]):.2f}",
        str(none),
        f"{sum(case.none_covered for case in cases) / none:.0%}" if none else "",
    ]
    return f"| {name or 'all'} | {labels} | {len(cases)} | {' | '.join(numbers)} |"


def _short(values: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}


if __name__ == "__main__":
    main()
