"""Where the rows and the money of a campaign stand, and what may still be handed out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from stakes._utils.arguments import affordable
from stakes.campaign.kept import purchases
from stakes.campaign.project import Project
from stakes.campaign.states import RowState, checked_clock


class Standing(NamedTuple):
    """What events have come to, at one moment."""

    version: int
    states: dict[str, RowState]
    due: dict[str, float]
    """What a label of each row would cost now: nothing where it was paid for, and withdrawn."""
    spent: float
    pending: float

    def those(self, *statuses: str) -> list[str]:
        """The ids of rows in some states, in their order."""
        return [row for row, state in self.states.items() if state.status in statuses]


def standing_of(project: Project, ours: Collection[str] = ()) -> Standing:
    """Where rows and money stand; `ours` are on their way, even if their lease has ended.

    A row whose label was withdrawn has been paid for, and is paid for once.
    """
    if project.journal.settings != project.settings:  # somebody has set them since
        project.forget_settings()
    version, states = project.journal.version(), project.journal.states()
    states |= {row: RowState("asked", event=states[row].event) for row in ours if states[row].status == "open"}
    costs, alike = project.journal.costs(), project.prices
    bought, times = purchases(project.journal.history(since=project.n_initial)), project.times
    paid = [times(event) * (alike(event.number) if alike else costs[event.row] or 1.0) for event in bought.values()]
    next_price = alike(version + 1) if alike else 1.0
    price = {row: next_price if alike else cost or 1.0 for row, cost in costs.items()}
    due = {row: 0.0 if (row, None) in bought else cost for row, cost in price.items()}
    last, at = project.journal.replay.last, checked_clock()
    waiting = [
        due[row] * (times(last[row]._replace(number=version + 1)) if row in last else 1.0)
        for row, state in states.items()
        if state.status in ("asked", "testing")
    ]
    asked = (event for each in project.journal.replay.consults.values() for event in each.values())
    waiting += [price[event.row] * times(event) for event in asked if at < (event.until or 0.0)]
    return Standing(version, states, due, sum(paid), sum(waiting))


def budget_left(project: Project, now: Standing) -> float | None:
    """What may still be spent, labels on their way taken off; None where there is no limit."""
    return None if project.brief.budget is None else project.brief.budget - now.spent - now.pending


def why_none(project: Project, now: Standing) -> str | None:
    """Why no row can be handed out; None where one can."""
    if not now.those("open"):
        count = len(now.those("asked"))
        return f"no row is open; {count} {'is' if count == 1 else 'are'} asked for" if count else "no row is open"
    left = budget_left(project, now)
    return "the budget is spent, or promised to rows that are asked for" if left is not None and left <= 0 else None


def within_budget(project: Project, rows: tuple[str, ...], who: str | None, ours: Collection[str] = ()) -> list[str]:
    """The rows just handed out that the budget pays for; others go back, where another asker was quicker."""
    now = standing_of(project, {*ours, *rows})
    left = budget_left(project, now)
    if left is None:
        return list(rows)
    kept = affordable([(row, now.due[row]) for row in rows], left + sum(now.due[row] for row in rows))
    if back := [row for row in rows if row not in kept]:
        at = checked_clock()
        asked = project.journal.states(at)
        project.journal.release([row for row in back if asked[row].status == "asked"], who=who, now=at)
    return kept


def hand_out_rows(project: Project, wanted: Sequence[str], n: int, *, lease: float, who: str | None) -> list[str]:
    """Hand out the first of some rows that are open, as far as the budget goes, without ranking them."""
    leased = project.journal.lease(wanted, n, seconds=lease, who=who)
    return list(leased) if project.brief.budget is None else within_budget(project, leased, who)
