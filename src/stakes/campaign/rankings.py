"""The rows to label next: ranked by the model as it is now, or as it last was where it cannot be fitted.

The ranking, and what labels are worth, are kept in the file beside the events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stakes._utils.arguments import Progress, affordable, as_progress
from stakes.campaign.kept import FAILURE, RANKING, check_ranking_kept, failure_kept, money_changes, ranking_kept
from stakes.campaign.opinions import beyond_doubt, prices_of_annotators, trained_on
from stakes.campaign.project import Project
from stakes.campaign.standing import (
    Standing,
    budget_left,
    hand_out_rows,
    standing_of,
    why_none,
    within_budget,
)
from stakes.campaign.states import Record, checked_clock, checked_count, checked_id, checked_lease
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes.ranking import OpinionOffer, Ranking
    from stakes.ranking.promises import Past
    from stakes.tabular.suggestions import Suggested

STALE, LEASE, NO_MORE = "stale ranking", "lease", "no more rows"  # kinds of notes on rows that are handed out
IN_VAIN = 5
"""Attempts of which others took every row, after which that is reported."""
_PER_ROW = ("indices", "row_ids", "scores", "reasons")  # fields of a ranking


def ask_for_rows(project: Project, n: int, *, lease: float, who: str | None, progress: bool | Progress) -> Ranking:
    """Hand out the rows to label next, to nobody else for a while."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise StakesError(f"the number of rows to ask for must be a whole number, 1 or more; got {n!r}")
    checked_lease(lease, checked_clock())  # before a model is fitted
    show = as_progress(progress)
    parts: list[Ranking] = []
    ours: dict[str, float] = {}  # until when: a lease may end while the next rows are ranked
    stale = done = None
    in_vain = 0
    project.sheet  # noqa: B018 (a table that is gone or changed is refused, whatever is handed out)
    while len(ours) < n and done is None:
        now = standing_of(project, ours)
        if done := why_none(project, now):
            break
        ranking, stale = rank_open_rows(project, now, n - len(ours), show)
        at = checked_clock()
        leased = project.journal.lease(ranking.row_ids, n - len(ours), seconds=lease, who=who, now=at)
        rows = within_budget(project, leased, who, ours)
        parts += [_only(ranking, rows)] if rows else []
        ours |= dict.fromkeys(rows, at + lease)
        in_vain = 0 if rows else in_vain + 1
        if not len(ranking):
            done = "what is left of the budget covers no other row"
        elif in_vain == IN_VAIN:
            done = f"others took the rows {in_vain} times while they were ranked; ask again"
    return _handed_out(parts, n, min(ours.values(), default=None), stale, done)


def ask_for_opinions(project: Project, name: str, n: int, *, lease: float) -> tuple[OpinionOffer, ...]:
    """Hand out the rows on which the opinion of one annotator is worth most for its price."""
    checked_id(name)
    checked_count(n, "the number of rows", 1)
    offers = opinion_offers(project, [name], n + 8)[name]  # some may be taken by others in the meantime
    if not offers:
        raise StakesError(f"{name} labelled all rows that are not beyond doubt, or others have them: nothing to ask")
    found: list[OpinionOffer] = []
    for offer in offers:
        if len(found) == n:
            break
        found += [offer] if hand_out_offer(project, offer, lease) else []
    return tuple(found)


def hand_out_offer(project: Project, offer: OpinionOffer, lease: float) -> bool:
    """Hand out the row of an offer to its annotator, as a label or beside others; whether it was still to be had."""
    row, name = project.sheet.ids[offer.row], offer.annotator
    if offer.before:
        return bool(project.journal.consult([row], 1, name, opinions=offer.before + 1, seconds=lease))
    return bool(hand_out_rows(project, [row], 1, lease=lease, who=name))


def opinion_offers(project: Project, names: Sequence[str], n: int) -> dict[str, list[OpinionOffer]]:
    """By annotator, the rows on which an opinion is worth most for its price; nothing is handed out."""
    from stakes.tabular.opinions import rank_for_annotators

    now, ids = standing_of(project), project.sheet.ids
    place = {row: position for position, row in enumerate(ids)}
    prices = prices_of_annotators(project)
    return rank_for_annotators(
        project.sheet,
        {name: prices.get(name, 1.0) for name in names},
        n,
        opinions=[
            (place[each.row], each.annotator, each.label)
            for each in project.journal.opinions()
            if each.annotator is not None
        ],
        known={place[row]: label for row, label in beyond_doubt(project).items()},
        excluded=[place[row] for row in now.those("asked", "skipped", "testing", "tested", "unsure")],
    )


