"""How far numbers of a few runs can be trusted. Sizes: R runs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from stakes._utils.tables import Host
from stakes._utils.text import number
from stakes.exceptions import StakesError
from stakes.simulation.trial import Trial

LEVEL = 0.95
_FEW = 6  # the fewest values that can tell anything if all they show is a sign: 2 / 2^6 < 5%
_SAME = 1e-9  # relative: what rounding may make of equal values


@dataclass(frozen=True)
class Estimate:
    """A number and its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def tells(self) -> bool:
        """Whether 0 is outside the interval."""
        return self.low > 0 or self.high < 0


def mean_of(values: Host) -> Estimate:
    """The mean of R independent values with Student's t interval, mean -+ t_{R-1} sd / sqrt(R).

    Infinite values have no mean. One value tells no spread, nor do a few that are all the same, as losses that count
    errors on few rows may well be. The interval then has no ends.
    """
    values = np.asarray(values, dtype=float)
    if not np.isfinite(values).all():
        return Estimate(math.nan, -math.inf, math.inf)
    value, count = float(values.mean()), len(values)
    if count == 1 or (count < _FEW and np.ptp(values) <= _SAME * np.abs(values).max()):
        return Estimate(value, -math.inf, math.inf)
    half = float(stats.t.ppf(0.5 + LEVEL / 2, count - 1) * values.std(ddof=1) / math.sqrt(count))
    return Estimate(value, value - half, value + half)


def median_of(values: Host) -> Estimate:
    """The median of R values that are at least 0 and may be infinite, with its interval by order statistics.

    From the k-th smallest to the k-th largest, k the most for which Binomial(R, 1/2) is below k with probability under
    2.5%; fewer than six values bound nothing.
    """
    values = np.sort(np.asarray(values, dtype=float))
    rank = int(stats.binom.ppf(0.5 - LEVEL / 2, len(values), 0.5))
    low, high = (values[rank - 1], values[-rank]) if rank else (0.0, math.inf)
    return Estimate(float(np.median(values)), float(low), float(high))


# ----------------------------------------------------------------------
# What a simulation showed, in words.


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


# ----------------------------------------------------------------------
# Learning curves and what was bought, drawn with matplotlib, which only this file names.
#
# Sizes: R runs, B labels bought, T steps, C classes.

_LACKING = "plots need matplotlib: pip install 'stakes[plot]'"


def plot_curves(simulation: Simulation, metric: str, ax: Any) -> Any:
    """Means over runs after 0 .. B labels, with 95% t intervals at each step."""
    ax = _axes(ax)
    for strategy in simulation.strategies:
        _band(ax, np.arange(simulation.budget + 1), simulation.curves(strategy, metric), strategy)
    ax.set(xlabel="labels bought", ylabel=f"{metric}, mean on test rows")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend()
    return ax


def plot_acquired(simulation: Simulation, ax: Any) -> Any:
    """Shares of classes among all labels bought, or the mean target bought at each step; the pool for comparison."""
    ax = _axes(ax)
    if simulation.classes is None:
        for strategy, values in zip(simulation.strategies, simulation.bought, strict=True):
            _band(ax, np.arange(1, simulation.budget + 1), values, strategy)
        ax.axhline(np.mean([each.mean() for each in _pools(simulation)]), color="grey", linestyle=":", label="the pool")
        ax.set(xlabel="labels bought", ylabel="target of the label bought")
    else:
        _bars(simulation, ax)
    ax.legend()
    return ax


