"""What a simulation showed, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stakes._words import number
from stakes.simulation.intervals import Estimate, mean_of

if TYPE_CHECKING:
    from stakes.simulation.result import Comparison, Simulation


def verdict(simulation: Simulation) -> str:
    """One sentence on the last step: "loss" (or the last strategy) beside "plain" and "random" (or the first)."""
    ours = "loss" if "loss" in simulation.strategies else simulation.strategies[-1]
    others = [each for each in simulation.strategies if each != ours]
    rivals = sorted({"plain", "random"}.intersection(others)) or others[:1]
    head = f"After {_count(simulation.budget, 'label')}, in {_count(simulation.runs, 'run')}"
    if not rivals:
        return f"{head}: {ours!r} is the only strategy, so there is nothing to compare it with."
    return f"{head}, {', and '.join(_clause(simulation, simulation.paired(ours, each)) for each in rivals)}."


def table(simulation: Simulation) -> str:
    """A line for each strategy and metric, and the verdict."""
    lines = [f"{'metric':<16}{'strategy':<20}{'start':>11}{'final':>11}  {'95% interval':<25}{'mean of steps':>13}"]
    for metric in simulation.losses:
        for strategy in simulation.strategies:
            curves = simulation.curves(strategy, metric)
            start, final = mean_of(curves[:, 0]), mean_of(curves[:, -1])
            steps = mean_of(curves[:, 1:].mean(axis=1))
            lines.append(
                f"{metric:<16}{strategy:<20}{_number(start):>11}{_number(final):>11}  {_ends(final):<25}"
                f"{_number(steps):>13}"
            )
    return "\n".join([*lines, simulation.verdict()])


def _clause(simulation: Simulation, pair: Comparison) -> str:
    gap, ours, other = pair.final, repr(pair.first), repr(pair.second)
    if (simulation.curves(pair.first) == simulation.curves(pair.second)).all():
        return f"{ours} did exactly as {other} at every step"
    if math.isnan(gap.value):
        return f"{ours} cannot be compared with {other}, as the loss was infinite in some runs"
    if pair.runs == 1:
        return f"no difference between {ours} and {other} can be told from a single run (it was {number(gap.value, 3)})"
    if not gap.tells:
        return (
            f"no difference between {ours} and {other} could be told (mean difference {number(gap.value, 3)}, 95% "
            f"interval {number(gap.low, 3)} to {number(gap.high, 3)})"
        )
    verb, low, high = ("helps", -gap.high, -gap.low) if gap.value < 0 else ("hurts", gap.low, gap.high)
    base = float(simulation.curves(pair.second)[:, -1].mean())
    share = f", {abs(gap.value) / base:.0%} of it" if base > 0 else ""
    direction = "lower" if verb == "helps" else "higher"
    return (
        f"{ours} {verb} against {other}: the loss is {direction} by {number(abs(gap.value), 3)}{share} (95% interval "
        f"{number(low, 3)} to {number(high, 3)})"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _number(estimate: Estimate) -> str:
    return "infinite" if math.isnan(estimate.value) else number(estimate.value)


def _ends(estimate: Estimate) -> str:
    return "none" if math.isinf(estimate.low) else f"{number(estimate.low)} to {number(estimate.high)}"
