"""Counts, money, and what was last thought about a campaign."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from stakes.campaign import tables as exports
from stakes.campaign.journal import WEEK, Journal
from stakes.campaign.results import Asked, AskedRow, Status
from stakes.campaign.states import Event, Note, Outcome, RowState
from stakes.campaign.tables import Setup, kept_path, read_unchanged, refuse_changes
from stakes.exceptions import StakesError
from stakes.files import fingerprint
from stakes.tabular import Brief, LossSpec, Worksheet, read_worksheet
from stakes.tabular.worksheet import checked_class, checked_number, domain_of, task_of

RANKING, FAILURE = "ranking", "failure"  # kinds of notes


@dataclass(frozen=True, eq=False)
class Standing:
    """What events have come to, at one moment."""

    version: int
    states: dict[str, RowState]
    spent: float
    pending: float

    def those(self, *statuses: str) -> list[str]:
        """The ids of rows in some states, in their order."""
        return [row for row, state in self.states.items() if state.status in statuses]


def standing(journal: Journal, setup: Setup) -> Standing:
    """Now. A row whose label was withdrawn has been paid for, and is paid for once."""
    version, states, costs = journal.version(), journal.states(), journal.costs()
    price = {row: 1.0 if cost is None else cost for row, cost in costs.items()}
    paid = {event.row for event in journal.history() if event.kind == "label" and event.number > setup.initial}
    waiting = [row for row, state in states.items() if state.status == "asked" and row not in paid]
    return Standing(version, states, sum(price[row] for row in paid), sum(price[row] for row in waiting))


def budget_left(now: Standing, setup: Setup) -> float | None:
    """What may still be spent, labels on their way taken off; None where there is no limit."""
    return None if setup.brief.budget is None else setup.brief.budget - now.spent - now.pending


def why_none(now: Standing, setup: Setup) -> str | None:
    """Why no row can be handed out; None where one can."""
    if not now.those("open"):
        waiting = len(now.those("asked"))
        return f"no row is open; {waiting} {'is' if waiting == 1 else 'are'} asked for" if waiting else "no row is open"
    left = budget_left(now, setup)
    return "the budget is spent, or promised to rows that are asked for" if left is not None and left <= 0 else None


def status(journal: Journal, setup: Setup) -> Status:
    """Where the campaign stands, with what was last thought of it."""
    now = standing(journal, setup)
    counts = Counter(state.status for state in now.states.values())
    last, failed = journal.last_note(RANKING), journal.last_note(FAILURE)
    stale = staleness(journal, last, failed)
    found = None if last is None else last.payload["outlook"]
    return Status(
        len(now.states),
        counts["labelled"],
        counts["asked"],
        counts["skipped"],
        counts["open"],
        now.spent,
        now.pending,
        setup.brief.budget,
        found,
        None if last is None else last.payload["labels"],
        stale,
        _advice(now, setup, last),
    )


def staleness(journal: Journal, last: Note | None, failed: Note | None) -> str | None:
    """Why what was last thought is old: labels have come since, perhaps because the model could not be fitted."""
    if last is None or not (since := labels_since(journal, last)):
        return None
    why = f" The last attempt failed: {failed.payload['error']}" if failed and failed.number > last.number else ""
    return f"It is older than the last {since} change{'s' * (since > 1)} of labels.{why}"


def labels_since(journal: Journal, note: Note) -> int:
    """How many labels were told, replaced or withdrawn since a note."""
    changed = ("label", "replace", "withdraw")
    return sum(event.kind in changed for event in journal.history_since(note.version))


def _advice(now: Standing, setup: Setup, last: Note | None) -> str:
    if why := why_none(now, setup):
        return f"{'Stop' if now.those('open') else 'Done'}: {why}."
    if last is None:
        return "Ask for rows: nothing is known yet of what labels are worth."
    outlook = last.payload["outlook"]
    if outlook is None:
        return "Go on: there are too few labels for a model."
    if outlook["advice"] is None:
        return _unpriced(setup)
    return " ".join(outlook["sentences"])


def _unpriced(setup: Setup) -> str:
    """What would have to be known to say whether labels pay."""
    lacking = [] if setup.brief.decisions else ["how many decisions will be taken (--decisions)"]
    if setup.brief.cost_column is None and setup.brief.label_cost is None:
        lacking.append("what a label costs (--cost or --label-cost)")
    return f"Whether labels pay is not known: init was not told {' and '.join(lacking)}."


# ----------------------------------------------------------------------
# Labels on their way into a campaign: refused where they cannot be one, known where they are there already.


Told: TypeAlias = Sequence[tuple[str, str]]
"""Rows and their labels."""


def refuse_bad(journal: Journal, brief: Brief, labels: Told, new_class: bool) -> None:
    """Refuse the first label that cannot be one, with its row."""
    task, classes = task_of(brief.loss), _classes(journal, brief, new_class)
    domain = domain_of(brief.loss) if task == "real" else None
    for row, label in labels:
        try:
            if task == "real":
                checked_number(label, brief.loss, domain)
            else:
                checked_class(label, classes)
        except StakesError as error:
            fixed = task == "real" or _fixed(brief) or not label
            more = "" if fixed else " A class that is new is told as such (--new-class)."
            raise StakesError(f"row {row!r}: {error}{more} Nothing was recorded.") from None


def as_known(journal: Journal, brief: Brief, labels: Told) -> Told:
    """Labels as they were first written, where they are the same numbers: 3.50 is no other label than 3.5."""
    if task_of(brief.loss) != "real":
        return labels
    return [(row, _first_written(journal, row, label)) for row, label in labels]


def _first_written(journal: Journal, row: str, label: str) -> str:
    before = [event.label for event in journal.history(row)[-1:]]
    return next((told for told in before if told is not None and float(told) == float(label)), label)


def _fixed(brief: Brief) -> tuple[str, ...]:
    """Classes that were named at the start; none where labels tell them."""
    return tuple(brief.classes or brief.loss.cost_matrix or ())


def _classes(journal: Journal, brief: Brief, new_class: bool) -> tuple[str, ...]:
    """Classes that a label may be of; none where any may."""
    return _fixed(brief) or (() if new_class else journal.labels_told())


# ----------------------------------------------------------------------
# Which rows to hand out: ranked by the model as it is now, or as it last was where it cannot be fitted.


_ROUNDING = 1e-9  # of a budget: three labels at 0.1 are within one of 0.3

Progress: TypeAlias = Callable[[str, float | None], None]


def ask(
    journal: Journal, setup: Setup, sheet: Worksheet, n: int, lease: float, who: str | None, progress: Progress | None
) -> Asked:
    """Hand out n rows. Rows that others take in the meantime are ranked anew, as labels on their way."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise StakesError(f"the number of rows to ask for must be a whole number, 1 or more; got {n!r}")
    handed: dict[str, AskedRow] = {}
    done, ranking, stale = None, _nothing(), None
    while len(handed) < n and done is None:
        now = standing(journal, setup)
        if done := why_none(now, setup):
            break
        found, stale = _ranked(journal, setup, sheet, now, n - len(handed), progress)
        leased = journal.lease(found["ids"], n - len(handed), seconds=lease, who=who)
        rows = _within_budget(journal, setup, leased, who)
        handed |= {row: _row(found, row) for row in rows}
        ranking = found if rows else ranking
        done = None if found["ids"] else "what is left of the budget reaches for no other row"
    until = min(journal.history(row)[-1].until or math.inf for row in handed) if handed else None
    said, by = tuple(ranking["said"]), ranking["ranked_by"]
    return Asked(tuple(handed.values()), by, ranking["per_cost"], until, stale, done, said)


