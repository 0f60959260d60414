"""Campaigns that are recorded round by round: what `outlook` offered, and the loss on test rows.

A campaign starts from 20 labels, at least one of each class, and buys by the ranking of `outlook` under the default
model until it has 60: rounds with 20, 24, 28, 32, 40, 50 and 60 labels. At 20 and 40 labels the first 1, 4, 8 and 16
rows of the ranking are also bought aside, each alone, and the model is refitted to see what they save. So that a run
takes seconds, labels are chosen for 100 contexts among the 24 rows that are worth most alone (16 where there are more
than four classes), and rounds other than those at 20 and 40 look 8 labels ahead instead of 16.

**The store**: a file of JSON lines for each table and loss, `TABLE/LOSS.jsonl`, one line for each campaign (see
`Campaign`), appended when it is done; `load_rounds` reads it. All numbers are for one decision, in units of the loss
(`Problem.unit`). A rule that says when to stop from offers, costs and decisions can be replayed without a fit: a
campaign that stops in a round has the loss of this round, and has paid for its labels beyond the first round's.

Sizes: n labels.
"""

from __future__ import annotations

import importlib
import json
import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from experiments.labels_saved.beliefs import DEFAULT, model_of
from experiments.labels_saved.problems import Problem
from experiments.labels_saved.splits import split
from experiments.labels_saved.tables import Host, Table
from stakes import outlook
from stakes.evaluation import realised_loss
from stakes.models import belief_of
from stakes.ranking import Amount, Offer
from stakes.ranking.outlook import (
    MEMBER_SHARE,
    LeftOut,
    class_rate,
    most_of_members,
    of_gaussian,
    of_members,
)
from stakes.simulation import Trial
from stakes.simulation.problem import FIT, random_stream
from stakes.simulation.runner import refitted

ROUNDS = (20, 24, 28, 32, 40, 50, 60)
"""Labels at each round."""
ASIDE = (20, 40)
"""Labels at which batches are bought aside."""
BATCHES = (1, 4, 8, 16)
SIZES = (1, 2, 4, 8, 16)
"""Of the offers that are kept."""
CONTEXTS = 100
SHORTLIST, _SHORTLIST_MANY, _MANY = 24, 16, 4  # rows that are looked at together; with more than 4 classes
AHEAD = 8  # labels, in rounds where no batch is bought aside
_POOL = 50  # labels that the pool must have rows for, beyond those that a split starts with


@dataclass(frozen=True)
class Round:
    """A moment of a campaign."""

    labels: int
    """that the model was fitted to"""
    rows: list[int]
    """positions in the table of the labelled rows, in the order in which they came"""
    ranked: list[int]
    """positions of the rows that `outlook` ranked, best first: the next round's rows are the first of these"""
    offers: list[dict[str, float | None]]
    """of the first 1, 2, 4, 8, 16 rows (as far as were asked for): size, worth, error and joint, as in `Offer`, but
    as the model said them, with the truth left out of members: promises are made of them anew"""
    today: tuple[float, float]
    """the loss that is expected of a decision, and its standard error: `Outlook.today`, as the model says"""
    most: tuple[float, float]
    """`Outlook.most`, as the model says"""
    loss: float
    """the mean loss on test rows"""
    loss_error: float
    """its standard error"""
    after: dict[int, tuple[float, float]] = field(default_factory=dict)
    """by the number of rows bought aside: what they saved of `loss`, and the standard error over test rows"""
    seconds: float = 0.0
    """of processor time, batches aside included"""
    classes: int = 2
    """how many there are; of no importance for numbers"""
    left_out: float | None = None
    """how many times what it expected the model lost on its labels, each left out; None where it does not know"""

    def offer(self, size: int) -> dict[str, float | None]:
        """The offer of that many rows, as it was kept."""
        return next(each for each in self.offers if each["size"] == size)

    def promises(self) -> dict[int, tuple[float, float]]:
        """By size: the worth that `outlook` promises of these rows today, and its standard error."""
        sizes = [int(each["size"] or 0) for each in self.offers]
        worths, errors, joint = (self._column(name) for name in ("worth", "error", "joint"))
        if self.offers[0]["joint"] is None:
            losses = self.factor * np.asarray([self.today[0], self.most[0]])
            worths, errors = of_gaussian(self.factor * worths, self.factor * errors, *losses, self.labels)
        else:
            rate, bound = class_rate(self.classes), np.maximum(joint, self.today[0])
            worths, errors = of_members((worths, errors), joint, self.today[0], self.labels, rate, MEMBER_SHARE, bound)
        return {size: (float(worths[size - 1]), float(errors[size - 1])) for size in sizes}

    @property
    def factor(self) -> float:
        """By which `outlook` multiplies what the model says, by labels left out."""
        return 1.0 if self.left_out is None else LeftOut(self.left_out, 1.0, self.labels).factor

    def before(self, size: int) -> tuple[float, float]:
        """What the model alone said of that many rows, and the standard error of contexts, sampling and members."""
        offer = self.offer(size)
        return float(offer["worth"] or 0.0), float(offer["error"] or 0.0)

    def _column(self, name: str) -> Host:
        """[n]: of offers of 1, 2, .. n rows; between those that were kept, as straight lines."""
        sizes = [float(each["size"] or 0) for each in self.offers]
        kept = [float(each[name] or 0.0) for each in self.offers]
        return np.asarray(np.interp(np.arange(1, sizes[-1] + 1), sizes, kept))

    def as_offers(self, cost: float | None = None, decisions: float | None = None) -> tuple[Offer, ...]:
        """The offers as `outlook` makes them today, with a price of a label and a number of decisions."""
        promises = self.promises()
        return tuple(
            Offer(size, *promises[size], None if cost is None else cost * size, decisions, self.offer(size)["joint"])
            for size in promises
        )

    def as_most(self) -> Amount:
        """`Outlook.most`."""
        most = Amount(*(self.factor * each for each in self.most))
        if self.offers[0]["joint"] is None:
            return most
        return most_of_members(most, Amount(*self.today), class_rate(self.classes))


