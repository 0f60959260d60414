"""What the next labels of a table are worth, which they are, and why.

Sizes: N rows, n rows chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stakes.losses import CostMatrix
from stakes.ranking import Outlook, Ranking, cold_start, outlook
from stakes.ranking.question import Progress
from stakes.specs import decisions_of
from stakes.worksheets.fitting import Fitted, fitted
from stakes.worksheets.sheet import Worksheet

_OFFERS = 8  # labels that an outlook looks ahead, where fewer are asked for


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
    progress: Progress | None = None,
) -> Appraisal:
    """The `n` rows to label next, when `labels` are known by row, `pending` ones on their way, others `excluded`.

    `budget` is what is left of it.
    """
    out = {*labels, *excluded}
    pool = [row for row in range(len(sheet.ids)) if row not in out]
    if not [row for row in pool if row not in set(pending)]:
        raise ValueError("every row has a label, is on its way to one, or is left out: there is none to choose")
    if why := _cold(sheet, labels):
        return _cold_start(sheet, pool, set(pending), n, why, len(labels))
    if progress is not None:
        progress(f"fitting a model to {len(labels)} labels", None)
    found = fitted(sheet, labels, pool)
    told = outlook(
        found.model,
        found.loss,  # type: ignore[arg-type]
        sheet.features.take(pool),
        n=max(n, _OFFERS),
        decisions=sheet.brief.decisions,
        costs=None if sheet.costs is None else sheet.costs[pool],
        budget=budget,
        pending=[place for place, row in enumerate(pool) if row in set(pending)],
        classes=found.classes,
        seed=sheet.brief.seed,
        progress=progress,
    )
    told = replace(told, ranking=_renamed(told.ranking, sheet, pool, found))
    said = (*sheet.said, *found.said, *told.ranking.assumptions)
    return Appraisal(_first(told.ranking, n), told, said, len(labels), len(pool))


def _cold(sheet: Worksheet, labels: Mapping[int, str]) -> str | None:
    """Why no model can tell what a label is worth; None where one can."""
    if not labels:
        return "There is no label yet"
    if sheet.task == "classes" and len(set(labels.values())) == 1:
        return f"All {len(labels)} labels are of one class, {next(iter(labels.values()))!r}"
    return None


def _cold_start(sheet: Worksheet, pool: list[int], pending: set[int], n: int, why: str, known: int) -> Appraisal:
    """Rows spread over the pool."""
    free = [row for row in pool if row not in pending]
    found = cold_start(sheet.features.take(free), n, seed=sheet.brief.seed)
    ranking = _renamed(found, sheet, free, None)
    said = (*sheet.said, f"{why}, so no model can tell what a label is worth: a cold start.", *ranking.assumptions)
    return Appraisal(ranking, None, said, known, len(pool))


def _renamed(ranking: Ranking, sheet: Worksheet, pool: list[int], found: Fitted | None) -> Ranking:
    """The ranking with positions in the table, and ids."""
    rows = tuple(pool[place] for place in ranking.indices)
    reasons = tuple(
        replace(reason, contexts=tuple(_context(each, sheet, pool, found) for each in reason.contexts))
        for reason in ranking.reasons
    )
    return replace(ranking, indices=rows, labels=tuple(sheet.ids[row] for row in rows), reasons=reasons)


def _context(context: Any, sheet: Worksheet, pool: list[int], found: Fitted | None) -> Any:
    """A context by its id, with the decision there by its name."""
    row = pool[context.index]
    named = replace(context, index=row, label=sheet.ids[row])
    if found is None or not isinstance(found.loss, CostMatrix) or sheet.brief.loss.cost_matrix is None:
        return named
    decision = decisions_of(sheet.brief.loss, found.classes or ())[int(context.prediction)]
    return replace(named, prediction=decision, answer=f"decision {decision!r}")


def _first(ranking: Ranking, n: int) -> Ranking:
    parts = {name: getattr(ranking, name)[:n] for name in ("indices", "labels", "scores", "reasons")}
    return replace(ranking, **parts)
