"""What the campaigns tell of promises: whether they come, whether their intervals hold, and against which rivals.

A case is a table, a loss, a number of labels that the model had (20, 40) and a batch size. In each run of a case
`outlook` makes a promise with a 95% interval (1.96 standard errors); what came is the mean over runs of what the batch
saved on test rows. Promises are compared by the interval score of Winkler: the width, and 40 times by how much what
came lies outside; over the mean loss of the case, so that cases can be averaged. Rivals: what `outlook` said before
(the worth with the truth left out under members, and the worth under a Gaussian belief, with errors over contexts and
members), and that times one constant for all, which minimises the score on all other tables.

Cases of a table, a loss and a batch size, whatever the number of labels, are also counted (`pooled`): the means are
then over the campaigns, and over both numbers of labels of each.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from experiments.labels_saved.tables import NUMBERS, Host
from experiments.promises.rounds import ASIDE, BATCHES, Campaign

RESULTS = Path(__file__).parent.parent / "results" / "promises" / "promises.json"
WIDTH = 1.959964  # standard errors on each side of a 95% interval
MISSED = 40.0  # 2 / 5%: what the interval score charges for what lies outside
SHRINKS = np.exp(np.linspace(np.log(0.02), np.log(4.0), 60))
_SURE = 0.975  # a saving is above 0 where the two-sided 95% interval of Student's t says so


@dataclass(frozen=True)
class Promise:
    """One run of a case: what was promised by whom, with standard errors, and what came."""

    table: str
    loss: str
    labels: int
    size: int
    run: int
    worth: float
    error: float
    before: float
    before_error: float
    came: float
    scale: float
    """the mean loss on test rows before the batch"""
    today: float
    """the loss that the model expected"""
    classes: int


@dataclass(frozen=True)
class Case:
    """All runs of a table, a loss, a number of labels and a batch size; amounts over the mean loss before the batch."""

    table: str
    task: str
    loss: str
    labels: int
    """0 for cases that count all numbers of labels together"""
    size: int
    runs: int
    promised: float
    before: float
    came: float
    error: float
    """the standard error of `came` over runs"""
    significant: bool
    """whether `came` is above 0"""
    includes_zero: float | None
    """the share of runs whose interval has 0; None, as the next ones, where numbers of labels count together"""
    covered: float | None
    """the share of runs whose interval holds `came`"""
    covered_before: float | None
    score: float | None
    """of Winkler, mean over runs"""
    score_before: float | None
    score_shrunk: float | None
    """of what was said before times one constant that is best on the other tables"""
    today: float = 1.0
    """the mean loss that the model expected before the batch"""
    scale: float = 1.0
    """the mean loss before the batch, in units"""
    classes: int = 2
    """how many there are; of no importance for numbers"""

    @property
    def ratio(self) -> float:
        """Promised over came."""
        return self.promised / self.came


def promises_of(campaigns: Iterable[Campaign]) -> list[Promise]:
    """All promises of batches that were bought aside, as they are made today from what the model expected then."""
    found = []
    for each in campaigns:
        for moment in each.rounds:
            if moment.labels in ASIDE and moment.after:
                made = moment.promises()
                for size in BATCHES:
                    found.append(
                        Promise(
                            each.table,
                            each.loss,
                            moment.labels,
                            size,
                            each.run,
                            *made[size],
                            *moment.before(size),
                            moment.after[size][0],
                            moment.loss,
                            moment.factor * moment.today[0],
                            moment.classes,
                        )
                    )
    return found


def score(worth: Host, error: Host, came: float) -> Host:
    """[R]: interval scores of promises [R] for what came."""
    low, high = worth - WIDTH * error, worth + WIDTH * error
    outside = np.maximum(low - came, 0.0) + np.maximum(came - high, 0.0)
    return np.asarray(high - low + MISSED * outside)


def summarised(found: Sequence[Promise], least: int = 2) -> list[Case]:
    """The cases with `least` runs or more."""
    groups: dict[tuple[str, str, int, int], list[Promise]] = defaultdict(list)
    for each in found:
        groups[each.table, each.loss, each.labels, each.size].append(each)
    columns = {key: _columns(runs) for key, runs in groups.items() if len(runs) >= least}
    shrink = _best_shrinks(columns) if columns else {}
    return [_case(key, each, shrink[key[0]], groups[key][0].classes) for key, each in sorted(columns.items())]


def _holds(worth: Host, error: Host, mean: float) -> dict[str, float]:
    """What the intervals of promises [R] hold."""
    low, high = worth - WIDTH * error, worth + WIDTH * error
    return {
        "includes_zero": float((low <= 0.0).mean()),
        "covered": float(((low <= mean) & (mean <= high)).mean()),
        "score": float(score(worth, error, mean).mean()),
    }


def pooled(found: Sequence[Promise], least: int = 2) -> list[Case]:
    """The cases of all numbers of labels together, of campaigns that have them all."""
    groups: dict[tuple[str, str, int], dict[int, list[Promise]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        groups[each.table, each.loss, each.size][each.run].append(each)
    cases = []
    for (table, loss, size), runs in sorted(groups.items()):
        whole = [each for each in runs.values() if len(each) == len(ASIDE)]
        if len(whole) >= least:
            names = ("worth", "before", "came", "today", "scale")
            values = [{name: float(np.mean([getattr(one, name) for one in each])) for name in names} for each in whole]
            means = [replace(each[0], **value) for each, value in zip(whole, values, strict=True)]
            case = _case((table, loss, 0, size), _columns(means), 1.0, means[0].classes)
            unknown = ("includes_zero", "covered", "covered_before", "score", "score_before", "score_shrunk")
            cases.append(replace(case, **dict.fromkeys(unknown)))
    return cases


def _columns(runs: Sequence[Promise]) -> dict[str, Any]:
    """Arrays [R] over the mean loss of the case."""
    scale = float(np.mean([each.scale for each in runs]))
    names = ("worth", "error", "before", "before_error", "came", "today")
    return {"scale": scale} | {name: np.asarray([getattr(each, name) for each in runs]) / scale for name in names}


def _best_shrinks(columns: dict[tuple[str, str, int, int], dict[str, Any]]) -> dict[str, float]:
    """By table: the factor with the least mean score of what was said before, on all other tables."""
    by = SHRINKS[:, None]
    scores = np.stack(
        [
            score(by * each["before"], by * each["before_error"], each["came"].mean()).mean(axis=1)
            for each in columns.values()
        ]
    )  # [cases, factors]
    tables = np.asarray([key[0] for key in columns])
    found = {}
    for table in set(tables.tolist()):
        others = scores[tables != table]
        found[table] = float(SHRINKS[int(np.argmin(others.mean(axis=0)))]) if len(others) else 1.0
    return found


def _case(key: tuple[str, str, int, int], each: dict[str, Any], shrink: float, classes: int) -> Case:
    table, loss, labels, size = key
    came, count = each["came"], len(each["came"])
    mean, error = float(came.mean()), float(came.std(ddof=1) / np.sqrt(count))
    apart = np.abs(each["before"] - mean)
    return Case(
        table,
        "numbers" if table in NUMBERS else "classes",
        loss,
        labels,
        size,
        count,
        promised=float(each["worth"].mean()),
        before=float(each["before"].mean()),
        came=mean,
        error=error,
        significant=bool(mean > student.ppf(_SURE, count - 1) * error),
        covered_before=float((apart <= WIDTH * each["before_error"]).mean()),
        score_before=float(score(each["before"], each["before_error"], mean).mean()),
        score_shrunk=float(score(shrink * each["before"], shrink * each["before_error"], mean).mean()),
        **_holds(each["worth"], each["error"], mean),
        today=float(each["today"].mean()),
        scale=each["scale"],
        classes=classes,
    )


@dataclass(frozen=True)
class Verdict:
    """What "It must show" asks of some cases; what is said of intervals is of those whose promises have any."""

    cases: int
    significant: int
    within: float
    """of the significant ones, the share with a promise between half and twice what came"""
    within_before: float
    ratio: float
    """of all cases: the mean promise over the mean of what came"""
    zero: float
    """of the others, the mean share of runs whose interval includes 0"""
    covered: float
    """the mean share of runs whose interval holds what came"""
    covered_before: float
    score: float
    score_before: float
    score_shrunk: float


def verdict(cases: Sequence[Case], which: Callable[[Case], bool] = lambda case: True) -> Verdict:
    """Of the cases for which `which` holds."""
    some = [case for case in cases if which(case)]
    sure, others = [case for case in some if case.significant], [case for case in some if not case.significant]

    def mean(name: str, of: Sequence[Case] = some) -> float:
        values = [getattr(case, name) for case in of if case.score is not None]
        return float(np.mean(values)) if values else float("nan")

    def within(name: str) -> float:
        return (
            float(np.mean([0.5 <= getattr(case, name) / case.came <= 2.0 for case in sure])) if sure else float("nan")
        )

    return Verdict(
        len(some),
        len(sure),
        within("promised"),
        within("before"),
        sum(case.promised for case in some) / total if (total := sum(case.came for case in some)) else float("nan"),
        mean("includes_zero", others),
        *(mean(name) for name in ("covered", "covered_before", "score", "score_before", "score_shrunk")),
    )


def page_table(cases: Sequence[Case]) -> str:
    """What must be shown, as the table of docs/promises.md."""
    kinds: list[tuple[str, Callable[[Case], bool]]] = [
        ("all", lambda case: True),
        ("numbers", lambda case: case.task == "numbers"),
        ("classes", lambda case: case.task == "classes"),
        *((f"{size} label{'s' * (size > 1)}", lambda case, size=size: case.size == size) for size in BATCHES),
        *((f"from {labels} labels", lambda case, labels=labels: case.labels == labels) for labels in ASIDE),
        *((loss, lambda case, loss=loss: case.loss == loss) for loss in dict.fromkeys(case.loss for case in cases)),
    ]
    lines = [
        "| cases | | above 0 | half to twice (before) | over came | holds 0 | covers (before) | score "
        "| before | shrunk |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    each, together = [case for case in cases if case.labels], [case for case in cases if not case.labels]
    for name, which in kinds:
        found = verdict(each, which)
        cells = (
            f"{_head(found)} | {found.zero:.0%} | {found.covered:.0%} ({found.covered_before:.0%}) | "
            f"{found.score:.2f} | {found.score_before:.2f} | {found.score_shrunk:.2f}"
        )
        lines.append(f"| {name} | {cells} |")
    for name, which in kinds[:3]:
        lines.append(f"| {name}, 20 and 40 together | {_head(verdict(together, which))} | | | | | |")
    return "\n".join(lines)


def _head(found: Verdict) -> str:
    return f"{found.cases} | {found.significant} | {found.within:.0%} ({found.within_before:.0%}) | {found.ratio:.2f}"


def write(cases: Sequence[Case], path: Path) -> None:
    """A line for each case."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(_short(asdict(case))) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")


def read(path: Path = RESULTS) -> list[Case]:
    """The cases that were written."""
    return [Case(**each) for each in json.loads(path.read_text())]


def _short(values: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in values.items()}