@dataclass(frozen=True)
class Campaign:
    """One run of one loss on one table."""

    table: str
    loss: str
    run: int
    rounds: list[Round]


def start(table: Table, run: int) -> tuple[Trial, Host]:
    """The split of a run, and the positions [20] of the labels that it starts from."""
    trial = split(table, run, _POOL)
    more = random_stream(run, 1).permutation(trial.pool)[: max(0, ROUNDS[0] - len(trial.initial))]
    return trial, np.concatenate([trial.initial, more])


class Bench:
    """One run on a table: fits, which losses share while they have the same labels, and offers."""

    def __init__(self, table: Table, run: int) -> None:
        self.table, self.run = table, run
        self.trial, self.first = start(table, run)
        self.classes = list(range(len(table.classes))) or None
        self._model = model_of(DEFAULT, table, self.trial)
        self._fits: dict[tuple[int, ...], Any] = {}

    def fitted(self, rows: Sequence[int]) -> Any:
        """The default model, fitted to the labels of these rows."""
        key = tuple(int(each) for each in rows)
        if key not in self._fits:
            places = np.asarray(key, dtype=np.intp)
            generator = random_stream(self.run, 0, len(places), FIT)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._fits[key] = refitted(self._model, self.trial.X[places], self.trial.y[places], generator)
        return self._fits[key]

    def forget(self) -> None:
        """All fits but the first, which all losses share."""
        first = tuple(self.first.tolist())
        self._fits = {key: fit for key, fit in self._fits.items() if key == first}

    def pool(self, rows: Sequence[int]) -> Host:
        """Positions of the rows that can be bought when these have labels."""
        return np.setdiff1d(np.concatenate([self.trial.initial, self.trial.pool]), rows)

    @property
    def contexts(self) -> Host:
        """[M, d]: that labels are chosen for."""
        return np.asarray(self.trial.X[self.trial.contexts[:CONTEXTS]])

    def outlook(self, problem: Problem, rows: Sequence[int], ahead: int) -> tuple[list[int], Any]:
        """Positions in the table of the rows that `outlook` ranks, and the outlook."""
        pool = self.pool(rows)
        shortlist = SHORTLIST if len(self.table.classes) <= _MANY else _SHORTLIST_MANY
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = as_the_model_says(
                self.fitted(rows),
                problem.loss,
                self.trial.X[pool],
                contexts=self.contexts,
                n=ahead,
                classes=self.classes,
                shortlist=shortlist,
                random_state=self.run,
            )
        return pool[list(found.ranking.indices)].tolist(), found

    def losses(self, problem: Problem, rows: Sequence[int]) -> Host:
        """[T]: of the answers on test rows, in units."""
        test = self.trial.test
        belief = belief_of(
            self.fitted(rows), self.trial.X[test[:1]], self.trial.X[test], classes=self.classes, random_state=self.run
        )
        answers = problem.answers(belief)
        return np.asarray(realised_loss(problem.loss, answers, self.trial.y[test]).each) / problem.unit


