"""What came of simulations, as tables in Markdown: differences are loss - rival, so below 0 where the loss helps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from experiments.problems import Problem
from stakes.simulation import Estimate, Simulation

_ROUNDING = 1e-12  # losses here are between a hundredth and a thousand

Outcomes = Mapping[Problem, Simulation]


def report(outcomes: Outcomes) -> str:
    """All tables, each under its heading."""
    parts = {
        "What was run": settings(outcomes),
        "The loss after the last label": finals(outcomes),
        "The mean over all steps, and labels to reach": areas(outcomes),
        "What was bought": purchases(outcomes),
    }
    return "\n\n".join(f"### {heading}\n\n{table}" for heading, table in parts.items())


def settings(outcomes: Outcomes) -> str:
    """Each problem, numbered, with its sizes."""
    head = ["#", "table", "loss", "model", "rows", "pool", "at the start", "bought", "runs"]
    lines = []
    for place, (problem, each) in enumerate(outcomes.items(), 1):
        sizes = {name: each.settings[name] for name in ("n_rows", "n_initial", "n_contexts", "n_test")}
        pool = 2 * sizes["n_rows"] - sum(sizes.values())
        counts = [sizes["n_rows"], pool, sizes["n_initial"], each.n, each.runs]
        lines.append([place, problem.table, problem.description, problem.model.description, *counts])
    return table(head, lines)


def finals(outcomes: Outcomes) -> str:
    """Mean losses at the start and at the end, and paired differences there."""
    head = ["#", "table", "start", "random", "plain", "usual", "loss", "loss - random", "loss - plain", "loss - usual"]
    lines = []
    for place, (problem, each) in enumerate(outcomes.items(), 1):
        names = ("random", "plain", problem.usual, "loss")
        means = [number(each.curves(name)[:, -1].mean()) for name in names]
        gaps = [_estimate(each.compare("loss", rival).final) for rival in ("random", "plain", problem.usual)]
        lines.append([place, problem.table, number(each.curves("loss")[:, 0].mean()), *means, *gaps])
    return table(head, lines)


def areas(outcomes: Outcomes) -> str:
    """Paired differences of the mean over steps, and labels until nine tenths of the best fall were reached."""
    head = ["#", "table", "loss - random", "loss - plain", "level", "random", "plain", "usual", "loss"]
    lines = []
    for place, (problem, each) in enumerate(outcomes.items(), 1):
        gaps = [_estimate(each.compare("loss", rival).area) for rival in ("random", "plain")]
        reached = each.labels_to_reach()
        labels = [_labels(reached[name].labels.value) for name in ("random", "plain", problem.usual, "loss")]
        lines.append([place, problem.table, *gaps, number(reached["loss"].level), *labels])
    return table(head, lines)


def purchases(outcomes: Outcomes) -> str:
    """Where each strategy looked, and how many of its rows "loss" shares with "plain"."""
    head = ["#", "table", "measured", "all rows", "random", "plain", "usual", "loss", "shared with plain"]
    lines = []
    for place, (problem, each) in enumerate(outcomes.items(), 1):
        values = [_measured(problem, each, targets) for targets in (each.targets[0], *_bought(problem, each))]
        lines.append([place, problem.table, _what(problem, each), *values, f"{shared(each, 'loss', 'plain'):.0%}"])
    return table(head, lines)


def shared(simulation: Simulation, first: str, second: str) -> float:
    """The mean share of rows that two strategies both bought in a run."""
    bought = [simulation.acquired[simulation.strategies.index(name)] for name in (first, second)]
    return float(np.mean([len(np.intersect1d(*rows)) / simulation.n for rows in zip(*bought, strict=True)]))


def _bought(problem: Problem, simulation: Simulation) -> list[np.ndarray]:
    """The targets of what each strategy bought."""
    names = ("random", "plain", problem.usual, "loss")
    return [simulation.bought[simulation.strategies.index(name)] for name in names]


def _what(problem: Problem, simulation: Simulation) -> str:
    if simulation.classes is None:
        return "mean target, sd"
    return "mean class" if problem.heavy is None else f"share of {problem.heavy}"


def _measured(problem: Problem, simulation: Simulation, targets: np.ndarray) -> str:
    if problem.heavy is None or simulation.classes is None:
        return f"{targets.mean():.2f}"
    return f"{np.mean(targets == simulation.classes.index(problem.heavy)):.0%}"


def _estimate(estimate: Estimate) -> str:
    """In bold where 0 is outside the interval."""
    if math.isnan(estimate.value):
        return "infinite"
    text = f"{number(estimate.value)} ({number(estimate.low)} to {number(estimate.high)})"
    return f"**{text}**" if estimate.significant else text


def _labels(value: float) -> str:
    return "not reached" if math.isinf(value) else f"{value:g}"


def number(value: float) -> str:
    """Three digits or all before the point, never a power of ten; what rounding leaves of 0 is 0."""
    if abs(value) < _ROUNDING or not math.isfinite(value):
        return "0" if abs(value) < _ROUNDING else f"{value}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return np.format_float_positional(value, precision=3, unique=False, fractional=False, trim="-")


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
