"""The result of a simulation: losses as labels were acquired, comparisons with 95% intervals, and a summary.

Sizes: S strategies, R runs, B labels acquired, n rows of a trial.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from stakes._utils.tables import Host
from stakes._utils.text import counted, number
from stakes.exceptions import StakesError
from stakes.simulation.trial import Trial

LEVEL = 0.95
_FEW = 6  # the fewest values that show anything if all they show is a sign: 2 / 2^6 < 5%
_COLUMNS = ("metric", "strategy", "start", "final", "95% interval", "mean of steps")
_SAME = 1e-9  # relative: what rounding may make of equal values


@dataclass(frozen=True)
class Estimate:
    """A number and its 95% interval.

    Attributes:
        value: The number.
        low: The lower end of the interval; -inf where nothing is known.
        high: The upper end of the interval; inf where nothing is known.

    Examples:
        >>> Estimate(-0.2, -0.3, -0.1).significant
        True
    """

    value: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether 0 is outside the interval."""
        return self.low > 0 or self.high < 0


def mean_of(values: Host) -> Estimate:
    """The mean of R independent values with Student's t interval, mean -+ t_{R-1} sd / sqrt(R).

    Infinite values have no mean. One value shows no spread, nor do a few that are all the same, as losses that count
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


@dataclass(frozen=True)
class Comparison:
    """The loss under one strategy minus that under another, run by run: below 0 where the first is better.

    Attributes:
        first: The strategy A of the difference A - B.
        second: The strategy B of the difference A - B.
        metric: The metric that is compared.
        runs: The number of runs, R.
        final: The difference after the last label.
        area: The mean of the difference over all steps after the start, which both share: the area between their
            curves, for each label.

    Examples:
        >>> gap = Estimate(-0.2, -0.3, -0.1)
        >>> Comparison("loss", "random", "loss", 10, final=gap, area=gap).final.value
        -0.2
    """

    first: str
    second: str
    metric: str
    runs: int
    final: Estimate
    area: Estimate


@dataclass(frozen=True, eq=False)
class PromiseRecord:
    """What labels of a strategy were bought for, beside what came: sums over stretches of labels, for each run.

    Attributes:
        strategy: By which the labels were chosen.
        metric: The loss that they were chosen for.
        promised: [R, W]: the sum of expected reductions over each of W stretches.
        delivered: [R, W]: by how much the loss on test rows fell over each.

    Examples:
        >>> import numpy as np
        >>> promised, delivered = np.array([[0.4], [0.6]]), np.array([[0.2], [0.4]])
        >>> print(PromiseRecord("loss", "loss", promised, delivered))
        Labels chosen by 'loss' promised 0.5 and delivered 0.3 (95% interval -0.971 to 1.57), 60% of it.
    """

    strategy: str
    metric: str
    promised: Host
    delivered: Host

    @property
    def mean_promised(self) -> Estimate:
        """Of a stretch, over runs."""
        return mean_of(self.promised.mean(axis=1))

    @property
    def mean_delivered(self) -> Estimate:
        """Of a stretch, over runs."""
        return mean_of(self.delivered.mean(axis=1))

    @property
    def share(self) -> float:
        """The mean saving over the mean promise; below 1 where promises were too large."""
        return self.mean_delivered.value / self.mean_promised.value if self.mean_promised.value else math.nan

    def __str__(self) -> str:
        """One sentence."""
        came, share = self.mean_delivered, self.share
        ends = f"{number(came.low, 3)} to {number(came.high, 3)}" if math.isfinite(came.low) else "not known"
        part = "" if math.isnan(share) else f", {share:.0%} of it"
        return (
            f"Labels chosen by {self.strategy!r} promised {number(self.mean_promised.value, 3)} and delivered "
            f"{number(came.value, 3)} (95% interval {ends}){part}."
        )


@dataclass(frozen=True)
class Reached:
    """How many labels a strategy acquired until the loss was no more than `level` for the first time.

    Attributes:
        level: The loss to reach.
        labels: The median over runs, infinite where most never got there; the interval is by order statistics.
        share: The share of runs that got there within the labels acquired.

    Examples:
        >>> Reached(0.5, labels=Estimate(12.0, 9.0, 20.0), share=0.9).labels.value
        12.0
    """

    level: float
    labels: Estimate
    share: float


@dataclass(frozen=True, eq=False)
class Simulation:
    """Losses on test rows as labels were acquired, for each strategy in each run.

    Intervals are over runs: over splits and random states, for data such as these. Splits of one data set overlap, so
    they say little of other data.

    Attributes:
        strategies: S names.
        losses: Metric -> [S, R, B + 1]: the mean loss on test rows after 0 .. B labels.
        acquired: [S, R, B]: positions of rows in X of the trial, in the order in which they were acquired.
        trials: R: the data of each run, and which rows were used for what.
        targets: R of [n]: labels of each trial, or their positions among the classes; NaN or -1 where none was needed.
        classes: All classes, in the order of the loss; None for reals.
        fit_seconds: [S, R, B + 1]: seconds of fits, also those that strategies shared.
        score_seconds: [S, R, B]: seconds of beliefs about the pool, and of scores.
        promised: [S, R, B]: by how much each label was expected to lower the loss that chose it; NaN where no loss did.
        settings: All that decided the numbers.
        versions: Of Python and of the libraries that the numbers come from.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import SquaredError, simulate
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> found = simulate(BayesianRidge(), SquaredError(), X, X[:, 0], strategies=["random", "loss"], n=3, runs=2)
        >>> found.runs, found.n
        (2, 3)
        >>> found.compare("loss", "random").first
        'loss'
    """

    strategies: tuple[str, ...]
    losses: Mapping[str, Host]
    acquired: Host
    trials: tuple[Trial, ...]
    targets: tuple[Host, ...]
    classes: tuple[Any, ...] | None
    fit_seconds: Host
    score_seconds: Host
    promised: Host
    settings: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def runs(self) -> int:
        """The number of runs, R."""
        return int(self.acquired.shape[1])

    @property
    def n(self) -> int:
        """The number of labels acquired in a run, B."""
        return int(self.acquired.shape[2])

    @property
    def bought(self) -> Host:
        """[S, R, B]: the targets of the rows that were acquired."""
        return np.stack([self.targets[run][self.acquired[:, run]] for run in range(self.runs)], axis=1)

    def curves(self, strategy: str, metric: str = "loss") -> Host:
        """The losses of one strategy.

        Args:
            strategy: The name of the strategy.
            metric: The name of the metric.

        Returns:
            [R, B + 1]: the mean loss on test rows after 0 .. B labels, for each run.

        Raises:
            StakesError: If there is no such strategy or metric.
        """
        if metric not in self.losses:
            raise StakesError(f"metric must be one of {list(self.losses)}; got {metric!r}")
        if strategy not in self.strategies:
            raise StakesError(f"strategy must be one of {list(self.strategies)}; got {strategy!r}")
        return np.asarray(self.losses[metric][self.strategies.index(strategy)])

    def compare(self, first: str, second: str, metric: str = "loss") -> Comparison:
        """Mean differences between two strategies over runs, with 95% t intervals.

        A pair shares the split and the random numbers of a run, so the differences are paired.

        Args:
            first: The strategy A of the difference A - B.
            second: The strategy B of the difference A - B.
            metric: The name of the metric.

        Returns:
            The differences after the last label and over all steps.

        Raises:
            StakesError: If there is no such strategy or metric.
        """
        a, b = self.curves(first, metric), self.curves(second, metric)
        with np.errstate(invalid="ignore"):  # both may be infinite
            gaps = a[:, 1:] - b[:, 1:]
            return Comparison(first, second, metric, self.runs, mean_of(gaps[:, -1]), mean_of(gaps.mean(axis=1)))

    def labels_to_reach(
        self, level: float | None = None, metric: str = "loss", *, fraction: float = 0.9
    ) -> dict[str, Reached]:
        """The number of labels acquired until the loss first was at most `level`.

        A curve that touches the level once has reached it, also where that was by accident.

        Args:
            level: The loss to reach; by default `fraction` of the way from the mean loss at the start to the least
                final mean loss of any strategy.
            metric: The name of the metric.
            fraction: Above 0 and at most 1; used where there is no level.

        Returns:
            The labels that each strategy needed, by name.

        Raises:
            StakesError: If there is no such metric, or level or fraction are out of range.
        """
        if level is None:
            if not 0 < fraction <= 1:
                raise StakesError(f"fraction must be above 0 and at most 1; got {fraction!r}")
            start, *_, best = np.stack([self.curves(each, metric).mean(axis=0) for each in self.strategies]).min(axis=0)
            level = float(start - fraction * (start - best)) if math.isfinite(start) else float(best)
        if not math.isfinite(level):
            raise StakesError(f"level must be a finite loss; got {level!r}. Give one: all strategies end infinite.")
        return {each: _reached(self.curves(each, metric), level) for each in self.strategies}

    def calibration(self, strategy: str = "loss", size: int = 1) -> PromiseRecord:
        """Whether promises come true: what labels were bought for, beside by how much the loss on test rows fell.

        Promises are the expected reductions of single labels when each was chosen. Single labels are noisy, stretches
        of several less so.

        Args:
            strategy: One that chooses by a loss: "loss" or "plain".
            size: How many labels make a stretch; a shorter rest at the end is left out.

        Returns:
            Both for each run and stretch, with means and a sentence.

        Raises:
            StakesError: If there is no such strategy, it chooses by no loss, that loss was not measured, or the size is
                not from 1 to n.
        """
        metric = "plain" if strategy == "plain" and "plain" in self.losses else "loss"
        curves = self.curves(strategy, metric)
        promised = self.promised[self.strategies.index(strategy)]  # [R, B]
        if strategy not in ("loss", "plain") or np.isnan(promised).any():
            raise StakesError(f"strategy must be 'loss' or 'plain', which choose by a loss; got {strategy!r}")
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= self.n:
            raise StakesError(f"size must be a whole number from 1 to {self.n}, the labels of a run; got {size!r}")
        count = self.n // size
        sums = promised[:, : count * size].reshape(self.runs, count, size).sum(axis=2)
        ends = curves[:, : count * size + 1 : size]
        return PromiseRecord(strategy, metric, sums, ends[:, :-1] - ends[:, 1:])

    def verdict(self) -> str:
        """One sentence: whether the loss-driven choice ended with a lower loss than the plain and the random one.

        "loss" (or the last strategy) is compared with "plain" and "random" (or the first).

        Returns:
            The sentence.
        """
        ours = "loss" if "loss" in self.strategies else self.strategies[-1]
        others = [each for each in self.strategies if each != ours]
        rivals = sorted({"plain", "random"}.intersection(others)) or others[:1]
        head = f"After {counted(self.n, 'label')}, in {counted(self.runs, 'run')}"
        if not rivals:
            return f"{head}: {ours!r} is the only strategy, so there is nothing to compare it with."
        return f"{head}, {', and '.join(_clause(self, self.compare(ours, each)) for each in rivals)}."

    def to_dict(self) -> dict[str, Any]:
        """All of it but the data, as lists, numbers and text that JSON knows.

        Returns:
            A dictionary of the attributes, and of the targets acquired and at the start.
        """
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
            "promised": [
                [[None if math.isnan(each) else each for each in run] for run in runs]
                for runs in self.promised.tolist()
            ],
            "settings": dict(self.settings),
            "versions": dict(self.versions),
        }

    def plot(self, metric: str = "loss", ax: Any = None) -> Any:
        """Draw learning curves: means over runs with 95% t intervals at each step. Needs matplotlib.

        Args:
            metric: The name of the metric.
            ax: The axes to draw on; by default those of a new figure.

        Returns:
            The axes.
        """
        from stakes.simulation.plots import plot_curves

        return plot_curves(self, metric, ax)

    def plot_acquired(self, ax: Any = None) -> Any:
        """Draw what was acquired: shares of classes beside those of the pool, or mean targets over steps.

        Args:
            ax: The axes to draw on; by default those of a new figure.

        Returns:
            The axes.
        """
        from stakes.simulation.plots import plot_acquired

        return plot_acquired(self, ax)

    def plot_calibration(self, strategy: str = "loss", size: int = 1, ax: Any = None) -> Any:
        """Draw delivered savings over promised ones, means of fifths of all stretches; the diagonal is a kept promise.

        Args:
            strategy: As in `calibration`.
            size: As in `calibration`.
            ax: The axes to draw on; by default those of a new figure.

        Returns:
            The axes.
        """
        from stakes.simulation.plots import plot_calibration

        return plot_calibration(self.calibration(strategy, size), ax)

    def save_plots(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write both plots into one file. Needs matplotlib.

        Args:
            path: A file that ends in .png, .svg or .pdf.
            overwrite: Whether a file that is there is replaced.

        Raises:
            StakesError: If it ends otherwise, is there, or cannot be written.
        """
        from stakes.simulation.plots import save_plots

        save_plots(self, path, overwrite)

    def __str__(self) -> str:
        """A line for each strategy and metric, and the verdict."""
        metric, strategy, start, final, interval, steps = _COLUMNS
        lines = [f"{metric:<16}{strategy:<20}{start:>11}{final:>11}  {interval:<25}{steps:>13}"]
        for metric, strategy, start, final, interval, steps in self._cells():
            lines.append(f"{metric:<16}{strategy:<20}{start:>11}{final:>11}  {interval:<25}{steps:>13}")
        plain = "plain: the unweighted log loss for classes, squared error for numbers; the strategy chooses by it."
        named = [plain] if "plain" in self.strategies and "plain" in self.losses else []
        return "\n".join([*lines, *named, self.verdict()])

    def _repr_html_(self) -> str:
        from stakes._utils.notebook import Curve, cell, curves, lines, table

        drawn = [
            Curve(strategy, [(labels, *_triple(self.curves(strategy)[:, labels])) for labels in range(self.n + 1)])
            for strategy in self.strategies
        ]
        return cell(
            lines([self.verdict()]),
            table(_COLUMNS, self._cells(), numbers=(2, 3, 4, 5)),
            curves(drawn, "labels bought", "Loss, mean on test rows and 95% intervals"),
        )

    def _cells(self) -> list[tuple[str, ...]]:
        """The text of each strategy and metric, in the order of `_COLUMNS`."""
        rows: list[tuple[str, ...]] = []
        for metric in self.losses:
            for strategy in self.strategies:
                curves = self.curves(strategy, metric)
                start, final = mean_of(curves[:, 0]), mean_of(curves[:, -1])
                steps = mean_of(curves[:, 1:].mean(axis=1))
                rows.append((metric, strategy, _number(start), _number(final), _ends(final), _number(steps)))
        return rows