def rank_open_rows(project: Project, now: Standing, n: int, progress: Progress) -> tuple[Ranking, str | None]:
    """The ranking by the model as it is now, which is kept; or the last one, and why."""
    project.refuse_untrusted()
    project.sheet  # noqa: B018 (a table that is gone or changed is refused, and is no failure of the model)
    labels, past = trained_on(project, now), _past(project)
    try:
        found = suggest_rows(project, now, n, labels, past, progress)
    except Exception as error:
        return _last_good_ranking(project, now, n, error)
    outlook = None if found.outlook is None else {**found.outlook.to_dict(), "ranking": None}
    ranking = found.ranking if found.outlook is None else found.outlook.ranking
    project.journal.save_record(
        RANKING, now.version, {"ranking": ranking.to_dict(), "outlook": outlook, "labels": len(labels)}
    )
    from stakes.campaign.promises import keep_promise  # here, as telling needs none of it

    keep_promise(project, now, found, labels, past.share.value if past and past.share else 1.0)
    return ranking, None


def suggest_rows(
    project: Project, now: Standing, n: int, labels: Mapping[int, str], past: Past | None, progress: Progress
) -> Suggested:
    """The rows to label next, what labels are worth, and the model that says so."""
    from stakes.tabular.suggestions import suggest_with_model

    place = {row: position for position, row in enumerate(project.sheet.ids)}
    return suggest_with_model(
        project.sheet,
        n,
        labels=labels,
        pending=[place[row] for row in now.those("asked")],
        excluded=[place[row] for row in now.those("skipped", "testing", "tested", "unsure")],
        budget=budget_left(project, now),
        progress=progress,
        past=past,
    )


def _past(project: Project) -> Past | None:
    """What came of promises so far, and what was advised last under the prices of today; None at the beginning."""
    if (last := last_ranked(project)) is None:
        return None
    from stakes.campaign.promises import promised_rounds  # here, as telling needs none of it
    from stakes.ranking.promises import Past, judged_enough, share_kept

    rounds = promised_rounds(project)
    outlook = None if set_since(project, last) else last.payload["outlook"]
    advice = () if outlook is None or outlook["advice"] is None else (outlook["advice"],)
    return Past(share_kept(rounds), len(judged_enough(rounds)), advice)


def _last_good_ranking(project: Project, now: Standing, n: int, error: Exception) -> tuple[Ranking, str | None]:
    """The last good ranking with what is still open of it, then rows spread over the pool; and why."""
    why = str(error) if isinstance(error, StakesError) else f"{type(error).__name__}: {error}"
    if not isinstance(error, StakesError | OSError | MemoryError):
        why += " (a bug of stakes; please report it)"
    project.journal.save_record(FAILURE, now.version, {"error": why})
    last = last_ranked(project)
    if last is None:
        if isinstance(error, StakesError):
            raise StakesError(f"there is no ranking to go by: {why}") from error
        raise error
    old, free, left = ranking_kept(project.path, last), set(now.those("open")), budget_left(project, now)
    kept = affordable([(row, now.due[row]) for row in old.row_ids if row in free], left)
    left = None if left is None else left - sum(now.due[row] for row in kept)
    spread = _spread(project, free.difference(kept), n - len(kept), left)
    known = _only(old, kept)
    ranking = known if spread is None else _joined([known, spread], old)
    return ranking, f"the ranking is that of {last.payload['labels']} labels, as the model failed since: {why}"


def _spread(project: Project, free: set[str], n: int, budget: float | None) -> Ranking | None:
    """Up to n of the free rows that the budget pays for, far from each other; None where there are none."""
    from stakes.ranking import cold_start
    from stakes.tabular.suggestions import SPREAD

    sheet = project.sheet
    places = [place for place, row in enumerate(sheet.ids) if row in free]
    if n < 1 or not places or (budget is not None and budget <= 0):
        return None
    costs = None if sheet.costs is None else sheet.costs[places]
    found = cold_start(
        sheet.features.take(places), n=n, costs=costs, budget=budget, random_state=project.brief.random_state
    )
    rows = [places[row] for row in found.indices]
    return replace(
        found,
        indices=tuple(rows),
        row_ids=tuple(sheet.ids[row] for row in rows),
        scores=(math.nan,) * len(rows),
        reasons=tuple(replace(reason, ranked_by=SPREAD) for reason in found.reasons),
    )


