"""Ranking in a process of its own, so that a page answers at once while a model is fitted.

The worker has the campaign open as any other process, and keeps its rankings in the file. When it is asked to, it ranks
the campaign as it is then, and answers with what it found; it ends when the other end of the pipe is gone. It alone
imports the libraries that fit and rank: the page is there a second or two earlier without them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stakes._utils.text import number
from stakes.campaign import Campaign
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes.ranking import OpinionOffer

READY = 64
"""Rows that are ranked ahead: more than anybody labels while a model is fitted."""
_PEOPLE = 8  # without a price of their own, for whom opinions are ranked: those who label most
_NICE = 5  # the page comes first


class Ranked(NamedTuple):
    """What a worker found."""

    version: int
    """The number of the last event that it knew of."""
    seconds: float
    guesses: dict[str, str]
    """What the model says of ranked rows, in words."""
    offers: dict[str, tuple[OpinionOffer, ...]] = {}  # noqa: RUF012 (never changed)
    """By annotator, the rows on which their opinion is worth most for its price, where annotators have prices."""
    error: str | None = None
    """Why there is no new ranking."""


@dataclass
class Worker:
    """A process that ranks a campaign when it is asked to.

    Attributes:
        path: The campaign.
        table: Where its table is.
        trusted: Whether the classes that it names may be imported.
    """

    path: Path
    table: Path
    trusted: bool
    _process: Any = field(default=None, repr=False)
    _pipe: Connection | None = field(default=None, repr=False)
    busy: bool = False

    def start(self) -> None:
        """Start the process, which takes a second to load what it needs."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (str(self.path), str(self.table), self.trusted, theirs)
        self._process = context.Process(target=_serve, args=arguments, daemon=True, name="stakes-ranking")
        self._process.start()
        theirs.close()
        self._pipe, self.busy = ours, False

    def ask(self) -> None:
        """Have the campaign ranked as it is now, unless that is under way."""
        if self.busy:
            return
        if self._process is None or not self._process.is_alive():
            self.stop()
            self.start()
        assert self._pipe is not None
        with contextlib.suppress(OSError):
            self._pipe.send("rank")
            self.busy = True

    def answer(self) -> Ranked | None:
        """What was found since the last time; None where nothing was."""
        if self._pipe is None or not self.busy:
            return None
        try:
            if not self._pipe.poll():
                if self._process.is_alive():
                    return None
                raise EOFError
            found: Ranked = self._pipe.recv()
        except (EOFError, OSError):
            found = Ranked(0, 0.0, {}, {}, "the process that ranks rows ended unexpectedly; it is started again")
        self.busy = False
        return found

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None
        self.busy = False


def _serve(path: str, table: str, trusted: bool, pipe: Connection) -> None:
    """Rank whenever asked to, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the server, which ends this process
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICE)
    with Campaign.open(path, table, trust=trusted) as campaign:
        while True:
            try:
                pipe.recv()
            except (EOFError, OSError):
                return
            with contextlib.suppress(OSError):
                pipe.send(ranked(campaign))


def ranked(campaign: Campaign) -> Ranked:
    """Rank a campaign as it is now, and say what the model guesses at the rows that come first."""
    began, version = time.perf_counter(), campaign.journal.version()
    guesses: dict[str, str] = {}
    offers: dict[str, tuple[OpinionOffer, ...]] = {}
    error = None
    try:
        ranking = campaign.rank(READY)
        guesses = _guesses(campaign, ranking.row_ids)
        offers = _offers(campaign)
    except StakesError as refused:
        error = str(refused)
    except Exception as bug:  # the page goes on with the rows that it has
        error = f"{type(bug).__name__}: {bug} (a bug of stakes; please report it)"
    return Ranked(version, time.perf_counter() - began, guesses, offers, error)


def _offers(campaign: Campaign) -> dict[str, tuple[OpinionOffer, ...]]:
    """What an opinion of each annotator is worth for its price, where prices were set and there is a label to go by."""
    prices, labelled = campaign.annotators(), campaign.opinions()
    if not prices or not labelled or campaign.sheet.stream is not None:
        return {}
    people = Counter(each.annotator for each in labelled if each.annotator is not None)
    names = dict.fromkeys([*prices, *(name for name, _ in people.most_common(_PEOPLE))])
    return campaign.opinion_offers(list(names), READY)


def _guesses(campaign: Campaign, rows: tuple[str, ...]) -> dict[str, str]:
    """What the model that all labels make says of rows, in words; nothing where there is no model yet."""
    from stakes._utils.array import on_host
    from stakes.evaluation import bayes_prediction
    from stakes.losses import LogLoss, SquaredError
    from stakes.models import belief_of
    from stakes.tabular.suggestions import fitted

    sheet = campaign.sheet
    place = {row: position for position, row in enumerate(sheet.ids)}
    labels = {place[row]: label for row, label in campaign.training_labels().items()}
    if not rows or not labels or (sheet.task == "classes" and len(set(labels.values())) == 1):
        return {}
    wanted = [place[row] for row in rows]
    model, _, classes, _ = fitted(sheet, labels, [position for position in place.values() if position not in labels])
    table = sheet.features.take(wanted)
    belief = belief_of(model, table.take([0]), table, classes=classes, random_state=sheet.brief.random_state)
    if classes is None:
        values = on_host(bayes_prediction(SquaredError(), belief)).astype(float)
        return {row: number(float(value)) for row, value in zip(rows, values, strict=True)}
    shares = on_host(bayes_prediction(LogLoss(), belief)).astype(float)  # [rows, classes]
    best = shares.argmax(axis=1)
    return {row: f"{classes[at]} ({line[at]:.0%})" for row, at, line in zip(rows, best, shares, strict=True)}
