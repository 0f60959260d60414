"""What a report is made from: labels in the order in which they came, rows without, the last ranking, and losses.

A loss is what a model fitted to some of the labels expects to lose, or what it loses on labels that it has not seen.

Sizes: n labels, M contexts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from stakes._utils.array import constant, on_host
from stakes._utils.tables import Host
from stakes.campaign import Campaign, Event, RowState, Status
from stakes.campaign.kept import RANKING, ranking_kept
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.exceptions import StakesError
from stakes.models import belief_of
from stakes.ranking import PromisedRound, Ranking
from stakes.ranking.outlook import expected_loss
from stakes.ranking.query import Query, make_query
from stakes.tabular import Brief, Worksheet
from stakes.tabular.contrasts import Contrast, contrasts
from stakes.tabular.model_specs import Task
from stakes.tabular.suggestions import explained, fitted, whys
from stakes.tabular.worksheet import as_targets

FOLDS = 5
FEWEST = 8  # labels, below which cross-validation means little
_MOST = 500  # contexts: a picture needs no more

T = TypeVar("T")


def attempted(sheet: Worksheet, n_labels: int, compute: Callable[[], T]) -> tuple[T | None, str]:
    """What was computed, or None and why not: models are those of users, and a report outlives what they raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit warns of is noted once, where rows are ranked
        try:
            with explained(sheet, n_labels):
                return compute(), ""
        except StakesError as error:
            return None, str(error).rstrip(".")
        except Exception as error:
            return None, f"a bug of stakes, please report it ({type(error).__name__}: {str(error).rstrip('.')})"