def _handed_out(parts: list[Ranking], n: int, until: float | None, stale: str | None, done: str | None) -> Ranking:
    """The rows that were handed out, with notes on the lease, on an old ranking, and on why there are fewer."""
    from stakes.ranking import Note, Ranking

    none = Ranking((), (), (), False, "nothing", (), ())
    ranking = _joined(parts, parts[-1]) if parts else none
    notes: list[Note] = []
    if stale:
        notes.append(Note(STALE, {"why": stale, "text": f"Stale: {stale}."}))
    if done:
        text = f"Only {len(ranking)} of {n} rows: {done}."
        notes.append(Note(NO_MORE, {"n": n, "count": len(ranking), "why": done, "text": text}))
    if until is not None:
        notes.append(Note(LEASE, {"until": until, "text": f"The rows come back at {shown_time(until)}."}))
    return replace(ranking, notes=(*ranking.notes, *notes))


def _only(ranking: Ranking, rows: Sequence[str]) -> Ranking:
    """Some rows of a ranking, in its order."""
    places = [place for place, row in enumerate(ranking.row_ids) if row in rows]
    return _with_rows(ranking, {name: [getattr(ranking, name)[place] for place in places] for name in _PER_ROW})


def first_rows(ranking: Ranking, n: int) -> Ranking:
    """The best n rows of a ranking, which has more where more labels are looked at to say what they are worth."""
    return _only(ranking, ranking.row_ids[:n])


def _joined(parts: Sequence[Ranking], last: Ranking) -> Ranking:
    """The rows of several rankings, one after the other; all else is that of the last."""
    return _with_rows(last, {name: [each for part in parts for each in getattr(part, name)] for name in _PER_ROW})


def _with_rows(ranking: Ranking, rows: Mapping[str, Sequence[Any]]) -> Ranking:
    fields: dict[str, Any] = {name: tuple(values) for name, values in rows.items()}
    return replace(ranking, **fields)


def last_ranked(project: Project) -> Record | None:
    """The last ranking that was kept, and what labels are worth by it."""
    if (last := project.journal.last_record(RANKING)) is not None:
        check_ranking_kept(project.path, last)
    return last


def label_changes(project: Project, record: Record) -> int:
    """How many labels were recorded, replaced or withdrawn since a record."""
    changed = ("label", "replace", "withdraw", "settle", "retract", "opinion")
    return sum(event.kind in changed for event in project.journal.history(since=record.version))


def set_since(project: Project, record: Record) -> bool:
    """Whether what labels cost, or how many decisions there are, was set after a record."""
    return any(each.number > record.number for each, _ in money_changes(project.journal.records("settings")))


def staleness(project: Project, last: Record | None) -> str | None:
    """Why the last ranking is old: labels have come since, perhaps because the model could not be fitted."""
    if last is None or not (since := label_changes(project, last)):
        return "It is older than the last change of settings." if last and set_since(project, last) else None
    failed = project.journal.last_record(FAILURE)
    late = failed is not None and failed.number > last.number
    why = f" The last attempt failed: {failure_kept(project.path, failed)}" if failed and late else ""
    return f"It is older than the last {since} change{'s' * (since > 1)} of labels.{why}"


def advice_now(project: Project, now: Standing, last: Record | None) -> str:
    """Whether to go on."""
    if why := why_none(project, now):
        return f"{'Stop' if now.those('open') else 'Done'}: {why}."
    if last is None:
        return "Ask for rows: nothing is known yet of what labels are worth."
    outlook = last.payload["outlook"]
    if outlook is None:
        return "Go on: there are too few labels for a model."
    if outlook["advice"] is not None:
        return " ".join(outlook["sentences"])
    lacking = [] if project.brief.decisions else ["how many decisions will be taken (--decisions)"]
    if project.brief.cost_column is None and project.brief.label_cost is None:
        lacking.append("what a label costs (--cost or --label-cost)")
    return f"Whether labels pay is not known: init was not given {' and '.join(lacking)}; stakes set takes it."


def shown_time(seconds: float | None) -> str | None:
    """A time as text, in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
