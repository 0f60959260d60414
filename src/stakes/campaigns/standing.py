"""Counts, money, and what was last thought about a campaign."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from stakes.campaigns.answers import Status
from stakes.campaigns.events import Note
from stakes.campaigns.journal import Journal
from stakes.campaigns.setup import Setup
from stakes.campaigns.states import RowState

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
