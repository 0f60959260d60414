"""Which rows to hand out: ranked by the model as it is now, or as it last was where it cannot be fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from stakes.campaigns.answers import Asked, AskedRow
from stakes.campaigns.errors import CampaignError
from stakes.campaigns.journal import Journal
from stakes.campaigns.setup import Setup
from stakes.campaigns.standing import FAILURE, RANKING, Standing, budget_left, labels_since, standing
from stakes.worksheets import Worksheet

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
        if done := _why_none(now, setup):
            break
        ranking, stale = _ranked(journal, setup, sheet, now, n - len(handed), progress)
        rows = journal.lease(ranking["ids"], n - len(handed), seconds=lease, who=who)
        handed |= {row: _row(ranking, row) for row in rows}
        done = None if ranking["ids"] else "the rest of the budget reaches for no other"
    until = journal.states()[next(iter(handed))].until if handed else None
    short = None if len(handed) == n else f"{len(handed)} of {n} rows: {done}"
    return Asked(tuple(handed.values()), ranking["ranked_by"], until, stale, short, tuple(ranking["said"]))


def refresh(journal: Journal, setup: Setup, sheet: Callable[[], Worksheet], progress: Progress | None) -> None:
    """Think again about what labels are worth, if labels have changed since it was last done, or never was."""
    now, last = standing(journal, setup), journal.last_note(RANKING)
    if _why_none(now, setup) or (last is not None and not labels_since(journal, last)):
        return
    _ranked(journal, setup, sheet(), now, 1, progress)


def _why_none(now: Standing, setup: Setup) -> str | None:
    """Why no row can be handed out; None where one can."""
    if not now.those("open"):
        return "no more are open"
    left = budget_left(now, setup)
    return "the budget is spent, or promised to rows that are asked for" if left is not None and left <= 0 else None


def _ranked(
    journal: Journal, setup: Setup, sheet: Worksheet, now: Standing, n: int, progress: Progress | None
) -> tuple[dict[str, Any], str | None]:
    """The ranking by the model as it is now, which is kept; or the last one, and why."""
    try:
        ranking = _ranking(setup, sheet, now, n, progress)
    except Exception as error:
        return _stale(journal, sheet, now, n, error)
    journal.save_note(RANKING, now.version, ranking)
    return ranking, None


def _ranking(setup: Setup, sheet: Worksheet, now: Standing, n: int, progress: Progress | None) -> dict[str, Any]:
    from stakes.worksheets.appraise import appraise

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
        "why": [str(reason) for reason in told.reasons],
        "ranked_by": told.ranked_by,
        "labels": found.n_labels,
        "outlook": None if found.outlook is None else {**found.outlook.to_dict(), "ranking": None},
        "said": list(found.said),
    }


def _stale(
    journal: Journal, sheet: Worksheet, now: Standing, n: int, error: Exception
) -> tuple[dict[str, Any], str | None]:
    """The last good ranking with what is still open of it, then rows spread over the pool; and why."""
    from stakes.ranking import cold_start

    said = f"{type(error).__name__}: {error}"
    journal.save_note(FAILURE, now.version, {"error": said})
    last = journal.last_note(RANKING)
    if last is None:
        raise CampaignError(f"the model could not be used, and there is no ranking yet to go by. {said}") from error
    free = set(now.those("open"))
    kept = [row for row in last.payload["ids"] if row in free]
    rest = [row for row in sheet.ids if row in free and row not in kept]
    if len(kept) < n and rest:
        places = [position for position, row in enumerate(sheet.ids) if row in set(rest)]
        spread = cold_start(sheet.features.take(places), n - len(kept), seed=sheet.brief.seed)
        kept += [sheet.ids[places[row]] for row in spread.indices]
    stale = f"The model could not be used ({said}); the ranking is that of {last.payload['labels']} labels."
    return {**last.payload, "ids": kept}, stale


def _row(ranking: dict[str, Any], row: str) -> AskedRow:
    if row not in ranking["ids"][: len(ranking["why"])]:
        return AskedRow(row, None, "spread over the rows that are left")
    position = ranking["ids"].index(row)
    return AskedRow(row, ranking["scores"][position], ranking["why"][position])


def _nothing() -> dict[str, Any]:
    return {"ids": [], "scores": [], "why": [], "ranked_by": "nothing", "said": []}