def _within_budget(journal: Journal, setup: Setup, rows: tuple[str, ...], who: str | None) -> tuple[str, ...]:
    """Of rows just handed out those that the budget reaches for; others go back, where another asker was quicker."""
    left = budget_left(standing(journal, setup), setup) if setup.brief.budget is not None else None
    if left is None or left >= -_ROUNDING:
        return rows
    costs, back = journal.costs(), []
    for row in reversed(rows):
        if left < -_ROUNDING:
            cost = costs[row]
            left += 1.0 if cost is None else cost
            back.append(row)
    journal.release(back, who=who)
    return tuple(row for row in rows if row not in back)


def refresh_ranking(journal: Journal, setup: Setup, sheet: Callable[[], Worksheet], progress: Progress | None) -> None:
    """Think again about what labels are worth, if labels have changed since it was last done, or never was."""
    now, last = standing(journal, setup), journal.last_note(RANKING)
    if why_none(now, setup) or (last is not None and not labels_since(journal, last)):
        return
    _ranked(journal, setup, sheet(), now, 1, progress)


def _ranked(
    journal: Journal, setup: Setup, sheet: Worksheet, now: Standing, n: int, progress: Progress | None
) -> tuple[dict[str, Any], str | None]:
    """The ranking by the model as it is now, which is kept; or the last one, and why."""
    try:
        ranking = _ranking(setup, sheet, now, n, progress)
    except Exception as error:
        return _stale(journal, setup, sheet, now, n, error)
    journal.save_note(RANKING, now.version, ranking)
    return ranking, None