def save_both(simulation: Simulation, path: Any) -> None:
    """Learning curves and what was bought, side by side in one file."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(_LACKING) from error
    figure = Figure(figsize=(11.0, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_curves(simulation, "loss", left)
    plot_acquired(simulation, right)
    figure.savefig(path, dpi=150, facecolor="white")


def class_shares(simulation: Simulation) -> dict[str, Host]:
    """[C] for the pool, and for each strategy: how the classes are shared out, in the mean of runs."""
    count = len(simulation.classes or ())
    labels = {"the pool": _pools(simulation), **dict(zip(simulation.strategies, simulation.bought, strict=True))}
    return {
        name: np.mean([np.bincount(each, minlength=count) / each.size for each in values], axis=0)
        for name, values in labels.items()
    }


def _pools(simulation: Simulation) -> list[Host]:
    """R: the targets of rows that could be bought."""
    return [targets[each.pool] for targets, each in zip(simulation.targets, simulation.trials, strict=True)]


def _bars(simulation: Simulation, ax: Any) -> None:
    shares = class_shares(simulation)
    width = 0.8 / len(shares)
    places = np.arange(len(simulation.classes or ()))
    for position, (name, heights) in enumerate(shares.items()):
        colour = {"color": "lightgrey"} if position == 0 else {}  # so that a strategy has one colour in all plots
        ax.bar(places + (position + 0.5) * width - 0.4, heights, width, label=name, **colour)
    ax.set(xticks=places, xticklabels=[str(each) for each in simulation.classes or ()], ylabel="share of labels bought")


def _band(ax: Any, steps: Host, values: Host, name: str) -> None:
    """The mean over runs of values [R, T], and its interval where it has ends."""
    estimates = [mean_of(column) for column in values.T]
    (line,) = ax.plot(steps, [each.value for each in estimates], label=name)
    low, high = (np.asarray([getattr(each, end) for each in estimates]) for end in ("low", "high"))
    shown = np.isfinite(low)
    ax.fill_between(steps, low, high, where=shown, color=line.get_color(), alpha=0.2, linewidth=0)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(_LACKING) from error
    return pyplot.subplots()[1]


# ----------------------------------------------------------------------
# What came of a simulation, and what may be said of it.
#
# Sizes: S strategies, R runs, B labels bought, n rows of a trial.


@dataclass(frozen=True)
class Comparison:
    """The loss under one strategy less that under another, run by run: below 0 where the first is better."""

    first: str
    second: str
    metric: str
    runs: int
    final: Estimate
    """After the last label."""
    area: Estimate
    """The mean over all steps after the start, which both share: the area between their curves, for each label."""


@dataclass(frozen=True)
class Reached:
    """How many labels a strategy bought until the loss was no more than `level` for the first time."""

    level: float
    labels: Estimate
    """The median over runs, infinite where most never got there; the interval is by order statistics."""
    share: float
    """Of runs that got there within the budget."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """Losses on test rows as labels were bought, for each strategy in each run.

    Intervals are over runs: over splits and seeds, for data such as these. Splits of one data set overlap, so they say
    little of other data.
    """

    strategies: tuple[str, ...]
    losses: Mapping[str, Host]
    """metric -> [S, R, B + 1]: the mean loss on test rows after 0 .. B labels"""
    acquired: Host
    """[S, R, B]: positions of rows in X of the trial, in the order in which they were bought"""
    trials: tuple[Trial, ...]
    """R: the data of each run, and the parts that its rows played"""
    targets: tuple[Host, ...]
    """R of [n]: labels of each trial, or their positions among the classes; NaN or -1 where none was needed"""
    classes: tuple[Any, ...] | None
    fit_seconds: Host
    """[S, R, B + 1]"""
    score_seconds: Host
    """[S, R, B]"""
    settings: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def runs(self) -> int:
        """R."""
        return int(self.acquired.shape[1])

    @property
    def budget(self) -> int:
        """B."""
        return int(self.acquired.shape[2])

    @property
    def bought(self) -> Host:
        """[S, R, B]: the targets of the rows that were bought."""
        return np.stack([self.targets[run][self.acquired[:, run]] for run in range(self.runs)], axis=1)

    def curves(self, strategy: str, metric: str = "loss") -> Host:
        """[R, B + 1]: the losses of one strategy."""
        if metric not in self.losses:
            raise StakesError(f"metric must be one of {list(self.losses)}; got {metric!r}")
        if strategy not in self.strategies:
            raise StakesError(f"strategy must be one of {list(self.strategies)}; got {strategy!r}")
        return np.asarray(self.losses[metric][self.strategies.index(strategy)])

    def paired(self, first: str, second: str, metric: str = "loss") -> Comparison:
        """Mean differences over runs with 95% t intervals: a pair shares the split and the chance of a run."""
        a, b = self.curves(first, metric), self.curves(second, metric)
        with np.errstate(invalid="ignore"):  # both may be infinite
            gaps = a[:, 1:] - b[:, 1:]
            return Comparison(first, second, metric, self.runs, mean_of(gaps[:, -1]), mean_of(gaps.mean(axis=1)))

    def labels_to_reach(
        self, level: float | None = None, metric: str = "loss", *, fraction: float = 0.9
    ) -> dict[str, Reached]:
        """For each strategy, the labels bought until the loss first was at most `level`.

        Without a level it is `fraction` of the way from the mean loss at the start to the least final mean loss of any
        strategy. A curve that touches the level by luck has reached it.
        """
        if level is None:
            if not 0 < fraction <= 1:
                raise StakesError(f"fraction must be above 0 and at most 1; got {fraction!r}")
            start, *_, best = np.stack([self.curves(each, metric).mean(axis=0) for each in self.strategies]).min(axis=0)
            level = float(start - fraction * (start - best)) if math.isfinite(start) else float(best)
        if not math.isfinite(level):
            raise StakesError(f"level must be a finite loss; got {level!r}. Give one: all strategies end infinite.")
        return {each: _reached(self.curves(each, metric), level) for each in self.strategies}

    def verdict(self) -> str:
        """One sentence: whether the loss-driven choice ended with less loss than the plain and the random one."""
        return verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it but the data as lists, numbers and text."""
        return {
            "strategies": list(self.strategies),
            "losses": {name: values.tolist() for name, values in self.losses.items()},
            "acquired": self.acquired.tolist(),
            "bought": self.bought.tolist(),
            "initial": [each.initial.tolist() for each in self.trials],
            "initial_targets": [
                targets[each.initial].tolist() for targets, each in zip(self.targets, self.trials, strict=True)
            ],
            "classes": None if self.classes is None else list(self.classes),
            "fit_seconds": self.fit_seconds.tolist(),
            "score_seconds": self.score_seconds.tolist(),
            "settings": dict(self.settings),
            "versions": dict(self.versions),
        }

    def plot(self, metric: str = "loss", ax: Any = None) -> Any:
        """Learning curves: means over runs with 95% t intervals at each step. Needs matplotlib; returns the axes."""
        return plot_curves(self, metric, ax)

    def plot_acquired(self, ax: Any = None) -> Any:
        """What was bought: shares of classes beside those of the pool, or mean targets over steps; returns the axes."""
        return plot_acquired(self, ax)

    def save_plots(self, path: str | os.PathLike[str]) -> None:
        """Write both pictures into one file (PNG, SVG or PDF). Needs matplotlib."""
        save_both(self, path)

    def __str__(self) -> str:
        return table(self)


def _reached(curves: Host, level: float) -> Reached:
    """Of curves [R, B + 1]: the first step at or below the level, infinite where there is none."""
    below = curves <= level
    arrived = below.any(axis=1)
    labels = np.where(arrived, np.argmax(below, axis=1), math.inf)
    return Reached(level, median_of(labels), float(arrived.mean()))