@dataclass(frozen=True)
class StandingLabel:
    """A label that was neither replaced nor withdrawn."""

    row: int
    """Its position in the table."""
    label: str
    initial: bool
    """Whether it came with the table; others were bought."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """A campaign at one moment."""

    name: str
    """The name of its file."""
    brief: Brief
    sheet: Worksheet
    status: Status
    failure: str | None
    """Why the rows could not be ranked; None where they could."""
    known: tuple[StandingLabel, ...]
    """In the order in which they came; a label that was replaced keeps its place."""
    pool: tuple[int, ...]
    """Positions of rows that are open or asked for."""
    ranking: Ranking | None
    """The last one."""
    open_ids: frozenset[str]
    history: tuple[Event, ...]
    promises: tuple[PromisedRound, ...] = ()
    """What rounds of labels were said to save, and what they saved."""

    @property
    def task(self) -> Task:
        """Classes or numbers."""
        return self.sheet.task

    @property
    def initial(self) -> int:
        """How many of the labels came with the table."""
        return sum(each.initial for each in self.known)

    def labels(self, count: int | None = None) -> dict[int, str]:
        """By row: the first `count` labels, or all."""
        return {each.row: each.label for each in self.known[:count]}

    def next_rows(self) -> list[tuple[str, float, str]]:
        """Id, score and reason of the ranked rows that are still open."""
        if self.ranking is None:
            return []
        found = zip(self.ranking.row_ids, self.ranking.scores, whys(self.ranking), strict=True)
        return [row for row in found if row[0] in self.open_ids]

    def apart(self, rows: Sequence[str]) -> list[tuple[Contrast, ...]]:
        """What sets some rows, by id, apart from those with a label."""
        place = {row: position for position, row in enumerate(self.sheet.ids)}
        return contrasts(self.sheet, [place[row] for row in rows], [each.row for each in self.known])


def gather(campaign: Campaign) -> Evidence:
    """All that there is to report, with rows ranked anew if labels have come since the last time."""
    campaign.check_trust()
    status, failure = _status(campaign)
    sheet, states, history = campaign.sheet, campaign.journal.states(), campaign.history()
    record = campaign.journal.last_record(RANKING)
    return Evidence(
        name=campaign.path.name,
        brief=campaign.brief,
        sheet=sheet,
        status=status,
        failure=failure,
        known=standing_labels(history, sheet.ids, campaign.n_initial, states),
        pool=tuple(place for place, row in enumerate(sheet.ids) if states[row].status in ("open", "asked")),
        ranking=None if record is None else ranking_kept(campaign.path, record),
        open_ids=frozenset(row for row, state in states.items() if state.status == "open"),
        history=history,
        promises=campaign.promises(),
    )


def standing_labels(
    history: Sequence[Event], ids: Sequence[str], initial: int, states: Mapping[str, RowState]
) -> tuple[StandingLabel, ...]:
    """The labels that stand after all events, of which the first `initial` came with the table."""
    place = {row: position for position, row in enumerate(ids)}
    first: dict[str, Event] = {}
    for event in history:
        if event.kind in ("withdraw", "ask"):  # whatever it had is gone
            first.pop(event.row, None)
        elif event.kind in ("label", "replace", "settle"):
            first.setdefault(event.row, event)
    known = ((event, states[row]) for row, event in first.items() if states[row].status == "labelled")
    return tuple(
        StandingLabel(place[event.row], state.label, event.number <= initial)
        for event, state in known
        if state.label is not None
    )


def _status(campaign: Campaign) -> tuple[Status, str | None]:
    campaign.sheet  # noqa: B018 (a table that is gone or changed is refused, as there is nothing to show then)
    try:
        return campaign.status(), None
    except StakesError as error:
        return campaign.status(refresh=False), str(error)


@dataclass(frozen=True)
class Point:
    """A loss after a number of labels."""

    labels: int
    loss: float
    error: float
    """Its standard error."""


def fitted_query(sheet: Worksheet, labels: Mapping[int, str], pool: Sequence[int]) -> Query:
    """What is asked of a model that knows some labels: the rows of the pool, some of which stand for the future."""
    model, loss, classes, _ = fitted(sheet, labels, pool)
    features, random_state = sheet.features.take(pool), sheet.brief.random_state
    return make_query(model, loss, features, classes=classes, random_state=random_state, max_contexts=_MOST)


def expected(sheet: Worksheet, labels: Mapping[int, str], pool: Sequence[int]) -> Point:
    """The loss of a decision at rows of the pool, as the model that knows these labels expects it."""
    amount = expected_loss(fitted_query(sheet, labels, pool))
    return Point(len(labels), amount.value, amount.error)


def realised(
    sheet: Worksheet,
    labels: Mapping[int, str],
    pool: Sequence[int],
    done: Callable[[int], None] = lambda fold: None,
) -> Point:
    """The loss on the labels themselves, each judged by a model that has not seen it (five folds).

    `done` is called before each fold with how many are behind.
    """
    rows = np.asarray(sorted(labels))
    fold = folds([labels[int(row)] for row in rows], sheet.task == "classes", sheet.brief.random_state)
    each = []
    for part in range(FOLDS):
        done(part)
        each.append(_unseen(sheet, labels, rows[fold != part], rows[fold == part], pool))
    losses = np.concatenate(each)  # [n]
    return Point(len(rows), float(losses.mean()), float(losses.std(ddof=1) / np.sqrt(len(losses))))


def folds(labels: Sequence[str], classes: bool, random_state: int) -> Host:
    """[n]: the fold of each label, dealt out in turn, class by class: two of a class are never in one fold alone."""
    shuffled = np.random.default_rng(random_state).permutation(len(labels))
    order = sorted(range(len(labels)), key=lambda place: (labels[place] if classes else "", shuffled[place]))
    dealt = np.empty(len(labels), dtype=int)
    dealt[order] = np.arange(len(labels)) % FOLDS
    return dealt


def no_folds(labels: Sequence[str], classes: bool) -> str | None:
    """Why labels cannot be judged by folds; None where they can."""
    if len(labels) < FEWEST:
        return f"cross-validation takes {FEWEST} labels"
    rare = [name for name in sorted(set(labels)) if labels.count(name) < 2] if classes else []
    return f"class {rare[0]!r} has one label only, and cross-validation takes two" if rare else None


def _unseen(sheet: Worksheet, labels: Mapping[int, str], seen: Host, unseen: Host, pool: Sequence[int]) -> Host:
    """[n]: losses on `unseen` rows of the model that knows the labels of the `seen`."""
    known = {row: labels[row] for row in seen.tolist()}
    model, loss, classes, _ = fitted(sheet, known, [*pool, *unseen.tolist()])
    table = sheet.features.take(unseen)
    belief = belief_of(model, table.take([0]), table, classes=classes, random_state=sheet.brief.random_state)
    targets = _targets([labels[row] for row in unseen.tolist()], classes)
    return on_host(realised_loss(loss, bayes_prediction(loss, belief), constant(targets, belief.like)).each)


def _targets(labels: Sequence[str], classes: Sequence[str] | None) -> Host:
    """[n]: labels as losses count them: numbers, or positions of classes."""
    return as_targets(labels, "real") if classes is None else np.asarray([classes.index(label) for label in labels])