def _ranking(setup: Setup, sheet: Worksheet, now: Standing, n: int, progress: Progress | None) -> dict[str, Any]:
    from stakes.tabular.suggest import appraise, whys

    place = {row: position for position, row in enumerate(sheet.ids)}
    labels = {place[row]: state.label for row, state in now.states.items() if state.label is not None}
    found = appraise(
        sheet,
        labels,
        n,
        pending=[place[row] for row in now.those("asked")],
        excluded=[place[row] for row in now.those("skipped")],
        budget=budget_left(now, setup),
        progress=progress,
    )
    told = found.ranking if found.outlook is None else found.outlook.ranking
    plain = told.to_dict()
    return {
        "ids": list(told.row_ids),
        "scores": plain["scores"],
        "why": list(whys(told)),
        "ranked_by": told.ranked_by,
        "per_cost": told.per_cost,
        "labels": found.n_labels,
        "outlook": None if found.outlook is None else {**found.outlook.to_dict(), "ranking": None},
        "said": list(found.said),
    }


def _stale(
    journal: Journal, setup: Setup, sheet: Worksheet, now: Standing, n: int, error: Exception
) -> tuple[dict[str, Any], str | None]:
    """The last good ranking with what is still open of it, then rows spread over the pool; and why."""
    said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    journal.save_note(FAILURE, now.version, {"error": said})
    last = journal.last_note(RANKING)
    if last is None:
        raise StakesError(f"there is no ranking to go by: {said}") from error
    free = set(now.those("open"))
    places = [place for place, row in enumerate(last.payload["ids"]) if row in free]
    kept = {name: [last.payload[name][place] for place in places] for name in ("ids", "scores", "why")}
    kept["ids"] += _spread(sheet, free.difference(kept["ids"]), n - len(places))
    kept["ids"] = _within(kept["ids"], journal.costs(), budget_left(now, setup))
    stale = f"the ranking is that of {last.payload['labels']} labels, as the model failed since: {said}"
    return {**last.payload, **kept}, stale


def _spread(sheet: Worksheet, free: set[str], n: int) -> list[str]:
    """Up to n of the free rows, far from each other."""
    from stakes.ranking import cold_start

    places = [place for place, row in enumerate(sheet.ids) if row in free]
    if n < 1 or not places:
        return []
    found = cold_start(sheet.features.take(places), n=n, random_state=sheet.brief.seed)
    return [sheet.ids[places[row]] for row in found.indices]


def _within(rows: list[str], costs: Mapping[str, float | None], budget: float | None) -> list[str]:
    """The first of the rows, as many as the budget reaches for."""
    totals = accumulate(1.0 if (cost := costs[row]) is None else cost for row in rows)
    return [row for row, total in zip(rows, totals, strict=True) if budget is None or total <= budget]


def _row(ranking: dict[str, Any], row: str) -> AskedRow:
    place = ranking["ids"].index(row)
    if place >= len(ranking["why"]):
        return AskedRow(row, None, "spread over the rows that are left")
    return AskedRow(row, ranking["scores"][place], ranking["why"][place])


def _nothing() -> dict[str, Any]:
    return {"ids": [], "scores": [], "why": [], "ranked_by": "nothing", "per_cost": False, "said": []}


# ----------------------------------------------------------------------
# Ask for rows, tell their labels: a campaign in one file that outlives whoever runs it.