def _reached(curves: Host, level: float) -> Reached:
    """Of curves [R, B + 1]: the first step at or below the level, infinite where there is none."""
    below = curves <= level
    arrived = below.any(axis=1)
    labels = np.where(arrived, np.argmax(below, axis=1), math.inf)
    return Reached(level, median_of(labels), float(arrived.mean()))


def _clause(simulation: Simulation, pair: Comparison) -> str:
    """How the first strategy of a pair did against the second after the last label."""
    gap, ours, other = pair.final, repr(pair.first), repr(pair.second)
    if (simulation.curves(pair.first) == simulation.curves(pair.second)).all():
        return f"{ours} did exactly as {other} at every step"
    if math.isnan(gap.value):
        return f"{ours} cannot be compared with {other}, as the loss was infinite in some runs"
    if pair.runs == 1:
        return (
            f"one run cannot show whether {ours} and {other} differ significantly (95%): the difference is "
            f"{number(gap.value, 3)}"
        )
    if not gap.significant:
        return (
            f"{ours} and {other} do not differ significantly (95%): the mean difference is {number(gap.value, 3)} "
            f"(interval {number(gap.low, 3)} to {number(gap.high, 3)})"
        )
    verb, low, high = ("helps", -gap.high, -gap.low) if gap.value < 0 else ("hurts", gap.low, gap.high)
    base = float(simulation.curves(pair.second)[:, -1].mean())
    share = f", {abs(gap.value) / base:.0%} of it" if base > 0 else ""
    direction = "lower" if verb == "helps" else "higher"
    return (
        f"{ours} {verb} against {other}: the loss is {direction} by {number(abs(gap.value), 3)}{share} (95% interval "
        f"{number(low, 3)} to {number(high, 3)})"
    )


def _number(estimate: Estimate) -> str:
    return "infinite" if math.isnan(estimate.value) else number(estimate.value)


def _ends(estimate: Estimate) -> str:
    return "none" if math.isinf(estimate.low) else f"{number(estimate.low)} to {number(estimate.high)}"


def _triple(values: Host) -> tuple[float, float, float]:
    mean = mean_of(values)
    return mean.value, mean.low, mean.high
