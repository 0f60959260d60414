"""Finished runs of a table as a small summary: what every pair of belief and strategy did, by every loss.

A summary is what the page is made from and what the repository keeps: mean curves and final losses of four digits, the
measures with their intervals. One JSON file for each table; infinite numbers (a level never reached) are "inf".

Sizes: R runs, B labels bought.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from experiments.labels_saved import measures
from experiments.labels_saved.beliefs import REFERENCE
from experiments.labels_saved.loop import LOSS, RANDOM
from experiments.labels_saved.problems import DRIVERS, UNWEIGHTED
from experiments.labels_saved.splits import sizes
from experiments.labels_saved.store import Key, Record
from experiments.labels_saved.tables import Host, Table, Task
from stakes.exceptions import StakesError
from stakes.simulation import Estimate

_DIGITS = 4  # of a mean curve; other numbers have one less


@dataclass(frozen=True)
class Case:
    """A strategy under a belief, measured by one loss on one table."""

    belief: str
    strategy: str
    loss: str
    """that is measured; a strategy that knows a loss was driven by it, or by the unweighted one if `unweighted`"""
    unweighted: bool
    """whether the strategy was driven by the unweighted loss, though another one is measured"""
    runs: int
    curve: Sequence[float]
    """[B + 1]: the mean over runs"""
    standard_errors: Sequence[float]
    """of the mean after each tenth label and the last, `error_counts`; infinite for one run"""
    finals: Sequence[float]
    """[R]: after the last label"""
    share: Estimate
    """labels needed to reach what (reference, random) has at the end, of those bought"""
    ratio: Estimate
    """final loss over that of (reference, random)"""
    p_worse: float
    """of no more loss at the end than (reference, random)"""
    against: Estimate | None = None
    """labels needed for that level over those that the unweighted objective needs under the same belief"""
    ratio_against: Estimate | None = None
    """final loss over that of the unweighted objective under the same belief"""
    p_worse_against: float | None = None

    @property
    def pair(self) -> str:
        """The belief and the strategy, as they are called on the page."""
        strategy = ("unweighted" if self.unweighted else "own loss") if self.strategy == LOSS else self.strategy
        return f"{self.belief}, {strategy}"


@dataclass(frozen=True)
class Density:
    """How probable a belief held the test rows under one strategy's labels, each at two counts of labels."""

    belief: str
    strategy: str
    counted: Sequence[int]
    log_density: Sequence[float]
    joint_log_density: Sequence[float]


@dataclass(frozen=True)
class Promise:
    """What a belief promised for the labels of a run, and what they brought, in units of the loss."""

    belief: str
    loss: str
    promised: float
    delivered: Estimate


@dataclass(frozen=True)
class Summary:
    """All that is kept of a table."""

    table: str
    task: Task
    rows: int
    columns: int
    sizes: Mapping[str, int]
    falls: Mapping[str, float]
    """by loss: by how much of it (reference, random) fell"""
    counts: Mapping[str, bool]
    """by loss: whether that was significant and a tenth at least, so that the problem counts in medians"""
    cases: Sequence[Case]
    densities: Sequence[Density]
    promises: Sequence[Promise]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def bought(self) -> int:
        """Labels bought in a run, B."""
        return self.sizes["bought"]

    @property
    def runs(self) -> int:
        """Of (reference, random)."""
        return next(case.runs for case in self.cases if case.belief == REFERENCE and case.strategy == RANDOM)


def summarised(
    table: Table, records: Mapping[Key, Record], left_out: Mapping[str, str] | None = None, draws: int = measures.DRAWS
) -> Summary:
    """The summary of all records of a table, which must have (reference, random) among them."""
    base = records.get(Key(table.name, REFERENCE, RANDOM))
    if base is None:
        raise StakesError(f"the yardstick of {table.name} is ({REFERENCE}, {RANDOM}), which has not been run")
    wanted = tuple(dict.fromkeys((*DRIVERS[table.task], UNWEIGHTED[table.task])))
    start, end = ({name: base.losses[name][:, at].mean() for name in wanted} for at in (0, -1))
    records = {key: records[key] for key in sorted(records, key=lambda key: _order(table.task, key))}
    cases = [
        _case(table.task, key, records, loss, base, draws)
        for loss in wanted
        for key in records
        if key.strategy != LOSS or key.driver in (loss, UNWEIGHTED[table.task])
    ]
    return Summary(
        table=table.name,
        task=table.task,
        rows=len(table.y),
        columns=table.X.shape[1],
        sizes=asdict(sizes(table, base.acquired.shape[1])),
        falls={name: float(1.0 - end[name] / start[name]) if start[name] > 0 else 0.0 for name in wanted},
        counts={name: measures.counts(base.losses[name]) for name in wanted},
        cases=cases,
        densities=[_density(key, record) for key, record in records.items() if key.strategy == RANDOM],
        promises=[_promise(key, record) for key, record in records.items() if key.strategy == LOSS],
        left_out=dict(left_out or {}),
    )


