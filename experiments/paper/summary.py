"""What came of a study in a few numbers, from which reports and pictures are made without running it again.

Sizes: R runs, B labels bought.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.paper.classification import Classification
from experiments.paper.study import Study
from stakes.simulation import Comparison, Estimate, Simulation

METRICS = {
    "table2": ("SEL", "SEL_w"),
    "regression": ("SEL", "SEL_w"),
    "linex": ("SEL", "Linex"),
    "classification": ("NLL", "NLL_w with q", "NLL_w with q_w"),
}
"""By study, those of the paper: the columns of its figures, all but those of classification drawn as log10."""


@dataclass(frozen=True)
class Point:
    """A metric of one strategy after some labels, over runs."""

    strategy: str
    metric: str
    labels: int
    runs: int
    mean: float
    sem: float
    median: float
    log10_mean: float
    log10_sem: float


@dataclass(frozen=True)
class Pair:
    """The metric under `first` minus that under `second` in the same run, with its 95% interval."""

    first: str
    second: str
    metric: str
    scale: str
    """loss or log10"""
    moment: str
    """final, or area: the mean over all labels"""
    runs: int
    value: float
    low: float
    high: float
    better: int
    """runs that ended lower under `first`"""


@dataclass(frozen=True)
class Share:
    """The mean share of a class among the labels of a strategy, over runs."""

    strategy: str
    labels: int
    name: str
    runs: int
    mean: float
    sem: float


@dataclass(frozen=True)
class Curve:
    """A metric of one strategy in one run."""

    strategy: str
    metric: str
    run: int
    losses: tuple[float, ...]
    """after 0 .. B labels"""


@dataclass(frozen=True, eq=False)
class Summary:
    """All that a report shows of one study, and the runs that it is made of."""

    name: str
    about: Mapping[str, Any]
    points: Sequence[Point]
    pairs: Sequence[Pair]
    shares: Sequence[Share]
    curves: Sequence[Curve]
    """of the paper's metrics; none in summaries from before they were kept"""

    def point(self, strategy: str, metric: str, labels: int) -> Point:
        """One of the points."""
        return next(p for p in self.points if (p.strategy, p.metric, p.labels) == (strategy, metric, labels))


def summarised(study: Study, found: Simulation, about: Mapping[str, Any]) -> Summary:
    """The numbers of a simulation, its strategies by the names that the paper gives them."""
    losses = {study.own if name == "loss" else name: values for name, values in found.losses.items()}
    named = replace(
        found,
        strategies=tuple(study.called.get(each, each) for each in found.strategies),
        losses={name: values for name, values in losses.items() if name is not None},
    )
    pairs = [
        pair
        for first, second in study.rivals
        for metric in named.losses
        for pair in _pairs(named, first, second, metric)
    ]
    shares = _shares(named, study.count_initial) if isinstance(study, Classification) else []
    about = {"study": study.study, "preset": study.preset, **about}
    return Summary(study.name, about, _points(named), pairs, shares, _curves(named, METRICS[study.study]))


def _curves(found: Simulation, metrics: Iterable[str]) -> list[Curve]:
    return [
        Curve(strategy, metric, run, tuple(map(float, losses)))
        for strategy in found.strategies
        for metric in metrics
        if metric in found.losses
        for run, losses in enumerate(found.curves(strategy, metric))
    ]


def _points(found: Simulation) -> list[Point]:
    return [
        _point(strategy, metric, labels, found.curves(strategy, metric)[:, labels])
        for strategy in found.strategies
        for metric in found.losses
        for labels in range(found.n + 1)
    ]


def _point(strategy: str, metric: str, labels: int, values: Any) -> Point:
    logs = np.log10(np.maximum(values, np.finfo(float).tiny))
    middle = float(values.mean()), _sem(values), float(np.median(values))
    return Point(strategy, metric, labels, len(values), *middle, float(logs.mean()), _sem(logs))


def _sem(values: Any) -> float:
    """The standard error of the mean; NaN for one value, or where one is infinite."""
    known = len(values) > 1 and np.isfinite(values).all()
    return float(values.std(ddof=1) / np.sqrt(len(values))) if known else float("nan")


def _pairs(found: Simulation, first: str, second: str, metric: str) -> Iterable[Pair]:
    better = int(np.sum(found.curves(first, metric)[:, -1] < found.curves(second, metric)[:, -1]))
    tiny = np.finfo(float).tiny
    logs = replace(found, losses={name: np.log10(np.maximum(values, tiny)) for name, values in found.losses.items()})
    for scale, each in (("loss", found), ("log10", logs)):
        compared: Comparison = each.compare(first, second, metric)
        for moment in ("final", "area"):
            gap: Estimate = getattr(compared, moment)
            yield Pair(first, second, metric, scale, moment, found.runs, gap.value, gap.low, gap.high, better)


def _shares(found: Simulation, count_initial: bool) -> list[Share]:
    """Of all labels after 0 .. B were bought, or of those bought, of which there are none before the first."""
    rows = []
    for place, strategy in enumerate(found.strategies):
        labels = np.stack([_labels(found, place, run, count_initial) for run in range(found.runs)])
        start = labels.shape[1] - found.n
        for bought in range(0 if count_initial else 1, found.n + 1):
            known = labels[:, : start + bought]
            for position, name in enumerate(found.classes or ()):
                share = np.mean(known == position, axis=1)
                rows.append(Share(strategy, bought, str(name), found.runs, float(share.mean()), _sem(share)))
    return rows


def _labels(found: Simulation, place: int, run: int, count_initial: bool) -> Any:
    """[n_initial + B], or [B]: positions of classes in the order in which they were known."""
    initial = found.targets[run][found.trials[run].initial] if count_initial else found.bought[place, run][:0]
    return np.concatenate([initial, found.bought[place, run]])
