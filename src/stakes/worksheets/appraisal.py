"""What the next labels of a table are worth, which they are, and why.

Sizes: N rows, n rows chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeAlias

from stakes.losses import CostMatrix
from stakes.ranking import Outlook, Ranking, cold_start, outlook
from stakes.ranking.cold import DISTANCE
from stakes.ranking.question import Progress
from stakes.specs import decisions_of
from stakes.worksheets.brief import Brief
from stakes.worksheets.effort import Effort, effort, looked_at
from stakes.worksheets.fitting import Fitted, explained, fitted
from stakes.worksheets.sheet import Worksheet

Named: TypeAlias = Callable[[int], tuple[int, str]]
_OFFERS = 8  # labels that an outlook looks ahead, where fewer are asked for
_ROUNDING = 1e-12  # of a budget: three labels at 0.1 are within one of 0.3


@dataclass(frozen=True)
class Appraisal:
    """Rows to label, by id, and whether to."""

    ranking: Ranking
    """Positions are those in the table, labels are ids."""
    outlook: Outlook | None
    """None in a cold start."""
    said: tuple[str, ...]
    """What was assumed, in all."""
    n_labels: int
    n_pool: int


def appraise(
    sheet: Worksheet,
    labels: Mapping[int, str],
    n: int,
    *,
    pending: Collection[int] = (),
    excluded: Collection[int] = (),
    budget: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Appraisal:
    """The `n` rows to label next, when `labels` are known by row, `pending` ones on their way, others `excluded`.

    `budget` is what is left of it; `n_jobs` workers score rows, as in `rank`.
    """
    out, waiting = {*labels, *excluded}, set(pending)
    pool = [row for row in range(len(sheet.ids)) if row not in out]
    if waiting.issuperset(pool):
        raise ValueError("every row has a label, is on its way to one, or is left out: there is none to choose")
    if why := why_cold(sheet, labels):
        return _cold_start(sheet, pool, {*waiting, *labels}, n, budget, why, len(labels))
    if progress is not None:
        progress(f"fitting a model to {len(labels)} labels", None)
    found = fitted(sheet, labels, pool)
    limits = effort(len(pool), n, None if found.classes is None else len(found.classes))
    seen, drawn = looked_at(pool, waiting, limits.rows, sheet.brief.seed)
    asked = Asked(
        features=sheet.features.take(seen),
        costs=None if sheet.costs is None else sheet.costs[seen],
        pending=tuple(place for place, row in enumerate(seen) if row in waiting),
        n=n,
        budget=budget,
        n_jobs=n_jobs,
    )
    with explained(sheet, len(labels)):
        told = look_ahead(sheet.brief, found, asked, limits, progress)
    told = replace(told, ranking=renamed(told.ranking, named_in(sheet, seen), sheet.brief, found))
    return concluded(told, n, (*sheet.said, *found.said, *drawn), len(labels), len(pool))


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of a fitted model."""

    features: Any
    """Of the pool: a table, or rows that are read in chunks."""
    costs: Any
    n: int
    budget: float | None
    pending: tuple[int, ...] = ()
    n_jobs: int | None = None


def look_ahead(brief: Brief, found: Fitted, asked: Asked, limits: Effort, progress: Progress | None) -> Outlook:
    """What labels of the pool are worth, with positions there."""
    return outlook(
        found.model,
        found.loss,
        asked.features,
        n=max(asked.n, _OFFERS),
        decisions=brief.decisions,
        costs=asked.costs,
        budget=asked.budget,
        pending=asked.pending,
        classes=found.classes,
        shortlist=limits.shortlist,
        max_contexts=limits.contexts,
        seed=brief.seed,
        n_jobs=asked.n_jobs,
        progress=progress,
    )


def concluded(told: Outlook, n: int, said: tuple[str, ...], n_labels: int, n_pool: int) -> Appraisal:
    """The first n rows, and all that was said."""
    ranking = _first(told.ranking, n)
    short = () if len(ranking) == n else (f"{n} rows were asked for; {len(ranking)} could be chosen.",)
    return Appraisal(ranking, told, (*said, *told.ranking.assumptions, *short), n_labels, n_pool)


def why_cold(sheet: Worksheet, labels: Mapping[int, str]) -> str | None:
    """Why no model can tell what a label is worth; None where one can."""
    if not labels:
        return "There is no label yet"
    if sheet.task == "classes" and len(set(labels.values())) == 1:
        return f"All {len(labels)} labels are of one class, {next(iter(labels.values()))!r}"
    return None


def _cold_start(
    sheet: Worksheet, pool: list[int], known: set[int], n: int, budget: float | None, why: str, n_labels: int
) -> Appraisal:
    """Rows spread over those of the pool that the budget reaches for, away from rows that are known or asked for."""
    said = (*sheet.said, f"{why}: no model can tell what a label is worth.")
    free = [row for row in pool if row not in known and reached(sheet, [row], budget)]
    if not free:
        nothing = Ranking((), (), (), False, DISTANCE, (), ())
        return Appraisal(nothing, None, (*said, "The budget reaches for no label."), n_labels, len(pool))
    before = sheet.features.take(sorted(known)) if known else None
    spread = cold_start(sheet.features.take(free), n, known=before, seed=sheet.brief.seed)
    found = renamed(spread, named_in(sheet, free), sheet.brief, None)
    ranking = _first(found, len(reached(sheet, found.indices, budget)))
    return Appraisal(ranking, None, (*said, *ranking.assumptions), n_labels, len(pool))


def reached(sheet: Worksheet, rows: Sequence[int], budget: float | None) -> list[int]:
    """The first of some rows that a budget pays for together."""
    prices = [1.0 if sheet.costs is None else float(sheet.costs[row]) for row in rows]
    left = math.inf if budget is None else budget * (1.0 + _ROUNDING)
    return [row for row, total in zip(rows, accumulate(prices), strict=True) if total <= left]


def named_in(sheet: Worksheet, pool: Sequence[int]) -> Named:
    """For a position in the pool, that in the table, and the id."""
    return lambda place: (pool[place], sheet.ids[pool[place]])


def renamed(ranking: Ranking, named: Named, brief: Brief, found: Fitted | None) -> Ranking:
    """The ranking with positions in the table, and ids."""
    rows, ids = zip(*map(named, ranking.indices), strict=True) if ranking.indices else ((), ())
    reasons = tuple(
        replace(reason, contexts=tuple(_context(each, named, brief, found) for each in reason.contexts))
        for reason in ranking.reasons
    )
    return replace(ranking, indices=tuple(rows), labels=tuple(ids), reasons=reasons)


def _context(context: Any, named: Named, brief: Brief, found: Fitted | None) -> Any:
    """A context by its id, with the decision there by its name."""
    row, name = named(context.index)
    known = replace(context, index=row, label=name)
    if found is None or not isinstance(found.loss, CostMatrix) or brief.loss.cost_matrix is None:
        return known
    decision = decisions_of(brief.loss, found.classes or ())[int(context.prediction)]
    return replace(known, prediction=decision, answer=f"decision {decision!r}")


def _first(ranking: Ranking, n: int) -> Ranking:
    parts = {name: getattr(ranking, name)[:n] for name in ("indices", "labels", "scores", "reasons")}
    return replace(ranking, **parts)