@dataclass(frozen=True, eq=False)
class Campaign:
    """A labelling project: its rows are labelled, asked for, skipped or open.

    Any number of processes may ask and tell at once. What a call returned from is on the disk.
    """

    path: Path
    journal: Journal

    @staticmethod
    def create(
        path: str | os.PathLike[str], table: str | os.PathLike[str], target: str, loss: LossSpec | str, **brief: Any
    ) -> Campaign:
        """A new campaign file for a table whose column `target` holds the labels so far; see `Brief` for the rest."""
        spec = LossSpec(loss) if isinstance(loss, str) else loss
        if not isinstance(spec, LossSpec):
            raise StakesError(
                "a campaign keeps its loss in words: give a name, such as 'linex', or a LossSpec, such as "
                f"LossSpec('linex', {{'alpha': 0.5}}); got {type(loss).__name__}"
            )
        where = Path(path)
        sheet = read_worksheet(table, Brief(target, spec, **brief))
        if len(sheet.ids) == 0:
            raise StakesError(f"{table} has no rows: there is nothing to label")
        _refuse_unusable(sheet)
        costs = [None] * len(sheet.ids) if sheet.costs is None else sheet.costs.tolist()
        setup = Setup(sheet.brief, kept_path(table, where), fingerprint(sheet.source), len(sheet.labels))
        known = {sheet.ids[row]: label for row, label in sheet.labels.items()}
        return Campaign(where, Journal.create(where, zip(sheet.ids, costs, strict=True), setup.to_dict(), known))

    @staticmethod
    def open(path: str | os.PathLike[str], table: str | os.PathLike[str] | None = None) -> Campaign:
        """The campaign in a file; `table` says where its table is now, if it was moved."""
        campaign = Campaign(Path(path), Journal.open(path))
        try:
            return campaign if table is None else campaign._moved(table)
        except BaseException:
            campaign.close()
            raise

    @cached_property
    def setup(self) -> Setup:
        """What the campaign was made with."""
        return Setup.from_dict(self.journal.settings)

    @cached_property
    def sheet(self) -> Worksheet:
        """The table, read once, refused if it has changed."""
        return read_unchanged(self.setup, self.path)

    def ask(
        self, n: int = 1, *, lease: float = WEEK, who: str | None = None, progress: Progress | None = None
    ) -> Asked:
        """Hand out the `n` rows to label next, for `lease` seconds to nobody else; fewer where there are fewer."""
        return ask(self.journal, self.setup, self.sheet, n, lease, who, progress)

    def tell(
        self, row: str, label: str | float, *, replace: bool = False, new_class: bool = False, who: str | None = None
    ) -> Outcome:
        """Record the label of a row."""
        return self.tell_many([(row, label)], replace=replace, new_class=new_class, who=who)

    def tell_many(
        self,
        pairs: Iterable[tuple[str, str | float]],
        *,
        replace: bool = False,
        new_class: bool = False,
        who: str | None = None,
    ) -> Outcome:
        """Record labels of rows, all or none.

        The same label told again changes nothing; another one is refused, unless it is to `replace` the first. A class
        that was not named and that no row has had is refused, unless it is a `new_class`.
        """
        labels = [(str(row), str(label).strip()) for row, label in pairs]
        refuse_bad(self.journal, self.setup.brief, labels, new_class)
        return self.journal.tell_many(as_known(self.journal, self.setup.brief, labels), replace=replace, who=who)

    def skip(self, rows: Sequence[str], who: str | None = None) -> None:
        """Never ask for these rows again, until they are released."""
        self.journal.skip(rows, who=who)

    def release(self, rows: Sequence[str], who: str | None = None) -> None:
        """Give rows that are asked for, or skipped, back to the pool."""
        self.journal.release(rows, who=who)

    def withdraw(self, rows: Sequence[str], who: str | None = None) -> None:
        """Take labels back; the rows are open again, and what was told is kept in the history."""
        self.journal.withdraw(rows, who=who)

    def status(self, *, refresh: bool = True, progress: Progress | None = None) -> Status:
        """Where the campaign stands, and whether to go on; with `refresh`, in the light of the latest labels."""
        if refresh:
            refresh_ranking(self.journal, self.setup, lambda: self.sheet, progress)
        return status(self.journal, self.setup)

    def history(self, row: str | None = None) -> tuple[Event, ...]:
        """Everything that has happened, or happened to one row."""
        return self.journal.history(row)

    def export(self, path: str | os.PathLike[str], *, events: bool = False, rows: Sequence[str] | None = None) -> int:
        """Write all rows (or some) with labels and status as a CSV that a spreadsheet opens, or all events; counts."""
        if events:
            return exports.write_events(path, self.journal)
        return exports.write_rows(path, self.journal, self.sheet, rows)

    def import_labels(
        self, path: str | os.PathLike[str], *, replace: bool = False, new_class: bool = False, who: str | None = None
    ) -> Outcome:
        """Record the labels of a filled-in export, or of the filled-in table itself, all or none."""
        return self.tell_many(
            exports.read_labels(path, self.journal, self.setup), replace=replace, new_class=new_class, who=who
        )

    def close(self) -> None:
        """Let go of the file."""
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _moved(self, table: str | os.PathLike[str]) -> Campaign:
        """The campaign, with its table where it is now."""
        refuse_changes(self.setup, read_worksheet(table, self.setup.brief))
        moved = replace(self.setup, table=kept_path(table, self.path))
        if moved != self.setup:
            self.journal.update_settings(**moved.to_dict())
        return Campaign(self.path, self.journal)


def _refuse_unusable(sheet: Worksheet) -> None:
    """Refuse a loss or a model that does not go with the table; imported here, as telling needs no scikit-learn."""
    from stakes.tabular.fitting import refuse_unusable

    refuse_unusable(sheet)