def _order(task: Task, key: Key) -> tuple[Any, ...]:
    """The reference first, then other beliefs by name; random, then losses, the unweighted one first, then rivals."""
    places = {RANDOM: 0, LOSS: 1}
    unweighted = key.driver == UNWEIGHTED[task]
    return key.belief != REFERENCE, key.belief, places.get(key.strategy, 2), not unweighted, key.driver, key.strategy


def _case(task: Task, key: Key, records: Mapping[Key, Record], loss: str, base: Record, draws: int) -> Case:
    ours, reference = _paired(records[key], base, loss)
    of_all = records[key].losses[loss]
    against: dict[str, Any] = {}
    plain = Key(key.table, key.belief, LOSS, UNWEIGHTED[task])
    if key.strategy == LOSS and key != plain and plain in records:
        own, rival = _paired(records[key], records[plain], loss)
        three = _common(records[key], records[plain], base)
        first, second, third = (_at(record, three).losses[loss] for record in (records[key], records[plain], base))
        against = {
            "against": measures.labels_against(first, second, third, draws),
            "ratio_against": measures.final_ratio(own, rival, draws),
            "p_worse_against": measures.worse(own[:, -1], rival[:, -1]),
        }
    at = error_counts(of_all.shape[1] - 1)
    errors = stats.sem(of_all[:, at], axis=0).tolist() if len(of_all) > 1 else [math.inf] * len(at)
    return Case(
        belief=key.belief,
        strategy=key.strategy,
        loss=loss,
        unweighted=key.strategy == LOSS and key.driver != loss,
        runs=len(of_all),
        curve=of_all.mean(axis=0).tolist(),
        standard_errors=errors,
        finals=of_all[:, -1].tolist(),
        share=measures.share_needed(ours, reference, draws),
        ratio=measures.final_ratio(ours, reference, draws),
        p_worse=measures.worse(ours[:, -1], reference[:, -1]),
        **against,
    )


def error_counts(bought: int) -> list[int]:
    """The counts of labels at which standard errors are kept: every tenth, and the last."""
    return sorted({*range(0, bought + 1, 10), bought})


def _density(key: Key, record: Record) -> Density:
    single, joint = record.log_density.mean(axis=0), record.joint_log_density.mean(axis=0)
    return Density(key.belief, key.strategy, record.counted.tolist(), single.tolist(), joint.tolist())


def _promise(key: Key, record: Record) -> Promise:
    found = measures.saving(record.promised, record.losses[key.driver])
    return Promise(key.belief, key.driver, found.promised, found.delivered)


def _common(*records: Record) -> Host:
    """The runs that all have."""
    runs = records[0].runs
    for each in records[1:]:
        runs = np.intersect1d(runs, each.runs)
    if not len(runs):
        raise StakesError("strategies are compared run by run; these have no run in common. Run the same ones of each")
    return runs


def _at(record: Record, runs: Host) -> Record:
    return record.take(np.searchsorted(record.runs, runs))


def _paired(first: Record, second: Record, loss: str) -> tuple[Host, Host]:
    """[R, B + 1] each, of the runs that both have."""
    runs = _common(first, second)
    return _at(first, runs).losses[loss], _at(second, runs).losses[loss]


def write(summary: Summary, folder: Path) -> Path:
    """Keep a summary as a JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{summary.table.replace(' ', '_')}.json"
    path.write_text(json.dumps(_encoded(asdict(summary)), separators=(",", ":"), allow_nan=False) + "\n")
    return path


def read(folder: Path) -> list[Summary]:
    """All summaries of a folder, in the order of file names."""
    return [_summary(_decoded(json.loads(path.read_text()))) for path in sorted(folder.glob("*.json"))]


def _summary(content: dict[str, Any]) -> Summary:
    lists = {"cases": (Case, content["cases"]), "densities": (Density, content["densities"])}
    made: dict[str, Any] = {name: [kind(**_estimates(each)) for each in parts] for name, (kind, parts) in lists.items()}
    made["promises"] = [Promise(**_estimates(each)) for each in content["promises"]]
    return Summary(**{**content, **made})


def _estimates(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: Estimate(**each) if isinstance(each, dict) else each for name, each in fields.items()}


def _encoded(value: Any, digits: int = _DIGITS - 1) -> Any:
    """Numbers of a few digits, and those that JSON has not as text."""
    if isinstance(value, dict):
        return {name: _encoded(each, _DIGITS if name == "curve" else digits) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(each, digits) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else str(value)
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _decoded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    return float(value) if value in ("inf", "-inf", "nan") else value
