"""`python -m experiments stopping`: what following the advice costs, replayed on recorded campaigns.

The campaigns are those of `experiments promises`. One has 20 labels and may buy up to 40 more; it stops in the first
round whose advice is to stop, and buys on where it is to go on or too close to call. It has then paid for its labels,
and every decision loses what the model of that round loses on test rows. That is compared with buying the same number
in every run: none, all, and the best in hindsight, by the mean curve of all runs. A label has three prices for each
table and loss, at which a smooth curve through the mean losses is best left after a quarter, a half and three quarters
of the labels. Where this curve does not fall, there is no such price, and the case is left out. Nothing is fitted
again: every round has its offers in the store.

Sizes: R runs, k rounds.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments.labels_saved.tables import Host
from experiments.promises.command import STORE
from experiments.promises.rounds import Campaign, Round, load_rounds
from stakes.ranking.stopping import Verdict, advised

RESULTS = Path(__file__).parent / "results" / "stopping" / "stopping.json"
PLACES = (0.25, 0.5, 0.75)
"""of the labels that can be bought, at which it would be best to stop"""
_POWERS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the number of labels, with which a curve may fall
_FEWEST = 2  # runs of a case
_ROWS = 1000  # that could be bought, as far as the advice is concerned: more than it looks ahead


@dataclass(frozen=True)
class Case:
    """One loss on one table at one price; all costs are means over runs, for one decision."""

    table: str
    loss: str
    place: float
    """where the smooth curve would best be left, as a share of the labels"""
    price: float
    """of a label"""
    runs: int
    followed: float
    """the cost of following the advice"""
    bought: float
    """how many labels that bought"""
    best: float
    """the cost of the best number of labels in hindsight"""
    best_bought: int
    """that number"""
    never: float
    """the cost of buying none"""
    half: float
    """the cost of buying half of them"""
    everything: float
    """the cost of buying all"""
    returns: float
    """how often advice went back from stop to go on, if rounds were looked at to the end"""

    @property
    def ratio(self) -> float:
        """Of what the advice costs to the best in hindsight."""
        return _over(self.followed, self.best)

    @property
    def ratio_of_plain(self) -> float:
        """Of what the advice costs to the better of none and all."""
        return _over(self.followed, min(self.never, self.everything))


def _over(one: float, other: float) -> float:
    return one / other if other > 0.0 else 1.0 if one == other else np.inf


Rule = Callable[[Round, float, Sequence[Verdict]], Verdict]
"""What is advised in a round, at a price, after former advice."""


def by_advice(this: Round, price: float, history: Sequence[Verdict]) -> Verdict:
    """As `outlook` advises within a campaign."""
    offers = this.as_offers(cost=price, decisions=1.0)
    return advised(offers, this.as_most(), np.full(_ROWS, price), None, 1.0, history)[0]


def replayed(campaigns: Sequence[Campaign], rule: Rule = by_advice) -> list[Case]:
    """All cases of campaigns, those that have too few runs and those whose losses do not fall left out."""
    groups: dict[tuple[str, str], list[Campaign]] = defaultdict(list)
    for each in campaigns:
        groups[each.table, each.loss].append(each)
    found = []
    for group in groups.values():
        if len(group) < _FEWEST:
            continue
        labels = np.asarray([this.labels for this in group[0].rounds])
        losses = np.asarray([[this.loss for this in each.rounds] for each in group])  # [R, k]
        for place, price in prices(labels, losses.mean(axis=0)):
            found.append(_case(group, place, price, labels - labels[0], losses, rule))
    return found


def prices(labels: Host, losses: Host) -> list[tuple[float, float]]:
    """Pairs of a place and the price that makes it the best one to stop at, by a smooth curve through losses [k]."""
    scale, error = 0.0, np.inf
    power = _POWERS[0]
    for each in _POWERS:
        design = np.stack([np.ones(len(labels)), (labels / labels[0]) ** -each], axis=1)
        (_, slope), *_ = np.linalg.lstsq(design, losses, rcond=None)
        missed = float(np.sum((losses - design @ np.linalg.lstsq(design, losses, rcond=None)[0]) ** 2))
        if missed < error:
            scale, error, power = float(slope), missed, each
    if scale <= 1e-6 * float(np.abs(losses).max()):
        return []
    ends = labels[0] + np.asarray(PLACES) * (labels[-1] - labels[0])
    slopes = scale * power / labels[0] * (ends / labels[0]) ** (-power - 1.0)
    return list(zip(PLACES, slopes.tolist(), strict=True))


def _case(group: Sequence[Campaign], place: float, price: float, bought: Host, losses: Host, rule: Rule) -> Case:
    fixed = price * bought + losses.mean(axis=0)  # [k]
    stops, returns = [], []
    for each in group:
        history: list[Verdict] = []
        for this in each.rounds[:-1]:
            history.append(rule(this, price, history))
        stops.append(next((r for r, verdict in enumerate(history) if verdict == "stop"), len(bought) - 1))
        firm = [verdict for verdict in history if verdict != "too close to call"]
        returns.append(sum(one == "stop" and other == "go on" for one, other in pairwise(firm)))
    costs = price * bought[stops] + losses[np.arange(len(group)), stops]  # [R]
    return Case(
        group[0].table,
        group[0].loss,
        place,
        price,
        len(group),
        float(costs.mean()),
        float(bought[stops].mean()),
        float(fixed.min()),
        int(bought[fixed.argmin()]),
        float(fixed[0]),
        float(fixed[np.flatnonzero(2 * bought >= bought[-1])[0]]),
        float(fixed[-1]),
        float(np.mean(returns)),
    )


def half_of(cases: Sequence[Case], half: int) -> list[Case]:
    """The cases of every second table by name, from the first (0) or the second (1) on."""
    names = sorted({case.table for case in cases})
    return [case for case in cases if names.index(case.table) % 2 == half]


def summary(cases: Sequence[Case]) -> str:
    """A table of both targets, in Markdown."""
    lines = [
        "| cases | number | cost over the best in hindsight: median (nine in ten below) | at most 1.2 | "
        "at most 1.05 times the better of none and all | returns from stop to go on a campaign |",
        "|---|---|---|---|---|---|",
    ]
    parts = {
        "all": list(cases),
        "every second table": half_of(cases, 0),
        "the other tables": half_of(cases, 1),
        **{f"best after {place:.0%}": [case for case in cases if case.place == place] for place in PLACES},
    }
    advised = [
        _line(name, part, f"{np.mean([case.returns for case in part]):.2f}") for name, part in parts.items() if part
    ]
    rivals = {"without advice: buy none": "never", "buy half": "half", "buy all": "everything"}
    others = [
        _line(name, [replace(case, followed=getattr(case, cost)) for case in cases], "")
        for name, cost in rivals.items()
    ]
    return "\n".join([*lines, *advised, *others])


def _line(name: str, cases: Sequence[Case], returns: str) -> str:
    ratios, plain = (np.asarray([getattr(case, of) for case in cases]) for of in ("ratio", "ratio_of_plain"))
    share = f"{np.mean(ratios <= 1.2):.0%} | {np.mean(plain <= 1.05):.0%}"
    spread = f"{np.median(ratios):.2f} ({np.quantile(ratios, 0.9):.2f})"
    return f"| {name} | {len(cases)} | {spread} | {share} | {returns} |"


def read(path: Path = RESULTS) -> list[Case]:
    """The cases of a summary."""
    return [Case(**each) for each in json.loads(path.read_text())]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments stopping", description=__doc__)
    parser.add_argument(
        "--store", type=Path, nargs="+", default=[STORE], help="folders of campaigns of `experiments promises`"
    )
    parser.add_argument("--results", type=Path, default=Path("build/stopping.json"), help="the file to write")
    given = parser.parse_args(arguments)
    campaigns = {(each.table, each.loss, each.run): each for store in given.store for each in load_rounds(store)}
    cases = replayed(list(campaigns.values()))
    given.results.parent.mkdir(parents=True, exist_ok=True)
    given.results.write_text("[\n" + ",\n".join(json.dumps(_short(asdict(each))) for each in cases) + "\n]\n")
    print(summary(cases))


def _short(values: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in values.items()}