def campaign(bench: Bench, problem: Problem, at: Sequence[int] = ROUNDS) -> Campaign:
    """Run one, with rounds at some numbers of labels, the first 20."""
    rows, rounds = bench.first.tolist(), []
    for labels, following in zip(at, [*at[1:], at[-1]], strict=True):
        began = time.process_time()
        ahead = max(*(BATCHES if labels in ASIDE else (AHEAD,)), following - labels)
        ranked, found = bench.outlook(problem, rows, ahead)
        losses, unit = bench.losses(problem, rows), problem.unit
        after = {}
        for size in BATCHES if labels in ASIDE else ():
            saved = losses - bench.losses(problem, [*rows, *ranked[:size]])
            after[size] = mean_of(saved)
        offers = [kept(each, unit) for each in found.offers if each.size in SIZES]
        today, most = ((each.value / unit, each.error / unit) for each in (found.today, found.most))
        loss, error = mean_of(losses)
        seconds = round(time.process_time() - began, 2)
        classes = max(2, len(bench.table.classes))
        measured = offers, today, most, loss, error, after, seconds, classes, left_out_of(found)
        rounds.append(Round(labels, list(rows), ranked, *measured))
        rows = [*rows, *ranked[: following - labels]]
    bench.forget()
    return Campaign(bench.table.name, problem.name, bench.run, rounds)


def as_the_model_says(*given: Any, **also: Any) -> Any:
    """`outlook`, with offers as the model makes them (of members, with the truth left out), not yet promises."""

    def of_members(honest: tuple[Host, Host] | None, joint: Host, *_: Any) -> tuple[Host, Host]:
        return honest or (np.zeros_like(joint), np.zeros_like(joint))

    def of_gaussian(worths: Host, errors: Host, *_: Any) -> tuple[Host, Host]:
        return worths, errors

    module = importlib.import_module("stakes.ranking.outlook")
    with patch.multiple(
        module,
        of_members=of_members,
        of_gaussian=of_gaussian,
        left_out_factor=lambda query: 1.0,
        most_of_members=lambda right, today, rate: right,
    ):
        return outlook(*given, **also)


def left_out_of(found: Any) -> float | None:
    """As an outlook says it in a note: how many times what was expected was lost on labels left out."""
    notes = [note for note in found.ranking.notes if note.kind == "labels left out"]
    return float(f"{notes[0].values['ratio']:.6g}") if notes else None


def kept(offer: Offer, unit: float) -> dict[str, float | None]:
    """What is kept of an offer, in units."""
    joint = None if offer.joint is None else offer.joint / unit
    return {"size": offer.size, "worth": offer.worth / unit, "error": offer.error / unit, "joint": joint}


def mean_of(values: Host) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def path_of(store: Path, table: str, loss: str) -> Path:
    """The file of a table and a loss."""
    return store / _file_name(table) / f"{_file_name(loss)}.jsonl"


def append(store: Path, done: Campaign) -> None:
    """Keep a campaign."""
    path = path_of(store, done.table, done.loss)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(done)) + "\n")


def load_rounds(
    store: Path, tables: Sequence[str] | None = None, losses: Sequence[str] | None = None
) -> list[Campaign]:
    """All campaigns that are kept, or those of some tables and losses, by table, loss and run.

    Examples:
        >>> from pathlib import Path
        >>> from experiments.promises.rounds import load_rounds
        >>> for each in load_rounds(Path("build/promises"), losses=["cost of a miss"]):
        ...     offers, most = each.rounds[0].as_offers(cost=0.1, decisions=100.0), each.rounds[0].as_most()
    """
    found = []
    for path in sorted(store.glob("*/*.jsonl")):
        for line in path.read_text().splitlines():
            kept = json.loads(line)
            if (tables is None or kept["table"] in tables) and (losses is None or kept["loss"] in losses):
                found.append(_campaign(kept))
    return sorted(found, key=lambda each: (each.table, each.loss, each.run))


def _campaign(kept: dict[str, Any]) -> Campaign:
    rounds = []
    for each in kept.pop("rounds"):
        if each.pop("promised", False):
            raise ValueError("offers of this store are promises of an earlier state; run its campaigns again")
        after = {int(size): tuple(pair) for size, pair in each.pop("after").items()}
        rounds.append(Round(**{**each, "today": tuple(each["today"]), "most": tuple(each["most"]), "after": after}))
    return Campaign(**kept, rounds=rounds)


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")
