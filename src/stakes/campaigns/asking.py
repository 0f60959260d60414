"""Which rows to hand out: ranked by the model as it is now, or as it last was where it cannot be fitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, TypeAlias

from stakes.campaigns.answers import Asked, AskedRow
from stakes.campaigns.errors import CampaignError
from stakes.campaigns.journal import Journal
from stakes.campaigns.setup import Setup
from stakes.campaigns.standing import FAILURE, RANKING, Standing, budget_left, labels_since, standing, why_none
from stakes.worksheets import Worksheet

_ROUNDING = 1e-9  # of a budget: three labels at 0.1 are within one of 0.3

Progress: TypeAlias = Callable[[str, float | None], None]


def ask(
    journal: Journal, setup: Setup, sheet: Worksheet, n: int, lease: float, who: str | None, progress: Progress | None
) -> Asked:
    """Hand out n rows. Rows that others take in the meantime are ranked anew, as labels on their way."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise CampaignError(f"the number of rows to ask for must be a whole number, 1 or more; got {n!r}")
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


def refresh(journal: Journal, setup: Setup, sheet: Callable[[], Worksheet], progress: Progress | None) -> None:
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
    from stakes.worksheets.appraisal import appraise
    from stakes.worksheets.wording import whys

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
        "ids": list(told.labels),
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
        raise CampaignError(f"there is no ranking to go by: {said}") from error
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
    found = cold_start(sheet.features.take(places), n, seed=sheet.brief.seed)
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
